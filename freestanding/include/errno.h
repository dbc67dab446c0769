/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* In place of the C library's: weft/freestanding.h. */
#ifndef WEFT_FREESTANDING_ERRNO_H
#define WEFT_FREESTANDING_ERRNO_H

extern __thread int weft__errno __attribute__((tls_model("initial-exec")));
#define errno weft__errno

#define EPERM 1
#define ENOMEM 12
#define EACCES 13
#define EBUSY 16
#define EINVAL 22
#define ENOSPC 28
#define EOVERFLOW 75
#define ENOTSUP 95
#define EAGAIN 11
#define EINTR 4
#define EDQUOT 122

#endif
