//! Sizes of the source: lines of at most 120 columns, in every Rust file (rustfmt leaves comments, strings and macros
//! as they are), and crates of at most 20,000 lines. What Cargo is told of tests in a library is true, and the lock of
//! the benchmarks is not old.

use std::path::{Path, PathBuf};

/// `max_width` of `rustfmt.toml`.
const WIDTH: usize = 120;

/// Lines of a crate: more is a crate that should be two.
const CRATE: usize = 20_000;

/// The Rust files below a folder, but for what is built or fetched.
fn sources(folder: &Path, out: &mut Vec<PathBuf>) {
    for path in std::fs::read_dir(folder).expect("a folder").map(|e| e.expect("an entry").path()) {
        let is_named = |name: &str| path.file_name().is_some_and(|n| n == name);
        if path.is_dir() {
            if !is_named(".git") && !is_named("node_modules") && !path.join("CACHEDIR.TAG").exists() {
                sources(&path, out);
            }
        } else if path.extension().is_some_and(|e| e == "rs") {
            out.push(path);
        }
    }
}

#[test]
fn none_is_longer_than_120_columns() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    assert!(std::fs::read_to_string(root.join("rustfmt.toml")).expect("readable").contains("max_width = 120\n"));
    let mut files = Vec::new();
    sources(&root, &mut files);
    assert!(files.len() > 1000, "{} files", files.len());
    files.sort();
    let mut long = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file).expect("readable");
        let name = file.strip_prefix(&root).expect("below the root").display().to_string();
        let lines = text.lines().enumerate().map(|(n, line)| (n + 1, line.chars().count()));
        long.extend(lines.filter(|(_, columns)| *columns > WIDTH).map(|(n, c)| format!("{name}:{n}: {c} columns")));
    }
    assert!(long.is_empty(), "wrap these; strings go on behind a `\\`:\n{}", long.join("\n"));
}

#[test]
fn no_crate_has_over_20_000_lines() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut large = Vec::new();
    for folder in ["compiler", "runtime"] {
        for entry in std::fs::read_dir(root.join(folder)).expect("a folder") {
            let source = entry.expect("an entry").path().join("src");
            let mut files = Vec::new();
            if source.is_dir() {
                sources(&source, &mut files);
            }
            let lines = |f: &PathBuf| std::fs::read_to_string(f).expect("readable").lines().count();
            let lines: usize = files.iter().map(lines).sum();
            if lines > CRATE {
                large.push(format!("{}: {lines} lines", source.display()));
            }
        }
    }
    assert!(large.is_empty(), "split these:\n{}", large.join("\n"));
}

/// Every library is compiled a second time for unit tests, and read once more for examples in its comments: a manifest
/// turns off what there is none of (`test`, `doctest`). Turned off where there are some, they would never run.
#[test]
fn manifests_turn_off_the_kinds_of_tests_that_a_library_lacks() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut wrong = Vec::new();
    for folder in ["compiler", "runtime"] {
        for entry in std::fs::read_dir(root.join(folder)).expect("a folder") {
            let folder = entry.expect("an entry").path();
            let Ok(manifest) = std::fs::read_to_string(folder.join("Cargo.toml")) else { continue };
            let mut files = Vec::new();
            sources(&folder.join("src"), &mut files);
            let text: String = files.iter().map(|f| std::fs::read_to_string(f).expect("readable")).collect();
            let units = text.contains("#[test]") || text.contains("proptest!");
            for (kind, there) in [("test", units), ("doctest", has_examples(&text))] {
                let off = manifest.lines().any(|line| line == format!("{kind} = false"));
                if off == there {
                    let what = if there { "are some" } else { "are none" };
                    wrong.push(format!("{}: `{kind} = false` is {off}, and there {what}", folder.display()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "in the tables `[lib]`:\n{}", wrong.join("\n"));
}

/// Whether a comment has an example that rustdoc would run: a fence without a language, or with Rust's, or a page.
fn has_examples(text: &str) -> bool {
    if text.contains("#![doc = include_str!") {
        return true;
    }
    let comments = text.lines().map(str::trim_start).filter_map(|l| l.strip_prefix("//!").or(l.strip_prefix("///")));
    let mut inside = false;
    for fence in comments.filter_map(|c| c.trim_start().strip_prefix("```")) {
        inside = !inside;
        if inside && !["text", "ignore", "console"].contains(&fence) {
            return true;
        }
    }
    false
}

/// Names in the `[dependencies]` of a manifest.
fn dependencies(manifest: &str) -> impl Iterator<Item = &str> {
    let section = manifest.split("\n[dependencies]\n").nth(1).unwrap_or_default();
    let section = section.split("\n[").next().unwrap_or_default();
    section.lines().filter_map(|line| Some(line.split_once(['.', ' '])?.0)).filter(|name| !name.starts_with('#'))
}

/// The benchmark program is no member of the workspace, so no build here notices that its lock is old. It is built with
/// `--locked`.
#[test]
fn the_lock_of_the_benchmarks_knows_what_crates_depend_on() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let text = |path: &Path| std::fs::read_to_string(path).expect("readable");
    let (lock, workspace) = (text(&root.join("tests/bench/Cargo.lock")), text(&root.join("Cargo.toml")));
    // Some are known by another name here.
    let package = |d: &str| {
        let line = workspace.lines().find(|l| l.starts_with(&format!("{d} = "))).unwrap_or_default();
        line.split("package = \"").nth(1).and_then(|l| l.split('"').next()).unwrap_or(d).to_owned()
    };
    let mut missing = Vec::new();
    for folder in ["compiler", "runtime"] {
        for entry in std::fs::read_dir(root.join(folder)).expect("a folder") {
            let manifest = entry.expect("an entry").path().join("Cargo.toml");
            let Some(manifest) = manifest.exists().then(|| text(&manifest)) else { continue };
            let name = manifest.split("name = \"").nth(1).and_then(|t| t.split('"').next()).expect("a name");
            let locked = lock.split("[[package]]\n").find(|p| p.starts_with(&format!("name = \"{name}\"\n")));
            let Some(locked) = locked else { continue };
            // A name stands alone, or with the version that tells it from others.
            let has = |d: &String| locked.contains(&format!(" \"{d}\"")) || locked.contains(&format!(" \"{d} "));
            missing.extend(dependencies(&manifest).map(package).filter(|d| !has(d)).map(|d| format!("{name}: {d}")));
        }
    }
    assert!(missing.is_empty(), "run `cargo update --workspace` in tests/bench: {missing:?}");
}
