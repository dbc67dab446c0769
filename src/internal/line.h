/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * One line of text for standard error, built without allocating, locking or much stack: usable in a signal handler on
 * the smallest alternate stack. What does not fit is cut.
 */
#ifndef WEFT_SRC_LINE_H
#define WEFT_SRC_LINE_H

#include <stddef.h>
#include <stdint.h>

struct weft__line {
	size_t length;
	char text[384];
};

#define WEFT__LINE_BEGINS "weft: "
enum { WEFT__LINE_BODY = sizeof WEFT__LINE_BEGINS - 1 }; /* where the text after that begins */

/* Starts with WEFT__LINE_BEGINS. */
void weft__line_begin(struct weft__line *line);
void weft__line_text(struct weft__line *line, const char *text);
void weft__line_number(struct weft__line *line, uint64_t number);
void weft__line_address(struct weft__line *line, uintptr_t address);
/* coroutine "NAME" (#ID), or coroutine #ID if the name is empty. */
void weft__line_coroutine(struct weft__line *line, const char *name, uint64_t id);
/* "256 KiB": the largest unit that divides it. */
void weft__line_bytes(struct weft__line *line, size_t bytes);
/* The `what` (", made") and where in the program the address of a call's return is: " in FUNCTION at FILE:LINE" where
 * WEFT_ADDR2LINE names a program that knows, else " at SYMBOL in FILE+OFFSET". Not for signal handlers: it may start
 * that program. */
void weft__line_place(struct weft__line *line, const char *what, const void *at);
/* Adds the newline, writes it in one call, keeps errno. */
void weft__line_write(struct weft__line *line);

/* A broken rule of the interface: the line, then abort(). */
_Noreturn void weft__line_die(struct weft__line *line);

/* Something that makes or ends coroutines was called in a signal handler. */
_Noreturn void weft__die_in_handler(void);

#endif
