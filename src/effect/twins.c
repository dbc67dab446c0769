/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Out-of-line copies of the inline functions of weft/effect.h, by which code without optimization performs effects. */
#define WEFT__DEFINES_TWINS
#include <weft/effect.h>

bool weft__finds_there(struct weft__way *way, int *how, weft__hint_t hint, const weft_effect_t *effect,
		       const weft_effect_t *family, unsigned index, unsigned size, bool can)
{
	if (weft__finds(way, *how, hint, effect, family, index, size, can))
		return true;
	if (*how == WEFT__SEARCH)
		return false;
	*how = WEFT__SEARCH;
	return weft__finds(way, WEFT__SEARCH, hint, effect, family, index, size, can);
}

void weft__perform_there(struct weft__way *way, int how, const weft_effect_t *effect, void *frame)
{
	weft__perform(way, how, effect, frame);
}
