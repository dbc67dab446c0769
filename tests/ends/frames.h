/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Frames of C code, with or without -fexceptions. */
#ifndef WEFT_TEST_ENDS_FRAMES_H
#define WEFT_TEST_ENDS_FRAMES_H

#ifdef __cplusplus
extern "C" {
#endif

void frame_plain(void (*run)(void *), void *arg);

/* Takes a resource and defers its release, once, twice, or in each round of a loop; then runs `run`. */
enum { FRAME_ONE, FRAME_TWO, FRAME_LOOP, FRAME_SHAPES };
void frame_deferring(int shape, void *(*take)(void), void (*give)(void *), void (*run)(void *), void *arg);

/* Defers one cleanup, then runs `run`. */
void frame_holding(void (*deferred)(void *), void *what, void (*run)(void *), void *arg);

#ifdef __cplusplus
}
#endif

#endif
