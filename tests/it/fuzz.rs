//! The front end on programs that are nearly right, and on monstrous ones: no panic, no flood, no silence. What is
//! nearly right keeps the properties of the fuzz targets, too.

use crate::corpus::properties;
use proptest::prelude::*;
use ptoc_diagnostics::SourceMap;
use ptoc_tests::front::{Checked, Flags, check};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

/// Diagnostics that a changed program may have at most.
const LIMIT: usize = 50;

/// And one that consists of mistakes: the parser stops after a hundred.
const MONSTROUS: usize = 110;

/// The programs of `tests/language` and `examples`, cut into words.
static PROGRAMS: LazyLock<Vec<Vec<String>>> = LazyLock::new(|| {
    ptoc_tests::programs::files().iter().map(|p| words(&std::fs::read_to_string(p).expect("readable"))).collect()
});

/// Names, numbers, runs of spaces, comments to the end of their line, and single other characters.
fn words(text: &str) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let word = |c: char| c.is_alphanumeric() || c == '_';
        let len = match first {
            c if word(c) => rest.find(|c| !word(c)),
            c if c.is_whitespace() => rest.find(|c: char| !c.is_whitespace()),
            '/' if rest.starts_with("//") => rest.find('\n'),
            c => Some(c.len_utf8()),
        };
        let (head, tail) = rest.split_at(len.unwrap_or(rest.len()));
        out.push(head.into());
        rest = tail;
    }
    out
}

/// One change. Positions and choices are taken modulo what there is.
#[derive(Clone, Debug)]
enum Change {
    Delete(usize),
    Duplicate(usize),
    Swap(usize, usize),
    /// A word takes the place of another of the same kind.
    Replace(usize, usize),
    /// A word that is there takes the place of any other.
    Move(usize, usize),
    Number(usize, i64),
    Insert(usize, usize),
}

/// What gets inserted.
const EXTRA: &[&str] = &[
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "<",
    ">",
    ";",
    ",",
    "=",
    "==",
    "..",
    ".",
    "-",
    "*",
    "/",
    "%",
    "_",
    "0",
    "1",
    "2147483648",
    "1e30",
    "\"{x}\"",
    "if",
    "else",
    "let",
    "var",
    "for",
    "while",
    "return",
    "break",
    "grid",
    "pipeline",
    "tile",
    "tensor",
    "kernel",
    "fn",
    "program",
    "const",
    "type",
    "in",
    "out",
    "none",
    "inf",
    "true",
    "Vec",
    "Mat",
    "Left",
    "Right",
    "Acc",
    "Bias",
    "Scaling",
    "f32",
    "f16",
    "bf16",
    "i8",
    "i32",
    "u8",
    "index",
    "bool",
    "TADD",
    "TLOAD",
    "TSTORE",
    "TMOV",
    "TCVT",
    "TMATMUL",
    "TMATMUL_ACC",
    "TROWSUM",
    "TASSIGN",
    "TTRANS",
    "MGATHER",
    "exp",
    "rowmax",
    "tiles",
    "iota",
    "matmul",
    "sum",
    "select",
    "col",
    "bytes",
    "size",
    "static_assert",
    "assert",
    "print",
    "atomic_add",
    ".T",
    ".len",
    ".start",
    ".valid",
];

fn change() -> impl Strategy<Value = Change> {
    let n = || any::<prop::sample::Index>().prop_map(|i| i.index(1 << 20));
    prop_oneof![
        n().prop_map(Change::Delete),
        n().prop_map(Change::Duplicate),
        (n(), n()).prop_map(|(a, b)| Change::Swap(a, b)),
        (n(), n()).prop_map(|(a, b)| Change::Replace(a, b)),
        (n(), n()).prop_map(|(a, b)| Change::Move(a, b)),
        (n(), prop_oneof![Just(0), Just(-1), Just(1), Just(i64::MAX), Just(i64::MIN), Just(1 << 31), -4..40i64])
            .prop_map(|(a, v)| Change::Number(a, v)),
        (n(), n()).prop_map(|(a, b)| Change::Insert(a, b)),
    ]
}

fn apply(words: &mut Vec<String>, change: &Change) {
    if words.is_empty() {
        return;
    }
    let at = |k: usize| k % words.len();
    let is_number = |w: &String| w.starts_with(|c: char| c.is_ascii_digit());
    let is_name = |w: &String| w.starts_with(|c: char| c.is_alphabetic() || c == '_');
    match *change {
        Change::Delete(a) => {
            let a = at(a);
            words.remove(a);
        }
        Change::Duplicate(a) => {
            let a = at(a);
            let w = words[a].clone();
            words.insert(a, w);
        }
        Change::Swap(a, b) => {
            let (a, b) = (at(a), at(b));
            words.swap(a, b);
        }
        Change::Replace(a, b) => {
            let names: Vec<usize> = (0..words.len()).filter(|&i| is_name(&words[i])).collect();
            if let (Some(&a), Some(&b)) = (names.get(a % names.len().max(1)), names.get(b % names.len().max(1))) {
                words[a] = words[b].clone();
            }
        }
        Change::Move(a, b) => {
            let (a, b) = (at(a), at(b));
            words[a] = words[b].clone();
        }
        Change::Number(a, v) => {
            let numbers: Vec<usize> = (0..words.len()).filter(|&i| is_number(&words[i])).collect();
            if let Some(&a) = numbers.get(a % numbers.len().max(1)) {
                words[a] = v.to_string();
            }
        }
        Change::Insert(a, b) => {
            let a = at(a);
            words.insert(a, format!(" {} ", EXTRA[b % EXTRA.len()]));
        }
    }
}

/// A large stack: how deep a program may nest is the parser's to say, not this thread's.
fn on_large_stack<T: Send + 'static>(f: impl FnOnce() -> T + Send + 'static) -> T {
    std::thread::Builder::new().stack_size(16 << 20).spawn(f).expect("a thread").join().expect("no panic")
}

fn judge(text: &str, flags: &Flags, limit: usize) -> Checked {
    let began = Instant::now();
    let checked = check("fuzz.tile", text, flags, None);
    assert!(began.elapsed() < Duration::from_secs(20), "took {:?}", began.elapsed());
    assert!(checked.diagnostics.len() <= limit, "{} diagnostics", checked.diagnostics.len());
    // Rendering must cope with every span.
    let _ = checked.text();
    checked
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: ptoc_tests_budget::cases(50, 150),
        failure_persistence: None,
        max_shrink_iters: 4000,
        ..ProptestConfig::default()
    })]

    #[test]
    fn changed_programs(
        program in any::<prop::sample::Index>(),
        changes in prop::collection::vec(change(), 1..6),
        target in prop::sample::select(vec!["a2a3", "a5", "kirin9030", "kirinx90"]),
        known in any::<bool>(),
    ) {
        let mut words = PROGRAMS[program.index(PROGRAMS.len())].clone();
        changes.iter().for_each(|c| apply(&mut words, c));
        let text: String = words.concat();
        let mut flags = Flags { target: target.into(), ..Flags::default() };
        if known {
            for d in ["M", "N", "K", "S", "D", "B", "H"] {
                flags.defs.push((d.into(), "96".into()));
            }
        }
        let checked = judge(&text, &flags, LIMIT);
        // A program that does not compile says why.
        let entries = kernels(&text);
        prop_assert!(entries == 0 || checked.compiled > 0 || !checked.diagnostics.is_empty(), "refused without a \
            word:\n{text}");
    }

    #[test]
    fn changed_programs_to_ir(
        program in any::<prop::sample::Index>(),
        changes in prop::collection::vec(change(), 1..6),
    ) {
        let mut words = PROGRAMS[program.index(PROGRAMS.len())].clone();
        changes.iter().for_each(|c| apply(&mut words, c));
        let text: String = words.concat();
        on_large_stack(move || properties::source_to_ir(text.as_bytes()));
    }

    #[test]
    fn changed_programs_formatted(
        program in any::<prop::sample::Index>(),
        changes in prop::collection::vec(change(), 1..6),
    ) {
        let mut words = PROGRAMS[program.index(PROGRAMS.len())].clone();
        changes.iter().for_each(|c| apply(&mut words, c));
        let text: String = words.concat();
        on_large_stack(move || properties::format_text(text.as_bytes()));
    }
}

fn kernels(text: &str) -> usize {
    let file = SourceMap::default().add("fuzz.tile", text);
    let parsed = ptoc_syntax::parse(file, text);
    parsed.file.items.iter().filter(|i| matches!(i.kind, ptoc_syntax::ast::ItemKind::Kernel(_))).count()
}

const HEAD: &str = "kernel k(a: in f32[M, N], c: out f32[M, N]) {\n    grid (i in tiles(M, 16), j in tiles(N, 64));\n";
const TAIL: &str = "    TSTORE(c.tile(i, j), Vec(a.tile(i, j)));\n}\n";

/// A program with these statements is refused with one of these codes, in time.
fn refused(body: &str, codes: &[&str]) {
    refused_whole(format!("{HEAD}{body}\n{TAIL}"), codes);
}

fn refused_whole(text: String, codes: &[&str]) {
    let shown: String = text.chars().take(200).collect();
    let checked = on_large_stack(move || judge(&text, &Flags::default(), MONSTROUS));
    let found = checked.codes();
    assert!(codes.iter().any(|c| found.contains(c)), "{shown}\n{found:?}\nwanted one of {codes:?}");
}

#[test]
fn deep_nesting() {
    for (open, close) in [("(", ")"), ("[", "]"), ("-", ""), ("!", ""), ("{", "}"), ("exp(", ")"), ("a[", "]")] {
        let text = format!("let x = {}1{};", open.repeat(100_000), close.repeat(100_000));
        refused(&text, &["E0011", "E0001", "E0019", "E0015", "E0029"]);
        // Never closed.
        refused(&format!("let x = {};", open.repeat(100_000)), &["E0011", "E0008", "E0001", "E0015", "E0029"]);
    }
    refused(&format!("let x = 1{};", " + 1".repeat(100_000)), &["E0011"]);
    refused(&format!("let x = a{};", ".T".repeat(100_000)), &["E0011"]);
    refused(&format!("{}{}", "if true { ".repeat(100_000), "}".repeat(100_000)), &["E0011"]);
    refused(&format!("if true {{ }} {}", "else if true { }".repeat(100_000)), &["E0011"]);
}

#[test]
fn huge_numbers() {
    let digits = "9".repeat(400);
    refused(&format!("let x = tile Vec<f32, {digits}, 64>;"), &["E0006"]);
    refused(&format!("TASSIGN(Vec(a.tile(i, j)), {digits});"), &["E0006"]);
    refused(&format!("let x = {};", i128::MAX), &["E0213", "W0110"]);
    for size in
        ["2147483647", "2147483648", "4294967296", "9223372036854775807", "170141183460469231731687303715884105727"]
    {
        refused(&format!("let x = tile Vec<f32, {size}, {size}>;\n    x = 0.0;"), &["E0306", "E0603", "SA-0352"]);
        refused(&format!("let x = tile Vec<f32, 8, {size}>;\n    x = 0.0;"), &["E0306", "E0603", "SA-0352"]);
        refused(&format!("let x = tile Vec<f32, 8, 64>[{size}];\n    x[0] = 0.0;"), &["E0306", "E0401"]);
        refused(
            &format!("let x = tile Vec<f32, 8, 64>[{size}];\n    TASSIGN(x[0], 0x0);"),
            &["E0306", "E0451", "E0401"],
        );
        refused(&format!("let x = tile Vec<f32, 8, 64>;\n    TASSIGN(x, {size});"), &["SA-0353"]);
        refused(&format!("let x = tile Vec<f32, 8, 64>;\n    TASSIGN(x, -{size});"), &["SA-0353"]);
        refused(&format!("pipeline(stages = {size}) for k in tiles(N, 64) {{ print(k.start); }}"), &["E0306"]);
        refused(&format!("let x = tile Mat<i8, {size}, 32>;\n    print(bytes(x));"), &["E0306", "SA-0352", "E0603"]);
    }
    refused("let x = tile Vec<f32, 2147483640, 2147483640>;\n    x = 0.0;", &["SA-0352"]);
    refused("let x = tile Vec<i64, 2147483640, 2147483640>[2147483640];\n    x[0] = 0;", &["SA-0352", "E0306"]);
    refused("let v = 1 << 126; let w = v * 2 * 2;", &["E0303"]);
    refused("let v = 1 << 200;", &["E0303"]);
    refused("let v = 1 << (0 - 1);", &["E0303", "E0213"]);
    refused("let v = 7 % 0;", &["E0304"]);
    refused("let v = ceil_div(7, 0);", &["E0304"]);
    // No array is that large, so no launch gets here; the check itself must not mind.
    let text =
        format!("kernel k(a: in f32[{0}, {0}], c: out f32[{0}, {0}]) {{\n print(a[9, 9]); c[0, 0] = 1.0; }}", i64::MAX);
    on_large_stack(move || judge(&text, &Flags::default(), MONSTROUS));
}

#[test]
fn endless_evaluation() {
    refused("for k in tiles(N, 0) { print(k.start); }", &["E0306"]);
    refused("for k in tiles(N, 0 - 5) { print(k.start); }", &["E0306"]);
    refused_whole("fn f(x: f32) -> f32 { f(x) }\nkernel k(c: out f32[4]) { c[0] = f(1.0); }".into(), &["E0109"]);
    refused_whole(
        "fn f(x: f32) -> f32 { g(x) }\nfn g(x: f32) -> f32 { h(x) }\nfn h(x: f32) -> f32 { f(x) }\n\
         kernel k(c: out f32[4]) ensures c[i] == f(1.0) { c[0] = f(1.0); }"
            .into(),
        &["E0109"],
    );
    // Each function calls the one before it twice: 2^60 bodies.
    let mut text = String::from("fn g0(x: f32) -> f32 { x + 1.0 }\n");
    for n in 1..60 {
        text += &format!("fn g{n}(x: f32) -> f32 {{ g{0}(x) + g{0}(x) }}\n", n - 1);
    }
    text += "kernel k(c: out f32[4]) { c[0] = g59(1.0); }\n";
    refused_whole(text.clone(), &["E0305"]);
    let text = text.replace("kernel k(c: out f32[4])", "kernel k(c: out f32[4]) ensures c[i] == g59(1.0)");
    refused_whole(text, &["E0305"]);
    let list = "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]";
    let nest: String = (0..9).map(|n| format!("for x{n} in {list} {{ ")).collect();
    refused(&format!("{nest} static_assert(x0 < 10); {}", "}".repeat(9)), &["E0305"]);
    // 10^9 iterations at run time cost nothing here.
    let text = format!("{HEAD}    var s = 0;\n    for q in 0..1000000000 {{ s += q; }}\n    print(s);\n{TAIL}");
    assert_eq!(on_large_stack(move || judge(&text, &Flags::default(), MONSTROUS)).errors(), 0);
}

#[test]
fn large_files() {
    let count: usize = ptoc_tests_budget::cases(2_000, 10_000);
    let kernels: String = (0..count)
        .map(|n| {
            format!(
                "kernel k{n}(a: in f32[M, N], c: out f32[M, N]) {{ grid (i in tiles(M, 16), j in tiles(N, 64)); \
                 TSTORE(c.tile(i, j), Vec(a.tile(i, j))); }}\n"
            )
        })
        .collect();
    let checked = on_large_stack(move || check("many.tile", &kernels, &Flags::default(), None));
    assert_eq!((checked.compiled, checked.diagnostics.len()), (count, 0), "{}", checked.text());
    // A function that calls the next, 1000 deep: refused, not overflowed.
    let mut text = String::from("fn g0(x: f32) -> f32 { x }\n");
    for n in 1..1000 {
        text += &format!("fn g{n}(x: f32) -> f32 {{ g{}(x) }}\n", n - 1);
    }
    text += "kernel k(c: out f32[4]) { c[0] = g999(1.0); }\n";
    refused_whole(text, &["E0109"]);
    let statements: String = (0..3000).map(|n| format!("    let x{n} = {n} + y{n};\n")).collect();
    let text = format!("{HEAD}{statements}{TAIL}");
    let checked = on_large_stack(move || check("many.tile", &text, &Flags::default(), None));
    assert_eq!(checked.codes().iter().filter(|c| **c == "E0101").count(), 3000);
}
