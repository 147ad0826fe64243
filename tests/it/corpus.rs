//! Replays the corpora of the fuzz targets: the properties of `tests/fuzz/src` hold for every committed input, and for
//! every program in the repository.

#[path = "../fuzz/src/lib.rs"]
pub(crate) mod properties;

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

fn files(dir: &Path, out: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(dir).unwrap_or_else(|e| panic!("{}: {e}", dir.display()));
    let mut paths: Vec<PathBuf> = entries.map(|e| e.expect("a directory entry").path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            files(&path, out);
        } else {
            out.push(path);
        }
    }
}

/// Runs a property on all files below these folders of `tests/`, and names those that break it. The stack is that of a
/// main thread.
fn replay(property: fn(&[u8]), folders: &[&str], extension: Option<&str>) {
    let mut paths = Vec::new();
    for folder in folders {
        files(&Path::new(env!("CARGO_MANIFEST_DIR")).join(folder), &mut paths);
    }
    paths.retain(|p| extension.is_none_or(|e| p.extension().is_some_and(|x| x == e)));
    assert!(!paths.is_empty(), "nothing in {folders:?}");
    let run = move || {
        let broken = |path: &PathBuf| {
            let data = fs::read(path).expect("readable");
            catch_unwind(AssertUnwindSafe(|| property(&data))).is_err()
        };
        paths.into_iter().filter(broken).map(|p| p.display().to_string()).collect::<Vec<_>>()
    };
    let thread = std::thread::Builder::new().stack_size(8 << 20).spawn(run).expect("a thread");
    let broken = thread.join().expect("the panics are caught");
    assert!(broken.is_empty(), "the property fails for\n{}", broken.join("\n"));
}

#[test]
fn source_to_ir() {
    replay(properties::source_to_ir, &["corpus/source_to_ir"], None);
}

#[test]
fn source_to_ir_of_all_programs() {
    replay(properties::source_to_ir, &["language", "../examples", "ui"], Some("tile"));
}

#[test]
fn plan() {
    replay(properties::plan, &["corpus/plan"], None);
}

#[test]
fn plan_of_all_programs() {
    replay(properties::plan, &["language", "../examples", "corpus/exec_diff"], None);
}

/// Every program of the repository, broken ones included.
#[test]
fn format_of_all_programs() {
    replay(
        properties::format_text,
        &["language", "../examples", "../stdlib", "hazards", "bytes", "ui", "pim"],
        Some("tile"),
    );
    replay(properties::format_text, &["corpus/source_to_ir", "corpus/exec_diff", "corpus/plan"], None);
}

#[test]
fn ir_text() {
    replay(properties::ir_text, &["corpus/ir_text"], None);
}

#[test]
fn pto() {
    replay(properties::pto, &["corpus/pto", "../compiler/pto/tests/it/texts"], None);
}

#[test]
fn loop_text() {
    replay(properties::loop_text, &["corpus/loop_text"], None);
}

#[test]
fn exec_diff() {
    replay(properties::exec_diff, &["corpus/exec_diff"], None);
}

#[test]
fn exec_diff_of_all_programs() {
    replay(properties::exec_diff, &["language", "../examples"], Some("tile"));
}

#[test]
fn dram() {
    replay(properties::dram, &["corpus/dram"], None);
}

#[test]
fn streams() {
    replay(properties::stream, &["corpus/stream", "corpus/machine", "pim"], None);
}

#[test]
fn devices() {
    replay(properties::devices, &["corpus/devices", "../compiler/isa/targets"], None);
}

#[test]
fn machine() {
    replay(properties::machine, &["corpus/machine", "pim"], None);
}
