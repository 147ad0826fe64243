//! What ptoc prints as PTO text has no word that PTOAS has not: operations, operands, attributes, enumerations and
//! types are held against `tests/golden/ptoas_words.txt`, which `tests/scripts/ptoas_words.py` takes from PTOAS's
//! definitions with the place of each. The text is taken apart here, and not by ptoc's parser.

use crate::pto::{kernels_of, others, written};
use ptoc_driver::stages::Level;
use ptoc_pto::ops::{Element, Form, OPS};
use ptoc_pto::words::ENUMERATIONS;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// A row: where PTOAS has it, and the words that go with it.
#[derive(Default)]
struct Row {
    place: &'static str,
    words: BTreeSet<&'static str>,
}

type Rows = BTreeMap<&'static str, Row>;

#[derive(Default)]
struct Table {
    ops: Rows,
    enums: Rows,
    types: Rows,
    words: Rows,
}

fn table() -> Table {
    let mut table = Table::default();
    for line in include_str!("../golden/ptoas_words.txt").lines().filter(|l| !l.starts_with('#') && !l.is_empty()) {
        let mut parts = line.split(' ');
        let mut next = || parts.next().expect("a kind, a name and a place");
        let (kind, name, place) = (next(), next(), next());
        let rows = match kind {
            "op" => &mut table.ops,
            "enum" => &mut table.enums,
            "type" => &mut table.types,
            _ => &mut table.words,
        };
        assert!(place.contains(':'), "{line}");
        let row = rows.entry(name).or_default();
        row.place = place;
        row.words.extend(parts);
    }
    table
}

/// Words of MLIR's own syntax, beside operations and types.
const MLIR: [&str; 18] = [
    "bb0",
    "module",
    "attributes",
    "private",
    "public",
    "to",
    "step",
    "iter_args",
    "else",
    "do",
    "ins",
    "outs",
    "true",
    "false",
    "value",
    "shape",
    "strides",
    "offsets",
];

/// Element types of MLIR and its predicates for numbers.
fn is_builtin(word: &str) -> bool {
    const ELEMENTS: [&str; 9] = ["index", "f16", "bf16", "f32", "f64", "f8E4M3FN", "f8E5M2", "f8E4M3", "loc"];
    const PREDICATES: [&str; 17] = [
        "eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge", "oeq", "une", "olt", "ole", "ogt", "oge",
        "one",
    ];
    let integer = ["ui", "si", "i"].iter().find_map(|s| word.strip_prefix(s)).is_some_and(|n| n.parse::<u32>().is_ok());
    integer || ELEMENTS.contains(&word) || PREDICATES.contains(&word)
}

/// Names, numbers and marks of a line.
fn tokens(line: &str) -> Vec<String> {
    let part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '%' | '@' | '!' | '#' | '$');
    let mut found: Vec<String> = Vec::new();
    let mut open = false;
    let mut quoted = false;
    for c in line.chars() {
        if c == '"' {
            quoted = !quoted;
        } else if quoted || c.is_whitespace() {
            open = false;
        } else if part(c) && open {
            found.last_mut().expect("it is open").push(c);
        } else {
            found.push(c.to_string());
            open = part(c);
        }
    }
    found
}

/// Extents in front of an element type: `16x64xf32`, `?x?xf32`, `?x8`.
fn element_of(word: &str) -> &str {
    let rest = word.trim_start_matches(|c: char| c.is_ascii_digit());
    match rest.strip_prefix('x') {
        Some(rest) => element_of(rest),
        None => rest,
    }
}

impl Table {
    /// What a line has that PTOAS has not.
    fn unknown(&self, line: &str, seen: &mut BTreeSet<&'static str>) -> Option<String> {
        let line = line.split(" loc(").next().unwrap_or_default();
        let words = tokens(line);
        let mut op: Option<&Row> = None;
        for (n, word) in words.iter().enumerate() {
            let before = n.checked_sub(1).map_or("", |n| &words[n]);
            let number = word.starts_with(|c: char| c.is_ascii_digit());
            let element = element_of(word);
            let fine = match word.as_str() {
                w if w.starts_with(['%', '@']) || !w.contains(|c: char| c.is_alphanumeric()) => true,
                w if w.starts_with("!pto.") => self.types.contains_key(&w[5..]),
                // `#pto.round_mode<RINT>`, `#pto<cmp gt>`: the word is one of that enumeration.
                w if w.starts_with("#pto.") => {
                    self.enums.get(&w[5..]).is_some_and(|e| e.words.contains(words[n + 2].as_str()))
                }
                "#pto" => {
                    self.enums.get(words[n + 2].as_str()).is_some_and(|e| e.words.contains(words[n + 3].as_str()))
                }
                w if w.starts_with("pto.") && self.words.contains_key(w) => true,
                // An operation of `func` may stand without its dialect.
                w if op.is_none() && (w.contains('.') && !number || w == "return" || w == "call") => {
                    let whole = if w.contains('.') { w.to_owned() } else { format!("func.{w}") };
                    let row = self.ops.get_key_value(whole.as_str());
                    seen.extend(row.map(|(name, _)| *name));
                    op = row.map(|(_, row)| row);
                    op.is_some()
                }
                w if w.starts_with("0x") => w[2..].chars().all(|c| c.is_ascii_hexdigit()),
                _ if number && (element.is_empty() || is_builtin(element) || element.starts_with(['.', 'e'])) => true,
                // `?x?xf32`, of which the marks are apart.
                w if before == "?" && w.starts_with('x') => {
                    element_of(&w[1..]).is_empty() || is_builtin(element_of(&w[1..]))
                }
                w => {
                    is_builtin(w)
                        || MLIR.contains(&w)
                        || op.is_some_and(|row| row.words.contains(w))
                        || self.types["tile_buf"].words.contains(w)
                        || self.enums.values().any(|e| e.words.contains(w) && ["<", "="].contains(&before))
                        // The name of an enumeration, whose word was looked at with it.
                        || (before == "<" && words[n - 2] == "#pto")
                        || (n > 2 && words[n - 3] == "#pto")
                }
            };
            if !fine {
                return Some(format!("`{word}` in `{}`", line.trim()));
            }
        }
        None
    }
}

#[test]
fn what_is_printed_has_words_of_ptoas_alone() {
    let table = table();
    let mut seen = BTreeSet::new();
    let mut unknown = Vec::new();
    let mut texts = 0;
    for (path, name, text) in kernels_of(Path::new("../examples")).into_iter().chain(others()) {
        for (target, level) in ["a2a3", "a5"].iter().flat_map(|t| [(t, Level::Automatic), (t, Level::Explicit)]) {
            let Ok(made) = written(&path, text.clone(), Some(&name), target, level) else { continue };
            texts += 1;
            unknown.extend(made.lines().filter_map(|l| table.unknown(l, &mut seen)));
        }
    }
    unknown.sort();
    unknown.dedup();
    assert!(unknown.is_empty(), "{}", unknown.join("\n"));
    assert!(texts > 200 && seen.len() > 60, "{texts} texts, {seen:?}");
}

/// The scanner tells words that PTOAS has from others.
#[test]
fn other_words_are_told() {
    let table = table();
    let mut seen = BTreeSet::new();
    let mut of = |line: &str| table.unknown(line, &mut seen);
    for line in [
        "%a = pto.subset %b[%c0, %c0] sizes [16, 16] : !pto.tile_buf<vec, 32x32xf32>",
        "pto.tcvt ins(%a{rmode = #pto<round_mode RINT>} : !pto.tile_buf<vec, 8x8xf32, valid=?x8>) outs(%b : f16)",
        "pto.set_flag[<PIPE_V>, <PIPE_S>, <EVENT_ID0>]",
        "%x = arith.constant 1.5e+00 : f32",
        "%v = pto.make_tensor_view %x, shape = [], strides = [] {layout = #pto.layout<dn>} : !pto.tensor_view<4xi8>",
    ] {
        assert_eq!(of(line), None);
    }
    for line in [
        "%a = pto.subview %b[%c0, %c0] sizes [16, 16] : !pto.tile_buf<vec, 32x32xf32>",
        "pto.tcvt ins(%a{satmode = #pto<saturation_mode ON>} : f32) outs(%b : f16)",
        "pto.tcvt ins(%a{rmode = #pto<round_mode NEAREST>} : f32) outs(%b : f16)",
        "pto.tload ins(%a : f32) outs(%b : f16) {layout = #pto.layout<nd>}",
        "pto.set_flag[<PIPE_V>, <PIPE_S>, <EVENT_ID9>]",
        "%x = arith.sqrt %y : f32",
        "%t = pto.alloc_tile : !pto.tile_buf<vec, 8x8xf32, order=row_major>",
        "%t = pto.alloc_tile : !pto.buffer<vec, 8x8xf32>",
        "%t = pto.alloc_tile : !pto.tile_buf<vec, 8x8xf12>",
    ] {
        assert!(of(line).is_some(), "{line}");
    }
}

/// What is read and no word of PTOAS's: of its later versions, or set by its passes. None is printed.
const READ_ALONE: [&str; 5] =
    ["pto.subview", "pto.tload layout", "pto.tstore layout", "pto.tcvt satmode", "memref.alloc"];

/// Words and attributes of an assembly format.
fn said(elements: &[Element], words: &mut Vec<&'static str>) {
    for element in elements {
        match element {
            Element::Literal(word) => words.extend(Some(*word).filter(|w| w.contains(|c: char| c.is_alphabetic()))),
            Element::Attr(name) => words.push(name),
            Element::Group(inner) => said(inner, words),
            _ => {}
        }
    }
}

/// The tables of ptoc-pto say what PTOAS's definitions say.
#[test]
fn tables_are_those_of_the_definitions() {
    let table = table();
    let mut beyond = Vec::new();
    for op in OPS.iter() {
        let Some(row) = table.ops.get(op.name) else {
            beyond.push(op.name.to_owned());
            continue;
        };
        let mut words = Vec::new();
        match &op.form {
            Form::Dps(dps) => words.extend(dps.attrs.iter().copied()),
            Form::Pattern(elements) if op.name.starts_with("pto.") => said(elements, &mut words),
            Form::Pattern(_) | Form::Code => {}
        }
        beyond.extend(words.into_iter().filter(|w| !row.words.contains(w)).map(|w| format!("{} {w}", op.name)));
    }
    assert_eq!(beyond, READ_ALONE);
    let dialect = table.ops.keys().filter(|name| name.starts_with("pto."));
    let missing: Vec<_> = dialect.filter(|name| OPS.iter().all(|op| op.name != **name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
    for of in ENUMERATIONS.iter() {
        let row = table.enums.get(of.name).unwrap_or_else(|| panic!("`{}` is no enumeration", of.name));
        assert!(of.words.iter().all(|w| row.words.contains(w)) && of.words.len() == row.words.len(), "{}", of.name);
        assert!(row.place.starts_with("include/PTO/IR/PTOAttrs.td:"), "{}", row.place);
    }
    assert_eq!(ENUMERATIONS.len(), table.enums.len());
}
