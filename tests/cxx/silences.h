/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A header that breaks the rules of Weft's headers. */
#pragma GCC diagnostic ignored "-Wunused-variable"
