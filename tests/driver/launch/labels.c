/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Distances between labels. The first call only notes the distances; clang inlines that part, so that `main` names
 * labels of another function, which is complete by then. Prints "abab".
 */
#include <stdio.h>

static short distance[3];
static char text[10];

void write_text(const short *code);

void write_text(const short *code)
{
	static const void *const labels[] = {&&a, &&b, &&end};
	const void *first = &&a;
	char *at = text;

	if (!code) {
		for (int i = 0; i < 3; i++)
			distance[i] = (short)((const char *)labels[i] - (const char *)first);
		return;
	}
a:
	*at++ = 'a';
	goto *(void *)((const char *)first + *code++);
b:
	*at++ = 'b';
	goto *(void *)((const char *)first + *code++);
end:
	*at = 0;
}

int main(void)
{
	short code[4];

	write_text(NULL);
	code[0] = distance[1];
	code[1] = distance[0];
	code[2] = distance[1];
	code[3] = distance[2];
	write_text(code);
	puts(text);
	return 0;
}
