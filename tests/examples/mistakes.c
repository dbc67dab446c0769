/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* examples/state.c with a mistake: where it deletes a coroutine it does not, or if CRASHES, it ends the process. */
#include <stdlib.h>
#include <weft/weft.h>

#undef weft_delete
#ifdef CRASHES
#define weft_delete(k) abort()
#else
#define weft_delete(k) ((void)(k))
#endif
#include "../../examples/state.c"
