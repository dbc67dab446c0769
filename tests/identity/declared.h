/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* One declaration, in objects whose symbols the linker may keep apart. */
#include <weft/weft.h>

#ifdef PUT_TAKES_LONG
WEFT_FAMILY(state, (int, get), (void, put, long, value));
typedef long put_t;
#else
WEFT_FAMILY(state, (int, get), (void, put, int, value));
typedef int put_t;
#endif
WEFT_FAMILY_AS(net_, socket, (int, send, const char *, text, bool, more));
WEFT_EXCEPTION(fail, int, code);

/* The performing object's functions, as the handling object sees them. */
struct performs {
	int (*get)(void);
	void (*put)(int);
	int (*send)(void);
	void (*fail)(int);
	int (*get_located)(void);
};

#ifdef __cplusplus
extern "C" {
#endif
extern __attribute__((visibility("default"))) const struct performs performs;
__attribute__((visibility("default"))) int handles(const struct performs *performs);
#ifdef __cplusplus
}
#endif
