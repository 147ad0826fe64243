//! The matrix unit: one [`Contract`], which each emitter has its own micro-kernel for.

use super::Lower;
use super::matrix::Matrix;
use ptoc_ir::loops::{Contract, Op, Start, Stride};
use ptoc_ir::tile::TileRef;

/// Strides of a tile: known, because its type is.
fn strides(m: &Matrix) -> (i64, i64) {
    let fixed = |s: Stride| match s {
        Stride::Const(n) => n,
        Stride::Reg(_) => 0,
    };
    (fixed(m.rows), fixed(m.cols))
}

impl Lower<'_> {
    /// `d = start + a b`: starts at `c`, at a bias row, or at zero.
    pub(super) fn matmul(
        &mut self,
        d: &TileRef,
        c: Option<&TileRef>,
        bias: Option<&TileRef>,
        a: &TileRef,
        b: &TileRef,
    ) {
        let (m, k, n) = (self.value(a.valid.0), self.value(a.valid.1), self.value(b.valid.1));
        let (dm, am, bm) = (self.tile(d), self.tile(a), self.tile(b));
        let start = match (c, bias) {
            (Some(c), _) => {
                let from = self.tile(c);
                let (row, col) = strides(&from);
                Start::At { addr: from.first(), row, col, ty: from.ty }
            }
            (None, Some(bias)) => {
                let from = self.tile(bias);
                Start::At { addr: from.first(), row: 0, col: strides(&from).1, ty: from.ty }
            }
            (None, None) => Start::Zero,
        };
        self.code.emit(Op::Contract(Box::new(Contract {
            m,
            n,
            k,
            d: dm.first(),
            d_strides: strides(&dm),
            d_ty: dm.ty,
            start,
            a: am.first(),
            a_strides: strides(&am),
            b: bm.first(),
            b_strides: strides(&bm),
            ab_ty: am.ty,
        })));
    }
}
