//! The map as text: a section for each memory, tiles in the order of their addresses, and the life of each as a bar.

use super::lines::{Lines, cut, percent};
use ptoc_placement::MemoryMap;
use ptoc_placement::liveness::Interval;
use ptoc_placement::map::{Chosen, MappedMemory, MappedTile};
use std::fmt::Write as _;

/// Cells of the bar, at most.
const BAR: usize = 32;
/// Room for a tile's name or expression.
const TITLE: usize = 30;

/// All maps.
pub fn maps(list: &[MemoryMap], lines: &Lines<'_>, width: usize) -> String {
    let parts: Vec<String> = list.iter().map(|map| one(map, lines, width)).collect();
    parts.join("\n")
}

fn one(map: &MemoryMap, lines: &Lines<'_>, width: usize) -> String {
    let place = lines.show(lines.of(map.span));
    let mut out = format!("{} on {}, from line {place}\n", map.kernel, map.target);
    if map.memories.is_empty() {
        out.push_str("\nit has no tiles\n");
    }
    for memory in &map.memories {
        out.push('\n');
        out.push_str(&section(map, memory, lines, width));
    }
    if let Some([taken, most]) = map.registers {
        writeln!(out, "\nfragments  tiles take {taken} of {most} registers of a thread at once, after fusion").ok();
    }
    if !map.barriers.is_empty() {
        let each = map.barriers.iter().map(|b| format!("{}[{}] {}", b.name, b.count, b.bytes()));
        let list = each.collect::<Vec<_>>().join(", ");
        write!(out, "\ntransaction barriers  {} bytes, beside the tiles: {list}\n", map.barrier_bytes()).ok();
    }
    let tiles = || map.memories.iter().flat_map(|m| &m.tiles);
    let mut legend = Vec::new();
    if tiles().any(|t| !t.live.is_empty()) {
        legend.push("█ holds a value".to_owned());
    }
    if tiles().any(|t| !t.dead.is_empty()) {
        legend.push("░ holds bytes, but no value that is read any more".to_owned());
    }
    if tiles().any(|t| t.hidden) {
        legend.push("= a hidden tile, for the result of this expression".to_owned());
    }
    if tiles().any(|t| matches!(t.chosen, Chosen::Fixed | Chosen::Pinned)) {
        legend.push("@ an address of the author's choosing".to_owned());
    }
    let called = |t: &MappedTile| {
        let ends =
            [t.first_write, t.last_read].into_iter().flatten().chain(t.held.iter().flat_map(|h| [h.start, h.end]));
        ends.filter_map(|p| Some((p, lines.call(map, p)?))).next()
    };
    if let Some((point, call)) = tiles().find_map(called) {
        let line = lines.show(lines.at(map, point));
        legend.push(format!(
            "{} ({line}) is line {line} of a function that line {} calls",
            lines.show(call),
            lines.show(call)
        ));
    }
    for line in legend {
        writeln!(out, "{}{line}", if line.starts_with('█') { "\n" } else { "" }).ok();
    }
    out
}

fn section(map: &MemoryMap, memory: &MappedMemory, lines: &Lines<'_>, width: usize) -> String {
    let MappedMemory { capacity, used, open, peak, .. } = memory;
    let least = if *open { "at least " } else { "" };
    let title = memory.title();
    let mut out = match *capacity {
        all if memory.locations.is_empty() => format!("{title}  {used} bytes, {all} if none shared memory"),
        0 => format!("{title}  {} has no such memory: {used} bytes are wanted", map.target),
        _ => format!("{title}  {least}{used} of {capacity} bytes used ({} %)", percent(*used, *capacity)),
    };
    if *peak > 0 {
        write!(out, ", peak {peak} at line {}", lines.place(map, memory.peak_point)).ok();
    }
    out.push('\n');
    if !memory.fits() && *capacity > 0 {
        writeln!(out, "  does not fit: {} bytes too many; marked !", used - capacity).ok();
    }
    let scale = Scale::new(map, memory);
    let rows: Vec<[String; 6]> = memory.tiles.iter().map(|t| row(map, memory, t, lines, &scale)).collect();
    let what = if memory.locations.is_empty() { "tensor" } else { "tile" };
    let head = ["address", "bytes", "lines", "", what, "type"].map(String::from);
    let widths: [usize; 6] =
        std::array::from_fn(|c| rows.iter().chain([&head]).map(|r| r[c].chars().count()).max().unwrap_or(0));
    // The type goes first where the terminal is narrow.
    let total: usize = widths.iter().sum::<usize>() + 12;
    let shown = if total > width.max(60) { 5 } else { 6 };
    for (n, row) in [&head].into_iter().chain(&rows).enumerate() {
        let mut line = String::from(" ");
        for (c, cell) in row.iter().enumerate().take(shown) {
            let pad = " ".repeat(widths[c].saturating_sub(cell.chars().count()));
            line.push_str(if c == 3 && n > 0 { "  " } else { " " });
            if c == 3 && n == 0 {
                line.push(' ');
            }
            // Numbers end where their column does.
            match c {
                1 | 2 => write!(line, "{pad}{cell} ").ok(),
                _ => write!(line, "{cell}{pad} ").ok(),
            };
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

fn row(map: &MemoryMap, memory: &MappedMemory, tile: &MappedTile, lines: &Lines<'_>, scale: &Scale) -> [String; 6] {
    let mark = if tile.overflows(memory.capacity) { "!" } else { "" };
    let address = match (tile.chosen, tile.ranges.first(), tile.ranges.iter().map(|r| r.1).max()) {
        (Chosen::RunTime, ..) => "at run time".into(),
        (chosen, Some((start, _)), Some(end)) => {
            let sign = if matches!(chosen, Chosen::Fixed | Chosen::Pinned) { "@" } else { "" };
            format!("{start:#07x}..{end:#07x}{sign}{mark}")
        }
        _ => "-".into(),
    };
    let title = match tile.hidden {
        true => format!("= {}", lines.title(tile)),
        false => lines.title(tile),
    };
    let mut title = cut(&title, TITLE);
    if tile.count > 1 {
        write!(title, "[{}]", tile.count).ok();
    }
    if tile.stages > 1 {
        write!(title, " x {} stages", tile.stages).ok();
    }
    [address, tile.bytes.to_string(), lines.life(map, tile), scale.bar(tile), title, tile.ty.to_string()]
}

/// Points of a memory, squeezed into the cells of a bar. Only those count where a tile of it begins, ends or is
/// touched.
struct Scale {
    steps: Vec<u32>,
    cells: usize,
}

impl Scale {
    fn new(map: &MemoryMap, memory: &MappedMemory) -> Scale {
        let mut steps: Vec<u32> = Vec::new();
        for tile in &memory.tiles {
            for run in tile.held.iter().chain(&tile.live).chain(&tile.dead) {
                steps.extend([run.start, run.end]);
            }
        }
        steps.retain(|&p| (p as usize) < map.points.len());
        steps.sort_unstable();
        steps.dedup();
        let cells = steps.len().min(BAR);
        Scale { steps, cells }
    }

    fn bar(&self, tile: &MappedTile) -> String {
        let cell = |n: usize| {
            let (from, to) = (n * self.steps.len() / self.cells, (n + 1) * self.steps.len() / self.cells);
            let of = &self.steps[from..to.max(from + 1)];
            let any = |runs: &[Interval]| runs.iter().any(|run| of.iter().any(|&p| run.contains(p)));
            match (any(&tile.live), any(tile.held.as_slice())) {
                (true, _) => '█',
                (_, true) => '░',
                _ => '·',
            }
        };
        (0..self.cells).map(cell).collect()
    }
}
