//! One page: a card and a picture for each memory, and the source beside them. It needs nothing from outside and, but
//! for lines that light up with the tile under the pointer, no script.

use super::lines::{Lines, cut, percent};
use super::svg;
use crate::page::{Page, escape, listing};
use ptoc_diagnostics::plural;
use ptoc_placement::MemoryMap;
use ptoc_placement::map::{Chosen, MappedMemory, MappedTile};
use std::collections::BTreeMap;
use std::fmt::Write as _;

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// The page.
pub fn page(list: &[MemoryMap], lines: &Lines<'_>) -> String {
    let name = list.first().map_or("", |m| m.kernel.as_str());
    let target = list.first().map_or("", |m| m.target.as_str());
    let file = lines.sources.name(lines.home);
    let mut main = String::new();
    let mut peaks: BTreeMap<u32, Vec<String>> = BTreeMap::new();
    for (k, map) in list.iter().enumerate() {
        kernel(&mut main, map, k, lines, &mut peaks);
    }
    let verdict = match list.iter().all(MemoryMap::fits) {
        true => "<span class=\"ok\">fits</span>",
        false => "<span class=\"bad\">does not fit</span>",
    };
    let page = Page {
        title: format!("{name} on {target}: memories"),
        style: format!("{}{STYLE}", svg::STYLE),
        header: format!(
            "<h1>{}</h1><p>on {} {verdict} <span class=\"file\">{}</span></p>",
            escape(name),
            escape(target),
            escape(file)
        ),
        main: main + LEGEND,
        source: source(lines, &peaks),
        script: SCRIPT.into(),
    };
    page.html()
}

const LEGEND: &str = "<p class=\"legend\">Left to right: the program, from point to point where something happens. \
    Upwards: addresses. A dashed outline is a hidden tile, which the compiler made for an expression; hatching is \
    space that is held for nothing; <code>#0</code>, <code>#1</code> are copies for the stages of a pipeline, or \
    elements of an \
    array.</p>\n";

fn kernel(out: &mut String, map: &MemoryMap, k: usize, lines: &Lines<'_>, peaks: &mut BTreeMap<u32, Vec<String>>) {
    if k > 0 {
        writeln!(out, "<h2 class=\"launch\">{}</h2>", escape(&map.kernel)).ok();
    }
    if map.memories.is_empty() {
        out.push_str("<p>This kernel has no tiles.</p>\n");
    }
    out.push_str("<div class=\"cards\">\n");
    for (n, memory) in map.memories.iter().enumerate() {
        card(out, map, memory, &format!("m{k}-{n}"), lines);
    }
    out.push_str("</div>\n");
    for (n, memory) in map.memories.iter().enumerate() {
        let id = format!("m{k}-{n}");
        let picture = svg::draw(map, memory, lines, &id);
        write!(
            out,
            "<section id=\"{id}\">\n<h2>{}</h2>\n<div class=\"scroll\"><svg class=\"map\" viewBox=\"0 0 {2:.0} \
             {3:.0}\" width=\"{2:.0}\" height=\"{3:.0}\" role=\"img\" aria-label=\"{1}\">\n{4}</svg></div>\n",
            escape(&svg::heading(map, memory)),
            escape(memory.name.as_str()),
            picture.width,
            picture.height,
            picture.body
        )
        .ok();
        table(out, map, memory, lines);
        out.push_str("</section>\n");
        let line = lines.at(map, memory.peak_point);
        if line.file == lines.home {
            let badge = memory.name.clone();
            let badges = peaks.entry(line.number).or_default();
            if !badges.contains(&badge) {
                badges.push(badge);
            }
        }
    }
}

fn card(out: &mut String, map: &MemoryMap, memory: &MappedMemory, id: &str, lines: &Lines<'_>) {
    let share = percent(memory.used, memory.capacity);
    let class = if memory.fits() { "card" } else { "card over" };
    writeln!(
        out,
        "<a class=\"{class}\" href=\"#{id}\"><b>{}</b> <span>{}</span><i><u style=\"width:{}%\"></u></i>\
         <small>{} of {} bytes, peak at line {}</small></a>",
        escape(&memory.name),
        match memory.capacity {
            0 => "none here".into(),
            _ => format!("{share} %"),
        },
        share.min(100),
        memory.used,
        memory.capacity,
        escape(&lines.place(map, memory.peak_point))
    )
    .ok();
}

fn table(out: &mut String, map: &MemoryMap, memory: &MappedMemory, lines: &Lines<'_>) {
    let count = memory.tiles.len();
    let one = if memory.locations.is_empty() { "tensor" } else { "tile" };
    let word = plural(count, one);
    write!(
        out,
        "<details><summary>{word}</summary>\n<div class=\"scroll\"><table>\n<tr><th>{one}<th>type<th>bytes\
         <th>address<th>lines<th>copies</tr>\n"
    )
    .ok();
    for tile in &memory.tiles {
        row(out, map, tile, lines);
    }
    out.push_str("</table></div>\n</details>\n");
}

fn row(out: &mut String, map: &MemoryMap, tile: &MappedTile, lines: &Lines<'_>) {
    let title = escape(&cut(&lines.title(tile), 60));
    let line = lines.of(tile.span);
    let title = match line.file == lines.home {
        true => format!("<a href=\"#L{}\">{title}</a>", line.number),
        false => title,
    };
    let address = match (tile.chosen, tile.ranges.first(), tile.ranges.iter().map(|r| r.1).max()) {
        (Chosen::RunTime, ..) => "at run time".into(),
        (_, Some((start, _)), Some(end)) => format!("{start:#x}..{end:#x}"),
        _ => "none".into(),
    };
    writeln!(
        out,
        "<tr><td>{}{title}<td>{}<td class=\"n\">{}<td class=\"n\">{address}<td class=\"n\">{}<td class=\"n\">{}</tr>",
        if tile.hidden { "<em>hidden</em> " } else { "" },
        escape(&tile.ty),
        tile.bytes,
        escape(&lines.life(map, tile)),
        u64::from(tile.count) * u64::from(tile.stages)
    )
    .ok();
}

fn source(lines: &Lines<'_>, peaks: &BTreeMap<u32, Vec<String>>) -> String {
    listing(lines.sources.text(lines.home), "L", |n| {
        peaks.get(&n).map_or_else(String::new, |names| {
            format!("<span class=\"badge\">peak {}</span>", escape(&names.join(", ")))
        })
    })
}
