/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * One line of text for standard error, built without allocating, locking or much stack: usable in a signal handler on
 * the smallest alternate stack. A line that is too long is cut.
 */
#ifndef WEFT_SRC_MESSAGE_H
#define WEFT_SRC_MESSAGE_H

#include <stddef.h>
#include <stdint.h>
#include <weft/base.h>

struct weft__line {
	size_t length;
	char text[384];
};

#define WEFT__LINE_BEGINS "weft: "
enum { WEFT__LINE_BODY = sizeof WEFT__LINE_BEGINS - 1 }; /* the start of the text after the prefix */

/* Starts with WEFT__LINE_BEGINS. */
void weft__line_begin(struct weft__line *line);
void weft__line_text(struct weft__line *line, const char *text);
void weft__line_number(struct weft__line *line, uint64_t number);
void weft__line_address(struct weft__line *line, uintptr_t address);
/* coroutine "NAME" (#ID), or coroutine #ID if the name is empty. */
void weft__line_coroutine(struct weft__line *line, const char *name, uint64_t id);
/* "256 KiB": the largest unit that divides it. */
void weft__line_bytes(struct weft__line *line, size_t bytes);
/* Adds `what` (", made") and the place of a return address in the program: " in FUNCTION at FILE:LINE" if
 * WEFT_ADDR2LINE names a program that can tell, else " at SYMBOL in FILE+OFFSET". Not for signal handlers, because it
 * may start that program. */
void weft__line_place(struct weft__line *line, const char *what, const void *at);
/* Begins a line about a variable of the environment: "VARIABLE=value is ignored: ". The caller adds what to do. */
void weft__line_ignored(struct weft__line *line, const char *variable, const char *value);
/* Writes such a line. */
void weft__say_ignored(const char *variable, const char *value, const char *what_to_do);
/* Adds the newline, writes the line in one call, preserves errno. */
void weft__line_write(struct weft__line *line);

/* Writes the line, then calls abort(): for a broken rule of the interface. Only functions that WEFT__LAST_WORDS defines
 * call it. */
_Noreturn void weft__line_die(struct weft__line *line);

/* For functions that run while AddressSanitizer assumes another stack: it must not be told that a function does not
 * return. */
#define WEFT__LEAVES_STACK __attribute__((no_sanitize_address))

/*
 * Calls say(a, b, c, d, e), integers and pointers, on the process's last stack (arch/x86_64.S). The caller's stack may
 * end anywhere below its frame: on a tiny chunk, or close to a guard, whose fault would be reported in place of the
 * message. Any thread may call it, in signal handlers too.
 */
WEFT_API _Noreturn void weft__last_words(void (*say)(void), ...);

/*
 * Defines the function `name`, which ends the process: the block that follows runs on the last stack, with the same
 * parameters. Each message that ends the process is such a function.
 *
 *	WEFT__LAST_WORDS(static, die_of, (const weft_coro_t *k), k)
 *	{
 */
#define WEFT__LAST_WORDS(storage, name, parameters, ...)                                                               \
	WEFT__COLD WEFT__LEAVES_STACK static WEFT__NORETURN void name##_there parameters;                              \
	storage WEFT__COLD WEFT__LEAVES_STACK WEFT__NORETURN void name parameters                                      \
	{                                                                                                              \
		weft__last_words((void (*)(void))name##_there, __VA_ARGS__);                                           \
	}                                                                                                              \
	static void name##_there parameters

/* Reports that a function that makes or ends coroutines was called in a signal handler. */
_Noreturn void weft__die_in_handler(void);

#endif
