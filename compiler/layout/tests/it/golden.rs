//! Cases that the C++ headers decided: `tests/golden/layout/cases.json`.

use ptoc_layout::{Cx, ErrorKind, LayoutError, Points, Value, ops, parse_value};
use std::collections::BTreeMap;

/// Cases that CuTe accepts though no layout has the meaning that they ask for: refused here. The spec lists them.
const QUIRKS: &[(&str, usize)] = &[("composition", 5), ("left_inverse", 1), ("logical_divide", 1)];

/// Tiles, threads and matrix instructions have offsets and atoms besides: tested with them.
const ELSEWHERE: &[&str] = &[
    "local_tile",
    "local_tile_proj",
    "local_partition",
    "local_partition_proj",
    "mma_tv",
    "mma_partition",
    "tiled_copy_tv",
];

/// All other cases.
const PASSED: usize = 1876;

fn cases() -> Vec<serde_json::Value> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/layout/cases.json");
    let text = std::fs::read_to_string(path).expect("the golden cases");
    let file: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    file["cases"].as_array().expect("cases").clone()
}

/// The kinds of refusals that CuTe's reason corresponds to. Where several conditions fail CuTe's compiler may name
/// another one than the first.
fn kinds_of(why: &str) -> &'static [ErrorKind] {
    match why {
        "stride_divisibility" | "shape_divisibility" => {
            &[ErrorKind::StrideDivisibility, ErrorKind::ShapeDivisibility, ErrorKind::NotInjective]
        }
        "non_injective" => &[ErrorKind::NotInjective],
        "left_inverse_divisibility" => &[ErrorKind::StrideOrder],
        "upcast_divisibility" | "downcast_needs_stride1" => &[ErrorKind::Width],
        _ => panic!("a new reason: {why}"),
    }
}

fn run(op: &str, args: &[&str]) -> Result<Value, LayoutError> {
    let args: Vec<Value> =
        args.iter().map(|a| parse_value(a).unwrap_or_else(|e| panic!("{a}: {}", e.located(a)))).collect();
    let found = ops::find(op).unwrap_or_else(|| panic!("{op} is not in the table"));
    assert!((found.arity.0..=found.arity.1).contains(&args.len()), "{op} takes {:?} arguments", found.arity);
    (found.eval)(&Cx::default(), &args)
}

/// What is wrong with a case, if anything.
fn judge(case: &serde_json::Value) -> Option<String> {
    let op = case["op"].as_str().expect("op");
    let args: Vec<&str> = case["args"].as_array().expect("args").iter().map(|a| a.as_str().expect("text")).collect();
    let got = run(op, &args);
    let text = format!("{op}({})", args.join(", "));
    if case.get("quirk").is_some() {
        return got.ok().map(|v| format!("{text} is unsound and gives {v}"));
    }
    if let Some(why) = case.get("why").and_then(|w| w.as_str()) {
        return match got {
            Ok(v) => Some(format!("{text} must be refused ({why}) and gives {v}")),
            Err(e) if !kinds_of(why).contains(&e.kind) => Some(format!("{text}: {why}, not {:?}: {e}", e.kind)),
            Err(e) if e.op != op => Some(format!("{text} blames {}", e.op)),
            Err(_) => None,
        };
    }
    let got = match got {
        Ok(v) => v,
        Err(e) => return Some(format!("{text} = {} is refused: {:?} {e}", case["result"], e.kind)),
    };
    let want = case["result"].as_str().map_or_else(|| case["result"].to_string(), str::to_string);
    if got.to_string() != want {
        return Some(format!("{text} = {want}, not {got}"));
    }
    let indices = case.get("indices").and_then(|i| i.as_array())?;
    let points = Points::of(&got)?;
    let got: Vec<String> = (0..points.size())
        .map(|i| match (points.at(i), points.offset_at(i)) {
            (_, Some(n)) => n.to_string(),
            (Some(p), _) => p.to_string(),
            _ => "nothing".to_string(),
        })
        .collect();
    let want: Vec<String> = indices.iter().map(|i| i.as_str().map_or_else(|| i.to_string(), str::to_string)).collect();
    (got != want).then(|| format!("{text} has indices {want:?}, not {got:?}"))
}

#[test]
fn the_headers_answers() {
    let cases = cases();
    let (mut passed, mut elsewhere, mut wrong) = (0, 0, Vec::new());
    let mut quirks: BTreeMap<&str, usize> = BTreeMap::new();
    for case in &cases {
        let op = case["op"].as_str().expect("op");
        if ELSEWHERE.contains(&op) {
            elsewhere += 1;
            continue;
        }
        if case.get("quirk").is_some() {
            *quirks.entry(op).or_default() += 1;
        }
        match judge(case) {
            None => passed += 1,
            Some(message) => wrong.push(message),
        }
    }
    assert!(wrong.is_empty(), "{} of {} cases are wrong:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
    // Nothing is skipped in silence.
    assert_eq!((passed, elsewhere, cases.len()), (PASSED, cases.len() - PASSED, 1995));
    assert_eq!(quirks.into_iter().collect::<Vec<_>>(), QUIRKS);
}
