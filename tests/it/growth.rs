//! Work and memory of a check grow with the source. Each row doubles one dimension of a source twice and holds two
//! numbers to near-linear: the steps that are counted where something is looked up, compared, followed or drawn
//! ([`ptoc_diagnostics::worked`], with those of the budget), and the bytes that are allocated, which stand for what
//! nobody counts (tokens, trees, IR, plans). What is exponential by nature is held to its budget, and to the one
//! warning. No time is measured.

use ptoc_diagnostics::{Analysis, Budget, DEFAULT_LIMIT, Diagnostic, codes, render, worked};
use ptoc_driver::check::check_entry;
use ptoc_driver::session::Session;
use ptoc_tests_allocations::{Counting, allocated};
use std::path::Path;

/// The binary's allocator, with the bytes that each thread was given.
#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Factor for twice the size that still counts as near-linear: sorting and maps take a little more than twice.
const NEAR: f64 = 2.3;

/// What a check of a text took and found.
struct Cost {
    steps: u64,
    bytes: u64,
    found: Vec<Diagnostic>,
    /// Steps of each analysis.
    taken: Vec<u64>,
}

/// As `ptoc check`, from the text to what the terminal shows.
fn cost(text: &str, budget: Budget) -> Cost {
    let (steps, bytes) = (worked(), allocated());
    let mut session = Session::new("a2a3", &[]).expect("a2a3 is a target");
    session.budget = budget;
    let unit = session.load_text(Path::new("growth.tile"), text.to_owned());
    for entry in unit.entries() {
        check_entry(&mut session, &unit, &entry);
    }
    let found = std::mem::take(&mut session.diagnostics).into_report(DEFAULT_LIMIT);
    found.iter().for_each(|d| drop(render::terminal(d, &session.sources, false, 100)));
    let taken = Analysis::ALL.iter().map(|a| session.budget.taken(*a)).collect();
    Cost { steps: worked() - steps, bytes: allocated() - bytes, found, taken }
}

/// A kernel with two tiles around some lines.
fn kernel(name: &str, lines: &str) -> String {
    format!(
        "kernel {name}(x: in f32[M, 64], y: out f32[M, 64]) {{\n    grid (i in tiles(M, 8));\n    \
         let a, b = tile Vec<f32, i, 64>;\n    \
         TLOAD(a, x.tile(i, _));\n    TLOAD(b, x.tile(i, _));\n{lines}    TSTORE(y.tile(i, _), b);\n}}\n"
    )
}

/// A kernel whose lines are made of their numbers.
fn lines(n: usize, line: impl Fn(usize) -> String) -> String {
    kernel("k", &(0..n).map(|i| line(i) + "\n").collect::<String>())
}

/// Words that are made of their numbers, with commas between.
fn list(n: usize, word: impl Fn(usize) -> String) -> String {
    (0..n).map(word).collect::<Vec<_>>().join(", ")
}

type Source = fn(usize) -> String;

/// One dimension each, with its least size.
const ROWS: &[(&str, usize, Source)] = &[
    ("statements", 100, |n| lines(n, |_| "b += a;".into())),
    ("statements in one line", 100, |n| kernel("k", &"b += a; ".repeat(n))),
    ("windows", 60, |n| lines(n, |_| "TLOAD(a, x.tile(i, _)); b += a;".into())),
    ("branches", 40, |n| lines(n, |i| format!("if M > {i} {{ b += a; }} else {{ b -= a; }}"))),
    ("loops behind each other", 30, |n| lines(n, |_| "for q in 0..M { b += a; }".into())),
    ("unrolled iterations", 100, |n| lines(1, |_| format!("for q in [{}] {{ b += a; }}", list(n, |i| i.to_string())))),
    ("inlined calls", 40, |n| format!("fn f(x: f32) -> f32 {{ x * 2.0 + 1.0 }}\n{}", lines(n, |_| "b = f(b);".into()))),
    ("names", 150, |n| lines(n, |i| format!("let c{i} = {i};"))),
    ("one name again and again", 150, |n| lines(n, |i| format!("let c = {i};"))),
    ("variables in a loop", 40, |n| {
        let all = |f: &dyn Fn(usize) -> String| (0..n).map(f).collect::<String>();
        let made = all(&|i| format!("var v{i} = M;\n"));
        kernel("k", &format!("{made}for q in 0..M {{ {} }}\n", all(&|i| format!("v{i} += 1; "))))
    }),
    ("unknown names", 250, |n| lines(n, |i| format!("b += unknown{i};"))),
    ("errors of one instruction", 150, |n| lines(n, |_| "TADD(b, a);".into())),
    ("errors that explain warnings", 150, |n| lines(n, |i| format!("let c{i} = TADD(b, a);"))),
    ("syntax errors", 150, |n| lines(n, |_| "let = ;".into())),
    ("kernels", 25, |n| (0..n).map(|i| kernel(&format!("k{i}"), "b += a;\n")).collect()),
    ("kernels with an error each", 210, |n| (0..n).map(|i| kernel(&format!("k{i}"), "b += aa;\n")).collect()),
    ("functions", 150, |n| {
        (0..n).map(|i| format!("fn g{i}(x: f32) -> f32 {{ x * 2.0 }}\n")).collect::<String>() + &kernel("k", "")
    }),
    ("constants", 150, |n| (0..n).map(|i| format!("const C{i} = {i};\n")).collect::<String>() + &kernel("k", "")),
    ("test lines", 100, |n| "// run: k interp M=16 seed=1\n".repeat(n) + &kernel("k", "")),
    ("settings of a test line", 150, |n| {
        let all: String = (0..n).map(|i| format!(" D{i}=1")).collect();
        format!("// run: k interp{all}\n{}", kernel("k", ""))
    }),
    ("tiles of one declaration", 100, |n| {
        lines(1, |_| format!("let {} = tile Vec<f32, 1, 8>;", list(n, |i| format!("t{i}"))))
    }),
    ("tiles that live one after the other", 50, |n| {
        lines(n, |i| format!("let t{i} = tile Vec<f32, i, 64>; t{i} = a; b += t{i};"))
    }),
    ("tiles on the same bytes", 60, |n| lines(n, |i| format!("let t{i} = tile Vec<f32, 1, 8> at 0; t{i} = 0.0;"))),
    ("tensors", 100, |n| format!("kernel k({}) {{\n}}\n", list(n, |i| format!("x{i}: in f32[M]")))),
    ("scalars", 150, |n| format!("kernel k({}) {{\n}}\n", list(n, |i| format!("x{i}: i32")))),
    ("dimensions", 100, |n| format!("kernel k({}) {{\n}}\n", list(n, |i| format!("x{i}: in f32[M{i}]")))),
    ("static parameters", 150, |n| kernel(&format!("k<{}>", list(n, |i| format!("const S{i} = 1"))), "")),
    ("conditions of a launch", 30, |n| {
        kernel("k", "").replacen(" {\n", &format!("\n    where {}\n{{\n", list(n, |i| format!("M >= {i}"))), 1)
    }),
    ("bounds of dimensions by others", 60, |n| {
        let bounds = list(n, |i| format!("M{i} <= M{}", i + 1));
        format!("kernel k({})\n    where {bounds}\n{{\n}}\n", list(n + 1, |i| format!("x{i}: in f32[M{i}]")))
    }),
    ("names in a text", 100, |n| lines(1, |_| format!("print(\"{}\");", "{M} ".repeat(n)))),
    ("modules that are not there", 50, |n| {
        (0..n).map(|i| format!("use nobody{i}::item;\n")).collect::<String>() + &kernel("k", "")
    }),
    ("comments", 300, |n| "// it says nothing\n".repeat(n) + &kernel("k", "")),
    ("operands of a sum", 50, |n| lines(1, |_| format!("let c = {};", vec!["M"; n].join(" + ")))),
    ("brackets", 25, |n| lines(1, |_| format!("let c = {}1{};", "(".repeat(n), ")".repeat(n)))),
    ("events", 30, |n| {
        let turn = "    TLOAD(a, x.tile(i, _)); set(e); wait(e); TSTORE(y.tile(i, _), a); set(f); wait(f);\n";
        format!(
            "#[sync(manual)]\nkernel k(x: in f32[M, 64], y: out f32[M, 64]) {{\n    grid (i in tiles(M, 8));\n    \
             let a = tile Vec<f32, i, 64>;\n    let e = event<MTE2, MTE3>;\n    let f = event<MTE3, MTE2>;\n{}}}\n",
            turn.repeat(n)
        )
    }),
];

/// Twice the size, twice the work.
#[test]
fn twice_the_source_is_twice_the_work() {
    let mut wrong = Vec::new();
    for (name, least, source) in ROWS {
        let costs = [1, 2, 4].map(|k| cost(&source(k * least), Budget::default()));
        for (small, large) in costs.iter().zip(&costs[1..]) {
            let steps = large.steps as f64 / small.steps.max(1) as f64;
            let bytes = large.bytes as f64 / small.bytes as f64;
            println!("{name}: {steps:.2} times the steps, {bytes:.2} times the bytes");
            if steps > NEAR || bytes > NEAR {
                wrong.push(format!(
                    "{name}: {} to {} steps ({steps:.2}), {} to {} bytes ({bytes:.2}), {:?}",
                    small.steps, large.steps, small.bytes, large.bytes, large.taken
                ));
            }
        }
        let undecided = costs.iter().any(|c| c.found.iter().any(|d| d.code == codes::UNDECIDED));
        assert!(!undecided, "{name}: what is this small is decided");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Blocks inside of each other, and whether 120 of them are more than a small budget takes.
const DEEP: &[(&str, bool, Source)] = &[
    ("conditions", true, |n| {
        let open: String = (0..n).map(|i| format!("if M > {i} {{ ")).collect();
        lines(1, |_| format!("{open}b += a;{}", "}".repeat(n)))
    }),
    ("loops", true, |n| format!("kernel k(x: in f32[M]) {{\n{}{}\n}}\n", "for q in 0..2 {".repeat(n), "}".repeat(n))),
    ("loops of unknown length", true, |n| {
        let open: String = (0..n).map(|i| format!("for q{i} in 0..M {{ ")).collect();
        lines(1, |_| format!("{open}b += a;{}", "}".repeat(n)))
    }),
    ("loops with a tile each", true, |n| {
        let open: String =
            (0..n).map(|i| format!("for q{i} in 0..M {{ let t{i} = tile Vec<f32, 1, 8>; t{i} = 0.0; ")).collect();
        lines(1, |_| format!("{open}b += a;{}", "}".repeat(n)))
    }),
    ("conditional loops", false, |n| {
        let open = "while q < 3 { q += 1; b += a; ".repeat(n);
        lines(1, |_| format!("var q = 0;\n{open}{}", "}".repeat(n)))
    }),
];

/// What has no budget takes no more than the square of the depth; what has one stops, and says so once.
#[test]
fn nests_are_bounded() {
    const STEPS: u64 = 300_000;
    for (name, much, source) in DEEP {
        let costs = [15, 30, 60, 120].map(|n| cost(&source(n), Budget::of(STEPS)));
        for pair in costs.windows(2) {
            let unbounded = |c: &Cost| (c.steps - c.taken.iter().sum::<u64>()) as f64;
            let factor = unbounded(&pair[1]) / unbounded(&pair[0]);
            assert!(factor < 4.6, "{name}: {factor:.2}");
        }
        for c in &costs {
            let undecided = c.found.iter().filter(|d| d.code == codes::UNDECIDED).count();
            let spent: u64 = c.taken.iter().sum();
            assert!(spent <= STEPS + 4_000_000 && undecided <= 1, "{name}: {:?}", c.taken);
            assert!(c.bytes < 400 << 20, "{name}: {} MiB", c.bytes >> 20);
        }
        assert_eq!(costs[3].found.iter().any(|d| d.code == codes::UNDECIDED), *much, "{name}");
    }
}

/// Kernels whose elements are too many to follow, or too intertwined.
const INTERTWINED: &[(&str, Source)] = &[
    ("outputs", |n| {
        let stores: String = (0..n).map(|i| format!("x{i}[0] = 1.0;\n")).collect();
        format!("kernel k({}) {{\ngrid (i in 0..4);\n{stores}}}\n", list(n, |i| format!("x{i}: out f32[M{i}]")))
    }),
    ("large outputs", |n| {
        let stores: String = (0..n).map(|i| format!("x{i}[0, 0] = 1.0;\n")).collect();
        format!("kernel k({}) {{\n{stores}}}\n", list(n, |i| format!("x{i}: out f32[2048, 2048]")))
    }),
    ("dimensions of a grid", |n| {
        let grid = list(n, |i| format!("i{i} in 0..M"));
        format!("kernel k(y: out f32[M, 64]) {{\ngrid ({grid});\ny[i0, i1] = 1.0;\n}}\n")
    }),
    ("numbers as conditions say", |n| lines(n, |i| format!("let v{i} = if M > {i} {{ {i} }} else {{ M }};"))),
    ("roles", |n| format!("#[sync(manual)]\n{}", lines(n, |i| format!("role r{i} {{ b += a; }}")))),
    ("arguments", |n| {
        let arguments = list(n, |i| format!("s{i}: index"));
        format!("kernel k(y: out f32[M], {arguments}) {{\ngrid (i in 0..4);\ny[s0] = 1.0;\n}}\n")
    }),
    ("indices that are products", |n| {
        let store =
            |i: usize| format!("x[(i * j + {i}) % M, (i + {i}) / 3 % N] = x[(i + {}) % M, j * {i} % N];\n", 3 * i);
        let stores: String = (0..n).map(store).collect();
        format!("kernel k(x: inout f32[M, N]) {{\ngrid (i in 0..M, j in 0..N);\n{stores}}}\n")
    }),
];

/// Which elements blocks share is followed as far as a kernel's steps go, and what nobody has looked at is said once.
#[test]
fn what_blocks_share_is_bounded() {
    for (name, source) in INTERTWINED {
        let c = cost(&source(200), Budget::default());
        let undecided = c.found.iter().filter(|d| d.code == codes::UNDECIDED).count();
        let blocks = c.taken[Analysis::Blocks as usize];
        println!("{name}: {blocks} steps, {} MiB, {undecided} W0222", c.bytes >> 20);
        assert!(undecided <= 1 && blocks <= 6_000_000, "{name}: {blocks} steps, {undecided} warnings");
        assert!(c.bytes < 600 << 20, "{name}: {} MiB", c.bytes >> 20);
    }
    // Without any steps nobody has looked.
    let found = cost(&kernel("k", ""), Budget::of(20)).found;
    let d = found.iter().find(|d| d.code == codes::UNDECIDED).expect("it says so");
    assert!(
        d.label.contains("no element is shared by blocks") || d.notes.iter().any(|n| n.contains("shared by blocks"))
    );
    assert!(!found.iter().any(|d| ["W0590", "W0593"].contains(&d.code.as_str())), "{found:?}");
}

/// E0305 says what took the steps.
#[test]
fn the_longest_part_is_named() {
    let sum = vec!["1"; 100].join(" + ");
    let long = lines(1200, |i| format!("let _c{i} = {sum};"));
    let listed = format!("[{}]", list(1200, |i| i.to_string()));
    let unrolled = lines(1, |_| format!("for q in {listed} {{ let _c = {sum}; }}"));
    let inlined = format!("fn f() -> i32 {{ let _c = {sum}; 1 }}\n{}", lines(1200, |i| format!("let _d{i} = f();")));
    for (text, words) in [(long, "too long"), (unrolled, "a loop over a list is unrolled"), (inlined, "inlined")] {
        let found = cost(&text, Budget::default()).found;
        let d = found.iter().find(|d| d.code == codes::OUT_OF_FUEL).unwrap_or_else(|| panic!("{words}: {found:?}"));
        assert!(d.message.contains(words) || d.notes.iter().any(|n| n.contains(words)), "{words}: {d:?}");
    }
}

/// Several kernels share what there is, and each that gets too little says so.
#[test]
fn a_file_has_one_budget() {
    let deep = |n: usize| DEEP[1].2(20).replace("kernel k", &format!("kernel k{n}"));
    let text: String = (0..6).map(deep).collect();
    let budget = || Budget::of(200_000);
    let cost = cost(&text, budget());
    assert_eq!(cost.found.iter().filter(|d| d.code == codes::UNDECIDED).count(), 6);
    assert!(cost.taken[Analysis::Bytes as usize] <= 200_000);
    // Steps are counted, no time: the same again.
    let again = self::cost(&text, budget());
    assert_eq!((again.steps, again.found), (cost.steps, cost.found));
}

/// 34 lines whose walk kept 2.24 GB of states.
#[test]
fn a_walk_through_the_order_of_pipes_keeps_few_states() {
    let text = include_str!("../hazards/broken/branches.tile");
    let start = text.find("/// Only the first iteration waits for its load.").expect("the kernel is there");
    let end = start + text[start..].find("\n}\n").expect("it ends") + 3;
    let text = text[start..end].replace("0..N / 16", "0..N / 3");
    let cost = cost(&text, Budget::default());
    assert!(cost.found.iter().any(|d| d.code.as_str() == "E0560"), "{:?}", cost.found);
    assert!(cost.bytes < 100 << 20, "{} MiB", cost.bytes >> 20);
}
