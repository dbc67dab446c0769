// SPDX-License-Identifier: MIT OR Apache-2.0
//! Experiment B3 on hyper, as impl/http.c does it. hyper adds Content-Length and Date by itself.

use crate::{io_on_tokio::open_door, Answer, Params};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{HeaderValue, CONTENT_TYPE};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use std::convert::Infallible;

async fn hello(_: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let mut response = Response::new(Full::new(Bytes::from_static(b"Hello, World!")));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    Ok(response)
}

/// `pipeline_flush`: replies to pipelined requests are sent together.
async fn server() -> Option<Answer> {
    let door = open_door();
    let mut http = http1::Builder::new();
    http.pipeline_flush(true);
    loop {
        let (connection, _) = door.accept().await.expect("a connection");
        connection.set_nodelay(true).expect("an option");
        tokio::spawn(http.serve_connection(TokioIo::new(connection), service_fn(hello)));
    }
}

pub fn run(p: Params) -> Option<Answer> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(p.workers).enable_all().build().expect("a runtime");
    runtime.block_on(runtime.spawn(server())).expect("an answer")
}
