/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Files of a directory. openat2 with RESOLVE_BENEATH keeps paths inside of it, and also refuses symbolic links that
 * lead out. If the kernel lacks openat2 (Linux before 5.6, some containers) each part of a path is opened by itself,
 * and no symbolic link is followed.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "http/exchange.h"

struct directory {
	int fd;
	size_t prefix; /* bytes of a request's path in front of the file's */
};

/* ---- types ------------------------------------------------------------------------------------------------------- */

static const struct {
	const char *ending, *type;
} types[] = {
    {"html", "text/html; charset=utf-8"},
    {"htm", "text/html; charset=utf-8"},
    {"css", "text/css; charset=utf-8"},
    {"js", "text/javascript; charset=utf-8"},
    {"mjs", "text/javascript; charset=utf-8"},
    {"json", "application/json"},
    {"txt", "text/plain; charset=utf-8"},
    {"md", "text/markdown; charset=utf-8"},
    {"csv", "text/csv; charset=utf-8"},
    {"xml", "application/xml"},
    {"svg", "image/svg+xml"},
    {"png", "image/png"},
    {"jpg", "image/jpeg"},
    {"jpeg", "image/jpeg"},
    {"gif", "image/gif"},
    {"webp", "image/webp"},
    {"avif", "image/avif"},
    {"ico", "image/x-icon"},
    {"woff", "font/woff"},
    {"woff2", "font/woff2"},
    {"ttf", "font/ttf"},
    {"pdf", "application/pdf"},
    {"wasm", "application/wasm"},
    {"mp3", "audio/mpeg"},
    {"mp4", "video/mp4"},
    {"webm", "video/webm"},
    {"zip", "application/zip"},
    {"gz", "application/gzip"},
};

static const char *type_of(const char *path)
{
	const char *ending = strrchr(path, '.');
	size_t i;

	for (i = 0; ending && !strchr(ending, '/') && i < sizeof types / sizeof *types; i++)
		if (!strcasecmp(ending + 1, types[i].ending))
			return types[i].type;
	return "application/octet-stream";
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

struct opening {
	int directory;
	const char *path;
};

/* A FIFO or a device must not block the open, or become the controlling terminal: find refuses it later. */
enum { MODE = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC };

static int64_t open_parts(const struct opening *o)
{
	char part[NAME_MAX + 1];
	const char *at = o->path;
	int fd = o->directory, next;

	for (;;) {
		size_t length = strcspn(at, "/");

		if (length > NAME_MAX)
			next = -ENAMETOOLONG;
		else {
			memcpy(part, at, length);
			part[length] = 0;
			next = openat(fd, length ? part : ".", (at[length] ? O_PATH | O_CLOEXEC : MODE) | O_NOFOLLOW);
			if (next < 0)
				next = -errno;
		}
		if (fd != o->directory)
			close(fd);
		if (next < 0 || !at[length])
			return next;
		fd = next;
		at += length + 1;
	}
}

static int64_t open_beneath(void *opening)
{
	const struct opening *o = opening;
	struct open_how how = {.flags = MODE, .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS};
	long fd = syscall(SYS_openat2, o->directory, o->path, &how, sizeof how);

	if (fd >= 0)
		return fd;
	return errno == ENOSYS || errno == EPERM ? open_parts(o) : -errno;
}

struct found {
	int fd;
	struct stat status;
};

/* Opens a regular file or a directory. On a helper thread: a disk may be slow. */
static int find(const struct directory *d, const char *path, struct found *f)
{
	struct opening o = {d->fd, path};

	f->fd = (int)weft_call(open_beneath, &o);
	if (f->fd < 0)
		return f->fd;
	if (fstat(f->fd, &f->status) || !(S_ISREG(f->status.st_mode) || S_ISDIR(f->status.st_mode))) {
		weft_close(f->fd);
		return -EACCES;
	}
	return 0;
}

static void close_found(void *found)
{
	weft_close(((struct found *)found)->fd);
}

/* ---- encodings --------------------------------------------------------------------------------------------------- */

static const struct {
	const char *ending, *name;
} encodings[] = {{".br", "br"}, {".zst", "zstd"}, {".gz", "gzip"}};

/* Does an element of Accept-Encoding, "gzip;q=0.5", name this coding, with a weight above 0? */
static bool accepts(weft_http_text_t element, const char *name)
{
	size_t length = strlen(name), i;

	if (element.length < length || strncasecmp(element.data, name, length) != 0)
		return false;
	if (element.length == length)
		return true;
	if (!strchr("; \t", element.data[length]))
		return false;
	for (i = length; i < element.length; i++)
		if (element.data[i] >= '1' && element.data[i] <= '9')
			return true;
	return !memchr(element.data + length, '=', element.length - length);
}

static bool is_accepted(const weft_http_t *x, const char *name)
{
	weft_http_text_t list = weft_http_header(x, "Accept-Encoding"), element;

	while (list.data && weft__next_element(&list, &element))
		if (accepts(element, name))
			return true;
	return false;
}

/* Opens an encoded file beside `path`, if the client accepts its coding. @return the coding's name, or NULL */
static const char *find_encoded(const weft_http_t *x, const struct directory *d, const char *path, struct found *f)
{
	char longer[PATH_MAX + 24];
	size_t i;

	for (i = 0; i < sizeof encodings / sizeof *encodings; i++) {
		struct found other;

		if (!is_accepted(x, encodings[i].name))
			continue;
		snprintf(longer, sizeof longer, "%s%s", path, encodings[i].ending);
		if (find(d, longer, &other))
			continue;
		if (S_ISREG(other.status.st_mode)) {
			close_found(f);
			*f = other;
			return encodings[i].name;
		}
		close_found(&other);
	}
	return NULL;
}

/* ---- conditions and ranges --------------------------------------------------------------------------------------- */

enum { TAG = 64 };

static void tag_of(const struct stat *s, char tag[TAG])
{
	snprintf(tag, TAG, "\"%llx-%llx-%llx.%lx\"", (unsigned long long)s->st_ino, (unsigned long long)s->st_size,
		 (unsigned long long)s->st_mtim.tv_sec, (unsigned long)s->st_mtim.tv_nsec);
}

/* Matches a list of tags, or "*". Weak tags match only if `weak`. */
static bool has_tag(weft_http_text_t list, const char *tag, bool weak)
{
	weft_http_text_t element;

	while (weft__next_element(&list, &element)) {
		if (element.length == 1 && *element.data == '*')
			return true;
		if (weak && element.length > 2 && !memcmp(element.data, "W/", 2))
			element = (weft_http_text_t){element.data + 2, element.length - 2};
		if (element.length == strlen(tag) && !memcmp(element.data, tag, element.length))
			return true;
	}
	return false;
}

static bool is_since(weft_http_text_t date, const struct stat *s)
{
	int64_t seconds;

	return weft__http_parse_date(date, &seconds) && s->st_mtim.tv_sec > seconds;
}

/* RFC 9110 §13.2.2. @return 0: the file is to be sent; 304 or 412 */
static int check_conditions(const weft_http_t *x, const struct stat *s, const char *tag)
{
	weft_http_text_t match = weft_http_header(x, "If-Match"), none = weft_http_header(x, "If-None-Match");
	weft_http_text_t modified = weft_http_header(x, "If-Modified-Since"),
			 unmodified = weft_http_header(x, "If-Unmodified-Since");
	int64_t seconds;

	if (match.data ? !has_tag(match, tag, false) : is_since(unmodified, s))
		return 412;
	if (none.data)
		return has_tag(none, tag, true) ? 304 : 0;
	return weft__http_parse_date(modified, &seconds) && !is_since(modified, s) ? 304 : 0;
}

/* Reads digits; false: none, or too many. */
static bool number(const char **at, const char *end, uint64_t *n)
{
	const char *begin = *at;

	for (*n = 0; *at < end && **at >= '0' && **at <= '9' && *at - begin < 18; ++*at)
		*n = *n * 10 + (uint64_t)(**at - '0');
	return *at > begin && (*at == end || **at < '0' || **at > '9');
}

enum range { WHOLE, PART, UNSATISFIABLE };

/* Parses one range of bytes; `first` and `last` are valid only if the result is PART. Several ranges, or a malformed
 * range, are ignored, as RFC 9110 §14.2 allows. */
static enum range parse_range(weft_http_text_t text, uint64_t size, uint64_t *first, uint64_t *last)
{
	const char *at = text.data, *end = at ? at + text.length : at;
	uint64_t suffix;

	if (!at || text.length < 7 || strncasecmp(at, "bytes=", 6) != 0)
		return WHOLE;
	at += 6;
	if (*at == '-') {
		at++;
		if (!number(&at, end, &suffix) || at != end)
			return WHOLE;
		*first = suffix < size ? size - suffix : 0;
		*last = size - 1;
		return suffix && size ? PART : UNSATISFIABLE;
	}
	if (!number(&at, end, first) || at == end || *at++ != '-')
		return WHOLE;
	*last = UINT64_MAX;
	if (at < end && (!number(&at, end, last) || at != end || *last < *first))
		return WHOLE;
	if (*last >= size)
		*last = size - 1;
	return *first < size ? PART : UNSATISFIABLE;
}

/* If-Range: the client already has a part, and wants a further part only of the same file. */
static bool is_same_for_range(const weft_http_t *x, const struct stat *s, const char *tag)
{
	weft_http_text_t condition = weft_http_header(x, "If-Range");
	int64_t seconds;

	if (!condition.data)
		return true;
	if (weft__http_parse_date(condition, &seconds))
		return seconds == s->st_mtim.tv_sec;
	return condition.length == strlen(tag) && !memcmp(condition.data, tag, condition.length);
}

/* ---- sending ----------------------------------------------------------------------------------------------------- */

static void send_part(weft_http_t *x, const struct found *f, const char *tag)
{
	uint64_t size = (uint64_t)f->status.st_size, offset = 0, length = size, first, last;
	enum range range = WHOLE;
	char text[80];

	if (x->e->parser.method == HTTP_GET && is_same_for_range(x, &f->status, tag))
		range = parse_range(weft_http_header(x, "Range"), size, &first, &last);
	if (range == UNSATISFIABLE) {
		snprintf(text, sizeof text, "bytes */%llu", (unsigned long long)size);
		weft_http_add_header(x, "Content-Range", text);
		weft_http_set_status(x, 416);
		return;
	}
	if (range == PART) {
		snprintf(text, sizeof text, "bytes %llu-%llu/%llu", (unsigned long long)first, (unsigned long long)last,
			 (unsigned long long)size);
		weft_http_add_header(x, "Content-Range", text);
		weft_http_set_status(x, 206);
		offset = first;
		length = last - first + 1;
	}
	(void)weft_http_send_file(x, f->fd, offset, length);
}

static void send_found(weft_http_t *x, const char *path, const struct found *f, const char *encoding)
{
	char tag[TAG], date[HTTP_DATE + 1];
	int status;

	tag_of(&f->status, tag);
	weft__http_format_date(f->status.st_mtim.tv_sec, date);
	status = check_conditions(x, &f->status, tag);
	weft_http_add_header(x, "ETag", tag);
	weft_http_add_header(x, "Last-Modified", date);
	weft_http_add_header(x, "Vary", "Accept-Encoding");
	if (status) {
		weft_http_set_status(x, status);
		return;
	}
	weft_http_add_header(x, "Content-Type", type_of(path));
	weft_http_add_header(x, "Accept-Ranges", "bytes");
	if (encoding)
		weft_http_add_header(x, "Content-Encoding", encoding);
	send_part(x, f, tag);
}

/* A part of the path that begins with a dot is hidden, including "..". */
static bool is_hidden(const char *path)
{
	return *path == '.' || strstr(path, "/.");
}

static int status_of(int error)
{
	switch (error) {
	case -EMFILE:
	case -ENFILE:
	case -ENOMEM:
	case -EAGAIN:
		return 503;
	case -EACCES:
	case -EPERM:
		return 403;
	case -EIO:
		return 500;
	default:
		return 404;
	}
}

static void redirect_to_directory(weft_http_t *x)
{
	weft_http_text_t target = weft_http_target(x), query = weft_http_query(x);
	size_t length = target.length - (query.data ? query.length + 1 : 0);
	char *to = malloc(target.length + 2);

	if (!to) {
		weft__http_answer(x, 503);
		return;
	}
	snprintf(to, target.length + 2, "%.*s/%.*s", (int)length, target.data, query.data ? (int)query.length + 1 : 0,
		 query.data ? query.data - 1 : "");
	/* "//host/" would lead to another server. */
	if (to[0] == '/' && to[1] == '/')
		weft__http_answer(x, 404);
	else {
		weft_http_add_header(x, "Location", to);
		weft__http_answer(x, 301);
	}
	free(to);
}

static void serve_file(weft_http_t *x, void *context)
{
	const struct directory *d = context;
	char path[PATH_MAX + 16];
	const char *encoding;
	struct found f;
	size_t length = x->e->path.length - d->prefix;
	int error = -ENOENT;

	if (length < PATH_MAX && !memchr(x->e->path.data, 0, x->e->path.length)) {
		memcpy(path, x->e->path.data + d->prefix, length);
		strcpy(path + length, !length || path[length - 1] == '/' ? "index.html" : "");
		error = is_hidden(path) || *path == '/' ? -ENOENT : find(d, path, &f);
	}
	if (error) {
		weft__http_answer(x, status_of(error));
		return;
	}
	weft_defer(close_found, &f);
	if (S_ISDIR(f.status.st_mode)) {
		redirect_to_directory(x);
		return;
	}
	encoding = find_encoded(x, d, path, &f);
	send_found(x, path, &f, encoding);
}

static void free_directory(void *directory)
{
	struct directory *d = directory;

	close(d->fd);
	free(d);
}

int weft_http_files(weft_http_server_t *server, const char *prefix, const char *path)
{
	size_t length = prefix ? strlen(prefix) : 0;
	struct directory *d;
	char pattern[256];
	int error;

	if (!length || *prefix != '/' || prefix[length - 1] != '/' || length > sizeof pattern - 16 || !path ||
	    strpbrk(prefix, ":*"))
		return -EINVAL;
	d = malloc(sizeof *d);
	if (!d)
		return -ENOMEM;
	*d = (struct directory){open(path, O_PATH | O_DIRECTORY | O_CLOEXEC), length};
	error = d->fd < 0 ? -errno : 0;
	if (!error) {
		snprintf(pattern, sizeof pattern, "GET %s*path", prefix);
		error = weft__http_add_route(server, pattern, serve_file, d, free_directory);
		if (error)
			close(d->fd);
	}
	if (error)
		free(d);
	return error;
}
