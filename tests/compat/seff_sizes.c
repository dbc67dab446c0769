/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Stacks of 128 bytes that call printf; skynet; storage that holds garbage, from malloc, at any 16-byte boundary;
 * coroutines that hold coroutines; wrappers for system calls of every form. C and C++.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "seff.h"

DEFINE_EFFECT(yield_int, 1, void, { int64_t value; });

int get_errno(void);
int get_errno(void)
{
	return errno;
}

#ifndef __cplusplus
/* toupper is not declared here, and read is declared with different types. */
MAKE_SYSCALL_WRAPPER(int, toupper, int);
MAKE_SYSCALL_WRAPPER(long, read, int, const char *, unsigned long);
#endif
MAKE_SYSCALL_WRAPPER(int, get_errno);
MAKE_SYSCALL_WRAPPER(int, snprintf, char *, size_t, const char *, ...);
MAKE_SYSCALL_WRAPPER(ssize_t, write, int, const void *, size_t);
MAKE_SYSCALL_WRAPPER(seff_coroutine_t *, seff_coroutine_new_sized, seff_start_fun_t *, void *, size_t);
MAKE_SYSCALL_WRAPPER(void, seff_coroutine_delete, seff_coroutine_t *);

static int64_t last_layer = 1000;

static void *skynet(void *arg)
{
	int64_t number = (int64_t)arg;
	seff_coroutine_t *children[10];
	size_t finished = 0;

	if (number >= last_layer) {
		PERFORM(yield_int, number - last_layer);
		return NULL;
	}
	for (int i = 0; i < 10; i++)
		children[i] = seff_coroutine_new_sized_syscall_wrapper(skynet, (void *)(number * 10 + i), 256);
	while (finished < 10)
		for (int i = 0; i < 10; i++) {
			if (children[i]->state != FINISHED)
				seff_resume(children[i], NULL, 0);
			else
				continue;
			if (children[i]->state == FINISHED)
				finished++;
		}
	for (int i = 0; i < 10; i++)
		seff_coroutine_delete_syscall_wrapper(children[i]);
	return NULL;
}

static void run_skynet(void)
{
	seff_coroutine_t *root = seff_coroutine_new_sized(skynet, (void *)(int64_t)1, 128);
	seff_request_t request = seff_resume(root, NULL, HANDLES(yield_int));
	int64_t total = 0;

	while (root->state != FINISHED) {
		switch (request.effect) {
			CASE_EFFECT(request, yield_int, {
				total += payload.value;
				break;
			});
		default:
			assert(false);
		}
		request = seff_resume(root, NULL, HANDLES(yield_int));
	}
	seff_coroutine_delete(root);
	printf("skynet: %d\n", (int)total);
}

static void *formats(void *arg)
{
	char text[1000];

	errno = ERANGE;
	snprintf_syscall_wrapper(text, sizeof(text), "%s %.3f %d", (const char *)arg, 1.5, get_errno_syscall_wrapper());
	PERFORM(yield_int, (int64_t)strlen(text));
	printf("%s\n", text);
	return arg;
}

struct holder {
	char shift;
	seff_coroutine_t k;
};

static void in_storage(char *storage)
{
	struct holder *holder = (struct holder *)(void *)storage;

	seff_coroutine_init_sized(&holder->k, formats, (void *)"formatted", 128);
	seff_request_t request = seff_resume(&holder->k, NULL, HANDLES(yield_int));
	assert(request.effect == EFF_ID(yield_int));
	assert(holder->k.state == PAUSED);
	seff_resume(&holder->k, NULL, 0);
	seff_coroutine_release(&holder->k);
}

int main(void)
{
	char *storage = (char *)malloc(sizeof(struct holder) + 64);
	static const int fills[] = {0x00, 0xff, 0xa5, 0x01};

	run_skynet();
	for (int offset = 0; offset < 64; offset += 16) {
		memset(storage, fills[offset / 16], sizeof(struct holder) + 64);
		in_storage(storage + offset);
	}
	free(storage);
	fflush(stdout);
#ifndef __cplusplus
	assert(toupper_syscall_wrapper('e') == 'E');
	assert(read_syscall_wrapper(-1, "", 0) == -1);
#endif
	assert(write_syscall_wrapper(1, "end\n", 4) == 4);
	return 0;
}
