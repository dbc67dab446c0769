/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Looking up names. With c-ares each look-up has a channel of its own, which one thread at a time uses:
 *
 *   in               step                                                          function
 *   a helper thread  reads resolv.conf and the hosts file, sends the questions     weft__resolve_call
 *   the task         waits for the channel's sockets, its next time-out, and the   weft_resolve_until
 *                    task's own deadline
 *   a system stack   reads an answer, or repeats a question, or asks another       weft__resolve_go_on
 *                    server; also ends the channel
 *
 * A look-up that ends early closes its sockets, and nothing remains that could write into its caller's memory. No
 * thread is held while servers are slow: a thousand look-ups wait in one worker.
 *
 * Rejected: one channel for all look-ups. c-ares reads the hosts file inside of each call, so a lock around the channel
 * would be held during reads of files; and a single question of a channel cannot be withdrawn.
 *
 * libcares is used if dlopen finds it at the first look-up, so that programs need not be linked with it; its header is
 * needed only to compile this file. Without either, getaddrinfo does the whole look-up on the helper thread.
 */
#define _GNU_SOURCE
#include "io/io.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int weft__port_of(const char *service, unsigned *port)
{
	const char *at = service ? service : "";
	unsigned long number = 0;

	if (*at == '-' || *at == '+')
		return -EINVAL;
	for (; *at >= '0' && *at <= '9'; at++)
		number = number <= UINT16_MAX ? number * 10 + (unsigned long)(*at - '0') : number;
	*port = (unsigned)number;
	if (*at || (service && !*service))
		return *service ? -EAGAIN : -EINVAL;
	return number > UINT16_MAX ? -EINVAL : 0;
}

/* A port's number or a service's name. Libraries differ in their results for "80x" and "99999". */
static int find_port(const struct weft__resolve *what, unsigned *port)
{
	int error = weft__port_of(what->service, port);
	struct servent entry, *found = NULL;
	char text[1024];

	if (error != -EAGAIN)
		return error;
	if (getservbyname_r(what->service, what->type == SOCK_DGRAM ? "udp" : "tcp", &entry, text, sizeof text,
			    &found) ||
	    !found)
		return -EINVAL;
	*port = ntohs((uint16_t)found->s_port);
	return 0;
}

/* ---- getaddrinfo ------------------------------------------------------------------------------------------------- */

static int error_of(int code)
{
	switch (code) {
	case EAI_AGAIN:
		return -EAGAIN;
	case EAI_MEMORY:
		return -ENOMEM;
	case EAI_SYSTEM:
		return errno ? -errno : -EIO;
	case EAI_SERVICE:
	case EAI_SOCKTYPE:
	case EAI_BADFLAGS:
		return -EINVAL;
	default:
		return -ENOENT;
	}
}

static int64_t ask_libc(const struct weft__resolve *what, unsigned port)
{
	struct addrinfo wanted = {.ai_socktype = what->type, .ai_flags = AI_ADDRCONFIG}, *list, *a;
	char number[16], *service = what->service ? number : NULL;
	unsigned count = 0;
	int code;

	snprintf(number, sizeof number, "%u", port);
	code = getaddrinfo(what->name, service, &wanted, &list);

	/* With AI_ADDRCONFIG, "::1" is not found if only the loopback has IPv6. */
	if (code == EAI_NONAME || code == EAI_ADDRFAMILY) {
		wanted.ai_flags = 0;
		code = getaddrinfo(what->name, service, &wanted, &list);
	}
	if (code)
		return error_of(code);
	for (a = list; a && count < what->most; a = a->ai_next) {
		what->addresses[count].size = a->ai_addrlen;
		memcpy(&what->addresses[count++].address, a->ai_addr, a->ai_addrlen);
	}
	freeaddrinfo(list);
	return count;
}

/* ---- c-ares ------------------------------------------------------------------------------------------------------ */

#if !defined(WEFT_WITHOUT_CARES) && __has_include(<ares.h>)
#include <ares.h>
#include <dlfcn.h>
#include <sys/epoll.h>
#include <unistd.h>

/* A channel, and its only question. */
struct lookup {
	ares_channel channel;
	struct weft__resolve *what; /* NULL: the caller has its result; see weft__resolve_go_on */
	unsigned port;		    /* the service's port */
	int set;		    /* an epoll set of the channel's sockets, if it has several; else -1 */
	bool answered;
	int64_t result; /* valid if `answered` */
};

static struct {
	bool is_there;
	__typeof__(ares_library_init) *library_init;
	__typeof__(ares_init_options) *init_options;
	__typeof__(ares_set_servers_ports_csv) *set_servers;
	__typeof__(ares_getaddrinfo) *getaddrinfo;
	__typeof__(ares_freeaddrinfo) *freeaddrinfo;
	__typeof__(ares_getsock) *getsock;
	__typeof__(ares_timeout) *timeout;
	__typeof__(ares_process_fd) *process_fd;
	__typeof__(ares_destroy) *destroy;
} ares;

static void load(void)
{
	void *library = dlopen("libcares.so.2", RTLD_NOW | RTLD_LOCAL);
	bool all = library != NULL;

#define FIND(name)                                                                                                     \
	if (all)                                                                                                       \
		all = (ares.name = (__typeof__(ares.name))dlsym(library, "ares_" #name)) != NULL;
	FIND(library_init)
	FIND(init_options)
	FIND(getaddrinfo)
	FIND(freeaddrinfo)
	FIND(getsock)
	FIND(timeout)
	FIND(process_fd)
	FIND(destroy)
#undef FIND
	if (all)
		ares.set_servers = (__typeof__(ares.set_servers))dlsym(library, "ares_set_servers_ports_csv");
	ares.is_there = ares.set_servers && !ares.library_init(ARES_LIB_INIT_ALL);
}

static bool has_ares(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, load);
	return ares.is_there;
}

static int64_t error_of_ares(int status)
{
	switch (status) {
	case ARES_ENOMEM:
		return -ENOMEM;
	case ARES_ESERVICE:
	case ARES_EBADHINTS:
	case ARES_EBADFLAGS:
	case ARES_EBADFAMILY:
		return -EINVAL;
	case ARES_ESERVFAIL:
	case ARES_EREFUSED:
	case ARES_ENOTIMP:
	case ARES_ECONNREFUSED:
	case ARES_ETIMEOUT:
	case ARES_EBADRESP:
	case ARES_EFORMERR:
	case ARES_EFILE:
	case ARES_EOF:
		return -EAGAIN;
	default:
		return -ENOENT;
	}
}

static void set_port(weft_address_t *address, unsigned port)
{
	if (address->address.ss_family == AF_INET6)
		((struct sockaddr_in6 *)&address->address)->sin6_port = htons((uint16_t)port);
	else
		((struct sockaddr_in *)&address->address)->sin_port = htons((uint16_t)port);
}

static int64_t copy_addresses(const struct lookup *l, const struct ares_addrinfo *found)
{
	weft_address_t *to = l->what->addresses, *end = to + l->what->most;
	const struct ares_addrinfo_node *a;

	for (a = found->nodes; a && to < end; a = a->ai_next, to++) {
		to->size = a->ai_addrlen;
		memcpy(&to->address, a->ai_addr, a->ai_addrlen);
		set_port(to, l->port);
	}
	return to - l->what->addresses;
}

/* Called by c-ares exactly once, even if the channel ends before the answer, or between addresses of IPv4 and of
 * IPv6. */
static void answer(void *argument, int status, int timeouts, struct ares_addrinfo *found)
{
	struct lookup *l = argument;

	(void)timeouts;
	if (l->what) {
		l->answered = true;
		l->result = status ? error_of_ares(status) : copy_addresses(l, found);
	}
	if (found)
		ares.freeaddrinfo(found);
}

/* Uses the time-out of newer versions of c-ares, 14 seconds in all; older versions have 75. RES_OPTIONS overrides it,
 * for example "retrans:5000 retry:4". */
static int64_t open_channel(struct lookup *l)
{
	const int mask = getenv("RES_OPTIONS") ? 0 : ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES;
	const char *servers = getenv("WEFT_DNS_SERVERS");
	struct ares_options patience = {.timeout = 2000, .tries = 3};
	int status = ares.init_options(&l->channel, &patience, mask);

	if (!status && servers && ares.set_servers(l->channel, servers)) {
		ares.destroy(l->channel);
		return -EINVAL;
	}
	return status ? error_of_ares(status) : 0;
}

static void close_set(struct lookup *l)
{
	if (l->set >= 0)
		close(l->set);
	l->set = -1;
}

static void end(struct weft__resolve *what, int64_t result)
{
	struct lookup *l = what->lookup;

	what->result = result;
	what->lookup = NULL;
	l->what = NULL;
	close_set(l);
	if (!WEFT_CANARY(resolve_keeps_sockets))
		ares.destroy(l->channel);
	free(l);
}

/* The macros ARES_GETSOCK_READABLE and _WRITABLE shift an int into its sign. */
static uint32_t events_of(unsigned bits, unsigned i)
{
	return (bits >> i & 1 ? POLLIN : 0) | (bits >> (i + ARES_GETSOCK_MAXNUM) & 1 ? POLLOUT : 0);
}

/* There are several sockets if a second server was asked, or if a long answer comes by TCP. */
static int gather(struct lookup *l, const ares_socket_t *sockets, unsigned bits)
{
	struct epoll_event event;
	unsigned i;

	l->set = weft__own_fd(epoll_create1(EPOLL_CLOEXEC));
	for (i = 0; l->set >= 0 && i < ARES_GETSOCK_MAXNUM; i++) {
		event = (struct epoll_event){events_of(bits, i), {.fd = sockets[i]}};
		if (event.events && epoll_ctl(l->set, EPOLL_CTL_ADD, sockets[i], &event))
			close_set(l);
	}
	return l->set >= 0 ? l->set : -errno;
}

/* The descriptor that the task is to wait for; a negative errno: there is none. */
static int socket_of(struct lookup *l, int *events)
{
	ares_socket_t sockets[ARES_GETSOCK_MAXNUM];
	unsigned bits = (unsigned)ares.getsock(l->channel, sockets, ARES_GETSOCK_MAXNUM), i;
	int only = -EAGAIN;

	for (i = 0; i < ARES_GETSOCK_MAXNUM; i++) {
		if (!events_of(bits, i))
			continue;
		if (only >= 0) {
			*events = POLLIN;
			return gather(l, sockets, bits);
		}
		only = sockets[i];
		*events = (int)events_of(bits, i);
	}
	return only;
}

/* The time of c-ares' next time-out, plus a microsecond because its clock may be coarser; or the deadline. */
static uint64_t wait_until(struct lookup *l, uint64_t deadline)
{
	struct timeval time, *left = ares.timeout(l->channel, NULL, &time);
	uint64_t until;

	if (!left || WEFT_CANARY(resolve_waits_for_ever))
		return deadline;
	until = weft__clock() + (uint64_t)left->tv_sec * WEFT__NANOSECONDS + (uint64_t)left->tv_usec * 1000 + 1000;
	return until < deadline ? until : deadline;
}

/* Ends the look-up, or sets up its next wait. */
static void prepare_wait(struct weft__resolve *what)
{
	struct lookup *l = what->lookup;

	if (l->answered) {
		end(what, l->result);
		return;
	}
	what->fd = socket_of(l, &what->events);
	what->until = wait_until(l, what->deadline);
	if (what->fd < 0)
		end(what, what->fd);
}

static int64_t ask_ares(struct weft__resolve *what, unsigned port)
{
	const struct ares_addrinfo_hints wanted = {.ai_socktype = what->type, .ai_flags = ARES_AI_ENVHOSTS};
	struct lookup *l = calloc(1, sizeof *l);
	int64_t error = l ? 0 : -ENOMEM;

	if (!error)
		error = open_channel(l);
	if (error) {
		free(l);
		return error;
	}
	l->set = -1;
	l->what = what;
	l->port = port;
	what->lookup = l;
	what->result = -EINPROGRESS;
	ares.getaddrinfo(l->channel, what->name, NULL, &wanted, answer, l);
	prepare_wait(what);
	return what->result;
}

static void process(struct lookup *l, int fd, int events)
{
	const int ends = POLLERR | POLLHUP | POLLNVAL;

	ares.process_fd(l->channel, events & (POLLIN | ends) ? fd : ARES_SOCKET_BAD,
			events & (POLLOUT | ends) ? fd : ARES_SOCKET_BAD);
}

static void process_set(struct lookup *l)
{
	struct epoll_event events[ARES_GETSOCK_MAXNUM];
	int i, count = epoll_wait(l->set, events, ARES_GETSOCK_MAXNUM, 0);

	for (i = 0; i < count; i++)
		process(l, events[i].data.fd, (int)events[i].events);
	if (count <= 0)
		process(l, ARES_SOCKET_BAD, 0);
	close_set(l);
}

/* `what->events` is the result of the wait. Even after an error an answer may have come, which is used. */
static void process_wait(struct weft__resolve *what)
{
	struct lookup *l = what->lookup;

	if (l->set >= 0)
		process_set(l);
	else
		process(l, what->fd, what->events > 0 ? what->events : POLLIN);
}

static bool is_too_late(const struct weft__resolve *what)
{
	if (what->events != -ETIMEDOUT)
		return what->events < 0;
	return what->deadline != WEFT_NEVER && weft__clock() >= what->deadline;
}

void *weft__resolve_go_on(void *argument)
{
	struct weft__resolve *what = argument;
	struct weft__worker *w = weft__worker();
	struct lookup *l = what->lookup;
	bool in_io = w && w->in_io;

	/* c-ares must call libc's functions, even if weft/posix.h's functions interpose them. */
	if (w)
		w->in_io = true;
	l->what = what; /* the task's frame, which may have moved */
	process_wait(what);
	if (!l->answered && is_too_late(what))
		end(what, what->events);
	else
		prepare_wait(what);
	if (w)
		w->in_io = in_io;
	return NULL;
}

#else

static bool has_ares(void)
{
	return false;
}

static int64_t ask_ares(struct weft__resolve *what, unsigned port)
{
	(void)what, (void)port;
	return -ENOSYS;
}

void *weft__resolve_go_on(void *argument)
{
	(void)argument;
	return NULL;
}
#endif

/* ---- the choice of a resolver ------------------------------------------------------------------------------------ */

/* An address in digits, or -EAGAIN. */
static int64_t read_address(const struct weft__resolve *what, unsigned port)
{
	weft_address_t address;

	if ((what->type != SOCK_STREAM && what->type != SOCK_DGRAM) || !what->name ||
	    !weft__number_address(what->name, port, &address))
		return -EAGAIN;
	if (what->most)
		what->addresses[0] = address;
	return what->most > 0;
}

int64_t weft__resolve_digits(const struct weft__resolve *what)
{
	unsigned port;
	int error = weft__port_of(what->service, &port);

	return error ? error : read_address(what, port);
}

static bool is_forced(const char *which)
{
	const char *name = getenv("WEFT_DNS");

	return name && !strcmp(name, which);
}

int64_t weft__resolve_call(void *argument)
{
	struct weft__resolve *what = argument;
	unsigned port = 0;
	int64_t result = find_port(what, &port);

	if (!result)
		result = read_address(what, port);
	if (result != -EAGAIN)
		return result;
	/* Without a name getaddrinfo returns addresses to listen at, or of this machine: it asks no server. */
	if (!what->name || is_forced("libc"))
		return ask_libc(what, port);
	if (has_ares())
		return ask_ares(what, port);
	return is_forced("ares") ? -ENOSYS : ask_libc(what, port);
}
