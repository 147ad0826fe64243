//! What editors ask of a text: words that may stand at a place, and what a word is.

use crate::lexer::{Tok, next};
use crate::ops::{self, Count, Element, Form, Kind, OPS, Op};
use crate::types::{ELEMENTS, LOCS};
use crate::words::ENUMERATIONS;
use ptoc_isa::InstrId;
use std::ops::Range;

/// What a proposal is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Proposed {
    /// An operation.
    Operation,
    /// A type.
    Type,
    /// An attribute with its word.
    Attribute,
    /// A value that is defined before.
    Value,
    /// A word of the syntax.
    Word,
}

/// A word that may stand at a place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Proposal {
    /// The word.
    pub label: String,
    /// What it is.
    pub kind: Proposed,
    /// A line about it.
    pub detail: String,
}

/// Words of the syntax that begin lines.
const WORDS: [&str; 4] = ["module", "func.func", "return", "call"];

/// Types of the dialect, each as it is written.
const TYPES: [&str; 4] = [
    "!pto.ptr<f32>",
    "!pto.tensor_view<?x?xf32>",
    "!pto.partition_tensor_view<16x64xf32>",
    "!pto.tile_buf<vec, 16x64xf32>",
];

/// The word in front of byte `at`, and what may stand in its place.
pub fn proposals(text: &str, at: usize) -> (Range<usize>, Vec<Proposal>) {
    let part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '$' | '%' | '!' | '#');
    let before = text.get(..at).unwrap_or_default();
    let start = before.rfind(|c| !part(c)).map_or(0, |i| i + before[i..].chars().next().map_or(1, char::len_utf8));
    let word = &before[start..];
    let make = |label: String, kind, detail: String| Proposal { label, kind, detail };
    let found: Vec<Proposal> = match word.chars().next() {
        Some('%') => values(before, start).into_iter().map(|v| make(v, Proposed::Value, String::new())).collect(),
        Some('!') => TYPES.iter().map(|t| make((*t).into(), Proposed::Type, String::new())).collect(),
        Some('#') => {
            let all = ENUMERATIONS.iter().flat_map(|e| e.words.iter().map(move |w| (e, w)));
            all.map(|(e, w)| make(format!("#pto.{}<{w}>", e.name), Proposed::Attribute, e.record.into())).collect()
        }
        // Behind a colon or in angles stand types.
        _ if before[..start].trim_end().ends_with([':', '<', ',']) => {
            let elements = ELEMENTS.iter().map(|(word, d)| make((*word).into(), Proposed::Type, d.to_string()));
            let locs = LOCS.iter().map(|(word, loc)| make((*word).into(), Proposed::Type, loc.name().into()));
            let types = TYPES.iter().map(|t| make((*t).into(), Proposed::Type, String::new()));
            types.chain(elements).chain(locs).chain([make("index".into(), Proposed::Type, String::new())]).collect()
        }
        _ => {
            let words = WORDS.iter().map(|w| make((*w).into(), Proposed::Word, String::new()));
            OPS.iter().map(|op| make(op.name.into(), Proposed::Operation, form(op))).chain(words).collect()
        }
    };
    (start..at, found.into_iter().filter(|p| p.label.starts_with(word)).collect())
}

/// Values whose names stand in front of a place in its function, each once.
fn values(before: &str, end: usize) -> Vec<String> {
    let mut at = before.rfind("func.func").unwrap_or(0);
    let mut found: Vec<String> = Vec::new();
    loop {
        let token = next(before, at);
        if token.tok == Tok::End || token.start >= end {
            return found;
        }
        let word = &before[token.start..token.end];
        if token.tok == Tok::Value && !found.iter().any(|f| f == word) {
            found.push(word.to_string());
        }
        at = token.end;
    }
}

/// What an operation's name, or a type's or an attribute's, at byte `at` says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct About {
    /// The word.
    pub range: Range<usize>,
    /// How it is written, and its definition.
    pub text: String,
    /// The instruction that it is.
    pub instr: Option<InstrId>,
}

/// What the word at byte `at` is.
pub fn about(text: &str, at: usize) -> Option<About> {
    let line = text.get(..at)?.rfind('\n').map_or(0, |i| i + 1);
    let mut token = next(text, line);
    while token.end < at && token.tok != Tok::End {
        token = next(text, token.end);
    }
    let range = token.start..token.end;
    let word = text.get(range.clone()).filter(|_| token.start <= at)?;
    match token.tok {
        Tok::Name => {
            let op = ops::lookup(word).or_else(|| ops::basic(word))?;
            let of = if op.name.starts_with("pto.") { "PTOAS's dialect" } else { "MLIR" };
            let text = format!("```pto\n{} {}\n```\n\n`{}` of {of}.\n", op.name, form(op), op.definition);
            Some(About { range, text, instr: op.instr })
        }
        Tok::Attr => {
            let of = crate::words::enumeration(word.strip_prefix("#pto.")?)?;
            let text = format!("`{}`: {}\n", of.record, of.words.join(", "));
            Some(About { range, text, instr: None })
        }
        _ => None,
    }
}

/// How an operation is written: `ins(%src0, %src1 : T, T) outs(%dst : T)`.
fn form(op: &Op) -> String {
    match &op.form {
        Form::Dps(dps) => {
            let list = |slots: &[ops::Slot]| {
                let names = slots.iter().map(|s| match s.count {
                    Count::One => format!("%{}", s.name),
                    Count::Optional => format!("[%{}]", s.name),
                    Count::Many => format!("%{}..", s.name),
                });
                let types = slots.iter().filter(|s| s.count == Count::One).map(|s| match s.kind {
                    Kind::Index => "index",
                    _ => "T",
                });
                format!("{} : {}", names.collect::<Vec<_>>().join(", "), types.collect::<Vec<_>>().join(", "))
            };
            let attrs: Vec<String> = dps.attrs.iter().map(|a| format!("{a} = ..")).collect();
            let attrs = if attrs.is_empty() { String::new() } else { format!(" {{{}}}", attrs.join(", ")) };
            match dps.inside {
                true => format!("ins({}{attrs}) outs({})", list(&dps.ins), list(&dps.outs)),
                false => format!("ins({}) outs({}){attrs}", list(&dps.ins), list(&dps.outs)),
            }
        }
        Form::Pattern(elements) => pattern(elements),
        Form::Code => match op.name {
            "arith.constant" => "16 : index".into(),
            "scf.for" => "%i = %lower to %upper step %step { .. }".into(),
            "scf.if" => "%condition { .. } else { .. }".into(),
            "scf.while" => "(%a = %init) : (T) -> T { .. } do { .. }".into(),
            _ => "@function(%argument) : (T) -> T".into(),
        },
    }
}

fn pattern(elements: &[Element]) -> String {
    let mut out = String::new();
    for element in elements {
        let word = match element {
            Element::Literal(word) => (*word).to_string(),
            Element::Operand(name, Count::Many) => format!("%{name}.."),
            Element::Operand(name, _) => format!("%{name}"),
            Element::Attr(name) => format!("<{name}>"),
            Element::Type(_) => "T".into(),
            Element::Dict => continue,
            Element::Group(inner) => format!("[{}]", pattern(inner)),
            Element::Region => "{ .. }".into(),
        };
        let tight = out.is_empty() || out.ends_with(['(', '[', '{']) || matches!(word.as_str(), "," | ")" | "]" | "}");
        out.push_str(if tight { "" } else { " " });
        out.push_str(&word);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(text: &str) -> Vec<String> {
        let (range, found) = proposals(text, text.len());
        assert!(found.iter().all(|p| p.label.starts_with(&text[range.clone()])));
        found.into_iter().map(|p| p.label).collect()
    }

    #[test]
    fn words_that_may_stand_there() {
        assert!(labels("    pto.tadd").contains(&"pto.taddsc".to_string()));
        assert_eq!(labels("func.func @f(%x: !pto.ptr<f32>, %yes: index) {\n  pto.tabs ins(%"), ["%x", "%yes"]);
        assert_eq!(labels("  %t = pto.alloc_tile : !pto.tile"), ["!pto.tile_buf<vec, 16x64xf32>"]);
        assert_eq!(labels("{layout = #pto.layout"), ["#pto.layout<nd>", "#pto.layout<dn>", "#pto.layout<nz>"]);
        assert!(labels("%c = arith.constant 1 : i").contains(&"index".to_string()));
        assert_eq!(labels("é"), labels(""));
        assert_eq!(labels("unknown"), [""; 0]);
    }

    #[test]
    fn what_a_word_is() {
        let text = "  pto.tadd ins(%a, %b : T, T)";
        let about = about(text, 6).unwrap();
        assert_eq!(&text[about.range.clone()], "pto.tadd");
        assert!(about.text.contains("ins(%src0, %src1 : T, T) outs(%dst : T)") && about.instr.is_some(), "{about:?}");
        for at in [0, 1, 20, 500] {
            assert_eq!(super::about(text, at), None, "{at}");
        }
    }
}
