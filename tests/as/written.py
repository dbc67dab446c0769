#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Checks the text that weft-as writes, refuses and passes on: written.py WHAT BIN WORD…

BIN has weft-as, and `as` in directories named after its policies. WHAT and its words:
    structure COMPILER    how look-ahead places checks          markers COMPILER      which functions have a marker before them
    passing               input that is passed on to an assembler     refused COMPILER      the reasons why refused/*.c are refused
    own OBJECT…           our functions that known.def says to be small; their .su files stand beside them
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
WHAT, BIN, *WORDS = sys.argv[1:]
BIN = pathlib.Path(BIN)
TOO_LARGE = 192 # bytes, for a function that known.def calls SMALL


def run(*command, **more):
    """Returns the output of a command, which must end with 0."""
    return subprocess.run([str(word) for word in command], check=True, text=True, stdout=subprocess.PIPE, timeout=60, **more).stdout


def flags(compiler):
    own = ["-fno-integrated-as"] if "clang" in compiler else ["-dp", "-fno-ipa-ra", "-fno-stack-clash-protection"]
    return ["-fsplit-stack"] + own


def instrumented(policy, compiler, source, *more):
    """Makes given.s, the compiler's; made.s, weft-as's; and weft-as's explanations."""
    run(compiler, *more, *flags(compiler), "-w", "-S", HERE / source, "-o", "given.s")
    run(BIN / "weft-as", policy, "given.s", "-o", "made.s", "--explain", "report")
    return pathlib.Path("report").read_text()


def section(file, name):
    run("objcopy", "-O", "binary", f"--only-section={name}", "--set-section-flags", f"{name}=alloc", file, "section")
    return pathlib.Path("section").read_text()


def body(text, function):
    return re.search(rf"^{function}:.*?\.size", text, re.M | re.S).group()


# gcc -Os may put a block of a loop between the check's slow path and the body: it is no part of the check.
BLOCK_BETWEEN = """	.text
	.globl	odd
	.type	odd, @function
odd:
.LFB0:
	.cfi_startproc
	cmpq	%fs:112, %rsp	# 1	[c=8 l=9]  *cmpdi_1/1
	jnb	.L3	# 2	[c=13 l=2]  *jcc
	xorl	%r10d, %r10d	# 3	[c=4 l=3]  *movdi_xor
	xorl	%r11d, %r11d	# 4	[c=4 l=3]  *movdi_xor
	call	__morestack	# 5	[c=0 l=5]  *call
	ret		# 6	[c=0 l=1]  split_stack_return
	jmp	.L3	# 7	[c=1 l=2]  jump
.L4:
	subq	$2, %rdi	# 8	[c=4 l=4]  *subdi_1
.L3:
	cmpq	$1, %rdi	# 9	[c=4 l=4]  *cmpdi_1
	ja	.L4	# 10	[c=13 l=2]  *jcc
	movq	%rdi, %rax	# 11	[c=4 l=3]  *movdi_internal
	ret		# 12	[c=0 l=1]  simple_return_internal
	.cfi_endproc
.LFE0:
	.size	odd, .-odd
	.ident	"GCC: (GNU) 12.2.0"
	.section	.note.GNU-stack,"",@progbits
	.section	.note.GNU-split-stack,"",@progbits
"""


def block_between():
    pathlib.Path("given.s").write_text(BLOCK_BETWEEN)
    run(BIN / "weft-as", "lookahead", "given.s", "-o", "made.s")
    made = body(pathlib.Path("made.s").read_text(), "odd")
    assert "%fs:112" not in made and re.search(r"odd:.*jmp\s+\.L3\n.*\.L4:\n\tsubq\s+\$2, %rdi.*\.L3:", made, re.S), made
    run("as", "made.s", "-o", "made.o")


def structure(compiler):
    block_between()
    report = instrumented("lookahead", compiler, "structure.c", "-O2", "-fPIC")
    made = pathlib.Path("made.s").read_text()
    for line in (r"unit .*: functions 4, edges 4, checkpoints 3, largest bound \d+", r"checkpoint up: bound \d+: exported",
                 r"checkpoint taken: bound \d+: address taken", r"checkpoint down: bound \d+: cycle"):
        assert re.search(f"^{line}$", report, re.M), f"no line '{line}' in:\n{report}"
    assert "checkpoint leaf" not in report, report
    assert "%fs:112" not in body(made, "leaf"), "leaf has a check, and nobody calls it behind one"
    assert "\t__morestack" not in made and "weft.in.puts" in made, made
    run("as", "made.s", "-o", "made.o")
    assert section("made.o", ".weft.lookahead") == report


def markers(compiler):
    """Functions that other files can reach have the marker and are aligned; other functions have none."""
    instrumented("segmented", compiler, "markers.c", "-O1")
    run("as", "made.s", "-o", "made.o")
    run("gcc", "-nostdlib", "-shared", "-Wl,--unresolved-symbols=ignore-all", "made.o", "-o", "made.so")
    symbols = run("nm", "made.so")
    for name in ("shown", "weak", "hidden"):
        address = int(re.search(rf"^([0-9a-f]+) . {name}$", symbols, re.M).group(1), 16)
        before = run("objdump", "-s", f"--start-address={address - 8}", f"--stop-address={address}", "made.so")
        if name == "hidden":
            assert "77656674" not in before, f"{name} has a marker"
        else:
            assert " 77656674 cc900bb1 " in before, f"{name} has no marker:\n{before}"
            assert address % 32 == 16, f"{name} is at {address:#x}"


def passing():
    """The real assembler is a script that records its arguments and its input, the last argument."""
    here = pathlib.Path.cwd()
    real = here / "real"
    real.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" >"{here}/said"\nfor fed; do :; done\ncp "$fed" "{here}/fed"\n')
    real.chmod(0o755)
    hand = here / "hand.s"
    hand.write_text("\t.globl f\n\t.type f, @function\nf:\tret\n\t.size f, .-f\n")
    ours = dict(os.environ, WEFT_AS=str(real))

    def passed(*expected):
        said = (here / "said").read_text().splitlines()
        assert said[:-1] == list(expected) and re.fullmatch(r"/proc/self/fd/\d+", said[-1]), said
        assert (here / "fed").read_text() == hand.read_text(), (here / "fed").read_text()

    run(BIN / "mmu/as", "--64", "-I", "a b", "--defsym", "x=1", "-o", "o o", hand, env=ours)
    passed("--64", "-I", "a b", "--defsym", "x=1", "-o", "o o")
    run(BIN / "weft-as", "--weft-policy=segmented", "-o", "x.o", input=hand.read_text(), env=ours)
    passed("-o", "x.o")
    assert run(BIN / "segmented/as", "--version") == run("as", "--version")
    run(BIN / "segmented/as", hand, "-o", "hand.o")
    assert " T f" in run("nm", "hand.o")
    # Our assemblers are the first two of this name in PATH.
    run(BIN / "segmented/as", hand, "-o", "hand.o", env=dict(os.environ, PATH=f"{BIN / 'mmu'}:{BIN / 'segmented'}:{os.environ['PATH']}"))

    # The data with which a link step examines the whole program: the options and the compiler's text.
    instrumented("lookahead", "gcc", "puts.c", "-O1")
    run(BIN / "lookahead/as", "--64", "-I", "a b", "--weft-bound=8192", "-o", "plain.o", "given.s")
    given = pathlib.Path("given.s").read_text()
    assert section("plain.o", ".weft.assembly") == f"weft-assembly {len(given)} --64\x1f-I\x1fa b\x1f--weft-bound=8192\n{given}"
    run("gcc", "-pipe", *flags("gcc"), f"-B{BIN}/segmented/", "-c", HERE / "puts.c", "-o", "plain.o")
    assert "weft.in.main" in run("nm", "plain.o")


def says(words, *command, **more):
    """Exit code 1, and one line with the words in it."""
    command = [str(word) for word in command]
    done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60, **more)
    is_one_line = done.stdout.startswith("weft-as: ") and done.stdout.count("\n") == 1
    assert done.returncode == 1 and is_one_line and words in done.stdout, f"{command}: {done.returncode}, '{done.stdout}', not '{words}'"
    print("ok -", words)


def refused(compiler):
    """A file lists its refusals: a line of the compiler, flags and words, for each way in which it is compiled."""
    name = "clang" if "clang" in compiler else "gcc"
    for file in sorted((HERE / "refused").glob("*.c")):
        for line, words in re.findall(rf"^/\* {name} (.*?): (.*) \*/$", file.read_text(), re.M):
            run(compiler, "-w", "-S", file, "-o", "refused.s", *line.split())
            says(words, BIN / "weft-as", "mmu", "refused.s", "-o", "refused.out")
    weft_as = BIN / "weft-as"
    says("No such file", weft_as, "mmu", "missing.s", "-o", "x.s")
    says("no policy 'fixed'", weft_as, "--weft-policy=fixed", "x.s")
    says("usage: ", weft_as)
    says("usage: ", weft_as, "mmu")
    says("bound '12'", weft_as, "lookahead", "refused.s", "-o", "x", "--bound", "12")
    says("drop -m32", BIN / "mmu/as", "--32", "refused.s")
    says("one input", BIN / "mmu/as", "a.s", "b.s")
    pathlib.Path("hand.s").write_text("f:\tret\n")
    says("WEFT_AS is weft-as itself", BIN / "mmu/as", "hand.s", env=dict(os.environ, WEFT_AS=str(weft_as)))


def own(*objects):
    """Each calls, except by tail calls, only functions that call nothing."""
    known = re.findall(r"^SMALL\((weft_.*)\)$", (HERE / "../../tools/as/known.def").read_text(), re.M)
    frames, calls = {}, {}
    for file in objects:
        for line in pathlib.Path(file).with_suffix(".su").read_text().splitlines():
            place, size, kind = line.split("\t")
            if kind == "static":
                frames[place.split(":")[-1]] = int(size)
        for name, code in re.findall(r"^[0-9a-f]+ <([^>]*)>:\n(.*?)(?:\n\n|\Z)", run("objdump", "-d", "--no-show-raw-insn", file), re.M | re.S):
            calls[name] = re.findall(r"\tcall +(.*)$", code, re.M)
    known.remove("weft__allocate_stack_space")
    assert known
    for name in known:
        called = [re.fullmatch(r"[0-9a-f]+ <([^+>]*)>", call) for call in calls[name]]
        assert name in frames and all(called), f"{name}: {calls[name]}"
        called = [call.group(1) for call in called]
        assert not any(calls[callee] for callee in called), f"{name} calls {called}, which call others"
        need = frames[name] + sum(8 + frames[callee] for callee in called)
        assert need <= TOO_LARGE, f"{name} needs {need} bytes"
        print(f"{name}: {need} bytes")


with tempfile.TemporaryDirectory() as directory:
    os.chdir(directory)
    globals()[WHAT](*WORDS)
