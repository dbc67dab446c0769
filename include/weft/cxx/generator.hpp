// SPDX-License-Identifier: MIT OR Apache-2.0
//
// weft/cxx/generator.hpp: generators, as ranges. Included by weft/weft.hpp, which has the overview.
#ifndef WEFT_CXX_GENERATOR_HPP
#define WEFT_CXX_GENERATOR_HPP

#include <weft/cxx/coroutine.hpp>

#include <cstddef>
#include <iterator>
#include <memory>

#if __cplusplus >= 202002L
#include <ranges>
#endif

namespace weft
{

template <typename T> class generator;
template <typename T> class yielder;

/** The end of a generator's elements. */
#if defined(__cpp_lib_ranges)
using sentinel = std::default_sentinel_t;
#else
struct sentinel {
};
#endif

namespace detail
{

struct access;

// The element that waits to be read. Beside the body and not in a frame: copied stacks' frames may be elsewhere then.
// An element of a const type is const for its reader only: it can be moved to another consumer.
template <typename T> struct element {
	using reference = T &;
	std::optional<std::remove_cv_t<T>> value;

	template <typename U> void *set(U &&from)
	{
		return std::addressof(value.emplace(std::forward<U>(from)));
	}
	void clear()
	{
		value.reset();
	}
};

template <typename T> struct referred {
	using reference = T;

	void *set(T to)
	{
		return const_cast<void *>(static_cast<const volatile void *>(std::addressof(to)));
	}
	void clear()
	{
	}
};

template <typename T> struct element<T &> : referred<T &> {
};
template <typename T> struct element<T &&> : referred<T &&> {
};

template <typename T> struct source : block {
	using reference = typename element<T>::reference;

	source *root = this;	 // its consumer gets the elements: an outer generator while that delegates to this one
	void *current = nullptr; // the element; NULL: none
	element<T> storage;

	template <typename Body> void run(Body &body)
	{
		body(yielder<T>(this));
		storage.clear();
	}

	template <typename U> void yield(U &&value)
	{
		source *to = root;

		(void)weft_yield(to->k, &weft_suspended, to->storage.set(std::forward<U>(value)));
	}

	// To the next element, or to the end. If the body throws there is no element.
	void advance()
	{
		current = nullptr;
		weft_request_t r = weft_resume(k, nullptr, WEFT_HANDLE_NONE);
		if (weft__unlikely(r.effect != &weft_suspended)) {
			if (r.effect)
				ended_by_runtime(k);
			return;
		}
		if (weft__unlikely(!r.payload))
			misuse("a generator's body suspended otherwise than by its yield: let it yield, or use a "
			       "coroutine");
		current = r.payload;
	}

	reference value() const
	{
		return static_cast<reference>(*static_cast<std::remove_reference_t<T> *>(current));
	}

	// To be handed on: an object as an rvalue, a reference as it is.
	std::remove_cv_t<T> &&moved() const
	{
		return static_cast<std::remove_cv_t<T> &&>(
		    *static_cast<std::remove_reference_t<std::remove_cv_t<T>> *>(current));
	}

	bool fresh() const
	{
		return !current && weft_state(k) == WEFT_SUSPENDED;
	}
};

// Points an inner generator at the consumer of the outer generator.
template <typename T> struct delegation {
	source<T> *inner;

	delegation(source<T> *from, source<T> *to) : inner(from)
	{
		inner->root = to;
	}
	~delegation()
	{
		inner->root = inner;
	}
	delegation(const delegation &) = delete;
	delegation &operator=(const delegation &) = delete;
};

} // namespace detail

/**
 * The function object by which a generator's body yields. May be copied, passed to functions that the body calls, also
 * recursive functions, and used in coroutines that run inside: in each case the generator is suspended with all frames
 * inside it. Valid only in the body of its generator (a debug build reports other uses).
 */
template <typename T> class yielder
{
      public:
	/** Passes an element to the consumer; returns when the consumer asks for the next element. An object is
	 * constructed from `value`, by a move if possible. A reference refers to `value`, and under the policy "copy"
	 * must not refer to the generator's own frames. */
	template <typename U = std::remove_cv_t<T>, typename = std::enable_if_t<std::is_constructible<T, U &&>::value>>
	void operator()(U &&value) const
	{
		source_->yield(std::forward<U>(value));
	}

	/**
	 * Yield all that is left of another generator, or of any range. A generator's elements go from it to the
	 * consumer directly, however many delegate to each other. Exceptions out of it come out here.
	 */
	void from(generator<T> inner) const;
	template <typename Range> void from(Range &&range) const
	{
		for (auto &&each : range)
			(*this)(std::forward<decltype(each)>(each));
	}

      private:
	friend struct detail::source<T>;
	explicit yielder(detail::source<T> *source) noexcept : source_(source)
	{
	}

	detail::source<T> *source_;
};

/**
 * A generator: a body, called with a yielder<T>, whose elements are a range that is read once. An input range (with
 * C++20 a move-only view, to be combined with the views of std::ranges). T may be an object type, which need only be
 * movable; *i is then T &, and its object may be moved from. Or T is a reference type, and *i is a T.
 *
 *	weft::generator<int> evens([](weft::yielder<int> yield) {
 *		for (int i = 0;; i += 2)
 *			yield(i);
 *	});
 *	for (int i : evens)
 *		if (i > 10)
 *			break;
 *
 * The body runs from one element to the next, in begin() and ++. An exception of the body leaves these calls and ends
 * the generator. Effects of the body go to handlers around the consumer. Destroying a generator ends the body at its
 * pending yield.
 */
template <typename T>
class generator
#if defined(__cpp_lib_ranges)
    : public std::ranges::view_interface<generator<T>>
#endif
{
      public:
	class iterator;

	/** Empty: only assigned to and destroyed. */
	generator() noexcept = default;

	/** Makes a generator; its body starts at begin(). Throws like weft::coroutine's constructor. */
	template <typename Body,
		  typename = std::enable_if_t<!std::is_same<std::decay_t<Body>, generator>::value &&
					      std::is_invocable<std::decay_t<Body> &, yielder<T>>::value>>
	explicit generator(Body &&body) : source_(detail::make<detail::source<T>>(std::forward<Body>(body), nullptr))
	{
	}
	template <typename Body,
		  typename = std::enable_if_t<std::is_invocable<std::decay_t<Body> &, yielder<T>>::value>>
	generator(Body &&body, const weft_attr_t &attr)
	    : source_(detail::make<detail::source<T>>(std::forward<Body>(body), &attr))
	{
	}

	/** The first call runs the body to its first element; later calls return the generator's current position. */
	iterator begin()
	{
		if (source_->fresh())
			source_->advance();
		return iterator(source_.operator->());
	}
	sentinel end() const noexcept
	{
		return sentinel();
	}

	/** For functions of weft.h; stays ours. */
	weft_coro_t *get() const
	{
		return source_->k;
	}

	explicit operator bool() const noexcept
	{
		return static_cast<bool>(source_);
	}

      private:
	friend class yielder<T>;
	friend struct detail::access;

	detail::owner<detail::source<T>> source_;
};

/** A generator's current position, which copies share. */
template <typename T> class generator<T>::iterator
{
      public:
	using iterator_concept = std::input_iterator_tag;
	using iterator_category = std::input_iterator_tag;
	using value_type = std::remove_cv_t<std::remove_reference_t<T>>;
	using difference_type = std::ptrdiff_t;
	using reference = typename detail::source<T>::reference;
	using pointer = std::add_pointer_t<reference>;

	iterator() noexcept = default;
	reference operator*() const
	{
		return source_->value();
	}
	pointer operator->() const
	{
		return static_cast<pointer>(source_->current);
	}
	iterator &operator++()
	{
		source_->advance();
		return *this;
	}
	void operator++(int)
	{
		source_->advance();
	}
	friend bool operator==(const iterator &i, sentinel) noexcept
	{
		return !i.source_->current;
	}
	friend bool operator!=(const iterator &i, sentinel) noexcept
	{
		return i.source_->current;
	}
#if !defined(__cpp_impl_three_way_comparison)
	friend bool operator==(sentinel, const iterator &i) noexcept
	{
		return !i.source_->current;
	}
	friend bool operator!=(sentinel, const iterator &i) noexcept
	{
		return i.source_->current;
	}
#endif

      private:
	friend class generator;
	explicit iterator(detail::source<T> *source) noexcept : source_(source)
	{
	}

	detail::source<T> *source_ = nullptr;
};

template <typename T> void yielder<T>::from(generator<T> inner) const
{
	detail::source<T> *from = inner.source_.operator->();

	// A generator that was begun has an element that has not been read.
	if (from->current)
		source_->yield(from->moved());
	if (weft_state(from->k) != WEFT_SUSPENDED)
		return;
	detail::delegation<T> direct(from, source_->root);
	// Its elements do not come by here, unless somebody has begun to delegate to us in the midst of this.
	for (from->advance(); from->current; from->advance())
		source_->yield(from->moved());
}

} // namespace weft

#endif // WEFT_CXX_GENERATOR_HPP
