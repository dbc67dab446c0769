/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Functions of each of the program's two files that the other file calls. */
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
