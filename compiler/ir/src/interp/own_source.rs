//! Instructions whose destination must not be one of their sources, where that is decided when the kernel runs.

use super::exec::Window;
use super::machine::Machine;
use super::traffic::Home;
use super::trap::Trap;
use crate::tile::{Inst, Operand};
use ptoc_diagnostics::codes;
use ptoc_isa::{Target, check_overlap};
use rustc_hash::FxHashSet;

impl<'k> Machine<'k, '_> {
    /// Ends the run if the destination of `inst` has bytes of a source that the instruction reads again after it has begun
    /// to write.
    pub(super) fn own_source(&mut self, inst: &'k Inst) -> Result<(), Trap> {
        let kernel = self.k;
        let wrong = |source| {
            let target = Target::builtin(&kernel.target).ok()?;
            check_overlap(target, inst.instr, source)
        };
        let Some(Operand::Tile(d)) = inst.operands.first() else { return Ok(()) };
        if self.overlaps.is_none() || wrong(1).is_none() {
            return Ok(());
        }
        let destination = self.window(d)?;
        for (n, operand) in inst.operands.iter().enumerate().skip(1) {
            let Operand::Tile(s) = operand else { continue };
            let source = self.window(s)?;
            if !self.meet(&destination, &source) {
                continue;
            }
            let row = inst.instr.get();
            let name = |w: &Window| match kernel.tiles[w.tile].count {
                1 => format!("`{}`", kernel.tiles[w.tile].name),
                _ => format!("`{}[{}]`", kernel.tiles[w.tile].name, w.element),
            };
            let operand = row.operands.get(n).map_or("a", |o| o.name);
            let message = format!(
                "the destination of {}, {}, has bytes of its operand `{operand}`, {}",
                row.name,
                name(&destination),
                name(&source)
            );
            let mut trap = Trap::new(codes::TRAP_OWN_SOURCE, self.span, message);
            trap.label = "writes what it still reads".to_owned();
            trap.notes = vec![format!("{} reads its operands again after it has begun to write", row.name)];
            trap.notes.extend(self.places(&destination, &source));
            trap.help = Some("write to another tile".to_owned());
            trap.block = self.coordinates().map(<[i64]>::to_vec);
            return Err(trap);
        }
        Ok(())
    }

    /// Have the valid parts of two windows a byte in common?
    fn meet(&self, a: &Window, b: &Window) -> bool {
        let same = self.tiles.home(&a.slot).meets(&self.tiles.home(&b.slot));
        let bytes = |w: &Window| {
            let elements = (w.row..w.row + w.rows).flat_map(|row| (w.col..w.col + w.cols).map(move |col| (row, col)));
            elements.flat_map(|(row, col)| self.tiles.footprint(&w.slot, row, col)).collect::<FxHashSet<u64>>()
        };
        same && !bytes(a).is_disjoint(&bytes(b))
    }

    /// Where two windows are: rows and columns of one tile, or addresses.
    fn places(&self, a: &Window, b: &Window) -> Option<String> {
        let part = |w: &Window| format!("rows {}..{}, columns {}..{}", w.row, w.row + w.rows, w.col, w.col + w.cols);
        if (a.tile, a.element) == (b.tile, b.element) {
            return ((a.row, a.col) != (b.row, b.col)).then(|| format!("{} and {} of one tile", part(a), part(b)));
        }
        let at = |w: &Window| match self.tiles.home(&w.slot) {
            Home::Space(_, bytes) => Some(format!("{:#x}..{:#x}", bytes.start, bytes.end)),
            _ => None,
        };
        Some(format!("the one has bytes {}, the other {}", at(a)?, at(b)?))
    }
}
