# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Programs linked with the static library and some of its policies: the named policies work, the rest are refused in a line, and no part
# is linked incompletely or without need. The library's zeroed data stays below 64 KiB. tests/lanes/install says how large such a program may be.
weft_part(policies effect QUICK)

set(parts ${weft_tests}/policies/parts)
set(all deciding ends spent commit linked segmented lookahead mmu heap copy)
foreach(compiler IN LISTS weft_compilers)
	# Among the objects, so that it is made first, and after them, where the linker looks into it.
	weft_archive(weft ${compiler})
	set(policies_archive ${CMAKE_CURRENT_BINARY_DIR}/policies/weft.${compiler}.a)
	# Besides the last stack, and tables by policy and size. Reserves for times without memory are mapped.
	weft_test(zeros.${compiler} COMMAND ${weft_tests}/policies/zeros ${policies_archive} 65536 NEEDS ${policies_archive})
	weft_test(canary.zeros.${compiler} COMMAND ${weft_tests}/policies/zeros ${policies_archive} 20000 NEEDS ${policies_archive}
		FAILS SAYS "bytes of zeroed data, more than 20000")
	foreach(chosen "" commit segmented lookahead mmu heap copy "commit,copy" "heap,mmu")
		weft_named(name chosen ${chosen})
		string(REPLACE "," "." name ${name})
		string(REPLACE "," ";" has "${chosen}")
		if(has MATCHES "segmented|lookahead|mmu|heap")
			list(APPEND has linked)
		endif()
		if(has)
			list(APPEND has spent)
		endif()
		list(APPEND has deciding ends)
		weft_program(${name} ${compiler} BARE SOURCES chosen.c FLAGS -Wall -Wextra "-DCHOSEN=${chosen}" OBJECTS ${policies_archive} LINK ${policies_archive} -pie)
		weft_test(${name}.${compiler} COMMAND @${name}.${compiler})
		# weft_set_budget and the like are not called.
		weft_test(parts.${name}.${compiler} COMMAND ${parts} @${name}.${compiler} ${has})
	endforeach()
	weft_program(every ${compiler} BARE SOURCES chosen.c FLAGS -Wall -Wextra OBJECTS ${policies_archive} LINK ${policies_archive} -no-pie)
	weft_test(every.${compiler} COMMAND @every.${compiler})
	weft_test(parts.every.${compiler} COMMAND ${parts} @every.${compiler} ${all})
	weft_program(clones ${compiler} BARE SOURCES clones.c FLAGS -Wall -Wextra OBJECTS ${policies_archive} LINK ${policies_archive})
	weft_test(clones.${compiler} COMMAND @clones.${compiler})
	weft_test(parts.clones.${compiler} COMMAND ${parts} @clones.${compiler} copy ends spent)

	weft_program(tail ${compiler} BARE SOURCES overflows.c FLAGS -Wall -Wextra -O1 OBJECTS ${policies_archive} LINK ${policies_archive} -Wl,--gc-sections)
	weft_test(tail.${compiler} COMMAND @tail.${compiler})
	weft_test(overflow.${compiler} COMMAND @tail.${compiler} overflow ENDS 139
		SAYS "^weft: stack overflow in coroutine #1: overcommit, 256 KiB reserved. fault at [^\n]*WEFT_STACK=overcommit:512K$")
	weft_test(unhandled.${compiler} COMMAND @tail.${compiler} unhandled ENDS 134 SAYS "^weft: unhandled effect \"other\"")
	weft_test(null.${compiler} COMMAND @tail.${compiler} null ENDS 139 SAYS "^weft: weft_resume.NULL.: there is no coroutine")
	foreach(policy commit:1M segmented copy)
		string(REPLACE ":" "." name ${policy})
		weft_test(refused.${name}.${compiler} COMMAND @tail.${compiler} ENV WEFT_STACK=${policy} ENDS 0 SAYS
			"^weft: WEFT_STACK=${policy} is ignored: the program was linked without this policy. name it in WEFT_POLICIES .weft/link_policies.h.$")
	endforeach()

	# A system stack is a linked stack, and needs no policy's part.
	weft_program(system ${compiler} BARE SOURCES system.c FLAGS -Wall -Wextra -O1 OBJECTS ${policies_archive} LINK ${policies_archive})
	weft_test(system.${compiler} COMMAND @system.${compiler})
	weft_test(parts.system.${compiler} COMMAND ${parts} @system.${compiler} linked ends spent)

	foreach(clause tail general abort)
		string(TOUPPER ${clause} CLAUSE)
		weft_program(clause.${clause} ${compiler} BARE SOURCES clauses.c FLAGS -Wall -Wextra -DWITH_${CLAUSE} OBJECTS ${policies_archive} LINK ${policies_archive} -Wl,--gc-sections)
		set(has)
		if(NOT clause STREQUAL tail)
			set(has deciding ends)
		endif()
		weft_test(parts.clause.${clause}.${compiler} COMMAND ${parts} @clause.${clause}.${compiler} ${has})
	endforeach()
	weft_program(switches ${compiler} BARE SOURCES switches.c FLAGS -Wall -Wextra OBJECTS ${policies_archive} LINK ${policies_archive} -Wl,--gc-sections)
	weft_test(switches.${compiler} COMMAND @switches.${compiler})
	weft_test(clause.tail.${compiler} COMMAND @clause.tail.${compiler})
	weft_test(clause.abort.${compiler} COMMAND @clause.abort.${compiler})
	weft_test(clause.general.${compiler} COMMAND @clause.general.${compiler} ENDS 134
		SAYS "^weft: handler \"handler\", effect \"next\": its general clause returned without a decision")
endforeach()

# This source may also be linked with the shared library, where the choice has no effect.
weft_shared(weft gcc WEFT)
weft_program(shared gcc SOURCES clones.c FLAGS -Wall -Wextra SHARED weft.gcc)
weft_test(shared COMMAND @shared.gcc)

weft_archive(heavy gcc CANARY every_reference_brings_its_part_in)
set(heavy ${CMAKE_CURRENT_BINARY_DIR}/policies/heavy.gcc.a)
weft_program(canary gcc BARE SOURCES overflows.c FLAGS -O1 OBJECTS ${heavy} LINK ${heavy})
weft_test(canary.every_reference_brings_its_part_in COMMAND ${parts} @canary.gcc FAILS SAYS "of [0-9]+ files, wanted 0")
