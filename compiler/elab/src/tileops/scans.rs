//! Scans along rows and columns: `rowcumsum(t)`, `colcummax(t)`. PTO has no such instruction. They are loops of
//! scalars, so that every back end has them, and their order is fixed: ascending, a step rounded to the tile's dtype.

use super::super::{ElabResult, Elaborator};
use ptoc_diagnostics::{Diagnostic, Span, codes};
use ptoc_ir::tile::{Builder, Const, Op, TileRef, Ty, Value};
use ptoc_isa::{BinOp, Reduce};
use ptoc_tensor::DType;
use ptoc_values::{TileVal, Val};

/// A scan: along what, of what, and whether an element is among those that it gets.
#[derive(Clone, Copy)]
pub struct Scan {
    /// Along each row, else down each column.
    pub by_row: bool,
    /// What it computes.
    pub op: Reduce,
    /// Of the elements before it.
    pub exclusive: bool,
}

impl Elaborator<'_> {
    /// `rowcumsum(x)` and its like.
    pub(crate) fn tile_scan(&mut self, scan: Scan, x: TileVal, span: Span, at: Span) -> ElabResult<Val> {
        let x = self.in_vec(x, at)?;
        let dtype = x.ty.dtype;
        if dtype == DType::Bool || dtype.is_f8() {
            let message = format!("scans are not defined on tiles of `{dtype}`");
            let d = Diagnostic::error(codes::UNDEFINED_OPERATION, span, message);
            return self.report(match dtype {
                DType::Bool => d.with_help("select a number for what is true first: `select(mask, 1.0, 0.0)`"),
                _ => d.with_help("convert it first: `f32(..)`"),
            });
        }
        let ty = Ty::D(dtype);
        let start = self.constant(Const { ty, bits: start(scan, dtype) });
        let shape = self.valid_of(&x, at)?;
        let d = self.temp(dtype, (x.rows, x.cols), shape, span)?;
        let (from, to) = (self.tile_ref(&x, shape), self.tile_ref(&d, shape));
        let zero = self.idx(0);
        let (lines, along) = if scan.by_row { shape } else { (shape.1, shape.0) };
        let total = self.b.var("scan", ty);
        self.b.for_loop("line", (zero, lines), 1, span, |b, _, line| {
            b.set(total, start, span);
            b.for_loop("place", (zero, along), 1, span, |b, _, place| {
                let (row, col) = if scan.by_row { (line, place) } else { (place, line) };
                let before = b.get(total, span);
                let element = b.tile_get(from, row, col, span);
                let after = b.binary(operator(scan.op), before, element, span);
                put(b, to, (row, col), if scan.exclusive { before } else { after }, span);
                b.set(total, after, span);
            });
        });
        Ok(Val::Tile(d))
    }
}

fn put(b: &mut Builder, tile: TileRef, (row, col): (Value, Value), value: Value, span: Span) {
    b.emit(Op::TileSet { tile, row, col, value }, span);
}

fn operator(op: Reduce) -> BinOp {
    match op {
        Reduce::Sum => BinOp::Add,
        Reduce::Prod => BinOp::Mul,
        Reduce::Max => BinOp::Max,
        Reduce::Min => BinOp::Min,
    }
}

/// What changes no number: 0, 1, the least and the greatest. A sum that begins with its first element begins at -0,
/// which leaves a -0 as it is.
fn start(scan: Scan, dtype: DType) -> u64 {
    let number = |f: f64, i: i128| match dtype.is_float() {
        true => ptoc_tensor::scalar::bits_from_f64(dtype, f),
        false => ptoc_tensor::scalar::bits_from_i128(dtype, i),
    };
    let (least, greatest) = super::super::scalars::int_range(dtype);
    match scan.op {
        Reduce::Sum if scan.exclusive => number(0.0, 0),
        Reduce::Sum => number(-0.0, 0),
        Reduce::Prod => number(1.0, 1),
        Reduce::Max => number(f64::NEG_INFINITY, least),
        Reduce::Min => number(f64::INFINITY, greatest),
    }
}
