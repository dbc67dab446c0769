#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Sends random requests by the client and by Python's http.client to the same servers: both must get the same
responses.

same.py FETCH HTTPD DIRECTORY [SEED]

FETCH is fetch.c, HTTPD is examples/httpd.c. The servers are a Python server whose answers are drawn from the path of
the request, with every framing; HTTPD; and nginx, if it is installed. HTTPD and nginx also serve by TLS, where FETCH
must choose HTTP/2, and Python's client speaks HTTP/1.1; this nginx is a proxy for Python's server too. Status,
fields, trailers and body must be equal.
"""
import http.client
import http.server
import os
import random
import re
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import zlib

REQUESTS = 400


class Server(http.server.BaseHTTPRequestHandler):
    """The server's answer to a path is drawn from the path."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_):
        pass

    def read_body(self):
        if "chunked" in self.headers.get("Transfer-Encoding", ""):
            parts = []
            while size := int(self.rfile.readline().split(b";")[0], 16):
                parts.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(parts)
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def write_chunks(self, body, draw):
        at = 0
        while at < len(body):
            piece = body[at : at + draw.randrange(1, 9000)]
            extension = draw.choice(["", "", ";a=b", ';a="b c"'])
            self.wfile.write(b"%x%s\r\n%s\r\n" % (len(piece), extension.encode(), piece))
            at += len(piece)
        self.wfile.write(b"0\r\n")
        if draw.random() < 0.5:
            self.wfile.write(b"X-Sum: %d\r\n" % len(body))
        self.wfile.write(b"\r\n")

    def answer(self):
        draw = random.Random(self.path)
        got = self.read_body()
        body = got if "echo" in self.path else draw.randbytes(draw.choice([0, 1, 100, draw.randrange(200000)]))
        tame = "tame" in self.path  # nginx as a proxy does not support 1xx, and waits for chunks of 304
        status = draw.choice([200, 200, 200, 201, 404, 500] + ([] if tame else [204, 302, 304]))
        framing = draw.choice(["length", "chunked", "close"])
        none = status in (204, 304) or self.command == "HEAD"
        for _ in range(0 if tame else draw.choice([0, 0, 1, 3])):
            self.wfile.write(b"HTTP/1.1 100 Continue\r\n\r\n")  # http.client supports no other 1xx
        self.send_response_only(status)
        self.send_header("X-Got", "%d %08x" % (len(got), zlib.crc32(got)))
        for i in range(draw.randrange(5)):
            self.send_header("X-%d" % draw.randrange(3), draw.choice(["a", "", "a  b", "x" * 3000, "\u00e4"]))
        if framing == "length" and status != 204:
            self.send_header("Content-Length", str(len(body)))
        elif framing == "chunked" and status not in (204, 304):  # http.client waits for the chunks of 304
            self.send_header("Transfer-Encoding", "chunked")
        elif draw.random() < 0.8 or not none:
            self.send_header("Connection", "close")
            self.close_connection = True
        self.end_headers()
        if none:
            return
        if framing == "chunked":
            self.write_chunks(body, draw)
        else:
            self.wfile.write(body)

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = do_OPTIONS = answer


def by_python(method, port, path, how, length, context):
    """The lines that fetch.c prints."""
    body = bytes((i * 7 + length) & 255 for i in range(length)) if how != "none" else None
    headers = {}
    if how == "chunked":
        headers["Transfer-Encoding"] = "chunked"
        body = iter([body[:1000], body[1000:]] if length > 1000 else [body] if length else [])
    if context:
        connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=20, context=context)
    else:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    connection.request(method, path, body, headers, encode_chunked=how == "chunked")
    response = connection.getresponse()
    lines = ["status %d" % response.status]
    lines += ["field %s: %s" % (name, value.strip()) for name, value in response.getheaders()]
    data = response.read()
    lines.append("body %d %08x" % (len(data), zlib.crc32(data)))
    connection.close()
    return lines


def comparable(lines, secure):
    """Removes dates, which may differ, and trailers, which http.client does not show. HTTP/2 has no connection fields,
    and our server sends its fields in another order."""
    apart = ["field date:", "trailer ", "version "]
    if secure:
        apart += ["field connection:", "field transfer-encoding:", "field keep-alive:"]
    lines = [re.sub("^field [^:]*", lambda name: name[0].lower(), line) for line in lines]
    lines = [line for line in lines if not line.startswith(tuple(apart))]
    return sorted(lines) if secure else lines


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait_for(port):
    for _ in range(200):
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return
        except OSError:
            time.sleep(0.05)
    sys.exit("not ok - no server at port %d" % port)


def make_certificate(place):
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "30", "-subj", "/CN=h",
         "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", place + "/key", "-out", place + "/certificate"],
        check=True, capture_output=True)


def nginx(directory, place, ports):
    with open(place + "/conf", "w") as f:
        f.write(
            "daemon off; pid %s/pid; error_log %s/log; events {}\n"
            "http { access_log off; client_body_temp_path %s/a; proxy_temp_path %s/b; fastcgi_temp_path %s/c;"
            " uwsgi_temp_path %s/d; scgi_temp_path %s/e; gzip off; client_max_body_size 0; root \"%s\";"
            " server { listen 127.0.0.1:%d; }" % (*[place] * 7, directory, ports["nginx"]))
        if "nginx by TLS" in ports:
            f.write(
                " server { listen 127.0.0.1:%d ssl http2; ssl_certificate %s/certificate; ssl_certificate_key %s/key;"
                " location /python/ { proxy_http_version 1.1; proxy_buffering off; proxy_pass http://127.0.0.1:%d/; } }"
                % (ports["nginx by TLS"], place, place, ports["python"]))
        f.write(" }\n")
    return subprocess.Popen(["nginx", "-p", place, "-c", place + "/conf"], stderr=subprocess.DEVNULL)


def draw_requests(draw, ports, names):
    for _ in range(REQUESTS):
        kind = draw.choice(list(ports))
        if kind == "python" or (kind == "nginx by TLS" and draw.random() < 0.6):
            method = draw.choice(["GET", "GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS"])
            how = draw.choice(["memory", "length", "chunked"]) if method in ("POST", "PUT") else "none"
            path = "/%s%d?%d" % (draw.choice(["", "echo"]), draw.randrange(200), draw.randrange(10))
            if kind != "python":
                path = "/python/tame" + path
        else:
            method, how = draw.choice(["GET", "GET", "HEAD"]), "none"
            path = "/" + draw.choice(names + ["none"])
        length = draw.choice([0, 1, 100, draw.randrange(100000)]) if how != "none" else 0
        yield kind, method, ports[kind], path, how, length


def start_servers(httpd, directory, place, python):
    """The servers' ports, and their processes."""
    secure = shutil.which("openssl") is not None
    ports = {"python": python.server_port, "httpd": free_port()}
    command = [httpd, "--listen", "127.0.0.1:%d" % ports["httpd"], "--root", directory]
    if secure:
        make_certificate(place)
        ports["httpd by TLS"] = free_port()
        command += ["--tls", place + "/certificate", place + "/key", "--listen", "127.0.0.1:%d" % ports["httpd by TLS"]]
    servers = [subprocess.Popen(command)]
    if shutil.which("nginx"):
        ports["nginx"] = free_port()
        if secure:
            ports["nginx by TLS"] = free_port()
        servers.append(nginx(directory, place, ports))
    return ports, servers


def main():
    fetch, httpd, directory = sys.argv[1:4]
    draw = random.Random(int(sys.argv[4]) if len(sys.argv) > 4 else 0)
    python = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
    python.daemon_threads = True
    python.handle_error = lambda *_: None  # nginx closes connections to it early
    threading.Thread(target=python.serve_forever, daemon=True).start()
    place = tempfile.mkdtemp(prefix="weft-same-")
    ports, servers = start_servers(httpd, directory, place, python)
    arguments, context = [], None
    if "httpd by TLS" in ports:
        arguments, context = [place + "/certificate"], ssl.create_default_context(cafile=place + "/certificate")
    wrong = 0
    count = dict.fromkeys(ports, 0)
    try:
        for port in ports.values():
            wait_for(port)
        ours = subprocess.Popen([fetch, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="latin-1")
        for kind, method, port, path, how, length in draw_requests(draw, ports, sorted(os.listdir(directory))):
            secure = kind.endswith("TLS")
            ours.stdin.write("%s http%s://127.0.0.1:%d%s %s %d\n" % (method, "s" if secure else "", port, path, how, length))
            ours.stdin.flush()
            lines = []
            while not lines or not lines[-1].startswith("body "):
                line = ours.stdout.readline()
                if not line:
                    sys.exit("not ok - %s ends at %s %s" % (fetch, method, path))
                lines.append(line.rstrip("\n"))
            wanted = by_python(method, port, path, how, length, context if secure else None)
            count[kind] += 1
            if comparable(lines, secure) != comparable(wanted, secure) or secure != ("version 20" in lines):
                wrong += 1
                print("not ok - %s: %s %s, %s %d: %s, not %s" % (kind, method, path, how, length, lines, wanted))
        ours.stdin.close()
        wrong += ours.wait() != 0
    finally:
        for server in servers:
            server.terminate()
            server.wait()
        shutil.rmtree(place)
    if not wrong:
        for kind, n in count.items():
            print("ok - %s: %d requests" % (kind, n))
    return wrong != 0


sys.exit(main())
