//! Copies along nests: what they move. Their traps are in `conflicts`.

use super::*;
use ptoc_ir::tile::{AddrKind, Affine, Copy, Elem, Guard, NestAccess, PrintPart, Table, TileData, TileRef};
use ptoc_isa::Oob;
use ptoc_layout::{Swizzle, TileLayout, parse_value};

pub(super) fn affine(b: &mut Builder, start: i64, strides: &[i64]) -> Affine {
    Affine { start: b.index_const(start), strides: strides.iter().map(|&n| b.index_const(n)).collect() }
}

pub(super) fn tensor_side(b: &mut Builder, tensor: TensorId, elem: Elem, start: i64, strides: &[i64]) -> NestAccess {
    NestAccess::Tensor { tensor, elem, at: affine(b, start, strides), swizzle: None, tables: vec![] }
}

pub(super) fn tile_side(b: &mut Builder, tile: TileRef, row: &[i64], col: &[i64]) -> NestAccess {
    NestAccess::Tile { tile, row: affine(b, 0, row), col: affine(b, 0, col) }
}

/// A copy without guards.
pub(super) fn copy(b: &mut Builder, extents: &[i64], dst: NestAccess, src: NestAccess) -> Copy {
    let extents = extents.iter().map(|&n| b.index_const(n)).collect();
    Copy { extents, dst, src, guards: vec![], fill: None, covers: false }
}

/// The kernel also goes through the text form.
pub(super) fn finish(b: Builder) -> Kernel {
    let kernel = b.finish();
    let text = ptoc_ir::tile::text::print(&kernel, ptoc_ir::tile::text::Spans::Keep);
    assert_eq!(ptoc_ir::tile::text::parse(&text, FileId(7)).as_ref(), Ok(&kernel), "{text}");
    kernel
}

pub(super) fn layout(text: &str) -> Option<TileLayout> {
    Some(TileLayout::new(&parse_value(text).expect("a value")).expect("a layout"))
}

/// Runs a copy from `in` to `out` as `f` builds it.
fn between(
    (from, n): (DType, i64),
    (to, m): (DType, i64),
    data: &[u64],
    f: impl FnOnce(&mut Builder, TensorId, TensorId),
) -> Result<Vec<u64>, Trap> {
    let mut b = Builder::new("k", at(0), "a2a3");
    let x = tensor(&mut b, "in", from, TensorDir::In, &[n]);
    let y = tensor(&mut b, "out", to, TensorDir::Out, &[m]);
    b.begin_body();
    f(&mut b, x, y);
    let args = vec![arg(from, &[n as u64], data), TensorArg::empty(to, vec![m as u64])];
    run_with(&finish(b), args, &[]).map(|(_, bits)| bits)
}

fn iota(n: u64) -> Vec<u64> {
    (0..n).collect()
}

const I32: Elem = Elem::Whole(DType::I32);

#[test]
fn transposition() {
    let got = between((DType::I32, 12), (DType::I32, 12), &iota(12), |b, x, y| {
        let t = alloc(b, "t", vec_ty(DType::I32, 3, 8));
        let (three, four) = (b.index_const(3), b.index_const(4));
        let t = b.tile_ref(t, (three, four));
        // in[i, j] of 4 x 3 goes to element (j, i).
        let (dst, src) = (tile_side(b, t, &[0, 1], &[1, 0]), tensor_side(b, x, I32, 0, &[3, 1]));
        let mut load = copy(b, &[4, 3], dst, src);
        load.covers = true;
        b.copy(load, at(1));
        let (dst, src) = (tensor_side(b, y, I32, 0, &[1, 4]), tile_side(b, t, &[0, 1], &[1, 0]));
        let store = copy(b, &[4, 3], dst, src);
        b.copy(store, at(2));
    });
    assert_eq!(got, Ok(vec![0, 3, 6, 9, 1, 4, 7, 10, 2, 5, 8, 11]));
}

/// Axes of extent 0, no axes, windows, elements beyond the valid part.
#[test]
fn extents_and_windows() {
    let got = between((DType::I32, 4), (DType::I32, 4), &iota(4), |b, x, y| {
        let t = alloc(b, "t", vec_ty(DType::I32, 4, 8));
        let [zero, one, two] = [0, 1, 2].map(|n| b.index_const(n));
        let window = TileRef { origin: Some((two, one)), rows: 2, cols: 4, ..b.tile_ref(t, (one, zero)) };
        for i in 0..4 {
            let (dst, src) = (tile_side(b, window, &[], &[]), tensor_side(b, x, I32, i, &[]));
            let dst = match dst {
                NestAccess::Tile { tile, row, .. } => NestAccess::Tile { tile, row, col: affine(b, i, &[]) },
                other => other,
            };
            let point = copy(b, &[], dst, src);
            b.copy(point, at(1));
        }
        let (dst, src) = (tile_side(b, window, &[0, 1], &[1, 0]), tensor_side(b, x, I32, 99, &[9, 9]));
        let nothing = copy(b, &[3, 0], dst, src);
        b.copy(nothing, at(2));
        let whole = b.whole(t);
        for i in 0..4 {
            let (col, offset) = (b.index_const(i + 1), b.index_const(3 - i));
            let value = b.tile_get(whole, two, col, at(3));
            b.emit(Op::Store { tensor: y, offset, value }, at(4));
        }
    });
    assert_eq!(got, Ok(vec![3, 2, 1, 0]));
}

#[test]
fn guards_and_fill() {
    let tail = |fill: Option<u64>| {
        between((DType::I32, 5), (DType::I32, 8), &iota(5), |b, x, y| {
            let (dst, src) = (tensor_side(b, y, I32, 0, &[1, 4]), tensor_side(b, x, I32, 0, &[1, 4]));
            let mut c = copy(b, &[4, 2], dst, src);
            let bound = b.index_const(5);
            c.guards.push(Guard { at: affine(b, 0, &[1, 4]), bound });
            // A second guard that always holds.
            c.guards.push(Guard { at: affine(b, -7, &[1, 1]), bound });
            c.fill = fill.map(|bits| b.constant(ptoc_ir::tile::Const { ty: Ty::D(DType::I32), bits }));
            b.copy(c, at(1));
        })
    };
    assert_eq!(tail(Some(9)), Ok(vec![0, 1, 2, 3, 4, 9, 9, 9]));
    assert_eq!(tail(None), Ok(vec![0, 1, 2, 3, 4, 0, 0, 0]));
}

/// Rows of a data tensor in an order that a table gives, with every mode for entries outside.
#[test]
fn tables() {
    let rows = |oob: Oob, fill: bool| {
        let mut b = Builder::new("k", at(0), "a2a3");
        let table = tensor(&mut b, "pages", DType::I64, TensorDir::In, &[2, 2]);
        let x = tensor(&mut b, "in", DType::I32, TensorDir::In, &[3, 2]);
        let y = tensor(&mut b, "out", DType::I32, TensorDir::InOut, &[4, 2]);
        b.begin_body();
        let (two, three) = (b.index_const(2), b.index_const(3));
        let lookup = Table { tensor: table, at: affine(&mut b, 0, &[0, 1]), stride: two, extent: three, oob };
        let src = NestAccess::Tensor {
            tensor: x,
            elem: I32,
            at: affine(&mut b, 0, &[1, 0]),
            swizzle: None,
            tables: vec![lookup],
        };
        let dst = tensor_side(&mut b, y, I32, 0, &[1, 2]);
        let mut c = copy(&mut b, &[2, 4], dst, src);
        c.fill = fill.then(|| b.constant(ptoc_ir::tile::Const { ty: Ty::D(DType::I32), bits: 7 }));
        b.copy(c, at(1));
        let args = vec![
            arg(DType::I64, &[2, 2], &[2, u64::MAX, 5, 0]),
            arg(DType::I32, &[3, 2], &[10, 11, 20, 21, 30, 31]),
            arg(DType::I32, &[4, 2], &[1; 8]),
        ];
        run_with(&finish(b), args, &[]).map(|(_, bits)| bits)
    };
    assert_eq!(rows(Oob::Clamp, false), Ok(vec![30, 31, 10, 11, 30, 31, 10, 11]));
    // -1 is 2, 5 is 2.
    assert_eq!(rows(Oob::Wrap, false), Ok(vec![30, 31, 30, 31, 30, 31, 10, 11]));
    assert_eq!(rows(Oob::Zero, true), Ok(vec![30, 31, 7, 7, 7, 7, 10, 11]));
    assert_eq!(rows(Oob::Zero, false), Ok(vec![30, 31, 1, 1, 1, 1, 10, 11]));
    let trap = rows(Oob::Undefined, true).expect_err("-1");
    assert_eq!((trap.code, trap.span), (codes::TABLE_ENTRY, at(1)));
    assert_eq!(trap.message, "pages[0, 1] is -1, and entries of this table are indices below 3");
}

/// Bytes seen as another dtype, on both sides.
#[test]
fn recast() {
    let bytes: Vec<u64> = (0..8).map(|n| 0x10 + n).collect();
    let got = between((DType::U8, 8), (DType::U16, 3), &bytes, |b, x, y| {
        let u16s = Elem::Whole(DType::U16);
        let (dst, src) = (tensor_side(b, y, u16s, 0, &[1]), tensor_side(b, x, u16s, 1, &[1]));
        let c = copy(b, &[3], dst, src);
        b.copy(c, at(1));
    });
    assert_eq!(got, Ok(vec![0x1312, 0x1514, 0x1716]));
    let got = between((DType::U32, 1), (DType::U16, 2), &[0x4433_2211], |b, x, y| {
        let u8s = Elem::Whole(DType::U8);
        let (dst, src) = (tensor_side(b, y, u8s, 3, &[-1]), tensor_side(b, x, u8s, 0, &[1]));
        let c = copy(b, &[4], dst, src);
        b.copy(c, at(1));
    });
    assert_eq!(got, Ok(vec![0x3344, 0x1122]));
    // As truth values, all bytes but 0 are 1.
    let got = between((DType::U8, 3), (DType::U8, 3), &[0, 2, 1], |b, x, y| {
        let bools = Elem::Whole(DType::Bool);
        let (dst, src) = (tensor_side(b, y, bools, 0, &[1]), tensor_side(b, x, bools, 0, &[1]));
        let c = copy(b, &[3], dst, src);
        b.copy(c, at(1));
    });
    assert_eq!(got, Ok(vec![0, 1, 1]));
}

#[test]
fn half_bytes() {
    let halves = |elem: Elem| {
        between((DType::U16, 2), (DType::U8, 8), &[0x80f1, 0x7e03], |b, x, y| {
            let (dst, src) = (tensor_side(b, y, Elem::Whole(elem.dtype()), 0, &[1]), tensor_side(b, x, elem, 0, &[1]));
            let c = copy(b, &[8], dst, src);
            b.copy(c, at(1));
        })
    };
    assert_eq!(halves(Elem::U4), Ok(vec![1, 15, 0, 8, 3, 0, 14, 7]));
    let signed = [1, -1, 0, -8, 3, 0, -2, 7].map(|n: i8| u64::from(n as u8));
    assert_eq!(halves(Elem::I4), Ok(signed.to_vec()));
}

#[test]
fn swizzled_tensors() {
    let got = between((DType::I32, 16), (DType::I32, 16), &iota(16), |b, x, y| {
        let src = tensor_side(b, x, I32, 0, &[1]);
        let mut dst = tensor_side(b, y, I32, 0, &[1]);
        if let NestAccess::Tensor { swizzle, .. } = &mut dst {
            *swizzle = Some(Swizzle::new(2, 0, 2).expect("a swizzle"));
        }
        let c = copy(b, &[16], dst, src);
        b.copy(c, at(1));
    });
    assert_eq!(got, Ok(vec![0, 1, 2, 3, 5, 4, 7, 6, 10, 11, 8, 9, 15, 14, 13, 12]));
}

/// A tile with a layout gives back what was put into it, whatever the layout, and its bytes are those of the layout.
#[test]
fn tiles_with_layouts() {
    let layouts = [
        ("(4,8):(8,1)", [0, 9]),
        ("(4,8):(1,4)", [0, 5]),
        ("((2,2),(2,4)):((1,4),(2,8))", [0, 3]),
        ("Sw<2,0,3> o 0 o (4,8):(8,1)", [0, 8]),
        ("Sw<0,0,0> o 31 o (4,8):(-8,-1)", [31, 22]),
    ];
    for (text, corner) in layouts {
        let ty = TileType { layout: layout(text), ..vec_ty(DType::U8, 4, 8) };
        let mut b = Builder::new("k", at(0), "a2a3");
        let x = tensor(&mut b, "in", DType::U8, TensorDir::In, &[32]);
        let y = tensor(&mut b, "out", DType::U8, TensorDir::Out, &[2]);
        b.begin_body();
        let mut place = |name: &str, ty| {
            let (count, stages) = (1, 1);
            let addr = AddrKind::Fixed(vec![0x40]);
            let tile = b.tile(TileData { name: name.into(), ty, count, stages, addr, hidden: false, span: at(1) });
            b.emit(Op::Alloc { tile }, at(1));
            b.whole(tile)
        };
        let t = place("t", ty);
        let flat = place("flat", vec_ty(DType::U8, 1, 32));
        let [zero, one] = [0, 1].map(|n| b.index_const(n));
        // Element (0, 0) one by one, the rest by a copy over it.
        let value = b.constant(ptoc_ir::tile::Const { ty: Ty::D(DType::U8), bits: 99 });
        b.emit(Op::TileSet { tile: t, row: zero, col: zero, value }, at(2));
        let mut parts = vec![PrintPart::Scalar(b.tile_get(t, zero, zero, at(2)))];
        let (dst, src) =
            (tile_side(&mut b, t, &[0, 1], &[1, 0]), tensor_side(&mut b, x, Elem::Whole(DType::U8), 0, &[1, 8]));
        let mut c = copy(&mut b, &[8, 4], dst, src);
        c.covers = true;
        b.copy(c, at(3));
        parts.extend([PrintPart::Text(" ".into()), PrintPart::Tile(t)]);
        b.emit(Op::Print { parts }, at(4));
        // Bytes that belong to elements (0, 0) and (1, 1).
        for (offset, byte) in [(zero, corner[0]), (one, corner[1])] {
            let col = b.index_const(byte);
            let value = b.tile_get(flat, zero, col, at(5));
            b.emit(Op::Store { tensor: y, offset, value }, at(6));
        }
        let mut lines = Vec::new();
        let mut sink = |line: &str| lines.push(line.to_owned());
        let args = vec![arg(DType::U8, &[32], &iota(32)), TensorArg::empty(DType::U8, vec![2])];
        let options = Options::default();
        let mut launch = InterpreterLaunch { tensors: args, dims: vec![], scalars: vec![], options, print: &mut sink };
        run(&finish(b), &mut launch).unwrap_or_else(|t| panic!("{text}: {}", t.message));
        assert_eq!(launch.tensors[1].data, [0, 9], "{text}");
        let rows: Vec<_> = (0..4).map(|r| format!("{:?}", (r * 8..r * 8 + 8).collect::<Vec<_>>())).collect();
        assert_eq!(lines, [format!("99 [{}]\n", rows.join(", "))], "{text}");
    }
}

/// Gaps of a layout are bytes like any others: they take room, and nobody writes them.
#[test]
fn layouts_with_gaps() {
    let got = between((DType::I32, 6), (DType::I32, 6), &iota(6), |b, x, y| {
        let ty = TileType { layout: layout("(2,3):(5,1)"), ..vec_ty(DType::I32, 2, 3) };
        assert_eq!(ty.bytes(), 32);
        let t = alloc(b, "t", ty);
        let t = b.whole(t);
        for (dst, src) in [(None, Some(x)), (Some(y), None)] {
            let mut side = |g: Option<TensorId>| match g {
                Some(g) => tensor_side(b, g, I32, 0, &[1, 3]),
                None => tile_side(b, t, &[0, 1], &[1, 0]),
            };
            let (dst, src) = (side(dst), side(src));
            let c = copy(b, &[3, 2], dst, src);
            b.copy(c, at(1));
        }
    });
    assert_eq!(got, Ok(iota(6)));
}

/// Random permutations of axes and random windows of the source, against loops written out.
#[test]
fn random_nests() {
    let mut seed = 0x9e37_79b9_7f4a_7c15u64;
    let mut below = move |n: i64| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        (seed >> 11) as i64 % n
    };
    for round in 0..200 {
        let rank = 1 + below(4) as usize;
        let extents: Vec<i64> = (0..rank).map(|_| 1 + below(4)).collect();
        let size: i64 = extents.iter().product();
        // The destination is compact, its axes in some order; the source has any strides, repeats included.
        let mut order: Vec<usize> = (0..rank).collect();
        (1..rank).for_each(|i| order.swap(i, below(i as i64 + 1) as usize));
        let (mut to, mut step) = (vec![0; rank], 1);
        for &axis in &order {
            to[axis] = step;
            step *= extents[axis];
        }
        let from: Vec<i64> = (0..rank).map(|_| below(9) - 4).collect();
        let reach = |sign: i64| -> i64 { from.iter().zip(&extents).map(|(&d, &n)| (d * sign).max(0) * (n - 1)).sum() };
        let (start, len) = (reach(-1), reach(-1) + reach(1) + 1);
        let (weights, bound): (Vec<i64>, i64) = ((0..rank).map(|_| below(5) - 2).collect(), below(6) - 1);
        let sum = |point: &[i64], by: &[i64]| -> i64 { point.iter().zip(by).map(|(i, d)| i * d).sum() };

        let mut want = vec![0; size as usize];
        let mut point = vec![0; rank];
        for n in 0..size {
            let mut rest = n;
            for (i, extent) in point.iter_mut().zip(&extents) {
                (*i, rest) = (rest % extent, rest / extent);
            }
            let inside = sum(&point, &weights) < bound;
            want[sum(&point, &to) as usize] = if inside { (100 + start + sum(&point, &from)) as u64 } else { 7 };
        }
        let data: Vec<u64> = (0..len as u64).map(|n| 100 + n).collect();
        let got = between((DType::I32, len), (DType::I32, size), &data, |b, x, y| {
            let (dst, src) = (tensor_side(b, y, I32, 0, &to), tensor_side(b, x, I32, start, &from));
            let mut c = copy(b, &extents, dst, src);
            c.guards.push(Guard { at: affine(b, 0, &weights), bound: b.index_const(bound) });
            c.fill = Some(b.constant(ptoc_ir::tile::Const { ty: Ty::D(DType::I32), bits: 7 }));
            b.copy(c, at(1));
        });
        assert_eq!(got, Ok(want), "round {round}: {extents:?}:{to:?} from {start} + {from:?}");
    }
}
