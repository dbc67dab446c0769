/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A5 rapid growth: reverse-mode differentiation by nested handlers.
 *
 * The function is f(x) = Σ_{i ≤ n} Π_{j ≤ i} −(x + (−1)), so df/dx at 0.5 comes near −4. It runs in the innermost
 * coroutine and performs its arithmetic on (value, derivative) pairs. Its handler is recursive: each operation is
 * evaluated by a second family of effects, answered outside, and back-propagated after the inner resume has returned.
 * So the handler's own stack, which is also a coroutine's, grows by a frame per operation.
 */
#include "lab.h"
#include <weft/weft.h>

enum op { NEGATE, ADD, MULTIPLY };

struct number {
	double value;
	double *derivative;
};

/* The effects that the function performs. */
WEFT_FAMILY(differentiated, (struct number, number_of, double, value),
	    (struct number, unary, enum op, op, struct number, x),
	    (struct number, binary, enum op, op, struct number, x, struct number, y));

/* The effects that its handler performs in turn. */
WEFT_FAMILY(evaluated, (double, evaluate_unary, enum op, op, double, x),
	    (double, evaluate_binary, enum op, op, double, x, double, y));

struct problem {
	int64_t n;
	double x, derivative;
};

/* ---- the function ---------------------------------------------------------------------------------------- */

static struct number function(int64_t n, struct number x)
{
	struct number product = number_of(1), sum = number_of(0);
	int64_t i;

	for (i = 0; i < n; i++) {
		struct number factor = unary(NEGATE, binary(ADD, x, number_of(-1)));

		product = binary(MULTIPLY, product, factor);
		sum = binary(ADD, sum, product);
	}
	return sum;
}

struct call {
	int64_t n;
	struct number x;
};

static void *call_function(void *arg)
{
	struct call *call = arg;
	struct number y = function(call->n, call->x);

	*y.derivative = 1;
	return NULL;
}

/* ---- the outermost handler: plain arithmetic ------------------------------------------------------------- */

static double apply(enum op op, double x, double y)
{
	switch (op) {
	case NEGATE:
		return -x;
	case ADD:
		return x + y;
	case MULTIPLY:
		return x * y;
	}
	return 0;
}

/* ---- the handler in between: reverse mode ---------------------------------------------------------------- */

static void differentiate(weft_coro_t *k);

static void handle_unary(weft_coro_t *k, weft_request_t r)
{
	enum op op = weft_args(unary, r)->op;
	struct number x = weft_args(unary, r)->x;
	double derivative = 0;

	weft_reply(unary, r, ((struct number){evaluate_unary(op, x.value), &derivative}));
	differentiate(k);
	*x.derivative += evaluate_unary(op, derivative);
}

static void handle_binary(weft_coro_t *k, weft_request_t r)
{
	enum op op = weft_args(binary, r)->op;
	struct number x = weft_args(binary, r)->x, y = weft_args(binary, r)->y;
	double derivative = 0, dx = 1, dy = 1;

	weft_reply(binary, r, ((struct number){evaluate_binary(op, x.value, y.value), &derivative}));
	differentiate(k);
	if (op == MULTIPLY) {
		dx = y.value;
		dy = x.value;
	}
	*x.derivative = evaluate_binary(ADD, *x.derivative, evaluate_binary(MULTIPLY, derivative, dx));
	*y.derivative = evaluate_binary(ADD, *y.derivative, evaluate_binary(MULTIPLY, derivative, dy));
}

static void handle_number(weft_coro_t *k, weft_request_t r)
{
	double derivative = 0;

	weft_reply(number_of, r, ((struct number){weft_args(number_of, r)->value, &derivative}));
	differentiate(k);
}

static void differentiate(weft_coro_t *k)
{
	weft_request_t r = weft_resume(k, NULL, weft_handles(differentiated));

	switch (weft_op(differentiated, r)) {
	case weft_case(number_of):
		handle_number(k, r);
		break;
	case weft_case(unary):
		handle_unary(k, r);
		break;
	case weft_case(binary):
		handle_binary(k, r);
		break;
	default: /* the function has returned */
		break;
	}
}

static void *solve(void *arg)
{
	struct problem *p = arg;
	double derivative = 0;
	struct call call = {p->n, {p->x, &derivative}};
	weft_coro_t *k = weft_create(call_function, &call);

	if (!k)
		lab_die("weft_create");
	differentiate(k);
	weft_delete(k);
	p->derivative = derivative;
	return NULL;
}

static double run(int64_t n, double x)
{
	weft_attr_t attr = {.name = "solve", .stack_size = 1024 * 1024};
	struct problem p = {n, x, 0};
	weft_coro_t *k = weft_create_with(solve, &p, &attr);
	weft_request_t r;

	if (!k)
		lab_die("weft_create_with");
	weft_handle (r, k, evaluated) {
		if (weft_is(evaluate_unary, r)) {
			double x = weft_args(evaluate_unary, r)->x;

			weft_reply(evaluate_unary, r, apply(weft_args(evaluate_unary, r)->op, x, 0));
		} else {
			double x = weft_args(evaluate_binary, r)->x, y = weft_args(evaluate_binary, r)->y;

			weft_reply(evaluate_binary, r, apply(weft_args(evaluate_binary, r)->op, x, y));
		}
	}
	weft_delete(k);
	return p.derivative;
}

int main(int argc, char **argv)
{
	int64_t n = lab_number(argc, argv, "n", 100), laps = lab_number(argc, argv, "laps", 1), i;
	double derivative = 0;
	char text[32];

	lab_start();
	for (i = 0; i < laps; i++)
		derivative = run(n, 0.5);
	lab_stop();
	snprintf(text, sizeof(text), "%.6f", derivative);
	return lab_report_text((uint64_t)laps, text);
}
