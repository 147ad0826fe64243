//! Blocks that the CPU takes row by row: kernels of rows put together at random, with what may make a row depend on its
//! block or on the rows beside it. Interpreter = CPU, and which of them are taken row by row is what their parts say.

use crate::engine::{Built, Content, Noise, agree, build, noise};
use ptoc_tensor::{DType, Tensor};

/// A piece of a kernel, and whether each row of what it computes is the same without the block's other rows.
struct Piece {
    text: &'static str,
    alone: bool,
}

const fn alone(text: &'static str) -> Piece {
    Piece { text, alone: true }
}

const fn together(text: &'static str) -> Piece {
    Piece { text, alone: false }
}

/// What `sum`, a column, becomes between the passes over the rows.
const STEPS: [Piece; 12] = [
    alone("sum = sum + Vec(w.tile(i, _));"),
    alone("sum = exp(sum * 0.01);"),
    alone("sum = max(sum, top);"),
    alone("for j in tiles(N, BN) { sum = min(sum, rowmin(Vec(z.tile(i, j)))); }"),
    alone(
        "for j in tiles(N, BN) { let v = Vec(x.tile(i, j)) - top; sum += rowsum(v * Vec(z.tile(i, j)) + \
        Vec(g.tile(j))); }",
    ),
    // Rows that all blocks read, computed once in each.
    alone("for j in tiles(N, BN) { let h = Vec(g.tile(j)) * 2.0; sum += rowsum(Vec(z.tile(i, j)) + h); }"),
    together("for j in tiles(N, BN) { sum = sum + rowsum(Vec(z.tile(i, j)) + colsum(Vec(x.tile(i, j)))); }"),
    together("sum = sum + f32(iota(i, 1));"),
    together("sum = sum + f32(i32(i.end));"),
    together("if i.start > 8 { sum = sum + 1.0; }"),
    together("for j in tiles(i.end * 64, BN) { if j.end <= N { sum = sum + rowmin(Vec(z.tile(i, j))); } }"),
    together("for q in 0..1 { let d = tile Vec<f32, 1, i>; d = transpose(sum); sum = sum + d[0, 0]; }"),
];

/// The last pass, which reads rows again.
const RESULTS: [Piece; 5] = [
    alone("TSTORE(y.tile(i, j), Vec(x.tile(i, j)) * sum);"),
    alone("TSTORE(y.tile(i, j), (Vec(x.tile(i, j)) - top) * sum + Vec(z.tile(i, j)) * Vec(g.tile(j)));"),
    alone("let e = exp(Vec(x.tile(i, j)) - top); e = e * sum; TSTORE(y.tile(i, j), f32(f16(e)));"),
    together("TSTORE(y.tile(i, j), Vec(x.tile(i, j)) * sum + colmax(Vec(z.tile(i, j))));"),
    together("TSTORE(y.tile(i, j), Vec(x.tile(i, j)) * sum, atomic = true);"),
];

/// `early`: the last pass over rows is the last thing a block does.
fn kernel(pieces: &[&Piece], last: &Piece, (bm, bn): (u32, u32), early: bool) -> String {
    let sums = "TSTORE(t.tile(i, _), sum);";
    let (before, behind) = if early { (sums, "") } else { ("", sums) };
    let steps: Vec<&str> = pieces.iter().map(|p| p.text).collect();
    format!(
        "kernel k<const BM = {bm}, const BN = {bn}>(x: in f32[M, N], z: in f32[M, N], g: in f32[N], w: in f32[M, 1],
                y: {} f32[M, N], t: out f32[M, 1]) {{
            grid (i in tiles(M, BM));
            let top, sum = tile Vec<f32, i, 1>;
            top = -inf;
            sum = 0.5;
            for j in tiles(N, BN) {{ top = max(top, rowmax(Vec(x.tile(i, j)))); }}
            {}
            {before}
            for j in tiles(N, BN) {{ {} }}
            {behind}
        }}",
        if last.text.contains("atomic") { "inout" } else { "out" },
        steps.join("\n            "),
        last.text,
    )
}

/// Whether each row has a block of its own: the grid is as large as the first dimension.
fn is_split(built: &Built) -> bool {
    let launch = &built.module().launch;
    launch.results.first() == launch.params.first()
}

#[test]
fn rows_alone_are_the_rows_of_blocks() {
    let mut dice = Noise::new(14);
    let (mut split, mut overlapping) = (0, 0);
    let kernels = ptoc_tests_budget::cases(40, 120);
    for n in 0..kernels {
        let some = dice.below(4) as usize;
        let safe = dice.below(2) == 0;
        let mut pick = || loop {
            let piece = &STEPS[dice.below(STEPS.len() as u64) as usize];
            if piece.alone || !safe {
                return piece;
            }
        };
        let pieces: Vec<&Piece> = (0..some).map(|_| pick()).collect();
        let last = loop {
            let last = &RESULTS[dice.below(RESULTS.len() as u64) as usize];
            if last.alone || !safe {
                break last;
            }
        };
        let (bm, bn) = ([8, 16][dice.below(2) as usize], [256, 272][dice.below(2) as usize]);
        let early = dice.below(2) == 0;
        let text = kernel(&pieces, last, (bm, bn), early);
        let (m, cols) = (1 + dice.below(20) as i64, 1 + dice.below(600) as i64);
        let dims = [("M", m), ("N", cols)];
        let built = build(&text, "a2a3", &[], &dims).unwrap_or_else(|e| panic!("{text}\n{e:?}"));
        let expected = last.alone && pieces.iter().all(|p| p.alone);
        assert_eq!(is_split(&built), expected, "{text}");
        split += u64::from(expected);
        assert_eq!(overlaps(&built), expected && early, "{text}");
        overlapping += u64::from(overlaps(&built));
        let (m, cols) = (m as usize, cols as usize);
        let content = if n % 3 == 0 { Content::Wild } else { Content::Tame };
        let given = |k: u64, shape: &[usize]| noise(DType::F32, shape, content, 8 * n + k);
        let zeros = |shape: &[usize]| Tensor::zeros(DType::F32, shape).expect("small");
        let arrays = [
            given(0, &[m, cols]),
            given(1, &[m, cols]),
            given(2, &[cols]),
            given(3, &[m, 1]),
            zeros(&[m, cols]),
            zeros(&[m, 1]),
        ];
        let outcome = agree(&built, &dims, &arrays, &[1, 2]).unwrap_or_else(|e| panic!("{e}\n{text}\n{dims:?}"));
        assert!(outcome.is_ok(), "{outcome:?}\n{text}\n{dims:?}");
    }
    assert!(split > kernels / 4, "{split} of {kernels} are taken row by row");
    assert!(overlapping > 15, "{overlapping} of 120 have rows that overlap");
}

/// Whether the last pass over a row goes along with a pass over the next one.
fn overlaps(built: &Built) -> bool {
    built.module().spread == [0]
}

#[test]
fn the_last_pass_goes_along_with_the_next_row_where_nothing_can_see_it() {
    let kernel = |parts: &str, first: &str, last: &str| {
        format!(
            "kernel k<const BN = 256>(x: in f32[M, N], y: out f32[M, N], z: out f32[M, N]) where N >= 1 {{
                grid (i in tiles(M, 8));
                let e = Vec(x.tile(i, _));
                let total = tile Vec<f32, i, 1>;
                total = 0.0;
                for j in {parts} {{ {first} }}
                let share = 1.0 / total;
                {last}
            }}"
        )
    };
    let scaled = "e.tile(_, j) = exp(e.tile(_, j)); total += rowsum(e.tile(_, j));";
    let stored = "for j in tiles(N, BN) { TSTORE(y.tile(i, j), e.tile(_, j) * share); }";
    let reads = "total += rowsum(e.tile(_, j));";
    let written = format!("{scaled} TSTORE(z.tile(i, j), e.tile(_, j));");
    let twice = format!("{scaled} TSTORE(y.tile(i, j), e.tile(_, j));");
    let kept = "for j in tiles(N, BN) { e.tile(_, j) = e.tile(_, j) * share; TSTORE(y.tile(i, j), e.tile(_, j)); }";
    let two = format!("{stored} for j in tiles(N, BN) {{ TSTORE(z.tile(i, j), e.tile(_, j) + share); }}");
    for (parts, first, last, expected) in [
        ("tiles(N, BN)", scaled, stored, true),
        // What the pass before reads alone is not moved, nor what it writes elsewhere.
        ("tiles(N, BN)", reads, stored, false),
        ("tiles(N, BN)", &written, stored, true),
        ("tiles(N, BN)", scaled, kept, true),
        // The last of two passes goes along with the one before it.
        ("tiles(N, BN)", scaled, &two, true),
        // Both passes write rows of one array.
        ("tiles(N, BN)", &twice, stored, false),
        // Other parts than those of the last pass.
        ("tiles(N, 320)", scaled, stored, false),
        // A last pass that is no loop.
        ("tiles(N, BN)", scaled, "TSTORE(y.tile(i, _), e * share);", false),
    ] {
        let text = kernel(parts, first, last);
        for (n, (m, cols)) in [(1, 1200), (2, 1024), (7, 777), (16, 1025), (33, 2049)].into_iter().enumerate() {
            let dims = [("M", m), ("N", cols)];
            let built = build(&text, "a2a3", &[], &dims).unwrap_or_else(|e| panic!("{text}\n{e:?}"));
            assert_eq!(overlaps(&built), expected, "{text}");
            let shape = [m as usize, cols as usize];
            let given = noise(DType::F32, &shape, if n == 3 { Content::Wild } else { Content::Tame }, n as u64);
            let zeros = || Tensor::zeros(DType::F32, &shape).expect("small");
            let outcome = agree(&built, &dims, &[given, zeros(), zeros()], &[1, 2, 5]);
            let outcome = outcome.unwrap_or_else(|e| panic!("{e}\n{text}\n{dims:?}"));
            assert!(outcome.is_ok(), "{outcome:?}\n{text}\n{dims:?}");
        }
    }
}
