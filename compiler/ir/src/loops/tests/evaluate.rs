//! The evaluator on small functions whose results are known.

use super::{parsed, with_body};
use crate::loops::eval::{EvalStop, Memory, run};

fn eval(body: &str, params: [i64; 2], a: &[u8], b: &mut [u8]) -> Result<(), EvalStop> {
    let module = parsed(&with_body(body));
    assert_eq!(crate::loops::verify(&module), Ok(()));
    let mut memory = Memory { tensors: vec![a.to_vec(), b.to_vec()], arena: vec![0; 256] };
    let result = run(&module, &module.block, &params, &mut memory, &mut Vec::new(), 1000);
    b.copy_from_slice(&memory.tensors[1]);
    result.map(|_| ())
}

#[test]
fn loops_lanes_and_jumps() {
    // b[i] = a[i] + a[i] in f16, for i in 0..r0, then the sum of the even i in b[3] as i16.
    let body = "lanes r2: i64 in r0 {
  r3: f32 = load f16 t0[r1, stride 2]
  r4: f32 = add r3, r3
  store f16 t1[r1, stride 2], r4
}
r5: i64 = const 10
for l0 r6: i64 in r1..r5 step 2 {
  r7: i64 = const 8
  r8: bool = eq r6, r7
  if r8 {
    break l0
  }
  r9: i64 = get m0
  r10: i64 = add r9, r6
  set m0, r10
}
r11: i64 = const 6
r12: i64 = get m0
r13: i32 = wrap r12
store i16 t1[r11], r13
";
    let mut b = [0; 8];
    eval(body, [2, 0], &[0x00, 0x3c, 0x00, 0xc0], &mut b).unwrap();
    assert_eq!(b, [0x00, 0x40, 0x00, 0xc4, 0, 0, 12, 0]);
}

#[test]
fn stops() {
    let mut b = [0; 8];
    let body = "r2: bool = lt r0, r1\ncheck r2, 1 (r0, r1)\n";
    assert_eq!(eval(body, [1, 2], &[], &mut b), Ok(()));
    assert_eq!(eval(body, [2, 2], &[], &mut b), Err(EvalStop::Check { check: 1, args: vec![2, 2] }));
    let body = "r2: i64 = load i64 t1[r0]\n";
    assert_eq!(eval(body, [0, 0], &[], &mut b), Ok(()));
    for at in [1, 8, -1, i64::MAX, i64::MIN] {
        assert!(matches!(eval(body, [at, 0], &[], &mut b), Err(EvalStop::OutOfBounds(_))));
    }
    let body = "while l0 {\nr2: bool = const true\n} r2 {\n}\n";
    assert_eq!(eval(body, [0, 0], &[], &mut b), Err(EvalStop::Fuel));
    // Iterations that do nothing count as well.
    for body in [
        "lanes r2: i64 in r0 {\n}\n",
        "for l0 r2: i64 in r1..r0 step 1 {\n}\n",
        "contract f32 (r0, r1, r1), d f32 t1[r1] (0, 0), start zero, a t0[r1] (0, 0), b t0[r1] (0, 0)\n",
        "contract f32 (r0, r0, r1), d f32 t1[r1] (0, 0), start zero, a t0[r1] (0, 0), b t0[r1] (0, 0)\n",
    ] {
        assert_eq!(eval(body, [i64::MAX, 0], &[], &mut b), Err(EvalStop::Fuel), "{body}");
    }
}

#[test]
fn rows_stay_in_their_table_or_are_copied() {
    // Rows of two from t0 by 1 + (0, 1) and 3 + (0, 1), where t0 has four elements: the second ends beyond it.
    let body = "r2: i64 = const 2
r3: i64 = const 4
r4: i64 = const 8
r5: i64 = const 64
r6: i64 = const 0
r7: i64 = gather zero i32 (r2, r2), d s1[r4] (8, 4), from t0[r6] r3, by t1[r6] (4, 0), plus s0[r6] (0, 4), places \
        s0[r5] 8
for l0 r8: i64 in r6..r2 step 1 {
  r9: i64 = mul r8, r4
  r10: i64 = add r5, r9
  lanes r11: i64 in r2 {
    r12: i64 = load i64 s0[r10]
    r13: i32 = load i32 t0[r6, stride 4, gather r12]
    store i32 t1[r9, stride 4], r13
  }
}
";
    let body = format!("r14: i32 = const 1\nr15: i64 = const 4\nstore i32 s0[r15], r14\n{body}");
    let a: Vec<u8> = [10i32, 11, 12, 13].iter().flat_map(|n| n.to_le_bytes()).collect();
    let mut b: Vec<u8> = [1i32, 3, 0, 0].iter().flat_map(|n| n.to_le_bytes()).collect();
    eval(&body, [0, 0], &a, &mut b).unwrap();
    let want: Vec<u8> = [11i32, 12, 13, 0].iter().flat_map(|n| n.to_le_bytes()).collect();
    assert_eq!(b, want);
}

/// A row of bytes, as a module has them in memory.
fn bytes<const N: usize, T: IntoIterator<Item = [u8; N]>>(words: T) -> Vec<u8> {
    words.into_iter().flatten().collect()
}

#[test]
fn a_sort_keeps_equal_values_in_order() {
    let nan = 0xffc0_0001u32;
    let x = [1f32.to_bits(), (-0f32).to_bits(), nan, 0f32.to_bits(), 2f32.to_bits(), 1f32.to_bits()];
    let a = bytes(x.iter().chain(&[10, 11, 12, 13, 14, 15]).map(|n| n.to_le_bytes()));
    let body = "r2: i64 = const 1
r3: i64 = const 6
r4: i64 = const 24
sort f32 (r2, r3), d t1[r0] (0, 4), a t0[r0] (0, 4), index t0[r4] (0, 4)
";
    let mut b = vec![0; 48];
    eval(body, [0, 0], &a, &mut b).unwrap();
    let order = [2usize, 4, 0, 5, 1, 3];
    assert_eq!(b, bytes(order.iter().flat_map(|&n| [x[n], 10 + n as u32]).map(|n| n.to_le_bytes())));
}

#[test]
fn a_merge_takes_the_best_of_the_heads() {
    // Two lists of two records, then one of one; the first list is out of order: its second record follows its first.
    let records = [(1f32, 0u32), (5.0, 1), (2.0, 2), (1.0, 3), (1.0, 4)];
    let a = bytes(records.iter().flat_map(|(x, n)| [x.to_bits(), *n]).map(|n| n.to_le_bytes()));
    let body = "r2: i64 = const 5
r3: i64 = const 2
merge f32 d t1[r0] 4, runs t0[r0] 4 r2 of r3
";
    let mut b = vec![0; 40];
    eval(body, [0, 0], &a, &mut b).unwrap();
    let want = |order: [u32; 5]| {
        let fields = order.iter().flat_map(|n| [records[*n as usize].0.to_bits(), *n]);
        bytes(fields.map(|n| n.to_le_bytes()))
    };
    assert_eq!(b, want([2, 0, 1, 3, 4]));
    // As lists of their own, the shortest one first.
    let body = "r2: i64 = const 1
r3: i64 = const 2
r4: i64 = const 16
r5: i64 = const 32
merge f32 d t1[r0] 4, list t0[r5] 4 r2, list t0[r0] 4 r3, list t0[r4] 4 r3
";
    eval(body, [0, 0], &a, &mut b).unwrap();
    assert_eq!(b, want([2, 4, 0, 1, 3]));
}

#[test]
fn a_product_and_atomics() {
    // [1 2] * [3 4]^T = 11, on i32, starting at 100; then an atomic maximum of it.
    let body = "r2: i64 = const 1
r3: i64 = const 2
r4: i64 = const 8
contract i32 (r2, r2, r3), d i32 t1[r0] (4, 4), start i32 t1[r0] (4, 4), a t0[r0] (8, 4), b t0[r4] (4, 4)
r5: i32 = const 50
r6: i32 = atomic max i32 t1[r0], r5
r7: i64 = const 4
store i32 t1[r7], r6
";
    let a: Vec<u8> = [1i32, 2, 3, 4].iter().flat_map(|n| n.to_le_bytes()).collect();
    let mut b: Vec<u8> = [100i32, 0].iter().flat_map(|n| n.to_le_bytes()).collect();
    eval(body, [0, 0], &a, &mut b).unwrap();
    assert_eq!(b, [111, 0, 0, 0, 111, 0, 0, 0]);
}
