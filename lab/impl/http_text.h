/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* http_text.h: the body that each server of experiment B3 sends, and that the load generator expects. */
#ifndef HTTP_TEXT_H
#define HTTP_TEXT_H

static const char http_body[] = "Hello, World!";
enum { HTTP_BODY = sizeof(http_body) - 1 };

#endif /* HTTP_TEXT_H */
