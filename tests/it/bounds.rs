//! Bounds that the text itself guarantees: nothing is tested while the kernel runs, and nothing is said. Where they are
//! not guaranteed, a test is left, and a warning says so.

use ptoc_cli::io::Io;
use std::path::Path;

/// A kernel that copies another block under a condition.
fn ahead(clause: &str, condition: &str, next: &str) -> String {
    format!(
        "\
kernel ahead(x: in f32[M, N], y: out f32[M, N], n: index)
    where {clause}
{{
    grid (i in tiles(M, 8));
    let c = tiles(N, 16);
    TSTORE(y.tile(i, c[0]), Vec(x.tile(i, c[0])));
    for k in c {{
        if {condition} {{
            let next = c[{next}];
            TSTORE(y.tile(i, next), Vec(x.tile(i, next)));
        }}
    }}
}}
"
    )
}

/// The codes that `ptoc check` warns with.
fn told(name: &str, text: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("bounds-{name}.tile"));
    std::fs::write(&path, text).expect("a temporary file");
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let args = ["ptoc".into(), "check".into(), path.into_os_string()];
    let status = ptoc_cli::execute(args, &mut Io::new(&mut out, &mut err));
    let err = String::from_utf8_lossy(&err).into_owned();
    assert_eq!(status, ptoc_cli::DONE, "{err}\n{text}");
    let codes = err.lines().filter_map(|l| l.strip_prefix("warning[")?.split(']').next());
    // Whether blocks meet is another question.
    codes.filter(|c| c.starts_with("PA-")).map(str::to_owned).collect()
}

#[test]
fn conditions_prove_them() {
    let right = [
        ("!k.last", "k.index + 1"),
        ("k.index + 1 < c.count", "k.index + 1"),
        ("c.count > k.index + 1", "k.index + 1"),
        ("k.index + 1 != c.count", "k.index + 1"),
        ("k.index < c.count - 1", "k.index + 1"),
        ("k.index + 2 <= c.count", "k.index + 1"),
        ("k.index + 3 < c.count", "k.index + 2"),
        ("n > 0 && !k.last", "k.index + 1"),
        ("!(k.last || n > 3)", "k.index + 1"),
        ("n >= 0 && n < c.count", "n"),
        ("k.index > 0", "k.index - 1"),
        ("k.first == false && !k.last", "k.index + 1"),
    ];
    for (condition, next) in right {
        let text = ahead("N >= 1", condition, next);
        assert!(told("right", &text).is_empty(), "{condition}: {:?}", told("right", &text));
    }
}

#[test]
fn others_do_not() {
    let open = [
        ("k.last", "k.index + 1"),
        ("!k.last", "k.index + 2"),
        ("k.index < c.count", "k.index + 1"),
        ("k.index + 1 <= c.count", "k.index + 1"),
        ("!k.last || n > 3", "k.index + 1"),
        ("!(k.last && n > 3)", "k.index + 1"),
        ("n < c.count", "n"),
        ("k.first", "k.index - 1"),
    ];
    for (condition, next) in open {
        let text = ahead("N >= 1", condition, next);
        assert_eq!(told("open", &text), ["PA-1101"], "{condition}");
    }
    // The first block of what may be empty.
    assert_eq!(told("open", &ahead("N >= 0", "!k.last", "k.index + 1")), ["PA-1101"]);
}

/// A fact ends with its branch; the other branch knows the contrary.
#[test]
fn a_condition_holds_only_where_it_does() {
    let after = ahead("N >= 1", "!k.last", "k.index + 1").replace(
        "        }\n    }",
        "        }\n        let o = c[k.index + 1];\n        TSTORE(y.tile(i, o), Vec(x.tile(i, o)));\n    }",
    );
    assert_eq!(told("after", &after), ["PA-1101"], "{after}");
    let other = ahead("N >= 1", "k.last { } else if true", "k.index + 1");
    assert_eq!(told("other", &other), [""; 0], "{other}");
}

/// A kernel that copies elements by arithmetic on indices.
fn elements(arrays: &str, grid: &str, body: &str) -> String {
    format!("kernel elements({arrays}) {{\n    grid ({grid});\n    {body}\n}}\n")
}

/// Indices that are sums, products, quotients and remainders of what counts.
const COMPUTED: &[(&str, &str, &str)] = &[
    (
        "x: in f32[M, N], y: out f32[M, 2 * N]",
        "m in 0..M, n in 0..N",
        "y[m, 2 * n] = x[m, n]; y[m, 2 * n + 1] = x[m, n];",
    ),
    ("x: in f32[A, B], y: out f32[A * B]", "a in 0..A, b in 0..B", "y[a * B + b] = x[a, b];"),
    (
        "x: in f32[A, B, C], y: out f32[A * B * C]",
        "a in 0..A, b in 0..B, c in 0..C",
        "y[(a * B + b) * C + c] = x[a, b, c];",
    ),
    (
        "x: in f32[A, B], y: out f32[A * B, 2]",
        "a in 0..A, b in 0..B",
        "y[a * B + b, 0] = x[a, b]; y[a * B + b, 1] = 0.0;",
    ),
    ("x: in f32[M, N], y: out f32[M, N]", "q in 0..M * N", "y[q / N, q % N] = x[q / N, q % N];"),
    ("x: in f32[M, N], y: out f32[M, N]", "q in 0..N * M", "y[q % M, q / M] = x[q % M, q / M];"),
    (
        "x: in f32[M, 8], y: out f32[M, 8]",
        "i in tiles(M, 16)",
        "for r in 0..i.len { for c in 0..8 { y[i.start + r, c] = x[i.start + r, c]; } }",
    ),
    (
        "x: in f32[M, N], y: out f32[M * N]",
        "i in tiles(M, 16)",
        "for r in 0..i.len { for c in 0..N { y[(i.start + r) * N + c] = x[i.start + r, c]; } }",
    ),
    ("x: in f32[M], y: out f32[M]", "m in 0..M", "y[M - 1 - m] = x[m];"),
    ("x: in f32[M], y: out f32[M / 2]", "m in 0..M / 2", "y[m] = x[2 * m + 1];"),
    ("x: in f32[M], y: out f32[(M + 1) / 2]", "m in 0..(M + 1) / 2", "y[m] = x[2 * m];"),
    (
        "x: in f32[8, 64], y: out f32[8, 64]",
        "q in 0..256",
        "y[q / 64 * 2, q % 64] = x[0, q % 64]; y[q / 64 * 2 + 1, q % 64] = x[0, 63 - q % 64];",
    ),
    (
        "x: in f32[M, N], y: out f32[M, N]",
        "d in 0..M + N, m in 0..M",
        "if d >= m && d - m < N { y[m, d - m] = x[m, d - m]; }",
    ),
    (
        "x: in f32[B, M, N], y: out f32[B, N, M]",
        "q in 0..B * M * N",
        "y[q / (M * N), q % N, q / N % M] = x[q / (M * N), q / N % M, q % N];",
    ),
    (
        "x: in f32[M, 8], y: out f32[M, 8]",
        "m in 0..M, c in 0..8",
        "for turn in 0..1 { if m == 0 { y[m, c] = 0.0; continue; } y[m, c] = x[m - 1, c]; }",
    ),
    ("x: in f32[M, N], y: out f32[M, N]", "i in 0..M, j in 0..N", "y[i, j] = x[max(i - 1, 0), min(j + 1, N - 1)];"),
    (
        "x: in f32[H, W], y: out f32[(H - 2) * (W - 2), 9]",
        "i in 0..H - 2, j in 0..W - 2",
        "for a in 0..3 { for b in 0..3 { y[i * (W - 2) + j, a * 3 + b] = x[i + a, j + b]; } }",
    ),
];

/// The same with one thing that is wrong for some size.
const BEYOND: &[(&str, &str, &str)] = &[
    ("x: in f32[M, N], y: inout f32[M, 2 * N]", "m in 0..M, n in 0..N", "y[m, 2 * n + 2] = x[m, n];"),
    ("x: in f32[A, B], y: inout f32[A * B]", "a in 0..A, b in 0..B", "y[a * B + b + 1] = x[a, b];"),
    ("x: in f32[A, B], y: inout f32[A * B]", "a in 0..A, b in 0..B", "y[b * B + a] = x[a, b];"),
    (
        "x: in f32[A, B, C], y: inout f32[A * B * C]",
        "a in 0..A, b in 0..B, c in 0..C",
        "y[(a * C + b) * B + c] = x[a, b, c];",
    ),
    ("x: in f32[M, N], y: inout f32[M, N]", "q in 0..M * N", "y[q / M, q % N] = x[0, q % N];"),
    ("x: in f32[M, N], y: inout f32[M, N]", "q in 0..M * N + 1", "y[q / N, 0] = 1.0;"),
    ("x: in f32[M, 8], y: inout f32[M, 8]", "i in tiles(M,16)", "for r in 0..16 { y[i.start + r, 0] = 1.0; }"),
    ("x: in f32[M], y: inout f32[M]", "m in 0..M", "y[M - m] = x[m];"),
    ("x: in f32[M], y: inout f32[M]", "m in 0..M / 2", "y[m] = x[2 * m + 2];"),
    ("x: in f32[M], y: inout f32[M]", "m in 0..(M + 1) / 2", "y[m] = x[2 * m + 1];"),
    ("x: in f32[M, N], y: inout f32[M, N]", "d in 0..M + N, m in 0..M", "if d >= m { y[m, d - m] = x[m, 0]; }"),
    (
        "x: in f32[M, 8], y: inout f32[M, 8]",
        "m in 0..M, c in 0..8",
        "for turn in 0..1 { if m == 1 { y[m, c] = 0.0; continue; } y[m, c] = x[m - 1, c]; }",
    ),
    (
        "x: in f32[M, 8], y: inout f32[M, 8]",
        "m in 0..M, c in 0..8",
        "for turn in 0..1 { if m == 0 { y[m, c] = 0.0; } y[m, c] = x[m - 1, c]; }",
    ),
];

#[test]
fn computed_indices_are_proved() {
    for (arrays, grid, body) in COMPUTED {
        let text = elements(arrays, grid, body);
        let found = told("computed", &text);
        assert!(found.is_empty(), "{text}{found:?}");
    }
    // In loops: what blocks share is another question.
    for (arrays, ranges, body) in BEYOND {
        let loops: String = ranges.split(", ").map(|r| format!("for {r} {{ ")).collect();
        let close = "}".repeat(ranges.split(", ").count());
        let text = format!("kernel elements({arrays}) {{\n    {loops}{body} {close}\n}}\n");
        assert!(told("beyond", &text).contains(&"PA-1101".to_owned()), "{text}");
    }
}

/// What was proved stays proved once other accesses have checks: more facts are more ways for a proof to go wrong, and
/// the verifier takes more of them (E0819).
#[test]
fn checks_do_not_hide_proofs() {
    for (arrays, loops, body) in [
        (
            "x: in f32[1, 1], y: inout f32[N - 1, M - 2], d: in f32[M, N]",
            ["M - 2", "N - 1"],
            "y[(N - 1) - 0 - b, a / 4 * 4 + a % 5] = x[0, 0];",
        ),
        (
            "x: in f32[1, 1], y: inout f32[M - 2, N - 1], d: in f32[M, N]",
            ["M - 2", "N - 1"],
            "y[(M - 2) - 0 - a, b / 4 * 4 + b % 4] = x[0, 0];",
        ),
        (
            "x: in f32[1, 1], y: inout f32[3, M * N], d: in f32[M, N]",
            ["M * N", "1"],
            "y[a % 3, min(a + 2, M * N)] = x[0, 0]; y[a % 3, min(a + 2, M * N)] = 2.0;",
        ),
    ] {
        let [a, b] = loops;
        let text = format!("kernel k({arrays}) {{\n    for a in 0..{a} {{ for b in 0..{b} {{ {body} }} }}\n}}\n");
        assert!(!told("hidden", &text).is_empty(), "{text}");
    }
}

/// A bit that a loop carries is 0 or 1, also where the loop has been gone through often enough to widen what it is.
#[test]
fn bits_that_loops_carry() {
    let text = "\
kernel zeros(x: in i32[N], y: inout i32[N]) {
    grid (b in tiles(N, 64));
    var before = false;
    for i in b {
        var there = false;
        for p in 0..4 {
            if x[i] == i32(p) {
                there  = true;
                before = x[i] == 3;
                break;
            }
        }
        assert(there, \"element {i} is in 0..4\");
        if !before { y[i] = 1; }
    }
}
";
    assert!(told("carried", text).is_empty());
}
