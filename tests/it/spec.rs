//! Every `tile` example in the pages of `spec/` does what its fence says.

use crate::engine::{Content, agree, build, noise};
use ptoc_diagnostics::{Diagnostic, examples};
use ptoc_tensor::DType;
use ptoc_tests::front::{Flags, check};
use std::path::Path;

#[test]
fn examples_of_the_specification_compile() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../spec");
    let (mut wrong, mut seen) = (Vec::new(), 0);
    let mut pages: Vec<_> = std::fs::read_dir(&dir).expect("spec/").map(|e| e.expect("readable").path()).collect();
    pages.sort();
    for page in pages.iter().filter(|p| p.extension().is_some_and(|e| e == "md")) {
        let text = std::fs::read_to_string(page).expect("UTF-8");
        for (k, example) in examples(&text).iter().enumerate() {
            seen += 1;
            let name = format!("{} example {}", page.display(), k + 1);
            if example.codes.contains(&"syntax") {
                // The grammar's examples need not mean anything.
                let found = ptoc_syntax::parse(ptoc_diagnostics::FileId(0), example.text).diagnostics;
                if found.is_empty() == example.expect_error {
                    wrong.push(format!("{name}: {found:?}"));
                }
                continue;
            }
            let checked = check("spec", example.text, &Flags::parse(example.flags.iter().copied()), None);
            // A warning counts where the fence names it.
            let counts = |d: &&Diagnostic| d.is_error() || example.codes.contains(&d.code.as_str());
            let mut errors: Vec<&str> = checked.diagnostics.iter().filter(counts).map(|d| d.code.as_str()).collect();
            errors.sort_unstable();
            errors.dedup();
            let ok = if example.expect_error {
                !errors.is_empty() && (example.codes.is_empty() || errors == example.codes)
            } else {
                errors.is_empty()
            };
            if !ok {
                wrong.push(format!("{name}: found {errors:?}, the fence says {:?}\n{}", example.codes, checked.text()));
            }
        }
    }
    assert!(seen > 10, "only {seen} examples");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn examples_of_tile_ir_verify_and_print_as_they_stand() {
    let page = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../spec/ir.md")).expect("UTF-8");
    let blocks: Vec<&str> = page.split("```ir\n").skip(1).filter_map(|b| b.split_once("```")).map(|b| b.0).collect();
    assert!(!blocks.is_empty());
    for text in blocks {
        let kernel = ptoc_ir::tile::text::parse(text, ptoc_diagnostics::FileId(0)).expect("it parses");
        ptoc_ir::tile::verify::verify(&kernel).expect("it verifies");
        assert_eq!(ptoc_ir::tile::text::print(&kernel, ptoc_ir::tile::text::Spans::Omit), text);
    }
}

/// The arguments of a page's kernel: `a: in f32[M, N]` each.
fn arguments(text: &str) -> Vec<ptoc_tensor::Tensor> {
    let (open, close) = (text.find('(').expect("parameters"), text.find(") {").expect("a body"));
    let size = |extent: &str| match extent.trim() {
        "M" => 40,
        "N" => 70,
        "K" => 50,
        // Blocks of 32 rows, of 64 columns.
        "RB" | "CB" => 2,
        n => n.parse().expect("a number"),
    };
    let one = |(k, param): (usize, &str)| {
        let (dtype, extents) = param.split_once('[').expect("extents");
        let dtype = DType::from_name(dtype.rsplit(' ').next().expect("a dtype")).expect("a dtype");
        let shape: Vec<usize> = extents.split(',').map(size).collect();
        noise(dtype, &shape, Content::Tame, k as u64)
    };
    text[open + 1..close].trim_end_matches(']').split("], ").enumerate().map(one).collect()
}

#[test]
fn examples_of_instructions_run() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../spec/instructions");
    let (mut wrong, mut seen) = (Vec::new(), 0);
    for row in ptoc_isa::TABLE {
        let page = std::fs::read_to_string(dir.join(format!("{}.md", row.name))).expect("a page");
        for example in examples(&page) {
            seen += 1;
            let [_, target] = example.flags[..] else { panic!("{}: which target?", row.name) };
            let outcome = build(example.text, target, &[], &[]).map_err(|r| format!("{r:?}")).and_then(|built| {
                let dims = [("M", 40), ("N", 70), ("K", 50), ("RB", 2), ("CB", 2)];
                match agree(&built, &dims, &arguments(example.text), &[1]) {
                    Ok(Ok(_)) => Ok(()),
                    Ok(Err((code, message))) => Err(format!("{code}: {message}")),
                    Err(why) => Err(why),
                }
            });
            if let Err(why) = outcome {
                wrong.push(format!("{}: {why}\n{}", row.name, example.text));
            }
            let call = format!("{}(", row.written_name());
            if !example.text.contains(&call) {
                wrong.push(format!("{}: its example is without it", row.name));
            }
        }
        // Links lead somewhere.
        for link in page.split("](").skip(1).filter_map(|l| l.split_once(')')).map(|l| l.0) {
            if !dir.join(link).is_file() {
                wrong.push(format!("{}: {link} is no page", row.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(seen + 1 >= ptoc_isa::TABLE.len(), "only {seen} examples");
}
