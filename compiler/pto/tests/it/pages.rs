//! The examples of PTO text on the pages of codes.

use ptoc_diagnostics::{Code, FileId};

/// Fences of a page that begin with `pto`: the text, and whether it is wrong.
fn examples(page: &str) -> Vec<(&str, bool)> {
    let fences = page.split("```pto").skip(1).filter_map(|rest| {
        let (info, rest) = rest.split_once('\n')?;
        Some((rest.split_once("```")?.0, info.trim() == "error"))
    });
    fences.collect()
}

#[test]
fn examples_do_what_their_pages_say() {
    let mut seen = 0;
    for info in Code::all() {
        for (text, wrong) in examples(info.page) {
            seen += 1;
            let (_, found) = ptoc_pto::translate(FileId(0), text, &|_| false, &[]);
            let codes: Vec<Code> = found.iter().map(|d| d.code).collect();
            let expected = if wrong { vec![info.code] } else { Vec::new() };
            assert_eq!(codes, expected, "{}: {found:?}\n{text}", info.code);
        }
    }
    assert!(seen >= 9, "{seen}");
}
