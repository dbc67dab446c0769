// SPDX-License-Identifier: MIT OR Apache-2.0
//! The lab's programs of tasks, on tokio, hyper and may. `lab-tasks with=tokio|tokio-io|hyper|may|may-http case=NAME n=COUNT workers=W`; the
//! protocol is that of impl/lab.h.

mod http_on_hyper;
mod http_on_may;
mod io_on_tokio;
mod on_may;
mod on_tokio;

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};

pub const HOUR: Duration = Duration::from_secs(3600);
pub const NAPS: u32 = 16;
pub const NAPPERS: u32 = 1000;
pub const RING: usize = 503;
const LATEST: usize = 1_000_000;

pub struct Params {
    pub n: i64,
    pub ms: u64,
    pub sleepers: i64,
    pub workers: usize,
}

#[derive(Default)]
pub struct Answer {
    cpu: f64,
    wall: f64,
    pub ops: i64,
    pub result: i64,
    pub more: String,
}

pub struct Clock {
    cpu: f64,
    wall: Instant,
}

fn cpu_seconds(clock: libc::clockid_t) -> f64 {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    unsafe { libc::clock_gettime(clock, &mut t) };
    t.tv_sec as f64 + t.tv_nsec as f64 * 1e-9
}

impl Clock {
    pub fn start() -> Clock {
        Clock { cpu: cpu_seconds(libc::CLOCK_PROCESS_CPUTIME_ID), wall: Instant::now() }
    }

    pub fn stop(self, ops: i64, result: i64) -> Answer {
        let cpu = cpu_seconds(libc::CLOCK_PROCESS_CPUTIME_ID) - self.cpu;
        Answer { cpu, wall: self.wall.elapsed().as_secs_f64(), ops, result, more: String::new() }
    }
}

/// A pseudo-random share of `longest`, evenly distributed, the same in each program: Knuth's multiplier.
pub fn drawn(number: u32, longest: Duration) -> Duration {
    let spread = number.wrapping_mul(2654435761) as u64;
    Duration::from_nanos((spread as u128 * longest.as_nanos() >> 32) as u64)
}

pub fn nap(napper: u32, i: u32) -> Duration {
    let middle = Duration::from_millis(10);
    middle / 2 + drawn(napper.wrapping_add(i.wrapping_mul(NAPPERS)), middle)
}

pub fn compute(time: Duration) {
    let began = Instant::now();
    while began.elapsed() < time {}
}

/// `[i]`: naps that ended i µs late.
pub struct Lateness(Vec<AtomicU32>);

impl Lateness {
    pub fn new() -> Lateness {
        Lateness((0..=LATEST).map(|_| AtomicU32::new(0)).collect())
    }

    pub fn note(&self, began: Instant, nap: Duration) {
        let late = began.elapsed().saturating_sub(nap).as_micros() as usize;
        self.0[late.min(LATEST)].fetch_add(1, Relaxed);
    }

    /// The lateness that all naps except one in a thousand keep to.
    pub fn quantile(&self) -> String {
        let all: u64 = self.0.iter().map(|t| t.load(Relaxed) as u64).sum();
        let mut seen = 0;
        let enough = |t: &AtomicU32| {
            seen += t.load(Relaxed) as u64;
            seen >= all - all / 1000
        };
        let late = self.0.iter().position(enough).unwrap_or(LATEST);
        format!(", \"late\": {:.6}", late as f64 * 1e-6)
    }
}

/// CPU seconds and switches of the process, without the calling thread.
fn usage() -> (f64, i64) {
    let switches = |who| unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(who, &mut usage);
        usage.ru_nvcsw + usage.ru_nivcsw
    };
    let cpu = cpu_seconds(libc::CLOCK_PROCESS_CPUTIME_ID) - cpu_seconds(libc::CLOCK_THREAD_CPUTIME_ID);
    (cpu, switches(libc::RUSAGE_SELF) - switches(libc::RUSAGE_THREAD))
}

/// The activity of the process per second while the calling thread sleeps.
pub fn watch(ms: u64) -> String {
    std::thread::sleep(Duration::from_millis(100));
    let before = usage();
    std::thread::sleep(Duration::from_millis(ms));
    let after = usage();
    let each = 1e3 / ms as f64;
    format!(
        ", \"idle\": {:.6}, \"switches\": {:.1}",
        (after.0 - before.0).max(0.0) * each,
        (after.1 - before.1) as f64 * each
    )
}

fn kib(file: &str, field: &str) -> i64 {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(field));
    line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

/// Memory of the process, page tables included.
pub fn bytes() -> i64 {
    1024 * (kib("/proc/self/smaps_rollup", "Rss:") + kib("/proc/self/status", "VmPTE:"))
}

pub fn bytes_each(before: i64, n: i64) -> String {
    format!(", \"bytes\": {:.1}", (bytes() - before) as f64 / n as f64)
}

pub fn parameter(name: &str) -> Option<String> {
    std::env::args().find_map(|a| a.strip_prefix(name).and_then(|a| a.strip_prefix('=')).map(str::to_string))
}

fn main() {
    let number = |name: &str, otherwise: i64| parameter(name).map_or(otherwise, |t| t.parse().expect("a number"));
    let params = Params {
        n: number("n", 10),
        ms: number("ms", 10) as u64,
        sleepers: number("sleepers", 10),
        workers: number("workers", 1) as usize,
    };
    let case = parameter("case").unwrap_or_default();
    let answer = match parameter("with").as_deref() {
        Some("tokio") => on_tokio::run(&case, params),
        Some("tokio-io") => io_on_tokio::run(&case, params),
        Some("hyper") => http_on_hyper::run(params),
        Some("may-http") => http_on_may::run(params),
        Some("may") => on_may::run(&case, params),
        _ => None,
    };
    let Some(answer) = answer else {
        eprintln!("no such case");
        std::process::exit(2);
    };
    println!(
        "{{\"cpu\": {:.9}, \"wall\": {:.9}, \"ops\": {}, \"result\": \"{}\"{}}}",
        answer.cpu, answer.wall, answer.ops, answer.result, answer.more
    );
    // At the end, sleepers need not be woken.
    std::process::exit(0);
}
