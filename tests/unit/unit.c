/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * cmocka calls signal() before and after each test to catch SIGSEGV, which would remove the handler that `commit`
 * stacks need to grow. The linker finds this function first. A crash then ends the program, and the lane notices.
 */
#include "unit.h"

__sighandler_t signal(int number, __sighandler_t handler)
{
	struct sigaction action, before;

	if (number == SIGSEGV || number == SIGBUS)
		return SIG_DFL;
	memset(&action, 0, sizeof action);
	action.sa_handler = handler;
	action.sa_flags = SA_RESTART;
	return sigaction(number, &action, &before) ? SIG_ERR : before.sa_handler;
}
