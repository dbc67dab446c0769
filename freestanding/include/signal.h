/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* In place of the C library's: there are no signals. */
#ifndef WEFT_FREESTANDING_SIGNAL_H
#define WEFT_FREESTANDING_SIGNAL_H

typedef struct weft__no_siginfo siginfo_t;
struct sigaction;

#endif
