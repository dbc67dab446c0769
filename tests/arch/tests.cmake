# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Other architectures, in an emulator (qemu-user) and by Debian's cross compilers: the examples, the conformance suite, random programs
# of effects and of copied stacks against models, C++ and its exceptions, ends of coroutines, tasks, and I/O by epoll. A feature that a
# processor lacks is refused by name. The emulator has no io_uring, and orders memory no more weakly than the machine it runs on.
weft_part(arch all SLOW)

# arch_program(NAME LIBRARY FILE …): of a file of another part.
function(arch_program name library file)
	weft_program(${name} ${library} SOURCES ${weft_tests}/${file} ${ARGN})
endfunction()

set(arch_suite effects.c frames.c many.c registers.c signals.c suite.c)
list(TRANSFORM arch_suite PREPEND ${weft_tests}/conformance/)

# arch_core(LIBRARY): the conformance suite; effects against a model; exceptions through coroutines.
function(arch_core library)
	weft_program(suite ${library} SOURCES ${arch_suite})
	weft_test(suite.${library} COMMAND @suite.${library} ON overcommit commit copy SECONDS 120)
	file(GLOB sources CONFIGURE_DEPENDS ${weft_tests}/effects/*.c)
	list(REMOVE_ITEM sources ${weft_tests}/effects/hot.c)
	weft_program(effects_random ${library} SOURCES ${sources} FLAGS -Wall -Wextra)
	weft_test(effects.random.${library} COMMAND @effects_random.${library} --programs 150 SECONDS 120)
	arch_program(cxx_exceptions ${library} cxx/exceptions.cc FLAGS -std=c++20)
	weft_test(cxx.exceptions.${library} COMMAND @cxx_exceptions.${library})
endfunction()

# arch_rest(LIBRARY): tests that do not depend on how code is compiled.
function(arch_rest library)
	foreach(name effects cancel coroutine generator handlers await)
		arch_program(cxx_${name} ${library} cxx/${name}.cc FLAGS -std=c++20 -Wall -Wextra)
		weft_test(cxx.${name}.${library} COMMAND @cxx_${name}.${library})
	endforeach()
	foreach(name random points)
		arch_program(copy_${name} ${library} copy/${name}.c)
	endforeach()
	weft_test(copy.random.${library} COMMAND @copy_random.${library} 1 2000 SECONDS 120)
	weft_test(copy.random.threads.${library} COMMAND @copy_random.${library} 2 1000 4 SECONDS 120)
	# Frames are larger than on x86-64.
	weft_test(copy.points.${library} COMMAND @copy_points.${library} ENV WEFT_STACK=copy:8M SECONDS 120)
	weft_object(frames ${library} ${weft_tests}/ends/frames.c -O2 -fexceptions)
	foreach(name order random)
		arch_program(ends_${name} ${library} ends/${name}.cc OBJECTS ${frames} FLAGS -DC_FRAMES_UNWIND)
	endforeach()
	weft_test(ends.order.${library} COMMAND @ends_order.${library})
	weft_test(ends.random.${library} COMMAND @ends_random.${library} rounds=200 seed=1)
	foreach(name tasks sync random select)
		arch_program(sched_${name} ${library} sched/${name}.c)
		weft_test(sched.${name}.${library} COMMAND @sched_${name}.${library} 4 0 60 SECONDS 120)
	endforeach()
	# A policy that the processor does not have.
	arch_program(says ${library} arch/says.c)
	weft_test(refuses.${library} COMMAND @says.${library} ENV WEFT_STACK=segmented
		SAYS "WEFT_STACK=segmented is ignored: linked stacks exist on x86-64 only")
	# A switch that is wrong.
	foreach(canary r12_to_r15_survive vector_registers_survive frame_pointer_is_lost value_is_lost)
		weft_program(${canary} ${library} SOURCES ${arch_suite} FLAGS -DWEFT_CANARY_${canary})
		set(says "does not hold")
		if(canary MATCHES "frame_pointer|r12")
			set(says "") # they crash, maybe at once
		endif()
		weft_test(canary.${canary}.${library} COMMAND timeout 20 @${canary}.${library} FAILS SAYS "${says}")
	endforeach()
endfunction()

# arch_examples(LIBRARY): not processes, because the emulator knows no pidfd of children; threads, which needs a system stack (x86-64 only).
function(arch_examples library)
	file(GLOB sources CONFIGURE_DEPENDS ${weft_example_sources})
	foreach(source IN LISTS sources)
		get_filename_component(name ${source} NAME_WE)
		file(STRINGS ${source} http REGEX "^#include <weft/http")
		if(http OR name MATCHES "^(processes|threads)$")
			continue()
		endif()
		set(standard -std=gnu11)
		if(source MATCHES "[.]cpp$")
			set(standard -std=c++20)
		endif()
		weft_program(${name} ${library} SOURCES ${source} FLAGS ${standard} -Wall -Wextra -Werror)
		weft_test(example.${name}.${library} COMMAND ${weft_tests}/sanitize/watch.py peace ${source} @${name}.${library})
	endforeach()
endfunction()

foreach(processor aarch64 riscv64)
	find_program(WEFT_QEMU_${processor} qemu-${processor})
	find_program(WEFT_GCC_${processor} ${processor}-linux-gnu-gcc)
	find_program(WEFT_GXX_${processor} ${processor}-linux-gnu-g++)
	if(NOT WEFT_QEMU_${processor} OR NOT WEFT_GCC_${processor} OR NOT WEFT_GXX_${processor})
		weft_skip(${processor}
			"apt-get install --no-install-recommends qemu-user gcc-${processor}-linux-gnu g++-${processor}-linux-gnu")
		continue()
	endif()
	# Landing pads and signed return addresses; without, there are fewer instructions. For RISC-V gcc has no atomic instructions for one
	# byte, and writes no tables for unwinders unless it is asked.
	set(more -mbranch-protection=standard)
	if(processor STREQUAL riscv64)
		set(more -latomic -fasynchronous-unwind-tables)
	endif()
	weft_library(${processor} ${processor} -O2 ${more})
	arch_core(${processor})
	arch_rest(${processor})
	if(processor STREQUAL aarch64 OR weft_exhaustive)
		arch_examples(${processor})
	endif()
	if(weft_exhaustive)
		weft_library(${processor}-O0 ${processor} -O0 ${more})
		arch_core(${processor}-O0)
	endif()
endforeach()
if(WEFT_CLANG AND WEFT_QEMU_aarch64 AND WEFT_GCC_aarch64 AND WEFT_GXX_aarch64)
	weft_library(aarch64-clang aarch64-clang -O2)
	arch_core(aarch64-clang)
endif()
