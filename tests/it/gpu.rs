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
    assert_eq!(refused, ["hbm_gemm", "regions", "sampling"]);
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
