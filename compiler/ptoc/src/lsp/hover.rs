//! What stands under the cursor: an instruction or a code with its page, a tile with its place in memory.

use super::analysis::Analysis;
use super::documents::Document;
use crate::commands::explain;
use ptoc_passes::MemoryMap;
use ptoc_passes::map::{MappedMemory, MappedTile};
use std::fmt::Write as _;
use std::ops::Range;

/// The word around a byte.
pub fn word(text: &str, offset: usize) -> Option<Range<usize>> {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    let start = text[..offset].char_indices().rev().take_while(|(_, c)| part(*c)).last().map_or(offset, |(i, _)| i);
    let end = text[offset..].find(|c| !part(c)).map_or(text.len(), |n| offset + n);
    (start < end).then_some(start..end)
}

/// Markdown about a word, with its bytes.
pub fn hover(document: &Document, analysis: &Analysis, offset: usize) -> Option<(String, Range<usize>)> {
    let at = word(&document.text, offset)?;
    let word = &document.text[at.clone()];
    // A code may be written with its dash: `SA-0351`.
    let tile = tile(analysis, word, at.start as u32);
    let page =
        tile.or_else(|| word.chars().next().filter(|c| c.is_uppercase()).and_then(|_| explain::page(word).ok()))?;
    Some((page, at))
}

/// A tile of the kernel around: of several with that name the one declared last before the place.
fn tile(analysis: &Analysis, name: &str, at: u32) -> Option<String> {
    let mut found: Option<(&MemoryMap, &MappedMemory, &MappedTile)> = None;
    for map in &analysis.maps {
        let tiles = map.memories.iter().flat_map(|m| m.tiles.iter().map(move |t| (m, t)));
        let named =
            tiles.filter(|(_, t)| t.name == name && !t.hidden && t.span.file == analysis.file && t.span.start <= at);
        for (memory, tile) in named {
            if found.is_none_or(|(.., old)| old.span.start <= tile.span.start) {
                found = Some((map, memory, tile));
            }
        }
    }
    let (map, memory, tile) = found?;
    let line = |point: u32| map.points.get(point as usize).map(|s| analysis.sources.position(s.file, s.start).line);
    let mut out = format!("```tile\n{name}: {}\n```\n\n", tile.ty);
    let copies = if tile.stages > 1 { format!(", {} copies", tile.stages) } else { String::new() };
    let count = if tile.count > 1 { format!(", {} tiles", tile.count) } else { String::new() };
    let share = 100.0 * tile.bytes as f64 / memory.capacity.max(1) as f64;
    let _ = writeln!(
        out,
        "{} bytes{count}{copies}: {share:.1} % of {} ({} bytes) on {}",
        tile.bytes, memory.name, memory.capacity, map.target
    );
    match tile.ranges.first() {
        Some(_) => {
            let ranges: Vec<String> = tile.ranges.iter().map(|(from, to)| format!("`0x{from:x}..0x{to:x}`")).collect();
            let _ = writeln!(out, "\nat {}", ranges.join(", "));
        }
        None => out += "\nat an address that the kernel computes\n",
    }
    if let Some((from, to)) = tile.held.as_ref().and_then(|h| Some((line(h.start)?, line(h.end)?))) {
        let _ = writeln!(out, "\nits bytes are taken in lines {from} to {to}");
    }
    Some(out)
}
