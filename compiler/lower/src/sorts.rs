//! TSORT32 and TMRGSORT, each one operation of loop IR.

use super::Lower;
use super::code::FunctionBuilder;
use super::matrix::Matrix;
use super::reduce::fixed;
use ptoc_ir::loops::{BinOp as L, Lists, Merge, Op, Records, Reg, Sort, fields};
use ptoc_ir::tile::{TileRef, Value};

/// Whole records in so many columns: elaboration has checked that none is broken.
fn records(code: &mut FunctionBuilder, m: &Matrix, cols: Reg) -> Reg {
    let each = code.int(fields(m.ty).unwrap_or(1));
    code.bin(L::DivFloor, cols, each)
}

impl Lower<'_> {
    pub(super) fn sort(&mut self, dst: &TileRef, src: &TileRef, idx: &TileRef) {
        let whole = (self.value(dst.valid.0), self.value(dst.valid.1));
        let (rows, cols) = (self.value(src.valid.0), self.value(src.valid.1));
        let (d, a, index) = (self.tile(dst), self.tile(src), self.tile(idx));
        let strides = |m: &Matrix| (fixed(m.rows), fixed(m.cols));
        self.beside(dst, &d, whole, &[src, idx], &mut |code, d| {
            code.emit(Op::Sort(Box::new(Sort {
                ty: a.ty,
                rows,
                cols,
                d: d.first(),
                d_strides: strides(d),
                a: a.first(),
                a_strides: strides(&a),
                index: index.first(),
                index_strides: strides(&index),
            })));
        });
    }

    /// Neighbouring lists of one row, `length` columns each.
    pub(super) fn merge_runs(&mut self, dst: &TileRef, src: &TileRef, length: Value) {
        let whole = (self.value(dst.valid.0), self.value(dst.valid.1));
        let (cols, length) = (self.value(src.valid.1), self.value(length));
        let (d, a) = (self.tile(dst), self.tile(src));
        self.beside(dst, &d, whole, &[src], &mut |code, d| {
            let (count, length) = (records(code, &a, cols), records(code, &a, length));
            let all = Records { at: a.first(), stride: fixed(a.cols), count };
            let lists = Lists::Runs { all, length };
            code.emit(Op::Merge(Box::new(Merge { ty: a.ty, d: d.first(), d_stride: fixed(d.cols), lists })));
        });
    }

    /// A list in each tile.
    pub(super) fn merge_tiles(&mut self, dst: &TileRef, sources: &[TileRef]) {
        let whole = (self.value(dst.valid.0), self.value(dst.valid.1));
        let d = self.tile(dst);
        let tiles: Vec<(Matrix, Reg)> = sources.iter().map(|t| (self.tile(t), self.value(t.valid.1))).collect();
        let read: Vec<&TileRef> = sources.iter().collect();
        self.beside(dst, &d, whole, &read, &mut |code, d| {
            let list = |(a, cols): &(Matrix, Reg)| {
                let count = records(code, a, *cols);
                Records { at: a.first(), stride: fixed(a.cols), count }
            };
            let lists = Lists::Each(tiles.iter().map(list).collect());
            code.emit(Op::Merge(Box::new(Merge { ty: d.ty, d: d.first(), d_stride: fixed(d.cols), lists })));
        });
    }
}
