/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A group of activities, and the contract between its parts.
 *
 * A group is a coroutine, whose stack is the hot stack:
 *
 *   weft_activity_run's caller
 *   ------------------------------  high addresses
 *   the driver's frame              picks activities, sleeps when no activity is ready
 *   room for what it calls          WEFT__DRIVER_ROOM
 *   base ------------------------
 *   frames of twins                 the window, half of the stack; a deeper call continues in another stack
 *   deepest ---------------------
 *   frames of plain code            the rest: plain code never switches, so a switch finds no such frame
 *   ------------------------------  guard
 *
 * The window is divided into segments of about WEFT__SEGMENT bytes, so that a switch costs the same at any depth: when
 * an activity parks, only its newest segment and the segments that it has returned into are copied. When it resumes,
 * only the newest segment is restored; a return out of it restores the next segment (segments.c).
 *
 * An activity that runs in a stack of its own (deep_stacks.c) leaves its older frames in the window. They stay parked
 * until the activity returns to them.
 *
 * Frames of the library may be parked, too (libc_calls.c), if no other code holds an address in them: they are restored
 * at the same address.
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

/* States of an activity. weft/activity.h says which code may change each state. Each state from WEFT__A_WAITS on is a
 * kind of wait, with its own meaning of `object`. */
enum {
	WEFT__A_NONE,
	WEFT__A_NEW, /* made by weft_activity_new, not activated */
	WEFT__A_READY,
	WEFT__A_RUNNING,
	WEFT__A_ENDED,
	WEFT__A_WAITS,
	WEFT__FOR_SEM = WEFT__A_WAITS, /* `object`: the previous activity in the semaphore's queue (wait.c) */
	WEFT__FOR_END,		       /* `object`: the previous activity among the waiters (wait.c) */
	WEFT__FOR_TIME,		       /* `object`: its index in the group's heap */
	WEFT__FOR_WAKER,	       /* `object`: the waker */
	WEFT__FOR_MAIL,		       /* `object`: a struct weft__mail_turn */
	WEFT__FOR_CALL,		       /* `object`: a struct weft__call */
};

/* Flags. */
enum {
	WEFT__DETACHED = 1,    /* no activity waits for its end */
	WEFT__MADE = 2,	       /* its handle comes from weft_activity_new */
	WEFT__A_CANCELLED = 4, /* it must end, or is ending */
	WEFT__CLEANS_UP = 8,   /* it runs its deferred functions */
	WEFT__IN_CALL = 16,    /* its newest frames belong to libc_calls.c: a cancel makes the call fail */
	WEFT__HAS_RESULT = 32, /* its oldest variable holds its result */
	WEFT__SLAB = 64,       /* it has no handle, and is stored in a slab */
	WEFT__DIVERTED = 128,  /* stackful: it ends as soon as it is resumed */
};

static inline bool weft__is_to_end(const weft_activity_t *a)
{
	return (a->flags & (WEFT__A_CANCELLED | WEFT__CLEANS_UP | WEFT__IN_CALL)) == WEFT__A_CANCELLED;
}

/* A heap block for variables of one function whose addresses other code may hold. The function's frame holds the
 * block's address. */
struct weft__activity_var {
	struct weft__activity_var *next; /* older */
	size_t bytes;			 /* with this record; odd: the activity's result */
	char memory[];
};

/* The record of a stack of an activity's own, at the stack's high end. */
struct weft__activity_stack {
	struct weft__activity_stack *outer; /* the stack that the call came from; NULL: the window */
	char *came_from;		    /* the stack pointer in `outer`: it points to a return address */
	char *low, *full;		    /* the mapping's start; a call below `full` needs the next stack */
	size_t bytes;
	/* In the oldest stack: the copy of the window's newest segment; NULL: that segment is in the window. */
	struct weft__part *parked;
};

/* A copy of a segment of the window, from its lowest frame on. */
struct weft__part {
	size_t bytes;
	void *returns; /* the saved `returns` of the record whose `outer` points here */
	_Alignas(16) char copy[];
};

/* The record at the outer (high) end of a segment of the window, on the stack. The older segment begins directly
 * above it. Assembly uses these fields (x86_64.S). */
struct weft__segment {
	struct weft__part *outer;    /* the copy of the older segment; NULL: that segment is in the window */
	struct weft__segment *older; /* the older segment's record, in its own place; NULL: it ends at `base` */
	char *full;		     /* hot.full when this segment began */
	void *returns; /* the return address into the older segment; NULL while that is a copy: unwinders stop here */
};

/* A parked activity has this record if it is more than the copy of one segment. */
struct weft__deep {
	struct weft__activity_stack *stack; /* the newest stack of its own; NULL: none */
	struct weft__segment *segment;	    /* the newest segment's record, at its address in the window */
	char *sp;
	uintptr_t full; /* hot.full */
	struct weft__deferred *deferred;
	struct weft__cxa_globals exceptions; /* exceptions of its handlers; none, unless it is pinned */
	char *pinned_at;
	struct weft__part part; /* the copy of the newest segment; empty: the oldest stack's `parked` is the copy */
};

/* Stackful: `frames` of an activity points to this record until the activity ends. */
struct weft__own {
	weft_coro_t *k;
	uint64_t entry, words[6];
	int error;
	bool begun;
};

struct weft__activity_group {
	/* Assembly uses these fields (offsets.h). */
	char *base, *driver;
	char *deepest;		       /* a call below this address of the window continues in another stack */
	struct weft__segment *segment; /* the running activity's newest; NULL: its only segment begins at `base` */
	void *blocks[LARGEST_BLOCK / 16 + 1];

	char *low;			    /* the hot stack's low end */
	weft_coro_t *coro;		    /* the driver */
	struct weft__activity_stack *stack; /* the running activity's newest; NULL: it runs in the window */
	struct weft__activity_stack *spare;
	size_t hot_bytes;	       /* size of the hot stack, and room for plain code in each other stack */
	size_t deepest_bytes;	       /* the most that the stacks of one activity may have together */
	weft_activity_t *first, *last; /* the queue of ready activities */
	bool every_yield, stackful, in_task;
	bool unusual;		/* stackful, or with a scheduler */
	uint8_t yields_to_task; /* with every_yield: yields since the group's task last yielded, modulo 256 */
	/* The running activity's frames from this address on are copied together, and no segment begins. NULL: it is
	 * not pinned. */
	char *pinned_at;
	bool shielded; /* its task was cancelled, and its activities end */
	bool over;     /* all activities have ended */
	bool is_child; /* this process is a child of fork: only the activity that called fork remains */
	const weft_activity_scheduler_t *scheduler;
	size_t to_end;	     /* activities that weft__is_to_end is true for; if not 0, `hot->flag` stays set */
	unsigned turns;	     /* switches until the next look at events from outside */
	int ending;	     /* errno of the activity that is ending */
	size_t live;	     /* activities that have not ended */
	size_t outside;	     /* activities that wait for an event from outside the group */
	_Atomic size_t held; /* calls of weft_activity_group without weft_activity_group_release */

	char *fresh, *fresh_end; /* memory that blocks are cut from */
	struct weft__memory_span *spans;
	struct weft__activity_var *shipped; /* blocks for the activity that is started next */
	/* Every activity that has not ended is in a slab, or in the table. */
	struct weft__slab *slabs;
	weft_activity_t *free; /* the free activities of the slabs */
	weft_activity_t **table;
	size_t count, room;

	struct weft__sleepers {
		struct weft__sleeper {
			uint64_t when;
			weft_activity_t *activity;
		} *heap;
		size_t count, room;
	} sleepers;

	/* Written by other threads. `wakers` counts the threads that use the group at this moment; the group does
	 * not end before it is 0. */
	_Atomic(weft_activity_waker_t *) woken; /* a stack */
	_Atomic(struct weft__post *) posted;	/* a stack */
	struct weft__post *unstarted;  /* only for the group's thread: posts that wait for memory, the oldest first */
	_Atomic(weft_waiter_t *) idle; /* the driver's waiter while it sleeps; the thread that takes it completes it */
	_Atomic unsigned wakers;
	weft_waiter_t waiter; /* the driver's */
	struct weft__server *server;
	struct weft__inside inside; /* in a task: the scope of the server */

	struct weft__activity_hot *hot; /* the hot words of the group's thread */
	struct weft__activity_hot kept, outer;
	struct weft__activity_group *older; /* the next group in the timer's list (timer.c) */
	struct weft__profile *profile;	    /* NULL: no profile */
	bool watched;			    /* by stuck.c, which uses the next two */
	pid_t thread;
	uint64_t rung; /* when the timer set the flag that is still set; 0: stuck.c has reported it */
	uint64_t period, next_ring;
	_Atomic bool rests; /* the driver sleeps, so the timer need not ring */
	weft_attr_t attr;   /* stackful: of the activities' coroutines */
	weft_fn_t *fn;
	void *arg;
	void *result;
	void *pinned;
	weft_activity_t root;
	int error;
};

/* ---- memory.c --------------------------------------------------------------------------------------------------- */
/* Allocates a block of a multiple of 16 bytes. NULL: no memory. */
void *weft__piece_take(struct weft__activity_group *g, size_t bytes);
/* Like weft__piece_take, but the block is not freed before the group ends. */
void *weft__piece_cut(struct weft__activity_group *g, size_t bytes);
void weft__piece_give(struct weft__activity_group *g, void *block, size_t bytes);
/* weft__piece_take, inlined, for sizes up to LARGEST_BLOCK. */
static inline void *weft__group_piece(struct weft__activity_group *g, size_t bytes)
{
	void **list = &g->blocks[bytes / 16], *block = *list;

	if (weft__unlikely(!block))
		return weft__piece_take(g, bytes);
	*list = *(void **)block;
	return block;
}
void weft__vars_free(struct weft__activity_group *g, struct weft__activity_var *until);
/* Frees all variables of an activity that ends. */
void weft__vars_free_all(struct weft__activity_group *g, weft_activity_t *a);
/* Allocates a record of the running activity, which weft__activity_pop or the end of the activity frees. NULL: no
 * memory. */
void *weft__record_take(struct weft__activity_group *g, size_t bytes);
WEFT_API void weft__activity_pop(void *memory);
/* `was_left`: an exception effect left the group; its memory stays mapped until the thread's next group ends. */
void weft__pieces_unmap(struct weft__activity_group *g, bool was_left);

/* ---- registry.c: all activities ---------------------------------------------------------------------------------- */
weft_activity_t *weft__slab_take(struct weft__activity_group *g);
bool weft__table_add(struct weft__activity_group *g, weft_activity_t *a);
/* Forget an activity that has ended. */
void weft__table_forget(struct weft__activity_group *g, weft_activity_t *a);
void weft__each_activity(struct weft__activity_group *g, void (*fn)(weft_activity_t *a, void *arg), void *arg);
void weft__table_keep(struct weft__activity_group *g, bool (*stays)(weft_activity_t *a, void *arg), void *arg);

/* ---- flags ------------------------------------------------------------------------------------------------------- */
/* Change the flags that weft__is_to_end reads. A cancelled activity must end at its next yield, and a yield checks
 * for this only while the timer's flag is set. */
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

/* Like weft__pick, but if the group has a scheduler, the scheduler chooses. */
weft_activity_t *weft__scheduled(struct weft__activity_group *g);

/* ---- switch.c: called by assembly ------------------------------------------------------------------------------- */
/* The first four return 0: continue; 1: switch to the driver; else the activity to switch to. */
uintptr_t weft__activity_parked(char *sp);
uintptr_t weft__activity_yielded(char *sp);
uintptr_t weft__activity_rang(char *sp);
uintptr_t weft__activity_ended(void *result);
char *weft__activity_deep(weft_activity_t *a);
char *weft__activity_grow(char *sp);
char *weft__activity_shrink(void);
/* Free the frames of a parked activity that is never resumed. */
void weft__frames_free(struct weft__activity_group *g, weft_activity_t *a);
/* Make a parked activity continue at weft__activity_cancelled. */
void weft__divert(struct weft__activity_group *g, weft_activity_t *a);
/* Has the running activity more than one segment, or is it pinned? */
static inline bool weft__is_deep(const struct weft__activity_group *g)
{
	return (uintptr_t)g->stack | (uintptr_t)g->segment | (uintptr_t)g->pinned_at;
}
void weft__deep_end(struct weft__activity_group *g);
struct weft__part *weft__deep_part(struct weft__deep *deep);
/* Returns the record, inside the copy, of the segment that `part` is a copy of. */
static inline struct weft__segment *weft__part_record(struct weft__part *part)
{
	return (struct weft__segment *)(void *)(part->copy + part->bytes) - 1;
}

/* ---- x86_64.S --------------------------------------------------------------------------------------------------- */
/* Returns the function's twin, or the function itself if it has no twin. Twins call this, too. */
WEFT_API void *weft__activity_twin(const void *fn);
void weft__activity_enter(struct weft__activity_group *g, weft_activity_t *first);
void weft__activity_measure(void);
_Noreturn void weft__activity_leave(struct weft__activity_group *g);
/* For C code: parks as weft__activity_park does in twins. */
void weft__activity_park_in_c(void);
void weft__activity_aside(char *top, void (*fn)(void *), void *arg);
void weft__activity_walk(void *const words[3], void (*fn)(void *), void *arg);
extern char weft__activity_start[], weft__activity_cancelled[];
/* Stackful: call an activity's function with its six words. */
void weft__activity_call(void *entry, const uint64_t words[6]);

/* ---- deep_stacks.c ----------------------------------------------------------------------------------------------- */
/* Set the sizes of the group's stacks. `hot`: bytes of the hot stack; 0: the size from the environment. Under
 * WEFT_TINY nearly every call begins a segment or continues in another stack. */
void weft__stacks_init(struct weft__activity_group *g, size_t hot);
size_t weft__window_bytes(const struct weft__activity_group *g);
/* Frees the stacks newer than the stack that contains `sp`: longjmp has left them. */
void weft__stacks_settle(struct weft__activity_group *g, char *sp);
void weft__stacks_free(struct weft__activity_group *g, struct weft__activity_stack *stack);
static inline struct weft__activity_stack *weft__stack_oldest(struct weft__activity_stack *stack)
{
	while (stack && stack->outer)
		stack = stack->outer;
	return stack;
}
/* The lowest address of the window that is in use while the activity runs in its own stacks. */
static inline char *weft__stack_window(const struct weft__activity_stack *oldest)
{
	return (char *)((uintptr_t)oldest->came_from & ~(uintptr_t)15);
}

/* ---- segments.c ------------------------------------------------------------------------------------------------- */
/* Returns the end of segment `s` of the window. NULL: the oldest segment. */
static inline char *weft__segment_end(const struct weft__activity_group *g, const struct weft__segment *s)
{
	return s ? (char *)(uintptr_t)(s + 1) : g->base;
}
/* Copy the segments of the running activity that are in the window, except the newest. False: no memory for all of
 * them. */
bool weft__segments_park(struct weft__activity_group *g);
/* Free the copies of the segments outside segment `s` of an activity that is never resumed. `at`: the present
 * address of the record of `s`. */
void weft__segments_free(struct weft__activity_group *g, const struct weft__segment *s, const struct weft__segment *at);
/* Copy the frames of a parked activity to `to`, in the layout of the window. Its newest segment is `s`, whose copy
 * is `part`. */
void weft__window_show(const struct weft__segment *s, const struct weft__part *part, char *to);
void weft__activity_underflow(struct weft__segment *s);
/* Copies `bytes` bytes into a new block. NULL: no memory. weft__part_give accepts NULL. */
struct weft__part *weft__part_take(struct weft__activity_group *g, const char *from, size_t bytes);
void weft__part_give(struct weft__activity_group *g, struct weft__part *part);
/* Call this after the running activity, `stack`, `segment` or `pinned_at` has changed. */
void weft__limits(struct weft__activity_group *g);
/* `full` is the value of hot.limit while the timer has not rung. */
void weft__set_full(struct weft__activity_group *g, uintptr_t full);

/* ---- stackful.c -------------------------------------------------------------------------------------------------- */
bool weft__own_begin(struct weft__activity_group *g, weft_activity_t *a, void *entry, const uint64_t words[6]);
void weft__own_run(struct weft__activity_group *g, weft_activity_t *a);
void weft__own_suspend(weft_activity_t *self);
_Noreturn void weft__own_end(weft_activity_t *self, int error);
void weft__own_delete(struct weft__activity_group *g, weft_activity_t *a);
/* Is a group with this configuration stackful? If so, sets the attributes of its activities' stacks. */
bool weft__own_wanted(const weft_activity_config_t *config, weft_attr_t *attr);

/* ---- timer.c ---------------------------------------------------------------------------------------------------- */
/* Nanoseconds of CLOCK_MONOTONIC, also in a simulation. */
uint64_t weft__timer_now(void);
void weft__timer_add(struct weft__activity_group *g);
void weft__timer_remove(struct weft__activity_group *g);
/* Called before and after a sleep of the driver. */
void weft__timer_rest(struct weft__activity_group *g);
void weft__timer_go_on(struct weft__activity_group *g);
/* Called in a child of fork. */
void weft__timer_forked(void);

/* ---- stuck.c, profile.c ------------------------------------------------------------------------------------------ */
/* Called by the thread that is about to run the group. Returns whether stuck.c watches the group. */
bool weft__stuck_wanted(struct weft__activity_group *g);
void weft__stuck_look(struct weft__activity_group *g, uint64_t time);
struct weft__profile *weft__profile_new(void);
void weft__profile_end(struct weft__profile *p);
void weft__activity_counted(const void *at, const char *sp);

/* ---- fork.c ----------------------------------------------------------------------------------------------------- */
/* Install the handler that removes, in a child of fork, the activities that exist only in the parent. */
void weft__fork_watch(void);

/* ---- calls_table.c ----------------------------------------------------------------------------------------------- */
typedef void weft__any_fn_t(void);

/* A function of libc that waits. The last entry of weft__waits has no twin. */
struct weft__waits {
	const char *name;
	weft__any_fn_t *chosen;	  /* the definition that the program uses: libc's, or its own; NULL: none */
	weft__any_fn_t *known[3]; /* libc's under other names, and a sanitizer's that calls libc's; NULL: none */
	weft__any_fn_t *twin;
};
extern const struct weft__waits weft__waits[];

/* ---- twins.c ---------------------------------------------------------------------------------------------------- */
/* Builds the table before the first twin runs, and calls weft__activity_measure. False: no memory. */
bool weft__twins_begin(void);

/* ---- group.c ---------------------------------------------------------------------------------------------------- */
bool weft__activity_begin(struct weft__activity_group *g, weft_activity_t *a, void *entry, const uint64_t words[6]);
void weft__activity_finish(struct weft__activity_group *g, weft_activity_t *a, void *result, int error);
/* Run the deferred functions of the running activity, then end it with `error`. */
_Noreturn void weft__activity_fail(int error);
/* Ends the process with the message that only an activity can do `what`. */
_Noreturn void weft__activity_outside(const char *what);

/* Reports that an environment variable has a value that is not allowed. */
void weft__environment_is_wrong(_Atomic bool *said, const char *name, const char *value, const char *what_to_do);

/* ---- cancel.c ---------------------------------------------------------------------------------------------------- */
void weft__activity_cancel_all(struct weft__activity_group *g);
/* End the running activity, which was cancelled and is about to wait or yield. */
_Noreturn void weft__activity_ends_cancelled(void);

/* ---- wait.c ------------------------------------------------------------------------------------------------------ */
static inline void weft__wait_for(weft_activity_t *self, void *object, unsigned state)
{
	self->state = (uint8_t)state;
	self->object = object;
	self->next = NULL;
}
/* Take a waiting activity out of its queue before it is woken. False: it is being woken. */
bool weft__unqueue(struct weft__activity_group *g, weft_activity_t *a);
/* Returns the semaphore or the activity that `a` waits for; in another state, its `object`. The time is linear in
 * the queue's length. */
void *weft__waits_for(const weft_activity_t *a);
/* Empties the queue of the semaphore that `a` waits for: none of its activities exists any more. */
void weft__queue_forget(weft_activity_t *a);

/* ---- sleep.c ----------------------------------------------------------------------------------------------------- */
bool weft__sleeper_add(struct weft__activity_group *g, weft_activity_t *a, uint64_t when);
void weft__sleeper_remove(struct weft__activity_group *g, weft_activity_t *a);
void weft__sleepers_wake(struct weft__activity_group *g);

/* ThreadSanitizer does not see the atomics of this library. These functions tell it that one thread publishes its
 * writes (hand over), and that another thread reads them (take over). */
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
/* Make ready the activities that other threads have woken or whose time has come. */
void weft__take_in(struct weft__activity_group *g);
/* No activity is ready: wait. Returns 0; -EDEADLK: no event can come; -ECANCELED: the group's task was cancelled. */
int weft__group_wait(struct weft__activity_group *g);
/* The group's task lets other tasks run. Returns 0 or -ECANCELED. */
int weft__group_yield(struct weft__activity_group *g);
/* From any thread: tell the group that it has something to take in. The group does not end between _begin and _end. */
void weft__group_tell_begin(struct weft__activity_group *g);
void weft__group_tell(struct weft__activity_group *g);
void weft__group_tell_end(struct weft__activity_group *g);
/* Free the posts that have not been started. They never run. */
void weft__posts_forget(struct weft__activity_group *g);
bool weft__waker_withdraw(weft_activity_waker_t *w);
void weft__wakeups_end(struct weft__activity_group *g);

/* ---- mail.c ------------------------------------------------------------------------------------------------------ */
bool weft__mail_leave(struct weft__mail_turn *turn);
const weft_activity_mail_t *weft__mail_of(const struct weft__mail_turn *turn);
void weft__mail_forked(struct weft__mail_turn *turn);

/* ---- io_task.c, libc_calls.c ------------------------------------------------------------------------------------- */
/* A request of an activity for the runtime's I/O. */
struct weft__call {
	weft_activity_waker_t waker;
	const char *name; /* "read" */
	struct weft__server *server;
	struct weft__call *next;	  /* in the server's inbox */
	void (*fn)(struct weft__call *c); /* runs in a task of its own; NULL: the operation is `io` */
	uint8_t stage;
	_Atomic bool cancelled, begun, withdrawn; /* begun: `task` or `io` can be withdrawn, once */
	int error;
	int64_t result;
	uint64_t words[6], more;
	union {
		weft_io_t io;
		weft_task_t task;
	};
};
/* Wait in place until the activity is ready, although there is no memory for a copy of its frames. */
void weft__wait_in_place(struct weft__activity_group *g, weft_activity_t *self);
/* Hand the call to the server, which wakes the call's waker when it is done. False: there is no server. */
bool weft__server_ask(struct weft__activity_group *g, struct weft__call *c);
void weft__server_cancel(struct weft__call *c);
/* Run the tasks that are ready in the group's own runtime. */
void weft__server_step(struct weft__activity_group *g);
void weft__server_sleep(struct weft__activity_group *g, uint64_t until);
/* Does the group have a runtime of its own, on its own thread? */
bool weft__server_is_here(const struct weft__activity_group *g);
void weft__server_end(struct weft__activity_group *g);

/* ---- walk.c, report.c -------------------------------------------------------------------------------------------- */
/* Stores the return addresses of a parked activity's calls, innermost first. Returns their number. */
size_t weft__activity_backtrace(struct weft__activity_group *g, const weft_activity_t *a, void **places, size_t most);
void weft__report_deadlock(struct weft__activity_group *g);
/* For dumps of tasks. */
void weft__report_inside(const struct weft__inside *inside, void (*line)(const struct weft__line *line, void *arg),
			 void *arg);

#endif
