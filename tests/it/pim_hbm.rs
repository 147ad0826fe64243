//! Kernels for HBM-PIM's units on the backend `pim`: the same bits as on the interpreter, for sizes that fill neither
//! units nor bursts, and what is said of what these units do not do.

use crate::engine::{Outcome, command};
use proptest::prelude::*;
use ptoc_abi::Coord;
use ptoc_pim_stream::stream::{Action, ColumnOp};
use ptoc_pim_stream::{ArrayPlacement, Stream};
use serde_json::Value;
use std::path::PathBuf;

/// Operations between two arrays, of which each program takes some.
const OPERATIONS: [&str; 9] = [
    "t = t + y;",
    "t = t - y;",
    "t = t * y;",
    "t = max(t, 0.0);",
    "t = t * 0.37;",
    "t = t + 1.25;",
    "t = 2.0 - t;",
    "t = -t;",
    "t = x - t;",
];

fn file(name: &str, text: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("pim_hbm");
    std::fs::create_dir_all(&folder).expect("a folder for tests");
    let path = folder.join(name);
    std::fs::write(&path, text).expect("written");
    path
}

fn run(path: &std::path::Path, kernel: &str, backend: &str, defs: &[(&str, u32)]) -> Outcome {
    let path = path.display().to_string();
    let mut words: Vec<String> =
        ["run", &path, kernel, "--target", "hbm-pim", "--backend", backend, "--random", "5", "--json"]
            .map(str::to_owned)
            .into();
    defs.iter().for_each(|(n, v)| words.extend(["-D".to_owned(), format!("{n}={v}")]));
    command(&words)
}

/// Both backends give the same bits; the statistics of the units' run.
fn agree(path: &std::path::Path, kernel: &str, output: &str, defs: &[(&str, u32)]) -> Value {
    let [interp, pim] = ["interp", "pim"].map(|backend| {
        let o = run(path, kernel, backend, defs);
        assert_eq!(o.status, 0, "{defs:?}: {}", o.err);
        serde_json::from_str::<Value>(&o.out).expect("JSON")
    });
    assert_eq!(interp["outputs"][output]["sha256"], pim["outputs"][output]["sha256"], "{defs:?}");
    pim["stats"].clone()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ptoc_tests_budget::cases(8, 24)))]

    /// Chains of operations on two dimensions of blocks, tails in both.
    #[test]
    fn the_same_bits_as_the_interpreter(
        (m, n) in (1u32..40, 1u32..300),
        tm in prop::sample::select(vec![1u32, 2, 8, 16]),
        tn in prop::sample::select(vec![16u32, 32, 48, 128]),
        chain in prop::collection::vec(prop::sample::select(OPERATIONS.to_vec()), 1..8),
    ) {
        let text = format!(
            "kernel k(a: in f16[M, N], b: in f16[M, N], y: out f16[M, N]) {{\n\
             grid (i in tiles(M, {tm}), j in tiles(N, {tn}));\n\
             let x = Vec(a.tile(i, j));\nlet y_ = Vec(b.tile(i, j));\nlet t = x + y_;\n{}\n\
             TSTORE(y.tile(i, j), t);\n}}\n",
            chain.join("\n").replace('y', "y_")
        );
        let path = file(&format!("chain_{m}_{n}_{tm}_{tn}.tile"), &text);
        let stats = agree(&path, "k", "y", &[("M", m), ("N", n)]);
        prop_assert!(stats["cycles"].as_u64().is_some_and(|n| n > 0));
        let _ = std::fs::remove_file(path);
    }

    /// The matrix-vector product of the language, whose placement is the author's, for other sizes.
    #[test]
    fn products_of_other_sizes(
        (pch, rounds, chunks) in (prop::sample::select(vec![1u32, 2, 4, 16]), 1u32..3, 1u32..4),
    ) {
        let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("language/hbm_gemv.tile");
        let defs = [("N", 64 * pch * rounds), ("K", 256 * chunks), ("PCH", pch)];
        agree(&path, "gemv", "y", &defs);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ptoc_tests_budget::cases(10, 32)))]

    /// Sums of rows and of columns, of sizes that fill neither lanes nor blocks, in a loop, of computed values, with
    /// and without more work on the sums.
    #[test]
    fn sums_of_any_size(
        (m, n) in (1u32..100, 1u32..150),
        (bm, bn) in (prop::sample::select(vec![1u32, 2, 8, 16, 32, 48]), prop::sample::select(vec![16u32, 32, 64])),
        before in prop::sample::select(vec!["x", "x * x", "x - 0.5", "max(x, 0.0)"]),
        after in prop::sample::select(vec!["s", "s * s", "-s", "s * 0.25 + 1.0", "max(s, 0.0)"]),
        form in 0u32..4,
    ) {
        // A column tile of the source is a multiple of 16 rows high.
        let bm = if form == 1 { bm.next_multiple_of(16) } else { bm };
        let body = match form {
            0 => format!("grid (i in tiles(M, {bm}));\nlet x = Vec(a.tile(i, _));\nlet s = rowsum({before});\n\
                TSTORE(col(y).tile(i, _), {after});"),
            1 => format!("grid (i in tiles(M, {bm}));\nlet s = tile Vec<f16, i, 1>;\ns = 0.0;\n\
                for j in tiles(N, {bn}) {{ let x = Vec(a.tile(i, j)); s += rowsum({before}); }}\n\
                TSTORE(col(y).tile(i, _), {after});"),
            2 => format!("grid (j in tiles(N, {bn}));\nlet x = Vec(a.tile(_, j));\nlet s = colsum({before});\n\
                TSTORE(y.tile(j), {after});"),
            _ => format!("grid (j in tiles(N, {bn}));\nlet s = tile Vec<f16, 1, j>;\ns = 0.0;\n\
                for i in tiles(M, {bm}) {{ let x = Vec(a.tile(i, j)); s += colsum({before}); }}\n\
                TSTORE(y.tile(j), {after});"),
        };
        let extent = if form < 2 { "M" } else { "N" };
        let text = format!("kernel k(a: in f16[M, N], y: out f16[{extent}]) {{\n{body}\n}}\n");
        let path = file(&format!("sum_{m}_{n}_{bm}_{bn}_{form}.tile"), &text);
        agree(&path, "k", "y", &[("M", m), ("N", n)]);
        let _ = std::fs::remove_file(path);
    }

    /// Any number of units, and rows of the author's in them: digits of the memory's counts or not.
    #[test]
    fn any_number_of_units((units, rows) in (1u32..=128, 1u32..4), by_unit in any::<bool>()) {
        let n = units * rows;
        let (at, on) = match by_unit {
            true => (format!("(({units}, {rows}), 16):((1@unit, 1@row), 2@byte)"), format!("({units}, {rows}):(1@unit, \
                0)")),
            false => (format!("(({rows}, {units}), 16):((1@row, 1@unit), 2@byte)"), format!("({rows}, {units}):(0, \
                1@unit)")),
        };
        let text = format!(
            "kernel k(a: in f16[{n}, 16] at {at}, y: out f16[{n}, 16]) {{\ngrid (i in tiles({n}, 1)) on {on};\n\
             TSTORE(y.tile(i, _), Vec(a.tile(i, _)) * 0.5);\n}}\n"
        );
        let path = file(&format!("units_{units}_{rows}.tile"), &text);
        agree(&path, "k", "y", &[]);
        let _ = std::fs::remove_file(path);
    }
}

/// A burst is read before it is overwritten, whatever the order of the stores: copies that swap, shifts, sums of what
/// is scaled in place.
#[test]
fn overwritten_operands() {
    let kernel = |body: &str| {
        format!(
            "kernel k(a: inout f16[N, 64], y: out f16[N]) {{\ngrid (i in tiles(N, 4));\nlet x = Vec(a.tile(i, _));\n\
            {body}\n}}\n"
        )
    };
    let cases = [
        ("swap", "for r in 0..4 { TSTORE(a[i.start + r, _], x[3 - r, _]); }\nTSTORE(col(y).tile(i, _), rowsum(x));"),
        (
            "shift",
            "for r in 1..4 { TSTORE(a[i.start + r, _], x[r, _] + x[r - 1, _]); }\n\
            TSTORE(col(y).tile(i, _), rowsum(x));",
        ),
        ("scale", "TSTORE(a.tile(i, _), x + x);\nlet s = rowsum(x);\nTSTORE(col(y).tile(i, _), s * s);"),
        (
            "later",
            "let s = rowsum(x);\nTSTORE(a.tile(i, _), x * x);\nTSTORE(col(y).tile(i, _), s + Vec(col(y).tile(i, _)));",
        ),
    ];
    for (name, body) in cases {
        let path = file(
            &format!("{name}.tile"),
            &kernel(body).replace("y: out", if name == "later" { "y: inout" } else { "y: out" }),
        );
        for n in [4, 60, 2000] {
            agree(&path, "k", "a", &[("N", n)]);
            agree(&path, "k", "y", &[("N", n)]);
        }
    }
}

/// Pseudo-channels whose blocks differ have commands of their own; units of one pseudo-channel cannot.
#[test]
fn pseudo_channels_that_differ() {
    let text = "kernel k(a: in f16[N, 64], y: out f16[N, 64]) {\ngrid (i in tiles(N, 4));\nlet x = Vec(a.tile(i, _));\n\
                if i.start < 32 { x = x + x; }\nif i.start >= 64 && i.start < 96 { x = x * x; }\n\
                TSTORE(y.tile(i, _), x);\n}\n";
    let path = file("differ.tile", text);
    for n in [128, 201] {
        agree(&path, "k", "y", &[("N", n)]);
    }
    let words = ["emit", &path.display().to_string(), "--stage", "pim", "--target", "hbm-pim", "-D", "N=128"];
    let outcome = command(&words);
    let execs: Vec<&str> = outcome.out.lines().filter(|l| l.starts_with("exec")).collect();
    assert_eq!(execs.len(), 3, "{execs:?}{}", outcome.err);
    assert!(execs[1].starts_with("exec 0.1,1.1 "), "{execs:?}");
}

/// Rows that an array takes.
fn rows(p: &ArrayPlacement) -> u32 {
    let parts = p.dims.iter().flatten().filter(|l| l.coord == Coord::Row);
    parts.map(|l| l.extent).product()
}

/// The first row of what the host reads, its bank of a unit, and how many rows it takes.
fn read_from(stream: &Stream) -> Option<(u32, u32, u32)> {
    stream.steps.iter().find_map(|s| match &s.action {
        Action::Read(t) => Some((t.placement.row, t.placement.bank, rows(&t.placement))),
        _ => None,
    })
}

/// Blocks of a burst lie side by side: a unit's 100 blocks take four rows of 32 bursts, not 100.
#[test]
fn small_blocks_share_rows() {
    let text = "kernel k(a: in f16[N], y: out f16[N]) {\ngrid (i in tiles(N, 16));\n\
        TSTORE(y.tile(i), Vec(a.tile(i)) * 2.0);\n}\n";
    let path = file("small.tile", text);
    let n = 100 * 128 * 16;
    let stats = agree(&path, "k", "y", &[("N", n)]);
    assert!(stats["cycles"].as_u64().is_some());
    let words =
        ["emit", &path.display().to_string(), "k", "--target", "hbm-pim", "--stage", "pim", "-D", &format!("N={n}")];
    let stream = Stream::parse(&command(&words).out).expect("a stream").stream;
    assert_eq!(read_from(&stream), Some((0, 1, 4)), "in the odd banks, beside the rows of `a`");
    for n in [1, 15, 17, 31 * 128 * 16, 33 * 128 * 16 + 5] {
        agree(&path, "k", "y", &[("N", n)]);
    }
}

/// A product with a vector as one would write it anywhere is as fast as one whose author names banks and registers.
#[test]
fn a_natural_gemv_is_as_fast_as_a_placed_one() {
    let cycles = |file: &str, kernel: &str, defs: &[&str]| {
        let path = format!("{}/../examples/{file}", env!("CARGO_MANIFEST_DIR"));
        let mut words = vec!["run", &path, kernel, "--target", "hbm-pim", "--random", "1", "--json"];
        defs.iter().for_each(|d| words.extend(["-D", d]));
        let outcome = command(&words);
        assert_eq!(outcome.status, 0, "{}", outcome.err);
        let value: Value = serde_json::from_str(&outcome.out).expect("JSON");
        value["stats"]["report"]["kinds"]["exec"]["cycles"].as_f64().expect("cycles")
    };
    let natural = cycles("hbm_pim.tile", "gemv", &["M=1024", "K=1024"]);
    let placed = cycles("hbm_gemm.tile", "gemm", &["N=1024", "K=1024", "B=1"]);
    assert!(natural < 1.1 * placed, "{natural} and {placed} cycles");
}

/// What a kernel wrote to the odd banks, or has read from a part of its rows, the next one finds there.
#[test]
fn arrays_stay_where_they_are() {
    let text = "kernel add(a: in f16[N], b: in f16[N], c: out f16[N]) {\ngrid (i in tiles(N, 256));\n\
        TSTORE(c.tile(i), Vec(a.tile(i)) + Vec(b.tile(i)));\n}\n\
        program p(a: in f16[N], b: in f16[N], d: out f16[N]) {\n\
        let c, e = tensor f16[N];\nadd(a, b, c);\nadd(c, a, e);\nadd(b, e, d);\n}\n";
    let path = file("stay.tile", text);
    for n in [300, 70_000] {
        agree(&path, "p", "d", &[("N", n)]);
        let words = ["emit", &path.display().to_string(), "p", "--target", "hbm-pim", "--stage", "pim", "-D"];
        let stream =
            Stream::parse(&command(&[&words[..], &[&format!("N={n}")]].concat()).out).expect("a stream").stream;
        let count = |f: fn(&Action) -> bool| stream.steps.iter().filter(|s| f(&s.action)).count();
        assert_eq!(count(|a| matches!(a, Action::Write(_))), 2, "`a` and `b`");
        assert_eq!(count(|a| matches!(a, Action::Move { .. })), 0);
    }
}

/// A store of the first block alone, and values of one element, whatever the other sizes are.
#[test]
fn what_the_size_does_not_change() {
    let first = "kernel k(a: in f16[N], y: inout f16[N]) {\ngrid (i in tiles(N, 64));\n\
        if i.first { TSTORE(y.tile(i), Vec(a.tile(i)) * 2.0); }\n}\n";
    let path = file("first.tile", first);
    for n in [5, 64, 1000, 20000] {
        agree(&path, "k", "y", &[("N", n)]);
    }
    let spread = |op: &str| {
        format!(
            "kernel k(a: in f16[M, N], b: in f16[N], y: out f16[M, N]) {{\ngrid (i in tiles(M, 8));\n\
            TSTORE(y.tile(i, _), Vec(a.tile(i, _)) {op} Vec(b));\n}}\n"
        )
    };
    for (n, op) in ["+", "*", "-"].into_iter().enumerate() {
        let path = file(&format!("spread_{n}.tile"), &spread(op));
        for (m, n) in [(1, 1), (1, 40), (9, 17)] {
            agree(&path, "k", "y", &[("M", m), ("N", n)]);
        }
    }
}

/// What the units do not do, with the code that says so and a word of the message.
#[test]
fn what_no_unit_does() {
    let kernel = |body: &str| {
        format!(
            "kernel k(a: in f16[N, 64], y: out f16[N, 64]) {{\ngrid (i in tiles(N, 4));\nlet x = Vec(a.tile(i, _));\n\
            {body}\n}}\n"
        )
    };
    let cases = [
        ("quotient", kernel("TSTORE(y.tile(i, _), x / 3.0);"), "E1320", "TDIV"),
        ("function", kernel("TSTORE(y.tile(i, _), exp(x));"), "E1320", "TEXP"),
        ("larger", kernel("TSTORE(y.tile(i, _), max(x, x * x));"), "E1320", "max(b - a, 0.0)"),
        ("smaller", kernel("TSTORE(y.tile(i, _), min(x, 0.0));"), "E1320", "a - max(a - b, 0.0)"),
        ("largest", kernel("TSTORE(y.tile(i, _), x + colmax(x));"), "E1320", "TCOLMAX"),
        ("wide", kernel("TSTORE(y.tile(i, _), f16(f32(x)));"), "E1320", "f32"),
        ("spread", kernel("TSTORE(y.tile(i, _), x - rowsum(x));"), "E1320", "a lane does not reach other lanes"),
        ("branch", kernel("if a[0, 0] > 0.0 { TSTORE(y.tile(i, _), x); }"), "E1313", "depend on data"),
        ("uneven", kernel("if i.start == 4 { x = x + x; } TSTORE(y.tile(i, _), x);"), "E1316", "lock step"),
        (
            "lanes",
            kernel("for j in tiles(64, 8) { TSTORE(y.tile(i, j), x.tile(_, j)); }"),
            "E1318",
            "8 more of them hold elements",
        ),
    ];
    for (name, text, code, words) in cases {
        let outcome = run(&file(&format!("{name}.tile"), &text), "k", "pim", &[("N", 32)]);
        assert_eq!(outcome.status, 1, "{name}: {}{}", outcome.out, outcome.err);
        assert!(outcome.err.contains(code) && outcome.err.contains(words), "{name}: {}", outcome.err);
        assert_eq!(outcome.err.matches("error[").count(), 1, "{name}: {}", outcome.err);
    }
}

/// Blocks on other units than their elements.
#[test]
fn out_of_reach() {
    let text = "kernel k(a: in f16[N, 16] at (N, 16):(1@row, 2@byte), y: out f16[N, 16]) {\n\
                grid (i in tiles(N, 1)) on (N):(1@unit);\nTSTORE(y.tile(i, _), Vec(a.tile(i, _)));\n}\n";
    let outcome = run(&file("reach.tile", text), "k", "pim", &[("N", 4)]);
    assert!(outcome.err.contains("E1317") && outcome.err.contains("the block runs on unit 1"), "{}", outcome.err);
}

/// `emit -o F.pim` writes what `ptoc sim` reads.
#[test]
fn the_stream_in_a_file() {
    let text =
        "kernel k(x: inout f16[N]) {\ngrid (i in tiles(N, 128));\nTSTORE(x.tile(i), max(Vec(x.tile(i)), 0.0));\n}\n";
    let source = file("relu.tile", text).display().to_string();
    let stream = file("relu.pim", "").display().to_string();
    let words = ["emit", &source, "--stage", "pim", "--target", "hbm-pim", "-D", "N=2000"];
    let printed = command(&words);
    assert_eq!(printed.status, 0, "{}", printed.err);
    let written = command(&[&words[..], &["-o", &stream]].concat());
    assert_eq!(written.status, 0, "{}", written.err);
    let bytes = std::fs::read(&stream).expect("written");
    let decoded = ptoc_pim_stream::Stream::decode(&bytes).expect("a stream");
    assert_eq!(decoded.to_text(), printed.out);
}

fn emitted(path: &std::path::Path, defs: &[(&str, u32)]) -> Stream {
    let path = path.display().to_string();
    let mut words: Vec<String> =
        ["emit", &path, "k", "--target", "hbm-pim", "--stage", "pim"].map(str::to_owned).into();
    defs.iter().for_each(|(n, v)| words.extend(["-D".to_owned(), format!("{n}={v}")]));
    let outcome = command(&words);
    assert_eq!(outcome.status, 0, "{}", outcome.err);
    Stream::parse(&outcome.out).expect("a stream").stream
}

const SUMS: &str = "kernel k(a: in f16[M, N], y: out f16[N]) {\ngrid (j in tiles(N, 64));\n\
    TSTORE(y.tile(j), colsum(Vec(a.tile(_, j))));\n}\n";

/// Steps of one row need no fence between them, and everything else has one.
#[test]
fn fences_where_order_needs_them() {
    let path = file("fences.tile", SUMS);
    let defs = [("M", 64), ("N", 64)];
    let stream = emitted(&path, &defs);
    let ops: Vec<&ColumnOp> = stream
        .steps
        .iter()
        .filter_map(|s| match &s.action {
            Action::Exec(e) => Some(&e.ops),
            _ => None,
        })
        .flatten()
        .collect();
    let fences = ops.iter().filter(|op| matches!(op, ColumnOp::Fence)).count();
    // Modes and registers, or steps by reads or by writes of a bank: no row is come back to here.
    let stretches = ops
        .iter()
        .filter_map(|op| match op {
            ColumnOp::Rd { at, .. } => Some((at.row & 0x1000 != 0, at.bank, false)),
            ColumnOp::Wr { at, .. } => Some((at.row & 0x1000 != 0, at.bank, true)),
            _ => None,
        })
        .fold((0, None), |(n, last), (control, bank, write)| {
            let here = if control { (true, 0, true) } else { (false, bank, write) };
            (n + usize::from(last != Some(here)), Some(here))
        })
        .0;
    // The first stretch has none before it.
    assert_eq!(fences, stretches - 1, "{}", stream.to_text());
    assert!(fences < 50, "{fences} fences for 260 commands");
    let stats = agree(&path, "k", "y", &defs);
    let ticks = |bucket: &str| stats["report"]["attribution"][bucket].as_u64().expect("ticks");
    assert!(ticks("fence") < ticks("compute"), "{} {}", ticks("fence"), ticks("compute"));
}

/// Rows of a DRAM row are filled one behind the other, whatever their number: nine take the time of nine.
#[test]
fn the_last_row_may_be_filled_in_part() {
    let text = "kernel k<const BM = 1>(a: in f16[M, 64], b: in f16[M, 64], y: out f16[M, 64]) {\n\
                grid (i in tiles(M, BM));\nTSTORE(y.tile(i, _), Vec(a.tile(i, _)) + Vec(b.tile(i, _)));\n}\n";
    let path = file("ragged.tile", text);
    let cycles = |m: u32| agree(&path, "k", "y", &[("M", m), ("BM", m)])["cycles"].as_u64().expect("cycles");
    let [eight, nine, sixteen, seventeen] = [8, 9, 16, 17].map(cycles);
    assert!(
        eight < nine && nine < sixteen && sixteen < seventeen && seventeen < 2 * sixteen,
        "{eight} {nine} {sixteen} {seventeen}"
    );
    // Where further blocks of the dimension follow, all rows hold equally many.
    agree(&path, "k", "y", &[("M", 300), ("BM", 9)]);
    agree(&path, "k", "y", &[("M", 270), ("BM", 34)]);
    // As many rows of the array as a bank has rows, and one more.
    let tall = file(
        "tall.tile",
        "kernel k(a: in f16[M, N], y: out f16[N]) {\ngrid (j in tiles(N, 64));\nlet s = tile Vec<f16, 1, j>;\n\
         s = 0.0;\n\
         for i in 0..M { s += Vec(a[i, _].tile(j)); }\nTSTORE(y.tile(j), s);\n}\n",
    );
    let taken = |m: u32| {
        let stream = emitted(&tall, &[("M", m), ("N", 64)]);
        stream.steps.iter().find_map(|s| match &s.action {
            Action::Write(t) => Some(rows(&t.placement)),
            _ => None,
        })
    };
    assert_eq!([taken(4096), taken(4097)], [Some(512), Some(513)], "rows of `a`");
}

/// Registers and rows that `-D capacity` takes away are not used; what a unit does not have is refused.
#[test]
fn capacities_are_obeyed() {
    let text = "kernel k(a: in f16[N], b: in f16[N], y: out f16[N]) {\ngrid (i in tiles(N, 256));\n\
                TSTORE(y.tile(i), Vec(a.tile(i)) + Vec(b.tile(i)));\n}\n";
    let path = file("capacities.tile", text);
    let source = path.display().to_string();
    let registers = |more: &[&str]| {
        let words = [&["emit", &source, "k", "--target", "hbm-pim", "--stage", "pim", "-D", "N=300"], more].concat();
        let outcome = command(&words);
        assert_eq!(outcome.status, 0, "{}", outcome.err);
        (outcome.out.contains("GRF_A[1]"), outcome.out.contains("GRF_B[1]"), outcome.out.contains("auto"))
    };
    assert_eq!(registers(&[]), (false, false, true));
    assert!(!registers(&["-D", "capacity.GrfA=32"]).0);
    assert!(!registers(&["-D", "capacity.GrfB=32"]).1);
    for more in [("capacity.GrfA", 32), ("capacity.GrfB", 64), ("capacity.Bank", 4096)] {
        agree(&path, "k", "y", &[("N", 300), more]);
    }
    for (defs, code, words) in [
        (&["capacity.Bank=32"][..], "E1324", "1 to 4096 whole rows of 1024 bytes"),
        (&["capacity.Bank=8388608"], "E1324", "1 to 4096 whole rows"),
        (&["capacity.GrfA=512"], "E1324", "1 to 8 vectors of 32 bytes"),
        (&["capacity.GrfB=0"], "E1324", "1 to 8 vectors of 32 bytes"),
        (&["capacity.Bank=2048", "N=98304"], "E1319", "0 of 2 are free in one piece"),
        (&["unit.act_weight=17"], "E1324", "it may be 1 to 16"),
    ] {
        let mut all = vec!["run", &source, "k", "--target", "hbm-pim", "--random", "1"];
        let few = defs.iter().all(|d| !d.starts_with("N=")).then_some("N=300");
        few.iter().chain(defs).for_each(|d| all.extend(["-D", d]));
        let outcome = command(&all);
        let flat = outcome.err.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(outcome.status, 1, "{defs:?}: {}", outcome.out);
        assert!(flat.contains(code) && flat.contains(words), "{defs:?}: {}", outcome.err);
        assert_eq!(outcome.err.matches("error[").count(), 1, "{defs:?}: {}", outcome.err);
    }
}

/// A window of registers takes what a conversion gives: it is moved there, and no other register is needed.
#[test]
fn windows_of_registers() {
    let text = "kernel k(a: in f16[N, 16], b: in f16[8, 16], y: out f16[N, 16]) {\ngrid (t in tiles(N, 8));\n\
                let x = tile GrfA<f16, 8, 16>;\nlet z = tile GrfB<f16, 8, 16>;\n\
                for r in 0..8 { x[r, _] = GrfA(Bank(a[t.start + r, _])); z[r, _] = GrfB(b[r, _]); }\n\
                for r in 0..7 { x[r + 1, _] = x[r, _]; }\nfor r in 0..8 { z[r, _] += x[r, _]; }\n\
                TSTORE(y.tile(t, _), z);\n}\n";
    agree(&file("windows.tile", text), "k", "y", &[("N", 64)]);
}

/// Elements of an array as factors: the host brings them to the units' scalars, eight at a time. Sums of columns of a
/// matrix, scaled by a vector, are a product of matrix and vector without a broadcast of 16 lanes.
#[test]
fn factors_from_arrays() {
    let product = "kernel k(w: in f16[K, N], x: in f16[K], y: out f16[N]) {\ngrid (j in tiles(N, BN));\n\
                   let s = tile Vec<f16, 1, j>;\ns = 0.0;\nfor k in 0..K { s += Vec(w[k, _].tile(j)) * x[k]; }\n\
                   TSTORE(y.tile(j), s);\n}\n";
    for bn in [16, 64, 128] {
        let path = file(&format!("factors_{bn}.tile"), &product.replace("BN", &bn.to_string()));
        for (k, n) in [(1, 16), (8, 100), (9, 300), (33, 128)] {
            agree(&path, "k", "y", &[("K", k), ("N", n)]);
        }
    }
    // Beside numbers of the launch, for values that are used again, and for the same element in all blocks.
    let mixed = "kernel k(a: in f16[N], s: in f16[20], y: out f16[N]) {\ngrid (i in tiles(N, 128));\n\
                 let x = Vec(a.tile(i)) * 0.5;\n\
                 let z = (x * s[3] + 1.25) * s[19] + x * s[4];\nTSTORE(y.tile(i), max(z * s[3], 0.0) - x * 2.0);\n}\n";
    let path = file("factors_mixed.tile", mixed);
    for n in [5, 128, 1000] {
        agree(&path, "k", "y", &[("N", n)]);
    }
    let words = |tensor: &str, body: &str| {
        let text = format!(
            "kernel k(a: in f16[N], s: {tensor}, y: inout f16[N]) {{\ngrid (i in tiles(N, 128));\n\
            let x = Vec(a.tile(i));\nTSTORE(y.tile(i), {body});\n}}\n"
        );
        run(&file("no_factor.tile", &text), "k", "pim", &[("N", 128)]).err
    };
    for (tensor, body) in [
        ("in f16[4]", "x + s[0]"),
        ("in f16[4]", "x * (s[0] + s[1])"),
        ("in f32[4]", "x * f16(s[0])"),
        ("in f16[4]", "x * y[0]"),
        ("in f16[16] at (16):(2@byte)", "x * s[0]"),
    ] {
        let said = words(tensor, body);
        assert!(said.contains("E1313") && said.contains("the units have no such scalar"), "{tensor} {body}: {said}");
        assert_eq!(said.matches("error[").count(), 1, "{said}");
    }
}
