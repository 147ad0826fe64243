//! Matrix products whose operands stay where they are: the same bits as the interpreter's for every shape and number of
//! threads, and the copies, the loop and the accumulator gone where nothing can see them, and only there.

use crate::engine::{Built, Content, agree, build, noise};
use ptoc_ir::loops::text;
use ptoc_tensor::DType;

/// What a module does.
#[derive(PartialEq, Eq, Debug)]
struct Shape {
    /// Products, loops of the block function, and statements that load or store elements.
    products: usize,
    loops: usize,
    moves: usize,
    /// Along how many dimensions blocks join.
    spread: usize,
}

fn shape(built: &Built) -> Shape {
    let text = text::print(built.module(), false);
    let block = text.split_once("block ").expect("a block function").1;
    let count = |word: &str| block.lines().filter(|l| l.trim_start().starts_with(word)).count();
    Shape {
        products: count("contract "),
        loops: count("for "),
        moves: count("store "),
        spread: built.module().spread.len(),
    }
}

/// All there is: one product, straight from array to array.
const WHOLE: Shape = Shape { products: 1, loops: 0, moves: 0, spread: 2 };

type Arrays<'a> = &'a [(DType, &'a [&'a str])];

/// Builds for each set of dimensions, looks at the code, and runs it.
fn check(text: &str, arrays: Arrays<'_>, dims: &[&[(&str, i64)]], want: &Shape) {
    for dims in dims {
        let built = build(text, "a2a3", &[], dims).unwrap_or_else(|e| panic!("{text}\n{e:?}"));
        assert_eq!(shape(&built), *want, "{text}\n{}", text::print(built.module(), false));
        let extent = |name: &&str| match name.parse() {
            Ok(n) => n,
            Err(_) => dims.iter().find(|(n, _)| n == name).map_or(0, |d| d.1 as usize),
        };
        for content in [Content::Tame, Content::Wild] {
            let tensors: Vec<_> = arrays
                .iter()
                .zip(1..)
                .map(|((dtype, shape), seed)| {
                    noise(*dtype, &shape.iter().map(extent).collect::<Vec<_>>(), content, seed)
                })
                .collect();
            let run = agree(&built, dims, &tensors, &[1, 2, 3]).unwrap_or_else(|e| panic!("{text}\n{dims:?}: {e}"));
            run.unwrap_or_else(|e| panic!("{text}\n{dims:?}: {e:?}"));
        }
    }
}

const MNK: [&[(&str, i64)]; 8] = [
    &[("M", 64), ("N", 64), ("K", 64)],
    &[("M", 33), ("N", 130), ("K", 97)],
    &[("M", 1), ("N", 1), ("K", 1)],
    &[("M", 5), ("N", 7), ("K", 0)],
    &[("M", 0), ("N", 7), ("K", 3)],
    &[("M", 16), ("N", 33), ("K", 600)],
    &[("M", 100), ("N", 17), ("K", 31)],
    &[("M", 3), ("N", 200), ("K", 300)],
];

/// A product with windows for the operands and statements around it.
fn gemm(types: [&str; 3], arrays: [&str; 2], windows: [&str; 2]) -> String {
    let [ab, acc, zero] = types;
    format!(
        "kernel gemm(A: in {ab}[{}], B: in {ab}[{}], C: out {acc}[M, N]) {{
             grid (m in tiles(M, 32), n in tiles(N, 48));
             let acc = tile Acc<{acc}, m, n>;
             acc = {zero};
             for k in tiles(K, 32) {{ TMATMUL_ACC(acc, acc, Left({}), Right({})); }}
             TSTORE(C.tile(m, n), acc);
         }}",
        arrays[0], arrays[1], windows[0], windows[1]
    )
}

#[test]
fn every_type_is_one_product() {
    for (ab, acc, zero, ty, out) in [
        ("f32", "f32", "0.0", DType::F32, DType::F32),
        ("f16", "f32", "0.0", DType::F16, DType::F32),
        ("bf16", "f32", "0.0", DType::BF16, DType::F32),
        ("i8", "i32", "0", DType::I8, DType::I32),
    ] {
        let text = gemm([ab, acc, zero], ["M, K", "K, N"], ["A.tile(m, k)", "B.tile(k, n)"]);
        check(&text, &[(ty, &["M", "K"]), (ty, &["K", "N"]), (out, &["M", "N"])], &MNK, &WHOLE);
    }
}

#[test]
fn transposed_operands() {
    for (ab, ty) in [("f32", DType::F32), ("f16", DType::F16)] {
        let types = [ab, "f32", "0.0"];
        let text = gemm(types, ["K, M", "N, K"], ["A.T.tile(m, k)", "B.T.tile(k, n)"]);
        check(&text, &[(ty, &["K", "M"]), (ty, &["N", "K"]), (DType::F32, &["M", "N"])], &MNK, &WHOLE);
    }
}

#[test]
fn one_of_a_batch() {
    let text = "kernel batch(A: in f32[S, M, K], B: in f32[S, K, N], C: out f32[S, M, N]) {
        grid (s in 0..S, m in tiles(M, 16), n in tiles(N, 32));
        let acc = tile Acc<f32, m, n>;
        acc = 0.0;
        for k in tiles(K, 32) {
            TMATMUL_ACC(acc, acc, Left(A[s, _, _].tile(m, k)), Right(B[s, _, _].tile(k, n)));
        }
        TSTORE(C[s, _, _].tile(m, n), acc);
    }";
    let dims: &[&[(&str, i64)]] =
        &[&[("S", 3), ("M", 33), ("N", 40), ("K", 70)], &[("S", 2), ("M", 1), ("N", 65), ("K", 0)]];
    let f = DType::F32;
    check(text, &[(f, &["S", "M", "K"]), (f, &["S", "K", "N"]), (f, &["S", "M", "N"])], dims, &WHOLE);
}

const F32: Arrays<'_> = &[(DType::F32, &["M", "K"]), (DType::F32, &["K", "N"]), (DType::F32, &["M", "N"])];

#[test]
fn a_start_in_the_first_step() {
    let text = "kernel gemm(A: in f32[M, K], B: in f32[K, N], bias: in f32[N], C: out f32[M, N]) where K >= 1 {
        grid (m in tiles(M, 32), n in tiles(N, 48));
        let acc = tile Acc<f32, m, n>;
        for k in tiles(K, 32) {
            let a = Left(A.tile(m, k));
            let b = Right(B.tile(k, n));
            if k.first { TMATMUL_BIAS(acc, a, b, Bias(bias.tile(n))); } else { TMATMUL_ACC(acc, acc, a, b); }
        }
        TSTORE(C.tile(m, n), acc);
    }";
    let arrays = [F32[0], F32[1], (DType::F32, &["N"][..]), F32[2]];
    let dims: Vec<&[(&str, i64)]> = MNK.into_iter().filter(|d| d[2].1 > 0).collect();
    // The check that K is not 0 stands in the block.
    check(text, &arrays, &dims, &Shape { spread: 0, ..WHOLE });
}

/// A kernel of f32 with some body.
fn with_body(body: &str) -> String {
    format!(
        "kernel gemm(A: in f32[M, K], B: in f32[K, N], C: out f32[M, N]) {{
             grid (m in tiles(M, 32), n in tiles(N, 48));
             let acc = tile Acc<f32, m, n>;
             {body}
         }}"
    )
}

#[test]
fn what_is_more_than_one_product() {
    let dims = &MNK[..3];
    // A result that is stored twice: the accumulator exists, the loop over k does not. Both stores are one nest.
    let text = with_body(
        "acc = 0.0;
         for k in tiles(K, 32) { TMATMUL_ACC(acc, acc, Left(A.tile(m, k)), Right(B.tile(k, n))); }
         TSTORE(C.tile(m, n), acc);
         TSTORE(D.tile(m, n), acc);",
    );
    let text = text.replace("C: out f32[M, N]", "C: out f32[M, N], D: out f32[M, N]");
    check(&text, &[F32[0], F32[1], F32[2], F32[2]], dims, &Shape { products: 1, loops: 2, moves: 3, spread: 0 });
    // Two products on one accumulator.
    let text = with_body(
        "acc = 0.0;
         for k in tiles(K, 32) { TMATMUL_ACC(acc, acc, Left(A.tile(m, k)), Right(B.tile(k, n))); }
         for k in tiles(K, 16) { TMATMUL_ACC(acc, acc, Left(A.tile(m, k)), Right(B.tile(k, n))); }
         TSTORE(C.tile(m, n), acc);",
    );
    check(&text, F32, dims, &Shape { products: 2, loops: 2, moves: 2, spread: 0 });
    // A depth that differs between rows of blocks: they do not join along rows.
    let text = "kernel lower(A: in f32[M, M], B: in f32[M, N], C: out f32[M, N]) {
        grid (m in tiles(M, 32), n in tiles(N, 48));
        let acc = tile Acc<f32, m, n>;
        acc = 0.0;
        for k in tiles(m.end, 32) { TMATMUL_ACC(acc, acc, Left(A.tile(m, k)), Right(B.tile(k, n))); }
        TSTORE(C.tile(m, n), acc);
    }";
    let dims: &[&[(&str, i64)]] = &[&[("M", 100), ("N", 130)], &[("M", 1), ("N", 1)]];
    check(
        text,
        &[(DType::F32, &["M", "M"]), (DType::F32, &["M", "N"]), (DType::F32, &["M", "N"])],
        dims,
        &Shape { spread: 1, ..WHOLE },
    );
}

#[test]
fn a_result_of_another_type_is_converted_by_its_store() {
    let text = "kernel gemm(A: in f16[M, K], B: in f16[K, N], C: out f16[M, N]) {
        grid (m in tiles(M, 32), n in tiles(N, 48));
        let acc = tile Acc<f32, m, n>;
        acc = 0.0;
        for k in tiles(K, 32) { TMATMUL_ACC(acc, acc, Left(A.tile(m, k)), Right(B.tile(k, n))); }
        TSTORE(C.tile(m, n), acc);
    }";
    let arrays: Arrays<'_> = &[(DType::F16, &["M", "K"]), (DType::F16, &["K", "N"]), (DType::F16, &["M", "N"])];
    check(text, arrays, &MNK[..6], &Shape { products: 1, loops: 2, moves: 2, spread: 0 });
}

/// What is an input and an output may be written between the load and the product.
#[test]
fn an_array_that_may_be_written_is_copied() {
    let text = gemm(["f32", "f32", "0.0"], ["M, K", "K, N"], ["A.tile(m, k)", "B.tile(k, n)"]);
    let text = text.replace("A: in f32", "A: inout f32");
    for dims in &MNK[..3] {
        let built = build(&text, "a2a3", &[], dims).expect("it is right");
        let Shape { products, loops, spread, .. } = shape(&built);
        assert!((products, spread) == (1, 0) && loops > 1, "{text}");
        let [m, n, k] = [0, 1, 2].map(|d| dims[d].1 as usize);
        let tensors = [[m, k], [k, n], [m, n]].map(|s| noise(DType::F32, &s, Content::Tame, 5));
        agree(&built, dims, &tensors, &[1, 2]).unwrap_or_else(|e| panic!("{e}")).unwrap_or_else(|e| panic!("{e:?}"));
    }
}
