// SPDX-License-Identifier: MIT OR Apache-2.0
//
// weft/cxx/clauses.hpp: clauses, and running a body under them. Included by weft/weft.hpp, which has the overview.
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

// The result type of a function for these arguments; not_callable, if it does not take them. std::invoke_result would
// show its own text in messages about mistakes inside a generic lambda.
struct not_callable {
};
template <typename Fn, typename... Args> auto called(int) -> decltype(std::declval<Fn &>()(std::declval<Args>()...));
template <typename Fn, typename... Args> not_callable called(...);
template <typename Fn, typename... Args> using returned_by = decltype(called<Fn, Args...>(0));
template <typename Fn, typename... Args>
constexpr bool takes = !std::is_same<returned_by<Fn, Args...>, not_callable>::value;

// True if an answer can be made of a function's result.
template <typename Answer, typename Returned>
constexpr bool answers = !std::is_same<Returned, not_callable>::value &&
			 (std::is_void<Answer>::value || std::is_constructible<Answer, Returned>::value);

// True if a tail clause of an operation with the result R may return this type.
template <typename R, typename Returned>
constexpr bool gives_reply =
    !std::is_same<Returned, not_callable>::value && (std::is_void<R>::value || std::is_convertible<Returned, R>::value);
template <typename R, typename Fn> constexpr bool gives_reply<R, reply_then<Fn>> = std::is_void<R>::value;
template <typename R, typename Fn, typename Reply>
constexpr bool gives_reply<R, reply_then<Fn, Reply>> = std::is_void<R>::value || std::is_convertible<Reply, R>::value;

// True if a general clause may return this type.
template <typename Answer, typename Returned> constexpr bool decides = answers<Answer, Returned>;
template <typename Answer> constexpr bool decides<Answer, tail_resumed> = true;
template <typename Answer> constexpr bool decides<Answer, decision<Answer>> = true;

// True if a clause takes its arguments and returns an expected type. Tail clauses are checked when they are made.
struct always_fits {
	static constexpr auto index = nullptr; // for no effect
	template <typename Answer, typename BodyResult> static constexpr bool fits = true;
};
// In the place of an answer, and of a clause, where a mistake was reported.
struct anything {
	template <typename T> operator T() const;
};
struct no_clause : always_fits {
	static constexpr int kind = WEFT__REQUESTED;
	static constexpr bool keeps = false, clones = false, returns = false;

	template <typename Run, std::size_t I> static weft_clause_t entry() noexcept
	{
		return {};
	}
};

// Calls a function that weft::then registered: the record is the function.
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
	misuse("no memory for what weft::then was given: give it less, or compile with exceptions and catch "
	       "std::bad_alloc");
#endif
}

// To give a resumption the result of the operation.
template <weft_effect_t *Effect, typename Frame, typename Signature> struct replying;
template <weft_effect_t *Effect, typename Frame, typename R, typename... Args>
struct replying<Effect, Frame, R(Args...)> {
	static int reply(weft_resumption_t *k, R value)
	{
		return weft__answer<Frame>(k, Effect, std::forward<R>(value));
	}
};
template <weft_effect_t *Effect, typename Frame, typename... Args> struct replying<Effect, Frame, void(Args...)> {
	static int reply(weft_resumption_t *k)
	{
		return weft__answer<Frame>(k, Effect, weft__nothing());
	}
};

// The description of an operation that weft_on makes.
template <typename Frame, typename Tail, auto Index, weft_effect_t *Effect, auto Reply, auto Call, auto Leave>
struct description {
	using frame = Frame;
	static constexpr auto index = Index; // its type is that of the family
	static constexpr weft_effect_t *effect = Effect;
	static constexpr bool is_exception = std::is_null_pointer<decltype(Reply)>::value;
	static constexpr bool is_right = is_exception != std::is_function<Tail>::value;
	static constexpr auto reply = Reply;
	static constexpr auto call = Call;
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
	// This function may own, and then deletes, the arguments of an operation that left the body. It does not own
	// the arguments of a suspended operation.
	template <typename Run>
	static void *call_abort(void *state, weft_resumption_t *k, void *frame, void (*clause)(void))
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

		return Operation::call(state, k, frame, clause);
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

template <typename Operation, typename Signature, typename Fn> struct tail_clause : always_fits {
	static constexpr int kind = WEFT__TAIL;
	static constexpr auto index = Operation::index;
	Fn fn;
	static constexpr bool keeps = false, clones = false, returns = false;

	template <typename Run, std::size_t I> static weft_clause_t entry() noexcept
	{
		void (*f)(void) = untyped(functions<Operation, Signature>::template tail<Run, I>);

		return {Operation::effect, WEFT__TAIL, f, f, nullptr};
	}
};

template <typename Operation, typename Signature, typename Fn> struct abort_clause;
template <typename Operation, typename R, typename... Args, typename Fn>
struct abort_clause<Operation, R(Args...), Fn> {
	using Signature = R(Args...);
	static constexpr int kind = WEFT__ABORT;
	static constexpr auto index = Operation::index;
	template <typename Answer, typename BodyResult>
	static constexpr bool fits = answers<Answer, returned_by<Fn, Args...>>;
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
struct capturing_clause;
template <typename Operation, typename R, typename... Args, typename Fn, int Kind,
	  template <typename, typename> class Resumption>
struct capturing_clause<Operation, R(Args...), Fn, Kind, Resumption> {
	using Signature = R(Args...);
	static constexpr int kind = Kind;
	static constexpr auto index = Operation::index;
	template <typename Answer, typename BodyResult>
	static constexpr bool fits = decides<Answer, returned_by<Fn, Resumption<R, Answer>, Args...>>;
	Fn fn;
	static constexpr bool keeps = true, clones = Kind == WEFT__MULTI, returns = false;

	template <typename Run, std::size_t I> static weft_clause_t entry() noexcept
	{
		return {Operation::effect, Kind,
			untyped(functions<Operation, Signature>::template general<Run, I, Resumption>), nullptr,
			Operation::call};
	}
};

template <typename Operation, typename Signature, typename Fn>
using general_clause = capturing_clause<Operation, Signature, Fn, WEFT__GENERAL, resumption>;
template <typename Operation, typename Signature, typename Fn>
using multi_clause = capturing_clause<Operation, Signature, Fn, WEFT__MULTI, multi_resumption>;

template <typename BodyResult, typename Fn> struct returned_for {
	using type = returned_by<Fn, BodyResult>;
};
template <typename Fn> struct returned_for<void, Fn> {
	using type = returned_by<Fn>;
};

template <typename Fn> struct return_clause {
	static constexpr auto index = nullptr;
	static constexpr int kind = WEFT__ON_RETURN;
	template <typename BodyResult> using returned_type = typename returned_for<BodyResult, Fn>::type;
	template <typename Answer, typename BodyResult>
	static constexpr bool fits = answers<Answer, returned_type<BodyResult>>;
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
	static constexpr auto index = nullptr;
	static constexpr int kind = WEFT__ON_FAILURE;
	template <typename Answer, typename BodyResult>
	static constexpr bool fits = answers<Answer, returned_by<Fn, int>>;
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

// For a run without a return clause: the body's result is the answer.
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

// The answer's type, if the caller does not give it: the result of the return clause for the body's result.
template <typename BodyResult, typename... Clauses> struct answer_of {
	using type = BodyResult;
};
template <typename BodyResult, typename Fn, typename... Rest> struct answer_of<BodyResult, return_clause<Fn>, Rest...> {
	using type = std::decay_t<typename return_clause<Fn>::template returned_type<BodyResult>>;
};
template <typename BodyResult, typename First, typename... Rest>
struct answer_of<BodyResult, First, Rest...> : answer_of<BodyResult, Rest...> {
};

// The name of a handler in messages: "weft::handle of main()::<lambda()>". The type of the body, as the compiler writes
// it, says where the call of weft::handle stands.
template <std::size_t Size> struct short_text {
	char chars[Size];
};
template <typename Body> struct name_of_run {
	static constexpr short_text<192> made() noexcept
	{
		const char *function = __PRETTY_FUNCTION__, *type = function, *end = function;
		const char *before = "weft::handle of ";
		short_text<192> name = {};
		std::size_t n = 0;

		// gcc: "… [with Body = TYPE]", clang: "… [Body = TYPE]".
		for (; *end; end++)
			if (end - function > 7 && end[-7] == 'B' && end[-6] == 'o' && end[-5] == 'd' &&
			    end[-4] == 'y' && end[-2] == '=' && type == function)
				type = end;
		for (; *before; before++)
			name.chars[n++] = *before;
		for (; type < end - 1 && n < sizeof name - 1; type++)
			name.chars[n++] = *type;
		return name;
	}
	static constexpr short_text<192> text = made();
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
	// Clones copy a body bit by bit if the body is on their stack, where it is if it can be.
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

	// Gives the compiler the clauses as constants: see weft__drive.
	template <std::size_t... I> static weft_request_t drive(weft_coro_t **k, std::uintptr_t handled)
	{
		const weft_clause_t table[] = {
		    Clauses::template entry<run, I>()...,
		    {nullptr, WEFT__ON_FAILURE, nullptr, nullptr, nullptr},
		};

		return weft__drive(table, sizeof...(I), k, handled);
	}

	// The user's clauses come first, and count.
	template <std::size_t... I> static const weft_handler_t *handler(std::index_sequence<I...>) noexcept
	{
		static const weft_clause_t table[] = {
		    Clauses::template entry<run, I>()...,
		    {nullptr, WEFT__ON_RETURN, untyped(default_return()), nullptr, nullptr},
		    {nullptr, WEFT__ON_FAILURE, untyped(failed), nullptr, nullptr},
		};
		static const weft_handler_t h = {name_of_run<Body>::text.chars, table, sizeof...(I) + 2, nullptr,
						 drive<I...>};

		return &h;
	}
};

// The type of weft_all_of.
template <typename Family, Family Count> struct all_of {
};

// How many clauses of this sort has an effect of a family?
template <auto Index, typename Clause> constexpr bool is_for(bool tail)
{
	if constexpr (std::is_same<std::remove_cv_t<decltype(Clause::index)>, decltype(Index)>::value)
		return Clause::index == Index && (Clause::kind == WEFT__TAIL) == tail;
	else
		return false;
}
template <auto Index, typename... Clauses> constexpr int tails_of = (0 + ... + is_for<Index, Clauses>(true));
template <auto Index, typename... Clauses> constexpr int others_of = (0 + ... + is_for<Index, Clauses>(false));
// The first effect of a family without a clause, or with two; Count, if there is none.
template <typename Family, Family Count, int I, typename... Clauses> constexpr Family first_missing()
{
	constexpr Family effect = static_cast<Family>(I);

	if constexpr (effect == Count || tails_of<effect, Clauses...> + others_of<effect, Clauses...> == 0)
		return effect;
	else
		return first_missing<Family, Count, I + 1, Clauses...>();
}
template <typename Family, Family Count, int I, typename... Clauses> constexpr Family first_double()
{
	constexpr Family effect = static_cast<Family>(I);

	if constexpr (effect == Count || tails_of<effect, Clauses...> > 1 || others_of<effect, Clauses...> > 1)
		return effect;
	else
		return first_double<Family, Count, I + 1, Clauses...>();
}
// Named for the messages, which show the first parameter.
template <auto Effect, auto Count> constexpr bool has_a_clause = Effect == Count;
template <auto Effect, auto Count> constexpr bool has_one_clause = Effect == Count;

struct default_answer {
};

template <typename Asked, typename BodyResult, typename... Clauses>
using answer_for = std::conditional_t<std::is_same<Asked, default_answer>::value,
				      typename answer_of<BodyResult, Clauses...>::type, Asked>;

template <typename Asked, typename Body, typename... Clauses>
using run_of = run<answer_for<Asked, std::invoke_result_t<Body &>, Clauses...>, Body, Clauses...>;

template <typename T, typename = void> struct is_clause : std::false_type {
};
template <typename T> struct is_clause<T, std::void_t<decltype(T::kind)>> : std::true_type {
};

// Checks that the arguments of weft::handle fit together. Only the first mistake is reported.
template <bool HasClauses, typename Asked, typename Body, typename... Clauses> struct run_check {
	using answer = answer_for<Asked, returned_by<Body>, Clauses...>;

	// The clauses of one kind.
	template <int Kind>
	static constexpr bool fit =
	    (true && ... && (Clauses::kind != Kind || Clauses::template fits<answer, returned_by<Body>>));
	static constexpr bool all =
	    fit<WEFT__ON_RETURN> && fit<WEFT__ON_FAILURE> && fit<WEFT__ABORT> && fit<WEFT__GENERAL> && fit<WEFT__MULTI>;
};
template <typename Asked, typename Body, typename... Clauses> struct run_check<false, Asked, Body, Clauses...> {
	template <int Kind> static constexpr bool fit = true;
	static constexpr bool all = false;
};
template <typename... Clauses> constexpr bool are_clauses = (true && ... && is_clause<std::decay_t<Clauses>>::value);
template <typename Asked, typename Body, typename... Clauses>
using check_of = run_check<takes<Body> && are_clauses<Clauses...>, Asked, std::decay_t<Body>, std::decay_t<Clauses>...>;

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

// Assertions stand in the functions that users call, because compilers show each function in between.
#define WEFT__SAY_EXCEPTION "an exception has only abort clauses: weft_on_exception(op).abort(fn)"
#define WEFT__SAY_BODY "weft::handle(body, clauses...): body is called without arguments, as in [] { return count(); }"
#define WEFT__SAY_CLAUSES                                                                                              \
	"weft::handle(body, clauses...): a clause is made by weft_on(op), weft_on_exception(op), weft::on_return(fn) " \
	"or weft::on_failure(fn)"
#define WEFT__SAY_RETURN "weft::on_return(fn): Answer fn(Result), with the body's result; Answer fn(), if that is void"
#define WEFT__SAY_FAILURE "weft::on_failure(fn): Answer fn(int error), with what weft::handle returns"
#define WEFT__SAY_ABORT                                                                                                \
	"weft_on(op).abort(fn): Answer fn(params...), with what weft::handle returns: what the body or "               \
	"weft::on_return "                                                                                             \
	"does, or Answer in weft::handle<Answer>"
#define WEFT__SAY_GENERAL                                                                                              \
	"weft_on(op).general(fn): fn(weft::resumption<R, Answer> k, params...), with the operation's result and "      \
	"parameters; fn returns Answer, what weft::handle does, or k.tail_resume(value), or weft::decision<Answer>"
#define WEFT__SAY_MULTI                                                                                                \
	"weft_on(op).multi(fn): Answer fn(weft::multi_resumption<R, Answer> k, params...), with the operation's "      \
	"result and parameters, and what weft::handle returns"

/** An operation to make a clause for: see weft_on. */
template <typename Signature, typename Description> struct operation;
template <typename R, typename... Args, typename Description> struct operation<R(Args...), Description> {
	template <typename Fn> static auto tail(Fn &&fn)
	{
		using function = std::decay_t<Fn>;
		constexpr bool kind = !Description::is_exception;
		constexpr bool fits = !kind || detail::gives_reply<R, detail::returned_by<function, Args...>>;

		static_assert(kind, WEFT__SAY_EXCEPTION);
		static_assert(fits,
			      "weft_on(op).tail(fn): R fn(params...), with the operation's parameters and result; or "
			      "fn returns weft::then(result, function), or weft::then(function) if R is void");
		if constexpr (kind && fits)
			return detail::tail_clause<Description, R(Args...), function>{{}, std::forward<Fn>(fn)};
		else
			return detail::no_clause();
	}
	template <typename Fn> static auto abort(Fn &&fn)
	{
		using function = std::decay_t<Fn>;
		constexpr bool kind = Description::is_right;
		constexpr bool lasting = detail::functions<Description, R(Args...)>::lasting;
		constexpr bool fits = detail::takes<function, Args...>;

		static_assert(kind, "weft_on_exception(op) is for what WEFT_EXCEPTION declares: weft_on(op)");
		static_assert(lasting, "an abort clause is called when the performer's frames are gone: declare the "
				       "operation's parameters as values, not as references");
		static_assert(fits, "weft_on(op).abort(fn): Answer fn(params...), with the operation's parameters");
		if constexpr (kind && lasting && fits)
			return detail::abort_clause<Description, R(Args...), function>{std::forward<Fn>(fn)};
		else
			return detail::no_clause();
	}
	template <typename Fn> static auto general(Fn &&fn)
	{
		constexpr bool kind = !Description::is_exception;

		static_assert(kind, WEFT__SAY_EXCEPTION);
		if constexpr (kind)
			return detail::general_clause<Description, R(Args...), std::decay_t<Fn>>{std::forward<Fn>(fn)};
		else
			return detail::no_clause();
	}
	template <typename Fn> static auto multi(Fn &&fn)
	{
		constexpr bool kind = !Description::is_exception;

		static_assert(kind, WEFT__SAY_EXCEPTION);
		if constexpr (kind)
			return detail::multi_clause<Description, R(Args...), std::decay_t<Fn>>{std::forward<Fn>(fn)};
		else
			return detail::no_clause();
	}
};

/**
 * weft_on(op), for a declared operation, has four functions that make clauses. `params…` are the operation's
 * parameters, R is its result, Answer the result of weft::handle. (weft/handler.h explains the kinds.)
 *   weft_on(op).tail(fn)     R fn(params…), called in place of the operation; may throw into the body; may also return
 *                            weft::then(value, function)
 *   weft_on(op).abort(fn)    Answer fn(params…), called when the body is gone; the operation's parameters are values
 *   weft_on(op).general(fn)  fn(weft::resumption<R, Answer> k, params…); returns an Answer, or k.tail_resume(value), or
 *                            either as a weft::decision<Answer>
 *   weft_on(op).multi(fn)    Answer fn(weft::multi_resumption<R, Answer> k, params…)
 * weft_on_exception(op).abort(fn) is for effects declared by WEFT_EXCEPTION.
 */
#define weft_on(op)                                                                                                    \
	(::weft::operation<                                                                                            \
	    weft__##op##__function,                                                                                    \
	    ::weft::detail::description<                                                                               \
		weft__##op##__frame, weft__##op##__tail, weft__##op##__index, &weft_effect_##op,                       \
		::weft::detail::replying<&weft_effect_##op, weft__##op##__frame, weft__##op##__function>::reply,       \
		weft__##op##__call, weft__##op##__leave>>())
#define weft_on_exception(op)                                                                                          \
	(::weft::operation<                                                                                            \
	    weft__##op##__function,                                                                                    \
	    ::weft::detail::description<weft__##op##__frame, weft__##op##__tail, weft__##op##__index,                  \
					&weft_effect_##op, nullptr, weft__##op##__call, weft__##op##__leave>>())

/** The clause that makes the answer from the body's result (from nothing, if that is void). */
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
 * @return the body's result, through the return clause; or the answer of an abort or general clause. The type is that
 * of
 *   the body's result or of the return clause's result, unless given: weft::handle<Answer>(…).
 * Throws the exception that leaves the body or a clause. May be called on any stack, and suspend the caller.
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
	using check = detail::check_of<Answer, Body, Clauses...>;

	static_assert(detail::takes<Body>, WEFT__SAY_BODY);
	static_assert(detail::are_clauses<Clauses...>, WEFT__SAY_CLAUSES);
	static_assert(check::template fit<WEFT__ON_RETURN>, WEFT__SAY_RETURN);
	static_assert(check::template fit<WEFT__ON_FAILURE>, WEFT__SAY_FAILURE);
	static_assert(check::template fit<WEFT__ABORT>, WEFT__SAY_ABORT);
	static_assert(check::template fit<WEFT__GENERAL>, WEFT__SAY_GENERAL);
	static_assert(check::template fit<WEFT__MULTI>, WEFT__SAY_MULTI);
	if constexpr (check::all)
		return detail::handle<Answer>(nullptr, std::forward<Body>(body), std::forward<Clauses>(clauses)...);
	else
		return detail::anything();
}

/** weft::handle(body, weft_all_of(family), clauses...): like weft::handle, and each effect of the family must have a
 * clause; at most a tail clause and a clause of a different kind. Otherwise a compile error names the effect. */
template <typename Answer = detail::default_answer, typename Body, typename Family, Family Count, typename... Clauses>
auto handle(Body &&body, detail::all_of<Family, Count>, Clauses &&...clauses)
{
	constexpr Family missing = detail::first_missing<Family, Count, 0, std::decay_t<Clauses>...>();
	constexpr Family twice = detail::first_double<Family, Count, 0, std::decay_t<Clauses>...>();

	static_assert(detail::has_a_clause<missing, Count>,
		      "weft_all_of(family): an effect of the family has no clause");
	static_assert(detail::has_one_clause<twice, Count>,
		      "weft_all_of(family): an effect of the family has two clauses");
	if constexpr (missing == Count && twice == Count)
		return handle<Answer>(std::forward<Body>(body), std::forward<Clauses>(clauses)...);
	else
		return detail::anything();
}
#define weft_all_of(family) (::weft::detail::all_of<weft__##family##__effects, weft__##family##__count>())

/** Like weft::handle, in a coroutine with these attributes. */
template <typename Answer = detail::default_answer, typename Body, typename... Clauses>
auto handle_with(const weft_attr_t &attr, Body &&body, Clauses &&...clauses)
{
	using check = detail::check_of<Answer, Body, Clauses...>;

	static_assert(detail::takes<Body>, WEFT__SAY_BODY);
	static_assert(detail::are_clauses<Clauses...>, WEFT__SAY_CLAUSES);
	static_assert(check::template fit<WEFT__ON_RETURN>, WEFT__SAY_RETURN);
	static_assert(check::template fit<WEFT__ON_FAILURE>, WEFT__SAY_FAILURE);
	static_assert(check::template fit<WEFT__ABORT>, WEFT__SAY_ABORT);
	static_assert(check::template fit<WEFT__GENERAL>, WEFT__SAY_GENERAL);
	static_assert(check::template fit<WEFT__MULTI>, WEFT__SAY_MULTI);
	if constexpr (check::all)
		return detail::handle<Answer>(&attr, std::forward<Body>(body), std::forward<Clauses>(clauses)...);
	else
		return detail::anything();
}

#undef WEFT__SAY_EXCEPTION
#undef WEFT__SAY_BODY
#undef WEFT__SAY_CLAUSES
#undef WEFT__SAY_RETURN
#undef WEFT__SAY_FAILURE
#undef WEFT__SAY_ABORT
#undef WEFT__SAY_GENERAL
#undef WEFT__SAY_MULTI

} // namespace weft

#endif // WEFT_CXX_CLAUSES_HPP
