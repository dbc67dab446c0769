/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * weft/detail/activity.h: the private part of weft/activity.h: how activities park, and the bodies of inline
 * functions. weft/activity.h includes it at its end.
 */
#ifndef WEFT_DETAIL_ACTIVITY_H
#define WEFT_DETAIL_ACTIVITY_H

#include <weft/activity.h>

WEFT_EXTERN_C_BEGIN

/* The data of the thread's running group that twins read. The pass and the assembly code know the offsets. */
struct weft__activity_hot {
	uintptr_t limit;    /* if the stack pointer is below it, twins call the library: UINTPTR_MAX when the timer has
			       rung */
	uint32_t flag;	    /* the timer has rung: written by another thread */
	uint32_t arguments; /* for weft__activity_fresh: bytes of arguments on the stack */
	void *target;	    /* for weft__activity_fresh: the function to call */
	weft_activity_t *self;
	struct weft__activity_group *group;
	uintptr_t full; /* the value of `limit` when the timer has not rung: below it the stack is nearly full */
};
WEFT_API extern __thread struct weft__activity_hot weft__activity_hot __attribute__((tls_model("initial-exec")));

/* Parks the running activity, which is already in the place where its waker will find it: other activities run. In
 * yielding mode the pass replaces the call by a switch. In plain mode, where it must not switch, and outside of
 * activities the call writes a line and ends the process. */
WEFT_API void weft__activity_park(void);

WEFT__INLINE weft_activity_t *weft_activity_self(void)
{
	return weft__activity_hot.self;
}

WEFT__INLINE void weft_activity_sem_init(weft_activity_sem_t *s, long count)
{
	s->count = count;
	s->first = s->last = NULL;
}

WEFT_API bool weft__activity_sem_begin(weft_activity_sem_t *s);
WEFT_API void weft__activity_sem_wake(weft_activity_sem_t *s);

WEFT__INLINE void weft_activity_sem_wait(weft_activity_sem_t *s)
{
	if (s->count > 0)
		s->count--;
	else if (weft__activity_sem_begin(s))
		weft__activity_park();
}

WEFT__INLINE void weft_activity_sem_post(weft_activity_sem_t *s)
{
	if (s->first)
		weft__activity_sem_wake(s);
	else
		s->count++;
}

WEFT_API bool weft__activity_wait_begin(weft_activity_t *a);

WEFT__INLINE int weft_activity_wait(weft_activity_t *a)
{
	if (weft__activity_wait_begin(a))
		weft__activity_park();
	return -a->error;
}

WEFT__INLINE void *weft_activity_result(const weft_activity_t *a)
{
	return a->frames;
}

WEFT_API bool weft__activity_sleep_begin(uint64_t when);

WEFT__INLINE void weft_activity_sleep_until(uint64_t when)
{
	if (weft__activity_sleep_begin(when))
		weft__activity_park();
}

WEFT__INLINE void weft_activity_sleep(uint64_t nanoseconds)
{
	uint64_t now = weft_now();

	weft_activity_sleep_until(nanoseconds < WEFT_NEVER - now ? now + nanoseconds : WEFT_NEVER - 1);
}

WEFT_API bool weft__activity_park_begin(weft_activity_waker_t *w);

WEFT__INLINE void weft_activity_park(weft_activity_waker_t *w)
{
	if (weft__activity_park_begin(w))
		weft__activity_park();
}

/* If a begin function returns -EINPROGRESS, the caller must park, and then call the end function. */
WEFT_API int weft__activity_send_begin(weft_activity_mail_t *m, void *message);
WEFT_API int weft__activity_receive_begin(weft_activity_mail_t *m, void **message);
WEFT_API int weft__activity_send_end(void);
WEFT_API int weft__activity_receive_end(void **message);

WEFT__INLINE int weft_activity_send(weft_activity_mail_t *m, void *message)
{
	int result = weft__activity_send_begin(m, message);

	if (result != -EINPROGRESS)
		return result;
	weft__activity_park();
	return weft__activity_send_end();
}

WEFT__INLINE int weft_activity_receive(weft_activity_mail_t *m, void **message)
{
	int result = weft__activity_receive_begin(m, message);

	if (result != -EINPROGRESS)
		return result;
	weft__activity_park();
	return weft__activity_receive_end(message);
}

/* Markers. The pass removes them. A program that was compiled without the pass does not link, and their names give the
 * reason. */
int weft__activate(void *handle, int count, ...) __asm__("weft_needs_cc_with_activities__activate")
    __attribute__((nothrow));
int weft__activated(int *mark) __asm__("weft_needs_cc_with_activities__activated") __attribute__((nothrow));
int weft__no_yield_begin(void) __asm__("weft_needs_cc_with_activities__no_yield") __attribute__((nothrow));
void weft__no_yield_end(int *mark) __asm__("weft_needs_cc_with_activities__no_yield_end") __attribute__((nothrow));
int weft__no_implicit_begin(void) __asm__("weft_needs_cc_with_activities__no_implicit") __attribute__((nothrow));
void weft__no_implicit_end(int *mark) __asm__("weft_needs_cc_with_activities__no_implicit_end")
    __attribute__((nothrow));

#define WEFT__A_CAT_(a, b) a##b
#define WEFT__A_CAT(a, b) WEFT__A_CAT_(a, b)
/* The number of arguments, at least one: up to 9; MANY if there are more, up to 19. */
#define WEFT__A_COUNT_(a, b, c, d, e, f, g, h, i, j, k, l, m, o, p, q, r, s, t, n, ...) n
#define WEFT__A_COUNT(...)                                                                                             \
	WEFT__A_COUNT_(__VA_ARGS__, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, 9, 8, 7, 6, 5, 4, 3,   \
		       2, 1, 0)
/* weft__activate gets the handle, the number of variables, and the address and the size of each variable. */
#define WEFT__A_ONE(a) , &(a), sizeof(a)
#define WEFT__A_LIST1(a) WEFT__A_ONE(a)
#define WEFT__A_LIST2(a, ...) WEFT__A_ONE(a) WEFT__A_LIST1(__VA_ARGS__)
#define WEFT__A_LIST3(a, ...) WEFT__A_ONE(a) WEFT__A_LIST2(__VA_ARGS__)
#define WEFT__A_LIST4(a, ...) WEFT__A_ONE(a) WEFT__A_LIST3(__VA_ARGS__)
#define WEFT__A_LIST5(a, ...) WEFT__A_ONE(a) WEFT__A_LIST4(__VA_ARGS__)
#define WEFT__A_LIST6(a, ...) WEFT__A_ONE(a) WEFT__A_LIST5(__VA_ARGS__)
#define WEFT__A_LIST7(a, ...) WEFT__A_ONE(a) WEFT__A_LIST6(__VA_ARGS__)
#define WEFT__A_LIST8(a, ...) WEFT__A_ONE(a) WEFT__A_LIST7(__VA_ARGS__)
#define WEFT__A_1(handle) (handle), 0
#define WEFT__A_2(handle, ...) (handle), 1 WEFT__A_LIST1(__VA_ARGS__)
#define WEFT__A_3(handle, ...) (handle), 2 WEFT__A_LIST2(__VA_ARGS__)
#define WEFT__A_4(handle, ...) (handle), 3 WEFT__A_LIST3(__VA_ARGS__)
#define WEFT__A_5(handle, ...) (handle), 4 WEFT__A_LIST4(__VA_ARGS__)
#define WEFT__A_6(handle, ...) (handle), 5 WEFT__A_LIST5(__VA_ARGS__)
#define WEFT__A_7(handle, ...) (handle), 6 WEFT__A_LIST6(__VA_ARGS__)
#define WEFT__A_8(handle, ...) (handle), 7 WEFT__A_LIST7(__VA_ARGS__)
#define WEFT__A_9(handle, ...) (handle), 8 WEFT__A_LIST8(__VA_ARGS__)
#define WEFT__A_MANY(...) (void *)0, weft__activate_copies_at_most_8_variables
extern int weft__activate_copies_at_most_8_variables
    __attribute__((unavailable("put the variables into a struct, and list that")));
#define WEFT__ACTIVATE(mark, ...) for (int mark = weft__activate(__VA_ARGS__); mark; mark = weft__activated(&mark))
/* EMPTY or SOME. Without arguments only the third of these lists has a comma. */
#define WEFT__A_COMMA(...) WEFT__A_COUNT_(__VA_ARGS__, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0)
#define WEFT__A_TO_COMMA(...) ,
#define WEFT__A_EMPTY(...)                                                                                             \
	WEFT__A_EMPTY_(WEFT__A_COMMA(__VA_ARGS__), WEFT__A_COMMA(WEFT__A_TO_COMMA __VA_ARGS__),                        \
		       WEFT__A_COMMA(WEFT__A_TO_COMMA __VA_ARGS__()))
#define WEFT__A_EMPTY_(a, b, c) WEFT__A_EMPTY__(a, b, c)
#define WEFT__A_EMPTY__(a, b, c) WEFT__A_IF_##a##b##c
#define WEFT__A_IF_000 SOME
#define WEFT__A_IF_001 EMPTY
#define WEFT__A_IF_011 SOME
#define WEFT__A_IF_111 SOME
#define WEFT__A_DETACHED_EMPTY(...) weft_activate((void *)0)
#define WEFT__A_DETACHED_SOME(...) weft_activate((void *)0, __VA_ARGS__)
#define WEFT__SCOPE_MARK(mark, begin, end) for (int mark __attribute__((cleanup(end))) = begin(); mark; mark = 0)

WEFT_EXTERN_C_END

#endif /* WEFT_DETAIL_ACTIVITY_H */
