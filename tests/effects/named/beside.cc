/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* See beside.c. */
#include <weft/weft.h>

#include "named.h"

namespace net
{
namespace sockets
{
WEFT_EFFECT(int, send, int, fd, bool, now);
}
} // namespace net

int sends_in_cxx(int file, bool urgent)
{
	return net::sockets::send(file, urgent);
}
