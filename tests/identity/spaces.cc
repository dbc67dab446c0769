// SPDX-License-Identifier: MIT OR Apache-2.0
// Each namespace of C++ has effects of its own; C declares the same effects under the same names (spaces.c).
#include <weft/weft.h>

#define IN_NAMESPACE                                                                                                   \
	WEFT_FAMILY(state, (int, get), (void, put, int, value));                                                       \
	static int on_get(void *value)                                                                                 \
	{                                                                                                              \
		return *static_cast<int *>(value);                                                                     \
	}                                                                                                              \
	WEFT_HANDLER(handler, weft_tail(get, on_get));                                                                 \
	static void *general_put(void *value, weft_resumption_t *k, int put_value)                                     \
	{                                                                                                              \
		*static_cast<int *>(value) += put_value;                                                               \
		return weft_continue(put, k);                                                                          \
	}                                                                                                              \
	WEFT_HANDLER(adder, weft_general(put, general_put));                                                           \
	static void *run(int value, weft_fn_t *body)                                                                   \
	{                                                                                                              \
		return weft_run(&handler, &value, body, NULL);                                                         \
	}                                                                                                              \
	static int gets()                                                                                              \
	{                                                                                                              \
		return get();                                                                                          \
	}                                                                                                              \
	static int puts(weft_fn_t *body)                                                                               \
	{                                                                                                              \
		int value = 0;                                                                                         \
		weft_run(&adder, &value, body, NULL);                                                                  \
		return value;                                                                                          \
	}

namespace one
{
IN_NAMESPACE
}
namespace two
{
IN_NAMESPACE
namespace deep
{
IN_NAMESPACE
}
} // namespace two
namespace
{
namespace local
{
IN_NAMESPACE
}
} // namespace
namespace global
{
static int gets();
static void *run(int value, weft_fn_t *body);
} // namespace global
IN_NAMESPACE
static int global::gets()
{
	return ::gets();
}
static void *global::run(int value, weft_fn_t *body)
{
	return ::run(value, body);
}

extern "C" int c_gets(void), c_gets_two(void), c_gets_deep(void);
extern "C" void *c_puts_deep(void *unused);

static int faults;

static void *innermost(void *unused)
{
	faults += one::gets() != 1;
	faults += two::gets() != 2 || c_gets_two() != 2 || c_gets_two() != 2;
	faults += two::deep::gets() != 3 || c_gets_deep() != 3;
	faults += local::gets() != 4;
	faults += global::gets() != 5 || c_gets() != 5;
	faults += two::deep::puts(c_puts_deep) != 6;
	return unused;
}

int main()
{
	one::run(1, [](void *) {
		return two::run(2, [](void *) {
			return two::deep::run(3, [](void *) {
				return local::run(4, [](void *) { return global::run(5, innermost); });
			});
		});
	});
	(void)one::puts, (void)two::puts, (void)local::puts, (void)::puts;
	return faults;
}
