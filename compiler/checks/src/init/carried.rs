//! What holds before any later iteration of a loop.
//!
//! What was written stays written until its tile is allocated anew. So before each later iteration everything holds
//! that held before the first of them, but for tiles that the loop allocates: those are seen in what the loop's
//! statements do, and no iteration has to be walked again until nothing changes any more.

use super::Object;
use super::state::{InitState, S};
use ptoc_ir::tile::{AddrKind, Kernel, Label, Op, Region, Tile};
use ptoc_isa::Loc;
use ptoc_placement::access::{AccessMode, accesses, is_auto};
use rustc_hash::FxHashMap;
use std::ops::Range;

/// What a statement does to an object.
#[derive(Clone, Copy)]
enum Touch {
    Used(AccessMode, Object),
    Allocated(Tile),
}

/// What the statements of loops do, and which bytes tiles share.
pub(super) struct Loops {
    /// Of all statements, in the order of the text.
    touches: Vec<Touch>,
    /// Those of a loop.
    of: FxHashMap<Label, Range<usize>>,
    pub(super) placed: Placed,
}

impl Loops {
    pub(super) fn new(kernel: &Kernel) -> Loops {
        let mut loops = Loops { touches: Vec::new(), of: FxHashMap::default(), placed: Placed::new(kernel) };
        loops.collect(kernel, &kernel.body);
        loops
    }

    fn collect(&mut self, kernel: &Kernel, region: &Region) {
        for stmt in region {
            let start = self.touches.len();
            self.touches
                .extend(accesses(kernel, stmt).iter().map(|(access, place)| Touch::Used(*access, Object::of(place))));
            if let Op::Alloc { tile } = stmt.op
                && is_auto(kernel, tile)
            {
                self.touches.push(Touch::Allocated(tile));
            }
            stmt.op.regions().for_each(|r| self.collect(kernel, r));
            let label = match &stmt.op {
                Op::For(f) => f.label,
                Op::While(w) => w.label,
                _ => continue,
            };
            self.of.insert(label, start..self.touches.len());
        }
    }

    /// What holds before each later iteration of a loop, the first of which finds `entry`.
    pub(super) fn carried(&self, kernel: &Kernel, label: Label, entry: InitState) -> InitState {
        let mut state = entry;
        let touches = self.of.get(&label).map_or(&[][..], |range| &self.touches[range.clone()]);
        ptoc_diagnostics::work(touches.len());
        let used = |state: &mut InitState, object: Object| {
            let index = object.index(kernel);
            if state.get(index) == Some(&S::No) {
                state.set(index, S::Maybe);
            }
        };
        for touch in touches {
            match *touch {
                Touch::Used(access, object) => {
                    used(&mut state, object);
                    if let (AccessMode::Write, Object::Tile(tile)) = (access, object) {
                        self.placed.aliases(kernel, tile, &mut |other| used(&mut state, Object::Tile(other)));
                    }
                }
                Touch::Allocated(tile) => {
                    let index = Object::Tile(tile).index(kernel);
                    if matches!(state.get(index), Some(S::Yes | S::Ran(_))) {
                        state.set(index, S::Maybe);
                    }
                }
            }
        }
        state
    }
}

/// Tiles at addresses of the author's, by memory.
pub(super) struct Placed(FxHashMap<Loc, Memory>);

impl Placed {
    fn new(kernel: &Kernel) -> Placed {
        let mut all: FxHashMap<Loc, Memory> = FxHashMap::default();
        for tile in kernel.tiles.keys().filter(|&t| !is_auto(kernel, t)) {
            all.entry(kernel.tiles[tile].ty.loc).or_default().add(kernel, tile);
        }
        all.values_mut().for_each(|p| p.fixed.sort_unstable());
        Placed(all)
    }

    /// The tiles that may have bytes of `tile`, and the tile itself; none of a tile that the planner places.
    pub(super) fn aliases(&self, kernel: &Kernel, tile: Tile, f: &mut dyn FnMut(Tile)) {
        if !is_auto(kernel, tile)
            && let Some(memory) = self.0.get(&kernel.tiles[tile].ty.loc)
        {
            memory.aliases(kernel, tile, f);
        }
    }
}

/// The tiles of a memory at addresses of the author's.
#[derive(Default)]
struct Memory {
    /// First byte of each element, and the tile; sorted.
    fixed: Vec<(u64, Tile)>,
    /// Bytes of the largest.
    largest: u64,
    /// Those that are bound while the kernel runs.
    dynamic: Vec<Tile>,
}

impl Memory {
    fn add(&mut self, kernel: &Kernel, tile: Tile) {
        let data = &kernel.tiles[tile];
        match &data.addr {
            AddrKind::Fixed(at) => {
                self.fixed.extend(at.iter().map(|at| (*at, tile)));
                self.largest = self.largest.max(data.ty.bytes());
            }
            _ => self.dynamic.push(tile),
        }
    }

    /// The tiles that may have bytes of `tile`, and the tile itself.
    fn aliases(&self, kernel: &Kernel, tile: Tile, f: &mut dyn FnMut(Tile)) {
        self.dynamic.iter().for_each(|t| f(*t));
        let data = &kernel.tiles[tile];
        let AddrKind::Fixed(at) = &data.addr else { return self.fixed.iter().for_each(|(_, t)| f(*t)) };
        for &start in at {
            let first = self.fixed.partition_point(|(s, _)| s.saturating_add(self.largest) <= start);
            for &(s, t) in self.fixed[first..].iter().take_while(|(s, _)| *s < start.saturating_add(data.ty.bytes())) {
                ptoc_diagnostics::work(1);
                if start < s.saturating_add(kernel.tiles[t].ty.bytes()) {
                    f(t);
                }
            }
        }
    }
}
