/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#define getpid() 1
