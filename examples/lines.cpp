// SPDX-License-Identifier: MIT OR Apache-2.0
//
// lines.cpp: a server that sends each line back in capitals, to three clients; then a reader that follows a log file
// while a writer appends to it, as `tail -f` does. See docs/reference/io.md, "In C++".
#include <weft/io.hpp>
#include <weft/sched.hpp>

#include <cctype>
#include <iostream>
#include <string>
#include <sys/inotify.h>

using namespace std::chrono_literals;

// doc: begin serve
// A client may be silent for a minute; then the connection ends.
static void serve(weft::tcp_stream client)
{
	weft::buffered_reader in(client);
	std::string line;

	while (in.read_line_for(line, 1min)) {
		for (char &c : line)
			c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
		client.writev_all({line, "\n"});
	}
}

static void accept_all(weft::listener &listener, int clients)
{
	weft::scope scope;

	for (int i = 0; i < clients; i++)
		scope.start(serve, listener.accept());
	scope.wait();
}
// doc: end

// doc: begin talk
static std::string talk(const std::string &port, const std::string &name)
{
	weft::tcp_stream server = weft::tcp_stream::connect("127.0.0.1", port);
	weft::buffered_writer out(server);
	std::string all;

	out.write("i am ");
	out.write(name);
	out.write("\nand say no more\n");
	out.flush();
	server.shutdown();
	weft::buffered_reader in(server);
	for (std::string_view line : in.lines())
		all.append(all.empty() ? "" : ", ").append(line);
	return all;
}
// doc: end

static void echo()
{
	weft::listener listener("127.0.0.1");
	std::string port = std::to_string(listener.port());
	weft::scope scope;

	scope.start([&] { accept_all(listener, 3); });
	for (const char *name : {"ann", "bob", "cid"})
		std::cout << talk(port, name) << '\n';
	scope.wait();
}

// doc: begin follow
// Prints whole lines, including lines that are appended later. The watch begins before the first read, so no change is
// missed.
static void follow(const std::string &path, const std::string &last)
{
	weft::file_watch changes;
	changes.add(path, IN_MODIFY);
	weft::file log(path);
	std::string text, line;

	while (line != last) {
		size_t end = text.find('\n');

		if (end != text.npos) {
			line = text.substr(0, end);
			text.erase(0, end + 1);
			std::cout << "log: " << line << '\n';
		} else if (std::string more = log.read_all(); !more.empty()) {
			text += more;
		} else {
			changes.next();
		}
	}
}
// doc: end

static void append(const std::string &path)
{
	weft::file log(path, O_WRONLY | O_APPEND);

	for (const char *part : {"one\ntw", "o\nthr", "ee\n", "the end\n"}) {
		weft::this_task::sleep_for(5ms);
		log.write_all(part);
	}
}

static void tail()
{
	std::string path = "/tmp/weft-lines-" + std::to_string(getpid());
	weft::scope scope;

	weft::file(path, O_WRONLY | O_CREAT | O_TRUNC, 0600).write_all("zero\n");
	scope.start([&] { follow(path, "the end"); });
	scope.start([&] { append(path); });
	scope.wait();
	weft::file::unlink(path);
}

int main()
{
	try {
		weft::run([] {
			echo();
			tail();
		});
	} catch (const std::exception &e) {
		std::cerr << "lines: " << e.what() << '\n';
		return 1;
	}
	return 0;
}
