//! Listings of machine code: every byte is there, and each instruction says where it comes from.

use crate::make::{module, widths};
use ptoc_cpu::listing::{FunctionListing, print};
use ptoc_cpu::{Options, Vectors, compile};
use ptoc_diagnostics::{FileId, Span};
use ptoc_ir::loops::Module;

/// Two nests that share their code, lanes that stay where they are, a loop, and a check of each.
const BODY: &str = "r2: i64 = const 0 @0:1..2\nr3: i64 = const 256 @0:1..2\n\
    for l0 r4: i64 in r2..r0 step 1 @0:10..19 {\n  r5: i64 = mul r4, r3 @0:10..19\n  \
    lanes r6: i64 in r1 @0:10..19 {\n    \
    r7: f32 = load f32 t0[r5, stride 4] @0:20..29\n    r8: f32 = const 0x40490fdb @0:30..39\n    \
    r9: f32 = mul r7, r8 @0:30..39\n    r10: f32 = add r9, r7 @0:40..49\n    \
    store f32 t1[r5, stride 4], r10 @0:50..59\n  }\n}\n\
    for l1 r11: i64 in r2..r0 step 1 @0:60..69 {\n  r12: i64 = mul r11, r3 @0:60..69\n  \
    lanes r13: i64 in r1 @0:60..69 {\n    \
    r14: f32 = load f32 t1[r12, stride 4] @0:70..79\n    r15: f32 = const 0x40490fdb @0:80..89\n    \
    r16: f32 = mul r14, r15 @0:80..89\n    r17: f32 = add r16, r14 @0:90..99\n    \
    store f32 t2[r12, stride 4], r17 @0:100..109\n  }\n}\n\
    r18: i64 = const 3 @0:110..119\n\
    for l2 r19: i64 in r2..r0 step 1 @0:120..129 {\n  r20: i64 = mul r19, r3 @0:130..139\n  \
    r21: i32 = load i32 t0[r20, stride 0] @0:140..149\n  store i32 t2[r20, stride 0], r21 @0:150..159\n}\n";

fn spans(module: &Module) -> Vec<Span> {
    let text = ptoc_ir::loops::text::print(module, true);
    let found = text.split('@').skip(1).filter_map(|at| {
        let at: String = at.chars().take_while(|c| c.is_ascii_digit() || ":.".contains(*c)).collect();
        let (start, end) = at.strip_prefix("0:")?.split_once("..")?;
        Some(Span::new(FileId(0), start.parse().ok()?, end.parse().ok()?))
    });
    found.collect()
}

fn listed(module: &Module, vectors: Vectors) -> Vec<FunctionListing> {
    let compile = |text: bool| compile(module, &Options { text, vectors, ..Options::default() }).unwrap();
    let (with, without) = (compile(true), compile(false));
    assert_eq!(with.code_size(), without.code_size(), "a listing changes the code");
    let functions = with.text().unwrap().code.clone();
    assert_eq!(functions.iter().map(|f| f.size).sum::<usize>(), with.code_size());
    functions
}

/// Labels that a text refers to.
fn labels(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric());
    words.filter(|w| w.strip_prefix(['L', 'C']).is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit())))
}

#[test]
fn every_byte_is_an_instruction_or_a_constant() {
    let module = module(BODY, 3);
    for vectors in widths() {
        for function in listed(&module, vectors) {
            let mut at = 0;
            for line in &function.lines {
                assert_eq!(line.offset as usize, at, "{function:?}");
                assert!(!line.text.contains("bad"), "{}", line.text);
                at += line.bytes.len();
                for label in labels(&line.text) {
                    let known = function.lines.iter().any(|l| l.label.as_deref() == Some(label));
                    assert!(known, "{label} of {}: {function:?}", line.text);
                }
            }
            assert_eq!(at, function.size);
            let data = function.lines.iter().position(|l| l.is_data()).unwrap_or(function.lines.len());
            assert!(function.lines[data..].iter().all(|l| l.is_data()), "constants stand behind the code");
            assert!(function.lines[..data].iter().any(|l| l.text.starts_with("ret")));
        }
    }
}

#[test]
fn instructions_name_their_source() {
    let module = module(BODY, 3);
    let known = spans(&module);
    for vectors in widths().filter(|v| *v != Vectors::None) {
        let functions = listed(&module, vectors);
        for line in functions.iter().flat_map(|f| &f.lines) {
            assert!(line.spans.iter().all(|span| known.contains(span)), "{line:?}");
        }
        // Two places share the nest.
        let nest = functions.iter().find(|f| f.name.starts_with("nest")).unwrap();
        for (word, starts) in [("mulps", [30, 80]), ("addps", [40, 90])] {
            let found = nest.lines.iter().find(|l| l.text.contains(word));
            let found = found.unwrap_or_else(|| panic!("{word} {nest:?}"));
            assert_eq!(found.spans.iter().map(|s| s.start).collect::<Vec<_>>(), starts, "{vectors:?} {word}");
        }
        assert!(nest.lines.iter().filter(|l| !l.is_data()).all(|l| !l.spans.is_empty()));
        let block = functions.iter().find(|f| f.name == "b").unwrap();
        assert!(block.lines.iter().any(|l| l.text.contains("nest") && l.spans.iter().any(|s| s.start == 10)));
        assert!(block.lines.iter().any(|l| l.text.contains("nest") && l.spans.iter().any(|s| s.start == 60)));
        assert!(block.lines.iter().any(|l| l.spans.iter().any(|s| s.start == 150)));
    }
}

#[test]
fn a_comment_stands_above_each_change_of_place() {
    let module = module(BODY, 3);
    let functions = listed(&module, Vectors::Bits128);
    let text = print(&functions, |span| format!("k.tile:{}", span.start));
    let lines: Vec<&str> = text.lines().collect();
    let at = lines.iter().position(|l| *l == "; k.tile:30").expect(&text);
    assert_eq!(lines[at + 1], "; k.tile:80", "{text}");
    assert!(!lines.windows(2).any(|w| w[0] == w[1] && w[0].starts_with("; k.tile")), "{text}");
}
