//! The programs of `examples` and `tests/language`: what of them the compiler takes today.

use ptoc_syntax::Directive;
use ptoc_tests::front::{Flags, check};
use ptoc_tests::programs::{files, runs};

/// Programs that are ahead of the language or its library, with the errors that keep them from being run.
const AHEAD: [(&str, &[&str]); 1] = [
    // `std::scan` and `std::sort` do not exist, nor what E0901 names.
    ("sparse_conv.tile", &["E0106", "E0106", "E0901", "E0901"]),
];

/// Every `// run:` line can be launched, but those of the programs above, which fail for the reasons that stand there
/// and no others.
#[test]
fn every_run_is_prepared_or_known_to_be_ahead() {
    let mut wrong = Vec::new();
    let mut ahead = 0;
    for path in files() {
        let name = path.file_name().expect("a file").to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).expect("UTF-8");
        let mut sources = ptoc_diagnostics::SourceMap::new();
        let directives = ptoc_syntax::parse(sources.add(&name, &text), &text).directives;
        let lines = directives.iter().filter(|d| matches!(d, Directive::Run(_))).count();
        if let Some((_, errors)) = AHEAD.iter().find(|(n, _)| *n == name) {
            ahead += 1;
            let checked = check(&name, &text, &Flags::default(), path.parent().map(Into::into));
            let found: Vec<&str> =
                checked.diagnostics.iter().filter(|d| d.is_error()).map(|d| d.code.as_str()).collect();
            if found != **errors || lines == 0 {
                wrong.push(format!("{name} is said to fail with {errors:?}, and fails with {found:?}"));
            }
            continue;
        }
        let prepared = runs(&path).len();
        if prepared != lines {
            wrong.push(format!("{name}: {prepared} of {lines} runs are prepared"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(ahead, AHEAD.len(), "a program of the list is gone");
}
