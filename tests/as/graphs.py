#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Random programs, instrumented: graphs.py WEFT_AS WAY COMPILER [-O1] OBJECT…

WAY: segmented, lookahead, or whole, look-ahead over all files of a program at once. Eight programs, from the seed in WEFT_SEED
(100), at every level and with several bounds; with a level, at that level and with the largest bound. The objects are linked to
each program.

Functions of random frame sizes, arguments (on the stack too), linkage and shapes call each other at random: directly, through
pointers, as tail calls, recursively, and functions of outside.c. Each writes to both ends of its frame and checks the values when
its calls have returned. The result must be the same each time.
"""
import os
import pathlib
import random
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent


class Function:
    def __init__(self, number, rng, files):
        self.name = f"f{number}"
        self.file = rng.randrange(files)
        self.is_static = rng.random() < 0.6
        self.arguments = rng.choice((1, 1, 2, 3, 6, 7, 8, 12))
        self.frame = rng.choice((0, 8, rng.randrange(16, 200), rng.randrange(200, 1500), rng.randrange(1500, 6000)))
        self.is_taken = rng.random() < 0.2
        self.has_array = rng.random() < 0.08
        self.ends_in_call = rng.random() < 0.3

    def prototype(self):
        parameters = ", ".join(["long fuel"] + [f"long a{i}" for i in range(1, self.arguments)])
        return f"{'static ' if self.is_static else ''}long {self.name}({parameters})"


def call(callee, rng):
    arguments = ["fuel - 1"] + [rng.choice(("a", "x", str(rng.randrange(100)))) for _ in range(1, callee.arguments)]
    return f"{callee.name}({', '.join(arguments)})"


def outside(rng):
    return rng.choice((
        "out_sum(x, 1, 2, 3, 4, 5, 6, 7, a, 9)",
        "out_seven((int)(x & 7), 1, 2, 3, 4, 5, (int)(a & 15))",
        "out_pointer(x & 1023)",
        "out_pointer_sum(1, 2, x & 63, 4, 5, 6, a & 63, 8, 9, 10)",
        "out_variadic(3, x & 7, a & 7, 5L)",
        "out_call(leaf_of_file, x & 31)",
    ))


def statement(function, callees, taken, rng):
    kind = rng.random()
    if kind < 0.2:
        return f"x = x * 31 + {outside(rng)};"
    if kind < 0.3 and taken:
        return f"x = x * 31 + table[{rng.randrange(len(taken))}](fuel - 1);"
    if not callees:
        return "x += a;"
    return f"x = x * 31 + {call(rng.choice(callees), rng)};"


def body(function, callees, taken, rng):
    lines = ["\tlong a = fuel, x = fuel;"]
    for i in range(1, function.arguments):
        lines.append(f"\ta = a * 7 + a{i};")
    if function.frame:
        lines.append(f"\tvolatile char frame[{function.frame}];")
        lines.append(f"\tframe[0] = (char)a; frame[{function.frame - 1}] = (char)a;")
    if function.has_array:
        lines.append(f"\tchar array[fuel * {rng.randrange(1, 300)} + 1];")
        lines.append("\tout_fill(array, (int)sizeof array, (int)(a & 63));\n\tx += array[sizeof array / 2];")
    lines.append("\tif (fuel <= 0)\n\t\treturn a & 1023;")
    for _ in range(rng.choice((0, 1, 1, 2, 3))):
        lines.append("\t" + statement(function, callees, taken, rng))
    if function.frame:
        lines.append(f"\tif (frame[0] != (char)a || frame[{function.frame - 1}] != (char)a)\n\t\tdamaged++;")
    if function.ends_in_call and callees:
        callee = rng.choice(callees)
        lines.append(f"\treturn {call(callee, rng)};")
    else:
        lines.append("\treturn x;")
    return "\n".join(lines)


def write_file(directory, number, files, functions, rng):
    mine = [f for f in functions if f.file == number]
    others = [f for f in functions if f.file != number and not f.is_static]
    taken = [f for f in mine if f.is_taken and f.arguments == 1]
    text = ['#include "check.h"', '#include "outside.h"', "extern int damaged;"]
    text += [f"{f.prototype()};" for f in mine + others]
    text.append("static long leaf_of_file(long x)\n{\n\treturn x * 3;\n}")
    if taken:
        text.append(f"static long (*const volatile table[])(long) = {{{', '.join(f.name for f in taken)}}};")
    for f in mine:
        callees = rng.sample(mine + others, min(len(mine + others), rng.randrange(0, 5)))
        text.append(f"NOINLINE {f.prototype()}\n{{\n{body(f, callees, taken, rng)}\n}}")
    text.append(f"long start{number}(long fuel);\nlong start{number}(long fuel)\n{{\n\tlong a = 1, x = 0;\n\t(void)a;")
    text += [f"\tx = x * 31 + {call(f, rng)};" for f in mine]
    text.append("\treturn x;\n}")
    if number == 0:
        text.append("int damaged;")
        text += [f"long start{n}(long fuel);" for n in range(1, files)]
        text.append("int checks(void)\n{\n\tstatic long first;\n\tlong sum = 0;\n")
        text += [f"\tsum = sum * 31 + start{n}(6);" for n in range(files)]
        text.append("\tif (!first)\n\t\tfirst = sum;\n\tCHECK(sum == first);\n\tCHECK(!damaged);\n"
                    "\treturn check_failures;\n}")
    (directory / f"graph{number}.c").write_text("\n".join(text) + "\n")


def write(seed, directory):
    rng = random.Random(seed)
    files = rng.randrange(1, 4)
    functions = [Function(i, rng, files) for i in range(rng.randrange(10, 60))]
    for number in range(files):
        write_file(directory, number, files, functions, rng)
    return [directory / f"graph{number}.c" for number in range(files)]


def run(*command):
    subprocess.run([str(word) for word in command], check=True, timeout=120)


def instrument(weft_as, way, texts, out, bound):
    if way == "whole":
        run(weft_as, "lookahead", *texts, "-d", out, "--bound", bound)
        return
    for text in texts:
        run(weft_as, way, text, "-o", out / text.name, "--bound", bound)


def check(seed, weft_as, way, compiler, level, bound, objects):
    """One program: written, compiled to assembly, instrumented, linked, run."""
    flags = ["-fsplit-stack", "-w", "-g0", f"-I{HERE}"]
    if "clang" in compiler:
        flags += ["-fno-integrated-as"]
    else:
        flags += ["-dp", "-fno-ipa-ra", "-fno-stack-clash-protection"]
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        texts = []
        for source in write(seed, directory):
            texts.append(source.with_suffix(".s"))
            run(compiler, level, *flags, "-S", source, "-o", texts[-1])
        out = directory / "out"
        out.mkdir()
        instrument(weft_as, way, texts, out, bound)
        run("gcc", "-no-pie", *sorted(out.iterdir()), *objects, "-lm", "-o", directory / "program")
        run(directory / "program")


def main():
    weft_as, way, compiler, *objects = sys.argv[1:]
    levels, bounds = ("-O0", "-O1", "-O2", "-O3"), {"segmented": (4096,), "lookahead": (256, 1000, 4096, 20000),
                                                    "whole": (256, 20000, 4096, 1000)}[way]
    if objects[0].startswith("-O"):
        levels, bounds = (objects.pop(0),), (20000,)
    first = int(os.environ.get("WEFT_SEED", 100))
    failed = 0
    for seed in range(first, first + 8):
        try:
            check(seed, weft_as, way, compiler, levels[seed % len(levels)], bounds[seed % len(bounds)], objects)
        except subprocess.SubprocessError as error:
            print(f"WEFT_SEED={seed}: {error}", flush=True)
            failed += 1
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
