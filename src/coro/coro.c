/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Making and ending coroutines. The switch itself is inline (weft/coro.h).
 *
 * A thread's outermost code runs in a root: a coroutine object without a stack of Weft. Its parent is NULL and it
 * handles nothing, so that a search for a handler ends there without a special case.
 */
#include "coro/copying.h"
#include "coro/ends.h"
#include "internal/valgrind.h"

#include <errno.h>
#include <string.h>

_Static_assert(sizeof(weft_coro_t) <= WEFT__OBJECT_BYTES, "the slot's room for a coroutine");

unsigned char weft__unusual;

static struct weft__found found_nothing[WEFT__FOUND_ENTRIES]; /* stays empty: neither views nor keys are zero */

/* "used" because only inline assembly refers to it, which link-time optimization does not see. */
__attribute__((used)) __thread struct weft__tls weft__tls_self = {.found = found_nothing};
static __thread weft_coro_t root __attribute__((tls_model("initial-exec")));

WEFT__COLD weft_coro_t *weft__attach_thread(void)
{
	(void)weft__thread(); /* makes the alternate signal stack; without memory, the next creation tries again */
	root.link.pc = (void *)weft__in_running;
	root.innermost = &root;
	root.view = (const struct weft__view *)WEFT__ROOT;
	weft__set_self(&root);
	return &root;
}

bool weft__prepare_thread(void)
{
	return weft__thread();
}

/* ---- results of searches -------------------------------------------------------------------------------------- */

_Static_assert(sizeof(struct weft__found) * WEFT__FOUND_ENTRIES <= WEFT__OWNER_BYTES,
	       "the thread's room for the table");

static atomic_uint tables;

struct weft__found *weft__found_table(void)
{
	struct weft__thread *thread;

	if (weft__likely(weft__tls_self.found != found_nothing))
		return weft__tls_self.found;
	thread = weft__thread();
	if (!thread)
		return NULL;
	atomic_fetch_add_explicit(&tables, 1, memory_order_relaxed);
	/* Relaxed: a thread that unloads an object has synchronized with every thread that performed its effects. */
	atomic_store_explicit(&thread->owner_local, &weft__tls_self, memory_order_relaxed);
	return weft__tls_self.found = (struct weft__found *)thread->owner;
}

bool weft__only_table(void)
{
	/* Relaxed: a thread with entries that pass a coroutine had the coroutine before this thread, so its increment
	 * is visible here. */
	return atomic_load_explicit(&tables, memory_order_relaxed) == (weft__tls_self.found != found_nothing);
}

void weft__forget_found(void)
{
	if (weft__tls_self.found != found_nothing && weft__tls_thread->owner_used) {
		memset(weft__tls_self.found, 0, WEFT__FOUND_ENTRIES * sizeof(struct weft__found));
		memset(weft__tls_self.newest, 0, sizeof weft__tls_self.newest);
		weft__tls_thread->owner_used = false;
	}
}

/*
 * Clear the views of a thread's entries, so that no entry is found. The thread may execute a perform now, and may write
 * an entry: then one of the two stores wins, and either result is correct, because no thread performs an effect that is
 * being unloaded. ThreadSanitizer cannot know that.
 */
static WEFT__COLD __attribute__((no_sanitize("thread"))) void forget_entries(struct weft__thread *thread)
{
	struct weft__tls *local = atomic_load_explicit(&thread->owner_local, memory_order_relaxed);
	struct weft__found *table = (struct weft__found *)thread->owner;

	if (!local || (WEFT_CANARY(unloading_forgets_only_here) && local != &weft__tls_self))
		return;
	for (int i = 0; i < WEFT__FOUND_ENTRIES; i++)
		*(const struct weft__view *volatile *)&table[i].view = NULL;
	for (int i = 0; i < WEFT__FOUND_PLACES; i++)
		*(const struct weft__view *volatile *)&local->newest[i].view = NULL;
}

WEFT__COLD void weft__forget_found_everywhere(void)
{
	if (WEFT_NO_CANARY(unloading_forgets_nothing))
		weft__each_thread(forget_entries);
}

/*
 * When the performer of a suspended clause is resumed, so is the clause. `handled` may then name another handler than
 * the clause's, even if the word is the same, because another table may be at that address. Only the same handler with
 * the same label counts as unchanged.
 */
void weft__move_clauses(weft_coro_t *k, uintptr_t handled)
{
	if (weft_state(k) != WEFT_SUSPENDED || !weft__was_resumed(k))
		return;
	for (weft_coro_t *c = k->innermost;; c = c->parent) {
		uintptr_t view = (uintptr_t)c->view;

		if (weft__masked(c->view) && weft__owner_of(c->view) == k &&
		    !(view & WEFT__LABELLED && weft__same_handler(k->handled, handled)))
			c->view =
			    (const struct weft__view *)(view | (WEFT_CANARY(no_clause_is_moved) ? 0 : WEFT__MOVED));
		if (c == k)
			return;
	}
}

WEFT__COLD void weft__owner_detach(void)
{
	weft__forget_found();
	if (weft__tls_self.found != found_nothing)
		atomic_fetch_sub_explicit(&tables, 1, memory_order_relaxed);
	weft__tls_self.found = found_nothing;
}

/* ---- questions of the stack layer --------------------------------------------------------------------------- */

void weft__object_clear(void *object)
{
	weft_coro_t *k = object;

	k->link.pc = (void *)weft__in_deleted;
	k->innermost = k;
	/* An earlier object in this storage may have been passed. */
	k->marks = WEFT_CANARY(used_storage_is_as_new) ? 0 : WEFT__PASSED;
}

void weft__owner_describe(const void *owner, const char **name, uint64_t *id)
{
	const weft_coro_t *k = owner;

	*name = weft_name(k);
	*id = k->id;
}

/* Present if the program is built with a sanitizer, whether or not the library is. */
void __tsan_destroy_fiber(void *fiber) __attribute__((weak));
void __sanitizer_start_switch_fiber(void **keep, const void *low, size_t bytes) __attribute__((weak));
void __sanitizer_finish_switch_fiber(void *fake, const void **low, size_t *bytes) __attribute__((weak));

/* ---- making --------------------------------------------------------------------------------------------------- */

/* Memcheck follows the stack pointer down from the slot's record, starting with the red zone. */
static WEFT__COLD void tell_memcheck(const struct weft__slot *slot)
{
	VALGRIND_MAKE_MEM_NOACCESS(slot->chunk.low, (char *)slot - slot->chunk.low);
	VALGRIND_MAKE_MEM_UNDEFINED((char *)slot - 128, 128);
}

/*
 * The frames start just below the slot's own record. A coroutine that ended plainly needs no other initialization: see
 * ended_plainly(). Its parent stays, as it does while a coroutine is suspended: if the next resume comes from the same
 * parent, cached search results are still valid.
 *
 * Here and in weft_create and weft_delete, fields that seldom change are compared, not stored: with seven stores less,
 * the life of a coroutine that returns immediately takes 0.86 of the time.
 */
static inline void start_over(weft_coro_t *k, struct weft__slot *slot, weft_fn_t *fn, void *arg)
{
	k->link.pc = (void *)weft__entry;
	k->link.sp = slot;
	k->link.parent_pc = NULL;
	if (weft__unlikely(k->group != (uintptr_t)k))
		k->group = (uintptr_t)k;
	if (weft__unlikely(weft__masked(k->view)) && WEFT_NO_CANARY(starts_over_in_a_clause))
		k->view = weft__view_of(k);
	weft__set_function(k, fn);
	weft__set_argument(k, arg);
}

/* Like start_over, for every other coroutine. */
static inline void arm(weft_coro_t *k, weft_fn_t *fn, void *arg)
{
	struct weft__slot *slot = k->slot;

	start_over(k, slot, fn, arg);
	k->deferred = NULL;
	k->failure = WEFT_NO_FAILURE;
	k->parent = NULL;
	k->innermost = k;
	if (weft__unlikely(weft__slot_is_record(slot)))
		weft__arm_copying(k);
	else if (weft__unlikely(weft__on_memcheck))
		tell_memcheck(slot);
	if (weft__unlikely(slot->chunk.limit)) /* a linked stack */
		weft__chunks_begin(&k->link, slot);
}

/* Release: pairs with the fault handler's load; the handler reads the name and number of the owner. */
static inline void become_owner(weft_coro_t *k, struct weft__slot *slot)
{
	atomic_store_explicit(&slot->owner, k, memory_order_release);
}

static inline bool is_apart(const weft_coro_t *k, const struct weft__slot *slot, const struct weft__thread *thread)
{
	return !thread->has_hand || !weft__is_default(slot, thread) || (const char *)k != slot->object;
}

__attribute__((noinline)) void weft__set_up(weft_coro_t *k, struct weft__slot *slot, struct weft__thread *thread,
					    weft_fn_t *fn, void *arg)
{
	const weft_coro_t *creator = weft__self();

	k->slot = slot;
	k->marks &= WEFT_CANARY(who_passed_before_is_forgotten) ? 0 : WEFT__PASSED;
	if (is_apart(k, slot, thread) && WEFT_NO_CANARY(another_kind_is_at_hand))
		k->marks |= WEFT__APART;
	arm(k, fn, arg);
	k->id = weft__new_id();
	k->view = weft__view_of(k);
	k->creator = creator ? creator->id : 0;
	become_owner(k, slot);
}

/* Allow this thread to cache the coroutine that it deletes. Not if places of creation are recorded, or a sanitizer
 * follows coroutines. */
static WEFT__COLD void open_hand(void)
{
	if (weft__notes_sites || __tsan_destroy_fiber || __sanitizer_start_switch_fiber)
		return;
	if (!weft__self())
		weft__attach_thread();
	weft__set_hand(WEFT__HAND_EMPTY);
}

struct weft__slot *weft__take_usual(struct weft__thread *thread, int *error)
{
	uintptr_t at_hand = weft__recent_slot(&weft__tls_hand);
	struct weft__slot *slot = (struct weft__slot *)at_hand;

	if (at_hand == WEFT__HAND_CLOSED && thread->has_hand)
		open_hand();
	if (weft__likely(at_hand > WEFT__HAND_EMPTY)) {
		if (weft__likely(weft__slot_own(slot))) {
			weft__set_hand(WEFT__HAND_EMPTY);
			return slot;
		}
		weft__give_recent_slot();
	}
	return weft__slot_take(thread->default_bin, error);
}

__attribute__((noinline)) weft_coro_t *weft__create_with_care(weft_fn_t *fn, void *arg)
{
	struct weft__thread *thread = weft__thread();
	struct weft__slot *slot;
	weft_coro_t *k;
	int error = -ENOMEM;

#ifdef WEFT_FREESTANDING /* the coroutine may be a watched one */
	return weft_create_with(fn, arg, NULL);
#endif
	weft__check_no_handler();
	slot = thread ? weft__take_usual(thread, &error) : NULL;
	if (weft__unlikely(!slot)) {
		errno = -error;
		return NULL;
	}
	k = (weft_coro_t *)slot->object;
	k->name = NULL;
	k->user_data = NULL;
	k->flags = 0;
	weft__set_up(k, slot, thread, fn, arg);
	if (weft__unlikely(weft__notes_sites))
		weft__note_site(k);
	return k;
}

/* Initialize the object of a free slot of the default bin. Its last coroutine ended plainly, or recycle() restored the
 * object. */
static __attribute__((noinline)) weft_coro_t *reinit(weft_fn_t *fn, void *arg, struct weft__slot *slot)
{
	weft_coro_t *k = (weft_coro_t *)slot->object;
	uint64_t id = weft__tls_hand.next_id, creator = weft__self()->id;

	weft__tls_hand.next_id = id + 1;
	start_over(k, slot, fn, arg);
	k->id = id;
	k->view = weft__view_of(k);
	if (weft__unlikely(k->creator != creator))
		k->creator = creator;
	/* Until now they describe the previous coroutine, for reports of a use after deletion. */
	if (weft__unlikely((uintptr_t)k->name | (uintptr_t)k->user_data)) {
		k->name = NULL;
		k->user_data = NULL;
	}
	return k;
}

/* The thread has bins, because its cache is empty, not closed. */
static __attribute__((noinline)) weft_coro_t *create_from_bin(weft_fn_t *fn, void *arg)
{
	struct weft__slot *slot = NULL;
	weft_coro_t *k;

	if (weft__likely(weft__has_id()))
		slot = weft__slot_take_kept(weft__tls_thread->default_bin);
	if (weft__unlikely(!slot))
		return weft__create_with_care(fn, arg);
	weft__check_no_handler();
	k = reinit(fn, arg, slot);
	k->slot = slot;
	become_owner(k, slot);
	return k;
}

/* The usual case, without a call: reuse the coroutine that the thread deleted last. */
weft_coro_t *weft_create(weft_fn_t *fn, void *arg)
{
	uintptr_t slot = weft__recent_slot(&weft__tls_hand);

	if (weft__likely(slot > WEFT__HAND_EMPTY) && weft__likely(weft__has_id()) &&
	    weft__likely(weft__slot_own((struct weft__slot *)slot))) {
		weft__check_no_handler();
		weft__set_hand(WEFT__HAND_EMPTY);
		return reinit(fn, arg, (struct weft__slot *)slot);
	}
	if (slot != WEFT__HAND_EMPTY)
		return weft__create_with_care(fn, arg);
	return create_from_bin(fn, arg);
}

/* ---- ending --------------------------------------------------------------------------------------------------- */

/* AddressSanitizer destroys only the current fake stack, so the coroutine's becomes current for a moment. */
static WEFT__COLD __attribute__((no_sanitize_address)) void forget_fake_stack(weft_coro_t *k)
{
	const void *low;
	size_t bytes;
	void *fake;

	__sanitizer_start_switch_fiber(&fake, k, 1);
	__sanitizer_finish_switch_fiber(k->asan_fake, &low, &bytes);
	__sanitizer_start_switch_fiber(NULL, low, bytes);
	__sanitizer_finish_switch_fiber(fake, &low, &bytes);
	k->asan_fake = NULL;
}

static WEFT__COLD void forget_sanitizers(weft_coro_t *k)
{
	if (k->tsan_fiber && __tsan_destroy_fiber)
		__tsan_destroy_fiber(k->tsan_fiber);
	if (k->asan_fake && __sanitizer_start_switch_fiber)
		forget_fake_stack(k);
	k->tsan_fiber = k->asan_fake = NULL;
}

/* The object stays readable and its state is WEFT_DELETED. */
static inline void die(weft_coro_t *k)
{
	k->link.pc = (void *)weft__in_deleted;
	k->id = 0;
}

static __attribute__((noinline)) void give_back(weft_coro_t *k)
{
	struct weft__slot *slot = k->slot;

	k->slot = NULL;
	/* Relaxed: the fault handler may still load the old owner, whose object is readable. */
	atomic_store_explicit(&slot->owner, NULL, memory_order_relaxed);
	weft__slot_give(slot);
}

/* Put back the slot of a coroutine without frames, and without chunks except the first. weft_create may then find the
 * object in a free slot. */
static __attribute__((noinline)) void recycle(weft_coro_t *k)
{
	uint8_t marks;

	die(k);
	if (weft__likely(!(k->marks & WEFT__APART))) {
		k->parent = NULL;
		k->innermost = k;
		k->deferred = NULL;
		marks = k->marks & WEFT__PASSED;
		memset((char *)k + offsetof(weft_coro_t, flags), 0, sizeof(uint64_t)); /* see unusual() */
		k->marks = marks;
		if (weft__recent_slot(&weft__tls_hand) == WEFT__HAND_EMPTY) {
			weft__put_recent_slot(k->slot);
			return;
		}
	}
	give_back(k);
}

static void release(weft_coro_t *k)
{
	struct weft__slot *slot = k->slot;

	if (weft__unlikely((uintptr_t)k->tsan_fiber | (uintptr_t)k->asan_fake))
		forget_sanitizers(k);
	if (weft__unlikely(k->flags & WEFT__KEEPING))
		weft__give_payload(k);
	if (weft__unlikely(k->link.chunk))
		weft__chunks_end(&k->link, slot);
	if (weft__unlikely(weft__slot_is_record(slot)))
		weft__forget_copied(k);
	recycle(k);
}

static bool embedded(const weft_coro_t *k)
{
	return (const char *)k == k->slot->object;
}

static bool is_orphan(const weft_coro_t *k)
{
	return k->handled == WEFT__ORPHAN && k->link.pc == (void *)weft__in_finished;
}

void weft__name_orphan(weft_coro_t **place, const weft_coro_t *k)
{
	if (*place != k && is_orphan(*place))
		(*place)->innermost = (weft_coro_t *)place;
}

static void drop_and_release(weft_coro_t *k);

/* Remove c from the list of orphans: its owner was not lost, and now releases or reuses it. */
static void leave_orphans(weft_coro_t *c)
{
	weft_coro_t **place = (weft_coro_t **)c->innermost;

	*place = c->parent;
	if (is_orphan(c->parent))
		c->parent->innermost = (weft_coro_t *)place;
	c->handled = 0;
	c->innermost = c;
}

/* Release k's orphans. The suspended ones among them are bodies of weft_run, which end as if k deleted them. */
static void release_orphans(weft_coro_t *k)
{
	weft_coro_t *c;

	while ((c = k->innermost) != k) {
		k->innermost = c->parent;
		weft__name_orphan(&k->innermost, k);
		if (weft__unlikely(c->link.pc != (void *)weft__in_finished)) {
			drop_and_release(c);
			continue;
		}
		c->handled = 0;
		release(c);
	}
}

static WEFT__COLD void drop_others(weft_coro_t *k)
{
	if (is_orphan(k)) {
		leave_orphans(k);
		return;
	}
	if (k->link.pc != (void *)weft__in_finished) /* suspended from below */
		weft__abandon(k, k->innermost);
	release_orphans(k);
}

/* True if cleanups must run before the frames of k are discarded. */
static inline bool must_end(const weft_coro_t *k)
{
	return k->link.pc != (void *)weft__in_finished && weft__must_end(k);
}

static inline void drop_frames(weft_coro_t *k)
{
	if (weft__unlikely(k->innermost != k))
		drop_others(k);
}

void weft__drop_inside(weft_coro_t *k)
{
	drop_frames(k);
	weft__drop_thens(k, NULL);
	if (weft__unlikely(k->flags & WEFT__KEEPING))
		weft__give_payload(k);
	if (weft__unlikely(k->flags & WEFT__ENDING))
		weft__forget_ending(k);
}

WEFT__LAST_WORDS(static, die_ending, (const weft_coro_t *k, const char *what, const char *why), k, what, why)
{
	struct weft__line line;

	weft__line_coro(&line, what, k);
	weft__line_text(&line, why);
	weft__line_die(&line);
}

static inline void check_ending(const weft_coro_t *k, const char *what)
{
	weft_state_t state = weft_state(k);

	weft__check_no_handler();
	if (weft__unlikely(state == WEFT_RUNNING))
		weft__die_running(k, what);
	if (weft__unlikely(state == WEFT_DELETED))
		die_ending(k, what, ": it was deleted before, or never made");
}

static WEFT__COLD void end_and_release(weft_coro_t *k)
{
	void *thrown = weft__end_suspended(k);

	drop_frames(k);
	release(k);
	if (thrown)
		weft__raise(thrown);
}

/* A coroutine whose frames are copied may be ended while other coroutines use its region. */
static WEFT__COLD bool ends_in_place(weft_coro_t *k)
{
	return __atomic_load_n(&weft__unusual, __ATOMIC_RELAXED) & WEFT__COPYING_USED &&
	       WEFT_NO_CANARY(bodies_end_by_a_resume) && weft__end_in_place(k);
}

static __attribute__((noinline)) void drop_and_release(weft_coro_t *k)
{
	if (weft__unlikely(must_end(k)) && !ends_in_place(k)) {
		end_and_release(k);
		return;
	}
	drop_frames(k);
	release(k);
}

static inline uint64_t unusual(const weft_coro_t *k)
{
	uint64_t word;

	_Static_assert(offsetof(weft_coro_t, id) - offsetof(weft_coro_t, flags) == sizeof word,
		       "flags, failure, marks and keeps are one word");
	memcpy(&word, (const char *)k + offsetof(weft_coro_t, flags), sizeof word);
	return word;
}

/* True if k returned, has no state left from its life, has default attributes, and no search has found or passed it. */
static inline bool ended_plainly(const weft_coro_t *k)
{
	return weft__likely(k->link.pc == (void *)weft__in_finished) && weft__likely(k->innermost == k) &&
	       weft__likely(!unusual(k)) && weft__likely(!k->deferred);
}

/* Like ended_plainly, for each kind of coroutine that has a stack in one piece. */
static inline bool ended_in_one_piece(const weft_coro_t *k)
{
	return k->link.pc == (void *)weft__in_finished && k->innermost == k &&
	       !((uintptr_t)k->link.chunk | (uintptr_t)k->link.limit) &&
	       !(k->flags & ~(uint32_t)(WEFT_NO_GUARD | WEFT_UNWIND));
}

static __attribute__((noinline)) void delete_with_care(weft_coro_t *k)
{
	if (!k)
		return;
	if (ended_in_one_piece(k) && embedded(k) && !k->tsan_fiber && !k->asan_fake) {
		weft__check_no_handler();
		recycle(k);
		return;
	}
	check_ending(k, "cannot delete");
	if (weft__unlikely(!embedded(k)))
		die_ending(k, "cannot delete", ": it was made by weft_init; use weft_release");
	drop_and_release(k);
}

_Static_assert(offsetof(struct weft__slot, object) == 0, "weft_delete takes the one for the other");

/* A cached coroutine keeps its slot; its id and pc say that it is deleted. */
void weft_delete(weft_coro_t *k)
{
	uintptr_t at_hand = weft__recent_slot(&weft__tls_hand);

	if (weft__likely(k) && ended_plainly(k) && weft__likely(at_hand != WEFT__HAND_CLOSED)) {
		weft__check_no_handler();
		die(k);
		if (weft__likely(at_hand == WEFT__HAND_EMPTY))
			weft__put_recent_slot((struct weft__slot *)(void *)k);
		else
			give_back(k);
		return;
	}
	delete_with_care(k);
}

void weft__end_frames(weft_coro_t *k)
{
	void *thrown;

	if (weft__likely(!must_end(k)) || ends_in_place(k))
		return;
	thrown = weft__end_suspended(k);
	if (thrown)
		weft__raise(thrown);
}

static __attribute__((noinline)) void reset_with_care(weft_coro_t *k, weft_fn_t *fn, void *arg)
{
	weft__require(k, "weft_reset");
	if (weft__likely(ended_in_one_piece(k)) && !weft__on_memcheck) {
		weft__check_no_handler();
		k->failure = WEFT_NO_FAILURE;
		k->deferred = NULL;
		start_over(k, k->slot, fn, arg);
		return;
	}
	check_ending(k, "cannot reset");
	weft__end_frames(k);
	weft__drop_inside(k);
	if (weft__unlikely(k->link.chunk))
		weft__chunks_end(&k->link, k->slot);
	if (weft__unlikely(weft__slot_is_record(k->slot)))
		weft__forget_copied(k);
	if (k->marks & WEFT__SEEN && WEFT_NO_CANARY(reset_keeps_what_was_found))
		k->marks |= WEFT__PASSED; /* cached search results that start at or pass k are invalid */
	arm(k, fn, arg);
	if (k->flags & WEFT__SAVING)
		weft__arm_saving(k);
}

void weft_reset(weft_coro_t *k, weft_fn_t *fn, void *arg)
{
	if (weft__likely(k) && ended_plainly(k)) {
		weft__check_no_handler();
		start_over(k, k->slot, fn, arg);
		return;
	}
	reset_with_care(k, fn, arg);
}

void weft_release(weft_coro_t *k)
{
	weft__require(k, "weft_release");
	check_ending(k, "cannot release");
	drop_and_release(k);
}

/* Library code runs on a system stack if the coroutine's own stack is linked: then only chunks are freed. */
static size_t trim_own(weft_coro_t *k)
{
	char *sp = __builtin_frame_address(0);

	if (k->link.chunk && !k->link.limit)
		(void)weft__chunks_trim(&k->link, k->slot);
	else if (weft_on_stack(k, sp))
		return weft__stack_trim(&k->link, k->slot, sp);
	return 0;
}

size_t weft_trim(weft_coro_t *k)
{
	char *sp;

	weft__require(k, "weft_trim");
	if (weft__slot_is_record(k->slot))
		return 0;
	if (k == weft__self())
		return trim_own(k);
	sp = k->link.sp;
	if (weft_state(k) != WEFT_SUSPENDED)
		return 0;
	/* Suspended from below: k's own frames end where it resumed the next coroutine. */
	for (const weft_coro_t *c = k->innermost; c != k; c = c->parent)
		sp = c->link.parent_sp;
	/* Not possible if k waits on a system stack, or in a region that other coroutines use. */
	if ((k->link.chunk && !k->link.limit) || !weft_on_stack(k, sp - 1))
		return 0;
	return weft__stack_trim(&k->link, k->slot, sp);
}
