/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The chat server of the example, for soak.c. */
#define main soak_chat_main
#include "../../examples/chat.c"
#undef main

#include "soak.h"

void *soak_chat(void *listener)
{
	struct server s = {.listener = *(int *)listener};

	s.said = weft_chan_make(sizeof(struct line), ROOM);
	weft_defer(free_channel, &s.said);
	return s.said ? serve(&s) : NULL;
}
