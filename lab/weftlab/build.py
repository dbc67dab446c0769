# SPDX-License-Identifier: MIT OR Apache-2.0
"""Builds the programs: C and C++ by a compiler, folders by cargo or go. A program that cannot be built is skipped, with a line
that says how to get the missing tool. An up-to-date program is not built again."""
import contextlib
import hashlib
import json
import os
import platform
import re
import shlex
import shutil
import signal
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from .describe import Contender

PATIENCE = 300  # timeout in seconds of the commands of a program
TOOL_FOLDERS = ("~/.cargo/bin", "/usr/local/go/bin", "/usr/lib/go/bin")


class Unavailable(Exception):
    """A program that cannot be built here. The text says why, and how to get the missing tool."""


@dataclass
class Recipe:
    """Shell commands that build a peer's checkout, or a program with it."""
    script: str
    environment: dict
    log: Path
    inputs: list = field(default_factory=list)  # the program is built again if one of these files is newer
    why: str = ""  # why the commands cannot run here

    def run(self, folder, patience):
        """Raises Unavailable, with the first error and the path of the log."""
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with open(self.log, "w", errors="replace") as log:
            code = self._code(log, folder, patience)
        if code:
            lines = [line.strip() for line in self.log.read_text(errors="replace").splitlines() if line.strip()]
            first = next((line for line in lines if re.search(r"error\b|undefined reference|not found|No such file", line, re.I)
                          and not line.startswith("+")), lines[-1] if lines else f"exit code {code}")
            raise Unavailable(f"does not build: {first[:160]}; the log is {self.log}")

    def _code(self, log, folder, patience):
        """Returns the exit code of the commands. If the wait is interrupted, kills all processes that the commands started."""
        process = subprocess.Popen(["sh", "-euxc", self.script], cwd=folder, env={**os.environ, **self.environment},
                                   stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        try:
            return process.wait(patience)
        except BaseException as error:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            if isinstance(error, subprocess.TimeoutExpired):
                raise Unavailable(f"did not build within {patience} s; the log is {self.log}") from error
            raise


def find_tool(name):
    path = os.pathsep.join([os.environ.get("PATH", "")] + [os.path.expanduser(f) for f in TOOL_FOLDERS])
    return shutil.which(name, path=path)


def end_children():
    """Kills the children of this process: compilers for which its threads wait."""
    for listed in Path("/proc/self/task").glob("*/children"):
        for pid in listed.read_text().split():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGTERM)


class Builder:
    """Builds programs by the compiler itself, or by weft-launch and the compiler if they are instrumented."""

    def __init__(self, source, library_folder, folder, extra_folders=()):
        self.source = Path(source)
        self.lab = self.source / "lab"
        self.libraries = [Path(library_folder, "libweft-rt.a"), Path(library_folder, "libweft.a")]
        self.posix = Path(library_folder, "libweft-posix.so")
        self.activity = Path(library_folder, "libweft-activity.a")
        self.http = Path(library_folder, "libweft-http.a")
        self.llhttp = self.source / "build" / "packages" / "llhttp"
        self.libexec = Path(library_folder, "libexec", "weft")
        self.folder = Path(folder)
        self.roots = [self.lab, *map(Path, extra_folders)]
        self.cc = shlex.split(os.environ.get("CC", "gcc"))
        self.cxx = shlex.split(os.environ.get("CXX", "g++"))
        # Functions begin on a cache line. Otherwise the position of a hot loop within a line decides a fifth of the cost of a
        # call. Profilers need only functions and lines, and type information of C++'s library is slow to compile.
        self.cflags = ["-std=gnu11", "-O2", "-g1", "-falign-functions=64"]
        self.cxxflags = ["-std=gnu++20", "-O2", "-g1", "-falign-functions=64"]

    def build_all(self, contenders, progress):
        """Builds all programs of the contenders. Returns {key: path}, and {key: reason} for the programs that cannot be built."""
        jobs = {self.key(c): c for c in contenders}
        ready, missing = {}, {}

        def one(item):
            key, contender = item
            try:
                return key, self.build(contender), None
            except Unavailable as why:
                return key, None, str(why)

        with ThreadPoolExecutor(max_workers=max(1, os.cpu_count() or 1)) as pool:
            try:
                for done, (key, path, why) in enumerate(pool.map(one, jobs.items()), 1):
                    progress(done / len(jobs), f"building {done} of {len(jobs)} programs")
                    if path:
                        ready[key] = path
                    else:
                        missing[key] = why
            except KeyboardInterrupt:
                end_children()  # the pool waits for its threads, and these threads wait for compilers
                raise
        return ready, missing

    @staticmethod
    def key(contender):
        return " ".join([contender.program, *contender.defines, *contender.flags, *contender.libraries,
                         contender.instrumentation or ""])

    def build(self, contender):
        if contender.recipe:
            return self._by_recipe(contender)
        source = next((r / contender.program for r in self.roots if (r / contender.program).exists()), None)
        if source is None:
            raise Unavailable(f"{contender.program} is not there")
        if source.is_dir():
            return self._cargo(source) if (source / "Cargo.toml").exists() else self._go(source)
        return self._compile(source, contender)

    # ---- C and C++ --------------------------------------------------------------------------------------------

    def _compile(self, source, contender):
        if contender.tool and not find_tool(contender.tool):
            raise Unavailable(contender.get or f"{contender.tool} is not in PATH")
        cxx = source.suffix == ".cpp"
        compiler = self.cxx if cxx else self.cc
        activity = []
        if contender.activities:
            compiler, plugin = self._activities()
            activity = [f"-fpass-plugin={plugin}"]
        if not find_tool(compiler[0]):
            raise Unavailable(contender.get or f"{compiler[0]} is not installed: apt-get install --no-install-recommends gcc g++")
        launch, tools = self.instrument(contender.instrumentation)
        tag = hashlib.sha256(" ".join([self.key(contender), str(source), *compiler]).encode()).hexdigest()[:8]
        output = self.folder / "bin" / f"{source.stem}-{tag}"
        object_file = f"{output}.o"
        flags = [*(self.cxxflags if cxx else self.cflags), *contender.flags, *activity]
        compiling = [*launch, *compiler, *flags, *(f"-D{d}" for d in contender.defines),
                     f"-I{self.lab / 'impl'}", f"-I{self.source / 'include'}", "-c", str(source), "-o", object_file]
        linking = [*compiler, *contender.flags, object_file, "-o", str(output)]
        if contender.activities:
            linking.append(str(self.activity))
            tools = [*tools, plugin, self.activity]
        if contender.llhttp:
            parser = self._llhttp()
            compiling.append(f"-I{self.llhttp / 'include'}")
            linking += ["-O2", f"-I{self.llhttp / 'include'}", *map(str, parser)]
            tools = [*tools, *parser]
        if contender.http:
            http = self._http(contender.instrumentation)
            linking.append(str(http))
            tools = [*tools, http]
        if not cxx:
            linking += self._weft()
        linking += [f"-l{name}" for name in contender.libraries]
        if contender.posix:
            linking += ["-Wl,-u,weft__posix_begin", "-Wl,--push-state,--no-as-needed", str(self.posix), "-Wl,--pop-state",
                        f"-Wl,-rpath,{self.posix.parent}"]
        if self._up_to_date(output, compiling + linking, [source, *tools, *([] if cxx else self.libraries)]):
            return output
        output.parent.mkdir(parents=True, exist_ok=True)
        Path(f"{output}.command").unlink(missing_ok=True)  # the output of an interrupted linker is no program
        for command in (compiling, linking):
            self._call(command, source, contender)
        Path(f"{output}.command").write_text(shlex.join(compiling + linking))
        return output

    def _llhttp(self):
        """The C files of the HTTP parser."""
        files = [self.llhttp / "src" / name for name in ("llhttp.c", "api.c", "http.c")]
        absent = next((path for path in (self.llhttp / "include" / "llhttp.h", *files) if not path.exists()), None)
        if absent:
            raise Unavailable(f"not here: the sources of llhttp ({absent.relative_to(self.source)} is missing)")
        return files

    def _http(self, kind):
        """The HTTP library. Instrumented code needs a copy with the same instrumentation, which is built now."""
        if not self.http.exists():
            raise Unavailable(f"{self.http.name} was not built: it needs the sources of llhttp in {self.llhttp.relative_to(self.source)}")
        if not kind:
            return self.http
        built = subprocess.run(["cmake", "--build", str(self.http.parent), "--target", f"weft_http_{kind}"], capture_output=True, text=True)
        if built.returncode:
            raise Unavailable(f"libweft-http-{kind}.a does not build: {built.stderr.strip()[:200]}")
        return self.http.with_name(f"libweft-http-{kind}.a")

    def _weft(self):
        return [*map(str, self.libraries), "-pthread", "-Wl,--export-dynamic-symbol=weft.effect.*"]

    def variables(self):
        """The environment of commands that build a program on Weft."""
        return {"WEFT_CFLAGS": f"-I{self.source / 'include'}", "WEFT_LIBS": " ".join(self._weft())}

    def _activities(self):
        """Returns a clang, and the plugin of the same version."""
        for plugin in sorted(self.libexec.glob("libweft-activities-*.so"), reverse=True):
            clang = find_tool(f"clang-{plugin.stem.rsplit('-', 1)[1]}")
            if clang and self.activity.exists():
                return [clang], plugin
        raise Unavailable("needs clang and its headers for plugins: apt-get install --no-install-recommends clang-22 llvm-22-dev "
                          "libclang-22-dev, then run this again")

    @staticmethod
    def _call(command, source, contender):
        run = subprocess.run(command, capture_output=True, text=True)
        if not run.returncode:
            return
        error = next((line for line in run.stderr.splitlines() if "rror:" in line or "undefined" in line),
                     run.stderr.strip()[:200])
        if contender.get:
            raise Unavailable(f"{contender.get} ({error.split('error: ')[-1]})")
        raise RuntimeError(f"{source.name} does not compile: {error}")

    def instrument(self, name):
        """The words before the compiler command for an instrumentation, and the tools on which its objects depend."""
        if not name:
            return [], []
        tools = [self.libexec / "weft-launch", self.libexec / "weft-as"]
        if platform.machine() != "x86_64":
            raise Unavailable(f"no compiler splits stacks for {platform.machine()}: only on x86_64")
        for tool in tools:
            if not tool.exists():
                raise Unavailable(f"{tool.name} was not built: cmake --build {self.libraries[0].parent} --target weft_instrumentation")
        return [str(tools[0]), "--instrument", name], tools

    def _by_recipe(self, contender):
        """Builds a program that uses a checkout. The commands write it to $out."""
        recipe = contender.recipe
        if recipe.why:
            raise Unavailable(recipe.why)
        output = self.folder / "peers" / "bin" / self.key(contender).split()[-1]
        recipe.environment["out"] = str(output)
        inputs = [*recipe.inputs, *(path for path in (self.lab / "peers").glob("*.*") if path.is_file())]
        command = [recipe.script, json.dumps(recipe.environment)]
        if self._up_to_date(output, command, inputs):
            return output
        output.parent.mkdir(parents=True, exist_ok=True)
        Path(f"{output}.command").unlink(missing_ok=True)
        recipe.run(output.parent, PATIENCE)
        Path(f"{output}.command").write_text(shlex.join(command))
        return output

    # ---- policies -----------------------------------------------------------------------------------------------

    def unavailable(self, policies):
        """{policy: reason} for the policies that the library does not contain or cannot use here."""
        probe = Contender(id="policies", title="policies", kind="weft", program="impl/policies.c")
        run = subprocess.run([str(self.build(probe)), *policies], capture_output=True, text=True)
        if run.returncode:
            raise RuntimeError(f"policies.c ended with exit code {run.returncode}: {run.stderr.strip()[:200]}")
        return {policy: why for policy, why in json.loads(run.stdout).items() if why}

    def _up_to_date(self, output, command, inputs):
        record = Path(f"{output}.command")
        if not output.exists() or not record.exists() or record.read_text() != shlex.join(command):
            return False
        headers = [*(self.lab / "impl").glob("*.h"), *(self.source / "examples").glob("*.h"), *(self.source / "include").rglob("*.h")]
        return output.stat().st_mtime > max(p.stat().st_mtime for p in [*inputs, *headers])

    # ---- folders ------------------------------------------------------------------------------------------------

    def _run_tool(self, command, folder, extra):
        env = {**os.environ, **extra}
        env["PATH"] = os.pathsep.join([str(Path(command[0]).parent), env.get("PATH", "")])
        run = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True)
        if run.returncode:
            lines = [line for line in run.stderr.splitlines() if line.strip()]
            unreachable = re.search(r"[Cc]ould not resolve host: [\w.-]+|[Ff]ailed to connect to [\w.-]+|dial tcp[^\n]*", run.stderr)
            if unreachable:
                raise Unavailable(f"{Path(command[0]).name} needs the network: {unreachable[0]}")
            why = next((line for line in lines if "error" in line), lines[-1] if lines else "failed")
            raise Unavailable(f"{Path(command[0]).name} could not build it: {why.strip()[:160]}")

    def _cargo(self, source):
        cargo = find_tool("cargo")
        if not cargo:
            raise Unavailable("needs Rust: apt-get install --no-install-recommends cargo, or rustup; then the crate comes from the registry")
        target = self.folder / "cargo"
        self._run_tool([cargo, "build", "--release", "--locked", "--target-dir", str(target)], source, {})
        return target / "release" / f"lab-{source.name}"

    def _go(self, source):
        go = find_tool("go")
        if not go:
            raise Unavailable("needs Go 1.23 or later: apt-get install --no-install-recommends golang-go from backports, or the official archive")
        output = self.folder / "bin" / f"lab-{source.name}"
        output.parent.mkdir(parents=True, exist_ok=True)
        self._run_tool([go, "build", "-o", str(output), "."], source, {"GOTOOLCHAIN": "local", "GOWORK": "off"})
        return output
