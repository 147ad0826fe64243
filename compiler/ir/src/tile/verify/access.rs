//! Checks of copies and matrix products along nests.

use super::Verifier;
use super::inst::matmul_exists;
use crate::tile::{Affine, Copy, Elem, Mma, NestAccess, Table, TileRef, Ty, Value};
use ptoc_diagnostics::codes;
use ptoc_isa::Oob;
use ptoc_tensor::DType;

/// What a side is used for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    Read,
    Write,
    ReadWrite,
}

impl Verifier<'_> {
    pub(super) fn copy(&mut self, copy: &Copy) {
        self.extents(&copy.extents);
        let axes = copy.extents.len();
        let dst = self.side(&copy.dst, axes, Use::Write);
        let src = self.side(&copy.src, axes, Use::Read);
        for guard in &copy.guards {
            self.affine(&guard.at, axes, "a guard");
            self.expect(guard.bound, Ty::Index, "the bound of a guard");
        }
        if let (Some(d), Some(s)) = (dst, src)
            && d != s
        {
            self.error(codes::IR_DTYPE, format!("a copy from {s} to {d} converts"));
        }
        if let (Some(dtype), Some(fill)) = (dst, copy.fill) {
            self.expect(fill, Ty::D(dtype), "the fill of a copy");
        }
        if copy.covers && copy.dst.tile().is_none() {
            self.error(codes::IR_OPERANDS, "a copy to a tensor covers no tile");
        }
    }

    pub(super) fn mma(&mut self, mma: &Mma) {
        let (m, n, k) = (mma.m.len(), mma.n.len(), mma.k.len());
        [&mma.m, &mma.n, &mma.k].into_iter().for_each(|axes| self.extents(axes));
        let acc = self.side(&mma.acc, m + n + k, Use::ReadWrite);
        let a = self.side(&mma.a, m + n + k, Use::Read);
        let b = self.side(&mma.b, m + n + k, Use::Read);
        if let (Some(acc), Some(a), Some(b)) = (acc, a, b)
            && !matmul_exists(acc, a, b)
        {
            self.error(codes::IR_DTYPE, format!("there is no matrix product of {a} by {b} into {acc}"));
        }
        for (side, name, unseen) in [
            (&mma.acc, "the accumulator", m + n..m + n + k),
            (&mma.a, "the left operand", m..m + n),
            (&mma.b, "the right operand", 0..m),
        ] {
            for affine in affines(side) {
                let moves = |s: &&Value| self.scopes.index(**s) != Some(0);
                if let Some(stride) = affine.strides.get(unseen.clone()).and_then(|s| s.iter().find(moves)) {
                    self.error(codes::IR_WINDOW, format!("{name} moves by {stride} along an axis that it has not"));
                }
            }
        }
        self.apart(&mma.acc, &mma.a, "matrix product");
        self.apart(&mma.acc, &mma.b, "matrix product");
    }

    fn extents(&mut self, extents: &[Value]) {
        for &extent in extents {
            self.expect(extent, Ty::Index, "the extent of an axis");
            if let Some(n) = self.scopes.index(extent).filter(|&n| n < 0) {
                self.error(codes::IR_WINDOW, format!("an axis has extent {n}"));
            }
        }
    }

    fn affine(&mut self, affine: &Affine, axes: usize, what: &str) {
        self.expect(affine.start, Ty::Index, what);
        for &stride in &affine.strides {
            self.expect(stride, Ty::Index, "a stride");
        }
        if affine.strides.len() != axes {
            let message = format!("{what} has {} strides, there are {axes} axes", affine.strides.len());
            self.error(codes::IR_WINDOW, message);
        }
    }

    /// Checks a side; the dtype that its elements have on the way.
    fn side(&mut self, side: &NestAccess, axes: usize, usage: Use) -> Option<DType> {
        match side {
            NestAccess::Tile { tile, row, col } => {
                self.tile_ref(tile);
                self.affine(row, axes, "a row");
                self.affine(col, axes, "a column");
                self.k.tiles.get(tile.tile).map(|t| t.ty.dtype)
            }
            NestAccess::Tensor { tensor, elem, at, tables, .. } => {
                self.affine(at, axes, "an element's number");
                for table in tables {
                    self.table(table, axes, usage);
                }
                self.tensor(*tensor, usage != Use::Read)?;
                if usage != Use::Read && matches!(elem, Elem::U4 | Elem::I4) {
                    self.error(codes::IR_DTYPE, format!("{elem} elements are read only"));
                }
                Some(elem.dtype())
            }
        }
    }

    fn table(&mut self, table: &Table, axes: usize, usage: Use) {
        self.affine(&table.at, axes, "a table's element");
        self.expect(table.stride, Ty::Index, "what an entry counts in");
        self.expect(table.extent, Ty::Index, "the extent of a table's entries");
        if let Some(Ty::D(dtype)) = self.tensor(table.tensor, false)
            && (dtype.is_float() || dtype == DType::Bool)
        {
            self.error(codes::IR_DTYPE, format!("the entries of table {} are {dtype}", table.tensor));
        }
        if usage != Use::Read && table.oob == Oob::Zero {
            self.error(codes::IR_MODES, "what is written has no zero to be instead");
        }
    }

    /// The accumulator must not be the very tile that is read. (A copy may read one part of a tile and write another
    /// one: those are apart, or it ends with PA-1072.)
    fn apart(&mut self, written: &NestAccess, read: &NestAccess, what: &str) {
        let same = |a: &TileRef, b: &TileRef| a.tile == b.tile && a.element == b.element;
        if let (Some(w), Some(r)) = (written.tile(), read.tile())
            && same(w, r)
        {
            self.error(codes::IR_OPERANDS, format!("a {what} reads {}, which it writes", r.tile));
        }
    }
}

/// The affine functions of a side.
fn affines(side: &NestAccess) -> Vec<&Affine> {
    match side {
        NestAccess::Tile { row, col, .. } => vec![row, col],
        NestAccess::Tensor { at, tables, .. } => [at].into_iter().chain(tables.iter().map(|t| &t.at)).collect(),
    }
}
