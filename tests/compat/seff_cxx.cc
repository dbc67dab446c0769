// SPDX-License-Identifier: MIT OR Apache-2.0
// libseff's interface as a C++ programmer uses it: classes around coroutines, lambdas as bodies, templates, exceptions
// inside a coroutine, and destructors that run in it.
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "seff.h"

DEFINE_EFFECT(emit, 0, void, { const std::string *text; });
DEFINE_EFFECT(ask, 1, std::string *, { int index; });

namespace
{

class coroutine
{
      public:
	coroutine(seff_start_fun_t *fn, void *arg) : k{seff_coroutine_new(fn, arg)}
	{
		if (!k)
			throw std::bad_alloc();
	}

	seff_request_t resume(void *value, effect_set handled)
	{
		return seff_resume(k.get(), value, handled);
	}

	bool finished() const
	{
		return k->state == FINISHED;
	}

      private:
	struct deleter {
		void operator()(seff_coroutine_t *k) const
		{
			seff_coroutine_delete(k);
		}
	};
	std::unique_ptr<seff_coroutine_t, deleter> k;
};

template <typename F> void for_each_emitted(coroutine &k, F f)
{
	std::string answers[] = {"zero", "one"};
	void *reply = nullptr;

	for (;;) {
		seff_request_t request = k.resume(reply, HANDLES(emit) | HANDLES(ask));
		switch (request.effect) {
			CASE_EFFECT(request, emit, {
				f(*payload.text);
				reply = nullptr;
				continue;
			})
			CASE_EFFECT(request, ask, {
				reply = &answers[payload.index];
				break;
			})
			CASE_RETURN(request, { return; })
		}
	}
}

struct noisy {
	~noisy()
	{
		std::puts("destroyed");
	}
};

void *body(void *arg)
{
	auto *names = static_cast<std::vector<std::string> *>(arg);

	for (const auto &name : *names) {
		noisy guard;
		try {
			if (name.empty())
				throw std::runtime_error("an empty name");
			PERFORM(emit, &name);
		} catch (const std::exception &e) {
			std::string text = std::string("caught ") + e.what();
			PERFORM(emit, &text);
		}
	}
	std::string both = *PERFORM(ask, 0) + *PERFORM(ask, 1);
	PERFORM(emit, &both);
	return nullptr;
}

} // namespace

int main()
{
	std::vector<std::string> names = {"warp", "", "weft"};
	coroutine k(body, &names);
	int count = 0;

	for_each_emitted(k, [&count](const std::string &text) { std::printf("%d %s\n", count++, text.c_str()); });
	std::printf("%s\n", k.finished() ? "finished" : "not finished");

	coroutine lambda(
	    [](void *arg) -> void * {
		    PERFORM(emit, static_cast<const std::string *>(arg));
		    return arg;
	    },
	    &names[0]);
	for_each_emitted(lambda, [](const std::string &text) { std::printf("%s\n", text.c_str()); });

	std::vector<seff_coroutine_t> several(3);
	for (auto &one : several)
		seff_coroutine_init(&one, body, &names);
	for (auto &one : several)
		seff_coroutine_release(&one);
	return 0;
}
