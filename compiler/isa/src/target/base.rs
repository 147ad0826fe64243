//! A target file on the base of another: what it does not say is what the base says.
//!
//! Tables are merged key by key; a value or a list of the file takes the place of the base's. Spans of the base lie
//! behind the end of the file's text, so that a mistake between the two is reported at `base`.

use super::builtin;
use ptoc_diagnostics::{Diagnostic, FileId, Span, codes};
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

/// A document with its base.
pub(super) struct Based<'t> {
    pub(super) document: Spanned<DeTable<'t>>,
    /// Where the file names its base.
    pub(super) base: Option<Range<usize>>,
}

/// What a base never gives: each file says it of itself.
const OWN: [&str; 2] = ["name", "description"];
/// Stores of HBM-PIM's units, which units of another kind do not have.
const OF_UNIT: [&str; 2] = ["GrfA", "GrfB"];
/// Counts of `[device]` that follow from its DRAM.
const OF_DRAM: [&str; 7] = ["preset", "pseudo_channels", "bank_groups", "banks", "rows", "bursts", "burst_bytes"];

/// The document of a target file.
pub(super) fn read(file: FileId, text: &str) -> Result<Based<'_>, Box<Diagnostic>> {
    let syntax = |e: toml::de::Error| {
        let span = super::parse::to_span(file, e.span().unwrap_or(0..0));
        Box::new(Diagnostic::error(codes::TARGET_SYNTAX, span, super::parse::first_line(e.message())))
    };
    let document = DeTable::parse(text).map_err(syntax)?;
    let Some(name) = document.get_ref().get("base") else {
        return Ok(Based { document, base: None });
    };
    let at = name.span();
    let DeValue::String(name) = name.get_ref() else {
        return Err(wrong(file, at, "`base` is the name of a target".into()));
    };
    let Some(base) = builtin::base(name) else {
        let names: Vec<String> = builtin::bases().map(|n| format!("`{n}`")).collect();
        let message = format!("`{name}` is no base: those there are {}", crate::text::list(names));
        return Err(wrong(file, at, message));
    };
    if let Some((family, _)) = document.get_ref().iter().find(|(key, _)| key.get_ref() == "family") {
        return Err(wrong(file, family.span(), "the family is that of the base: leave it out".into()));
    }
    let base = shifted(DeTable::parse(base).map_err(syntax)?.into_inner(), text.len() + 1);
    let (span, own) = (document.span(), document.into_inner());
    let document = Spanned::new(span, on_base(own, base));
    Ok(Based { document, base: Some(at) })
}

fn wrong(file: FileId, at: Range<usize>, message: String) -> Box<Diagnostic> {
    let span: Span = super::parse::to_span(file, at);
    Box::new(Diagnostic::error(codes::TARGET_VALUE, span, message))
}

/// The table `name`, if it is one.
fn table<'d, 't>(document: &'d DeTable<'t>, name: &str) -> Option<&'d DeTable<'t>> {
    document.get(name)?.get_ref().as_table()
}

/// The whole document. Another DRAM has counts of its own, and another kind of unit numbers of its own.
fn on_base<'t>(own: DeTable<'t>, mut base: DeTable<'t>) -> DeTable<'t> {
    let kind = |d: &DeTable<'t>| Some(table(d, "unit")?.get("kind")?.get_ref().as_str().map(str::to_owned));
    let other_dram = table(&own, "dram").is_some() || table(&own, "device").is_some_and(|d| d.contains_key("preset"));
    let other_unit = kind(&own).is_some_and(|own| Some(own) != kind(&base));
    let dropped = OWN.into_iter().chain(other_unit.then_some("unit"));
    dropped.for_each(|key| drop(base.remove(key)));
    if other_unit
        && let Some(value) = base.get_mut("memory")
        && let DeValue::Table(memory) = value.get_mut()
    {
        let named = |key: &&str| table(&own, "memory").is_some_and(|m| m.contains_key(*key));
        OF_UNIT.into_iter().filter(|key| !named(key)).for_each(|key| drop(memory.remove(key)));
    }
    if other_dram
        && let Some(value) = base.get_mut("device")
        && let DeValue::Table(device) = value.get_mut()
    {
        OF_DRAM.into_iter().for_each(|key| drop(device.remove(key)));
    }
    merged(own, base)
}

fn merged<'t>(own: DeTable<'t>, base: DeTable<'t>) -> DeTable<'t> {
    let mut out = own;
    for (key, theirs) in base {
        let Some(value) = out.get_mut(&**key.get_ref()) else {
            out.insert(key, theirs);
            continue;
        };
        if let (DeValue::Table(ours), DeValue::Table(theirs)) = (value.get_mut(), theirs.into_inner()) {
            *ours = merged(std::mem::take(ours), theirs);
        }
    }
    out
}

fn shifted(table: DeTable<'_>, by: usize) -> DeTable<'_> {
    let moved = |span: Range<usize>| span.start + by..span.end + by;
    table
        .into_iter()
        .map(|(key, value)| (Spanned::new(moved(key.span()), key.into_inner()), shifted_value(value, by)))
        .collect()
}

fn shifted_value(value: Spanned<DeValue<'_>>, by: usize) -> Spanned<DeValue<'_>> {
    let span = value.span().start + by..value.span().end + by;
    let value = match value.into_inner() {
        DeValue::Table(t) => DeValue::Table(shifted(t, by)),
        DeValue::Array(items) => {
            let mut out = DeArray::new();
            items.into_iter().for_each(|item| out.push(shifted_value(item, by)));
            DeValue::Array(out)
        }
        other => other,
    };
    Spanned::new(span, value)
}
