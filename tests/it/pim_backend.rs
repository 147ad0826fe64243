//! Kernels for GeoPIM's units on the backend `pim`: the same bits as on the interpreter, and what is said of what no
//! unit does.

use crate::engine::{Outcome, command};
use proptest::prelude::*;
use serde_json::Value;
use std::path::PathBuf;

/// A kernel whose blocks are given to units in the order of the queries.
const KERNEL: &str = "
kernel sample<const C = 16, const QB = 2, const FOLD = true>
    (feat: in f16[B, H, W, C], geo: in f16[B, Q, 4], attn: in f16[B, Q, S], y: out f16[B, Q, C], offs: in f16[B, Q, S, \
    2] = none)
{
    grid (b in 0..B, q in tiles(Q, QB)) on (B, ceil_div(Q, QB)) : (ceil_div(Q, QB)@unit, 1@unit);
    for i in q {
        let acc = tile Vec<f32, 1, C>;
        TSAMPLE(acc, feat[b, _, _, _], geo[b, i, _], attn[b, i, _], offs[b, i, _, _], fold = FOLD, border = BORDER);
        TSTORE(y[b, i, _], f16(acc));
    }
}
";

fn file(name: &str, text: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("pim_backend");
    std::fs::create_dir_all(&folder).expect("a folder for tests");
    let path = folder.join(name);
    std::fs::write(&path, text).expect("written");
    path
}

fn run(path: &std::path::Path, backend: &str, defs: &[String]) -> Outcome {
    let mut words: Vec<String> = [
        "run",
        &path.display().to_string(),
        "sample",
        "--target",
        "geopim",
        "--backend",
        backend,
        "--random",
        "5",
        "--json",
    ]
    .map(str::to_owned)
    .into();
    defs.iter().for_each(|d| words.extend(["-D".to_owned(), d.clone()]));
    command(&words)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ptoc_tests_budget::cases(8, 24)))]

    /// Sizes that fill neither units nor bursts included.
    #[test]
    fn the_same_bits_as_the_interpreter(
        (b, q, s) in (1u32..4, 1u32..20, 1u32..40),
        (h, w) in prop::sample::select(vec![(2u32, 2u32), (4, 6), (5, 8), (8, 8), (6, 16), (3, 32)]),
        c in prop::sample::select(vec![16u32, 32, 64, 128]),
        qb in prop::sample::select(vec![1u32, 2, 4]),
        (fold, zero) in any::<(bool, bool)>(),
    ) {
        let border = if zero { "Zero" } else { "Clamp" };
        let path = file(&format!("sample_{b}_{q}_{s}_{h}_{c}.tile"), &KERNEL.replace("BORDER", border));
        let defs: Vec<String> = [("B", b), ("H", h), ("W", w), ("C", c), ("Q", q), ("S", s), ("QB", qb)]
            .iter()
            .map(|(name, n)| format!("{name}={n}"))
            .chain([format!("FOLD={fold}")])
            .collect();
        let outcomes = ["interp", "pim"].map(|backend| run(&path, backend, &defs));
        let sums = outcomes.each_ref().map(|o| {
            assert_eq!(o.status, 0, "{defs:?}: {}", o.err);
            let json: Value = serde_json::from_str(&o.out).expect("JSON");
            json["outputs"]["y"]["sha256"].clone()
        });
        prop_assert_eq!(&sums[0], &sums[1], "{:?}", defs);
        let stats: Value = serde_json::from_str(&outcomes[1].out).expect("JSON");
        let rows = ["row_hits", "row_misses", "row_conflicts"];
        for name in ["cycles", "ns", "commands", "bytes_moved", "energy_pj", "per_bank"].into_iter().chain(rows) {
            prop_assert!(!stats["stats"][name].is_null(), "stats have `{}`", name);
        }
        let _ = std::fs::remove_file(path);
    }
}

/// What the units do not do, with the code that says so and a word of the message.
/// All queries of one unit: its results end inside of a row. And what is proposed for channels is what units can
/// sample.
#[test]
fn sizes_of_one_unit() {
    let path = file("one_unit.tile", &KERNEL.replace("BORDER", "Clamp"));
    let with = |sizes: &str| -> Vec<String> { sizes.split(' ').map(str::to_owned).collect() };
    for sizes in ["B=1 H=4 W=4 C=128 Q=5 S=3 QB=5", "B=3 H=2 W=2 C=64 Q=9 S=20 QB=9"] {
        let sums = ["interp", "pim"].map(|backend| {
            let o = run(&path, backend, &with(sizes));
            assert_eq!(o.status, 0, "{sizes}: {}", o.err);
            serde_json::from_str::<Value>(&o.out).expect("JSON")["outputs"]["y"]["sha256"].clone()
        });
        assert_eq!(sums[0], sums[1], "{sizes}");
    }
    let refused = run(&path, "pim", &with("B=1 H=4 W=4 C=144 Q=5 S=3 QB=1"));
    assert!(refused.err.contains("SA-0352") && !refused.err.contains("it fits with"), "{}", refused.err);
    let refused = run(&path, "pim", &with("B=1 H=4 W=4 C=256 Q=5 S=3 QB=1"));
    assert!(refused.err.contains("`-D C=128` in place of `-D C=256`"), "{}", refused.err);
}

#[test]
fn what_no_unit_does() {
    let clamp = KERNEL.replace("BORDER", "Clamp");
    let sizes = ["B=2", "H=4", "W=4", "C=64", "Q=6", "S=8"].map(str::to_owned);
    let cases = [
        ("twice.tile", clamp.replace("TSTORE", "acc = acc + acc;\n        TSTORE"), "E1320", "a GeoPIM unit has no"),
        (
            "backwards.tile",
            clamp.replace("geo[b, i, _]", "geo[b, Q - 1 - i, _]"),
            "E1321",
            "query 0 takes line 5 of `geo`, and its unit would take 0",
        ),
        ("one_unit.tile", clamp.replace("1@unit);", "2@unit);"), "E1321", "belongs to unit"),
        (
            "unsaved.tile",
            clamp.replace("for i in q {", "for i in q { if i > 3 { continue; }"),
            "E1321",
            "8 queries are computed; `geo` has 12 lines: 6 of each of 2 batch items",
        ),
    ];
    for (name, text, code, words) in cases {
        let outcome = run(&file(name, &text), "pim", &sizes);
        assert_eq!(outcome.status, 1, "{name}: {}{}", outcome.out, outcome.err);
        assert!(outcome.err.contains(code) && outcome.err.contains(words), "{name}: {}", outcome.err);
        assert_eq!(outcome.err.matches("error[").count(), 1, "{name}: {}", outcome.err);
    }
    let odd = ["B=1", "H=5", "W=7", "C=32", "Q=6", "S=8"].map(str::to_owned);
    let outcome = run(&file("odd.tile", &clamp), "pim", &odd);
    assert!(outcome.err.contains("E1322"), "{}", outcome.err);
}

/// What `emit --stage pim` prints is what runs.
#[test]
fn the_stream_is_printed() {
    let path = file("printed.tile", &KERNEL.replace("BORDER", "Clamp"));
    let path = path.display().to_string();
    let words = [
        "emit", &path, "sample", "--stage", "pim", "--target", "geopim", "-D", "B=1", "-D", "H=4", "-D", "W=4", "-D",
        "Q=3", "-D", "S=4",
    ];
    let outcome = command(&words);
    assert_eq!(outcome.status, 0, "{}", outcome.err);
    let lines: Vec<&str> = outcome.out.lines().filter_map(|l| l.split(' ').next()).collect();
    assert_eq!(
        lines,
        [
            "pim-stream",
            "device",
            "unit",
            "file",
            "tensor",
            "tensor",
            "tensor",
            "tensor",
            "write",
            "write",
            "descriptor",
            "params",
            "driver",
            "driver",
            "driver",
            "read"
        ]
    );
}
