#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Third-party programs from packages of the distribution: gcc's torture suite, and programs that csmith generates.

    suites.py fetch DIRECTORY               downloads both, installs neither
    suites.py gcc DIRECTORY COMPILER        runs a part of the torture suite by torture.py, with WEFT_TORTURE=1 all of it
    suites.py csmith DIRECTORY COMPILER     runs 34 programs of csmith, with WEFT_TORTURE=1 100
    suites.py paths DIRECTORY COMPILER [WEFT_AS]
                                            runs 100 programs of paths.py, from WEFT_SEED on (1), by a given weft-as
    suites.py arguments DIRECTORY ARCHIVE   runs programs that pass many arguments, with ARCHIVE for Weft's library
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys

import paths as path_programs

HERE = pathlib.Path(__file__).resolve().parent
SEEDS = set(range(1, 109)) - {15, 20, 60, 67, 78, 85, 91, 98}  # of csmith 2.3, without the seeds whose programs do not end
# Features that may fail if stacks are not as compilers assume: arguments, arrays, labels, structures, frames.
TELLING = re.compile(r"alloca|va_arg|va_start|\[n\]|&&[a-z]|nest|return_address|frame_address|apply|setjmp|aligned|struct-")


def skip(what, why):
    print(f"skip - {what}: it is not to be had: {why}")
    sys.exit(77)


def unpacked(where, package):
    """Fetches a package's files: completely, or not at all."""
    target = where / package
    if not target.exists():
        part = where / f"{package}.part"
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
        subprocess.run(["apt-get", "download", package], cwd=part, check=True, timeout=300, stdout=sys.stderr)
        subprocess.run(["dpkg-deb", "-x", *part.glob("*.deb"), part / "files"], check=True)
        part.rename(target)
    return target / "files"


def fetch_gcc(where):
    """Keeps one folder of 80 megabytes of sources."""
    suite, part = where / "execute", where / "execute.part"
    if suite.exists():
        return
    found = subprocess.run(["apt-cache", "search", "--names-only", "^gcc-[0-9]+-source$"], capture_output=True, text=True).stdout
    package = sorted(line.split()[0] for line in found.splitlines())[0]
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    archive = next(unpacked(where, package).glob("usr/src/gcc-*/gcc-*.tar.*"))
    subprocess.run(["tar", "-C", part, "--strip-components=5", "--wildcards", "-xf", archive,
                    "*/gcc/testsuite/gcc.c-torture/execute/*.c"], check=True)
    shutil.rmtree(where / package)
    part.rename(suite)


def fetch(where):
    for what, get in (("gcc's torture suite", fetch_gcc), ("csmith", lambda where: unpacked(where, "libcsmith-dev"))):
        try:
            get(where)
            print(f"ok - {what} is here")
        except (subprocess.SubprocessError, OSError, IndexError, StopIteration) as error:
            print(f"skip - {what}: not to be had: {error}; apt-get update, with a mirror that has gcc-12-source and libcsmith-dev")


def torture(work, compiler, *words):
    command = [sys.executable, HERE / "torture.py", "--work", work, "--compilers", compiler, "--known", HERE / "known", "--jobs", "1", *words]
    sys.exit(subprocess.run([str(word) for word in command]).returncode)


def gcc(where, compiler):
    """Every 24th program, and every fourth of the programs about stacks."""
    every = int(os.environ.get("WEFT_TORTURE", 24))
    programs = sorted((where / "execute").glob("*.c"))
    if not programs:
        skip("gcc's torture suite", "apt-get update, with a mirror that has gcc-12-source")
    telling = [path for path in programs if TELLING.search(path.read_text(errors="replace"))]
    chosen = sorted({*(programs + sorted((where / "execute/ieee").glob("*.c")))[::every], *telling[::4 if every > 1 else 1]})
    assert len(chosen) > 80
    torture(f"suite.{pathlib.Path(compiler).name}", compiler, "--old", *chosen)


def csmith(where, compiler):
    tool, headers = shutil.which("csmith"), where / "libcsmith-dev/files/usr/include/csmith"
    if not tool or not headers.exists():
        skip("csmith", "apt-get install --no-install-recommends csmith libcsmith-dev")
    work = pathlib.Path(f"csmith.{pathlib.Path(compiler).name}")
    work.mkdir(exist_ok=True)
    seeds = sorted(SEEDS)
    if "WEFT_TORTURE" not in os.environ:
        seeds = seeds[1::3] if "clang" in compiler else seeds[::3]  # each compiler has its share
    programs = [work / f"{seed}.c" for seed in seeds]
    for program in programs:
        subprocess.run([tool, "--seed", program.stem, "--max-funcs", "6", "--max-block-size", "3", "-o", program], check=True,
                       timeout=20, stdout=subprocess.DEVNULL)
    torture(f"random.{pathlib.Path(compiler).name}", compiler, f"--include={headers}", *programs)


def paths(_, compiler, *weft_as):
    name = f"paths.{pathlib.Path(compiler).name}{'.other' if weft_as else ''}"
    work = pathlib.Path(name)
    work.mkdir(exist_ok=True)
    # At one level a mistake shows in few programs, which is enough for a canary.
    programs = path_programs.write(work, int(os.environ.get("WEFT_SEED", 1)), 60 if weft_as else 100)
    torture(f"run.{name}", compiler, *(("--assembler", weft_as[0], "--level=-O1", "--kinds", "segmented") if weft_as else ()), *programs)


def arguments(where, archive):
    programs = [path for pattern in ("struct-*.c", "va-arg-*.c") for path in sorted((where / "execute").glob(pattern))]
    if not programs:
        skip("gcc's torture suite", "apt-get update, with a mirror that has gcc-12-source")
    torture(f"arguments.{pathlib.Path(archive).name}", "gcc", "--old", "--kinds", "segmented", f"--link={archive}", *programs)


{each.__name__: each for each in (fetch, gcc, csmith, paths, arguments)}[sys.argv[1]](pathlib.Path(sys.argv[2]), *sys.argv[3:])
