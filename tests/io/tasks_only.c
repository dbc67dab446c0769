/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Tasks without input and output: a linker that finds Weft in a static library leaves src/io out. */
#include <stdio.h>
#ifdef WITH_IO
#include <weft/io.h>
#else
#include <weft/sched.h>
#endif

static void *run(void *pass)
{
#ifdef WITH_IO
	(void)weft_close(-1);
#endif
	return weft_sleep(1) ? NULL : pass;
}

int main(void)
{
	void *result = NULL;

	return weft_rt_run(NULL, run, &result, &result) || result != &result;
}
