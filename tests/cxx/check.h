/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Code shared by the C++ tests. */
#ifndef WEFT_TESTS_CXX_CHECK_H
#define WEFT_TESTS_CXX_CHECK_H

#include <cstdio>
#include <cstdlib>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

#include <weft/weft.h>

#if __has_include(<valgrind/valgrind.h>)
#include <valgrind/valgrind.h>
#else
#define RUNNING_ON_VALGRIND 0
#endif

#define CHECK(condition)                                                                                               \
	do {                                                                                                           \
		if (!(condition)) {                                                                                    \
			std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                           \
			std::_Exit(1);                                                                                 \
		}                                                                                                      \
	} while (0)

/* Prints a TAP line: the check before it passed, because otherwise the process has ended. */
inline void passed(const char *what)
{
	static int number;

	std::printf("ok %d - %s\n", ++number, what);
	std::fflush(stdout);
}

/* Deletes what it owns. */
struct Coroutine {
	weft_coro_t *k;

	explicit Coroutine(weft_fn_t *fn, void *arg = nullptr, unsigned flags = 0)
	{
		weft_attr_t attr{};

		attr.name = "test";
		attr.flags = flags;
		k = weft_create_with(fn, arg, &attr);
		CHECK(k);
	}
	Coroutine(const Coroutine &) = delete;
	~Coroutine()
	{
		weft_delete(k);
	}
	weft_request_t resume(weft_handles_t handles = WEFT_HANDLE_NONE)
	{
		return weft_resume(k, nullptr, handles);
	}
	bool finished() const
	{
		return weft_state(k) == WEFT_FINISHED;
	}
};

/*
 * Runs `program` in a separate process. Returns its exit code, or 1000 + the signal that ended it; `errors` gets its
 * standard error.
 */
template <typename Program> int apart(Program program, std::string &errors)
{
	int ends[2], status;
	char buffer[4096];
	ssize_t got;
	pid_t child;

	CHECK(pipe(ends) == 0);
	std::fflush(stdout);
	child = fork();
	CHECK(child >= 0);
	if (!child) {
		dup2(ends[1], 2);
		close(ends[0]);
		program();
		std::_Exit(0);
	}
	close(ends[1]);
	while ((got = read(ends[0], buffer, sizeof buffer)) > 0)
		errors.append(buffer, static_cast<size_t>(got));
	close(ends[0]);
	CHECK(waitpid(child, &status, 0) == child);
	return WIFSIGNALED(status) ? 1000 + WTERMSIG(status) : WEXITSTATUS(status);
}

#endif
