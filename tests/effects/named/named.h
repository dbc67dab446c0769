/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What the two files of the program call of each other. */
#ifndef NAMED_H
#define NAMED_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif
int sends_in_cxx(int file, bool urgent);
#ifdef __cplusplus
}
#endif

#endif
