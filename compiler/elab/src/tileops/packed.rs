//! `packbits(mask)`: the truth values of a mask as bits of bytes, which a tensor can hold.

use super::super::{ElabResult, Elaborator};
use ptoc_diagnostics::Span;
use ptoc_ir::tile::{Const, Op, Ty};
use ptoc_isa::{BinOp, RoundMode};
use ptoc_tensor::DType;
use ptoc_values::{TileVal, Val};

/// Bits of a byte.
const BITS: i64 = 8;

impl Elaborator<'_> {
    /// Eight neighbours of a row in a byte, the first one in its lowest bit, or in its highest. What is beyond the last
    /// column is 0.
    pub(crate) fn pack_bits(
        &mut self,
        (mask, negated): (TileVal, bool),
        highest_first: bool,
        span: Span,
        at: Span,
    ) -> ElabResult<Val> {
        let i32 = Ty::D(DType::I32);
        let shape = self.valid_of(&mask, at)?;
        let (zero, eight, seven) = (self.idx(0), self.idx(BITS), self.idx(BITS - 1));
        let up = self.bin(BinOp::Add, shape.1, seven, span);
        let bytes = self.bin(BinOp::Div, up, eight, span);
        let caps = (mask.rows, mask.cols.div_ceil(BITS as u32));
        let d = self.temp(DType::U8, caps, (shape.0, bytes), span)?;
        let (from, to) = (self.tile_ref(&mask, shape), self.tile_ref(&d, (shape.0, bytes)));
        let none = self.constant(Const { ty: i32, bits: 0 });
        let flip = self.constant(Const { ty: i32, bits: u64::from(negated) });
        let byte = self.b.var("byte", i32);
        self.b.for_loop("row", (zero, shape.0), 1, span, |b, _, row| {
            b.for_loop("place", (zero, bytes), 1, span, |b, _, place| {
                b.set(byte, none, span);
                let first = b.mul(place, eight, span);
                let last = b.add(first, eight, span);
                let end = b.binary(BinOp::Min, last, shape.1, span);
                b.for_loop("col", (first, end), 1, span, |b, _, col| {
                    let truth = b.tile_get(from, row, col, span);
                    let bit = b.convert(truth, i32, RoundMode::Rint, false, span);
                    let bit = b.binary(BinOp::Xor, bit, flip, span);
                    let count = b.sub(col, first, span);
                    let count = if highest_first { b.sub(seven, count, span) } else { count };
                    let count = b.convert(count, i32, RoundMode::Rint, false, span);
                    let bit = b.binary(BinOp::Shl, bit, count, span);
                    let so_far = b.get(byte, span);
                    let all = b.binary(BinOp::Or, so_far, bit, span);
                    b.set(byte, all, span);
                });
                let all = b.get(byte, span);
                let value = b.convert(all, Ty::D(DType::U8), RoundMode::Rint, false, span);
                b.emit(Op::TileSet { tile: to, row, col: place, value }, span);
            });
        });
        Ok(Val::Tile(d))
    }
}
