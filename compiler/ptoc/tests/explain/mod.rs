//! `ptoc explain` and `ptoc targets`.

use super::{Sandbox, snapshot};
use ptoc_tensor::DType;

#[test]
fn explain_and_targets() {
    let s = Sandbox::new();
    snapshot!(s.runs(&[
        "explain E0749",
        "explain sa0353",
        "explain TADD",
        "explain TCVT",
        "explain TPREFETCH",
        "explain GetValue",
        "explain pto.tgetval",
        "explain AccPhase",
        "explain HF32",
        "explain SA-0068",
        "explain FIX-A12",
        "explain ca-0001",
        "explain CA-0008",
        "explain E0608",
        "explain TAD",
        "explain",
        "targets",
        "targets a5 --json",
        "targets a6",
    ]));
    // Words of PTO and of the language that are no instructions.
    let words = "NZ ND DN NC1HWC0 FRACTAL_Z MX_A_ND SCALE hifloat8 f8e8m0 RoundMode CmpMode ScaleLeft UP_DOWN INT8 \
                 Left UB f32 bool a5 A2A3 A6 MTE2 PIPE_V EVENT_ID0 Max atomic UnitFlag SlotNum RowMajor AsyncEvent \
                 half float int8_t bfloat16_t CAST_RINT NormalRelu static_cast __gm__ CmpMode::EQ RoundMode::CAST_RINT \
                 GatherOOB::Clamp PadValue::Zero pto::CmpMode";
    for word in words.split(' ') {
        assert!(s.run(&format!("explain {word}")).contains("exit 0"), "{word}");
    }
    let list = s.run("explain --list");
    assert!(list.contains("\nSA-0353  ") && list.contains("exit 0"), "{list}");
    let all: serde_json::Value =
        serde_json::from_str(s.run("targets --json").split_once("-- stdout\n").unwrap().1).unwrap();
    let locations = |t: &serde_json::Value| t["locations"].as_object().unwrap().len();
    assert_eq!(all.as_array().unwrap().iter().map(locations).collect::<Vec<_>>(), [9, 9, 9, 9, 9, 3, 7, 5, 7]);
}

/// Every name of PTO's list has a page: instructions, what is left out, other spellings, and words behind operands.
#[test]
fn explain_knows_every_name_of_pto() {
    let s = Sandbox::new();
    let listed = include_str!("../../../isa/src/coverage/pto.txt");
    let mut names: Vec<&str> = Vec::new();
    for line in listed.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            [start, name, ..] if start.starts_with("5.") || start == "out" => names.push(name),
            ["also", list, ..] => names.extend(list.split(',')),
            ["not", ..] => {
                let spelled = line.split(" | ").nth(2).unwrap().split(',');
                names.extend(spelled.filter(|w| w.len() > 1 && DType::from_name(w).is_none()));
            }
            _ => {}
        }
    }
    assert!(names.len() > 200 && names.contains(&"TGETVAL") && names.contains(&"AccPhase"), "{names:?}");
    for name in names {
        for spelling in [name.to_owned(), format!("pto.{}", name.to_lowercase())] {
            let shown = s.run(&format!("explain {spelling}"));
            assert!(shown.contains("exit 0"), "{shown}");
        }
    }
}
