//! Hostile texts: one error, in linear time, on a small stack.

use std::time::{Duration, Instant};

use ptoc_diagnostics::FileId;
use ptoc_syntax::{parse, print, tokens};

const MANY: usize = 100_000;

/// Mistakes that are repeated without end.
#[rustfmt::skip]
const PIECES: [&str; 66] = [
    "a b ", "a < b < ", "and ", "a and b ", "/* ", "/*\n", "“", "'", "\"\n", "let ", "let x = \n", "x = = ", "((",
    "))", "}", "{", "fn ", "kernel k(", "if ", "else ", "a<b ", "a<b;\n", "#[", "# [", "f(a b", "..", ", ", "1..",
    "0x ", "'a", "::", "fn f\n x ", "fn f() \n x ", "use a\n", "const\n", "\u{a0}", "é", "<", ">", "a <",
    "// run: x\n", "/// doc\n", "tile ", "for i in 0..3 ", "=> ", "a ? b : c ", "f(a; ", "grid (i = 3, ", "x++;",
    "x--;\n", "not ", "else { } ", "(1 2) ", ".5 ", "\"\"", "\"a\" ", "/**/", "/* */ x ", "a\n", "if a\n x\n", "`",
    "f(a<b, ", "kernel k<const A ", "a\n{\n", "for i in a\n", "// run: a cpu b=\n",
];

/// Parses on a stack of 1 MiB, an eighth of what a main thread has; returns the codes that were reported.
fn codes(text: String) -> Vec<String> {
    let work = move || {
        let start = Instant::now();
        let parsed = parse(FileId(0), &text);
        let took = start.elapsed();
        // Linear: a quadratic algorithm would take minutes.
        let limit = Duration::from_secs(if cfg!(debug_assertions) { 60 } else { 2 });
        assert!(took < limit, "{took:?} for {:?}", text.get(..60));
        if std::env::var_os("SHOW").is_some() {
            eprintln!("{took:?} for {:?}", text.get(..60));
        }
        let _ = print::ast(&parsed.file, true);
        let _ = tokens(FileId(0), &text);
        parsed.diagnostics.iter().map(|d| d.code.to_string()).collect()
    };
    std::thread::Builder::new().stack_size(1 << 20).spawn(work).expect("a thread").join().expect("no overflow")
}

fn body(text: &str) -> String {
    format!("kernel k() {{\n    {text}\n}}\nconst AFTER = 1;\n")
}

#[test]
fn nested_parentheses() {
    let (open, close) = ("(".repeat(MANY), ")".repeat(MANY));
    assert_eq!(codes(body(&format!("let x = {open}1{close};"))), ["E0011"]);
    assert_eq!(codes(body(&format!("let x = {open}1;"))), ["E0011"]);
    assert_eq!(codes(open), ["E0011"]);
    assert_eq!(codes("[(".repeat(MANY)), ["E0011"]);
    assert_eq!(codes(body(&"if a { ".repeat(MANY))), ["E0011"]);
    assert_eq!(codes(body(&format!("let x = {}1{};", "a<".repeat(MANY), ">".repeat(MANY)))), ["E0011"]);
}

#[test]
fn long_chains() {
    assert_eq!(codes(body(&format!("let x = {}1;", "-".repeat(MANY)))), ["E0011"]);
    assert_eq!(codes(body(&format!("let x = {}1;", "- ! ".repeat(MANY)))), ["E0011"]);
    assert_eq!(codes(body(&format!("let x = {}a;", "a + ".repeat(MANY)))), ["E0011"]);
    assert_eq!(codes(body(&format!("let x = a{};", ".b".repeat(MANY)))), ["E0011"]);
    assert_eq!(codes(body(&format!("let x = a{};", "(1)".repeat(MANY)))), ["E0011"]);
    let elses = "else if b { f(b); } ".repeat(MANY);
    assert_eq!(codes(body(&format!("if a {{ }} {elses}"))), ["E0011"]);
}

#[test]
fn long_lists() {
    let none: [&str; 0] = [];
    assert_eq!(codes(body(&format!("f({});", "1, ".repeat(MANY)))), none);
    assert_eq!(codes(body(&"f(1); ".repeat(MANY))), none);
    assert_eq!(codes("fn f() { 1 }\n".repeat(MANY / 4)), none);
    assert_eq!(codes(body(&";".repeat(MANY))), none);
}

#[test]
fn large_numbers() {
    assert_eq!(codes(body(&format!("let x = {};", "9".repeat(400)))), ["E0006"]);
    assert_eq!(codes(body(&format!("let x = 0x{};", "f".repeat(400)))), ["E0006"]);
    assert_eq!(codes(body(&format!("let x = 0x{}1;", "0".repeat(400)))), [""; 0]);
}

#[test]
fn garbage() {
    let mut state = 0x9E37_79B9_u32;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state
    };
    let bytes: Vec<u8> = (0..1 << 20).map(|_| (next() >> 11) as u8).collect();
    let count = codes(String::from_utf8_lossy(&bytes).into_owned()).len();
    assert!((1..=301).contains(&count), "{count}");
    // Printable garbage, in and outside of a body.
    let ascii: String = (0..1 << 20).map(|_| char::from(32 + (next() >> 9) as u8 % 95)).collect();
    let count = codes(ascii.clone()).len();
    assert!((1..=401).contains(&count), "{count}");
    assert!(!codes(body(&ascii)).is_empty());
}

#[test]
fn repeated_mistakes() {
    for piece in PIECES {
        // The optimised build proves that it is linear; the other one that nothing overflows.
        let many = if cfg!(debug_assertions) { MANY / 50 } else { MANY };
        let _ = codes(piece.repeat(many));
        let _ = codes(body(&piece.repeat(many)));
    }
}
