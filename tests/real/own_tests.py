#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Programs of the distribution, instrumented, with the tests that they bring along: `main` in a coroutine whose first chunk is small.

    own_tests.py fetch                         their sources, as the distribution carries them
    own_tests.py runs PROGRAM COMPILER         builds one (zstd, xz, tcc) and runs its tests

WEFT_ROTA, the day of the year unless it is set, chooses the instrumentation and the optimization level, so that twelve days have all of
them. WEFT_EXHAUSTIVE=1: every instrumentation.
"""
import concurrent.futures
import datetime
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
WEFT = HERE.parents[1] / "weft"
HOST = HERE.parent / "torture/host.c"
FETCHED = pathlib.Path(os.environ.get("WEFT_BUILD_ROOT") or HERE.parents[1] / "build") / "own_tests"
POLICIES = {"segmented": ("segmented:4K", "heap:4K"), "mmu": ("mmu:4K",), "lookahead": ("lookahead:4K",)}
LEVELS = ("-O1", "-O2", "-O3", "-Os")
PACKAGES = {"zstd": "libzstd", "xz": "xz-utils", "tcc": "tcc"}
ROTA = int(os.environ.get("WEFT_ROTA", datetime.date.today().timetuple().tm_yday))


def run(*command, expect=0, **more):
    more = {"timeout": 900, "stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, **more}
    done = subprocess.run([str(word) for word in command], check=False, **more)
    if done.returncode != expect:
        print((done.stdout or b"").decode(errors="replace")[-3000:])
        sys.exit(f"not ok - {' '.join(str(word) for word in command)[:300]}: exit code {done.returncode}")
    return (done.stdout or b"").decode(errors="replace")


# ---- sources ---------------------------------------------------------------------------------------------------------

def source_lists():
    """The system's lists of packages, asked for sources, with a state of their own."""
    lists = FETCHED / "apt"
    (lists / "state/partial").mkdir(parents=True, exist_ok=True)
    for file in (pathlib.Path("/etc/apt/sources.list"), *pathlib.Path("/etc/apt/sources.list.d").glob("*")):
        if file.exists() and file.suffix in (".list", ".sources"):
            text = re.sub(r"^deb(?= )", "deb-src", re.sub(r"^Types:.*", "Types: deb-src", file.read_text(), flags=re.M), flags=re.M)
            (lists / file.name).write_text(text)
    (FETCHED / "apt.conf").write_text(f'Dir::Etc::SourceList "/dev/null";\nDir::Etc::SourceParts "{lists}";\n'
                                      f'Dir::State::Lists "{lists}/state";\nAPT::Sandbox::User "root";\n')
    return {**os.environ, "APT_CONFIG": str(FETCHED / "apt.conf")}


def fetch_package(program, environment):
    target, part = FETCHED / program, FETCHED / f"{program}.part"
    if target.exists():
        return
    shutil.rmtree(part, ignore_errors=True)
    (part / "packed").mkdir(parents=True)
    subprocess.run(["apt-get", "-q", "source", "--download-only", PACKAGES[program]], cwd=part / "packed", env=environment, check=True,
                   timeout=300, stdout=sys.stderr)
    archive = next(file for file in (part / "packed").glob("*.orig.tar.*") if file.suffix != ".asc")
    (part / "files").mkdir()
    subprocess.run(["tar", "-C", part / "files", "-xf", archive], check=True, timeout=100)
    top = list((part / "files").iterdir())
    (top[0] if len(top) == 1 else part / "files").rename(target)
    shutil.rmtree(part)


def fetch():
    if all((FETCHED / program).exists() for program in PACKAGES):
        return
    try:
        environment = source_lists()
        subprocess.run(["apt-get", "-q", "update"], env=environment, check=True, timeout=300, stdout=sys.stderr)
        for program in PACKAGES:
            fetch_package(program, environment)
            print(f"ok - {program}")
    except (subprocess.SubprocessError, OSError, StopIteration) as error:
        print(f"skip - sources of the distribution cannot be fetched here: {error}")
    finally:
        shutil.rmtree(FETCHED / "apt", ignore_errors=True)


# ---- building and running --------------------------------------------------------------------------------------------

class Build:
    """A copy of a program's sources, to be compiled by `weft cc`. The programs' makefiles stand no blank in a path, ours may have some: the
    copy is in a temporary directory, and a script there leads to `weft`."""

    def __init__(self, program, kind, compiler, level, where):
        self.directory = pathlib.Path(where) / program
        self.environment = {**os.environ, "WEFT_CC": compiler, "LC_ALL": "C"}
        weft = pathlib.Path(where) / "weft"
        weft.write_text(f'#!/bin/sh\nexec "{WEFT}" "$@"\n')
        weft.chmod(0o755)
        self.cc = [weft, "cc", "--no-install", "--instrument", kind, level, "-w"]
        self.host = self.directory / "weft-host.o"
        if not (FETCHED / program).exists():
            print(f"skip - {program}: its sources are not here: see the output of real.own.fetch")
            sys.exit(77)
        shutil.copytree(FETCHED / program, self.directory, symlinks=True)
        self.run(*self.cc, "-c", HOST, "-o", self.host)

    def run(self, *command, policy=None, **more):
        environment = {**self.environment, **({"WEFT_STACK": policy} if policy else {})}
        return run(*command, **{"cwd": self.directory, "env": environment, **more})

    def main_in_coroutine(self):
        return f"-Wl,{self.host} -Wl,--wrap=main"


def zstd_sources(build):
    folders = ("lib/common", "lib/compress", "lib/decompress", "lib/dictBuilder")
    files = [file for folder in folders for file in sorted((build.directory / folder).glob("*.c"))]
    files += [build.directory / name for name in ("tests/fuzzer.c", "programs/datagen.c", "programs/util.c", "programs/timefn.c")]
    flags = ["-DDEBUGLEVEL=1", "-DZSTD_MULTITHREAD", "-DXXH_NAMESPACE=ZSTD_", "-DZSTD_DISABLE_ASM", "-DZSTD_LEGACY_SUPPORT=0"]
    return files, flags + [f"-I{build.directory / folder}" for folder in (*folders, "lib", "programs")]


def zstd(build):
    """Its fuzzer: unit tests, then random data through every level and strategy."""
    files, flags = zstd_sources(build)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda f: build.run(*build.cc, *flags, "-c", f, "-o", f"{f.name}.o"), files))
    objects = sorted(build.directory.glob("*.c.o"))
    build.run(*build.cc, *objects, "-pthread", *build.main_in_coroutine().split(), "-o", "fuzzer")
    return [["./fuzzer", "-s7", "-i20", "--no-big-tests"]]


def xz(build):
    """`make check`: its filters, checks, containers, and archives that it ships."""
    cc = " ".join(str(word) for word in build.cc)
    build.run("./configure", "--disable-shared", "--disable-nls", "--disable-doc", "--disable-scripts", f"CC={cc}", "CFLAGS= ",
              f"LDFLAGS={build.main_in_coroutine()}")
    build.run("make", "-j2")
    build.run("make", "-j2", "check", "TESTS=")
    return [["make", "check"]]


def tcc(build):
    """Its suite: programs that it compiles and runs in memory, which calls code that nobody instrumented."""
    cc = " ".join(str(word) for word in build.cc)
    build.run("./configure", f"--cc={cc}", "--extra-cflags= ", f"--extra-ldflags={build.main_in_coroutine()}")
    build.run("make", "tcc", "libtcc1.a")
    return [["make", "-C", "tests/tests2"]]


def kinds_of(program, compiler):
    """tcc leaves a handler of SIGSEGV by longjmp, with the signal blocked; chunks of mmu cannot grow then."""
    kinds = [kind for kind in POLICIES if (program, kind) != ("tcc", "mmu")]
    if "WEFT_EXHAUSTIVE" in os.environ:
        return kinds
    return [kinds[(ROTA + sorted(PACKAGES).index(program) + ("clang" in compiler)) % len(kinds)]]


def runs(program, compiler):
    level = LEVELS[(ROTA + sorted(PACKAGES).index(program)) % len(LEVELS)]
    for kind in kinds_of(program, compiler):
        with tempfile.TemporaryDirectory(prefix="weft-own-tests-") as where:
            build = Build(program, kind, compiler, level, where)
            commands = {"zstd": zstd, "xz": xz, "tcc": tcc}[program](build)
            for policy in POLICIES[kind]:
                for command in commands:
                    build.run(*command, policy=policy)
                print(f"ok - {program} {level}: its own tests on {policy}")


{each.__name__: each for each in (fetch, runs)}[sys.argv[1]](*sys.argv[2:])
