#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Runs a program under a tool that looks for mistakes: watch.py [--memcheck] WHAT … PROGRAM [WORD…]. WHAT is

    clean                          it succeeds, and the tool reports nothing
    peace SOURCE                   like clean; an example also prints its expected output
    simulated SEEDS SOURCE         like peace, under each of SEEDS seeds
    cramped SOURCE                 without memory for stacks it prints its expected output, or ends with 1 and a line
    refused SOURCE                 it ends, without a report, by saying that it cannot resume more than once under this tool
    caught MISTAKE REPORT CALLER   (a regular expression) is reported, and the report names culprit_MISTAKE and CALLER

Without --memcheck the program was built with a sanitizer, or nothing watches it.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import textwrap

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"
SANITIZER_REPORT = re.compile(r"ERROR: |WARNING: |runtime error")
# Child processes are not watched, because in them tests make mistakes that must end the process. The program's own operator new
# stays.
VALGRIND = ["valgrind", "--child-silent-after-fork=yes", "--soname-synonyms=somalloc=nouserintercepts", "--leak-check=full",
            "--show-leak-kinds=definite", "--num-callers=30"]
LOST = re.compile(r"switching stacks|Serious error")  # valgrind does not know the stacks


class Run:
    """The output of a program, how it ended, the tool's output, and whether that is a report."""

    def __init__(self, memcheck, command, source=None, **environment):
        is_example = source is not None and source.parent in (EXAMPLES, EXAMPLES / "libraries", EXAMPLES / "ported")
        given = EXAMPLES / f"input/{source.stem}.in" if is_example else None
        with tempfile.NamedTemporaryFile("r", errors="replace") as log:
            command = (VALGRIND + [f"--log-file={log.name}"] if memcheck else []) + command
            with open(given if given and given.exists() else "/dev/null", "rb") as standard_input:
                done = subprocess.run(command, stdin=standard_input, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                      cwd=EXAMPLES if source else None, timeout=300, errors="replace",
                                      env=dict(os.environ, **environment))
            self.said = log.read() if memcheck else done.stderr
        self.out, self.status = done.stdout, done.returncode
        self.reports = (LOST.search(self.said) or "ERROR SUMMARY: 0 errors" not in self.said if memcheck
                        else SANITIZER_REPORT.search(self.said))
        self.expected = (EXAMPLES / f"expected/{source.stem}.txt").read_text() if is_example else self.out
        said = [self.out, done.stderr, self.said if memcheck else "", f"ended with {self.status}"]
        print(textwrap.indent("\n".join(said), "  "))  # indented, so that its "ok" lines are no results of this test


def clean(run):
    assert not run.reports, "a report about a program without a mistake"
    assert run.status == 0, f"ended with {run.status}"
    assert run.out == run.expected, f"printed that, and not:\n{run.expected}"


def simulated(seeds, program, source):
    for seed in range(int(seeds)):
        print(f"seed {seed}")
        clean(Run(False, program, source, WEFT_SIMULATE=str(seed)))


def cramped(program, source):
    for budget in ("1", "8K", "16K", "24K", "40K", "64K", "100K", "200K"):
        run = Run(False, program, source, WEFT_STACK="commit", WEFT_BUDGET=budget)
        if run.status:
            assert run.status == 1 and re.fullmatch(r"[^\n]+\n", run.said), f"a budget of {budget}: ended with {run.status}, not with 1 and a line"
        else:
            clean(run)


def refused(run):
    assert run.status != 0 and not run.reports, "was not refused, or with a report"
    assert re.search("Operation not supported|Sanitizer keeps a record", run.out + run.said), "does not say why"


def caught(run, mistake, report, caller):
    said = run.out + run.said
    assert re.search(report, said), f"not reported: {report}"
    for name in f"culprit_{mistake}", caller:
        assert re.search(rf"(in|at|by .*:|at .*:) {name}\b|{name} .*canary", said), f"the report does not name {name}"


def main():
    words = sys.argv[1:]
    memcheck = words[0] == "--memcheck"
    what, *words = words[memcheck:]
    if what == "clean":
        clean(Run(memcheck, words))
    elif what == "caught":
        mistake, report, caller, program = words
        caught(Run(memcheck, [program, mistake]), mistake, report, caller)
    elif what == "simulated":
        seeds, source, *command = words
        simulated(seeds, command, pathlib.Path(source))
    else:
        source, *command = words
        if what == "cramped":
            return cramped(command, pathlib.Path(source))
        run = Run(memcheck, command, pathlib.Path(source))
        clean(run) if what == "peace" else refused(run)


main()
