/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A program and a shared object (-DLIBRARY) that declare the same effect, with a type whose size differs (-DMORE). */
#include <weft/weft.h>

typedef struct point {
	int x;
#ifdef MORE
	int more[10];
#endif
} point_t;

WEFT_EFFECT(int, measure, point_t, p);

__attribute__((visibility("default"))) void *measures(void *argument);

#ifdef LIBRARY
void *measures(void *argument)
{
	return (char *)argument + measure((point_t){.x = 1});
}
#else
int main(void)
{
	return measures(NULL) != NULL;
}
#endif
