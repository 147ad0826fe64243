//! Values of tiles at addresses that others of the same registers were written over: the interpreter ends a run that
//! reads one (PA-1014), and so a launch on units is refused.
//!
//! As there, a tile that is read where only another one was written shares its bytes on purpose, and nothing is said of
//! the two.

use super::{BurstKey, Res};
use ptoc_diagnostics::{Diagnostic, Span, codes};
use ptoc_ir::tile::{Kernel, Tile};
use rustc_hash::{FxHashMap, FxHashSet};

/// An element of a tile array.
type Part = (Tile, u32);

/// A value that was read, and was not there any more.
struct Found {
    lost: Part,
    by: Part,
    read: Span,
    written: Span,
}

/// Who wrote what in a block.
#[derive(Default)]
pub(super) struct Overlaps {
    last: FxHashMap<BurstKey, Part>,
    /// Values that another one was written over, since they were written themselves.
    gone: FxHashMap<(Part, BurstKey), (Part, Span)>,
    found: Option<Found>,
    shared: FxHashSet<(Tile, Tile)>,
}

fn pair(a: Tile, b: Tile) -> (Tile, Tile) {
    if a < b { (a, b) } else { (b, a) }
}

impl Overlaps {
    /// A tile begins anew.
    pub(super) fn begin(&mut self, tile: Tile) {
        self.gone.retain(|((t, _), _), _| *t != tile);
    }

    /// A burst of a tile is written.
    pub(super) fn write(&mut self, part: Part, key: BurstKey, span: Span) {
        if let Some(before) = self.last.insert(key, part).filter(|before| *before != part) {
            self.gone.insert((before, key), (part, span));
        }
        self.gone.remove(&(part, key));
    }

    /// A burst of a tile is read.
    pub(super) fn read(&mut self, part: Part, key: BurstKey, span: Span) {
        match (self.last.get(&key), self.gone.get(&(part, key))) {
            (Some(last), _) if *last == part => {}
            (_, Some(&(by, written))) => {
                self.found.get_or_insert(Found { lost: part, by, read: span, written });
            }
            (Some(last), None) => drop(self.shared.insert(pair(last.0, part.0))),
            (None, None) => {}
        }
    }

    /// What is wrong with the block.
    pub(super) fn end(&self, kernel: &Kernel) -> Res {
        let Some(Found { lost, by, read, written }) = &self.found else { return Ok(()) };
        let both = pair(lost.0, by.0);
        if self.shared.contains(&both) || kernel.aliases.iter().any(|(a, b)| pair(*a, *b) == both) {
            return Ok(());
        }
        let name = |part: &Part| match kernel.tiles[part.0].count {
            1 => format!("`{}`", kernel.tiles[part.0].name),
            _ => format!("`{}[{}]`", kernel.tiles[part.0].name, part.1),
        };
        let message = format!("{} is read, and {} was written over its value", name(lost), name(by));
        Err(Box::new(
            Diagnostic::error(codes::TRAP_OVERLAP, *read, message)
                .with_label("read here")
                .with_secondary(*written, format!("writes {}", name(by)))
                .with_help("give them addresses apart, or declare one `at` the other if they share bytes on purpose"),
        ))
    }
}
