/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What the programs call on a coroutine: about 100 MB of stack, variadic calls among it. */
#ifndef DEPTH_H
#define DEPTH_H

#ifdef __cplusplus
extern "C" {
#endif

enum { DEPTH = 600000 };

long depth(long n);

#ifdef __cplusplus
}
#endif
#endif
