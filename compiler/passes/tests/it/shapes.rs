//! The loops that typical copies become.

use crate::harness::*;
use ptoc_ir::loops;
use ptoc_ir::tile::{AddrKind, Affine, Copy, Elem, Guard, NestAccess, Table, TensorDir, Value};
use ptoc_isa::{Loc, Oob, Order, TileType};
use ptoc_layout::{TileLayout, parse_value};
use ptoc_tensor::DType;

fn at(start: Value, strides: &[Value]) -> Affine {
    Affine { start, strides: strides.into() }
}

/// The block function after its constants.
fn block(k: K) -> String {
    let text = loops::text::print(compile(&k.finish(), a5()).module.as_ref().expect("a target of PTO's"), false);
    let block = text.split("block \"").nth(1).unwrap();
    let lines = block.lines().skip(1).filter(|l| !l.starts_with("  r") || !l.contains(" = const"));
    lines.take_while(|l| *l != "}").collect::<Vec<_>>().join("\n")
}

/// `y[..] = x[..]` of f32 tensors by extents and strides, with dims A, B and C to use in them.
fn tensors(f: impl FnOnce(&mut K, [Value; 3]) -> (Vec<Value>, Vec<Value>, Vec<Value>)) -> String {
    let mut k = K::new("copy");
    let dims = ["A", "B", "C"].map(|n| k.dim(n));
    // As many elements as any of the copies moves.
    let shape = [dims[0], dims[1], dims[2], k.c(64)];
    let x = k.tensor("x", DType::F32, TensorDir::In, &shape);
    let y = k.tensor("y", DType::F32, TensorDir::Out, &shape);
    let (extents, dst, src) = f(&mut k, dims);
    k.b.begin_body();
    let zero = k.c(0);
    let side = |tensor, strides: &[Value]| NestAccess::Tensor {
        tensor,
        elem: Elem::Whole(DType::F32),
        at: at(zero, strides),
        swizzle: None,
        tables: vec![],
    };
    let (dst, src) = (side(y, &dst), side(x, &src));
    let span = k.span();
    k.b.copy(Copy { extents, dst, src, guards: vec![], fill: None, covers: false }, span);
    block(k)
}

/// Axes that are contiguous on both sides are one, although nobody knows how long they are.
#[test]
fn contiguous_axes_are_joined() {
    insta::assert_snapshot!(tensors(|k, [a, b, c]| {
        let (one, bc) = (k.c(1), k.b.mul(b, c, crate::harness::at(1)));
        let strides = vec![one, c, bc];
        (vec![c, b, a], strides.clone(), strides)
    }));
}

/// NHWC to NCHW with C = 64: pixels are one axis, and both it and the channels go by blocks.
#[test]
fn transposes_go_by_blocks() {
    insta::assert_snapshot!(tensors(|k, [n, h, w]| {
        let s = crate::harness::at(1);
        let (one, c) = (k.c(1), k.c(64));
        let hw = k.b.mul(h, w, s);
        let (cw, chw) = (k.b.mul(c, w, s), k.b.mul(c, hw, s));
        (vec![w, h, c, n], vec![one, w, hw, chw], vec![c, cw, one, chw])
    }));
}

/// A row of a cache with pages, of which only `len` are there; the rest of the tile is zero.
#[test]
fn pages_and_tails() {
    let mut k = K::new("pages");
    let (pages, len, d) = (k.dim("NP"), k.dim("len"), k.c(64));
    let (p, eight) = (k.c(16), k.c(8));
    let cache = k.tensor("cache", DType::F16, TensorDir::In, &[pages, p, d]);
    let table = k.tensor("table", DType::I32, TensorDir::In, &[eight]);
    let y = k.tensor("y", DType::F16, TensorDir::Out, &[d, d]);
    k.b.begin_body();
    let tile = k.tile("rows", Loc::Vec, DType::F16, (64, 64), Order::Nd);
    let (zero, one, four, pd) = (k.c(0), k.c(1), k.c(4), k.c(16 * 64));
    let rows = k.r(tile, (d, d));
    // Axes: element of a row, slot of a page, page.
    let looked =
        Table { tensor: table, at: at(zero, &[zero, zero, one]), stride: pd, extent: pages, oob: Oob::Undefined };
    let src = NestAccess::Tensor {
        tensor: cache,
        elem: Elem::Whole(DType::F16),
        at: at(zero, &[one, d, zero]),
        swizzle: None,
        tables: vec![looked],
    };
    let dst = NestAccess::Tile { tile: rows, row: at(zero, &[zero, one, p]), col: at(zero, &[one, zero, zero]) };
    let span = k.span();
    let fill = k.b.constant(ptoc_ir::tile::Const { ty: ptoc_ir::tile::Ty::D(DType::F16), bits: 0 });
    let guards = vec![Guard { at: at(zero, &[zero, one, p]), bound: len }];
    k.b.copy(Copy { extents: vec![d, p, four], dst, src, guards, fill: Some(fill), covers: true }, span);
    let view = k.view(y, d, d);
    k.store(view, rows);
    insta::assert_snapshot!(block(k));
}

fn from_tensor(dtype: DType, elem: Elem, layout: &str) -> String {
    let mut k = K::new("tile");
    let (rows, cols) = (k.c(8), k.c(64));
    let x = k.tensor("x", if elem == Elem::U4 { DType::U8 } else { dtype }, TensorDir::In, &[rows, cols]);
    k.b.begin_body();
    let layout = (!layout.is_empty()).then(|| TileLayout::new(&parse_value(layout).unwrap()).unwrap());
    let ty = TileType { loc: Loc::Vec, dtype, rows: 8, cols: 64, order: Order::Nd, layout };
    let tile = k.place("t", ty, AddrKind::Auto, 1, 1);
    let (zero, one) = (k.c(0), k.c(1));
    let dst =
        NestAccess::Tile { tile: k.r(tile, (rows, cols)), row: at(zero, &[zero, one]), col: at(zero, &[one, zero]) };
    let src = NestAccess::Tensor { tensor: x, elem, at: at(zero, &[one, cols]), swizzle: None, tables: vec![] };
    let span = k.span();
    let copy = Copy { extents: vec![cols, rows], dst, src, guards: vec![], fill: None, covers: true };
    k.b.copy(copy, span);
    block(k)
}

/// A swizzle is computed for chunks of eight elements, which move together.
#[test]
fn swizzled_chunks() {
    insta::assert_snapshot!(from_tensor(DType::F16, Elem::Whole(DType::F16), "Sw<3,3,3> o 0 o (8,64):(64,1)"));
}

/// Rows and columns whose digits lie apart become axes of their own.
#[test]
fn digits_become_axes() {
    insta::assert_snapshot!(from_tensor(DType::F32, Elem::Whole(DType::F32), "((2,4),(16,4)):((16,128),(1,32))"));
}

/// Eight halves at a time.
#[test]
fn half_bytes() {
    insta::assert_snapshot!(from_tensor(DType::U8, Elem::U4, ""));
}
