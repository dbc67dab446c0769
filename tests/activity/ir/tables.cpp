/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A table of labels that is one with that of other files: the twin cannot have its own. */
// RUN: %fresh
// RUN: %refused=REFUSED
// REFUSED: in function {{.*}}interpret{{.*}}: a table of labels that other files can see: make it static
#define LINKAGE inline
#include "tables.c"

int calls(const int *code)
{
	return interpret(code);
}
