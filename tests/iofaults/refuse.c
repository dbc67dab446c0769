/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A kernel without a system call: refuse CALL ERRNO PROGRAM [ARGUMENT…]. A seccomp filter makes the call fail in the
 * program. Returns 77 if no filter can be installed.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static const struct {
	const char *name;
	unsigned number;
} known[] = {{"io_uring_setup", SYS_io_uring_setup},
	     {"io_uring_enter", SYS_io_uring_enter},
	     {"io_uring_register", SYS_io_uring_register},
	     {"epoll_pwait2", SYS_epoll_pwait2},
	     {"pidfd_open", SYS_pidfd_open},
	     {"preadv2", SYS_preadv2}};

static unsigned number_of(const char *name)
{
	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (!strcmp(known[i].name, name))
			return known[i].number;
	return 0;
}

static int refuse(unsigned number, int error)
{
	struct sock_filter rules[] = {
	    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)error),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof rules / sizeof *rules, rules};

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

int main(int argc, char **argv)
{
	unsigned number = argc > 3 ? number_of(argv[1]) : 0;

	if (!number) {
		fprintf(stderr, "refuse CALL EPERM|ENOSYS PROGRAM [ARGUMENT...]\n");
		return 2;
	}
	if (refuse(number, strcmp(argv[2], "EPERM") ? ENOSYS : EPERM))
		return 77;
	execv(argv[3], argv + 3);
	return 2;
}
