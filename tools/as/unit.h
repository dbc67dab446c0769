/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A translation unit: what the compiler wrote, line by line, and what was found in it. The steps are, in this order,
 *
 *   read.c       lines, split into word and operands
 *   scan.c       sections, symbols, functions, whose address is taken
 *   decode.c     what each instruction does to the stack pointer and to the flow of control
 *   check.c      the prologue checks that the compiler made
 *   graph.c      basic blocks and every edge between them
 *   flow.c       a data-flow analysis over that graph: how deep the stack is at each call, how much of it may be
 *                arguments, and which function a called pointer holds; copies.c and targets.c are parts of it
 *   calls.c      calls go where the policy wants them
 *   lookahead.c  (look-ahead only) which checks are needed, and how much each must find
 *   check.c      the checks as the policy wants them; mmu.c its probes
 *   thunks.c     markers, names and thunks through which other objects call
 *   write.c      the text again, with the changes
 *
 * No step changes the text of another one: changes hang on lines (before, instead, after).
 */
#ifndef WEFT_AS_UNIT_H
#define WEFT_AS_UNIT_H

#include "text.h"

enum { NONE = -1, UNKNOWN = -1 };

enum policy { SEGMENTED, MMU, LOOKAHEAD };

enum line_kind { BLANK, LABEL, DIRECTIVE, CODE };

/* What an instruction does, as far as flow and the stack pointer are concerned. `amount` says how much. */
enum op {
	OP_OTHER,
	OP_CALL,	  /* target: a symbol, or none: indirect */
	OP_JUMP,	  /* the same; ends the flow */
	OP_BRANCH,	  /* conditional jump to target */
	OP_RETURN,	  /* or any instruction that control does not pass */
	OP_PUSH,	  /* reg: which register, or NO_REG */
	OP_POP,		  /* the same */
	OP_MOVE_SP,	  /* stack pointer -= amount */
	OP_ALIGN_SP,	  /* stack pointer is rounded down to a multiple of amount */
	OP_SET_FP,	  /* frame pointer = stack pointer + amount */
	OP_SP_FROM_FP,	  /* stack pointer = frame pointer + amount */
	OP_LEAVE,	  /* stack pointer = frame pointer; pop it */
	OP_DYNAMIC_SP,	  /* stack pointer becomes something computed: alloca, or the end of its scope */
	OP_NONLOCAL,	  /* stack pointer is loaded from memory that is no frame: a nonlocal goto */
	OP_STORE_BOTTOM,  /* a store that may reach 0(%rsp) … 7(%rsp): where stack arguments begin */
	OP_TAKE_BOTTOM,	  /* reg = the address of these bytes */
	OP_LIMIT_COMPARE, /* with %fs:112 */
};

/* Registers that matter here, as bits. The first six are the callee's to save, the last six carry arguments. */
enum reg {
	NO_REG = 0,
	REG_BX = 1,
	REG_BP = 2,
	REG_12 = 4,
	REG_13 = 8,
	REG_14 = 16,
	REG_15 = 32,
	CALLEE_SAVED = 63,
	REG_DI = 64,
	REG_SI = 128,
	REG_DX = 256,
	REG_CX = 512,
	REG_8 = 1024,
	REG_9 = 2048,
	ARGUMENTS = 4032,
	REG_AX = 4096,
	REG_10 = 8192,
	REG_11 = 16384,
	OTHER_REG = 32768,
};

struct symbol;
struct function;

struct line {
	struct view text;
	struct view word;     /* mnemonic, directive, or the label without its colon */
	struct view operands; /* without comment */
	uint8_t kind;	      /* enum line_kind */
	uint8_t op;	      /* enum op */
	bool from_user;	      /* inline assembly: not ours to change */
	bool dropped;
	bool is_tail_call; /* a jump through a pointer that leaves the function */
	bool names_sp;	   /* among its operands */
	bool keeps_sp;	   /* copies the stack pointer to memory */
	uint16_t reg;	   /* enum reg */
	uint16_t section;
	int32_t amount;
	int32_t bound;		   /* calls: bytes of stack arguments at most; UNKNOWN */
	struct symbol *symbol;	   /* what a label defines, what a call or jump names */
	const char *before;	   /* what to write before, */
	const char *instead;	   /* instead of, */
	const char *after;	   /* and after it */
	struct function *function; /* that this call enters behind its check; look-ahead only */
};

struct section {
	struct view name;
	struct view group; /* signature of its group, or empty */
	struct symbol *first_function;
	bool code;
	bool debug; /* what it names is not thereby used */
};

/* What a register or a slot of the frame holds: the stack pointer as it was at that depth. 0: something else. */
struct copy {
	int32_t depth;
	int32_t dynamic_at; /* as in flow's state; 0: no alloca above */
};

/* displacement(base); base 0: free. */
struct slot {
	struct copy copy;
	int32_t displacement;
	uint16_t base; /* enum reg */
};

enum { COPY_REGISTERS = 13, TARGET_REGISTERS = 15, SLOTS = 4 };

struct copies {
	struct copy reg[COPY_REGISTERS]; /* by the number of the register's bit */
	struct slot slot[SLOTS];
};

/* The function whose address each register holds; NULL: something else. */
struct targets {
	struct symbol *reg[TARGET_REGISTERS]; /* by the number of the register's bit */
};

struct symbol {
	struct view name;
	struct symbol *next_in_bucket;
	struct symbol *alias_of;
	struct line *alias_line;   /* that says so; NULL: a second label */
	struct function *function; /* that begins here */
	struct function *part_of;  /* a cold part */
	struct thunk *thunk;
	int line;	  /* where the label is, or NONE */
	int block;	  /* that begins at this label, in the graph of its function */
	bool is_function; /* .type @function */
	bool is_ifunc, is_global, is_weak, is_hidden, is_defined, is_weakref;
	bool is_taken;	/* its address is used */
	bool is_target; /* a jump names it, */
	bool is_pad;	/* exceptions may go there */
	bool is_table;	/* or data does, or code computes it: an indirect jump may go there */
};

/* The prologue check. Lines are NONE where there is none. */
struct check {
	int lea, compare, branch;
	int slow;	  /* first line of the slow path */
	int call, resume; /* of __morestack; the `ret` after it */
	bool keeps_lea;	  /* it is not for the compare: what it computes is used later */
	bool is_inline;	  /* the slow path follows at once, the branch jumps over it */
	struct symbol *slow_label;
	int64_t need;	   /* bytes that the compiler asks for */
	int64_t arguments; /* bytes of stack arguments; UNKNOWN: where we made the check */
};

struct edge;

struct function {
	struct symbol *symbol;
	int first, last; /* lines: its label, its last .size or .cfi_endproc */
	int tail;	 /* after this line more code may follow that belongs to it */
	bool has_cfi;
	bool is_split; /* the compiler made a check */
	bool is_marked;
	bool makes_calls;
	bool has_dynamic, has_user_calls, has_tls_calls;
	struct check check;
	int64_t depth;	       /* bytes below the return address at most, alloca aside */
	int64_t above_dynamic; /* bytes below an alloca at most */
	int64_t need;	       /* what the check must find, after all */
	/* look-ahead */
	struct unit *unit;
	struct edge *edges;
	int64_t frame;
	int64_t path; /* longest path from here to the next checkpoints, frame included */
	int mark;     /* of the search */
	bool is_checkpoint, may_be_leaf, is_leaf, can_enter_body, is_body_entered, is_body_global;
	const char *reason; /* why it is one */
	const char *body;   /* label behind the check */
};

struct unit {
	const char *path;
	struct view source; /* what .file says */
	struct view text;
	struct line *lines;
	size_t count, room;
	struct section *sections;
	size_t section_count, section_room;
	struct symbol **buckets;
	size_t bucket_count;
	struct symbol **symbols;
	size_t symbol_count, symbol_room;
	struct function **functions;
	size_t function_count, function_room;
	struct thunk *thunks;
	struct stub *stubs;
	enum policy policy;
	int64_t bound;
	unsigned labels; /* that we made */
	bool is_clang, is_gcc, is_annotated, has_split_note, has_checks, has_lto, is_intel, has_probes;
	bool loads_memory_function; /* the address of memcpy or its like, so that a called pointer may hold it */
	struct buffer report, end;
};

/* ---- read.c */
void read_lines(struct unit *u);
/* Operands are separated by commas outside of parentheses. An empty view if there is no such operand. */
struct view operand(const struct line *l, unsigned which);
struct view last_operand(const struct line *l);

/* ---- symbols.c */
struct symbol *symbol(struct unit *u, struct view name);
struct symbol *find_symbol(struct unit *u, struct view name);
/* The symbol at the beginning of a text; empty if it begins with something else. */
struct view symbol_prefix(struct view text);
/* What it finally names, if it is an alias. */
struct symbol *resolve(struct symbol *s);
/* The instrumented function of this unit that it names, or NULL. */
struct function *function_of(struct symbol *s);

/* ---- scan.c */
void scan(struct unit *u);

/* ---- decode.c */
/* A memory operand "disp(base…)": its parts. */
struct memory {
	bool is_memory, has_index, has_number;
	int64_t displacement;
	struct view base;
};

void decode(struct unit *u);
bool mentions(const struct line *l, unsigned regs);
/* The registers that an instruction writes, or may write. Calls and user code are not asked for. */
unsigned written_by(const struct line *l);
bool is_string_op(const struct line *l);
struct memory memory_of(struct view operand);
/* By its 64-bit name; OTHER_REG for another register or a part of one; NO_REG if it is none. */
unsigned reg_of(struct view operand);
/* Is it that mnemonic, with or without the suffix for 64 bits? */
bool is(struct view word, const char *mnemonic);
bool immediate(struct view operand, int64_t *value);
/* Does the instruction write to none of its operands? */
bool only_reads(struct view word);

/* ---- check.c */
/* Does a frame of so many bytes fit? Then the carry flag is clear. */
void print_compare(struct buffer *text, int64_t need);
void find_check(struct unit *u, struct function *f);
void rewrite_check(struct unit *u, struct function *f);
/* Bytes of its own, and whether there is a place behind its check that calls can go to. */
int64_t frame_of(const struct unit *u, const struct function *f);
bool can_enter_body(const struct function *f);
/* Whether it needs no check at all. */
bool is_leaf(const struct unit *u, const struct function *f);
void widen_alloca(struct unit *u, struct function *f);

/* ---- mmu.c */
void emit_probe(struct unit *u, struct function *f, const char *slow, struct buffer *text);
void finish_probes(struct unit *u);

/* The facts that flow.c holds at a place. */
struct state {
	int64_t depth;
	int64_t frame_pointer; /* depth that it points to; 0: it is no frame pointer */
	int64_t saved_at;      /* depth of the caller's frame pointer */
	int64_t dynamic_at;    /* depth above the alloca */
	int64_t saved_bytes;
	int64_t checked;  /* a compare with the limit has shown that the stack may go down to this depth; 0: none has */
	uint16_t saved;	  /* registers */
	uint16_t bottoms; /* registers that hold rsp */
	bool is_dynamic, is_stored, in_prologue, is_frozen;
	bool is_doubtful; /* nothing certain has led here */
	struct copies copies;
	struct targets targets;
};

/* ---- graph.c */
/*
 * A basic block: lines that control enters at the first and leaves behind the last. Every edge of the graph begins at a
 * last line: to the block that follows, to each label that the line names, and, if it is an indirect jump, to every
 * block whose label's address is taken. Exceptions go from any call to any pad.
 */
struct block {
	int first, last;
	unsigned section;
	int next;	    /* the block that control falls into, or NONE */
	bool next_in_doubt; /* the block is empty, or ends in a call, which may not return */
	bool is_closed;	    /* ends in an instruction that control does not pass */
	bool is_target, is_table, is_pad;
	bool is_reached; /* flow: `state` is what is known on entry */
	bool is_seeded;	 /* flow: exceptions have arrived */
	struct state state;
};

struct graph {
	struct block *blocks; /* in the order of the text; the first one is the function's entry */
	size_t count, room;
};

/* Whether it is a label within the function. */
static inline bool is_inside(const struct function *f, const struct symbol *s)
{
	return s->line > f->first && s->line <= f->last;
}

/* The graph of f replaces what *g held; symbols name their blocks. */
void build_graph(struct unit *u, struct function *f, struct graph *g);
/* Goes through the function's labels that user code names; `left` begins as its operands. NULL: no more. */
struct symbol *next_named_label(struct unit *u, const struct function *f, struct view *left);

/* ---- flow.c */
void follow(struct unit *u, struct function *f, struct graph *g);

/* ---- copies.c */
/* The copy of the stack pointer that an operand is, if it is one. */
struct copy copy_in(struct copies *all, const struct state *now, struct view operand);
/* Does the instruction put a copy into a slot of the frame? */
bool keeps_copy(struct copies *all, const struct state *now, const struct line *l);
/* What an instruction does to copies. */
void follow_copies(struct copies *all, const struct state *now, const struct line *l);
void forget_copies(struct copies *all);
/* Those that are deeper than `depth`: the stack pointer goes down by an unknown amount. */
void forget_deeper(struct copies *all, int64_t depth);
/* What is known where both may come from. True if that is less than before. */
bool join_copies(struct copies *to, const struct copies *from);

/* ---- targets.c */
/* The function that a call or jump through a pointer goes to, or NULL. */
struct symbol *target_in(const struct targets *all, const struct line *l);
void follow_targets(struct unit *u, struct targets *all, const struct line *l);
void forget_targets(struct targets *all);
/* Where exceptions arrive: registers hold what they held at some call. */
void lose_targets(struct targets *all);
bool join_targets(struct targets *to, const struct targets *from);
/* Refuses code that may call setjmp through a pointer that is not known to hold it. */
void expect_no_lost_setjmp(const struct unit *u, const struct function *f, const struct targets *all,
			   const struct line *l);

/* ---- known.c */
enum known { NOT_KNOWN, KNOWN_SMALL, KNOWN_ROOM, KNOWN_LOCK, KNOWN_SETJMP, KNOWN_MEM, KNOWN_UNTOUCHED };
enum known known(struct view name);
enum { SMALL_BYTES = 192, ROOM_BYTES = 2048 };
/* Reads "name bytes". False: the line is something else. */
bool split_need(struct view line, struct view *name, int64_t *bytes);
/* Adds each WEFT_NEEDS of an assembly text to the known functions. False: it cannot read the line `wrong`. */
bool learn_needs(struct view text, struct view *wrong);
/* Another name for it, or NULL. */
const char *renamed(struct view name);

/* ---- calls.c */
/* Whether a jump through a pointer is a call in tail position; compilers' comments say so. */
bool is_tail_call(struct unit *u, struct function *f, const struct line *l);
void rewrite_calls(struct unit *u, struct function *f);

/* ---- thunks.c */
/* The name to call instead of s. */
const char *entry_name(struct unit *u, struct symbol *s);
const char *room_name(struct unit *u, struct symbol *s);
/* Where a pointer in r10 is called that may be anything. */
const char *stub_name(struct unit *u, int64_t bound);
/* The instruction that does r10 = bound. */
const char *load_bound(int64_t bound);
void mark_functions(struct unit *u);
void finish_thunks(struct unit *u);

/* ---- ifunc.c */
void finish_resolvers(struct unit *u);

/* ---- lookahead.c */
void look_ahead(struct unit **units, size_t count);
void finish_report(struct unit *u);
/* The label behind its check. */
const char *body_name(struct function *f);

/* ---- transform.c */
/* Everything up to the changes. False: the text is to be used as it is. */
bool analyse(struct unit *u);
void transform(struct unit **units, size_t count);

/* ---- write.c */
void change_before(struct line *l, const char *text);
void change_after(struct line *l, const char *text);
void change(struct line *l, const char *text);
void drop(struct line *l);
void write_text(const struct unit *u, struct buffer *to);
/* A label that nobody else has. */
unsigned new_label(struct unit *u);

/* One line to stderr, and the end. */
__attribute__((noreturn, format(printf, 3, 4))) void refuse(const struct unit *u, const struct function *f,
							    const char *format, ...);

#endif
