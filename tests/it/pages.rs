//! Every example on every page of `ptoc explain` is compiled.

use ptoc_diagnostics::{Code, codes, examples};
use ptoc_tests::front::{Flags, check};

#[test]
fn examples_do_what_their_pages_say() {
    let mut wrong = Vec::new();
    for info in Code::all() {
        for (k, example) in examples(info.page).iter().enumerate() {
            let checked = check("page", example.text, &Flags::parse(example.flags.iter().copied()), None);
            let name = format!("{} example {}", info.code, k + 1);
            let of_page = checked.diagnostics.iter().filter(|d| d.code == info.code).count();
            let others = checked.diagnostics.iter().filter(|d| d.is_error() && d.code != info.code).count();
            // Examples are fragments: what they make may stay unused.
            let clean = |code: Code| matches!(code, codes::UNUSED_NAME | codes::DEAD_STORE) && info.code != code;
            let ok = match example.expect_error {
                true => of_page > 0 && others == 0,
                false => checked.diagnostics.iter().all(|d| clean(d.code)),
            };
            if !ok {
                wrong.push(format!("{name}: {:?}\n{}", checked.codes(), checked.text()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
