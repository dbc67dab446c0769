/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A static program without a C library: where it begins, thread-local variables, constructors, and the functions that
 * compilers call by themselves. Before main it forbids all system calls but writing and ending, by a filter that makes
 * the kernel kill the process for any other. (An emulator may have no such filter: the word "unfiltered" as the first
 * argument does without.)
 */
#include <elf.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int count, char **arguments);

enum { WRITE = 1, EXIT = 60, PRCTL = 157, ARCH_PRCTL = 158, EXIT_GROUP = 231, SECCOMP = 317 };
enum { SET_FS = 0x1002, NO_NEW_PRIVILEGES = 38 };

static long call(long number, long a, long b, long c)
{
	long result;
	register long r10 __asm__("r10") = 0;
	register long r8 __asm__("r8") = 0;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8)
			 : "rcx", "r11", "memory");
	return result;
}

long call_mmap(void)
{
	return call(9, 0, 4096, 0);
}

/* ---- a C library ------------------------------------------------------------------------------------------------ */

static size_t put_text(char *to, const char *text)
{
	size_t length = 0;

	for (; text[length]; length++)
		to[length] = text[length];
	return length;
}

static size_t put_number(char *to, unsigned long n)
{
	char digits[24];
	size_t count = 0, length = 0;

	do
		digits[count++] = (char)('0' + n % 10);
	while (n /= 10);
	while (count)
		to[length++] = digits[--count];
	return length;
}

/* Lines of less than a kibibyte. */
int fprintf(int descriptor, const char *format, ...)
{
	char line[1024];
	size_t length = 0;
	va_list list;

	va_start(list, format);
	for (; *format && length < sizeof line / 2; format++) {
		if (*format != '%') {
			line[length++] = *format;
			continue;
		}
		format++;
		if (*format == 's')
			length += put_text(line + length, va_arg(list, const char *));
		else if (*format == 'l' || *format == 'z')
			format++, length += put_number(line + length, va_arg(list, unsigned long));
		else
			length += put_number(line + length, va_arg(list, unsigned));
	}
	va_end(list);
	return (int)call(WRITE, descriptor, (long)line, (long)length);
}

_Noreturn void exit(int code)
{
	for (;;)
		(void)call(EXIT_GROUP, code, 0, 0);
}

/* The loops must not become calls of themselves. */
#define KEEP_LOOP __asm__ volatile("" : : : "memory")

void *memcpy(void *to, const void *from, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++) {
		((char *)to)[i] = ((const char *)from)[i];
		KEEP_LOOP;
	}
	return to;
}

void *memset(void *to, int byte, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++) {
		((char *)to)[i] = (char)byte;
		KEEP_LOOP;
	}
	return to;
}

int memcmp(const void *a, const void *b, size_t bytes)
{
	const unsigned char *x = a, *y = b;

	for (; bytes && *x == *y; bytes--, x++, y++)
		KEEP_LOOP;
	return bytes ? *x - *y : 0;
}

int strcmp(const char *a, const char *b)
{
	while (*a && *a == *b)
		a++, b++;
	return *a - *b;
}

unsigned long strtoul(const char *text, char **end, int base)
{
	unsigned long n = 0;

	(void)end;
	(void)base;
	for (; *text >= '0' && *text <= '9'; text++)
		n = 10 * n + (unsigned long)(*text - '0');
	return n;
}

/* ---- thread-local variables ------------------------------------------------------------------------------------- */

/* They lie below the thread pointer, and behind it is what compilers, and Weft at 0x70, look for there. */
static struct {
	_Alignas(64) char variables[32768];
	_Alignas(64) void *control[32];
} thread;

static void set_up_thread(const Elf64_Phdr *part, size_t count)
{
	size_t bytes;

	for (; count && part->p_type != PT_TLS; count--)
		part++;
	if (count) {
		bytes = (part->p_memsz + part->p_align - 1) & ~(part->p_align - 1);
		if (bytes > sizeof thread.variables || part->p_align > 64)
			exit(3);
		memcpy((char *)thread.control - bytes, (const void *)part->p_vaddr, part->p_filesz);
	}
	thread.control[0] = thread.control;
	if (call(ARCH_PRCTL, SET_FS, (long)thread.control, 0))
		exit(3);
}

/* ---- the filter ------------------------------------------------------------------------------------------------- */

static void forbid_the_rest(void)
{
	struct sock_filter steps[] = {
	    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 0, 4),
	    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, WRITE, 3, 0),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, EXIT, 2, 0),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, EXIT_GROUP, 1, 0),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = {.len = sizeof steps / sizeof *steps, .filter = steps};

	if (call(PRCTL, NO_NEW_PRIVILEGES, 1, 0) || call(SECCOMP, SECCOMP_SET_MODE_FILTER, 0, (long)&filter)) {
		(void)fprintf(stderr, "skip - no filter of system calls here\n");
		exit(77);
	}
}

/* ---- the beginning ---------------------------------------------------------------------------------------------- */

extern void (*const first[])(int, char **, char **) __asm__("__init_array_start");
extern void (*const last[])(int, char **, char **) __asm__("__init_array_end");

__attribute__((used)) static _Noreturn void begin(long *stack)
{
	int count = (int)stack[0];
	char **arguments = (char **)&stack[1], **environment = arguments + count + 1;
	const Elf64_Phdr *parts = NULL;
	Elf64_auxv_t *vector;
	size_t parts_count = 0;
	char **end = environment;

	while (*end)
		end++;
	for (vector = (Elf64_auxv_t *)(void *)(end + 1); vector->a_type; vector++) {
		if (vector->a_type == AT_PHDR)
			parts = (const Elf64_Phdr *)vector->a_un.a_val;
		if (vector->a_type == AT_PHNUM)
			parts_count = vector->a_un.a_val;
	}
	set_up_thread(parts, parts_count);
	if (count > 1 && !strcmp(arguments[1], "unfiltered"))
		count--, arguments++;
	else
		forbid_the_rest();
	for (size_t i = 0; i < (size_t)(last - first); i++)
		first[i](count, arguments, environment);
	exit(main(count, arguments));
}

__asm__(".globl _start\n"
	"_start:\n\t"
	"xorl %ebp, %ebp\n\t"
	"movq %rsp, %rdi\n\t"
	"andq $-16, %rsp\n\t"
	"call begin\n\t"
	"ud2\n");
