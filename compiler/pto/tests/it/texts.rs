//! Texts that are parsed, printed and translated.

use ptoc_diagnostics::FileId;
use ptoc_pto::{parse, print, read, verify};

/// The texts of this folder.
pub fn all() -> Vec<(&'static str, &'static str)> {
    vec![
        ("forms", include_str!("texts/forms.pto")),
        ("control", include_str!("texts/control.pto")),
        ("row_scale", include_str!("texts/row_scale.pto")),
        ("cores", include_str!("texts/cores.pto")),
    ]
}

#[test]
fn what_is_printed_is_read_as_the_same_text() {
    for (name, text) in all() {
        let first = parse(FileId(0), text);
        assert!(first.diagnostics.is_empty(), "{name}: {:?}", first.diagnostics);
        let found = verify::check(&first.module);
        assert!(found.is_empty(), "{name}: {found:?}");
        let once = print(&first.module);
        let second = parse(FileId(0), &once);
        assert!(second.diagnostics.is_empty(), "{name}: {:?}\n{once}", second.diagnostics);
        assert_eq!(print(&second.module), once, "{name}");
        // These are written as they are printed.
        assert_eq!(once, text, "{name}");
    }
}

#[test]
fn kernels_that_are_read() {
    for name in ["control", "row_scale"] {
        let text = all().into_iter().find(|(n, _)| *n == name).unwrap().1;
        let reading = read::read(&parse(FileId(0), text).module, &|_| false);
        assert!(reading.diagnostics.is_empty(), "{name}: {:?}", reading.diagnostics);
        insta::assert_snapshot!(format!("read_{name}"), reading.source.text);
    }
}

#[test]
fn formatting_changes_white_space_alone() {
    let squeezed = |s: &str| s.split_whitespace().collect::<String>();
    for (name, text) in all() {
        let flat: String = text.lines().map(|l| format!("{}\n", l.trim_start())).collect();
        let formatted = ptoc_pto::format::format(&flat);
        assert_eq!(formatted, text, "{name}");
        assert_eq!(squeezed(&formatted), squeezed(&flat), "{name}");
        assert_eq!(ptoc_pto::format::format(&formatted), formatted, "{name}");
    }
}
