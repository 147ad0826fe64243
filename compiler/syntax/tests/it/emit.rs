//! What `ptoc emit` shows of tokens and trees.

use ptoc_diagnostics::FileId;
use ptoc_syntax::{parse, parse_expr, print, tokens};

use super::programs::programs;

const TEXT: &str = "\
//! A file.

use std::max;

const N: u32 = 0xFF;

/// Doubles.
#[place(manual, \"why\")]
kernel k<const B: layout = (2, 4):(4, 1) tune [1, 2], type T = f16, fn act = relu>
        (a: in T[N, M] at rows over unit, s: f32 = 1.5, c: out T[N])
    where N > 1, M >= 2
    ensures c[i] == sum<k>(a[i, k])
{
    grid (i in tiles(N, 16), j in 0..3) raster(along = N) on (4, 2):(1@x, 2@y);
    let x, y = tile Vec<f32, i, j>[2] at [0, 1];
    let t: f32 = if s < 1.0 { -s } else if s == 2.0 { !s } else { s };
    var n = u32(0);
    let (p, q) = (x.0.1, y.tile(_, <_, 4:1>));
    n += 1;  x[0] = 2.0;
    pipeline(stages = 2) for k in tiles(N, 4) { break; }
    #[unroll] for k in [1, 2] { continue; }
    while n < 3 && true || false { n <<= 1; }
    if n == 1 { return; }
    let z = tensor f32[conv<g = Vec<f16, 2>>(n >> 1)] at rows over unit fill 0;
}

fn relu(x: f32) -> f32 { max(x, 0.0) }
atom A { shape = (16, 8); }
program main(a: in f32[N]) { k(a); }
";

#[test]
fn tree() {
    let parsed = parse(FileId(0), TEXT);
    assert_eq!(parsed.diagnostics, []);
    insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false }, {
        insta::assert_snapshot!("tree", print::ast(&parsed.file, false));
    });
    assert!(print::ast(&parsed.file, true).contains("let x, y  @"));
}

#[test]
fn token_list() {
    let text = "let x = conv<g = Vec<f16, 2>>(n >> 1) < 3 >= y; // why\nf(<_, 8:1>, a.tile.0.1, 1.5e3, \"s\");";
    let list = tokens(FileId(0), text);
    insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false }, {
        insta::assert_snapshot!("tokens", print::tokens(text, &list));
    });
}

#[test]
fn tokens_cover_the_text() {
    for (name, text) in programs() {
        let mut last = 0;
        for (_, span) in tokens(FileId(0), &text) {
            let gap = &text[last..span.start as usize];
            assert!(gap.chars().all(char::is_whitespace), "{name}: {gap:?}");
            last = span.end as usize;
        }
        assert_eq!(text[last..].trim(), "", "{name}");
    }
}

#[test]
fn expressions() {
    let show = |text: &str| {
        let (expr, diagnostics) = parse_expr(FileId(0), text);
        let errors: Vec<_> = diagnostics.iter().map(|d| format!("{} {}\n", d.code, d.message)).collect();
        format!("{text}\n{}{}", print::expr(&expr, false), errors.concat())
    };
    let cases = [
        "zipped_divide((128,64):(1,128),<32:1,16:1>)",
        "(1@0,1@1@0)",
        "(4)",
        "(4,)",
        "64",
        "bf16",
        "1 +",
        "1 2",
        "f(1 +, g())",
        "",
    ];
    let all: Vec<String> = cases.iter().map(|c| show(c)).collect();
    insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false }, {
        insta::assert_snapshot!("parse_expr", all.join("\n"));
    });
}

/// A token that the grammar does not declare would end a parse with an error that no rule explains.
#[test]
fn every_token_is_declared_in_the_grammar() {
    let (tokens, grammar) = (include_str!("../../src/token.rs"), include_str!("../../src/grammar.lalrpop"));
    let body = tokens.split("pub enum Tok {").nth(1).and_then(|t| t.split("\n}").next()).expect("the enum");
    let variants = body.lines().filter_map(|l| l.trim().strip_suffix(',')).filter(|v| !v.starts_with(['#', '/']));
    let mut count = 0;
    for variant in variants.filter(|v| !matches!(*v, "Comment" | "DocComment" | "FileDoc" | "BlockComment")) {
        assert!(grammar.contains(&format!("Terminal::Tok(Tok::{variant}),")), "{variant}");
        count += 1;
    }
    assert!(count > 80, "{count}");
}
