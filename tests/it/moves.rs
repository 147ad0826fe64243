//! Loads, transpositions and stores behind one another are one move from array to array, where nothing else sees the
//! tiles; the same bits as the interpreter's.

use crate::engine::{Content, agree, build, noise};
use ptoc_ir::loops::text;
use ptoc_tensor::{DType, Tensor};

/// Statements of the block function that store, for kernels on `x: [M, N]`, with results of [N, M] and [M, N].
fn stores(dtype: &str, body: &str) -> usize {
    let source = format!(
        "kernel turn(x: in {dtype}[M, N], y: out {dtype}[N, M], z: out {dtype}[M, N]) {{
            grid (i in tiles(M, 64), j in tiles(N, 64));
            let a = tile Vec<{dtype}, i, j>;
            let b = tile Vec<{dtype}, j, i>;
            {body}
        }}"
    );
    let kind = DType::from_name(dtype).expect("a dtype");
    let mut count = 0;
    for (m, n) in [(64, 64), (130, 70), (1, 200), (200, 1), (64, 640)] {
        let dims = [("M", m), ("N", n)];
        let built = build(&source, "a2a3", &[], &dims).unwrap_or_else(|e| panic!("{source}\n{e:?}"));
        let printed = text::print(built.module(), false);
        let block = printed.split_once("block ").expect("a block function").1;
        count = block.lines().filter(|l| l.trim_start().starts_with("store ")).count();
        let (m, n) = (m as usize, n as usize);
        for content in [Content::Tame, Content::Wild] {
            let tensors =
                [noise(kind, &[m, n], content, 1), noise(kind, &[n, m], content, 2), noise(kind, &[m, n], content, 3)];
            let run = agree(&built, &dims, &tensors, &[1, 2]).unwrap_or_else(|e| panic!("{source}\n{dims:?}: {e}"));
            run.unwrap_or_else(|e| panic!("{source}\n{dims:?}: {e:?}"));
        }
    }
    count
}

#[test]
fn a_transposition_between_arrays_is_one_move() {
    let body = "TLOAD(a, x.tile(i, j)); TTRANS(b, a); TSTORE(y.tile(j, i), b);";
    for dtype in ["f32", "i32", "f16", "bf16"] {
        assert_eq!(stores(dtype, body), 1, "{dtype}");
    }
}

#[test]
fn what_else_reads_the_tile_reads_the_array_too() {
    let body = "TLOAD(a, x.tile(i, j)); TTRANS(b, a); TSTORE(y.tile(j, i), b); TSTORE(z.tile(i, j), a + a);";
    assert_eq!(stores("f32", body), 2);
}

/// Arithmetic on what was turned: the tile is filled first.
#[test]
fn arithmetic_has_a_tile_to_read() {
    let body = "TLOAD(a, x.tile(i, j)); TTRANS(b, a); TSTORE(y.tile(j, i), b * 2.0);";
    assert_eq!(stores("f32", body), 2);
}

/// Turned twice, and a tile that is read again after it was turned into another.
#[test]
fn tiles_that_are_seen_stay() {
    let twice = "TLOAD(a, x.tile(i, j)); TTRANS(b, a); TTRANS(a, b); TSTORE(z.tile(i, j), a); TSTORE(y.tile(j, i), b);";
    assert!(stores("f32", twice) >= 3);
    let changed =
        "TLOAD(a, x.tile(i, j)); TTRANS(b, a); TADDS(a, a, 1.0); TSTORE(y.tile(j, i), b); TSTORE(z.tile(i, j), a);";
    assert!(stores("f32", changed) >= 2);
}

/// What only changes places keeps every bit: of NaNs too, which would come out quiet of a conversion to f32 and back.
#[test]
fn a_transposition_keeps_nans_as_they_are() {
    let text = "kernel k(a: in T[M, N], c: out T[N, M]) {
        grid (z in 0..1);
        let t = tile Vec<T, 16, 32>;
        TLOAD(t, a);
        let turned = tile Vec<T, 32, 16>;
        TTRANS(turned, t);
        TSTORE(c, turned);
    }";
    for (dtype, nan) in [(DType::F16, 0x7d01u64), (DType::BF16, 0xff81), (DType::F32, 0x7f80_0001)] {
        let bits = |k: usize| if k.is_multiple_of(3) { nan } else { (k % 31) as u64 };
        let a = Tensor::from_fn(dtype, &[16, 32], bits).expect("small");
        let c = Tensor::zeros(dtype, &[32, 16]).expect("small");
        let dims = [("M", 16), ("N", 32)];
        let built = build(
            &text.replace("T[", &format!("{}[", dtype.name())).replace("<T,", &format!("<{},", dtype.name())),
            "a5",
            &[],
            &dims,
        )
        .unwrap_or_else(|e| panic!("{dtype:?}: {e:?}"));
        for done in [built.interpret(&dims, &[a.clone(), c.clone()]), built.execute(&dims, &[a.clone(), c.clone()], 1)]
        {
            let done = done.expect("it stops nowhere");
            let result = done.last().expect("an array");
            for k in 0..512 {
                assert_eq!(result.get_bits(k), bits(k % 16 * 32 + k / 16), "{dtype:?} {k}");
            }
        }
    }
}
