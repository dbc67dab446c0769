/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * machine.c: two devices of an emulated machine switch to each other; the machine's state is saved and restored.
 * Ported from doc/examples/test_serialization.cpp of libco: a new program with the structure of the original. It
 * prints the same numbers. (The first line of the original, an address, is left out.) docs/howto/port.md quotes it.
 *
 * Three changes:
 *  1. The host is no coroutine. It resumes a device; a device continues another device by weft_switch, and returns to
 *     the host by weft_suspend. libco has one call for all three.
 *  2. The devices have the policy "copy", the only one under which a state can be saved. Their functions get an
 *     argument, and may return. libco's functions do neither.
 *  3. weft_checkpoint and weft_checkpoint_restore_last take the place of copies of both stacks' bytes. libco needs
 *     stacks in the program's memory for that, and promises such copies on some platforms only.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <weft/weft.h>

/* doc: begin devices */
static weft_coro_t *cpu, *apu;
static bool powered = true;

static void wait_for_host(void)
{
	int kept = 42; /* a local variable is a part of the saved state */

	weft_suspend(NULL);
	printf("6\n");
	weft_switch(apu, NULL);
	printf("8 (%d)\n", kept);
	weft_suspend(NULL);
}

static void *run_cpu(void *unused)
{
	while (powered) {
		printf("2\n");
		weft_switch(apu, NULL); /* the first switch to a coroutine starts it */
		printf("4\n");
		wait_for_host();
	}
	return unused;
}

static void *run_apu(void *unused)
{
	while (powered) {
		printf("3\n");
		weft_switch(cpu, NULL);
		printf("7\n");
		weft_switch(cpu, NULL);
	}
	return unused;
}
/* doc: end */

/* doc: begin states */
static int save(void)
{
	int error = weft_checkpoint(cpu);

	return error ? error : weft_checkpoint(apu);
}

static int restore(void)
{
	int error = weft_checkpoint_restore_last(cpu);

	return error ? error : weft_checkpoint_restore_last(apu);
}
/* doc: end */

/* doc: begin host */
static int run_machine(void)
{
	int error;

	printf("1\n");
	weft_resume(cpu, NULL, WEFT_HANDLE_NONE);
	printf("5\n");
	error = save();
	if (error)
		return error;
	weft_resume(cpu, NULL, WEFT_HANDLE_NONE);
	printf("9\n");
	error = restore();
	if (error)
		return error;
	weft_resume(cpu, NULL, WEFT_HANDLE_NONE);
	return 0;
}
/* doc: end */

int main(void)
{
	const weft_attr_t copied = {.policy = WEFT_COPY};
	int error;

	cpu = weft_create_with(run_cpu, NULL, &copied);
	apu = cpu ? weft_create_with(run_apu, NULL, &copied) : NULL;
	error = apu ? run_machine() : -errno;
	weft_delete(apu);
	weft_delete(cpu);
	if (error)
		fprintf(stderr, "machine: %s\n", strerror(-error));
	return error != 0;
}
