// SPDX-License-Identifier: MIT OR Apache-2.0
//
// weft/cxx/clauses.hpp: clauses, and running a body under them. The second part of handle.hpp, which includes it.
#ifndef WEFT_CXX_CLAUSES_HPP
#define WEFT_CXX_CLAUSES_HPP

#include <weft/cxx/handle.hpp>

namespace weft
{

namespace detail
{

// A clause's function as weft/handler.h has it. It is called through the type that it has.
template <typename Function> void (*untyped(Function *f) noexcept)(void)
{
	return reinterpret_cast<void (*)(void)>(f);
}

template <typename T> struct is_reply_then : std::false_type {
};
template <typename Fn, typename... Reply> struct is_reply_then<reply_then<Fn, Reply...>> : std::true_type {
};

// What weft::then left: the record is the function.
template <typename Run, typename Fn> void *answer_through(void *state, void *answer, void *record)
{
	using answer_type = typename Run::answer_type;
	Run *run = static_cast<Run *>(state);
	Fn &fn = *static_cast<Fn *>(record);
	auto made = [&]() -> decltype(auto) {
		if constexpr (std::is_void<answer_type>::value)
			return fn();
		else
			return fn(std::forward<answer_type>(run->answer.get()));
	};

	if (answer)
		run->answer.set(made);
	return answer;
}

template <typename Run, typename Fn> void leave_for_answer(Fn &fn)
{
	if (weft__likely(!weft__then_as(answer_through<Run, Fn>, &fn)))
		return;
#if WEFT__EXCEPTIONS
	throw std::bad_alloc();
#else
	misuse("no memory for what weft::then was given");
#endif
}

// What weft_on knows of an operation.
template <typename Frame, weft_effect_t *Effect, auto Reply, auto CallGeneral, auto CallAbort, auto Leave>
struct description {
	using frame = Frame;
	static constexpr weft_effect_t *effect = Effect;
	static constexpr bool is_exception = std::is_null_pointer<decltype(Reply)>::value;
	static constexpr auto reply = Reply;
	static constexpr auto call_general = CallGeneral;
	static constexpr auto call_abort = CallAbort;
	static constexpr auto leave = Leave;
};

// The functions of a table: of the clause at place I of a run.
template <typename Operation, typename Signature> struct functions;
template <typename Operation, typename R, typename... Args> struct functions<Operation, R(Args...)> {
	// Not references that may be to temporary objects.
	static constexpr bool lasting =
	    (true && ... &&
	     (!std::is_reference<Args>::value ||
	      (std::is_lvalue_reference<Args>::value && !std::is_const<std::remove_reference_t<Args>>::value)));

	template <typename Run, std::size_t I> static R tail(void *state, Args... args)
	{
		auto &fn = static_cast<Run *>(state)->template clause<I>();
		using returned = std::invoke_result_t<decltype(fn), Args...>;

		if constexpr (is_reply_then<returned>::value) {
			returned made = fn(std::forward<Args>(args)...);

			leave_for_answer<Run>(made.fn);
			if constexpr (!std::is_void<R>::value)
				return std::get<0>(std::move(made.reply));
		} else if constexpr (std::is_void<R>::value) {
			fn(std::forward<Args>(args)...);
		} else {
			return fn(std::forward<Args>(args)...);
		}
	}
	template <typename Run, std::size_t I> static void *abort(void *state, Args... args)
	{
		static_assert(lasting, "an abort clause is called when the performer's frames are gone: declare the "
				       "operation's parameters as values, not as references");
		Run *run = static_cast<Run *>(state);
		auto answer = [&]() -> decltype(auto) {
			return run->template clause<I>()(std::forward<Args>(args)...);
		};

		run->answer.set(answer);
		return run;
	}
	template <typename Run> static R leave(void *state, Args... args)
	{
		static_cast<Run *>(state)->left = true;
		return Operation::leave(state, std::forward<Args>(args)...);
	}
	// The arguments of what has left the body may be ours to delete; those of a suspended one are not.
	template <typename Run>
	static void *call_abort(void (*clause)(void), void *state, weft_resumption_t *k, void *frame)
	{
		using last = weft__last<typename Operation::frame>;
		struct done {
			void *frame;
			~done()
			{
				last::done(frame);
			}
		} at_end{std::exchange(static_cast<Run *>(state)->left, false) || Operation::is_exception ? frame
													  : nullptr};

		return Operation::call_abort(clause, state, k, frame);
	}
	template <typename Run, std::size_t I, template <typename, typename> class Resumption>
	static void *general(void *state, weft_resumption_t *k, Args... args)
	{
		using answer_type = typename Run::answer_type;
		Run *run = static_cast<Run *>(state);
		auto decide = [&]() -> decltype(auto) {
			return run->template clause<I>()(Resumption<R, answer_type>(k, run, Operation::reply),
							 std::forward<Args>(args)...);
		};
		using decided = decltype(decide());

		if constexpr (std::is_same<decided, tail_resumed>::value) {
			return decide().token();
		} else if constexpr (std::is_same<decided, decision<answer_type>>::value) {
			decision<answer_type> d = decide();

			if (d.token())
				return d.token();
			auto answer = [&d] { return d.answer(); };
			run->answer.set(answer);
		} else {
			run->answer.set(decide);
		}
		return run;
	}
};

template <typename Operation, typename Signature, typename Fn> struct tail_clause {
	Fn fn;
	static constexpr bool keeps = false, clones = false, returns = false;

	template <typename Run, std::size_t I> static weft_clause_t entry() noexcept
	{
		void (*f)(void) = untyped(functions<Operation, Signature>::template tail<Run, I>);

		return {Operation::effect, WEFT__TAIL, f, f, nullptr};
	}
};

template <typename Operation, typename Signature, typename Fn> struct abort_clause {
	Fn fn;
	static constexpr bool keeps = false, clones = false, returns = false;

	template <typename Run, std::size_t I> static weft_clause_t entry() noexcept
	{
		return {Operation::effect, WEFT__ABORT,
			untyped(functions<Operation, Signature>::template abort<Run, I>),
			untyped(functions<Operation, Signature>::template leave<Run>),
			functions<Operation, Signature>::template call_abort<Run>};
	}
};

/* A clause that gets the body suspended, as a Resumption. */
template <typename Operation, typename Signature, typename Fn, int Kind, template <typename, typename> class Resumption>
struct capturing_clause {
	Fn fn;
	static constexpr bool keeps = true, clones = Kind == WEFT__MULTI, returns = false;

	template <typename Run, std::size_t I> static weft_clause_t entry() noexcept
	{
		return {Operation::effect, Kind,
			untyped(functions<Operation, Signature>::template general<Run, I, Resumption>), nullptr,
			Operation::call_general};
	}
};

template <typename Operation, typename Signature, typename Fn>
using general_clause = capturing_clause<Operation, Signature, Fn, WEFT__GENERAL, resumption>;
template <typename Operation, typename Signature, typename Fn>
using multi_clause = capturing_clause<Operation, Signature, Fn, WEFT__MULTI, multi_resumption>;

template <typename Fn> struct return_clause {
	Fn fn;
	static constexpr bool keeps = false, clones = false, returns = true;

	template <typename Run, std::size_t I> static void *returned(void *state, void *)
	{
		Run *run = static_cast<Run *>(state);
		auto answer = [run]() -> decltype(auto) {
			if constexpr (std::is_void<typename Run::body_result>::value)
				return run->template clause<I>()();
			else
				return run->template clause<I>()(
				    std::forward<typename Run::body_result>(run->made.get()));
		};

		run->answer.set(answer);
		return run;
	}
	template <typename Run, std::size_t I> static weft_clause_t entry() noexcept
	{
		return {nullptr, WEFT__ON_RETURN, untyped(returned<Run, I>), nullptr, nullptr};
	}
};

template <typename Fn> struct failure_clause {
	Fn fn;
	static constexpr bool keeps = false, clones = false, returns = false;

	template <typename Run, std::size_t I> static void *failed(void *state, int error)
	{
		Run *run = static_cast<Run *>(state);
		auto answer = [&]() -> decltype(auto) { return run->template clause<I>()(error); };

		run->answer.set(answer);
		return run;
	}
	template <typename Run, std::size_t I> static weft_clause_t entry() noexcept
	{
		return {nullptr, WEFT__ON_FAILURE, untyped(failed<Run, I>), nullptr, nullptr};
	}
};

// Of a run without a return clause: the body's result is the answer.
struct returns_result {
	template <typename Run> static void *returned(void *state, void *)
	{
		using answer_type = typename Run::answer_type;
		using body_result = typename Run::body_result;
		Run *run = static_cast<Run *>(state);

		if constexpr (std::is_void<answer_type>::value) {
			run->answer.value = true;
		} else if constexpr (std::is_void<body_result>::value) {
			misuse("a body that returns nothing has returned, and its handler answers something: add "
			       "weft::on_return");
		} else {
			static_assert(std::is_convertible<body_result, answer_type>::value,
				      "what the body returns is not what the handler answers: add weft::on_return");
			auto answer = [run]() -> decltype(auto) { return std::forward<body_result>(run->made.get()); };

			run->answer.set(answer);
		}
		return run;
	}
};

// What the run answers, if the caller does not say: what the return clause makes of the body's result.
template <typename BodyResult, typename... Clauses> struct answer_of {
	using type = BodyResult;
};
template <typename BodyResult, typename Fn, typename... Rest> struct answer_of<BodyResult, return_clause<Fn>, Rest...> {
	using type = std::decay_t<std::invoke_result_t<Fn &, BodyResult>>;
};
template <typename Fn, typename... Rest> struct answer_of<void, return_clause<Fn>, Rest...> {
	using type = std::decay_t<std::invoke_result_t<Fn &>>;
};
template <typename BodyResult, typename First, typename... Rest>
struct answer_of<BodyResult, First, Rest...> : answer_of<BodyResult, Rest...> {
};

template <typename Answer, typename Body, typename... Clauses> struct run : run_base<Answer> {
	using answer_type = Answer;
	using body_result = std::invoke_result_t<Body &>;
	static constexpr bool keeps = (false || ... || Clauses::keeps), clones = (false || ... || Clauses::clones);

	Body body;
	std::tuple<Clauses...> clauses;
	result<body_result> made;

	template <typename B, typename... Cs>
	explicit run(std::in_place_t, B &&b, Cs &&...cs) : body(std::forward<B>(b)), clauses(std::forward<Cs>(cs)...)
	{
	}

	template <std::size_t I> auto &clause()
	{
		return std::get<I>(clauses).fn;
	}

	Answer start(const weft_attr_t *attr)
	{
		const weft_handler_t *h = handler(std::index_sequence_for<Clauses...>());

		return this->take(attr ? weft_run_with(h, this, enter, this, attr) : weft_run(h, this, enter, this));
	}

	static void destroy_run(run_base<Answer> *r) noexcept
	{
		delete static_cast<run *>(r);
	}

      private:
	// A body that clones share by bits is one that lies on their stack, if it can.
	static void *enter(void *self)
	{
		run *r = static_cast<run *>(self);

		if constexpr (!clones)
			weft__self()->flags |= FLAGS;
		if constexpr (clones && std::is_trivially_copyable<Body>::value) {
			Body mine = r->body;

			r->made.set(mine);
		} else {
			r->made.set(r->body);
		}
		return nullptr;
	}

	static void *failed(void *self, int error)
	{
		static_cast<run *>(self)->error = error;
		return nullptr;
	}

	static constexpr weft__on_return_t *default_return() noexcept
	{
		if constexpr ((false || ... || Clauses::returns))
			return nullptr; // never asked
		else
			return returns_result::template returned<run>;
	}

	// The user's clauses come first, and count.
	template <std::size_t... I> static const weft_handler_t *handler(std::index_sequence<I...>) noexcept
	{
		static const weft_clause_t table[] = {
		    Clauses::template entry<run, I>()...,
		    {nullptr, WEFT__ON_RETURN, untyped(default_return()), nullptr, nullptr},
		    {nullptr, WEFT__ON_FAILURE, untyped(failed), nullptr, nullptr},
		};
		static const weft_handler_t h = {"weft::handle", table, sizeof...(I) + 2, nullptr};

		return &h;
	}
};

struct default_answer {
};

template <typename Asked, typename Body, typename... Clauses>
using run_of = run<std::conditional_t<std::is_same<Asked, default_answer>::value,
				      typename answer_of<std::invoke_result_t<Body &>, Clauses...>::type, Asked>,
		   Body, Clauses...>;

template <typename Asked, typename Body, typename... Clauses>
auto handle(const weft_attr_t *attr, Body &&body, Clauses &&...clauses)
{
	using Run = run_of<Asked, std::decay_t<Body>, std::decay_t<Clauses>...>;

	if constexpr (Run::keeps) {
		Run *r = new Run(std::in_place, std::forward<Body>(body), std::forward<Clauses>(clauses)...);
		use_of<typename Run::answer_type> use(r);

		r->destroy = Run::destroy_run;
		return r->start(attr);
	} else {
		Run r(std::in_place, std::forward<Body>(body), std::forward<Clauses>(clauses)...);

		return r.start(attr);
	}
}

} // namespace detail

/** An operation to make a clause for: see weft_on. */
template <typename Signature, typename Description> struct operation {
	template <typename Fn> static auto tail(Fn &&fn)
	{
		return detail::tail_clause<Description, Signature, std::decay_t<Fn>>{std::forward<Fn>(fn)};
	}
	template <typename Fn> static auto abort(Fn &&fn)
	{
		return detail::abort_clause<Description, Signature, std::decay_t<Fn>>{std::forward<Fn>(fn)};
	}
	template <typename Fn> static auto general(Fn &&fn)
	{
		return detail::general_clause<Description, Signature, std::decay_t<Fn>>{std::forward<Fn>(fn)};
	}
	template <typename Fn> static auto multi(Fn &&fn)
	{
		return detail::multi_clause<Description, Signature, std::decay_t<Fn>>{std::forward<Fn>(fn)};
	}
};

/**
 * weft_on(op), of a declared operation, has four functions that make clauses. `params…` are the operation's, R is its
 * result, Answer what weft::handle returns. (weft/handler.h says what the kinds are for.)
 *   weft_on(op).tail(fn)     R fn(params…), called in place of the operation; may throw into the body; may also return
 *                            weft::then(value, function), which see
 *   weft_on(op).abort(fn)    Answer fn(params…), called when the body is gone; the operation's parameters are values
 *   weft_on(op).general(fn)  fn(weft::resumption<R, Answer> k, params…); returns an Answer, or k.tail_resume(value), or
 *                            either as a weft::decision<Answer>
 *   weft_on(op).multi(fn)    Answer fn(weft::multi_resumption<R, Answer> k, params…)
 * weft_on_exception(op).abort(fn) is for those declared by WEFT_EXCEPTION.
 */
#define weft_on(op)                                                                                                    \
	(::weft::operation<                                                                                            \
	    weft__##op##__function,                                                                                    \
	    ::weft::detail::description<weft__##op##__frame, &weft_effect_##op, weft__##op##__answer,                  \
					weft__##op##__call_general, weft__##op##__call_abort, weft__##op##__leave>>())
#define weft_on_exception(op)                                                                                          \
	(::weft::operation<weft__##op##__function,                                                                     \
			   ::weft::detail::description<weft__##op##__frame, &weft_effect_##op, nullptr, nullptr,       \
						       weft__##op##__call_abort, weft__##op##__leave>>())

/** The clause that makes the answer of what the body returns (of nothing, if that is void). */
template <typename Fn> auto on_return(Fn &&fn)
{
	return detail::return_clause<std::decay_t<Fn>>{std::forward<Fn>(fn)};
}

/** The clause that makes the answer where there is no memory: Answer fn(int error), as weft_run. Without it such a run
 * throws bad_alloc, stack_failure or system_error. */
template <typename Fn> auto on_failure(Fn &&fn)
{
	return detail::failure_clause<std::decay_t<Fn>>{std::forward<Fn>(fn)};
}

/**
 * Run a body under clauses, to its end. The body is called without arguments.
 * @return what it returns, through the return clause; or what an abort or general clause answers. Its type is that of
 *   the body's result or of the return clause's, unless given: weft::handle<Answer>(…).
 * Throws what leaves the body or a clause. May be called on any stack, and suspend the caller.
 *
 *	int64_t s = 100;
 *	int n = weft::handle([] { return countdown(); },
 *			     weft_on(get).tail([&] { return s; }),
 *			     weft_on(put).tail([&](int64_t value) { s = value; }),
 *			     weft_on_exception(give_up).abort([](int code) { return -code; }));
 */
template <typename Answer = detail::default_answer, typename Body, typename... Clauses>
auto handle(Body &&body, Clauses &&...clauses)
{
	return detail::handle<Answer>(nullptr, std::forward<Body>(body), std::forward<Clauses>(clauses)...);
}

/** The same in a coroutine with attributes. */
template <typename Answer = detail::default_answer, typename Body, typename... Clauses>
auto handle_with(const weft_attr_t &attr, Body &&body, Clauses &&...clauses)
{
	return detail::handle<Answer>(&attr, std::forward<Body>(body), std::forward<Clauses>(clauses)...);
}

} // namespace weft

#endif // WEFT_CXX_CLAUSES_HPP
