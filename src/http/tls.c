/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A stream that OpenSSL encrypts. OpenSSL never touches the socket:
 *
 *   socket ─ receive ─→ in ─→ │         │ ─→ decrypt ─→ the reader's data
 *                             │ OpenSSL │
 *   socket ←─ flush ─── out ←─ │         │ ←─ encrypt ←─ the writer's data
 *
 * A call into OpenSSL consumes the data in `in`, appends to `out`, and never waits. So all of weft/io.h's deadlines,
 * cancellation and back ends work below TLS, and calls run on a system stack: the handshake's deep frames do not stay
 * resident on the stack of each connection.
 *
 * Three locks, because one task may read while a second task writes:
 *   lock     calls into OpenSSL. No task waits for the peer while holding it
 *   writing  from the encryption of records until they are sent, so that records leave in their order. A reader that
 *            has output (an alert, the answer to a key update) never waits for it: if a writer holds it, the writer
 *            sends that output, too
 *   reading  the socket's input. A writer takes it only if OpenSSL cannot encrypt before it has read the rest of a
 *            message
 *
 * The buffers exist only while they hold data, or while a read waits. A silent connection that waits by
 * weft__stream_wait has no buffers.
 *
 * The end of the input is reported as an end only if the peer has sent close_notify; else it is -ECONNRESET, because
 * anybody on the path can cut a connection.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "http/openssl.h"
#include "http/tls.h"

#ifdef HAVE_OPENSSL
#include <arpa/inet.h>
#include <weft/sync.h>

enum {
	INPUT_FEW = 1000,     /* room of a waiting read for ciphertext: enough for most requests */
	INPUT_MOST = 16896,   /* room if there is much input: a whole record */
	RECORD = 16384,	      /* bytes of data in a record at most */
	OUTPUT = 4096,	      /* the first room of an output buffer */
	ANSWERS_MOST = 65536, /* bytes of output that a reader may cause before they are sent */
	PROTOCOLS = 32,	      /* bytes of the encoded list of protocols */
	NAME = 256,	      /* bytes of a host's name, with the zero */
};

#define FINISH_TIME 5000000000ull /* time for the peer to read the data before close_notify */

struct input {
	size_t at, length; /* `at`: the bytes before it were decrypted */
	char data[];
};

struct output {
	size_t at, length, capacity; /* `at`: the bytes before it were sent */
	char data[];
};

struct tls {
	SSL *ssl;
	weft_http_tls_t *common;
	const char *alpn;
	int fd;
	weft_mutex_t lock, reading, writing;
	/* Under `lock`. */
	bool established, failed;
	struct output *out; /* or NULL */
	/* Set under `reading`, when it is NULL; freed under `lock`, when all of it was decrypted. */
	struct input *_Atomic in;
	/* Under `reading`. */
	bool much;		   /* the last read filled its buffer */
	struct input *empty;	   /* belongs to a waiting read, or was left by a cancelled read */
	_Atomic unsigned received; /* counts inputs */
	/* Under `writing`. */
	struct output *sending; /* or NULL */
	/* `out` has data. Set before a reader tries to lock `writing`, and checked after an unlock: so the reader or
	 * the writer sends them. Sequentially consistent for that. */
	_Atomic bool has_output;
};

/* ---- input and output of OpenSSL --------------------------------------------------------------------------------- */

/* Under `lock`. */
static int give_input(BIO *bio, char *data, int length)
{
	struct tls *t = openssl.BIO_get_data(bio);
	/* Acquire: pairs with the release in read_socket. */
	struct input *in = atomic_load_explicit(&t->in, memory_order_acquire);
	size_t n;

	openssl.BIO_clear_flags(bio, BIO_FLAGS_RWS | BIO_FLAGS_SHOULD_RETRY);
	if (!in) {
		openssl.BIO_set_flags(bio, BIO_FLAGS_READ | BIO_FLAGS_SHOULD_RETRY);
		return -1;
	}
	n = in->length - in->at < (size_t)length ? in->length - in->at : (size_t)length;
	memcpy(data, in->data + in->at, n);
	in->at += n;
	if (in->at == in->length) {
		/* Relaxed: `lock` orders it before the call that finds no input. */
		atomic_store_explicit(&t->in, NULL, memory_order_relaxed);
		free(in);
	}
	return (int)n;
}

static size_t length_of(const struct output *o)
{
	return o ? o->length : 0;
}

static bool append(struct output **output, const char *data, size_t length)
{
	struct output *o = *output;
	size_t capacity = o ? o->capacity : OUTPUT;

	while (capacity - length_of(o) < length)
		capacity *= 2;
	if (!o || capacity > o->capacity) {
		o = realloc(o, sizeof *o + capacity);
		if (!o)
			return false;
		if (!*output)
			o->at = o->length = 0;
		o->capacity = capacity;
		*output = o;
	}
	memcpy(o->data + o->length, data, length);
	o->length += length;
	return true;
}

static int take_output(BIO *bio, const char *data, int length)
{
	struct tls *t = openssl.BIO_get_data(bio);

	openssl.BIO_clear_flags(bio, BIO_FLAGS_RWS | BIO_FLAGS_SHOULD_RETRY);
	if (!append(&t->out, data, (size_t)length))
		return -1;
	atomic_store(&t->has_output, true);
	return length;
}

static long control(BIO *bio, int command, long number, void *pointer)
{
	(void)bio, (void)number, (void)pointer;
	return command == BIO_CTRL_FLUSH;
}

static BIO_METHOD *method;

static void make_method(void)
{
	method = openssl.BIO_meth_new(BIO_TYPE_SOURCE_SINK, "weft");
	if (method &&
	    (!openssl.BIO_meth_set_read(method, give_input) || !openssl.BIO_meth_set_write(method, take_output) ||
	     !openssl.BIO_meth_set_ctrl(method, control))) {
		openssl.BIO_meth_free(method);
		method = NULL;
	}
}

/* NULL: no memory. Later calls return NULL, too. */
static const BIO_METHOD *get_method(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, make_method);
	return method;
}

/* ---- calls into OpenSSL ------------------------------------------------------------------------------------------ */

/* `fn` runs under the lock, on a system stack, and must not suspend. It returns a result, or a negative errno; -EAGAIN:
 * OpenSSL needs input. */
struct call {
	ssize_t (*fn)(struct call *);
	struct tls *tls;
	void *data; /* destination of a read */
	size_t length;
	struct iovec *parts; /* to write; moved past the encrypted bytes */
	int count;
	const char *host;
	ssize_t result;
	unsigned received; /* before the call */
};

static void *enter(void *call)
{
	struct call *c = call;

	openssl.ERR_clear_error();
	c->received = atomic_load_explicit(&c->tls->received, memory_order_acquire);
	c->result = c->fn(c);
	openssl.ERR_clear_error();
	return NULL;
}

static void unlock(void *mutex)
{
	weft_mutex_unlock(mutex);
}

static ssize_t call(struct call *c)
{
	int error = weft_mutex_lock(&c->tls->lock);

	if (error)
		return error;
	weft_defer(unlock, &c->tls->lock);
	(void)weft_ffi_on_system_stack(enter, c);
	return c->result;
}

static ssize_t note_failure(struct tls *t)
{
	unsigned long code = openssl.ERR_peek_error();
	const char *why = openssl.ERR_reason_error_string(code);
	int reason = ERR_GET_REASON(code);
	bool is_of_certificate = ERR_GET_LIB(code) == ERR_LIB_SSL && reason == SSL_R_CERTIFICATE_VERIFY_FAILED;

	t->failed = true;
	if (is_of_certificate)
		why = openssl.X509_verify_cert_error_string(openssl.SSL_get_verify_result(t->ssl));
	atomic_store_explicit(&t->common->why, why ? why : "", memory_order_relaxed);
	if (reason == SSL_R_HTTP_REQUEST)
		return -EPROTONOSUPPORT;
	return is_of_certificate ? -EKEYREJECTED : reason == ERR_R_MALLOC_FAILURE ? -ENOMEM : -EPROTO;
}

/* The reason for the failure of a call of OpenSSL. 0: the peer has sent close_notify. */
static ssize_t failure(struct tls *t)
{
	switch (openssl.SSL_get_error(t->ssl, 0)) {
	case SSL_ERROR_WANT_READ:
		return -EAGAIN;
	case SSL_ERROR_ZERO_RETURN:
		return 0;
	case SSL_ERROR_SSL:
		return note_failure(t);
	default: /* take_output has failed */
		t->failed = true;
		return -ENOMEM;
	}
}

/* ---- the socket -------------------------------------------------------------------------------------------------- */

static bool take_output_to_send(struct tls *t)
{
	int error;

	if (t->sending && t->sending->at < t->sending->length)
		return true;
	free(t->sending);
	t->sending = NULL;
	if (!atomic_load(&t->has_output))
		return false;
	error = weft_mutex_lock(&t->lock);
	if (error)
		return false;
	t->sending = t->out;
	t->out = NULL;
	atomic_store(&t->has_output, false);
	weft_mutex_unlock(&t->lock);
	return true;
}

/* Sends all output. The caller holds `writing`. */
static int flush(struct tls *t, uint64_t deadline)
{
	while (take_output_to_send(t)) {
		struct output *o = t->sending;
		ssize_t n = weft_write_until(t->fd, o->data + o->at, o->length - o->at, deadline);

		if (n <= 0)
			return n ? (int)n : -EPIPE;
		o->at += (size_t)n;
	}
	return 0;
}

static int lock_and_flush(struct tls *t, uint64_t deadline)
{
	int error = weft_mutex_lock_until(&t->writing, deadline);

	if (error)
		return error;
	weft_defer(unlock, &t->writing);
	return flush(t, deadline);
}

/* Sends output as far as that does not wait; the next writer sends the rest. */
static void offer_output(struct tls *t)
{
	int error = 0;

	while (atomic_load(&t->has_output) && !error && weft_mutex_try_lock(&t->writing)) {
		weft_defer(unlock, &t->writing);
		error = flush(t, 0);
	}
}

/* A waiting connection has a small buffer. A large buffer would also leave a hole in the heap, between OpenSSL's
 * objects of this connection and of the next. */
static int read_socket(struct tls *t, uint64_t deadline)
{
	size_t room = t->much ? INPUT_MOST : INPUT_FEW;
	struct input *in = t->empty ? t->empty : malloc(sizeof *in + room);
	ssize_t n;

	t->empty = in; /* a cancellation leaves it there */
	n = in ? weft_read_until(t->fd, in->data, room, deadline) : -ENOMEM;
	t->empty = NULL;
	if (n <= 0) {
		free(in);
		return n ? (int)n : -ECONNRESET;
	}
	t->much = (size_t)n == room;
	in->at = 0;
	in->length = (size_t)n;
	/* Releases: pair with give_input and enter. A call that sees `received` also sees the input. */
	atomic_store_explicit(&t->in, in, memory_order_release);
	atomic_fetch_add_explicit(&t->received, 1, memory_order_release);
	return 0;
}

/* Reads input, unless input has come since the call that needed it. */
static int receive(struct tls *t, const struct call *c, uint64_t deadline)
{
	int error = weft_mutex_lock_until(&t->reading, deadline);

	if (error)
		return error;
	weft_defer(unlock, &t->reading);
	if (atomic_load_explicit(&t->received, memory_order_relaxed) != c->received)
		return 0;
	return read_socket(t, deadline);
}

/* ---- the stream -------------------------------------------------------------------------------------------------- */

static ssize_t decrypt(struct call *c)
{
	struct tls *t = c->tls;
	size_t n;

	if (t->failed)
		return -EPROTO;
	if (length_of(t->out) > ANSWERS_MOST)
		return -ENOBUFS;
	return openssl.SSL_read_ex(t->ssl, c->data, c->length, &n) ? (ssize_t)n : failure(t);
}

/* If a peer demands answers (key updates) and does not read them, this side waits. */
static int send_answers(struct tls *t, ssize_t result, uint64_t deadline)
{
	if (result == -ENOBUFS || WEFT_CANARY(tls_reader_waits_for_writer))
		return lock_and_flush(t, deadline);
	offer_output(t);
	return 0;
}

static ssize_t tls_read(struct stream *s, void *data, size_t length, uint64_t deadline)
{
	struct tls *t = s->state;
	struct call c = {.fn = decrypt, .tls = t, .data = data, .length = length};
	ssize_t n;
	int error;

	do {
		n = call(&c);
		error = send_answers(t, n, deadline);
		if (n == -EAGAIN && !error)
			error = receive(t, &c, deadline);
	} while ((n == -EAGAIN || n == -ENOBUFS) && !error);
	return n == -EAGAIN || n == -ENOBUFS ? error : n;
}

static ssize_t count_pending(struct call *c)
{
	struct tls *t = c->tls;

	return t->failed || atomic_load_explicit(&t->in, memory_order_relaxed) || openssl.SSL_pending(t->ssl) > 0;
}

/* Not inlined: a waiting connection must not have this frame. */
static __attribute__((noinline)) ssize_t pending(struct tls *t)
{
	struct call c = {.fn = count_pending, .tls = t};

	return call(&c);
}

static int tls_wait(struct stream *s, uint64_t deadline)
{
	ssize_t n = pending(s->state);

	return n ? (int)n : weft_poll_until(s->fd, POLLIN, deadline);
}

static void advance(struct call *c, size_t bytes)
{
	while (c->count && bytes >= c->parts->iov_len) {
		bytes -= c->parts->iov_len;
		c->parts++;
		c->count--;
	}
	if (bytes) {
		c->parts->iov_base = (char *)c->parts->iov_base + bytes;
		c->parts->iov_len -= bytes;
	}
}

/* The data of the next record: small parts are joined in `few`. */
static const char *next_record(const struct call *c, char few[RECORD], size_t *length)
{
	int i;

	*length = c->parts->iov_len < RECORD ? c->parts->iov_len : RECORD;
	if (c->count == 1 || *length == RECORD)
		return c->parts->iov_base;
	for (*length = 0, i = 0; i < c->count && *length < RECORD; i++) {
		size_t part = c->parts[i].iov_len < RECORD - *length ? c->parts[i].iov_len : RECORD - *length;

		memcpy(few + *length, c->parts[i].iov_base, part);
		*length += part;
	}
	return few;
}

/* Encrypts at most two records. */
static ssize_t encrypt(struct call *c)
{
	struct tls *t = c->tls;
	char few[RECORD];
	const char *data;
	size_t length, n;
	ssize_t result;

	if (t->failed)
		return -EPROTO;
	for (advance(c, 0); c->count && length_of(t->out) < RECORD; advance(c, n)) {
		data = next_record(c, few, &length);
		if (!openssl.SSL_write_ex(t->ssl, data, length, &n)) {
			result = failure(t);
			return result ? result : -EPIPE;
		}
	}
	return 0;
}

/* The caller holds `writing`. */
static int write_parts(struct tls *t, struct iovec *parts, int count, uint64_t deadline)
{
	struct call c = {.fn = encrypt, .tls = t, .parts = parts, .count = count};
	ssize_t result;
	int error;

	do {
		result = call(&c);
		error = flush(t, deadline);
		if (result == -EAGAIN && !error)
			error = receive(t, &c, deadline);
	} while (!error && (result == -EAGAIN || (!result && c.count)));
	return result && result != -EAGAIN ? (int)result : error;
}

static int lock_and_write(struct tls *t, struct iovec *parts, int count, uint64_t deadline)
{
	int error = weft_mutex_lock_until(&t->writing, deadline);

	if (error)
		return error;
	weft_defer(unlock, &t->writing);
	return write_parts(t, parts, count, deadline);
}

static ssize_t tls_write(struct stream *s, struct iovec *parts, int count, uint64_t deadline)
{
	size_t sum = 0;
	int i, error;

	for (i = 0; i < count; i++)
		sum += parts[i].iov_len;
	error = lock_and_write(s->state, parts, count, deadline);
	offer_output(s->state);
	return error ? error : (ssize_t)sum;
}

static ssize_t say_close(struct call *c)
{
	struct tls *t = c->tls;

	if (t->established && !t->failed && !(openssl.SSL_get_shutdown(t->ssl) & SSL_SENT_SHUTDOWN))
		(void)openssl.SSL_shutdown(t->ssl);
	return 0;
}

static int tls_finish(struct stream *s)
{
	struct call c = {.fn = say_close, .tls = s->state};
	ssize_t result = call(&c);
	int error = result ? (int)result : lock_and_flush(s->state, weft_now() + FINISH_TIME);

	return error ? error : weft_shutdown(s->fd, SHUT_WR);
}

/* ---- beginning and end ------------------------------------------------------------------------------------------- */

static ssize_t free_ssl(struct call *c)
{
	openssl.SSL_free(c->tls->ssl);
	return 0;
}

/* No task uses the stream. Not inlined: a handshake must not have this frame on the connection's stack. */
static __attribute__((noinline)) void free_state(struct tls *t)
{
	struct call c = {.fn = free_ssl, .tls = t};

	(void)call(&c);
	free(t->in);
	free(t->empty);
	free(t->out);
	free(t->sending);
	free(t);
}

static void tls_close(struct stream *s)
{
	struct call c = {.fn = say_close, .tls = s->state};

	weft_shield_begin();
	(void)call(&c);
	offer_output(s->state);
	free_state(s->state);
	weft_shield_end();
	weft_close(s->fd);
}

static const struct stream_kind tls_kind = {tls_read, tls_wait, tls_write, tls_finish, tls_close};

/* Encodes "h2,http/1.1" for TLS: each name behind its length. */
static unsigned encode_protocols(const char *list, unsigned char encoded[PROTOCOLS])
{
	unsigned at = 0;

	while (*list) {
		size_t length = strcspn(list, ",");

		if (at + 1 + length > PROTOCOLS)
			break;
		encoded[at++] = (unsigned char)length;
		memcpy(encoded + at, list, length);
		at += (unsigned)length;
		list += length + (list[length] == ',');
	}
	return at;
}

int weft__tls_select(SSL *ssl, const unsigned char **chosen, unsigned char *length, const unsigned char *offered,
		     unsigned offered_length, void *unused)
{
	const struct tls *t = openssl.BIO_get_data(openssl.SSL_get_rbio(ssl));
	unsigned char ours[PROTOCOLS];
	unsigned char *found;

	(void)unused;
	if (openssl.SSL_select_next_proto(&found, length, ours, encode_protocols(t->alpn, ours), offered,
					  offered_length) != OPENSSL_NPN_NEGOTIATED)
		return SSL_TLSEXT_ERR_ALERT_FATAL;
	/* The result may point into `ours`, which ends with this call: points into `offered` instead. */
	for (*chosen = offered; **chosen != *length || memcmp(*chosen + 1, found, *length) != 0;
	     *chosen += 1 + **chosen)
		;
	++*chosen;
	return SSL_TLSEXT_ERR_OK;
}

static bool is_address(const char *host)
{
	unsigned char address[16];

	return inet_pton(AF_INET, host, address) == 1 || inet_pton(AF_INET6, host, address) == 1;
}

/* The server's certificate must name `host`. The server also gets that name (SNI), unless it is an address. */
static ssize_t set_host(struct tls *t, const char *host)
{
	size_t length = strlen(host);
	char name[NAME];

	length -= length && host[length - 1] == '.';
	if (!length || length >= sizeof name)
		return -EINVAL;
	memcpy(name, host, length);
	name[length] = 0;
	openssl.SSL_set_hostflags(t->ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
	if (WEFT_NO_CANARY(tls_trusts_any_host) && openssl.SSL_set1_host(t->ssl, name) != 1)
		return -ENOMEM;
	if (!is_address(name) &&
	    openssl.SSL_ctrl(t->ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name, name) != 1)
		return -EINVAL;
	return 0;
}

static ssize_t set_client(struct tls *t, const char *host)
{
	unsigned char protocols[PROTOCOLS];
	unsigned length = encode_protocols(t->alpn, protocols);

	openssl.SSL_set_connect_state(t->ssl);
	if (length && openssl.SSL_set_alpn_protos(t->ssl, protocols, length))
		return -ENOMEM;
	return set_host(t, host);
}

static SSL *make_ssl(weft_http_tls_t *common)
{
	SSL *ssl;

	pthread_mutex_lock(&common->lock);
	ssl = openssl.SSL_new(common->context);
	pthread_mutex_unlock(&common->lock);
	return ssl;
}

static ssize_t begin(struct call *c)
{
	struct tls *t = c->tls;
	const BIO_METHOD *m = get_method();
	BIO *bio = m ? openssl.BIO_new(m) : NULL;

	if (!bio)
		return -ENOMEM;
	openssl.BIO_set_data(bio, t);
	openssl.BIO_set_init(bio, 1);
	t->ssl = make_ssl(t->common);
	if (!t->ssl) {
		openssl.BIO_free(bio);
		return -ENOMEM;
	}
	openssl.SSL_set_bio(t->ssl, bio, bio);
	if (c->host)
		return set_client(t, c->host);
	openssl.SSL_set_accept_state(t->ssl);
	return 0;
}

static ssize_t shake_hands(struct call *c)
{
	struct tls *t = c->tls;
	ssize_t error;

	if (openssl.SSL_do_handshake(t->ssl) == 1) {
		t->established = true;
		return 0;
	}
	error = failure(t);
	return error ? error : -ECONNRESET;
}

/* No other task has the stream yet, so it takes neither `writing` nor `reading`: the frames of these locks may need a
 * second page of the connection's stack. */
static int handshake(struct call *c, uint64_t deadline)
{
	struct tls *t = c->tls;
	ssize_t result;
	int error;

	c->fn = shake_hands;
	do {
		result = call(c);
		error = flush(t, deadline);
		if (result == -EAGAIN && !error)
			error = read_socket(t, deadline);
	} while (result == -EAGAIN && !error);
	return result && result != -EAGAIN ? (int)result : error;
}

static int start(struct stream *s, int fd, weft_http_tls_t *common, const char *host, const char *alpn,
		 uint64_t deadline)
{
	struct tls *t = calloc(1, sizeof *t);
	struct call c = {.fn = begin, .tls = t, .host = host};
	int error;

	*s = (struct stream){.fd = fd};
	if (!t)
		return -ENOMEM;
	t->fd = fd;
	t->common = common;
	t->alpn = alpn;
	s->kind = &tls_kind;
	s->state = t;
	error = (int)call(&c);
	if (!error)
		error = handshake(&c, deadline);
	if (error) {
		*s = (struct stream){.fd = fd};
		weft_shield_begin();
		free_state(t);
		weft_shield_end();
	}
	return error;
}

bool weft__tls_is_server(const weft_http_tls_t *tls)
{
	return !tls->is_client;
}

int weft__tls_accept(struct stream *s, int fd, weft_http_tls_t *tls, const char *alpn, uint64_t deadline)
{
	*s = (struct stream){.fd = fd};
	return tls->is_client ? -EINVAL : start(s, fd, tls, NULL, alpn, deadline);
}

int weft__tls_connect(struct stream *s, int fd, weft_http_tls_t *tls, const char *host, const char *alpn,
		      uint64_t deadline)
{
	*s = (struct stream){.fd = fd};
	return tls->is_client && host ? start(s, fd, tls, host, alpn, deadline) : -EINVAL;
}

const char *weft__tls_alpn(const struct stream *s)
{
	const struct tls *t = s->state;
	const unsigned char *name = NULL;
	unsigned length = 0;

	if (s->kind == &tls_kind)
		openssl.SSL_get0_alpn_selected(t->ssl, &name, &length);
	return length == 2 && !memcmp(name, "h2", 2)	     ? "h2"
	       : length == 8 && !memcmp(name, "http/1.1", 8) ? "http/1.1"
							     : "";
}

#else

bool weft__tls_is_server(const weft_http_tls_t *tls)
{
	(void)tls;
	return false;
}

int weft__tls_accept(struct stream *s, int fd, weft_http_tls_t *tls, const char *alpn, uint64_t deadline)
{
	(void)tls, (void)alpn, (void)deadline;
	*s = (struct stream){.fd = fd};
	return -ENOTSUP;
}

int weft__tls_connect(struct stream *s, int fd, weft_http_tls_t *tls, const char *host, const char *alpn,
		      uint64_t deadline)
{
	(void)host;
	return weft__tls_accept(s, fd, tls, alpn, deadline);
}

const char *weft__tls_alpn(const struct stream *s)
{
	(void)s;
	return "";
}
#endif
