#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""h2spec, the conformance test of HTTP/2, against tests/http/serve.c: h2spec.py SERVER plain|tls [SECTION]

With a section, for example "http2/5.1.1", only that section is tested, and the number of cases is too low to pass. All cases must pass, except one
case, which must fail: a port that also speaks HTTP/1.1 answers an invalid preface by 400. TLS clients choose HTTP/2 before they send a preface, so
there is no exception.
"""

import subprocess
import sys
import tempfile
import xml.etree.ElementTree
from pathlib import Path

H2SPEC = Path(__file__).resolve().parents[2] / "build/packages/h2spec/h2spec"
CASES = 146  # the cases of h2spec 2.2.1, including the strict cases
EXCEPTIONS = {"plain": {("http2/3.5", "Sends invalid connection preface")}, "tls": set()}


def run_h2spec(server, directory, secure, sections):
    """The verdicts of the cases: {(section, case): None or the reason of the failure}."""
    files = [directory / "certificate.pem", directory / "key.pem"] if secure else []
    if secure:
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=localhost",
                        "-out", files[0], "-keyout", files[1]], check=True, capture_output=True)
    report = directory / "report.xml"
    with subprocess.Popen([server, *files], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        port = process.stdout.readline().strip()
        subprocess.run([H2SPEC, "--strict", "--host", "127.0.0.1", "--port", port, "--path", "/length", "--timeout", "5",
                        "--junit-report", report, *(["--tls", "--insecure"] if secure else []), *sections], stdout=subprocess.DEVNULL, check=False)
        process.stdin.close()
    if process.returncode:
        print(f"not ok - the server ends with {process.returncode}")
    cases = {}
    for case in xml.etree.ElementTree.parse(report).iter("testcase"):
        key = case.get("package"), case.get("classname")
        cases[key] = " ".join(" ".join(case.itertext()).split()) if len(case) else None
    return cases


def main(server, kind, *sections):
    if not H2SPEC.exists():
        print("skip - h2spec is not here: ./weft test --full fetches and builds it, by Go 1.18 or later")
        return 77
    with tempfile.TemporaryDirectory() as directory:
        cases = run_h2spec(server, Path(directory), kind == "tls", sections)
    failed = {key for key, why in cases.items() if why is not None}
    for key in sorted(failed ^ EXCEPTIONS[kind]):
        print(f"not ok - {' '.join(key)}: {cases.get(key) or 'is expected to fail, and passes or does not run'}")
    print(f"{'ok' if len(cases) >= CASES else 'not ok'} - {len(cases)} cases")
    return int(failed != EXCEPTIONS[kind] or len(cases) < CASES)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
