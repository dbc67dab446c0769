/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * weft/copy.h: multi-shot, and what is special about stacks that are copied.
 *
 * Under the policy "copy" coroutines share the memory that they run in, a region, and are copied out and in. What that
 * means for pointers into the stack of one:
 *  - while it runs, or is suspended from below, as everywhere else;
 *  - while it is suspended: until another coroutine is resumed in the same region, or it is itself. So a request's
 *    payload can be read, and a reply written, right after weft_resume returned it, before anything else is resumed;
 *    later, and always if coroutines move between threads, weft_peek and weft_poke find it wherever it is. Builds of
 *    the library with WEFT_DEBUG=1 fill what is left with 0xdb.
 * A coroutine belongs to the lowest region of the thread that resumes it first in which nobody runs then, so that a
 * coroutine and those that it resumes have different ones. Where two share one, they never run at the same time:
 *  - resuming one inside the other is reported, and ends the process: resume it first where it will be used;
 *  - resuming it on another thread waits until the other has suspended; if that can never be, it is reported.
 * Nothing here may be called in a signal handler. A coroutine that is NULL is reported, and ends the process.
 */
#ifndef WEFT_COPY_H
#define WEFT_COPY_H

#include <weft/coro.h>

WEFT_EXTERN_C_BEGIN

/**
 * Make a second suspended coroutine with the same frames, at the same addresses, as a suspended one: each can be
 * continued from that point once. The frames are the only thing that there are two of: what they point to, heap, files,
 * locks, is shared, so destructors and free() in both run twice. The clone has the name, user data and flags of the
 * original and a number of its own; weft_current() in it is the clone, whatever variables say that were set before.
 * @param k  suspended in its own frames, under the policy "copy"; may be one that has not run yet
 * @return the clone, owned by the caller, to be given to weft_delete; or NULL with errno
 *   ENOTSUP  k has another policy, or weft_clone_unavailable says why there are no clones here
 *   EBUSY    k is running, inside a tail clause (weft/handler.h), or suspended from below (coroutines inside it would
 *            need clones, whose handles lie in the frames), or keeps C++ exceptions that are being handled, or is
 *            about to end
 *   EINVAL   k is finished or deleted
 *   ENOMEM   no memory
 */
WEFT_API weft_coro_t *weft_clone(weft_coro_t *k);

/**
 * Can coroutines be cloned here, resumed from a checkpoint, and run under handlers with multi clauses? Not in programs
 * built with AddressSanitizer or ThreadSanitizer, where each of these fails with ENOTSUP.
 * @return NULL if they can; else one line, static storage, that says why not
 * Thread-safe, any stack, does not suspend.
 */
WEFT_API const char *weft_clone_unavailable(void);

/**
 * As weft_clone, in place of another coroutine, whose frames are left as in weft_reset: what a search reuses for one
 * try after the other.
 * @param c  under the policy "copy", of the same stack size, not running (reported), not k
 * @return 0, or a negative errno as above; also -EINVAL for an unsuitable c. After -ENOMEM c is finished.
 */
WEFT_API int weft_clone_into(weft_coro_t *c, weft_coro_t *k);

/*
 * Checkpoints: one coroutine that goes back to what it was, as often as one likes. A search that goes deeper before it
 * goes on sideways needs no clones for it:
 *
 *   for (r = weft_resume(k, …);; r = weft_resume(k, …))
 *           if (weft_is(pick, r)) {           a new choice: try the first
 *                   weft_checkpoint(k);
 *                   weft_reply(pick, requests[depth++] = r, 0);
 *           } else if (depth) {               success or failure: the newest choice again, another try
 *                   weft_checkpoint_restore(k);        or, if it is the last: weft_checkpoint_restore_last, depth--
 *                   weft_reply(pick, requests[depth - 1], …);
 *           } else
 *                   break;
 *
 * Each of them costs some nanoseconds (`./weft lab --only triples`). So that it can be that little, the first
 * checkpoint of a coroutine that nobody shares a region with gives it the region until it is cloned, reset or deleted:
 * it then runs and suspends as under "fixed".
 */

/**
 * Remember what a suspended coroutine is now: its frames, and where it waits. It stays as it is.
 * As with a clone, only the frames are remembered: what they point to, and the coroutines that it made, are not.
 * The request that it waits in is the same each time it comes back: the payload lies where it lay.
 * @param k  as for weft_clone; the checkpoints are forgotten when it is reset, cloned into or deleted; clones have none
 * @return 0, or a negative errno
 *   -ENOTSUP, -EBUSY, -EINVAL   as weft_clone
 *   -ENOMEM                     no memory; it has the checkpoints that it had
 */
WEFT_API int weft_checkpoint(weft_coro_t *k);

/**
 * Make a coroutine what it was at its newest checkpoint, and keep that for the next time, or (last) forget it. The
 * frames that it has now are forgotten, coroutines inside it included, and nothing that they deferred is called: what
 * it is to use after coming back is better made outside of it. What it failed with is forgotten too. A reply is
 * written as after the request: in place if no other coroutine has been resumed since then, else by weft_reply_to.
 * @param k  suspended, also from below, or finished, in whatever way
 * @return 0, or a negative errno
 *   -EINVAL   it has no checkpoint, or is deleted
 *   -EBUSY    it is running
 *   -ENOTSUP  it has another policy
 *   -ENOMEM   no memory, which it needs only where others share its region; it stays as it was
 */
WEFT_API int weft_checkpoint_restore(weft_coro_t *k);
WEFT_API int weft_checkpoint_restore_last(weft_coro_t *k);

/**
 * Forget the newest checkpoint, and stay: what is left to try there is not wanted any more.
 * @param k  may be running
 * @return 0, or a negative errno as weft_checkpoint_restore
 */
WEFT_API int weft_checkpoint_drop(weft_coro_t *k);

/**
 * Read from, or write to, the stack of a suspended coroutine, or of those suspended with it, wherever it is now.
 * With other policies: memcpy.
 * @param at     an address in its frames, a request's payload for example
 * @return 0; -EINVAL if k is not suspended or has no such bytes; -ENOMEM: no memory, nothing written
 */
WEFT_API int weft_peek(weft_coro_t *k, const void *at, void *to, size_t bytes);
WEFT_API int weft_poke(weft_coro_t *k, void *at, const void *from, size_t bytes);

WEFT_EXTERN_C_END

#endif /* WEFT_COPY_H */
