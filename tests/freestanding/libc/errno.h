/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <weft/freestanding.h>

#define errno weft_errno()
#define ENOMEM 12
#define EBUSY 16
#define EINVAL 22
#define ENOSPC 28
#define ENOTSUP 95
