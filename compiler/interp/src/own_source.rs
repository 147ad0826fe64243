//! Instructions whose destination must not be one of their sources, where that is decided when the kernel runs.

use super::exec::BoundWindow;
use super::machine::Machine;
use super::traffic::Home;
use super::trap::Trap;
use ptoc_diagnostics::{Span, codes};
use ptoc_ir::tile::{Inst, Kernel, Operand, Tile};
use ptoc_isa::{Target, check_overlap};
use rustc_hash::FxHashSet;
use std::ops::Range;

impl<'k> Machine<'k, '_> {
    /// Ends the run if the destination of `inst` has bytes of a source that the instruction reads again after it has
    /// begun to write.
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
            let sides = [self.own_side(&destination), self.own_side(&source)];
            let block = self.coordinates().map_or(Vec::new(), <[i64]>::to_vec);
            return Err(trap(kernel, inst, n, &sides, self.span, block));
        }
        Ok(())
    }

    /// Whether the valid parts of two windows have a byte in common.
    fn meet(&self, a: &BoundWindow, b: &BoundWindow) -> bool {
        let same = self.tiles.home(&a.slot).meets(&self.tiles.home(&b.slot));
        let bytes = |w: &BoundWindow| {
            let elements = (w.row..w.row + w.rows).flat_map(|row| (w.col..w.col + w.cols).map(move |col| (row, col)));
            elements.flat_map(|(row, col)| self.tiles.footprint(&w.slot, row, col)).collect::<FxHashSet<u64>>()
        };
        same && !bytes(a).is_disjoint(&bytes(b))
    }

    fn own_side(&self, w: &BoundWindow) -> OverlappingWindow {
        let bytes = match self.tiles.home(&w.slot) {
            Home::Space(_, bytes) => Some(bytes),
            _ => None,
        };
        let (start, shape) = ((w.row, w.col), (w.rows, w.cols));
        OverlappingWindow { tile: w.tile, element: w.element, start, shape, bytes }
    }
}

/// A window that meets another one.
pub(crate) struct OverlappingWindow {
    pub tile: Tile,
    pub element: u32,
    pub start: (usize, usize),
    pub shape: (usize, usize),
    /// Of the whole tile, in its memory.
    pub bytes: Option<Range<u64>>,
}

/// The destination, then operand `n`, which has bytes of it.
pub(crate) fn trap(
    kernel: &Kernel,
    inst: &Inst,
    n: usize,
    sides: &[OverlappingWindow; 2],
    span: Span,
    block: Vec<i64>,
) -> Trap {
    let row = inst.instr.get();
    let name = |s: &OverlappingWindow| match kernel.tiles[s.tile].count {
        1 => format!("`{}`", kernel.tiles[s.tile].name),
        _ => format!("`{}[{}]`", kernel.tiles[s.tile].name, s.element),
    };
    let operand = row.operands.get(n).map_or("a", |o| o.name);
    let message = format!(
        "the destination of {}, {}, has bytes of its operand `{operand}`, {}",
        row.name,
        name(&sides[0]),
        name(&sides[1])
    );
    let mut trap = Trap::new(codes::TRAP_OWN_SOURCE, span, message);
    trap.label = "writes what it still reads".to_owned();
    trap.notes = vec![format!("{} reads its operands again after it has begun to write", row.name)];
    trap.notes.extend(places(sides));
    trap.help = Some("write to another tile".to_owned());
    trap.block = Some(block);
    trap
}

/// Where two windows are: rows and columns of one tile, or addresses.
fn places([a, b]: &[OverlappingWindow; 2]) -> Option<String> {
    let part = |s: &OverlappingWindow| {
        let ((row, col), (rows, cols)) = (s.start, s.shape);
        format!("rows {row}..{}, columns {col}..{}", row + rows, col + cols)
    };
    if (a.tile, a.element) == (b.tile, b.element) {
        return (a.start != b.start).then(|| format!("{} and {} of one tile", part(a), part(b)));
    }
    let at = |s: &OverlappingWindow| s.bytes.as_ref().map(|bytes| format!("{:#x}..{:#x}", bytes.start, bytes.end));
    Some(format!("the one has bytes {}, the other {}", at(a)?, at(b)?))
}
