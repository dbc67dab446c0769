/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * weft/detail/last.h: memory for the arguments of an effect that ends its performer, in C++. If they lay on the
 * performer's stack, as in C, the runtime would have to copy them bitwise while unwinding destroys them. So arguments
 * with a destructor go to the heap, and stay there until the handler deletes them (weft.hpp does).
 */
#ifndef WEFT_DETAIL_LAST_H
#define WEFT_DETAIL_LAST_H

#ifdef __cplusplus
#include <type_traits>

template <typename Frame, bool Plain = std::is_trivially_destructible<Frame>::value> struct weft__last {
	Frame frame;

	explicit weft__last(Frame &&from) : frame(static_cast<Frame &&>(from))
	{
	}
	Frame &get()
	{
		return frame;
	}
	static void done(void *)
	{
	}
};

template <typename Frame> struct weft__last<Frame, false> {
	Frame *frame;

	explicit weft__last(Frame &&from) : frame(new Frame(static_cast<Frame &&>(from)))
	{
	}
	Frame &get()
	{
		return *frame;
	}
	static void done(void *frame)
	{
		delete static_cast<Frame *>(frame);
	}
};
#endif

#endif /* WEFT_DETAIL_LAST_H */
