//! The shape of a target file, and every mistake in it: what is wrong is taken out of the document, or replaced by
//! something harmless, and what is left is read again. So a file with several misspelt keys is mended at once.

use super::parse::first_line;
use super::raw::RawTarget;
use serde::Deserialize;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Mistakes that are told of one file, at most.
const MOST: usize = 64;

/// A mistake and where it is.
pub(super) type ShapeMistake = (Range<usize>, String);

/// What the document says without its mistakes, if that is a target, and the mistakes.
pub(super) fn read(mut document: Spanned<DeTable<'_>>) -> (Option<RawTarget>, Vec<ShapeMistake>) {
    let mut mistakes: Vec<ShapeMistake> = Vec::new();
    while mistakes.len() < MOST {
        let e = match RawTarget::deserialize(toml::Deserializer::from(document.clone())) {
            Ok(raw) => return (Some(raw), mistakes),
            Err(e) => e,
        };
        let (at, message) = (e.span().unwrap_or(0..0), first_line(e.message()));
        // What is missing may be what another mistake meant.
        let missing = message.starts_with("missing field");
        if missing && !mistakes.is_empty() {
            break;
        }
        let instead = stand_in(&message);
        mistakes.push((at.clone(), message));
        if missing || !mend(document.get_mut(), &at, instead) {
            break;
        }
    }
    (None, mistakes)
}

/// A value of the type that was expected, if it is a plain one.
fn stand_in(message: &str) -> Option<&'static str> {
    let (_, expected) = message.split_once(", expected ")?;
    match expected {
        "i64" => Some("1"),
        "a string" => Some("'x'"),
        "a sequence" => Some("[]"),
        "a boolean" => Some("true"),
        _ => None,
    }
}

fn value(text: Option<&'static str>, at: &Range<usize>) -> Option<Spanned<DeValue<'static>>> {
    Some(Spanned::new(at.clone(), DeValue::parse(text?).ok()?.into_inner()))
}

/// Takes the key at a place out of the table, or puts `instead` for the value there; whether there was one.
fn mend(table: &mut DeTable<'_>, at: &Range<usize>, instead: Option<&'static str>) -> bool {
    let here = table.iter().find(|(key, value)| key.span() == *at || value.span() == *at);
    if let Some((key, old)) = here {
        let (key, known) = (key.get_ref().to_string(), old.span() == *at);
        let new = value(instead, at).filter(|_| known);
        match (new, table.get_mut(&*key)) {
            (Some(new), Some(old)) => *old = new,
            _ => drop(table.remove(&*key)),
        }
        return true;
    }
    table.iter_mut().any(|(_, value)| within(value, at, instead))
}

fn within(old: &mut Spanned<DeValue<'_>>, at: &Range<usize>, instead: Option<&'static str>) -> bool {
    match old.get_mut() {
        DeValue::Table(table) => mend(table, at, instead),
        DeValue::Array(items) => items.iter_mut().any(|item| match value(instead, at).filter(|_| item.span() == *at) {
            Some(new) => {
                *item = new;
                true
            }
            None => within(item, at, instead),
        }),
        _ => false,
    }
}
