/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * weft/copy.h: clones and checkpoints of coroutines, and pointers into stacks that are copied.
 *
 * Under the policy "copy" coroutines share a region of memory to run in, and their frames are copied out and in.
 * Pointers into such a coroutine's stack are valid:
 *  - while it runs, or is suspended from below, as under other policies;
 *  - while it is suspended: until it, or another coroutine of the same region, is resumed. So a request's payload can
 *    be read, and a reply written, right after weft_resume returned it, before any coroutine is resumed. Later, and
 *    always if coroutines move between threads, weft_peek and weft_poke find the frames wherever they are. Builds of
 *    the library with WEFT_DEBUG=1 fill frames that were copied out with 0xdb.
 * At its first resume a coroutine gets the lowest region of the resuming thread in which no coroutine runs; so a
 * coroutine and the coroutines that it resumes have different regions. Two coroutines of one region never run at the
 * same time:
 *  - resuming one of them inside the other is reported, and ends the process: resume it first where it will be used;
 *  - resuming it on another thread waits until the other has suspended; if that can never be, it is reported.
 * Nothing here may be called in a signal handler. A coroutine that is NULL is reported, and ends the process.
 */
#ifndef WEFT_COPY_H
#define WEFT_COPY_H

#include <weft/coro.h>

WEFT_EXTERN_C_BEGIN

/**
 * Make a second suspended coroutine with the same frames, at the same addresses, as a suspended one: each of the two
 * can be continued from that point once. Only the frames are duplicated. Heap memory, files and locks that they refer
 * to are shared, so destructors and free() in both run twice. The clone has the name, user data and flags of the
 * original, and an id of its own. In the clone weft_current() is the clone, even if variables hold the original.
 * @param k  suspended in its own frames, under the policy "copy"; may be a coroutine that has not run yet
 * @return the clone, owned by the caller, to be passed to weft_delete; or NULL with errno
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
 * @return NULL if they can; else one line in static storage with the reason
 * Thread-safe, any stack, does not suspend.
 */
WEFT_API const char *weft_clone_unavailable(void);

/**
 * Like weft_clone, but replaces an existing coroutine, whose frames are left as in weft_reset. A search reuses one
 * coroutine this way for many tries.
 * @param c  under the policy "copy", of the same stack size, not running (reported), not k
 * @return 0, or a negative errno as weft_clone; also -EINVAL for an unsuitable c. After -ENOMEM c is finished.
 */
WEFT_API int weft_clone_into(weft_coro_t *c, weft_coro_t *k);

/*
 * Checkpoints: a coroutine can return to an earlier state any number of times. A depth-first search needs no clones:
 *
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
 * Each of these calls costs some nanoseconds (`./weft lab --only triples`). To make this possible, the first checkpoint
 * of a coroutine that is alone in its region gives it the region until it is cloned, reset or deleted: until then it
 * runs and suspends as under "fixed".
 */

/**
 * Save the state of a suspended coroutine: its frames, and where it waits. The coroutine itself does not change.
 * Like a clone, a checkpoint has only the frames, not the objects that they point to, nor the coroutines that it made.
 * The request that it waits in is the same after each restore: the payload has the same address.
 * @param k  as for weft_clone; its checkpoints are freed when it is reset, cloned into or deleted; clones have none
 * @return 0, or a negative errno
 *   -ENOTSUP, -EBUSY, -EINVAL   as weft_clone
 *   -ENOMEM                     no memory; its earlier checkpoints are unchanged
 */
WEFT_API int weft_checkpoint(weft_coro_t *k);

/**
 * Restore a coroutine to its newest checkpoint, and keep the checkpoint, or (…_last) free it. The coroutine's present
 * frames and the coroutines inside it are discarded, and their deferred calls are not made: resources that it needs
 * after a restore are better acquired outside of it. A failure is cleared, too. A reply is written as after the
 * original request: in place if no other coroutine has been resumed since then, else by weft_reply_to.
 * @param k  suspended, also from below, or finished, for any reason
 * @return 0, or a negative errno
 *   -EINVAL   it has no checkpoint, or is deleted
 *   -EBUSY    it is running
 *   -ENOTSUP  it has another policy
 *   -ENOMEM   no memory, which is needed only if other coroutines share its region; the coroutine is unchanged
 */
WEFT_API int weft_checkpoint_restore(weft_coro_t *k);
WEFT_API int weft_checkpoint_restore_last(weft_coro_t *k);

/**
 * Free the newest checkpoint without restoring it: the remaining choices there are not wanted.
 * @param k  may be running
 * @return 0, or a negative errno as weft_checkpoint_restore
 */
WEFT_API int weft_checkpoint_drop(weft_coro_t *k);

/**
 * Read from, or write to, the stack of a suspended coroutine, or of coroutines suspended with it, wherever it is now.
 * Under other policies this is a memcpy.
 * @param at     an address in its frames, for example a request's payload
 * @return 0; -EINVAL if k is not suspended or has no such bytes; -ENOMEM: no memory, nothing written
 */
WEFT_API int weft_peek(weft_coro_t *k, const void *at, void *to, size_t bytes);
WEFT_API int weft_poke(weft_coro_t *k, void *at, const void *from, size_t bytes);

WEFT_EXTERN_C_END

#endif /* WEFT_COPY_H */
