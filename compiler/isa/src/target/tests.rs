use super::*;
use ptoc_diagnostics::{FileId, codes};

/// What `spec/targets.md` says, in bytes.
const CAPACITIES: [(Loc, [u64; 4]); 9] = [
    (Loc::Vec, [196_608, 262_144, 131_072, 131_072]),
    (Loc::Mat, [524_288, 524_288, 524_288, 1_048_576]),
    (Loc::Left, [65_536, 65_536, 32_768, 65_536]),
    (Loc::Right, [65_536, 65_536, 32_768, 65_536]),
    (Loc::Acc, [131_072, 262_144, 65_536, 131_072]),
    (Loc::Bias, [1024, 4096, 1024, 1024]),
    (Loc::Scaling, [2048, 4096, 7168, 6144]),
    (Loc::ScaleLeft, [0, 4096, 0, 0]),
    (Loc::ScaleRight, [0, 4096, 0, 0]),
];

#[test]
fn capacities_are_those_of_the_tassign_page() {
    let names = |all: &'static [Target]| all.iter().map(|t| t.name.as_str()).collect::<Vec<_>>();
    assert_eq!(names(Target::pto()), ["a2a3", "a5", "kirin9030", "kirinx90"]);
    assert_eq!(names(Target::all()), ["a2a3", "a5", "kirin9030", "kirinx90", "sm90", "geopim", "hbm-pim"]);
    // A file has its target's name.
    for t in Target::all().iter().chain(Target::devices()) {
        assert_eq!(Target::builtin(&t.name).unwrap(), t);
    }
    let mut entries = 0;
    for (loc, row) in CAPACITIES {
        for (target, capacity) in Target::pto().iter().zip(row) {
            assert_eq!(target.capacity(loc), capacity, "{loc} of {}", target.name);
            assert_eq!(target.memory(loc).align, 32);
            entries += 1;
        }
    }
    assert_eq!(entries, 36);
}

#[test]
fn dtypes_and_triples() {
    let [a2a3, a5, k1, k2] = Target::pto() else { panic!("four targets") };
    assert!(a2a3.has_dtype(DType::BF16) && a5.has_dtype(DType::BF16));
    assert!(!k1.has_dtype(DType::BF16) && !k2.has_dtype(DType::BF16));
    assert_eq!(a2a3.accumulators(), [DType::F32, DType::I32]);
    assert_eq!(k1.accumulators(), [DType::F16, DType::I32]);
    assert_eq!(k2.accumulator_of(DType::F16, DType::F16), Some(DType::F16));
    assert_eq!(a5.accumulator_of(DType::I8, DType::I8), Some(DType::I32));
    assert_eq!(a5.accumulator_of(DType::F16, DType::F32), None);
    assert_eq!((a2a3.mask_unit, a5.mask_unit), (DType::U8, DType::U32));
}

#[test]
fn unknown_targets() {
    assert_eq!(Target::find("a5").unwrap().name, "a5");
    let unknown = Target::builtin("A5").unwrap_err();
    assert_eq!(unknown.code, codes::UNKNOWN_TARGET);
    assert_eq!(
        unknown.notes,
        ["the targets are `a2a3`, `a5`, `kirin9030`, `kirinx90`, `sm90`, `geopim`, `hbm-pim`, `gddr6-aim` and \
          `lpddr5-pim`"]
    );
    assert_eq!(unknown.fixes[0].message, "did you mean `a5`?");
    assert!(Target::builtin("quantum").unwrap_err().fixes.is_empty());
}

#[test]
fn capacities_are_overridden_by_name() {
    let t = Target::all()[0].clone().override_capacity("Vec", 262_144).unwrap();
    assert_eq!(t.capacity(Loc::Vec), 262_144);
    assert!(t.memory(Loc::Vec).overridden && !t.memory(Loc::Mat).overridden);
    let error = t.override_capacity("vec", 1).unwrap_err();
    assert_eq!(error.code, codes::UNKNOWN_CAPACITY);
    assert_eq!(error.fixes[0].message, "did you mean `capacity.Vec`?");
}

const A2A3: &str = include_str!("../../targets/a2a3.toml");

/// The errors for a2a3.toml with `from` replaced by `to`: message and the text that it points at.
fn errors(from: &str, to: &str) -> Vec<(String, String)> {
    assert!(A2A3.contains(from), "{from}");
    let text = A2A3.replacen(from, to, 1);
    let errors = Target::parse(FileId(3), &text).expect_err("wrong on purpose");
    errors
        .into_iter()
        .map(|e| {
            let span = e.span.expect("located");
            assert_eq!(span.file, FileId(3));
            (e.message, text[span.range()].to_string())
        })
        .collect()
}

#[test]
fn mistakes_in_target_files_are_located() {
    let cases = [
        errors("\"bf16\", \"f32\"]", "\"bf16\", \"f23\"]"),
        errors("capacity = 196608", "capacity = -1"),
        errors("align = 32", "align = 24"),
        errors("from = \"GM\"", "from = \"HBM\""),
        errors("to = \"Vec\"", "to = \"GM\""),
        errors("mask_unit = \"u8\"", "mask_unit = \"i8\""),
        errors("[memory.Vec]", "[memory.Vex]"),
        errors("[16, 32]", "[16, 0]"),
        errors("[1, 4095]", "[4095, 1]"),
        errors("family = \"a2a3\"", "family = \"a6\""),
        errors("same = [\"all\"]", "same = [\"every\"]"),
        errors("same = [\"all\"]", ""),
        errors("row_align = 64", "row_aling = 64"),
        errors("capacity = 196608", "capacity = \"big\""),
        errors("name = \"a2a3\"", "name = "),
        errors("name = \"a2a3\"", ""),
        errors("to = \"Mat\"", "to = \"Vec\""),
        errors("triples = [[\"f32\", \"f16\"", "triples = [[\"f32\", \"bool\""),
    ];
    let text: Vec<String> = cases
        .iter()
        .map(|case| case.iter().map(|(m, at)| format!("{m}\n    at `{at}`\n")).collect::<String>())
        .collect();
    insta::assert_snapshot!(text.join("\n"));
}

/// A model of time may be missing, but what there is of it is complete.
#[test]
fn models_of_time() {
    let wrong = |from: &str, to: &str| errors(from, to);
    let (cut, rest) = A2A3.split_once("[pipes.time]").expect("a model");
    let without = format!("{cut}{}", &rest[rest.find("[[move]]").expect("moves")..]);
    assert_eq!(Target::parse(FileId(0), &without).map(|t| t.pipes.time), Ok(None));
    assert_eq!(
        wrong("FIX = 64 }", "FIXED = 64 }").iter().map(|e| &e.0[..]).collect::<Vec<_>>(),
        ["no number for FIX", "`FIXED` is not a pipe"]
    );
    assert_eq!(
        wrong("bytes = { V = 256, ", "bytes = { V = 256, M = 3, ")[0],
        ("M has no number here".into(), "M".into())
    );
    assert_eq!(wrong("clock = 1850", "clock = 0")[0].1, "0");
    assert_eq!(wrong("macs = { 1", "macs = { 3")[0].1, "3");
    for t in Target::pto() {
        let m = t.pipes.time.as_ref().expect("a model");
        assert!(m.macs.is_sorted(), "{}", t.name);
    }
}

#[test]
fn several_wrong_values_are_all_reported() {
    let text = A2A3.replace("align = 32", "align = 33");
    assert_eq!(Target::parse(FileId(0), &text).unwrap_err().len(), 9);
}

#[test]
fn moves_of_the_builtin_targets_have_pairs() {
    for t in Target::pto() {
        for m in &t.moves {
            assert!(!m.pairs.is_empty(), "{} {} -> {}", t.name, m.from, m.to);
        }
        assert!(t.move_rule(MemorySpace::Gm, Loc::Vec.into()).is_some());
    }
    assert!(Target::all()[0].move_rule(Loc::Acc.into(), Loc::Vec.into()).is_none());
}

const POOLED: &str = include_str!("../../../../tests/targets/pooled.toml");

#[test]
fn locations_of_a_pool_are_one_memory() {
    let t = Target::parse(FileId(0), POOLED).unwrap();
    let pool = t.pool_of(Loc::Mat).unwrap();
    assert_eq!((pool.name.as_str(), &pool.locations[..]), ("smem", &[Loc::Vec, Loc::Mat][..]));
    assert_eq!(t.sharing(Loc::Mat), [Loc::Vec, Loc::Mat]);
    assert_eq!((t.home(Loc::Mat), t.home(Loc::Vec), t.home(Loc::Acc)), (Loc::Vec, Loc::Vec, Loc::Acc));
    assert_eq!((t.memory(Loc::Vec).capacity, t.memory(Loc::Mat).align), (65_536, 128));
    assert_eq!((t.pool_of(Loc::Acc), t.sharing(Loc::Acc)), (None, vec![Loc::Acc]));
    // Set by the name of a location or by that of the pool, it is set for both.
    for name in ["Mat", "smem"] {
        let set = t.clone().override_capacity(name, 4096).unwrap();
        assert!([Loc::Vec, Loc::Mat].iter().all(|l| set.capacity(*l) == 4096 && set.memory(*l).overridden));
        assert_eq!(set.capacity(Loc::Acc), 262_144);
    }
    for t in Target::all().iter().filter(|t| t.gpu.is_none()) {
        assert!(t.pools().is_empty() && Loc::ALL.into_iter().all(|l| t.home(l) == l), "{}", t.name);
    }
}

#[test]
fn mistakes_in_pools_are_located() {
    let wrong = |from: &str, to: &str| {
        let text = POOLED.replacen(from, to, 1);
        assert_ne!(text, POOLED, "{from}");
        let errors = Target::parse(FileId(0), &text).expect_err("wrong on purpose");
        let told = errors.into_iter().map(|e| (e.message, text[e.span.expect("located").range()].to_owned()));
        told.collect::<Vec<_>>()
    };
    let told = |message: &str, at: &str| vec![(message.to_owned(), at.to_owned())];
    let mat = "name = \"L1\"\npool = \"smem\"";
    assert_eq!(wrong(mat, "name = \"L1\"\npool = \"smen\""), told("there is no [pool.smen]", "\"smen\""));
    assert_eq!(
        wrong(mat, "name = \"L1\"\npool = \"smem\"\nalign = 32"),
        told("Mat has the `align` of its pool, and none of its own", "32")
    );
    assert_eq!(
        wrong("[pool.smem]", "[pool.regs]\ncapacity = 64\nalign = 4\n\n[pool.smem]"),
        told("no location is in `regs`: give one `pool = \"regs\"`", "regs")
    );
    assert_eq!(wrong(mat, "name = \"L1\"\nalign = 32"), told("Mat has no `capacity`, and no `pool`", "Mat"));
    assert_eq!(wrong("capacity = 65536", "capacity = 0")[0].1, "0");
    assert_eq!(
        wrong("[pool.smem]", "[pool.Mat]\ncapacity = 64\nalign = 4\n\n[pool.smem]")[0],
        ("a pool has a name of one word, which is not that of a location".into(), "Mat".into())
    );
    // Refused until the planner knows of views.
    assert_eq!(
        wrong("name = \"L0B\"\ncapacity = 65536\nalign = 32", "name = \"L1\"\nin = \"Mat\""),
        told("tiles of Right that are views of those of Mat are not there yet", "\"Mat\"")
    );
    let geopim = GEOPIM.replace("[memory.Buf]", "[pool.all]\ncapacity = 64\nalign = 4\n\n[memory.Buf]\npool = \"all\"");
    let errors = Target::parse(FileId(0), &geopim).expect_err("wrong on purpose");
    assert!(errors.iter().any(|e| e.message == "Buf is a store of a unit's own, and in no pool"));
}

/// Units as `spec/targets.md` has them.
#[test]
fn units_in_memory() {
    let geopim = Target::find("geopim").unwrap();
    let (unit, device) = (geopim.unit.as_ref().unwrap(), geopim.device.as_ref().unwrap());
    assert_eq!((device.units(unit), device.row_bytes(), unit.clock), (512, 1024, 500));
    assert_eq!((geopim.capacity(Loc::Vec), geopim.capacity(Loc::Buf), geopim.capacity(Loc::GrfA)), (512, 256, 0));
    let hbm = Target::find("hbm-pim").unwrap();
    let (unit, device) = (hbm.unit.as_ref().unwrap(), hbm.device.as_ref().unwrap());
    assert_eq!((device.units(unit), device.all_pseudo_channels()), (128, 16));
    assert_eq!((hbm.capacity(Loc::GrfA), hbm.capacity(Loc::GrfB), hbm.capacity(Loc::Buf)), (256, 256, 0));
    for t in [geopim, hbm] {
        let device = t.device.as_ref().unwrap();
        assert_eq!(t.capacity(Loc::Bank), u64::from(device.rows) * device.row_bytes());
        let host = t.host();
        assert!(!host.has_units() && host.is_pim() && host.has_host());
        assert_eq!((host.capacity(Loc::Vec), host.capacity(Loc::Bank)), (262_144, 0));
        assert!(host.move_rule(MemorySpace::Gm, Loc::Vec.into()).is_some());
    }
    let a2a3 = &Target::all()[0];
    assert_eq!(a2a3.host(), *a2a3);
}

const GEOPIM: &str = include_str!("../../targets/geopim.toml");

#[test]
fn mistakes_in_tables_of_units() {
    let errors = |text: &str| {
        let errors = Target::parse(FileId(0), text).expect_err("wrong on purpose");
        errors.into_iter().map(|e| e.message).collect::<Vec<_>>()
    };
    assert_eq!(errors(&GEOPIM.replace("buffers = 2", "")), ["a unit of this kind has a number `buffers`"]);
    assert_eq!(
        errors(&GEOPIM.replace("kind = \"geopim\"", "kind = \"geo\"")),
        ["unit `geo` is none of `geopim`, `hbm-pim`, `aim` and `described`"]
    );
    let lone = GEOPIM.replace("family = \"pim\"", "family = \"a5\"");
    assert!(errors(&lone).contains(&"`[unit]` is for family `pim`".to_string()));
    let cut = format!("{}{}", GEOPIM.split("[unit]").next().unwrap(), &GEOPIM[GEOPIM.find("[device]").unwrap()..]);
    assert_eq!(errors(&cut), ["a target of family `pim` has a table `[unit]`"]);
    assert_eq!(errors(&GEOPIM.replace("stacks = 2", "stacks = 0")), ["0 is not a number of 1 to 4294967295"]);
}

/// The exponential of a GPU is the published program's, or PTX's.
#[test]
fn exponentials_of_gpus() {
    let text = include_str!("../../targets/sm90.toml");
    let line = "exponential = \"ex2.approx.ftz\"";
    let exponential = |text: &str| Target::parse(FileId(0), text).unwrap().gpu.map(|gpu| gpu.exponential);
    assert_eq!(exponential(text), Some(Exponential::SpecialFunctionUnit));
    assert_eq!(exponential(&text.replacen(line, "", 1)), Some(Exponential::Program));
    let wrong = text.replacen(line, "exponential = \"ex3\"", 1);
    let errors = Target::parse(FileId(0), &wrong).expect_err("wrong on purpose");
    assert_eq!(errors.len(), 1);
    assert_eq!(errors[0].message, "`ex3` is no exponential; `ex2.approx.ftz` is the one of the GPU");
    assert_eq!(&wrong[errors[0].span.expect("located").range()], "\"ex3\"");
}

/// Tiles that fusion leaves out have room, once.
#[test]
fn room_before_fusion() {
    let t = Target::builtin("sm90").unwrap();
    let fused = t.clone().before_fusion(Loc::Vec);
    assert!(fused.capacity(Loc::Acc) > t.capacity(Loc::Acc) && fused.capacity(Loc::Mat) == t.capacity(Loc::Mat));
    assert_eq!(fused.pool_of(Loc::Vec).unwrap().name, "regs before fusion");
    assert_eq!(fused.clone().before_fusion(Loc::Vec), fused);
    // A memory of one location.
    assert!(t.clone().before_fusion(Loc::Mat).capacity(Loc::Mat) > t.capacity(Loc::Mat));
}
