//! Code lenses above kernels and programs: what they take of the memories of each target, what a block costs there by
//! the model of time, and commands of the editor.

use super::views;
use crate::analysis::session;
use crate::context::Context;
use crate::failure::{Failure, read};
use crate::reply::{Reply, result};
use crate::settings::Settings;
use crate::world::{World, path};
use lsp_types::{DocumentSymbolParams, Uri};
use ptoc_diagnostics::Diagnostic;
use ptoc_driver::check::{Checked, Whole, check_entry};
use ptoc_interp::cost::{BlockCost, Lanes, busiest};
use ptoc_isa::Target;
use ptoc_placement::MemoryMap;
use ptoc_syntax::ast::{Ident, ItemKind};
use serde::Deserialize;
use serde_json::{Value, json};

/// `textDocument/codeLens`
pub fn lenses(world: &mut World, params: Value) -> Result<Reply, Failure> {
    let params: DocumentSymbolParams = read(params)?;
    let context = world.known(&params.text_document.uri)?;
    let target = context.target();
    let mut found = Vec::new();
    for item in &context.loaded().unit.modules.root().ast.items {
        let (ItemKind::Kernel(k) | ItemKind::Program(k)) = &item.kind else { continue };
        let range = context.range(k.name.span);
        let at = json!({"textDocument": {"uri": context.uri}, "position": range.start});
        let mut lens = |title: &str, command: &str, more: Option<Value>| {
            let arguments: Vec<Value> = std::iter::once(at.clone()).chain(more).collect();
            found
                .push(json!({"range": range, "command": {"title": title, "command": command, "arguments": arguments}}));
        };
        let name = &k.name.name;
        lens("run", "ptoc.run", Some(json!(name.as_str())));
        lens("debug", "ptoc.debug", Some(json!(name.as_str())));
        let errors = context
            .analysis
            .diagnostics
            .iter()
            .filter(|d| d.is_error() && d.span.is_some_and(|s| item.span.contains(s)));
        let cost = context.analysis.costs.iter().find(|c| c.span == k.name.span);
        let state = state(own(context, &k.name), cost, errors, matches!(item.kind, ItemKind::Program(_)));
        lens(&format!("{}: {state}", target.name), "ptoc.showMemoryMap", None);
        lens("show IR", "ptoc.showIr", None);
        if target.has_units() {
            // What it costs is known when it has run on the simulator.
            let data =
                json!({"uri": context.uri, "kernel": name.as_str(), "target": target.name, "at": at, "stream": true});
            found.push(json!({"range": range, "data": data}));
        }
        // A program's memories are those of its kernels, which have lenses of their own.
        if matches!(item.kind, ItemKind::Program(_)) {
            continue;
        }
        for other in Target::all().iter().filter(|t| t.name != target.name && t.has_units() == target.has_units()) {
            let data = json!({"uri": context.uri, "kernel": name.as_str(), "target": other.name, "at": at});
            found.push(json!({"range": range, "data": data}));
        }
    }
    result(found)
}

/// The map of a kernel on the chosen target.
fn own<'a>(context: Context<'a>, name: &Ident) -> Option<&'a MemoryMap> {
    context.analysis.maps.iter().find(|m| m.span == name.span)
}

/// What a kernel takes, or why nothing is known.
fn state<'d>(
    map: Option<&MemoryMap>,
    cost: Option<&BlockCost>,
    errors: impl Iterator<Item = &'d Diagnostic>,
    program: bool,
) -> String {
    let errors: Vec<&Diagnostic> = errors.collect();
    let space = |d: &&Diagnostic| ["E04", "SA-035"].iter().any(|of| d.code.as_str().starts_with(of));
    match map {
        _ if errors.iter().any(space) => "does not fit".into(),
        _ if !errors.is_empty() => "has errors".into(),
        Some(map) => {
            let cost = cost.filter(|c| !c.is_empty()).map(|c| format!("; {}", cycles(c)));
            summary(map) + &cost.unwrap_or_default()
        }
        // A program's memories are those of its launches.
        None if program => "memory map".into(),
        None => "not placed".into(),
    }
}

/// `UB 8 %, L0A 50 %`
fn summary(map: &MemoryMap) -> String {
    let share = |used: u64, all: u64| (100 * used).div_ceil(all.max(1));
    let all = map.memories.iter().map(|m| format!("{} {} %", m.name, share(m.used, m.capacity)));
    let all: Vec<String> = all.collect();
    if all.is_empty() { "no tiles".into() } else { all.join(", ") }
}

/// `V 512 cycles a block, MTE2 310 cycles a turn of its loop`: the pipes that are at work longest. Of several loops
/// whose turns only the launch knows the one is named that costs most.
fn cycles(cost: &BlockCost) -> String {
    let share = |lanes: &Lanes| busiest(lanes).map(|(pipe, cycles)| (cycles, format!("{pipe} {cycles} cycles")));
    let once = share(&cost.once).map(|(_, text)| format!("{text} a block"));
    let turns = cost.turns.iter().filter_map(|(_, lanes)| share(lanes)).max();
    let turns = turns.map(|(_, text)| format!("{text} a turn of its loop"));
    once.into_iter().chain(turns).collect::<Vec<_>>().join(", ")
}

#[derive(Deserialize)]
struct Data {
    uri: Uri,
    kernel: String,
    target: String,
    at: Value,
    /// The command stream and its cost, and not the memories.
    #[serde(default)]
    stream: bool,
}

/// `codeLens/resolve`: the memories on another target, when the lens is to be seen.
pub fn resolve(world: &mut World, params: Value) -> Result<Reply, Failure> {
    let mut lens = params;
    let data: Data = read(lens.get("data").cloned().unwrap_or_default())?;
    let target = Target::builtin(&data.target).map_err(|d| Failure::new(Failure::INVALID_PARAMS, d.message.clone()))?;
    let text = world.opened(&data.uri)?.document.text.clone();
    let settings = Settings { target: Some(target.name.to_string()), ..world.settings.of(&path(&data.uri)) };
    let mut session = session(&settings, &world.texts());
    let unit = session.load_text(&path(&data.uri), text);
    let entries = unit.entries();
    let entry = entries.iter().find(|e| e.item.name.name == data.kernel.as_str());
    if data.stream {
        let cost = entry.and_then(|entry| views::simulated(&mut session, &unit, entry));
        let title = cost.map_or("show stream".to_owned(), |cost| format!("show stream: {cost}"));
        lens["command"] = json!({"title": title, "command": "ptoc.showPim", "arguments": [data.at]});
        return result(lens);
    }
    let checked = entry.map(|e| check_entry(&mut session, &unit, e));
    let found = if let Some(Checked::Whole(found)) = checked { found } else { Whole::default() };
    let errors = session.diagnostics.iter().filter(|d| d.is_error());
    let title = state(found.maps.first(), found.costs.first(), errors, entry.is_some_and(|e| e.program));
    let title = format!("{}: {title}", target.name);
    lens["command"] = json!({"title": title, "command": "ptoc.showMemoryMap", "arguments": [data.at]});
    result(lens)
}
