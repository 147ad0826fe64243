//! What values do along a dimension of the grid: how they move from block to block, and how long a block is.

use crate::analysis::poly::{Definitions, Poly};
use crate::tile::{Kernel, Value};
use ptoc_isa::BinOp;
use rustc_hash::FxHashSet;

/// The values of a kernel, as they depend on the grid.
pub struct Along<'a> {
    /// The kernel.
    pub kernel: &'a Kernel,
    /// The definitions of its values.
    pub defs: Definitions<'a>,
}

/// How long the blocks along a dimension are.
pub struct Length {
    /// What is left from a block on, where the last one may be shorter: `M - T g`.
    pub rest: Option<Value>,
    /// A whole block: T.
    pub tile: i64,
    /// What all blocks make together, where the last one may be shorter: M.
    pub whole: Option<Poly>,
}

impl<'a> Along<'a> {
    /// Of a kernel.
    pub fn new(kernel: &'a Kernel) -> Along<'a> {
        Along { kernel, defs: Definitions::new(kernel) }
    }

    /// If `len` is the length of a block along a dimension: T, or `min(M - T g, T)` for the g below `(M + T - 1) / T`.
    pub fn length(&self, dim: usize, len: Value) -> Option<Length> {
        self.length_of((self.kernel.grid[dim].index, self.kernel.grid[dim].extent), len)
    }

    /// The same along any index that counts from 0 up to an extent: that of a loop.
    pub fn length_of(&self, (g, extent): (Value, Value), len: Value) -> Option<Length> {
        if let Some(tile) = self.defs.number(len) {
            return (tile > 0).then_some(Length { rest: None, tile, whole: None });
        }
        let (x, y) = self.defs.binary(len, BinOp::Min)?;
        let (rest, tile) = match (self.defs.number(x), self.defs.number(y)) {
            (None, Some(tile)) if tile > 0 => (x, tile),
            (Some(tile), None) if tile > 0 => (y, tile),
            _ => return None,
        };
        let whole = self.poly(rest, g)?.plus(&Poly::symbol(g), tile)?;
        if whole.step(g)?.number() != Some(0) {
            return None;
        }
        let tiles = match (self.defs.number(extent), whole.number()) {
            (Some(tiles), Some(whole)) => tiles == whole.checked_add(tile - 1)?.div_euclid(tile),
            _ => {
                let (sum, by) = self.defs.binary(extent, BinOp::Div)?;
                self.defs.number(by) == Some(tile)
                    && self.defs.poly(sum)? == whole.plus(&Poly::constant(tile - 1), 1)?
            }
        };
        tiles.then_some(Length { rest: Some(rest), tile, whole: Some(whole) })
    }

    /// A value as a polynomial whose symbols are `g` and what does not depend on it.
    pub fn poly(&self, v: Value, g: Value) -> Option<Poly> {
        let poly = self.defs.poly(v)?;
        let mut seen = FxHashSet::default();
        let known = poly.symbols().all(|s| s == g || !self.depends(s, g, &mut seen));
        known.then_some(poly)
    }

    /// Whether `v` is the same number whatever `g` is.
    pub fn rests(&self, v: Value, g: Value) -> bool {
        !self.depends(v, g, &mut FxHashSet::default())
            || self.poly(v, g).and_then(|p| p.step(g)).is_some_and(|s| s.number() == Some(0))
    }

    /// Whether `v` may differ with `g`.
    fn depends(&self, v: Value, g: Value, seen: &mut FxHashSet<Value>) -> bool {
        if v == g {
            return true;
        }
        // What was seen before did not depend on it, or the search would have ended.
        if !seen.insert(v) {
            return false;
        }
        match self.defs.of(v) {
            None => false,
            Some(op) if op.is_pure() => {
                let mut found = false;
                op.for_each_use(&mut |u| found = found || self.depends(u, g, seen));
                found
            }
            Some(_) => true,
        }
    }
}
