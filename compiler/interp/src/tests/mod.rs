mod conflicts;
mod control;
mod instructions;
mod matrices;
mod nests;
mod observed;
mod products;
mod traps;

use super::*;
use ptoc_diagnostics::{FileId, Span};
use ptoc_ir::tile::{Builder, Inst, InstAttrs, Op, Operand, TensorData, TensorDir, TensorId, Tile, Ty, Value};
use ptoc_isa::{Loc, Order, TileType, lookup};
use ptoc_tensor::DType;

pub(crate) fn at(n: u32) -> Span {
    Span::new(FileId(0), n, n + 1)
}

pub(crate) fn vec_ty(dtype: DType, rows: u32, cols: u32) -> TileType {
    TileType { loc: Loc::Vec, dtype, rows, cols, order: Order::Nd, layout: None }
}

pub(crate) fn tensor(b: &mut Builder, name: &str, dtype: DType, dir: TensorDir, shape: &[i64]) -> TensorId {
    let shape = shape.iter().map(|&n| b.index_const(n)).collect();
    let (optional, disjoint) = (false, false);
    b.tensor(TensorData {
        name: name.into(),
        dtype,
        dir,
        shape,
        optional,
        disjoint,
        stored: None,
        place: None,
        span: at(900),
    })
}

pub(crate) fn alloc(b: &mut Builder, name: &str, ty: TileType) -> Tile {
    let tile = b.auto_tile(name, ty, at(901));
    b.emit(Op::Alloc { tile }, at(901));
    tile
}

pub(crate) fn inst(b: &mut Builder, name: &str, operands: Vec<Operand>, attrs: InstAttrs, span: Span) {
    let instr = lookup(name).expect("an instruction");
    b.inst(Inst { instr, operands, scratch: Vec::new(), attrs }, span);
}

/// Little-endian data of these elements.
pub(crate) fn bytes(dtype: DType, bits: &[u64]) -> Vec<u8> {
    bits.iter().flat_map(|x| x.to_le_bytes()[..dtype.size()].to_vec()).collect()
}

pub(crate) fn elements(dtype: DType, data: &[u8]) -> Vec<u64> {
    data.chunks_exact(dtype.size()).map(|raw| raw.iter().rev().fold(0, |x, &b| x << 8 | u64::from(b))).collect()
}

pub(crate) fn arg(dtype: DType, shape: &[u64], bits: &[u64]) -> TensorArg {
    TensorArg { dtype, shape: shape.to_vec(), data: bytes(dtype, bits) }
}

/// Runs a kernel without scalars; returns the data of the last tensor.
pub(crate) fn run_with(
    kernel: &Kernel,
    tensors: Vec<TensorArg>,
    dims: &[i64],
) -> Result<(InterpreterOutcome, Vec<u64>), Trap> {
    crate::sanitize::tests::beside(kernel, &tensors, dims, &[]);
    let mut sink = |_: &str| {};
    let mut launch = InterpreterLaunch {
        tensors,
        dims: dims.to_vec(),
        scalars: Vec::new(),
        options: Options::default(),
        print: &mut sink,
    };
    let outcome = run(kernel, &mut launch)?;
    let last = launch.tensors.last().map(|t| elements(t.dtype, &t.data)).unwrap_or_default();
    Ok((outcome, last))
}

/// `for i in 0..rows { for j in 0..cols { body(i, j, i * cols + j) } }`
pub(crate) fn for_each(
    b: &mut Builder,
    (rows, cols): (usize, usize),
    span: Span,
    body: impl FnOnce(&mut Builder, Value, Value, Value),
) {
    let [zero, r, c] = [0, rows as i64, cols as i64].map(|n| b.index_const(n));
    b.for_loop("i", (zero, r), 1, span, |b, _, i| {
        b.for_loop("j", (zero, c), 1, span, |b, _, j| {
            let row = b.mul(i, c, span);
            let at = b.add(row, j, span);
            body(b, i, j, at);
        });
    });
}

/// A source of an instruction under test.
pub(crate) enum Src {
    Tile(TileType, (usize, usize), Vec<u64>),
    Scalar(DType, u64),
}

/// A source tile that is valid throughout.
pub(crate) fn full(ty: TileType, bits: &[u64]) -> Src {
    Src::Tile(ty, (ty.rows as usize, ty.cols as usize), bits.to_vec())
}

/// Runs one instruction: sources are set element by element from tensors, the result is read likewise.
pub(crate) fn exec(
    name: &str,
    attrs: InstAttrs,
    dst: (TileType, (usize, usize)),
    sources: &[Src],
) -> Result<Vec<u64>, Trap> {
    let mut b = Builder::new("one", at(0), "a5");
    let mut args = Vec::new();
    let mut plan = Vec::new();
    for (n, source) in sources.iter().enumerate() {
        if let Src::Tile(ty, (r, c), bits) = source {
            let g = tensor(&mut b, &format!("g{n}"), ty.dtype, TensorDir::In, &[*r as i64, *c as i64]);
            args.push(arg(ty.dtype, &[*r as u64, *c as u64], bits));
            plan.push(Some(g));
        } else {
            plan.push(None);
        }
    }
    let (dst_ty, (r, c)) = dst;
    let out = tensor(&mut b, "out", dst_ty.dtype, TensorDir::Out, &[r as i64, c as i64]);
    args.push(TensorArg::empty(dst_ty.dtype, vec![r as u64, c as u64]));
    b.begin_body();
    let d = alloc(&mut b, "d", dst_ty);
    let valid = |b: &mut Builder, (r, c): (usize, usize)| (b.index_const(r as i64), b.index_const(c as i64));
    let v = valid(&mut b, (r, c));
    let d_ref = b.tile_ref(d, v);
    let mut operands = vec![Operand::Tile(d_ref)];
    for (source, g) in sources.iter().zip(plan) {
        match (source, g) {
            (Src::Tile(ty, shape, _), Some(g)) => {
                let t = alloc(&mut b, "s", *ty);
                let v = valid(&mut b, *shape);
                let tile = b.tile_ref(t, v);
                for_each(&mut b, *shape, at(10), |b, row, col, offset| {
                    let value = b.load(g, offset, at(11));
                    b.emit(Op::TileSet { tile, row, col, value }, at(12));
                });
                operands.push(Operand::Tile(tile));
            }
            (Src::Scalar(d, bits), _) => {
                operands.push(Operand::Scalar(b.constant(ptoc_ir::tile::Const { ty: Ty::D(*d), bits: *bits })));
            }
            _ => unreachable!("every tile has a tensor"),
        }
    }
    inst(&mut b, name, operands, attrs, at(20));
    for_each(&mut b, (r, c), at(30), |b, row, col, offset| {
        let value = b.tile_get(d_ref, row, col, at(31));
        b.emit(Op::Store { tensor: out, offset, value }, at(32));
    });
    let kernel = b.finish();
    // Every kernel of these tests also goes through the text form.
    let text = ptoc_ir::tile::text::print(&kernel, ptoc_ir::tile::text::Spans::Keep);
    assert_eq!(ptoc_ir::tile::text::parse(&text, FileId(7)).as_ref(), Ok(&kernel), "{text}");
    run_with(&kernel, args, &[]).map(|(_, bits)| bits)
}

pub(crate) fn f32s(xs: &[f32]) -> Vec<u64> {
    xs.iter().map(|x| u64::from(x.to_bits())).collect()
}

/// Elements of a dtype that show its corners.
pub(crate) fn corners(d: DType) -> Vec<u64> {
    let ty = Ty::D(d);
    if d.is_float() {
        let xs = [0.0, -0.0, 1.0, -1.5, 3.25, 1e-7, -65504.0, 70000.0, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, 0.5];
        xs.iter().map(|&x| ptoc_ir::scalar::from_f32(d, x)).collect()
    } else {
        let ones = ptoc_ir::scalar::mask(ty);
        [0, 1, 2, 3, 7, ones, ones - 1, ones >> 1, (ones >> 1) + 1, 5, 0x55 & ones, 31].to_vec()
    }
}

/// Equal, where NaN equals NaN.
pub(crate) fn assert_same(d: DType, got: &[u64], want: &[u64], what: &str) {
    assert_eq!(got.len(), want.len(), "{what}");
    for (i, (&g, &w)) in got.iter().zip(want).enumerate() {
        let nan = d.is_float() && ptoc_ir::scalar::to_f32(d, g).is_nan() && ptoc_ir::scalar::to_f32(d, w).is_nan();
        assert!(g == w || nan, "{what}: element {i} is {g:#x}, not {w:#x}");
    }
}
