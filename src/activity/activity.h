/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A group of activities, and the contract between its parts.
 *
 * A group is a coroutine, whose stack is the hot stack:
 *
 *   weft_activity_run's caller
 *   ------------------------------  high addresses
 *   the driver's frame              picks activities, sleeps when none is ready
 *   room for what it calls          WEFT__DRIVER_ROOM
 *   base ------------------------
 *   frames of twins                 the window, half of the stack; a call that would go deeper goes on in another one
 *   deepest ---------------------
 *   frames of plain code            the rest: plain code never switches, so it is gone at each switch
 *   ------------------------------  guard
 *
 * The window is divided into segments of about WEFT__SEGMENT bytes, so that a switch costs the same at any depth: an
 * activity that parks has only the newest segment, and those that it has returned to, copied. When it goes on, only the
 * newest comes back; a return out of that brings back the next one (segments.c).
 *
 * An activity in a stack of its own (deep_stacks.c) has part of its frames in the window: those it had when it went
 * there. They stay parked until the activity returns to them.
 *
 * Frames of the library may be parked too (libc_calls.c), if no address in them is known to others: they come back to
 * the same place.
 *
 * A stackful group has a coroutine for each activity, which the driver resumes (stackful.c); nothing is copied.
 */
#ifndef WEFT_SRC_ACTIVITY_ACTIVITY_H
#define WEFT_SRC_ACTIVITY_ACTIVITY_H

#include <stdatomic.h>
#include <stddef.h>
#include <weft/activity.h>
#include <weft/io.h>
#include <weft/sync.h>

#include "activity/offsets.h"
#include "coro/cxxabi.h"
#include "sched/pin.h"

enum { WEFT__SEGMENT = SEGMENT_BYTES };
enum { WEFT__DRIVER_ROOM = 32 << 10 };

/* States of an activity: who may leave them is said in weft/activity.h. Those from WEFT__A_WAITS on say what it waits
 * for and what `object` is. */
enum {
	WEFT__A_NONE,
	WEFT__A_NEW, /* of weft_activity_new, not activated */
	WEFT__A_READY,
	WEFT__A_RUNNING,
	WEFT__A_ENDED,
	WEFT__A_WAITS,
	WEFT__FOR_SEM = WEFT__A_WAITS, /* the activity before it in the semaphore's queue: see wait.c */
	WEFT__FOR_END,		       /* the same, among the waiters of the activity */
	WEFT__FOR_TIME,		       /* its index in the group's heap */
	WEFT__FOR_WAKER,	       /* the waker */
	WEFT__FOR_MAIL,		       /* a struct weft__mail_turn */
	WEFT__FOR_CALL,		       /* a struct weft__call */
};

/* Flags. */
enum {
	WEFT__DETACHED = 1,    /* nobody waits for it */
	WEFT__MADE = 2,	       /* a handle of weft_activity_new */
	WEFT__A_CANCELLED = 4, /* is to end, or is ending */
	WEFT__CLEANS_UP = 8,   /* runs what it has deferred */
	WEFT__IN_CALL = 16,    /* frames of libc_calls.c are its newest: what cancels it does so by the call's result */
	WEFT__HAS_RESULT = 32, /* its oldest variable is its result */
	WEFT__SLAB = 64,       /* has no handle: lies in a slab */
	WEFT__DIVERTED = 128,  /* stackful: ends as soon as it is resumed */
};

static inline bool weft__is_to_end(const weft_activity_t *a)
{
	return (a->flags & (WEFT__A_CANCELLED | WEFT__CLEANS_UP | WEFT__IN_CALL)) == WEFT__A_CANCELLED;
}

/* A variable, or several of one function, that others may know. The function's frame has its address. */
struct weft__activity_var {
	struct weft__activity_var *next; /* older */
	size_t bytes;			 /* with this; odd: an activity's result */
	char memory[];
};

/* A stack that an activity went on in, at its high end. */
struct weft__activity_stack {
	struct weft__activity_stack *outer; /* where it came from; NULL: the window */
	char *came_from;		    /* the stack pointer there: at a return address */
	char *low, *full;		    /* the mapping's start; below `full` the next stack is needed */
	size_t bytes;
	struct weft__part *parked; /* of the oldest: the window's newest segment; NULL: it is in the window */
};

/* A copy of a segment of the window, from its lowest frame on. */
struct weft__part {
	size_t bytes;
	void *returns; /* of the record whose `outer` this is */
	_Alignas(16) char copy[];
};

/* The outer end of a segment of the window, on the stack. The next segment is behind it. Assembly knows its fields: see
 * x86_64.S. */
struct weft__segment {
	struct weft__part *outer;    /* the next segment's copy; NULL: that segment is in its place */
	struct weft__segment *older; /* the record of the next segment, in its own place; NULL: it ends at `base` */
	char *full;		     /* hot.full when this segment began */
	void *returns;		     /* into the next segment; NULL while that is a copy: unwinders end here */
};

/* A parked activity has this record if a copy of one segment is not all of it. */
struct weft__deep {
	struct weft__activity_stack *stack; /* the newest; NULL: none */
	struct weft__segment *segment;	    /* the record of the newest segment, in its own place */
	char *sp;
	uintptr_t full; /* hot.full */
	struct weft__deferred *deferred;
	struct weft__cxa_globals exceptions; /* its handlers have; none, unless it is pinned */
	char *pinned_at;
	struct weft__part part; /* the newest segment; empty: the oldest stack has it */
};

/* Stackful: what `frames` of an activity that has not ended is. */
struct weft__own {
	weft_coro_t *k;
	uint64_t entry, words[6];
	int error;
	bool begun;
};

struct weft__activity_group {
	/* Assembly knows these: see offsets.h. */
	char *base, *driver;
	char *deepest;		       /* below it, in the window, the next call goes on in another stack */
	struct weft__segment *segment; /* the newest of the running activity; NULL: it begins at `base` */
	void *blocks[LARGEST_BLOCK / 16 + 1];

	char *low;			    /* of the hot stack */
	weft_coro_t *coro;		    /* the driver */
	struct weft__activity_stack *stack; /* the newest of the running activity; NULL: it is in the window */
	struct weft__activity_stack *spare;
	size_t hot_bytes;	       /* of the hot stack, and of each stack for plain code */
	size_t deepest_bytes;	       /* of the stacks of an activity together */
	weft_activity_t *first, *last; /* ready */
	bool every_yield, stackful, in_task;
	bool unusual;		/* stackful, or with a scheduler */
	uint8_t yields_to_task; /* with every_yield: yields since the group's task let others run, modulo 256 */
	/* The running activity's frames from here on are copied together: no segment begins. NULL: none are. */
	char *pinned_at;
	bool shielded; /* its task was cancelled, and its activities end */
	bool over;     /* all activities have ended */
	bool is_child; /* this process was forked off by one of its activities, which is alone now */
	const weft_activity_scheduler_t *scheduler;
	size_t to_end;	     /* activities of which weft__is_to_end is true: while there are, `hot->flag` stays set */
	unsigned turns;	     /* until the next look at what comes from outside */
	int ending;	     /* errno of the activity that ends */
	size_t live;	     /* activities that have not ended */
	size_t outside;	     /* activities that wait for what is not of this group */
	_Atomic size_t held; /* weft_activity_group without weft_activity_group_release */

	char *fresh, *fresh_end; /* memory that blocks are cut from */
	struct weft__memory_span *spans;
	struct weft__activity_var *shipped; /* blocks for the activity that is started next */
	/* Every activity that has not ended is in a slab, or in the table. */
	struct weft__slab *slabs;
	weft_activity_t *free; /* in slabs */
	weft_activity_t **table;
	size_t count, room;

	struct weft__sleepers {
		struct weft__sleeper {
			uint64_t when;
			weft_activity_t *activity;
		} *heap;
		size_t count, room;
	} sleepers;

	/* By other threads. `wakers`: how many of them look at the group, which does not end meanwhile. */
	_Atomic(weft_activity_waker_t *) woken; /* a stack */
	_Atomic(struct weft__post *) posted;	/* a stack */
	struct weft__post *unstarted;  /* the group's own: posts that have got no memory yet; the oldest first */
	_Atomic(weft_waiter_t *) idle; /* whoever takes it completes it */
	_Atomic unsigned wakers;
	weft_waiter_t waiter; /* the driver's */
	struct weft__server *server;
	struct weft__inside inside; /* in a task: the scope of the server */

	struct weft__activity_hot *hot; /* of the group's thread */
	struct weft__activity_hot kept, outer;
	struct weft__activity_group *older; /* of those whose timer runs: timer.c */
	struct weft__profile *profile;	    /* NULL: none is wanted */
	bool watched;			    /* by stuck.c, which uses the next two */
	pid_t thread;
	uint64_t rung; /* when the flag was set that nobody has taken back; 0: that was told */
	uint64_t period, next_ring;
	_Atomic bool rests; /* none of it runs: the timer need not ring */
	weft_attr_t attr;   /* stackful: of the activities' coroutines */
	weft_fn_t *fn;
	void *arg;
	void *result;
	void *pinned;
	weft_activity_t root;
	int error;
};

/* ---- memory.c --------------------------------------------------------------------------------------------------- */
/* A block of a multiple of 16 bytes, or NULL. */
void *weft__piece_take(struct weft__activity_group *g, size_t bytes);
/* The same, never given back before the group ends. */
void *weft__piece_cut(struct weft__activity_group *g, size_t bytes);
void weft__piece_give(struct weft__activity_group *g, void *block, size_t bytes);
/* The same for a size that is known, inline. */
static inline void *weft__group_piece(struct weft__activity_group *g, size_t bytes)
{
	void **list = &g->blocks[bytes / 16], *block = *list;

	if (weft__unlikely(!block))
		return weft__piece_take(g, bytes);
	*list = *(void **)block;
	return block;
}
void weft__vars_free(struct weft__activity_group *g, struct weft__activity_var *until);
/* Of an activity that ends. */
void weft__vars_free_all(struct weft__activity_group *g, weft_activity_t *a);
/* A record of the running activity that ends with it, or is given to weft__activity_pop; NULL: no memory. */
void *weft__record_take(struct weft__activity_group *g, size_t bytes);
WEFT_API void weft__activity_pop(void *memory);
/* `was_left`: the memory stays until the thread's next group ends. */
void weft__pieces_unmap(struct weft__activity_group *g, bool was_left);

/* ---- registry.c: all activities ---------------------------------------------------------------------------------- */
weft_activity_t *weft__slab_take(struct weft__activity_group *g);
bool weft__table_add(struct weft__activity_group *g, weft_activity_t *a);
/* It has ended. */
void weft__table_forget(struct weft__activity_group *g, weft_activity_t *a);
void weft__each_activity(struct weft__activity_group *g, void (*fn)(weft_activity_t *a, void *arg), void *arg);
void weft__table_keep(struct weft__activity_group *g, bool (*stays)(weft_activity_t *a, void *arg), void *arg);

/* ---- flags ------------------------------------------------------------------------------------------------------- */
/* Change the flags that weft__is_to_end looks at. A cancelled activity is to end at its next yield, which looks only if
 * the timer's flag is set. */
static inline void weft__set_flags(struct weft__activity_group *g, weft_activity_t *a, unsigned flags)
{
	g->to_end -= weft__is_to_end(a);
	a->flags = (uint8_t)flags;
	if (weft__likely(!(flags & WEFT__A_CANCELLED)))
		return;
	g->to_end += weft__is_to_end(a);
	if (g->to_end) {
		__atomic_store_n(&g->hot->flag, 1, __ATOMIC_RELAXED);
		g->hot->limit = UINTPTR_MAX;
	}
}

/* ---- queue ------------------------------------------------------------------------------------------------------- */
static inline void weft__activity_ready(struct weft__activity_group *g, weft_activity_t *a)
{
	a->state = WEFT__A_READY;
	a->next = NULL;
	if (g->first)
		g->last->next = a;
	else
		g->first = a;
	g->last = a;
}

static inline weft_activity_t *weft__pick(struct weft__activity_group *g)
{
	weft_activity_t *a = g->first;

	if (a)
		g->first = a->next;
	return a;
}

/* weft__scheduled picks as the group's scheduler says, if there is one. */
weft_activity_t *weft__scheduled(struct weft__activity_group *g);

/* ---- switch.c: called by assembly ------------------------------------------------------------------------------- */
/* 0: go on; 1: leave to the driver; else the activity to switch to. */
uintptr_t weft__activity_parked(char *sp);
uintptr_t weft__activity_yielded(char *sp);
uintptr_t weft__activity_rang(char *sp);
uintptr_t weft__activity_ended(void *result);
char *weft__activity_deep(weft_activity_t *a);
char *weft__activity_grow(char *sp);
char *weft__activity_shrink(void);
/* Give back the frames of an activity that is parked, and never goes on. */
void weft__frames_free(struct weft__activity_group *g, weft_activity_t *a);
/* Let a parked activity go on at weft__activity_cancelled. */
void weft__divert(struct weft__activity_group *g, weft_activity_t *a);
/* Has the running activity more than one segment, or is it pinned? */
static inline bool weft__is_deep(const struct weft__activity_group *g)
{
	return (uintptr_t)g->stack | (uintptr_t)g->segment | (uintptr_t)g->pinned_at;
}
void weft__deep_end(struct weft__activity_group *g);
struct weft__part *weft__deep_part(struct weft__deep *deep);
/* Where a copy has the record of its segment. */
static inline struct weft__segment *weft__part_record(struct weft__part *part)
{
	return (struct weft__segment *)(void *)(part->copy + part->bytes) - 1;
}

/* ---- x86_64.S --------------------------------------------------------------------------------------------------- */
/* The twin of a function that may have one, else itself. Twins call it, too. */
WEFT_API void *weft__activity_twin(const void *fn);
void weft__activity_enter(struct weft__activity_group *g, weft_activity_t *first);
void weft__activity_measure(void);
_Noreturn void weft__activity_leave(struct weft__activity_group *g);
/* For C: what weft__activity_park does in twins. */
void weft__activity_park_in_c(void);
void weft__activity_aside(char *top, void (*fn)(void *), void *arg);
void weft__activity_walk(void *const words[3], void (*fn)(void *), void *arg);
extern char weft__activity_start[], weft__activity_cancelled[];
/* Stackful: call an activity's function with its six words. */
void weft__activity_call(void *entry, const uint64_t words[6]);

/* ---- deep_stacks.c ----------------------------------------------------------------------------------------------- */
/* How large stacks are to be. `hot`: bytes of the hot stack; 0: as the environment says. Under WEFT_TINY nearly every
 * call begins a segment, or goes on in another stack. */
void weft__stacks_init(struct weft__activity_group *g, size_t hot);
size_t weft__window_bytes(const struct weft__activity_group *g);
/* Stacks newer than the one that `sp` lies in were left by longjmp. */
void weft__stacks_settle(struct weft__activity_group *g, char *sp);
void weft__stacks_free(struct weft__activity_group *g, struct weft__activity_stack *stack);
static inline struct weft__activity_stack *weft__stack_oldest(struct weft__activity_stack *stack)
{
	while (stack && stack->outer)
		stack = stack->outer;
	return stack;
}
/* The lowest place of the window that is in use while the activity runs in its own stacks. */
static inline char *weft__stack_window(const struct weft__activity_stack *oldest)
{
	return (char *)((uintptr_t)oldest->came_from & ~(uintptr_t)15);
}

/* ---- segments.c ------------------------------------------------------------------------------------------------- */
/* Where segment `s` of the window ends: NULL is the oldest. */
static inline char *weft__segment_end(const struct weft__activity_group *g, const struct weft__segment *s)
{
	return s ? (char *)(uintptr_t)(s + 1) : g->base;
}
/* Copy what the running activity has returned to, outside of its newest segment. False: no memory for all of it. */
bool weft__segments_park(struct weft__activity_group *g);
/* Give back the copies of an activity that does not go on, outside of segment `s`, whose record lies at `at` now. */
void weft__segments_free(struct weft__activity_group *g, const struct weft__segment *s, const struct weft__segment *at);
/* Copy the frames of a parked activity to `to`, as the window has them while all are there. Its newest segment is `s`,
 * and lies in `part`. */
void weft__window_show(const struct weft__segment *s, const struct weft__part *part, char *to);
void weft__activity_underflow(struct weft__segment *s);
/* A copy of `bytes` bytes; NULL: no memory. NULL is given back, too. */
struct weft__part *weft__part_take(struct weft__activity_group *g, const char *from, size_t bytes);
void weft__part_give(struct weft__activity_group *g, struct weft__part *part);
/* When the running activity has changed, or `stack`, `segment` or `pinned`. */
void weft__limits(struct weft__activity_group *g);
/* `full` is hot.limit while the timer has not rung. */
void weft__set_full(struct weft__activity_group *g, uintptr_t full);

/* ---- stackful.c -------------------------------------------------------------------------------------------------- */
bool weft__own_begin(struct weft__activity_group *g, weft_activity_t *a, void *entry, const uint64_t words[6]);
void weft__own_run(struct weft__activity_group *g, weft_activity_t *a);
void weft__own_suspend(weft_activity_t *self);
_Noreturn void weft__own_end(weft_activity_t *self, int error);
void weft__own_delete(struct weft__activity_group *g, weft_activity_t *a);
/* Is a group of this kind to be stackful? Then sets how its stacks are to be. */
bool weft__own_wanted(const weft_activity_config_t *config, weft_attr_t *attr);

/* ---- timer.c ---------------------------------------------------------------------------------------------------- */
/* Nanoseconds of CLOCK_MONOTONIC, in a simulation, too. */
uint64_t weft__timer_now(void);
void weft__timer_add(struct weft__activity_group *g);
void weft__timer_remove(struct weft__activity_group *g);
/* Around a sleep of the driver. */
void weft__timer_rest(struct weft__activity_group *g);
void weft__timer_go_on(struct weft__activity_group *g);
/* In a child of fork. */
void weft__timer_forked(void);

/* ---- stuck.c, profile.c ------------------------------------------------------------------------------------------ */
/* The calling thread is about to run the group: is it to be watched? */
bool weft__stuck_wanted(struct weft__activity_group *g);
void weft__stuck_look(struct weft__activity_group *g, uint64_t time);
struct weft__profile *weft__profile_new(void);
void weft__profile_end(struct weft__profile *p);
void weft__activity_counted(const void *at, const char *sp);

/* ---- fork.c ----------------------------------------------------------------------------------------------------- */
/* From now on children of fork know what they have not. */
void weft__fork_watch(void);

/* ---- calls_table.c ----------------------------------------------------------------------------------------------- */
typedef void weft__any_fn_t(void);

/* A function of libc that waits. The last of weft__waits has no twin. */
struct weft__waits {
	const char *name;
	weft__any_fn_t *chosen; /* which definition the program has: libc's, or one of its own; NULL: none */
	weft__any_fn_t
	    *known[3]; /* libc's under other names, and a sanitizer's that calls libc's; NULL: there is none */
	weft__any_fn_t *twin;
};
extern const struct weft__waits weft__waits[];

/* ---- twins.c ---------------------------------------------------------------------------------------------------- */
/* The table must be there before the first twin runs, and weft__activity_measure must have run. False: no memory. */
bool weft__twins_begin(void);

/* ---- group.c ---------------------------------------------------------------------------------------------------- */
bool weft__activity_begin(struct weft__activity_group *g, weft_activity_t *a, void *entry, const uint64_t words[6]);
void weft__activity_finish(struct weft__activity_group *g, weft_activity_t *a, void *result, int error);
/* End the running activity, after what it has deferred. */
_Noreturn void weft__activity_fail(int error);
/* Ends the process with a line: only an activity can do that. */
_Noreturn void weft__activity_outside(const char *what);

/* Says that the environment's variable has a value that is not allowed. */
void weft__environment_is_wrong(_Atomic bool *said, const char *name, const char *value, const char *allowed);

/* ---- cancel.c ---------------------------------------------------------------------------------------------------- */
void weft__activity_cancel_all(struct weft__activity_group *g);
/* The running activity was cancelled, and is to wait or yield. */
_Noreturn void weft__activity_ends_cancelled(void);

/* ---- wait.c ------------------------------------------------------------------------------------------------------ */
static inline void weft__wait_for(weft_activity_t *self, void *object, unsigned state)
{
	self->state = (uint8_t)state;
	self->object = object;
	self->next = NULL;
}
/* Take a waiting activity out of what it waits in, before it has been woken. False: it is being woken. */
bool weft__unqueue(struct weft__activity_group *g, weft_activity_t *a);
/* The semaphore, the activity, or what `object` says of another state. Takes as long as the queue is. */
void *weft__waits_for(const weft_activity_t *a);
/* None of the activities of its semaphore's queue is there any more. */
void weft__queue_forget(weft_activity_t *a);

/* ---- sleep.c ----------------------------------------------------------------------------------------------------- */
bool weft__sleeper_add(struct weft__activity_group *g, weft_activity_t *a, uint64_t when);
void weft__sleeper_remove(struct weft__activity_group *g, weft_activity_t *a);
void weft__sleepers_wake(struct weft__activity_group *g);

/* ThreadSanitizer does not see the atomics of this library. These tell it that a thread hands over what it has written,
 * and that another thread takes that over. */
extern void __tsan_acquire(void *address) __attribute__((weak));
extern void __tsan_release(void *address) __attribute__((weak));
static inline void weft__hand_over(void *what)
{
	if (weft__unlikely(__tsan_release != NULL))
		__tsan_release(what);
}
static inline void weft__take_over(void *what)
{
	if (weft__unlikely(__tsan_acquire != NULL))
		__tsan_acquire(what);
}

/* ---- wakeup.c --------------------------------------------------------------------------------------------------- */
enum { WEFT__TURNS = 256 };
/* Make ready what other threads have woken, and whose time has come. */
void weft__take_in(struct weft__activity_group *g);
/* Nothing is ready: wait. 0; -EDEADLK: nothing can happen; -ECANCELED: the group's task was cancelled. */
int weft__group_wait(struct weft__activity_group *g);
/* The group's task lets others run. -ECANCELED. */
int weft__group_yield(struct weft__activity_group *g);
/* From any thread: the group has something to take in. Between both the group does not end. */
void weft__group_tell_begin(struct weft__activity_group *g);
void weft__group_tell(struct weft__activity_group *g);
void weft__group_tell_end(struct weft__activity_group *g);
/* What was posted and has not begun is not to. */
void weft__posts_forget(struct weft__activity_group *g);
bool weft__waker_withdraw(weft_activity_waker_t *w);
void weft__wakeups_end(struct weft__activity_group *g);

/* ---- mail.c ------------------------------------------------------------------------------------------------------ */
bool weft__mail_leave(struct weft__mail_turn *turn);
const weft_activity_mail_t *weft__mail_of(const struct weft__mail_turn *turn);
void weft__mail_forked(struct weft__mail_turn *turn);

/* ---- io_task.c, libc_calls.c ------------------------------------------------------------------------------------- */
/* What an activity asks of the runtime's I/O. */
struct weft__call {
	weft_activity_waker_t waker;
	const char *name; /* "read" */
	struct weft__server *server;
	struct weft__call *next;	  /* in the server's inbox */
	void (*fn)(struct weft__call *c); /* in a task of its own; NULL: `io` is to be done */
	uint8_t stage;
	_Atomic bool cancelled, begun, withdrawn; /* begun: `task`, or `io`, can be withdrawn, once */
	int error;
	int64_t result;
	uint64_t words[6], more;
	union {
		weft_io_t io;
		weft_task_t task;
	};
};
/* Hand it to the server, which wakes the call's waker when it is done. False: there is none, and can be none. */
/* Sleep until its waker is woken, although there is no memory for its frames. */
void weft__wait_in_place(struct weft__activity_group *g, weft_activity_t *self);
bool weft__server_ask(struct weft__activity_group *g, struct weft__call *c);
void weft__server_cancel(struct weft__call *c);
/* Of the group's own runtime: run what can run. */
void weft__server_step(struct weft__activity_group *g);
void weft__server_sleep(struct weft__activity_group *g, uint64_t until);
/* Has the group's thread a runtime of the group's own? */
bool weft__server_is_here(const struct weft__activity_group *g);
void weft__server_end(struct weft__activity_group *g);

/* ---- walk.c, report.c -------------------------------------------------------------------------------------------- */
/* Where a parked activity waits, innermost first; how many. */
size_t weft__activity_backtrace(struct weft__activity_group *g, const weft_activity_t *a, void **places, size_t most);
void weft__report_deadlock(struct weft__activity_group *g);
/* For dumps of tasks. */
void weft__report_inside(const struct weft__inside *inside, void (*line)(const struct weft__line *line, void *arg),
			 void *arg);

#endif
