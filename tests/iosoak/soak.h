/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef WEFT_TESTS_IOSOAK_SOAK_H
#define WEFT_TESTS_IOSOAK_SOAK_H

/* proxy.c: until both directions have ended. 0 or a negative errno. */
int soak_hand_on(int client, int server);
/* chat.c: serves at the listener that it points to, until it is cancelled. */
void *soak_chat(void *listener);

#endif
