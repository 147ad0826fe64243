//! Races between blocks, copies onto themselves, and outputs with holes: what the compiler says of them, held against
//! the interpreter.
//!
//! Each kernel of `tests/blocks/races.tile` and `holes.tile` has one mistake, and above it stand the code with which
//! `ptoc check` says so, the one with which the interpreter finds it, and sizes for which it does. `apart.tile` and
//! `covered.tile` have the same shapes without the mistake; nothing is said of them.

mod random;

use ptoc_cli::io::Io;
use ptoc_tests::front::{Flags, check};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A kernel with the words of the line above it.
struct Case {
    name: String,
    line: u32,
    codes: Vec<String>,
    sizes: Vec<String>,
}

fn path(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("blocks").join(file)
}

fn cases(text: &str) -> Vec<Case> {
    let mut words: Vec<String> = Vec::new();
    let mut out = Vec::new();
    for (n, line) in text.lines().enumerate() {
        if let Some(above) = line.strip_prefix("// ") {
            words = above.split_whitespace().map(str::to_owned).collect();
        }
        let Some(name) = line.strip_prefix("kernel ").and_then(|l| l.split(['(', '<']).next()) else { continue };
        let (sizes, codes) = std::mem::take(&mut words).into_iter().partition(|w| w.contains('='));
        out.push(Case { name: name.to_owned(), line: n as u32 + 1, codes, sizes });
    }
    out
}

/// What is said of each kernel, without what is only tested while it runs.
fn told(file: &str) -> (Vec<Case>, BTreeMap<String, Vec<&'static str>>, String) {
    let text = std::fs::read_to_string(path(file)).expect("UTF-8");
    let cases = cases(&text);
    let checked = check(file, &text, &Flags::default(), None);
    let mut told: BTreeMap<String, Vec<&'static str>> = BTreeMap::new();
    for d in &checked.diagnostics {
        let at = d.span.expect("a place");
        let line = text[..at.start as usize].matches('\n').count() as u32 + 1;
        let case = cases.iter().rev().find(|c| c.line <= line).expect("in a kernel");
        if !d.code.as_str().starts_with("PA-") {
            told.entry(case.name.clone()).or_default().push(d.code.as_str());
        }
    }
    (cases, told, checked.text())
}

/// Runs a kernel on the interpreter: its exit status, and what it says.
fn interpret(file: &str, case: &Case) -> (u8, String) {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let mut args: Vec<std::ffi::OsString> = vec!["ptoc".into(), "run".into(), path(file).into(), (&case.name).into()];
    args.extend(["--backend", "interp", "--random", "1"].map(Into::into));
    for size in &case.sizes {
        args.extend(["-D".into(), size.into()]);
    }
    let status = ptoc_cli::execute(args, &mut Io::new(&mut out, &mut err));
    (status, String::from_utf8_lossy(&err).into_owned())
}

#[test]
fn mistakes_are_told_and_happen() {
    let mut count = 0;
    for file in ["races.tile", "holes.tile"] {
        let (cases, told, text) = told(file);
        for case in &cases {
            let [code, trap] = &case.codes[..] else { panic!("{}: two codes", case.name) };
            assert_eq!(told.get(&case.name), Some(&vec![code.as_str()]), "{}\n{text}", case.name);
            let (status, said) = interpret(file, case);
            // Elements that are not written do not end a launch.
            let expected = if trap.starts_with('W') { ptoc_cli::DONE } else { ptoc_cli::ERRORS };
            assert!(status == expected && said.contains(trap.as_str()), "{}: {status}\n{said}", case.name);
        }
        count += cases.len();
    }
    assert!(count >= 60, "only {count} kernels");
}

#[test]
fn the_same_shapes_without_are_silent() {
    let mut count = 0;
    for file in ["apart.tile", "covered.tile"] {
        let (cases, told, text) = told(file);
        assert!(told.is_empty(), "{told:?}\n{text}");
        for case in &cases {
            let (status, said) = interpret(file, case);
            assert!(status == ptoc_cli::DONE && !said.contains("W0760"), "{}: {status}\n{said}", case.name);
        }
        count += cases.len();
    }
    assert!(count >= 60, "only {count} kernels");
}

/// The words of each verdict, as a terminal shows them.
#[test]
fn words() {
    let text = "\
kernel colsums(x: in f32[M, N], y: inout f32[N]) {
    grid (i in tiles(M, 8), j in tiles(N, 64));
    TSTORE(y.tile(j), Vec(y.tile(j)) + colsum(Vec(x.tile(i, j))));
}
kernel by_rows(x: in f32[M, 64], rows: in i32[M], y: inout f32[M, 64]) {
    grid (i in 0..M);
    for j in 0..64 { y[index(rows[i]) % M, j] = x[i, j]; }
}
kernel transposed(x: inout f32[M, M]) {
    copy(x, x.T);
}
kernel counted(n: inout i32[1], z: out i32[M]) {
    grid (i in 0..M);
    atomic_add(n[0], 1);
    z[i] = n[0];
}
kernel floor(x: in f32[M, 64], y: out f32[M, 64]) {
    grid (i in 0..M / 16);
    TSTORE(y.tile(tiles(M, 16)[i], _), Vec(x.tile(tiles(M, 16)[i], _)));
}
kernel positive(x: in f32[M], use_it: in i32[M], y: out f32[M]) {
    grid (i in 0..M);
    if use_it[i] > 0 { y[i] = x[i]; }
}
";
    insta::assert_snapshot!(check("words.tile", text, &Flags::default(), None).text());
}

/// What one launch of a program leaves, and the next one reads.
#[test]
fn between_launches() {
    let text = "\
kernel floor(x: in f32[M, 8], y: out f32[M, 8]) {
    grid (i in 0..M / 16);
    TSTORE(y.tile(tiles(M, 16)[i], _), Vec(x.tile(tiles(M, 16)[i], _)));
}
kernel all(x: in f32[M, 8], y: out f32[M, 8]) {
    grid (i in tiles(M, 16));
    TSTORE(y.tile(i, _), Vec(x.tile(i, _)));
}
program reads_rest(a: in f32[40, 8], b: out f32[40, 8]) {
    let t = tensor f32[40, 8];
    floor(a, t);
    all(t, b);
}
kernel upper(x: in f32[N], y: out f32[N]) { grid (i in 0..N / 2); y[i] = x[i]; }
kernel lower(x: in f32[N], y: out f32[N]) { grid (i in N / 2..N); y[i] = x[i]; }
kernel filled(x: in f32[N], y: inout f32[N]) { grid (i in N / 2..N); y[i] = x[i]; }
kernel twice(x: in f32[N], y: out f32[N]) { grid (i in 0..N); y[i] = 2.0 * x[i]; }
program two_halves(a: in f32[41], b: out f32[41]) {
    let t = tensor f32[41];
    upper(a, t);
    lower(a, t);
    twice(t, b);
}
program rest_filled(a: in f32[41], b: out f32[41]) {
    let u = tensor f32[41];
    upper(a, u);
    filled(a, u);
    twice(u, b);
}
program one_half_twice(a: in f32[41], b: out f32[41]) {
    let v = tensor f32[41];
    upper(a, v);
    upper(a, v);
    twice(v, b);
}
program reads_all(a: in f32[40, 8], b: out f32[40, 8]) {
    let t = tensor f32[40, 8];
    all(a, t);
    all(t, b);
}
";
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("between_launches.tile");
    std::fs::write(&file, text).expect("a temporary file");
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let status =
        ptoc_cli::execute(["ptoc".into(), "check".into(), file.into_os_string()], &mut Io::new(&mut out, &mut err));
    let said = String::from_utf8_lossy(&err);
    let told = "this launch reads `t`, of which the launch of `floor` has not written every element";
    let half = "this launch reads `v`, of which the launch of `upper` has not written every element";
    assert!(status == ptoc_cli::DONE && said.matches(told).count() == 1, "{said}");
    assert!(said.matches(half).count() == 1 && said.matches("this launch reads").count() == 2, "{said}");
}
