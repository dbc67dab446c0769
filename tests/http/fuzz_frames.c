/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * HTTP/2 frames for libFuzzer. An input is a program of commands, each of which is a byte with operands: frames of each
 * type with likely and unlikely fields, parts of header blocks, and raw bytes. The server must send whole frames, and
 * SETTINGS first.
 */
#include "fuzz_server.h"

struct input {
	const unsigned char *at, *end;
};

static unsigned next(struct input *in)
{
	return in->at < in->end ? *in->at++ : 0;
}

/* Draws a stream: a small number, so that streams often repeat. */
static uint32_t next_id(struct input *in)
{
	unsigned n = next(in);

	return n < 200 ? n % 16 : n < 250 ? n : 0x7fffff00u + n;
}

static void add_frame(unsigned type, unsigned flags, uint32_t id, const void *payload, size_t length)
{
	unsigned char head[9] = {(unsigned char)(length >> 16), (unsigned char)(length >> 8), (unsigned char)length,
				 (unsigned char)type,		(unsigned char)flags,	      (unsigned char)(id >> 24),
				 (unsigned char)(id >> 16),	(unsigned char)(id >> 8),     (unsigned char)id};

	fuzz_add(head, sizeof head);
	fuzz_add(payload, length);
}

/* Parts of header blocks. */
static const struct {
	const char *data;
	size_t length;
} parts[] = {
#define PART(text)                                                                                                     \
	{                                                                                                              \
		text, sizeof(text) - 1                                                                                 \
	}
    PART("\x82\x86\x84\x41\x01h"),	 /* GET http / h */
    PART("\x83\x86\x44\x02/x\x41\x01h"), /* POST http /x h */
    PART("\x82"),			 /* GET */
    PART("\x84"),			 /* / */
    PART("\x86"),			 /* http */
    PART("\x41\x01h"),			 /* an authority */
    PART("\x00\x0e"
	 "content-length"
	 "\x01"
	 "5"),
    PART("\x00\x06"
	 "expect"
	 "\x0c"
	 "100-continue"),
    PART("\x40\x06"
	 "cookie"
	 "\x03"
	 "a=1"),
    PART("\x00\x04"
	 "host"
	 "\x01"
	 "h"),
    PART("\x00\x05"
	 "x-sum"
	 "\x01"
	 "1"),
    PART("\x00\x01"
	 "A"
	 "\x01"
	 "1"),
    PART("\x00\x0a"
	 "connection"
	 "\x05"
	 "close"),
    PART("\x40\x01"
	 "b"
	 "\x7f\x01"
	 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	 "aaaaaaaaaaaaaaaaaaa"),
    PART("\xbe"), /* the newest field that was indexed */
    PART("\xbe\xbe\xbe\xbe\xbe\xbe\xbe\xbe\xbe\xbe\xbe\xbe\xbe\xbe\xbe\xbe"),
    PART("\x20"),	  /* resizes the table to 0 bytes */
    PART("\x3f\xe1\x1f"), /* resizes the table to 4096 bytes */
    PART("\xff\xff\xff\xff\x0f"),
#undef PART
};
enum { PARTS = sizeof parts / sizeof *parts };

static void add_block(struct input *in, unsigned type, unsigned flags, uint32_t id)
{
	unsigned char block[2000];
	size_t length = 0, n;
	unsigned i, count = next(in) % 12;

	while (count--) {
		i = next(in) % (PARTS + 1);
		if (i == PARTS) {
			block[length++] = (unsigned char)next(in);
			continue;
		}
		n = parts[i].length;
		memcpy(block + length, parts[i].data, n);
		length += n;
	}
	add_frame(type, flags, id, block, length);
}

static void add_zeros(unsigned type, unsigned flags, uint32_t id, size_t length)
{
	static const unsigned char zeros[255 * 80];

	add_frame(type, flags, id, zeros, length);
}

static void add_numbers(struct input *in, unsigned type, uint32_t id, unsigned bytes)
{
	unsigned char payload[16];

	for (unsigned i = 0; i < bytes; i++)
		payload[i] = (unsigned char)next(in);
	add_frame(type, next(in) & 1, id, payload, bytes);
}

static void command(struct input *in)
{
	unsigned what = next(in), type, times;
	uint32_t id;

	switch (what % 12) {
	case 0:
	case 1: /* a request */
		id = next_id(in);
		add_frame(1, what & 16 ? 5 : 4, id, parts[what & 32 ? 0 : 1].data, parts[what & 32 ? 0 : 1].length);
		break;
	case 2:
		add_block(in, 1, next(in) & 0x2d, next_id(in));
		break;
	case 3:
		add_block(in, 9, next(in) & 4, next_id(in));
		break;
	case 4:
		id = next_id(in);
		add_zeros(0, next(in) & 9, id, next(in) * (what & 64 ? 80u : 1u));
		break;
	case 5: /* SETTINGS */
		add_numbers(in, 4, what & 128 ? next_id(in) : 0, what & 64 ? 6 : next(in) % 16);
		break;
	case 6: /* WINDOW_UPDATE */
		add_numbers(in, 8, next_id(in), what & 64 ? 4 : next(in) % 8);
		break;
	case 7: /* RST_STREAM */
		add_numbers(in, 3, next_id(in), what & 64 ? 4 : next(in) % 8);
		break;
	case 8: /* PING, GOAWAY, PRIORITY */
		type = what & 32 ? 6 : what & 64 ? 7 : 2;
		add_numbers(in, type, what & 128 ? next_id(in) : 0, type == 2 ? 5 : 8);
		break;
	case 9: /* many frames */
		type = next(in) % 12;
		for (times = next(in) * 4; times; times--)
			add_zeros(type, 0, what & 64 ? 1 : 0, type == 6 ? 8 : 0);
		break;
	case 10:
		add_zeros(next(in), next(in), next_id(in), next(in) * 70u);
		break;
	default:
		fuzz_add(&(unsigned char){(unsigned char)next(in)}, 1);
	}
}

static void check_answer(void)
{
	size_t at = 0, length;

	while (answer.length - at >= 9) {
		const unsigned char *f = answer.data + at;

		length = (size_t)f[0] << 16 | (size_t)f[1] << 8 | f[2];
		CHECK(length <= 16384);
		CHECK(at || f[3] == 4);
		CHECK(f[3] <= 9);
		if (answer.length - at < 9 + length)
			break; /* the connection was lost meanwhile */
		at += 9 + length;
	}
}

/* Each command with each of its flags, between two requests, of which the second has a body. */
static size_t fuzz_seed(unsigned index, unsigned char data[FUZZ_SEED_MOST])
{
	const unsigned char commands[] = {
	    (unsigned char)index, 48, 1, (unsigned char)index, 3, 1, 0, 5, 1, 4, 2, 12, 9, 4, 9, 1, 5};

	memcpy(data, commands, sizeof commands);
	return index < 256 ? sizeof commands : 0;
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
	struct input in = {data, data + size};

	fuzz.length = 0;
	fuzz.pieces = next(&in) % 16;
	fuzz_add(preface, sizeof preface - 1);
	add_frame(4, 0, 0, NULL, 0);
	while (in.at < in.end)
		command(&in);
	fuzz_simulate(exchange);
	check_answer();
	return 0;
}
