//! `ptoc fmt`.

use super::Sandbox;
use std::fs;
use std::io::Write as _;
use std::process::Stdio;

const MESSY: &str =
    "kernel k( x:in f32[M] ,y: out f32[M]){\ngrid(i in tiles(M,64));\n  TSTORE(y.tile(i),Vec(x.tile(i)));}\n";
const NEAT: &str = "kernel k(x: in f32[M], y: out f32[M]) {\n    grid (i in tiles(M, 64));\n    TSTORE(y.tile(i), Vec(x.tile(i)));\n}\n";

fn sandbox() -> Sandbox {
    let s = Sandbox::new();
    fs::create_dir_all(s.path().join("d/e")).unwrap();
    s.file("messy.tile", MESSY);
    s.file("d/neat.tile", NEAT);
    s.file("d/e/messy.tile", MESSY);
    s.file("broken.tile", "kernel k(x: in f32[M]) { let a = ; }\nfn  f() {}\n");
    s
}

#[test]
fn files_and_directories() {
    let s = sandbox();
    insta::assert_snapshot!(s.runs(&[
        "fmt --check messy.tile d",
        "fmt messy.tile d",
        "fmt --check messy.tile d",
        "fmt d"
    ]));
    for name in ["messy.tile", "d/neat.tile", "d/e/messy.tile"] {
        assert_eq!(fs::read_to_string(s.path().join(name)).unwrap(), NEAT, "{name}");
    }
}

#[test]
fn what_is_broken_is_left_alone() {
    let s = sandbox();
    let before = fs::read_to_string(s.path().join("broken.tile")).unwrap();
    insta::assert_snapshot!(s.runs(&["fmt broken.tile messy.tile", "fmt missing.tile", "fmt"]));
    assert_eq!(fs::read_to_string(s.path().join("broken.tile")).unwrap(), before);
    assert_eq!(fs::read_to_string(s.path().join("messy.tile")).unwrap(), NEAT);
}

#[test]
fn standard_input() {
    let s = sandbox();
    let piped = |args: &str, text: &str| {
        let mut command = s.command(args);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    assert_eq!(piped("fmt -", MESSY), (Some(0), NEAT.to_owned(), String::new()));
    let (status, out, _) = piped("fmt --check -", MESSY);
    assert!(status == Some(1) && out.starts_with("standard input:1\n- kernel k( x"), "{out}");
    let (status, out, err) = piped("fmt -", "kernel");
    assert!(status == Some(1) && out.is_empty() && err.contains("error[E00"), "{out}{err}");
}

/// What we write ourselves is in the form that we ask for.
#[test]
fn examples_and_library_are_canonical() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let s = Sandbox::new();
    let text = s.run(&format!("fmt --check {root}/examples {root}/stdlib"));
    assert!(text.contains("\n0 not formatted, "), "{text}");
}
