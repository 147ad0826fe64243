//! `ptoc fmt`.

use super::Sandbox;
use std::fs;
use std::io::Write as _;
use std::process::Stdio;

const MESSY: &str =
    "kernel k( x:in f32[M] ,y: out f32[M]){\ngrid(i in tiles(M,64));\n  TSTORE(y.tile(i),Vec(x.tile(i)));}\n";
const NEAT: &str = "kernel k(x: in f32[M], y: out f32[M]) {\n    grid (i in tiles(M, 64));\n    \
    TSTORE(y.tile(i), Vec(x.tile(i)));\n}\n";

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

/// Lines end as most of them do, and a file that ends them so is canonical.
#[test]
fn line_ends() {
    let s = sandbox();
    s.file("messy.tile", MESSY.replace('\n', "\r\n"));
    s.file("mixed.tile", NEAT.replacen('\n', "\r\n", 3));
    s.file("few.tile", NEAT.replacen('\n', "\r\n", 1));
    s.file("end.tile", NEAT.replace('\n', "\r\n").trim_end());
    let names = "messy.tile mixed.tile few.tile end.tile";
    insta::assert_snapshot!(s.runs(&[
        &format!("fmt --check {names}"),
        &format!("fmt {names}"),
        &format!("fmt --check {names}")
    ]));
    for (name, end) in [("messy.tile", "\r\n"), ("mixed.tile", "\r\n"), ("few.tile", "\n"), ("end.tile", "\r\n")] {
        assert_eq!(fs::read_to_string(s.path().join(name)).unwrap(), NEAT.replace('\n', end), "{name}");
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
    // PTO text is known by its first word.
    const PTO: &str = "// One.\nmodule {\n  func.func @k(%x: !pto.ptr<f32>) {\n    return\n  }\n}\n";
    assert_eq!(piped("fmt -", &PTO.replace("    return", "return")), (Some(0), PTO.to_owned(), String::new()));
    let (status, out, err) = piped("check -", &PTO.replace("return", "pto.nothing"));
    assert!(status == Some(1) && err.contains("<stdin>.pto:4:5 ]") && err.contains("E1401"), "{out}{err}");
}

/// What we write ourselves is in the form that we ask for.
#[test]
fn examples_and_library_are_canonical() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let s = Sandbox::new();
    let text = s.run(&format!("fmt --check {root}/examples {root}/stdlib"));
    assert!(text.contains("\n0 not formatted, "), "{text}");
}

/// Every text of the repository: what is formatted has the same tree and the same comments, and is its own form; a text
/// with errors of syntax is left alone.
#[test]
fn every_text_of_the_repository() {
    use ptoc_diagnostics::{Diagnostic, SourceMap};
    use ptoc_syntax::format::format;
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let (mut texts, mut folders) = (Vec::new(), vec![root.clone()]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy();
            if path.is_dir() && !name.starts_with('.') && name != "target" && name != "node_modules" {
                folders.push(path);
            } else if name.ends_with(".tile") && path.is_file() {
                texts.push(path);
            }
        }
    }
    texts.sort();
    let tree = |text: &str| {
        let mut sources = SourceMap::new();
        let parsed = ptoc_syntax::parse(sources.add("f.tile", text), text);
        let comments: Vec<String> = parsed.comments.iter().map(|(_, c)| c.trim_end().to_owned()).collect();
        let whole = !parsed.diagnostics.iter().any(Diagnostic::is_error);
        whole.then(|| (ptoc_syntax::print::ast(&parsed.file, false), comments))
    };
    let formatted = |text: &str| {
        let mut sources = SourceMap::new();
        format(sources.add("f.tile", text), text)
    };
    let (mut whole, mut broken) = (0, 0);
    for path in &texts {
        // Some texts of the fuzzers' corpora are no UTF-8.
        let Ok(text) = std::fs::read_to_string(path) else { continue };
        let Some(before) = tree(&text) else {
            assert!(formatted(&text).is_err(), "{} is broken, and formatted", path.display());
            broken += 1;
            continue;
        };
        let once = formatted(&text).unwrap_or_else(|why| panic!("{}: {why:?}", path.display()));
        assert_eq!(tree(&once), Some(before), "{}", path.display());
        assert_eq!(formatted(&once).unwrap(), once, "{}", path.display());
        whole += 1;
    }
    assert!(whole > 400 && broken > 5, "{whole} whole texts, {broken} broken ones below {}", root.display());
}
