/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Certificates for the tests, which OpenSSL makes when the tests run. */
#ifndef WEFT_TESTS_HTTP_CERTIFICATES_H
#define WEFT_TESTS_HTTP_CERTIFICATES_H

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>

struct identity {
	X509 *certificate;
	EVP_PKEY *key;
};

static void add_extension(X509 *certificate, int kind, const char *value)
{
	X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, NULL, kind, value);

	CHECK(extension && X509_add_ext(certificate, extension, -1));
	X509_EXTENSION_free(extension);
}

/* If `issuer` is NULL, makes an authority. `names`: "DNS:a,IP:127.0.0.1". The certificate is valid since two
 * days ago. */
static struct identity make_identity(const struct identity *issuer, const char *name, const char *names, long days)
{
	static long serial;
	struct identity i = {X509_new(), EVP_EC_gen("P-256")};
	X509_NAME *subject;

	CHECK(i.certificate && i.key && X509_set_version(i.certificate, 2));
	CHECK(ASN1_INTEGER_set(X509_get_serialNumber(i.certificate), ++serial));
	CHECK(X509_gmtime_adj(X509_getm_notBefore(i.certificate), -2 * 86400));
	CHECK(X509_gmtime_adj(X509_getm_notAfter(i.certificate), days * 86400));
	CHECK(X509_set_pubkey(i.certificate, i.key));
	subject = X509_get_subject_name(i.certificate);
	CHECK(X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, (const unsigned char *)name, -1, -1, 0));
	CHECK(X509_set_issuer_name(i.certificate, issuer ? X509_get_subject_name(issuer->certificate) : subject));
	if (issuer)
		add_extension(i.certificate, NID_subject_alt_name, names);
	else
		add_extension(i.certificate, NID_basic_constraints, "critical,CA:TRUE");
	CHECK(X509_sign(i.certificate, issuer ? issuer->key : i.key, EVP_sha256()));
	return i;
}

/* Writes "NAME.pem" and "NAME.key" in the current directory. */
static void write_identity(const struct identity *i, const char *name)
{
	char path[100];
	FILE *file;

	snprintf(path, sizeof path, "%s.pem", name);
	file = fopen(path, "w");
	CHECK(file && PEM_write_X509(file, i->certificate) && !fclose(file));
	snprintf(path, sizeof path, "%s.key", name);
	file = fopen(path, "w");
	CHECK(file && PEM_write_PrivateKey(file, i->key, NULL, NULL, 0, NULL, NULL) && !fclose(file));
}

static void free_identity(struct identity *i)
{
	X509_free(i->certificate);
	EVP_PKEY_free(i->key);
}

/* Makes an identity that signs no certificates, and writes its "NAME.pem" and "NAME.key". */
static void write_server(const struct identity *issuer, const char *name, const char *names, long days)
{
	struct identity i = make_identity(issuer, name, names, days);

	write_identity(&i, name);
	free_identity(&i);
}

#endif
