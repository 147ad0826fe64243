//! TASSIGN and the capacities at source level, on every target: which codes `ptoc check` gives, exactly.

use crate::engine::{Content, agree, build, check, noise};
use ptoc_isa::{Loc, Target};
use ptoc_tensor::DType;

const TARGETS: [&str; 4] = ["a2a3", "a5", "kirin9030", "kirinx90"];

/// The codes of errors, as a sorted list.
fn codes(text: &str, target: &str, defs: &[(&str, &str)]) -> Vec<&'static str> {
    let mut codes = check(text, target, defs).codes;
    codes.sort_unstable();
    codes
}

#[track_caller]
fn expect(text: &str, defs: &[(&str, &str)], wanted: [&[&str]; 4]) {
    for (target, want) in TARGETS.into_iter().zip(wanted) {
        let got = check(text, target, defs);
        let mut codes = got.codes.clone();
        codes.sort_unstable();
        assert_eq!(codes, want, "{target}\n{text}\n{}", got.text);
    }
}

/// A kernel that binds tiles to addresses and uses none of them.
fn bind(tiles: &[(&str, &str)]) -> String {
    let mut body = String::new();
    for (k, (ty, address)) in tiles.iter().enumerate() {
        body += &format!("    let t{k} = tile {ty};\n    TASSIGN(t{k}, {address});\n");
    }
    format!("kernel k(x: in f32[M]) {{\n    grid (i in tiles(M, 16));\n{body}}}\n")
}

const OK: &[&str] = &[];
const ABSENT: &[&str] = &["SA-0351"];
const LARGE: &[&str] = &["SA-0352"];
const RANGE: &[&str] = &["SA-0353"];
const ALIGN: &[&str] = &["SA-0354"];

/// One row each; columns a2a3, a5, kirin9030, kirinx90.
#[test]
fn vectors_on_every_target() {
    let small = "Vec<f32, 16, 16>";
    expect(&bind(&[(small, "0x0000"), (small, "0x0400"), (small, "0x0800")]), &[], [OK; 4]);
    expect(&bind(&[("Vec<f32, 256, 256>", "0x0")]), &[], [LARGE, OK, LARGE, LARGE]);
    let both: &[&str] = &["SA-0353", "SA-0354"];
    expect(&bind(&[("Vec<f32, 128, 128>", "0x20001")]), &[], [both, ALIGN, both, both]);
    expect(&bind(&[("Vec<f32, 128, 128>", "0x20000")]), &[], [OK, OK, RANGE, RANGE]);
    let (left, right) = ("Left<f16, 64, 128>", "Right<f16, 128, 64>");
    expect(&bind(&[(left, "0x0"), (right, "0x0")]), &[], [OK; 4]);
    expect(&bind(&[(left, "0x0"), (left, "0x8000")]), &[], [OK, OK, RANGE, OK]);
    expect(&bind(&[(right, "0x0"), (right, "0x8000")]), &[], [OK, OK, RANGE, OK]);
    let twice: &[&str] = &["SA-0353", "SA-0353"];
    let all = [(left, "0x0"), (left, "0x8000"), (right, "0x0"), (right, "0x8000")];
    expect(&bind(&all), &[], [OK, OK, twice, OK]);
    for side in ["ScaleLeft", "ScaleRight"] {
        expect(&bind(&[(&format!("{side}<u8, 1, 32>"), "0x0")]), &[], [ABSENT, OK, ABSENT, ABSENT]);
        expect(&bind(&[(&format!("{side}<u8, 128, 32>"), "0x0")]), &[], [ABSENT, OK, ABSENT, ABSENT]);
        expect(&bind(&[(&format!("{side}<u8, 129, 32>"), "0x0")]), &[], [ABSENT, LARGE, ABSENT, ABSENT]);
    }
    expect(&bind(&[("Scaling<u64, 1, 768>", "0x0")]), &[], [LARGE, LARGE, OK, OK]);
    expect(&bind(&[("Bias<i32, 1, 512>", "0x0")]), &[], [LARGE, OK, LARGE, LARGE]);
    expect(&bind(&[("Mat<f32, 512, 512>", "0x0")]), &[], [LARGE, LARGE, LARGE, OK]);
    expect(&bind(&[("Vec<f32, 256, 256>", "0x0")]), &[("capacity.Vec", "262144")], [OK; 4]);
}

/// 8.1, row 1: addresses that arrive with the launch are not judged before it, whatever they would be.
#[test]
fn run_time_addresses_are_not_judged_statically() {
    let text = "kernel k(a: in f32[M, N], b: in f32[M, N], c: out f32[M, N], p: index = 0x1000, q: index = 0x2000, r: \
        index = 0x3000) {
    grid (i in tiles(M, 16), j in tiles(N, 16));
    let x, y, z = tile Vec<f32, i, j>;
    TASSIGN(x, p);
    TASSIGN(y, q);
    TASSIGN(z, r);
    TLOAD(x, a.tile(i, j));
    TLOAD(y, b.tile(i, j));
    TADD(z, x, y);
    TSTORE(c.tile(i, j), z);
}
";
    expect(text, &[], [OK; 4]);
    // Nonsense is nonsense only when it runs.
    for (p, code) in
        [("0x1000", None), ("0x1001", Some("PA-")), ("0x7fffffffffffffe0", Some("PA-")), ("-32", Some("PA-"))]
    {
        let text = text.replace("p: index = 0x1000", &format!("p: index = {p}"));
        for target in TARGETS {
            assert_eq!(codes(&text, target, &[]), OK, "{p} on {target}");
            let built = build(&text, target, &[], &[]).expect("it compiles");
            let dims = [("M", 33), ("N", 17)];
            let array = |seed| noise(DType::F32, &[33, 17], Content::Tame, seed);
            let tensors = [array(1), array(2), array(0)];
            let outcome = agree(&built, &dims, &tensors, &[1, 2]).unwrap_or_else(|why| panic!("{p}: {why}"));
            match (outcome, code) {
                (Ok(got), None) => {
                    let sum = |i| tensors[0].get_f64(i) + tensors[1].get_f64(i);
                    assert!((0..got[2].len()).all(|i| got[2].get_f64(i) == sum(i)));
                }
                (Err((got, _)), Some(want)) => {
                    assert!(got.starts_with(want), "{p} on {target}: {got}");
                    let machine = built.execute(&dims, &tensors, 1).expect_err("machine code checks it too");
                    assert_eq!(machine.0, got, "{p} on {target}");
                }
                (outcome, _) => panic!("{p} on {target}: {:?}", outcome.map(|_| ())),
            }
        }
    }
}

/// Rules of types, as far as the language has it: there are no pointers.
#[test]
fn type_rules() {
    let vec = "Vec<f32, 16, 16>";
    let tensor = "kernel k(x: in f32[M]) { grid (i in tiles(M, 16)); TASSIGN(x, 0x0); }";
    for target in TARGETS {
        let float = codes(&bind(&[(vec, "0.0")]), target, &[]);
        assert_eq!(float, ["E0215"], "a float is no address: {float:?}");
        let float = codes(&bind(&[(vec, "f32(16)")]), target, &[]);
        assert_eq!(float, ["E0215"], "a float is no address: {float:?}");
        assert_eq!(codes(tensor, target, &[]), ["E0216"]);
    }
    // Integers of any type are addresses.
    for address in ["u32(64)", "i32(64)", "index(64)", "32 + 32", "0x40"] {
        expect(&bind(&[(vec, address)]), &[], [OK; 4]);
    }
}

/// In auto mode an address places nothing, and is still checked where it is constant.
#[test]
fn auto_mode_checks_and_forgets() {
    let text = |mode: &str, at: &str| {
        format!(
            "{mode}kernel k<const AT = {at}>(a: in f32[M, N], c: out f32[M, N]) {{
    grid (i in tiles(M, 16), j in tiles(N, 64));
    let x, y = tile Vec<f32, i, j>;
    TASSIGN(x, AT);
    TASSIGN(y, AT);
    TLOAD(x, a.tile(i, j));
    TEXP(y, x);
    TADD(y, y, x);
    TSTORE(c.tile(i, j), y);
}}
"
        )
    };
    expect(&text("#[place(auto)]\n", "0x40"), &[], [OK; 4]);
    let both: &[&str] = &["SA-0354", "SA-0354"];
    expect(&text("#[place(auto)]\n", "0x41"), &[], [both; 4]);
    let four: &[&str] = &["SA-0353", "SA-0353", "SA-0354", "SA-0354"];
    expect(&text("#[place(auto)]\n", "0x7fffffffffffffff"), &[], [four; 4]);
    // No address is left in the IR, and x and y are apart although the text puts them on the same bytes.
    let built = build(&text("#[place(auto)]\n", "0x40"), "a2a3", &[], &[]).expect("compiles");
    let ir = ptoc_ir::tile::text::print(&built.source, ptoc_ir::tile::text::Spans::Omit);
    assert!(!ir.contains("assign") && !ir.contains(" at ") && !ir.contains("dynamic"), "{ir}");
    let a = noise(DType::F32, &[17, 65], Content::Tame, 1);
    let c = ptoc_tensor::Tensor::zeros(DType::F32, &[17, 65]).expect("small");
    let dims = [("M", 17), ("N", 65)];
    let got = agree(&built, &dims, &[a.clone(), c.clone()], &[1, 2]).expect("agrees").expect("runs");
    let want = |i: usize| a.get_f64(i).exp() + a.get_f64(i);
    assert!((0..a.len()).all(|i| (got[1].get_f64(i) - want(i)).abs() <= 1e-5 * want(i).abs().max(1.0)));
    // The default takes the author at his word: x is gone when y is written.
    let built = build(&text("", "0x40"), "a2a3", &[], &[]).expect("compiles");
    let got = agree(&built, &dims, &[a.clone(), c], &[1, 2]).expect("agrees").expect("runs");
    let want = |i: usize| 2.0 * a.get_f64(i).exp();
    assert!((0..a.len()).all(|i| (got[1].get_f64(i) - want(i)).abs() <= 1e-5 * want(i).abs()));
}

/// A tile of the smallest granule in each location: its type with so many of them, and the bytes of one.
fn lines(target: &Target, loc: Loc) -> Option<(impl Fn(u64) -> String, u64)> {
    let (dtype, rows, cols, along_rows): (DType, u64, u64, bool) = match loc {
        Loc::Vec | Loc::ScaleLeft | Loc::ScaleRight => (DType::U8, 1, 32, true),
        // Whole boxes of 16 x 32 (32 x 16) bytes; in Mat lie those of Left.
        Loc::Mat | Loc::Left => (DType::I8, 16, 32, true),
        Loc::Right => (DType::I8, 32, 16, true),
        Loc::Acc => (DType::I32, 16, 16, true),
        Loc::Bias => (DType::I32, 1, 16, false),
        Loc::Scaling => (DType::U64, 1, 16, false),
        Loc::Bank | Loc::GrfA | Loc::GrfB | Loc::Buf | Loc::Lanes => return None,
    };
    if target.capacity(loc) == 0 {
        return None;
    }
    let ty = move |n: u64| {
        let (r, c) = if along_rows { (rows * n, cols) } else { (rows, cols * n) };
        format!("{loc}<{dtype}, {r}, {c}>")
    };
    Some((ty, rows * cols * dtype.size() as u64))
}

/// A tile may end exactly where its memory ends; 32 bytes further, or one granule more, is too far; and an address in
/// between is not aligned. For every location and target.
#[test]
fn boundaries_of_every_memory() {
    let mut seen = 0;
    for name in TARGETS {
        let target = Target::builtin(name).expect("a target");
        for loc in target.locations() {
            let Some((ty, granule)) = lines(target, loc) else {
                let text = bind(&[(&format!("{loc}<u8, 1, 32>"), "0")]);
                assert_eq!(codes(&text, name, &[]), ABSENT, "{loc} on {name}");
                continue;
            };
            seen += 1;
            let capacity = target.capacity(loc);
            let at = |n: u64, address: u64| codes(&bind(&[(&ty(n), &address.to_string())]), name, &[]);
            let whole = capacity / granule;
            let what = format!("{loc} on {name}");
            assert_eq!(whole * granule, capacity, "{what}: the granule divides the memory");
            assert_eq!(at(whole, 0), OK, "{what}: all of it");
            assert_eq!(at(whole + 1, 0), LARGE, "{what}: one granule more");
            assert_eq!(at(whole, 32), RANGE, "{what}: all of it, 32 bytes further");
            let last = capacity - granule;
            assert_eq!(at(1, last), OK, "{what}: the last place");
            assert_eq!(at(1, last + 32), RANGE, "{what}: 32 bytes past the last place");
            assert_eq!(at(1, last + 1), ["SA-0353", "SA-0354"], "{what}: a byte past the last place");
            assert_eq!(at(1, last - 1), ALIGN, "{what}: a byte before the last place");
            assert_eq!(
                at(1, 1),
                if granule < capacity { ALIGN } else { &["SA-0353", "SA-0354"] },
                "{what}: a byte off"
            );
            // A memory that was made as large takes what it could not.
            let more = (capacity + granule).to_string();
            let define = [(format!("capacity.{loc}"), more)];
            let defs: Vec<(&str, &str)> = define.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
            assert_eq!(codes(&bind(&[(&ty(whole + 1), "0")]), name, &defs), OK, "{what}: overridden");
        }
    }
    assert_eq!(seen, 9 + 3 * 7, "four targets with their memories");
}

/// The message quotes the overridden capacity, and says that it is one.
#[test]
fn overrides_are_quoted() {
    let text = bind(&[("Vec<f32, 256, 256>", "0x20")]);
    let defs = [("capacity.Vec", "262144")];
    for target in TARGETS {
        let said = check(&text, target, &defs);
        assert_eq!(said.codes, RANGE, "{}", said.text);
        assert!(said.text.contains("262144"), "{}", said.text);
        if target != "a5" {
            assert!(said.text.contains("overridden"), "{}", said.text);
        }
    }
    let said = check(&bind(&[("Vec<f32, 256, 256>", "0x0")]), "a2a3", &[("capacity.Vec", "0x3ffe0")]);
    assert_eq!(said.codes, LARGE);
    assert!(said.text.contains("262144 > 262112"), "{}", said.text);
}

/// Addresses near 2^64 and beyond do not wrap around into the memory.
#[test]
fn addresses_do_not_wrap() {
    for (address, want) in [
        ("0xffffffffffffff00", RANGE),
        ("0x10000000000000000", RANGE),
        ("(1 << 64) - 32", RANGE),
        ("0x7fffffffffffffe0", RANGE),
        ("0xffffffffffffffff", &["SA-0353", "SA-0354"]),
        ("-32", RANGE),
        ("-1", &["SA-0353", "SA-0354"]),
    ] {
        expect(&bind(&[("Vec<f32, 16, 16>", address)]), &[], [want; 4]);
    }
}

/// Equal offsets in two memories are no overlap.
#[test]
fn overlaps_know_their_memory() {
    let text = |first: &str, second: &str| {
        let said = check(&bind(&[(first, "0"), (second, "0")]), "a2a3", &[]);
        assert_eq!(said.codes, OK);
        said.text
    };
    assert_eq!(text("Left<f16, 64, 128>", "Right<f16, 128, 64>"), "");
    assert_eq!(text("Vec<f32, 16, 16>", "Mat<f32, 16, 16>"), "");
}

/// Sizes are what the language says they are.
#[test]
fn tiles_have_their_bytes() {
    for (ty, bytes) in [("Vec<f32, 16, 16>", 1024), ("Left<f16, 64, 128>", 16384), ("Vec<f32, 256, 256>", 262144)] {
        let text = |n: i32| {
            format!(
                "kernel k(x: in f32[M]) {{ grid (i in tiles(M, 16)); let t = tile {ty}; static_assert(bytes(t) == \
                {n}); }}"
            )
        };
        assert_eq!(codes(&text(bytes), "a5", &[]), OK);
        assert_eq!(codes(&text(bytes + 1), "a5", &[]).len(), 1);
    }
}

/// The table of 36 capacities, in bytes.
#[test]
fn capacities_of_every_target() {
    let table = [
        (Loc::Vec, [196608, 262144, 131072, 131072]),
        (Loc::Mat, [524288, 524288, 524288, 1048576]),
        (Loc::Left, [65536, 65536, 32768, 65536]),
        (Loc::Right, [65536, 65536, 32768, 65536]),
        (Loc::Acc, [131072, 262144, 65536, 131072]),
        (Loc::Bias, [1024, 4096, 1024, 1024]),
        (Loc::Scaling, [2048, 4096, 7168, 6144]),
        (Loc::ScaleLeft, [0, 4096, 0, 0]),
        (Loc::ScaleRight, [0, 4096, 0, 0]),
    ];
    let listed = crate::engine::command(&["targets", "--json"]);
    assert_eq!(listed.status, 0, "{}", listed.err);
    let listed: serde_json::Value = serde_json::from_str(&listed.out).expect("JSON");
    for (loc, capacities) in table {
        for (name, capacity) in TARGETS.into_iter().zip(capacities) {
            let target = listed.as_array().expect("a list").iter().find(|t| t["name"] == name).expect("listed");
            assert_eq!(target["locations"][loc.name()]["capacity"], capacity, "{loc} on {name}");
            assert_eq!(target["locations"][loc.name()]["align"], 32, "{loc} on {name}");
        }
    }
}
