//! The map as JSON. `spec/memory.md` lists the fields.

use super::Maps;
use super::lines::Lines;
use ptoc_placement::MemoryMap;
use ptoc_placement::liveness::{Interval, Point};
use ptoc_placement::map::{Chosen, MappedMemory, MappedTile};
use serde_json::{Value, json};

/// A kernel's object; for a program, one that lists those of its launches.
pub fn maps(maps: &Maps, lines: &Lines<'_>) -> String {
    let value = match (maps.program, &maps.list[..]) {
        (false, [only]) => kernel(only, lines),
        (_, list) => {
            let is_workspace = |m: &&MemoryMap| m.memories.iter().any(|m| m.locations.is_empty());
            let workspace = list.iter().find(is_workspace).map(|m| kernel(m, lines));
            let launches: Vec<Value> = list.iter().filter(|m| !is_workspace(m)).map(|m| kernel(m, lines)).collect();
            json!({"program": maps.name, "workspace": workspace, "kernels": launches})
        }
    };
    format!("{value:#}\n")
}

fn kernel(map: &MemoryMap, lines: &Lines<'_>) -> Value {
    let memories: Vec<Value> = map.memories.iter().map(|m| memory(map, m, lines)).collect();
    let loops: Vec<Value> = map.loops.iter().map(|l| json!({"points": pair(&l.range), "stages": l.stages})).collect();
    let barriers = map.barriers.iter().map(|b| json!({"name": b.name.as_str(), "count": b.count, "bytes": b.bytes()}));
    let points: Vec<Value> = (0..map.points.len() as Point).map(|p| json!(lines.show(lines.at(map, p)))).collect();
    json!({
        "kernel": map.kernel.as_str(),
        "target": map.target.as_str(),
        "file": lines.sources.name(map.span.file),
        "line": lines.of(map.span).number,
        "fits": map.fits(),
        "memories": memories,
        "barriers": barriers.collect::<Vec<_>>(),
        "barrier_bytes": map.barrier_bytes(),
        "registers": map.registers.map(|[taken, most]| json!({"tiles": taken, "most": most})),
        "loops": loops,
        "points": points,
    })
}

fn memory(map: &MemoryMap, memory: &MappedMemory, lines: &Lines<'_>) -> Value {
    let tiles: Vec<Value> = memory.tiles.iter().map(|t| tile(map, memory, t, lines)).collect();
    let names: Vec<&str> = memory.locations.iter().map(|l| l.name()).collect();
    // A memory of one location has its name, a pool those of all.
    let place = match &names[..] {
        [only] if !memory.pool => ("location".to_owned(), json!(only)),
        all => ("locations".to_owned(), json!(all)),
    };
    let facts = json!({
        "name": memory.name,
        "capacity": memory.capacity,
        "used": memory.used,
        "used_at_least": memory.open,
        "peak": memory.peak,
        "peak_at": point(map, memory.peak_point, lines),
        "fits": memory.fits(),
        "tiles": tiles,
    });
    let facts = facts.as_object().cloned().unwrap_or_default();
    Value::Object(std::iter::once(place).chain(facts).collect())
}

fn tile(map: &MemoryMap, memory: &MappedMemory, tile: &MappedTile, lines: &Lines<'_>) -> Value {
    let line = lines.of(tile.span);
    let chosen = match tile.chosen {
        Chosen::Auto => "auto",
        Chosen::Pinned => "planned",
        Chosen::Fixed => "fixed",
        Chosen::RunTime => "run time",
    };
    let at = |p: Option<Point>| p.map(|p| point(map, p, lines));
    let list = |runs: &[Interval]| runs.iter().map(pair).collect::<Vec<_>>();
    json!({
        "name": tile.name.as_str(),
        "hidden": tile.hidden,
        "expression": tile.hidden.then(|| lines.text(tile.span)),
        "type": tile.ty.to_string(),
        "count": tile.count,
        "stages": tile.stages,
        "bytes": tile.bytes,
        "placed": chosen,
        "ranges": tile.ranges,
        "fits": !tile.overflows(memory.capacity),
        "file": lines.sources.name(line.file),
        "line": line.number,
        "first_write": at(tile.first_write),
        "last_read": at(tile.last_read),
        "held": tile.held.as_ref().map(pair),
        "live": list(&tile.live),
        "dead": list(&tile.dead),
        "shares": tile.shares,
    })
}

fn pair(run: &Interval) -> Value {
    json!([run.start, run.end])
}

fn point(map: &MemoryMap, point: Point, lines: &Lines<'_>) -> Value {
    let line = lines.at(map, point);
    json!({"point": point, "line": line.number, "file": lines.sources.name(line.file)})
}
