//! Inlay hints: types, addresses and bytes behind names, and what is left of the memories behind a kernel's brace.

use crate::context::Context;
use crate::failure::{Failure, read};
use crate::places;
use crate::reply::{Reply, result};
use crate::settings::Hints;
use crate::world::World;
use indexmap::IndexSet;
use lsp_types::{Range, TextDocumentIdentifier};
use ptoc_analysis::Fact;
use ptoc_diagnostics::Span;
use ptoc_names::index::{Definition, DefinitionKind};
use ptoc_syntax::ast::ItemKind;
use serde::Deserialize;
use serde_json::{Value, json};

/// Parameters of `textDocument/inlayHint`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Params {
    text_document: TextDocumentIdentifier,
    range: Range,
}

/// `textDocument/inlayHint`
pub fn hints(world: &mut World, params: Value) -> Result<Reply, Failure> {
    let params: Params = read(params)?;
    let context = world.known(&params.text_document.uri)?;
    let asked = context.offset(params.range.start) as u32..=context.offset(params.range.end) as u32;
    let show = context.world.settings.hints;
    let index = context.loaded().index.file(context.file());
    let mut found = Vec::new();
    for d in index.into_iter().flat_map(|f| &f.definitions).filter(|d| asked.contains(&d.span.end)) {
        let mut text = Vec::new();
        text.extend(inferred(context, d).filter(|_| show.types));
        text.extend(place(context, d, show));
        if !text.is_empty() {
            found.push(hint(context, d.span.end, &text.join(" "), true));
        }
    }
    if show.budget {
        found.extend(
            budgets(context)
                .into_iter()
                .filter(|(at, _)| asked.contains(at))
                .map(|(at, text)| hint(context, at, &text, false)),
        );
    }
    result(found)
}

fn hint(context: Context<'_>, at: u32, label: &str, typed: bool) -> Value {
    let position = context.range(Span::new(context.file(), at, at)).start;
    let mut hint = json!({"position": position, "label": label, "paddingLeft": !label.starts_with(':')});
    if typed {
        hint["kind"] = json!(1);
    }
    hint
}

/// What a name is, if nobody has written it.
fn inferred(context: Context<'_>, d: &Definition) -> Option<String> {
    let local = matches!(
        d.kind,
        DefinitionKind::Let | DefinitionKind::Variable | DefinitionKind::LoopVariable | DefinitionKind::Constant
    );
    if !local || d.ty.is_some() {
        return None;
    }
    let mut facts = context.facts(d.span);
    let fact = facts.next()?;
    let text = fact.to_string();
    // In a function that is called with several types there is none to show.
    if facts.any(|other| other.to_string() != text) {
        return None;
    }
    let same = d.value.is_some_and(|v| context.loaded().sources.slice(v) == text);
    let constant = matches!(fact, Fact::Constant(_) | Fact::Algebra(_));
    (!same).then(|| if constant { format!("= {text}") } else { format!(": {text}") })
}

/// Address and bytes of a tile.
fn place(context: Context<'_>, d: &Definition, show: Hints) -> Option<String> {
    let places = places::of(context, d);
    let place = places.first()?;
    let mut parts = Vec::new();
    let ranges = places.iter().flat_map(|p| &p.tile.ranges);
    let starts: IndexSet<String> = ranges.map(|(from, _)| format!("0x{from:x}")).collect();
    let starts: Vec<String> = starts.into_iter().collect();
    if show.addresses && !starts.is_empty() {
        parts.push(format!("@{}", starts.join(", ")));
    }
    if show.bytes {
        parts.push(format!("{} B", place.tile.bytes));
    }
    (!parts.is_empty()).then(|| parts.join(" "))
}

/// For each kernel whose tiles have their places: the byte behind its brace, and what is left.
fn budgets(context: Context<'_>) -> Vec<(u32, String)> {
    let root = context.loaded().unit.modules.root();
    let mut found = Vec::new();
    for item in &root.ast.items {
        let ItemKind::Kernel(k) = &item.kind else { continue };
        let Some(map) = context.analysis.maps.iter().find(|m| m.span == k.name.span) else { continue };
        let left = map
            .memories
            .iter()
            .filter(|m| m.capacity > 0)
            .map(|m| format!("{} {} B of {} left", m.name, m.capacity.saturating_sub(m.used), m.capacity));
        let left: Vec<String> = left.collect();
        if !left.is_empty() {
            // The brace of PTO text is not known: its hint stands behind the name.
            let pto = ptoc_driver::pto::is_pto(context.loaded().sources.name(context.file()));
            let at = if pto { k.name.span.end } else { k.body.span.start + 1 };
            found.push((at, left.join(", ")));
        }
    }
    found
}
