/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Resolvers of indirect functions. In a static program they run before the thread pointer is set, and a check, or a
 * call of another object's function, reads the limit relative to it: at address 112. So such a symbol does not name its
 * resolver but a piece of code that first provides readable memory: zeros, so that no check splits the stack. The C
 * library sets the thread pointer afterwards.
 */
#include "unit.h"

#define ARCH_PRCTL 158
#define ARCH_SET_FS 0x1002
#define ARCH_GET_FS 0x1003

static void print_prepare(struct buffer *to)
{
	print(to, "\t.section\t.bss.weft.no_thread,\"awG\",@nobits,weft.resolver,comdat\n\t.p2align 6\n"
		  "\t.zero\t512\n.Lweft.no_thread:\n\t.zero\t512\n");
	print(to, "\t.section\t.text.weft.resolver,\"axG\",@progbits,weft.resolver,comdat\n\t.p2align 4\n"
		  "\t.weak\tweft.resolver\n\t.hidden\tweft.resolver\n\t.type\tweft.resolver, @function\n"
		  "weft.resolver:\n\t.cfi_startproc\n"
		  "\tpushq\t%%rdi\n\t.cfi_adjust_cfa_offset 8\n\tpushq\t%%rsi\n\t.cfi_adjust_cfa_offset 8\n"
		  "\tpushq\t%%r11\n\t.cfi_adjust_cfa_offset 8\n\tpushq\t$0\n\t.cfi_adjust_cfa_offset 8\n");
	print(to, "\tmovl\t$%d, %%edi\n\tmovq\t%%rsp, %%rsi\n\tmovl\t$%d, %%eax\n\tsyscall\n", ARCH_GET_FS, ARCH_PRCTL);
	print(to,
	      "\tcmpq\t$0, (%%rsp)\n\tjne\t1f\n\tleaq\t.Lweft.no_thread(%%rip), %%rsi\n\tmovq\t%%rsi, (%%rsi)\n"
	      "\tmovl\t$%d, %%edi\n\tmovl\t$%d, %%eax\n\tsyscall\n",
	      ARCH_SET_FS, ARCH_PRCTL);
	print(to, "1:\tpopq\t%%r11\n\t.cfi_adjust_cfa_offset -8\n\tpopq\t%%r11\n\t.cfi_adjust_cfa_offset -8\n"
		  "\tpopq\t%%rsi\n\t.cfi_adjust_cfa_offset -8\n\tpopq\t%%rdi\n\t.cfi_adjust_cfa_offset -8\n"
		  "\tjmp\t*%%r11\n\t.cfi_endproc\n\t.size\tweft.resolver, .-weft.resolver\n");
}

/* The piece calls the resolver without a pointer to it: another module's resolver of the same name must not take its
 * place. */
static void print_piece(struct unit *u, struct view name, struct view resolver)
{
	unsigned label = new_label(u);

	print(&u->end, "\t.text\n\t.p2align 4\n.Lweft%u:\n\t.cfi_startproc\n\tendbr64\n", label);
	print(&u->end, "\t.set\t.Lweft%ur, %.*s\n\tleaq\t.Lweft%ur(%%rip), %%r11\n\tjmp\tweft.resolver\n", label,
	      SHOW(resolver), label);
	print(&u->end, "\t.cfi_endproc\n\t.set\t%.*s, .Lweft%u\n", SHOW(name), label);
}

void finish_resolvers(struct unit *u)
{
	bool any = false;

	for (size_t i = 0; i < u->symbol_count; i++) {
		struct symbol *s = u->symbols[i];

		if (!s->is_ifunc || !s->alias_of || !s->alias_line)
			continue;
		drop(s->alias_line);
		print_piece(u, s->name, s->alias_of->name);
		any = true;
	}
	if (any)
		print_prepare(&u->end);
}
