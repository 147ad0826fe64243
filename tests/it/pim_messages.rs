//! What the backends of units in memory say, as it is printed.

use crate::engine::command;
use std::path::PathBuf;

/// The message for the only kernel of a text.
fn said(target: &str, sizes: &[&str], text: &str) -> String {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("pim_messages");
    std::fs::create_dir_all(&folder).expect("a folder for tests");
    let path = folder.join(format!("{target}_{}.tile", text.len())).display().to_string();
    std::fs::write(&path, text).expect("written");
    let mut words = vec!["emit", &path, "--stage", "pim", "--target", target];
    sizes.iter().for_each(|s| words.extend(["-D", *s]));
    let outcome = command(&words);
    assert_eq!(outcome.status, 1, "{text}{}", outcome.err);
    assert_eq!(outcome.err.matches("error[").count(), 1, "{text}{}", outcome.err);
    outcome.err.replace(&path, "kernel.tile")
}

fn block(tensors: &str, grid: &str, body: &str) -> String {
    format!("kernel k({tensors}) {{\n    grid {grid};\n    {}\n}}\n", body.replace('\n', "\n    "))
}

#[test]
fn hbm_pim() {
    let rows = "a: in f16[N, 64], y: out f16[N, 64]";
    let (four, x) = ("(i in tiles(N, 4))", "let x = Vec(a.tile(i, _));\n");
    let with = |rest: &str| block(rows, four, &format!("{x}{rest}"));
    let cases = [
        with("if a[0, 0] > 0.0 { TSTORE(y.tile(i, _), x); }"),
        block(
            "a: in f16[20, N], y: out f16[1, N]",
            "(j in tiles(N, 16))",
            "let s = tile Vec<f16, 1, 16>;\nlet p = tile Vec<f16, 1, 16>;\nlet x = Vec(a.tile(_, j));\ns = 0.0;\n\
             p = 1.0;\n\
             for i in 0..20 { s += x[i, _] * x[19 - i, _]; }\n\
             for i in 0..20 { p = p * (x[i, _] + s * x[i, _]) + x[19 - i, _] * p; }\n\
             for i in 0..20 { p = p * (x[i, _] * x[19 - i, _] + s); }\nTSTORE(y.tile(_, j), p);",
        ),
        with("if i.start == 4 { x = x + x; }\nTSTORE(y.tile(i, _), x);"),
        with("if i.last { TSTORE(y.tile(i, _), x); }"),
        block(
            "a: in f16[N, 16] at (N, 16):(1@row, 2@byte), y: out f16[N, 16]",
            "(i in tiles(N, 1)) on (N):(1@unit)",
            "TSTORE(y.tile(i, _), Vec(a.tile(i, _)));",
        ),
        with("for j in tiles(64, 8) { TSTORE(y.tile(i, j), x.tile(_, j)); }"),
        block(
            "a: in f16[M, 64], y: out f16[M, 64]",
            "(j in tiles(64, 64))",
            "for i in tiles(M, 256) { TSTORE(y.tile(i, j), Vec(a.tile(i, j))); }",
        ),
        block(rows, "(i in tiles(N, 4))", "for j in tiles(64, 32) { TSTORE(y[0, _], Vec(a[i.start, _])); }"),
        with("TSTORE(y.tile(i, _), x / 3.0);"),
        with("TSTORE(y.tile(i, _), max(x, x * x));"),
        with("TSTORE(y.tile(i, _), x - rowsum(x));"),
        with("TSTORE(y.tile(i, _), f16(f32(x)));"),
        // Fused, told by its formula: only its row names it (`one_entry`).
        with(concat!("TA", "XPY(x, x, 2.0);\nTSTORE(y.tile(i, _), x);")),
        block(
            "a: in f16[N, 64], s: in f16[N], y: out f16[N, 64]",
            "(n in 0..N)",
            "TSTORE(y[n, _], Vec(a[n, _]) * s[n]);",
        ),
        with("if i.start == 4 { TSTORE(y[0, _], x[0, _]); }"),
        block(
            "a: in f16[N, 64], y: out f16[N, 64]",
            "(i in tiles(N, 4)) on 8:1@unit",
            "TSTORE(y.tile(i, _), exp(Bank(a.tile(i, _))));",
        ),
        // What the target does not have at all.
        block(
            "a: in f16[N, 16], b: in f16[16, 16], y: out f16[N, 16]",
            "(m in tiles(N, 16), n in tiles(16, 16))",
            "let acc = tile Acc<f32, m, n>;\nTMATMUL(acc, Left(a.tile(m, _)), Right(b));\n\
            TSTORE(y.tile(m, n), acc);",
        ),
        block(rows, four, "let t = tile Buf<f16, 4, 64>;\nTLOAD(t, a.tile(i, _));\nTSTORE(y.tile(i, _), t);"),
        block(
            "a: in f16[N, 16], y: out f16[N, 16], m: in f16[4, 4, 16], g: in f16[4]",
            "(i in 0..N)",
            "let t = tile Vec<f32, 1, 16>;\nTSAMPLE(t, m, g, a[i, _]);\nTSTORE(y[i, _], f16(t));",
        ),
        // Operations with another form.
        block(rows, four, "copy(y.tile(i, _), a.tile(i, _));"),
        with("TSTORE(y.tile(i, _), x, atomic = true);").replace("y: out", "y: inout"),
        with("TSTORE(y.tile(i, _), x + a[0, 0]);"),
        // Who brings what, and who runs a block.
        block(
            "a: in f16[N, 16], y: out f16[N, 16]",
            "(i in tiles(N, 8))",
            "let t = GrfA(a.tile(i, _));\nTSTORE(y.tile(i, _), t);",
        ),
        block(
            "a: in f16[N, 16] at (N, 16):(1@row, 2@byte), y: out f16[N, 16]",
            "(i in tiles(N, 1))",
            "TSTORE(y.tile(i, _), Vec(a.tile(i, _)));",
        ),
        with("for j in 0..20000000 { x = x + 1.0; }\nTSTORE(y.tile(i, _), x);"),
        with("for j in 0..2200000 { x = x + 1.0; }\nTSTORE(y.tile(i, _), x);"),
    ];
    let all: Vec<String> = cases
        .iter()
        .map(|text| said("hbm-pim", &[if text.contains("[M,") { "M=65536" } else { "N=32" }], text))
        .collect();
    insta::assert_snapshot!(all.join("\n"));
}

/// What is replaced in a text, by what.
type Edits<'e> = &'e [(&'e str, &'e str)];

/// Queries and maps that the units' parameter entries and address generators cannot say.
#[test]
fn geopim() {
    let sample = "TSAMPLE(acc, feat[b, _, _, _], geo[b, i, _], attn[b, i, _]);";
    let kernel = |edits: Edits<'_>| {
        let mut text = format!(
            "kernel k(feat: in f16[B, H, W, C], geo: in f16[B, Q, 4], attn: in f16[B, Q, S], y: out f16[B, Q, C]) \
             {{\n    \
             grid (b in 0..B, q in tiles(Q, 2)) on (B, ceil_div(Q, 2)) : (ceil_div(Q, 2)@unit, 1@unit);\n    \
             for i in q {{\n        let acc = tile Vec<f32, 1, C>;\n        {sample}\n        \
             TSTORE(y[b, i, _], f16(acc));\n    }}\n}}\n"
        );
        for (from, to) in edits {
            assert!(text.contains(from), "{from}");
            text = text.replace(from, to);
        }
        text
    };
    let sizes = ["B=2", "H=4", "W=4", "C=64", "Q=6", "S=8"];
    let with = |other: &[&'static str]| -> Vec<&'static str> {
        let name = |s: &str| s.split('=').next().map(str::to_owned);
        let kept = sizes.into_iter().filter(|s| other.iter().all(|o| name(o) != name(s)));
        kept.chain(other.iter().copied()).collect()
    };
    let plain: &[&'static str] = &[];
    let store = "TSTORE(y[b, i, _], f16(acc));";
    let cases: [(Edits<'_>, &[&'static str]); 24] = [
        // E1320
        (&[(store, "acc = acc + acc;\n        TSTORE(y[b, i, _], f16(acc));")], plain),
        (&[(store, "if i < 3 { TSTORE(y[b, i, _], f16(acc)); }")], plain),
        (&[("y: out f16", "y: out f32"), ("f16(acc)", "acc")], plain),
        (&[(store, "TSTORE(y[b, i, _], f16(acc)); TSTORE(y[b, i, _], f16(acc));")], plain),
        (&[(sample, "acc = 0.0;")], plain),
        (&[(sample, "TSAMPLE(acc, feat[b, _, _, _], geo[b, i, _], attn[b, i, _]);\n        print(\"{}\", i);")], plain),
        (&[], &["C=128", "capacity.Buf=128"]),
        // E1321
        (&[("geo[b, i, _]", "geo[b, Q - 1 - i, _]")], plain),
        (&[("1@unit);", "2@unit);")], plain),
        (&[("for i in q {", "for i in q {\n        if i > 3 { continue; }")], plain),
        (&[("attn[b, i, _]", "attn[0, i, _]")], plain),
        (&[("y: out f16[B, Q, C]", "y: out f16[B, Q, C] at (B, Q, C):(1@row, 1@col, 2@byte)")], &["C=16"]),
        (
            &[("tiles(Q, 2)", "tiles(Q, 3)"), ("ceil_div(Q, 2)", "ceil_div(Q, 3)")],
            &["C=256", "capacity.Vec=1024", "Q=9"],
        ),
        (
            &[
                (
                    sample,
                    "if i == 5 { TSAMPLE(acc, feat[b, _, _, _], geo[b, i, _], attn[b, i, _], fold = false); } else { \
                    OTHER }",
                ),
                ("OTHER", sample),
            ],
            plain,
        ),
        (&[("tiles(Q, 2)) on (B, ceil_div(Q, 2)) : (ceil_div(Q, 2)@unit", "tiles(4, 2)) on (B, 2) : (2@unit")], plain),
        // E1310
        (
            &[
                (" on (B, ceil_div(Q, 2)) : (ceil_div(Q, 2)@unit, 1@unit)", ""),
                (store, "TSAMPLE(acc, feat[b, _, _, _], geo[b, i, _], attn[b, i, _]);\n        LAST"),
                ("LAST", store),
            ],
            plain,
        ),
        (&[(" on (B, ceil_div(Q, 2)) : (ceil_div(Q, 2)@unit, 1@unit)", "")], &["Q=600"]),
        // E1302
        (&[], &["Q=600"]),
        // E0603
        (&[], &["C=20"]),
        // E1322
        (&[], &["H=5", "W=7"]),
        (&[], &["C=24"]),
        (
            &[
                ("feat: in f16[B, H, W, C]", "feat: in f16[B, C, H, W]"),
                ("feat[b, _, _, _]", "modes(feat[b, _, _, _], (1, 2, 0))"),
            ],
            plain,
        ),
        (
            &[(
                "feat: in f16[B, H, W, C]",
                "feat: in f16[B, H, W, C] at (B, H, W, C):(64@row, 16@row, 2@row, 2@byte) over unit",
            )],
            &["C=16"],
        ),
        (&[], &["B=8", "H=128", "W=256", "C=128"]),
    ];
    let all: Vec<String> = cases.iter().map(|(edits, other)| said("geopim", &with(other), &kernel(edits))).collect();
    insta::assert_snapshot!(all.join("\n"));
}

/// A placement with a const parameter whose default one launch takes: the message says whose value it is.
#[test]
fn defaults_in_placements() {
    let text = |first: &str, second: &str| {
        format!(
            "kernel rows<const R = 1>(a: in f16[64, 16] at (64, 16):(R@row, 2@byte), c: out f16[64, 16]) {{\n    \
             grid (i in tiles(64, 8));\n    TSTORE(c.tile(i, _), GrfA(a.tile(i, _)));\n}}\n\n\
             program p(a: in f16[64, 16], c: out f16[64, 16], d: out f16[64, 16]) {{\n    {first}(a, c);\n    \
             {second}(a, d);\n}}\n"
        )
    };
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("pim_messages");
    std::fs::create_dir_all(&folder).expect("a folder for tests");
    let all = [("rows<R = 2>", "rows"), ("rows", "rows<2>"), ("rows<1>", "rows<2>")].map(|(first, second)| {
        let path = folder.join(format!("defaults_{}_{}.tile", first.len(), second.len())).display().to_string();
        std::fs::write(&path, text(first, second)).expect("written");
        let outcome = command(&["emit", &path, "p", "--stage", "pim", "--target", "hbm-pim"]);
        assert_eq!(outcome.err.matches("error[").count(), 1, "{}", outcome.err);
        outcome.err.replace(&path, "kernel.tile")
    });
    insta::assert_snapshot!(all.join("\n"));
}
