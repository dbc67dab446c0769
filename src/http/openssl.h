/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * OpenSSL 3, opened at run time: programs that do not use TLS need neither the library nor the time to load it. Its
 * functions are members of `openssl` under their own names. OpenSSL's macros that call functions cannot be used.
 */
#ifndef HTTP_OPENSSL_H
#define HTTP_OPENSSL_H

/* The second header is the processor's: a cross compiler may find only the first. */
#if !defined(WEFT_WITHOUT_OPENSSL) && __has_include(<openssl/ssl.h>) && __has_include(<openssl/opensslconf.h>)
#include <openssl/opensslv.h>
#if defined(OPENSSL_VERSION_MAJOR) && OPENSSL_VERSION_MAJOR >= 3
#define HAVE_OPENSSL 1
#endif
#endif

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <weft/http.h>

#ifdef HAVE_OPENSSL
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

/* libssl.so.3 depends on libcrypto.so.3, so one handle finds all functions. */
#define OPENSSL_FUNCTIONS(F)                                                                                           \
	F(BIO_clear_flags)                                                                                             \
	F(BIO_free)                                                                                                    \
	F(BIO_get_data)                                                                                                \
	F(BIO_meth_free)                                                                                               \
	F(BIO_meth_new)                                                                                                \
	F(BIO_meth_set_ctrl)                                                                                           \
	F(BIO_meth_set_read)                                                                                           \
	F(BIO_meth_set_write)                                                                                          \
	F(BIO_new)                                                                                                     \
	F(BIO_set_data)                                                                                                \
	F(BIO_set_flags)                                                                                               \
	F(BIO_set_init)                                                                                                \
	F(ERR_clear_error)                                                                                             \
	F(ERR_peek_error)                                                                                              \
	F(ERR_reason_error_string)                                                                                     \
	F(SSL_CTX_check_private_key)                                                                                   \
	F(SSL_CTX_ctrl)                                                                                                \
	F(SSL_CTX_free)                                                                                                \
	F(SSL_CTX_load_verify_file)                                                                                    \
	F(SSL_CTX_new)                                                                                                 \
	F(SSL_CTX_set_alpn_select_cb)                                                                                  \
	F(SSL_CTX_set_cipher_list)                                                                                     \
	F(SSL_CTX_set_ciphersuites)                                                                                    \
	F(SSL_CTX_set_default_passwd_cb)                                                                               \
	F(SSL_CTX_set_default_verify_paths)                                                                            \
	F(SSL_CTX_set_options)                                                                                         \
	F(SSL_CTX_set_verify)                                                                                          \
	F(SSL_CTX_use_PrivateKey_file)                                                                                 \
	F(SSL_CTX_use_certificate_chain_file)                                                                          \
	F(SSL_ctrl)                                                                                                    \
	F(SSL_do_handshake)                                                                                            \
	F(SSL_free)                                                                                                    \
	F(SSL_get0_alpn_selected)                                                                                      \
	F(SSL_get_error)                                                                                               \
	F(SSL_get_rbio)                                                                                                \
	F(SSL_get_shutdown)                                                                                            \
	F(SSL_get_verify_result)                                                                                       \
	F(SSL_new)                                                                                                     \
	F(SSL_pending)                                                                                                 \
	F(SSL_read_ex)                                                                                                 \
	F(SSL_select_next_proto)                                                                                       \
	F(SSL_set1_host)                                                                                               \
	F(SSL_set_accept_state)                                                                                        \
	F(SSL_set_alpn_protos)                                                                                         \
	F(SSL_set_bio)                                                                                                 \
	F(SSL_set_connect_state)                                                                                       \
	F(SSL_set_hostflags)                                                                                           \
	F(SSL_shutdown)                                                                                                \
	F(SSL_write_ex)                                                                                                \
	F(TLS_client_method)                                                                                           \
	F(TLS_server_method)                                                                                           \
	F(X509_verify_cert_error_string)

#define openssl weft__openssl
struct openssl {
#define MEMBER(name) __typeof__(name) *name;
	OPENSSL_FUNCTIONS(MEMBER)
#undef MEMBER
};
extern struct openssl openssl;

/* tls_common.c. Needs a large stack. */
struct weft_http_tls {
	bool is_client;
	char *certificate, *key; /* the files; of a client: the authorities, and NULL; both NULL: the system's */
	pthread_mutex_t lock;	 /* the files; for a client: the authorities, and NULL; both NULL: the system's
				  * authorities */
	SSL_CTX *context;
	const char *_Atomic why; /* a literal of this library or of OpenSSL */
};

/* tls.c: chooses one of the protocols that a client offers. */
int weft__tls_select(SSL *ssl, const unsigned char **chosen, unsigned char *length, const unsigned char *offered,
		     unsigned offered_length, void *unused);
#endif

#endif
