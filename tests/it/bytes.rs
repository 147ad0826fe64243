//! Kernels whose tiles lie close together, and are right: nothing is said of overlap, use before write or dead stores.

use ptoc_diagnostics::codes;
use ptoc_tests::front::{Flags, check};
use std::path::Path;

#[test]
fn correct_kernels_raise_nothing() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("bytes");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("readable").path();
        let text = std::fs::read_to_string(&path).expect("readable");
        let checked = check("kernel", &text, &Flags::of_comments(&text), None);
        let ours =
            [codes::OVERLAP, codes::DEAD_STORE, codes::UNINITIALISED, codes::MAYBE_UNINITIALISED].map(|c| c.as_str());
        let wrong = checked.errors() > 0 || checked.codes().iter().any(|c| ours.contains(c));
        assert!(!wrong && checked.compiled == 1, "{}\n{}", path.display(), checked.text());
        count += 1;
    }
    assert!(count >= 20, "only {count} kernels were found");
}

/// Bodies of `kernel k(a: in f32[R, 64], c: out f32[R, 64], n: index) where n < 16` with a tile `x` of R rows, and what
/// is said of it.
const UNWRITTEN: [(u32, &str, ptoc_diagnostics::Code); 17] = [
    // The row that is read is written later.
    (16, "for r in 0..20000 { TLOAD(x[r % 16, _], a[r % 16, _]); if r == 10 { TSTORE(c, x); } }", codes::UNINITIALISED),
    (16, "for r in 0..20000 { TLOAD(x[r % 16, _], a[r % 16, _]); if r > 10 { TSTORE(c, x); } }", codes::UNINITIALISED),
    (
        16,
        "for r in 0..20000 { TLOAD(x[r % 16, _], a[r % 16, _]); if r % 16 == 14 { TSTORE(c, x); } }",
        codes::UNINITIALISED,
    ),
    (
        16,
        "for r in 0..20000 { TLOAD(x[r / 4 % 16, _], a[r / 4 % 16, _]); if r == 59 { TSTORE(c, x); } }",
        codes::UNINITIALISED,
    ),
    (
        128,
        "for r in 0..20000 { TLOAD(x[r % 128, _], a[r % 128, _]); if r == 100 { TSTORE(c, x); } }",
        codes::UNINITIALISED,
    ),
    (
        256,
        "for r in 0..20000 { TLOAD(x[r % 256, _], a[r % 256, _]); if r == 254 { TSTORE(c, x); } }",
        codes::UNINITIALISED,
    ),
    // A guard that writes.
    (
        16,
        "for r in 0..20000 { if r % 16 != 7 { TLOAD(x[r % 16, _], a[r % 16, _]); } if r % 16 == 15 { TSTORE(c, x); } }",
        codes::UNINITIALISED,
    ),
    (16, "for r in 0..20000 { TLOAD(x[r % 15, _], a[r % 15, _]); } TSTORE(c, x);", codes::UNINITIALISED),
    // Loops in loops, and guards in guards.
    (
        16,
        "for r in 0..300 { for q in 0..300 { TLOAD(x[q % 16, _], a[q % 16, _]); if r == 0 { if q == 12 { TSTORE(c, x); \
        } } } }",
        codes::UNINITIALISED,
    ),
    (
        16,
        "for r in 0..300 { for q in 0..300 { if q % 2 == 1 { TLOAD(x[q % 16, _], a[0, _]); } } if r == 5 { TSTORE(c, \
        x); } }",
        codes::MAYBE_UNINITIALISED,
    ),
    (
        16,
        "var r = 0; while r < 20000 { TLOAD(x[r % 16, _], a[r % 16, _]); if r == 10 { TSTORE(c, x); } r = r + 1; }",
        codes::UNINITIALISED,
    ),
    // As often as the launch says.
    (
        16,
        "for r in 0..n * 99 { TLOAD(x[r % 16, _], a[r % 16, _]); if r == 10 { TSTORE(c, x); } }",
        codes::UNINITIALISED,
    ),
    (
        16,
        "for r in 0..n * 99 { if r % 16 != 3 { TLOAD(x[r % 16, _], a[r % 16, _]); } if r % 16 == 15 { TSTORE(c, x); } \
        }",
        codes::MAYBE_UNINITIALISED,
    ),
    // Far away.
    (
        16,
        "for r in 0..20000 { if r == 15000 { TSTORE(c, x); } if r >= 15000 { TLOAD(x[r % 16, _], a[r % 16, _]); } }",
        codes::MAYBE_UNINITIALISED,
    ),
    // Where the launch says.
    (16, "TLOAD(x[n, _], a[n, _]); TSTORE(c, x);", codes::MAYBE_UNINITIALISED),
    (16, "for r in 0..8 { TLOAD(x[r, _], a[r, _]); } TSTORE(c[0, _], x[n, _]);", codes::MAYBE_UNINITIALISED),
    // In column 0, each second row.
    (
        2048,
        "for r in 0..1024 { x[2 * r, 0] = 1.0; } for r in 0..2048 { for q in 1..16 { x[r, q] = 2.0; } } TSTORE(c, x);",
        codes::UNINITIALISED,
    ),
];

#[test]
fn unwritten_bytes_are_told_however_long_a_loop_is() {
    let mut wrong = String::new();
    for (rows, body, code) in UNWRITTEN {
        let cols = if rows == 2048 { 16 } else { 64 };
        let text = format!(
            "kernel k(a: in f32[{rows}, {cols}], c: out f32[{rows}, {cols}], n: index) where n < 16 {{\n\
             let x = tile Vec<f32, {rows}, {cols}>;\n{body}\n}}\n"
        );
        let checked = check("kernel", &text, &Flags::of_comments(&text), None);
        let codes: Vec<_> = checked.codes().into_iter().filter(|c| c.starts_with('E')).collect();
        if codes != [code.as_str()] {
            wrong.push_str(&format!("expected {code}\n{text}\n{}", checked.text()));
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// Bodies that write a tile `t` of `i.len` rows of 64: all of it, and all but some.
const RELATED: [(&str, &str); 16] = [
    ("for r in 0..i.len { t[r % i.len, _] = 1.0; }", "for r in 1..i.len { t[r % i.len, _] = 1.0; }"),
    ("for r in 0..i.len { t[(r + 1) % i.len, _] = 1.0; }", "for r in 0..i.len - 1 { t[(r + 1) % i.len, _] = 1.0; }"),
    ("for r in 0..i.len { t[i.len - 1 - r, _] = 1.0; }", "for r in 0..i.len - 1 { t[i.len - 1 - r, _] = 1.0; }"),
    (
        "for p in 0..(i.len + 1) / 2 { t[2 * p, _] = 1.0; } for p in 0..i.len / 2 { t[2 * p + 1, _] = 2.0; }",
        "for p in 0..(i.len + 1) / 2 { t[2 * p, _] = 1.0; } for p in 0..(i.len - 1) / 2 { t[2 * p + 1, _] = 2.0; }",
    ),
    (
        "for r in 0..i.len { if r % 2 == 0 { t[r, _] = 1.0; } } for r in 0..i.len { if r % 2 == 1 { t[r, _] = 2.0; } }",
        "for r in 0..i.len { if r % 2 == 0 { t[r, _] = 1.0; } } for r in 0..i.len { if r % 4 == 1 { t[r, _] = 2.0; } }",
    ),
    ("for q in 0..i.len * 64 { t[q / 64, q % 64] = 1.0; }", "for q in 0..i.len * 64 - 1 { t[q / 64, q % 64] = 1.0; }"),
    ("for q in 0..i.len * 64 { t[q / 64, q % 64] = 1.0; }", "for q in 0..i.len * 64 { t[q / 64, q % 63] = 1.0; }"),
    (
        "for d in 0..i.len + 63 { for r in max(d - 63, 0)..min(d + 1, i.len) { t[r, d - r] = 1.0; } }",
        "for d in 0..i.len + 62 { for r in max(d - 63, 0)..min(d + 1, i.len) { t[r, d - r] = 1.0; } }",
    ),
    (
        "for e in tiles(i.len, 4) { for r in 0..e.len { t[e.start + r, _] = 1.0; } }",
        "for e in tiles(i.len, 4) { for r in 0..min(e.len, 3) { t[e.start + r, _] = 1.0; } }",
    ),
    (
        "var r = 0; while r < i.len { t[r, _] = 1.0; r = r + 1; }",
        "var r = 0; while r < i.len { t[r, _] = 1.0; r = r + 2; }",
    ),
    (
        "var r = 0; while r < i.len { t[r, _] = 1.0; r = r + 1; }",
        "var r = 0; while r < i.len { if r == 5 { break; } t[r, _] = 1.0; r = r + 1; }",
    ),
    (
        "for k in 0..9 { for r in 0..i.len { if k == 0 { t[r, _] = 1.0; } else { t[r, _] += 1.0; } } }",
        "for k in 0..9 { for r in 0..i.len { if k == 1 { t[r, _] = 1.0; } else { t[r, _] += 1.0; } } }",
    ),
    (
        "for r in 0..i.len { t[r, _] = 1.0; } for r in 0..i.len { y[i.start + r, 0] = t[max(r - 1, 0), 0] + t[min(r + \
        1, i.len - 1), 0]; } t = 0.0;",
        "for r in 1..i.len { t[r, _] = 1.0; } for r in 0..i.len { y[i.start + r, 0] = t[max(r - 1, 0), 0]; } t = 0.0;",
    ),
    (
        "for r in 0..i.len { if i.start + r < 40 { t[r, _] = 1.0; } else { t[r, _] = 2.0; } }",
        "for r in 0..i.len { if i.start + r < 40 { t[r, _] = 1.0; } }",
    ),
    (
        "for r in 0..i.len { if r == 3 { t[r, _] = 2.0; continue; } t[r, _] = 1.0; } t = 0.0;",
        "for r in 0..i.len { if r == 3 { continue; } t[r, _] = 1.0; }",
    ),
    (
        "for k in 0..M { let u = tile Vec<f32, i, 64>; u = 0.0; t = u; } t = 0.0;",
        "for k in 0..M { let u = tile Vec<f32, i, 64>; if k == 0 { u = 0.0; } t = u; } t = 0.0;",
    ),
];

#[test]
fn what_all_iterations_leave_out_is_told() {
    let mut wrong = String::new();
    for (n, (right, left_out)) in RELATED.into_iter().enumerate() {
        for (body, whole) in [(right, true), (left_out, false)] {
            let text = format!(
                "kernel k(x: in f32[M, 64], y: inout f32[M, 64]) {{\n    grid (i in tiles(M, 16));\n    \
                 let t = tile Vec<f32, i, 64>;\n    {body}\n    TSTORE(y.tile(i, _), t);\n}}\n"
            );
            let checked = check("kernel", &text, &Flags::of_comments(&text), None);
            let doubts = [codes::UNINITIALISED, codes::MAYBE_UNINITIALISED].map(|c| c.as_str());
            let told = checked.codes().iter().any(|c| doubts.contains(c));
            if told == whole || (checked.errors() > 0 && whole) {
                wrong.push_str(&format!("{n}, whole: {whole}\n{text}\n{}", checked.text()));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}
