#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Random programs whose calls depend on the path: paths.py write DIRECTORY FIRST COUNT prints the names of the files that it
writes.

Pointers to functions are set early, and changed in branches that compilers move to the end or to a cold section, in loops, cases
of a switch, targets of computed gotos and of `asm goto`, handlers of exceptions. Then they are called: with arguments in
registers and on the stack, with a variable number of them, in tail position. Each program prints a number that depends on each
function called. Every third is C++. A line with `dg-options` gives its compiler options. The programs have no undefined
behaviour, so any two builds print the same.
"""
import pathlib
import random
import sys

OPTIONS = ("", "", "-fPIC", "-fPIC -fno-plt", "-fno-plt", "-fPIE", "-fno-pie -no-pie", "-fno-omit-frame-pointer", "-fcf-protection",
           "-fno-reorder-blocks", "-fno-jump-tables", "-march=x86-64-v3", "-fomit-frame-pointer", "-fno-optimize-sibling-calls")
LEAVES, WIDE, VARIADIC, FUNCTIONS = 6, 3, 2, 5

HEAD = """
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef __cplusplus
#define PLAIN extern "C"
#else
#define PLAIN extern
#endif
#define APART __attribute__((noinline))
typedef unsigned leaf_t(unsigned), variadic_t(unsigned, ...);
typedef unsigned wide_t(unsigned, long, long, long, long, long, unsigned, double, unsigned long, unsigned);
struct large { unsigned word[13]; };
static int fuel;
static unsigned volatile noted;
APART static void note(unsigned n) { noted = noted * 5 + n; }
APART __attribute__((noreturn, cold)) static void fail(unsigned n) { printf("failed %u\\n", n); exit(0); }
APART static unsigned by_value(unsigned x, struct large l) { return x + l.word[0] * 3 + l.word[12]; }
PLAIN unsigned absent(unsigned) __attribute__((weak));
"""

LEAF = """
PLAIN unsigned leaf{n}(unsigned);
PLAIN unsigned other_leaf{n}(unsigned) __asm__("leaf{n}");
{attribute}unsigned leaf{n}(unsigned x) {{ note({n}); return x * {odd} + {n}; }}
"""
WIDE_ONE = """
PLAIN wide_t wide{n}, other_wide{n} __asm__("wide{n}");
{attribute}unsigned wide{n}(unsigned x, long a, long b, long c, long d, long e, unsigned f, double g, unsigned long h, unsigned i)
{{
	char room[{room}];
	memset(room, (int)(x & 15), sizeof room);
	__asm__ volatile("" : : "r"(room) : "memory");
	note({n});
	return x * {odd} + (unsigned)(a + 2 * b + 3 * c + 4 * d + 5 * e) + 6 * f + (unsigned)g + 7 * (unsigned)h + 8 * i + (unsigned)room[{room} / 2];
}}
"""
VARIADIC_ONE = """
PLAIN variadic_t variadic{n}, other_variadic{n} __asm__("variadic{n}");
unsigned variadic{n}(unsigned count, ...)
{{
	unsigned sum = {odd};
	va_list list;
	va_start(list, count);
	while (count--)
		sum = sum * 3 + va_arg(list, unsigned);
	va_end(list);
	note({n});
	return sum;
}}
"""


class Writer:
    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.is_cxx = seed % 3 == 0
        self.lines, self.labels, self.depth, self.number = [], 0, 0, 0

    def put(self, text):
        self.lines.append("\t" * (self.depth + 1) + text)

    def leaf(self):
        n = self.rng.randrange(LEAVES)
        return self.rng.choice((f"leaf{n}", f"other_leaf{n}", f"other_leaf{n}", "alias0"))

    def wide(self):
        return f"{self.rng.choice(('', 'other_'))}wide{self.rng.randrange(WIDE)}"

    def variadic(self):
        return f"{self.rng.choice(('', 'other_'))}variadic{self.rng.randrange(VARIADIC)}"

    def condition(self):
        test = f"(x >> {self.rng.randrange(6)} & 3) == {self.rng.randrange(4)}"
        return self.rng.choice((test, f"__builtin_expect({test}, 0)", f"__builtin_expect({test}, 1)"))

    def set_pointer(self):
        return self.rng.choice((f"p = {self.leaf()};", f"p = {self.leaf()};", f"q = {self.wide()};", f"r = {self.variadic()};"))

    def call(self):
        c = [self.rng.randrange(50) for _ in range(4)]
        return self.rng.choice((
            "x = p(x);", "x += p(x + 1);", f"x ^= q(x, {c[0]}, 2, (long)(x & 7), 4, 5, x, {c[1]}.0, x & 15, {c[2]});",
            f"x += r(3, x, {c[0]}u, x & 31);", f"x += r(9, x, {c[0]}u, 3u, 4u, 5u, x & 7, 7u, {c[1]}u, x);", f"x += {self.leaf()}(x);",
            f"x ^= {self.wide()}(x, 1, {c[0]}, 3, 4, 5, 6, 7.0, 8, x & 63);", f"x += {self.variadic()}(7, 1u, x, 3u, 4u, 5u, x & 3, {c[1]}u);",
            f"l.word[0] = x, l.word[12] = {c[3]}, x = by_value(x, l);", f"if (fuel > 0)\n\t\tx ^= path{self.rng.randrange(FUNCTIONS)}(x >> 1);"))

    def block(self, count):
        self.depth += 1
        for _ in range(self.rng.randrange(1, count + 1)):
            self.statement()
        self.depth -= 1

    def branch(self):
        self.put(f"if ({self.condition()}) {{")
        if self.rng.random() < 0.7:
            self.put(f"\tnote({self.rng.randrange(9)});")
        self.put("\t" + self.set_pointer())
        if self.rng.random() < 0.4:
            self.block(2)
        self.put("}")

    def loop(self):
        i = f"i{self.labels}"
        self.labels += 1
        self.put(f"for (int {i} = 0; {i} < {self.rng.randrange(2, 5)}; {i}++) {{")
        self.put("\t" + self.call())
        self.block(2)
        self.put("\t" + self.set_pointer())
        self.put("}")

    def switch(self):
        self.put(f"switch (x >> {self.rng.randrange(4)} & 7) {{")
        for case in self.rng.sample(range(8), self.rng.randrange(4, 8)):
            self.put(f"case {case}:")
            self.block(1)
            if self.rng.random() < 0.8:
                self.put("\tbreak;")
        self.put("}")

    def computed_goto(self):
        if self.is_cxx and self.depth:
            return self.branch()  # C++ has no jumps into try
        n, self.labels = self.labels, self.labels + 1
        self.put(f"{{ static void *const table{n}[] = {{&&a{n}, &&b{n}, &&c{n}}}; turns = 0;")
        self.put(f"again{n}: goto *table{n}[(x + (unsigned)turns) % 3];")
        for name in "abc":
            self.put(f"{name}{n}: {self.rng.choice((self.set_pointer(), self.call()))}")
            self.put("\t" + self.call() if self.rng.random() < 0.5 else f"\tx += {n};")
            self.put(f"\tif (++turns < {self.rng.randrange(2, 5)}) goto again{n}; else goto done{n};" if name != "b" else "")
        self.put(f"done{n}: ; }}")

    def asm_goto(self):
        if self.is_cxx:
            return self.switch()
        n, self.labels = self.labels, self.labels + 1
        self.put(f'__asm__ goto("testl %0, %0; jz %l1" : : "r"(x & {self.rng.choice((1, 2, 4))}) : "cc" : zero{n});')
        self.put(self.set_pointer())
        self.put(self.call())
        self.put(f"zero{n}: ;")

    def assembly(self):
        self.put(self.rng.choice((
            '__asm__ volatile("" : "+r"(p));', '__asm__ volatile("1: nop; .pushsection .note.none; .long 1b - .; .popsection" : "+r"(x));',
            '__asm__ volatile("xorl %%eax, %%eax" : : : "eax", "cc");', '__asm__ volatile("nop /* ; call away */; nop");',
            '__asm__ volatile("" : "+b"(x), "+D"(p) : : "memory");')))

    def exception(self):
        if not self.is_cxx:
            return self.branch()
        self.put("try {")
        self.block(2)
        self.put(f"\tif ({self.condition()}) throw x;")
        self.put("\t" + self.set_pointer())
        self.put("\t" + self.call())
        self.put("} catch (unsigned thrown) {")
        self.put(f"\tx += thrown * 3;\n\t\t{self.set_pointer() if self.rng.random() < 0.5 else self.call()}")
        self.put("}")

    def array(self):
        self.put(f"{{ char *room = (char *)__builtin_alloca((x & 63) + {self.rng.randrange(1, 400)}); room[0] = (char)x;")
        self.put('\t__asm__ volatile("" : : "r"(room) : "memory");')
        self.put("\t" + self.call())
        self.put("\tx += (unsigned)room[0]; }")

    def statement(self):
        simple = self.depth > 2 or self.rng.random() < 0.45
        if simple:
            self.put(self.rng.choice((self.set_pointer(), self.call(), self.call(), "if (absent) x += absent(x);",
                                      f"if (x == {self.rng.randrange(1 << 31)}u) fail({self.number});")))
        else:
            self.rng.choice((self.branch, self.branch, self.branch, self.loop, self.switch, self.computed_goto, self.asm_goto, self.assembly,
                             self.exception, self.array))()

    def function(self, n):
        self.number = n
        self.put_top(f"APART static unsigned path{n}(unsigned x)\n{{")
        self.put(f"leaf_t *p = {self.leaf()};\n\twide_t *q = {self.wide()};\n\tvariadic_t *r = {self.variadic()};\n\tstruct large l = {{{{x}}}};\n\tint turns = 0;")
        self.put("(void)q, (void)r, (void)l, (void)turns;\n\tif (--fuel < 0)\n\t\treturn x;")
        for _ in range(self.rng.randrange(2, 6)):
            self.statement()
        self.put(self.rng.choice(("return p(x);", "return p(x);", "return x;", f"return q(x, 1, 2, 3, 4, 5, 6, 7.0, 8, {n});")))
        self.put_top("}")

    def put_top(self, text):
        self.lines.append(text)

    def odd(self):
        return self.rng.randrange(1 << 20) * 2 + 1

    def attribute(self):
        return self.rng.choice(("", "", "__attribute__((cold)) ", "__attribute__((weak)) ", "__attribute__((hot, noinline)) "))

    def program(self):
        self.put_top(f'/* {{ dg-options "{self.rng.choice(OPTIONS)}" }} */' + HEAD)
        for n in range(LEAVES):
            self.put_top(LEAF.format(n=n, odd=self.odd(), attribute=self.attribute() if n else ""))
        self.put_top('PLAIN unsigned alias0(unsigned) __attribute__((alias("leaf0")));')
        for n in range(WIDE):
            self.put_top(WIDE_ONE.format(n=n, odd=self.odd(), attribute=self.attribute(), room=self.rng.choice((8, 40, 300, 2000))))
        for n in range(VARIADIC):
            self.put_top(VARIADIC_ONE.format(n=n, odd=self.odd()))
        self.put_top("\n".join(f"static unsigned path{n}(unsigned);" for n in range(FUNCTIONS)))
        for n in range(FUNCTIONS):
            self.function(n)
        self.put_top("int main(void)\n{\n\tunsigned x = 1;\n\tfor (unsigned i = 0; i < 48; i++) {\n\t\tfuel = 12;")
        self.put_top(f"\t\tx = x * 31 + path0(i + x);\n\t\tx = x * 31 + path{FUNCTIONS - 1}(i * 7);\n\t}}")
        self.put_top('\tprintf("%u %u\\n", x, noted);\n\treturn 0;\n}')
        return "\n".join(self.lines) + "\n"


def write(directory, first, count):
    """The paths of programs FIRST, FIRST + 1, …"""
    for seed in range(first, first + count):
        writer = Writer(seed)
        path = pathlib.Path(directory) / f"path{seed}.{'cc' if writer.is_cxx else 'c'}"
        path.write_text(writer.program())
        yield path


if __name__ == "__main__":
    print(*write(sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))
