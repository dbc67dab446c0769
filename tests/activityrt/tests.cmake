# SPDX-License-Identifier: MIT OR Apache-2.0
#
# The run time of activities: each program on each kind of timer, with frames that are copied and with stacks of their own.
weft_part(activityrt activity)
if(NOT weft_activities_versions)
	weft_skip(programs "${weft_without_activities}")
	return()
endif()

foreach(name waits calls parks groups refused dump deadlock outside observed profile forks taskdump)
	weft_test(${name} COMMAND ${weft_tests}/activityrt/run ${name} SECONDS 300)
endforeach()
weft_test(parks.tasks COMMAND ${weft_tests}/activityrt/run parks task 2 SECONDS 300)
weft_test(calls.task COMMAND ${weft_tests}/activityrt/run calls task 1 SECONDS 300)
weft_test(calls.tasks COMMAND ${weft_tests}/activityrt/run calls task 2 SECONDS 300)
# With the kernel's fork, which nobody is told of, other activities go on in the child.
weft_test(canary.forks COMMAND ${weft_tests}/activityrt/run forks raw FAILS SAYS "not ok - forks, copied, timer off" SECONDS 100)
# A group that no task runs is in no dump of tasks.
weft_test(canary.taskdump COMMAND ${weft_tests}/activityrt/run taskdump outside FAILS SAYS "not ok - taskdump, copied, timer off" SECONDS 100)
# A program that fails is seen.
weft_test(canary.calls COMMAND ${weft_tests}/activityrt/run dump fail FAILS SAYS "not ok - dump, copied, timer off")

# gdb's view of parked activities and coroutines.
find_program(WEFT_GDB gdb)
if(WEFT_GDB)
	weft_test(gdb COMMAND ${weft_tests}/activityrt/gdb.py SECONDS 120)
	weft_test(canary.gdb COMMAND ${weft_tests}/activityrt/gdb.py "10 0 20 30" FAILS SAYS "not ok - -O0: locals of parked calls" SECONDS 120)
else()
	weft_skip(gdb "not installed: apt-get install --no-install-recommends gdb")
endif()

# Memcheck finds nothing in right programs, and finds the mistake in a wrong program.
if(WEFT_VALGRIND)
	weft_test(memcheck COMMAND ${weft_tests}/activityrt/memcheck SECONDS 200)
	weft_test(canary.memcheck COMMAND ${weft_tests}/activityrt/memcheck -DREADS_FREED FAILS SAYS "Invalid read of size.*reads_freed" SECONDS 200)
else()
	weft_skip(memcheck "valgrind is not installed: apt-get install --no-install-recommends valgrind")
endif()
