// SPDX-License-Identifier: MIT OR Apache-2.0
//! tokio: the multi-threaded runtime, also for one worker, because programs use it and Weft's runtime is compared with it.
//! The main task is spawned, because block_on does not run its future on a worker. tokio has no channel without room, so
//! channels here have one place.

use crate::{bytes, bytes_each, compute, drawn, nap, watch, Answer, Clock, Lateness, Params, HOUR, NAPPERS, NAPS, RING};
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering::Relaxed};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot, Barrier, Mutex, Notify};
use tokio::task::{spawn, yield_now, JoinHandle};
use tokio::time::{sleep, timeout};

pub fn run(case: &str, p: Params) -> Option<Answer> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(p.workers)
        .enable_time()
        .build()
        .expect("a runtime");
    let task = match case {
        "spawn_join" => runtime.spawn(spawn_join(p.n)),
        "yield" => runtime.spawn(yield_among_ten(p.n)),
        "hop" => runtime.spawn(hop(p.n)),
        "skynet" => runtime.spawn(skynet(p.n)),
        "mutex" => runtime.spawn(mutex(p.n)),
        "select" => runtime.spawn(select_of_eight(p.n)),
        "ring" => runtime.spawn(ring(p.n)),
        "fan" => runtime.spawn(fan(p.n)),
        "chain" => runtime.spawn(chain(p.n)),
        "timers_fire" => runtime.spawn(timers_fire(p.n, p.ms)),
        "timers_cancel" => runtime.spawn(timers_cancel(p.n, p.sleepers)),
        "long_task" => runtime.spawn(long_task(p.n)),
        "task_memory" => runtime.spawn(task_memory(p.n)),
        "idle" => return Some(idle(&runtime, p)),
        _ => return None,
    };
    let answer = runtime.block_on(task).expect("an answer");
    // At the end, sleepers need not be woken.
    std::mem::forget(runtime);
    Some(answer)
}

async fn all(tasks: Vec<JoinHandle<()>>) {
    for task in tasks {
        task.await.expect("a task");
    }
}

async fn spawn_join(n: i64) -> Answer {
    let clock = Clock::start();
    let mut done = 0;
    for _ in 0..n {
        done += spawn(async { 1 }).await.expect("a task");
    }
    clock.stop(n, done)
}

async fn yield_among_ten(n: i64) -> Answer {
    let clock = Clock::start();
    let gives_way = || {
        spawn(async move {
            for _ in 0..n / 10 {
                yield_now().await;
            }
        })
    };
    all((0..10).map(|_| gives_way()).collect()).await;
    clock.stop(n, n)
}

async fn hop(n: i64) -> Answer {
    let (to, mut incoming) = mpsc::channel::<i64>(1);
    let (back, mut answers) = mpsc::channel::<i64>(1);
    let clock = Clock::start();
    let mut sum = 0;
    spawn(async move {
        while let Some(item) = incoming.recv().await {
            back.send(item).await.expect("a receiver");
        }
    });
    for i in 1..=n {
        to.send(i).await.expect("a receiver");
        sum += answers.recv().await.expect("an item");
    }
    drop(to);
    clock.stop(2 * n, sum)
}

fn skynet_part(first: i64, count: i64) -> Pin<Box<dyn Future<Output = i64> + Send>> {
    Box::pin(async move {
        if count == 1 {
            return first;
        }
        let part = |i| spawn(skynet_part(first + i * (count / 10), count / 10));
        let parts: Vec<_> = (0..10).map(part).collect();
        let mut sum = 0;
        for part in parts {
            sum += part.await.expect("a part");
        }
        sum
    })
}

async fn skynet(n: i64) -> Answer {
    let clock = Clock::start();
    let sum = skynet_part(0, n).await;
    clock.stop(n, sum)
}

async fn mutex(n: i64) -> Answer {
    let count = Arc::new(Mutex::new(0));
    let counts = |count: Arc<Mutex<i64>>| {
        spawn(async move {
            for _ in 0..n / 10 {
                *count.lock().await += 1;
            }
        })
    };
    let clock = Clock::start();
    all((0..10).map(|_| counts(count.clone())).collect()).await;
    let result = *count.lock().await;
    clock.stop(n, result)
}

async fn select_of_eight(n: i64) -> Answer {
    let clock = Clock::start();
    let source = || {
        let (to, items) = mpsc::channel::<i64>(1);
        spawn(async move {
            for i in 1..=n / 8 {
                to.send(i).await.expect("a receiver");
            }
        });
        items
    };
    let mut c: [mpsc::Receiver<i64>; 8] = std::array::from_fn(|_| source());
    let [c0, c1, c2, c3, c4, c5, c6, c7] = &mut c;
    let mut sum = 0;
    for _ in 0..n {
        sum += tokio::select! {
            Some(item) = c0.recv() => item,
            Some(item) = c1.recv() => item,
            Some(item) = c2.recv() => item,
            Some(item) = c3.recv() => item,
            Some(item) = c4.recv() => item,
            Some(item) = c5.recv() => item,
            Some(item) = c6.recv() => item,
            Some(item) = c7.recv() => item,
            else => unreachable!(),
        };
    }
    clock.stop(n, sum)
}

async fn ring(n: i64) -> Answer {
    let (last, mut result) = mpsc::channel::<i64>(1);
    let clock = Clock::start();
    let (first, mut items) = mpsc::channel::<i64>(1);
    let mut ends = Some(first.clone());
    for i in 0..RING {
        let (to, next_items) = match ends.take_if(|_| i == RING - 1) {
            Some(first) => (first, mpsc::channel(1).1),
            None => mpsc::channel::<i64>(1),
        };
        let (mut from, last) = (std::mem::replace(&mut items, next_items), last.clone());
        spawn(async move {
            while let Some(token) = from.recv().await {
                if token == 0 {
                    last.send(i as i64 + 1).await.expect("a receiver");
                    return;
                }
                to.send(token - 1).await.expect("the next");
            }
        });
    }
    first.send(n).await.expect("the first");
    let result = result.recv().await.expect("the last");
    clock.stop(n, result)
}

async fn fan(n: i64) -> Answer {
    let (to, incoming) = mpsc::channel::<i64>(1);
    let (back, mut results) = mpsc::channel::<i64>(1);
    // A receiver has one owner in tokio, so tasks share it by a mutex.
    let incoming = Arc::new(Mutex::new(incoming));
    let clock = Clock::start();
    for _ in 0..100 {
        let (incoming, back) = (incoming.clone(), back.clone());
        spawn(async move {
            loop {
                let item = incoming.lock().await.recv().await;
                let Some(item) = item else { return };
                back.send(item).await.expect("a receiver");
            }
        });
    }
    spawn(async move {
        for i in 1..=n {
            to.send(i).await.expect("a receiver");
        }
    });
    let mut sum = 0;
    for _ in 0..n {
        sum += results.recv().await.expect("an item");
    }
    clock.stop(n, sum)
}

async fn chain(n: i64) -> Answer {
    let here = Arc::new(Barrier::new(n as usize + 1));
    let (first, mut event) = oneshot::channel::<()>();
    for _ in 0..n {
        let (next, following) = oneshot::channel();
        let (own, here) = (std::mem::replace(&mut event, following), here.clone());
        spawn(async move {
            here.wait().await;
            own.await.expect("the one before");
            next.send(()).expect("the next");
        });
    }
    here.wait().await;
    // So that each task waits for its own event.
    yield_now().await;
    sleep(Duration::from_millis(10)).await;
    let clock = Clock::start();
    first.send(()).expect("the first");
    event.await.expect("the last");
    clock.stop(n, n)
}

async fn timers_fire(n: i64, ms: u64) -> Answer {
    let here = Arc::new(Barrier::new(n as usize + 1));
    let napped = Arc::new(Barrier::new(n as usize + 1));
    let slept = Arc::new(AtomicI64::new(0));
    let longest = Duration::from_millis(ms);
    let naps = |i: u32, here: Arc<Barrier>, napped: Arc<Barrier>, slept: Arc<AtomicI64>| {
        spawn(async move {
            here.wait().await;
            for k in 0..NAPS {
                sleep(drawn(i.wrapping_mul(NAPS).wrapping_add(k), longest)).await;
            }
            slept.fetch_add(NAPS as i64, Relaxed);
            napped.wait().await;
        })
    };
    let tasks = (0..n as u32).map(|i| naps(i, here.clone(), napped.clone(), slept.clone())).collect();
    let clock = Clock::start();
    here.wait().await;
    napped.wait().await;
    let result = slept.load(Relaxed);
    let answer = clock.stop(result, result);
    all(tasks).await;
    answer
}

async fn received(from: &mut mpsc::Receiver<i64>) -> Option<i64> {
    timeout(HOUR, from.recv()).await.expect("in time")
}

async fn timers_cancel(n: i64, sleepers: i64) -> Answer {
    let here = Arc::new(Barrier::new(sleepers as usize + 1));
    for _ in 0..sleepers {
        let here = here.clone();
        spawn(async move {
            here.wait().await;
            sleep(HOUR).await;
        });
    }
    here.wait().await;
    sleep(Duration::from_millis(10)).await;
    let (to, mut incoming) = mpsc::channel::<i64>(1);
    let (back, mut answers) = mpsc::channel::<i64>(1);
    let clock = Clock::start();
    let mut sum = 0;
    spawn(async move {
        while let Some(item) = received(&mut incoming).await {
            back.send(item).await.expect("a receiver");
        }
    });
    for i in 1..=n {
        to.send(i).await.expect("a receiver");
        sum += received(&mut answers).await.expect("an item");
    }
    drop(to);
    clock.stop(2 * n, sum)
}

/// tokio's timers tick in milliseconds, and are never early: they are late by a millisecond on average.
async fn long_task(n: i64) -> Answer {
    let shared = Arc::new((Lateness::new(), AtomicBool::new(false)));
    let naps = |k: u32, shared: Arc<(Lateness, AtomicBool)>| {
        spawn(async move {
            let mut i = 0;
            while !shared.1.load(Relaxed) {
                let (began, time) = (Instant::now(), nap(k, i));
                sleep(time).await;
                shared.0.note(began, time);
                i = i.wrapping_add(1);
            }
        })
    };
    let clock = Clock::start();
    let tasks = (0..NAPPERS).map(|k| naps(k, shared.clone())).collect();
    for _ in 0..n {
        compute(Duration::from_millis(10));
        sleep(Duration::from_millis(1)).await;
    }
    shared.1.store(true, Relaxed);
    all(tasks).await;
    Answer { more: shared.0.quantile(), ..clock.stop(n, n) }
}

fn idle(runtime: &tokio::runtime::Runtime, p: Params) -> Answer {
    let event = Arc::new(Notify::new());
    let clock = Clock::start();
    let waits = |event: Arc<Notify>| runtime.spawn(async move { event.notified().await });
    let tasks: Vec<_> = (0..p.n).map(|_| waits(event.clone())).collect();
    let more = watch(p.ms);
    event.notify_waiters();
    runtime.block_on(all(tasks));
    Answer { more, ..clock.stop(p.n, p.n) }
}

async fn task_memory(n: i64) -> Answer {
    let before = bytes();
    let event = Arc::new(Notify::new());
    let clock = Clock::start();
    for _ in 0..n {
        let event = event.clone();
        spawn(async move { event.notified().await });
        yield_now().await;
    }
    Answer { more: bytes_each(before, n), ..clock.stop(n, n) }
}
