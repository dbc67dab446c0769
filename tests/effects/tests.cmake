# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Random programs of handlers of every kind against a model, with and without the cache of handlers, by both compilers,
# and with each rule of include/weft/detail/handler_cache.h broken in turn. Declarations: their text, their names, the messages
# about mistakes in them. WEFT_SEED=N repeats a run, WEFT_EFFECTS=N asks for more operations per clause kind than 2 000
# 000, in each of two tests.
weft_part(effects effect SLOW)

set(judge ${weft_tests}/effects/judge.py)
file(GLOB sources CONFIGURE_DEPENDS ${weft_tests}/effects/*.c)
list(REMOVE_ITEM sources ${weft_tests}/effects/hot.c)
set(warn -Wall -Wextra)
weft_library(gcc-no-memo gcc -O2 -DWEFT__NO_MEMO)
foreach(library ${weft_compilers} gcc-no-memo gcc-debug)
	weft_program(random ${library} SOURCES ${sources} FLAGS ${warn})
endforeach()

# Each kind of clause so often. A day runs half of these programs.
set(operations 2000000)
if(weft_exhaustive)
	set(operations 5000000)
endif()
weft_turn(first_programs 0 1000000000)
foreach(first IN LISTS first_programs)
	weft_test(random.from-${first} COMMAND @random.gcc --until ${operations} --from ${first} SECONDS 1000)
endforeach()
weft_test(random.three-threads COMMAND @random.gcc --programs 500 --threads 3 --profile 1 SECONDS 120)
weft_test(random.debug COMMAND @random.gcc-debug --programs 300 SECONDS 120)
if(WEFT_CLANG)
	weft_test(random.clang COMMAND @random.clang --programs 1000 SECONDS 120)
endif()
# Under sanitizers there are no copied stacks, so no multi clauses.
foreach(kind address,undefined thread)
	set(library gcc-asan)
	if(kind STREQUAL thread)
		set(library gcc-tsan)
	endif()
	weft_sanitizer_works(works gcc ${kind})
	if(works)
		weft_program(random ${library} SOURCES ${sources} FLAGS ${warn})
		weft_test(random.${library} COMMAND @random.${library} --programs 30 --threads 3 SECONDS 200)
	else()
		weft_skip(random.${library} "gcc has no such run time here: apt-get install --no-install-recommends libtsan2 libasan8")
	endif()
endforeach()
weft_test(remembering COMMAND ${judge} same @random.gcc @random.gcc-no-memo --programs 2000 SECONDS 200)
weft_test(remembering.three-threads COMMAND ${judge} same @random.gcc @random.gcc-no-memo --programs 300 --threads 3 SECONDS 200)

foreach(compiler IN LISTS weft_compilers)
	set(c ${weft_${compiler}} -std=gnu11)
	set(cxx ${weft_${compiler}_cxx} -x c++ -std=c++17)
	weft_test(inlined-clause.${compiler} COMMAND ${judge} looks ${c})
	# For clang there is a pragma more, so that the user's own warnings stay. In C++ each argument is moved.
	set(most 3088 4144)
	if(compiler STREQUAL clang)
		set(most 3168 4224)
	endif()
	list(GET most 0 most_c)
	list(GET most 1 most_cxx)
	weft_test(text.c.${compiler} COMMAND ${judge} text ${most_c} ${c})
	weft_test(text.cxx.${compiler} COMMAND ${judge} text ${most_cxx} ${cxx})
	weft_test(canary.text.${compiler} COMMAND ${judge} text 1000 ${c} FAILS SAYS "bytes, more than 1000")

	# Names that are taken in C, and C++ beside C.
	foreach(level O0 O2)
		weft_program(beside.${level} ${compiler} SOURCES named/beside.c named/beside.cc FLAGS ${warn} -${level})
		weft_test(beside.${level}.${compiler} COMMAND @beside.${level}.${compiler})
	endforeach()

	# Mistakes in declarations and tables are called what they are.
	set(name_c gcc)
	set(name_cxx g++)
	if(compiler STREQUAL clang)
		set(name_c clang)
		set(name_cxx clang++)
	endif()
	file(GLOB mistakes CONFIGURE_DEPENDS ${weft_tests}/effects/wrong/*.c*)
	foreach(file IN LISTS mistakes)
		get_filename_component(mistake ${file} NAME)
		if(mistake MATCHES "[.]c$")
			weft_test(wrong.${mistake}.c.${compiler} COMMAND ${weft_tests}/wrong.py ${name_c} ${file} ${c})
		endif()
		weft_test(wrong.${mistake}.cxx.${compiler} COMMAND ${weft_tests}/wrong.py ${name_cxx} ${file} ${cxx})
	endforeach()
	if(compiler STREQUAL clang)
		# C23: a call of a function that is not declared is an error by itself.
		foreach(mistake abort general multi requested tail handle in_set)
			weft_test(wrong.unknown_${mistake}.c23.clang COMMAND ${weft_tests}/wrong.py clang ${weft_tests}/effects/wrong/unknown_${mistake}.c ${c} -std=c2x)
		endforeach()
	endif()
	weft_test(canary.wrong.${compiler} COMMAND ${weft_tests}/wrong.py ${name_c} ${weft_tests}/effects/named/beside.c ${c} FAILS SAYS "it compiles")
endforeach()

# A library with one of these bugs is noticed.
foreach(canary
	adopting_forgets_nothing another_set_forgets_nothing resuming_in_a_clause_forgets_nothing past_a_clause_is_remembered
	clause_sees_its_own_handler who_passed_before_is_forgotten reset_keeps_what_was_found used_storage_is_as_new
	resumed_coroutine_stays_in_its_group thens_of_outer_runs_too forwards_to_a_moved_clause forwards_by_the_label_of_now
	no_clause_is_moved generalize_asks_the_resumer abort_clause_only_suspends made_further_inside_is_nobodys
	exception_becomes_an_answer exception_arrives_further_out labels_are_not_looked_at)
	weft_program(${canary} gcc SOURCES ${sources} FLAGS ${warn} CANARY ${canary})
	set(seen FAILS SAYS "does not hold")
	if(canary STREQUAL "forwards_by_the_label_of_now")
		set(seen ENDS 134 SAYS "is not of the family that label")
	endif()
	weft_test(canary.${canary} COMMAND timeout 100 @${canary}.gcc --seed 1 --programs 3000 --profile 1 ${seen} SECONDS 120)
endforeach()
