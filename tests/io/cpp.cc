// SPDX-License-Identifier: MIT OR Apache-2.0
//
// weft/io.hpp with real sockets, files, processes and directories; its buffers beside std::getline, its watches beside
// a scan of the directory, both with random operations.
//
//   cpp WORKERS [NAME]; 0: in a thread; simulate SEEDS [NAME]
#include "../sched/check.hpp"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <poll.h>
#include <random>
#include <set>
#include <sstream>
#include <sys/inotify.h>
#include <thread>
#include <weft/io.hpp>
#include <weft/sched.hpp>

#include "../counted_new.h"

using namespace std::chrono_literals;

namespace
{

bool in_thread, simulated;
unsigned seed;

// Runs g in a task or thread of its own, while f runs.
template <typename F, typename G> void beside(F &&f, G &&g)
{
	if (in_thread) {
		std::thread other(g);

		f();
		other.join();
	} else {
		weft::scope scope;

		scope.start(g);
		f();
		scope.wait();
	}
}

// A directory that is removed at the end of the block.
struct directory {
	std::string path;

	directory()
	{
		char name[] = "/tmp/weft-cpp-XXXXXX";

		CHECK(mkdtemp(name));
		path = name;
		if (simulated)
			weft::file::mkdir(path);
	}
	~directory()
	{
		std::error_code error;

		std::filesystem::remove_all(path, error);
	}
};

template <typename T> bool is_open(const T &object)
{
	return static_cast<bool>(object) && object.native_handle() >= 0;
}

// ---- streams --------------------------------------------------------------------------------------------------------

void bytes()
{
	auto [a, b] = weft::socket_stream::pair();
	char text[16];

	CHECK(is_open(a) && is_open(b));
	CHECK(error_of([&] { a.read_for(text, sizeof text, 1ms); }) == ETIMEDOUT);
	CHECK(error_of([&] { a.read_until(text, 1, std::chrono::steady_clock::now()); }) == ETIMEDOUT);
	CHECK(error_of([&] { (void)a.read_exactly_for(text, 1, 1ms); }) == ETIMEDOUT);
	b.write_all("hello");
	b.writev_all({", ", "", "wor", "ld"});
	CHECK(a.read_exactly(text, 12) && !std::memcmp(text, "hello, world", 12));
	b.writev_all({});
	b.writev_all({"", ""});
	b.writev_all_for({"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p", "q"}, 1h);
	CHECK(a.read_exactly_until(text, 16, weft::clock::now() + 1h) && !std::memcmp(text, "abcdefghijklmnop", 16));
	CHECK(a.read(text, 16) == 1 && text[0] == 'q');
	CHECK(b.write_for("x", 1, 1h) == 1 && b.write("y", 1) == 1);
	b.write_all_for("z", 1h);
	b.shutdown();
	CHECK(error_of([&] { (void)a.read_exactly(text, 4); }) == ENODATA && !std::memcmp(text, "xyz", 3));
	CHECK(a.read(text, 4) == 0 && !a.read_exactly(text, 4) && a.read_exactly(text, 0));
	weft::stream c = std::move(a);
	CHECK(is_open(c) && !a && error_of([&] { a.read(text, 1); }) == EBADF);
	c.close();
	c.close();
	CHECK(!c && error_of([&] { c.write_all("x"); }) == EBADF);
	CHECK(error_of([&] { b.write_all("x"), b.write_all("y"); }) == EPIPE);
	int number = b.release();
	CHECK(!b && weft_close(number) == 0);
}

void connections()
{
	weft::listener listener("127.0.0.1");
	std::string port = std::to_string(listener.port());
	char text[8];

	CHECK(listener.local_address().text() == "127.0.0.1:" + port);
	CHECK(error_of([&] { (void)listener.accept_for(1ms); }) == ETIMEDOUT);
	auto client = weft::tcp_stream::connect_for("127.0.0.1", port, 1h);
	weft::tcp_stream server = listener.accept_until(weft::clock::now() + 1h);
	CHECK(client.peer_address().text() == "127.0.0.1:" + port);
	CHECK(server.local_address().text() == "127.0.0.1:" + port);
	CHECK(server.peer_address().text() == client.local_address().text());
	client.set_no_delay(false);
	client.set_no_delay();
	client.write_all("ping");
	CHECK(server.read_exactly(text, 4) && !std::memcmp(text, "ping", 4));
	server = weft::tcp_stream();
	CHECK(client.read(text, 1) == 0);
	listener.close();
	CHECK(error_of([&] { weft::tcp_stream::connect("127.0.0.1", port); }) == ECONNREFUSED);
	CHECK(error_of([&] { weft::tcp_stream::connect("127.0.0.1", "99999"); }) == EINVAL);
	CHECK(error_of([&] { weft::listener none("no address"); }) == EINVAL);
	std::vector<weft::address> found = weft::resolve("127.0.0.1", "80");
	CHECK(found.size() == 1 && found[0].text() == "127.0.0.1:80");
}

void unix_connections()
{
	directory d;
	std::string path = d.path + "/socket";
	weft::listener listener(simulated ? "@cpp" : path);
	weft::unix_stream client = weft::unix_stream::connect(simulated ? "@cpp" : path);
	weft::unix_stream server = listener.accept();
	char text[8];

	server.write_all("pong");
	CHECK(client.read_exactly(text, 4) && !std::memcmp(text, "pong", 4));
	CHECK(client.peer_address().text() == (simulated ? "@cpp" : path));
	CHECK(error_of([&] { (void)listener.port(); }) == EAFNOSUPPORT);
	CHECK(error_of([&] { client.set_no_delay(); }) == EOPNOTSUPP);
}

void datagrams()
{
	weft::udp_socket a("127.0.0.1"), b("127.0.0.1");
	weft::address from;
	char text[8];

	CHECK(error_of([&] { a.receive_for(text, sizeof text, nullptr, 1ms); }) == ETIMEDOUT);
	b.send("data", a.local_address());
	CHECK(a.receive(text, sizeof text, &from) == 4 && !std::memcmp(text, "data", 4));
	CHECK(from.text() == b.local_address().text() && from.text() == "127.0.0.1:" + std::to_string(b.port()));
	a.send("", from);
	CHECK(b.receive_until(text, sizeof text, &from, weft::clock::now() + 1h) == 0);
	CHECK(from.text() == a.local_address().text());
}

#if defined(__cpp_lib_span)
void spans()
{
	auto [a, b] = weft::socket_stream::pair();
	char out[] = "spans", in[sizeof out] = "";

	a.write_all(std::as_bytes(std::span(out)));
	CHECK(b.read_exactly(std::as_writable_bytes(std::span(in))) && !std::strcmp(in, out));
	CHECK(a.write(std::as_bytes(std::span(out))) > 0 && b.read(std::as_writable_bytes(std::span(in))) > 0);
}
#endif

// ---- files ----------------------------------------------------------------------------------------------------------

void files()
{
	directory d;
	std::string path = d.path + "/a", other = d.path + "/b";
	char text[8];

	CHECK(error_of([&] { weft::file none(path); }) == ENOENT);
	weft::file f(path, O_RDWR | O_CREAT | O_EXCL, 0600);
	f.write_at("hello, world", 0);
	CHECK(f.size() == 12 && f.read_at(text, 8, 7) == 5 && !std::memcmp(text, "world", 5));
	CHECK(f.read_at(text, 8, 12) == 0);
	CHECK(f.read(text, 2) > 0);
	CHECK(weft::file(path).read_all() == "hello, world");
	CHECK(error_of([&] { weft::file(path).read_all(11); }) == EFBIG);
	CHECK(weft::file(path).read_all(12) == "hello, world");
	f.truncate(5);
	f.sync();
	f.sync_data();
	CHECK(f.size() == 5 && weft::file::status(path).st_size == 5);
	weft::file::rename(path, other);
	weft::file::mkdir(path);
	CHECK(error_of([&] { weft::file::mkdir(path); }) == EEXIST);
	std::set<std::string> names;
	for (const weft::directory_entry &e : weft::file::list(d.path))
		names.insert(e.name);
	CHECK(names == std::set<std::string>({"a", "b"}));
	weft::file::rmdir(path);
	if (!simulated) {
		weft::file::symlink("b", path);
		weft::file::link(other, d.path + "/c");
		CHECK(weft::file(path).read_all() == "hello" && weft::file(d.path + "/c").size() == 5);
	}
	weft::file::unlink(other);
	CHECK(error_of([&] { weft::file::unlink(other); }) == ENOENT);
	std::string large(100000, 'x');
	weft::file(other, O_WRONLY | O_CREAT).write_all(large);
	CHECK(weft::file(other).read_all() == large);
}

// ---- processes ------------------------------------------------------------------------------------------------------

weft::process_options piped()
{
	weft::process_options options;

	options.input = options.output = options.errors = weft::process::piped;
	return options;
}

void processes()
{
	weft::process cat({"cat"}, piped());

	CHECK(is_open(cat.input) && is_open(cat.output) && is_open(cat.errors) && cat.id() > 0);
	cat.input.write_all("through a pipe\n");
	weft::buffered_reader in(cat.output);
	CHECK(in.next_line() == "through a pipe");
	CHECK(error_of([&] {
		      weft::process other({"cat"}, piped()), second = std::move(other);
		      other.wait();
	      }) == ECHILD);
	weft::process moved = std::move(cat);
	CHECK(moved.wait().success() && moved.wait().code() == 0 && !cat.id() && !moved.id());
	CHECK(error_of([&] { moved.kill(); }) == ESRCH);

	weft::process_options options = piped();
	options.directory = "/";
	options.environment = {"NAME=value", "PATH=/bin:/usr/bin"};
	weft::pipe more;
	options.more_fds = {more.writer.native_handle()};
	weft::process sh({"sh", "-c", "pwd; echo $NAME; echo third >&3; echo bad >&2; exit 3"}, options);
	more.writer.close();
	CHECK(weft::buffered_reader(std::move(more.reader)).next_line() == "third");
	std::string line;
	weft::buffered_reader out(sh.output);
	CHECK(out.read_line(line) && line == "/" && out.read_line(line) && line == "value" && !out.read_line(line));
	CHECK(weft::buffered_reader(sh.errors).read_line(line) && line == "bad");
	weft::exit_status status = sh.wait_for(1h);
	CHECK(!status.success() && status.code() == 3 && status.signal() == 0);

	weft::process sleeps({"sleep", "1000"});
	CHECK(error_of([&] { sleeps.wait_for(1ms); }) == ETIMEDOUT);
	sleeps.kill();
	status = sleeps.wait_until(weft::clock::now() + 1h);
	CHECK(!status.success() && status.code() == -1 && status.signal() == SIGTERM);
	CHECK(error_of([] { weft::process none({"/no/such/program"}); }) == ENOENT);
	CHECK(error_of([] { weft::process none({}); }) == EINVAL);
}

// When the object of a process is destroyed, the process has ended and has been waited for.
void left_processes()
{
	pid_t number, released;
	int code = 0;

	{
		weft::process sleeps({"sleep", "1000"}, piped()), other({"sleep", "1000"});

		number = sleeps.id();
		released = other.release();
		sleeps = weft::process({"cat"}, piped());
		CHECK(::kill(number, 0) < 0);
		number = sleeps.id();
	}
	CHECK(::kill(number, 0) < 0 && ::kill(released, SIGKILL) == 0);
	CHECK(weft_waitpid(released, &code) == released && WTERMSIG(code) == SIGKILL);
}

// ---- cancellation ---------------------------------------------------------------------------------------------------

// The destructors of a cancelled task close its objects, in whichever operation it waits.
void cancelled()
{
	weft::listener listener("127.0.0.1");
	pid_t number = 0;
	char text[8];

	for (int what = 0; what < 5; what++) {
		auto [here, there] = weft::socket_stream::pair();
		weft::scope scope;
		auto task = scope.spawn([&, what, s = std::move(there)]() mutable {
			weft::buffered_reader in(std::move(s));
			std::string line;

			if (what == 0)
				in.read_line(line);
			else if (what == 1)
				(void)listener.accept();
			else if (what == 2)
				for (;;)
					in.source().write_all(std::string(65536, 'x'));
			else if (simulated)
				in.source().read(text, 1);
			else if (what == 3) {
				weft::process child({"sleep", "1000"}, piped());

				number = child.id();
				child.output.read(text, 1);
			} else {
				weft::file_watch watch;

				watch.add("/tmp", IN_DELETE_SELF);
				watch.next();
			}
		});

		weft::this_task::sleep_for(20ms);
		task.cancel();
		CHECK(error_of([&] { task.join(); }) == ECANCELED);
		char part[4096];
		while (here.read(part, sizeof part))
			;
		CHECK(!number || ::kill(number, 0) < 0);
	}
}

// A scope's deadline ends the wait by an exception, and no data is lost.
void late()
{
	auto [a, b] = weft::socket_stream::pair();
	weft::buffered_reader in(a);
	std::string line;

	b.write_all("half");
	{
		weft::scope scope(10ms);

		CHECK(error_of([&] { in.read_line(line); }) == ECANCELED);
		CHECK(error_of([&] { scope.wait(); }) == ETIMEDOUT);
	}
	b.write_all(" a line\n");
	CHECK(in.read_line(line) && line == "half a line");
}

// ---- buffers --------------------------------------------------------------------------------------------------------

void reading()
{
	auto [a, b] = weft::socket_stream::pair();
	weft::buffered_reader in(a, 4, 10);
	std::string line;
	char text[16];

	b.write_all("one\n\ntwo;three\n0123456789\n0123456789+\n");
	CHECK(in.read_line(line) && line == "one");
	CHECK(in.read_line(line) && line.empty());
	CHECK(in.read_delimited(line, ';') && line == "two");
	CHECK(in.next_line() == "three");
	CHECK(in.read_line_for(line, 1h) && line == "0123456789");
	CHECK(error_of([&] { in.read_line(line); }) == EMSGSIZE && error_of([&] { in.read_line(line); }) == EMSGSIZE);
	CHECK(in.skip(5) == 5 && in.read_line(line) && line == "56789+");
	CHECK(error_of([&] { in.read_line_for(line, 1ms); }) == ETIMEDOUT);
	CHECK(error_of([&] { in.read_for(text, 16, 1ms); }) == ETIMEDOUT);
	b.write_all("abc");
	CHECK(error_of([&] { in.read_line_for(line, 10ms); }) == ETIMEDOUT);
	CHECK(error_of([&] { in.read_delimited_until(line, ';', weft::clock::now()); }) == ETIMEDOUT);
	CHECK(error_of([&] { (void)in.read_exactly_for(text, 4, 1ms); }) == ETIMEDOUT);
	b.write_all("def\n");
	CHECK(in.read_line_until(line, weft::clock::now() + 1h) && line == "abcdef");
	b.write_all("12345678xyz\nlast");
	CHECK(in.read_exactly(text, 8) && !std::memcmp(text, "12345678", 8));
	b.shutdown();
	std::vector<std::string> rest;
	for (std::string_view each : in.lines())
		rest.emplace_back(each);
	CHECK(rest == std::vector<std::string>({"xyz", "last"}));
	CHECK(!in.read_line(line) && line.empty() && in.read(text, 16) == 0 && !in.read_exactly(text, 1));
}

// A line for which there is no memory stays in the buffer.
void reading_without_memory()
{
	auto [a, b] = weft::socket_stream::pair();
	weft::buffered_reader in(a);
	std::string line, text(1000, 'x');
	char more[1002];
	bool refused = false;

	b.write_all(text + "\n");
	while (in.buffered().size() <= text.size()) // the reader has no more than that
		CHECK(error_of([&] { (void)in.read_exactly_for(more, sizeof more, 1ms); }) == ETIMEDOUT);
	refuses_new = true;
	try {
		in.read_line(line);
	} catch (const std::bad_alloc &) {
		refused = true;
	}
	refuses_new = false;
	CHECK((refused || WEFT__SANITIZED) && (line == text || (in.read_line_for(line, 1s) && line == text)));
}

void the_end_of_a_record()
{
	auto [a, b] = weft::socket_stream::pair();
	weft::buffered_reader in(std::move(a), 2);
	char text[8];

	b.write_all("abc");
	b.close();
	CHECK(error_of([&] { (void)in.read_exactly(text, 4); }) == ENODATA && in.buffered() == "abc");
	CHECK(in.read_exactly(text, 3) && !in.read_exactly(text, 1) && in.read_exactly(text, 0));
}

void writing()
{
	auto [a, b] = weft::socket_stream::pair();
	weft::buffered_writer out(a, 8);
	std::string large(1000000, 'y');
	char text[16];

	out.write("abc");
	out.write("defg");
	CHECK(error_of([&] { b.read_for(text, 1, 1ms); }) == ETIMEDOUT);
	out.write("hi");
	CHECK(b.read_exactly(text, 7) && !std::memcmp(text, "abcdefg", 7));
	out.flush();
	out.flush();
	CHECK(b.read_exactly(text, 2) && !std::memcmp(text, "hi", 2));
	beside([&] { out.write("12"), out.write(large), out.write("34"), out.flush_for(1h); },
	       [&s = b, &large] {
		       std::string all(large.size() + 4, ' ');

		       CHECK(s.read_exactly(all.data(), all.size()) && all == "12" + large + "34");
	       });
	// A flush that fails in the middle neither loses nor repeats a byte.
	weft::buffered_writer slow(a, large.size() + 1);
	slow.write(large);
	CHECK(error_of([&] { slow.flush_for(1ms); }) == ETIMEDOUT);
	CHECK(error_of([&] { slow.flush_until(weft::clock::now()); }) == ETIMEDOUT);
	beside([&] { slow.flush(), a.shutdown(); },
	       [&s = b, &large] {
		       std::string all(large.size(), ' ');
		       char more;

		       CHECK(s.read_exactly(all.data(), all.size()) && all == large && s.read(&more, 1) == 0);
	       });
}

// ---- random operations ----------------------------------------------------------------------------------------------

// Uses few different bytes, so that each delimiter occurs often, and also twice in a row.
std::string random_text(std::mt19937 &random)
{
	std::string text(random() % 4000, ' ');
	unsigned few = 2 + random() % 30;

	for (char &c : text)
		c = "\n;,a\0bcdefghijklmnopqrstuvwxyz0123"[random() % few];
	return text;
}

template <typename Write> void send_in_pieces(Write write, std::string_view text, std::mt19937 &random)
{
	while (!text.empty()) {
		size_t size = 1 + random() % (random() % 4 ? 10 : 1000);
		std::string_view piece = text.substr(0, size);

		write(piece);
		text.remove_prefix(piece.size());
		if (random() % 8 == 0)
			weft_sleep(random() % 100000);
	}
}

// Does one operation by `in` and by the standard library. Returns false if both have ended.
template <typename Reader> bool same(Reader &in, std::istringstream &expected, std::mt19937 &random)
{
	char got[64], wanted[64], delimiter = "\n;,a\0"[random() % 5];
	size_t size = random() % sizeof got, some;
	std::streamoff before = expected.tellg();
	std::string line, other;
	bool more, is_whole;

	switch (random() % 4) {
	case 0:
		more = in.read_delimited(line, delimiter);
		CHECK(more == static_cast<bool>(std::getline(expected, other, delimiter)) && line == other);
		return more;
	case 1:
		more = true;
		while (error_of([&] { more = in.read_delimited_for(line, delimiter, 50us); }) == ETIMEDOUT)
			;
		CHECK(more == static_cast<bool>(std::getline(expected, other, delimiter)) && line == other);
		return more;
	case 2:
		some = in.read(got, size);
		expected.read(wanted, static_cast<std::streamsize>(some));
		CHECK(static_cast<size_t>(expected.gcount()) == some && !std::memcmp(got, wanted, some));
		return some || !size;
	default:
		more = false;
		is_whole = error_of([&] { more = in.read_exactly(got, size); }) != ENODATA;
		expected.read(wanted, static_cast<std::streamsize>(size));
		some = static_cast<size_t>(expected.gcount());
		CHECK(more == (some == size) && is_whole == (some == size || !some));
		CHECK(!more || !std::memcmp(got, wanted, size));
		if (more || !some)
			return more;
		CHECK(in.buffered().size() == some && !std::memcmp(in.buffered().data(), wanted, some));
		expected.clear();
		expected.seekg(before);
		return true;
	}
}

void beside_getline()
{
	for (int round = 0; round < (simulated ? 3 : 30); round++) {
		std::mt19937 random(seed * 1000 + static_cast<unsigned>(round));
		std::string text = random_text(random);
		auto [a, b] = weft::socket_stream::pair();
		weft::buffered_reader in(a, 1 + random() % 100, 5000);
		unsigned senders = static_cast<unsigned>(random()), buffer = static_cast<unsigned>(random() % 100);
		std::istringstream expected(text);

		beside(
		    [&] {
			    while (same(in, expected, random))
				    ;
			    CHECK(in.buffered().empty());
		    },
		    [&text, senders, buffer, to = std::make_shared<weft::socket_stream>(std::move(b))] {
			    std::mt19937 other(senders);

			    if (buffer % 2) {
				    weft::buffered_writer out(*to, buffer);

				    send_in_pieces([&](std::string_view part) { out.write(part); }, text, other);
				    out.flush();
			    } else {
				    send_in_pieces([&](std::string_view part) { to->write_all(part); }, text, other);
			    }
			    to->shutdown();
		    });
	}
}

// A thread changes a directory at random.
void change(const std::string &path, unsigned number)
{
	std::mt19937 random(number);
	std::error_code error;

	for (int i = 0; i < 500; i++) {
		std::string name = path + "/" + std::string(1 + random() % 3, static_cast<char>('a' + random() % 5));
		std::string other = path + "/" + std::string(1 + random() % 3, static_cast<char>('a' + random() % 5));

		switch (random() % 6) {
		case 0:
			std::filesystem::remove(name, error);
			break;
		case 1:
			std::filesystem::rename(name, other, error);
			break;
		case 2:
			std::filesystem::create_directory(name, error);
			break;
		case 3:
			std::filesystem::create_hard_link(name, other, error);
			break;
		case 4:
			std::ofstream(name) << "text";
			break;
		default:
			if (random() % 4 == 0)
				std::this_thread::sleep_for(100us);
		}
	}
	std::ofstream(path + "/the end").flush();
}

void beside_a_scan()
{
	for (unsigned round = 0; round < 10; round++) {
		directory d;
		weft::file_watch watch;
		std::set<std::string> known, there;
		int number = watch.add(d.path, IN_CREATE | IN_DELETE | IN_MOVE);
		std::thread changes(change, d.path, seed * 10 + round);

		while (!known.count("the end")) {
			weft_file_change_t c;
			int error = error_of([&] { c = watch.next_for(1ms); });

			CHECK(!error || error == ETIMEDOUT);
			if (error)
				continue;
			CHECK(c.watch == number);
			if (c.events & (IN_CREATE | IN_MOVED_TO))
				known.insert(c.name);
			else
				CHECK(c.events & (IN_DELETE | IN_MOVED_FROM) && known.erase(c.name));
		}
		changes.join();
		for (const auto &entry : std::filesystem::directory_iterator(d.path))
			there.insert(entry.path().filename());
		CHECK(known == there);
	}
}

void watches()
{
	directory d;
	std::string path = d.path + "/a", other = d.path + "/b";
	weft::file_watch watch;
	int number = watch.add(d.path, IN_CREATE | IN_DELETE | IN_MOVE);

	weft::file(path, O_WRONLY | O_CREAT, 0600).write_at("text", 0);
	weft::file::rename(path, other);
	weft::file::unlink(other);
	for (auto [events, name] : std::initializer_list<std::pair<unsigned, const char *>>{
		 {IN_CREATE, "a"}, {IN_MOVED_FROM, "a"}, {IN_MOVED_TO, "b"}, {IN_DELETE, "b"}}) {
		weft_file_change_t c = watch.next();

		CHECK(c.watch == number && c.events == events && !std::strcmp(c.name, name));
	}
	CHECK(error_of([&] { watch.add(path, IN_CREATE); }) == ENOENT);
	watch.remove(number);
	CHECK(watch.next().events & IN_IGNORED);
	weft::file_watch moved = std::move(watch);
	CHECK(moved.add(d.path, IN_CREATE) > 0 && error_of([&] { watch.add(d.path, IN_CREATE); }) == EBADF);
}

enum { THREADS = 1, TASKS = 2, SIMULATED = 4, REAL = THREADS | TASKS, ALL = REAL | SIMULATED };

struct test {
	const char *name;
	void (*run)();
	int where;
} tests[] = {
    {"bytes", bytes, ALL},
    {"connections", connections, ALL},
    {"unix_connections", unix_connections, ALL},
    {"datagrams", datagrams, ALL},
#if defined(__cpp_lib_span)
    {"spans", spans, ALL},
#endif
    {"files", files, ALL},
    {"processes", processes, REAL},
    {"left_processes", left_processes, REAL},
    {"cancelled", cancelled, TASKS | SIMULATED},
    {"late", late, TASKS | SIMULATED},
    {"reading", reading, ALL},
    {"reading_without_memory", reading_without_memory, ALL},
    {"the_end_of_a_record", the_end_of_a_record, ALL},
    {"writing", writing, ALL},
    {"beside_getline", beside_getline, ALL},
    {"beside_a_scan", beside_a_scan, REAL},
    {"watches", watches, ALL},
};

void *run_in_task(void *self)
{
	static_cast<test *>(self)->run();
	return self;
}

int run(test &t, const weft_rt_config_t &config)
{
	if (simulated)
		return weft_simulate(seed, &config, run_in_task, &t, nullptr);
	if (!in_thread)
		return weft_rt_run(&config, run_in_task, &t, nullptr);
	t.run();
	return 0;
}

} // namespace

int main(int argc, char **argv)
{
	int seeds = 1, number = argc > 1 ? std::atoi(argv[1]) : 1, name = 2;
	weft_rt_config_t config{};

	std::signal(SIGPIPE, SIG_IGN);
	if (argc > 2 && !std::strcmp(argv[1], "simulate")) {
		simulated = true;
		seeds = std::atoi(argv[2]);
		name = 3;
	}
	in_thread = !simulated && !number;
	config.task.flags = WEFT_UNWIND | WEFT_SAVE_EXCEPTIONS;
	config.workers = simulated ? 1 : static_cast<unsigned>(number);
	for (test &t : tests) {
		if (!(t.where & (simulated   ? SIMULATED
				 : in_thread ? THREADS
					     : TASKS)) ||
		    (argc > name && std::strcmp(argv[name], t.name)))
			continue;
		for (seed = 0; seed < static_cast<unsigned>(seeds); seed++)
			CHECK(run(t, config) == 0);
		std::printf("ok - %s\n", t.name);
		std::fflush(stdout);
	}
	return 0;
}
