//! Every run-time trap of the interpreter (PA-1xxx), and what stands for it where machine code runs: the same code from
//! both, a refusal or a warning of `check`, or why there is nothing to stand for.

use crate::engine::command;
use ptoc_diagnostics::Code;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// What stands for a trap in machine code.
enum Counterpart {
    /// The launch ends with this code on both backends: source, words of the call.
    Stops(&'static str, &'static [&'static str]),
    /// `check` refuses the kernel, with this code.
    Refused(&'static str, &'static str),
    /// `check` warns with the first code; the sanitizer stops as the interpreter does.
    Sanitized(&'static str, &'static str, &'static [&'static str]),
    /// It is about the interpreter itself, or about hand-written IR.
    Own(&'static str),
    /// Pipes in no order: machine code runs them in program order. Kernels that order them themselves are proved by
    /// `check`, in this file of `tests/hazards/broken`.
    Pipes(&'static str),
}
use Counterpart::{Own, Pipes, Refused, Sanitized, Stops};

const ALL: &[(&str, Counterpart)] = &[
    (
        "PA-1001",
        Stops(
            "kernel k(x: in f32[M, 64], y: out f32[M, 64], s: f32) {
                grid (i in tiles(M, 8));
                let a = tile Vec<f32, i, 64>;
                if s > 0.0 { TLOAD(a, x.tile(i, _)); }
                TSTORE(y.tile(i, _), a);
            }",
            &["-D", "M=16", "-D", "s=-1"],
        ),
    ),
    ("PA-1002", Stops(INDEX, &["-D", "n=3", "-D", "m=9"])),
    ("PA-1003", Stops(INDEX, &["-D", "n=9", "-D", "m=0"])),
    ("PA-1004", Own("elaboration checks each address before TASSIGN: PA-1106 and PA-1107")),
    (
        "PA-1005",
        Refused(
            "E0501",
            "kernel k(y: out f32[1, 8], p: index) { let a = tile Vec<f32, 1, 8>; TSTORE(y, a); TASSIGN(a, p); }",
        ),
    ),
    (
        "PA-1006",
        Refused(
            "E0501",
            "kernel k(x: in f16[16, 16], y: in f32[16, 16], z: out f32[16, 16]) {
                let a = tile Left<f16, 16, 16> at 0;
                let b = tile Left<f32, 16, 16> at 0;
                TMOV(a, Mat(x));
                let c = tile Acc<f32, 16, 16>;
                TMATMUL(c, b, Right(y));
                TSTORE(z, c);
            }",
        ),
    ),
    ("PA-1008", Own("steps are counted by the interpreter alone; machine code is ended by a signal")),
    ("PA-1009", Own("shadow of tiles; machine code has its arena, E0712 if there is no memory")),
    ("PA-1010", Own("the launch refuses arguments before either backend sees them: E0747 to E0756")),
    ("PA-1011", Own("IR by hand; the pipeline verifies after each pass")),
    ("PA-1012", Refused("E0217", "kernel k(y: out f32[8], z: out f32[8]) { z[0] = y[0]; }")),
    (
        "PA-1013",
        Sanitized(
            "W0590",
            "kernel k(p: in i32[M], y: inout f32[8]) { grid (i in 0..M); y[index(p[i]) % 8] = f32(i); }",
            &["-D", "M=64"],
        ),
    ),
    (
        "PA-1014",
        Sanitized(
            "W0220",
            "kernel k(x: in f32[8, 8], y: out f32[8, 8]) {
                let a = tile Vec<f32, 8, 8> at 0;
                let b = tile Vec<f32, 8, 8> at 0x80;
                TLOAD(a, x);
                b = 1.0;
                TADD(a, a, b);
                TSTORE(y, a);
            }",
            &[],
        ),
    ),
    (
        "PA-1015",
        Refused(
            "E0617",
            "kernel k(x: in i32[8, 8], y: out i32[8, 8]) { let a = Vec(x); TANDS(a, a, 3); TSTORE(y, a); }",
        ),
    ),
    (
        "PA-1040",
        Stops(
            "kernel k(x: in f32[16, 64], y: out f32[16, 64], p: index) {
                let a = tile Vec<f32, 16, 64>;
                TASSIGN(a, p);
                TLOAD(a, x);
                let b = Vec(x);
                TADD(a, a, b);
                TSTORE(y, a);
            }",
            &["-D", "p=192512"],
        ),
    ),
    (
        "PA-1041",
        Stops(
            "kernel k(x: in f32[M, K], y: out f32[M, 8]) {
                grid (i in tiles(M, 8));
                let a = tile Vec<f32, i, 8>;
                for k in tiles(K, 8) { if k.first { a = 1.0; } else { a = a + 1.0; } }
                TSTORE(y.tile(i, _), a);
            }",
            &["-D", "M=8", "-D", "K=0"],
        ),
    ),
    (
        "PA-1042",
        Stops(
            "kernel k(x: in f32[16, 8], n: index, y: out f32[1, 8]) {
                let i = tile Vec<i32, 1, 8>;
                i = i32(n);
                let u = tile Vec<f32, 1, 8>;
                MGATHER(u, x, i);
                TSTORE(y, u);
            }",
            &["-D", "n=128"],
        ),
    ),
    (
        "PA-1071",
        Stops("kernel k(x: in f32[16, 8], t: in i32[4], y: out f32[4, 8]) { copy(y, gather(x, (t, _))); }", &[]),
    ),
    ("PA-1072", Sanitized("E0591", "kernel k(x: inout f32[M, M]) { copy(x, x.T); }", &["-D", "M=8"])),
    ("PA-1101", Stops("kernel k(x: in f32[8], y: out f32[1], n: index) { y[0] = x[n]; }", &["-D", "n=8"])),
    (
        "PA-1102",
        Stops(
            "kernel k(x: in f32[M, 8], y: out f32[N, 8]) { grid (i in tiles(N, 4)); TSTORE(y.tile(i, _), Vec(x.tile(i, \
            _))); }",
            &["-D", "M=4", "-D", "N=8"],
        ),
    ),
    (
        "PA-1103",
        Stops(
            "kernel k(x: in f32[M, 8], z: in f32[N, 8], y: out f32[M, 8]) {
                grid (i in tiles(M, 8));
                TSTORE(y.tile(i, _), Vec(x.tile(i, _)) + Vec(z.tile(tiles(N, 8)[0], _)));
            }",
            &["-D", "M=4", "-D", "N=8"],
        ),
    ),
    (
        "PA-1104",
        Stops(
            "kernel k(y: out f32[8, 8], n: index) { let a = tile Vec<f32, 8, 8>; a = 1.0; TADDS(a.valid(n, 8), \
            a.valid(n, 8), 1.0); TSTORE(y, a); }",
            &["-D", "n=9"],
        ),
    ),
    ("PA-1105", Stops("kernel k(y: out f32[M]) where M >= 9 { y[0] = 1.0; }", &["-D", "M=8"])),
    ("PA-1106", Stops(ADDRESS, &["-D", "p=33"])),
    ("PA-1107", Stops(ADDRESS, &["-D", "p=196608"])),
    ("PA-1109", Stops("kernel k(y: out f32[1], n: index) { assert(n > 2, \"more\"); y[0] = 1.0; }", &["-D", "n=1"])),
    (
        "PA-1110",
        Stops(
            "kernel k(x: in u8[M, N], y: out i32[M, N / 4]) {
                grid (i in tiles(M, 16), j in tiles(N / 4, 64));
                TSTORE(y.tile(i, j), Vec(recast<i32>(x).tile(i, j)));
            }",
            &["-D", "M=16", "-D", "N=42"],
        ),
    ),
    (
        "PA-1111",
        Stops(
            "kernel k(x: in f32[64], y: out f32[1], n: index) { y[0] = x[n * 4]; }",
            &["-D", "n=4611686018427387904"],
        ),
    ),
    ("PA-1120", Pipes("straight")),
    ("PA-1121", Pipes("straight")),
    ("PA-1122", Pipes("scalars")),
    ("PA-1123", Pipes("phases")),
    ("PA-1124", Pipes("loops")),
    ("PA-1125", Pipes("loops")),
    ("PA-1126", Pipes("phases")),
    ("PA-1127", Pipes("phases")),
    ("PA-1128", Pipes("phases")),
    ("PA-1129", Own("orders of pipes are run on physical IR")),
    ("PA-1130", Pipes("atomics")),
    (
        "PA-1131",
        Stops(
            "kernel k(a: in f32[M, 8], b: in f32[N, 8], y: out f32[16, 8]) {
                let x = tile Vec<f32, 16, 8>;
                let z = tile Vec<f32, 16, 8>;
                let r = tile Vec<f32, 16, 8>;
                let (i, j) = (tiles(M, 16)[0], tiles(N, 16)[0]);
                TLOAD(x.valid(i, 8), a.tile(i, _));
                TLOAD(z.valid(j, 8), b.tile(j, _));
                TPARTADD(r, x.valid(i, 8), z.valid(j, 8));
                TSTORE(y, r.valid(16, 8));
            }",
            &["-D", "M=8", "-D", "N=16"],
        ),
    ),
    (
        "PA-1132",
        Stops(
            "kernel k(a: in f32[8, N], y: out f32[8, N]) {
                grid (j in tiles(N, 64));
                let x = Vec(a.tile(_, j));
                let odd = tile Vec<f32, 8, 64>;
                let even = tile Vec<f32, 8, 64>;
                TDEINTERLEAVE(odd, even, x, x);
                TSTORE(y.tile(_, j), even);
            }",
            &["-D", "N=63", "--target", "a5"],
        ),
    ),
];

const INDEX: &str = "kernel k(y: inout f32[8, 8], n: index, m: index) {
    let t = tile Vec<f32, 4, 8>; t = 1.0; t[m, 0] = 2.0; y[n, 0] = t[m, 0]; }";

const ADDRESS: &str = "kernel k(y: out f32[16, 8], p: index) {
    let u = tile Vec<f32, 16, 8>; TASSIGN(u, p); u = 2.0; TSTORE(y, u); }";

fn source(code: &str, text: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("counterpart-{code}.tile"));
    std::fs::write(&path, text).expect("a temporary file");
    path
}

/// The codes of the errors that a call reports.
fn errors(code: &str, text: &str, words: &[&str]) -> Vec<String> {
    let path = source(code, text);
    let mut all: Vec<std::ffi::OsString> = vec![words[0].into(), path.into()];
    all.extend(words[1..].iter().map(Into::into));
    let outcome = command(&all);
    let codes = outcome.err.lines().filter_map(|l| l.strip_prefix("error[")?.split(']').next());
    codes.map(str::to_owned).collect()
}

#[test]
fn each_trap_has_one() {
    let listed: BTreeMap<&str, &Counterpart> = ALL.iter().map(|(code, of)| (*code, of)).collect();
    assert_eq!(listed.len(), ALL.len(), "a code stands there twice");
    let traps = Code::all().iter().map(|c| c.code.as_str()).filter(|id| id.starts_with("PA-1"));
    let missing: Vec<&str> = traps.filter(|id| !listed.contains_key(id)).collect();
    assert!(missing.is_empty(), "traps without a counterpart: {missing:?}");
}

/// What is not as `of` says; empty if all is.
fn wrong(code: &str, of: &Counterpart) -> Vec<String> {
    let mut out = Vec::new();
    let mut expect = |what: &str, found: Vec<String>, want: &str| {
        if found != [want] {
            out.push(format!("{code} {what}: {found:?}, not {want}"));
        }
    };
    match of {
        Stops(text, words) => {
            // PA-1002 and PA-1003 stand behind PA-1101: an index is checked in the author's words first.
            let want = if matches!(code, "PA-1002" | "PA-1003") { "PA-1101" } else { code };
            for backend in ["cpu", "interp"] {
                let call = [&["run", "--random", "1", "--backend", backend], *words].concat();
                expect(backend, errors(code, text, &call), want);
            }
        }
        Refused(want, text) => expect("check", errors(code, text, &["check"]), want),
        Sanitized(warned, text, words) => {
            let path = source(code, text);
            let check = command(&["check".as_ref(), path.as_os_str()]);
            expect("check", check.err.contains(warned).then(|| (*warned).to_owned()).into_iter().collect(), warned);
            for way in [&["--backend", "interp"][..], &["--sanitize"]] {
                expect(way[0], errors(code, text, &[&["run", "--random", "1"], way, *words].concat()), code);
            }
        }
        Pipes(file) => {
            let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("hazards/broken").join(format!("{file}.tile"));
            let text = std::fs::read_to_string(path).expect("a file of hazards");
            let trap = text.lines().any(|l| l.starts_with("// trap:") && l.contains(code));
            expect(file, trap.then(|| code.to_owned()).into_iter().collect(), code);
        }
        Own(why) => assert!(why.len() > 20, "{code}"),
    }
    out
}

#[test]
fn counterparts_are_what_is_said() {
    let wrong: Vec<String> = ALL.iter().flat_map(|(code, of)| wrong(code, of)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
