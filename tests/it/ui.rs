//! Broken programs: what `ptoc check` says about each is a snapshot beside it.
//!
//! The first lines may hold flags: `// target: a5`, `// -D N=3`; `// errors: 3` is the number of mistakes in the file,
//! each of which is reported once (1 if not given; 0 for warnings and notes alone). Files below `modules/` are imported
//! by others.

use ptoc_tests::front::{Flags, check};
use std::path::Path;

#[test]
fn broken_programs() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("ui");
    let mut wrong = Vec::new();
    let mut count = 0;
    insta::glob!("../ui", "**/*.tile", |path| {
        let name = path.strip_prefix(&directory).expect("below ui/").display().to_string();
        if name.starts_with("modules/") {
            return;
        }
        count += 1;
        let text = std::fs::read_to_string(path).expect("readable");
        let checked = check(&name, &text, &Flags::of_comments(&text), Some(directory.join("modules")));
        let mistakes = text
            .lines()
            .find_map(|l| l.strip_prefix("// errors: "))
            .map_or(1, |n| n.split_whitespace().next().and_then(|n| n.parse().ok()).expect("a number"));
        // Below rules/ some files have only what their target takes.
        if checked.diagnostics.is_empty() && !name.starts_with("rules/") {
            wrong.push(format!("{name}: nothing reported"));
        } else if checked.errors() != mistakes {
            wrong.push(format!("{name}: {mistakes} mistakes, errors {:?}", checked.codes()));
        }
        insta::with_settings!({
            omit_expression => true,
            prepend_module_to_snapshot => false,
            snapshot_path => path.parent().expect("a folder"),
            snapshot_suffix => "",
        }, {
            let stem = path.file_stem().expect("a name").to_string_lossy().into_owned();
            insta::assert_snapshot!(stem, checked.text());
        });
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count >= 110, "only {count} programs were found");
}
