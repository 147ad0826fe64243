//! Whole lines of arrays that no cache holds go past the caches: the code, where it may, and the same bytes either way.

use crate::make::{agree, widths};
use ptoc_cpu::listing::print;
use ptoc_cpu::{Options, Vectors, compile};
use ptoc_diagnostics::FileId;
use ptoc_ir::loops::{Module, text};

/// `r0` rows of `r1` lanes, `r2` bytes apart, from byte `r3` on: `body` takes the offset of a row, r7, and of a word a
/// row, r30.
fn module(body: &str) -> Module {
    let source = format!(
        r#"
kernel "past"
tensor "A"
tensor "C"
arena 64
space "Vec" at 0 size 64
launch "past.launch" (r0: i64, r1: i64, r2: i64, r3: i64) -> () {{
}}
block "past.block" (r0: i64, r1: i64, r2: i64, r3: i64) {{
  labels 1
  r4: i64 = const 0
  r29: i64 = const 4
  for l0 r5: i64 in r4..r0 step 1 {{
    r6: i64 = mul r5, r2
    r7: i64 = add r6, r3
    r30: i64 = mul r5, r29
    lanes r8: i64 in r1 {{
      {body}
    }}
  }}
}}
"#
    );
    text::parse(&source.replace(" -> ()", ""), FileId(0)).unwrap_or_else(|e| panic!("{e:?}\n{source}"))
}

const ADD: &str = "r9: f32 = load f32 t0[r7, stride 4]
      r10: f32 = add r9, r9
      store f32 t1[r7, stride 4], r10";
const COPY: &str = "r9: i32 = load i32 t0[r7, stride 4]
      store i32 t1[r7, stride 4], r9";
/// More values at a time than there are registers, and what is stored is used again.
const LONG_CHAIN: &str = "r9: f32 = load f32 t0[r7, stride 4]
      r10: f32 = add r9, r9
      store f32 t1[r7, stride 4], r10
      r11: f32 = mul r10, r9
      r12: f32 = sub r11, r10
      store f32 t1[r7, stride 4], r12";
/// Column by column of the source.
const TURN: &str = "r9: i32 = load i32 t0[r7, stride 256]
      store i32 t1[r7, stride 4], r9";
/// The same of a matrix, whose columns become rows.
const TRANSPOSE: &str = "r9: i32 = load i32 t0[r30, stride 400]
      store i32 t1[r7, stride 4], r9";
/// What is read again.
const OWN: &str = "r9: f32 = load f32 t1[r7, stride 4]
      r10: f32 = add r9, r9
      store f32 t1[r7, stride 4], r10";

#[test]
fn the_same_bytes_wherever_rows_begin_and_end() {
    let bytes: Vec<u8> = (0..40_000u32).flat_map(|n| (n as f32 * 0.37 - 5000.0).to_le_bytes()).collect();
    for body in [ADD, COPY, TURN, OWN, LONG_CHAIN] {
        let module = module(body);
        // Lines as they are, with a tail, not at their beginning, without gaps, and rows that begin anywhere.
        for (rows, lanes, step, start) in [
            (9, 64, 256, 0),
            (9, 61, 256, 0),
            (9, 64, 256, 4),
            (3, 128, 512, 64),
            (7, 33, 132, 0),
            (1, 4000, 0, 0),
            // In parts of a line: from a quarter on, with a tail, without gaps, with gaps.
            (1, 4000, 0, 16),
            (1, 4003, 0, 48),
            (9, 128, 512, 16),
            (5, 131, 560, 32),
            (5, 300, 1216, 16),
            (5, 300, 1208, 16),
            (70, 16, 64, 16),
            (9, 32, 128, 32),
        ] {
            if body == TURN && lanes > 128 {
                continue;
            }
            let arrays = [bytes.clone(), bytes.clone()];
            agree(&module, &[rows, lanes, step, start], &arrays).unwrap_or_else(|e| panic!("{body}\n{lanes}: {e}"));
        }
    }
}

#[test]
fn transpositions_wherever_rows_begin_and_end() {
    let bytes: Vec<u8> = (0..40_000u32).flat_map(|n| (n.wrapping_mul(2654435761)).to_le_bytes()).collect();
    let module = module(TRANSPOSE);
    for (rows, lanes) in [(16, 16), (40, 48), (100, 65), (33, 130), (100, 17), (3, 400), (70, 3), (1, 64)] {
        // Without gaps, with gaps of words and of lines, and not from a line on.
        for (gap, start) in [(0, 0), (0, 4), (12, 64), (64, 0), (2, 60), (0, 1)] {
            let arrays = [bytes.clone(), bytes.clone()];
            agree(&module, &[rows, lanes, 4 * lanes + gap, start], &arrays)
                .unwrap_or_else(|e| panic!("{rows} x {lanes}, gap {gap}, from {start}: {e}"));
        }
    }
}

#[test]
fn only_what_is_not_read() {
    let wide = |v: &Vectors| matches!(v, Vectors::Bits256 | Vectors::Bits512);
    for vectors in widths().filter(wide) {
        let listing = |body: &str| {
            let options = Options { text: true, vectors, non_temporal: Some(1), ..Options::default() };
            let kernel = compile(&module(body), &options).expect("it compiles");
            print(&kernel.text().expect("it was asked for").code, |_| String::new())
        };
        assert!(listing(ADD).contains("vmovntps"), "{}", listing(ADD));
        // Of rows that begin at a multiple of 16 bytes, in parts.
        let quarter = |line: &str| line.contains("vmovntps") && line.contains("xmm");
        assert!(listing(ADD).lines().any(quarter), "{}", listing(ADD));
        assert!(!listing(OWN).contains("vmovntps"), "{}", listing(OWN));
    }
}
