#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Checks where code yields, against a model. Random functions log events. Beside them runs an observer, which counts how often it gets the processor.
So the log shows between which events there was a switch. The model interprets the source by the rules of docs/reference/activities.md, without
knowledge of the pass.

    yields.py COMPILER [SEEDS] [--model calls|loops]

In a group that switches at every yield the two must agree; with the timer off only yield_now switches. With --model, programs are compiled
for that setting only and compared with the model of the other setting: they must differ.
"""
import argparse
import os
import pathlib
import random
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
WEFT = HERE.parents[2] / "weft"
NONE, MAYBE, SWITCH = ".", "?", "|"

HEAD = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <weft/charcoal.h>
struct event { int number; unsigned turns; };
extern struct event events[];
extern unsigned count, turns;
#define EVENT(n) (events[count].number = (n), events[count++].turns = turns)
extern volatile int one, zero;
extern char area[];
"""
MAIN = r"""
struct event events[1 << 16];
unsigned count, turns;
volatile int one = 1, zero;
char area[4096];

static void show(int number)
{
	printf("%d:", number);
	for (unsigned i = 1; i < count; i++)
		printf("%s%d", events[i].turns == events[i - 1].turns ? "." : "|", events[i].number);
	printf("\n");
}

int activity_main(void)
{
	bool done = false;
	activity_t program, observer;

	activate(&observer)
	{
		no_implicit_yield
		{
			while (!done) {
				turns++;
				yield_now();
			}
		}
	}
	for (int i = 0; i < PROGRAMS; i++) {
		count = 0;
		activate(&program, i)
		{
			programs[i]();
		}
		activity_wait(&program);
		no_yield show(i);
	}
	done = true;
	activity_wait(&observer);
	return 0;
}
"""


class Model:
    """Interprets a program. `gap` says whether there was a switch since the last event."""

    def __init__(self, setting, period):
        self.setting, self.every = setting, period == "every"
        self.log, self.gap, self.atomic, self.calm = "", NONE, 0, 0

    def event(self, number):
        self.log += f"{self.gap}{number}"
        self.gap = NONE

    def inserted(self):
        if self.every and not self.atomic and not self.calm:
            self.gap = SWITCH

    def said(self, always):
        if (self.every or always) and not self.atomic:
            self.gap = SWITCH

    def perhaps(self, inserted=False):
        """A place where the compiler may choose: after the last turn, before the condition that ends a loop; and at the beginning and the
        end of a callee, whose yields there belong to the caller, which may forbid them."""
        if self.every and not self.atomic and self.gap == NONE and not (inserted and self.calm):
            self.gap = MAYBE

    def call(self, function):
        calm, twin = self.calm, function and function.has_twin
        if self.setting == "calls":
            self.inserted()
        if twin and (calm or self.setting == "loops"):
            self.perhaps()
        if function:
            self.atomic += not function.has_twin
            self.calm = function.calm
            for statement in function.body:
                statement.run(self)
            self.atomic -= not function.has_twin
            self.calm = calm
        if self.setting == "calls":
            if calm and twin and self.gap == SWITCH:
                self.gap = MAYBE
            self.inserted()


class Event:
    def __init__(self, number):
        self.number = number

    def text(self):
        return f"EVENT({self.number});"

    def run(self, model):
        model.event(self.number)


class Says:
    def __init__(self, always):
        self.always = always

    def text(self):
        return "yield_now();" if self.always else "yield();"

    def run(self, model):
        model.said(self.always)


class Library:
    """The compiler chooses how to compile these; only a few bytes are never a call."""
    CALLS = ["(void)getppid();", "one = atoi(\"1\");", "memset(area, one, 1000);", "memset(area, 1, (size_t)one * 30);", "(void)strtol(area, NULL, 10);",
             "(void)snprintf(area, 10, \"%d\", one);"]

    def __init__(self, r):
        self.what = r.choice(self.CALLS + ["memset(area, 1, 16);"])

    def text(self):
        return self.what

    def run(self, model):
        if self.what in self.CALLS:
            model.call(None)


class Call:
    def __init__(self, r, function):
        self.function, self.pointer = function, r.random() < 0.25

    def text(self):
        name = self.function.name
        return f"{{ void (*volatile f)(void) = {name}; f(); }}" if self.pointer else f"{name}();"

    def run(self, model):
        model.call(self.function)


class If:
    def __init__(self, r, then, other):
        self.taken, self.then, self.other = r.random() < 0.5, then, other

    def text(self):
        return f"if ({'one' if self.taken else 'zero'}) {{ {texts(self.then)} }} else {{ {texts(self.other)} }}"

    def run(self, model):
        for statement in self.then if self.taken else self.other:
            statement.run(model)


class Loop:
    def __init__(self, r, name, body, fixed):
        self.times, self.i, self.body = r.choice([1, 1, 2, 2, 3, 5]), name, body
        self.form = r.choice(["for ({0} = 0; {0} < {1}; {0}++) {{ {2} }}", "while ({0}++ < {1}) {{ {2} }}", "do {{ {2} }} while (++{0} < {1});",
                              "{0}_again: {2} if (++{0} < {1}) goto {0}_again;", "for (;;) {{ {2} if (++{0} >= {1}) break; }}"])
        self.end = str(self.times) if fixed else r.choice([f"one * {self.times}", f"{name}_n"])

    def text(self):
        body = texts(self.body)
        return f"{{ int {self.i} = 0, {self.i}_n = one * {self.times}; (void){self.i}_n; " + self.form.format(self.i, self.end, body) + " }"

    def run(self, model):
        for i in range(self.times):
            if i:
                model.inserted()
            for statement in self.body:
                statement.run(model)
        if "for ({0}" in self.form or "while ({0}" in self.form:
            model.perhaps(inserted=True)


class Scope:
    def __init__(self, atomic, body):
        self.atomic, self.body = atomic, body

    def text(self):
        return f"{'no_yield' if self.atomic else 'no_implicit_yield'} {{ {texts(self.body)} }}"

    def run(self, model):
        model.atomic += self.atomic
        model.calm += not self.atomic
        for statement in self.body:
            statement.run(model)
        model.atomic -= self.atomic
        model.calm -= not self.atomic


def texts(statements):
    return " ".join(s.text() for s in statements)


class Function:
    KINDS = {"static __attribute__((noinline))": 6, "static": 6, "": 3, "NO_YIELD static": 2, "WEFT_NO_IMPLICIT_YIELD static": 1, "elsewhere": 1}

    def __init__(self, maker, name, callees, first):
        r = maker.r
        self.name = name
        self.kind = "static" if first else r.choices(list(self.KINDS), self.KINDS.values())[0]
        self.has_twin, self.calm = self.kind not in ("NO_YIELD static", "elsewhere"), self.kind.startswith("WEFT_NO_IMPLICIT")
        self.maker, self.loops = maker, 0
        self.callees = [] if self.kind == "elsewhere" else callees
        self.body = self.block(r.randrange(2, 5), 0)

    def block(self, length, depth):
        return [self.statement(depth) for _ in range(length)]

    def statement(self, depth):
        r, inner = self.maker.r, depth + 1
        what = r.choices(["event", "says", "library", "call", "if", "loop", "scope"], [8, 1, 2, 4 if self.callees else 0, 2, 3, 2])[0]
        if depth >= 3 or what == "event" or (self.kind == "elsewhere" and what in ("says", "scope")):
            self.maker.events += 1
            return Event(self.maker.events)
        if what == "says":
            return Says(r.random() < 0.4)
        if what == "library":
            return Library(r)
        if what == "call":
            return Call(r, r.choice(self.callees))
        if what == "if":
            return If(r, self.block(r.randrange(1, 3), inner), self.block(r.randrange(0, 3), inner))
        if what == "scope":
            return Scope(r.random() < 0.5, self.block(r.randrange(1, 4), inner))
        self.loops += 1
        name = f"i{self.loops}"
        return Loop(r, name, self.block(r.randrange(1, 3), inner), self.maker.fixed and r.random() < 0.3)

    def text(self):
        kind = "" if self.kind == "elsewhere" else self.kind
        return f"{kind} void {self.name}(void) {{ {texts(self.body)} }}\n"


class Program:
    """Functions; the last calls the rest. With yields in loops only, a loop with a fixed number of turns may be unrolled and vanish."""

    def __init__(self, seed, setting):
        self.r, self.events, self.fixed = random.Random(seed), 0, setting == "calls"
        self.functions = []
        for i in range(self.r.randrange(1, 5), -1, -1):
            self.functions.append(Function(self, f"p{seed}_{i}", list(self.functions), i == 0))

    def log(self, setting, period):
        """The events and the gaps between them, without the gap before the first event."""
        model = Model(setting, period)
        for statement in self.functions[-1].body:
            statement.run(model)
        return model.log[1:].lstrip("0123456789")


def agrees(found, wanted):
    return len(found) == len(wanted) and all(f == w or (w == MAYBE and f in ".|") for f, w in zip(found, wanted))


def compare(args, work, setting, level):
    """How many programs disagree."""
    programs = [Program(seed, setting) for seed in range(args.seeds)]
    functions = [f for p in programs for f in p.functions]
    declared = HEAD + "".join(f"void {f.name}(void);\n" for f in functions if f.kind == "elsewhere")
    table = ", ".join(p.functions[-1].name for p in programs)
    (work / "code.c").write_text(declared + "".join(f.text() for f in functions if f.kind != "elsewhere")
                                 + f"enum {{ PROGRAMS = {args.seeds} }};\nstatic void (*const programs[])(void) = {{{table}}};\n" + MAIN)
    (work / "plain.c").write_text(HEAD + "".join(f.text() for f in functions if f.kind == "elsewhere"))
    environment = {**os.environ, "WEFT_CC": args.compiler}
    subprocess.run([args.compiler, "-w", "-O1", f"-I{HERE.parents[2]}/include", "-c", work / "plain.c", "-o", work / "plain.o"], check=True)
    subprocess.run([WEFT, "cc", "--activities", f"--yields={setting}", level, "-w", work / "code.c", work / "plain.o", "-o", work / "program"], check=True,
                   env=environment)
    bad = 0
    for form in ("copied", "stackful"):
        for period in ("every", "off"):
            done = subprocess.run([work / "program"], stdout=subprocess.PIPE, text=True, check=True, timeout=300,
                                  env={**environment, "WEFT_ACTIVITIES": form, "WEFT_ACTIVITY_PERIOD": period})
            for p, line in zip(programs, done.stdout.splitlines(), strict=True):
                number, _, found = line.partition(":")
                wanted = p.log(args.model or setting, period)
                if not agrees(found, wanted):
                    bad += 1
                    if bad < 4 and not args.model:
                        print(f"# program {number}, {setting}, {level}, {form}, {period}\n# found  {found}\n# wanted {wanted}")
    return bad


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("compiler")
    parser.add_argument("seeds", nargs="?", type=int, default=300)
    parser.add_argument("--model", choices=["calls", "loops"])
    args = parser.parse_args()
    failed = 0
    for setting in ("calls", "loops"):
        if args.model == setting:
            continue
        for level in ("-O2",) if args.model else ("-O0", "-O1", "-O2", "-O3"):
            with tempfile.TemporaryDirectory() as work:
                bad = compare(args, pathlib.Path(work), setting, level)
            good = bad == 0 if not args.model else bad > args.seeds // 4
            print(f"{'ok' if good else 'not ok'} - {args.seeds} programs, --yields={setting}, {level}: {bad} disagree", flush=True)
            failed |= not good
    return failed


if __name__ == "__main__":
    sys.exit(main())
