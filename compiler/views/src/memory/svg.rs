//! The picture of a memory: program points from left to right, addresses from the bottom up, a rectangle for each run
//! of bytes that a tile holds. Above it, how many bytes are held; below it, lines and loops.

use super::lines::{Lines, MapLine, bytes, percent};
use crate::page::escape;
use ptoc_placement::MemoryMap;
use ptoc_placement::liveness::{Interval, Point};
use ptoc_placement::map::{Chosen, MappedMemory, MappedTile};
use std::fmt::Write as _;

/// Colours and type of a picture, in both schemes.
pub(super) const STYLE: &str = include_str!("picture.css");

const LEFT: f64 = 86.0;
const RIGHT: f64 = 18.0;
const HEAD: f64 = 24.0;
const STRIP: f64 = 34.0;
const GAP: f64 = 10.0;
/// Width of a character of the small type.
const CHAR: f64 = 6.2;
/// Colours for tiles.
const HUES: usize = 8;

/// A drawn memory.
pub(super) struct Picture {
    /// Width in pixels.
    pub width: f64,
    /// Height in pixels.
    pub height: f64,
    /// What stands in the `svg` element.
    pub body: String,
}

/// A file with the pictures of all maps, one below the other.
pub fn file(list: &[MemoryMap], lines: &Lines<'_>) -> String {
    let (mut body, mut y, mut width) = (String::new(), 12.0, 0.0f64);
    for (k, map) in list.iter().enumerate() {
        for (n, memory) in map.memories.iter().enumerate() {
            let picture = draw(map, memory, lines, &format!("m{k}-{n}"));
            let title = match list.len() {
                1 => heading(map, memory),
                _ => format!("{}: {}", map.kernel, heading(map, memory)),
            };
            writeln!(body, "<text class=\"title\" x=\"12\" y=\"{:.0}\">{}</text>", y + 16.0, escape(&title)).ok();
            write!(body, "<g transform=\"translate(0 {:.0})\">\n{}</g>\n", y + 26.0, picture.body).ok();
            width = width.max(picture.width);
            y += picture.height + 44.0;
        }
    }
    let name = list.first().map_or("", |m| m.kernel.as_str());
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {y:.0}\" width=\"{width:.0}\" \
         height=\"{y:.0}\" class=\"map\" role=\"img\" aria-label=\"Memories of {}\">\n<style>\n{STYLE}</style>\n\
         <rect class=\"paper\" width=\"100%\" height=\"100%\"/>\n{body}</svg>\n",
        escape(name)
    )
}

/// `UB (Vec): 118272 of 196608 bytes, 61 %`
pub(super) fn heading(map: &MemoryMap, memory: &MappedMemory) -> String {
    let name = memory.title();
    match memory.capacity {
        c if memory.locations.is_empty() => {
            format!("{name}: {} bytes, and {c} if none shared memory", memory.used)
        }
        0 => format!("{name}: {} bytes, and {} has no such memory", memory.used, map.target),
        c => format!("{name}: {} of {c} bytes, {} %", memory.used, percent(memory.used, c)),
    }
}

/// What hovering over a tile shows.
pub(super) fn hover(map: &MemoryMap, memory: &MappedMemory, tile: &MappedTile, lines: &Lines<'_>) -> String {
    let mut out = match tile.hidden {
        true => format!("{}\nhidden tile ({}) for this expression of line ", lines.title(tile), tile.name),
        false => format!("{}\ndeclared at line ", tile.name),
    };
    write!(out, "{}\n{}, {}", lines.show(lines.of(tile.span)), tile.ty, bytes(tile.bytes)).ok();
    let each = tile.each;
    match (tile.count, tile.stages) {
        (1, 1) => {}
        (n, 1) => write!(out, ": {n} elements of {each}").unwrap_or(()),
        (1, s) => write!(out, ": {s} stages of {each}").unwrap_or(()),
        (n, s) => write!(out, ": {n} elements x {s} stages of {each}").unwrap_or(()),
    }
    let shown: Vec<String> = tile.ranges.iter().take(4).map(|r| format!("{:#x}..{:#x}", r.0, r.1)).collect();
    let more = if tile.ranges.len() > 4 { ", .." } else { "" };
    let who = match tile.chosen {
        Chosen::Auto => "",
        Chosen::Pinned => " (in a plan of the author's)",
        Chosen::Fixed => " (chosen by the author)",
        Chosen::RunTime => "chosen at run time",
    };
    write!(out, "\naddress {}{more}{who}\nlines {}", shown.join(", "), lines.life(map, tile)).ok();
    if !tile.dead.is_empty() {
        let spans: Vec<String> = tile.dead.iter().take(3).map(|d| stretch(map, d, lines)).collect();
        write!(out, "\nholds its bytes for nothing: {}", spans.join(", ")).ok();
    }
    if !tile.shares.is_empty() {
        let names: Vec<String> =
            tile.shares.iter().take(6).map(|&n| super::lines::cut(&lines.title(&memory.tiles[n]), 24)).collect();
        let more = if tile.shares.len() > 6 { format!(" and {} more", tile.shares.len() - 6) } else { String::new() };
        write!(out, "\nshares bytes with {}{more}", names.join(", ")).ok();
    }
    if tile.overflows(memory.capacity) {
        out.push_str("\nends past the memory");
    }
    out
}

fn stretch(map: &MemoryMap, run: &Interval, lines: &Lines<'_>) -> String {
    let (a, b) = (lines.at(map, run.start), lines.at(map, run.end));
    match a == b {
        true => format!("line {}", lines.show(a)),
        false => format!("lines {} to {}", lines.show(a), lines.show(b)),
    }
}

/// The horizontal axis: the points where something happens to a tile of the memory, each one slot wide.
struct PointAxis {
    steps: Vec<Point>,
    slot: f64,
}

impl PointAxis {
    fn new(map: &MemoryMap, memory: &MappedMemory) -> PointAxis {
        let mut steps: Vec<Point> = Vec::new();
        for tile in &memory.tiles {
            for run in tile.held.iter().chain(&tile.live) {
                steps.extend([run.start, run.end]);
            }
        }
        steps.push(memory.peak_point);
        let busy = |l: &Interval| steps.iter().any(|&p| l.contains(p));
        let ends: Vec<Point> =
            map.loops.iter().filter(|l| busy(&l.range)).flat_map(|l| [l.range.start, l.range.end]).collect();
        steps.extend(ends);
        steps.sort_unstable();
        steps.dedup();
        let slot = (860.0 / steps.len() as f64).clamp(7.0, 52.0);
        PointAxis { steps, slot }
    }

    fn width(&self) -> f64 {
        self.slot * self.steps.len() as f64
    }

    /// Left end of a point's slot, and of the first one after it if it has none.
    fn x(&self, point: Point) -> f64 {
        LEFT + self.slot * self.steps.partition_point(|&p| p < point) as f64
    }

    /// Right end of a point's slot.
    fn end(&self, point: Point) -> f64 {
        LEFT + self.slot * self.steps.partition_point(|&p| p <= point) as f64
    }
}

/// Draws a memory. `id` sets its definitions apart from those of other pictures on the page.
pub(super) fn draw(map: &MemoryMap, memory: &MappedMemory, lines: &Lines<'_>, id: &str) -> Picture {
    let axis = PointAxis::new(map, memory);
    let starts: std::collections::BTreeSet<u64> =
        memory.tiles.iter().flat_map(|t| t.ranges.iter().map(|r| r.0)).collect();
    let plot = (72.0 + 24.0 * starts.len() as f64).clamp(150.0, 520.0);
    let loops: Vec<_> = map.loops.iter().filter(|l| axis.end(l.range.end) > axis.x(l.range.start)).collect();
    let depth = |l: &ptoc_placement::liveness::LoopRange| {
        loops
            .iter()
            .filter(|o| o.range != l.range && o.range.start <= l.range.start && l.range.end <= o.range.end)
            .count()
    };
    let deepest = loops.iter().map(|l| depth(l) + 1).max().unwrap_or(0);
    let top = HEAD + STRIP + GAP;
    let bottom = top + plot;
    let width = LEFT + axis.width().max(300.0) + RIGHT;
    let height = bottom + 26.0 + 18.0 * deepest as f64;
    // A memory that is mostly empty is cut above what is used.
    let cropped = memory.used.saturating_mul(100) < memory.capacity.saturating_mul(45);
    let most = match cropped {
        true => memory.used + memory.used / 6,
        false => memory.used.max(memory.capacity),
    }
    .max(1);
    let y = |at: u64| bottom - plot * (at as f64 / most as f64);
    let mut out = String::new();
    write!(
        out,
        "<defs><pattern id=\"{id}-dead\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" \
         patternTransform=\"rotate(45)\"><line class=\"hatch\" x1=\"0\" y1=\"0\" x2=\"0\" y2=\"6\"/></pattern></defs>\n\
         <rect class=\"plot\" x=\"{LEFT}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{plot:.1}\"/>\n",
        axis.width()
    )
    .ok();
    addresses(&mut out, memory, most, cropped, &axis, top, &y);
    for l in &loops {
        let (x, end) = (axis.x(l.range.start), axis.end(l.range.end));
        let at = bottom + 24.0 + 18.0 * depth(l) as f64;
        let first = lines.of(l.span);
        let word = match l.stages {
            1 => format!("loop of line {}", lines.show(first)),
            n => format!("pipeline of line {}, {n} stages", lines.show(first)),
        };
        let word = if (end - x) < CHAR * word.len() as f64 { lines.show(first) } else { word };
        writeln!(
            out,
            "<path class=\"loop\" d=\"M{x:.1} {:.1}v5H{end:.1}v-5\"/><text class=\"small\" x=\"{:.1}\" y=\"{:.1}\" \
             text-anchor=\"middle\">{}</text>",
            at - 2.0,
            f64::midpoint(x, end),
            at + 14.0,
            escape(&word)
        )
        .ok();
    }
    line_numbers(&mut out, map, lines, &axis, bottom);
    // Longer lives first, so that short ones lie on top of what they share bytes with.
    let mut order: Vec<usize> = (0..memory.tiles.len()).collect();
    order.sort_by_key(|&n| {
        (std::cmp::Reverse(memory.tiles[n].held.map_or(0, |h| h.end - h.start)), memory.tiles[n].tile)
    });
    for n in order {
        tile(&mut out, map, memory, n, lines, &axis, &y, id);
    }
    strip(&mut out, map, memory, lines, &axis, top, bottom);
    Picture { width, height: height + 8.0, body: out }
}

/// The vertical axis: addresses in round steps, the capacity, and what lies beyond.
fn addresses(
    out: &mut String,
    memory: &MappedMemory,
    most: u64,
    cropped: bool,
    axis: &PointAxis,
    top: f64,
    y: &dyn Fn(u64) -> f64,
) {
    let right = LEFT + axis.width();
    let mut step = 1u64 << 63;
    while step > 1 && most / step < 4 {
        step >>= 1;
    }
    let mut at = 0;
    while at <= most {
        // The capacity has a label of its own.
        if cropped || (y(at) - y(memory.capacity)).abs() >= 11.0 {
            writeln!(
                out,
                "<path class=\"grid\" d=\"M{LEFT} {0:.1}H{right:.1}\"/><text class=\"small\" x=\"{1:.1}\" y=\"{2:.1}\" \
                 text-anchor=\"end\">{at:#x}</text>",
                y(at),
                LEFT - 6.0,
                y(at) + 3.5
            )
            .ok();
        }
        let Some(next) = at.checked_add(step) else { break };
        at = next;
    }
    if cropped {
        writeln!(
            out,
            "<path class=\"cut\" d=\"M{LEFT} {top:.1}H{right:.1}\"/><text class=\"small\" x=\"{:.1}\" y=\"{:.1}\" \
             text-anchor=\"end\">free up to {:#x}</text>",
            right - 4.0,
            top + 11.0,
            memory.capacity
        )
        .ok();
        return;
    }
    let at = y(memory.capacity);
    if memory.used > memory.capacity {
        writeln!(
            out,
            "<rect class=\"beyond\" x=\"{LEFT}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{:.1}\"/>",
            axis.width(),
            at - top
        )
        .ok();
    }
    writeln!(
        out,
        "<path class=\"capacity\" d=\"M{LEFT} {at:.1}H{right:.1}\"/><text class=\"small limit\" x=\"{:.1}\" \
         y=\"{:.1}\" text-anchor=\"end\">{:#x}</text>",
        LEFT - 6.0,
        at + 3.5,
        memory.capacity
    )
    .ok();
}

/// The numbers of the lines, where they change and there is room.
fn line_numbers(out: &mut String, map: &MemoryMap, lines: &Lines<'_>, axis: &PointAxis, bottom: f64) {
    let (mut last, mut free): (Option<MapLine>, f64) = (None, 0.0);
    for &point in &axis.steps {
        let line = lines.at(map, point);
        if last == Some(line) {
            continue;
        }
        last = Some(line);
        let x = axis.x(point);
        write!(out, "<path class=\"tick\" d=\"M{x:.1} {bottom:.1}v4\"/>").ok();
        // Lines of other files would need their names.
        if line.file != lines.home || x < free {
            continue;
        }
        let text = line.number.to_string();
        free = x + CHAR * text.len() as f64 + 6.0;
        write!(out, "<text class=\"small\" x=\"{:.1}\" y=\"{:.1}\">{text}</text>", x + 1.0, bottom + 14.0).ok();
    }
    writeln!(
        out,
        "<text class=\"small\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">line</text>",
        LEFT - 6.0,
        bottom + 14.0
    )
    .ok();
}

#[allow(clippy::too_many_arguments, reason = "a picture's parts")]
fn tile(
    out: &mut String,
    map: &MemoryMap,
    memory: &MappedMemory,
    n: usize,
    lines: &Lines<'_>,
    axis: &PointAxis,
    y: &dyn Fn(u64) -> f64,
    id: &str,
) {
    let tile = &memory.tiles[n];
    let Some(held) = tile.held else { return };
    if tile.ranges.is_empty() {
        return;
    }
    let declared = lines.of(tile.span);
    let mut class = format!("tile c{}", n % HUES);
    if tile.hidden {
        class.push_str(" hidden");
    }
    if tile.overflows(memory.capacity) {
        class.push_str(" over");
    }
    let (from, to) = (lines.at(map, held.start), lines.at(map, held.end));
    let span = |l: MapLine| if l.file == lines.home { l.number } else { 0 };
    write!(
        out,
        "<g class=\"{class}\" data-line=\"{}\" data-from=\"{}\" data-to=\"{}\"><title>{}</title>",
        span(declared),
        span(from),
        span(to),
        escape(&hover(map, memory, tile, lines))
    )
    .ok();
    let (mut x, mut end) = (axis.x(held.start), axis.end(held.end));
    // Bytes that change hands at one point: the old tile has the left half of the slot, the new one the right half.
    let neighbours = || tile.shares.iter().filter_map(|&n| memory.tiles[n].held);
    if held.start < held.end && neighbours().any(|h| h.start == held.end) {
        end -= axis.slot / 2.0;
    }
    if neighbours().any(|h| h.end == held.start && h.start < h.end) {
        x += axis.slot / 2.0;
    }
    let title = lines.title(tile);
    for (k, &(start, stop)) in tile.ranges.iter().enumerate() {
        let (high, low) = (y(stop), y(start));
        let h = (low - high).max(2.0);
        write!(
            out,
            "<rect class=\"body\" x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{h:.1}\" rx=\"2\"/>",
            x + 0.5,
            low - h + 0.4,
            (end - x - 1.0).max(1.0)
        )
        .ok();
        for dead in &tile.dead {
            let (a, b) = (axis.x(dead.start).max(x), axis.end(dead.end).min(end));
            if b - a > 0.5 {
                write!(
                    out,
                    "<rect class=\"faded\" x=\"{a:.1}\" y=\"{0:.1}\" width=\"{1:.1}\" height=\"{h:.1}\"/>\
                     <rect x=\"{a:.1}\" y=\"{0:.1}\" width=\"{1:.1}\" height=\"{h:.1}\" fill=\"url(#{id}-dead)\"/>",
                    low - h + 0.4,
                    b - a
                )
                .ok();
            }
        }
        let room = ((end - x - 8.0) / CHAR) as usize;
        let mut label = title.clone();
        if tile.stages > 1 || tile.count > 1 {
            write!(label, " #{k}").ok();
        }
        let fits = label.chars().count();
        if h >= 11.0 && room >= fits.min(4) && room >= 1 {
            let text = super::lines::cut(&label, room);
            write!(
                out,
                "<text class=\"label\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
                x + 4.5,
                (low - h / 2.0) + 3.9,
                escape(&text)
            )
            .ok();
            let size = tile.each.to_string();
            let used = CHAR * (fits.min(room) as f64 + 2.0);
            if end - x - used > CHAR * size.len() as f64 + 10.0 {
                write!(
                    out,
                    "<text class=\"size\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{size}</text>",
                    end - 5.0,
                    (low - h / 2.0) + 3.9
                )
                .ok();
            }
        }
    }
    out.push_str("</g>\n");
}

/// Bytes held over time, and the line through the fullest point.
fn strip(
    out: &mut String,
    map: &MemoryMap,
    memory: &MappedMemory,
    lines: &Lines<'_>,
    axis: &PointAxis,
    top: f64,
    bottom: f64,
) {
    let floor = top - GAP;
    let most = memory.peak.max(1) as f64;
    let mut path = format!("M{LEFT} {floor:.1}");
    for &point in &axis.steps {
        let held = memory.held.get(point as usize).copied().unwrap_or(0) as f64;
        write!(path, "V{:.1}H{:.1}", floor - STRIP * held / most, axis.end(point)).ok();
    }
    write!(path, "V{floor:.1}Z").ok();
    let x = f64::midpoint(axis.x(memory.peak_point), axis.end(memory.peak_point));
    let text = format!("peak {} bytes, line {}", memory.peak, lines.show(lines.at(map, memory.peak_point)));
    let wide = CHAR * 1.08 * text.len() as f64;
    let (anchor, at) = match x + wide > LEFT + axis.width().max(300.0) {
        true => ("end", x),
        false => ("start", x),
    };
    writeln!(
        out,
        "<path class=\"strip\" d=\"{path}\"/><text class=\"small\" x=\"{:.1}\" y=\"{:.1}\" \
         text-anchor=\"end\">held</text>\
         <path class=\"peak\" d=\"M{x:.1} {:.1}V{bottom:.1}\"/><text class=\"small strong\" x=\"{at:.1}\" y=\"{:.1}\" \
         text-anchor=\"{anchor}\">{}</text>",
        LEFT - 6.0,
        floor - 3.0,
        HEAD - 6.0,
        HEAD - 10.0,
        escape(&text)
    )
    .ok();
}
