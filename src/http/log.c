/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Access logs. One call writes a line, so that lines of several threads do not mix. */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "http/exchange.h"

enum { LINE = 2048 };

struct line {
	char text[LINE];
	size_t length;
};

static void add(struct line *l, const char *text, size_t length)
{
	size_t room = LINE - 64 - l->length; /* the end of a line always fits */

	if (length > room)
		length = room;
	memcpy(l->text + l->length, text, length);
	l->length += length;
}

static void add_string(struct line *l, const char *text)
{
	add(l, text, strlen(text));
}

/* The client's bytes must not begin a new line, or end a string. */
static void add_escaped(struct line *l, weft_http_text_t text)
{
	char code[8];
	size_t i;

	for (i = 0; i < text.length; i++) {
		unsigned char c = (unsigned char)text.data[i];

		if (c >= ' ' && c < 0x7f && c != '"' && c != '\\') {
			add(l, text.data + i, 1);
			continue;
		}
		snprintf(code, sizeof code, "\\u%04x", c);
		add_string(l, code);
	}
}

static void add_peer(struct line *l, const weft_http_entry_t *e)
{
	char text[WEFT_ADDRESS_TEXT], *colon;

	if (weft_address_text(e->peer, text, sizeof text) <= 0 || !*text) {
		add_string(l, "-");
		return;
	}
	colon = strrchr(text, ':');
	if (colon && e->peer->address.ss_family != AF_UNIX)
		*colon = 0;
	add_escaped(l, (weft_http_text_t){text, strlen(text)});
}

__attribute__((format(printf, 3, 4))) static void end_line(FILE *file, struct line *l, const char *format, ...)
{
	va_list arguments;
	int n;

	va_start(arguments, format);
	n = vsnprintf(l->text + l->length, LINE - l->length, format, arguments);
	va_end(arguments);
	if (n > 0)
		l->length = l->length + (size_t)n < LINE ? l->length + (size_t)n : LINE - 1;
	fwrite(l->text, 1, l->length, file);
}

void weft_http_log_common(const weft_http_entry_t *e, void *file)
{
	struct line l = {.length = 0};
	char date[HTTP_DATE + 1], when[40];

	weft__http_format_date(time(NULL), date);
	snprintf(when, sizeof when, "%.2s/%.3s/%.4s:%.8s +0000", date + 5, date + 8, date + 12, date + 17);
	add_peer(&l, e);
	add_string(&l, " - - [");
	add_string(&l, when);
	add_string(&l, "] \"");
	add_escaped(&l, e->method);
	add_string(&l, " ");
	add_escaped(&l, e->target);
	end_line(file, &l, " HTTP/%u.%u\" %d %llu\n", e->version / 10, e->version % 10, e->status,
		 (unsigned long long)e->sent);
}

void weft_http_log_json(const weft_http_entry_t *e, void *file)
{
	struct line l = {.length = 0};
	struct timespec now;
	char when[40];

	clock_gettime(CLOCK_REALTIME, &now);
	snprintf(when, sizeof when, "%lld.%03ld", (long long)now.tv_sec, now.tv_nsec / 1000000);
	add_string(&l, "{\"time\":");
	add_string(&l, when);
	add_string(&l, ",\"peer\":\"");
	add_peer(&l, e);
	add_string(&l, "\",\"method\":\"");
	add_escaped(&l, e->method);
	add_string(&l, "\",\"target\":\"");
	add_escaped(&l, e->target);
	end_line(file, &l, "\",\"status\":%d,\"received\":%llu,\"sent\":%llu,\"us\":%llu}\n", e->status,
		 (unsigned long long)e->received, (unsigned long long)e->sent,
		 (unsigned long long)e->nanoseconds / 1000);
}
