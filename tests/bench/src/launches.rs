//! `launches`: what a launch costs beside the work of its blocks, on one thread and on more.
//!
//! Blocks do nothing. Launches come one behind the other, so that the workers are awake, or behind a pause in which
//! they have gone to sleep. Times are the clock's, as a caller sees them.

use crate::median;
use ptoc_abi::Frame;
use ptoc_exec::{Kernel, KernelParts, LaunchArgs};
use std::thread;
use std::time::{Duration, Instant};

/// Launches in a row, and behind a pause.
const AWAKE: usize = 20_000;
const ASLEEP: usize = 100;

/// Longer than workers look for work.
const PAUSE: Duration = Duration::from_millis(5);

/// A grid of `params[0]` blocks.
unsafe extern "C" fn launch(frame: *const Frame) -> u32 {
    // SAFETY: a launch has one parameter and room for one extent.
    unsafe { *(*frame).results = *(*frame).params };
    0
}

unsafe extern "C" fn block(_: *const Frame) -> u32 {
    0
}

fn kernel() -> Kernel {
    let parts = KernelParts {
        name: "nothing".into(),
        launch,
        block,
        params: 1,
        tensors: 0,
        rank: 1,
        arena: 64,
        kept: None,
        spread: Vec::new(),
        raster: None,
        non_temporal: usize::MAX,
        prints: Vec::new(),
        code: Box::new(()),
    };
    // SAFETY: both functions follow the ABI and touch nothing but the results.
    unsafe { Kernel::new(parts) }
}

/// A row for each of 1, 2, 4 .. threads, up to as many as there are cores.
pub fn table() {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let kernel = kernel();
    println!("{}, {cores} cores\n", ptoc_exec::machine::name());
    println!("| threads | a block a thread | 99 % of them within | 64 blocks | a block a thread, workers asleep |");
    println!("|--:|--:|--:|--:|--:|");
    let numbers = std::iter::successors(Some(1), |n| Some(2 * n)).take_while(|n| *n < cores).chain([cores]);
    for threads in numbers {
        let once = |blocks: usize| {
            let launch = LaunchArgs { params: &[blocks as i64], tensors: &[], threads, print: None };
            let begin = Instant::now();
            // SAFETY: there are no tensors.
            let done = unsafe { kernel.launch(launch) };
            let time = begin.elapsed();
            assert_eq!(done, Ok(()));
            time
        };
        let us = |time: Duration| format!("{:.2} us", time.as_secs_f64() * 1e6);
        let awake = |blocks: usize| -> Vec<Duration> { (0..AWAKE).map(|_| once(blocks)).skip(AWAKE / 10).collect() };
        let mut each = awake(threads);
        each.sort();
        let asleep = (0..ASLEEP).map(|_| {
            thread::sleep(PAUSE);
            once(threads)
        });
        let asleep = median(asleep.collect());
        let [middle, most] = [each.len() / 2, each.len() * 99 / 100].map(|n| us(each[n]));
        println!("| {threads} | {middle} | {most} | {} | {} |", us(median(awake(64))), us(asleep));
    }
}
