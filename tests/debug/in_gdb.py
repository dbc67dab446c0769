# SPDX-License-Identifier: MIT OR Apache-2.0
"""Runs inside gdb: walks stacks and prints them, for walk.py to compare.

The convenience variable $_weft_task, set on gdb's command line, selects the task: chains, step, or look.
"""
import re

import gdb

OURS = set(
    "stop leaf branch innermost middle outermost run foster run_fostered sibling switches run_sideways on_signal "
    "run_finished misuses deep overflows spin spins main weft__entry weft__entry_saving weft__die_misuse "
    "step_main step_inner step_outer pairs "
    "bottom descend compares sorts body resumes threaded steps".split()
)


def name_of(frame):
    """gdb takes two underscores in names of assembly for Ada's."""
    return str(frame.name()).replace("weft.", "weft__")


def walk(limit=400):
    """The names of the relevant frames, innermost first, and the reason why the walk ended ("" if it ended correctly)."""
    names = []
    frame = gdb.newest_frame()
    trouble = ""
    for _ in range(limit):
        if name_of(frame) in OURS:
            names.append(name_of(frame))
        older = frame.older()
        if older is None:
            reason = frame.unwind_stop_reason()
            if reason not in (gdb.FRAME_UNWIND_NO_REASON, gdb.FRAME_UNWIND_OUTERMOST):
                trouble = gdb.frame_stop_reason_string(reason)
            break
        frame = older
    return names, trouble


def report(title, names, trouble):
    print(f"WALK {title}: {' '.join(names)}" + (f" ({trouble})" if trouble else ""))


def check_finish():
    """Tests finish, from the selected frame and from a coroutine's outermost frame; and up, into the resumer."""
    gdb.execute("finish", to_string=True)
    print(f"WALK finish: {name_of(gdb.newest_frame())}")
    while gdb.selected_frame().name() != "innermost":
        gdb.execute("up", to_string=True)
    gdb.execute("finish", to_string=True)
    print(f"WALK finish innermost: {name_of(gdb.newest_frame())}")
    while gdb.selected_frame().name() != "middle":
        gdb.execute("up", to_string=True)
    print(f"WALK up: {gdb.selected_frame().name()} {gdb.selected_frame().find_sal().symtab.filename.split('/')[-1]}")


def chains():
    gdb.execute("handle SIGUSR1 SIGSEGV nostop noprint pass", to_string=True)
    gdb.Breakpoint("*stop", internal=True)  # before the prologue: the argument is in its register
    gdb.execute("run", to_string=True)
    finished = False
    while gdb.selected_inferior().pid:
        title = gdb.parse_and_eval("(const char *)$rdi").string()
        report(title, *walk())
        text = gdb.execute("backtrace", to_string=True)
        for phrase in ("corrupt", "inner to this frame", "identical to this frame"):
            if phrase in text:
                print(f"WALK {title}: backtrace says: {phrase}")
        if title == "two" and not finished:
            finished = True
            check_finish()
        gdb.execute("continue", to_string=True)


def step():
    """Walk at every instruction between step_begin and step_end."""
    gdb.execute("handle SIGSEGV nostop noprint pass", to_string=True)
    gdb.Breakpoint("step_begin", internal=True)
    gdb.execute("run", to_string=True)
    gdb.execute("finish", to_string=True)
    total, bad, outside = 0, {}, {}
    while True:
        frame = gdb.newest_frame()
        if frame.name() == "step_end":
            break
        names, trouble = walk(60)
        total += 1
        good = names[-2:] == ["step_main", "main"] and not trouble
        if not good:
            where = name_of(frame)
            what = gdb.execute("x/i $pc", to_string=True).split("\t", 1)[-1].strip()
            # Between the loads of rsp and rbp and the jump, unwind information could only describe the target's frame: the walk
            # ends, or shows the frames inlined in one function.
            last = where.startswith("weft_arch_") and re.match(r"jmp +\*|mov +0x[0-9a-f]+\(%rdi\),%rbp", what) and len(names) < 2 and not trouble
            (bad if last else outside)[frame.pc()] = f"{where}: {what}: {' '.join(names)} {trouble}"
        gdb.execute("stepi", to_string=True)
        if total > 20000:
            print("STEP lost: never came to step_end")
            break
    print(f"STEP instructions {total}, addresses where the walk breaks: {len(bad)} in inlined switches, {len(outside)} elsewhere")
    for where in list(bad.items()) + [(pc, "ELSEWHERE " + text) for pc, text in outside.items()]:
        print(f"STEP {where[0]:#x} {where[1]}")


def look():
    """Walks once: in a core dump, or at the point where the program stopped."""
    if not gdb.selected_inferior().pid:
        gdb.execute("run", to_string=True)
    names, trouble = walk(100000)
    report("end", names[-12:], trouble)


gdb.execute("set pagination off")
gdb.execute("set debuginfod enabled off")
gdb.execute("set confirm off")
{"chains": chains, "step": step, "look": look}[gdb.convenience_variable("_weft_task").string()]()
