#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""The lab: build and run the published experiments on this machine, check every answer, and report.

Contenders take turns, so that noise hits all alike; what counts is the ratios within one run. Exit codes: 0 all answers are
right, 1 an answer is wrong or a program broke (with --targets also: a target is missed), 2 a mistake in the command or nothing
could be run, 130 interrupted. The last line says it in words.
"""
import os
import signal
import sys

# Ctrl-C while modules are imported: there is nothing to unwind.
INTERRUPTED = "\nlab: interrupted before anything was measured"
signal.signal(signal.SIGINT, lambda *_: (print(INTERRUPTED, file=sys.stderr), os._exit(130)))

import argparse  # noqa: E402
import difflib  # noqa: E402
import io  # noqa: E402
import json  # noqa: E402
import re  # noqa: E402
import shlex  # noqa: E402
import shutil  # noqa: E402
import subprocess  # noqa: E402
import tempfile  # noqa: E402
import time  # noqa: E402
from datetime import datetime, timezone  # noqa: E402
from pathlib import Path  # noqa: E402

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from weftlab import compare, continuous, costs, describe, findings, load_report, machine, measure, peers, schema, table, targets  # noqa: E402
from weftlab.build import Builder, find_tool  # noqa: E402
from weftlab.journal import Busy  # noqa: E402


class Stop(Exception):
    """An error that ends the run with one line."""


def _meant(text, parser):
    """The known option that is most similar to a mistyped option."""
    wrong = re.match(r"unrecognized arguments: (\S+)", text)
    near = difflib.get_close_matches(wrong[1], parser._option_string_actions, 1) if wrong else []
    return f": did you mean '{near[0]}'?" if near else ""


def _changes(text):
    """Parses "mb=1024,n=5"."""
    try:
        return {name: int(value) for name, value in (pair.split("=") for pair in _list(text))}
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"'{text}' is not NAME=NUMBER[,NAME=NUMBER…]") from error


def _time(text):
    try:
        return continuous.seconds_of(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _narrow(prog):
    return argparse.HelpFormatter(prog, width=min(100, shutil.get_terminal_size().columns))


def arguments(argv):
    names = ", ".join(describe.POLICIES)
    parser = argparse.ArgumentParser(prog="weft lab", description=__doc__.split("\n\n")[0],
                                     epilog=__doc__.split("\n\n")[1], formatter_class=_narrow)
    parser.error = lambda text: parser.exit(2, f"lab: {text}{_meant(text, parser)}; see 'weft lab --help'\n")
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", dest="size", action="store_const", const="quick",
                      help="small sizes: all of it in two to four minutes (the default)")
    size.add_argument("--full", dest="size", action="store_const", const="full", help="the published sizes")
    size.add_argument("--size", choices=describe.SIZES, help=argparse.SUPPRESS)
    parser.add_argument("--only", metavar="A1,B5,…", type=_list, help="these experiments, or cases such as B5/iterator")
    parser.add_argument("--policy", metavar="P[:SIZE],…", type=_list,
                        help=f"stack policies: {names} (default: all), with a size for all of an experiment's stacks "
                             "that ask for none (commit:1M)")
    parser.add_argument("--set", metavar="NAME=N,…", type=_changes, default={},
                        help="other numbers for parameters of the cases, such as mb=1024: then contenders' answers are compared with each other")
    parser.add_argument("--for", dest="seconds", metavar="TIME", type=_time,
                        help="how long experiment A6 loads its servers: 60s (the default), 15m, 1h, 24h; when the same command is given "
                             "after an interruption, it continues")
    parser.add_argument("--again", action="store_true", help="A6: begin anew, do not continue")
    parser.add_argument("--tables", action="store_true",
                        help="print all figures, which the report has; few cases are printed anyway")
    parser.add_argument("--targets", action="store_true",
                        help="judge what Weft's maintainers ask of it; a missed target is a failure")
    parser.add_argument("--out", metavar="DIR", type=_folder, help="where results go (default: build/lab/TIME)")
    parser.add_argument("--compare", metavar="FILE", nargs="+", type=Path,
                        help="OLD.json NEW.json: compare two results; OLD.json alone: run, then compare")
    parser.add_argument("--replot", metavar="FILE", type=Path,
                        help="say again what an earlier results.json holds, and make its report anew")
    parser.add_argument("--costs", metavar="PAGE", type=Path,
                        help="write the tables of costs into this page; without --only, measures the cases of these tables")
    parser.add_argument("--no-report", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--list", action="store_true", help="say what there is, and run nothing")
    parser.add_argument("--check", action="store_true", help=argparse.SUPPRESS)  # stops after the messages of this function
    parser.add_argument("--descriptions", metavar="DIR", type=Path, action="append", default=[],
                        help="also read experiments from here (programs are looked for there too)")
    parser.add_argument("--peer", metavar="NAME=DIR", action="append", default=[],
                        help="build a checkout that you have, in a copy, and measure it beside the others: "
                             f"{', '.join(peers.load([HERE / 'descriptions']).peers)}")
    options = parser.parse_args(argv)
    options.size = options.size or "quick"
    if options.costs and not options.only:
        options.only, options.policy = costs.chosen(_costs(), options.policy)
    options.policy = options.policy or list(describe.POLICIES)
    options.stacks = {stack.partition(":")[0]: stack for stack in options.policy}
    options.policy = list(options.stacks)
    unknown = set(options.policy) - set(describe.POLICIES)
    if unknown:
        parser.error(f"no policy is called {', '.join(sorted(unknown))}: there are {names}")
    wrong = [stack for stack in options.stacks.values() if ":" in stack and not _is_size(stack.partition(":")[2])]
    if wrong:
        parser.error(f"bad stack size in '{wrong[0]}': say bytes, or 64K, 1M, up to 1G")
    if options.compare and len(options.compare) > 2:
        parser.error("--compare takes one file or two")
    try:
        options.known = peers.load([HERE / "descriptions", *options.descriptions])
        options.peers = peers.chosen(options.peer, options.known)
    except ValueError as error:
        parser.error(str(error))
    return options


def _is_size(text):
    """Returns whether a value of WEFT_STACK is valid, by the rules of src/stack/config.c, which reads it."""
    found = re.fullmatch(r"([0-9]+)([KMG]?)", text.upper(), re.ASCII)
    return bool(found) and 0 < int(found[1]) << 10 * " KMG".index(found[2] or " ") <= 1 << 30


def _list(text):
    if not text.strip(" ,"):
        raise argparse.ArgumentTypeError("needs a name")
    return [part.strip() for part in text.split(",") if part.strip()]


def _folder(text):
    if not text:
        raise argparse.ArgumentTypeError("needs a name")
    return Path(text)


# ---- progress messages ----------------------------------------------------------------------------------------


class Progress:
    """On a terminal, one line that changes; elsewhere a line now and then, so that a log stays short."""

    SELDOM = 30  # seconds between two lines of a log
    BAR = 20
    BUILDING = 0.2  # rough share of the whole time

    def __init__(self):
        self.live = sys.stderr.isatty()
        self.began = time.monotonic()
        self.last = self.began - self.SELDOM
        self.phase = 0, self.BUILDING
        self.done = 0  # share of the whole; it never decreases

    def __call__(self, done, what, who=""):
        """`done` is the completed share of the phase."""
        begin, end = self.phase
        done = self.done = max(self.done, begin + done * (end - begin))
        now = time.monotonic()
        if self.live:
            filled = round(done * self.BAR)
            line = f"{now - self.began:4.0f} s ▕{'█' * filled}{'·' * (self.BAR - filled)}▏ {what}{', ' if who else ''}{who}"
            print(f"\r\033[K{line[:_columns() - 1]}", end="", file=sys.stderr, flush=True)
        elif now - self.last >= self.SELDOM:
            self.last = now
            print(f"lab: {now - self.began:.0f} s, {done:.0%}: {what}", file=sys.stderr, flush=True)

    def clear(self):
        if self.live:
            print("\r\033[K", end="", file=sys.stderr, flush=True)


def _columns():
    return os.get_terminal_size(sys.stderr.fileno()).columns or 80


# ---- selection --------------------------------------------------------------------------------------------------


def select(experiments, only, unasked):
    """The selected experiments and cases, by id, ignoring case. If `only` is empty, returns all; continuous load only if
    `unasked`."""
    if not only:
        return [e for e in experiments if unasked or not e.continuous]
    wanted = {w.lower(): w for w in only}
    for e in experiments:
        if e.id.lower() in wanted:
            wanted.pop(e.id.lower())
            e.whole = True
        else:
            keep = [c for c in e.cases if f"{e.id}/{c.id}".lower() in wanted]
            for c in keep:
                wanted.pop(f"{e.id}/{c.id}".lower())
            e.whole, e.cases = bool(keep), keep
    if wanted:
        raise Stop(f"no experiment is called {', '.join(wanted.values())}: "
                   f"there are {', '.join(e.id for e in experiments)}")
    return [e for e in experiments if e.whole]


def list_all(experiments, known):
    for e in experiments:
        print(f"{e.id:6} {e.title}  ({e.source})")
        for c in e.cases:
            print(f"       {e.id + '/' + c.id:24} {c.title}: {', '.join(k.id for k in c.contenders)}")
    for tool, what in (("cargo", "corosensei"), ("go", "Go"), ("g++", "Boost.Context, C++20")):
        print(f"{tool}: {find_tool(tool) or 'not installed; without it ' + what + ' is skipped'}")
    for name, peer in known.peers.items():
        print(f"--peer {name}=DIR: a checkout of {peer['source']}, "
              f"{peer.get('cannot') and 'not measured: ' + peer['cannot'] or 'for ' + known.experiments_of(name)}")


def library_folder(source, progress):
    """The directory of libweft.a, and of the tools that instrument code. Builds them unless WEFT_BUILD names the directory."""
    given = os.environ.get("WEFT_BUILD")
    folder = Path(given) if given else source / "build" / "release"
    if given:
        if not (folder / "libweft.a").exists():
            raise Stop(f"{folder} has no libweft.a: build it first (./weft lab does)")
        return folder
    progress(0, "building the library")
    if not (folder / "CMakeCache.txt").exists():
        _call(["cmake", "--preset", "release"], source)
    _call(["cmake", "--build", str(folder), "--target", "weft", "weft_rt", "weft_instrumentation", "weft_posix", "weft_optional"], source)
    return folder


def _call(command, source):
    try:
        run = subprocess.run(command, cwd=source, capture_output=True, text=True)
    except FileNotFoundError as error:
        raise Stop("cmake is not installed: apt-get install --no-install-recommends cmake ninja-build, or call ./weft lab") from error
    if run.returncode:
        raise Stop(f"{' '.join(command)} failed: {(run.stderr or run.stdout).strip()[-400:]}")


# ---- results ---------------------------------------------------------------------------------------------------


def load_results(path):
    try:
        results = json.loads(path.read_text())
    except OSError as error:
        raise Stop(f"{path}: {error.strerror}") from error
    except ValueError as error:
        raise Stop(f"{path} is not JSON: {error}") from error
    found = schema.problems(results)
    if found:
        raise Stop(f"{path}: {found[0]}")
    return results


def write_results(results, folder):
    folder.mkdir(parents=True, exist_ok=True)
    temporary = folder / "results.json.new"
    temporary.write_text(json.dumps(results, ensure_ascii=False, indent=1) + "\n")
    temporary.replace(folder / "results.json")


def write_report(results, path):
    try:
        from weftlab import report
    except ImportError as error:
        print(f"no report: {error}; apt-get install --no-install-recommends python3-matplotlib python3-jinja2, then --replot", file=sys.stderr)
        return False
    report.write(results, path)
    return True


def check_output(folder):
    """Returns whether results can be written to the folder. Checked first, so that minutes of measurements are not lost."""
    made = []
    try:
        made = [f for f in (folder, *folder.parents) if not f.exists()]
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise Stop(f"cannot write to {folder}: {error.strerror}") from error
    finally:
        for one in made:
            try:
                one.rmdir()
            except OSError:
                break


def point_latest(folder):
    """Makes build/lab/latest point to the newest results."""
    link = folder.parent / "latest"
    try:
        link.unlink(missing_ok=True)
        link.symlink_to(folder.name)
    except OSError:
        pass


# ---- running -----------------------------------------------------------------------------------------------------


def run(options, source):
    progress = Progress()
    folders = [HERE / "descriptions", *options.descriptions]
    experiments = select(describe.load(folders, options.size, options.policy, options.set), options.only, options.list)
    unknown = set(options.set) - {name for e in experiments for c in e.cases for name in c.params}
    if unknown:
        raise Stop(f"--set: no case that is chosen has a parameter '{sorted(unknown)[0]}'")
    under_load = [e for e in experiments if e.continuous]
    if (options.seconds or options.again) and not under_load:
        raise Stop("--for and --again are for continuous load: add --only A6")
    if options.list:
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        list_all(experiments, options.known)
        return 0
    check_output(source / "build" / "lab")
    if options.check:
        return 0
    old = load_results(options.compare[0]) if options.compare else None
    library = library_folder(source, progress)
    builder = Builder(source, library, source / "build" / "lab", options.descriptions)
    checkouts = peers.prepare(options.peers, options.known, experiments, builder, progress)
    _say_unusable(checkouts, progress)
    peers.take_part(experiments, checkouts, options.known, builder, options.size, options.policy)
    contenders = [k for e in experiments for c in e.cases for k in c.contenders]
    for contender in contenders:
        contender.stack = options.stacks.get(contender.policy)
    if not contenders:
        raise Stop(f"nothing to run at this size ({options.size})")
    policies = builder.unavailable(options.policy)
    contenders += [c.yardstick for e in experiments for c in e.cases if c.yardstick]
    programs = [c for c in contenders if c.policy not in policies]
    binaries, missing = builder.build_all(programs + [c.helper for c in programs if c.helper], progress)

    def unable(contender):
        helper = contender.helper and missing.get(Builder.key(contender.helper))
        return policies.get(contender.policy) or missing.get(Builder.key(contender)) or helper

    now = datetime.now(timezone.utc).astimezone()
    out = options.out or source / "build" / "lab" / now.strftime("%Y%m%d-%H%M%S")
    results = {
        "schema": schema.VERSION, "when": now.isoformat(timespec="seconds"), "seconds": 0.0, "size": options.size,
        "policies": list(options.stacks.values()), "complete": False, "machine": machine.describe(source, builder),
        "load": {"before": machine.load(), "after": []}, "checks": {"passed": 0, "failed": 0},
        "skipped": [c.line() for c in checkouts if c.why] + _skipped(contenders, policies, unable),
        "peers": [c.as_dict() for c in checkouts], "targets": [], "experiments": [],
    }
    laboratory = measure.Laboratory(binaries, unable, measure.Plan.of(options.size), progress, findings.cases(_findings()))
    loads = [_load(e, binaries, unable, options, source, progress) for e in under_load]
    progress.phase = progress.BUILDING, 1
    try:
        laboratory.run([e for e in experiments if not e.continuous], _unsure(results) if options.targets else None)
        for load in loads:
            load.run()
        results["complete"] = True
    except KeyboardInterrupt:
        progress.clear()
        print(f"interrupted: keeping what was measured{'; the same command continues the load' if loads else ''}", file=sys.stderr)
    progress.clear()
    order = {e.id: e.order for e in experiments}
    results["experiments"] = sorted(laboratory.entries() + [load.entry() for load in loads], key=lambda entry: order[entry["id"]])
    results["skipped"] += laboratory.lacking
    results["seconds"] = round(time.monotonic() - progress.began, 1)
    results["load"].update(after=machine.load(), others=laboratory.others())
    results["checks"] = measure.checks(results["experiments"])
    code = finish(results, out, options, old)
    for load in loads if results["complete"] else []:
        load.finish(out)
    return code


def _load(experiment, binaries, unable, options, source, progress):
    """Runs continuous load. An earlier command may have done a part of it."""
    seconds = options.seconds or continuous.SECONDS[options.size]
    try:
        load = continuous.Load(experiment, binaries, unable, seconds, source / "build" / "lab" / "load", progress)
    except Busy as error:
        raise Stop(f"another lab does the same now: {error}") from error
    remark = load.begin(options.again)
    if remark:
        progress.clear()
        print(f"lab: {experiment.id}: {remark}", file=sys.stderr)
    return load


def _say_unusable(checkouts, progress):
    """Printed before anything is measured, so that the user can correct the directory."""
    for checkout in (c for c in checkouts if c.why):
        progress.clear()
        print(f"lab: {checkout.line()}; the lab continues without it", file=sys.stderr)


def _costs():
    return describe.costs(HERE / "descriptions")


def write_costs(results, page):
    try:
        costs.write(page, _costs(), results)
    except (OSError, ValueError) as error:
        raise Stop(f"--costs: {error}") from error


def _findings():
    return describe.findings(HERE / "descriptions")


def _unsure(results):
    """Selects the cases that need more rounds."""
    wanted = describe.targets(HERE / "descriptions")
    return lambda entries: targets.unsure(wanted, entries, results["size"], results["machine"]["page"])


def judge(results, options):
    """Targets are evaluated only with --targets."""
    wanted = describe.targets(HERE / "descriptions") if options.targets else []
    results["targets"] = targets.evaluate(wanted, results["experiments"], results["size"], results["machine"]["page"])


def _skipped(contenders, policies, unable):
    """Prints a line for each policy, instrumentation or peer that cannot take part."""
    lines = {}
    for c in contenders:
        why = unable(c)
        if why:
            what = f"instrumentation {c.instrumentation}" if c.instrumentation else c.title
            what = f"policy {c.policy}" if c.policy in policies else what
            lines.setdefault(f"{what}: {why}", None)
    return list(lines)


def finish(results, out, options, old):
    judge(results, options)
    write_results(results, out)
    if options.costs and results["complete"]:
        write_costs(results, options.costs)
    if not options.out:
        point_latest(out)
    try:
        code = show(results, out, options)
        if old:
            compare.print_comparison(old, results, compare.compare(old, results))
            print(f"\n{table.last_line(results)[0]}")
        return code
    except KeyboardInterrupt:
        print(f"\nlab: interrupted: results.json is kept, and --replot {shlex.quote(str(out / 'results.json'))} shows it", file=sys.stderr)
        return 130


def show(results, out, options):
    """Prints the findings, the report's path, and in the last line the meaning of the exit code."""
    say(results, options)
    sys.stdout.flush()
    # Plots take seconds, and after Ctrl-C the user does not want to wait for them.
    reported = (results["complete"] or options.replot) and not options.no_report and write_report(results, out / "report.html")
    print(f"\n{'report:' if reported else 'results:'} {out / ('report.html' if reported else 'results.json')}")
    if not reported and not results["complete"]:
        print(f"the report of these: ./weft lab --replot {shlex.quote(str(out / 'results.json'))}")
    text, good = table.last_line(results)
    print(text)
    return 130 if not results["complete"] else 0 if good else 1


def replot(options):
    """Reports an earlier run again."""
    results = load_results(options.replot)
    judge(results, options)
    if options.costs:
        write_costs(results, options.costs)
    out = options.out or options.replot.parent
    out.mkdir(parents=True, exist_ok=True)
    return show(results, out, options)


FEW = 90  # lines of tables that a terminal shows without --tables


def say(results, options):
    """Prints failures, findings, and the tables if they are few."""
    table.print_failures(results)
    text = io.StringIO()
    for entry in results["experiments"]:
        _print_experiment(entry, text)
    short = text.getvalue().count("\n") <= FEW
    if not short or options.tables:
        table.print_findings(findings.of(_findings(), results["experiments"], results["size"]), findings.beside(results),
                             findings.footnote(results))
    if options.tables or short:
        for entry in results["experiments"]:
            _print_experiment(entry)
    if results["targets"]:
        table.print_targets(results["targets"])
    if results["skipped"]:
        print()
        table.print_skipped(results["skipped"])
    if not short and not options.tables:
        print("\nAll figures, plots, and the command for each are in the report; --tables prints the figures, --only picks some.")


def _print_experiment(entry, out=sys.stdout):
    table.print_experiment(entry, out)
    if entry.get("load"):
        load_report.print_load(entry["load"], out)


def main(argv):
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # `timeout` keeps the measurements, too
    source = Path(os.environ.get("WEFT_SOURCE") or HERE.parent).resolve()
    try:
        options = arguments(argv)
        if options.out:
            check_output(options.out)
        if options.replot and not options.check:
            return replot(options)
        if options.compare and len(options.compare) == 2 and not options.check:
            old, new = map(load_results, options.compare)
            compare.print_comparison(old, new, compare.compare(old, new))
            return 0
        return run(options, source)
    except (Stop, describe.DescriptionError, RuntimeError) as error:
        print(f"lab: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(INTERRUPTED, file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
