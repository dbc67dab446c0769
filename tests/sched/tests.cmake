# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Tasks, and what they wait for: by 1, 2 and 8 workers, and simulated under many seeds; random programs. The simulator finds the
# mistakes of programs that have one. tests/schedfull has the same on every policy, with sanitizers, small queues, other compilers.
weft_part(sched sched QUICK)

foreach(program tasks sync)
	weft_program(${program} gcc SOURCES ${program}.c FLAGS -Wall -Wextra)
	foreach(workers 1 2 8)
		weft_test(${program}.${workers} COMMAND @${program}.gcc ${workers})
	endforeach()
	weft_test(${program}.simulated COMMAND @${program}.gcc simulate 100)
endforeach()

# Linked with the static library, whose constructors are linked behind the program's.
weft_program(before_main gcc SOURCES before_main.c FLAGS -Wall -Wextra)
weft_program(before_main_cpp gcc SOURCES before_main.cc FLAGS -std=c++17 -Wall -Wextra)
weft_test(before_main COMMAND @before_main.gcc)
weft_test(before_main.cpp COMMAND @before_main_cpp.gcc)

weft_program(alone gcc SOURCES alone.c FLAGS -Wall -Wextra)
weft_test(alone COMMAND @alone.gcc 30 SECONDS 60)

# 0 workers: simulated.
weft_program(random gcc SOURCES random.c FLAGS -Wall -Wextra)
weft_program(owners gcc SOURCES owners.c FLAGS -Wall -Wextra)
foreach(workers 1 8)
	weft_test(owners.${workers} COMMAND @owners.gcc ${workers})
endforeach()
weft_program(cleanups_are_cut gcc SOURCES tasks.c CANARY cleanups_are_cut)
weft_test(canary.cleanups_are_cut COMMAND @cleanups_are_cut.gcc 2 deletions_clean_up_to_the_end FAILS SAYS "not ok - ")
weft_program(coroutines_own_locks gcc SOURCES owners.c CANARY coroutines_own_locks)
weft_test(canary.coroutines_own_locks COMMAND @coroutines_own_locks.gcc 2 locks_belong_to_tasks FAILS SAYS "POSIX says")
foreach(workers 0 1 2 8)
	weft_test(random.${workers} COMMAND @random.gcc ${workers} 0 1000 SECONDS 120)
endforeach()

# Values that tasks inherit, compared with a model.
weft_program(values gcc SOURCES values.c FLAGS -Wall -Wextra)
foreach(workers 0 1 8)
	weft_test(values.${workers} COMMAND @values.gcc ${workers} 0 1000 SECONDS 60)
endforeach()

# Waits that are cancelled or time out, compared with a model (simulated and with one worker), and in a crowd of tasks.
weft_program(early gcc SOURCES early.c FLAGS -Wall -Wextra)
foreach(workers 0 1 2 8)
	weft_test(early.${workers} COMMAND @early.gcc ${workers} 0 500 SECONDS 60)
endforeach()
foreach(canary barrier_counts_ended_waits ended_writers_keep_readers_out)
	weft_program(${canary} gcc SOURCES early.c CANARY ${canary})
	weft_test(canary.${canary} COMMAND @${canary}.gcc 0 0 500 FAILS SAYS "not ok - .*early.c:[0-9]+: ")
endforeach()
weft_test(canary.barrier_counts_ended_waits.8 COMMAND @barrier_counts_ended_waits.gcc 8 0 500 FAILS SAYS "PARTIES . c->opened")

# Wrong uses: an error code, or one message and the end of the process. misuse_line(NAME MESSAGE [NAME-OF-THE-MODE…])
weft_program(misuse gcc SOURCES misuse.c FLAGS -Wall -Wextra)
foreach(workers 1 2 8)
	weft_test(misuse.${workers} COMMAND @misuse.gcc ${workers})
endforeach()
weft_test(misuse.simulated COMMAND @misuse.gcc simulate 100)
weft_test(misuse.outside COMMAND @misuse.gcc outside ENDS 0 SAYS "^weft: a task was started outside of weft_rt_run, .*: start it in the function that weft_rt_run runs, or by weft_rt_spawn$")
weft_test(misuse.bare COMMAND @misuse.gcc bare)
function(misuse_line says)
	foreach(mode IN LISTS ARGN)
		weft_test(misuse.${mode} COMMAND @misuse.gcc line ${mode} ENDS 134 SAYS "^weft: ${says}$")
	endforeach()
endfunction()
set(in_task ". in the task of coroutine \"wrong\" \\(#[0-9]+\\)")
misuse_line("weft_task_fail was called outside of a task: call it in a function that weft_rt_run runs, or in a task that it starts" fail_outside)
misuse_line("weft_cancelled was performed outside of a task, where nothing handles it: perform it in a task" cancelled_outside)
misuse_line("weft_shield_end was called without a weft_shield_begin: call each as often as the other${in_task}" shield_end)
misuse_line("weft_join was called by the task itself, which would wait for its own end: join it in another task${in_task}" join_itself)
misuse_line("pthread_exit was called, or a thread was cancelled, in a task: .*use weft_task_fail${in_task}" thread_exit thread_exit_in_helper)
misuse_line("weft_join was called for a task that is being joined: a handle has one joiner. wait for an event in the others${in_task}" join_by_two)
misuse_line("weft_[a-z_]+ was called with NULL: [a-z ']+${in_task}" join_null cancel_null scope_cancel_null scope_open_null)
misuse_line("weft_scope_open was called for a scope that is open: close it by weft_scope_wait${in_task}" scope_open_twice)
misuse_line("weft_bind was called in a block that ends before a scope that was opened in it: close the scope first, by weft_scope_wait${in_task}" binding_too_short)
misuse_line("weft_scope_open was called in a block of weft_bind that its coroutine was suspended in, .*: open the scope outside of the block${in_task}" binding_moved)
misuse_line("the task of coroutine \"wrong\" \\(#[0-9]+\\) has ended with a scope open: weft_scope_wait closes it, and WEFT_SCOPE does when a block is left"
	    ends_with_a_scope fails_with_a_scope)
foreach(mode wait yield return block step)
	weft_test(misuse.fork_and_${mode} COMMAND @misuse.gcc line fork_and_${mode} ENDS 0
		  SAYS "^weft: tasks went on in a child of fork, which has no workers: call exec or _exit in the child, or fork before weft_rt_run$")
endforeach()
weft_program(misuse_cpp gcc SOURCES misuse_cpp.cc FLAGS -std=c++17 -Wall -Wextra -Werror)
weft_test(misuse.cpp COMMAND @misuse_cpp.gcc)
weft_test(misuse.unlock COMMAND @misuse_cpp.gcc unlock ENDS 134
	  SAYS "weft: weft::mutex::unlock was called by a task that has not locked it: let the task unlock it that locked it[^\n]*$")
weft_test(misuse.fork_and_exit COMMAND @misuse.gcc line fork_and_exit ENDS 0 SAYS "^$")

set(warned)
foreach(number RANGE 10 25)
	string(APPEND warned "misuse_null.c:${number}:.*nonnull.*")
endforeach()
foreach(compiler IN LISTS weft_compilers)
	weft_test(misuse.null.${compiler} COMMAND ${weft_${compiler}} -std=gnu11 -Werror=nonnull -fsyntax-only -I${weft_root}/include
		${weft_tests}/sched/misuse_null.c ENDS 1 SAYS "${warned}")
endforeach()

# Refuses each request for memory, a thread or a descriptor in turn.
set(refusing -ldl)
foreach(name malloc calloc realloc aligned_alloc free mmap mprotect open_memstream timerfd_create)
	list(APPEND refusing -Wl,--wrap=${name})
endforeach()
weft_program(refuse gcc SOURCES refuse.c FLAGS -Wall -Wextra LINK ${refusing})
weft_test(refuse COMMAND @refuse.gcc all SECONDS 120)
weft_test(refuse.workers COMMAND @refuse.gcc workers)
weft_program(workers_without_signal_stack gcc SOURCES refuse.c CANARY workers_without_signal_stack LINK ${refusing})
weft_test(canary.workers_without_signal_stack COMMAND @workers_without_signal_stack.gcc workers ENDS 139)

# Histories of channels: by workers, by workers and threads, simulated (0). schedfull has a million of each.
weft_program(linear gcc SOURCES linear.c FLAGS -Wall -Wextra)
foreach(workers 0 2 4)
	weft_test(linear.${workers} COMMAND @linear.gcc ${workers} 0 10000)
endforeach()
weft_test(linear.threads COMMAND @linear.gcc 2 0 10000 2)
foreach(canary channel_item_overtakes channel_close_loses_an_item)
	weft_program(${canary} gcc SOURCES linear.c CANARY ${canary})
	weft_test(canary.${canary} COMMAND @${canary}.gcc 0 0 10000 FAILS SAYS "# seed [0-9]+, capacity .*not ok - ")
	weft_test(canary.${canary}.2 COMMAND @${canary}.gcc 2 0 10000 FAILS SAYS "# seed [0-9]+, capacity .*not ok - ")
endforeach()

# Operations that need not wait.
weft_program(fair gcc SOURCES fair.c FLAGS -Wall -Wextra)
foreach(workers 1 2)
	weft_test(fair.${workers} COMMAND @fair.gcc ${workers})
endforeach()
weft_test(fair.mistakes COMMAND @fair.gcc mistakes)
weft_program(mutex_never_hands_over gcc SOURCES fair.c CANARY mutex_never_hands_over)
weft_test(canary.mutex_never_hands_over COMMAND @mutex_never_hands_over.gcc 1 the_first_waiter_loses_four_times FAILS SAYS "passed_over <= 4")

# Objects that are freed by their last user. tests/orders has the canaries that are found only by chance here.
weft_program(freed gcc SOURCES freed.c FLAGS -Wall -Wextra LINK -Wl,--wrap=calloc,--wrap=free)
foreach(workers 1 2 8)
	weft_test(freed.${workers} COMMAND @freed.gcc ${workers})
endforeach()
weft_program(channel_forgets_who_leaves gcc SOURCES freed.c CANARY channel_forgets_who_leaves LINK -Wl,--wrap=calloc,--wrap=free)
weft_test(canary.channel_forgets_who_leaves COMMAND @channel_forgets_who_leaves.gcc 8 FAILS)

# An event loop of the program.
weft_program(embed gcc SOURCES embed.c FLAGS -Wall -Wextra)
weft_test(embed COMMAND @embed.gcc)
weft_program(quota gcc SOURCES quota.c FLAGS -Wall -Wextra)
weft_test(quota COMMAND @quota.gcc)
weft_program(steps gcc SOURCES steps.c FLAGS -Wall -Wextra)
set(back_ends epoll)
if(EXISTS /usr/include/liburing.h)
	list(APPEND back_ends io_uring)
endif()
foreach(back_end IN LISTS back_ends)
	weft_test(steps.${back_end} COMMAND @steps.gcc 0 300 ENV WEFT_IO=${back_end})
endforeach()
weft_program(steps_forget_their_own gcc SOURCES steps.c CANARY steps_forget_their_own)
weft_test(canary.steps_forget_their_own COMMAND @steps_forget_their_own.gcc 9 20 FAILS SAYS "not ok - .*(more .. w->ended|count == 1)")

# Programs for libseff's scheduler.
set(scheff_flags -Wall -Wextra -Werror -I${weft_root}/include/compat)
weft_program(scheff gcc SOURCES scheff.c FLAGS ${scheff_flags})
foreach(workers 1 2 8)
	weft_test(scheff.${workers} COMMAND @scheff.gcc ${workers})
endforeach()
weft_test(scheff.outside COMMAND @scheff.gcc 1 outside ENDS 134 SAYS "weft: scheff_fork: was called outside of a task")
weft_test(scheff.actor_outside COMMAND @scheff.gcc 1 actor ENDS 134 SAYS "^weft: fork_actor: was called outside of a task")

# Messages that no other test makes.
weft_program(messages gcc SOURCES messages.c FLAGS ${scheff_flags})
weft_test(messages COMMAND @messages.gcc)

# Messages of the runtime: deadlocks, long turns, dumps.
weft_program(watch gcc SOURCES watch.c FLAGS -g -Wall -Wextra)
find_program(WEFT_ADDR2LINE_PROGRAM addr2line)
set(deadlock "weft: deadlock: every task waits, and no thread is left to wake one. All are cancelled. The tasks:")
weft_test(watch.runs_first COMMAND @watch.gcc runs_first)
foreach(workers 1 2 8)
	weft_test(watch.deadlock.${workers} COMMAND @watch.gcc deadlock ${workers} SAYS "${deadlock}" ENDS 0)
	foreach(program lost_task thread_sets tasks_set looks_once dumped counting walks_in_depth sleeps_when_idle)
		weft_test(watch.${program}.${workers} COMMAND @watch.gcc ${program} ${workers})
	endforeach()
	weft_test(watch.busy.${workers} COMMAND @watch.gcc dumps_while_busy ${workers} ENDS 0 SAYS "task #[0-9]+ \"busy\": runs, or is about to")
	weft_test(watch.stuck.${workers} COMMAND @watch.gcc stuck ${workers} ENDS 0
		  SAYS "^weft: the task of coroutine \"greedy\" \\(#[0-9]+\\), made at [^,]+ has run for [0-9]+ ms on worker [0-9] without a wait")
	weft_test(watch.again.${workers} COMMAND @watch.gcc again ${workers} ENDS 0 SAYS "weft: deadlock again, of tasks that were cancelled")
endforeach()
if(WEFT_ADDR2LINE_PROGRAM)
	weft_test(watch.places COMMAND @watch.gcc deadlock ENV WEFT_ADDR2LINE=${WEFT_ADDR2LINE_PROGRAM} ENDS 0
		  SAYS "waits for mutex 0x[0-9a-f]+, [0-9.]+ s, in takes_a_then_b at [^,]*watch.c:[0-9]+, made in locks_in_two_orders at ")
endif()
weft_test(watch.ignored COMMAND @watch.gcc dumps_while_busy ENV WEFT_DUMP=yes WEFT_STUCK=soon
	  SAYS "WEFT_STUCK=soon is ignored: [^\n]*\nweft: WEFT_DUMP=yes is ignored: ")
weft_test(watch.by_environment COMMAND @watch.gcc dumps_while_busy ENV WEFT_DUMP=1 WEFT_STUCK=100 ENDS 0 SAYS "has run for [0-9]+ ms on worker")
if(EXISTS /usr/include/sys/sdt.h OR EXISTS /usr/include/${CMAKE_LIBRARY_ARCHITECTURE}/sys/sdt.h)
	foreach(probe task_spawn task_run task_wait task_end worker_park worker_unpark)
		weft_test(probe.${probe} COMMAND readelf --notes @watch.gcc ENDS 0 SAYS "Name: ${probe}")
	endforeach()
endif()

# C++.
weft_program(cpp gcc SOURCES cpp.cc FLAGS -std=c++17 -Wall -Wextra -Werror)
foreach(arguments "1" "2" "8" "simulate 50")
	string(REPLACE " " ";" words ${arguments})
	list(GET words 0 name)
	weft_test(cpp.${name} COMMAND @cpp.gcc ${words})
endforeach()

weft_program(select gcc SOURCES select.c FLAGS -Wall -Wextra)
foreach(workers 0 1 2)
	weft_test(select.${workers} COMMAND @select.gcc ${workers} 0 100)
endforeach()

# Join sets, broadcasts, watches, a once that fails.
weft_program(sets gcc SOURCES sets.c FLAGS -Wall -Wextra)
foreach(workers 0 1 2)
	weft_test(sets.${workers} COMMAND @sets.gcc ${workers} 0 200)
endforeach()

# weft/sync.hpp, beside the standard library.
weft_program(objects gcc SOURCES objects.cc FLAGS -std=c++17 -Wall -Wextra -Werror)
weft_test(objects.2 COMMAND @objects.gcc 2)
weft_test(objects.simulate COMMAND @objects.gcc simulate 20)

# The compiler reports each wrong use by one error that names the mistake.
file(GLOB mistakes CONFIGURE_DEPENDS ${weft_tests}/sched/wrong/*.cc)
foreach(compiler IN LISTS weft_compilers)
	string(REGEX REPLACE "^gcc$" "g++" driver ${compiler})
	string(REGEX REPLACE "^clang$" "clang++" driver ${driver})
	foreach(file IN LISTS mistakes)
		get_filename_component(mistake ${file} NAME_WE)
		weft_test(wrong.${mistake}.${compiler} COMMAND ${weft_tests}/wrong.py ${driver} ${file} ${weft_${compiler}_cxx} -std=c++17 -Wall -Wextra)
	endforeach()
endforeach()
weft_test(canary.wrong COMMAND ${weft_tests}/wrong.py g++ ${weft_tests}/sched/misuse_cpp.cc ${weft_gcc_cxx} -std=c++17 FAILS SAYS "it compiles")

# Tasks do not run on copied stacks. A coroutine on a copied stack inside a task cannot wait. One worker, because with
# two the spawned task may end before the scope does, and then the scope has nothing to wait for.
weft_test(sync COMMAND @sync.gcc 2 ON copy)
weft_test(copied COMMAND @tasks.gcc 1 handlers_in_between ON copy ENDS 134 SAYS "^weft: the task of coroutine #[0-9]+ waits for tasks of a scope in a coroutine")

weft_program(bugs gcc SOURCES bugs.c FLAGS -Wall -Wextra)
foreach(bug lost_update lost_wakeup lock_order forgotten_join aba livelock lost_task)
	weft_test(finds.${bug} COMMAND @bugs.gcc ${bug} 1000)
	weft_test(right.${bug} COMMAND @bugs.gcc ${bug} 200 right)
endforeach()

# A catalogue of mistakes, which the simulator finds from several first seeds; limits of a simulation, its
# time, its jobs.
weft_program(catalogue gcc SOURCES catalogue.c FLAGS -Wall -Wextra)
weft_test(catalogue COMMAND @catalogue.gcc find 500 5 SECONDS 120)
weft_test(catalogue.right COMMAND @catalogue.gcc right 200)
weft_test(catalogue.plain_order COMMAND @catalogue.gcc find 1 1 plain_order)
weft_program(limits gcc SOURCES limits.c FLAGS -Wall -Wextra)
foreach(test time_and_turns turns_take_time late jobs unrepeatable large_errors)
	weft_test(limits.${test} COMMAND @limits.gcc ${test} SECONDS 60)
endforeach()
weft_test(says.livelock COMMAND @limits.gcc time_and_turns run ENV WEFT_SIMULATE=0 ENDS 1
	  SAYS "weft: livelock, more than 3600 seconds of virtual time, .* of the last 64 turns 64 are of task #2. the tasks:")
weft_test(says.debugger COMMAND @limits.gcc late run ENV WEFT_SIMULATE=0+500 ENDS 1
	  SAYS "WEFT_SIMULATE=order:cost=[0-9]+,\nweft: in a debugger: WEFT_SIMULATE=[0-9]+ gdb --args .*limits.gcc'? late run")

# Valid and invalid values of WEFT_SIMULATE. before_main simulates only when the environment asks for it.
set(number 0)
foreach(asked IN ITEMS 5+ 5+0 +5 5x 99999999999999999999 order:1 order:3=99999999999 order:3=1,, order:99999999999=1 order:seed=x order:cost=x order:cost=1,seed=2)
	math(EXPR number "${number} + 1")
	weft_test(says.ignored.${number} COMMAND @before_main.gcc ENV WEFT_SIMULATE=${asked} ENDS 0 SAYS "weft: WEFT_SIMULATE=.* is ignored: say SEED, ")
endforeach()
foreach(asked IN ITEMS 5 5+3 order: order:3=1 order:3=1, order:seed=2,3=1 order:cost=100 order:seed=2,cost=100,3=1)
	math(EXPR number "${number} + 1")
	weft_test(says.simulated.${number} COMMAND @before_main.gcc ENV WEFT_SIMULATE=${asked} ENDS 0
		  SAYS "^weft: a task was started outside of weft_rt_run, [a-z0-9_,: ]+$")
endforeach()

weft_test(says.lost_task COMMAND @bugs.gcc lost_task 1000 ENDS 0 SAYS "weft: tasks are lost, which the first task has left behind, simulated with seed")
weft_test(says.lock_order COMMAND @bugs.gcc lock_order 1000 ENDS 0 SAYS "weft: deadlock, simulated with seed")

# Bugs of the run time: canary(NAME PROGRAM MESSAGE ARGUMENT…)
function(sched_canary name program says)
	string(REPLACE random_finds_ mutex_has_ bug ${name})
	weft_program(${name} gcc SOURCES ${program}.c CANARY ${bug})
	weft_test(canary.${name} COMMAND @${name}.gcc ${ARGN} FAILS SAYS ${says})
endfunction()
weft_program(channel_forgets_its_items gcc SOURCES cpp.cc FLAGS -std=c++17 CANARY channel_forgets_its_items)
weft_test(canary.channel_forgets_its_items COMMAND @channel_forgets_its_items.gcc 1 FAILS SAYS "counted::living == 0")
weft_program(promise_is_forgotten gcc SOURCES cpp.cc FLAGS -std=c++17 CANARY promise_is_forgotten)
weft_test(canary.promise_is_forgotten COMMAND @promise_is_forgotten.gcc 1 FAILS SAYS "broken.ready")
sched_canary(joiners_wait_their_turn watch "most < 1000" walks_in_depth 1)
sched_canary(idle_workers_wake_up watch "not ok - .*fallen asleep" sleeps_when_idle 2)
sched_canary(threads_are_not_counted watch "not ok - " thread_sets)
sched_canary(descriptor_is_not_told embed "readable" threads_wake_it)
sched_canary(timers_are_early tasks "weft_now.. >= s->until" simulate 1 many_timers)
sched_canary(moved_timers_are_lost tasks "deadlock" simulate 1 timers_are_disarmed_where_they_moved)
sched_canary(mutex_has_two_owners sync "s->inside|weft_mutex_unlock" simulate 10 a_mutex_excludes)
sched_canary(random_finds_two_owners random "not ok - .*random.c:[0-9]+: " 0 0 1000)
sched_canary(crowds_wait_for_ever tasks "count, __ATOMIC_RELAXED" 1 yielding_lets_a_crowd_run)
sched_canary(full_rings_stop_timers tasks "passed <= 10000" 1 yielding_lets_timers_end)
sched_canary(scope_cancels_nobody tasks "cancelled" simulate 1 the_first_error_cancels_the_others)
sched_canary(channel_loses_items sync "t.count == 1000" simulate 10 channels)
sched_canary(simulator_has_no_choice bugs "aba: not found" aba 100)
weft_program(one_choice gcc SOURCES catalogue.c CANARY simulator_has_no_choice)
weft_test(canary.one_choice COMMAND @one_choice.gcc find 20 1 FAILS SAYS "check_then_act +.  21 ")

# Frames on the heap, whose blocks move between threads.
weft_linked(flow segmented gcc SOURCES flow.c FLAGS -O2)
weft_test(flow COMMAND @flow.segmented.gcc ON heap segmented)
weft_linked_object(flowing segmented gcc flow.c -O2)
weft_program(blocks_stay_where_they_are gcc OBJECTS ${flowing} CANARY blocks_stay_where_they_are)
weft_test(canary.blocks_stay_where_they_are COMMAND @blocks_stay_where_they_are.gcc ON heap FAILS SAYS "before < MOST")
