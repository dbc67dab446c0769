// SPDX-License-Identifier: MIT OR Apache-2.0
//
// weft/io.hpp: input and output for C++17 and later, for tasks and threads. Header only, over weft/io.h and libweft-rt.
//
//	weft::listener listener("127.0.0.1", 7000);
//	weft::scope scope;
//
//	for (;;)
//		scope.start([client = listener.accept()]() mutable {
//			weft::buffered_reader in(client);
//
//			for (std::string_view line : in.lines())
//				client.writev_all({line, "\n"});
//		});
//
//   weft::descriptor          owns a descriptor; the base class of those below
//   weft::stream              bytes: an end of a pipe, a terminal
//   weft::socket_stream       a connection; weft::tcp_stream and weft::unix_stream are other names of it
//   weft::listener            accepts connections
//   weft::udp_socket          datagrams
//   weft::address             of a socket; weft::resolve looks up the addresses of a name
//   weft::file                a file, and static functions for names and directories
//   weft::pipe                two streams
//   weft::process             a child process, with pipes
//   weft::file_watch          reports changes of files
//   weft::buffered_reader<S>  lines, delimited texts and records from a stream
//   weft::buffered_writer<S>  many small writes to a stream
//
// Design
//  1. An object owns its descriptor. It is moved and not copied; its destructor calls weft_close, which does not wait,
//     so it also runs while the task is unwound because it was cancelled.
//  2. Errors are thrown: std::system_error with the errno, std::bad_alloc for ENOMEM. ECANCELED: a scope that the task
//     has open was cancelled. Members of an object without a descriptor throw EBADF.
//  3. Members with …_for take a duration, members with …_until a time of any clock. Both throw ETIMEDOUT when the time
//     is over first, because their results have no value for it. A call has a single deadline for all of its steps.
//  4. `read` and `write` transfer as many bytes as possible, and lose nothing if they throw. `read_exactly` and
//     `write_all` move everything; if they throw, part of it has been moved.
//  5. Every member that reads, writes, opens, accepts, connects or waits may suspend its task, on any stack. Outside of
//     tasks it blocks its thread.
//
// Thread-safety: one task may read from a stream while another writes to it. Otherwise an object is used by one task
// at a time. Nothing here is for signal handlers.
// Source of the ideas: Rust's std::io and std::process; std::getline.
#ifndef WEFT_IO_HPP
#define WEFT_IO_HPP

#if __cplusplus < 201703L
#error "io.hpp needs C++17: compile with -std=c++17 or later, or include weft/io.h, which works from C++14 on"
#endif

#if !defined(__cpp_exceptions)
#error "io.hpp needs exceptions: compile without -fno-exceptions, or include weft/io.h, which works without"
#endif

#include <weft/io.h>
#include <weft/sync.hpp>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <initializer_list>
#include <iterator>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <sys/wait.h>
#include <utility>
#include <vector>

#if __cplusplus >= 202002L
#include <span>
#endif

namespace weft
{

namespace detail
{

// The result of a call of weft/io.h. @throws its error
inline size_t count_of(ssize_t result)
{
	if (result < 0)
		check(static_cast<int>(result));
	return static_cast<size_t>(result);
}

inline int number_of(int result)
{
	check(result);
	return result;
}

// A deadline for several waits. A time that a time_point cannot hold becomes the last one that it can.
inline clock::time_point point_of(uint64_t deadline)
{
	constexpr auto last = static_cast<uint64_t>(std::numeric_limits<clock::rep>::max());

	return clock::time_point(clock::duration(static_cast<clock::rep>(deadline < last ? deadline : last)));
}

template <typename Rep, typename Period> clock::time_point point_after(const std::chrono::duration<Rep, Period> &time)
{
	return point_of(deadline_of(time));
}

inline const char *or_null(const std::string &text) noexcept
{
	return text.empty() ? nullptr : text.c_str();
}

} // namespace detail

// ---- addresses ------------------------------------------------------------------------------------------------------

/** An address of a socket. Copied. */
class address
{
      public:
	address() noexcept = default;
	explicit address(const weft_address_t &of) noexcept : address_(of)
	{
	}

	/** "127.0.0.1:80", "[::1]:80", a path or "@name"; "" if it has no name. @throws std::system_error, EAFNOSUPPORT
	 */
	std::string text() const
	{
		char text[WEFT_ADDRESS_TEXT];

		return std::string(text, detail::count_of(weft_address_text(&address_, text, sizeof text)));
	}
	const sockaddr *data() const noexcept
	{
		return reinterpret_cast<const sockaddr *>(&address_.address);
	}
	socklen_t size() const noexcept
	{
		return address_.size;
	}
	weft_address_t *native_handle() noexcept
	{
		return &address_;
	}

      private:
	weft_address_t address_{};
};

namespace detail
{

inline address local_address_of(int fd)
{
	address a;

	check(weft_local_address(fd, a.native_handle()));
	return a;
}

inline unsigned port_of(int fd)
{
	return static_cast<unsigned>(number_of(weft_port(fd)));
}

} // namespace detail

/** The addresses of a name, eight at most. @param type  SOCK_STREAM or SOCK_DGRAM @throws as weft_resolve_until */
inline std::vector<address> resolve(const std::string &name, const std::string &service = {}, int type = SOCK_STREAM)
{
	weft_address_t found[8];
	int count = weft_resolve(name.c_str(), detail::or_null(service), type, found, 8);

	return std::vector<address>(found, found + detail::number_of(count));
}

// ---- descriptors ----------------------------------------------------------------------------------------------------

/** Owns a descriptor, or none. */
class descriptor
{
      public:
	descriptor() noexcept = default;
	/** @param fd  becomes the object's; -1: none */
	explicit descriptor(int fd) noexcept : fd_(fd)
	{
	}
	descriptor(descriptor &&other) noexcept : fd_(other.release())
	{
	}
	descriptor &operator=(descriptor &&other) noexcept
	{
		int old = std::exchange(fd_, other.release());

		if (old >= 0)
			(void)weft_close(old);
		return *this;
	}
	~descriptor()
	{
		if (fd_ >= 0)
			(void)weft_close(fd_);
	}

	explicit operator bool() const noexcept
	{
		return fd_ >= 0;
	}
	/** The descriptor, which stays the object's; -1: none. */
	int native_handle() const noexcept
	{
		return fd_;
	}
	/** The descriptor, which is the caller's from now on: weft_close closes it. */
	[[nodiscard]] int release() noexcept
	{
		return std::exchange(fd_, -1);
	}
	/** Closes the descriptor now, if the object has one. @throws std::system_error: the error of close, EIO; the
	 * descriptor is closed in any case */
	void close()
	{
		int fd = release();

		if (fd >= 0)
			detail::check(weft_close(fd));
	}

      private:
	int fd_ = -1;
};

/** Bytes. Also for descriptors from elsewhere: `weft::stream in(0)` closes descriptor 0 at its end. */
class stream : public descriptor
{
      public:
	using descriptor::descriptor;

	/** Some bytes, at most `size`. @return how many; 0: the end, or `size` is 0 */
	size_t read(void *data, size_t size)
	{
		return read_by(data, size, WEFT_NEVER);
	}
	template <typename Rep, typename Period>
	size_t read_for(void *data, size_t size, const std::chrono::duration<Rep, Period> &time)
	{
		return read_by(data, size, detail::deadline_of(time));
	}
	template <typename Clock, typename Duration>
	size_t read_until(void *data, size_t size, const std::chrono::time_point<Clock, Duration> &when)
	{
		return read_by(data, size, detail::deadline_of(when));
	}

	/** All `size` bytes. @return false: the input has ended, and there was not one byte @throws std::system_error,
	 * ENODATA: it has ended after some of them */
	[[nodiscard]] bool read_exactly(void *data, size_t size)
	{
		return read_exactly_by(data, size, WEFT_NEVER);
	}
	template <typename Rep, typename Period>
	[[nodiscard]] bool read_exactly_for(void *data, size_t size, const std::chrono::duration<Rep, Period> &time)
	{
		return read_exactly_by(data, size, detail::deadline_of(time));
	}
	template <typename Clock, typename Duration>
	[[nodiscard]] bool read_exactly_until(void *data, size_t size,
					      const std::chrono::time_point<Clock, Duration> &when)
	{
		return read_exactly_by(data, size, detail::deadline_of(when));
	}

	/** Some of the bytes. @return how many @throws std::system_error, EPIPE: nobody reads them */
	size_t write(const void *data, size_t size)
	{
		return write_by(data, size, WEFT_NEVER);
	}
	template <typename Rep, typename Period>
	size_t write_for(const void *data, size_t size, const std::chrono::duration<Rep, Period> &time)
	{
		return write_by(data, size, detail::deadline_of(time));
	}
	template <typename Clock, typename Duration>
	size_t write_until(const void *data, size_t size, const std::chrono::time_point<Clock, Duration> &when)
	{
		return write_by(data, size, detail::deadline_of(when));
	}

	/** All of the bytes. */
	void write_all(const void *data, size_t size)
	{
		write_all_by(data, size, WEFT_NEVER);
	}
	void write_all(std::string_view text)
	{
		write_all(text.data(), text.size());
	}
	template <typename Rep, typename Period>
	void write_all_for(std::string_view text, const std::chrono::duration<Rep, Period> &time)
	{
		write_all_by(text.data(), text.size(), detail::deadline_of(time));
	}
	template <typename Clock, typename Duration>
	void write_all_until(std::string_view text, const std::chrono::time_point<Clock, Duration> &when)
	{
		write_all_by(text.data(), text.size(), detail::deadline_of(when));
	}

	/** All of the parts, by few system calls. */
	void writev_all(std::initializer_list<std::string_view> parts)
	{
		writev_all_by(parts, WEFT_NEVER);
	}
	template <typename Rep, typename Period>
	void writev_all_for(std::initializer_list<std::string_view> parts,
			    const std::chrono::duration<Rep, Period> &time)
	{
		writev_all_by(parts, detail::deadline_of(time));
	}
	template <typename Clock, typename Duration>
	void writev_all_until(std::initializer_list<std::string_view> parts,
			      const std::chrono::time_point<Clock, Duration> &when)
	{
		writev_all_by(parts, detail::deadline_of(when));
	}

#if defined(__cpp_lib_span)
	size_t read(std::span<std::byte> to)
	{
		return read(to.data(), to.size());
	}
	[[nodiscard]] bool read_exactly(std::span<std::byte> to)
	{
		return read_exactly(to.data(), to.size());
	}
	size_t write(std::span<const std::byte> from)
	{
		return write(from.data(), from.size());
	}
	void write_all(std::span<const std::byte> from)
	{
		write_all(from.data(), from.size());
	}
#endif

      private:
	enum { PARTS = 16 }; // that one system call of writev_all takes

	size_t read_by(void *data, size_t size, uint64_t deadline)
	{
		return detail::count_of(weft_read_until(native_handle(), data, size, deadline));
	}
	bool read_exactly_by(void *data, size_t size, uint64_t deadline)
	{
		size_t done = 0, more = 1;

		for (; done < size && more; done += more)
			more = read_by(static_cast<char *>(data) + done, size - done, deadline);
		if (done && done < size)
			detail::check(-ENODATA);
		return done == size;
	}
	size_t write_by(const void *data, size_t size, uint64_t deadline)
	{
		return detail::count_of(weft_write_until(native_handle(), data, size, deadline));
	}
	// A device that takes no byte and reports no error must not make a loop.
	static size_t advance(size_t bytes)
	{
		if (!bytes)
			detail::check(-EIO);
		return bytes;
	}
	void write_all_by(const void *data, size_t size, uint64_t deadline)
	{
		for (size_t done = 0; done < size;)
			done += advance(write_by(static_cast<const char *>(data) + done, size - done, deadline));
	}
	void writev_all_by(std::initializer_list<std::string_view> parts, uint64_t deadline)
	{
		struct iovec some[PARTS];
		size_t size = 0;
		int count = 0;

		for (const std::string_view *part = parts.begin(); part != parts.end(); ++part) {
			some[count++] = {const_cast<char *>(part->data()), part->size()};
			size += part->size();
			if (count < PARTS && part + 1 != parts.end())
				continue;
			while (size) // the call moves `some` on, and not further than an error
				size -= advance(
				    detail::count_of(weft_writev_all_until(native_handle(), some, count, deadline)));
			count = 0;
		}
	}
};

// ---- sockets --------------------------------------------------------------------------------------------------------

/** A connection. */
class socket_stream : public stream
{
      public:
	using stream::stream;

	/**
	 * A connection to a name, as by weft_dial_until. It has TCP_NODELAY.
	 * @param name     a host, an address in digits, a path, or "@name"
	 * @param service  a port or its name; a path has none
	 */
	static socket_stream connect(const std::string &name, const std::string &service = {})
	{
		return connect_by(name, service, WEFT_NEVER);
	}
	template <typename Rep, typename Period>
	static socket_stream connect_for(const std::string &name, const std::string &service,
					 const std::chrono::duration<Rep, Period> &time)
	{
		return connect_by(name, service, detail::deadline_of(time));
	}
	template <typename Clock, typename Duration>
	static socket_stream connect_until(const std::string &name, const std::string &service,
					   const std::chrono::time_point<Clock, Duration> &when)
	{
		return connect_by(name, service, detail::deadline_of(when));
	}
	/** Two Unix sockets that are connected. Does not wait. */
	static std::pair<socket_stream, socket_stream> pair()
	{
		int fds[2];

		detail::check(weft_socketpair(AF_UNIX, SOCK_STREAM, 0, fds));
		return {socket_stream(fds[0]), socket_stream(fds[1])};
	}

	/** End a direction: SHUT_WR: the other side sees the end; SHUT_RD, SHUT_RDWR. Does not wait. */
	void shutdown(int how = SHUT_WR)
	{
		detail::check(weft_shutdown(native_handle(), how));
	}
	/** See weft_set_nodelay. Does not wait. */
	void set_no_delay(bool on = true)
	{
		detail::check(weft_set_nodelay(native_handle(), on));
	}
	/** Do not wait. */
	address local_address() const
	{
		return detail::local_address_of(native_handle());
	}
	address peer_address() const
	{
		address a;

		detail::check(weft_peer_address(native_handle(), a.native_handle()));
		return a;
	}

      private:
	static socket_stream connect_by(const std::string &name, const std::string &service, uint64_t deadline)
	{
		return socket_stream(
		    detail::number_of(weft_dial_until(name.c_str(), detail::or_null(service), deadline)));
	}
};

using tcp_stream = socket_stream;
using unix_stream = socket_stream;

/** Accepts connections. */
class listener : public descriptor
{
      public:
	using descriptor::descriptor;

	/** @param name, port, backlog, flags  as for weft_listen; "": all addresses. Does not wait for I/O. */
	explicit listener(const std::string &name, unsigned port = 0, int backlog = 0, unsigned flags = 0)
	    : descriptor(detail::number_of(weft_listen(detail::or_null(name), port, backlog, flags)))
	{
	}

	/** The next connection. Passes over connections that failed before they were accepted. */
	[[nodiscard]] socket_stream accept()
	{
		return accept_by(WEFT_NEVER);
	}
	template <typename Rep, typename Period>
	[[nodiscard]] socket_stream accept_for(const std::chrono::duration<Rep, Period> &time)
	{
		return accept_by(detail::deadline_of(time));
	}
	template <typename Clock, typename Duration>
	[[nodiscard]] socket_stream accept_until(const std::chrono::time_point<Clock, Duration> &when)
	{
		return accept_by(detail::deadline_of(when));
	}

	/** Its port. @throws std::system_error, EAFNOSUPPORT: a Unix socket has none. Does not wait. */
	unsigned port() const
	{
		return detail::port_of(native_handle());
	}
	/** Does not wait. */
	address local_address() const
	{
		return detail::local_address_of(native_handle());
	}

      private:
	// accept(2): errors of the network that the new connection already has.
	static bool is_of_connection(int error) noexcept
	{
		return error == -ECONNABORTED || error == -EPROTO || error == -ENETDOWN || error == -ENETUNREACH ||
		       error == -EHOSTDOWN || error == -EHOSTUNREACH || error == -ENONET;
	}
	socket_stream accept_by(uint64_t deadline)
	{
		int fd;

		do
			fd = weft_accept_until(native_handle(), nullptr, nullptr, 0, deadline);
		while (is_of_connection(fd));
		return socket_stream(detail::number_of(fd));
	}
};

/** A socket of datagrams. */
class udp_socket : public descriptor
{
      public:
	using descriptor::descriptor;

	/** @param name, port  as for weft_listen; "": all addresses. Does not wait. */
	explicit udp_socket(const std::string &name, unsigned port = 0, unsigned flags = 0)
	    : descriptor(
		  detail::number_of(weft_listen(detail::or_null(name), port, 0, flags | unsigned{WEFT_LISTEN_UDP})))
	{
	}

	/** The next datagram, or as much of it as there is room for. @param from  written, unless NULL @return its size
	 */
	size_t receive(void *data, size_t size, address *from = nullptr)
	{
		return receive_by(data, size, from, WEFT_NEVER);
	}
	template <typename Rep, typename Period>
	size_t receive_for(void *data, size_t size, address *from, const std::chrono::duration<Rep, Period> &time)
	{
		return receive_by(data, size, from, detail::deadline_of(time));
	}
	template <typename Clock, typename Duration>
	size_t receive_until(void *data, size_t size, address *from,
			     const std::chrono::time_point<Clock, Duration> &when)
	{
		return receive_by(data, size, from, detail::deadline_of(when));
	}

	/** Send a whole datagram. */
	void send(std::string_view data, const address &to)
	{
		(void)detail::count_of(weft_sendto(native_handle(), data.data(), data.size(), 0, to.data(), to.size()));
	}

	/** Like the members of weft::listener. */
	unsigned port() const
	{
		return detail::port_of(native_handle());
	}
	address local_address() const
	{
		return detail::local_address_of(native_handle());
	}

      private:
	size_t receive_by(void *data, size_t size, address *from, uint64_t deadline)
	{
		weft_address_t sender{};
		ssize_t got;

		sender.size = sizeof sender.address;
		got = weft_recvfrom_until(native_handle(), data, size, 0, reinterpret_cast<sockaddr *>(&sender.address),
					  &sender.size, deadline);
		size = detail::count_of(got);
		if (from)
			*from = address(sender);
		return size;
	}
};

// ---- files ----------------------------------------------------------------------------------------------------------

/** An entry of a directory. */
struct directory_entry {
	std::string name;
	uint64_t inode;
	unsigned char type; /**< DT_REG and so on, of <dirent.h>; DT_UNKNOWN: ask file::status */
};

/** A file. The members of weft::stream read and write at its own position, the members here at offsets. */
class file : public stream
{
      public:
	using stream::stream;

	/** @param flags, mode  as for open: O_RDONLY, O_RDWR | O_CREAT, O_WRONLY | O_CREAT | O_TRUNC … */
	explicit file(const std::string &path, int flags = O_RDONLY, unsigned mode = 0666)
	    : stream(detail::number_of(weft_open(path.c_str(), flags, mode)))
	{
	}

	/** Bytes from `offset` on. @return how many: less than `size` only at the end of the file */
	size_t read_at(void *data, size_t size, int64_t offset)
	{
		size_t done = 0, more = 1;

		for (; done < size && more; done += more)
			more = detail::count_of(weft_pread(native_handle(), static_cast<char *>(data) + done,
							   size - done, offset + static_cast<int64_t>(done)));
		return done;
	}
	/** All of the bytes, to `offset` and behind. */
	void write_at(const void *data, size_t size, int64_t offset)
	{
		size_t done = 0, more = 1;

		for (; done < size && more; done += more)
			more = detail::count_of(weft_pwrite(native_handle(), static_cast<const char *>(data) + done,
							    size - done, offset + static_cast<int64_t>(done)));
		if (done < size)
			detail::check(-EIO);
	}
	void write_at(std::string_view text, int64_t offset)
	{
		write_at(text.data(), text.size(), offset);
	}
	/** The rest of the file, from its position on. @throws std::system_error, EFBIG: it has more than `most` bytes,
	 * of which some have been read */
	std::string read_all(size_t most = std::numeric_limits<size_t>::max())
	{
		std::string text;
		size_t done = 0, more = 1;

		for (; more; done += more) {
			if (done > most)
				detail::check(-EFBIG);
			if (done == text.size())
				text.resize(done + (done > PIECE ? done : PIECE));
			more = read(&text[done], text.size() - done);
		}
		text.resize(done);
		return text;
	}

	struct stat status() const
	{
		return status_of(native_handle(), "", 0x1000 /* AT_EMPTY_PATH */);
	}
	int64_t size() const
	{
		return status().st_size;
	}
	/** Like ftruncate, fsync and fdatasync. */
	void truncate(int64_t size)
	{
		detail::check(weft_ftruncate(native_handle(), size));
	}
	void sync()
	{
		detail::check(weft_fsync(native_handle()));
	}
	void sync_data()
	{
		detail::check(weft_fdatasync(native_handle()));
	}

	/** Like rename, unlink, rmdir, mkdir, symlink and link. */
	static void rename(const std::string &from, const std::string &to)
	{
		detail::check(weft_rename(from.c_str(), to.c_str()));
	}
	static void unlink(const std::string &path)
	{
		detail::check(weft_unlink(path.c_str()));
	}
	static void rmdir(const std::string &path)
	{
		detail::check(weft_rmdir(path.c_str()));
	}
	static void mkdir(const std::string &path, unsigned mode = 0777)
	{
		detail::check(weft_mkdir(path.c_str(), mode));
	}
	static void symlink(const std::string &target, const std::string &path)
	{
		detail::check(weft_symlink(target.c_str(), path.c_str()));
	}
	static void link(const std::string &path, const std::string &other)
	{
		detail::check(weft_link(path.c_str(), other.c_str()));
	}
	/** Like stat. */
	static struct stat status(const std::string &path)
	{
		return status_of(AT_FDCWD, path.c_str(), 0);
	}
	/** The entries of a directory, in no order, without "." and "..". */
	static std::vector<directory_entry> list(const std::string &path)
	{
		descriptor directory(detail::number_of(weft_open(path.c_str(), O_RDONLY | O_DIRECTORY, 0)));
		weft_dir_t reads = weft_dir(directory.native_handle());
		std::vector<directory_entry> entries;
		weft_dirent_t entry;

		while (detail::number_of(weft_readdir(&reads, &entry)))
			entries.push_back({entry.name, entry.inode, entry.type});
		return entries;
	}

      private:
	enum : size_t { PIECE = 4096 };

	static struct stat status_of(int directory, const char *path, int flags)
	{
		struct stat status;

		detail::check(weft_fstatat(directory, path, &status, flags));
		return status;
	}
};

/** Reports changes of files and directories: see weft_file_watch_t. */
class file_watch : public descriptor
{
      public:
	/** @throws std::system_error: EMFILE; ENOSYS in a simulation. Does not wait. */
	file_watch()
	{
		detail::check(weft_file_watch_open(&watch_));
		static_cast<descriptor &>(*this) = descriptor(watch_.fd);
	}

	/** Watch a file, or the entries of a directory. @param events  IN_CREATE … of <sys/inotify.h>
	 * @return the number that its changes have @throws as weft_file_watch_add_until */
	int add(const std::string &path, uint32_t events)
	{
		return detail::number_of(weft_file_watch_add(native(), path.c_str(), events));
	}
	/** Watch this number no more. Does not wait. */
	void remove(int number)
	{
		detail::check(weft_file_watch_remove(native(), number));
	}

	/** The next change. No change is lost if it throws. */
	weft_file_change_t next()
	{
		return next_by(WEFT_NEVER);
	}
	template <typename Rep, typename Period>
	weft_file_change_t next_for(const std::chrono::duration<Rep, Period> &time)
	{
		return next_by(detail::deadline_of(time));
	}
	template <typename Clock, typename Duration>
	weft_file_change_t next_until(const std::chrono::time_point<Clock, Duration> &when)
	{
		return next_by(detail::deadline_of(when));
	}

      private:
	weft_file_watch_t *native() noexcept
	{
		watch_.fd = native_handle();
		return &watch_;
	}
	weft_file_change_t next_by(uint64_t deadline)
	{
		weft_file_change_t change;

		detail::check(weft_file_watch_next_until(native(), &change, deadline));
		return change;
	}

	weft_file_watch_t watch_{};
};

// ---- pipes and processes --------------------------------------------------------------------------------------------

/** A pipe. Making one does not wait. */
struct pipe {
	stream reader, writer;

	pipe()
	{
		int fds[2];

		detail::check(weft_pipe(fds));
		reader = stream(fds[0]);
		writer = stream(fds[1]);
	}
};

/** How a process ended. */
class exit_status
{
      public:
	/** @param status  as of waitpid */
	explicit exit_status(int status) noexcept : status_(status)
	{
	}
	/** Did it exit with 0? */
	bool success() const noexcept
	{
		return status_ == 0;
	}
	/** The exit code; -1: a signal ended it. */
	int code() const noexcept
	{
		return WIFEXITED(status_) ? WEXITSTATUS(status_) : -1;
	}
	/** The signal that ended it; 0: none. */
	int signal() const noexcept
	{
		return WIFSIGNALED(status_) ? WTERMSIG(status_) : 0;
	}

      private:
	int status_;
};

/** Options for starting a process. */
struct process_options {
	/** Its descriptors 0, 1 and 2: process::inherited, process::piped, or one that stays the caller's. */
	int input = -1, output = -1, errors = -1;
	std::vector<int> more_fds;			     /**< its descriptors 3, 4, …; -1: the caller's */
	std::string directory;				     /**< its current directory; "": the caller's */
	std::optional<std::vector<std::string>> environment; /**< "NAME=value" …; nothing: the caller's */
	unsigned flags = 0;				     /**< WEFT_PROCESS_… */
	pid_t group = 0;				     /**< for WEFT_PROCESS_GROUP */
};

/**
 * A child process. If it has not been waited for, the destructor closes the pipes, sends SIGKILL and waits for its end,
 * which may suspend the task; this wait is not cancelled.
 */
class process
{
      public:
	enum : int { inherited = -1, piped = -2 };

	/** Start a program. @param arguments  its name, which is looked for in PATH, and arguments @throws as
	 * weft_spawn_process_as. Does not wait. */
	explicit process(const std::vector<std::string> &arguments, const process_options &options = {})
	{
		std::vector<int> fds{options.input, options.output, options.errors};
		std::vector<char *> argv = pointers(arguments), envp;
		weft_process_t what{};
		stream childs[3];

		if (options.environment)
			envp = pointers(*options.environment);
		fds.insert(fds.end(), options.more_fds.begin(), options.more_fds.end());
		for (size_t i = 0; i < 3; i++)
			if (fds[i] == piped)
				fds[i] = connect(i, childs[i]);
		what.argv = argv.data();
		what.envp = options.environment ? envp.data() : nullptr;
		what.fds = fds.data();
		what.fd_count = static_cast<unsigned>(fds.size());
		what.flags = options.flags;
		what.directory = detail::or_null(options.directory);
		what.group = options.group;
		id_ = detail::number_of(weft_spawn_process_as(&what));
	}
	process(process &&other) noexcept
	    : input(std::move(other.input)), output(std::move(other.output)), errors(std::move(other.errors)),
	      id_(other.release()), status_(other.status_)
	{
	}
	process &operator=(process &&other) noexcept
	{
		end();
		input = std::move(other.input);
		output = std::move(other.output);
		errors = std::move(other.errors);
		id_ = other.release();
		status_ = other.status_;
		return *this;
	}
	~process()
	{
		end();
	}

	/** This side of the pipes; streams without a descriptor where there is none. */
	stream input, output, errors;

	/** Its number; 0: it has been waited for, or moved or released. */
	pid_t id() const noexcept
	{
		return id_;
	}
	/** Close `input`, so that a program that reads to the end ends, and wait until the process has ended. The next
	 * call returns the same. @throws std::system_error, ECHILD: it was moved from or released */
	exit_status wait()
	{
		return wait_by(WEFT_NEVER);
	}
	template <typename Rep, typename Period> exit_status wait_for(const std::chrono::duration<Rep, Period> &time)
	{
		return wait_by(detail::deadline_of(time));
	}
	template <typename Clock, typename Duration>
	exit_status wait_until(const std::chrono::time_point<Clock, Duration> &when)
	{
		return wait_by(detail::deadline_of(when));
	}
	/** Send it a signal. @throws std::system_error, ESRCH: it has been waited for. Does not wait. */
	void kill(int signal = SIGTERM)
	{
		detail::check(id_ ? weft_kill_process(id_, signal) : -ESRCH);
	}
	/** Its number, which is the caller's from now on: weft_waitpid waits for it. 0: there is none. */
	[[nodiscard]] pid_t release() noexcept
	{
		return std::exchange(id_, 0);
	}

      private:
	static std::vector<char *> pointers(const std::vector<std::string> &texts)
	{
		std::vector<char *> all;

		for (const std::string &text : texts)
			all.push_back(const_cast<char *>(text.c_str()));
		all.push_back(nullptr);
		return all;
	}
	// A pipe to the child's descriptor 0, or from 1 or 2. @return the child's end
	int connect(size_t number, stream &childs)
	{
		pipe p;

		childs = std::move(number == 0 ? p.reader : p.writer);
		(number == 0 ? input : number == 1 ? output : errors) = std::move(number == 0 ? p.writer : p.reader);
		return childs.native_handle();
	}
	exit_status wait_by(uint64_t deadline)
	{
		int status = 0;

		if (status_)
			return *status_;
		input = stream();
		detail::check(id_ ? weft_waitpid_until(id_, &status, deadline) : -ECHILD);
		id_ = 0;
		status_ = exit_status(status);
		return *status_;
	}
	void end() noexcept
	{
		if (!id_)
			return;
		// A wait needs a descriptor of its own.
		input = stream();
		output = stream();
		errors = stream();
		(void)weft_kill_process(id_, SIGKILL);
		weft_shield_begin();
		(void)weft_waitpid(release(), nullptr);
		weft_shield_end();
	}

	pid_t id_ = 0;
	std::optional<exit_status> status_;
};

// ---- buffers --------------------------------------------------------------------------------------------------------

template <typename Source> class buffered_reader;

namespace detail
{

// The result of buffered_reader::lines.
template <typename Reader> class line_range
{
      public:
	class iterator
	{
	      public:
		using iterator_category = std::input_iterator_tag;
		using value_type = std::string_view;
		using difference_type = std::ptrdiff_t;
		using pointer = const std::string_view *;
		using reference = const std::string_view &;

		iterator() noexcept = default;
		explicit iterator(Reader *from) : from_(from)
		{
			++*this;
		}
		reference operator*() const noexcept
		{
			return line_;
		}
		pointer operator->() const noexcept
		{
			return &line_;
		}
		iterator &operator++()
		{
			std::optional<std::string_view> line = from_->next_line();

			if (line)
				line_ = *line;
			else
				from_ = nullptr;
			return *this;
		}
		void operator++(int)
		{
			++*this;
		}
		bool operator==(const iterator &other) const noexcept
		{
			return from_ == other.from_;
		}
		bool operator!=(const iterator &other) const noexcept
		{
			return from_ != other.from_;
		}

	      private:
		Reader *from_ = nullptr; // NULL: the end
		std::string_view line_;
	};

	explicit line_range(Reader &from) noexcept : from_(&from)
	{
	}
	iterator begin()
	{
		return iterator(from_);
	}
	iterator end() noexcept
	{
		return iterator();
	}

      private:
	Reader *from_;
};

} // namespace detail

/**
 * Reads large blocks from its source, and returns small pieces of them. `weft::buffered_reader in(client)` refers to
 * `client`, which must outlive it; `weft::buffered_reader in(std::move(client))` owns it. A call that throws takes
 * nothing from the buffer: after ETIMEDOUT the next call continues at the same byte.
 * @tparam Source  has `size_t read(void *, size_t)`; for the members with …_for and …_until also `read_until`
 */
template <typename Source> class buffered_reader
{
      public:
	/** @param size     of the buffer at first, at least 1
	 * @param longest  a line or delimited text has at most so many bytes; the buffer grows to hold it
	 * @throws std::bad_alloc */
	explicit buffered_reader(Source &&source, size_t size = 8192, size_t longest = size_t{1} << 20)
	    : source_(std::forward<Source>(source)), buffer_(size ? size : 1), longest_(longest)
	{
	}

	/** The source, from which the bytes in the buffer have been taken already. */
	std::remove_reference_t<Source> &source() noexcept
	{
		return source_;
	}
	/** The bytes in the buffer, which a `read` gets without waiting. */
	std::string_view buffered() const noexcept
	{
		return {buffer_.data() + begin_, end_ - begin_};
	}

	/** Reads some bytes from the buffer, or from the source if the buffer is empty. @return their number; 0: the
	 * end, or `size` is 0 */
	size_t read(void *data, size_t size)
	{
		return read_by(data, size, waits());
	}
	template <typename Rep, typename Period>
	size_t read_for(void *data, size_t size, const std::chrono::duration<Rep, Period> &time)
	{
		return read_by(data, size, waits_until(detail::point_after(time)));
	}
	template <typename Clock, typename Duration>
	size_t read_until(void *data, size_t size, const std::chrono::time_point<Clock, Duration> &when)
	{
		return read_by(data, size, waits_until(when));
	}

	/** All `size` bytes. @return false: the input has ended, and there was not one byte
	 * @throws std::system_error, ENODATA: it has ended after some of them, which stay in the buffer */
	[[nodiscard]] bool read_exactly(void *data, size_t size)
	{
		return read_exactly_by(data, size, waits());
	}
	template <typename Rep, typename Period>
	[[nodiscard]] bool read_exactly_for(void *data, size_t size, const std::chrono::duration<Rep, Period> &time)
	{
		return read_exactly_by(data, size, waits_until(detail::point_after(time)));
	}
	template <typename Clock, typename Duration>
	[[nodiscard]] bool read_exactly_until(void *data, size_t size,
					      const std::chrono::time_point<Clock, Duration> &when)
	{
		return read_exactly_by(data, size, waits_until(when));
	}

	/**
	 * The bytes before the next `delimiter`, which is removed; at the end of the input the rest, if there is any:
	 * as std::getline.
	 * @return false: the input has ended, and `text` is empty
	 * @throws std::system_error, EMSGSIZE: it is longer than allowed; `read` gets its bytes, or `skip` drops them
	 */
	bool read_delimited(std::string &text, char delimiter)
	{
		return copy(text, find(delimiter, waits()));
	}
	template <typename Rep, typename Period>
	bool read_delimited_for(std::string &text, char delimiter, const std::chrono::duration<Rep, Period> &time)
	{
		return copy(text, find(delimiter, waits_until(detail::point_after(time))));
	}
	template <typename Clock, typename Duration>
	bool read_delimited_until(std::string &text, char delimiter,
				  const std::chrono::time_point<Clock, Duration> &when)
	{
		return copy(text, find(delimiter, waits_until(when)));
	}

	/** A line, without its "\n". Like read_delimited. */
	bool read_line(std::string &line)
	{
		return read_delimited(line, '\n');
	}
	template <typename Rep, typename Period>
	bool read_line_for(std::string &line, const std::chrono::duration<Rep, Period> &time)
	{
		return read_delimited_for(line, '\n', time);
	}
	template <typename Clock, typename Duration>
	bool read_line_until(std::string &line, const std::chrono::time_point<Clock, Duration> &when)
	{
		return read_delimited_until(line, '\n', when);
	}

	/** read_line without a copy: the line lies in the buffer, and is valid until the next call. */
	std::optional<std::string_view> next_line()
	{
		return find('\n', waits());
	}
	/** The lines to the end of the input: `for (std::string_view line : in.lines())`. A line is valid until the
	 * next. */
	detail::line_range<buffered_reader> lines() & noexcept
	{
		return detail::line_range<buffered_reader>(*this);
	}
	detail::line_range<buffered_reader> lines() && = delete; // the loop would outlive the reader
	/** Drop bytes of the buffer. @return how many, at most `size` */
	size_t skip(size_t size) noexcept
	{
		size_t some = size < end_ - begin_ ? size : end_ - begin_;

		begin_ += some;
		return some;
	}

      private:
	auto waits() noexcept
	{
		return [this](void *data, size_t size) { return source_.read(data, size); };
	}
	template <typename Time> auto waits_until(const Time &when) noexcept
	{
		return [this, when](void *data, size_t size) { return source_.read_until(data, size, when); };
	}

	template <typename Read> size_t read_by(void *data, size_t size, Read read)
	{
		if (begin_ == end_ && size >= buffer_.size())
			return read(data, size);
		if (begin_ == end_ && size && !fill(read))
			return 0;
		return take(data, size);
	}
	// Only whole records leave the buffer.
	template <typename Read> bool read_exactly_by(void *data, size_t size, Read read)
	{
		while (end_ - begin_ < size) {
			if (fill(read))
				continue;
			if (begin_ == end_)
				return false;
			detail::check(-ENODATA);
		}
		(void)take(data, size);
		return true;
	}
	// The text lies in the buffer, and has been taken from it.
	template <typename Read> std::optional<std::string_view> find(char delimiter, Read read)
	{
		size_t seen = 0;

		for (;;) {
			const char *start = buffer_.data() + begin_;
			size_t have = end_ - begin_, most = have <= longest_ ? have : longest_ + 1;
			const void *at = most > seen ? std::memchr(start + seen, delimiter, most - seen) : nullptr;

			if (at)
				return taken(static_cast<size_t>(static_cast<const char *>(at) - start), 1);
			if (have > longest_)
				detail::check(-EMSGSIZE);
			seen = have;
			if (!fill(read))
				return have ? taken(have, 0) : std::nullopt;
		}
	}
	std::optional<std::string_view> taken(size_t length, size_t delimiter) noexcept
	{
		std::string_view text(buffer_.data() + begin_, length);

		begin_ += length + delimiter;
		return text;
	}
	// If there is no memory for the copy, the text goes back into the buffer.
	bool copy(std::string &text, const std::optional<std::string_view> &found)
	{
		size_t after = begin_;

		if (!found) {
			text.clear();
			return false;
		}
		begin_ = static_cast<size_t>(found->data() - buffer_.data());
		text.assign(*found);
		begin_ = after;
		return true;
	}
	size_t take(void *data, size_t size) noexcept
	{
		const char *start = buffer_.data() + begin_;
		size_t some = skip(size);

		if (some)
			std::memcpy(data, start, some);
		return some;
	}
	// More bytes into the buffer. False: the end.
	template <typename Read> bool fill(Read &read)
	{
		size_t more;

		if (WEFT_CANARY(timeouts_take_bytes))
			begin_ = begin_ < end_ ? begin_ + 1 : begin_;
		make_room();
		more = read(buffer_.data() + end_, buffer_.size() - end_);
		end_ += more;
		return more;
	}
	void make_room()
	{
		if (begin_ == end_)
			begin_ = end_ = 0;
		if (end_ < buffer_.size())
			return;
		if (begin_ >= buffer_.size() / 2 && begin_) {
			std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
			end_ -= begin_;
			begin_ = 0;
		} else {
			buffer_.resize(2 * buffer_.size());
		}
	}

	Source source_;
	std::vector<char> buffer_;
	size_t begin_ = 0, end_ = 0, longest_;
};

template <typename Source> explicit buffered_reader(Source &&) -> buffered_reader<Source>;
template <typename Source> explicit buffered_reader(Source &&, size_t) -> buffered_reader<Source>;
template <typename Source> explicit buffered_reader(Source &&, size_t, size_t) -> buffered_reader<Source>;

/**
 * Collects small writes. It refers to its sink or owns it, like buffered_reader. The destructor writes nothing, because
 * a destructor must not wait: call flush at the end.
 * @tparam Sink  has `size_t write(const void *, size_t)`; for flush_for and flush_until also `write_until`
 */
template <typename Sink> class buffered_writer
{
      public:
	/** @param size  of the buffer @throws std::bad_alloc */
	explicit buffered_writer(Sink &&sink, size_t size = 8192)
	    : sink_(std::forward<Sink>(sink)), buffer_(size ? size : 1)
	{
	}

	/** The sink, to which the bytes in the buffer have not been written yet. */
	std::remove_reference_t<Sink> &sink() noexcept
	{
		return sink_;
	}
	/** Put bytes into the buffer. If they do not fit, the buffer is written first; if that throws, no new byte is
	 * in the buffer. Bytes that would fill the whole buffer go to the sink directly; if that throws, part of them
	 * has been written. */
	void write(const void *data, size_t size)
	{
		if (size > buffer_.size() - end_)
			flush();
		if (size >= buffer_.size()) {
			write_by(static_cast<const char *>(data), size, waits());
		} else if (size) {
			std::memcpy(buffer_.data() + end_, data, size);
			end_ += size;
		}
	}
	void write(std::string_view text)
	{
		write(text.data(), text.size());
	}
	/** Writes the buffer. Bytes that are not written when it throws stay there, for the next call. */
	void flush()
	{
		flush_by(waits());
	}
	template <typename Rep, typename Period> void flush_for(const std::chrono::duration<Rep, Period> &time)
	{
		flush_until(detail::point_after(time));
	}
	template <typename Clock, typename Duration>
	void flush_until(const std::chrono::time_point<Clock, Duration> &when)
	{
		flush_by([this, when](const void *data, size_t size) { return sink_.write_until(data, size, when); });
	}

      private:
	auto waits() noexcept
	{
		return [this](const void *data, size_t size) { return sink_.write(data, size); };
	}
	template <typename Write> static size_t write_some(const char *data, size_t size, Write &write)
	{
		size_t some = write(data, size);

		if (!some)
			detail::check(-EIO);
		return some;
	}
	template <typename Write> static void write_by(const char *data, size_t size, Write write)
	{
		for (size_t done = 0; done < size;)
			done += write_some(data + done, size - done, write);
	}
	template <typename Write> void flush_by(Write write)
	{
		while (begin_ < end_)
			begin_ += write_some(buffer_.data() + begin_, end_ - begin_, write);
		begin_ = end_ = 0;
	}

	Sink sink_;
	std::vector<char> buffer_;
	size_t begin_ = 0, end_ = 0;
};

template <typename Sink> explicit buffered_writer(Sink &&) -> buffered_writer<Sink>;
template <typename Sink> explicit buffered_writer(Sink &&, size_t) -> buffered_writer<Sink>;

} // namespace weft

#endif // WEFT_IO_HPP
