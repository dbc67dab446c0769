#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""examples/httpd.c under real clients: clients.py HTTPD curl|urllib|nginx|browser|signals

The server inherits its listeners, plain and TLS. nginx and the browser come from the system, or from build/packages. With
SCREENSHOTS=DIRECTORY in the environment the browser saves pictures of its pages there.
"""

import base64
import http.client
import json
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from pathlib import Path

PACKAGES = Path(__file__).resolve().parents[2] / "build/packages"
BIG = bytes(i * 7919 % 251 for i in range(300000))


def skip(why):
    print(f"skip - {why}")
    sys.exit(77)


def check(ok, what):
    print(f"{'ok' if ok else 'not ok'} - {what}", flush=True)
    if not ok:
        sys.exit(1)


def listener():
    s = socket.socket()
    s.bind(("127.0.0.1", 0))
    s.listen(100)
    return s


def wait_for(condition, what):
    until = time.monotonic() + 20
    while not condition():
        if time.monotonic() > until:
            check(False, what)
        time.sleep(0.02)


def unpacked(name, *patterns):
    """The command that runs a program of build/packages with its libraries, or None."""
    for pattern in patterns:
        for place in sorted((PACKAGES / name).glob(pattern)):
            libraries = sorted({str(file.parent) for file in (PACKAGES / name).glob("**/*-linux-gnu/**/*.so*")})
            return ["env", f"LD_LIBRARY_PATH={':'.join(libraries)}", str(place)]
    return None


class Server:
    """httpd with a plain and a TLS listener, in a directory of its own."""

    def __init__(self, program, directory):
        self.directory = Path(directory)
        self.certificate, self.key = self.directory / "certificate.pem", self.directory / "key.pem"
        self.make_certificate()
        root = self.directory / "root"
        root.mkdir()
        (root / "index.html").write_text("<!doctype html><title>site</title><h1>A site</h1>\n")
        (root / "big").write_bytes(BIG)
        plain, secure = listener(), listener()
        self.port, self.secure_port = plain.getsockname()[1], secure.getsockname()[1]
        self.plain_url, self.url = f"http://localhost:{self.port}", f"https://localhost:{self.secure_port}"
        self.context = ssl.create_default_context(cafile=str(self.certificate))
        self.process = subprocess.Popen(
            [program, "--root", root, "--workers", "2", "--listen", f"fd:{plain.fileno()}", "--tls", self.certificate, self.key,
             "--listen", f"fd:{secure.fileno()}"], pass_fds=[plain.fileno(), secure.fileno()], stdout=subprocess.DEVNULL)
        plain.close()
        secure.close()

    def make_certificate(self):
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "30",
                        "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", self.key,
                        "-out", self.certificate], check=True, capture_output=True)

    def stop(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        return self.process.wait(20)


@contextmanager
def serving(program):
    with tempfile.TemporaryDirectory() as directory:
        server = Server(program, directory)
        try:
            yield server
        finally:
            if server.process.poll() is None:
                server.process.kill()
                server.process.wait()


def curl(program):
    if not shutil.which("curl"):
        skip("curl is not here")
    with serving(program) as server:
        def get(*arguments):
            return subprocess.run(["curl", "-sS", "--max-time", "20", "--cacert", server.certificate, *arguments],
                                  capture_output=True, check=False)

        for version in "1.2", "1.3":
            limits = f"--tlsv{version}", "--tls-max", version
            check(b"A site" in get(*limits, server.url + "/").stdout, f"curl, TLS {version}: a page")
            check(get(*limits, server.url + "/big").stdout == BIG, f"curl, TLS {version}: a file of 300 KB")
        check(get("-r", "1000-1999", server.url + "/big").stdout == BIG[1000:2000], "curl: a range")
        twice = get("-w", "%{num_connects} ", "-o", "/dev/null", server.url + "/big", "-o", "/dev/null", server.url + "/")
        check(twice.stdout.split() == [b"1", b"0"], "curl: two requests by one connection")
        check(b"405" in get("-o", "/dev/null", "-w", "%{http_code}", "--data-binary", "@-", server.url + "/").stdout, "curl: POST to a file")
        other = subprocess.run(["curl", "-sS", "--max-time", "20", server.url], capture_output=True, check=False)
        check(other.returncode == 60, "curl: a certificate that nobody knows")
        plain = get("-o", "/dev/null", "-w", "%{http_code}", f"http://localhost:{server.secure_port}/")
        check(plain.stdout == b"400", "curl: plain HTTP to the port of TLS")
        check(b"A site" in get(server.plain_url + "/").stdout, "curl: plain HTTP")
        check(server.stop() == 0, "an orderly end")


def urllib_(program):
    with serving(program) as server:
        def fetch(path, **fields):
            request = urllib.request.Request(server.url + path, headers=fields)
            return urllib.request.urlopen(request, context=server.context, timeout=20)

        check(b"A site" in fetch("/").read(), "urllib: a page")
        with fetch("/big", Range="bytes=-500") as reply:
            check(reply.status == 206 and reply.read() == BIG[-500:], "urllib: a range")
        tag = fetch("/big").headers["ETag"]
        try:
            fetch("/big", **{"If-None-Match": tag})
            check(False, "urllib: an unchanged file")
        except urllib.error.HTTPError as error:
            check(error.code == 304, "urllib: an unchanged file")
        connection = http.client.HTTPSConnection("localhost", server.secure_port, context=server.context, timeout=20)
        for _ in range(50):
            connection.request("GET", "/big")
            check_bytes = connection.getresponse().read()
            if check_bytes != BIG:
                break
        check(check_bytes == BIG, "http.client: 50 requests by one connection")
        text = fetch("/metrics").read().decode()
        check(re.search(r"^# TYPE httpd_responses_total counter$", text, re.M), "metrics: a type")
        names = re.findall(r"^# TYPE (\S+) (\S+)$", text, re.M)
        check(names and all(name.endswith("_total") == (kind == "counter") for name, kind in names), "metrics: counters end with _total")
        check(all(re.fullmatch(r'[a-z_]+(\{code="\dxx"\})? [0-9.e+]+', line) for line in text.splitlines() if line[0] != "#"),
              "metrics: lines")
        event = fetch("/-/events").readline()
        check(event.startswith(b"data: {") and json.loads(event[6:])["connections"] >= 1, "an event")
        check(b"task #" in fetch("/-/tasks").read(), "the tasks")


def signals(program):
    """SIGHUP reloads the certificate; SIGINT ends the server although a page listens to events."""
    with serving(program) as server:
        def serial():
            with socket.create_connection(("127.0.0.1", server.secure_port), 20) as s:
                with ssl._create_unverified_context().wrap_socket(s) as t:  # pylint: disable=protected-access
                    return t.getpeercert(True)

        before = serial()
        server.key.write_text("no key")
        server.process.send_signal(signal.SIGHUP)
        time.sleep(0.2)
        check(serial() == before, "SIGHUP, but the key is malformed: the certificate stays")
        server.make_certificate()
        server.process.send_signal(signal.SIGHUP)
        wait_for(lambda: serial() != before, "SIGHUP: a new certificate")
        page = urllib.request.urlopen(server.plain_url + "/-/events", timeout=20)
        page.readline()
        began = time.monotonic()
        check(server.stop(signal.SIGINT) == 0 and time.monotonic() - began < 8, "SIGINT ends it, also the stream of events")
        check(page.read().count(b"data:") <= 3, "the stream is complete")


NGINX = """
daemon off; master_process off; worker_processes 1; pid %(directory)s/nginx.pid; error_log stderr crit;
events { worker_connections 64; }
http {
    access_log off;
    client_body_temp_path %(directory)s/a; proxy_temp_path %(directory)s/b; fastcgi_temp_path %(directory)s/c;
    uwsgi_temp_path %(directory)s/d; scgi_temp_path %(directory)s/e;
    upstream plain { server 127.0.0.1:%(port)d; keepalive 4; }
    upstream secure { server 127.0.0.1:%(secure_port)d; keepalive 4; }
    proxy_http_version 1.1; proxy_set_header Connection ""; proxy_buffering off;
    proxy_ssl_name localhost; proxy_ssl_server_name on; proxy_ssl_verify on; proxy_ssl_trusted_certificate %(certificate)s;
    server {
        listen unix:%(directory)s/proxy.sock;
        location /plain/ { proxy_pass http://plain/; }
        location /secure/ { proxy_pass https://secure/; }
    }
}
"""


class Unix(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=20)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(20)
        self.sock.connect(self.path)


def nginx(program):
    """nginx in front of httpd, which it reaches by plain HTTP and by TLS."""
    found = shutil.which("nginx", path=os.environ["PATH"] + ":/usr/sbin")
    command = [found] if found else unpacked("nginx", "usr/sbin/nginx")
    if not command:
        skip("nginx is not here")
    with serving(program) as server:
        proxy = server.directory / "proxy.sock"
        configuration = server.directory / "nginx.conf"
        configuration.write_text(NGINX % {"directory": server.directory, "port": server.port, "secure_port": server.secure_port,
                                          "certificate": server.certificate})
        process = subprocess.Popen([*command, "-e", "stderr", "-p", server.directory, "-c", configuration])
        try:
            wait_for(proxy.exists, "nginx begins")
            connection = Unix(str(proxy))
            for kind in "plain", "secure":
                good = 0
                for _ in range(30):
                    connection.request("GET", f"/{kind}/big")
                    good += connection.getresponse().read() == BIG
                check(good == 30, f"nginx, {kind}: 30 files")
                connection.request("GET", f"/{kind}/big", headers={"Range": "bytes=5-9"})
                check(connection.getresponse().read() == BIG[5:10], f"nginx, {kind}: a range")
                connection.request("GET", f"/{kind}/none")
                reply = connection.getresponse()
                check(reply.status == 404 and reply.read(), f"nginx, {kind}: no such file")
                connection.request("GET", f"/{kind}/-/events")
                check(connection.getresponse().readline().startswith(b"data: "), f"nginx, {kind}: an event")
                connection.close()
        finally:
            process.terminate()
            process.wait(20)


class Browser:
    """Chromium, controlled by its debugging pipe: descriptors 3 and 4; a zero byte ends each message."""

    def __init__(self, command, profile):
        to_read, self.to = os.pipe()
        self.back, to_write = os.pipe()
        high = [os.dup2(to_read, 60), os.dup2(to_write, 61)]
        shell = 'exec "$@" 3<&60 4>&61'
        self.process = subprocess.Popen(
            ["bash", "-c", shell, "bash", *command, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync",
             "--disable-background-networking", "--disable-component-update", "--ignore-certificate-errors", "--window-size=1000,900",
             f"--user-data-dir={profile}", "--remote-debugging-pipe"], pass_fds=high, stderr=subprocess.DEVNULL)
        for fd in (to_read, to_write, *high):
            os.close(fd)
        self.got, self.number, self.session = b"", 0, None

    def call(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        while True:
            while b"\0" not in self.got:
                more = os.read(self.back, 1 << 16)
                if not more:
                    check(False, "the browser answers")
                self.got += more
            answer, self.got = self.got.split(b"\0", 1)
            answer = json.loads(answer)
            if answer.get("id") == self.number:
                return answer.get("result", {})

    def open(self, url):
        self.session = None
        target = self.call("Target.createTarget", url=url)["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]

    def text(self):
        return self.call("Runtime.evaluate", expression="document.body ? document.body.innerText : ''").get("result", {}).get("value", "")

    def picture(self, name):
        if os.environ.get("SCREENSHOTS"):
            data = self.call("Page.captureScreenshot", format="png")["data"]
            (Path(os.environ["SCREENSHOTS"]) / name).write_bytes(base64.b64decode(data))


def browser(program):
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chromium-headless-shell"))), None)
    command = [found] if found else unpacked("browser", "usr/lib/chromium*/chromium-headless-shell", "usr/lib/chromium*/headless_shell")
    if not command:
        skip("no browser is here")
    with serving(program) as server, tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        b = Browser(command, profile)
        signal.alarm(100)
        try:
            b.open(server.url + "/")
            wait_for(lambda: "A site" in b.text(), "a browser shows the site")
            check(True, "a browser shows the site")
            b.picture("site.png")
            b.open(server.url + "/-/")
            wait_for(lambda: re.search(r"requests\s+[1-9]", b.text()) and "task #" in b.text(), "a browser shows the figures")
            first = re.search(r"Up for (\d+) s", b.text())
            for _ in range(30):
                urllib.request.urlopen(server.url + "/", context=server.context, timeout=20).read()
            wait_for(lambda: re.search(r"Up for (\d+) s", b.text())[1] != first[1], "the figures change")
            check(True, "a browser shows the figures, which change")
            b.picture("live.png")
        finally:
            b.process.kill()
            b.process.wait()


if __name__ == "__main__":
    {"curl": curl, "urllib": urllib_, "signals": signals, "nginx": nginx, "browser": browser}[sys.argv[2]](sys.argv[1])
