//! The programs of `tests/language`.

use std::fs;
use std::path::PathBuf;

use ptoc_diagnostics::FileId;

/// Name and text of every program.
pub fn programs() -> Vec<(String, String)> {
    let dir = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/language");
    let mut list: Vec<_> = fs::read_dir(dir)
        .expect("tests/language exists")
        .map(|entry| entry.expect("readable").path())
        .filter(|path| path.extension().is_some_and(|x| x == "tile"))
        .map(|path| {
            let name = path.file_stem().expect("named").to_string_lossy().into_owned();
            (name, fs::read_to_string(&path).expect("UTF-8"))
        })
        .collect();
    list.sort();
    assert!(list.len() >= 12, "programs are missing");
    list
}

#[test]
fn all_parse_without_diagnostics() {
    for (name, text) in programs() {
        let parsed = ptoc_syntax::parse(FileId(0), &text);
        assert_eq!(parsed.diagnostics, [], "{name}");
        assert!(!parsed.file.items.is_empty(), "{name}");
        let marks = ["// run:", "// check:", "// trap:"];
        let lines = text.lines().filter(|l| marks.iter().any(|m| l.starts_with(m))).count();
        assert_eq!(parsed.directives.len(), lines, "{name}");
    }
}
