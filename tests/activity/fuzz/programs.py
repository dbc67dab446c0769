# SPDX-License-Identifier: MIT OR Apache-2.0
"""Random C programs with features that csmith lacks: pointers to functions, variable arguments, arrays of variable length and alloca in loops,
structures, vectors, long double, complex numbers and __int128 by value, recursion, goto, labels as values, setjmp, long loops, callbacks of
libc, addresses of variables that other activities get, activities within functions, and blocks of no_yield that notice a switch.

Most programs are small, some are large: the compiler's time dominates, and many small programs combine few features in more ways
than a large program. A file holds many of them, which share their beginning. Without the pass (FUZZ_PASS is not defined) a block
of `activate` runs at once. All is defined by C, or by clang, so both builds print the same output; the pass's build also prints a switch
inside no_yield, which only it can see.
"""
import collections
import random

Size = collections.namedtuple("Size", "kinds cases lines statements depth")
# How many kinds of functions beside `word`, how many cases, lines, statements at the top, and blocks within blocks, at most.
SIZES = {"tiny": Size(0, 1, 3, 1, 1), "small": Size(1, 1, 5, 2, 2), "middle": Size(3, 2, 20, 4, 3), "large": Size(8, 3, 90, 5, 4)}

HEAD = r"""
#include <alloca.h>
#include <complex.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint64_t u64;
typedef uint32_t u32;
typedef __int128 i128;
typedef u32 vec4 __attribute__((vector_size(16)));
typedef double dvec4 __attribute__((vector_size(32)));
typedef double dvec8 __attribute__((vector_size(64)));

struct ctx { u64 hash; int fuel; };
struct small { u32 a, b; };
struct mixed { double d; u64 u; };
struct floats { float a, b, c; };
struct bits { unsigned a : 3; signed b : 11; u64 c : 33; unsigned d : 7; };
struct big { u64 w[9]; double d; struct bits b; };
struct over { u64 w[3]; } __attribute__((aligned(64)));
struct ldbl { long double x; };

extern unsigned long fuzz_turns;
static int broken;

#ifdef FUZZ_PASS
#include <weft/activity.h>
#define ATOMIC weft_no_yield
#define YIELD() (weft_activity_yield(), weft_activity_give_way())
#define CALM weft_no_implicit_yield
#else
#define ATOMIC
#define YIELD() ((void)0)
#define CALM
#endif

static inline void mix(struct ctx *c, u64 x)
{
	c->hash = (c->hash ^ x) * 0x9E3779B97F4A7C15u + (c->hash >> 29);
}
static inline u64 hd(double d)
{
	return d > -1e15 && d < 1e15 ? (u64)(int64_t)(d * 4) : 7;
}
static inline double dd(u64 x)
{
	return (double)(x % 4001) * 0.25 - 300;
}
static int ascending(const void *a, const void *b)
{
	u64 x = *(const u64 *)a, y = *(const u64 *)b;
	for (unsigned i = 0; i < (x & 3); i++)
		y ^= 0;
	return x < y ? -1 : x > y;
}
"""

INT = ["u64 {n}(struct ctx *c, u64 a, u64 b)", "(c, {0}, {1})", "u64"]
# name: (declaration, how it is called, how its result becomes a u64)
KINDS = {
    "word": ("u64 {n}(struct ctx *c, u64 a, u64 b)", "{n}(c, {0}, {1})", "{e}"),
    "small": ("struct small {n}(struct ctx *c, struct small s, u64 a, u64 b)", "{n}(c, (struct small){{(u32)({0}), 7}}, {0}, {1})", "({{struct small r = {e}; r.a * 3u + (u64)r.b;}})"),
    "mixed": ("struct mixed {n}(struct mixed s, struct ctx *c, u64 a, u64 b)", "{n}((struct mixed){{dd({0}), {1}}}, c, {0}, {1})", "({{struct mixed r = {e}; hd(r.d) + r.u;}})"),
    "floats": ("struct floats {n}(struct ctx *c, struct floats s, double d, u64 a, u64 b)", "{n}(c, (struct floats){{(float)dd({0}), 1, 2}}, dd({1}), {0}, {1})", "({{struct floats r = {e}; hd(r.a) + hd(r.b) * 5 + hd(r.c);}})"),
    "big": ("struct big {n}(struct ctx *c, struct big s, u64 a, u64 b)", "{n}(c, (struct big){{.w = {{{0}, {1}, 3}}, .d = dd({0}), .b = {{1, -2, {1} & 0xffffff, 4}}}}, {0}, {1})", "({{struct big r = {e}; r.w[0] + r.w[8] * 7 + hd(r.d) + r.b.a + (u64)r.b.b + r.b.c + r.b.d;}})"),
    "over": ("struct over {n}(struct ctx *c, u64 a, struct over s, u64 b)", "{n}(c, {0}, (struct over){{{{{0}, {1}, 5}}}}, {1})", "({{struct over r = {e}; r.w[0] ^ r.w[1] * 3 ^ r.w[2];}})"),
    "ldbl": ("long double {n}(struct ctx *c, long double x, u64 a, u64 b)", "{n}(c, (long double)dd({0}) / 3, {0}, {1})", "hd((double)({e}))"),
    "ldst": ("struct ldbl {n}(struct ldbl s, struct ctx *c, u64 a, u64 b)", "{n}((struct ldbl){{(long double)dd({0}) / 7}}, c, {0}, {1})", "hd((double)({e}).x)"),
    "complex": ("double _Complex {n}(struct ctx *c, double _Complex z, u64 a, u64 b)", "{n}(c, dd({0}) + 2.0 * I, {0}, {1})", "({{double _Complex r = {e}; hd(creal(r)) + hd(cimag(r)) * 3;}})"),
    "lcomplex": ("long double _Complex {n}(struct ctx *c, long double _Complex z, u64 a, u64 b)", "{n}(c, dd({0}) + 2.0 * I, {0}, {1})", "({{long double _Complex r = {e}; hd((double)creall(r)) + hd((double)cimagl(r)) * 3;}})"),
    "wide": ("i128 {n}(struct ctx *c, u64 a, u64 b, i128 x, u32 k, i128 y)", "{n}(c, {0}, {1}, ((i128)({0}) << 61) + 5, 9, -(i128)({1}))", "({{i128 r = {e}; (u64)r ^ (u64)(r >> 64);}})"),
    "vector": ("vec4 {n}(struct ctx *c, vec4 x, u64 a, u64 b)", "{n}(c, (vec4){{(u32)({0}), 1, 2, (u32)({1})}}, {0}, {1})", "({{vec4 r = {e}; r[0] + (u64)r[1] * 3 + r[2] * 5u + r[3];}})"),
    "vector4": ("dvec4 {n}(dvec4 x, struct ctx *c, u64 a, u64 b, dvec4 y)", "{n}((dvec4){{dd({0}), 1, 2, dd({1})}}, c, {0}, {1}, (dvec4){{1, 2, 3, dd({0})}})", "({{ dvec4 r = {e}; hd(r[0]) + hd(r[1]) * 3 + hd(r[2]) * 5u + hd(r[3]);}})"),
    "vector8": ("dvec8 {n}(struct ctx *c, dvec8 x, u64 a, dvec8 y, u64 b)", "{n}(c, (dvec8){{dd({0}), 1, 2, 3, 4, 5, 6, dd({1})}}, {0}, (dvec8){{1, 2, 3, 4, 5, 6, dd({0})}}, {1})", "({{ dvec8 r = {e}; hd(r[0]) + hd(r[1]) * 3 + hd(r[4]) * 5u + hd(r[6]) * 9 + hd(r[7]);}})"),
    "many": ("u64 {n}(struct ctx *c, u64 a, u64 b, u32 e, uint8_t f, u64 g, short h, u64 i, double d0, double d1, float d2, double d3, double d4, double d5, double d6, double d7, double d8, float d9, u64 j, struct mixed k, u64 l)",
             "{n}(c, {0}, {1}, 3, 4, 5, -6, 7, 1.5, 2.5, 3.5f, 4, 5, 6, 7, 8, dd({0}), 9.5f, {1}, (struct mixed){{dd({1}), {0}}}, 11)", "{e}"),
    "variadic": ("u64 {n}(struct ctx *c, u64 a, u64 b, int count, ...)", None, "{e}"),
    "out": ("void {n}(struct ctx *c, u64 *restrict out, const u64 *restrict in, u64 a, u64 b)", None, "{e}"),
}
RESULTS = {  # how a function of the kind returns its values
    "word": "return {e};", "small": "s.a += (u32)({e}); s.b ^= (u32)a; return s;", "mixed": "s.u += {e}; s.d += dd(a); return s;",
    "floats": "s.a += (float)dd({e}); s.c += (float)d; return s;",
    "big": "s.w[8] = {e}; s.b.b = (int)(a & 511); s.b.c += b & 0xffff; s.d += 1; return s;", "over": "s.w[2] += {e}; s.w[1] ^= a; return s;",
    "ldbl": "return x + (long double)dd({e}) / 3;", "ldst": "s.x += (long double)dd({e}); return s;", "complex": "return z * (1.0 + 0.5 * I) + dd({e});",
    "lcomplex": "return z + dd({e}) * I;", "wide": "return x * 3 + y + (i128)({e}) * k;", "vector": "return x + (vec4){{(u32)({e}), (u32)a, 3, 4}};",
    "vector4": "return x + y * 2 + (dvec4){{dd({e}), 0, dd(a), 1}};",
    "vector8": "return x * 2 + y + (dvec8){{dd({e}), 0, dd(a), 1, 0, 2, dd(b), 1}};",
    "many": "return ({e}) + e + f + g + (u64)h + i + hd(d0 + d1 + d2 + d3 + d4 + d5 + d6 + d7 + d8 + d9) + j + hd(k.d) + k.u + l;",
    "variadic": "return {e};", "out": "*out = {e};",
}
EARLY = {"out": "{ *out = a; return; }", "small": "return s;", "mixed": "return s;", "floats": "return s;", "big": "return s;", "over": "return s;", "ldbl": "return x;",
         "ldst": "return s;", "complex": "return z;", "lcomplex": "return z;", "wide": "return x;", "vector": "return x;", "vector4": "return x;", "vector8": "return x;"}


class Function:
    """Its text, made statement by statement."""

    def __init__(self, maker, name, kind, top):
        self.maker, self.r, self.name, self.kind, self.top = maker, maker.r, name, kind, top
        self.variables, self.used, self.depth, self.atomic, self.handles = ["a", "b"], 0, 0, 0, 0
        self.jumps = False
        self.lines = []

    def new(self, prefix="t"):
        self.used += 1
        return f"{prefix}{self.used}"

    def put(self, text):
        self.lines.append("\t" * (self.depth + 1) + text)

    def value(self, deep=0):
        r = self.r
        if deep > 2 or r.random() < 0.45:
            return r.choice([r.choice(self.variables), r.choice(self.variables), str(r.randrange(1, 1000)) + "u"])
        x, y = self.value(deep + 1), self.value(deep + 1)
        return r.choice([f"({x} + {y})", f"({x} ^ {y})", f"({x} * {y})", f"({x} - {y})", f"({x} >> ({y} & 15))", f"({x} / ({y} | 1))",
                         f"({x} < {y} ? {x} : {y})", f"(u64)(u32){x}", f"({x} % 97u)"])

    def variable(self):
        return self.r.choice(self.variables)

    def assignable(self):
        return self.r.choice([v for v in self.variables if v not in self.maker.constant] or ["a"])

    def call(self, extra=()):
        """A call as an expression of u64."""
        maker = self.maker
        names = [n for n, k in maker.functions if (self.top or n not in maker.tops) and not (self.atomic and n in maker.tops)]
        name = self.r.choice(names)
        kind = dict(maker.functions)[name]
        x, y = self.value(1), self.value(1)
        if self.r.random() < 0.3:
            at = f"&{name}" if self.r.random() < 0.5 else f"pointer_{name}"
            if at.startswith("pointer"):
                maker.pointers.add(name)
            else:
                at = f"(*({at}))"
            name = at
        if kind == "variadic":
            count = self.r.randrange(0, 12)
            words = "".join(", " + self.r.choice(["(u64)({v})", "(u64)({v})"]).format(v=self.value(2)) for _ in range(count))
            tail = f", dd({x}), (struct mixed){{dd({y}), {x}}}, (long double)dd({x}), (struct big){{.w = {{{x}}}}}" if count else ""
            return f"{name}(c, {x}, {y}, {count}{words}{tail})"
        if kind == "out":
            v = self.assignable()
            return f"({{u64 o = 0, i = {x}; {name}(c, &o, &i, {x}, {y}); {v} ^= i; o;}})"
        return KINDS[kind][2].format(e=KINDS[kind][1].format(x, y, n=name))

    # ---- statements

    def block(self, n):
        self.depth += 1
        outer = list(self.variables)
        for _ in range(n):
            self.statement()
        self.variables = outer
        self.depth -= 1

    def braced(self, n):
        self.put("{")
        self.block(n)
        self.put("}")

    def statement(self):
        if len(self.lines) > self.maker.size.lines or self.depth > self.maker.size.depth:
            return self.simple()
        choices = [self.simple] * 5 + [self.called] * 4 + [self.loop] * 3 + [self.branch, self.switch, self.array, self.sized, self.alloca,
                  self.address, self.address, self.pointer, self.computed, self.jump, self.irreducible, self.long_loop, self.long_loop, self.sort,
                  self.no_yield, self.no_yield, self.straight, self.last, self.calm, self.explicit, self.vectors, self.wide, self.bits, self.structure,
                  self.text, self.longs, self.over, self.handed]
        if self.top and not self.atomic and self.handles < 4:
            choices += [self.activate] * 5 + [self.counter] * 2
        self.r.choice(choices)()

    def simple(self):
        if self.r.random() < 0.3:
            t = self.new()
            self.put(f"u64 {t} = {self.value()};")
            self.variables.append(t)
        elif self.r.random() < 0.4:
            self.put(f"mix(c, {self.value()});")
        else:
            self.put(f"{self.assignable()} {self.r.choice(['=', '+=', '^=', '-=', '*='])} {self.value()};")

    def called(self):
        if self.r.random() < 0.5:
            self.put(f"mix(c, {self.call()});")
        else:
            t = self.new()
            self.put(f"u64 {t} = {self.call()};")
            self.variables.append(t)

    def loop(self):
        i, n = self.new("i"), self.r.randrange(1, 6)
        form = self.r.randrange(3)
        self.maker.constant.add(i)
        if form == 0:
            self.put(f"for (u64 {i} = 0; {i} < {n}; {i}++) {{")
        elif form == 1:
            self.put(f"for (u64 {i} = {self.variable()} % {n + 1}; {i} > 0; {i}--) {{")
        else:
            self.put(f"for (u64 {i} = 1; ({i} & {self.variable()} & 7) != 7 && {i} < {n + 2}; {i} += 2) {{")
        outer = list(self.variables)
        self.variables.append(i)
        self.block(self.r.randrange(1, 4))
        if self.r.random() < 0.2:
            self.put(f"\tif ({self.value()} % 5 == 0) {self.r.choice(['break', 'continue'])};")
        self.put("}")
        self.variables = outer

    def branch(self):
        self.put(f"if ({self.value()} & {self.r.choice([1, 2, 4])}) {{")
        self.block(self.r.randrange(1, 3))
        self.put("} else {")
        self.block(self.r.randrange(1, 3))
        self.put("}")

    def switch(self):
        self.put(f"switch ({self.value()} % 6) {{")
        for k in self.r.sample(range(6), 3):
            self.put(f"case {k}: {{")
            self.block(1)
            self.put("}" + self.r.choice([" break;", ""]))
        self.put(f"default: {self.assignable()} += 5;")
        self.put("}")

    def array(self):
        """A local array, used here and by a callee."""
        x, n = self.new("x"), self.r.randrange(2, 12)
        self.put(f"u64 {x}[{n}];")
        self.put(f"for (int k = 0; k < {n}; k++) {x}[k] = {self.value()} + (u64)k;")
        if self.r.random() < 0.6:
            self.put(f"mix(c, sum(c, {x}, {n}));")
        self.called()
        self.put(f"for (int k = 0; k < {n}; k++) mix(c, {x}[k]);")

    def sized(self):
        """An array of variable length in a loop, whose address a callee gets, or not."""
        n, i, x = self.new("n"), self.new("i"), self.new("x")
        self.put(f"for (u64 {i} = 0; {i} < {self.r.randrange(1, 5)}; {i}++) {{")
        self.depth += 1
        outer = list(self.variables)
        self.put(f"u64 {n} = 1 + ({self.value()} + {i}) % {self.r.choice([3, 9, 40])};")
        self.put(f"{self.r.choice(['u64', 'u64', 'struct big', 'struct over'])} {x}[{n}];")
        self.put(f"memset({x}, (int){i}, sizeof {x});")
        if self.r.random() < 0.6:
            self.put(f"mix(c, sum(c, (u64 *){x}, (int)(sizeof {x} / 8)));")
        self.called()
        if self.r.random() < 0.3:
            self.put(f"if ({self.value()} % 3 == 0) {self.r.choice(['break', 'continue'])};")
        self.put(f"mix(c, *(u64 *)((char *){x} + sizeof {x} - 8));")
        self.variables = outer
        self.depth -= 1
        self.put("}")

    def alloca(self):
        p, i = self.new("p"), self.new("i")
        self.put(f"u64 *{p} = NULL;")
        self.put(f"for (u64 {i} = 0; {i} < {self.r.randrange(1, 4)}; {i}++) {{")
        self.depth += 1
        outer = list(self.variables)
        self.put(f"u64 *q = alloca(16 + 8 * ({self.value()} % 20));")
        self.put(f"q[0] = {p} ? {p}[0] + 1 : {self.value()}, q[1] = {i};")
        if self.r.random() < 0.6:
            self.put("mix(c, sum(c, q, 2));")
        self.called()
        self.put(f"{p} = q;")
        self.variables = outer
        self.depth -= 1
        self.put("}")
        self.put(f"mix(c, {p}[0] + {p}[1]);")

    def address(self):
        """A variable that a callee changes, and whose address stays known."""
        t, p = self.new(), self.new("p")
        self.put(f"u64 {t} = {self.value()}, *{p} = &{t};")
        self.put(f"touch(c, &{p}, {self.value()});")
        self.variables.append(t)
        self.called()
        self.put(f"mix(c, *{p}); *{p} += 3;")

    def handed(self):
        """The address of a variable, out of two, through a pointer in memory, into a callee that calls back."""
        s, t, h = self.new(), self.new(), self.new("h")
        self.put(f"u64 {s} = {self.value()}, {t} = {self.value()};")
        self.put(f"struct {{ u64 *at; struct big more; }} {h} = {{{self.value()} & 1 ? &{s} : &{t}, {{{{1, 2}}}}}};")
        self.called()
        self.put(f"*{h}.at += {self.value()};")
        self.put(f"touch(c, &{h}.at, {self.value()});")
        self.variables += [s, t]

    def pointer(self):
        f, words = self.new("f"), [n for n, k in self.maker.functions if k == "word" and n not in self.maker.tops]
        self.maker.pointers.update(words)
        self.put(f"u64 (*{f}[])(struct ctx *, u64, u64) = {{{', '.join('pointer_' + w for w in words)}, leaf}};")
        self.put(f"mix(c, {f}[{self.value()} % {len(words) + 1}](c, {self.value()}, {self.value()}));")

    def computed(self):
        """Labels as values: a little interpreter. Once in a function, and in no scope that a jump must not enter."""
        if self.top or self.atomic or self.jumps:
            return self.simple()
        self.jumps = True
        t, x, l = self.new("table"), self.new("x"), self.new("l")
        self.put(f"static const void *const {t}[] = {{&&{l}_0, &&{l}_1, &&{l}_2, &&{l}_3}};")
        self.put(f"u64 {x} = {self.value()} & 0xfff;")
        self.put(f"goto *{t}[{x} & 3];")
        for k in range(3):
            self.put(f"{l}_{k}: {x} = {x} * 5 / 16 + {k};")
            self.braced(1)
            self.put(f"if ({x} < 4) goto {l}_3;")
            self.put(f"goto *{t}[{x} & 3];")
        self.put(f"{l}_3:;")

    def jump(self):
        l, x = self.new("l"), self.new("x")
        self.put(f"u64 {x} = {self.value()} % 4;")
        self.put(f"{l}:;")
        self.braced(self.r.randrange(1, 3))
        self.put(f"if ({x}-- > 0) goto {l};")

    def irreducible(self):
        l, x = self.new("l"), self.new("x")
        self.put(f"u64 {x} = {self.value()} % 5;")
        self.put(f"if ({self.value()} & 1) goto {l}_in;")
        self.put(f"{l}_out:;")
        self.braced(1)
        self.put(f"{l}_in:;")
        self.braced(1)
        self.put(f"if ({x}-- > 0) goto {l}_out;")

    def long_loop(self):
        """A loop that becomes strips, or is vectorized."""
        r = self.r
        kind = r.choice(["uint8_t", "uint16_t", "u32", "u64", "float", "double", "int"])
        x, y, i, s = self.new("x"), self.new("y"), self.new("i"), self.new("s")
        n = r.choice([700, 1024, 1025, 2048, 3000, 4097])
        count = r.choice([str(n), f"(u64)({n} - (int)({self.value()} % 300))", f"(u64)(1 + {self.value()} % {n})"])
        self.put(f"if (c->fuel > 20) {{")
        self.depth += 1
        self.put("c->fuel -= 10;")
        self.put(f"static {kind} const {y}[4] = {{1, 2, 3, 5}};" if r.random() < 0.5 else f"{kind} {y}[4] = {{1, 2, 3, 5}};")
        self.put(f"{r.choice(['u64', 'u64', 'u32', 'int'])} {i}, {i}_n = {count};")
        self.put(f"{kind} *{x} = calloc({n} + 8, sizeof *{x}), {s} = 0;")
        forms = [f"for ({i} = 0; {i} < {i}_n; {i}++) {x}[{i}] = ({kind})({i} * 3 + {y}[{i} & 3]);",
                 f"for ({i} = {i}_n; {i}-- > 0;) {x}[{i}] = ({kind})({x}[{i}] + {i} % 7);",
                 f"for ({i} = 0; {i} < {i}_n; {i} += 3) {x}[{i}] += {y}[1];",
                 f"for ({i} = 0; {i} < {i}_n; {i}++) {{ {x}[{i}] += {y}[{i} & 1]; if ({x}[{i}] == {r.randrange(100)}) {s} += 1; }}",
                 f"for ({i} = 2; {i} < {i}_n; {i}++) {x}[{i}] = ({kind})({x}[{i} - 1] / 2 + {x}[{i} - 2] / 3 + 1);",
                 f"for ({i} = 0; {i} < {i}_n && {x}[{i}] != ({kind})77; {i}++) {s} += {x}[{i}] > 3;",
                 f"{i} = 0; do {s} += {x}[{i}] < 50; while (++{i} < {i}_n);",
                 f"for ({i} = 0; {i} < {i}_n; {i}++) {{ if ({i} & 4) continue; {x}[{i}] = ({kind})({self.variable()} + {i}); }}"]
        for form in r.sample(forms, r.randrange(1, 4)):
            self.put(form)
            if r.random() < 0.5:
                self.put(f"mix(c, {i});")
        self.put(f"for ({i} = 0; {i} < {i}_n; {i}++) {s} = ({kind})({s} + {x}[{i}]);" if kind not in ("float", "double")
                 else f"for ({i} = 0; {i} < {i}_n; {i}++) {s} += {x}[{i}] > 10 ? 1 : 2;")
        self.put(f"mix(c, hd((double){s}) + hd((double){x}[{i}_n - 1])); free({x});")
        self.depth -= 1
        self.put("}")

    def sort(self):
        x, n = self.new("x"), self.r.randrange(3, 20)
        self.put(f"u64 {x}[{n}];")
        self.put(f"for (int k = 0; k < {n}; k++) {x}[k] = {self.value()} * (u64)(k + 1) % 1009;")
        self.put(f"qsort({x}, {n}, sizeof {x}[0], ascending);")
        self.called()
        self.put(f"mix(c, {x}[0] + {x}[{n - 1}] * 3);")

    def no_yield(self):
        if self.atomic:
            return self.simple()
        t, x = self.new("turns"), self.new()
        self.put(f"u64 {x} = 0;")
        self.put("ATOMIC {")
        self.atomic += 1
        self.depth += 1
        self.put(f"unsigned long {t} = fuzz_turns;")
        self.put(f"{x} = {self.call()};")
        self.block(self.r.randrange(1, 3))
        if self.r.random() < 0.2:
            self.put("YIELD();")
        self.put(f"broken |= {t} != fuzz_turns;")
        self.depth -= 1
        self.atomic -= 1
        self.put("}")
        self.variables.append(x)

    def straight(self):
        """Code without calls and loops is atomic for every setting of the timer."""
        t = self.new("turns")
        self.put(f"{{ unsigned long {t} = fuzz_turns;")
        self.put(f"c->hash += {self.value()}; {self.assignable()} ^= {self.value()};")
        self.put(f"broken |= {t} != fuzz_turns; }}")

    def last(self):
        """A loop's end is no yield: the values that the last iteration, or its condition, has read are still valid behind it."""
        t, i, n = self.new("turns"), self.new("i"), self.r.choice([3, 7, f"1 + {self.variable()} % 50", "c->fuel > 20 ? 1500 : 5"])
        work = self.r.choice([f"c->hash += {self.value()};", f"c->hash = c->hash * 3 + {i};", f"{self.assignable()} ^= {self.value()};"])
        self.put(f"unsigned long {t}; u64 {i} = 0, {i}_n = {n};")
        self.put(self.r.choice([f"do {{ {t} = fuzz_turns; {work} }} while (++{i} < {i}_n);",
                                f"while ({t} = fuzz_turns, {i}++ < {i}_n) {{ {work} broken |= {t} != fuzz_turns; }}",
                                f"for (;;) {{ {t} = fuzz_turns; {work} if ({i}++ >= {i}_n) break; c->hash++; }}",
                                f"{t}_again: {t} = fuzz_turns; {work} if (++{i} < {i}_n) goto {t}_again;"]))
        self.put(f"broken |= {t} != fuzz_turns;")

    def calm(self):
        """No yields within the block; yields of callees are allowed, so it has no calls."""
        t = self.new("turns")
        self.put("CALM {")
        self.put(f"\tunsigned long {t} = fuzz_turns;")
        self.put(f"\tfor (u64 k = 0; k < 5 + {self.variable()} % 50; k++) c->hash = c->hash * 3 + {self.value()};")
        self.put(f"\tbroken |= {t} != fuzz_turns;")
        self.put("}")

    def explicit(self):
        self.put("YIELD();")

    def vectors(self):
        x = self.new("x")
        self.put(f"vec4 {x} = {{(u32)({self.value()}), 2, 3, (u32)({self.value()})}};")
        self.called()
        self.put(f"{x} = {x} * {x} + {x}; mix(c, {x}[0] + (u64){x}[3] * 9);")

    def wide(self):
        x = self.new("x")
        self.put(f"i128 {x} = ((i128)({self.value()}) << 50) * (i128)({self.value()});")
        self.called()
        self.put(f"mix(c, (u64)({x} >> 40));")

    def longs(self):
        x, z = self.new("x"), self.new("z")
        self.put(f"long double {x} = (long double)dd({self.value()}) / 3; double _Complex {z} = dd({self.value()}) * I + 2;")
        self.called()
        self.put(f"mix(c, hd((double)({x} * 3)) + hd(cimag({z} * {z})));")

    def over(self):
        """A variable of large alignment, known or not; with arrays of variable length the frame needs a base pointer."""
        x = self.new("x")
        self.put(f"struct over {x} = {{{{{self.value()}, {self.value()}, 3}}}};")
        self.put(f"broken |= 2 * ((uintptr_t)&{x} % 64 != 0);" if self.r.random() < 0.5 else "YIELD();")
        if self.r.random() < 0.5:
            self.put(f"mix(c, sum(c, {x}.w, 3));")
        self.called()
        self.put(f"mix(c, {x}.w[0] ^ {x}.w[1]);")

    def bits(self):
        x = self.new("x")
        self.put(f"struct bits {x} = {{{self.value()} & 7, -3, {self.value()} & 0xffffff, 5}};")
        self.called()
        self.put(f"{x}.b += 5; {x}.c ^= {self.value()} & 0xfff; mix(c, {x}.a + (u64){x}.b + {x}.c + {x}.d);")

    def structure(self):
        x, y = self.new("x"), self.new("y")
        self.put(f"struct big {x} = {{.w = {{{self.value()}, {self.value()}}}, .d = 2}}, {y};")
        self.called()
        self.put(f"{y} = {x}; {y}.w[2] = {self.value()};")
        self.put(f"mix(c, {y}.w[0] + {y}.w[2] + hd({y}.d));")

    def text(self):
        x = self.new("x")
        self.put(f"char {x}[64]; snprintf({x}, sizeof {x}, \"%llu %.3f\", (unsigned long long)({self.value()}), dd({self.value()}));")
        self.called()
        self.put(f"mix(c, strlen({x}) + (u64){x}[0]);")

    def activate(self):
        """An activity with variables by reference and by value; the plain build runs it now."""
        r = self.r
        self.handles += 1
        h, result, own, given = self.new("h"), self.new(), self.new("c"), self.new("given")
        sort = r.choice(["u64", "u64", "double", "struct mixed", "struct big", "u32", "uint8_t", "float", "i128", "vec4", "long double"])
        start = {"struct mixed": "{dd(%s), 5}", "struct big": "{.w = {%s, 8}}", "vec4": "{(u32)(%s), 2, 3, 4}", "double": "dd(%s)", "float": "(float)dd(%s)",
                 "long double": "dd(%s)"}.get(sort, f"({sort})(%s)") % self.value()
        use = {"struct mixed": "hd({0}.d) + {0}.u++", "struct big": "{0}.w[0]++ + {0}.w[1]", "vec4": "{0}[0] + (u64){0}[3]", "i128": "(u64)({0} *= 3)"}.get(
            sort, "hd((double)({0} += 1))" if sort in ("double", "float", "long double") else "(u64)({0} += 3)").format(given)
        listed = [given] + ([f"{self.new('w')}"] if r.random() < 0.4 else [])
        self.put(f"u64 {result} = 1; {sort} {given} = {start};")
        if len(listed) > 1:
            self.put(f"u64 {listed[1]} = {self.value()};")
        self.put("#ifdef FUZZ_PASS")
        self.put(f"weft_activity_t {h}; weft_activate(&{h}, {', '.join(listed)}) {{")
        self.put("#else")
        for v in listed:
            self.put(f"__typeof__({v}) {v}_ = {v};")
        self.put("{ " + "".join(f"__typeof__({v}) {v} = {v}_; " for v in listed))
        self.put("#endif")
        self.depth += 1
        outer, fuel = self.variables, r.randrange(2, 12)
        self.put(f"struct ctx {own} = {{{use}, {fuel}}}, *c = &{own};")
        a, b = self.new(), self.new()
        self.put(f"u64 {a} = {use}, {b} = {listed[-1] if len(listed) > 1 else 7};")
        self.variables = [a, b]
        self.depth += 1
        for _ in range(r.randrange(1, 4)):
            self.statement()
        self.depth -= 1
        if r.random() < 0.2:
            self.put(f"{result} = c->hash; if ({a} & 1) continue;" if False else f"{result} += {a};")
        self.put(f"{result} ^= c->hash + {use};")
        self.variables = outer
        self.depth -= 1
        self.put("}")
        if sort in ("u64", "double", "u32", "float", "uint8_t", "i128", "long double"):
            self.put(f"{given} = 0;")
        for _ in range(r.randrange(0, 3)):
            self.statement()
        self.put("#ifdef FUZZ_PASS")
        self.put(f"(void)weft_activity_wait(&{h});")
        self.put("#endif")
        self.put(f"mix(c, {result}); mix(c, (u64){'hd((double)' + given + ')' if sort in ('double', 'float', 'long double') else given if sort in ('u64', 'u32', 'uint8_t', 'i128') else 1});")
        self.handles -= 1

    def counter(self):
        """Activities that add to one variable: each sum is atomic."""
        total, n = self.new(), self.r.randrange(2, 4)
        hs, k = self.new("h"), self.r.randrange(1, 20)
        self.put(f"u64 {total} = 0;")
        self.put("#ifdef FUZZ_PASS")
        self.put(f"weft_activity_t {hs}[{n}];")
        self.put("#endif")
        i = self.new("i")
        self.maker.constant.add(i)
        self.put(f"for (int {i} = 0; {i} < {n}; {i}++) {{")
        self.put("#ifdef FUZZ_PASS")
        self.put(f"weft_activate(&{hs}[{i}], {i}) {{")
        self.put("#else")
        self.put("{")
        self.put("#endif")
        self.put(f"\tstruct ctx own = {{(u64){i}, 3}}, *c = &own;")
        self.put(f"\tfor (u64 k = 0; k < {k}; k++) {{ u64 more = leaf(c, k, (u64){i}); {total} += more; }}")
        self.put("}}")
        self.called()
        self.put("#ifdef FUZZ_PASS")
        self.put(f"for (int k = 0; k < {n}; k++) (void)weft_activity_wait(&{hs}[k]);")
        self.put("#endif")
        self.variables.append(total)

    def back(self):
        """setjmp, and a callee that comes back to it from some calls further in."""
        j, n, w = self.new("j"), self.new("n"), self.new("w")
        self.put(f"jmp_buf {j}; volatile u64 {n} = 0; volatile u64 {w} = {self.value()};")
        self.put(f"if ((int)setjmp({j}) < {self.r.randrange(1, 5)}) {{")
        self.put(f"\t{n}++; {w} += 3;")
        self.put(f"\tthrow_from(c, {j}, {self.r.randrange(0, 12)}, (int){n}, &{n});")
        self.put("}")
        self.put(f"mix(c, {n} + {w});")

    def text_of(self):
        self.put(f"if (c->fuel-- <= 0) {EARLY.get(self.kind, 'return a ^ b;')}")
        if self.kind == "variadic":
            self.put("va_list list, again; va_start(list, count); va_copy(again, list);")
            self.put("for (int k = 0; k < count; k++) a += va_arg(list, u64) * (u64)(k + 1);")
            self.put("if (count) { b += hd(va_arg(list, double)); struct mixed m = va_arg(list, struct mixed); b += m.u;")
            self.put("\tb ^= hd((double)va_arg(list, long double)); struct big g = va_arg(list, struct big); b += g.w[0]; }")
            self.called()
            self.put("if (count > 1) { (void)va_arg(again, u64); b ^= rest(c, again); }")
            self.put("va_end(again); va_end(list);")
        if self.kind in ("word", "many", "variadic", "big", "ldbl") and not self.top and self.r.random() < 0.3:
            self.back()
        self.depth = 0
        for _ in range(self.r.randrange(1, self.maker.size.statements + 1)):
            self.statement()
        self.put(RESULTS[self.kind].format(e=self.call() if self.r.random() < 0.3 else self.value()))
        head = KINDS[self.kind][0].format(n=self.name)
        attribute = self.r.choice(["", "__attribute__((noinline)) "])
        return f"static {attribute}{head}\n{{\n" + "\n".join(self.lines) + "\n}\n"


HELPERS = r"""
static __attribute__((noinline)) u64 sum(struct ctx *c, u64 *x, int n)
{
	u64 s = 0;
	for (int k = 0; k < n; k++) {
		s += x[k] * (u64)(k + 1);
		if (k == n / 2)
			x[k] += s, YIELD();
	}
	c->hash += s;
	return s;
}
static u64 *volatile somewhere;
static __attribute__((noinline)) void touch(struct ctx *c, u64 **p, u64 v)
{
	for (int k = 0; k < 2; k++) {
		**p = **p * 3 + v;
		mix(c, **p);
	}
	somewhere = *p;
}
static u64 leaf(struct ctx *c, u64 a, u64 b)
{
	for (u64 k = 0; k < a % 4; k++)
		b = b * 3 + k;
	c->hash ^= b;
	return a + b;
}
static __attribute__((noinline)) u64 rest(struct ctx *c, va_list list)
{
	u64 x = va_arg(list, u64);
	return x + leaf(c, x, 3);
}
static __attribute__((noinline)) void throw_from(struct ctx *c, jmp_buf j, int depth, int value, volatile u64 *n)
{
	u64 own[1 + depth], x = *n, *p = &x;
	memset(own, depth, sizeof own);
	touch(c, &p, own[0]);
	mix(c, sum(c, own, 1 + depth));
	if (!depth)
		longjmp(j, value);
	throw_from(c, j, depth - 1, value, n);
	mix(c, x);
}
"""


class Maker:
    """One program: some functions, and cases that call them."""

    def __init__(self, seed):
        self.r = r = random.Random(seed)
        self.size = SIZES[r.choices(list(SIZES), [850, 120, 25, 5])[0]]
        self.seed, self.constant, self.pointers, self.tops = seed, set(), set(), set()
        kinds = ["word", *r.sample(list(KINDS), r.randrange(self.size.kinds // 2, self.size.kinds + 1))]
        self.functions = [(f"p{seed}_f{i}_{k}", k) for i, k in enumerate(kinds)]
        self.cases = [f"p{seed}_case{i}" for i in range(r.randrange(1, self.size.cases + 1))]
        self.texts = [Function(self, n, k, False).text_of() for n, k in self.functions]
        self.tops = set(self.cases)
        self.texts += [Function(self, n, "word", True).text_of() for n in self.cases]

    def text(self):
        declared = "".join("static " + KINDS[k][0].format(n=n) + ";\n" for n, k in self.functions)
        pointers = "".join("static " + KINDS[k][0].format(n=f"(*volatile pointer_{n})") + f" = {n};\n" for n, k in self.functions if n in self.pointers)
        words = [n for n, k in self.functions if k == "word"]
        return declared + pointers + "\n" + "\n".join(self.texts) + PROGRAM.format(
            seed=self.seed, all=", ".join(self.cases + words), words=len(words), fuel=self.r.choice([15, 30, 60]))


PROGRAM = r"""
static void program_{seed}(void)
{{
	static u64 (*const all[])(struct ctx *, u64, u64) = {{{all}}};
	run(all, sizeof all / sizeof *all, {words}, {fuel});
}}
"""

RUN = r"""
static u64 once(u64 (*f)(struct ctx *, u64, u64), u64 seed, int fuel)
{
	struct ctx c = {seed, fuel};
	u64 r = f(&c, seed * 77 + 5, seed + 9);
	return r ^ c.hash;
}

/* All at once, the last of them in no_yield, too. */
static __attribute__((noinline)) void run(u64 (*const *all)(struct ctx *, u64, u64), unsigned count, unsigned words, int fuel)
{
	u64 results[count + words], sum = 0;
	broken = 0;
#ifdef FUZZ_PASS
	weft_activity_t as[count];
	for (unsigned i = 0; i < count; i++)
		weft_activate(&as[i], i) results[i] = once(all[i], i + 1, fuel);
	for (unsigned i = count; i < count + words; i++)
		weft_no_yield results[i] = once(all[i - words], i + 1, fuel);
	for (unsigned i = 0; i < count; i++)
		(void)weft_activity_wait(&as[i]);
#else
	for (unsigned i = 0; i < count + words; i++)
		results[i] = once(all[i < count ? i : i - words], i + 1, fuel);
#endif
	for (unsigned i = 0; i < count + words; i++)
		sum = sum * 0x9E3779B97F4A7C15u + results[i];
	printf("%llx%s\n", (unsigned long long)sum, (const char *const[]){"", ", a switch where there must be none", ", badly aligned", ", a switch, badly aligned"}[broken]);
}
"""


def text_of(seeds):
    """A file of these programs, without the code that runs them (many.h)."""
    return HEAD + HELPERS + RUN + "\n".join(Maker(seed).text() for seed in seeds)
