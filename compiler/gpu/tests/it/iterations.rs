//! Loops of scalars whose iterations are spread over threads, and those that may not be.

use crate::harness::with_stack;
use crate::make::agree;
use crate::resident::ptx;
use ptoc_diagnostics::FileId;
use ptoc_gpu::{Options, compile};
use ptoc_ir::loops::{Module, text};

/// A loop over the elements of t0; `body` has the element in r7, its number in r4 and 4 in r3.
fn over_elements(body: &str) -> Module {
    let source = format!(
        r#"kernel "k"
tensor "x"
tensor "y"
arena 1024
space "s" at 0 size 1024
check 7
check 8
launch "k.launch" (r0: i64) -> () {{
}}
block "k.block" (r0: i64) {{
  labels 2
  r1: i64 = const 0
  r2: i64 = const 16
  r3: i64 = const 4
  r8: i32 = const 1
  r9: f32 = const 1.5
  for l0 r4: i64 in r1..r0 step 1 {{
    r5: i64 = mul r4, r3
    r7: i32 = load i32 t0[r5]
{body}
  }}
}}
"#
    );
    text::parse(&source, FileId(0)).unwrap_or_else(|e| panic!("{e:?}\n{source}"))
}

/// Atomic updates that a kernel has: those of memory that all threads may touch.
fn updates(module: &Module) -> usize {
    let code = compile(module, &Options { threads: Some(64), ..Options::default() }).expect("it compiles");
    let text = ptoc_ptx::print(&code.kernel);
    text.lines().filter(|l| l.contains("atom.global.add")).count()
}

fn bytes(numbers: impl IntoIterator<Item = i32>) -> Vec<u8> {
    numbers.into_iter().flat_map(i32::to_le_bytes).collect()
}

/// 300 numbers below 16, the n-th of which is another one.
fn elements(n: usize, other: i32) -> Vec<u8> {
    bytes((0..300).map(|at| if at == n as i32 { other } else { at * 7 % 16 }))
}

const COUNTS: &str = "    r10: i64 = sext r7
    r11: bool = le r1, r10
    check r11, 0 (r4, r10)
    r12: bool = lt r10, r2
    check r12, 1 (r10, r2)
    r13: i64 = mul r10, r3
    r14: i32 = load i32 t1[r13]
    r15: i32 = add r14, r8
    store i32 t1[r13], r15";

#[test]
fn counts_are_added_in_any_order() {
    let module = over_elements(COUNTS);
    assert_eq!(updates(&module), 1);
    agree(&module, &[300], &[elements(0, 0), bytes([0; 16])]).unwrap_or_else(|why| panic!("{why}"));
    agree(&module, &[0], &[elements(0, 0), bytes([0; 16])]).unwrap_or_else(|why| panic!("{why}"));
}

#[test]
fn the_first_iteration_that_fails_is_reported() {
    for (at, other) in [(0, 16), (17, -5), (299, 99), (80, i32::MIN)] {
        let mut x = elements(at, other);
        // One that fails later counts for nothing.
        x[4 * 299..].copy_from_slice(&77i32.to_le_bytes());
        agree(&over_elements(COUNTS), &[300], &[x, bytes([0; 16])]).unwrap_or_else(|why| panic!("{at}: {why}"));
    }
}

#[test]
fn elements_of_their_own_are_stored_in_any_order() {
    let module = over_elements(
        "    r10: i32 = mul r7, r7
    store i32 t1[r5], r10",
    );
    agree(&module, &[300], &[elements(3, -9), bytes([0; 300])]).unwrap_or_else(|why| panic!("{why}"));
}

#[test]
fn elements_that_meet_are_stored_in_order() {
    // Of those that meet the last one stays.
    let module = over_elements(
        "    r10: i64 = sext r7
    r13: i64 = mul r10, r3
    r14: i32 = wrap r4
    store i32 t1[r13], r14",
    );
    agree(&module, &[300], &[elements(3, 9), bytes([0; 16])]).unwrap_or_else(|why| panic!("{why}"));
}

#[test]
fn sums_of_floats_are_made_in_order() {
    let module = over_elements(
        "    r10: i64 = sext r7
    r13: i64 = mul r10, r3
    r14: f32 = load f32 t1[r13]
    r15: f32 = i_to_f r4
    r16: f32 = mul r15, r9
    r17: f32 = add r14, r16
    store f32 t1[r13], r17",
    );
    assert_eq!(updates(&module), 0);
    let start: Vec<u8> = (0..16).flat_map(|n| (n as f32 * 1e7).to_le_bytes()).collect();
    agree(&module, &[300], &[elements(3, 9), start]).unwrap_or_else(|why| panic!("{why}"));
}

#[test]
fn an_old_value_that_is_used_keeps_the_order() {
    let module = over_elements(
        "    r10: i64 = sext r7
    r13: i64 = mul r10, r3
    r14: i32 = load i32 t1[r13]
    r15: i32 = add r14, r8
    store i32 t1[r13], r15
    store i32 t0[r5], r14",
    );
    assert_eq!(updates(&module), 0);
    agree(&module, &[300], &[elements(3, 9), bytes([0; 16])]).unwrap_or_else(|why| panic!("{why}"));
}

/// Both elements are loaded before either is stored: where they are one, it is counted once.
#[test]
fn what_is_stored_in_between_may_be_the_element() {
    let module = over_elements(
        "    r10: i64 = sext r7
    r11: i32 = const 8
    r12: i32 = or r7, r11
    r13: i64 = mul r10, r3
    r14: i64 = sext r12
    r15: i64 = mul r14, r3
    r16: i32 = load i32 t1[r13]
    r17: i32 = load i32 t1[r15]
    r18: i32 = add r16, r8
    store i32 t1[r13], r18
    r19: i32 = add r17, r8
    store i32 t1[r15], r19",
    );
    agree(&module, &[300], &[elements(3, 9), bytes([0; 16])]).unwrap_or_else(|why| panic!("{why}"));
}

/// A histogram's numbers are counted by all threads, whatever else lies in the same memory.
#[test]
fn an_example_counts_in_all_threads() {
    with_stack(|| {
        let text = ptx("histogram", "histogram interp N=100000 B=256 BN=16384");
        assert!(text.contains("atom.shared.add.u32"), "{text}");
    });
}
