/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * sort.c: a merge sort that knows nothing of a screen, beside a screen and a keyboard that never freeze. The key q ends
 * it. With -DCURSES and -lncurses the screen is ncurses', otherwise a line of a plain terminal. If standard input is no
 * terminal, one sort is done and checked.
 */
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>
#include <weft/charcoal.h>
#ifdef CURSES
#include <ncurses.h>
#endif

enum { COUNT = 1000000, WIDTH = 60 };

static int values[COUNT], scratch[COUNT];
static int last_key = '-';

/* doc: begin sort */
static void merge(int *a, int half, int count)
{
	int i = 0, j = half, k = 0;

	memcpy(scratch, a, (size_t)count * sizeof *a);
	while (k < count)
		a[k++] = j == count || (i < half && scratch[i] <= scratch[j]) ? scratch[i++] : scratch[j++];
}

static void sort(int *a, int count)
{
	if (count < 2)
		return;
	sort(a, count / 2);
	sort(a + count / 2, count - count / 2);
	no_yield_expr(merge(a, count / 2, count));
}
/* doc: end */

static void shuffle(void)
{
	unsigned state = 1;

	for (int i = 0; i < COUNT; i++) {
		state = state * 1664525 + 1013904223;
		values[i] = (int)(state >> 4);
	}
}

static bool is_sorted(void)
{
	for (int i = 1; i < COUNT; i++)
		if (values[i - 1] > values[i])
			return false;
	return true;
}

/* ---- the screen -------------------------------------------------------------------------------------------------- */

static void picture(char text[WIDTH + 1])
{
	static const char shades[] = " .:-=+*#%@";

	for (int i = 0; i < WIDTH; i++)
		text[i] = shades[(long)values[i * (COUNT / WIDTH)] * 10 >> 28];
	text[WIDTH] = '\0';
}

#ifdef CURSES
static void open_screen(void)
{
	initscr();
	cbreak();
	noecho();
	nodelay(stdscr, TRUE);
}

static void draw(const char *text)
{
	mvaddstr(1, 2, text);
	mvprintw(3, 2, "last key: %c   (q: quit)", last_key);
	refresh();
}

static void close_screen(void)
{
	endwin();
}

static int get_key(void)
{
	return getch();
}
#else
static struct termios before;

static void open_screen(void)
{
	struct termios raw;

	tcgetattr(STDIN_FILENO, &before);
	raw = before;
	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	tcsetattr(STDIN_FILENO, TCSANOW, &raw);
}

static void draw(const char *text)
{
	printf("\r[%s] last key: %c", text, last_key);
	fflush(stdout);
}

static void close_screen(void)
{
	printf("\n");
	tcsetattr(STDIN_FILENO, TCSANOW, &before);
}

static int get_key(void)
{
	unsigned char key;

	return read(STDIN_FILENO, &key, 1) == 1 ? key : -1;
}
#endif

/* doc: begin screen */
static void keep_sorting(void)
{
	for (;;) {
		shuffle();
		sort(values, COUNT);
	}
}

/* -DFROZEN shows what a program without activities does: the screen freezes during a sort. */
#ifdef FROZEN
#define keep_sorting() no_yield_expr(keep_sorting())
#endif

static void keep_drawing(void)
{
	char text[WIDTH + 1];

	for (;; usleep(50000)) {
		picture(text);
		draw(text);
	}
}

/* poll parks until a key is pressed, so that not even a library that knows nothing of activities needs to block. */
static void read_keys(void)
{
	struct pollfd keyboard = {.fd = STDIN_FILENO, .events = POLLIN};
	int key;

	while (poll(&keyboard, 1, -1) == 1 && (key = get_key()) != 'q' && key != -1)
		last_key = key;
}

static void interact(void)
{
	activity_t sorting, drawing, reading;

	open_screen();
	activate(&drawing)
	{
		keep_drawing();
	}
	activate(&reading)
	{
		read_keys();
	}
	activate(&sorting)
	{
		keep_sorting();
	}
	activity_wait(&reading);
	activity_cancel(&sorting);
	activity_cancel(&drawing);
	activity_wait(&sorting);
	activity_wait(&drawing);
	close_screen();
}
/* doc: end */

int activity_main(void)
{
	if (isatty(STDIN_FILENO)) {
		interact();
		return 0;
	}
	shuffle();
	sort(values, COUNT);
	printf("%d numbers are %ssorted\n", COUNT, is_sorted() ? "" : "not ");
	return !is_sorted();
}
