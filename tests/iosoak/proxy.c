/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The proxy of the example, for soak.c. */
#define main soak_proxy_main
#include "../../examples/proxy.c"
#undef main

#include "soak.h"

int soak_hand_on(int client, int server)
{
	return hand_on_both(client, server);
}
