# SPDX-License-Identifier: MIT OR Apache-2.0
"""Experiments as descriptions: the keys of the files in descriptions/, and their meaning.

An experiment has cases; a case is run by contenders at one of three sizes. Keys of a case default to the experiment's.
"""
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

POLICIES = ("fixed", "overcommit", "commit", "copy", "segmented", "heap", "lookahead", "mmu")
# Policies that need code compiled for them, and the instrumentation that each needs.
INSTRUMENTATION = {"segmented": "segmented", "heap": "segmented", "lookahead": "lookahead", "mmu": "mmu"}
SIZES = ("test", "quick", "full")
# Published figures are shown only for the parameters for which they were published. Costs of one operation are valid for all
# parameters.
ANY_SIZE = "any size"
# The clocks of cases: CPU time, to which other programs add nothing, or wall time, if the published figures are wall times.
CLOCKS = ("cpu", "wall")
UNITS = {"ns": 1e9, "µs": 1e6, "ms": 1e3, "s": 1.0, "B": 1.0}

# ns of a resume and a yield by the hand-written switch (limit-jmp) on the machine where `reference` figures were measured, and
# the case that measures the same pair here: a time t there corresponds to about t × here / there on this machine.
REFERENCE_PAIR = 1.4
YARDSTICK = ("limit-jmp", {"id": "resume_yield"}, {"n": 1000000})

NOT_EXPERIMENTS = ("contenders.toml", "costs.toml", "findings.toml", "peers.toml", "targets.toml")

INHERITED = ("program", "peer", "contenders", "policies", "baseline", "unit", "figure", "per", "published",
             "published_unit", "published_baseline", "published_title", "reference", "reference_sizes", "reference_unit",
             "reference_ops", "helper", "rate", "whole", "clock")
CASE_KEYS = set(INHERITED) | {"id", "name", "title", "about", "expect", "needs_memory", "policy_memory",
                               "rounds", "sizes", "x"} | set(SIZES)
EXPERIMENT_KEYS = set(INHERITED) | {"id", "order", "title", "source", "about", "case", "contender", "plot", "x",
                                    "x_title", "continuous"}
CONTENDER_KEYS = {"title", "kind", "program", "args", "defines", "libraries", "get", "policies", "instrumentation", "env", "posix",
                  "activities", "flags", "http", "llhttp", "tool"}


class DescriptionError(Exception):
    """A description that cannot be used, and why."""


@dataclass
class Contender:
    """A contender of a case: a program, its arguments, and for Weft a policy."""
    id: str
    title: str
    kind: str
    program: str
    policy: str | None = None
    stack: str | None = None  # WEFT_STACK's value: the policy, with a size if one is given
    instrumentation: str | None = None
    args: list = field(default_factory=list)
    defines: list = field(default_factory=list)
    libraries: list = field(default_factory=list)
    get: str = ""
    env: dict = field(default_factory=dict)
    activities: bool = False  # compiled by clang with the pass of tools/activities
    flags: list = field(default_factory=list)  # further flags for the compiler and the linker
    posix: bool = False  # linked with libweft-posix.so: other libraries' calls suspend tasks
    http: bool = False  # linked with libweft-http.a
    llhttp: bool = False  # compiled with the sources of the parser llhttp
    tool: str = ""  # a command that the program runs
    helper: "Contender | None" = None  # a program that this one starts: it gets the path as helper=PATH
    # The remaining fields are for programs that use a checkout of the user's (peers.py).
    recipe: "object | None" = None  # build.Recipe: commands that make the program
    foreign: bool = False  # a program of the peer's project: the process is timed, and `args` are all its arguments
    runner: list = field(default_factory=list)  # words before the program: an interpreter
    answer: str = ""  # the last match in the output of a foreign program is its answer
    params: dict = field(default_factory=dict)  # instead of the case's
    instead_of: list = field(default_factory=list)  # names of `reference` figures that its own figure replaces
    expect: str | None = None  # the answer to expect if a foreign program computes something else
    test_expect: str | None = None
    operations: str | None = None  # of a foreign program, as in `args`; None: the number that the case's other programs report


@dataclass
class Case:
    id: str
    title: str
    about: str
    unit: str
    figure: str | None
    per: str
    baseline: str
    params: dict
    expect: str | None
    test_params: dict
    test_expect: str | None
    contenders: list
    needs_memory: int
    policy_memory: dict  # {policy: bytes}, for policies that need more memory than `needs_memory`
    published: dict | None
    reference: dict | None  # {name: figure in the case's unit, where it was measured}
    yardstick: Contender | None  # the contender that scales `reference`; bytes are not scaled
    x: float | None
    # For a case that mostly waits, so that no budget of CPU time ends it: the maximum number of rounds. If the case has a figure
    # of its own, it is the exact number.
    rounds: int | None
    whole: bool  # measures the time of whole processes, from start to end
    rate: bool  # tables also show the number of operations for which a second of CPU time suffices
    clock: str  # one of CLOCKS


@dataclass
class Experiment:
    id: str
    order: int
    title: str
    source: str
    about: str
    plot: str
    x_title: str
    cases: list
    continuous: bool = False  # load for hours (continuous.py): runs only if it is named


def load(folders, size, policies, changes=None):
    """All experiments in the folders, in order, at the given size and for the given policies. `changes` overrides parameters."""
    known = {}
    experiments = []
    for folder in folders:
        path = Path(folder, "contenders.toml")
        if path.exists():
            known.update(_read(path))
    for folder in folders:
        for path in sorted(Path(folder).glob("*.toml")):
            if path.name not in NOT_EXPERIMENTS:
                experiments.append(_experiment(path, known, size, policies, changes or {}))
    seen = set()
    for e in experiments:
        if e.id in seen:
            raise DescriptionError(f"two experiments are called {e.id}")
        seen.add(e.id)
    return sorted(experiments, key=lambda e: e.order)


def targets(folder):
    return _read(Path(folder, "targets.toml"))["target"]


def findings(folder):
    return _read(Path(folder, "findings.toml"))["finding"]


def costs(folder):
    return _read(Path(folder, "costs.toml"))["row"]


def _read(path):
    try:
        with open(path, "rb") as stream:
            return tomllib.load(stream)
    except tomllib.TOMLDecodeError as error:
        raise DescriptionError(f"{path}: {error}") from error


def _check_keys(path, what, table, allowed):
    unknown = set(table) - allowed
    if unknown:
        raise DescriptionError(f"{path}: {what}: unknown key {', '.join(sorted(unknown))}")


def _experiment(path, known, size, policies, changes):
    text = _read(path)
    _check_keys(path, "the experiment", text, EXPERIMENT_KEYS)
    contenders = dict(known)
    for name, table in text.get("contender", {}).items():
        _check_keys(path, f"contender {name}", table, CONTENDER_KEYS)
        contenders[name] = table
    try:
        cases = [_case(path, text, {**{k: text[k] for k in INHERITED if k in text}, **c}, contenders, size, policies, changes)
                 for c in text["case"]]
        return Experiment(text["id"], text.get("order", 1000), text["title"], text["source"],
                          " ".join(text["about"].split()), text.get("plot", "dots"), text.get("x_title", ""),
                          [c for c in cases if c], bool(text.get("continuous")))
    except KeyError as error:
        raise DescriptionError(f"{path}: {error} is missing") from error


def _case(path, experiment, case, contenders, size, policies, changes):
    _check_keys(path, f"case {case.get('id')}", case, CASE_KEYS)
    if size not in case.get("sizes", SIZES):
        return None
    if case["unit"] not in UNITS:
        raise DescriptionError(f"{path}: case {case['id']}: the unit must be one of {', '.join(UNITS)}")
    params = {name: changes.get(name, value) for name, value in case[size].items()}
    readable = {k: f"{v:,}".replace(",", "\N{NARROW NO-BREAK SPACE}") for k, v in params.items()}
    expect = case.get("expect", {})
    answer = expect.get("any", expect.get(size) if params == case[size] else None)
    chosen = []
    for name in case["contenders"]:
        if name not in contenders:
            raise DescriptionError(f"{path}: case {case['id']}: no contender is called {name}")
        chosen += _contenders(name, contenders[name], case, policies)
    axis = experiment.get("x")
    reference = _reference(case, size)
    published = _published(path, case, params)
    return Case(case["id"], case.get("title", case["id"]).format(**readable), case.get("about", ""), case["unit"],
                case.get("figure"), case["per"], case.get("baseline", ""), params, answer, case["test"], expect.get("any", expect.get("test")),
                chosen, case.get("needs_memory", {}).get(size, 0),
                {p: sizes.get(size, 0) for p, sizes in case.get("policy_memory", {}).items()},
                published, reference, _yardstick(contenders) if reference and case["unit"] != "B" else None,
                params.get(axis) if axis else None, case.get("rounds"), bool(case.get("whole")),
                bool(case.get("rate")) and case["unit"] != "B" and not case.get("figure"),
                _clock(path, case, "full" if published else size))


def _clock(path, case, size):
    """The case's clock at this size: { full = "wall" } means that small sizes are measured by CPU time. A case with published
    figures uses the full size's clock at every size."""
    clock = case.get("clock", {}).get(size, CLOCKS[0])
    if clock not in CLOCKS:
        raise DescriptionError(f"{path}: case {case['id']}: the clock must be one of {', '.join(CLOCKS)}")
    return clock


def _yardstick(contenders):
    name, case, _ = YARDSTICK
    return _contenders(name, contenders[name], case, ())[0]


def _contenders(name, table, case, policies):
    words = {"program": case.get("program", ""), "peer": case.get("peer", case["id"]), "id": case["id"],
             "name": case.get("name", case["id"])}
    common = {
        "kind": table["kind"],
        "program": table["program"].format(**words),
        "args": [a.format(**words) for a in table.get("args", [])],
        "defines": table.get("defines", []),
        "libraries": table.get("libraries", []),
        "get": table.get("get", ""),
        "env": table.get("env", {}),
        "posix": table.get("posix", False),
        "http": table.get("http", False),
        "llhttp": table.get("llhttp", False),
        "tool": table.get("tool", ""),
        "activities": table.get("activities", False),
        "flags": table.get("flags", []),
        "helper": _helper(case),
    }
    if not table.get("policies"):
        return [Contender(id=name, title=table["title"], **common)]
    own = table["policies"] if isinstance(table["policies"], list) else POLICIES
    able = [p for p in policies if p in own and p in case.get("policies", POLICIES)]
    return [Contender(id=f"{name}/{p}", title=f"{table['title']}, {p}", policy=p,
                      instrumentation=table.get("instrumentation", INSTRUMENTATION.get(p)), **common) for p in able]


def _helper(case):
    program = case.get("helper")
    return Contender(id="helper", title=f"the helper {program}", kind="c", program=program) if program else None


def _reference(case, size):
    """Figures of other libraries measured on another machine, in the case's unit, unscaled."""
    values = case.get("reference")
    if not values or size not in case.get("reference_sizes", SIZES):
        return None
    factor = 1.0
    if "reference_unit" in case:
        factor = UNITS[case["unit"]] / UNITS[case["reference_unit"]] / case.get("reference_ops", 1)
    return {name: value * factor for name, value in values.items()}


def _published(path, case, params):
    """The figures published for these parameters, as ratios to one of the published contenders: no other figure of another
    machine can be compared. If the base is a list, they are ratios to the fastest of its contenders, and the first of the list
    stands for it."""
    found = [figures for condition, figures in case.get("published", {}).items() if _holds(path, condition, params)]
    if not found:
        return None
    if len(found) > 1:
        raise DescriptionError(f"{path}: case {case['id']}: two sets of published figures are for {params}")
    values = found[0]
    among = case["published_baseline"]
    among = among if isinstance(among, list) else [among]
    base = values[among[0]]
    return {
        "title": case.get("published_title", "published"),
        "unit": case["published_unit"],
        "baseline": among[0],
        "among": among,
        "values": {name: {"value": value, "ratio": value / base} for name, value in values.items()},
    }


def _holds(path, condition, params):
    """Tests a condition: ANY_SIZE, or parameters with their values, such as "n = 1000, d = 3"."""
    if condition == ANY_SIZE:
        return True
    try:
        wanted = tomllib.loads(condition.replace(",", "\n"))
    except tomllib.TOMLDecodeError as error:
        raise DescriptionError(f"{path}: \"{condition}\" says for which parameters figures were published: {error}") from error
    return all(params.get(name) == value for name, value in wanted.items())
