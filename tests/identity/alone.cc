// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Effects of no family, in namespaces: the handler has the effect of WEFT_NAMESPACE, the performer an effect of a C++
// namespace.
#define WEFT_NAMESPACE net.sockets
#include <weft/weft.h>

WEFT_EFFECT(int, get);

namespace ours
{
namespace inner
{
WEFT_EFFECT(int, get);
} // namespace inner
} // namespace ours

static int on_get(void *)
{
	return 0;
}

WEFT_HANDLER(handler, weft_tail(get, on_get));

static void *body(void *unused)
{
	(void)ours::inner::get();
	return unused;
}

int main()
{
	weft_run(&handler, NULL, body, NULL);
	return 0;
}
