/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Values of every class that live in registers, or just outside of the stack pointer, while coroutines switch. */
#include <stdarg.h>
#include <string.h>

#include "suite.h"

/* Other code that uses all registers runs between a suspension and its end. */
static void spoil(void)
{
#if defined(__aarch64__)
#define ZERO(n) "mov x" #n ", #0\n\tmovi v" #n ".2d, #0\n\t"
	__asm__ volatile(ZERO(0) ZERO(1) ZERO(2) ZERO(3) ZERO(4) ZERO(5) ZERO(6) ZERO(7) ZERO(8) ZERO(9) ZERO(10)
			     ZERO(11) ZERO(12) ZERO(13) ZERO(14) ZERO(15) ZERO(16) ZERO(17) ZERO(19) ZERO(20) ZERO(21)
				 ZERO(22) ZERO(23) ZERO(24) ZERO(25) ZERO(26) ZERO(27) ZERO(28)
			 :
			 :
			 : "x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13",
			   "x14", "x15", "x16", "x17", "x19", "x20", "x21", "x22", "x23", "x24", "x25", "x26", "x27",
			   "x28", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12",
			   "v13", "v14", "v15", "v16", "v17", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26",
			   "v27", "v28", "memory");
#elif defined(__riscv)
	__asm__ volatile(
	    "li ra, 0\n\tli t0, 0\n\tli t1, 0\n\tli t2, 0\n\tli s1, 0\n\tli a0, 0\n\tli a1, 0\n\tli a2, 0\n\t"
	    "li a3, 0\n\tli a4, 0\n\tli a5, 0\n\tli a6, 0\n\tli a7, 0\n\tli s2, 0\n\tli s3, 0\n\tli s4, 0\n\t"
	    "li s5, 0\n\tli s6, 0\n\tli s7, 0\n\tli s8, 0\n\tli s9, 0\n\tli s10, 0\n\tli s11, 0\n\t"
	    "li t3, 0\n\tli t4, 0\n\tli t5, 0\n\tli t6, 0\n\tfmv.d.x fs0, zero\n\tfmv.d.x fs1, zero\n\t"
	    "fmv.d.x fs2, zero\n\tfmv.d.x fs3, zero\n\tfmv.d.x fs4, zero\n\tfmv.d.x fs5, zero\n\t"
	    "fmv.d.x fs6, zero\n\tfmv.d.x fs7, zero\n\tfmv.d.x fs8, zero\n\tfmv.d.x fs9, zero\n\t"
	    "fmv.d.x fs10, zero\n\tfmv.d.x fs11, zero\n\tfmv.d.x fa0, zero\n\tfmv.d.x ft0, zero"
	    :
	    :
	    : "ra", "t0", "t1", "t2", "s1", "a0", "a1", "a2", "a3", "a4", "a5", "a6", "a7", "s2", "s3", "s4", "s5",
	      "s6", "s7", "s8", "s9", "s10", "s11", "t3", "t4", "t5", "t6", "fs0", "fs1", "fs2", "fs3", "fs4", "fs5",
	      "fs6", "fs7", "fs8", "fs9", "fs10", "fs11", "fa0", "ft0", "memory");
#else
	__asm__ volatile("xorl %%eax, %%eax\n\tmovq %%rax, %%rcx\n\tmovq %%rax, %%rdx\n\tmovq %%rax, %%rsi\n\t"
			 "movq %%rax, %%rdi\n\tmovq %%rax, %%r8\n\tmovq %%rax, %%r9\n\tmovq %%rax, %%r10\n\t"
			 "movq %%rax, %%r11\n\tmovq %%rax, %%r12\n\tmovq %%rax, %%r13\n\tmovq %%rax, %%r14\n\t"
			 "movq %%rax, %%r15\n\t"
			 "pxor %%xmm0, %%xmm0\n\tpxor %%xmm1, %%xmm1\n\tpxor %%xmm2, %%xmm2\n\tpxor %%xmm3, %%xmm3\n\t"
			 "pxor %%xmm4, %%xmm4\n\tpxor %%xmm5, %%xmm5\n\tpxor %%xmm6, %%xmm6\n\tpxor %%xmm7, %%xmm7\n\t"
			 "pxor %%xmm8, %%xmm8\n\tpxor %%xmm9, %%xmm9\n\tpxor %%xmm10, %%xmm10\n\t"
			 "pxor %%xmm11, %%xmm11\n\tpxor %%xmm12, %%xmm12\n\tpxor %%xmm13, %%xmm13\n\t"
			 "pxor %%xmm14, %%xmm14\n\tpxor %%xmm15, %%xmm15\n\t"
			 "fninit"
			 :
			 :
			 : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15",
			   "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10",
			   "xmm11", "xmm12", "xmm13", "xmm14", "xmm15", "cc", "memory");
#endif
}

static void *spoiler(void *argument)
{
	while (true) {
		spoil();
		weft_suspend(argument);
	}
	return argument;
}

static weft_coro_t *other;

/* One switch in each direction, from the place where it is inlined: into `other` and back, or out of this coroutine. */
static inline __attribute__((always_inline)) void there_and_back(void)
{
	if (weft_current() && weft_current() != other)
		weft_suspend(NULL);
	else
		weft_resume(other, NULL, WEFT_HANDLE_NONE);
}

/* ---- integers ------------------------------------------------------------------------------------------------ */

static void integers(void)
{
	uint64_t a = OPAQUE(1ull), b = a * 3, c = b * 5, d = c * 7, e = d * 11, f = e * 13, g = f * 17, h = g * 19;
	uint64_t i = h * 23, j = i * 29, k = j * 31, l = k * 37, m = l * 41, n = m * 43, o = n * 47, p = o * 53;
	uint64_t sum = a + b + c + d + e + f + g + h + i + j + k + l + m + n + o + p;

	for (int round = 0; round < 3; round++) {
		there_and_back();
		CHECK(a + b + c + d + e + f + g + h + i + j + k + l + m + n + o + p == sum);
		a = OPAQUE(a), b += a - 1, c = OPAQUE(c), d = OPAQUE(d), p = OPAQUE(p);
		there_and_back();
		CHECK((a ^ b ^ c ^ d ^ e ^ f ^ g ^ h) == (1ull ^ 3 ^ 15 ^ 105 ^ 1155 ^ 15015 ^ 255255 ^ 4849845));
		CHECK(p == o * 53 && o == n * 47 && n == m * 43 && m == l * 41 && l == k * 37);
	}
}

static void wide_integers(void)
{
	__int128 x = (__int128)OPAQUE(0x123456789abcdefll) << 64 | OPAQUE(0xfedcba987654321ull), y = x * 3;
	unsigned char narrow = OPAQUE((unsigned char)200);
	_Bool flag = OPAQUE((_Bool)1);

	there_and_back();
	CHECK(y - x == 2 * x);
	CHECK((uint64_t)(x >> 64) == 0x123456789abcdefull && (uint64_t)x == 0xfedcba987654321ull);
	there_and_back();
	CHECK(narrow == 200 && flag);
	CHECK((uint64_t)(y >> 64) == (uint64_t)(x * 3 >> 64));
}

/* ---- floating point and vectors --------------------------------------------------------------------------------- */

static void doubles(void)
{
	double a = OPAQUE(1.5), b = a * 2, c = b * 2, d = c * 2, e = d * 2, f = e * 2, g = f * 2, h = g * 2, i = h * 2;
	double j = i * 2, k = j * 2, l = k * 2, m = l * 2, n = m * 2, o = n * 2, p = o * 2, q = p * 2;
	float small = OPAQUE(0.25f);

	for (int round = 0; round < 3; round++) {
		there_and_back();
		CHECK(a + b + c + d + e + f + g + h == 1.5 * 255);
		there_and_back();
		CHECK(i + j + k + l + m + n + o + p + q == 1.5 * 256 * 511);
		CHECK(small == 0.25f);
	}
}

static void long_doubles(void)
{
	long double a = OPAQUE(1.0L), b = a / 3, c = b / 7, d = c * 1e300L, e = d * 1e300L, f = e + a;

	there_and_back();
	CHECK(b * 3 == a && a == 1.0L);
	there_and_back();
	CHECK(e / d == 1e300L && f - e < 1.0L + e * 1e-15L);
	CHECK(c * 7 - b < 1e-18L && b - c * 7 < 1e-18L);
	/* The register stack must be empty at a switch: eight more values fit after it. */
	there_and_back();
	CHECK(a + (b + (c + (a + (b + (c + (a + b)))))) > 0);
}

typedef int vector4 __attribute__((vector_size(16)));
typedef double vector8 __attribute__((vector_size(64)));

static bool same4(vector4 x, int first)
{
	return x[0] == first && x[1] == first + 1 && x[2] == first + 2 && x[3] == first + 3;
}

static void vectors(void)
{
	vector4 a = OPAQUE(((vector4){1, 2, 3, 4})), b = a + 10, c = a + 20, d = a + 30, e = a + 40, f = a + 50;
	vector8 wide = OPAQUE(((vector8){1, 2, 3, 4, 5, 6, 7, 8})), wider = wide * wide;

	for (int round = 0; round < 3; round++) {
		there_and_back();
		CHECK(same4(a, 1) && same4(b, 11) && same4(c, 21) && same4(d, 31) && same4(e, 41) && same4(f, 51));
		there_and_back();
		for (int i = 0; i < 8; i++)
			CHECK(wider[i] == (i + 1) * (i + 1));
	}
}

/* Code for the largest vectors, if this machine has them. */
#if defined(__x86_64__) && (defined(__clang__) || __GNUC__ >= 12)
__attribute__((target("avx2"))) static void avx2_vectors(void)
{
	typedef long vector __attribute__((vector_size(32)));
	vector a = OPAQUE(((vector){1, 2, 3, 4})), b = a * 3, c = a * 5, d = b * 7;

	there_and_back();
	for (int i = 0; i < 4; i++)
		CHECK(a[i] == i + 1 && b[i] == 3 * (i + 1) && c[i] == 5 * (i + 1) && d[i] == 21 * (i + 1));
}
#endif

/* ---- calls ------------------------------------------------------------------------------------------------------ */

struct large {
	uint64_t word[9];
};
struct pair {
	double real;
	uint64_t whole;
};

static __attribute__((noinline)) struct large returns_large(uint64_t seed)
{
	struct large x;

	for (int i = 0; i < 9; i++) {
		x.word[i] = seed + (uint64_t)i;
		there_and_back();
	}
	return x;
}

static __attribute__((noinline)) struct pair returns_pair(uint64_t seed)
{
	struct pair x = {(double)seed / 2, seed};

	there_and_back();
	return x;
}

static __attribute__((noinline)) long sum_of(int count, ...)
{
	va_list arguments, again;
	long sum = 0;

	va_start(arguments, count);
	va_copy(again, arguments);
	for (int i = 0; i < count; i++) {
		sum += va_arg(arguments, int);
		there_and_back();
		sum += (long)va_arg(arguments, double);
	}
	for (int i = 0; i < count; i++) {
		there_and_back();
		sum += va_arg(again, int);
		sum += (long)va_arg(again, double);
	}
	va_end(arguments);
	va_end(again);
	return sum;
}

static void calls(void)
{
	struct large large = returns_large(OPAQUE(70ull));
	struct pair pair = returns_pair(OPAQUE(9ull));
	char text[64];

	for (int i = 0; i < 9; i++)
		CHECK(large.word[i] == 70 + (uint64_t)i);
	CHECK(pair.real == 4.5 && pair.whole == 9);
	CHECK(sum_of(6, 1, 10.0, 2, 20.0, 3, 30.0, 4, 40.0, 5, 50.0, 6, 60.0) == 2 * 231);
	there_and_back();
	snprintf(text, sizeof text, "%d %.2f %s %Lg", OPAQUE(7), OPAQUE(2.5), "text", OPAQUE(0.125L));
	CHECK(!strcmp(text, "7 2.50 text 0.125"));
}

static void *waits(void *argument)
{
	for (;;)
		weft_suspend(argument);
}

/*
 * Leaf functions keep locals below the stack pointer, where a switch must not write. This function calls nothing: it is
 * the inlined fast path of weft_resume.
 */
static __attribute__((noinline)) uint64_t red_zone(weft_coro_t *k, weft_coro_t *self, uint64_t seed)
{
	struct weft_link *link = &k->link;
	volatile uint64_t low[15]; /* up to the stack pointer, for any alignment */
	uint64_t sum = 0;

	for (int i = 0; i < 15; i++)
		low[i] = seed * (uint64_t)(i + 1);
	weft__become(k);
	weft_arch_resume(&link, NULL);
	weft__become(self);
	for (int i = 0; i < 15; i++)
		sum += low[i];
	return sum;
}

static void red_zones(weft_coro_t *self)
{
	weft_coro_t *k = weft_create(waits, NULL);

	weft_resume(k, NULL, WEFT_HANDLE_NONE); /* so that it knows its resumer */
	CHECK(red_zone(k, self, OPAQUE(3ull)) == 3 * 120);
	weft_delete(k);
}

/* A suspending function has no red zone, although it calls nothing either. How far above the stack pointer are the
 * locals? */
static __attribute__((noinline)) intptr_t no_red_zone(weft_coro_t *self, uint64_t seed)
{
	volatile uint64_t low[12];
	intptr_t sp;

	for (int i = 0; i < 12; i++)
		low[i] = seed * (uint64_t)(i + 1);
#if defined(__aarch64__)
	__asm__ volatile("mov %0, sp" : "=r"(sp));
#elif defined(__riscv)
	__asm__ volatile("mv %0, sp" : "=r"(sp));
#else
	__asm__ volatile("movq %%rsp, %0" : "=r"(sp));
#endif
	weft__yield(self, self, &weft_suspended, NULL);
	for (int i = 0; i < 12; i++)
		if (low[i] != seed * (uint64_t)(i + 1))
			return -1;
	return (intptr_t)low - sp;
}

/* More integers: no register is saved because of a call, only because of the switch. */
static __attribute__((noinline)) bool leaf_integers(weft_coro_t *self, uint64_t a)
{
	uint64_t b = a * 3, c = a ^ 5, d = a + 7, e = a * 11, f = a ^ 13, g = a + 17, h = a * 19, i = a ^ 23,
		 j = a + 29;

	weft__yield(self, self, &weft_suspended, NULL);
	return b == a * 3 && c == (a ^ 5) && d == a + 7 && e == a * 11 && f == (a ^ 13) && g == a + 17 && h == a * 19 &&
	       i == (a ^ 23) && j == a + 29;
}

static __attribute__((noinline)) double leaf_doubles(weft_coro_t *self, double a)
{
	double b = a * 2, c = a * 3, d = a * 5, e = a * 7, f = a * 11, g = a * 13;

	weft__yield(self, self, &weft_suspended, NULL);
	b += a, c += b, d += c, e += d, f += e, g += f;
	weft__yield(self, self, &weft_suspended, NULL);
	return b + c + d + e + f + g;
}

static __attribute__((noinline)) vector4 leaf_vectors(weft_coro_t *self, vector4 a)
{
	vector4 b = a * 2, c = a * 3, d = a * 5, e = a * 7;

	weft__yield(self, self, &weft_suspended, NULL);
	b ^= c, d ^= e;
	weft__yield(self, self, &weft_suspended, NULL);
	return a + b + c + d + e;
}

static void leaves(weft_coro_t *self)
{
	vector4 sums = leaf_vectors(self, OPAQUE(((vector4){1, 2, 3, 4})));

	red_zones(self);
	CHECK(no_red_zone(self, OPAQUE(3ull)) >= 0);
	CHECK(leaf_integers(self, OPAQUE(1000001ull)));
	CHECK(leaf_doubles(self, OPAQUE(1.0)) == 3 + 6 + 11 + 18 + 29 + 42);
	for (int i = 0; i < 4; i++) {
		int a = i + 1;

		CHECK(sums[i] == a + (a * 2 ^ a * 3) + a * 3 + (a * 5 ^ a * 7) + a * 7);
	}
}

static __attribute__((noinline)) uint64_t moving_frame(size_t bytes)
{
	char array[bytes], *more;
	uint64_t sum = 0;

	memset(array, 1, bytes);
	for (int round = 0; round < 3; round++) {
		more = __builtin_alloca(bytes + (size_t)round * 48);
		memset(more, 2, bytes);
		there_and_back();
		for (size_t i = 0; i < bytes; i++)
			sum += (uint64_t)(array[i] + more[i]);
		there_and_back();
	}
	return sum;
}

/* An aligned frame has the stack pointer and the frame pointer far apart, and clang keeps locals by rbx. */
static __attribute__((noinline)) uint64_t aligned_frame(size_t bytes)
{
	_Alignas(128) volatile uint64_t local[4] = {1, 2, 3, 4};
	volatile char *array = __builtin_alloca(bytes);

	array[0] = 5, array[bytes - 1] = 6;
	there_and_back();
	CHECK((uintptr_t)local % 128 == 0);
	there_and_back();
	return local[0] + local[1] + local[2] + local[3] + (uint64_t)array[0] + (uint64_t)array[bytes - 1];
}

static void all(void)
{
	integers();
	wide_integers();
	doubles();
	long_doubles();
	vectors();
#if defined(__x86_64__) && (defined(__clang__) || __GNUC__ >= 12)
	if (__builtin_cpu_supports("avx2"))
		avx2_vectors();
#endif
	calls();
	CHECK(moving_frame(OPAQUE((size_t)77)) == 77 * 9);
	CHECK(aligned_frame(OPAQUE((size_t)33)) == 21);
}

static void *inside(void *argument)
{
	all();
	leaves(weft_current());
	return argument;
}

/* Repeats the checks through weft_switch. */
static weft_coro_t *ring[3];

static void *member(void *argument)
{
	size_t me = (size_t)argument;
	double x = OPAQUE((double)me + 0.5);
	uint64_t y = OPAQUE((uint64_t)me * 1000), z = y + 1;
	vector4 v = OPAQUE(((vector4){(int)me, (int)me + 1, (int)me + 2, (int)me + 3}));

	for (uint64_t i = 0; i < 200; i++) {
		spoil();
		y += (uint64_t)weft_switch(ring[(me + 1) % 3], (void *)(uintptr_t)1);
		z++;
	}
	CHECK(y == me * 1000 + 200 && z == me * 1000 + 201 && x == (double)me + 0.5 && same4(v, (int)me));
	return argument;
}

static void sideways(void)
{
	weft_coro_t *k;
	weft_request_t r;

	for (size_t i = 0; i < 3; i++)
		ring[i] = make(member, (void *)i);
	k = ring[0];
	r = weft_resume_any(&k, NULL, WEFT_HANDLE_NONE);
	CHECK(weft_returned(r) && k == ring[(size_t)r.payload]);
	for (size_t i = 0; i < 3; i++)
		if (weft_state(ring[i]) == WEFT_SUSPENDED)
			CHECK(weft_returned(weft_resume(ring[i], (void *)(uintptr_t)1, WEFT_HANDLE_NONE)));
	for (size_t i = 0; i < 3; i++)
		weft_delete(ring[i]);
}

void test_registers(void)
{
	weft_coro_t *k;

	other = make(spoiler, NULL);
	all(); /* outside: resumes */
	k = make(inside, NULL);
	do
		spoil();
	while (!weft_returned(weft_resume(k, NULL, WEFT_HANDLE_NONE)));
	weft_delete(k);
	weft_delete(other);
	sideways();
}
