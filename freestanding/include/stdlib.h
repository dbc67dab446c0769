/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* In place of the C library's. Allocations are small and short: system.c has some blocks for them. */
#ifndef WEFT_FREESTANDING_STDLIB_H
#define WEFT_FREESTANDING_STDLIB_H

#include <weft/freestanding.h>

void *weft__block_of_program(size_t bytes);
void weft__block_to_program(void *block);
#define malloc weft__block_of_program
#define free weft__block_to_program
#define abort weft_stop

#endif
