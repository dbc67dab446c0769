// SPDX-License-Identifier: MIT OR Apache-2.0
// AddressSanitizer and ThreadSanitizer do not support multiple resumes. Each operation that requests them reports it.
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <system_error>

#include <weft/weft.hpp>

#include "../cxx/check.h"

WEFT_EFFECT(int, pick, int, choices);

namespace
{

const char *why;
int told;

void *picks(void *arg)
{
	(void)pick(2);
	return arg;
}

void *both(void *state, weft_resumption_t *k, int choices)
{
	for (int i = 0; i < choices; i++)
		weft_continue(pick, k, i);
	return state;
}

void *fails(void *state, int error)
{
	told = error;
	return state;
}

WEFT_HANDLER(silent, weft_multi(pick, both));
WEFT_HANDLER(asks, weft_multi(pick, both), weft_on_failure(fails));

// The reason: a line that names the tool.
void reason()
{
	why = weft_clone_unavailable();
	CHECK(why && std::strstr(why, "Sanitizer") && std::strstr(why, "build without it") && !std::strchr(why, '\n'));
}

void multi_clauses()
{
	errno = 0;
	CHECK(!weft_run(&silent, nullptr, picks, nullptr) && errno == ENOTSUP);
	CHECK(weft_run(&asks, &told, picks, nullptr) == &told && told == ENOTSUP);
}

void clones()
{
	weft_attr_t attr{};
	weft_coro_t *k;

	attr.policy = WEFT_COPY;
	errno = 0;
	k = weft_create_with(picks, nullptr, &attr);
	if (weft_policy_unavailable(WEFT_COPY)) {
		CHECK(!k && errno == ENOTSUP);
		return;
	}
	CHECK(k && weft_is(pick, weft_resume(k, nullptr, weft_handles(pick))));
	CHECK(!weft_clone(k) && errno == ENOTSUP && weft_checkpoint(k) == -ENOTSUP);
	weft_delete(k);
}

template <typename Fn> void throws(Fn fn)
{
	try {
		fn();
		CHECK(!"thrown");
	} catch (const std::system_error &error) {
		CHECK(error.code().value() == ENOTSUP);
		CHECK(std::string(error.what()).find(why) != std::string::npos);
	}
}

void classes()
{
	weft_attr_t attr{};

	throws(
	    [] { weft::handle([] { return pick(2); }, weft_on(pick).multi([](auto k, int) { return k.resume(1); })); });
	attr.policy = WEFT_COPY;
	if (weft_policy_unavailable(WEFT_COPY))
		throws([&attr] { weft::coroutine<> k([] {}, attr); });
	int error = 0;
	weft::handle<int>([] { return pick(2); }, weft_on(pick).multi([](auto k, int) { return k.resume(1); }),
			  weft::on_failure([&error](int code) { return error = code; }));
	CHECK(error == ENOTSUP);
}

} // namespace

int main()
{
	reason();
	multi_clauses();
	clones();
	classes();
	std::puts(why);
	return 0;
}
