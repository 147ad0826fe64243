//! Texts that nobody writes: no panic, and what is wrong has a place inside the text.

use crate::texts;
use proptest::prelude::*;
use ptoc_diagnostics::{Diagnostic, FileId};
use ptoc_pto::{format, parse, print, translate};

fn all_of(text: &str) {
    let (_, found) = translate(FileId(0), text, &|_| false, &[]);
    let inside = |d: &Diagnostic| d.span.is_none_or(|s| text.get(s.range()).is_some());
    assert!(found.iter().all(inside), "{found:?}");
    let parsed = parse(FileId(0), text);
    if parsed.diagnostics.is_empty() {
        let printed = print(&parsed.module);
        let again = parse(FileId(0), &printed);
        assert!(again.diagnostics.is_empty(), "{:?}\n{printed}", again.diagnostics);
        assert_eq!(print(&again.module), printed);
    }
    let formatted = format::format(text);
    let squeezed = |s: &str| s.split_whitespace().collect::<String>();
    assert_eq!(squeezed(&formatted), squeezed(text.strip_prefix('\u{feff}').unwrap_or(text)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ptoc_tests_budget::cases::<u32>(100, 20_000)))]

    #[test]
    fn changed_texts(
        which in 0..texts::all().len(),
        edits in prop::collection::vec((any::<u32>(), any::<u32>(), 0..8u8), 1..6),
    ) {
        let (_, text) = texts::all()[which];
        let mut text: Vec<char> = text.chars().collect();
        for (at, from, what) in edits {
            let (at, from) = (at as usize % (text.len() + 1), from as usize % (text.len() + 1));
            let (low, high) = (at.min(from), at.max(from).min(at.min(from) + 40));
            match what {
                0 => drop(text.drain(low..high)),
                1 => {
                    let copy: Vec<char> = text[low..high].to_vec();
                    text.splice(at..at, copy);
                }
                2 => text.insert(at, ['{', '}', '<', '>', '(', ')', '%', '"'][from % 8]),
                3 => text.insert(at, ['é', '\0', '\n', '9', '-', '#', '!', '?'][from % 8]),
                4 => text.truncate(at),
                _ => text.splice(low..high, "999999999999999999999".chars()).for_each(drop),
            }
        }
        all_of(&text.into_iter().collect::<String>());
    }

    #[test]
    fn any_text(text in "(?s).{0,200}") {
        all_of(&text);
    }
}

#[test]
fn nesting_is_bounded() {
    for (open, close) in [("scf.if %c {\n", "}\n"), ("module {\n", "}\n"), ("%x = arith.constant [", "]")] {
        let body = format!("{}{}", open.repeat(5_000), close.repeat(5_000));
        let text = format!("func.func @f(%c: i1) {{\n{body}return\n}}\n");
        let found = parse(FileId(0), &text).diagnostics.len();
        assert!((1..=2).contains(&found), "{found}");
        all_of(&text);
        all_of(&body);
    }
}

/// What the reader says of a text.
fn said(text: &str) -> Vec<String> {
    let (_, found) = translate(FileId(0), text, &|_| false, &[]);
    found.iter().map(|d| format!("{} {}", d.code, d.message)).collect()
}

/// Functions of which each calls the next one so often, and what the last one does.
fn chain(functions: usize, calls: usize, last: &str) -> String {
    let mut text = String::from("module {\n");
    for n in 0..functions {
        let call = format!("    func.call @f{}() : () -> ()\n", n + 1);
        text += &format!("  func.func @f{n}() {{\n{}    return\n  }}\n", call.repeat(calls));
    }
    text + &format!("  func.func @f{functions}() {{\n{last}    return\n  }}\n}}\n")
}

/// A short text whose calls come to 2^40 operations, or to none at all, and calls that are nested without end.
#[test]
fn calls_are_bounded() {
    let none = format!("module {{\n{}}}\n", "  func.func private @f0()\n");
    assert_eq!(said(&none), [""; 0]);
    assert_eq!(said(&chain(10, 2, "")), [""; 0]);
    for text in [chain(40, 2, "    pto.barrier <PIPE_ALL>\n"), chain(40, 2, ""), chain(60, 60, "")] {
        let said = said(&text);
        assert!(!said.is_empty() && said.iter().all(|d| d.starts_with("E1404 a function of more than")), "{said:?}");
    }
    let deep = said(&chain(2_000, 1, ""));
    assert!(
        !deep.is_empty() && deep.iter().all(|d| d.starts_with("E1404 calls that are nested")),
        "{:?}",
        deep.first()
    );
}

/// A place is written again as it was, whatever its file is called.
#[test]
fn names_of_files_are_kept() {
    for name in ["a\\b.tile", "a\0b.tile", "a\\22b\\0A.tile", "\u{e9} b.tile"] {
        let text = format!("func.func @f() {{\n  return loc(\"{name}\":1:2)\n}}\n");
        assert_eq!(print(&parse(FileId(0), &text).module), text);
        all_of(&text);
    }
    let made = ptoc_pto::attr::Source::place("a\"\\\n.tile", 1, 2).to_string();
    assert_eq!(made, "loc(\"a\\22\\\\\\0A.tile\":1:2)");
}

/// An editor's mark in front of the text is no part of it.
#[test]
fn a_byte_order_mark_is_skipped() {
    for (name, text) in texts::all() {
        let marked = format!("\u{feff}{text}");
        assert!(parse(FileId(0), &marked).diagnostics.is_empty(), "{name}");
        assert_eq!(format::format(&marked), text, "{name}");
    }
}
