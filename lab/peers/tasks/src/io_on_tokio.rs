// SPDX-License-Identifier: MIT OR Apache-2.0
//! The experiment `io` on tokio, as impl/io.c does it.

use crate::{compute, parameter, Answer, Clock, Params};
use std::os::unix::fs::FileExt;
use std::process::{exit, Command};
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{unix::pipe, TcpListener, TcpSocket, TcpStream, UdpSocket};
use tokio::sync::Notify;
use tokio::task::{spawn, spawn_blocking, yield_now};

const BUFFER: usize = 128;
const BLOCK: usize = 4096;

pub fn run(case: &str, p: Params) -> Option<Answer> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(p.workers).enable_all().build().expect("a runtime");
    let task = match case {
        "pipe" => runtime.spawn(by_pipe(p.n)),
        "tcp" => runtime.spawn(by_tcp(p.n)),
        "echo" | "accept" | "idle_memory" => runtime.spawn(server()),
        "late" => runtime.spawn(late()),
        "udp" => runtime.spawn(datagrams()),
        "file" => runtime.spawn(read_file(p)),
        "cancel" => runtime.spawn(cancel(p.n)),
        _ => return None,
    };
    let answer = runtime.block_on(task).expect("an answer");
    std::mem::forget(runtime);
    Some(answer)
}

// ---- ping-pong -------------------------------------------------------------------------------------------------

async fn returns(mut from: impl AsyncRead + Unpin, mut to: impl AsyncWrite + Unpin) {
    let mut byte = [0];
    while from.read_exact(&mut byte).await.is_ok() && to.write_all(&byte).await.is_ok() {}
}

async fn exchange(n: i64, mut from: impl AsyncRead + Unpin, mut to: impl AsyncWrite + Unpin) -> Answer {
    let mut byte = [0];
    let clock = Clock::start();
    for _ in 0..n {
        to.write_all(&byte).await.expect("a write");
        from.read_exact(&mut byte).await.expect("a read");
    }
    clock.stop(n, n)
}

async fn by_pipe(n: i64) -> Answer {
    let (to, far_from) = pipe::pipe().expect("a pipe");
    let (far_to, from) = pipe::pipe().expect("a pipe");
    spawn(returns(far_from, far_to));
    exchange(n, from, to).await
}

async fn by_tcp(n: i64) -> Answer {
    let door = TcpListener::bind("127.0.0.1:0").await.expect("a listener");
    let address = door.local_addr().expect("an address");
    let (here, there) = tokio::join!(TcpStream::connect(address), door.accept());
    let (here, there) = (here.expect("a connection"), there.expect("a connection").0);
    here.set_nodelay(true).expect("an option");
    there.set_nodelay(true).expect("an option");
    let (far_from, far_to) = there.into_split();
    spawn(returns(far_from, far_to));
    let (from, to) = here.into_split();
    exchange(n, from, to).await
}

// ---- a server --------------------------------------------------------------------------------------------------

async fn serve(mut connection: TcpStream) {
    let mut text = [0; BUFFER];
    while let Ok(n) = connection.read(&mut text).await {
        if n == 0 || connection.write_all(&text[..n]).await.is_err() {
            break;
        }
    }
}

pub fn raise_limit() {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    unsafe {
        libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit);
        limit.rlim_cur = limit.rlim_max;
        libc::setrlimit(libc::RLIMIT_NOFILE, &limit);
    }
}

/// The program ends with the load generator, which prints the figures. The server is its parent.
pub fn start_load(port: u16) {
    let mut load = Command::new(parameter("helper").expect("helper=PATH"))
        .args(std::env::args().skip(1))
        .arg(format!("port={port}"))
        .spawn()
        .expect("the load generator");
    std::thread::spawn(move || exit(load.wait().ok().and_then(|status| status.code()).unwrap_or(2)));
}

/// Listens, and starts the load generator.
pub fn open_door() -> TcpListener {
    raise_limit();
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.bind("127.0.0.1:0".parse().expect("an address")).expect("a port");
    // The same backlog as the other contenders: with tokio's 1024, some of a thousand clients wait a second before they retry.
    let door = socket.listen(libc::SOMAXCONN as u32).expect("a listener");
    start_load(door.local_addr().expect("an address").port());
    door
}

async fn server() -> Answer {
    let door = open_door();
    loop {
        let (connection, _) = door.accept().await.expect("a connection");
        spawn(serve(connection));
    }
}

async fn datagrams() -> Answer {
    let door = UdpSocket::bind("127.0.0.1:0").await.expect("a socket");
    start_load(door.local_addr().expect("an address").port());
    let mut text = [0; BUFFER];
    loop {
        let (n, from) = door.recv_from(&mut text).await.expect("a datagram");
        door.send_to(&text[..n], from).await.expect("a datagram");
    }
}

async fn late() -> Answer {
    spawn(async {
        loop {
            compute(Duration::from_millis(10));
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    });
    server().await
}

// ---- files -----------------------------------------------------------------------------------------------------

fn make_file(blocks: i64) -> std::fs::File {
    let path = std::env::temp_dir().join(format!("weft-lab-{}", std::process::id()));
    let file = std::fs::File::options().read(true).write(true).create_new(true).open(&path).expect("a file");
    std::fs::remove_file(path).expect("a file");
    let mut block = [0; BLOCK];
    for i in 0..blocks {
        block[..8].copy_from_slice(&i.to_le_bytes());
        file.write_all_at(&block, i as u64 * BLOCK as u64).expect("a write");
    }
    file
}

/// The block of the i-th read, like io_block of impl/io_server.h.
fn block_at(i: i64, blocks: i64) -> i64 {
    ((i as u64).wrapping_mul(2654435761) >> 7) as i64 % blocks
}

/// tokio reads files on separate threads: `spawn_blocking` works like tokio::fs, without its buffer.
async fn read_file(p: Params) -> Answer {
    let (n, blocks, share) = (p.n, number("blocks", 16), number("share", 1));
    let file = Arc::new(make_file(blocks));
    let (next, right) = (Arc::new(AtomicI64::new(0)), Arc::new(AtomicI64::new(0)));
    let clock = Clock::start();
    let reader = || {
        let (file, next, right) = (file.clone(), next.clone(), right.clone());
        spawn(async move {
            let mut block = vec![0; BLOCK];
            loop {
                let i = next.fetch_add(1, Relaxed);
                if i >= n / share {
                    break;
                }
                let (file, wanted) = (file.clone(), block_at(i, blocks));
                let read = move || {
                    file.read_exact_at(&mut block, wanted as u64 * BLOCK as u64).expect("a read");
                    block
                };
                block = spawn_blocking(read).await.expect("a block");
                right.fetch_add((block[..8] == wanted.to_le_bytes()) as i64, Relaxed);
            }
        })
    };
    let readers: Vec<_> = (0..number("depth", 1)).map(|_| reader()).collect();
    for reader in readers {
        reader.await.expect("a task");
    }
    clock.stop(n / share, right.load(Relaxed) * share)
}

fn number(name: &str, otherwise: i64) -> i64 {
    parameter(name).map_or(otherwise, |t| t.parse().expect("a number"))
}

// ---- cancellation ----------------------------------------------------------------------------------------------

/// Drops a read that waits.
async fn cancel(n: i64) -> Answer {
    let (_to, mut from) = pipe::pipe().expect("a pipe");
    let (stop, cancelled) = (Arc::new(Notify::new()), Arc::new(AtomicI64::new(0)));
    let (stops, counts) = (stop.clone(), cancelled.clone());
    spawn(async move {
        let mut byte = [0];
        loop {
            tokio::select! {
                biased;
                _ = from.read(&mut byte) => break,
                _ = stops.notified() => counts.fetch_add(1, Relaxed),
            };
        }
    });
    yield_now().await;
    let clock = Clock::start();
    while cancelled.load(Relaxed) < n {
        stop.notify_waiters();
        yield_now().await;
    }
    clock.stop(n, cancelled.load(Relaxed))
}
