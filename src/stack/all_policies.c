/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The policies of programs that do not name their policies: all. See policies.c. */
#include <weft/link_policies.h>

extern const char *const weft__every_policy[] WEFT__HIDDEN;
const char *const weft__every_policy[] = {
#define WEFT__POLICY(constant, name, linked) &weft__with_##name,
#include <weft/detail/policies.def>
#undef WEFT__POLICY
    NULL};
