//! Every situation that the parser names: what it says, where, and what its fix does.
//!
//! Cases stand in `cases/*.txt`, each after a line `== name`; `== body: name` puts the text into a kernel.

use super::report::report;

fn check(name: &str, cases: &str) {
    let mut out = String::new();
    let mut count = 0;
    for case in cases.split("\n== ").filter(|c| !c.trim().is_empty()) {
        let (title, text) = case.trim_start_matches("== ").split_once('\n').expect("a case has a title and a text");
        let text = text.trim_end();
        let whole = match title.strip_prefix("body: ") {
            Some(_) => {
                let body: String = text.lines().map(|l| format!("    {l}\n")).collect();
                format!("kernel k(a: in f32[M], c: out f32[M]) {{\n{body}}}\n")
            }
            None => format!("{text}\n"),
        };
        out += &format!("== {title}\n{text}\n-----\n{}\n", report(&whole));
        count += 1;
    }
    assert!(count > 3, "{name} has cases");
    insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false }, {
        insta::assert_snapshot!(name, out);
    });
}

#[test]
fn lexical() {
    check("lexical", include_str!("cases/lexical.txt"));
}

#[test]
fn brackets() {
    check("brackets", include_str!("cases/brackets.txt"));
}

#[test]
fn expressions() {
    check("expressions", include_str!("cases/expressions.txt"));
}

#[test]
fn statements() {
    check("statements", include_str!("cases/statements.txt"));
}

#[test]
fn items() {
    check("items", include_str!("cases/items.txt"));
}

#[test]
fn several() {
    check("several", include_str!("cases/several.txt"));
}

#[test]
fn directives() {
    check("directives", include_str!("cases/directives.txt"));
}
