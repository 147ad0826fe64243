//! The target of an NVIDIA GPU as a user meets it: what checks, what is shown, and what is said where there is no card.
//! What the code computes is held to the interpreter by the tests of `compiler/gpu`.

use crate::engine::command;
use std::path::{Path, PathBuf};

fn examples() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples");
    let files = std::fs::read_dir(folder).expect("a folder").map(|f| f.expect("a file").path());
    let mut files: Vec<PathBuf> = files.filter(|p| p.extension().is_some_and(|e| e == "tile")).collect();
    files.sort();
    files
}

/// Every example checks for the target, but for those that speak of units in memory.
#[test]
fn examples_check_on_it() {
    let (mut good, mut refused) = (0, Vec::new());
    for file in examples() {
        let outcome = command(&["check", &file.display().to_string(), "--target", "sm90"]);
        let codes: Vec<&str> =
            outcome.err.lines().filter_map(|l| l.strip_prefix("error[")?.split(']').next()).collect();
        match codes.is_empty() {
            true => good += 1,
            false => {
                assert!(codes.iter().all(|c| c.starts_with("E13")), "{}: {codes:?}", file.display());
                refused.push(file.file_stem().expect("a name").to_string_lossy().into_owned());
            }
        }
    }
    assert_eq!(refused, ["hbm_cache", "hbm_decoder", "hbm_gemm", "regions", "sampling"]);
    assert!(good >= 30, "only {good}");
}

/// PTX is shown where there is no card.
#[test]
fn ptx_is_shown() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/softmax.tile");
    let file = file.display().to_string();
    let outcome = command(&["emit", &file, "softmax", "--target", "sm90", "--stage", "ptx", "-D", "N=128"]);
    let text = &outcome.out;
    assert!(text.contains(".target sm_90a") && text.contains(".visible .entry"), "{text}{}", outcome.err);
    assert!(text.contains("bar.sync") && !text.contains(".ftz") && !text.contains("approx"), "{text}");
    // Other machines have none.
    let outcome = command(&["emit", &file, "softmax", "--stage", "ptx", "-D", "N=128"]);
    assert!(outcome.err.contains("has no stage `ptx`"), "{}", outcome.err);
}

/// A launch has the interpreter's bits on a card, and says what is missing where there is none.
#[test]
fn a_launch_says_what_is_missing() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/softmax.tile").display().to_string();
    let sizes = ["-D", "M=9", "-D", "N=70", "--random", "3", "--json"];
    let run = |backend: &str| {
        let words: Vec<&str> = ["run", &file, "softmax", "--target", "sm90", "--backend", backend].into();
        command(&[words, sizes.to_vec()].concat())
    };
    let (gpu, interp) = (run("gpu"), run("interp"));
    let outputs = |text: &str| {
        let json: serde_json::Value = serde_json::from_str(text).expect("JSON");
        json["outputs"].clone()
    };
    match gpu.err.is_empty() {
        true => assert_eq!(outputs(&gpu.out), outputs(&interp.out)),
        false => {
            assert!(gpu.err.contains("error[E0731]"), "{}", gpu.err);
            assert!(gpu.err.contains("`--backend interp` runs the kernel without one"), "{}", gpu.err);
        }
    }
    let cpu = run("cpu");
    assert!(cpu.err.contains("the backend `cpu` does not run kernels for sm90"), "{}", cpu.err);
}

const DOUBLE: &str = "// run: double interp,cpu,gpu M=10 N=70 seed=1
// run: double gpu,interp target=sm90 M=10 N=70 seed=1
// run: double gpu M=3 N=5 seed=1
// run: double cpu,gpu target=a5 M=3 N=5 seed=1
kernel double(a: in f32[M, N], c: out f32[M, N]) {
    grid (i in tiles(M, 8), j in tiles(N, 32));
    TSTORE(c.tile(i, j), 2.0 * Vec(a.tile(i, j)));
}
";

/// `ptoc test` of a text, as JSON, and its standard error.
fn tested(text: &str, flags: &[&str]) -> (serde_json::Value, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("k.tile");
    std::fs::write(&file, text).expect("written");
    let file = file.display().to_string();
    let outcome = command(&[&["test", &file, "--json"], flags].concat());
    (serde_json::from_str(&outcome.out).unwrap_or_else(|e| panic!("{e}: {}", outcome.out)), outcome.err)
}

/// Test lines that name the GPU run on the card, or on the interpreter of PTX, and it is said which. A line without a
/// target has each backend run for a target of its own; one with a target is held to it.
#[test]
fn lines_that_name_it() {
    let (json, err) = tested(DOUBLE, &[]);
    let results: Vec<&str> =
        json["lines"].as_array().expect("lines").iter().map(|l| l["result"].as_str().expect("a word")).collect();
    assert_eq!(results, ["passed", "passed", "passed", "failed"], "{err}");
    assert!(err.contains("the backend `gpu` does not run kernels for a5"), "{err}");
    let machine = json["machines"]["gpu"].as_str().expect("it is said");
    assert!(machine.starts_with("PTX interpreter, no card (") || machine.contains("CUDA"), "{machine}");
}

/// With `--backend`, every line runs there, whatever its target; lines for units in memory, and kernels that only the
/// line's own target takes, are counted.
#[test]
fn lines_that_do_not() {
    let elsewhere = "// run: half interp,cpu target=kirinx90 T=f16 seed=1 rtol=1e-2 atol=1e-2
// run: unit pim target=hbm-pim M=256 N=64 seed=1
kernel half<type T = f32>(a: in f16[16, 16], b: in f16[16, 16], c: out T[16, 16]) {
    grid (i in tiles(16, 16));
    let acc = tile Acc<T, i, 16>;
    TMATMUL(acc, Left(Mat(a.tile(i, _))), Right(Mat(b.tile(_, _))));
    TSTORE(c.tile(i, _), acc);
}
";
    let (json, err) = tested(&format!("{elsewhere}{DOUBLE}"), &["--backend", "gpu"]);
    assert_eq!((&json["passed"], &json["failed"], &json["skipped"]), (&4.into(), &0.into(), &2.into()), "{json}{err}");
    let reason = json["lines"][0]["reason"].as_str().expect("a reason");
    assert_eq!(reason, "not for sm90: does not compile: E0602");
}
