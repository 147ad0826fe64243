//! Values that are lost because two tiles have bytes in common.
//!
//! Every byte of a memory knows who wrote it last, and the values of other tiles that were destroyed there since those
//! tiles were last written. A read through a tile that finds its own value destroyed is an overlap. One that finds
//! another tile's bytes where it has not written itself is the way to see bytes under another type: then the two share
//! bytes on purpose, and nothing is said of them; nor of tiles of which the source says so. Histories of bytes are few,
//! so they are numbered.

use super::trap::Trap;
use ptoc_diagnostics::{Span, codes};
use ptoc_ir::tile::{Kernel, Tile};
use ptoc_isa::Loc;
use rustc_hash::{FxHashMap, FxHashSet};
use std::ops::Range;

/// Who writes: an element of a tile array, in one of its lives, at an address, by a statement.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Writer {
    tile: Tile,
    element: u32,
    life: u32,
    base: u64,
    span: Span,
}

/// What happened to a byte.
#[derive(Clone, PartialEq, Eq, Hash, Default, Debug)]
struct History {
    last: Option<u32>,
    /// Values that were destroyed, one of an element, and who did it.
    lost: Vec<(u32, u32)>,
}

/// A value that was read, and was not there any more.
struct Found {
    tile: Tile,
    lost: Writer,
    by: Writer,
    trap: Trap,
}

/// What a read finds.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Verdict {
    /// Its own value, or nothing.
    Own,
    /// Another tile's, where it has none.
    Other(Tile),
    /// Another one's instead of its own.
    Lost { lost: u32, by: u32 },
}

/// Where an access is.
pub(crate) struct Site {
    pub tile: Tile,
    pub element: u32,
    pub loc: Loc,
    /// First byte of the element of the tile array.
    pub base: u64,
    pub span: Span,
}

/// The bytes of all memories.
#[derive(Default)]
pub(crate) struct Overlaps {
    spaces: FxHashMap<Loc, Vec<u32>>,
    writers: Vec<Writer>,
    writer_ids: FxHashMap<Writer, u32>,
    histories: Vec<History>,
    history_ids: FxHashMap<History, u32>,
    lives: FxHashMap<Tile, u32>,
    /// The last transitions and verdicts: neighbouring bytes have the same.
    written: Option<((u32, u32), u32)>,
    read: Option<((u32, Tile, u32, u32), Verdict)>,
    shared: FxHashSet<(Tile, Tile)>,
    found: Vec<Found>,
}

impl Overlaps {
    pub fn new(kernel: &Kernel) -> Overlaps {
        let shared = kernel.aliases.iter().map(|&(a, b)| pair(a, b)).collect();
        let mut new = Overlaps { shared, ..Overlaps::default() };
        new.history(History::default());
        new
    }

    /// A block starts.
    pub fn reset(&mut self) {
        self.spaces.clear();
    }

    /// A tile is declared: what was written through it before is not its value any more.
    pub fn declare(&mut self, tile: Tile) {
        *self.lives.entry(tile).or_default() += 1;
        (self.written, self.read) = (None, None);
    }

    fn life(&self, tile: Tile) -> u32 {
        self.lives.get(&tile).copied().unwrap_or(0)
    }

    fn history(&mut self, h: History) -> u32 {
        if let Some(&id) = self.history_ids.get(&h) {
            return id;
        }
        let id = self.histories.len() as u32;
        self.histories.push(h.clone());
        self.history_ids.insert(h, id);
        id
    }

    fn lives(&self, writer: u32) -> bool {
        let w = &self.writers[writer as usize];
        w.life == self.life(w.tile)
    }

    fn is(&self, writer: u32, tile: Tile, element: u32) -> bool {
        let w = &self.writers[writer as usize];
        (w.tile, w.element) == (tile, element)
    }

    /// Bytes are written.
    pub fn write(&mut self, at: &Site, bytes: Range<u64>) {
        let &Site { tile, element, base, span, .. } = at;
        let writer = Writer { tile, element, life: self.life(tile), base, span };
        let id = match self.writer_ids.get(&writer) {
            Some(&id) => id,
            None => {
                self.writers.push(writer);
                self.writer_ids.insert(writer, self.writers.len() as u32 - 1);
                self.writers.len() as u32 - 1
            }
        };
        let mut space = std::mem::take(self.spaces.entry(at.loc).or_default());
        if (space.len() as u64) < bytes.end {
            space.resize(bytes.end as usize, 0);
        }
        // Neighbours have the same history, mostly.
        let mut rest = &mut space[bytes.start as usize..bytes.end as usize];
        while let Some(&history) = rest.first() {
            let (same, others) = rest.split_at_mut(same(rest));
            let key = (history, id);
            let next = match self.written {
                Some((known, next)) if known == key => next,
                _ => self.after(history, id),
            };
            self.written = Some((key, next));
            same.fill(next);
            rest = others;
        }
        self.spaces.insert(at.loc, space);
    }

    fn after(&mut self, history: u32, writer: u32) -> u32 {
        let old = self.histories[history as usize].clone();
        let Writer { tile, element, .. } = self.writers[writer as usize];
        let mut lost = old.lost;
        if let Some(last) = old.last.filter(|l| !self.is(*l, tile, element)) {
            let Writer { tile, element, .. } = self.writers[last as usize];
            lost.retain(|(l, _)| !self.is(*l, tile, element));
            lost.push((last, writer));
        }
        lost.retain(|(l, _)| !self.is(*l, tile, element) && self.lives(*l));
        self.history(History { last: Some(writer), lost })
    }

    /// Bytes are read; `element` says of the first one that is not as it should be which element it is of.
    pub fn read(
        &mut self,
        at: &Site,
        bytes: Range<u64>,
        element: &dyn Fn(u64) -> (usize, usize),
        block: Option<&[i64]>,
    ) {
        let space = std::mem::take(self.spaces.entry(at.loc).or_default());
        let end = space.len().min(bytes.end as usize);
        let mut start = bytes.start as usize;
        while start < end {
            let state = space[start];
            let count = same(&space[start..end]);
            let key = (state, at.tile, at.element, self.life(at.tile));
            let verdict = match self.read {
                Some((known, verdict)) if known == key => verdict,
                _ => self.verdict(state, at.tile, at.element),
            };
            self.read = Some((key, verdict));
            match verdict {
                Verdict::Own => {}
                Verdict::Other(tile) => drop(self.shared.insert(pair(tile, at.tile))),
                Verdict::Lost { lost, by } => {
                    let (lost, by) = (self.writers[lost as usize], self.writers[by as usize]);
                    let same = |f: &Found| (f.tile, f.lost.span, f.by) == (at.tile, lost.span, by);
                    if !self.found.iter().any(same) {
                        let (row, col) = element(start as u64);
                        let mut trap = Trap::new(codes::TRAP_OVERLAP, at.span, format!("element ({row}, {col})"));
                        trap.block = block.map(<[i64]>::to_vec);
                        self.found.push(Found { tile: at.tile, lost, by, trap });
                    }
                }
            }
            start += count;
        }
        self.spaces.insert(at.loc, space);
    }

    /// Adds what another one has seen, in blocks that came after.
    pub fn join(&mut self, other: Overlaps) {
        self.shared.extend(other.shared);
        self.found.extend(other.found);
    }

    fn verdict(&self, history: u32, tile: Tile, element: u32) -> Verdict {
        let h = &self.histories[history as usize];
        let Some(last) = h.last.filter(|l| !self.is(*l, tile, element)) else { return Verdict::Own };
        match h.lost.iter().find(|(l, _)| self.is(*l, tile, element) && self.lives(*l)) {
            Some(&(lost, by)) => Verdict::Lost { lost, by },
            None => Verdict::Other(self.writers[last as usize].tile),
        }
    }

    /// The first value that was lost between tiles that do not share bytes on purpose.
    pub fn end(self, kernel: &Kernel) -> Option<Trap> {
        let Overlaps { found, shared, .. } = self;
        let Found { lost, by, mut trap, .. } =
            found.into_iter().find(|f| !shared.contains(&pair(f.tile, f.by.tile)))?;
        let name = |w: &Writer| match kernel.tiles[w.tile].count {
            1 => format!("`{}`", kernel.tiles[w.tile].name),
            _ => format!("`{}[{}]`", kernel.tiles[w.tile].name, w.element),
        };
        let place = |w: &Writer| {
            let end = w.base.saturating_add(kernel.tiles[w.tile].ty.bytes());
            format!("{} had bytes {:#x}..{end:#x}", name(w), w.base)
        };
        trap.message =
            format!("{} of {} is read, and {} was written over its value", trap.message, name(&lost), name(&by));
        trap.label = format!("reads {}, and finds what was written as {}", name(&lost), name(&by));
        trap.labels.push((lost.span, format!("{} gets its value here", name(&lost))));
        trap.labels.push((by.span, format!("{} is written over it here", name(&by))));
        trap.notes.push(format!("{}; {}", place(&lost), place(&by)));
        trap.help = Some("keep their addresses apart while both hold a value".to_owned());
        Some(trap)
    }
}

/// How many numbers at the start are the same.
fn same(numbers: &[u32]) -> usize {
    let Some(&first) = numbers.first() else { return 0 };
    let whole =
        numbers.chunks_exact(64).take_while(|c| c.iter().fold(true, |same, &n| same & (n == first))).count() * 64;
    whole + numbers[whole..].iter().take_while(|&&n| n == first).count()
}

fn pair(a: Tile, b: Tile) -> (Tile, Tile) {
    (a.min(b), a.max(b))
}
