/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Twins of libc's calls: other activities run while a call waits; results and errno follow POSIX; in plain code they
 * are libc's calls. With "task" and a number: in a task of a runtime with that number of workers. */
#define _GNU_SOURCE
#include <weft/charcoal.h>
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#define assert(x)                                                                                                      \
	do {                                                                                                           \
		if (!(x)) {                                                                                            \
			fprintf(stderr, "%s:%d: %s errno %d\n", __FILE__, __LINE__, #x, errno);                        \
			abort();                                                                                       \
		}                                                                                                      \
	} while (0)
static long ticks;
static int stop;
static void pipes(void)
{
	int p[2];
	char text[16];
	activity_t a;
	int got = 0;
	assert(!pipe(p));
	activate(&a)
	{
		got = read(p[0], text, sizeof text);
	}
	yield_now();
	yield_now();
	assert(!got);
	assert(write(p[1], "hello", 5) == 5);
	assert(!activity_wait(&a));
	assert(got == 5 && !memcmp(text, "hello", 5));
	char *big = malloc(1 << 20), *back = malloc(1 << 20);
	for (int i = 0; i < 1 << 20; i++)
		big[i] = i * 7;
	long n = 0;
	activate(&a)
	{
		ssize_t r;
		while ((r = read(p[0], back + n, 4000)) > 0)
			n += r;
		assert(r == 0);
	}
	assert(write(p[1], big, 1 << 20) == 1 << 20);
	close(p[1]);
	assert(!activity_wait(&a));
	assert(n == 1 << 20 && !memcmp(big, back, n));
	free(big);
	free(back);
	close(p[0]);
	assert(!pipe(p));
	assert(!fcntl(p[0], F_SETFL, O_NONBLOCK));
	errno = 0;
	assert(read(p[0], text, 1) == -1 && errno == EAGAIN);
	close(p[0]);
	close(p[1]);
	errno = 0;
	assert(read(-1, text, 1) == -1 && errno == EBADF);
	assert(!pipe(p));
	struct iovec v[2] = {{text, 2}, {text + 4, 3}};
	activate(&a)
	{
		got = readv(p[0], v, 2);
	}
	yield_now();
	assert(write(p[1], "abcde", 5) == 5);
	activity_wait(&a);
	assert(got == 5 && text[0] == 'a' && text[4] == 'c' && text[6] == 'e');
	close(p[0]);
	close(p[1]);
}
static void cancelled(void)
{
	int p[2];
	char text[16];
	activity_t a;
	int after = 0;
	assert(!pipe(p));
	activate(&a)
	{
		(void)!read(p[0], text, sizeof text);
		after = 1;
	}
	yield_now();
	yield_now();
	yield_now();
	activity_cancel(&a);
	assert(activity_wait(&a) == -ECANCELED);
	assert(!after);
	activate(&a)
	{
		sleep(1000);
		after = 1;
	}
	yield_now();
	yield_now();
	yield_now();
	activity_cancel(&a);
	assert(activity_wait(&a) == -ECANCELED);
	assert(!after);
	activate(&a)
	{
		struct pollfd f = {p[0], POLLIN, 0};
		poll(&f, 1, 1000000);
		after = 1;
	}
	yield_now();
	yield_now();
	activity_sleep_ns(1000000);
	activity_cancel(&a);
	assert(activity_wait(&a) == -ECANCELED);
	assert(!after);
	assert(write(p[1], "x", 1) == 1);
	assert(read(p[0], text, 1) == 1);
	close(p[0]);
	close(p[1]);
}
static int port;
static void sockets(void)
{
	int l = socket(AF_INET, SOCK_STREAM, 0);
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	socklen_t size = sizeof at;
	assert(!bind(l, (struct sockaddr *)&at, sizeof at));
	assert(!listen(l, 64));
	getsockname(l, (struct sockaddr *)&at, &size);
	port = at.sin_port;
	activity_t server, clients[10];
	int served = 0, done = 0;
	activate(&server)
	{
		activity_t each[10];
		for (int i = 0; i < 10; i++) {
			int fd = accept(l, NULL, NULL);
			assert(fd >= 0);
			activate(&each[i], fd)
			{
				char b[100];
				ssize_t n;
				while ((n = read(fd, b, sizeof b)) > 0)
					assert(write(fd, b, n) == n);
				close(fd);
				served++;
			}
		}
		for (int i = 0; i < 10; i++)
			activity_wait(&each[i]);
	}
	for (int i = 0; i < 10; i++)
		activate(&clients[i], i)
		{
			int fd = socket(AF_INET, SOCK_STREAM, 0);
			char b[100], c[100];
			assert(!connect(fd, (struct sockaddr *)&at, sizeof at));
			for (int k = 0; k < 20; k++) {
				int n = snprintf(b, sizeof b, "client %d %d", i, k);
				assert(send(fd, b, n, 0) == n);
				assert(recv(fd, c, n, MSG_WAITALL) == n);
				assert(!memcmp(b, c, n));
			}
			close(fd);
			done++;
		}
	for (int i = 0; i < 10; i++)
		assert(!activity_wait(&clients[i]));
	assert(!activity_wait(&server));
	assert(done == 10 && served == 10);
	close(l);
	int s[2];
	assert(!socketpair(AF_UNIX, SOCK_DGRAM, 0, s));
	char t[10];
	activity_t a;
	int n = 0;
	activate(&a)
	{
		struct sockaddr_storage from;
		socklen_t len = sizeof from;
		n = recvfrom(s[0], t, sizeof t, 0, (void *)&from, &len);
	}
	yield_now();
	yield_now();
	assert(sendto(s[1], "abc", 3, 0, NULL, 0) == 3);
	activity_wait(&a);
	assert(n == 3);
	struct timeval limit = {0, 20000};
	setsockopt(s[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
	errno = 0;
	assert(recv(s[0], t, 1, 0) == -1 && errno == EAGAIN);
	close(s[0]);
	close(s[1]);
}
static void others(void)
{
	activity_t a;
	struct timespec ms = {0, 20000000};
	ticks = 0;
	stop = 0;
	activate(&a)
	{
		while (!stop) {
			ticks++;
			activity_sleep_ns(1000000);
		}
	}
	assert(!nanosleep(&ms, NULL));
	assert(!usleep(10000));
	assert(!clock_nanosleep(CLOCK_MONOTONIC, 0, &ms, NULL));
	assert(ticks > 0);
	pid_t c = fork();
	if (!c) {
		usleep(20000);
		_exit(7);
	}
	int status;
	ticks = 0;
	assert(waitpid(c, &status, 0) == c);
	assert(WEXITSTATUS(status) == 7);
	assert(ticks > 0);
	c = fork();
	if (!c) {
		usleep(20000);
		_exit(8);
	}
	ticks = 0;
	assert(wait(&status) == c);
	assert(WEXITSTATUS(status) == 8);
	assert(ticks > 0);
	errno = 0;
	assert(wait(&status) == -1 && errno == ECHILD);
	struct addrinfo *list = NULL, hints = {.ai_socktype = SOCK_STREAM};
	assert(!getaddrinfo("localhost", "80", &hints, &list));
	assert(list);
	char host[256], service[32];
	assert(
	    !getnameinfo(list->ai_addr, list->ai_addrlen, host, sizeof host, service, sizeof service, NI_NUMERICSERV));
	assert(!strcmp(service, "80"));
	freeaddrinfo(list);
	assert(getaddrinfo("no.such.name.invalid", "80", &hints, &list) != 0);
	int p[2], q[2];
	assert(!pipe(p) && !pipe(q));
	struct pollfd f[2] = {{p[0], POLLIN, 0}, {q[0], POLLIN, 0}};
	ticks = 0;
	assert(poll(f, 2, 20) == 0);
	assert(ticks > 0);
	assert(poll(f, 1, 20) == 0);
	activity_t b;
	activate(&b)
	{
		activity_sleep_ns(5000000);
		assert(write(q[1], "x", 1) == 1);
	}
	assert(poll(f, 2, -1) == 1 && f[1].revents == POLLIN);
	activity_wait(&b);
	fd_set in;
	FD_ZERO(&in);
	FD_SET(p[0], &in);
	FD_SET(q[0], &in);
	struct timeval limit = {1, 0};
	assert(select(q[0] + 1, &in, NULL, NULL, &limit) == 1);
	assert(FD_ISSET(q[0], &in));
	char name[] = "/tmp/actXXXXXX";
	int fd = mkstemp(name);
	assert(write(fd, "0123456789", 10) == 10);
	char t[10];
	assert(pread(fd, t, 5, 3) == 5 && !memcmp(t, "34567", 5));
	assert(pwrite(fd, "ab", 2, 0) == 2);
	assert(!fsync(fd));
	assert(!fdatasync(fd));
	int e = open(name, O_RDONLY);
	assert(read(e, t, 10) == 10 && t[0] == 'a');
	assert(!flock(fd, LOCK_EX));
	int locked = 0;
	activate(&b)
	{
		assert(!flock(e, LOCK_EX));
		locked = 1;
	}
	activity_sleep_ns(3000000);
	assert(!locked);
	assert(!flock(fd, LOCK_UN));
	activity_wait(&b);
	assert(locked);
	close(e);
	close(fd);
	unlink(name);
	errno = 0;
	assert(open("/no/such", O_RDONLY) == -1 && errno == ENOENT);
	assert(!mkfifo(name, 0600)); /* nobody else's: several of these tests run at once */
	int got = 0;
	activate(&b)
	{
		int x = open(name, O_RDONLY);
		assert(x >= 0);
		got = read(x, t, 1);
		close(x);
	}
	yield_now();
	activity_sleep_ns(2000000);
	int o = open(name, O_WRONLY);
	assert(o >= 0);
	assert(write(o, "z", 1) == 1);
	close(o);
	activity_wait(&b);
	assert(got == 1);
	unlink(name);
	stop = 1;
	activity_wait(&a);
	no_yield
	{
		usleep(100);
		assert(write(p[1], "x", 1) == 1);
		assert(read(p[0], t, 1) == 1);
	}
	close(p[0]);
	close(p[1]);
	close(q[0]);
	close(q[1]);
}
static int run(void)
{
	pipes();
	cancelled();
	sockets();
	others();
	return 0;
}
static void *in_task(void *x)
{
	return run(), x;
}
static void *task(void *x)
{
	assert(!weft_activity_run(NULL, in_task, NULL, NULL));
	return x;
}
int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "task")) {
		weft_rt_config_t c = {.workers = argc > 2 ? atoi(argv[2]) : 1};
		assert(!weft_rt_run(&c, task, NULL, NULL));
	} else
		assert(!weft_activity_run(NULL, in_task, NULL, NULL));
	return 0;
}
