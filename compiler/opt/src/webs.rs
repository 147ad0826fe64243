//! Def-use webs: who reads what was written to a tile, within one region.

use ptoc_ir::tile::{Kernel, Region, Stmt, Tile, TileRef};
use ptoc_placement::access::{AccessMode, is_private};
use rustc_hash::FxHashMap;

/// The tiles that a statement itself touches, reads before writes.
pub type TileAccesses<'a> = dyn Fn(&Stmt) -> Vec<(AccessMode, TileRef)> + 'a;

/// How often each tile is accessed in the whole kernel.
pub struct Uses(FxHashMap<Tile, usize>);

impl Uses {
    /// `tiles`: those that a statement touches.
    pub fn new(kernel: &Kernel, tiles: &TileAccesses<'_>) -> Uses {
        let mut uses = Uses(FxHashMap::default());
        uses.count(&kernel.body, tiles);
        uses
    }

    /// How often a tile is accessed.
    pub fn of(&self, tile: Tile) -> usize {
        self.0.get(&tile).copied().unwrap_or(0)
    }

    fn count(&mut self, region: &Region, tiles: &TileAccesses<'_>) {
        for stmt in region {
            for (_, tile) in tiles(stmt) {
                *self.0.entry(tile.tile).or_default() += 1;
            }
            stmt.op.regions().for_each(|r| self.count(r, tiles));
        }
    }
}

/// One writing of a tile, and all that reads these elements.
pub struct Web {
    /// The statement that writes.
    pub def: usize,
    /// Statements that read.
    pub reads: Vec<usize>,
    /// All accesses may be in fused chains.
    pub chained: bool,
}

/// The webs of the tiles that live within one turn of a region: private ones with the same window everywhere, which
/// only statements of the region itself access, the first one writing. So nothing else can see their elements.
#[derive(Default)]
pub struct Webs {
    webs: Vec<Web>,
    /// By statement and tile: scratch of an instruction is written too.
    written: FxHashMap<(usize, Tile), usize>,
    read: FxHashMap<(usize, Tile), usize>,
}

impl Webs {
    /// The webs of a region. `whole` tells whether a statement is one for chains: it writes its whole window.
    pub fn new(
        kernel: &Kernel,
        uses: &Uses,
        region: &Region,
        tiles: &TileAccesses<'_>,
        whole: &dyn Fn(usize) -> bool,
    ) -> Webs {
        let mut of_tile: FxHashMap<Tile, Vec<(usize, AccessMode, TileRef)>> = FxHashMap::default();
        for (n, stmt) in region.iter().enumerate() {
            for (access, tile) in tiles(stmt) {
                of_tile.entry(tile.tile).or_default().push((n, access, tile));
            }
        }
        let mut out = Webs::default();
        for (tile, accesses) in of_tile {
            let Some(&(_, AccessMode::Write, first)) = accesses.first() else { continue };
            let plain = first.element.is_none() && first.origin.is_none() && is_private(kernel, tile);
            let here = uses.of(tile) == accesses.len();
            let even = accesses.iter().all(|(n, access, t)| *t == first && (*access == AccessMode::Read || whole(*n)));
            if plain && here && even {
                out.tile(tile, &accesses, whole);
            }
        }
        out
    }

    fn tile(&mut self, tile: Tile, accesses: &[(usize, AccessMode, TileRef)], whole: &dyn Fn(usize) -> bool) {
        for &(n, access, _) in accesses {
            match access {
                AccessMode::Write => {
                    self.written.insert((n, tile), self.webs.len());
                    self.webs.push(Web { def: n, reads: Vec::new(), chained: true });
                }
                AccessMode::Read => {
                    // The first access has made a web.
                    let last = self.webs.len() - 1;
                    self.webs[last].reads.push(n);
                    self.webs[last].chained &= whole(n);
                    self.read.insert((n, tile), last);
                }
            }
        }
    }

    /// The web that a statement writes to a tile.
    pub fn of_write(&self, stmt: usize, tile: Tile) -> Option<&Web> {
        self.written.get(&(stmt, tile)).map(|w| &self.webs[*w])
    }

    /// The web that a statement reads of a tile.
    pub fn of_read(&self, stmt: usize, tile: Tile) -> Option<&Web> {
        self.read.get(&(stmt, tile)).map(|w| &self.webs[*w])
    }
}
