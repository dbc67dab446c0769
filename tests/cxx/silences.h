/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A header as ours must not be. */
#pragma GCC diagnostic ignored "-Wunused-variable"
