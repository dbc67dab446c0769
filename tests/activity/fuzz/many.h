/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The end of a file of many programs: `programs` lists them, and main runs the programs whose numbers are its
 * arguments, or all. Each prints one line: its number and its result. A program that does not end soon, or fails, in
 * the plain build is left out.
 */
#ifndef FUZZ_PASS
#include <setjmp.h>
#include <signal.h>
#include <sys/time.h>

static sigjmp_buf next;

static void leave(int sig)
{
	siglongjmp(next, sig);
}

static int run_plain(void (*run)(void))
{
	static const int signals[] = {SIGPROF, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
	struct itimerval limit = {.it_value = {.tv_usec = 30000}}, off = {0};
	int failed;

	for (unsigned i = 0; i < sizeof signals / sizeof *signals; i++)
		signal(signals[i], leave);
	setitimer(ITIMER_PROF, &limit, NULL);
	failed = sigsetjmp(next, 1);
	if (!failed)
		run();
	setitimer(ITIMER_PROF, &off, NULL);
	return failed;
}
#endif

int main(int argc, char **argv)
{
	int k = 1;

	for (unsigned i = 0; i < sizeof programs / sizeof *programs; i++) {
		/* Both are in order. */
		if (argc > 1 && (k == argc || strtoul(argv[k], NULL, 10) != programs[i].number))
			continue;
		k++;
		printf("%u: ", programs[i].number);
		fflush(stdout);
#ifdef FUZZ_PASS
		programs[i].run();
#else
		if (run_plain(programs[i].run))
			printf("\n");
#endif
		fflush(stdout);
	}
	return 0;
}
