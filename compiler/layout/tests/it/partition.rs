//! Tiles, threads' parts and matrix instructions: the cases of `tests/golden/layout` that begin at an offset or name an
//! atom.

use ptoc_layout::{Cx, Env, MmaAtom, Points, Value, eval_expr, parse_value};
use std::sync::Arc;

const OPS: &[&str] = &[
    "local_tile",
    "local_tile_proj",
    "local_partition",
    "local_partition_proj",
    "mma_tv",
    "mma_partition",
    "tiled_copy_tv",
];

/// The atoms of `tests/golden/layout`: name, M, N, K, threads, A, B, C.
const ATOMS: &[(&str, [i64; 3], &str, [&str; 3])] = &[
    ("UniversalFMA", [1, 1, 1], "1:0", ["(1,1):(0,0)"; 3]),
    (
        "SM70_8x8x4_F32F16F16F32_TN",
        [8, 8, 4],
        "(4,2):(1,16)",
        ["(8,4):(1,8)", "(8,4):(1,8)", "((2,2,2),(2,2,2)):((1,16,4),(8,2,32))"],
    ),
    (
        "SM70_8x8x4_F32F16F16F32_NT",
        [8, 8, 4],
        "(4,2):(1,16)",
        ["((4,2),4):((8,4),1)", "((4,2),4):((8,4),1)", "((2,2,2),(2,2,2)):((1,16,4),(8,2,32))"],
    ),
    (
        "SM80_16x8x8_F32F16F16F32_TN",
        [16, 8, 8],
        "32:1",
        ["((4,8),(2,2)):((32,1),(16,8))", "((4,8),2):((16,1),8)", "((4,8),(2,2)):((32,1),(16,8))"],
    ),
    (
        "SM80_16x8x16_F32F16F16F32_TN",
        [16, 8, 16],
        "32:1",
        ["((4,8),(2,2,2)):((32,1),(16,8,128))", "((4,8),(2,2)):((16,1),(8,64))", "((4,8),(2,2)):((32,1),(16,8))"],
    ),
    (
        "SM80_8x8x4_F64F64F64F64_TN",
        [8, 8, 4],
        "32:1",
        ["((4,8),1):((8,1),0)", "((4,8),1):((8,1),0)", "((4,8),2):((16,1),8)"],
    ),
];

fn layout(text: &str) -> ptoc_layout::Layout {
    match parse_value(text) {
        Ok(Value::Layout(l)) => l,
        other => panic!("{text}: {other:?}"),
    }
}

/// The names that the cases use.
fn env() -> Env {
    let mut env = Env::new();
    for (name, shape, thr, [a, b, c]) in ATOMS {
        let atom = MmaAtom {
            name: name.to_string(),
            shape: *shape,
            types: ["f32", "f16", "f16", "f32"].map(str::to_string),
            thr: layout(thr),
            a: layout(a),
            b: layout(b),
            c: layout(c),
        };
        atom.check().unwrap_or_else(|e| panic!("{name}: {e}"));
        env.insert(*name, Value::Atom(Arc::new(atom)));
    }
    for (name, value) in MmaAtom::operands() {
        env.insert(name, value);
    }
    env
}

#[test]
fn the_headers_answers() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/layout/cases.json");
    let text = std::fs::read_to_string(path).expect("the golden cases");
    let file: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let (env, cx) = (env(), Cx::default());
    let (mut count, mut wrong) = (0, Vec::new());
    for case in file["cases"].as_array().expect("cases") {
        let op = case["op"].as_str().expect("op");
        if !OPS.contains(&op) {
            continue;
        }
        count += 1;
        let args: Vec<&str> =
            case["args"].as_array().expect("args").iter().map(|a| a.as_str().expect("text")).collect();
        let text = format!("{op}({})", args.join(", "));
        let got = eval_expr(&cx, &env, &text);
        if case.get("error").is_some() {
            if let Ok(v) = got {
                wrong.push(format!("{text} must be refused and gives {v}"));
            }
            continue;
        }
        let got = match got {
            Ok(v) => v,
            Err(e) => {
                wrong.push(format!("{text} = {} is refused: {e}", case["result"]));
                continue;
            }
        };
        let shown = match &got {
            Value::Window(p) => p.layout.to_string(),
            other => other.to_string(),
        };
        if shown != case["result"].as_str().expect("text") {
            wrong.push(format!("{text} = {}, not {got}", case["result"]));
        } else if let Some(indices) = case.get("indices").and_then(|i| i.as_array()) {
            let want: Vec<i64> = indices.iter().map(|i| i.as_i64().expect("number")).collect();
            let points = Points::of(&got).expect("a layout of numbers");
            let have: Vec<i64> = (0..points.size()).map(|i| points.offset_at(i).expect("an offset")).collect();
            if have != want {
                wrong.push(format!("{text} has indices {want:?}, not {have:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {count} cases are wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert_eq!(count, 119);
}
