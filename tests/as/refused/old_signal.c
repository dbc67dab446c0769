/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* gcc -fsplit-stack -dp -O1 -D_POSIX_C_SOURCE=200809L -std=c11: f: __sysv_signal */
#include <signal.h>

void f(void (*g)(int))
{
	signal(SIGTERM, g);
}
