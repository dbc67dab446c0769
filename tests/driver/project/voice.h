/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef VOICE_H
#define VOICE_H

#include <weft/weft.h>

WEFT_EFFECT(void, voice, const char *, text);

#endif
