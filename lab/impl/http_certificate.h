/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* http_certificate.h: the certificate of a server of experiment B3 that speaks TLS. */
#ifndef HTTP_CERTIFICATE_H
#define HTTP_CERTIFICATE_H

#include "io_server.h"

/* Writes FOLDER/certificate.pem and FOLDER/key.pem: an elliptic curve key, which most servers use. */
static inline void http_make_certificate(const char *folder)
{
	char command[400];

	snprintf(command, sizeof(command),
		 "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 -subj /CN=127.0.0.1 "
		 "-out %1$s/certificate.pem -keyout %1$s/key.pem 2>%1$s/errors",
		 folder);
	if (system(command))
		lab_cannot("needs openssl: apt-get install --no-install-recommends openssl");
}

#endif /* HTTP_CERTIFICATE_H */
