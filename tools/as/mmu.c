/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * MMU: instead of comparing, a prologue stores into the last byte that it needs, slack included. If that byte is in a
 * guard page, the fault handler finds the probe in a table and continues at the slow path. It must be a store: a load
 * would map the zero page, and the first write fault again.
 *
 * If a loop calls at the end of a chunk, each call would fault. Therefore a comparison as under "segmented" follows
 * each function. Nothing reaches it until the run time writes a jump to it over the probe. The probe has seven bytes:
 * room for the jump.
 *
 * The table is the section weft_probes: per probe the distances to the probe, to the slow path, and to the comparison.
 * The linker keeps or drops an entry with its function: the entry is in the same group, and linked to the same section.
 * One constructor per module registers the module's table with the run time.
 */
#include "unit.h"

#define SLACK 1024
#define CONSTRUCTOR "weft.register_probes"

/* Adds, behind the function, the comparison that the run time may use in place of the probe. */
static void add_comparison(struct unit *u, struct function *f, const char *slow, unsigned label)
{
	struct buffer text = {0};

	print(&text, "%s.Lweft%uc:\n", f->has_cfi ? "\t.cfi_startproc\n" : "", label);
	print_compare(&text, f->need);
	print(&text, "\tjae\t.Lweft%ua\n\tjmp\t%s\n%s", label, slow, f->has_cfi ? "\t.cfi_endproc\n" : "");
	change_after(&u->lines[f->tail], text.at);
}

void emit_probe(struct unit *u, struct function *f, const char *slow, struct buffer *text)
{
	const struct section *in = &u->sections[u->lines[f->first].section];
	struct view first = in->first_function->name;
	unsigned label = new_label(u);

	print(text, ".Lweft%u:\n\tmovl\t%%eax, -%lld(%%rsp)\n.Lweft%ua:\n", label, (long long)f->need + SLACK, label);
	add_comparison(u, f, slow, label);
	if (in->group.n)
		print(text, "\t.pushsection\tweft_probes,\"aoG\",@progbits,%.*s,%.*s,comdat\n", SHOW(first),
		      SHOW(in->group));
	else
		print(text, "\t.pushsection\tweft_probes,\"ao\",@progbits,%.*s\n", SHOW(first));
	print(text, "\t.long\t.Lweft%u-., %s-., .Lweft%uc-.\n\t.popsection\n", label, slow, label);
	u->has_probes = true;
}

void finish_probes(struct unit *u)
{
	struct buffer *to = &u->end;

	if (!u->has_probes)
		return;
	print(to, "\t.section\t.text.%s,\"axG\",@progbits,%s,comdat\n", CONSTRUCTOR, CONSTRUCTOR);
	print(to, "\t.weak\t%s\n\t.hidden\t%s\n\t.type\t%s, @function\n", CONSTRUCTOR, CONSTRUCTOR, CONSTRUCTOR);
	print(to, "\t.hidden\t__start_weft_probes\n\t.hidden\t__stop_weft_probes\n");
	print(to, "%s:\n\t.cfi_startproc\n", CONSTRUCTOR);
	print(to, "\tleaq\t__start_weft_probes(%%rip), %%rdi\n\tleaq\t__stop_weft_probes(%%rip), %%rsi\n");
	print(to, "\tjmp\t*weft__register_probes@GOTPCREL(%%rip)\n\t.cfi_endproc\n\t.size\t%s, .-%s\n", CONSTRUCTOR,
	      CONSTRUCTOR);
	/* Runs before the constructors of users. */
	print(to, "\t.section\t.init_array.00050,\"awG\",@init_array,%s,comdat\n\t.p2align 3\n\t.quad\t%s\n",
	      CONSTRUCTOR, CONSTRUCTOR);
}
