//! Maps of targets that do not come with the compiler: locations that share one memory.

use ptoc_diagnostics::FileId;
use ptoc_driver::maps::maps_of;
use ptoc_driver::session::Session;
use ptoc_isa::Target;
use ptoc_views::memory::{Maps, json, lines::Lines, svg, table};
use std::path::Path;

const KERNEL: &str =
    "kernel scaled(a: in f16[64, 64], b: in f16[64, 64], s: in f32[64, 64], y: out f32[64, 64], z: out f32[64, 64]) {
    let factor = Vec(s);
    let left = Mat(a);
    let right = Mat(b);
    let sum = tile Vec<f32, 64, 64>;
    TMOV(sum, matmul(Left(left), Right(right)));
    let scaled = tile Vec<f32, 64, 64>;
    TMUL(scaled, sum, factor);
    TSTORE(y, scaled);
    TSTORE(z, matmul(Left(left), Right(right)));
}
";

#[test]
fn the_map_of_a_pool() {
    let mut session = Session::new("a5", &[]).expect("a target");
    session.target =
        Target::parse(FileId(0), include_str!("../../../../../tests/targets/pooled.toml")).expect("a good file");
    let unit = session.load_text(Path::new("pools.tile"), KERNEL.to_owned());
    let entry = unit.entry(None, "mem").expect("one kernel");
    let Ok(list) = maps_of(&mut session, &unit, &entry) else { panic!("{:?}", session.diagnostics) };
    let maps = Maps { name: "scaled".to_owned(), program: false, file: unit.file, list };
    let lines = Lines::new(&session.sources, maps.file);
    insta::assert_snapshot!("pool_as_text", table::maps(&maps.list, &lines, 100));
    let json: serde_json::Value = serde_json::from_str(&json::maps(&maps, &lines)).expect("JSON");
    let memory = &json["memories"][0];
    assert_eq!((&memory["name"], memory.get("location")), (&"smem".into(), None));
    assert_eq!(memory["locations"], serde_json::json!(["Vec", "Mat"]));
    let types = |n: usize| memory["tiles"][n]["type"].as_str().expect("a type").to_owned();
    let all: Vec<String> = (0..memory["tiles"].as_array().expect("tiles").len()).map(types).collect();
    assert!(["Vec<", "Mat<"].iter().all(|l| all.iter().any(|t| t.starts_with(l))), "{all:?}");
    assert!(svg::file(&maps.list, &lines).contains("smem (Vec and Mat): "));
}
