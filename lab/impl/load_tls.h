/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* load_tls.h: connections by TLS of a load generator, which wait for the server. OpenSSL 3 is loaded at run time. */
#ifndef LOAD_TLS_H
#define LOAD_TLS_H

#include "load.h"
#include <dlfcn.h>

static struct {
	void *(*TLS_client_method)(void);
	void *(*SSL_CTX_new)(const void *method);
	long (*SSL_CTX_ctrl)(void *context, int command, long number, void *pointer);
	void *(*SSL_new)(void *context);
	int (*SSL_set_fd)(void *ssl, int fd);
	int (*SSL_connect)(void *ssl);
	int (*SSL_write)(void *ssl, const void *data, int length);
	int (*SSL_read)(void *ssl, void *data, int length);
	void *context;
} load_tls;

/* The constants of <openssl/ssl.h>. A silent connection of the client must not have buffers either. */
enum { LOAD_TLS_MODE = 33, LOAD_TLS_RELEASE_BUFFERS = 16 };

static inline void load_open_tls(void)
{
	void *library = dlopen("libssl.so.3", RTLD_NOW);

	if (!library)
		lab_cannot("needs OpenSSL 3: apt-get install --no-install-recommends libssl3");
#define LOAD_TLS_FIND(name)                                                                                            \
	io_must((load_tls.name = (__typeof__(load_tls.name))(uintptr_t)dlsym(library, #name)) != NULL, #name)
	LOAD_TLS_FIND(TLS_client_method);
	LOAD_TLS_FIND(SSL_CTX_new);
	LOAD_TLS_FIND(SSL_CTX_ctrl);
	LOAD_TLS_FIND(SSL_new);
	LOAD_TLS_FIND(SSL_set_fd);
	LOAD_TLS_FIND(SSL_connect);
	LOAD_TLS_FIND(SSL_write);
	LOAD_TLS_FIND(SSL_read);
#undef LOAD_TLS_FIND
	load_tls.context = load_tls.SSL_CTX_new(load_tls.TLS_client_method());
	io_must(load_tls.context, "SSL_CTX_new");
	load_tls.SSL_CTX_ctrl(load_tls.context, LOAD_TLS_MODE, LOAD_TLS_RELEASE_BUFFERS, NULL);
}

/* Returns after the handshake. The server's certificate is not checked. */
static inline void *load_connect_tls(int port)
{
	void *ssl = load_tls.SSL_new(load_tls.context);

	io_must(ssl && load_tls.SSL_set_fd(ssl, load_connect(port, SOCK_STREAM)) == 1 && load_tls.SSL_connect(ssl) == 1,
		"a handshake");
	return ssl;
}

#endif /* LOAD_TLS_H */
