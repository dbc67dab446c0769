// SPDX-License-Identifier: MIT OR Apache-2.0
//! The lab's programs on corosensei. `lab-corosensei case=NAME n=COUNT`; the protocol is that of impl/lab.h.

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult, Yielder};
use std::cell::Cell;
use std::hint::black_box;
use std::time::Instant;

const SMALL: usize = 64 * 1024;

#[repr(C)]
struct Timespec {
    sec: i64,
    nsec: i64,
}

extern "C" {
    fn clock_gettime(clock: i32, time: *mut Timespec) -> i32;
}

fn cpu_seconds() -> f64 {
    const CLOCK_PROCESS_CPUTIME_ID: i32 = 2;
    let mut t = Timespec { sec: 0, nsec: 0 };
    unsafe { clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &mut t) };
    t.sec as f64 + t.nsec as f64 * 1e-9
}

struct Answer {
    cpu: f64,
    wall: f64,
    ops: i64,
    result: i64,
    more: String,
}

/// Run and time `body`, which returns the result.
fn timed(ops: i64, body: impl FnOnce() -> i64) -> Answer {
    let (cpu, wall) = (cpu_seconds(), Instant::now());
    let result = body();
    Answer {
        cpu: cpu_seconds() - cpu,
        wall: wall.elapsed().as_secs_f64(),
        ops,
        result,
        more: String::new(),
    }
}

fn stack() -> DefaultStack {
    DefaultStack::new(SMALL).expect("a stack")
}

// ---- micro ---------------------------------------------------------------------------------------------------

fn pairs(n: i64, mut k: Coroutine<i64, i64, ()>) -> Answer {
    timed(n, || {
        let mut out = 0;
        for _ in 0..=n {
            if let CoroutineResult::Yield(sum) = k.resume(1) {
                out = sum;
            }
        }
        unsafe { k.force_reset() };
        out
    })
}

fn resume_yield(n: i64) -> Answer {
    pairs(
        n,
        Coroutine::new(|y: &Yielder<i64, i64>, _| {
            let mut sum = 0;
            loop {
                sum += y.suspend(sum);
            }
        }),
    )
}

#[inline(never)]
fn one_deep(y: &Yielder<i64, i64>, sum: i64) -> i64 {
    black_box(y.suspend(sum))
}

fn yield_deep(n: i64) -> Answer {
    pairs(
        n,
        Coroutine::new(|y: &Yielder<i64, i64>, _| {
            let mut sum = 0;
            loop {
                sum += one_deep(y, sum);
            }
        }),
    )
}

fn life_warm(n: i64) -> Answer {
    let done = Cell::new(0i64);
    let mut kept = Some(stack());
    let answer = timed(n, || {
        for _ in 0..n {
            let counter = &done;
            let mut k = Coroutine::<(), (), (), _>::with_stack(kept.take().unwrap(), {
                let counter = counter as *const Cell<i64>;
                move |_, _| unsafe { (*counter).set((*counter).get() + 1) }
            });
            k.resume(());
            kept = Some(k.into_stack());
        }
        0
    });
    Answer { result: done.get(), ..answer }
}

// ---- state ---------------------------------------------------------------------------------------------------

enum Request {
    Get,
    Put(i64),
}

fn countdown(n: i64) -> Answer {
    timed(2 * n + 1, || {
        let mut s = n;
        let mut k = Coroutine::new(|y: &Yielder<i64, Request>, _| loop {
            let s = y.suspend(Request::Get);
            if s <= 0 {
                break;
            }
            y.suspend(Request::Put(s - 1));
        });
        let mut reply = 0;
        while let CoroutineResult::Yield(r) = k.resume(reply) {
            match r {
                Request::Get => reply = s,
                Request::Put(value) => s = value,
            }
        }
        s
    })
}

fn perform(n: i64) -> Answer {
    timed(n, || {
        let mut k = Coroutine::new(move |y: &Yielder<i64, ()>, _| {
            let mut sum = 0;
            for _ in 0..n {
                sum += y.suspend(());
            }
            sum
        });
        loop {
            if let CoroutineResult::Return(sum) = k.resume(1) {
                return sum;
            }
        }
    })
}

// ---- generators ------------------------------------------------------------------------------------------------

fn drain(mut k: Coroutine<(), i64, ()>) -> i64 {
    let mut sum = 0;
    while let CoroutineResult::Yield(value) = k.resume(()) {
        sum += value;
    }
    sum
}

fn iterator(n: i64) -> Answer {
    timed(n + 1, || {
        drain(Coroutine::new(move |y: &Yielder<(), i64>, _| {
            for i in 0..=n {
                y.suspend(i);
            }
        }))
    })
}

/// The suite's tree is a DAG: the tree below a node is the same on both sides.
struct Tree {
    value: i64,
    left: Option<std::rc::Rc<Tree>>,
    right: Option<std::rc::Rc<Tree>>,
}

fn tree(height: i64) -> Option<std::rc::Rc<Tree>> {
    let mut below = None;
    for value in 1..=height {
        below = Some(std::rc::Rc::new(Tree { value, left: below.clone(), right: below.clone() }));
    }
    below
}

fn walk(y: &Yielder<(), i64>, t: &Option<std::rc::Rc<Tree>>) {
    if let Some(t) = t {
        walk(y, &t.left);
        y.suspend(t.value);
        walk(y, &t.right);
    }
}

fn generator(n: i64) -> Answer {
    let t = tree(n);
    timed((1 << n) - 1, || drain(Coroutine::new(move |y: &Yielder<(), i64>, _| walk(y, &t))))
}

fn count_walk(y: &Yielder<(), i64>, t: &Option<std::rc::Rc<Tree>>) {
    if let Some(t) = t {
        count_walk(y, &t.left);
        y.suspend(1);
        count_walk(y, &t.right);
    }
}

fn recursive(n: i64) -> Answer {
    let mut height = 1;
    while (1i64 << height) - 1 < n {
        height += 1;
    }
    let t = tree(height);
    timed(n, || drain(Coroutine::new(move |y: &Yielder<(), i64>, _| count_walk(y, &t))))
}

// ---- C1…C3 -------------------------------------------------------------------------------------------------------

fn c1(n: i64, laps: i64) -> Answer {
    let body = move |y: &Yielder<i64, i64>, _: i64| {
        let mut sum = 0;
        for i in 0..n {
            sum += y.suspend(i);
        }
        sum
    };
    timed(2 * n * laps, || {
        let mut total = 0;
        for _ in 0..laps {
            let (mut a, mut b) = (Coroutine::new(body), Coroutine::new(body));
            let (mut va, mut vb) = (0, 0);
            loop {
                match (a.resume(va), b.resume(vb)) {
                    (CoroutineResult::Yield(ra), CoroutineResult::Yield(rb)) => (va, vb) = (ra, rb),
                    (CoroutineResult::Return(sa), CoroutineResult::Return(sb)) => {
                        total = sa + sb;
                        break;
                    }
                    _ => unreachable!(),
                }
            }
        }
        total
    })
}

fn leaves(y: &Yielder<(), i64>, node: i64, depth: i64) {
    if depth == 0 {
        y.suspend(node);
        return;
    }
    leaves(y, 2 * node, depth - 1);
    leaves(y, 2 * node + 1, depth - 1);
}

fn c2(n: i64) -> Answer {
    timed(1 << n, || drain(Coroutine::new(move |y: &Yielder<(), i64>, _| leaves(y, 0, n))))
}

type Source = Coroutine<(), i64, (), DefaultStack>;

fn next(source: &mut Source) -> i64 {
    match source.resume(()) {
        CoroutineResult::Yield(value) => value,
        CoroutineResult::Return(()) => unreachable!(),
    }
}

fn c3(n: i64) -> Answer {
    timed(n, || {
        let mut last: Source = Coroutine::with_stack(stack(), |y: &Yielder<(), i64>, _| {
            for i in 2.. {
                y.suspend(i);
            }
        });
        let mut prime = 0;
        for _ in 0..n {
            prime = next(&mut last);
            let mut source = last;
            last = Coroutine::with_stack(stack(), move |y: &Yielder<(), i64>, _| loop {
                let i = next(&mut source);
                if i % prime != 0 {
                    y.suspend(i);
                }
            });
        }
        std::mem::forget(last); // unwinding the chain is not the experiment
        prime
    })
}

// ---- many --------------------------------------------------------------------------------------------------------

fn c10m(n: i64, live: i64) -> Answer {
    const TOUCHED: usize = 32 * 1024;
    let sum = Cell::new(0i64);
    let counter = &sum as *const Cell<i64>;
    let start = |stack: DefaultStack| {
        let mut k = Coroutine::<(), (), (), _>::with_stack(stack, move |y: &Yielder<(), ()>, _| {
            let mut buffer = [0u8; TOUCHED];
            black_box(&mut buffer).fill(1);
            y.suspend(());
            let buffer = black_box(&buffer);
            unsafe { (*counter).set((*counter).get() + (buffer[0] + buffer[TOUCHED - 1]) as i64) };
        });
        k.resume(());
        k
    };
    let answer = timed(n, || {
        let mut slots: Vec<Option<Coroutine<(), (), (), DefaultStack>>> = (0..live).map(|_| None).collect();
        for i in 0..n {
            let slot = &mut slots[(i % live) as usize];
            let stack = match slot.take() {
                Some(mut k) => {
                    k.resume(());
                    k.into_stack()
                }
                None => DefaultStack::new(SMALL).expect("a stack"),
            };
            *slot = Some(start(stack));
        }
        for k in slots.iter_mut().flatten() {
            k.resume(());
        }
        0
    });
    Answer { result: sum.get() / 2, ..answer }
}

// ----------------------------------------------------------------------------------------------------------------

fn main() {
    let parameter = |name: &str| {
        std::env::args().find_map(|a| a.strip_prefix(name).and_then(|a| a.strip_prefix('=')).map(str::to_string))
    };
    let number = |name: &str, otherwise: i64| parameter(name).map_or(otherwise, |t| t.parse().expect("a number"));
    let n = number("n", 10);
    let answer = match parameter("case").as_deref() {
        Some("resume_yield") => resume_yield(n),
        Some("yield_deep") => yield_deep(n),
        Some("life_warm") => life_warm(n),
        Some("countdown") => countdown(n),
        Some("perform") => perform(n),
        Some("iterator") => iterator(n),
        Some("generator") => generator(n),
        Some("recursive") => recursive(n),
        Some("c1") => c1(n, number("laps", 1)),
        Some("c2") => c2(n),
        Some("c3") => c3(n),
        Some("c10m") => c10m(n, number("live", 10000)),
        _ => {
            eprintln!("no such case");
            std::process::exit(2);
        }
    };
    println!(
        "{{\"cpu\": {:.9}, \"wall\": {:.9}, \"ops\": {}, \"result\": \"{}\"{}}}",
        answer.cpu, answer.wall, answer.ops, answer.result, answer.more
    );
}
