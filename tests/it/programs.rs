//! The programs of `examples` and `tests/language`: the compiler takes all of them.

use ptoc_syntax::Directive;
use ptoc_tests::programs::{files, runs};

/// Every `// run:` line can be launched.
#[test]
fn every_run_is_prepared() {
    let mut wrong = Vec::new();
    for path in files() {
        let name = path.file_name().expect("a file").to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).expect("UTF-8");
        let mut sources = ptoc_diagnostics::SourceMap::new();
        let directives = ptoc_syntax::parse(sources.add(&name, &text), &text).directives;
        let lines = directives.iter().filter(|d| matches!(d, Directive::Run(_))).count();
        let prepared = runs(&path).len();
        if prepared != lines {
            wrong.push(format!("{name}: {prepared} of {lines} runs are prepared"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
