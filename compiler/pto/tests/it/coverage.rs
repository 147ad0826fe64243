//! `spec/pto_coverage.md`: every operation of the dialect, and every instruction of the language, with what is read and
//! written. And: what the tables say is what the code does.

use ptoc_isa::{InstrId, is_first};
use ptoc_pto::ops::{Form, OPS};
use ptoc_pto::read::is_read;
use ptoc_pto::words::ENUMERATIONS;
use ptoc_pto::write::is_written;
use std::fmt::Write as _;

fn page() -> String {
    let mut out = String::from(
        "# Coverage of PTO text\n\nGenerated from `compiler/pto` (`UPDATE_SPEC=1 cargo test -p ptoc-pto coverage`). Do \
        not edit. Definitions are\nrecords of PTOAS at a56b18c3 (`include/PTO/IR/PTOOps.td`, `PTOAttrs.td`) or classes \
        of MLIR. What is *read* has a\ntranslation for most of its forms; [pto.md](pto.md) says which are left out.\n",
    );
    let mark = |yes: bool| if yes { "yes" } else { "" };
    let all: Vec<_> = OPS.iter().collect();
    let dialect = all.iter().filter(|op| op.name.starts_with("pto.")).count();
    let _ = writeln!(
        out,
        "\n{} operations, {dialect} of them of the dialect; {} are read, {} written.\n\n## Operations\n\n\
        | operation | definition | instruction | read | written |\n|---|---|---|---|---|",
        all.len(),
        all.iter().filter(|op| is_read(op)).count(),
        all.iter().filter(|op| is_written(op)).count()
    );
    for op in &all {
        let instr = op.instr.map(|i| format!("`{}`", i.get().name)).unwrap_or_default();
        let _ = writeln!(
            out,
            "| `{}` | {} | {instr} | {} | {} |",
            op.name,
            op.definition,
            mark(is_read(op)),
            mark(is_written(op))
        );
    }
    out.push_str("\n## Instructions that the text does not have\n\n");
    let named = |id: InstrId| OPS.iter().any(|op| op.instr == Some(id));
    let without: Vec<_> =
        InstrId::all().filter(|id| is_first(*id) && !named(*id)).map(|id| format!("`{}`", id.get().name)).collect();
    for line in without.chunks(8) {
        let _ = writeln!(out, "{}", line.join(", "));
    }
    out.push_str("\n## Enumerations\n\n| name | definition | words |\n|---|---|---|\n");
    for e in ENUMERATIONS.iter() {
        let _ = writeln!(out, "| `{}` | {} | {} |", e.name, e.record, e.words.join(", "));
    }
    out
}

#[test]
fn the_page_is_what_the_tables_say() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../spec/pto_coverage.md");
    let page = page();
    if std::env::var_os("UPDATE_SPEC").is_some() {
        std::fs::write(path, &page).expect("writable");
    }
    let kept = std::fs::read_to_string(path).unwrap_or_default();
    assert!(kept == page, "spec/pto_coverage.md is old: UPDATE_SPEC=1 cargo test -p ptoc-pto coverage");
}

#[test]
fn instructions_have_a_destination_in_the_text() {
    for op in OPS.iter().filter(|op| op.instr.is_some()) {
        // A reshape is another view of the bytes in the text, and an instruction in the language.
        let Form::Dps(dps) = &op.form else {
            assert_eq!(op.name, "pto.treshape");
            continue;
        };
        let operands = dps.outs.len() + dps.ins.iter().filter(|s| s.name != "tmp").count();
        assert!(operands >= op.instr.unwrap().get().operands.len().min(2), "{}", op.name);
    }
}
