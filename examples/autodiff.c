/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * autodiff.c: reverse-mode differentiation by nested handlers. A formula performs its arithmetic as effects. One
 * handler evaluates it. Another differentiates it: it keeps the derivative of each intermediate result in a local
 * variable, lets the rest of the formula run, and propagates backwards when that returns; its stack is the tape. It
 * performs its own arithmetic as effects, too, so that the enclosing evaluator sees every operation.
 */
#include <stdio.h>
#include <weft/weft.h>

#include "must.h"

/* doc: begin numbers */
/* A number of the formula: its value, and a pointer to the sum of its derivative. */
typedef struct number {
	double value;
	double *derivative;
} number_t;

/* The effects that formulas perform … */
WEFT_FAMILY(formula, (number_t, constant, double, value), (number_t, negative, number_t, a),
	    (number_t, sum, number_t, a, number_t, b), (number_t, product, number_t, a, number_t, b));
/* … and the effects that the differentiating handler performs. */
WEFT_FAMILY(arithmetic, (double, add, double, a, double, b), (double, multiply, double, a, double, b));
/* doc: end */

/* doc: begin differentiate */
static number_t number(double value, double *derivative)
{
	return (number_t){value, derivative};
}

static void accumulate(number_t a, double d)
{
	*a.derivative = add(*a.derivative, d);
}

static void differentiate(weft_coro_t *k)
{
	weft_request_t r = weft_resume(k, NULL, weft_handles(formula));
	double d = 0; /* derivative of the result with respect to this operation */

	switch (weft_op(formula, r)) {
	case weft_case(constant):
		weft_reply(constant, r, number(weft_args(constant, r)->value, &d));
		differentiate(k);
		break;
	case weft_case(negative): {
		number_t a = weft_args(negative, r)->a;

		weft_reply(negative, r, number(multiply(-1, a.value), &d));
		differentiate(k);
		accumulate(a, multiply(-1, d));
		break;
	}
	case weft_case(sum): {
		number_t a = weft_args(sum, r)->a, b = weft_args(sum, r)->b;

		weft_reply(sum, r, number(add(a.value, b.value), &d));
		differentiate(k);
		accumulate(a, d);
		accumulate(b, d);
		break;
	}
	case weft_case(product): {
		number_t a = weft_args(product, r)->a, b = weft_args(product, r)->b;

		weft_reply(product, r, number(multiply(a.value, b.value), &d));
		differentiate(k);
		accumulate(a, multiply(b.value, d));
		accumulate(b, multiply(a.value, d));
	}
	}
}
/* doc: end */

struct problem {
	number_t (*f)(number_t x);
	double x, value, derivative;
};

/* The innermost coroutine: evaluates the formula and seeds the way back. */
static void *evaluate_formula(void *arg)
{
	struct problem *problem = arg;
	number_t y = problem->f(number(problem->x, &problem->derivative));

	problem->value = y.value;
	*y.derivative = 1;
	return NULL;
}

/* The coroutine in the middle: handles the formula's effects and performs arithmetic effects. */
static void *reverse(void *arg)
{
	weft_coro_t *k = must(weft_create(evaluate_formula, arg));

	differentiate(k);
	weft_delete(k);
	return NULL;
}

/* doc: begin arithmetic */
/* The outermost handler: real arithmetic, counted. Returns the number of operations. */
static int solve(struct problem *problem)
{
	weft_attr_t attr = {.name = "tape", .stack_size = 1024 * 1024}; /* a frame for each operation */
	weft_coro_t *k = must(weft_create_with(reverse, problem, &attr));
	weft_request_t r;
	int operations = 0;

	problem->derivative = 0;
	weft_handle (r, k, arithmetic) {
		if (weft_is(add, r))
			weft_reply(add, r, weft_args(add, r)->a + weft_args(add, r)->b);
		else
			weft_reply(multiply, r, weft_args(multiply, r)->a * weft_args(multiply, r)->b);
		operations++;
	}
	weft_delete(k);
	return operations;
}
/* doc: end */

/* Sum over i = 1 … 100 of the product of i factors -(x + -1), that is of (1 - x)^i. */
static number_t series(number_t x)
{
	number_t factors = constant(1), total = constant(0);

	for (int i = 1; i <= 100; i++) {
		factors = product(factors, negative(sum(x, constant(-1))));
		total = sum(total, factors);
	}
	return total;
}

static number_t cubic(number_t x)
{
	return sum(product(x, product(x, x)), product(constant(-2), x));
}

int main(void)
{
	struct problem problems[] = {{cubic, 3, 0, 0}, {series, 0.5, 0, 0}};

	weft_set_failure_hook(must_not_fail);
	for (int i = 0; i < 2; i++) {
		int operations = solve(&problems[i]);

		printf("f(%g) = %.6f, df/dx = %.6f, %d operations\n", problems[i].x, problems[i].value,
		       problems[i].derivative, operations);
	}
}
