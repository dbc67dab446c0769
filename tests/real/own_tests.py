#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Programs of the distribution, instrumented, with their own tests: `main` runs in a coroutine whose first chunk is small.

    own_tests.py fetch                         downloads their sources from the distribution
    own_tests.py today COMPILER                the programs whose turn it is
    own_tests.py runs PROGRAM COMPILER         builds one and runs its tests

WEFT_ROTA, a number that tests/CMakeLists.txt takes from the day of the year, chooses half of the programs (the other compiler
has the other half), the instrumentation and the optimization level, so that 24 days have all of them. WEFT_EXHAUSTIVE=1: every
program and instrumentation.
"""
import concurrent.futures
import functools
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
PACKAGES = {"zstd": "libzstd", "libxml2": "libxml2", "xz": "xz-utils", "re2": "re2", "tcc": "tcc", "sqlite": "sqlite3"}
PROGRAMS = list(PACKAGES)
# None of these is installed: the tables from which re2's sources are generated, and the language of SQLite's tests.
UNPACKED = {"re2": ["unicode-data"], "sqlite": ["tcl8.6", "libtcl8.6", "tcl8.6-dev"]}
NOBODY = 65534
ROTA = int(os.environ.get("WEFT_ROTA", "0"))


def run(*command, expect=0, **more):
    more = {"timeout": 900, "stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, **more}
    done = subprocess.run([str(word) for word in command], check=False, **more)
    if done.returncode != expect:
        print((done.stdout or b"").decode(errors="replace")[-3000:])
        sys.exit(f"not ok - {' '.join(str(word) for word in command)[:300]}: exit code {done.returncode}")
    return (done.stdout or b"").decode(errors="replace")


# ---- sources ---------------------------------------------------------------------------------------------------------

def source_lists():
    """The system's package lists, with source packages, and with a state of their own."""
    lists = FETCHED / "apt"
    (lists / "state/partial").mkdir(parents=True, exist_ok=True)
    for file in (pathlib.Path("/etc/apt/sources.list"), *pathlib.Path("/etc/apt/sources.list.d").glob("*")):
        if file.exists() and file.suffix in (".list", ".sources"):
            text = re.sub(r"^deb(?= )", "deb-src", re.sub(r"^Types:.*", "Types: deb-src", file.read_text(), flags=re.M), flags=re.M)
            (lists / file.name).write_text(text)
    (FETCHED / "apt.conf").write_text(f'Dir::Etc::SourceList "/dev/null";\nDir::Etc::SourceParts "{lists}";\n'
                                      f'Dir::State::Lists "{lists}/state";\nAPT::Sandbox::User "root";\n')
    return {**os.environ, "APT_CONFIG": str(FETCHED / "apt.conf")}


def versions_of(package, environment):
    """The versions, newest first. A mirror may list a version that it does not have."""
    listed = subprocess.run(["apt-cache", "showsrc", "--only-source", package], env=environment, check=True, timeout=100,
                            capture_output=True, text=True).stdout
    versions = dict.fromkeys(re.findall(r"^Version: (\S+)$", listed, flags=re.M))
    older = functools.cmp_to_key(lambda a, b: 1 if subprocess.run(["dpkg", "--compare-versions", a, "gt", b], check=False).returncode == 0 else -1)
    return sorted(versions, key=older, reverse=True)


def download(package, into, environment):
    for version in versions_of(package, environment):
        into.mkdir(parents=True)
        command = ["apt-get", "-q", "source", "--download-only", "--only-source", f"{package}={version}"]
        if subprocess.run(command, cwd=into, env=environment, check=False, timeout=300, stdout=sys.stderr).returncode == 0:
            return next(file for file in into.glob("*.orig.tar.*") if file.suffix != ".asc")
        shutil.rmtree(into)
    raise OSError("no mirror has it")


def unpack(packages, into):
    for package in packages:
        with tempfile.TemporaryDirectory() as where:
            subprocess.run(["apt-get", "-q", "-o", "APT::Sandbox::User=root", "download", package], cwd=where, check=True, timeout=300,
                           stdout=sys.stderr)
            subprocess.run(["dpkg-deb", "-x", next(pathlib.Path(where).glob("*.deb")), into], check=True, timeout=100)


def fetch_package(program, environment):
    target, part = FETCHED / program, FETCHED / f"{program}.part"
    if target.exists():
        return
    shutil.rmtree(part, ignore_errors=True)
    archive = download(PACKAGES[program], part / "packed", environment)
    (part / "files").mkdir()
    subprocess.run(["tar", "-C", part / "files", "-xf", archive], check=True, timeout=100)
    top = list((part / "files").iterdir())
    unpack(UNPACKED.get(program, []), FETCHED / f"{program}.needs")
    (top[0] if len(top) == 1 else part / "files").rename(target)
    shutil.rmtree(part)


def fetch():
    """Reports sources that cannot be fetched; their tests are skipped."""
    missing = [program for program in PACKAGES if not (FETCHED / program).exists()]
    try:
        environment = source_lists() if missing else {}
        if missing:
            subprocess.run(["apt-get", "-q", "update"], env=environment, check=True, timeout=300, stdout=sys.stderr)
        for program in missing:
            try:
                fetch_package(program, environment)
                print(f"ok - {program}")
            except (subprocess.SubprocessError, OSError, StopIteration) as error:
                print(f"skip - the distribution's source of {program} cannot be fetched here: {error}")
    except (subprocess.SubprocessError, OSError) as error:
        print(f"skip - sources of the distribution cannot be fetched here: {error}")
    finally:
        shutil.rmtree(FETCHED / "apt", ignore_errors=True)
        (FETCHED / "apt.conf").unlink(missing_ok=True)


# ---- building and running --------------------------------------------------------------------------------------------

class Build:
    """A copy of a program's sources, to be compiled by `weft cc`. The programs' makefiles do not support a blank in a path, which
    the path of this tree may contain: the copy is in a temporary directory, and a script there calls `weft`."""

    def __init__(self, program, kind, compiler, level, where):
        self.directory = pathlib.Path(where) / program
        self.environment = {**os.environ, "WEFT_CC": compiler, "LC_ALL": "C"}
        weft = pathlib.Path(where) / "weft"
        weft.write_text(f'#!/bin/sh\nexec "{WEFT}" "$@"\n')
        weft.chmod(0o755)
        self.cc, self.cxx = ([weft, name, "--no-install", "--instrument", kind, level, "-w"] for name in ("cc", "c++"))
        self.needs = pathlib.Path(where) / "needs"
        self.needs.symlink_to(FETCHED / f"{program}.needs")
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

    def configure(self, *flags):
        self.run("./configure", *flags, f"CC={words(self.cc)}", "CFLAGS= ", f"LDFLAGS={self.main_in_coroutine()}")


def words(command):
    return " ".join(str(word) for word in command)


def zstd_sources(build):
    folders = ("lib/common", "lib/compress", "lib/decompress", "lib/dictBuilder")
    files = [file for folder in folders for file in sorted((build.directory / folder).glob("*.c"))]
    files += [build.directory / name for name in ("tests/fuzzer.c", "programs/datagen.c", "programs/util.c", "programs/timefn.c")]
    flags = ["-DDEBUGLEVEL=1", "-DZSTD_MULTITHREAD", "-DXXH_NAMESPACE=ZSTD_", "-DZSTD_DISABLE_ASM", "-DZSTD_LEGACY_SUPPORT=0"]
    return files, flags + [f"-I{build.directory / folder}" for folder in (*folders, "lib", "programs")]


def zstd(build):
    """zstd's fuzzer: unit tests, then random data through every level and strategy."""
    files, flags = zstd_sources(build)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda f: build.run(*build.cc, *flags, "-c", f, "-o", f"{f.name}.o"), files))
    objects = sorted(build.directory.glob("*.c.o"))
    build.run(*build.cc, *objects, "-pthread", *build.main_in_coroutine().split(), "-o", "fuzzer")
    return [(["./fuzzer", "-s7", "-i20", "--no-big-tests"], r"20 fuzzer tests completed")]


def libxml2(build):
    """Every function of its interface with unusual arguments, characters, dictionaries, and endless documents. The distribution
    has removed the documents, so the other tests have nothing to compare."""
    build.configure("--disable-shared", "--without-python", "--without-lzma", "--without-zlib", "--without-http", "--without-ftp")
    proofs = {"testapi": r"[1-9]\d+ tests, 0 errors", "testchar": r"char in document: 1 2 3 4 done", "testdict": r"dictionary tests succeeded",
              "testlimits": r"Total [1-9]\d+ tests, no errors"}
    build.run("make", "-j2", *proofs)
    return [([f"./{program}"], proof) for program, proof in proofs.items()]


def xz(build):
    """`make check`: its filters, checks, containers, and archives that it ships."""
    build.configure("--disable-shared", "--disable-nls", "--disable-doc", "--disable-scripts")
    build.run("make", "-j2")
    build.run("make", "-j2", "check", "TESTS=")
    return [(["make", "check"], r"# PASS: +[1-9]\d*")]


def re2(build):
    """Random and enumerated expressions and texts, each by all of its engines."""
    folder = build.directory / "re2"
    script = (folder / "unicode.py").read_text()
    (folder / "unicode.py").write_text(re.sub('^_UNICODE_DIR = .*', f'_UNICODE_DIR = "{build.needs}/usr/share/unicode"', script, flags=re.M))
    for made, by in (("perl_groups", ["perl", "re2/make_perl_groups.pl"]), ("unicode_casefold", [sys.executable, "re2/make_unicode_casefold.py"]),
                     ("unicode_groups", [sys.executable, "re2/make_unicode_groups.py"])):
        (folder / f"{made}.cc").write_text(build.run(*by))
    make = ["make", f"CXX={words(build.cxx)}", "CXXFLAGS=-pthread", f"LDFLAGS=-pthread {build.main_in_coroutine()}", "static-test"]
    build.run(*make, "-j2")
    return [(make, r"ALL TESTS PASSED")]


def tcc(build):
    """Its suite: programs that it compiles and runs in memory, which calls uninstrumented code."""
    build.run("./configure", f"--cc={words(build.cc)}", "--extra-cflags= ", f"--extra-ldflags={build.main_in_coroutine()}")
    build.run("make", "tcc", "libtcc1.a")
    return [(["make", "-C", "tests/tests2"], r"Test: 1\d\d_")]


def sqlite(build):
    """Its quick tests, in Tcl, whose interpreter calls back instrumented code: a sixth of the files. They do not work as root,
    nor, with the plain program, beside the files of an earlier run."""
    tcl = build.needs / "usr"
    libraries = next(tcl.glob("lib/*/libtcl8.6.so")).parent
    build.environment.update(TCL_LIBRARY=str(tcl / "share/tcltk/tcl8.6"), LD_LIBRARY_PATH=str(libraries))
    build.configure(f"--with-tcl={libraries / 'tcl8.6'}", "--disable-shared")
    build.run("make", "testfixture", f"TCLSH_CMD={tcl}/bin/tclsh8.6", f"LIBTCL=-L{libraries} -ltcl8.6 -lm -lz", f"OPTS=-I{tcl}/include/tcl8.6")
    third_letters = ("s", "tn", "lau", "rei", "cdmopwv", "bfghjkqxyz0-9_.")[ROTA // 2 % 6]
    build.environment["QUICKTEST_OMIT"] = f"^..[^{third_letters}]"
    as_nobody = []
    if os.geteuid() == 0:
        build.run("chown", "-R", NOBODY, build.directory.parent)
        as_nobody = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    return [([*as_nobody, "sh", "-c", "rm -rf testdir && exec ./testfixture test/extraquick.test"], r"0 errors out of [1-9]\d{3,} tests")]


def today(compiler):
    """Every second program, unless all are requested."""
    turn = ROTA + ("clang" in compiler)
    print(";".join(program for i, program in enumerate(PROGRAMS) if "WEFT_EXHAUSTIVE" in os.environ or (i + turn) % 2 == 0))


def kinds_of(program, compiler):
    """tcc leaves a handler of SIGSEGV by longjmp, with the signal blocked, so chunks of mmu cannot grow afterwards."""
    kinds = [kind for kind in POLICIES if (program, kind) != ("tcc", "mmu")]
    if "WEFT_EXHAUSTIVE" in os.environ:
        return kinds
    return [kinds[(ROTA // 2 + PROGRAMS.index(program) + ("clang" in compiler)) % len(kinds)]]


def what_it_says(output, proof):
    """Checks by a pattern of its output that its tests have run."""
    found = re.findall(proof, output)
    if not found:
        print(output[-3000:])
        sys.exit(f"not ok - no test has run: nothing in the output is like {proof}")
    return found[-1]


def runs(program, compiler):
    level = LEVELS[(ROTA // 6 + PROGRAMS.index(program)) % len(LEVELS)]
    for kind in kinds_of(program, compiler):
        with tempfile.TemporaryDirectory(prefix="weft-own-tests-") as where:
            build = Build(program, kind, compiler, level, where)
            commands = {each.__name__: each for each in (zstd, libxml2, xz, re2, tcc, sqlite)}[program](build)
            for policy in POLICIES[kind]:
                said = [what_it_says(build.run(*command, policy=policy), proof) for command, proof in commands]
                print(f"ok - {program} {level}: its own tests on {policy}: {', '.join(said)}")


{each.__name__: each for each in (fetch, today, runs)}[sys.argv[1]](*sys.argv[2:])
