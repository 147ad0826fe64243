//! Kernels whose tiles lie close together, and are right: nothing is said of overlap, use before write or dead stores.

use ptoc_diagnostics::codes;
use ptoc_tests::front::{Flags, check};
use std::path::Path;

#[test]
fn correct_kernels_raise_nothing() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("bytes");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("readable").path();
        let text = std::fs::read_to_string(&path).expect("readable");
        let checked = check("kernel", &text, &Flags::of_comments(&text), None);
        let ours =
            [codes::OVERLAP, codes::DEAD_STORE, codes::UNINITIALISED, codes::MAYBE_UNINITIALISED].map(|c| c.as_str());
        let wrong = checked.errors() > 0 || checked.codes().iter().any(|c| ours.contains(c));
        assert!(!wrong && checked.compiled == 1, "{}\n{}", path.display(), checked.text());
        count += 1;
    }
    assert!(count >= 20, "only {count} kernels were found");
}
