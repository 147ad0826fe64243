use super::*;
use crate::{CmpOp, Loc, Target, TileType, allowed_dtypes, allowed_tuples, check_dtypes, check_overlap, scratch_type};

const A2A3: &str = FILES[0].1;
const A5_TARGET: &str = include_str!("../../../targets/a5.toml");

/// Messages with the text that they point at.
fn errors(from: &str, to: &str) -> Vec<(String, String)> {
    let text = A2A3.replacen(from, to, 1);
    assert_ne!(text, A2A3, "{from}");
    let errors = InstructionSet::parse("a2a3", FileId(3), &text).expect_err("wrong on purpose");
    errors
        .into_iter()
        .map(|e| {
            let span = e.span.expect("located");
            assert_eq!(span.file, FileId(3));
            let helps = e.fixes.iter().map(|f| format!("; {}", f.message)).collect::<String>();
            (format!("{} {}{helps}", e.code, e.message), text[span.range()].lines().next().unwrap_or("").to_owned())
        })
        .collect()
}

#[test]
fn mistakes_in_instruction_sets_are_located() {
    let cases = [
        errors("TADD = [\"vector\"]", "TADDD = [\"vector\"]"),
        errors("TADD = [\"vector\"]", "TADD = [\"vecter\"]"),
        errors("TADD = [\"vector\"]", "TADD = [\"f23\"]"),
        errors("TADD = [\"vector\"]", "TADD = [\"vector\", \"f32\"]"),
        errors("TADD = [\"vector\"]", "TADD = [\"f32 f32\"]"),
        errors("TADD = [\"vector\"]", "TADD = [\"\"]"),
        errors("TADD = [\"vector\"]", "TADD = \"vector\""),
        errors("TADD = [\"vector\"]", "TADD = [\"vector\"]\nTADD = []"),
        errors("TADD = [\"vector\"]", "TADD = [\"vector\"]\nTMATMUL = [\"vector\"]"),
        errors("TSORT32 = [\"f32 f32 u32\"", "TSORT32 = [\"f32 f32\""),
        errors("\"f32 f16\", \"f32 bf16\"", "\"f32\", \"f32 bf16\""),
        errors("vector = [", "f32 = ["),
        errors("floats = [\"f16\"", "floats = [\"f17\""),
        errors("TCMP = [\"i32\"]", "TCMP = [\"i8\"]"),
        errors("TCMP = [\"i32\"]", "TADD = [\"i32\"]"),
        errors("scatter = [\"Add\"]", "scatter = [\"Mul\"]"),
        errors("TADD = [\"vector\"]\nTSUB = [\"vector\"]", ""),
        errors("scratch = true", ""),
        errors("scratch = true", "scratches = true"),
    ];
    let text: Vec<String> = cases
        .iter()
        .map(|case| case.iter().map(|(m, at)| format!("{m}\n    at `{at}`\n")).collect::<String>())
        .collect();
    insta::assert_snapshot!(text.join("\n"));
}

/// A new target is its file and, where no instruction set fits, another one: the table stays as it is.
#[test]
fn a_target_with_instructions_of_its_own() {
    use DType::{F16, F32, I16, I32};
    let own = A2A3
        .replace("TADD = [\"vector\"]", "TADD = [\"f32\"]")
        .replace("TSORT32 = [\"f32 f32 u32\", \"f16 f16 u32\"]", "TSORT32 = []")
        .replace("TCMP = [\"i32\"]", "TCMP = [\"f16\"]")
        .replace("scatter = [\"Add\"]", "scatter = [\"Add\", \"Max\"]");
    let own = Arc::new(InstructionSet::parse("own", FileId(0), &own).unwrap());
    let of = |text: &str| Target::parse_with(FileId(0), text, std::slice::from_ref(&own));
    let text = A5_TARGET.replace("name = \"a5\"", "name = \"mine\"").replace("family = \"a5\"", "family = \"own\"");
    let target = of(&text).unwrap();
    let (add, compare, sort) = (lookup("TADD").unwrap(), lookup("TCMP").unwrap(), lookup("TSORT32").unwrap());
    assert_eq!(allowed_dtypes(&target, add.get()), Some(vec![F32]));
    assert!(check_dtypes(&target, add, &[F32; 3], None).is_none());
    let refused = check_dtypes(&target, add, &[I16; 3], None).unwrap();
    assert_eq!(refused.taken_by, ["a2a3", "a5", "kirin9030", "kirinx90", "sm90"]);
    assert_eq!(allowed_tuples(&target, sort.get()), Some(vec![]));
    let compares = |d, cmp| check_dtypes(&target, compare, &[DType::Bool, d, d], Some(cmp)).is_none();
    assert!(compares(F16, CmpOp::Eq) && !compares(F16, CmpOp::Lt) && compares(I32, CmpOp::Lt));
    // What else hangs on the set.
    assert!(target.scatters_by(AtomicOp::Max) && !target.scatters_by(AtomicOp::Min));
    assert!(check_overlap(&target, lookup("TXOR").unwrap(), 1).is_some());
    let tile = TileType { loc: Loc::Vec, dtype: F32, rows: 8, cols: 8, order: crate::Order::Nd, layout: None };
    assert!(scratch_type(&target, lookup("TROWSUM").unwrap(), tile, tile).is_some());
    // The set may be named beside the family.
    let beside = text.replace("family = \"own\"", "family = \"a5\"\ninstructions = \"own\"");
    assert_eq!(of(&beside).unwrap().instructions, own);
    let wrong = of(&beside.replace("\"own\"", "\"won\"")).unwrap_err();
    assert_eq!(wrong[0].message, "there is no instruction set `won`: those there are `own`, `a2a3` and `a5`");
    // Without the set nobody knows the family.
    let unknown = Target::parse(FileId(0), &text).unwrap_err();
    assert_eq!(unknown[0].message, "family `own` is none of `a2a3`, `a5` and `pim`");
}

#[test]
fn lists_have_what_the_rules_need() {
    for set in InstructionSet::builtin() {
        for row in InstrId::all().map(InstrId::get) {
            let list = set.list(row);
            assert!(list.is_empty() || row.dtypes.is_listed(), "{}", row.name);
            assert!(list.iter().all(|entry| entry.len() == width(row)), "{} of {}", row.name, set.name);
        }
    }
}
