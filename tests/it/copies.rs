//! Ways through other memories that nothing can see: who reads their end reads their start, with the interpreter's
//! bits.

use crate::engine::{Content, agree, build, noise};
use ptoc_ir::loops::text;
use ptoc_tensor::DType;

/// The block function of a kernel on `a: [M, 32]` and `b, c: [32, 32]`, with a result of [M, 32]. `s` is their product.
fn block(dtype: &str, body: &str) -> String {
    let source = format!(
        "kernel ways(a: in {dtype}[M, 32], b: in {dtype}[32, 32], c: in {dtype}[32, 32], y: out f32[M, 32]) {{
            grid (i in tiles(M, 64));
            let s = Vec(matmul(Left(a.tile(i, _)), Right(b)));
            {body}
        }}"
    );
    let kind = DType::from_name(dtype).expect("a dtype");
    let mut block = String::new();
    for m in [64, 70, 1] {
        let dims = [("M", m)];
        let built = build(&source, "a2a3", &[], &dims).unwrap_or_else(|e| panic!("{source}\n{e:?}"));
        let printed = text::print(built.module(), false);
        block = printed.split_once("block ").expect("a block function").1.to_owned();
        let m = m as usize;
        for content in [Content::Tame, Content::Wild] {
            let (x, y) = (noise(kind, &[m, 32], content, 1), noise(DType::F32, &[m, 32], content, 4));
            let tensors = [x, noise(kind, &[32, 32], content, 2), noise(kind, &[32, 32], content, 3), y];
            let run = agree(&built, &dims, &tensors, &[1, 2]).unwrap_or_else(|e| panic!("{source}\n{dims:?}: {e}"));
            run.unwrap_or_else(|e| panic!("{source}\n{dims:?}: {e:?}"));
        }
    }
    block
}

/// Lines that begin so.
fn lines(block: &str, start: &str) -> usize {
    block.lines().filter(|l| l.trim_start().starts_with(start)).count()
}

#[test]
fn from_the_accumulator_to_arithmetic() {
    for dtype in ["f32", "f16", "bf16"] {
        let block = block(dtype, "TSTORE(y.tile(i, _), s * 2.0);");
        assert_eq!((lines(&block, "contract"), lines(&block, "store")), (1, 1), "{block}");
    }
}

#[test]
fn from_arithmetic_to_a_product() {
    for dtype in ["f32", "f16", "bf16"] {
        let body = format!("let p = {dtype}(s * 0.5); TSTORE(y.tile(i, _), Vec(matmul(Left(p), Right(c))) * 2.0);");
        let block = block(dtype, &body);
        // What the product reads, and the result.
        assert_eq!((lines(&block, "contract"), lines(&block, "store")), (2, 2), "{block}");
    }
}

/// The source, or its bytes, are written again before the last reader: what is read is what was there.
#[test]
fn what_changes_is_copied() {
    let body = "let acc = tile Acc<f32, i, 32>;
                TMATMUL(acc, Left(a.tile(i, _)), Right(b));
                let first = Vec(acc);
                TMATMUL(acc, Left(a.tile(i, _)), Right(c));
                TSTORE(y.tile(i, _), first * Vec(acc) + s);";
    let changed = block("f32", body);
    // The first sum, the result, and `s`: the bytes of its accumulator are those of `acc` by then.
    assert_eq!((lines(&changed, "contract"), lines(&changed, "store")), (3, 3), "{changed}");
}

/// One part of a tile to another one, with a layout of the tile's own too, and between a write and a read of either.
#[test]
fn within_a_tile() {
    let dtype = DType::F32;
    for (layout, body) in [
        ("", "copy(t[0, _], t[1, _]);"),
        ("", "copy(t.tile(_, tiles(64, 8)[0]), t.tile(_, tiles(64, 8)[5])); copy(t[1, _], t[2, _]);"),
        ("", "for r in 1..i.len { copy(t[r - 1, _], t[r, _]); }"),
        ("", "for c in tiles(64, 16) { if !c.last { copy(t.tile(_, tiles(64, 16)[c.index + 1]), t.tile(_, c)); } }"),
        (", layout = swizzle<3, 3, 3>", "copy(t.tile(_, tiles(64, 8)[0]), t.tile(_, tiles(64, 8)[1]));"),
    ] {
        let source = format!(
            "kernel within(x: in f32[64, 64], y: out f32[64, 64], z: out f32[64, 64]) {{
                let i = tiles(64, 64)[0];
                let t = tile Vec<f32, 64, 64{layout}>;
                copy(t, x);
                {body}
                copy(y, t);
                copy(t[3, _], t[4, _]);
                copy(z, t);
            }}"
        );
        let built = build(&source, "a2a3", &[], &[]).unwrap_or_else(|e| panic!("{source}\n{e:?}"));
        let tensors = [1, 2, 3].map(|seed| noise(dtype, &[64, 64], Content::Tame, seed));
        let run = agree(&built, &[], &tensors, &[1]).unwrap_or_else(|e| panic!("{source}\n{e}"));
        run.unwrap_or_else(|e| panic!("{source}\n{e:?}"));
    }
}
