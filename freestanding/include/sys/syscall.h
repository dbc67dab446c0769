/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* In place of the C library's: see unistd.h. */
