//! Words of the command line's reports: one for each mistake, and repairs that mend it.

use super::Sandbox;
use ptoc_tensor::DType;

/// Codes of the JSON lines of `check`, with the number of edits of each line.
fn codes(s: &Sandbox, args: &str) -> Vec<(String, usize)> {
    let text = s.run(args);
    let lines = text.lines().filter(|l| l.starts_with('{'));
    let told = lines.map(|l| serde_json::from_str::<serde_json::Value>(l).unwrap());
    let told = told.filter(|v| v["code"].is_string());
    told.map(|v| {
        let fixes = v["fixes"].as_array().cloned().unwrap_or_default();
        let edits = fixes.iter().map(|f| f["edits"].as_array().map_or(0, Vec::len)).sum();
        (v["code"].as_str().unwrap_or_default().to_owned(), edits)
    })
    .collect()
}

/// Blocks in the order of other modes are one mistake, however many windows and shapes are not proved for it.
#[test]
fn exchanged_blocks_are_told_once() {
    let s = Sandbox::new();
    let kernel = |blocks: &str| {
        format!(
            "kernel k(a: in f32[M, N], c: out f32[M, N]) {{\n    grid (i in tiles(M, 16), j in tiles(N, 16));\n    \
             TSTORE(c.tile({blocks}), Vec(a.tile(i, j)));\n}}\n"
        )
    };
    s.file("k.tile", kernel("j, i"));
    assert_eq!(codes(&s, "check k.tile --message-format json"), [("PA-1102".to_owned(), 2)]);
    s.file("k.tile", kernel("i, j"));
    assert_eq!(codes(&s, "check k.tile --message-format json"), []);
    // Equal sizes are what the author may have meant.
    s.file("k.tile", kernel("j, i"));
    assert_eq!(codes(&s, "check k.tile -D M=64 -D N=64 --message-format json"), []);
}

/// An address of the launch leaves one thing open, whether it is a place for the tile, and has one warning.
#[test]
fn an_address_of_the_launch_is_one_warning() {
    let s = Sandbox::new();
    s.file(
        "k.tile",
        "kernel k(a: in f32[16, 16], c: out f32[16, 16], p: index) {\n    let t = tile Vec<f32, 16, 16>;\n    \
         TASSIGN(t, p);\n    \
         TLOAD(t, a);\n    TSTORE(c, t);\n}\n",
    );
    assert_eq!(codes(&s, "check k.tile --message-format json"), [("PA-1107".to_owned(), 0)]);
}

/// An editor has an edit for each address that is proposed.
#[test]
fn addresses_have_edits() {
    let s = Sandbox::new();
    s.file(
        "k.tile",
        "kernel k(a: in f32[16, 16], c: out f32[16, 16]) {\n    let t = tile Vec<f32, 16, 16>;\n    \
         TASSIGN(t, 0x401);\n    \
         TLOAD(t, a);\n    TSTORE(c, t);\n}\n",
    );
    assert_eq!(codes(&s, "check k.tile --message-format json"), [("SA-0354".to_owned(), 2)]);
}

/// A function may be imported for the command line alone, where no test line says which one is meant.
#[test]
fn imports_for_the_command_line_are_used() {
    let s = Sandbox::new();
    let text = "use std::act::gelu;\n\nfn same(x: f32) -> f32 { x }\n\n\
                kernel k<fn act = same>(a: in f32[M, 64], c: out f32[M, 64]) {\n    \
                grid (i in tiles(M, 16));\n    TSTORE(c.tile(i, _), act(Vec(a.tile(i, _))));\n}\n";
    s.file("k.tile", text);
    s.file("lines.tile", format!("// run: k interp M=16 act=same\n\n{text}"));
    assert_eq!(codes(&s, "check k.tile --message-format json"), []);
    assert_eq!(codes(&s, "check lines.tile --message-format json"), [("W0110".to_owned(), 0)]);
    assert_eq!(codes(&s, "check lines.tile -D act=gelu --message-format json"), []);
}

/// Other values are no rounding: no tolerance is proposed, and what they have in common is said.
#[test]
fn no_tolerance_for_other_values() {
    let s = Sandbox::new();
    s.array("x.npy", DType::F32, &[32, 64]);
    let kernel = |rows: &str, value: &str| {
        format!(
            "kernel k(x: in f32[M, 64], y: inout f32[M, 64])\n    ensures y[i, j] == x[i, j] * 3.0\n{{\n    \
             grid (i in {rows});\n    \
             TSTORE(y.tile(i, _), {value});\n}}\n"
        )
    };
    s.file("k.tile", kernel("tiles(M, 16)", "Vec(x.tile(i, _))"));
    let told = s.run("run k.tile --in x=x.npy --in y=x.npy --verify");
    assert!(told.contains("each is 0.3333 times what it should be"), "{told}");
    assert!(told.contains("rounding of results does not explain as much") && !told.contains("tolerance"), "{told}");
    s.file("k.tile", kernel("tiles(M, 16)", "Vec(x.tile(i, _)) * 3.00001"));
    let told = s.run("run k.tile --in x=x.npy --in y=x.npy --verify");
    assert!(told.contains("allow a tolerance: it holds with rtol 1e-5 and atol 1e-6"), "{told}");
}

/// A trap in a function names the call, on every backend.
#[test]
fn traps_name_calls() {
    let s = Sandbox::new();
    s.file(
        "call.tile",
        "fn at(x: f32[8], p: index) -> f32 { x[p] }\nkernel k(x: in f32[8], y: out f32[8], p: index) {\n    \
         grid (i in 0..8);\n    \
         y[i] = at(x, p);\n}\n",
    );
    for how in ["--backend interp", "--backend cpu", "--sanitize"] {
        let told = s.run(&format!("run call.tile {how} --random 1 -D p=9"));
        assert!(told.contains("error[PA-1101]") && told.contains("`at` is called here"), "{how}: {told}");
    }
}

/// Whether blocks meet depends on sizes of which the compiler tries none: the launch's own are looked at before it, and
/// named. Who watches finds it by itself.
#[test]
fn a_race_of_the_launch_names_its_sizes() {
    let s = Sandbox::new();
    s.file(
        "k.tile",
        "kernel k<const P = 41>(x: in f32[M, 8], y: inout f32[M, 8]) {\n    grid (i in 0..M);\n    \
        TSTORE(y[i * P % M, _], Vec(x[i, _]));\n}\n",
    );
    let run = |args: &str| s.run(&format!("run k.tile --random 1 {args}"));
    assert_eq!(codes(&s, "check k.tile --message-format json"), [("W0590".to_owned(), 0)]);
    let told = run("-D M=40");
    assert!(told.contains("exit 0") && told.contains("W0590") && !told.contains("E0590"), "{told}");
    let told = run("-D M=82");
    assert!(told.contains("exit 1") && told.contains("E0590") && !told.contains("W0590"), "{told}");
    assert!(told.contains("so it is in a launch with M = 82, which makes 82 blocks"), "{told}");
    for how in ["--backend interp", "--sanitize"] {
        let told = run(&format!("-D M=82 {how}"));
        assert!(told.contains("exit 1") && told.contains("PA-1013") && !told.contains("E0590"), "{how}: {told}");
    }
    // Where other sizes show it, they are said to be others.
    let told = run("-D M=40 -D P=3");
    assert!(told.contains("E0590") && told.contains("so it is in a launch with M = 3"), "{told}");
    assert!(told.contains("this launch has M = 40"), "{told}");
    let told = run("-D M=42 -D P=3");
    assert!(told.contains("so it is in a launch with M = 42, which makes 42 blocks"), "{told}");
    // What a run that goes on says of other commands is true, whatever they say.
    for how in ["--backend interp", "--sanitize"] {
        let told = run(&format!("-D M=40 -D P=3 {how}"));
        assert!(told.contains("warning[E0590]") && told.contains("exit 0"), "{how}: {told}");
        assert!(told.contains("this run watches every element") && !told.contains("`ptoc check`"), "{how}: {told}");
    }
}
