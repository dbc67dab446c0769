// SPDX-License-Identifier: MIT OR Apache-2.0

package main

import (
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"time"
)

// The experiment `io`, as impl/io.c does it: package net, and files of package os.

const (
	ioBuffer = 128
	ioBlock  = 4096
)

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
}

type end interface {
	Read([]byte) (int, error)
	Write([]byte) (int, error)
}

func exchange(n int64, in, out, farIn, farOut end) answer {
	workers()
	go func() {
		b := make([]byte, 1)
		for {
			if _, err := farIn.Read(b); err != nil {
				return
			}
			farOut.Write(b)
		}
	}()
	b := make([]byte, 1)
	start()
	for i := int64(0); i < n; i++ {
		_, err := out.Write(b)
		must(err)
		_, err = in.Read(b)
		must(err)
	}
	stop()
	return answer{ops: n, result: n}
}

func byPipe(n int64) answer {
	farIn, out, err := os.Pipe()
	must(err)
	in, farOut, err := os.Pipe()
	must(err)
	return exchange(n, in, out, farIn, farOut)
}

func byTCP(n int64) answer {
	door, err := net.Listen("tcp4", "127.0.0.1:0")
	must(err)
	here, err := net.Dial("tcp4", door.Addr().String())
	must(err)
	there, err := door.Accept()
	must(err)
	return exchange(n, here, here, there, there)
}

func serve(c net.Conn) {
	text := make([]byte, ioBuffer)
	for {
		n, err := c.Read(text)
		if err == nil {
			_, err = c.Write(text[:n])
		}
		if err != nil {
			c.Close()
			return
		}
	}
}

// startLoad starts the load generator, which prints the figures; the program ends with it.
func startLoad(port int) {
	load := exec.Command(text("helper"), append(os.Args[1:], fmt.Sprintf("port=%d", port))...)
	load.Stdout, load.Stderr = os.Stdout, os.Stderr
	must(load.Start())
	go func() {
		load.Wait()
		os.Exit(load.ProcessState.ExitCode())
	}()
}

func server(int64) answer {
	workers()
	door, err := net.Listen("tcp4", "127.0.0.1:0")
	must(err)
	startLoad(door.Addr().(*net.TCPAddr).Port)
	for {
		c, err := door.Accept()
		must(err)
		go serve(c)
	}
}

func datagrams(int64) answer {
	workers()
	door, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	must(err)
	startLoad(door.LocalAddr().(*net.UDPAddr).Port)
	text := make([]byte, ioBuffer)
	for {
		n, from, err := door.ReadFromUDPAddrPort(text)
		must(err)
		_, err = door.WriteToUDPAddrPort(text[:n], from)
		must(err)
	}
}

func late(n int64) answer {
	go func() {
		for {
			for began := time.Now(); time.Since(began) < 10*time.Millisecond; {
			}
			time.Sleep(time.Millisecond)
		}
	}()
	return server(n)
}

// blockAt is the block of the i-th read, like io_block of impl/io_server.h.
func blockAt(i, blocks int64) int64 { return int64(uint64(i)*2654435761>>7) % blocks }

func makeFile(blocks int64) *os.File {
	f, err := os.CreateTemp("", "weft-lab-")
	must(err)
	os.Remove(f.Name())
	block := make([]byte, ioBlock)
	for i := int64(0); i < blocks; i++ {
		binary.LittleEndian.PutUint64(block, uint64(i))
		_, err = f.Write(block)
		must(err)
	}
	return f
}

func readFile(n int64) answer {
	workers()
	blocks := number("blocks", 16)
	f := makeFile(blocks)
	var lock sync.Mutex
	var ends sync.WaitGroup
	next, right := int64(0), int64(0)
	start()
	for d := number("depth", 1); d > 0; d-- {
		ends.Add(1)
		go func() {
			defer ends.Done()
			block := make([]byte, ioBlock)
			own := int64(0)
			for {
				lock.Lock()
				i := next
				next++
				lock.Unlock()
				if i >= n {
					break
				}
				wanted := blockAt(i, blocks)
				_, err := f.ReadAt(block, wanted*ioBlock)
				must(err)
				if binary.LittleEndian.Uint64(block) == uint64(wanted) {
					own++
				}
			}
			lock.Lock()
			right += own
			lock.Unlock()
		}()
	}
	ends.Wait()
	stop()
	return answer{ops: n, result: right}
}

// cancelRead ends a waiting read by a deadline that has passed.
func cancelRead(n int64) answer {
	workers()
	in, out, err := os.Pipe()
	must(err)
	defer out.Close()
	cancelled := int64(0)
	go func() {
		b := make([]byte, 1)
		for cancelled < n {
			in.SetReadDeadline(time.Time{})
			if _, err := in.Read(b); os.IsTimeout(err) {
				cancelled++
			}
		}
	}()
	runtime.Gosched()
	past := time.Unix(1, 0)
	start()
	for cancelled < n {
		in.SetReadDeadline(past)
		runtime.Gosched()
	}
	stop()
	return answer{ops: n, result: cancelled}
}
