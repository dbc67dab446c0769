/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The table of policies, and the stand-ins for policies that a program was linked without.
 *
 * The static library is a set of parts. A part is a few files: commit; linked, which segmented, heap, lookahead, mmu
 * and weft_on_system_stack share; heap; copy. A part is linked into a program if the program calls a function of it.
 * Files outside the part name its functions by weak references (internal/link_part.h), which link nothing, and follow
 * them only for stacks of that part. The table names policies by weak definitions, which the parts' definitions
 * replace. Some parts are no policies: the decision about requests (effect/run.c), ends of suspended coroutines and of
 * coroutines that are left (coro/ends.h), coroutines that fail, which the growing policies link (stack/exhausted.c),
 * and stacks in memory of the caller's, which attributes link (stack/caller_memory.c).
 *
 * Every program refers to weft__every_policy. Unless the program defines it, by WEFT_POLICIES, the library does, in
 * all_policies.c, and that links all parts: WEFT_STACK may choose any of them.
 *
 * Rejected: deriving the policies of a program from its own calls. WEFT_STACK is for programs that name no policy.
 */
#include <errno.h>
#include <weft/link_policies.h>

#include "stack/copy.h"

extern const char *const weft__every_policy[];
/* Makes the linker search for the definition. */
__attribute__((used)) static const char *const *const every = weft__every_policy;

static const char *why_left_out(void)
{
	return "the program was linked without this policy; name it in WEFT_POLICIES (weft/link_policies.h)";
}

static int cut_none(weft_policy_t policy, unsigned class, unsigned count, struct weft__slot **list)
{
	(void)policy, (void)class, (void)count;
	*list = NULL;
	return -ENOTSUP;
}

static atomic_size_t committed;

#define ALWAYS(policy) const char weft__with_##policy;
#define STANDS_IN(policy, why)                                                                                         \
	__attribute__((weak)) const struct weft__policy weft__##policy = {.name = #policy,                             \
									  .default_size = 256 * 1024,                  \
									  .committed = &committed,                     \
									  .cut = cut_none,                             \
									  .unavailable = why};
#define PART(policy) STANDS_IN(policy, why_left_out)
#if defined(__x86_64__)
#define LINKED(policy) PART(policy)
#else
/* A program may still name it: using it then fails with this reason. */
#define LINKED(policy) ALWAYS(policy) STANDS_IN(policy, why_nowhere)

static const char *why_nowhere(void)
{
	return "linked stacks exist on x86-64 only; use overcommit, fixed, commit or copy";
}
#endif
#define WEFT__POLICY(constant, name, linked) linked(name)
#include <weft/detail/policies.def>
#undef WEFT__POLICY

const struct weft__policy *const weft__policies[WEFT_POLICY_COUNT] = {
#define WEFT__POLICY(constant, name, linked) [WEFT_##constant] = &weft__##name,
#include <weft/detail/policies.def>
#undef WEFT__POLICY
};

#define WEFT__POLICY(constant, name, linked) +1
_Static_assert(WEFT_POLICY_COUNT == 1
#include <weft/detail/policies.def>
	       ,
	       "a policy is missing in policies.def");
#undef WEFT__POLICY

/* ---- variables that files outside of a part read ----------------------------------------------------------------- */

__thread struct weft__chunk *weft__tls_system __attribute__((tls_model("initial-exec")));
__thread char *weft__tls_growth __attribute__((tls_model("initial-exec")));
/* Used: assembly uses it, which link-time optimization does not see. */
__attribute__((used)) __thread char *weft__tls_landing __attribute__((visibility("hidden"), tls_model("initial-exec")));
struct weft__module *_Atomic weft__modules;
