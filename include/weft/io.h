/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * weft/io.h: input and output in straight lines. A call that would block suspends its task, and nothing else.
 *
 *   static void *serve(void *listener)
 *   {
 *           char text[4096];
 *           int fd = weft_accept(*(int *)listener, NULL, NULL, 0);
 *           ssize_t n;
 *
 *           while ((n = weft_read(fd, text, sizeof text)) > 0)
 *                   if (weft_write_all(fd, text, (size_t)n) < 0)
 *                           break;
 *           weft_close(fd);
 *           return NULL;
 *   }
 *
 * Design
 *  1. The names are POSIX's with weft_ in front. A call returns its result or a negative errno, never through errno:
 *     compilers keep errno's address across a suspension, and the task may continue in another thread.
 *  2. Each call is a record (weft_io_t) in the caller's frame, performed as one effect, `io`. A handler between a task
 *     and its runtime can count, limit, record or replace it; without a handler the runtime does the operation.
 *  3. Two back ends under one contract. With io_uring operations are submitted to the kernel, which completes them.
 *     With epoll operations are tried, and tried again when the kernel says that they can be done. The runtime chooses
 *     a back end at its first operation; WEFT_IO=epoll or WEFT_IO=io_uring in the environment forces the choice. If
 *     io_uring is not available, a line on standard error gives the reason, and the runtime uses epoll.
 *  4. Nothing is lost. If a deadline or a cancellation is to end an operation, the runtime withdraws it first; if the
 *     operation was complete by then, the call returns its result. The kernel writes into a buffer only while the call
 *     lasts.
 *  5. A read of a ready descriptor takes one system call, and no call is needed to find that there is no more data: a
 *     short read has emptied its descriptor, and the next read waits at once.
 *  6. Operations that can only block (files without io_uring) run on a helper thread. c-ares looks up names if libcares
 *     is installed; otherwise getaddrinfo does it on a helper thread. WEFT_DNS=ares or WEFT_DNS=libc in the environment
 *     forces the choice.
 *  7. Outside of tasks every call blocks its thread, with the same results. In weft_blocking, too, a call blocks its
 *     thread: weft_close ends a weft_read there, but a cancellation does not. Give it a deadline, or call it outside of
 *     weft_blocking.
 * Target: an echo server handles 0.93 of the requests per second of CPU time of a raw loop on the same back end.
 *
 * Unless its comment says otherwise, every function here may suspend its task; may be called on any stack, by tasks and
 * threads; and must not be called in signal handlers. The caller owns the buffers, which must stay in place until the
 * call returns. Each function has a form that ends with _until, and takes a deadline: a time of weft_now(), or
 * WEFT_NEVER; 0: do not wait at all. In addition to the results in POSIX all functions return
 *   -ETIMEDOUT  the deadline has passed, and nothing was done
 *   -ECANCELED  nothing was done, because a scope that the task has open was cancelled, or weft_close closed the
 *               descriptor meanwhile; if the task itself was cancelled, the exception weft_cancelled is performed in
 *               place of a return
 *   -ENOMEM     no memory for the runtime's record of the descriptor; nothing was done
 *   -EMFILE, -ENFILE  the runtime's first operation needs descriptors of its own; nothing was done
 * Descriptors that are used here must be closed by weft_close (or by weft/posix.h's close). An operation keeps its
 * descriptors open until it ends; if a descriptor is closed in another way, its number may mean another file by then.
 * To wait for a descriptor that other code may close, use weft_poll.
 *
 * Source of the ideas: results in place of errno, the Linux kernel's interface and liburing; readiness that is
 * remembered, Tokio; a deadline for each call, libdill; operations as an effect, OCaml's Eio.
 */
#ifndef WEFT_IO_H
#define WEFT_IO_H

#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <weft/sched.h>
#include <weft/thread.h>

#if !defined(__clang__)
#pragma GCC system_header
#endif

struct mmsghdr; /* <sys/socket.h> defines it for _GNU_SOURCE only */

WEFT_EXTERN_C_BEGIN

/* ---- bytes ------------------------------------------------------------------------------------------------------- */

/** Like read and write. Returns the number of bytes; 0 from read: the end. A read of a file is short only at the file's
 * end. A write to a socket or pipe without a reader returns -EPIPE; only a pipe also raises SIGPIPE, unless the program
 * ignores it. The same is true for weft_sendfile and weft_splice. Of an eventfd, timerfd, signalfd or inotify, 0 bytes
 * are read and written without an error. */
WEFT__INLINE ssize_t weft_read_until(int fd, void *data, size_t length, uint64_t deadline);
WEFT__INLINE ssize_t weft_read(int fd, void *data, size_t length);
WEFT__INLINE ssize_t weft_write_until(int fd, const void *data, size_t length, uint64_t deadline);
WEFT__INLINE ssize_t weft_write(int fd, const void *data, size_t length);

/** Like pread and pwrite: at an offset of a file. */
WEFT__INLINE ssize_t weft_pread_until(int fd, void *data, size_t length, int64_t offset, uint64_t deadline);
WEFT__INLINE ssize_t weft_pread(int fd, void *data, size_t length, int64_t offset);
WEFT__INLINE ssize_t weft_pwrite_until(int fd, const void *data, size_t length, int64_t offset, uint64_t deadline);
WEFT__INLINE ssize_t weft_pwrite(int fd, const void *data, size_t length, int64_t offset);

/** Like preadv and pwritev: into, or out of, several buffers. `offset` -1: at the descriptor's position. */
WEFT__INLINE ssize_t weft_preadv_until(int fd, const struct iovec *parts, int count, int64_t offset, uint64_t deadline);
WEFT__INLINE ssize_t weft_preadv(int fd, const struct iovec *parts, int count, int64_t offset);
WEFT__INLINE ssize_t weft_pwritev_until(int fd, const struct iovec *parts, int count, int64_t offset,
					uint64_t deadline);
WEFT__INLINE ssize_t weft_pwritev(int fd, const struct iovec *parts, int count, int64_t offset);

/**
 * Read or write until all bytes are transferred, or the end or an error is reached. The deadline is for the whole call.
 * @return the number of bytes that were read or written; less than `length` only at the end of the input. After an
 *   error, a deadline or a cancellation in the middle: the bytes so far, if there are any, and the next call returns
 *   the error
 */
__attribute__((unused)) static ssize_t weft_read_all_until(int fd, void *data, size_t length, uint64_t deadline);
WEFT__INLINE ssize_t weft_read_all(int fd, void *data, size_t length);
__attribute__((unused)) static ssize_t weft_write_all_until(int fd, const void *data, size_t length, uint64_t deadline);
WEFT__INLINE ssize_t weft_write_all(int fd, const void *data, size_t length);

/**
 * Like weft_write_all, from several buffers. `parts` is changed: the buffers that remain in it have not been written.
 * Source of the idea: Rust's write_all_vectored.
 */
__attribute__((unused)) static ssize_t weft_writev_all_until(int fd, struct iovec *parts, int count, uint64_t deadline);
WEFT__INLINE ssize_t weft_writev_all(int fd, struct iovec *parts, int count);

/** Like sendfile: from a file at *offset, which is advanced, to a socket. Returns the number of bytes, at most
 * `length`. */
WEFT__INLINE ssize_t weft_sendfile_until(int to, int from, int64_t *offset, size_t length, uint64_t deadline);
WEFT__INLINE ssize_t weft_sendfile(int to, int from, int64_t *offset, size_t length);

/** Like weft_write_all, from a file: sends until `length` bytes are sent, the file ends, or an error occurs. */
__attribute__((unused)) static ssize_t weft_sendfile_all_until(int to, int from, int64_t *offset, size_t length,
							       uint64_t deadline);
WEFT__INLINE ssize_t weft_sendfile_all(int to, int from, int64_t *offset, size_t length);

/** Like splice: one of the descriptors is a pipe, and neither has an offset. */
WEFT__INLINE ssize_t weft_splice_until(int from, int to, size_t length, unsigned flags, uint64_t deadline);
WEFT__INLINE ssize_t weft_splice(int from, int to, size_t length, unsigned flags);

/* ---- sockets ----------------------------------------------------------------------------------------------------- */

/** Like recv and send. */
WEFT__INLINE ssize_t weft_recv_until(int fd, void *data, size_t length, int flags, uint64_t deadline);
WEFT__INLINE ssize_t weft_recv(int fd, void *data, size_t length, int flags);
WEFT__INLINE ssize_t weft_send_until(int fd, const void *data, size_t length, int flags, uint64_t deadline);
WEFT__INLINE ssize_t weft_send(int fd, const void *data, size_t length, int flags);

/** Like recvmsg and sendmsg: with addresses and descriptors. */
WEFT__INLINE ssize_t weft_recvmsg_until(int fd, struct msghdr *message, int flags, uint64_t deadline);
WEFT__INLINE ssize_t weft_recvmsg(int fd, struct msghdr *message, int flags);
WEFT__INLINE ssize_t weft_sendmsg_until(int fd, const struct msghdr *message, int flags, uint64_t deadline);
WEFT__INLINE ssize_t weft_sendmsg(int fd, const struct msghdr *message, int flags);

/** Like recvfrom and sendto. */
WEFT__INLINE ssize_t weft_recvfrom_until(int fd, void *data, size_t length, int flags, struct sockaddr *from,
					 socklen_t *size, uint64_t deadline);
WEFT__INLINE ssize_t weft_recvfrom(int fd, void *data, size_t length, int flags, struct sockaddr *from,
				   socklen_t *size);
WEFT__INLINE ssize_t weft_sendto_until(int fd, const void *data, size_t length, int flags, const struct sockaddr *to,
				       socklen_t size, uint64_t deadline);
WEFT__INLINE ssize_t weft_sendto(int fd, const void *data, size_t length, int flags, const struct sockaddr *to,
				 socklen_t size);

/** Like recvmmsg and sendmmsg: many datagrams by one system call. Returns the number of datagrams that were received
 * (all that are there), or sent. Waits for the first datagram only. */
WEFT__INLINE int weft_recvmmsg_until(int fd, struct mmsghdr *messages, unsigned count, int flags, uint64_t deadline);
WEFT__INLINE int weft_recvmmsg(int fd, struct mmsghdr *messages, unsigned count, int flags);
WEFT__INLINE int weft_sendmmsg_until(int fd, struct mmsghdr *messages, unsigned count, int flags, uint64_t deadline);
WEFT__INLINE int weft_sendmmsg(int fd, struct mmsghdr *messages, unsigned count, int flags);

/**
 * Like accept4, always close-on-exec. If the process or the system has no descriptor left (EMFILE, ENFILE), the call
 * accepts the oldest connection of the queue on a reserve descriptor and closes it, so that its client need not wait;
 * then the call continues after a pause. So a loop around weft_accept survives EMFILE. If the deadline passes first,
 * the call returns -EMFILE or -ENFILE. The loop should also ignore -ENOMEM, -ENOBUFS and the errors of one connection:
 * -ECONNABORTED, -EPROTO, -ENETDOWN, -ENETUNREACH, -EHOSTDOWN, -EHOSTUNREACH and -ENONET.
 * @param address, size  written: the other side's address; may be NULL
 */
WEFT__INLINE int weft_accept_until(int fd, struct sockaddr *address, socklen_t *size, int flags, uint64_t deadline);
WEFT__INLINE int weft_accept(int fd, struct sockaddr *address, socklen_t *size, int flags);

/** Like connect. After a deadline or a cancellation the socket can only be closed. */
WEFT__INLINE int weft_connect_until(int fd, const struct sockaddr *address, socklen_t size, uint64_t deadline);
WEFT__INLINE int weft_connect(int fd, const struct sockaddr *address, socklen_t size);

/** Wait until a descriptor of any kind is ready: poll for one descriptor. Returns the events that are ready (POLLIN …),
 * never 0. Other code may close the descriptor while nobody waits for it. A file that does not support poll is always
 * ready. */
WEFT__INLINE int weft_poll_until(int fd, int events, uint64_t deadline);
WEFT__INLINE int weft_poll(int fd, int events);

/** Like socket, socketpair and pipe2, always close-on-exec, in the blocking mode that the back end prefers. They do not
 * wait. */
WEFT_API int weft_socket(int domain, int type, int protocol);
WEFT_API int weft_socketpair(int domain, int type, int protocol, int fds[2]);
WEFT_API int weft_pipe(int fds[2]);

/** Like shutdown. Does not wait. */
WEFT_API int weft_shutdown(int fd, int how);

/**
 * Close a descriptor. Any task of any runtime, and any thread, may call it. Operations that use the descriptor, also as
 * their second descriptor, end with -ECANCELED, unless they are complete. The other side sees the end at once. The
 * kernel can reuse the number when the last of these operations has ended, so that no operation continues with the next
 * file of that number. Does not wait.
 * @return 0, or the error of close: -EBADF, also if it is being closed already; -EIO; the descriptor is closed in any
 *   case
 */
WEFT_API int weft_close(int fd);

/** Flags of weft_listen. */
enum {
	WEFT_LISTEN_SHARED =
	    1, /**< SO_REUSEPORT: several listeners, in several threads or processes, have the same address */
	WEFT_LISTEN_UDP = 2,	/**< a datagram socket, bound to the address */
	WEFT_LISTEN_V6ONLY = 4, /**< "::" means IPv6 only */
};

/**
 * Make a listening socket.
 * @param address  "127.0.0.1", "::1"; NULL: all addresses, of IPv6 and IPv4 if the system has both; a path that begins
 *                 with "/" or ".", or a name that begins with "@" (abstract): a Unix socket, and the port is ignored.
 *                 Names are not looked up
 * @param port     0: the system chooses; see weft_port
 * @param backlog  0: as many as the system allows
 * @return a descriptor; -EADDRINUSE, -EACCES, -EINVAL: it is no address, …
 * The address may be used again at once after the socket is closed (SO_REUSEADDR). A path is replaced only if it is a
 * socket that no process has bound any more. A file, a symbolic link, and the socket of a server that does not listen
 * yet stay, and the call returns -EADDRINUSE. While a socket is replaced its directory is locked (flock). Does not wait
 * for I/O.
 */
WEFT_API int weft_listen(const char *address, unsigned port, int backlog, unsigned flags);

/**
 * Set TCP_NODELAY: small writes are sent at once, and do not wait until the other side has acknowledged earlier data.
 * Sockets that weft_dial connects have it, and so do sockets that are accepted from a listener of weft_listen; sockets
 * of weft_socket do not, as POSIX says. Without it many small writes make fewer packets.
 * @return 0, or a negative errno: -EOPNOTSUPP: no TCP socket. Does not wait
 * Source of the idea: Go's net.TCPConn.
 */
WEFT_API int weft_set_nodelay(int fd, bool on);

/** Returns the port that a socket is bound to, or a negative errno. Does not wait. */
WEFT_API int weft_port(int fd);

/** An address of a socket, or an address that belongs to a name. */
typedef struct weft_address {
	socklen_t size;
	struct sockaddr_storage address;
} weft_address_t;

/** Like getsockname and getpeername: the address that a socket is bound to, and the address of the other side. They do
 * not wait.
 * @return 0; -ENOTSOCK; -ENOTCONN: there is no other side; -EBADF */
WEFT_API int weft_local_address(int fd, weft_address_t *address);
WEFT_API int weft_peer_address(int fd, weft_address_t *address);

/** Room for the text of every address, including the final zero. */
enum { WEFT_ADDRESS_TEXT = 112 };

/**
 * Write an address as text: "127.0.0.1:80", "[fe80::1%eth0]:80", a Unix socket's path, or "@name" (a zero in an
 * abstract name becomes another '@'); "": it has no name. Does not wait.
 * @return the length of the text; -EAFNOSUPPORT: of another family; -ENOSPC: it needs more than `size`
 */
WEFT_API int weft_address_text(const weft_address_t *address, char *text, size_t size);

/**
 * Look up the addresses of a name, by the hosts file and DNS.
 * @param service  "80", "http"; NULL: none
 * @param type     SOCK_STREAM, SOCK_DGRAM
 * @param addresses, most  written; the number of addresses that fit
 * @return the number of addresses, at most `most`; -ENOENT: the name is not known; -EAGAIN: no server could answer now;
 *   -ENOMEM; -EINVAL: no such service ("80x", "-1", "99999") or type; -ENOSYS: WEFT_DNS=ares, and there is no libcares
 * With c-ares a look-up has a socket of its own, and ends at its deadline or when its task is cancelled; without a
 * deadline it ends after 14 seconds without an answer. WEFT_DNS_SERVERS in the environment, "127.0.0.1:5353,…",
 * replaces the servers in resolv.conf; RES_OPTIONS="retrans:5000 retry:4" asks four times, after 5, 10 and 20 seconds.
 * With getaddrinfo the call waits for a look-up that has begun, also past the deadline, because the look-up writes into
 * the caller's memory. A numeric address, "127.0.0.1" or "fe80::1%eth0", needs neither.
 */
__attribute__((unused)) static int weft_resolve_until(const char *name, const char *service, int type,
						      weft_address_t *addresses, unsigned most, uint64_t deadline);
WEFT__INLINE int weft_resolve(const char *name, const char *service, int type, weft_address_t *addresses,
			      unsigned most);

/**
 * Make a connection to an address of a name. A path or "@name", as for weft_listen, is a Unix socket. Several addresses
 * are raced (RFC 8305): families alternate, the next attempt begins after 250 ms or when an attempt has failed, and the
 * first connection wins. In a simulation, and where a handler may lie between the task and its runtime, the addresses
 * are tried one after another, each with its share of the time. The socket has TCP_NODELAY: see weft_set_nodelay.
 * @return a descriptor; -ENOENT, -EAGAIN, -ENOMEM, -EINVAL from the lookup; else the error of the connection attempts
 * Source of the idea: RFC 8305 (Happy Eyeballs); Go's net.Dialer.
 */
__attribute__((unused)) static int weft_dial_until(const char *name, const char *service, uint64_t deadline);
WEFT__INLINE int weft_dial(const char *name, const char *service);

/* ---- files ------------------------------------------------------------------------------------------------------- */

/** Like openat, always close-on-exec. A path is relative to `directory`, which may be AT_FDCWD. An open of a FIFO waits
 * for the other side, and an open of a file with a lease waits for the lease's end: until the deadline, without a
 * thread. */
WEFT__INLINE int weft_openat_until(int directory, const char *path, int flags, unsigned mode, uint64_t deadline);
WEFT__INLINE int weft_openat(int directory, const char *path, int flags, unsigned mode);
WEFT__INLINE int weft_open(const char *path, int flags, unsigned mode);

/** Like fsync and fdatasync. */
WEFT__INLINE int weft_fsync_until(int fd, uint64_t deadline);
WEFT__INLINE int weft_fsync(int fd);
WEFT__INLINE int weft_fdatasync_until(int fd, uint64_t deadline);
WEFT__INLINE int weft_fdatasync(int fd);

/** Like fstatat. */
WEFT__INLINE int weft_fstatat_until(int directory, const char *path, struct stat *status, int flags, uint64_t deadline);
WEFT__INLINE int weft_fstatat(int directory, const char *path, struct stat *status, int flags);

/*
 * Names, directories and sizes of files. With io_uring the kernel does these operations, if it is new enough, else a
 * helper thread. In a simulation they use the simulated files, which have neither symbolic links nor second names
 * (-EPERM there).
 */

/** Like renameat2: renames atomically, and replaces another file of the new name. `flags` 0, or RENAME_NOREPLACE and so
 * on. */
WEFT__INLINE int weft_renameat_until(int from, const char *path, int to, const char *other, unsigned flags,
				     uint64_t deadline);
WEFT__INLINE int weft_renameat(int from, const char *path, int to, const char *other, unsigned flags);
WEFT__INLINE int weft_rename(const char *path, const char *other);

/** Like unlinkat. `flags` 0, or AT_REMOVEDIR. */
WEFT__INLINE int weft_unlinkat_until(int directory, const char *path, int flags, uint64_t deadline);
WEFT__INLINE int weft_unlinkat(int directory, const char *path, int flags);
WEFT__INLINE int weft_unlink(const char *path);
WEFT__INLINE int weft_rmdir(const char *path);

/** Like mkdirat. */
WEFT__INLINE int weft_mkdirat_until(int directory, const char *path, unsigned mode, uint64_t deadline);
WEFT__INLINE int weft_mkdirat(int directory, const char *path, unsigned mode);
WEFT__INLINE int weft_mkdir(const char *path, unsigned mode);

/** Like symlinkat: `path` becomes a symbolic link to `target`. */
WEFT__INLINE int weft_symlinkat_until(const char *target, int directory, const char *path, uint64_t deadline);
WEFT__INLINE int weft_symlinkat(const char *target, int directory, const char *path);
WEFT__INLINE int weft_symlink(const char *target, const char *path);

/** Like linkat: `other` becomes a second name. */
WEFT__INLINE int weft_linkat_until(int from, const char *path, int to, const char *other, int flags, uint64_t deadline);
WEFT__INLINE int weft_linkat(int from, const char *path, int to, const char *other, int flags);
WEFT__INLINE int weft_link(const char *path, const char *other);

/** Like ftruncate: the file gets this size, by losing its end or by adding zeros. */
WEFT__INLINE int weft_ftruncate_until(int fd, int64_t size, uint64_t deadline);
WEFT__INLINE int weft_ftruncate(int fd, int64_t size);

/** Like fallocate. `mode` 0, or FALLOC_FL_KEEP_SIZE and so on. */
WEFT__INLINE int weft_fallocate_until(int fd, int mode, int64_t offset, int64_t length, uint64_t deadline);
WEFT__INLINE int weft_fallocate(int fd, int mode, int64_t offset, int64_t length);

/** Like copy_file_range: the kernel copies from one file to another. An offset is advanced; NULL: the descriptor's
 * position. Returns the number of bytes, at most `length`; 0: the end. */
__attribute__((unused)) static ssize_t weft_copy_file_range_until(int from, int64_t *offset, int to, int64_t *to_offset,
								  size_t length, uint64_t deadline);
WEFT__INLINE ssize_t weft_copy_file_range(int from, int64_t *offset, int to, int64_t *to_offset, size_t length);

/** A directory that is being read, made by weft_dir. */
typedef struct weft_dir {
	int fd;
	unsigned at, end;      /* Private. */
	uint64_t entries[256]; /* Private. */
} weft_dir_t;

/** Begin to read a directory. The descriptor was opened with O_DIRECTORY, and the caller owns it. Does not wait. */
WEFT__INLINE weft_dir_t weft_dir(int fd);

/** An entry of a directory. */
typedef struct weft_dirent {
	uint64_t inode;
	unsigned char type; /**< DT_REG and so on, of <dirent.h>; DT_UNKNOWN: use weft_fstatat */
	char name[256];
} weft_dirent_t;

/**
 * Get the next entry of a directory, in no order, without "." and "..". Entries that are created or deleted meanwhile
 * may be missed.
 * @return 1: `entry` is written; 0: there are no more entries; or a negative errno
 * Source of the idea: readdir without a hidden allocation.
 */
__attribute__((unused)) static int weft_readdir_until(weft_dir_t *directory, weft_dirent_t *entry, uint64_t deadline);
WEFT__INLINE int weft_readdir(weft_dir_t *directory, weft_dirent_t *entry);

/* ---- changes of files -------------------------------------------------------------------------------------------- */

/** A source of reports about changes of files and directories. Made by weft_file_watch_open; for one task at a time. */
typedef struct weft_file_watch {
	int fd;		      /**< the inotify descriptor; close it by weft_close */
	unsigned at, end;     /* Private. */
	uint64_t events[256]; /* Private. */
} weft_file_watch_t;

/** A change. `events` are IN_… of <sys/inotify.h>. */
typedef struct weft_file_change {
	int watch; /**< the number that weft_file_watch_add returned; -1: see IN_Q_OVERFLOW, at
			weft_file_watch_next_until */
	uint32_t events;
	uint32_t cookie; /**< equal in the IN_MOVED_FROM and the IN_MOVED_TO of one rename */
	char name[256];	 /**< the name of an entry of a watched directory; "": the watched file itself. A longer name is
			      cut */
} weft_file_change_t;

/**
 * Open a watch, which watches nothing yet. Close `watch->fd` by weft_close. Does not wait. In a simulation it reports
 * changes of the simulated files.
 * @return 0; -EMFILE, also if the user has too many (/proc/sys/fs/inotify/max_user_instances); -ENFILE; -ENOMEM
 */
WEFT_API int weft_file_watch_open(weft_file_watch_t *watch);

/**
 * Watch a file, or the entries of a directory, but not the entries of directories inside it. The path of a file that is
 * watched already replaces its events, unless `events` has IN_MASK_ADD.
 * @param events  IN_CREATE | IN_MODIFY … of <sys/inotify.h>
 * @return the number that identifies the changes of this file, 1 or more; -ENOENT, -EACCES, -ENOTDIR (IN_ONLYDIR) …;
 *   -ENOSPC: the user watches too many files (/proc/sys/fs/inotify/max_user_watches)
 */
WEFT__INLINE int weft_file_watch_add_until(weft_file_watch_t *watch, const char *path, uint32_t events,
					   uint64_t deadline);
WEFT__INLINE int weft_file_watch_add(weft_file_watch_t *watch, const char *path, uint32_t events);

/** Stop watching a file. Changes until then are still reported; the last change of this number is IN_IGNORED. Does not
 * wait.
 * @return 0; -EINVAL: there is no such number, because it has been removed or its file is gone */
WEFT_API int weft_file_watch_remove(weft_file_watch_t *watch, int number);

/**
 * Wait for the next change. Changes come in the order in which they happen. The kernel merges two equal successive
 * changes if the first has not been read yet.
 *   IN_Q_OVERFLOW  changes are lost, because more than /proc/sys/fs/inotify/max_queued_events were waiting: scan the
 *                  directories again; later changes follow
 *   IN_IGNORED     the number is not watched any more: it was removed, or its file was deleted or its disk unmounted
 * @return 0: `change` is written; or a negative errno, and then no change is lost
 * Source of the idea: inotify; changes one by one, Go's fsnotify.
 */
__attribute__((unused)) static int weft_file_watch_next_until(weft_file_watch_t *watch, weft_file_change_t *change,
							      uint64_t deadline);
WEFT__INLINE int weft_file_watch_next(weft_file_watch_t *watch, weft_file_change_t *change);

/* ---- processes and signals --------------------------------------------------------------------------------------- */

/** The flags of weft_process_t, and its maximum. */
enum {
	WEFT_PROCESS_FDS = 64, /**< the maximum number of descriptors for a child */
	/* weft_process_t.flags */
	WEFT_PROCESS_GROUP = 1,		  /**< the child joins the process group `group`; 0: a new group of its own */
	WEFT_PROCESS_SESSION = 2,	  /**< the child is the leader of a new session (setsid) */
	WEFT_PROCESS_DEFAULT_SIGNALS = 4, /**< the child ignores no signal, even if this program ignores signals */
};

/** A program to start. For each field that is zero the child has the caller's setting. */
typedef struct weft_process {
	char *const *argv;     /**< the program's name, searched in PATH, and arguments; NULL ends the list */
	char *const *envp;     /**< NULL: the caller's environment */
	const int *fds;	       /**< its descriptors 0, 1, …; -1: the caller's descriptor of this number */
	unsigned fd_count;     /**< the number of `fds`; at most WEFT_PROCESS_FDS */
	unsigned flags;	       /**< WEFT_PROCESS_… */
	const char *directory; /**< its current directory; a relative `argv[0]` with a slash is relative to it */
	pid_t group;	       /**< for WEFT_PROCESS_GROUP */
} weft_process_t;

/**
 * Start a program. It does not inherit other descriptors that are close-on-exec. Its pipes and sockets are in blocking
 * mode, as programs expect, even if they are non-blocking here; listening sockets keep their mode. It has no signal
 * blocked, does not ignore SIGPIPE, and has the timer slack that this program began with. In a simulation the program
 * is a real program, unless weft_world_program (weft/sim.h) has named it: a simulated program has three descriptors,
 * and no directory or group.
 * @param what  copied
 * @return its process, for weft_waitpid; -ENOENT, -EACCES, -EAGAIN, -ENOMEM; -EINVAL: no argv, more descriptors than
 *   WEFT_PROCESS_FDS, unknown flags. Does not wait
 * Source of the idea: posix_spawn's attributes; libuv also resets signals.
 */
WEFT_API pid_t weft_spawn_process_as(const weft_process_t *what);

/** Like weft_spawn_process_as, with the descriptors 0, 1 and 2; `fds` NULL: all are the caller's. */
WEFT_API pid_t weft_spawn_process(char *const argv[], char *const envp[], const int fds[3]);

/**
 * Wait until a child process has ended.
 * @param process  one child; 0 and below are not supported
 * @param status   written as by waitpid: WIFEXITED …; may be NULL
 * @return the process; -ECHILD: it is no child of this process, or has been waited for; -EINVAL: process < 1; -EMFILE;
 *   -EAGAIN: no thread for it, which only kernels without pidfd_open need
 */
WEFT__INLINE pid_t weft_waitpid_until(pid_t process, int *status, uint64_t deadline);
WEFT__INLINE pid_t weft_waitpid(pid_t process, int *status);

/** Like kill, but for a process of a simulated world it calls weft_world_kill (weft/sim.h). Does not wait.
 * @return 0; -ESRCH; -EPERM; -EINVAL */
WEFT_API int weft_kill_process(pid_t process, int signal);

/* These functions need types that <signal.h> declares for POSIX only: with -std=c11 and similar options the types are
 * missing, unless _POSIX_C_SOURCE is defined. */
#ifdef SA_SIGINFO
/**
 * Wait for one of these signals. Every thread of the program must have blocked them (pthread_sigmask before
 * weft_rt_run); otherwise they have their usual effect. In a simulation they are the signals of the simulated world
 * (weft/sim.h).
 * @return the signal's number; -EINVAL: `signals` is NULL; -EMFILE, -ENFILE, -ENOMEM
 */
WEFT__INLINE int weft_sigwait_until(const sigset_t *signals, siginfo_t *info, uint64_t deadline);
WEFT__INLINE int weft_sigwait(const sigset_t *signals, siginfo_t *info);
#endif

/* ---- calls that block their thread --------------------------------------------------------------------------- */

/** The function of WEFT_IO_CALL: returns the result. */
typedef int64_t weft_io_call_t(void *argument);

/** Call a function that blocks, on a helper thread. Returns its result. The deadline is checked only before the
 * call. */
WEFT__INLINE int64_t weft_call_until(weft_io_call_t *fn, void *argument, uint64_t deadline);
WEFT__INLINE int64_t weft_call(weft_io_call_t *fn, void *argument);

/* ---- one operation ----------------------------------------------------------------------------------------------- */

/** The kind of an operation. Its operands are the fields of weft_io_t that are listed beside it. */
typedef enum weft_io_kind {
	WEFT_IO_READ = 1, /**< fd, data, length, offset (-1: none) */
	WEFT_IO_WRITE,	  /**< as WEFT_IO_READ */
	WEFT_IO_READV,	  /**< fd, data: struct iovec, length of them, offset */
	WEFT_IO_WRITEV,	  /**< as WEFT_IO_READV */
	WEFT_IO_RECV,	  /**< fd, data, length, flags */
	WEFT_IO_SEND,	  /**< as WEFT_IO_RECV */
	WEFT_IO_RECVMSG,  /**< fd, data: struct msghdr, flags */
	WEFT_IO_SENDMSG,  /**< as WEFT_IO_RECVMSG */
	WEFT_IO_RECVMMSG, /**< fd, data: struct mmsghdr, length of them, flags */
	WEFT_IO_SENDMMSG, /**< as WEFT_IO_RECVMMSG */
	WEFT_IO_ACCEPT,	  /**< fd, data: address, more: its length, flags */
	WEFT_IO_CONNECT,  /**< fd, data: address, length */
	WEFT_IO_POLL,	  /**< fd, flags: events, length: not 0 if the caller waits for other objects, too: see
			   WEFT_IO_BLOCKS */
	WEFT_IO_SENDFILE, /**< fd: a socket, other: a file, data: its offset, length */
	WEFT_IO_SPLICE,	  /**< fd: from, other: to, length, flags: of splice(2), without offsets */
	WEFT_IO_OPEN,	  /**< fd: directory, data: path, flags, length: mode */
	WEFT_IO_SYNC,	  /**< fd, flags: 1 data only */
	WEFT_IO_STAT,	  /**< fd: directory, data: path, flags, more: struct stat */
	WEFT_IO_CALL,	  /**< data: weft_io_call_t, more: its argument: on a helper thread */
	WEFT_IO_RENAME,	  /**< fd: directory, data: path, other: directory, more: new path, flags: of renameat2(2) */
	WEFT_IO_UNLINK,	  /**< fd: directory, data: path, flags: of unlinkat(2) */
	WEFT_IO_MKDIR,	  /**< fd: directory, data: path, length: mode */
	WEFT_IO_SYMLINK,  /**< fd: directory, data: the link's target, more: path */
	WEFT_IO_LINK,	  /**< as WEFT_IO_RENAME, flags: of linkat(2) */
	WEFT_IO_TRUNCATE, /**< fd, offset: the new size */
	WEFT_IO_ALLOCATE, /**< fd, flags: mode, offset, length: as fallocate(2) */
	WEFT_IO_COPY,	  /**< fd: from, data: its offset, other: to, more: its offset, length: as copy_file_range(2) */
	WEFT_IO_ENTRIES,  /**< fd: directory, data, length: as getdents64(2) */
	WEFT_IO_WATCH,	  /**< fd: of inotify, data: path, flags: events: as inotify_add_watch(2) */
	WEFT_IO_KINDS,
} weft_io_kind_t;

/** An operation. A handler of `io` may read and change the fields above `result`, and may do the operation itself. */
typedef struct weft_io {
	uint8_t kind; /**< weft_io_kind_t */
	/* Private: the next step; read, write or both; why the operation was withdrawn, a negative errno. */
	uint8_t step, way;
	int8_t reason;
	int fd, other, flags;
	void *data;
	size_t length;
	int64_t offset;
	void *more;
	uint64_t deadline;
	int64_t result; /**< the result, or a negative errno */
	/* Private. */
	weft_waiter_t waiter; /* timer.note: the generation of the descriptor when the operation began */
	void *place, *ring;   /* the runtime's record of the operation while it lasts */
	unsigned entry;	      /* its number in the submission queue; if it must be retried, the number of pauses */
	int watch;	      /* io_uring: see watch_exactly, uring.c; -1: none */
	struct weft_io *next, **link;
} weft_io_t;

/** The state of an operation: the reply to `io`. */
enum {
	WEFT_IO_DONE,	/**< `result` is written */
	WEFT_IO_WAITS,	/**< the runtime has begun the operation; only the runtime replies this */
	WEFT_IO_BLOCKS, /**< the caller must do the operation on a helper thread; or a WEFT_IO_POLL with a `length` was
			     not begun, because it would block the thread; only the runtime replies this */
	WEFT_IO_YIELDS, /**< other tasks have waited for long, and must run before the operation begins, or completes;
			     only the runtime replies this */
};

WEFT_EXTERN_C_END

#pragma push_macro("WEFT_NAMESPACE")
#undef WEFT_NAMESPACE
#define WEFT_NAMESPACE weft
WEFT__C_BEGIN
/** Do an operation, or begin it. A handler that does the operation itself writes `result` and replies WEFT_IO_DONE. A
 * handler that passes the operation on performs it again, by weft_op_io, from outside of the task's handlers:
 * weft_forward does both. */
WEFT_EFFECT_AS(weft_op_io, int, io, weft_io_t *, io);
WEFT__C_END
#pragma pop_macro("WEFT_NAMESPACE")

WEFT_EXTERN_C_BEGIN

/** Do an operation. The fields up to `deadline` are set as its kind requires. Returns its result. */
WEFT__INLINE int64_t weft_io_do(weft_io_t *io);

/* ---- readiness as a case of weft_select -------------------------------------------------------------------------- */

/**
 * Readiness of a descriptor: a case of weft_select that waits as weft_poll does.
 *
 *   weft_readiness_t input = weft_readiness(fd, POLLIN);
 *   weft_case_t cases[] = {{.ready = &input}, {.event = &stop}};
 *   if (weft_select(cases, 2) == 0 && cases[0].status > 0)
 *           n = weft_read(fd, text, sizeof text);
 *
 * The case's `status` is the value that weft_poll would have returned: the events, never 0, or a negative errno;
 * -ECANCELED: weft_close has closed the descriptor meanwhile. Nothing is read or written. A case that is not done
 * leaves nothing behind in the loop or the kernel. A readiness serves one select at a time, and can be used again
 * afterwards without changes. For the effect `io` each check is a separate operation: one when the select begins, and
 * one when it has to wait. In a thread the call waits by poll, and an eventfd wakes it: also -EMFILE, -ENFILE. In a
 * simulation a descriptor that is not of the simulated world is checked only when the select begins.
 */
typedef struct weft_readiness {
	struct weft__awaited base; /* private */
	int fd, events;
	/* Private. */
	int begun; /* the reply to `io`, while the poll is being waited for; else WEFT_IO_DONE */
	weft_waiter_t *selects;
	weft_io_t io;
} weft_readiness_t;

/** Returns a readiness of a descriptor, for events of poll. May be used in an initializer. Does not suspend. */
WEFT__INLINE weft_readiness_t weft_readiness(int fd, int events);

/* ---- looking ----------------------------------------------------------------------------------------------------- */

/** Returns the name of the calling task's back end: "io_uring", "epoll"; "simulated"; "threads" outside of tasks. If
 * the runtime has done no I/O yet, it is the back end that the runtime will choose. Does not wait. */
WEFT_API const char *weft_io_backend(void);

WEFT_EXTERN_C_END

#include <weft/detail/io.h>

#endif /* WEFT_IO_H */
