/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Probes for bpftrace, perf and SystemTap, of the provider "weft": each is an instruction that does nothing, and a note
 * in the library that says where it is and where its arguments are. Without <sys/sdt.h> the library is built without
 * probes.
 *
 *   task_spawn(task)   task_run(task, worker)   task_wait(task, waiter)   task_end(task)
 *   worker_park(worker)   worker_unpark(worker)
 *
 * Arguments are values that are in a register anyway: addresses, to distinguish tasks and workers.
 */
#ifndef WEFT_SRC_SCHED_PROBE_H
#define WEFT_SRC_SCHED_PROBE_H

#if defined(__has_include) && !defined(WEFT_WITHOUT_SDT)
#if __has_include(<sys/sdt.h>)
#include <sys/sdt.h>
#define WEFT__PROBES 1
#endif
#endif

#ifdef WEFT__PROBES
#define weft__probe1(name, a) DTRACE_PROBE1(weft, name, a)
#define weft__probe2(name, a, b) DTRACE_PROBE2(weft, name, a, b)
#else
#define weft__probe1(name, a) ((void)(a))
#define weft__probe2(name, a, b) ((void)(a), (void)(b))
#endif

#endif
