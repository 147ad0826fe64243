//! Loads, transpositions and stores behind one another are one move from array to array, where nothing else sees the tiles; the same
//! bits as the interpreter's.

use crate::engine::{Content, agree, build, noise};
use ptoc_ir::loops::text;
use ptoc_tensor::DType;

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
