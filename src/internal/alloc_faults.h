/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Fault injection: in builds with WEFT_INJECT_FAULTS, every n-th request for memory (n from the environment variable
 * WEFT_FAIL_EVERY, 0: none) fails. In other builds it is the constant false.
 */
#ifndef WEFT_SRC_ALLOC_FAULTS_H
#define WEFT_SRC_ALLOC_FAULTS_H

#include <stdbool.h>

#ifdef WEFT_INJECT_FAULTS
bool weft__inject_fault(void);
unsigned long weft__injected_faults(void); /* how many requests have failed so far */
#define WEFT__INJECT_FAULT() weft__inject_fault()
#else
#define WEFT__INJECT_FAULT() false
#endif

#endif
