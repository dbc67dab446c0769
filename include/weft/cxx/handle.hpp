// SPDX-License-Identifier: MIT OR Apache-2.0
//
// weft/cxx/handle.hpp: handlers whose clauses are lambdas: resumptions. Included by weft/cxx/clauses.hpp, the clauses.
//
// A run of a body under a handler is an object: the clauses, the body, its result, the answer. weft/handler.h is given
// a table of functions, made at compile time from the clauses' types, whose state is that object; they call the
// lambdas. Where no clause can keep a resumption the run lies in the caller's frame, else on the heap, where
// resumptions share it.
#ifndef WEFT_CXX_HANDLE_HPP
#define WEFT_CXX_HANDLE_HPP

#include <weft/cxx/coroutine.hpp>

#include <atomic>

namespace weft
{

namespace detail
{

// The state of a run that a resumption refers to.
template <typename Answer> struct run_base {
	result<Answer> answer; // from the clause that answers to the code that continued the body
	int error = 0;
	bool left = false; // the body was, by an abort clause's operation, whose arguments are on the heap
	std::atomic<unsigned> users{1};
	void (*destroy)(run_base *) noexcept = nullptr;

	// `done` is the result of weft_run or weft_continue.
	Answer take(void *done)
	{
		if (weft__unlikely(!done))
			fail();
		if constexpr (!std::is_void<Answer>::value)
			return std::forward<Answer>(answer.get());
	}
	void use() noexcept
	{
		users.fetch_add(1, std::memory_order_relaxed); // the caller has a use already
	}
	void release() noexcept
	{
		if (users.fetch_sub(1, std::memory_order_acq_rel) == 1)
			destroy(this);
	}

      private:
	[[noreturn, gnu::cold]] void fail()
	{
#if WEFT__EXCEPTIONS
		if (error == EOVERFLOW)
			throw stack_failure(WEFT_RESERVATION_SPENT);
		if (error == EDQUOT)
			throw stack_failure(WEFT_BUDGET_SPENT);
#endif
		no_coroutine(error);
	}
};

// A use of a run.
template <typename Answer> struct use_of {
	run_base<Answer> *run;

	explicit use_of(run_base<Answer> *r) noexcept : run(r)
	{
	}
	use_of(const use_of &) = delete;
	use_of &operator=(const use_of &) = delete;
	~use_of()
	{
		if (run)
			run->release();
	}
};

template <typename R> struct replies {
	using type = int (*)(weft_resumption_t *, R);
};
template <> struct replies<void> {
	using type = int (*)(weft_resumption_t *);
};

// The common part of both kinds of resumptions. The clause gets the resumption in weft_run's frame; moving it makes a
// resumption that outlives that frame.
template <typename R, typename Answer> class resumption_base
{
      public:
	/** Can it be used? False once resumed, dropped or moved from. */
	explicit operator bool() const noexcept
	{
		return at_ && weft_is_valid(at_);
	}

	/** Look at the coroutine; for functions of weft.h. */
	weft_coro_t *get() const noexcept
	{
		return at_ ? at_->k : nullptr;
	}

	/** The coroutine that performs the operation: the body's coroutine, or a coroutine that runs inside the body.
	 * */
	weft_coro_t *performer() const noexcept
	{
		return at_ ? weft_performer(at_) : nullptr;
	}

	/** End the body now; clones of it that run or are kept go on. */
	void drop() noexcept
	{
		if (!at_)
			return;
		use_of<Answer> use(kept() ? run_ : nullptr);
		weft_resumption_t *k = std::exchange(at_, nullptr);
		weft_drop(k);
	}

      protected:
	using reply_function = typename replies<R>::type;

	resumption_base(weft_resumption_t *at, run_base<Answer> *run, reply_function reply) noexcept
	    : at_(at), run_(run), reply_(reply)
	{
	}
	resumption_base(resumption_base &&other) noexcept : run_(other.run_), reply_(other.reply_)
	{
		take(other);
	}
	resumption_base &operator=(resumption_base &&other) noexcept
	{
		if (this != &other) {
			drop();
			take(other);
		}
		return *this;
	}
	resumption_base() noexcept = default;
	~resumption_base()
	{
		drop();
	}

	bool kept() const noexcept
	{
		return at_ == &own_;
	}
	void take(resumption_base &other) noexcept
	{
		run_ = other.run_;
		reply_ = other.reply_;
		if (other.kept()) {
			own_ = other.own_;
		} else if (other.at_) {
			own_ = weft_keep(other.at_);
			run_->use();
		}
		at_ = other.at_ ? &own_ : nullptr;
		other.at_ = nullptr;
	}
	weft_resumption_t *usable() const
	{
		if (weft__unlikely(!at_))
			misuse("a resumption was used that had been resumed, dropped or moved from: use each "
			       "resumption once");
		return at_;
	}
	template <typename... Value> int replied(weft_resumption_t *k, Value &&...value) const
	{
		if constexpr (!std::is_void<R>::value && !std::is_trivially_copyable<R>::value)
			if (weft__unlikely(k->k && k->k->flags & WEFT__COPYING))
				misuse("a result that is not trivially copyable cannot be sent to a copied stack: use "
				       "another policy, or a pointer");
		return reply_(k, std::forward<Value>(value)...);
	}

	weft_resumption_t *at_ = nullptr; // &own_: kept
	run_base<Answer> *run_ = nullptr;
	reply_function reply_ = nullptr;
	weft_resumption_t own_;
};

} // namespace detail

/** The result of a general clause that continues the body as its last step: made by resumption::tail_resume. */
class tail_resumed
{
      public:
	explicit tail_resumed(void *token) noexcept : token_(token)
	{
	}
	void *token() const noexcept
	{
		return token_;
	}

      private:
	void *token_;
};

/** The result of a tail clause that registers a function for the answer: made by weft::then. */
template <typename Fn, typename... Reply> struct reply_then {
	Fn fn;
	std::tuple<Reply...> reply; // none, if the operation is void
};

/**
 * In a tail clause, `return weft::then(value, fn);`, or `return weft::then(fn);` if the operation is void: the
 * operation's result is `value`. When weft::handle, or the resume that continues the body, is about to return an
 * answer, the answer becomes fn(answer) (fn(), if it is void). The function registered last is called first. The effect
 * is that of a general clause that returns fn(k.resume(value)), but the body is not suspended. `fn` is the record of
 * weft_on_answer (weft/handler.h): it must be trivially copyable, so let it capture values and references. `fn` is not
 * called if there is no answer because an exception leaves. Without memory the operation throws bad_alloc.
 */
template <typename Fn> reply_then<Fn> then(Fn fn)
{
	return {std::move(fn), {}};
}
template <typename Reply, typename Fn> reply_then<Fn, Reply> then(Reply reply, Fn fn)
{
	return {std::move(fn), std::tuple<Reply>(std::move(reply))};
}

/** The result of a general clause that sometimes answers and sometimes returns k.tail_resume(…). */
template <typename Answer> class decision
{
      public:
	template <typename From, typename = std::enable_if_t<std::is_convertible<From &&, Answer>::value>>
	decision(From &&answer) : answer_(std::forward<From>(answer))
	{
	}
	decision(tail_resumed t) noexcept : token_(t.token())
	{
	}

	void *token() const noexcept
	{
		return token_;
	}
	Answer answer()
	{
		return std::move(*answer_);
	}

      private:
	void *token_ = nullptr;
	std::optional<Answer> answer_;
};

template <> class decision<void>
{
      public:
	decision() noexcept = default;
	decision(tail_resumed t) noexcept : token_(t.token())
	{
	}

	void *token() const noexcept
	{
		return token_;
	}
	void answer() const noexcept
	{
	}

      private:
	void *token_ = nullptr;
};

/**
 * The argument of a general clause: the body, suspended where it performs an operation with the result R, in a run that
 * answers an Answer. Move-only. Resume it once, or destroy it, which ends the body and runs its destructors. A
 * resumption that is moved out of its clause may be resumed anywhere, by any thread. The clauses are kept with the
 * resumption, and the objects that they refer to must live as long.
 */
template <typename R, typename Answer> class resumption : public detail::resumption_base<R, Answer>
{
	using base = detail::resumption_base<R, Answer>;

      public:
	/** Empty: only assigned to and destroyed. */
	resumption() noexcept = default;
	resumption(resumption &&other) noexcept = default;
	resumption &operator=(resumption &&other) noexcept = default;

	/** Continues the body under the same handler, with `value` as the operation's result (none, if it is void), to
	 * the body's end or until a clause answers. Returns that answer; throws the exception that leaves the body or a
	 * clause. The resumption cannot be used again. */
	template <typename V = R> Answer resume(V &&value)
	{
		static_assert(!std::is_void<R>::value, "an operation without a result is resumed by resume()");
		weft_resumption_t *k = this->usable();
		return finish(k, this->replied(k, std::forward<V>(value)));
	}
	Answer resume()
	{
		static_assert(std::is_void<R>::value, "the operation has a result: resume(value)");
		weft_resumption_t *k = this->usable();
		return finish(k, this->replied(k));
	}

	/** Like resume, but the operation throws in the body: the exception, or the exception of an exception_ptr. With
	 * a WEFT_EXCEPTION and its arguments, resume_throwing(give_up, 3), the body performs that effect instead. */
	template <typename E, typename... Args> Answer resume_throwing(E &&exception, Args &&...args)
	{
		auto thrown = detail::thrown_by(std::forward<E>(exception), std::forward<Args>(args)...);
		return finish_by(this->usable(), [&thrown](weft_resumption_t *k) {
			return weft__continue_throwing(k, thrown.here, &thrown);
		});
	}

	/** `return k.tail_resume(value);` in its clause: the same, but the clause ends first, so that any number of
	 * them in a row need no stack. */
	template <typename V = R> tail_resumed tail_resume(V &&value)
	{
		static_assert(!std::is_void<R>::value, "an operation without a result is resumed by tail_resume()");
		weft_resumption_t *k = in_clause();
		return tail_resumed(weft__tail_continue(k, this->replied(k, std::forward<V>(value))));
	}
	tail_resumed tail_resume()
	{
		static_assert(std::is_void<R>::value, "the operation has a result: tail_resume(value)");
		weft_resumption_t *k = in_clause();
		return tail_resumed(weft__tail_continue(k, this->replied(k)));
	}

	/* Not for users. */
	resumption(weft_resumption_t *at, detail::run_base<Answer> *run, typename base::reply_function reply) noexcept
	    : base(at, run, reply)
	{
	}

      private:
	Answer finish(weft_resumption_t *k, int error)
	{
		return finish_by(k, [error](weft_resumption_t *r) { return weft__continue_checked(r, error); });
	}
	template <typename Continue> Answer finish_by(weft_resumption_t *k, Continue go_on)
	{
		detail::use_of<Answer> use(this->kept() ? this->run_ : nullptr);
		weft_resumption_t mine = *k; // this object may be assigned to while the body runs

		if (!use.run) { // weft_run looks at its own
			this->at_ = nullptr;
			return this->run_->take(go_on(k));
		}
		detail::run_base<Answer> *run = this->run_;
		this->at_ = nullptr;
		return run->take(go_on(&mine));
	}
	weft_resumption_t *in_clause()
	{
		weft_resumption_t *k = this->usable();

		if (weft__unlikely(this->kept()))
			detail::misuse("tail_resume of a resumption that was moved: it is for the clause that got it");
		this->at_ = nullptr;
		return k;
	}
};

/**
 * The argument of a multi clause: a resumption that may be resumed any number of times; each time a clone of the body
 * continues. The body's stack is copied (policy "copy"), and its objects with it, bit by bit: the body should use only
 * objects that need no destructor, or objects outside its stack. One thread at a time may use the resumptions of a run.
 */
template <typename R, typename Answer> class multi_resumption : public detail::resumption_base<R, Answer>
{
	using base = detail::resumption_base<R, Answer>;
	static_assert(std::is_void<R>::value || std::is_trivially_copyable<R>::value,
		      "the result of an operation with a multi clause must be trivially copyable: stacks are copied");

      public:
	multi_resumption() noexcept = default;
	multi_resumption(multi_resumption &&other) noexcept = default;
	multi_resumption &operator=(multi_resumption &&other) noexcept = default;

	/** Like resumption::resume, but the resumption can be used again. */
	template <typename V = R> Answer resume(V &&value)
	{
		static_assert(!std::is_void<R>::value, "an operation without a result is resumed by resume()");
		weft_resumption_t *k = this->usable();
		return this->run_->take(weft__continue(k, this->replied(k, std::forward<V>(value))));
	}
	Answer resume()
	{
		static_assert(std::is_void<R>::value, "the operation has a result: resume(value)");
		weft_resumption_t *k = this->usable();
		return this->run_->take(weft__continue(k, this->replied(k)));
	}

	/** Like resumption::resume_throwing, but the resumption can be used again. */
	template <typename E, typename... Args> Answer resume_throwing(E &&exception, Args &&...args)
	{
		auto thrown = detail::thrown_by(std::forward<E>(exception), std::forward<Args>(args)...);
		return this->run_->take(weft__continue_throwing(this->usable(), thrown.here, &thrown));
	}

	/* Not for users. */
	multi_resumption(weft_resumption_t *at, detail::run_base<Answer> *run,
			 typename base::reply_function reply) noexcept
	    : base(at, run, reply)
	{
	}
};

} // namespace weft

#endif // WEFT_CXX_HANDLE_HPP
