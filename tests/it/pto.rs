//! Kernels as PTO text and back: what is written is read, and written again as the same text; both compute the same.

use ptoc_driver::session::Session;
use ptoc_driver::stages::{Level, Stage, text_of};
use std::path::{Path, PathBuf};

/// The PTO text of a kernel, or the first error.
pub fn written(path: &Path, text: String, kernel: Option<&str>, target: &str, level: Level) -> Result<String, String> {
    let mut session = Session::new(target, &[]).expect("a target");
    session.pto_level = Some(level);
    let unit = session.load_text(path, text);
    let made = match unit.entry(kernel, "emit") {
        Ok(entry) => text_of(&mut session, &unit, &entry, Stage::Pto, Vec::new()).ok(),
        Err(_) => None,
    };
    let error = session.diagnostics.iter().find(|d| d.is_error());
    match (made, error) {
        (Some(text), None) => Ok(text),
        (_, error) => Err(error.map_or("nothing was made".into(), |d| format!("{} {}", d.code, d.message))),
    }
}

/// The text without the places that its operations stem from, which are of two files.
fn placeless(text: &str) -> String {
    text.lines().map(|l| format!("{}\n", l.split(" loc(").next().unwrap_or_default())).collect()
}

/// Every kernel of the examples, with its file.
fn kernels() -> Vec<(PathBuf, String, String)> {
    kernels_of(Path::new("../examples"))
}

/// Every kernel of the `.tile` files in a folder, beside this crate's, and in the folders in it: file, name, text.
pub fn kernels_of(folder: &Path) -> Vec<(PathBuf, String, String)> {
    let mut open = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)];
    let mut files = Vec::new();
    while let Some(folder) = open.pop() {
        for path in std::fs::read_dir(folder).expect("a folder").map(|e| e.expect("an entry").path()) {
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|e| e == "tile") {
                files.push(path);
            }
        }
    }
    files.sort();
    let mut found = Vec::new();
    for path in files {
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        let names = text.lines().filter_map(|l| l.strip_prefix("kernel ")?.split(['(', '<', ' ']).next());
        found.extend(names.map(|name| (path.clone(), name.to_owned(), text.clone())));
    }
    found
}

/// What becomes of a kernel at a level.
fn fate(path: &Path, name: &str, text: &str, level: Level) -> String {
    let target = ["a2a3", "a5"]
        .into_iter()
        .map(|target| (target, written(path, text.to_owned(), Some(name), target, level)))
        .reduce(|first, second| if first.1.is_ok() { first } else { second });
    let Some((target, made)) = target else { return String::new() };
    let first = match made {
        Ok(text) => text,
        Err(why) => return format!("not said: {why}"),
    };
    match written(Path::new("read.pto"), first.clone(), None, target, level) {
        Err(why) => format!("not read: {why}"),
        Ok(second) if first == second => "the same".into(),
        Ok(second) if placeless(&first) == placeless(&second) => "the same but for places".into(),
        Ok(_) => "read, and written in another way".into(),
    }
}

/// What is written of kernels at a level, and what of the text that is written of that; a line each.
fn fates(kernels: impl Iterator<Item = (PathBuf, String, String)>, level: Level) -> String {
    let mut table = String::new();
    for (path, name, text) in kernels {
        let file = path.file_name().expect("a name").to_string_lossy();
        table += &format!("{file} {name}: {}\n", fate(&path, &name, &text, level));
    }
    table
}

/// What is written is read, and written again as the same text, with the places that its operations stem from.
#[test]
fn examples_are_written_and_read() {
    for (level, least, with_places) in [(Level::Automatic, 53, 53), (Level::Explicit, 54, 54)] {
        let table = fates(kernels().into_iter(), level);
        let count = |what: &str| table.lines().filter(|l| l.contains(what)).count();
        let said = table.lines().count() - count(": not said: ");
        // What is said less than before is a step back.
        assert!(said >= least && count(": the same") == said, "{level:?}: {said} are said\n{table}");
        let exact = table.lines().filter(|l| l.ends_with(": the same")).count();
        assert!(exact >= with_places, "{level:?}: {exact}\n{table}");
        let reasons = count("not said: E14") + count("not said: E0307") + count("not said: E13");
        assert_eq!(reasons, count(": not said: "), "{table}");
    }
}

/// Folders of `tests` whose kernels are looked at: one in so many in the small tier, all in the full one.
pub const FOLDERS: [&str; 5] = ["language", "hazards", "bytes", "blocks", "ui"];
pub const USUAL: usize = 12;

/// Those kernels of the folders.
pub fn others() -> impl Iterator<Item = (PathBuf, String, String)> {
    let one_in = ptoc_tests_budget::one_in(USUAL);
    let all = FOLDERS.iter().flat_map(|folder| kernels_of(Path::new(folder)));
    all.enumerate().filter(move |(i, _)| i % one_in == 0).map(|(_, kernel)| kernel)
}

/// Kernels whose text is read, and written in another way. The reader names a tile to work in and a kernel as it needs
/// (`worked_in.tile`, `dead_element.tile`), and has another loop for a condition that is a branch (`oracles.tile`). It
/// knows more of what is valid where no grid is in front of it (`late_slices.tile`).
const OTHERWISE: [&str; 5] = [
    "oracles.tile ordered",
    "worked_in.tile sums",
    "dead_element.tile set",
    "late_slices.tile between",
    "late_slices.tile cut_there",
];

/// The same of kernels of the tests.
#[test]
fn kernels_of_tests_are_written_and_read() {
    let one_in = ptoc_tests_budget::one_in(USUAL);
    for (level, least) in [(Level::Automatic, 659), (Level::Explicit, 786)] {
        let table = fates(others(), level);
        let other = |l: &&str| {
            let (name, fate) = l.split_once(": ").expect("a name and a fate");
            let otherwise = OTHERWISE.contains(&name) && fate == "read, and written in another way";
            !(otherwise || ["the same", "not said"].iter().any(|what| fate.starts_with(what)))
        };
        let other: Vec<&str> = table.lines().filter(other).collect();
        assert!(other.is_empty(), "{level:?}:\n{}", other.join("\n"));
        let same = table.lines().filter(|l| l.contains(": the same")).count();
        let wanted = if one_in == 1 { least } else { least * 3 / 4 / one_in };
        assert!(same >= wanted, "{level:?}: {same}");
    }
}

/// The bytes of an output, as a launch on random arrays leaves it.
fn outputs(file: &Path, kernel: &str, target: &str, sizes: &[&str], out: &str, folder: &Path) -> Vec<u8> {
    let array = folder.join("out.npy");
    let mut args: Vec<String> = ["ptoc", "run"].map(String::from).to_vec();
    args.extend([file.display().to_string(), kernel.into(), "--target".into(), target.into()]);
    args.extend(["--backend".into(), "interp".into()]);
    args.extend(["--random".into(), "7".into(), "--out".into(), format!("{out}={}", array.display())]);
    args.extend(sizes.iter().flat_map(|s| ["-D".to_string(), (*s).to_string()]));
    let (mut shown, mut err) = (Vec::new(), Vec::new());
    let mut io = ptoc_cli::io::Io::new(&mut shown, &mut err);
    let status = ptoc_cli::execute(args.into_iter().map(Into::into), &mut io);
    assert_eq!(status, ptoc_cli::DONE, "{}", String::from_utf8_lossy(&err));
    std::fs::read(array).expect("the array")
}

#[test]
fn what_is_written_computes_the_same() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples");
    let folder = tempfile::tempdir().expect("a folder");
    const BOTH: &[Level] = &[Level::Automatic, Level::Explicit];
    const ONE: &[Level] = &[Level::Automatic];
    // A tile with copies whose number the loop knows has no address that the text can say.
    /// Target, file, kernel, sizes, result, levels.
    type Case = (&'static str, &'static str, &'static str, &'static [&'static str], &'static str, &'static [Level]);
    let cases: [Case; 6] = [
        ("a2a3", "add.tile", "add_auto", &["M=33", "N=65"], "c", BOTH),
        ("a2a3", "softmax.tile", "softmax_long", &["M=13", "N=700"], "y", ONE),
        ("a2a3", "transpose.tile", "transpose", &["M=70", "N=130"], "y", BOTH),
        ("a2a3", "reduce.tile", "row_sums", &["M=19", "N=300"], "y", BOTH),
        ("a5", "gemm.tile", "gemm_bias_act", &["M=40", "N=70", "K=50"], "C", BOTH),
        ("a5", "rope.tile", "rope_halves", &["M=9"], "y", BOTH),
    ];
    for (target, file, kernel, sizes, out, levels) in cases {
        let path = examples.join(file);
        let text = std::fs::read_to_string(&path).expect("readable");
        let expected = outputs(&path, kernel, target, sizes, out, folder.path());
        for level in levels.iter().copied() {
            let pto = written(&path, text.clone(), Some(kernel), target, level).expect("it can be said");
            let copy = folder.path().join("copy.pto");
            std::fs::write(&copy, pto).expect("a file");
            let read = outputs(&copy, kernel, target, sizes, out, folder.path());
            assert_eq!(read, expected, "{file} {kernel} {level:?}");
        }
    }
}

/// Numbers of PTO text that only the order of blocks needs are worth no warning: nobody chose their names.
#[test]
fn numbers_that_are_not_needed_are_worth_no_warning() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/add.tile");
    let text = std::fs::read_to_string(&path).expect("readable");
    let made = written(&path, text, Some("add_auto"), "a2a3", Level::Automatic).expect("it can be said");
    let mut session = Session::new("a2a3", &[]).expect("a target");
    session.load_text(Path::new("add.pto"), made);
    let said: Vec<String> = session.diagnostics.iter().map(|d| format!("{} {}", d.code, d.message)).collect();
    assert_eq!(said, [""; 0]);
}

/// Tile IR of the only kernel of a text.
fn ir(path: &Path, text: String, target: &str) -> String {
    let mut session = Session::new(target, &[]).expect("a target");
    let unit = session.load_text(path, text);
    let entry = unit.entry(None, "emit").expect("one kernel");
    let made = text_of(&mut session, &unit, &entry, Stage::Ir, Vec::new());
    let errors: Vec<String> =
        session.diagnostics.iter().filter(|d| d.is_error()).map(|d| format!("{} {}", d.code, d.message)).collect();
    assert!(errors.is_empty(), "{}: {errors:?}", path.display());
    made.expect("it is written")
}

/// Runs `ptoc import`: its status, and what it says of mistakes.
fn import(file: &Path, to: &Path) -> (u8, String) {
    let (mut shown, mut err) = (Vec::new(), Vec::new());
    let mut io = ptoc_cli::io::Io::new(&mut shown, &mut err);
    let args = ["ptoc", "import", &file.display().to_string(), "-o", &to.display().to_string()].map(Into::into);
    let status = ptoc_cli::execute(args, &mut io);
    (status, String::from_utf8_lossy(&err).into_owned())
}

/// Source that is imported has the tile IR of the text that it was.
#[test]
fn what_is_imported_means_the_same() {
    let folder = tempfile::tempdir().expect("a folder");
    let (text, source) = (folder.path().join("k.pto"), folder.path().join("k.tile"));
    let mut count = 0;
    for (path, name, kernel) in kernels() {
        let Ok(pto) = written(&path, kernel, Some(&name), "a2a3", Level::Automatic) else { continue };
        let mut session = Session::new("a2a3", &[]).expect("a target");
        session.load_text(&text, pto.clone());
        if session.diagnostics.has_errors() {
            continue;
        }
        std::fs::write(&text, &pto).expect("a file");
        let (status, err) = import(&text, &source);
        assert_eq!(status, ptoc_cli::DONE, "{name}: {err}");
        let imported = std::fs::read_to_string(&source).expect("a file");
        assert_eq!(ir(&source, imported, "a2a3"), ir(&text, pto, "a2a3"), "{} {name}", path.display());
        count += 1;
    }
    assert!(count >= 30, "{count} were imported");
}

#[test]
fn what_is_not_imported_leaves_no_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let to = folder.path().join("k.tile");
    let cases = [
        ("k.pto", "module {\n  func.func @free(%x: memref<16x16xf16>) {\n    return\n  }\n}\n", "E1404"),
        ("k.pto", "module {\n  func.func @f() {\n    pto.barrier <PIPE_V>\n", "E1400"),
        ("k.pto", "module {\n  func.func @later() {\n    pto.syncall\n    return\n  }\n}\n", "E1404"),
        ("k.pto", "module {\n  func.func @near(%x: !pto.ptr<f32, ub>) {\n    return\n  }\n}\n", "E1404"),
        ("k.mlir", "module {\n}\n", "E1410"),
    ];
    let right = folder.path().join("right.pto");
    std::fs::write(&right, "module {\n  func.func @f(%x: !pto.ptr<f32>) {\n    return\n  }\n}\n").expect("a file");
    let other = folder.path().join("other.pto");
    let (status, err) = import(&right, &other);
    assert!(status == ptoc_cli::ERRORS && err.contains("E1410") && !other.exists(), "{err}");
    assert_eq!(import(&right, &folder.path().join("right.tile")), (ptoc_cli::DONE, String::new()));
    for (name, text, code) in cases {
        let file = folder.path().join(name);
        std::fs::write(&file, text).expect("a file");
        let (status, err) = import(&file, &to);
        assert_eq!(status, ptoc_cli::ERRORS, "{text}: {err}");
        assert!(err.contains(code) && !to.exists(), "{text}: {err}");
    }
    let (status, err) = import(&folder.path().join("none.pto"), &to);
    assert!(status == ptoc_cli::ERRORS && !to.exists(), "{err}");
}

/// What a file's operations stem from stays what it is where the file is read and written again.
#[test]
fn places_of_the_source_are_kept() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/add.tile");
    let text = std::fs::read_to_string(&path).expect("readable");
    let made = written(&path, text, Some("add_auto"), "a2a3", Level::Automatic).expect("it can be said");
    assert!(made.matches("loc(\"add.tile\":").count() > 20, "{made}");
    let again = written(Path::new("read.pto"), made.clone(), None, "a2a3", Level::Automatic).expect("it can be said");
    assert_eq!(again, made);
    // Without places the text's own are the source.
    let without = made.lines().map(|l| format!("{}\n", l.split(" loc(").next().unwrap_or_default())).collect();
    let again = written(Path::new("read.pto"), without, None, "a2a3", Level::Automatic).expect("it can be said");
    assert!(!again.contains("add.tile") && again.contains("loc(\"read.pto\":"), "{again}");
}

/// The left operand of a product has rows of boxes where the target has them so.
#[test]
fn left_tiles_are_those_of_the_target() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/gemm.tile");
    let text = std::fs::read_to_string(&path).expect("readable");
    for (target, columns) in [("a2a3", false), ("a5", true), ("kirinx90", false)] {
        let made = written(&path, text.clone(), Some("gemm_i8"), target, Level::Automatic).expect("it can be said");
        let left = made.split("!pto.tile_buf<left, ").nth(1).and_then(|rest| rest.split('>').next()).expect("a tile");
        assert!(left.ends_with("slayout=row_major"), "{target}: {left}");
        assert_eq!(left.contains("blayout=col_major"), columns, "{target}: {left}");
    }
}
