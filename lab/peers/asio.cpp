/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* asio: the experiment `io` on Boost.Asio, which uses epoll, with C++20 coroutines; as impl/io.c does it. */
#include "../impl/io_server.h"

#include <utility>

#include <boost/asio.hpp>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

namespace asio = boost::asio;
using asio::awaitable;
using asio::use_awaitable;
using asio::ip::tcp;
using asio::ip::udp;

namespace
{

const tcp::endpoint anywhere{asio::ip::address_v4::loopback(), 0};

/* ---- ping-pong --------------------------------------------------------------------------------------------------- */

template <typename In, typename Out> awaitable<void> returns(In &in, Out &out)
{
	char byte;

	for (;;) {
		co_await in.async_read_some(asio::buffer(&byte, 1), use_awaitable);
		co_await out.async_write_some(asio::buffer(&byte, 1), use_awaitable);
	}
}

template <typename In, typename Out> awaitable<void> exchange(asio::io_context &loop, int64_t n, In &in, Out &out)
{
	char byte = 0;

	lab_start();
	for (int64_t i = 0; i < n; i++) {
		co_await out.async_write_some(asio::buffer(&byte, 1), use_awaitable);
		co_await in.async_read_some(asio::buffer(&byte, 1), use_awaitable);
	}
	lab_stop();
	loop.stop();
}

template <typename In, typename Out>
void ping_pong(asio::io_context &loop, int64_t n, In &in, Out &out, In &far_in, Out &far_out)
{
	asio::co_spawn(loop, returns(far_in, far_out), asio::detached);
	asio::co_spawn(loop, exchange(loop, n, in, out), asio::detached);
	loop.run();
}

void by_pipe(asio::io_context &loop, int64_t n)
{
	int to[2], back[2];

	if (pipe(to) || pipe(back))
		lab_die("pipe");
	asio::posix::stream_descriptor far_in(loop, to[0]), out(loop, to[1]), in(loop, back[0]), far_out(loop, back[1]);
	ping_pong(loop, n, in, out, far_in, far_out);
}

void by_tcp(asio::io_context &loop, int64_t n)
{
	tcp::acceptor door(loop, anywhere);
	tcp::socket here(loop);

	here.connect(door.local_endpoint());
	tcp::socket there = door.accept();
	here.set_option(tcp::no_delay(true));
	there.set_option(tcp::no_delay(true));
	ping_pong(loop, n, here, here, there, there);
}

/* ---- a server ---------------------------------------------------------------------------------------------------- */

awaitable<void> serve(tcp::socket connection)
{
	char text[IO_BUFFER];

	try {
		for (;;) {
			std::size_t n = co_await connection.async_read_some(asio::buffer(text), use_awaitable);
			co_await asio::async_write(connection, asio::buffer(text, n), use_awaitable);
		}
	} catch (const std::exception &) {
		/* The client has closed the connection. */
	}
}

awaitable<void> accept_all(tcp::acceptor &door)
{
	for (;;) {
		tcp::socket connection = co_await door.async_accept(use_awaitable);
		asio::co_spawn(door.get_executor(), serve(std::move(connection)), asio::detached);
	}
}

awaitable<void> compute(asio::io_context &loop)
{
	asio::steady_timer timer(loop);

	for (;;) {
		io_compute();
		timer.expires_after(std::chrono::milliseconds(1));
		co_await timer.async_wait(use_awaitable);
	}
}

int server(asio::io_context &loop, int argc, char **argv)
{
	tcp::acceptor door(loop, anywhere);
	std::vector<std::thread> workers;

	io_raise_limit();
	io_start_load(argc, argv, door.local_endpoint().port());
	if (lab_is(argc, argv, "case", "late"))
		asio::co_spawn(loop, compute(loop), asio::detached);
	asio::co_spawn(loop, accept_all(door), asio::detached);
	for (int64_t i = 1; i < lab_number(argc, argv, "workers", 1); i++)
		workers.emplace_back([&loop] { loop.run(); });
	loop.run();
	return 2;
}

awaitable<void> send_back(udp::socket &door)
{
	char text[IO_BUFFER];
	udp::endpoint from;

	for (;;) {
		std::size_t n = co_await door.async_receive_from(asio::buffer(text), from, use_awaitable);
		co_await door.async_send_to(asio::buffer(text, n), from, use_awaitable);
	}
}

int datagrams(asio::io_context &loop, int argc, char **argv)
{
	udp::socket door(loop, udp::endpoint(asio::ip::address_v4::loopback(), 0));

	io_start_load(argc, argv, door.local_endpoint().port());
	asio::co_spawn(loop, send_back(door), asio::detached);
	loop.run();
	return 2;
}

} // namespace

int main(int argc, char **argv)
{
	int64_t n = lab_number(argc, argv, "n", 1000);
	asio::io_context loop((int)lab_number(argc, argv, "workers", 1));

	if (lab_is(argc, argv, "case", "pipe"))
		by_pipe(loop, n);
	else if (lab_is(argc, argv, "case", "tcp"))
		by_tcp(loop, n);
	else if (lab_is(argc, argv, "case", "udp"))
		return datagrams(loop, argc, argv);
	else
		return server(loop, argc, argv);
	return lab_report((uint64_t)n, n);
}
