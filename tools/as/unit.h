/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A translation unit: the compiler's text, line by line, and the facts found in it. The steps are, in this order,
 *
 *   read.c       lines, split into word and operands
 *   scan.c       sections, symbols, functions, and which addresses are taken
 *   decode.c     the effect of each instruction on the stack pointer and on control flow
 *   check.c      the prologue checks that the compiler made
 *   graph.c      basic blocks and every edge between them
 *   flow.c       a data-flow analysis over that graph: how deep the stack is at each call, how much of it may be
 *                arguments, and which function a called pointer holds; copies.c and targets.c are parts of it
 *   calls.c      calls go to the target that the policy needs
 *   lookahead.c  (look-ahead only) which checks are needed, and how many bytes each asks for
 *   check.c      the checks in the form that the policy needs; mmu.c: its probes
 *   thunks.c     markers, names and thunks through which other objects call
 *   write.c      the text again, with the changes
 *
 * No step edits text in place: each line records its changes (before, instead, after).
 */
#ifndef WEFT_AS_UNIT_H
#define WEFT_AS_UNIT_H

#include "text.h"

enum { NONE = -1, UNKNOWN = -1 };

enum policy { SEGMENTED, MMU, LOOKAHEAD };

enum line_kind { BLANK, LABEL, DIRECTIVE, CODE };

/* The effect of an instruction on control flow and on the stack pointer. `amount` is a number of bytes. */
enum op {
	OP_OTHER,
	OP_CALL,	  /* target: a symbol, or none: indirect */
	OP_JUMP,	  /* target as for OP_CALL; ends the flow */
	OP_BRANCH,	  /* conditional jump to target */
	OP_RETURN,	  /* a return, or any instruction that control does not pass */
	OP_PUSH,	  /* reg: the register, or NO_REG */
	OP_POP,		  /* reg as for OP_PUSH */
	OP_MOVE_SP,	  /* stack pointer -= amount */
	OP_ALIGN_SP,	  /* stack pointer is rounded down to a multiple of amount */
	OP_SET_FP,	  /* frame pointer = stack pointer + amount */
	OP_SP_FROM_FP,	  /* stack pointer = frame pointer + amount */
	OP_LEAVE,	  /* stack pointer = frame pointer; pop it */
	OP_DYNAMIC_SP,	  /* stack pointer becomes a computed value: alloca, or the end of its scope */
	OP_NONLOCAL,	  /* stack pointer is loaded from memory that is no frame: a nonlocal goto */
	OP_STORE_BOTTOM,  /* a store that may reach 0(%rsp) … 7(%rsp), the place where stack arguments begin */
	OP_TAKE_BOTTOM,	  /* reg = the address of these bytes */
	OP_LIMIT_COMPARE, /* compares with %fs:112 */
};

/* The registers that the analysis follows, as bits. The first six are callee-saved, the next six carry arguments. */
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
	bool from_user;	      /* inline assembly, which must not be changed */
	bool dropped;
	bool is_tail_call; /* a jump through a pointer that leaves the function */
	bool names_sp;	   /* the stack pointer is among its operands */
	bool keeps_sp;	   /* copies the stack pointer to memory */
	uint16_t reg;	   /* enum reg */
	uint16_t section;
	int32_t amount;
	int32_t bound;		   /* calls: bytes of stack arguments at most; UNKNOWN */
	struct symbol *symbol;	   /* the symbol that a label defines, or that a call or jump names */
	const char *before;	   /* text to write before, */
	const char *instead;	   /* instead of, */
	const char *after;	   /* and after it */
	struct function *function; /* the function whose body this call enters behind its check; look-ahead only */
};

struct section {
	struct view name;
	struct view group; /* signature of its group, or empty */
	struct symbol *first_function;
	bool code;
	bool debug; /* names in it do not count as uses */
};

/* The content of a register or a frame slot: the stack pointer at this depth. 0: another value. */
struct copy {
	int32_t depth;
	int32_t dynamic_at; /* see struct state; 0: no alloca above */
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

/* The function whose address each register holds; NULL: another value. */
struct targets {
	struct symbol *reg[TARGET_REGISTERS]; /* by the number of the register's bit */
};

struct symbol {
	struct view name;
	struct symbol *next_in_bucket;
	struct symbol *alias_of;
	struct line *alias_line;   /* the directive that defines the alias; NULL: a second label */
	struct function *function; /* the function that begins here */
	struct function *part_of;  /* the function whose cold part begins here */
	struct thunk *thunk;
	int line;	  /* the line of its label, or NONE */
	int block;	  /* the block that begins at this label, in the graph of its function */
	bool is_function; /* .type @function */
	bool is_ifunc, is_global, is_weak, is_hidden, is_defined, is_weakref;
	bool is_taken;	/* its address is used */
	bool is_target; /* a jump names it, */
	bool is_pad;	/* exceptions may go to it, */
	bool is_table;	/* or data names it, or code computes its address: an indirect jump may go to it */
};

/* The prologue check. A line that does not exist is NONE. */
struct check {
	int lea, compare, branch;
	int slow;	  /* first line of the slow path */
	int call, resume; /* the call of __morestack; the `ret` after it */
	bool keeps_lea;	  /* the lea is not for the compare: its result is used later */
	bool is_inline;	  /* the slow path follows at once, and the branch jumps over it */
	struct symbol *slow_label;
	int64_t need;	   /* bytes that the compiler asks for */
	int64_t arguments; /* bytes of stack arguments; UNKNOWN if weft-as made the check */
};

struct edge;

struct function {
	struct symbol *symbol;
	int first, last; /* its first line (the label), its last .size or .cfi_endproc */
	int tail;	 /* after this line more code may follow that belongs to the function */
	bool has_cfi;
	bool is_split; /* the compiler made a check */
	bool is_marked;
	bool makes_calls;
	bool has_dynamic, has_user_calls, has_tls_calls;
	struct check check;
	int64_t depth;	       /* the most bytes below the return address, without alloca */
	int64_t above_dynamic; /* the most bytes below an alloca */
	int64_t need;	       /* the bytes that the check asks for in the end */
	/* look-ahead */
	struct unit *unit;
	struct edge *edges;
	int64_t frame;
	int64_t path; /* longest path from here to the next checkpoints, frame included */
	int mark;     /* the search's mark */
	bool is_checkpoint, may_be_leaf, is_leaf, can_enter_body, is_body_entered, is_body_global;
	const char *reason; /* why it is a checkpoint */
	const char *body;   /* the label behind the check */
};

struct unit {
	const char *path;
	struct view source; /* the argument of .file */
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
	unsigned labels; /* number of labels made by weft-as */
	bool is_clang, is_gcc, is_annotated, has_split_note, has_checks, has_lto, is_intel, has_probes;
	/* It loads the address of memcpy or a similar function, so that an unknown pointer may hold it. */
	bool loads_memory_function;
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
/* The symbol at the end of a chain of aliases. */
struct symbol *resolve(struct symbol *s);
/* The instrumented function of this unit that the symbol names, or NULL. */
struct function *function_of(struct symbol *s);

/* ---- scan.c */
void scan(struct unit *u);

/* ---- decode.c */
/* The parts of a memory operand "disp(base…)". */
struct memory {
	bool is_memory, has_index, has_number;
	int64_t displacement;
	struct view base;
};

void decode(struct unit *u);
bool mentions(const struct line *l, unsigned regs);
/* The registers that an instruction writes or may write. Not for calls and user code. */
unsigned written_by(const struct line *l);
bool is_string_op(const struct line *l);
struct memory memory_of(struct view operand);
/* Finds a register by its 64-bit name. OTHER_REG: another register, or a part of a register; NO_REG: not a register. */
unsigned reg_of(struct view operand);
/* Is the word this mnemonic, with or without the suffix for 64 bits? */
bool is(struct view word, const char *mnemonic);
bool immediate(struct view operand, int64_t *value);
/* Does the instruction write to none of its operands? */
bool only_reads(struct view word);

/* ---- check.c */
/* Prints a comparison that clears the carry flag if a frame of `need` bytes fits. */
void print_compare(struct buffer *text, int64_t need);
void find_check(struct unit *u, struct function *f);
void rewrite_check(struct unit *u, struct function *f);
/* The bytes of the function's own frame; whether calls can enter it behind its check. */
int64_t frame_of(const struct unit *u, const struct function *f);
bool can_enter_body(const struct function *f);
/* Does the function need no check at all? */
bool is_leaf(const struct unit *u, const struct function *f);
void widen_alloca(struct unit *u, struct function *f);

/* ---- mmu.c */
void emit_probe(struct unit *u, struct function *f, const char *slow, struct buffer *text);
void finish_probes(struct unit *u);

/* The facts that flow.c knows at a place. */
struct state {
	int64_t depth;
	int64_t frame_pointer; /* the depth that it points to; 0: it is not a frame pointer */
	int64_t saved_at;      /* depth of the caller's frame pointer */
	int64_t dynamic_at;    /* depth above the alloca */
	int64_t saved_bytes;
	int64_t checked;  /* a compare with the limit has shown that the stack may go down to this depth; 0: none has */
	uint16_t saved;	  /* registers */
	uint16_t bottoms; /* registers that hold rsp */
	bool is_dynamic, is_stored, in_prologue, is_frozen;
	bool is_doubtful; /* no certain edge has led here */
	struct copies copies;
	struct targets targets;
};

/* ---- graph.c */
/*
 * A basic block: control enters at its first line and leaves behind its last line. Every edge of the graph begins at a
 * last line: to the block that follows, to each label that the line names, and, if the line is an indirect jump, to
 * every block whose label's address is taken. Exceptions go from any call to any pad.
 */
struct block {
	int first, last;
	unsigned section;
	int next;	    /* the block that control falls into, or NONE */
	bool next_in_doubt; /* the block is empty, or ends in a call, which may not return */
	bool is_closed;	    /* ends in an instruction that control does not pass */
	bool is_target, is_table, is_pad;
	bool is_reached; /* flow: `state` holds the facts on entry */
	bool is_seeded;	 /* flow: exceptions have arrived */
	struct state state;
};

struct graph {
	struct block *blocks; /* in the order of the text; the first block is the function's entry */
	size_t count, room;
};

/* Is the symbol a label within the function? */
static inline bool is_inside(const struct function *f, const struct symbol *s)
{
	return s->line > f->first && s->line <= f->last;
}

/* Replaces the content of *g by the graph of f; symbols name their blocks. */
void build_graph(struct unit *u, struct function *f, struct graph *g);
/* Iterates over the function's labels that user code names; `left` begins as the code's operands. NULL: no more. */
struct symbol *next_named_label(struct unit *u, const struct function *f, struct view *left);

/* ---- flow.c */
void follow(struct unit *u, struct function *f, struct graph *g);

/* ---- copies.c */
/* The copy of the stack pointer that an operand holds, if any. */
struct copy copy_in(struct copies *all, const struct state *now, struct view operand);
/* Does the instruction store a copy in a slot of the frame? */
bool keeps_copy(struct copies *all, const struct state *now, const struct line *l);
/* Applies an instruction to the copies. */
void follow_copies(struct copies *all, const struct state *now, const struct line *l);
void forget_copies(struct copies *all);
/* Forgets copies deeper than `depth`: the stack pointer goes down by an unknown amount. */
void forget_deeper(struct copies *all, int64_t depth);
/* Joins the facts of two edges. True if fewer facts than before remain. */
bool join_copies(struct copies *to, const struct copies *from);

/* ---- targets.c */
/* The function that a call or jump through a pointer goes to, or NULL. */
struct symbol *target_in(const struct targets *all, const struct line *l);
void follow_targets(struct unit *u, struct targets *all, const struct line *l);
void forget_targets(struct targets *all);
/* Called where exceptions arrive: registers hold their values at some earlier call. */
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
/* The name to use in its place, or NULL. */
const char *renamed(struct view name);

/* ---- calls.c */
/* Is a jump through a pointer a call in tail position? Compilers' comments tell. */
bool is_tail_call(struct unit *u, struct function *f, const struct line *l);
void rewrite_calls(struct unit *u, struct function *f);

/* ---- thunks.c */
/* The name to call in place of s. */
const char *entry_name(struct unit *u, struct symbol *s);
const char *room_name(struct unit *u, struct symbol *s);
/* The stub for calls of a pointer in r10 that may hold any function. */
const char *stub_name(struct unit *u, int64_t bound);
/* The instruction that loads `bound` into r10. */
const char *load_bound(int64_t bound);
void mark_functions(struct unit *u);
void finish_thunks(struct unit *u);

/* ---- ifunc.c */
void finish_resolvers(struct unit *u);

/* ---- lookahead.c */
void look_ahead(struct unit **units, size_t count);
void finish_report(struct unit *u);
/* The label behind the function's check. */
const char *body_name(struct function *f);

/* ---- transform.c */
/* All steps up to the changes. False: the text is used unchanged. */
bool analyse(struct unit *u);
void transform(struct unit **units, size_t count);

/* ---- write.c */
void change_before(struct line *l, const char *text);
void change_after(struct line *l, const char *text);
void change(struct line *l, const char *text);
void drop(struct line *l);
void write_text(const struct unit *u, struct buffer *to);
/* Returns a new label, which no other code has. */
unsigned new_label(struct unit *u);

/* Writes one line to stderr, and ends the program. */
__attribute__((noreturn, format(printf, 3, 4))) void refuse(const struct unit *u, const struct function *f,
							    const char *format, ...);

#endif
