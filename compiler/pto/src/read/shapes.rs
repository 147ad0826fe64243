//! What is valid of a tile, where a block changes it that is not the tile's own.

use super::meaning::{Meaning, Scalar, Tile};
use super::{Reader, Res, not_read};
use crate::lexer::Word;
use crate::tree::{Op, Region};
use crate::types::TileBuf;
use rustc_hash::{FxHashMap, FxHashSet};

/// The tiles whose valid part operations of a region change, by the region's place in memory.
pub(super) type Changed = FxHashMap<usize, FxHashSet<Word>>;

fn key(region: &Region) -> usize {
    std::ptr::from_ref(region) as usize
}

/// Collects them for a region and those in it.
pub(super) fn changed(region: &Region, found: &mut Changed) {
    let mut own = FxHashSet::default();
    for op in &region.ops {
        if op.row.name == "pto.set_validshape" {
            own.extend(op.operand("source").map(|o| o.value.name.clone()));
        }
        for inner in &op.regions {
            changed(inner, found);
            own.extend(found.get(&key(inner)).into_iter().flatten().cloned());
        }
    }
    if !own.is_empty() {
        found.insert(key(region), own);
    }
}

impl Reader<'_> {
    /// Opens the scope of a region. Where it is run again, what it changes at its end is so at its beginning.
    pub(super) fn enter(&mut self, region: &Region, again: bool) {
        self.scopes.push(FxHashMap::default());
        if again {
            self.forget(region);
        }
    }

    /// Closes it. What it changed may be so from here on, or not.
    pub(super) fn leave(&mut self, region: &Region) {
        self.scopes.pop();
        self.forget(region);
    }

    /// What operations of a region set, or not.
    pub(super) fn forget(&mut self, region: &Region) {
        let Some(names) = self.changed.get(&key(region)).cloned() else { return };
        for name in names {
            let known = self.scopes.iter().rev().find_map(|s| s.get(&name)).and_then(|m| m.first());
            if let Some(Meaning::Tile(tile)) = known {
                let tile = Tile { unknown: true, ..tile.clone() };
                self.define(&name, vec![Meaning::Tile(tile)]);
            }
        }
    }

    /// From here on another part of the tile is valid, in this block and what is in it.
    pub(super) fn set_valid(&mut self, op: &Op) -> Res<()> {
        let operand = self.operand(op, "source")?;
        let Meaning::Tile(tile) = self.meaning(&operand.value)?.clone() else {
            return not_read(op.span, format!("`%{}` is no tile", operand.value.name));
        };
        let rows = self.scalar(&self.operand(op, "valid_row")?.value)?;
        let cols = self.scalar(&self.operand(op, "valid_col")?.value)?;
        let known = |s: &Scalar| s.constant.and_then(|n| i64::try_from(n).ok());
        let ty = TileBuf { valid: (known(&rows), known(&cols)), ..tile.ty };
        let text = super::tiles::valid_text(&tile.name, &[Some(rows.text), Some(cols.text)], &ty);
        let tile = Tile { text, ty, unknown: false, ..tile };
        self.define(&operand.value.name.clone(), vec![Meaning::Tile(tile)]);
        Ok(())
    }
}
