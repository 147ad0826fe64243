//! Random token soups and mutations of the programs: the parser never panics, its spans are spans of the text, and it
//! is deterministic.

use proptest::prelude::*;
use ptoc_diagnostics::{FileId, Span};
use ptoc_syntax::{ast, parse, parse_expr, print, tokens};

use super::programs::programs;

const PIECES: [&str; 101] = [
    "use",
    "const",
    "atom",
    "fn",
    "kernel",
    "program",
    "type",
    "where",
    "ensures",
    "in",
    "out",
    "inout",
    "at",
    "over",
    "on",
    "fill",
    "tune",
    "role",
    "let",
    "var",
    "if",
    "else",
    "for",
    "while",
    "pipeline",
    "grid",
    "return",
    "break",
    "continue",
    "tile",
    "tensor",
    "true",
    "_",
    "x",
    "f32",
    "mut",
    "and",
    "not",
    "as",
    "def",
    "0",
    "0..2",
    "1.5",
    "0x",
    "12abc",
    "\"s\"",
    "\"",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "<",
    "a<",
    ">",
    ">>",
    ">=",
    ",",
    ";",
    ":",
    "::",
    "#",
    "#[a]",
    "@",
    ".",
    "..",
    "->",
    "=",
    "+=",
    "==",
    "!=",
    "<=",
    "+",
    "-",
    "*",
    "/",
    "%",
    "&",
    "|",
    "^",
    "<<",
    "&&",
    "||",
    "!",
    ":=",
    "=>",
    "**",
    "// c\n",
    "/// d\n",
    "/*",
    "−",
    "“",
    "é",
    "\n",
    "\n    ",
    "// run: x cpu\n",
    "|v| ",
    "|a, b: f32| {",
    "(x = ",
    ", y = 1)",
];

fn check_span(text: &str, span: Span) {
    assert!(span.start <= span.end && text.get(span.range()).is_some(), "{span:?} of {text:?}");
}

/// Parses `text` in all ways.
fn check(text: &str) {
    let parsed = parse(FileId(0), text);
    for d in &parsed.diagnostics {
        check_span(text, d.span.expect("a place"));
        d.labels.iter().for_each(|l| check_span(text, l.span));
        for fix in &d.fixes {
            fix.edits.iter().for_each(|e| check_span(text, e.span));
            for (a, b) in fix.edits.iter().zip(fix.edits.iter().skip(1)) {
                assert!(a.span.end <= b.span.start || b.span.end <= a.span.start, "{fix:?} of {text:?}");
            }
        }
        assert!(
            !d.message.is_empty() && !d.message.contains('\n') && (!d.message.contains("``") || text.contains('`')),
            "{d:?} of {text:?}"
        );
    }
    // Errors of syntax and error nodes come together.
    let tree = print::ast(&parsed.file, true);
    let error_node =
        |l: &str| !l.trim_start().starts_with("doc ") && l.split("  @").next().is_some_and(|n| n.ends_with("error"));
    assert!(!parsed.diagnostics.is_empty() || !tree.lines().any(error_node), "{text:?}");
    parsed.comments.iter().for_each(|c| check_span(text, c.0));
    let last = tokens(FileId(0), text).iter().fold(0, |last, (_, span)| {
        check_span(text, *span);
        assert!(span.start >= last && span.end > span.start, "{span:?} of {text:?}");
        span.end
    });
    assert!(last as usize <= text.len());
    let again = parse(FileId(0), text);
    assert_eq!(again.diagnostics, parsed.diagnostics);
    assert_eq!(print::ast(&again.file, true), tree);
    let (e, _) = parse_expr(FileId(0), text);
    assert!(e.depth <= ast::MAX_DEPTH);
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: ptoc_tests_budget::cases(50, 200),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn token_soup(list in prop::collection::vec((0..PIECES.len(), any::<bool>()), 0..60)) {
        let space = |yes: bool| if yes { " " } else { "" };
        let text: String = list.iter().map(|(i, s)| format!("{}{}", PIECES[*i], space(*s))).collect();
        check(&text);
        check(&format!("kernel k(a: in f32[M]) {{\n    {text}\n}}\n"));
    }

    #[test]
    fn any_text(text in "\\PC{0,80}") {
        check(&text);
    }

    #[test]
    fn mutated_programs(
        which in 0..12_usize,
        edits in prop::collection::vec((any::<prop::sample::Index>(), 0..4_u8, 0..PIECES.len()), 1..4),
    ) {
        let list = programs();
        let mut text = list[which % list.len()].1.clone();
        for (at, how, piece) in edits {
            let all = tokens(FileId(0), &text);
            if all.is_empty() {
                break;
            }
            let span = all[at.index(all.len())].1;
            match how {
                0 => text.replace_range(span.range(), ""),
                1 => text.replace_range(span.range(), PIECES[piece]),
                2 => text.insert_str(span.end as usize, PIECES[piece]),
                _ => text.truncate(span.end as usize),
            }
        }
        check(&text);
    }
}

/// Deleting any one token of a program is one mistake: it gives few errors, and none of them far away.
#[test]
fn single_deletions_do_not_cascade() {
    let (mut total, mut worst, mut sum) = (0, (0, String::new()), 0);
    for (name, text) in programs() {
        let list: Vec<_> = tokens(FileId(0), &text).into_iter().filter(|t| !t.0.is_comment()).collect();
        for (_, span) in list.iter().step_by(3) {
            let mut broken = text.clone();
            broken.replace_range(span.range(), " ");
            let count = parse(FileId(0), &broken).diagnostics.len();
            total += 1;
            sum += count;
            if count > 2 && std::env::var_os("SHOW").is_some() {
                eprintln!("{count} {name}: without {:?} at {}", &text[span.range()], span.start);
            }
            if count > worst.0 {
                worst = (count, format!("{name}: without {:?} at {}", &text[span.range()], span.start));
            }
        }
    }
    assert!(worst.0 <= 3, "{worst:?}");
    assert!(sum < total + total / 10, "{sum} errors for {total} deletions");
}
