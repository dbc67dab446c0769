// SPDX-License-Identifier: MIT OR Apache-2.0
//! Experiment B3 on may_minihttp, as impl/http.c does it. may_minihttp adds Content-Length, Date and Server by itself.

use crate::io_on_tokio::{raise_limit, start_load};
use crate::{Answer, Params};
use may_minihttp::{HttpServer, HttpService, Request, Response};

#[derive(Clone)]
struct Hello;

impl HttpService for Hello {
    fn call(&mut self, _: Request, response: &mut Response) -> std::io::Result<()> {
        response.header("Content-Type: text/plain").body("Hello, World!");
        Ok(())
    }
}

/// may_minihttp binds its listener itself, and does not report the address.
fn free_address() -> std::net::SocketAddr {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address")
}

pub fn run(p: Params) -> Option<Answer> {
    may::config().set_workers(p.workers);
    raise_limit();
    let address = free_address();
    let server = HttpServer(Hello).start(address).expect("a listener");
    start_load(address.port());
    server.join().expect("a server");
    None
}
