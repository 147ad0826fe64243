//! Lanes whose elements are apart, against the evaluator: of every size, with distances that are known or not, while
//! other values wait in registers.

use crate::make::{agree, data};
use ptoc_diagnostics::FileId;
use ptoc_ir::loops::{MemTy, Module, text, verify};

/// Rows of r1 elements of t0 from byte r3 on, each `stride` bytes behind the last one; `load` makes a float r12 of one.
fn rows(load: &str, from: i64, stride: i64, known: bool) -> Module {
    let gap = if known { stride.to_string() } else { "r2".to_owned() };
    let load = load.replace('@', &format!("t0[r9, stride {gap}]"));
    let waiting: String = (0..12).map(|n| format!("      r{}: f32 = mul r13, r{}\n", 20 + n, 19 + n)).collect();
    let added: String = (0..12).map(|n| format!("      r{}: f32 = add r{}, r{}\n", 41 + n, 40 + n, 20 + n)).collect();
    let text = format!(
        "kernel \"gaps\"\ntensor \"T0\"\ntensor \"T1\"\narena 0\nlaunch \"l\" (r0: i64, r1: i64, r2: i64) {{\n}}\n\
         block \"b\" (r0: i64, r1: i64, r2: i64) {{\n  labels 1\n  r3: i64 = const {from}\n  r4: i64 = const 0\n  \
         r5: i64 = const 512\n  r6: i64 = const 8\n  for l0 r7: i64 in r4..r0 step 1 {{\n    r8: i64 = mul r7, r6\n    \
         r9: i64 = add r8, r3\n    r10: i64 = mul r7, r5\n    lanes r11: i64 in r1 {{\n      \
         r13: f32 = load f32 t1[r10, stride 4]\n      r19: f32 = const 0.5\n{waiting}      {load}      \
         r40: f32 = add r12, r13\n{added}      store f32 t1[r10, stride 4], r52\n    }}\n  }}\n}}\n"
    );
    let module = text::parse(&text, FileId(0)).unwrap_or_else(|e| panic!("{e:?}\n{text}"));
    verify(&module).unwrap_or_else(|e| panic!("{e:?}\n{text}"));
    module
}

#[test]
fn elements_that_are_apart() {
    let loads = [
        (1, "r14: i32 = load u8 @\n      r12: f32 = u_to_f r14\n"),
        (1, "r14: i32 = load i8 @\n      r12: f32 = i_to_f r14\n"),
        (2, "r12: f32 = load f16 @\n"),
        (2, "r14: i32 = load i16 @\n      r12: f32 = i_to_f r14\n"),
        (4, "r12: f32 = load f32 @\n"),
        (8, "r15: i64 = load i64 @\n      r14: i32 = wrap r15\n      r12: f32 = i_to_f r14\n"),
    ];
    for (size, load) in loads {
        for stride in [3 * size, 64, -2 * size, 40_000] {
            for known in [true, false] {
                for cols in [5, 16, 40] {
                    let from = if stride < 0 { 40 * -stride } else { 0 };
                    let module = rows(load, from, stride, known);
                    let bytes = from.max(40 * stride) as usize + 64;
                    let ty = if load.contains("f16") { MemTy::F16 } else { MemTy::F32 };
                    let tensors = [data(ty, bytes, size as u32), data(MemTy::F32, 2048, 5)];
                    agree(&module, &[3, cols, stride], &tensors).unwrap_or_else(|e| {
                        panic!("{load}, {stride} bytes apart, known: {known}, {cols} columns: {e}")
                    });
                }
            }
        }
    }
}
