//! Bounds of nests, point by point: each way to leave a tensor is found, what stays inside is proved, and the checks of
//! what is neither trap exactly where the interpreter does.

use crate::harness::*;
use ptoc_checks::bounds;
use ptoc_diagnostics::{Analysis, Budget, FileId};
use ptoc_ir::loops::Bounded;
use ptoc_ir::tile::verify::verify;
use ptoc_ir::tile::{CheckId, Kernel, Op, Region, text};
use ptoc_tensor::DType;

/// A kernel about x, y: i32[64], z: i32[60] and a table t: i32[8]; `a` and `b` are any numbers from 0 on.
fn kernel(body: &str) -> Kernel {
    let consts = [64i64, 8, 0, 1, -1, 2, 4, 63, 62, 32, 33, 60, 56, 256, 257, 16, 17, 65, 1 << 48, 9, 59];
    let consts: String =
        consts.iter().enumerate().map(|(k, n)| format!("  v{}: index = const {n}\n", k + 10)).collect();
    let text = format!(
        "kernel \"k\" target \"a5\"
dim d0 \"a\": v0 \"a\": index
dim d1 \"b\": v1 \"b\": index
tensor g0 \"x\" in i32 [v10]
tensor g1 \"y\" inout i32 [v10]
tensor g2 \"t\" in i32 [v11]
tensor g3 \"z\" in i32 [v21]
tile t0 \"tile\" Vec<i32, 1, 64>
prologue {{
{consts}  v2: index = neg v0
  v3: index = mul v0, v28
  v4: index = sub v1, v0
  v5: i32 = const 7
  v6: index = const 3
  v7: index = const 5
  v8: index = const 6
  v9: index = const 7
}}
grid []
body {{
{body}
}}
"
    );
    let kernel = text::parse(&text, FileId(0)).unwrap_or_else(|e| panic!("{e:?}\n{text}"));
    assert_eq!(verify(&kernel), Ok(()), "{text}");
    kernel
}

// Names of the constants above.
const N: &[(&str, &str)] = &[
    ("N64", "v10"),
    ("N8", "v11"),
    ("N0", "v12"),
    ("N1", "v13"),
    ("NEG", "v14"),
    ("N2", "v15"),
    ("N4", "v16"),
    ("N63", "v17"),
    ("N62", "v18"),
    ("N32", "v19"),
    ("N33", "v20"),
    ("N60", "v21"),
    ("N56", "v22"),
    ("P256", "v23"),
    ("P257", "v24"),
    ("N16", "v25"),
    ("N17", "v26"),
    ("N65", "v27"),
    ("FAR", "v28"),
    ("N9", "v29"),
    ("N59", "v30"),
    ("MINUSA", "v2"),
    ("WIDE", "v3"),
    ("BMINUSA", "v4"),
    ("SEVEN", "v5"),
];

/// What is proved.
const INSIDE: &[(&str, &str)] = &[
    ("backwards", "copy [N64] g1.i32[N0 + (N1)] from g0.i32[N63 + (NEG)]"),
    ("a guard", "copy [N64] g1.i32[N0 + (N1)] from g0.i32[v0 + (N1)] where v0 + (N1) < N64"),
    (
        "a guard of two axes",
        "copy [N4, N17] g1.i32[N0 + (N1, N4)] from g0.i32[N0 + (N1, N4)] where N0 + (N1, N4) < N64",
    ),
    (
        "whole parts",
        "copy [N2, N2, N17] g1.i32[N0 + (N2, N1, N4)] from g0.i32[N0 + (N1, N2, N4)] where N0 + (N1, N2, N4) < N60",
    ),
    ("a guard that nothing moves", "copy [N1] g1.i32[v0 + (N1)] from g0.i32[v0 + (N1)] where v0 + (N0) < N64"),
    ("a table", "copy [N8] g1.i32[N0 + (N1)] from g0.i32[N0 + (N0) + table.undefined g2[N0 + (N1)] by N1 below N64]"),
    ("every eighth", "copy [N8] g1.i32[N0 + (N1)] from g0.i32[N0 + (N0) + table.clamp g2[N0 + (N1)] by N8 below N8]"),
    ("whole blocks", "copy [N60] g1.i32[N0 + (N1)] from g3.i32[N0 + (N1)] swizzle (2, 0, 2)"),
    ("blocks before the last", "copy [N56] g1.i32[N0 + (N1)] from g3.i32[N0 + (N1)] swizzle (3, 0, 3)"),
    ("wider elements", "copy [N32] g1.i64[N0 + (N1)] from g0.i64[N0 + (N1)]"),
    ("narrower elements", "copy [P256] g1.i8[N0 + (N1)] from g0.i8[N0 + (N1)]"),
    ("half bytes", "copy [P256] g1.u8[N0 + (N1)] from g0.u4[P256 + (N1)]"),
    (
        "a tile backwards",
        "alloc t0\n texpands t0[1x64 N1, N64], SEVEN\n \
        copy [N64] g1.i32[N0 + (N1)] from t0[1x64 N1, N64] at (N0 + (N0), N63 + (NEG))",
    ),
];

/// What is outside for some arguments, or for all.
const OUTSIDE: &[(&str, &str)] = &[
    ("backwards, one below", "copy [N64] g1.i32[N0 + (N1)] from g0.i32[N62 + (NEG)]"),
    ("a stride of any sign", "copy [N2] g1.i32[N0 + (N1)] from g0.i32[v0 + (MINUSA)]"),
    ("a stride that may go either way", "copy [N2] g1.i32[N0 + (N1)] from g0.i32[N32 + (BMINUSA)]"),
    ("an extent that may be none", "copy [v0] g1.i32[v1 + (N1)] from g0.i32[N0 + (N1)]"),
    ("a guard that is too weak", "copy [N64] g1.i32[N0 + (N1)] from g0.i32[v0 + (N1)] where v0 + (N1) < N65"),
    (
        "a guard of another axis",
        "copy [N8, N9] g1.i32[N0 + (N1, N8)] from g0.i32[N0 + (N1, N8)] where N0 + (N1, N0) < v0",
    ),
    (
        "a guard of each axis",
        "copy [N64, N2] g1.i32[N0 + (N1, N32)] from g0.i32[v1 + (N1, N32)] where v1 + (N2, N0) < v0",
    ),
    ("a guard that wraps", "copy [N8] g1.i32[N0 + (N1)] from g0.i32[WIDE + (N1)] where WIDE + (N1) < N64"),
    (
        "two axes, of which one is not guarded",
        "copy [N4, N17] g1.i32[N0 + (N1, N4)] from g0.i32[N0 + (N1, N4)] where N0 + (N0, N4) < v0",
    ),
    (
        "two axes under one guard",
        "copy [N4, N17] g1.i32[N0 + (N1, N4)] from g0.i32[N0 + (N1, N4)] where N0 + (N1, N4) < v0",
    ),
    ("what is filled", "copy [N65] g1.i32[N0 + (N1)] from g0.i32[N0 + (N1)] where N0 + (N1) < N64 fill SEVEN"),
    (
        "parts that are not whole",
        "copy [N2, N2, N17] g1.i32[N0 + (N2, N1, N4)] from g0.i32[N0 + (N2, N1, N4)] where N0 + (N1, N2, N4) < v0",
    ),
    (
        "every second",
        "copy [N8] g1.i32[N0 + (N1)] from g0.i32[N0 + (N0) + table.undefined g2[N0 + (N1)] by N2 below N64]",
    ),
    (
        "an entry and one",
        "copy [N8] g1.i32[N0 + (N1)] from g0.i32[N1 + (N0) + table.clamp g2[N0 + (N1)] by N1 below N64]",
    ),
    (
        "an entry of too many",
        "copy [N8] g1.i32[N0 + (N1)] from g0.i32[N0 + (N0) + table.wrap g2[N0 + (N1)] by N1 below N65]",
    ),
    (
        "an entry or nothing",
        "copy [N8] g1.i32[N0 + (N1)] from g0.i32[N0 + (N0) + table.zero g2[N0 + (N1)] by N1 below N65]",
    ),
    (
        "an entry of none",
        "copy [N8] g1.i32[N0 + (N1)] from g0.i32[N62 + (N0) + table.wrap g2[N0 + (N1)] by N1 below v0]",
    ),
    (
        "a table that is too short",
        "copy [N9] g1.i32[N0 + (N1)] from g0.i32[N0 + (N0) + table.clamp g2[N0 + (N1)] by N1 below N8]",
    ),
    (
        "a table under a guard",
        "copy [N9] g1.i32[N0 + (N1)] from g0.i32[N1 + (N0) + table.clamp g2[N0 + (N1)] by N1 below N64] where N0 + \
        (N1) < v0",
    ),
    (
        "two tables",
        "copy [N8] g1.i32[N0 + (N1)] from g0.i32[N0 + (N0) + table.zero g2[N0 + (N1)] by N1 below N8 + table.undefined \
        g2[N0 + (N1)] by N8 below N9]",
    ),
    ("part of a block", "copy [N60] g1.i32[N0 + (N1)] from g3.i32[N0 + (N1)] swizzle (3, 0, 3)"),
    ("part of a block that stays inside", "copy [N60] g1.i32[N0 + (N1)] from g3.i32[N0 + (N1)] swizzle (3, 0, 4)"),
    ("wider elements", "copy [N33] g1.i64[N0 + (N1)] from g0.i64[N0 + (N1)]"),
    ("narrower elements", "copy [P257] g1.i8[N0 + (N1)] from g0.i8[N0 + (N1)]"),
    ("half bytes", "copy [P256] g1.u8[N0 + (N1)] from g0.u4[P257 + (N1)]"),
    (
        "a tile",
        "alloc t0\n texpands t0[1x64 N1, N64], SEVEN\n \
        copy [N64] g1.i32[N0 + (N1)] from t0[1x64 N1, N64] at (N0 + (N0), v0 + (NEG))",
    ),
    (
        "rows backwards",
        "alloc t0\n tload t0[1x64 N1, N64], g0[v0 + (N1, N64):(N64, NEG)]\n \
        tstore g1[N0 + (N1, N64):(N64, N1)], t0[1x64 N1, N64]",
    ),
    (
        "as many as may wrap",
        "alloc t0\n tload t0[1x64 N1, BMINUSA], g0[v0 + (N1, BMINUSA):(N64, N1)]\n \
        tstore g1[N1 + (N1, BMINUSA):(N64, N1)], t0[1x64 N1, BMINUSA]",
    ),
];

fn written(case: &str) -> Kernel {
    let word = |c: char| !c.is_ascii_alphanumeric();
    let mut out = String::new();
    for piece in case.split_inclusive(word) {
        let (name, rest) = piece.split_at(piece.trim_end_matches(word).len());
        out += N.iter().find(|n| n.0 == name).map_or(name, |n| n.1);
        out += rest;
    }
    kernel(&out)
}

fn without(region: &mut Region, check: CheckId) {
    region.retain(|s| !matches!(s.op, Op::Check { check: c, .. } if c == check));
    for stmt in region {
        match &mut stmt.op {
            Op::For(f) => without(&mut f.body, check),
            Op::If(i) => [&mut i.then, &mut i.els].into_iter().for_each(|r| without(r, check)),
            Op::Scope(s) => without(&mut s.body, check),
            _ => {}
        }
    }
}

#[test]
fn what_is_inside_is_proved() {
    for (name, case) in INSIDE {
        let kernel = written(case);
        assert_eq!(bounds::unproved(&kernel, a5()), [], "{name}: {kernel}");
        assert_eq!(bounds::verify(&kernel, a5()), Ok(()), "{name}");
        run(name, &kernel);
    }
}

#[test]
fn what_is_not_is_checked() {
    for (name, case) in OUTSIDE {
        let kernel = written(case);
        assert_ne!(bounds::unproved(&kernel, a5()), [], "{name}");
        let refused = bounds::verify(&kernel, a5()).expect_err(name);
        assert!(refused.iter().all(|d| d.code.as_str() == "E0819"), "{name}: {refused:?}");
        let (checked, verdict) = bounds::settled(&kernel, a5(), Budget::default().account(Analysis::Lowering));
        let checked = checked.unwrap_or_else(|| panic!("{name}: no checks"));
        assert!(verdict.checked > 0, "{name}");
        assert_eq!(verify(&checked), Ok(()), "{name}: {checked}");
        assert_eq!(bounds::verify(&checked, a5()), Ok(()), "{name}: {checked}");
        for n in kernel.checks.len()..checked.checks.len() {
            let mut stripped = checked.clone();
            without(&mut stripped.body, CheckId::from_u32(n as u32));
            assert!(bounds::verify(&stripped, a5()).is_err(), "{name}, without check {n}: {stripped}");
        }
        run(name, &kernel);
        // Loop IR says so, too.
        let module = compile(&kernel, a5()).module.expect("a target of PTO's");
        let tested = module.bounds.iter().filter(|row| matches!(row.by, Bounded::Checks(_))).count();
        assert!(tested > 0, "{name}: {:?}", module.bounds);
    }
}

/// The interpreter knows each place; the evaluator of loop IR stops at an address outside of its memory, and not in
/// silence.
fn run(name: &str, kernel: &Kernel) {
    let prepared = compile(kernel, a5());
    let numbers = |n: u64, from: u64| tensor(DType::I32, &[n], from..from + n);
    let tables: [[i32; 8]; 5] = [
        [0, 1, 2, 3, 4, 5, 6, 7],
        [31, 30, 31, 0, 5, 6, 31, 1],
        [7, 7, 63, 7, 7, 7, 7, 7],
        [64, 0, 0, 0, 0, 0, 0, -1],
        [1, -9, 1, 1, 100, 1, 1, 129],
    ];
    let (mut done, mut failed) = (0, 0);
    for table in tables {
        let table = tensor(DType::I32, &[8], table.map(|n| u64::from(n as u32)));
        for (a, b) in [
            (0, 0),
            (0, 64),
            (1, 1),
            (2, 66),
            (5, 0),
            (33, 1),
            (63, 63),
            (64, 0),
            (65, 1),
            (68, 70),
            (128, 32),
            (0, 65),
        ] {
            let tensors = vec![numbers(64, 100), numbers(64, 200), table.clone(), numbers(60, 300)];
            let args = Args { dims: vec![a, b], scalars: Vec::new(), tensors };
            let (want, got) = (run_interpreter(kernel, &args), run_lowered(&prepared, &args));
            match (&want, &got) {
                (End::Done(x), End::Done(y)) => assert_eq!(x, y, "{name}: a = {a}, b = {b}"),
                // The interpreter adds its own words.
                (End::Failed(x), End::Failed(y)) => assert_eq!(x[..7], y[..7], "{name}: a = {a}, b = {b}"),
                _ => panic!("{name}: a = {a}, b = {b}: {want:?}, but {got:?}"),
            }
            match want {
                End::Done(_) => done += 1,
                End::Failed(_) => failed += 1,
            }
        }
    }
    assert!(done + failed == 60);
}
