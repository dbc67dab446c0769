// SPDX-License-Identifier: MIT OR Apache-2.0
//
// weft/weft.hpp: Weft for C++17 and later. Header only, over the library; all of weft.h comes with it.
//
//	weft::generator<std::string> lines([&file](weft::yielder<std::string> yield) {
//		for (std::string line; std::getline(file, line);)
//			yield(std::move(line));
//	});
//	for (const std::string &line : lines)
//		…
//
//   weft::coroutine<R>   a body that can be suspended at any depth; owned, moved, typed result    cxx/coroutine.hpp
//   weft::generator<T>   a body whose yielded values are a range                                  cxx/generator.hpp
//   weft::handle         a body under clauses that are lambdas; resumptions as objects   cxx/handle.hpp, clauses.hpp
//   co_await k, weft::next(k), weft::await(a)   with C++20, coroutines of both kinds wait for each other: cxx/await.hpp
//
// Design
//  1. A coroutine's body and its result are above its first frame: no allocation, no type erasure except the function
//     pointer that a coroutine has anyway. An object of these classes is one pointer.
//  2. The owner of a suspended coroutine ends it: the destructors of its frames run, on its own stack, before the
//     body's (WEFT_UNWIND; not where clones share frames). A catch (...) in a body must throw on.
//  3. An exception that leaves a body leaves the call that resumed it. Neither exceptions nor type information are
//     needed: with -fno-exceptions an error that would be thrown ends the process with a line.
//  4. Handlers, effects, generators and C++20's coroutines know nothing of each other, because all of them suspend a
//     chain of coroutines from below, and its stacks keep everything in between.
//
// docs/reference/costs.md has the costs in instructions, and the commands that count them.
//
// Thread-safety is that of coroutines in weft.h: one thread at a time uses an object, which may move between uses.
// Nothing here may be called in a signal handler.
#ifndef WEFT_WEFT_HPP
#define WEFT_WEFT_HPP

#if __cplusplus < 201703L
#error "weft.hpp needs C++17: compile with -std=c++17 or later, or include weft/weft.h, which works from C++14 on"
#endif

#include <weft/cxx/coroutine.hpp>
#include <weft/cxx/generator.hpp>
#include <weft/cxx/clauses.hpp>
#include <weft/cxx/await.hpp>

#endif // WEFT_WEFT_HPP
