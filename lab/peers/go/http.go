// SPDX-License-Identifier: MIT OR Apache-2.0

package main

import (
	"io"
	"net"
	"net/http"
)

// Experiment B3, as impl/http.c does it: package net/http. It adds Content-Length and Date by itself.

func hello(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain")
	io.WriteString(w, "Hello, World!")
}

func httpServer(int64) answer {
	workers()
	door, err := net.Listen("tcp4", "127.0.0.1:0")
	must(err)
	routes := http.NewServeMux()
	routes.HandleFunc("GET /", hello)
	startLoad(door.Addr().(*net.TCPAddr).Port)
	must(http.Serve(door, routes))
	return answer{}
}
