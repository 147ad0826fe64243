//! What TSAMPLE's operands and results may be made of: other dimensions, strides, transposed, parts of rows. The units
//! give the interpreter's bits, or the author is told what they do not take.

use crate::engine::command;
use std::path::PathBuf;

/// What is expected of a kernel on the units.
enum Expect {
    /// The interpreter's bits.
    Bits,
    /// An error at the kernel's source with this code and text.
    Says(&'static str, &'static str),
}

use Expect::{Bits, Says};

/// Arguments behind `feat` by their types, the grid, the operands of TSAMPLE from the map on, the target of the store,
/// sizes.
type Case = (&'static str, [&'static str; 5], &'static str, &'static str, &'static str, &'static str, Expect);

const ONE: &str = "(q in 0..Q) on (Q) : (1@unit)";
const TWO: &str = "(b in 0..B, q in 0..Q) on (B, Q) : (Q@unit, 1@unit)";
const THREE: &str = "(b in 0..B, h in 0..HD, q in 0..Q) on (B, HD, Q) : ((HD * Q)@unit, Q@unit, 1@unit)";

/// Types of `feat`, `geo`, `attn`, `offs` and `y`.
const PLAIN: [&str; 5] = ["H, W, 16", "Q, 4", "Q, S", "Q, S, 2", "Q, 16"];

const fn with(n: usize, shape: &'static str) -> [&'static str; 5] {
    let mut out = PLAIN;
    out[n] = shape;
    out
}

const ALL: &str = "feat, geo[q, _], attn[q, _], offs[q, _, _]";

const CASES: [Case; 30] = [
    ("plain", PLAIN, ONE, ALL, "y[q, _]", "Q=9 S=5", Bits),
    // Strides within what a query takes.
    (
        "offs_t",
        with(3, "Q, 2, S"),
        ONE,
        "feat, geo[q, _], attn[q, _], offs[q, _, _].T",
        "y[q, _]",
        "Q=3 S=2",
        Says("E1321", "the 2 x 2 elements of `offs` for query 0 are 1 and 2 apart"),
    ),
    (
        "attn_every_other",
        with(2, "Q, 2 * S"),
        ONE,
        "feat, geo[q, _], composition(attn[q, _], S:2), offs[q, _, _]",
        "y[q, _]",
        "Q=1 S=4",
        Says("E1321", "the 4 elements of `attn` for query 0 are 2 apart, and a unit reads them 1 apart"),
    ),
    (
        "offs_every_other",
        with(3, "Q, 2 * S, 2"),
        ONE,
        "feat, geo[q, _], attn[q, _], composition(offs[q, _, _], <S:2, _>)",
        "y[q, _]",
        "Q=1 S=4",
        Says("E1321", "are 4 and 1 apart along its dimensions, and a unit reads them 2 and 1 apart"),
    ),
    (
        "attn_column",
        with(2, "S, Q"),
        ONE,
        "feat, geo[q, _], attn[_, q], offs[q, _, _]",
        "y[q, _]",
        "Q=4 S=3",
        Says("E1321", "are 4 apart"),
    ),
    (
        "attn_column_of_one",
        with(2, "S, Q"),
        ONE,
        "feat, geo[q, _], attn[_, q], offs[q, _, _]",
        "y[q, _]",
        "Q=4 S=1",
        Bits,
    ),
    (
        "geo_column",
        with(1, "4, Q"),
        ONE,
        "feat, geo[_, q], attn[q, _], offs[q, _, _]",
        "y[q, _]",
        "Q=3 S=3",
        Says("E1321", "are 3 apart"),
    ),
    (
        "geo_plane",
        with(1, "Q, 4, 2"),
        ONE,
        "feat, geo[q, _, 0], attn[q, _], offs[q, _, _]",
        "y[q, _]",
        "Q=3 S=3",
        Says("E1321", "are 2 apart"),
    ),
    (
        "y_column",
        with(4, "16, Q"),
        ONE,
        ALL,
        "y[_, q]",
        "Q=3 S=3",
        Says("E1321", "are 3 apart, and a unit writes them 1 apart"),
    ),
    (
        "feat_t",
        with(0, "W, H, 16"),
        ONE,
        "modes(feat, (1, 0, 2)), geo[q, _], attn[q, _], offs[q, _, _]",
        "y[q, _]",
        "Q=3 S=3",
        Says("E1322", "are 16 and 64 and 1 apart"),
    ),
    (
        "feat_plane",
        with(0, "H, W, 2, 16"),
        ONE,
        "feat[_, _, 1, _], geo[q, _], attn[q, _], offs[q, _, _]",
        "y[q, _]",
        "Q=3 S=3",
        Says("E1322", "apart"),
    ),
    (
        "feat_part",
        with(0, "HH, W, 16"),
        ONE,
        "composition(feat, <4:1, _, _>), geo[q, _], attn[q, _], offs[q, _, _]",
        "y[q, _]",
        "HH=8 Q=3 S=3",
        Says("E1322", "no whole item"),
    ),
    // Parts of rows.
    (
        "attn_part",
        with(2, "Q, 2 * S"),
        ONE,
        "feat, geo[q, _], composition(attn[q, _], S:1), offs[q, _, _]",
        "y[q, _]",
        "Q=2 S=4",
        Says("E1321", "`attn` is [2, 8], and a query takes 4 elements of it: no whole row"),
    ),
    (
        "attn_part_of_one",
        with(2, "Q, 2 * S"),
        ONE,
        "feat, geo[q, _], composition(attn[q, _], S:1), offs[q, _, _]",
        "y[q, _]",
        "Q=1 S=4",
        Says("E1321", "no whole row"),
    ),
    // Dimensions of one element.
    (
        "feat_one",
        with(0, "1, H, W, 16"),
        ONE,
        "feat[0, _, _, _], geo[q, _], attn[q, _], offs[q, _, _]",
        "y[q, _]",
        "Q=3 S=3",
        Bits,
    ),
    (
        "feat_inner_one",
        with(0, "H, W, 1, 16"),
        ONE,
        "feat[_, _, 0, _], geo[q, _], attn[q, _], offs[q, _, _]",
        "y[q, _]",
        "Q=3 S=3",
        Bits,
    ),
    ("attn_one", with(2, "Q, S, 1"), ONE, "feat, geo[q, _], attn[q, _, 0], offs[q, _, _]", "y[q, _]", "Q=3 S=3", Bits),
    ("attn_column_one", with(2, "S, Q"), ONE, "feat, geo[q, _], attn[_, q], offs[q, _, _]", "y[q, _]", "Q=1 S=3", Bits),
    ("y_column_one", with(4, "16, Q"), ONE, ALL, "y[_, q]", "Q=1 S=3", Bits),
    (
        "geo_column_one",
        with(1, "4, Q"),
        ONE,
        "feat, geo[_, q], attn[q, _], offs[q, _, _]",
        "y[q, _]",
        "Q=1 S=3",
        Says("E1321", "`geo` is [4, 1]"),
    ),
    // Other numbers of dimensions before.
    (
        "one_query",
        ["H, W, 16", "4", "S", "S, 2", "16"],
        "(q in 0..1) on (1) : (1@unit)",
        "feat, geo, attn, offs",
        "y",
        "S=3",
        Bits,
    ),
    (
        "query_an_item",
        ["Q, H, W, 16", "Q, 4", "Q, S", "Q, S, 2", "Q, 16"],
        ONE,
        "feat[q, _, _, _], geo[q, _], attn[q, _], offs[q, _, _]",
        "y[q, _]",
        "Q=3 S=5",
        Bits,
    ),
    (
        "heads",
        ["H, W, 16", "B, Q, 4", "B, Q, S", "B, Q, S, 2", "B, Q, 16"],
        TWO,
        "feat, geo[b, q, _], attn[b, q, _], offs[b, q, _, _]",
        "y[b, q, _]",
        "B=2 Q=3 S=5",
        Bits,
    ),
    (
        "heads_of_items",
        ["B, H, W, 16", "B, HD, Q, 4", "B, HD, Q, S", "B, HD, Q, S, 2", "B, HD, Q, 16"],
        THREE,
        "feat[b, _, _, _], geo[b, h, q, _], attn[b, h, q, _], offs[b, h, q, _, _]",
        "y[b, h, q, _]",
        "B=2 HD=2 Q=3 S=5",
        Bits,
    ),
    (
        "maps_of_heads",
        ["B, HD, H, W, 16", "B, HD, Q, 4", "B, HD, Q, S", "B, HD, Q, S, 2", "B, HD, Q, 16"],
        THREE,
        "feat[b, h, _, _, _], geo[b, h, q, _], attn[b, h, q, _], offs[b, h, q, _, _]",
        "y[b, h, q, _]",
        "B=2 HD=2 Q=3 S=5",
        Bits,
    ),
    (
        "items_in_one_dimension",
        with(0, "B, H, W, 16"),
        ONE,
        "feat[q / (Q / B), _, _, _], geo[q, _], attn[q, _], offs[q, _, _]",
        "y[q, _]",
        "B=2 Q=6 S=5",
        Bits,
    ),
    // Not a row for each query.
    (
        "shared_lines",
        ["B, H, W, 16", "Q, 4", "B, Q, S", "B, Q, S, 2", "B, Q, 16"],
        TWO,
        "feat[b, _, _, _], geo[q, _], attn[b, q, _], offs[b, q, _, _]",
        "y[b, q, _]",
        "B=2 Q=9 S=5",
        Says("E1321", "18 queries are computed; `geo` has 9 lines\n"),
    ),
    (
        "map_by_remainder",
        with(0, "B, H, W, 16"),
        ONE,
        "feat[q % B, _, _, _], geo[q, _], attn[q, _], offs[q, _, _]",
        "y[q, _]",
        "B=2 Q=9 S=5",
        Says("E1321", "9 queries are computed, and `feat` has 2 maps"),
    ),
    (
        "more_weights",
        with(2, "Q + 1, S"),
        ONE,
        ALL,
        "y[q, _]",
        "Q=3 S=5",
        Says("E1321", "3 queries are computed; `attn` has 4 rows"),
    ),
    (
        "later_unit",
        PLAIN,
        "(b in 0..2, q in 0..Q) on (2, Q) : (4@unit, 1@unit)",
        ALL,
        "y[q, _]",
        "Q=3 S=5",
        Says("E1321", "the first query is on unit 4"),
    ),
];

fn folder() -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("pim_operands");
    std::fs::create_dir_all(&folder).expect("a folder for tests");
    folder
}

fn holds(name: &str, text: &str, sizes: &str, expect: &Expect) {
    let file = folder().join(format!("{name}.tile")).display().to_string();
    std::fs::write(&file, text).expect("written");
    let run = |backend: &str| {
        let out = folder().join(format!("{name}_{backend}.npy"));
        let to = format!("y={}", out.display());
        let mut words = vec!["run", &file, "--target", "geopim", "--backend", backend, "--random", "7", "--out", &to];
        ["H=4", "W=4"]
            .into_iter()
            .filter(|d| !sizes.contains(&format!("{d0}{d0}=", d0 = &d[..1])))
            .for_each(|d| words.extend(["-D", d]));
        sizes.split(' ').for_each(|d| words.extend(["-D", d]));
        (command(&words), out)
    };
    let (interp, wanted) = run("interp");
    assert_eq!(interp.status, 0, "{name}: {}", interp.err);
    let (pim, got) = run("pim");
    match expect {
        Bits => {
            assert_eq!(pim.status, 0, "{name}: {}", pim.err);
            let read = |path| std::fs::read(path).expect("a result");
            assert!(read(wanted) == read(got), "{name}: other bits than the interpreter's");
        }
        Says(code, part) => {
            assert_eq!(pim.status, 1, "{name}: {}", pim.err);
            assert!(pim.err.contains(&format!("error[{code}]: ")) && pim.err.contains(part), "{name}: {}", pim.err);
            assert!(pim.err.contains(&format!("{name}.tile:")), "{name}: {}", pim.err);
        }
    }
}

#[test]
fn operands_of_any_form() {
    for (name, shapes, grid, operands, to, sizes, expect) in &CASES {
        let [feat, geo, attn, offs, y] = shapes;
        let (late, end) = if *name == "later_unit" { ("if b == 1 { ", " }") } else { ("", "") };
        let text = format!(
            "kernel k(feat: in f16[{feat}], geo: in f16[{geo}], attn: in f16[{attn}], offs: in f16[{offs}], y: out \
             f16[{y}]) {{\n    \
             grid {grid};\n    {late}let acc = tile Vec<f32, 1, 16>;\n    TSAMPLE(acc, {operands});\n    \
             TSTORE({to}, f16(acc));{end}\n}}\n"
        );
        holds(name, &text, sizes, expect);
    }
}

/// Two arrays where the units have registers for one.
#[test]
fn one_array_for_all_queries() {
    let both = |what: &str, args: &str, first: &str, second: &str| {
        let text = format!(
            "kernel k(feat: in f16[H, W, 16], geo: in f16[Q, 4], attn: in f16[Q, S], {args}) {{\n    grid {ONE};\n    \
             let acc = tile Vec<f32, 1, 16>;\n    if q < 2 {{ {first} }} else {{ {second} }}\n}}\n"
        );
        holds(what, &text, "Q=4 S=3", &Says("E1321", "the units have one array for all queries"));
    };
    let sample = |map: &str, geo: &str, attn: &str| {
        format!("TSAMPLE(acc, {map}, {geo}[q, _], {attn}[q, _]); TSTORE(y[q, _], f16(acc));")
    };
    let plain = sample("feat", "geo", "attn");
    both("two_maps", "other: in f16[H, W, 16], y: out f16[Q, 16]", &plain, &sample("other", "geo", "attn"));
    both("two_lines", "other: in f16[Q, 4], y: out f16[Q, 16]", &plain, &sample("feat", "other", "attn"));
    both("two_weights", "other: in f16[Q, S], y: out f16[Q, 16]", &plain, &sample("feat", "geo", "other"));
}
