//! Launches of hand-written entry functions.

#![allow(clippy::undocumented_unsafe_blocks, reason = "kernels of tests, launched on arrays of theirs")]

use ptoc_abi::{Frame, PrintItem, TooManyBlocks};
use ptoc_exec::{Kernel, KernelParts, LaunchArgs, LaunchError, PrintValue, TensorArg};
use ptoc_tensor::DType;
use std::collections::HashSet;
use std::sync::Mutex;
use std::thread::{self, ThreadId};
use std::time::Duration;

/// Grid `params[0] x params[1]`; check 7 if `params[0]` is 99.
unsafe extern "C" fn launch_2d(frame: *const Frame) -> u32 {
    let frame = unsafe { &*frame };
    unsafe {
        *frame.results = *frame.params;
        *frame.results.add(1) = *frame.params.add(1);
        if *frame.params == 99 {
            (*frame.status).check = 7;
            (*frame.status).count = 1;
            (*frame.status).args[0] = 99;
            return 8;
        }
    }
    0
}

/// Adds 1 to byte `(i, j)` and prints (i, j) at site 0; check 3 with (i, j) where `i * n + j` is at least `params[2]`.
unsafe extern "C" fn block_2d(frame: *const Frame) -> u32 {
    let frame = unsafe { &*frame };
    unsafe {
        let (i, j, n) = (*frame.coords, *frame.coords.add(1), *frame.params.add(1));
        let at = i * n + j;
        *(*frame.tensors).add(at as usize) += 1;
        *frame.arena = 1;
        let values = [i, j];
        (frame.print)(frame.print_ctx, 0, values.as_ptr());
        if at >= *frame.params.add(2) {
            (*frame.status).check = 3;
            (*frame.status).count = 2;
            (&mut (*frame.status).args)[..2].copy_from_slice(&values);
            return 4;
        }
    }
    0
}

fn kernel() -> Kernel {
    unsafe {
        Kernel::new(KernelParts {
            non_temporal: usize::MAX,
            name: "count".into(),
            launch: launch_2d,
            block: block_2d,
            params: 3,
            tensors: 1,
            rank: 2,
            arena: 64,
            kept: None,
            spread: Vec::new(),
            raster: None,
            prints: vec![vec![
                PrintItem::Scalar(DType::I64),
                PrintItem::Text(", ".into()),
                PrintItem::Scalar(DType::I64),
            ]],
            code: Box::new(()),
        })
    }
}

type Prints = Vec<(Option<u64>, i64, i64)>;

fn run(params: [i64; 3], bytes: &mut [u8], threads: usize) -> (Result<(), LaunchError>, Prints) {
    let mut prints = Vec::new();
    let mut sink = |e: ptoc_exec::PrintEvent| match &e.values[..] {
        [PrintValue::Scalar { bits: i, .. }, PrintValue::Text(_), PrintValue::Scalar { bits: j, .. }] => {
            prints.push((e.block, *i, *j));
        }
        other => panic!("{other:?}"),
    };
    let tensors = [TensorArg::new(bytes)];
    let launch = LaunchArgs { params: &params, tensors: &tensors, threads, print: Some(&mut sink) };
    (unsafe { kernel().launch(launch) }, prints)
}

#[test]
fn every_block_once_and_prints_in_block_order() {
    for threads in [0, 1, 2, 3] {
        for (m, n) in [(1, 1), (3, 5), (20, 17), (1, 400)] {
            let mut bytes = vec![0; (m * n) as usize];
            let (result, prints) = run([m, n, i64::MAX], &mut bytes, threads);
            assert_eq!(result, Ok(()));
            assert!(bytes.iter().all(|&b| b == 1));
            let want: Prints = (0..m * n).map(|b| (Some(b as u64), b / n, b % n)).collect();
            assert_eq!(prints, want);
        }
    }
}

#[test]
fn the_lowest_failing_block_is_reported() {
    for threads in [1, 2, 4] {
        for _ in 0..20 {
            let mut bytes = vec![0; 300];
            let (result, prints) = run([20, 15, 137], &mut bytes, threads);
            let Err(LaunchError::Check(failure)) = result else { panic!("{result:?}") };
            assert_eq!((failure.check, failure.block), (3, Some(137)));
            assert_eq!((&failure.args[..], &failure.coords[..]), (&[9, 2][..], &[9, 2][..]));
            assert!(bytes[..137].iter().all(|&b| b == 1), "all blocks below it ran");
            assert_eq!(prints.len(), 138, "prints of blocks above it are dropped");
        }
    }
}

/// Leaves `Frame::non_temporal` in the first tensor, if it is block (0, 0).
unsafe extern "C" fn block_past(frame: *const Frame) -> u32 {
    let frame = unsafe { &*frame };
    if unsafe { *frame.coords.add(1) } == 0 {
        unsafe { (*frame.tensors).cast::<u64>().write_unaligned(frame.non_temporal) };
    }
    0
}

#[test]
fn large_arrays_are_written_past_the_caches() {
    let parts = KernelParts {
        non_temporal: 100,
        name: "past".into(),
        launch: launch_2d,
        block: block_past,
        params: 3,
        tensors: 4,
        rank: 2,
        arena: 0,
        kept: None,
        spread: Vec::new(),
        raster: None,
        prints: Vec::new(),
        code: Box::new(()),
    };
    let kernel = unsafe { Kernel::new(parts) };
    let mut bytes = [99, 100, 8, 3000].map(|n| vec![0u8; n]);
    let tensors: Vec<TensorArg> = bytes.iter_mut().map(|b| TensorArg::new(b)).collect();
    unsafe { kernel.launch(LaunchArgs { params: &[1, 1, 0], tensors: &tensors, threads: 1, print: None }) }.unwrap();
    assert_eq!(u64::from_le_bytes(bytes[0][..8].try_into().unwrap()), 0b1010);
    // A window is as large as what it is a window of.
    let mut tensors = tensors;
    tensors[2].streamed = 100;
    unsafe { kernel.launch(LaunchArgs { params: &[1, 1, 0], tensors: &tensors, threads: 1, print: None }) }.unwrap();
    assert_eq!(u64::from_le_bytes(bytes[0][..8].try_into().unwrap()), 0b1110);
    // Each of two threads writes half of it, which its core's caches take.
    unsafe { kernel.launch(LaunchArgs { params: &[1, 2, 0], tensors: &tensors, threads: 2, print: None }) }.unwrap();
    assert_eq!(u64::from_le_bytes(bytes[0][..8].try_into().unwrap()), 0b1000);
}

/// Counts the blocks of the launch on this thread in the arena, and leaves the count in byte `i * n + j`.
unsafe extern "C" fn block_kept(frame: *const Frame) -> u32 {
    let frame = unsafe { &*frame };
    unsafe {
        let (i, j, n) = (*frame.coords, *frame.coords.add(1), *frame.params.add(1));
        let count = frame.arena.add(64).cast::<u64>();
        *count += 1;
        *(*frame.tensors).add((i * n + j) as usize) = *count as u8;
    }
    0
}

#[test]
fn what_is_kept_begins_at_zero_in_each_launch() {
    let parts = KernelParts {
        non_temporal: usize::MAX,
        name: "kept".into(),
        launch: launch_2d,
        block: block_kept,
        params: 3,
        tensors: 1,
        rank: 2,
        arena: 72,
        kept: Some(64),
        spread: Vec::new(),
        raster: None,
        prints: Vec::new(),
        code: Box::new(()),
    };
    let kernel = unsafe { Kernel::new(parts) };
    for _ in 0..3 {
        let mut bytes = vec![0u8; 6];
        let tensors = [TensorArg::new(&mut bytes)];
        unsafe { kernel.launch(LaunchArgs { params: &[2, 3, 0], tensors: &tensors, threads: 1, print: None }) }
            .unwrap();
        assert_eq!(bytes, [1, 2, 3, 4, 5, 6]);
    }
}

#[test]
fn launches_that_run_nothing() {
    for threads in [1, 2] {
        let mut bytes = vec![0; 4];
        for (m, n) in [(0, 5), (5, 0), (0, i64::MAX), (-3, 2)] {
            assert_eq!(run([m, n, 0], &mut bytes, threads), (Ok(()), vec![]));
        }
        for (m, n) in [(i64::MAX, 2), (1 << 31, 2), (i64::from(ptoc_abi::MOST_BLOCKS) + 1, 1)] {
            let (result, _) = run([m, n, 0], &mut bytes, threads);
            assert_eq!(result, Err(LaunchError::GridTooLarge(TooManyBlocks(vec![m, n]))));
        }
        let (result, _) = run([99, 2, 0], &mut bytes, threads);
        let Err(LaunchError::Check(failure)) = result else { panic!("{result:?}") };
        assert_eq!((failure.check, &failure.args[..], failure.block), (7, &[99][..], None));
        assert_eq!(bytes, [0; 4]);
    }
    let short = LaunchArgs { params: &[], tensors: &[], threads: 1, print: None };
    let result = unsafe { kernel().launch(short) };
    assert_eq!(result, Err(LaunchError::Arguments { what: "parameters", expected: 3, got: 0 }));
}

#[test]
fn lines_of_prints() {
    let event = |values| ptoc_exec::PrintEvent { block: None, site: 0, values };
    let scalar = |dtype, bits| PrintValue::Scalar { dtype, bits };
    let line = event(vec![
        PrintValue::Text("x = ".into()),
        scalar(DType::F16, i64::from(1.5f32.to_bits())),
        PrintValue::Text(" ".into()),
        scalar(DType::U64, -1),
        PrintValue::Text(" ".into()),
        scalar(DType::I8, -3),
        PrintValue::Text(" ".into()),
        scalar(DType::Bool, 1),
    ]);
    assert_eq!(line.line(), "x = 1.5 18446744073709551615 -3 true\n");
    let matrix = PrintValue::Matrix { dtype: DType::F16, rows: 2, cols: 2, bits: vec![0x3c00, 0xfc00, 0x7e00, 0x8000] };
    assert_eq!(event(vec![matrix]).line(), "[[1, -inf], [NaN, -0]]\n");
    let bytes = PrintValue::Matrix { dtype: DType::I8, rows: 1, cols: 2, bits: vec![0xff, 5] };
    assert_eq!(event(vec![bytes]).line(), "[[-1, 5]]\n");
    let none = PrintValue::Matrix { dtype: DType::I8, rows: 0, cols: 2, bits: vec![] };
    assert_eq!(event(vec![none]).line(), "[]\n");
}

/// Notes the thread of each block. Block (0, 0) of an outer launch, which has one column of blocks, launches an inner
/// one with one row.
unsafe extern "C" fn block_nested(frame: *const Frame) -> u32 {
    let frame = unsafe { &*frame };
    let [rows, _, at] = unsafe { *frame.params.cast::<[i64; 3]>() };
    let seen = unsafe { &*(at as *const Seen) };
    let inner = rows == 1;
    if !inner && unsafe { *frame.coords } == 0 {
        let launch = LaunchArgs { params: &[1, 40, at], tensors: &[], threads: 4, print: None };
        unsafe { seen.kernel.launch(launch) }.unwrap();
    }
    seen.threads[usize::from(inner)].lock().unwrap().push(thread::current().id());
    // Others have time to come.
    thread::sleep(Duration::from_micros(200));
    0
}

struct Seen {
    kernel: Kernel,
    /// Of the blocks of the outer launch, and of the inner ones.
    threads: [Mutex<Vec<ThreadId>>; 2],
}

#[test]
fn no_more_threads_than_asked_for_and_a_nested_launch_stays_on_its_own() {
    let parts = || KernelParts {
        non_temporal: usize::MAX,
        name: "nested".into(),
        launch: launch_2d,
        block: block_nested,
        params: 3,
        tensors: 0,
        rank: 2,
        arena: 64,
        kept: None,
        spread: Vec::new(),
        raster: None,
        prints: Vec::new(),
        code: Box::new(()),
    };
    let kernel = unsafe { Kernel::new(parts()) };
    // Four workers are there before fewer are asked for.
    for threads in [4, 1, 2, 3] {
        let seen = Seen { kernel: unsafe { Kernel::new(parts()) }, threads: Default::default() };
        let params = [40, 1, (&raw const seen) as i64];
        unsafe { kernel.launch(LaunchArgs { params: &params, tensors: &[], threads, print: None }) }.unwrap();
        let [outer, inner] = seen.threads.map(|found| found.into_inner().unwrap());
        assert_eq!((outer.len(), inner.len()), (40, 40));
        let distinct = |of: &[ThreadId]| of.iter().collect::<HashSet<_>>().len();
        assert!(distinct(&outer) <= threads, "{} threads of {threads}", distinct(&outer));
        // On one thread the pool is free, and the inner launch may have workers; else they are taken.
        assert!(distinct(&inner) <= if threads == 1 { 4 } else { 1 }, "{threads}");
    }
}
