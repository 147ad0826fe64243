//! Manual kernels, right and wrong: what the compiler says of them, and what the interpreter finds.
//!
//! `tests/hazards/correct` raises nothing. `tests/hazards/unproved` is right too, and the compiler warns that it cannot
//! prove it. Each kernel of `tests/hazards/broken` has one mistake, which the compiler reports with the codes of its
//! `// check:` line; what it says is a snapshot beside the files. A `// trap:` line says how the interpreter finds the
//! same mistake.

use ptoc_cli::io::Io;
use ptoc_syntax::Directive;
use ptoc_tests::front::{Flags, check};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

fn files(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("hazards").join(folder);
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("the kernels")
        .filter_map(|e| Some(e.ok()?.path()))
        .filter(|p| p.extension().is_some_and(|x| x == "tile"))
        .collect();
    files.sort();
    files
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).expect("UTF-8")
}

/// Names of the kernels of a text.
fn kernels(text: &str) -> BTreeSet<&str> {
    text.lines().filter_map(|l| l.strip_prefix("kernel ")?.split(['(', '<']).next()).collect()
}

fn directives(text: &str) -> Vec<Directive> {
    let mut sources = ptoc_diagnostics::SourceMap::new();
    let file = sources.add("test", text);
    ptoc_syntax::parse(file, text).directives
}

/// `ptoc test` of all three folders.
#[test]
fn every_line_passes() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("hazards");
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let args = ["ptoc".into(), "test".into(), folder.into_os_string()];
    let status = ptoc_cli::execute(args, &mut Io::new(&mut out, &mut err));
    let out = String::from_utf8_lossy(&out);
    let failed: Vec<&str> = out.lines().filter(|l| l.starts_with("FAILED")).collect();
    assert_eq!(status, ptoc_cli::DONE, "{}\n{}", failed.join("\n"), String::from_utf8_lossy(&err));
}

#[test]
fn correct_kernels_raise_nothing() {
    let mut count = 0;
    for path in files("correct") {
        let text = read(&path);
        let checked = check(&path.display().to_string(), &text, &Flags::default(), None);
        // What is tested while the kernel runs is no mistake.
        let told: Vec<_> = checked.codes().into_iter().filter(|c| !c.starts_with("PA-")).collect();
        assert!(told.is_empty(), "{}", checked.text());
        count += checked.compiled;
    }
    assert!(count >= 60, "only {count} kernels");
}

/// Counters that are kept by hand need no test when the kernel runs; one that is kept wrongly does.
#[test]
fn counters_that_wrap_are_bounded() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("hazards/correct/counters.tile");
    let text = read(&path);
    let told = |text: &str| {
        let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("counters.tile");
        std::fs::write(&file, text).expect("a temporary file");
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let args = ["ptoc".into(), "check".into(), file.into_os_string()];
        ptoc_cli::execute(args, &mut Io::new(&mut out, &mut err));
        String::from_utf8_lossy(&err).into_owned()
    };
    assert_eq!(told(&text), "");
    for (from, to) in [
        ("if fill == 3 {", "if fill == 4 {"),
        ("var fill = 0;", "var fill = 3;"),
        ("if slot >= 2 {", "if slot > 2 {"),
        ("b = 1 - b;", "b = 2 - b;"),
        ("b = (b + 1) % 3;", "b = (b + 1) % 4;"),
        ("if b > 0 {", "if b >= 0 {"),
        ("if b + 1 == 3 {", "if b == 3 {"),
    ] {
        let other = text.replacen(from, to, 1);
        assert_ne!(other, text, "{from}");
        assert!(told(&other).contains("PA-1101"), "{to}: {}", told(&other));
    }
}

/// Full tiles, ragged ones, and nothing or next to nothing to do.
#[test]
fn correct_kernels_run_in_several_shapes() {
    for path in files("correct").into_iter().chain(files("unproved")) {
        let text = read(&path);
        let mut runs: BTreeMap<String, usize> = kernels(&text).into_iter().map(|k| (k.to_owned(), 0)).collect();
        for d in directives(&text).iter().filter(|d| matches!(d, Directive::Run(_))) {
            *runs.entry(d.kernel().name.to_string()).or_default() += 1;
        }
        assert!(runs.values().all(|&n| n >= 2), "{}: {runs:?}", path.display());
    }
}

/// A broken kernel is checked; if the compiler cannot prove the mistake, the interpreter must find it.
#[test]
fn broken_kernels_are_told() {
    let (mut count, mut unproved, mut codes) = (0, 0, BTreeSet::new());
    for path in files("broken") {
        let text = read(&path);
        let all = directives(&text);
        for kernel in kernels(&text) {
            let lines: Vec<&Directive> = all.iter().filter(|d| d.kernel().name == kernel).collect();
            let told: Vec<&str> = lines
                .iter()
                .filter_map(|d| if let Directive::Check(c) = d { Some(&c.expected) } else { None })
                .flatten()
                .map(|code| code.name.as_str())
                .collect();
            let proved = told.iter().any(|c| !c.starts_with("W026"));
            let traps = lines.iter().any(|d| matches!(d, Directive::Trap(_)));
            assert!(!told.is_empty() && (proved || traps), "{}: {kernel}: {told:?}", path.display());
            count += 1;
            unproved += usize::from(!proved);
            codes.extend(told.into_iter().map(str::to_owned));
        }
    }
    assert!(count >= 60, "only {count} kernels");
    assert!(unproved * 10 <= count, "{unproved} of {count} are not proved");
    let wanted = [
        "E0560", "E0561", "E0562", "E0563", "E0564", "E0565", "E0566", "E0567", "E0568", "E0569", "E0571", "E0572",
        "W0220", "W0221",
    ];
    let missing: Vec<_> = wanted.iter().filter(|c| !codes.contains(**c)).collect();
    assert!(missing.is_empty(), "nothing shows {missing:?}");
}

/// One mistake is one error.
#[test]
fn one_mistake_is_one_error() {
    let mut two = BTreeSet::new();
    for path in files("broken") {
        for d in directives(&read(&path)) {
            let Directive::Check(check) = &d else { continue };
            // What may be unwritten is a warning of another pass.
            let own = check.expected.iter().filter(|c| c.name.starts_with("E056") || c.name.starts_with("E057"));
            if own.count() > 1 {
                two.insert(d.kernel().name.to_string());
            }
        }
    }
    assert_eq!(two, BTreeSet::new());
}

/// What the compiler says of each file.
#[test]
fn messages() {
    for path in files("broken") {
        let text = read(&path);
        let stem = path.file_stem().expect("a name").to_string_lossy().into_owned();
        let checked = check(&format!("{stem}.tile"), &text, &Flags::default(), None);
        insta::with_settings!({
            omit_expression => true,
            prepend_module_to_snapshot => false,
            snapshot_path => path.parent().expect("a folder"),
            snapshot_suffix => "",
        }, {
            insta::assert_snapshot!(stem, checked.text());
        });
    }
}
