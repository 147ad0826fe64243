//! What CUTLASS's tutorial demands of the sizes of a product, each demand by itself: a kernel that is right, and the
//! same kernel with one size changed, which is refused with the operand, the mode and both numbers. So are copies
//! between other patterns of threads, and extents that are no constants.

use crate::engine::{Content, agree, build, noise};
use ptoc_tensor::{DType, Tensor};

/// A product in the tutorial's form: blocks to shared tiles by threads, and from these to the MMA. Each size stands by
/// itself.
const GEMM: &str = "
atom FMA {
    shape = (1, 1, 1);
    types = (f32, f32, f32, f32);
    thr   = 1:0;
    A     = (1, 1):(0, 0);
    B     = (1, 1):(0, 0);
    C     = (1, 1):(0, 0);
}

const BM = 32;
const BN = 16;
const BK = 8;
const TA = (16, 4):(1, 16);
const TB = (16, 4):(4, 1);

kernel gemm(A: in f32[M, K], B: in f32[N, K], C: out f32[M, N]) {
    const MMA = tiled_mma(FMA, atoms = (8, 8, 1), tiler = (8, 8, 1));
    static_assert(evenly_divides((BM, BK), (16, 4)), \"TA does not divide the block of A\");
    static_assert(evenly_divides((BN, BK), (16, 4)), \"TB does not divide the block of B\");
    static_assert(size(TA) == size(TB), \"A is copied by {TA}, and B by {TB}\");
    grid (m in 0..ceil_div(M, BM), n in 0..ceil_div(N, BN));
    let gA = local_tile(A, (BM, BN, BK), (m, n, _), (1, X, 1));
    let gB = local_tile(B, (BM, BN, BK), (m, n, _), (X, 1, 1));
    let gC = local_tile(C, (BM, BN, BK), (m, n, _), (1, 1, X));
    let sA = tile Vec<f32, 32, 8, pad = Zero>;
    let sB = tile Vec<f32, 16, 8, pad = Zero>;
    let rC = fragment_C(MMA, (32, 16));
    rC = 0.0;
    for k in 0..ceil_div(K, BK) {
        copy(sA, gA[_, _, k]);
        copy(sB, gB[_, _, k]);
        mma(MMA, rC, partition_A(MMA, sA), partition_B(MMA, sB));
    }
    copy(partition_C(MMA, gC), rC);
}
";

fn refused(text: &str) -> (Vec<&'static str>, String) {
    match build(text, "a2a3", &[], &[]) {
        Ok(_) => panic!("is not refused:\n{text}"),
        Err(refused) => (refused.codes, refused.text),
    }
}

#[test]
fn a_product_of_sizes_that_fit_is_right() {
    let (m, n, k) = (70, 21, 19);
    let dims = [("M", m), ("N", n), ("K", k)];
    let built = build(GEMM, "a2a3", &[], &dims).expect("compiles");
    let shape = |a: i64, b: i64| [a as usize, b as usize];
    let (a, b) = (noise(DType::F32, &shape(m, k), Content::Tame, 1), noise(DType::F32, &shape(n, k), Content::Tame, 2));
    let c = Tensor::zeros(DType::F32, &shape(m, n)).expect("small");
    let numbers = |t: &Tensor| -> Vec<f32> {
        t.bytes().chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect()
    };
    let (x, y) = (numbers(&a), numbers(&b));
    let got = agree(&built, &dims, &[a, b, c], &[1, 2]).expect("the same everywhere").expect("ends");
    for (i, got) in numbers(&got[2]).into_iter().enumerate() {
        let (row, col) = (i / n as usize, i % n as usize);
        let k = k as usize;
        let want: f64 = (0..k).map(|l| f64::from(x[row * k + l]) * f64::from(y[col * k + l])).sum();
        let scale: f64 = (0..k).map(|l| f64::from(x[row * k + l] * y[col * k + l]).abs()).sum();
        assert!((f64::from(got) - want).abs() <= 1e-5 * (scale + 1.0), "element ({row}, {col}): {got}, and {want}");
    }
}

#[test]
fn each_size_that_does_not_fit_is_named() {
    let changes = [
        // The tiler and the shared tiles.
        ("const BM = 32;", "const BM = 64;", &["mode 0", "64", "32"][..]),
        ("const BN = 16;", "const BN = 32;", &["mode 0", "32", "16"]),
        ("const BK = 8;", "const BK = 16;", &["mode 1", "16", "8"]),
        ("sA = tile Vec<f32, 32, 8", "sA = tile Vec<f32, 16, 8", &["mode 0", "32", "16"]),
        ("sA = tile Vec<f32, 32, 8", "sA = tile Vec<f32, 32, 4", &["mode 1", "8", "4"]),
        ("sB = tile Vec<f32, 16, 8", "sB = tile Vec<f32, 8, 8", &["mode 0", "16", "8"]),
        ("sB = tile Vec<f32, 16, 8", "sB = tile Vec<f32, 16, 4", &["mode 1", "8", "4"]),
        ("sA = tile Vec<f32, 32, 8", "sA = tile Vec<f32, 64, 8", &["mode M", "operand A has 64", "32"]),
        ("sA = tile Vec<f32, 32, 8", "sA = tile Vec<f32, 32, 16", &["mode K", "operand A has 16", "8"]),
        ("sB = tile Vec<f32, 16, 8", "sB = tile Vec<f32, 32, 8", &["mode N", "operand B has 32", "16"]),
        // The accumulator.
        ("fragment_C(MMA, (32, 16))", "fragment_C(MMA, (64, 16))", &["mode M", "operand A has 32", "64"]),
        ("fragment_C(MMA, (32, 16))", "fragment_C(MMA, (32, 8))", &["mode N", "operand B has 16", "8"]),
        // The threads: each divides its mode of its block, and they are as many.
        ("evenly_divides((BM, BK), (16, 4))", "evenly_divides((BM, BK), (24, 4))", &["TA does not divide"]),
        ("evenly_divides((BM, BK), (16, 4))", "evenly_divides((BM, BK), (16, 3))", &["TA does not divide"]),
        ("evenly_divides((BN, BK), (16, 4))", "evenly_divides((BN, BK), (12, 4))", &["TB does not divide"]),
        ("const TB = (16, 4):(4, 1);", "const TB = (8, 4):(4, 1);", &["(16,4):(1,16)", "(8,4):(4,1)"]),
    ];
    for (was, is, named) in changes {
        assert!(GEMM.contains(was), "{was}");
        let (codes, text) = refused(&GEMM.replacen(was, is, 1));
        assert!(named.iter().all(|n| text.contains(n)), "`{is}` is told by {codes:?}:\n{text}");
    }
}

#[test]
fn extents_that_are_no_constants_are_named() {
    let kernels = [
        ("grid (i in tiles(M, 16)); let t = tile Vec<f32, bm, 64>; TLOAD(t, x); TSTORE(y, t);", "E0301"),
        ("grid (i in tiles(M, bm)); TSTORE(y.tile(i, _), Vec(x.tile(i, _)));", "E0301"),
        (
            "grid (i in 0..ceil_div(M, bm)); copy(local_tile(y, (bm, 64), (i, 0)), local_tile(x, (bm, 64), (i, 0)));",
            "E1014",
        ),
    ];
    for (body, code) in kernels {
        let text = format!("kernel k(x: in f32[M, 64], y: inout f32[M, 64], bm: index) {{\n    {body}\n}}\n");
        let (codes, told) = refused(&text);
        assert!(codes.contains(&code) && told.contains("bm"), "{codes:?}\n{told}");
    }
}

#[test]
fn copies_between_other_patterns_of_threads_are_refused() {
    let kernel = |from: &str, to: &str| {
        format!(
            "kernel k(x: in f32[64, 32], y: inout f32[64, 32]) {{
    for t in 0..32 {{ copy(local_partition(y, {to}, t), local_partition(x, {from}, t)); }}
}}
"
        )
    };
    for same in ["(8, 4):(4, 1)", "(8, 4):(1, 8)", "(4, 8):(8, 1)"] {
        build(&kernel(same, same), "a2a3", &[], &[]).expect("one pattern");
    }
    for (from, to, astray) in [
        ("(8, 4):(1, 8)", "(8, 4):(4, 1)", "element (1, 0) of the source would go to (0, 1)"),
        ("(4, 8):(1, 4)", "(8, 4):(1, 8)", "element"),
    ] {
        let (codes, text) = refused(&kernel(from, to));
        let names = |layout: &str| text.contains(&layout.replace(", ", ","));
        assert_eq!(codes, ["E1050"], "{text}");
        assert!(names(from) && names(to) && text.contains(astray), "{text}");
    }
}
