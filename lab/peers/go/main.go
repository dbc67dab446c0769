// SPDX-License-Identifier: MIT OR Apache-2.0

// The lab's programs in Go: iter.Pull (a coroutine switch in the runtime) and goroutines with unbuffered channels.
// lab-go case=NAME n=COUNT; the protocol is that of impl/lab.h.
package main

import (
	"fmt"
	"iter"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

var (
	cpu0, cpu1   int64
	wall0, wall1 time.Time
)

func cpuNow() int64 {
	const clockProcessCPU = 2
	var t syscall.Timespec
	syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clockProcessCPU, uintptr(unsafe.Pointer(&t)), 0)
	return t.Nano()
}

func start() { wall0, cpu0 = time.Now(), cpuNow() }
func stop()  { cpu1, wall1 = cpuNow(), time.Now() }

type answer struct {
	ops, result int64
	more        string
}

// ---- iter.Pull -------------------------------------------------------------------------------------------------

func resumeYield(n int64) answer {
	next, end := iter.Pull(func(yield func(int64) bool) {
		for sum := int64(0); yield(sum); sum++ {
		}
	})
	defer end()
	out := int64(0)
	start()
	for i := int64(0); i <= n; i++ {
		out, _ = next()
	}
	stop()
	return answer{ops: n, result: out}
}

//go:noinline
func oneDeep(yield func(int64) bool, sum int64) bool { return yield(sum) }

func yieldDeep(n int64) answer {
	next, end := iter.Pull(func(yield func(int64) bool) {
		for sum := int64(0); oneDeep(yield, sum); sum++ {
		}
	})
	defer end()
	out := int64(0)
	start()
	for i := int64(0); i <= n; i++ {
		out, _ = next()
	}
	stop()
	return answer{ops: n, result: out}
}

func drain(seq iter.Seq[int64]) int64 {
	next, end := iter.Pull(seq)
	defer end()
	sum := int64(0)
	for {
		value, ok := next()
		if !ok {
			return sum
		}
		sum += value
	}
}

func numbers(n int64) iter.Seq[int64] {
	return func(yield func(int64) bool) {
		for i := int64(0); i <= n; i++ {
			if !yield(i) {
				return
			}
		}
	}
}

func iterator(n int64) answer {
	start()
	sum := drain(numbers(n))
	stop()
	return answer{ops: n + 1, result: sum}
}

type tree struct {
	value       int64
	left, right *tree
}

// The suite's tree is a DAG: the tree below a node is the same on both sides.
func makeTree(height int64) *tree {
	var below *tree
	for value := int64(1); value <= height; value++ {
		below = &tree{value, below, below}
	}
	return below
}

func (t *tree) walk(yield func(int64) bool) bool {
	return t == nil || t.left.walk(yield) && yield(t.value) && t.right.walk(yield)
}

func generator(n int64) answer {
	t := makeTree(n)
	start()
	sum := drain(func(yield func(int64) bool) { t.walk(yield) })
	stop()
	return answer{ops: 1<<n - 1, result: sum}
}

func (t *tree) count(yield func(int64) bool) bool {
	return t == nil || t.left.count(yield) && yield(1) && t.right.count(yield)
}

func recursive(n int64) answer {
	height := int64(1)
	for int64(1)<<height-1 < n {
		height++
	}
	t := makeTree(height)
	start()
	sum := drain(func(yield func(int64) bool) { t.count(yield) })
	stop()
	return answer{ops: n, result: sum}
}

func leaves(yield func(int64) bool, node, depth int64) bool {
	if depth == 0 {
		return yield(node)
	}
	return leaves(yield, 2*node, depth-1) && leaves(yield, 2*node+1, depth-1)
}

func c2(n int64) answer {
	start()
	sum := drain(func(yield func(int64) bool) { leaves(yield, 0, n) })
	stop()
	return answer{ops: 1 << n, result: sum}
}

// ---- goroutines and channels -----------------------------------------------------------------------------------

type request struct {
	put   bool
	value int64
}

func countdown(n int64) answer {
	requests, replies := make(chan request), make(chan int64)
	s := n
	start()
	go func() {
		defer close(requests)
		for {
			requests <- request{}
			s := <-replies
			if s <= 0 {
				return
			}
			requests <- request{true, s - 1}
			<-replies
		}
	}()
	for r := range requests {
		if r.put {
			s = r.value
		}
		replies <- s
	}
	stop()
	return answer{ops: 2*n + 1, result: s}
}

func perform(n int64) answer {
	requests, replies := make(chan struct{}), make(chan int64)
	sum := int64(0)
	start()
	go func() {
		defer close(requests)
		for i := int64(0); i < n; i++ {
			requests <- struct{}{}
			sum += <-replies
		}
	}()
	for range requests {
		replies <- 1
	}
	stop()
	return answer{ops: n, result: sum}
}

func summer(n int64, in, out chan int64, result *int64) {
	defer close(out)
	sum := int64(0)
	for i := int64(0); i < n; i++ {
		out <- i
		sum += <-in
	}
	*result = sum
}

func c1(n, laps int64) answer {
	sum := int64(0)
	start()
	for lap := int64(0); lap < laps; lap++ {
		var sums [2]int64
		var in, out [2]chan int64
		for i := range in {
			in[i], out[i] = make(chan int64), make(chan int64)
			go summer(n, in[i], out[i], &sums[i])
		}
		for i := int64(0); i < n; i++ {
			for j := range in {
				in[j] <- <-out[j]
			}
		}
		<-out[0]
		<-out[1]
		sum = sums[0] + sums[1]
	}
	stop()
	return answer{ops: 2 * n * laps, result: sum}
}

func c3(n int64) answer {
	source := make(chan int64)
	end := make(chan struct{})
	prime := int64(0)
	start()
	go func() {
		for i := int64(2); ; i++ {
			select {
			case source <- i:
			case <-end:
				return
			}
		}
	}()
	last := source
	for found := int64(0); found < n; found++ {
		prime = <-last
		filtered := make(chan int64)
		go func(source, filtered chan int64, prime int64) {
			for {
				if i := <-source; i%prime != 0 {
					filtered <- i
				}
			}
		}(last, filtered, prime)
		last = filtered
	}
	stop()
	close(end)
	return answer{ops: n, result: prime}
}

func lifeWarm(n int64) answer {
	done := int64(0)
	ended := make(chan struct{})
	start()
	for i := int64(0); i < n; i++ {
		go func() {
			done++
			ended <- struct{}{}
		}()
		<-ended
	}
	stop()
	return answer{ops: n, result: done}
}

//go:noinline
func touch(wait chan struct{}, sum *int64) {
	var buffer [32 * 1024]byte
	for i := range buffer {
		buffer[i] = 1
	}
	runtime.KeepAlive(&buffer)
	<-wait
	*sum += int64(buffer[0]) + int64(buffer[len(buffer)-1])
	wait <- struct{}{}
}

func c10m(n, live int64) answer {
	slots := make([]chan struct{}, live)
	sum := int64(0)
	finish := func(c chan struct{}) {
		c <- struct{}{}
		<-c
	}
	start()
	for i := int64(0); i < n; i++ {
		slot := i % live
		if slots[slot] != nil {
			finish(slots[slot])
		}
		slots[slot] = make(chan struct{})
		go touch(slots[slot], &sum)
	}
	for _, c := range slots {
		if c != nil {
			finish(c)
		}
	}
	stop()
	return answer{ops: n, result: sum / 2}
}

// ---- tasks, on `workers` threads ----------------------------------------------------------------------------------

func workers() { runtime.GOMAXPROCS(int(number("workers", 1))) }

func spawnJoin(n int64) answer {
	workers()
	done := int64(0)
	start()
	for i := int64(0); i < n; i++ {
		var group sync.WaitGroup
		group.Add(1)
		go func() {
			done++
			group.Done()
		}()
		group.Wait()
	}
	stop()
	return answer{ops: n, result: done}
}

// Each goroutine waits for the goroutine before it.
func spawnChain(n int64) answer {
	workers()
	ended := int64(0)
	start()
	var before chan struct{}
	for i := int64(0); i < n; i++ {
		self := make(chan struct{})
		go func(before, self chan struct{}) {
			if before != nil {
				<-before
			}
			ended++
			close(self)
		}(before, self)
		before = self
	}
	<-before
	stop()
	return answer{ops: n, result: ended}
}

// Each goroutine waits for the goroutine before it, and then spawns the next.
func spawn(n int64) answer {
	workers()
	ended, end := int64(0), make(chan struct{})
	var next func(i int64, before, self chan struct{})
	next = func(i int64, before, self chan struct{}) {
		if before != nil {
			<-before
		}
		ended++
		if i+1 < n {
			go next(i+1, self, make(chan struct{}))
		} else {
			close(end)
		}
		close(self)
	}
	start()
	go next(0, nil, make(chan struct{}))
	<-end
	stop()
	return answer{ops: n, result: ended}
}

// Tasks in a ring, each with a semaphore.
func semRing(n int64) answer {
	workers()
	size := number("tasks", 100)
	sems := make([]chan struct{}, size)
	for i := range sems {
		sems[i] = make(chan struct{}, 1)
	}
	turns := int64(0)
	var group sync.WaitGroup
	group.Add(int(size))
	start()
	for i := range sems {
		go func() {
			for k := int64(0); k < n/size; k++ {
				<-sems[i]
				turns++
				sems[(int64(i)+1)%size] <- struct{}{}
			}
			group.Done()
		}()
	}
	sems[0] <- struct{}{}
	group.Wait()
	stop()
	return answer{ops: turns, result: turns}
}

var callTable = [9]int{4, 8, 3, 5, 6, 7, 2, 1, 0}

//go:noinline
func callTree(n, x int) int {
	if n < 2 {
		return callTable[x]
	}
	half := n / 2
	return callTree(half, callTree(n-half, x))
}

func calls(n int64) answer {
	start()
	result := callTree(int(n), 1)
	stop()
	return answer{ops: 2*n - 1, result: int64(result)}
}

func yieldAmongTen(n int64) answer {
	workers()
	var group sync.WaitGroup
	group.Add(10)
	start()
	for i := 0; i < 10; i++ {
		go func() {
			for j := int64(0); j < n/10; j++ {
				runtime.Gosched()
			}
			group.Done()
		}()
	}
	group.Wait()
	stop()
	return answer{ops: n, result: n}
}

func hop(n int64) answer {
	workers()
	to, back := make(chan int64), make(chan int64)
	sum := int64(0)
	start()
	go func() {
		for item := range to {
			back <- item
		}
	}()
	for i := int64(1); i <= n; i++ {
		to <- i
		sum += <-back
	}
	close(to)
	stop()
	return answer{ops: 2 * n, result: sum}
}

func skynetPart(first, count int64, out chan int64) {
	if count == 1 {
		out <- first
		return
	}
	parts := make(chan int64)
	for i := int64(0); i < 10; i++ {
		go skynetPart(first+i*(count/10), count/10, parts)
	}
	sum := int64(0)
	for i := 0; i < 10; i++ {
		sum += <-parts
	}
	out <- sum
}

func skynet(n int64) answer {
	workers()
	out := make(chan int64)
	start()
	go skynetPart(0, n, out)
	sum := <-out
	stop()
	return answer{ops: n, result: sum}
}

// ---- tasks that wait for each other ------------------------------------------------------------------------------

func mutex(n int64) answer {
	workers()
	var group sync.WaitGroup
	var lock sync.Mutex
	count := int64(0)
	group.Add(10)
	start()
	for i := 0; i < 10; i++ {
		go func() {
			for j := int64(0); j < n/10; j++ {
				lock.Lock()
				count++
				lock.Unlock()
			}
			group.Done()
		}()
	}
	group.Wait()
	stop()
	return answer{ops: n, result: count}
}

func selectOfEight(n int64) answer {
	workers()
	var c [8]chan int64
	for i := range c {
		c[i] = make(chan int64)
	}
	sum, item := int64(0), int64(0)
	start()
	for i := range c {
		go func() {
			for j := int64(1); j <= n/8; j++ {
				c[i] <- j
			}
		}()
	}
	for i := int64(0); i < n; i++ {
		select {
		case item = <-c[0]:
		case item = <-c[1]:
		case item = <-c[2]:
		case item = <-c[3]:
		case item = <-c[4]:
		case item = <-c[5]:
		case item = <-c[6]:
		case item = <-c[7]:
		}
		sum += item
	}
	stop()
	return answer{ops: n, result: sum}
}

func ring(n int64) answer {
	const members = 503
	workers()
	var at [members]chan int64
	for i := range at {
		at[i] = make(chan int64, 1)
	}
	last := make(chan int64)
	start()
	for i := range at {
		go func() {
			for token := range at[i] {
				if token == 0 {
					last <- int64(i + 1)
					return
				}
				at[(i+1)%members] <- token - 1
			}
		}()
	}
	at[0] <- n
	result := <-last
	for _, c := range at {
		close(c)
	}
	stop()
	return answer{ops: n, result: result}
}

func fan(n int64) answer {
	workers()
	to, back := make(chan int64), make(chan int64)
	sum := int64(0)
	start()
	for i := 0; i < 100; i++ {
		go func() {
			for item := range to {
				back <- item
			}
		}()
	}
	go func() {
		for i := int64(1); i <= n; i++ {
			to <- i
		}
	}()
	for i := int64(0); i < n; i++ {
		sum += <-back
	}
	close(to)
	stop()
	return answer{ops: n, result: sum}
}

func chain(n int64) answer {
	workers()
	var here sync.WaitGroup
	here.Add(int(n))
	events := make([]chan struct{}, n+1)
	for i := range events {
		events[i] = make(chan struct{})
	}
	for i := int64(0); i < n; i++ {
		go func() {
			here.Done()
			<-events[i]
			close(events[i+1])
		}()
	}
	here.Wait()
	start()
	close(events[0])
	<-events[n]
	stop()
	return answer{ops: n, result: n}
}

// ---- timers ------------------------------------------------------------------------------------------------------

const naps = 16

// drawn is a pseudo-random share of `longest`, evenly distributed, the same in each program: Knuth's multiplier.
func drawn(number uint32, longest time.Duration) time.Duration {
	return time.Duration(uint64(number*2654435761) * uint64(longest) >> 32)
}

func timersFire(n int64) answer {
	workers()
	var here, napping sync.WaitGroup
	var slept atomic.Int64
	begin, end := make(chan struct{}), make(chan struct{})
	longest := time.Duration(number("ms", 10)) * time.Millisecond
	here.Add(int(n))
	napping.Add(int(n))
	for i := int64(0); i < n; i++ {
		go func() {
			here.Done()
			<-begin
			for j := uint32(0); j < naps; j++ {
				time.Sleep(drawn(uint32(i)*naps+j, longest))
			}
			slept.Add(naps)
			napping.Done()
			<-end
		}()
	}
	here.Wait()
	start()
	close(begin)
	napping.Wait()
	stop()
	close(end)
	return answer{ops: slept.Load(), result: slept.Load()}
}

func receivedWithin(c chan int64, limit time.Duration) (int64, bool) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case item, ok := <-c:
		return item, ok
	case <-timer.C:
		return 0, false
	}
}

func timersCancel(n int64) answer {
	workers()
	var here sync.WaitGroup
	sleepers := number("sleepers", 10)
	here.Add(int(sleepers))
	for i := int64(0); i < sleepers; i++ {
		go func() {
			here.Done()
			time.Sleep(time.Hour)
		}()
	}
	here.Wait()
	to, back := make(chan int64), make(chan int64)
	sum := int64(0)
	start()
	go func() {
		for {
			item, ok := receivedWithin(to, time.Hour)
			if !ok {
				return
			}
			back <- item
		}
	}()
	for i := int64(1); i <= n; i++ {
		to <- i
		item, _ := receivedWithin(back, time.Hour)
		sum += item
	}
	close(to)
	stop()
	return answer{ops: 2 * n, result: sum}
}

// ---- a task with a long computation, and idle tasks ----------------------------------------------------------------

const (
	latest    = 1000000
	nappers   = 1000
	middleNap = 10 * time.Millisecond
)

// quantile is the lateness in µs that all naps except one in a thousand keep to.
func quantile(times []uint32) int {
	all, seen := uint64(0), uint64(0)
	for _, t := range times {
		all += uint64(t)
	}
	for i, t := range times {
		if seen += uint64(t); seen >= all-all/1000 {
			return i
		}
	}
	return latest
}

func longTask(n int64) answer {
	workers()
	var ends sync.WaitGroup
	var over atomic.Bool
	times := make([]uint32, latest+1)
	ends.Add(nappers)
	start()
	for k := uint32(0); k < nappers; k++ {
		go func() {
			for i := uint32(0); !over.Load(); i++ {
				nap := middleNap/2 + drawn(k+i*nappers, middleNap)
				began := time.Now()
				time.Sleep(nap)
				late := (time.Since(began) - nap).Microseconds()
				atomic.AddUint32(&times[min(max(late, 0), latest)], 1)
			}
			ends.Done()
		}()
	}
	for i := int64(0); i < n; i++ {
		for began := time.Now(); time.Since(began) < 10*time.Millisecond; {
		}
		time.Sleep(time.Millisecond)
	}
	over.Store(true)
	ends.Wait()
	stop()
	return answer{ops: n, result: n, more: fmt.Sprintf(", \"late\": %.6f", float64(quantile(times))*1e-6)}
}

// usage is CPU time in ns and switches of the process, without the calling thread.
func usage() (int64, int64) {
	const thread = 1
	var all, own syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &all)
	syscall.Getrusage(thread, &own)
	cpu := all.Utime.Nano() + all.Stime.Nano() - own.Utime.Nano() - own.Stime.Nano()
	return cpu, all.Nvcsw + all.Nivcsw - own.Nvcsw - own.Nivcsw
}

// pause blocks the thread in a system call, so that no timer of the runtime is armed.
func pause(ms int64) {
	t := syscall.NsecToTimespec(ms * 1e6)
	syscall.Nanosleep(&t, nil)
}

func idle(n int64) answer {
	workers()
	runtime.LockOSThread()
	var ends sync.WaitGroup
	event := make(chan struct{})
	ends.Add(int(n))
	start()
	for i := int64(0); i < n; i++ {
		go func() {
			<-event
			ends.Done()
		}()
	}
	ms := number("ms", 10)
	pause(100)
	cpu, switches := usage()
	pause(ms)
	cpuAfter, switchesAfter := usage()
	close(event)
	ends.Wait()
	stop()
	more := fmt.Sprintf(", \"idle\": %.6f, \"switches\": %.1f", float64(cpuAfter-cpu)*1e-6/float64(ms),
		float64(switchesAfter-switches)*1e3/float64(ms))
	return answer{ops: n, result: n, more: more}
}

// ---- memory ----------------------------------------------------------------------------------------------------

func proc(file, field string) int64 {
	text, _ := os.ReadFile(file)
	for _, line := range strings.Split(string(text), "\n") {
		if rest, ok := strings.CutPrefix(line, field); ok {
			kib, _ := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			return kib * 1024
		}
	}
	return 0
}

// resident memory, approximately
func spent() int64 {
	text, _ := os.ReadFile("/proc/self/statm")
	pages, _ := strconv.ParseInt(strings.Fields(string(text))[1], 10, 64)
	return pages * 4096
}

// Creates goroutines that wait: n of them, or as many as use mb MiB.
func memory(n int64) answer {
	budget := number("mb", 0) << 20
	wait, started := make(chan struct{}), make(chan struct{})
	runtime.GC()
	resident, tables := proc("/proc/self/smaps_rollup", "Rss:"), proc("/proc/self/status", "VmPTE:")
	start()
	made := int64(0)
	for budget == 0 && made < n || budget != 0 && (made%1024 != 0 || spent() < resident+budget) {
		go func() {
			started <- struct{}{}
			<-wait
		}()
		<-started
		made++
	}
	stop()
	result := made
	if budget != 0 {
		n, result = made, 1
	}
	r := float64(proc("/proc/self/smaps_rollup", "Rss:")-resident) / float64(n)
	t := float64(proc("/proc/self/status", "VmPTE:")-tables) / float64(n)
	more := fmt.Sprintf(", \"bytes\": %.1f, \"resident\": %.1f, \"page_tables\": %.1f", r+t, r, t)
	return answer{ops: n, result: result, more: more}
}

// ----------------------------------------------------------------------------------------------------------------

func text(name string) string {
	for _, a := range os.Args[1:] {
		if value, ok := strings.CutPrefix(a, name+"="); ok {
			return value
		}
	}
	return ""
}

func number(name string, otherwise int64) int64 {
	if value, err := strconv.ParseInt(text(name), 10, 64); err == nil {
		return value
	}
	return otherwise
}

func main() {
	cases := map[string]func(int64) answer{
		"resume_yield": resumeYield, "yield_deep": yieldDeep, "iterator": iterator, "generator": generator,
		"recursive": recursive, "c2": c2, "countdown": countdown, "perform": perform, "c3": c3,
		"life_warm": lifeWarm, "memory": memory, "task_memory": memory,
		"spawn_join": spawnJoin, "yield": yieldAmongTen, "hop": hop, "skynet": skynet,
		"mutex": mutex, "select": selectOfEight, "ring": ring, "fan": fan, "chain": chain,
		"spawn": spawn, "spawn_chain": spawnChain, "sem_ring": semRing, "calls": calls,
		"timers_fire": timersFire, "timers_cancel": timersCancel, "long_task": longTask, "idle": idle,
		"pipe": byPipe, "tcp": byTCP, "echo": server, "accept": server, "idle_memory": server, "late": late, "udp": datagrams,
		"file": readFile, "cancel": cancelRead,
		"c1":   func(n int64) answer { return c1(n, number("laps", 1)) },
		"c10m": func(n int64) answer { return c10m(n, number("live", 10000)) },
	}
	run, ok := cases[text("case")]
	if text("with") == "http" {
		run, ok = httpServer, true
	}
	if !ok {
		fmt.Fprintln(os.Stderr, "no such case")
		os.Exit(2)
	}
	a := run(number("n", 10))
	fmt.Printf("{\"cpu\": %.9f, \"wall\": %.9f, \"ops\": %d, \"result\": \"%d\"%s}\n", float64(cpu1-cpu0)*1e-9,
		wall1.Sub(wall0).Seconds(), a.ops, a.result, a.more)
}
