/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * weft/link_policies.h: the stack policies that a program is linked with.
 *
 *   WEFT_POLICIES();                  only fixed and overcommit
 *   WEFT_POLICIES(segmented, copy);   these as well
 *
 * With the static library every program has all policies, because WEFT_STACK may choose any. A program that names the
 * policies that it uses, in one of its files and at file scope, is linked without the others; docs/reference/costs.md
 * lists the size of each part. An attribute that asks for a policy that is not linked is refused with ENOTSUP; a
 * WEFT_STACK that asks for one is ignored, with a message.
 *
 * Some policies are linked without being named. Code compiled for segmented, lookahead, mmu or heap brings the parts
 * that it needs, but runs on contiguous stacks unless its policy is named. weft_clone, weft_checkpoint and related
 * functions bring copy, and weft_set_budget brings commit. Handlers with multi clauses do not: name copy.
 *
 * With the shared library the declaration has no effect. Nothing here is called, in a signal handler or elsewhere.
 */
#ifndef WEFT_LINK_POLICIES_H
#define WEFT_LINK_POLICIES_H

#include <weft/detail/pp.h>
#include <weft/stack.h>

/* See weft/effect.h. */
#if !defined(__clang__)
#pragma GCC system_header
#endif

WEFT_EXTERN_C_BEGIN
/* Each variable lies in the file of its policy: a program that takes the address is linked with the policy. */
#define WEFT__POLICY(constant, name, linked) extern WEFT_API const char weft__with_##name;
#include <weft/detail/policies.def>
#undef WEFT__POLICY
WEFT_EXTERN_C_END

/** WEFT_POLICIES(policies…); The program is linked with these, fixed and overcommit. Use it once, at file scope,
 * followed by a semicolon. A name that is no policy does not compile. */
#define WEFT_POLICIES(...)                                                                                             \
	WEFT_EXTERN_C_BEGIN                                                                                            \
	extern WEFT__HIDDEN const char *const weft__every_policy[];                                                    \
	const char *const weft__every_policy[] = {WEFT__EACH(WEFT__POLICY_WANTED, , __VA_ARGS__) NULL};                \
	WEFT_EXTERN_C_END                                                                                              \
	WEFT__STATIC_ASSERT(1, "")

#define WEFT__POLICY_WANTED(unused, policy) &weft__with_##policy,

#endif /* WEFT_LINK_POLICIES_H */
