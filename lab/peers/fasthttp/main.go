// SPDX-License-Identifier: MIT OR Apache-2.0

// Experiment B3 on fasthttp, as impl/http.c does it. fasthttp adds Content-Length and Date by itself. This is a module of its own,
// so the lab's other programs in Go need no registry.
// lab-fasthttp case=NAME helper=PATH workers=W; the load generator, to which all parameters go, prints the figures.
package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"

	"github.com/valyala/fasthttp"
)

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
}

func parameter(name, otherwise string) string {
	for _, argument := range os.Args[1:] {
		if value, ok := strings.CutPrefix(argument, name+"="); ok {
			return value
		}
	}
	return otherwise
}

// startLoad starts the load generator; the program ends with it.
func startLoad(port int) {
	load := exec.Command(parameter("helper", ""), append(os.Args[1:], fmt.Sprintf("port=%d", port))...)
	load.Stdout, load.Stderr = os.Stdout, os.Stderr
	must(load.Start())
	go func() {
		load.Wait()
		os.Exit(load.ProcessState.ExitCode())
	}()
}

func hello(c *fasthttp.RequestCtx) {
	c.SetContentType("text/plain")
	c.SetBodyString("Hello, World!")
}

func main() {
	workers, err := strconv.Atoi(parameter("workers", "1"))
	must(err)
	runtime.GOMAXPROCS(workers)
	door, err := net.Listen("tcp4", "127.0.0.1:0")
	must(err)
	startLoad(door.Addr().(*net.TCPAddr).Port)
	server := fasthttp.Server{Handler: hello, NoDefaultServerHeader: true}
	must(server.Serve(door))
}
