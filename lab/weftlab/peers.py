# SPDX-License-Identifier: MIT OR Apache-2.0
"""Checkouts of the user's, `--peer NAME=DIR`: libraries that no package registry has, and suites of benchmarks.

For each name, descriptions/peers.toml says how to recognize a checkout, how to build it, and which programs it adds to which
cases. A checkout is copied to build/lab/peers/NAME and built there: nothing is written to the user's directory. A checkout that
cannot be used gives one line, and the lab continues without it.
"""
import difflib
import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

from . import machine
from .build import Recipe, Unavailable, find_tool
from .describe import INSTRUMENTATION, SIZES, Contender, DescriptionError

PEER_KEYS = {"title", "source", "tried", "has", "tools", "machines", "build", "cannot"}
PROGRAM_KEYS = {"id", "title", "with", "tools", "build", "runner", "foreign", "answer", "args", "policies", "case"}
CASE_KEYS = {"in", "args", "params", "instead_of", "expect", "ops", "sizes"}
PATIENCE = 900  # maximum number of seconds to build a checkout


@dataclass
class Checkout:
    """A directory that the user named. `why` is the reason why it cannot be used."""
    name: str
    folder: Path
    tree: Path  # the copy that is built
    commit: str = "unknown"
    dirty: bool = False
    why: str = ""

    def as_dict(self):
        return {"name": self.name, "folder": str(self.folder), "commit": self.commit, "dirty": self.dirty, "why": self.why}

    def line(self):
        return f"--peer {self.name}={self.folder}: {self.why}"


@dataclass
class Known:
    """The contents of the descriptions: {name: table}, programs, and {tool: package}."""
    peers: dict = field(default_factory=dict)
    programs: list = field(default_factory=list)
    tools: dict = field(default_factory=dict)

    def cases_of(self, name):
        """The ids of all cases in which a peer takes part."""
        return {case for p in self.programs if name in p["with"] for entry in p["case"] for case in entry["in"]}

    def experiments_of(self, name):
        return ", ".join(sorted({case.split("/")[0] for case in self.cases_of(name)}))


def load(folders):
    known = Known()
    for path in (Path(folder, "peers.toml") for folder in folders):
        if not path.exists():
            continue
        try:
            text = tomllib.loads(path.read_text())
        except tomllib.TOMLDecodeError as error:
            raise DescriptionError(f"{path}: {error}") from error
        known.peers.update(text.get("peer", {}))
        known.programs += text.get("program", [])
        known.tools.update(text.get("tools", {}))
        _check(path, known)
    return known


def _check(path, known):
    tables = [(f"peer {name}", table, PEER_KEYS) for name, table in known.peers.items()]
    tables += [(f"program {p.get('id')}", p, PROGRAM_KEYS) for p in known.programs]
    tables += [(f"program {p.get('id')}", c, CASE_KEYS) for p in known.programs for c in p.get("case", [])]
    for what, table, allowed in tables:
        unknown = set(table) - allowed
        if unknown:
            raise DescriptionError(f"{path}: {what}: unknown key {', '.join(sorted(unknown))}")


def chosen(texts, known):
    """{name: directory} of the arguments of --peer. Raises ValueError with a line for the user."""
    found = {}
    for text in texts:
        name, equals, folder = text.partition("=")
        if name not in known.peers:
            near = difflib.get_close_matches(name, known.peers, 1)
            raise ValueError(f"no peer is called '{name}'" + (f": did you mean '{near[0]}'?" if near else
                                                              f": there are {', '.join(known.peers)}"))
        if not equals or not folder:
            raise ValueError(f"--peer {name} needs a directory: --peer {name}=DIR, a checkout of {known.peers[name]['source']}")
        found[name] = Path(folder).expanduser().resolve()
    return found


# ---- checkouts -------------------------------------------------------------------------------------------------


def prepare(folders, known, experiments, builder, progress):
    """Copies and builds the checkouts of {name: directory} that a program of the selected cases needs. Returns a list of
    Checkout."""
    here = {f"{e.id}/{c.id}" for e in experiments for c in e.cases}
    checkouts = []
    for done, (name, folder) in enumerate(folders.items()):
        checkout = Checkout(name, folder, builder.folder / "peers" / name)
        checkouts.append(checkout)
        progress(done / len(folders), f"building {known.peers[name]['title']}")
        try:
            _recognize(checkout, known.peers[name])
            if "cannot" in known.peers[name]:
                raise Unavailable(known.peers[name]["cannot"])
            _companions(checkout, known, folders)
            if not here & known.cases_of(name):
                raise Unavailable(f"takes part in no selected case, only in {known.experiments_of(name)}")
            checkout.commit, checkout.dirty = machine.commit_of(folder)
            _build(checkout, known, builder)
        except Unavailable as why:
            checkout.why = str(why)
    return checkouts


def _recognize(checkout, table):
    """Raises Unavailable if the directory is no checkout of this peer."""
    if not checkout.folder.is_dir():
        raise Unavailable(f"no such directory; clone {table['source']} and name the clone")
    for name, text in table["has"].items():
        path = checkout.folder / name
        if not path.is_file():
            raise Unavailable(f"no checkout of {table['title']}: it has no {name}; clone {table['source']} and name the clone")
        if text not in path.read_text(errors="replace"):
            raise Unavailable(f"another version of {table['title']}: its {name} does not have {text}; commit {table['tried']} does")


def _companions(checkout, known, folders):
    """Raises Unavailable if every program of this peer needs another peer that was not named."""
    programs = [p for p in known.programs if checkout.name in p["with"]]
    if programs and not any(set(p["with"]) <= set(folders) for p in programs):
        others = sorted({name for p in programs for name in p["with"]} - set(folders))
        raise Unavailable(f"its programs need another peer, too: say --peer {others[0]}=DIR"
                          + "".join(f", or {other}=DIR" for other in others[1:]))


def _build(checkout, known, builder):
    """Builds the copy again if the checkout, its commands or the compilers have changed."""
    table = known.peers[checkout.name]
    environment = _environment(checkout.name, table, known, builder)
    script = table.get("build", "")
    stamp, log = checkout.tree.with_name(f"{checkout.name}.stamp"), checkout.tree.with_name(f"{checkout.name}.log")
    state = json.dumps([_digest(checkout.folder), script, environment])
    if stamp.exists() and stamp.read_text() == state:
        return
    stamp.unlink(missing_ok=True)
    shutil.rmtree(checkout.tree, ignore_errors=True)
    try:
        shutil.copytree(checkout.folder, checkout.tree, symlinks=True, ignore=shutil.ignore_patterns(".git"))
    except (OSError, shutil.Error) as error:
        raise Unavailable(f"cannot be copied to {checkout.tree}: {str(error)[:120]}") from error
    Recipe(script, environment, log).run(checkout.tree, PATIENCE)
    stamp.write_text(state)


def _digest(folder):
    """A digest of the names, sizes and times of all files."""
    found = hashlib.sha256()
    for root, folders, names in os.walk(folder):
        folders[:] = sorted(f for f in folders if f != ".git")
        for name in sorted(names):
            path = Path(root, name)
            about = path.lstat()
            found.update(f"{path.relative_to(folder)} {about.st_size} {about.st_mtime_ns}\n".encode())
    return found.hexdigest()


def _environment(name, table, known, builder):
    """The environment of the commands of a peer or a program: compilers and tools by name, CC, CXX, CLANG, LD_GOLD…"""
    machines = table.get("machines")
    if machines and platform.machine() not in machines:
        raise Unavailable(f"{name} is for {', '.join(machines)}, and this machine is {platform.machine()}")
    found, missing = {"CC": " ".join(builder.cc), "CXX": " ".join(builder.cxx)}, []
    for tool in table.get("tools", []):
        path = _header(tool) if tool.endswith((".h", ".hpp")) else _newest(tool)
        found[_variable(tool).upper()] = path or ""
        if not path:
            missing.append(tool)
    if missing:
        raise Unavailable(f"needs {', '.join(missing)}: {_remedy([known.tools.get(tool, tool) for tool in missing])}")
    return found


def _remedy(packages):
    """A hint how to install packages. A text of several words is a command itself."""
    commands = [package for package in dict.fromkeys(packages) if " " in package]
    of_system = [package for package in dict.fromkeys(packages) if " " not in package]
    return ", and ".join(([f"apt-get install --no-install-recommends {' '.join(of_system)}"] if of_system else []) + commands)


def _variable(name):
    return re.sub(r"\W", "_", name)


def _header(name):
    """The path of a system header, or None."""
    return next((str(Path(root, name)) for root in ("/usr/include", "/usr/local/include") if Path(root, name).exists()), None)


def _newest(name):
    """The path of a tool, or of its newest version (clang-22), or None."""
    found = find_tool(name)
    if found:
        return found
    versions = {}
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        for path in Path(folder or ".").glob(f"{name}-[0-9]*"):
            number = path.name[len(name) + 1:]
            if number.isdigit():
                versions.setdefault(int(number), str(path))
    return versions[max(versions)] if versions else None


# ---- programs --------------------------------------------------------------------------------------------------


def take_part(experiments, checkouts, known, builder, size, policies):
    """Adds the programs of the built checkouts to their cases."""
    built = {c.name: c for c in checkouts if not c.why}
    cases = {f"{e.id}/{c.id}": c for e in experiments for c in e.cases}
    for program in known.programs:
        if not set(program["with"]) <= set(built):
            continue
        able = [p for p in program["policies"] if p in policies] if "policies" in program else [None]
        for entry in (e for e in program["case"] if size in e.get("sizes", SIZES)):
            for case in (cases[name] for name in entry["in"] if name in cases):
                case.contenders += [_contender(program, policy, entry, case, built, known, builder, size) for policy in able]


def _contender(program, policy, entry, case, built, known, builder, size):
    each = "$case" in program["build"]  # one program for each case
    name = "-".join([program["id"], *([policy] if policy else []), *([case.id] if each else [])])
    recipe = _recipe(program, policy, name, case.id if each else "", built, known, builder)
    instead_of = entry.get("instead_of", [])
    return Contender(
        id=f"{program['id']}/{policy}" if policy else program["id"], kind="weft" if policy else "peer",
        title=f"{program['title']}, {policy}" if policy else program["title"],
        program=f"--peer {name}", policy=policy, stack=policy, recipe=recipe, foreign=program.get("foreign", False),
        args=[_in(word, {"case": case.id}) for word in entry.get("args", program.get("args", []))],
        runner=[_in(word, recipe.environment) for word in program.get("runner", [])], answer=program.get("answer", r"\S+"),
        params=entry.get("params", {}), helper=next((c.helper for c in case.contenders if c.helper), None),
        instead_of=[instead_of] if isinstance(instead_of, str) else instead_of, expect=entry.get("expect", {}).get(size),
        test_expect=entry.get("expect", {}).get("test"), operations=entry.get("ops"))


def _recipe(program, policy, name, case, built, known, builder):
    log = builder.folder / "peers" / f"program-{name}.log"
    inputs = [built[peer].tree.with_name(f"{peer}.stamp") for peer in program["with"]]
    environment = {"lab": str(builder.lab), "case": case, **{_variable(peer): str(built[peer].tree) for peer in program["with"]}}
    try:
        environment.update(_environment(program["title"], program, known, builder))
        if policy:
            launch, tools = builder.instrument(INSTRUMENTATION.get(policy))
            environment.update(builder.variables(), LAUNCH=" ".join(launch))
            inputs += [*tools, *builder.libraries]
    except Unavailable as why:
        return Recipe(program["build"], environment, log, inputs, str(why))
    return Recipe(program["build"], environment, log, inputs)


def _in(word, environment):
    """`word` with variables replaced: $NODE, $lab."""
    return re.sub(r"\$(\w+)", lambda found: environment.get(found[1], found[0]), word)
