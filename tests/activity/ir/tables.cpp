/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A table of labels that is one with that of other files: the twin cannot have its own. */
// RUN: %fresh
// RUN: %refused=REFUSED
// REFUSED: in function {{.*}}interpret{{.*}}: a table of labels that other files can see: make it static
inline int interpret(const int *code)
{
	static const void *const labels[] = {&&add, &&end};
	int sum = 0;

	goto *labels[*code++];
add:
	sum += *code++;
	goto *labels[*code++];
end:
	return sum;
}

int calls(const int *code)
{
	return interpret(code);
}
