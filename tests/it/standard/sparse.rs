//! Hash tables, curves and sparse convolutions, by the properties that their users count on. References are plain loops
//! over all sites; dense convolutions and finite differences are lines of `vectors`.

use super::{Arrays, Entry, RUNS};
use crate::engine::{Noise, command};
use ptoc_tensor::{DType, Element, Tensor, npy};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

const ABSENT: u32 = u32::MAX;

fn tensor<T: Element>(shape: &[usize], values: &[T]) -> Tensor {
    Tensor::from_slice(shape, values).expect("it fits")
}

fn arrays<const N: usize>(list: [(&str, Tensor); N]) -> Arrays {
    list.map(|(name, t)| (name.to_owned(), t)).into()
}

#[track_caller]
fn call(
    module: &str,
    entry: &str,
    settings: &[(&str, &str)],
    inputs: &Arrays,
    (backend, threads): (&str, usize),
) -> Arrays {
    let entry = Entry::new(module, entry, settings, backend).unwrap_or_else(|e| panic!("{}", e.rendered(false)));
    entry.call(inputs, threads).unwrap_or_else(|e| panic!("{}", e.rendered(false)))
}

/// The mixer's documented values.
#[test]
fn row_56_mixer() {
    let text = "use std::hash::mix_32;
        kernel mixed(k: in u32[N], h: out u32[N]) { grid (i in tiles(N, 256)); for r in i { h[r] = mix_32(k[r]); } }";
    let keys = [0, 1, 2, 3, 123_456, u32::MAX];
    let values = [0, 0x514E_28B7, 0x30F4_C306, 0x85F0_B427, 0x9672_5ACB, 0x81F1_6F39];
    for (backend, threads) in RUNS {
        let entry = Entry::of_text(text, "mixed", &[], backend).unwrap_or_else(|e| panic!("{}", e.rendered(false)));
        let found = entry.call(&arrays([("k", tensor(&[6], &keys))]), threads).expect("it runs");
        assert_eq!(found["h"].as_slice::<u32>().expect("u32"), values);
    }
}

/// Random keys at half load: every one is found, and no other.
#[test]
fn row_56_tables() {
    let mut noise = Noise::new(56);
    for (backend, threads, n) in [("interp", 1, 4000), ("cpu", 1, 100_000), ("cpu", 2, 100_000)] {
        let mut distinct = BTreeSet::new();
        while distinct.len() < 2 * n {
            distinct.insert(noise.next() as u32 % u32::MAX);
        }
        let keys: Vec<u32> = distinct.iter().copied().step_by(2).collect();
        let query: Vec<u32> = distinct.iter().copied().collect();
        let want: Vec<u32> = (0..2 * n as u32).map(|i| if i % 2 == 0 { i / 2 } else { ABSENT }).collect();
        let inputs = arrays([("keys", tensor(&[n], &keys)), ("query", tensor(&[2 * n], &query))]);
        let found = call("std::hash", "positions", &[], &inputs, (backend, threads));
        assert!(found["found"].as_slice::<u32>().expect("u32") == want, "{backend}, {threads}");
    }
}

/// Along Hilbert's curve every place comes once, next to the one before, and `encode` is the inverse.
#[test]
fn hilbert_codes_are_neighbours() {
    for (bits, text) in [(1usize, "1"), (2, "2"), (4, "4")] {
        let n = 1usize << (3 * bits);
        let codes: Vec<u32> = (0..n as u32).collect();
        let settings = [("BITS", text), ("HILBERT", "true")];
        for run in RUNS {
            let inputs = arrays([("code", tensor(&[n], &codes))]);
            let places = call("std::curve", "decode", &settings, &inputs, run).remove("coords").expect("an output");
            let c = places.as_slice::<i32>().expect("i32").to_vec();
            let distance = |i: usize| (0..4).map(|a| (c[4 * i + a] - c[4 * i - 4 + a]).abs()).sum::<i32>();
            assert!((1..n).all(|i| distance(i) == 1), "{bits} bits");
            assert_eq!(c.chunks(4).collect::<BTreeSet<_>>().len(), n);
            let back = call("std::curve", "encode", &settings, &arrays([("coords", places)]), run);
            assert_eq!(back["code"].as_slice::<u32>().expect("u32"), codes);
        }
    }
}

/// The surface of a ball in a cube of 2 r + 3.
fn shell(r: i32) -> Vec<[i32; 4]> {
    let side = 0..2 * r + 3;
    let places = side.clone().flat_map(|x| side.clone().flat_map(move |y| (0..2 * r + 3).map(move |z| [0, x, y, z])));
    let far = |c: &[i32; 4]| f64::from(c[1..].iter().map(|v| (v - r - 1) * (v - r - 1)).sum::<i32>()).sqrt();
    let mut sites: Vec<_> = places.filter(|c| (far(c) - f64::from(r)).abs() < 0.5).collect();
    let mut noise = Noise::new(65);
    for k in (1..sites.len()).rev() {
        sites.swap(k, noise.below(k as u64 + 1) as usize);
    }
    sites
}

/// Every neighbour by looking for it among all sites.
fn neighbours(sites: &[[i32; 4]]) -> Vec<u32> {
    let rows: BTreeMap<_, _> = sites.iter().enumerate().map(|(i, c)| (*c, i as u32)).collect();
    let row = |c: &[i32; 4], v: i32| {
        rows.get(&[c[0], c[1] + v / 9 - 1, c[2] + v / 3 % 3 - 1, c[3] + v % 3 - 1]).copied().unwrap_or(ABSENT)
    };
    sites.iter().flat_map(|c| (0..27).map(|v| row(c, v)).collect::<Vec<_>>()).collect()
}

/// A convolution of few sites with values that an f32 sums up well.
struct Small {
    sites: usize,
    map: Vec<u32>,
    inputs: Arrays,
    /// In f64.
    wanted: Vec<f64>,
}

const CI: usize = 24;
const CO: usize = 5;

fn small() -> Small {
    convolution(CI, CO)
}

/// With so many channels of the input and of the output.
fn convolution(ci: usize, co: usize) -> Small {
    let sites = shell(2);
    let (n, map) = (sites.len(), neighbours(&sites));
    let mut noise = Noise::new(62);
    let mut values = |n: usize| -> Vec<f32> { (0..n).map(|_| noise.below(2001) as f32 / 1000.0 - 1.0).collect() };
    let (x, w, bias) = (values(n * ci), values(co * 27 * ci), values(co));
    let term = |i: usize, o: usize, v: usize| match map[27 * i + v] {
        ABSENT => 0.0,
        j => (0..ci).map(|c| f64::from(x[j as usize * ci + c]) * f64::from(w[(27 * o + v) * ci + c])).sum(),
    };
    let sum = |i: usize, o: usize| f64::from(bias[o]) + (0..27).map(|v| term(i, o, v)).sum::<f64>();
    let wanted = (0..n).flat_map(|i| (0..co).map(move |o| (i, o))).map(|(i, o)| sum(i, o)).collect();
    let inputs = arrays([
        ("feats", tensor(&[n, ci], &x)),
        ("weight", tensor(&[co, 27, ci], &w)),
        ("bias", tensor(&[co], &bias)),
        ("map", tensor(&[n, 27], &map)),
    ]);
    Small { sites: n, map, inputs, wanted }
}

/// Every number of segments gives the same, with channels that do not fill a block.
#[test]
fn row_62_split_k() {
    let small = small();
    for run in RUNS {
        let plan = call("std::sparse", "plan", &[("B1", "16")], &arrays([("map", small.inputs["map"].clone())]), run);
        let mut masked = small.inputs.clone();
        masked.remove("map");
        masked.extend(plan);
        for split in 1..=8 {
            let split = split.to_string();
            for (entry, inputs) in
                [("conv_explicit", &small.inputs), ("conv_implicit", &small.inputs), ("conv_masked", &masked)]
            {
                let settings = [("SPLIT", split.as_str()), ("BK", "16"), ("B1", "16")];
                let y = call("std::sparse", entry, &settings, inputs, run)["y"].to_f64s();
                let off = y.iter().zip(&small.wanted).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
                assert!(y.len() == small.wanted.len() && off < 2e-5, "{entry}, {split} segments, {run:?}: {off}");
            }
        }
    }
}

/// Behind the last position of a plan's lists there is none.
#[test]
fn lists_of_a_plan_are_filled() {
    let sites = shell(6);
    let map = arrays([("map", tensor(&[sites.len(), 27], &neighbours(&sites)))]);
    for run in RUNS {
        let plan = call("std::sparse", "plan", &[("B1", "16")], &map, run);
        let used = *plan["seg"].as_slice::<u32>().expect("u32").last().expect("a block") as usize;
        let (list, behind) = plan["list"].as_slice::<u32>().expect("u32").split_at(used);
        assert!(!behind.is_empty() && behind.iter().all(|v| *v == ABSENT) && list.iter().all(|v| *v < 27), "{run:?}");
    }
}

/// Blocks of 128 channels, which more than 64 on both sides have, and those of 64.
#[test]
fn masked_products_of_many_channels() {
    for (ci, co) in [(72, 65), (130, 66), (66, 64)] {
        let large = convolution(ci, co);
        for run in RUNS {
            let mut inputs = large.inputs.clone();
            let map = arrays([("map", inputs.remove("map").expect("a map"))]);
            let plan = call("std::sparse", "plan", &[], &map, run);
            inputs.extend(plan);
            let y = call("std::sparse", "conv_masked", &[], &inputs, run)["y"].to_f64s();
            let off = y.iter().zip(&large.wanted).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            assert!(y.len() == large.wanted.len() && off < 2e-4, "{ci} to {co} channels, {run:?}: {off}");
        }
    }
}

/// What a product keeps beside its arguments: the unfolded matrix is the explicit one's alone.
#[test]
fn row_61_scratch() {
    let small = small();
    let unfolded = 4 * small.sites * 27 * CI;
    let kept = |entry: &str| {
        let entry = Entry::new("std::sparse", entry, &[], "cpu").unwrap_or_else(|e| panic!("{}", e.rendered(false)));
        entry.scratch(&small.inputs).unwrap_or_else(|e| panic!("{}", e.rendered(false)))
    };
    let sums = 4 * small.sites * CO;
    assert_eq!((kept("conv_explicit"), kept("conv_implicit")), (unfolded + sums, sums));
    assert!(small.map.contains(&ABSENT));
}

fn file(name: &str, bytes: &[u8]) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("standard");
    std::fs::create_dir_all(&folder).expect("a folder for tests");
    let path = folder.join(name);
    std::fs::write(&path, bytes).expect("written");
    path
}

/// The masked product carries out as many steps as the lists are long, times chunks of channels; on a surface these are
/// a fifth fewer than all at least.
#[test]
fn rows_63_and_65_masked_steps() {
    let text = "use std::sparse::submanifold_map;
        use std::sparse::plan;
        use std::sparse::conv_masked;
        program masked<const B1 = 16>(coords: in i32[N, 4], feats: in f32[N, 24], weight: in f32[8, 27, 24],
                                      y: out f32[N, 8], seg: out u32[ceil_div(N, B1) + 1], side: index)
        {
            let map   = tensor u32[N, 27];
            let order = tensor u32[N];
            let rows  = tensor u32[27, N];
            let list  = tensor u32[ceil_div(N, B1) * 27];
            submanifold_map(coords, map, 1, side, side, side);
            plan<B1 = B1>(map, order, rows, seg, list);
            conv_masked<B1 = B1, BK = 16>(feats, weight, none, order, rows, seg, list, y);
        }";
    let sites = shell(8);
    let coords = tensor(&[sites.len(), 4], &sites.concat());
    let (program, coords) = (file("masked.tile", text.as_bytes()), file("shell.npy", &npy::write(&coords)));
    let seg = file("seg.npy", &[]);
    let arguments = [
        "run".into(),
        program.display().to_string(),
        "masked".into(),
        "--backend=interp".into(),
        format!("--in=coords={}", coords.display()),
        format!("--out=seg={}", seg.display()),
        "-Dside=19".into(),
        "--random=1".into(),
        "--stats".into(),
        "--json".into(),
    ];
    let outcome = command(&arguments);
    assert_eq!(outcome.status, 0, "{}", outcome.err);
    let json: Value = serde_json::from_str(&outcome.out).expect("JSON");
    let steps = json["stats"]["instructions"]["TMATMUL_ACC"].as_u64().expect("a count");
    let seg = npy::read(&std::fs::read(seg).expect("written"), Some(DType::U32)).expect("an array");
    let (blocks, listed) = (sites.len().div_ceil(16), *seg.as_slice::<u32>().expect("u32").last().expect("an end"));
    assert_eq!(steps, 2 * u64::from(listed));
    assert!(f64::from(listed) <= 0.8 * (27 * blocks) as f64, "{listed} of {}", 27 * blocks);
}

/// What a kernel of the library refuses while it runs is told with the launches that lead there, the author's last.
#[test]
fn a_failed_assertion_names_the_launches() {
    let text = "use std::sparse::submanifold_map;
        program mapped(coords: in i32[N, 4], map: out u32[N, 27]) { submanifold_map(coords, map, 1, 4, 4, 4); }";
    let coords = tensor(&[3, 4], &[0, 1, 1, 1, 0, 2, 2, 2, 0, 1, 1, 1]);
    for (backend, threads) in RUNS {
        let entry = Entry::of_text(text, "mapped", &[], backend).unwrap_or_else(|e| panic!("{}", e.rendered(false)));
        let Err(report) = entry.call(&arrays([("coords", coords.clone())]), threads) else { panic!("it runs") };
        let told = report.rendered(false);
        let places = [
            "site 2, at (1, 1, 1), is there already",
            "`_put_sites` is launched here",
            "`site_table` is launched here",
        ];
        assert!(places.iter().all(|p| told.contains(p)), "{told}");
        let last = "`submanifold_map` is launched here, with K = u32";
        assert!(told.contains("text.tile:2") && told.contains(last), "{told}");
    }
}

/// So is what it refuses before it runs.
#[test]
fn a_refused_constant_names_the_launches() {
    let text = "use std::sparse::submanifold_map;
        program mapped(coords: in i32[N, 4], map: out u32[N, 18]) {
            submanifold_map<KS = (2, 3, 3)>(coords, map, 1, 4, 4, 4);
        }";
    let entry = Entry::of_text(text, "mapped", &[], "interp").unwrap_or_else(|e| panic!("{}", e.rendered(false)));
    let coords = tensor(&[2, 4], &[0, 1, 1, 1, 0, 2, 2, 2]);
    let Err(report) = entry.call(&arrays([("coords", coords)]), 1) else { panic!("it runs") };
    let told = report.rendered(false);
    let places =
        ["a kernel is odd in every axis", "`_neighbours` is launched here", "`submanifold_map` is launched here"];
    assert!(places.iter().all(|p| told.contains(p)) && told.contains("text.tile:3"), "{told}");
}
