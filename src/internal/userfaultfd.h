/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The kernel's interface of userfaultfd(2), for compilers without the kernel's headers, like musl-gcc. */
#ifndef WEFT_SRC_USERFAULTFD_H
#define WEFT_SRC_USERFAULTFD_H

#if __has_include(<linux/userfaultfd.h>)
#include <linux/userfaultfd.h>
#else
#include <stdint.h>
#include <sys/ioctl.h>

#define UFFD_API 0xaaull
#define UFFD_EVENT_PAGEFAULT 0x12
#define UFFDIO_REGISTER_MODE_MISSING 1ull

struct uffdio_range {
	uint64_t start, len;
};
struct uffdio_api {
	uint64_t api, features, ioctls;
};
struct uffdio_register {
	struct uffdio_range range;
	uint64_t mode, ioctls;
};
struct uffdio_zeropage {
	struct uffdio_range range;
	uint64_t mode;
	int64_t zeropage;
};
struct uffd_msg {
	uint8_t event, reserved1;
	uint16_t reserved2;
	uint32_t reserved3;
	union {
		struct {
			uint64_t flags, address, feature;
		} pagefault;
	} arg;
};

#define UFFDIO_API _IOWR(0xaa, 0x3f, struct uffdio_api)
#define UFFDIO_REGISTER _IOWR(0xaa, 0x00, struct uffdio_register)
#define UFFDIO_WAKE _IOR(0xaa, 0x02, struct uffdio_range)
#define UFFDIO_ZEROPAGE _IOWR(0xaa, 0x04, struct uffdio_zeropage)
#endif

/* Newer than some kernel headers. */
#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif

#endif
