# SPDX-License-Identifier: MIT OR Apache-2.0
# shellcheck shell=bash disable=SC2154

help_overview()
{
	cat <<'END'
weft: effect handlers and coroutines for C, with the stack as a policy

  weft run [--policy P] FILE.c… [-- ARGS]   compile and run in one step
  weft run --posix PROGRAM ARGS…            libraries that it uses suspend tasks, not threads
  weft cc [--policy P] ARGS…                a C compiler for any build (weft c++: C++)
  weft run|cc|c++ --activities …            code that yields by itself: activities
  weft simulate [--seeds N] FILE.c…         run its tasks in many orders, and say which fails
  weft lookahead --explain PROGRAM…         what look-ahead decided for a program
  weft doctor                               what this machine offers, and what is missing
END
	[[ ! $root ]] || cat <<'END'
  weft lab [--quick|--full] [--only A1,…]   run the experiments and write the report
  weft test [PATTERN]                       run the quick tests, or those that match
END
	cat <<'END'
  weft help [COMMAND]                       this, or more about one command
  weft version

--no-install (or WEFT_NO_INSTALL=1) forbids installing packages that are missing.

'weft help policies' lists the stack policies that P may be, and SIZE.

Exit codes: 0 done; 1 the work failed (a compilation, a test); 2 the command line is wrong; 69
something needed is missing and was not installed; 70 a bug in weft; 130 interrupted. cc: the
compiler's. run: the program's.
END
}

help_run()
{
	cat <<'END'
weft run [--policy P[:SIZE]] [--instrument KIND] [--activities [--yields=calls|loops]] [FLAGS] FILE…
         [-- ARGS]

Compiles the files (C, C++ by their endings, or objects) with -O2 -g and whatever FLAGS that begin
with one dash are given, in a temporary directory, and becomes the program: its exit code and its
signals are what the caller sees. A compilation that fails ends with 1. With WEFT_LEAKS=1,
coroutines that are lost are told with the function and line that made them.

weft run --posix PROGRAM ARGS…
weft run --posix [--policy P[:SIZE]] [FLAGS] FILE… [-- ARGS]

Runs a program that was built before, or compiles one, with libweft-posix.so in LD_PRELOAD: where a
task of Weft calls a library (libpq, hiredis, libcurl, …) and that would block in read, poll,
nanosleep and their kin, the task waits and others run. Threads of the program's own are left alone,
and so is a program without tasks: then a line says so at its end. Refused for programs that are
linked statically, or set-user-ID.
END
}

help_simulate()
{
	cat <<'END'
weft simulate [--seeds N] [--first SEED] [--jobs N] [--policy P[:SIZE]] [FLAGS] FILE… [-- ARGS]

Compiles and runs a program as 'weft run' does, but its weft_rt_run is simulated: on one thread,
with a virtual clock, and an order of tasks that a seed decides. N seeds are tried (1000) from SEED
(0) on, each in a process of its own, --jobs of them at the same time (as many as there are
processors). The first seed is the plain order. A run fails by a deadlock, a livelock, a signal
(assert), or an error of the first task; then the schedule is made as plain as possible, what
repeats it is printed, also in a debugger, and the exit code is 1. The seed that is reported is the
lowest that fails. If none fails the program goes on with SEED. With more than one job, only that
run and a failing one show what the program writes.
  WEFT_SIMULATE=SEED ./program         one seed again, under a debugger for example
END
}

help_cc()
{
	cat <<'END'
weft cc [--policy P[:SIZE]] [--instrument KIND [--needs FILE]]
        [--activities | --activities-report] [--yields=calls|loops] [--no-install]
        ARGS…                    weft c++ …

Runs the compiler with ARGS untouched, adding
  to compile   the include directories (also of the compatibility headers: seff.h, fiber.h),
               -pthread
  to link      a program: libweft.a, -pthread, the export of effects to shared libraries
               a shared library: nothing, it uses the program's copy; -lweft gives it the shared one
               a program with -rdynamic: all of libweft.a, for plugins
Its own options may stand anywhere; --help is one of them ('cc --help' prints the compiler's). With
a build system:
  make CC="weft cc"        ./configure CC="weft cc"        CC=weft-cc cmake … (installed)

WEFT_CC, WEFT_CXX   the compiler (default: cc, c++; with --activities the newest clang of 19 to 22)
In the source tree the library is built when it is missing or older than its sources.

Code for stacks of linked chunks. --policy says how the program's coroutines and threads run by
default, and compiles for it; --instrument compiles, and leaves the default alone:
  --policy segmented, heap   --instrument segmented   a compare in each function's beginning
  --policy mmu               --instrument mmu         a store, and a fault when a chunk is spent
  --policy lookahead         --instrument lookahead   a compare only where the call graph needs one
Code of each kind also runs on every contiguous policy. Files compiled without may be linked to it,
and any library: what they do runs on a large stack of its own, unless FILE says how little stack
they need: a function's name and bytes in each line (as WEFT_NEEDS of weft/stack.h). gcc and clang
for x86-64 Linux; what cannot be instrumented (-m32, -flto, -fsanitize=address, -pg, …) is refused,
with the reason.

The same without this command, for gcc. DIR is where the installation has libexec/weft/KIND:
  cc -BDIR/ -fsplit-stack -fno-ipa-ra -dp -fno-stack-clash-protection -DWEFT_SMALL_FRAMES -c …
  pkg-config --cflags weft-segmented (weft-mmu, weft-lookahead)
clang (-BDIR/ -fsplit-stack -fno-integrated-as -fno-stack-clash-protection -DWEFT_SMALL_FRAMES)
compiles no variadic functions so. This does, and refuses with either compiler what is unsafe:
  libexec/weft/weft-launch --instrument KIND clang -c …
For CMake: find_package(weft), weft_target_stack(TARGET POLICY[:SIZE]).

Activities. --activities compiles so that functions may yield, and links libweft-activity.a
(weft/activity.h, docs/reference/activities.md). By clang 19 to 22: WEFT_CC, or CC, or the newest
that is there. Files compiled without may be linked to it, by any compiler: their code is atomic.
The same without this command, where it is installed:
  clang-22 $(pkg-config --cflags weft-activities-22) -c …
  … $(pkg-config --libs weft-activity)
For CMake: find_package(weft), weft_target_activities(TARGET).
--yields says where they yield: calls, the default, before and after each call and in loops; loops,
in loops and where functions that may yield call each other.
--activities-report does the same, and prints of each function that may yield how many bytes its
yielding and its plain copy are, and why there are two ('run' refuses it). A file compiled without
optimization tells the most: nothing has been inlined.
END
}

help_lookahead()
{
	cat <<'END'
weft lookahead --explain PROGRAM|OBJECT|ARCHIVE…

Prints, for each translation unit that was compiled with --policy (or --instrument) lookahead, the
checkpoints: functions at whose entry the stack is checked, why there, and how many bytes each
reserves for the calls that follow; then the sums. Linking by `weft cc --policy lookahead` analyses
all of a program's objects together; members of archives keep what was decided for each by itself.
END
}

help_doctor()
{
	cat <<'END'
weft doctor

Lists the machine, compilers, kernel features, limits, stack policies and tools, says what each
missing one is for and how to get it. Installs nothing. Ends with 0 if programs can be built and
run, else with 1.
END
}

help_policies()
{
	cat <<'END'
P[:SIZE] is a stack policy and a size: how coroutines store their frames.

For any code:
  fixed        memory is allocated with the stack, 64 KiB
  overcommit   the default: 256 KiB of address space, whose pages the kernel adds at the first touch
  commit       pages are opened one batch at a time, under one budget for the process (WEFT_BUDGET);
               a coroutine that exceeds it fails, and the process continues
  copy         frames are copied out of a shared region when a coroutine is suspended; it can then
               be cloned and resumed more than once

For code that was compiled for it (weft cc --policy or --instrument):
  segmented    chunks of memory, linked where a compare at the beginning of a function finds no room
  lookahead    the same with fewer compares: an analysis of the call graph chooses where to check
  heap         a block of memory for each call
  mmu          a store in place of the compare: a page fault links the next chunk

SIZE is the bytes that are reserved for each stack ("commit:1M"), or those of the first chunk
("segmented:8K"): a number, with K, M or G if you like, up to 1G.

The first of these that names a policy decides:
  1. the attributes of the coroutine (weft_attr_t of weft/coro.h)
  2. WEFT_STACK=P[:SIZE] in the environment, when the program runs
  3. --policy P[:SIZE], when the program was linked
END
}

# The programs behind these commands know their options; without Python, the texts below must do.
help_test()
{
	! help_of_program tests/run.py || return 0
	cat <<'END'
weft test [--no-install] [--full | --rerun-failed | PATTERN]

Builds and runs the quick tests, all of them (--full), those that failed in the last run
(--rerun-failed), or those whose name contains PATTERN. One line per test, then "N passed, N
failed". Ends with 0 if nothing failed, with 2 if no test has that name.
END
}

help_lab()
{
	! help_of_program lab/run.py || return 0
	cat <<'END'
weft lab [--quick|--full] [--only A1,B5…] [--policy P…] [--targets] [--out DIR]
         [--peer NAME=DIR]

Builds the library and runs the experiments. DIR is made if it is not there; of --peer it is a
checkout of the library NAME. `weft lab --help` lists all options.
END
}

help_of_program()
{
	[[ -e $root/$1 ]] && have "$(system_python)" && "$(system_python)" "$root/$1" --help
}

weft_help()
{
	(($# < 2)) || die 2 "one command at a time: weft help [COMMAND]"
	case ${1-} in
	'') help_overview ;;
	c++) help_cc ;;
	test | lab)
		[[ $root ]] || die 69 "'weft $1' runs in the source tree: use ./weft there"
		"help_$1"
		;;
	run | cc | simulate | lookahead | doctor | policies) "help_$1" ;;
	*) die 2 "no help for '$1': see 'weft help'" ;;
	esac
}
