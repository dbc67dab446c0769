/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* See beside.c. */
#define WEFT_NAMESPACE net.sockets
#include <weft/weft.h>

#include "named.h"

namespace ours
{
WEFT_EFFECT(int, send, int, fd, bool, now);
}

int sends_in_cxx(int file, bool urgent)
{
	return ours::send(file, urgent);
}
