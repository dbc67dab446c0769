// SPDX-License-Identifier: MIT OR Apache-2.0
//! may: coroutines with stacks. Its channels have room for any number of items: a sender never waits.

use crate::{bytes, bytes_each, compute, drawn, nap, watch, Answer, Clock, Lateness, Params, HOUR, NAPPERS, NAPS, RING};
use may::coroutine::{self, spawn, yield_now, JoinHandle};
use may::sync::{mpmc, mpsc, Mutex, SyncFlag, WaitGroup};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering::Relaxed};
use std::sync::Arc;
use std::time::{Duration, Instant};

// Closures that are spawned here fit into their stacks: a few calls deep.

pub fn run(case: &str, p: Params) -> Option<Answer> {
    may::config().set_workers(p.workers);
    let body: fn(&Params) -> Answer = match case {
        "spawn_join" => spawn_join,
        "yield" => yield_among_ten,
        "hop" => hop,
        "skynet" => skynet,
        "mutex" => mutex,
        "ring" => ring,
        "fan" => fan,
        "chain" => chain,
        "timers_fire" => timers_fire,
        "timers_cancel" => timers_cancel,
        "long_task" => long_task,
        "task_memory" => task_memory,
        "idle" => return Some(idle(&p)),
        _ => return None,
    };
    Some(start(move || body(&p)).join().expect("an answer"))
}

fn start<T: Send + 'static>(body: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    unsafe { spawn(body) }
}

fn all(tasks: Vec<JoinHandle<()>>) {
    for task in tasks {
        task.join().expect("a task");
    }
}

fn spawn_join(p: &Params) -> Answer {
    let clock = Clock::start();
    let mut done = 0;
    for _ in 0..p.n {
        done += start(|| 1).join().expect("a task");
    }
    clock.stop(p.n, done)
}

fn yield_among_ten(p: &Params) -> Answer {
    let each = p.n / 10;
    let clock = Clock::start();
    let gives_way = || start(move || (0..each).for_each(|_| yield_now()));
    all((0..10).map(|_| gives_way()).collect());
    clock.stop(p.n, p.n)
}

fn hop(p: &Params) -> Answer {
    let (to, incoming) = mpsc::channel::<i64>();
    let (back, answers) = mpsc::channel::<i64>();
    let clock = Clock::start();
    let mut sum = 0;
    start(move || {
        while let Ok(item) = incoming.recv() {
            back.send(item).expect("a receiver");
        }
    });
    for i in 1..=p.n {
        to.send(i).expect("a receiver");
        sum += answers.recv().expect("an item");
    }
    drop(to);
    clock.stop(2 * p.n, sum)
}

fn skynet_part(first: i64, count: i64) -> i64 {
    if count == 1 {
        return first;
    }
    let part = |i| start(move || skynet_part(first + i * (count / 10), count / 10));
    let parts: Vec<_> = (0..10).map(part).collect();
    parts.into_iter().map(|part| part.join().expect("a part")).sum()
}

fn skynet(p: &Params) -> Answer {
    let clock = Clock::start();
    let sum = skynet_part(0, p.n);
    clock.stop(p.n, sum)
}

fn mutex(p: &Params) -> Answer {
    let each = p.n / 10;
    let count = Arc::new(Mutex::new(0));
    let counts = |count: Arc<Mutex<i64>>| start(move || (0..each).for_each(|_| *count.lock().expect("a lock") += 1));
    let clock = Clock::start();
    all((0..10).map(|_| counts(count.clone())).collect());
    let result = *count.lock().expect("a lock");
    clock.stop(p.n, result)
}

fn ring(p: &Params) -> Answer {
    let (last, result) = mpsc::channel::<i64>();
    let clock = Clock::start();
    let (senders, receivers): (Vec<_>, Vec<_>) = (0..RING).map(|_| mpsc::channel::<i64>()).unzip();
    for (i, from) in receivers.into_iter().enumerate() {
        let (to, last) = (senders[(i + 1) % RING].clone(), last.clone());
        start(move || {
            while let Ok(token) = from.recv() {
                if token == 0 {
                    last.send(i as i64 + 1).expect("a receiver");
                    return;
                }
                to.send(token - 1).expect("the next");
            }
        });
    }
    senders[0].send(p.n).expect("the first");
    let result = result.recv().expect("the last");
    clock.stop(p.n, result)
}

fn fan(p: &Params) -> Answer {
    let (to, incoming) = mpmc::channel::<i64>();
    let (back, results) = mpsc::channel::<i64>();
    let clock = Clock::start();
    for _ in 0..100 {
        let (incoming, back) = (incoming.clone(), back.clone());
        start(move || {
            while let Ok(item) = incoming.recv() {
                back.send(item).expect("a receiver");
            }
        });
    }
    let n = p.n;
    start(move || (1..=n).for_each(|i| to.send(i).expect("a receiver")));
    let sum = (0..n).map(|_| results.recv().expect("an item")).sum();
    clock.stop(n, sum)
}

fn chain(p: &Params) -> Answer {
    let here = WaitGroup::new();
    let events: Arc<Vec<SyncFlag>> = Arc::new((0..=p.n).map(|_| SyncFlag::new()).collect());
    for i in 0..p.n as usize {
        let (events, here) = (events.clone(), here.clone());
        start(move || {
            drop(here);
            events[i].wait();
            events[i + 1].fire();
        });
    }
    here.wait();
    let clock = Clock::start();
    events[0].fire();
    events[p.n as usize].wait();
    clock.stop(p.n, p.n)
}

fn timers_fire(p: &Params) -> Answer {
    let (here, napping) = (WaitGroup::new(), WaitGroup::new());
    let flags = Arc::new((SyncFlag::new(), SyncFlag::new()));
    let slept = Arc::new(AtomicI64::new(0));
    let longest = Duration::from_millis(p.ms);
    let naps = |i: u32, here: WaitGroup, napping: WaitGroup, flags: Arc<(SyncFlag, SyncFlag)>, slept: Arc<AtomicI64>| {
        start(move || {
            let (begin, end) = &*flags;
            drop(here);
            begin.wait();
            for k in 0..NAPS {
                coroutine::sleep(drawn(i.wrapping_mul(NAPS).wrapping_add(k), longest));
            }
            slept.fetch_add(NAPS as i64, Relaxed);
            drop(napping);
            end.wait();
        })
    };
    let tasks =
        (0..p.n as u32).map(|i| naps(i, here.clone(), napping.clone(), flags.clone(), slept.clone())).collect();
    here.wait();
    let clock = Clock::start();
    flags.0.fire();
    napping.wait();
    let result = slept.load(Relaxed);
    let answer = clock.stop(result, result);
    flags.1.fire();
    all(tasks);
    answer
}

fn timers_cancel(p: &Params) -> Answer {
    let here = WaitGroup::new();
    for _ in 0..p.sleepers {
        let here = here.clone();
        start(move || {
            drop(here);
            coroutine::sleep(HOUR);
        });
    }
    here.wait();
    let (to, incoming) = mpsc::channel::<i64>();
    let (back, answers) = mpsc::channel::<i64>();
    let clock = Clock::start();
    let mut sum = 0;
    start(move || {
        while let Ok(item) = incoming.recv_timeout(HOUR) {
            back.send(item).expect("a receiver");
        }
    });
    for i in 1..=p.n {
        to.send(i).expect("a receiver");
        sum += answers.recv_timeout(HOUR).expect("an item");
    }
    drop(to);
    clock.stop(2 * p.n, sum)
}

fn long_task(p: &Params) -> Answer {
    let shared = Arc::new((Lateness::new(), AtomicBool::new(false)));
    let naps = |k: u32, shared: Arc<(Lateness, AtomicBool)>| {
        start(move || {
            let mut i = 0;
            while !shared.1.load(Relaxed) {
                let (began, time) = (Instant::now(), nap(k, i));
                coroutine::sleep(time);
                shared.0.note(began, time);
                i = i.wrapping_add(1);
            }
        })
    };
    let clock = Clock::start();
    let tasks = (0..NAPPERS).map(|k| naps(k, shared.clone())).collect();
    for _ in 0..p.n {
        compute(Duration::from_millis(10));
        coroutine::sleep(Duration::from_millis(1));
    }
    shared.1.store(true, Relaxed);
    all(tasks);
    Answer { more: shared.0.quantile(), ..clock.stop(p.n, p.n) }
}

fn idle(p: &Params) -> Answer {
    let event = Arc::new(SyncFlag::new());
    let clock = Clock::start();
    let waits = |event: Arc<SyncFlag>| start(move || event.wait());
    let tasks: Vec<_> = (0..p.n).map(|_| waits(event.clone())).collect();
    let more = watch(p.ms);
    event.fire();
    all(tasks);
    Answer { more, ..clock.stop(p.n, p.n) }
}

fn task_memory(p: &Params) -> Answer {
    let before = bytes();
    let event = Arc::new(SyncFlag::new());
    let clock = Clock::start();
    for _ in 0..p.n {
        let event = event.clone();
        start(move || event.wait());
        yield_now();
    }
    Answer { more: bytes_each(before, p.n), ..clock.stop(p.n, p.n) }
}
