//! Where the bytes of a name's tile are, from the memory maps.

use super::context::Context;
use ptoc_names::index::Definition;
use ptoc_placement::MemoryMap;
use ptoc_placement::map::{Chosen, MappedMemory, MappedTile};
use ptoc_views::memory::lines::Lines;
use std::fmt::Write as _;

/// A tile in its memory.
#[derive(Clone, Copy)]
pub struct PlacedTile<'a> {
    /// The map of its kernel.
    pub map: &'a MemoryMap,
    /// The memory.
    pub memory: &'a MappedMemory,
    /// The tile.
    pub tile: &'a MappedTile,
}

/// The tiles that a definition declares, if its kernel fits the memories: several where it is in a function that is
/// called several times, or in a loop that is unrolled. Of several kernels they are the first one's.
pub fn of<'a>(context: Context<'a>, d: &Definition) -> Vec<PlacedTile<'a>> {
    let tiles = context.analysis.maps.iter().flat_map(|map| {
        map.memories
            .iter()
            .flat_map(move |memory| memory.tiles.iter().map(move |tile| PlacedTile { map, memory, tile }))
    });
    let own = tiles.filter(|p| !p.tile.hidden && p.tile.name == d.name).filter(|p| {
        let span = p.tile.span;
        span.contains(d.span) || d.whole.contains(span)
    });
    let mut own: Vec<PlacedTile<'_>> = own.collect();
    if let Some(first) = own.first().map(|p| p.map) {
        own.retain(|p| std::ptr::eq(p.map, first));
    }
    own
}

impl PlacedTile<'_> {
    /// First byte of each element and copy, and one past its last.
    pub fn addresses(&self) -> Vec<String> {
        self.tile.ranges.iter().map(|(from, to)| format!("0x{from:x}..0x{to:x}")).collect()
    }

    /// Bytes, address, life, share of the budget.
    pub fn markdown(&self, context: Context<'_>) -> String {
        let PlacedTile { map, memory, tile } = self;
        let copies = if tile.stages > 1 { format!(", {} copies", tile.stages) } else { String::new() };
        let count = if tile.count > 1 { format!(", {} tiles", tile.count) } else { String::new() };
        let share = 100.0 * tile.bytes as f64 / memory.capacity.max(1) as f64;
        let mut out = format!(
            "{} bytes{count}{copies}: {share:.1} % of {} ({} bytes) on {}\n",
            tile.bytes, memory.name, memory.capacity, map.target
        );
        match self.addresses() {
            _ if tile.chosen == Chosen::RunTime => out += "\nat an address that the kernel computes\n",
            all if all.is_empty() => out += "\nnothing uses it, so it takes no bytes\n",
            all => {
                let _ = writeln!(out, "\nat `{}`", all.join("`, `"));
            }
        }
        if tile.held.is_some() {
            // The lines of `ptoc mem`.
            let loaded = context.loaded();
            let lines = Lines::new(&loaded.sources, loaded.file());
            let life = lines.life(map, tile);
            let _ = writeln!(out, "\nfrom its first write to its last read: lines {life}");
            let ends = [tile.first_write, tile.last_read].into_iter().flatten();
            if let Some((point, call)) = ends.filter_map(|p| Some((p, lines.call(map, p)?))).next() {
                let (line, call) = (lines.show(lines.at(map, point)), lines.show(call));
                let _ = writeln!(out, "\n{call} ({line}) is line {line} of a function that line {call} calls");
            }
        }
        out
    }
}
