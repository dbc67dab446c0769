# SPDX-License-Identifier: MIT OR Apache-2.0
#
# The runtime's sources under a model checker: see checker.h. All orders of small programs; for programs with three
# threads and for workers, orders within bounds, and some random orders. tests/ordersfull tries more.
weft_part(orders sched QUICK)

set(orders_own queues.c objects.c runtime.c)
file(
	GLOB orders_sources
	CONFIGURE_DEPENDS
	${weft_root}/src/sched/*.c
	${weft_root}/src/sync/*.c)
list(FILTER orders_sources EXCLUDE REGEX "/worker[.]c$") # runtime.c includes it
list(TRANSFORM orders_own PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/orders/)
set(orders_flags
    -O1
    -fsanitize=thread # only the compiler's part: ThreadSanitizer's library is not linked
    -U__SANITIZE_THREAD__
    -Wno-tsan
    -DWEFT_TINY
    -fvisibility=hidden
    -fexceptions
    -include
    ${CMAKE_CURRENT_SOURCE_DIR}/orders/names.h)

# orders(NAME [CANARY])
function(orders name)
	set(objects)
	set(without sched_worker)
	foreach(source IN LISTS orders_sources orders_own)
		weft_canary_flag(more "${ARGN}" ${source})
		weft_object(object gcc ${source} ${orders_flags} ${more})
		list(APPEND objects ${object})
		if(NOT "${source}" IN_LIST orders_own)
			get_filename_component(folder ${source} DIRECTORY)
			get_filename_component(folder ${folder} NAME)
			get_filename_component(base ${source} NAME_WE)
			list(APPEND without ${folder}_${base})
		endif()
	endforeach()
	weft_program(${name} gcc SOURCES ../orders/checker.c FLAGS -O2 -Wall -Wextra OBJECTS ${objects} WITHOUT ${without} LINK -no-pie)
endfunction()

orders(orders)
foreach(which ring fresh home alone spin mutex cond rwlock sem event group barrier once future broadcast chan select freed rt_ drawn_)
	weft_test(${which} COMMAND @orders.gcc ${which} 1000 SECONDS 200)
endforeach()

# canary(NAME SCENARIO WHAT-IT-SAYS)
function(orders_canary name scenario says)
	orders(${name} ${name})
	weft_test(canary.${name} COMMAND @${name}.gcc ${scenario} 10000 FAILS SAYS ${says})
endfunction()
orders_canary(locks_order_nothing spin "accesses race")
orders_canary(ring_hides_its_tasks ring "accesses race")
orders_canary(fresh_has_no_version fresh_two "taken.i. == 1")
orders_canary(crowd_comes_in_between alone_spin "counter == 4|accesses race")
orders_canary(crowd_has_no_barrier alone_spin "counter == 4|accesses race")
orders_canary(home_is_interrupted home "counter == 3|accesses race")
orders_canary(home_sees_no_barrier home "counter == 3|accesses race")
orders_canary(mutex_has_two_owners mutex_of_three "not ok - mutex_of_three")
orders_canary(threads_wake_unordered event "race")
orders_canary(waker_has_no_fence rt_event "not ok - rt_event: !atomic_load..rt->shared.count")
orders_canary(worker_sleeps_without_a_look rt_event "not ok - rt_event: !atomic_load..rt->shared.count")
orders_canary(resting_workers_steal rt_rest "not ok - rt_rest: ")
orders_canary(cancelling_ends_any_wait rt_cancel "not ok - rt_cancel: |it was deleted")
orders_canary(semaphore_waits_too_late sem "not ok - sem: ")
orders_canary(event_waits_too_late group "not ok - group: ")
orders_canary(barrier_counts_ended_waits barrier_late "received == 3 . sent")
orders_canary(channel_waits_too_late chan "not ok - chan: ")
orders_canary(select_waits_too_late select "not ok - select: ")
orders_canary(select_keeps_a_permit select_sem "not ok - select_sem: ")
orders_canary(event_is_set_too_early freed_event "freed|race|given back")
orders_canary(mutex_is_free_too_early freed_mutex "freed|race|given back")
orders_canary(channel_forgets_who_leaves freed_chan_late "freed|race|given back")
weft_test(canary.channel_forgets_who_leaves.select COMMAND @channel_forgets_who_leaves.gcc freed_select 10000 FAILS SAYS "given back")
