/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The C++ program: declarations shared by its parts. A script is a part's name. */
#ifndef TESTS_REAL_CXX_ENGINE_H
#define TESTS_REAL_CXX_ENGINE_H

#include "../host.h"

#include <ostream>

struct part {
	const char *name;
	void (*run)(struct run *run, std::ostream &out);
};

extern const part exceptions_part, streams_part, machine_part;
#ifdef REAL_JSON
extern const part json_part;
#endif

#endif /* TESTS_REAL_CXX_ENGINE_H */
