//! Half bytes of words as lanes, against the evaluator.

use crate::make::{agree, data};
use ptoc_diagnostics::FileId;
use ptoc_ir::loops::{MemTy, Module, text, verify};

/// Rows of r1 half bytes of t0, 64 bytes apart from byte 4 on; `body` makes r20 of each, r12, of a float r8 that the
/// lanes of a row share, and of one of their own, r13.
fn rows(moves: &str, body: &str) -> Module {
    let text = format!(
        "kernel \"halves\"\ntensor \"T0\"\ntensor \"T1\"\narena 0\nlaunch \"l\" (r0: i64, r1: i64) {{\n}}\n\
         block \"b\" (r0: i64, r1: i64) {{\n  labels 1\n  r2: i64 = const 0\n  r3: i64 = const 64\n  \
         r4: i64 = const 4\n  r5: i64 = const 512\n  for l0 r6: i64 in r2..r0 step 1 {{\n    r7: i64 = mul r6, r3\n    \
         r9: i64 = add r7, r4\n    r10: i64 = mul r6, r5\n    lanes r11: i64 in r1 {{\n      \
         r8: f32 = load f32 t0[r7]\n      r13: f32 = load f32 t0[r7, stride 4]\n      \
         r12: i32 = nibble t0[r9], {moves}\n{body}      store f32 t1[r10, stride 4], r20\n    }}\n  }}\n}}\n"
    );
    let module = text::parse(&text, FileId(0)).unwrap_or_else(|e| panic!("{e:?}\n{text}"));
    verify(&module).unwrap_or_else(|e| panic!("{e:?}\n{text}"));
    assert_eq!(text::parse(&text::print(&module, true), FileId(0)).unwrap().block.body, module.block.body);
    module
}

#[test]
fn half_bytes_of_words() {
    let bodies = [
        ("as they are", "r20: f32 = u_to_f r12\n"),
        (
            "a function, twice, and of two of them",
            "r14: f32 = u_to_f r12\n r15: f32 = sub r14, r8\n r16: f32 = mul r15, r14\n r17: f32 = round_f16 r16\n \
             r18: f32 = mul r17, r13\n r20: f32 = add r18, r15\n",
        ),
        (
            "integers, signed",
            "r14: i32 = const 8\n r15: i32 = xor r12, r14\n r16: i32 = sub r15, r14\n r17: f32 = i_to_f r16\n \
             r18: f32 = max r17, r8\n r20: f32 = add r18, r13\n",
        ),
        ("quotients", "r14: i32 = const 3\n r15: i32 = div r12, r14\n r20: f32 = i_to_f r15\n"),
    ];
    for moves in ["1, 2, 4", "4, 1, 2", "2, 4, 1", "4, 2, 1", "0, 0, 0", "0, 3, 4"] {
        for (what, body) in &bodies {
            let module = rows(moves, body);
            for (rows, cols) in
                [(1, 1), (0, 9), (3, 0), (2, 7), (3, 8), (1, 9), (2, 15), (5, 16), (3, 24), (2, 64), (9, 100), (4, 120)]
            {
                let tensors = [data(MemTy::F32, 64 * 9 + 512, rows as u32), data(MemTy::F32, 512 * 9, 5)];
                agree(&module, &[rows, cols], &tensors)
                    .unwrap_or_else(|e| panic!("{moves}: {what}, {rows} x {cols}: {e}"));
            }
        }
    }
}
