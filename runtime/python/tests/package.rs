//! The module that Python loads. What it does is tested by Python: `pytest runtime/python`.

use std::path::PathBuf;

/// The library that Cargo has built beside this test.
fn library() -> PathBuf {
    let test = std::env::current_exe().expect("a test has a path");
    let name = format!("{}_ptoc{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    test.with_file_name(name)
}

#[test]
fn the_module_has_its_entry_and_links_no_python() {
    let bytes = std::fs::read(library()).expect("Cargo builds the library before its tests");
    let has = |text: &[u8]| bytes.windows(text.len()).any(|seen| seen == text);
    assert!(has(b"PyInit__ptoc"));
    assert!(!has(b"libpython3"), "the symbols are those of the interpreter that loads it");
}
