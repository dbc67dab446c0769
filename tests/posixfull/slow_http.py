#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""A server on the loopback that thinks for 20 ms and answers a number with its square: slow_http.py FILE-FOR-THE-PORT"""
import http.server
import os
import sys
import time


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        time.sleep(0.02)
        text = str(int(self.path[1:]) ** 2).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 256
    daemon_threads = True


with Server(("127.0.0.1", 0), Handler) as server:
    with open(sys.argv[1] + ".new", "w") as file:
        file.write(str(server.server_address[1]))
    os.rename(sys.argv[1] + ".new", sys.argv[1])
    server.serve_forever()
