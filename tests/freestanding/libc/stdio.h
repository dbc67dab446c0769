/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* As much of a C library as the tests here need. */
#ifndef WEFT_TESTS_FREESTANDING_STDIO_H
#define WEFT_TESTS_FREESTANDING_STDIO_H

enum { stdout = 1, stderr = 2 };
/* Knows %s, %d, %u, %lu, %zu; a number is of 64 bits or none. */
int fprintf(int descriptor, const char *format, ...) __attribute__((format(printf, 2, 3)));
#define printf(...) fprintf(stdout, __VA_ARGS__)
#define perror(text) fprintf(stderr, "%s\n", text)

#endif
