/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A plugin: performs the host's effect from a shared library that carries no copy of Weft. */
#include "voice.h"

extern "C" WEFT_API void *chorus(void *arg);

void *chorus(void *arg)
{
	for (int i = 0; i < 3; i++)
		voice("chorus");
	return arg;
}
