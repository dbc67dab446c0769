/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* hanoi.c: a generator that suspends from any depth of recursion. docs/tutorial/first-program.md, step 2. */
/* doc: begin program */
#include <stdio.h>
#include <weft/weft.h>

struct move {
	char from, to;
};

static void move_tower(int height, char from, char to, char other)
{
	struct move move = {from, to};

	if (!height)
		return;
	move_tower(height - 1, from, other, to);
	weft_suspend(&move);
	move_tower(height - 1, other, to, from);
}

static void *hanoi(void *height)
{
	move_tower(*(int *)height, 'A', 'C', 'B');
	return height;
}

int main(void)
{
	int height = 3;
	weft_coro_t *k = weft_create(hanoi, &height);
	weft_request_t r;

	if (!k) {
		perror("hanoi");
		return 1;
	}
	while ((r = weft_resume(k, NULL, WEFT_HANDLE_NONE)).effect == &weft_suspended) {
		const struct move *move = r.payload;

		printf("%c to %c\n", move->from, move->to);
	}
	weft_delete(k);
	return weft_returned(r) ? 0 : 1;
}
/* doc: end */
