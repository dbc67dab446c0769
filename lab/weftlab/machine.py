# SPDX-License-Identifier: MIT OR Apache-2.0
"""Everything besides the code on which a figure depends: the machine, its kernel, the compilers, the commit, the load."""
import os
import platform
import subprocess
from pathlib import Path

from .build import find_tool


def _output(*command, cwd=None):
    tool = find_tool(command[0])
    if not tool:
        return ""
    try:
        run = subprocess.run([tool, *command[1:]], capture_output=True, text=True, timeout=20, cwd=cwd)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return run.stdout.strip() if run.returncode == 0 else ""


def _first_line(text):
    return text.splitlines()[0] if text else ""


def _proc_field(path, name):
    try:
        for line in Path(path).read_text().splitlines():
            if line.startswith(name):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return ""


def available_memory():
    """Bytes that a program may use without disturbing other programs."""
    return int(_proc_field("/proc/meminfo", "MemAvailable").split()[0] or 0) * 1024


QUIET = 0.25  # other programs that keep at most this number of CPUs busy disturb nothing


def busy():
    """CPU seconds that all programs have used since the machine started, and seconds that a hypervisor gave to other machines."""
    try:
        with open("/proc/stat") as stat:
            user, nice, system, _, _, irq, softirq, stolen = map(int, stat.readline().split()[1:9])
    except (OSError, ValueError):
        return 0.0
    return (user + nice + system + irq + softirq + stolen) / os.sysconf("SC_CLK_TCK")


def load():
    return [round(x, 2) for x in os.getloadavg()]


def commit_of(folder):
    """The commit of a checkout, or "unknown", and whether files differ from it. Does not write to the checkout."""
    commit = _output("git", "rev-parse", "HEAD", cwd=folder)
    if not commit or _output("git", "rev-parse", "--show-prefix", cwd=folder):  # part of another repository
        return "unknown", False
    return commit, bool(_output("git", "--no-optional-locks", "status", "--porcelain", "--untracked-files=no", cwd=folder))


def describe(source, builder):
    commit, dirty = commit_of(source)
    distribution = {}
    try:
        distribution = platform.freedesktop_os_release()
    except OSError:
        pass
    return {
        "cpu": _proc_field("/proc/cpuinfo", "model name") or platform.machine(),
        "cpus": os.cpu_count() or 1,
        "memory": int((_proc_field("/proc/meminfo", "MemTotal") or "0 kB").split()[0]) * 1024,
        "page": os.sysconf("SC_PAGE_SIZE"),
        "kernel": platform.release(),
        "system": distribution.get("PRETTY_NAME", platform.system()),
        "hypervisor": "hypervisor" in _proc_field("/proc/cpuinfo", "flags"),
        "compiler": _first_line(_output(builder.cc[0], "--version")),
        "cflags": " ".join(builder.cflags),
        "cxx": _first_line(_output(builder.cxx[0], "--version")),
        "cxxflags": " ".join(builder.cxxflags),
        "rust": _first_line(_output("cargo", "--version")),
        "go": _first_line(_output("go", "version")),
        "commit": commit,
        "dirty": dirty,
        "environment": {k: v for k, v in os.environ.items()
                        if k.startswith("WEFT_") and k not in ("WEFT_SOURCE", "WEFT_BUILD")},
    }
