//! Locations that share one memory (`[pool.NAME]` of a target file): their tiles are packed together, the plan checker
//! keeps them apart, and messages speak of the pool.

use ptoc_checks::plan_check::{self, PlanFault};
use ptoc_diagnostics::{FileId, SourceMap};
use ptoc_interp::{InterpreterLaunch, Options, Order, Pipes, TensorArg};
use ptoc_ir::tile::{AddrKind, Kernel, Tile};
use ptoc_isa::{Loc, Target};
use ptoc_placement::placement::plan;
use ptoc_placement::{MemoryMap, PlacedKernel};
use ptoc_tensor::DType;
use ptoc_tests::front::{Flags, Library, check_for};

fn pooled() -> Target {
    Target::parse(FileId(0), include_str!("../targets/pooled.toml")).expect("a good file")
}

/// A product of factors in Mat that is scaled in Vec, and the factors' product once more: all of them live while it is
/// scaled, `n` x 64 elements in each of two tiles of f32 and one of f16.
fn product(n: u32) -> String {
    format!(
        "kernel scaled(a: in f16[{n}, 64], b: in f16[64, 64], s: in f32[{n}, 64], y: out f32[{n}, 64], z: out f32[{n}, \
        64]) {{
    let factor = Vec(s);
    let left = Mat(a);
    let right = Mat(b);
    let sum = tile Vec<f32, {n}, 64>;
    TMOV(sum, matmul(Left(left), Right(right)));
    let scaled = tile Vec<f32, {n}, 64>;
    TMUL(scaled, sum, factor);
    TSTORE(y, scaled);
    TSTORE(z, matmul(Left(left), Right(right)));
}}
"
    )
}

fn kernel_of(text: &str, target: &Target) -> Kernel {
    let mut sources = SourceMap::default();
    let file = sources.add("pools.tile", text);
    let mut found = Vec::new();
    let modules = ptoc_names::Modules::load(file, text, &mut Library::new(&mut sources), &mut found);
    let id = modules.entries().next().expect("a kernel").0;
    let outcome = ptoc_analysis::instantiate(&modules, id, target, &Default::default());
    assert!(found.is_empty() && outcome.diagnostics.is_empty(), "{found:?} {:?}", outcome.diagnostics);
    outcome.result.expect("an instance").kernel
}

/// First byte and one past the last of what the planner has given a tile, by its name.
fn bytes(placed: &PlacedKernel, tile: Tile) -> (u64, u64) {
    let at = placed.placement.offsets[tile][0];
    (at, at + placed.kernel.tiles[tile].ty.bytes())
}

#[test]
fn tiles_of_a_pool_are_packed_together() {
    let target = pooled();
    let (placed, warnings) = ptoc_passes::place(kernel_of(&product(64), &target), &target).expect("it fits");
    assert!(warnings.is_empty(), "{warnings:?}");
    let memory = placed.placement.memory(Loc::Mat).expect("tiles in Mat");
    assert_eq!((&memory.locations[..], memory.capacity), (&[Loc::Vec, Loc::Mat][..], 65_536));
    assert_eq!(placed.placement.memory(Loc::Vec), Some(memory));
    // Side by side as long as both live, whatever the locations.
    let of = |loc: Loc| placed.kernel.tiles.iter().filter(move |(_, d)| d.ty.loc == loc).map(|(t, _)| t);
    let mut pairs = 0;
    for a in of(Loc::Vec) {
        for b in of(Loc::Mat) {
            let lives = placed.placement.intervals[a].zip(placed.placement.intervals[b]);
            if lives.is_some_and(|(x, y)| x.meet(y).is_some()) {
                let ((start, end), (from, to)) = (bytes(&placed, a), bytes(&placed, b));
                assert!(end <= from || to <= start, "{placed}");
                pairs += 1;
            }
        }
    }
    assert!(pairs >= 2, "{placed}");
    // One after the other they share bytes: all of them are more than the extent.
    let all: u64 = [Loc::Vec, Loc::Mat].into_iter().flat_map(of).map(|t| placed.kernel.tiles[t].ty.bytes()).sum();
    assert!(memory.extent < all && memory.extent <= memory.capacity, "{} of {all}", memory.extent);
    // The text of the plan names the locations, and is read again.
    let text = placed.print(ptoc_ir::tile::text::Spans::Keep);
    assert!(text.contains("  memory Vec+Mat capacity 65536 "), "{text}");
    let again = PlacedKernel::parse(&text, FileId(0)).expect("its own text");
    assert_eq!(again.placement.memories, placed.placement.memories);
    let map = MemoryMap::new(&placed.kernel, &placed.placement, &target);
    assert_eq!(map.memories[0].title(), "smem (Vec and Mat)");
    assert_eq!(map.memories[0].used, memory.extent);
}

/// What fits two memories of that size need not fit one.
#[test]
fn a_pool_that_is_too_small_is_told_of_by_its_name() {
    let target = pooled();
    let checked = check_for(&target, "pools.tile", &product(128), &Flags::default(), None);
    insta::assert_snapshot!(checked.text());
    // The same kernel where the locations have memories of that size each.
    let apart = include_str!("../targets/pooled.toml")
        .replace("[pool.smem]\ncapacity = 65536\nalign = 128\n\n", "")
        .replace("pool = \"smem\"", "capacity = 65536\nalign = 128");
    let apart = Target::parse(FileId(0), &apart).expect("a good file");
    assert!(ptoc_passes::place(kernel_of(&product(128), &apart), &apart).is_ok());
}

/// A tile that is larger than the pool, and a capacity that was set.
#[test]
fn sizes_and_settings_of_a_pool() {
    let target = pooled().override_capacity("smem", 16_384).expect("the pool's name");
    let checked = check_for(&target, "pools.tile", &product(128), &Flags::default(), None);
    insta::assert_snapshot!("tile_larger_than_the_pool", checked.text());
    let target = pooled().override_capacity("Mat", 32_768).expect("a location of the pool");
    let checked = check_for(&target, "pools.tile", &product(64), &Flags::default(), None);
    insta::assert_snapshot!("capacity_of_the_pool_was_set", checked.text());
}

#[test]
fn the_plan_checker_refuses_bytes_that_two_locations_want() {
    let target = pooled();
    let kernel = kernel_of(&product(64), &target);
    let good = plan(&kernel, &target).expect("it fits");
    assert_eq!(plan_check::check(&kernel, &good, &target), []);
    let named = |name: &str| kernel.tiles.iter().find(|(_, d)| d.name == name).expect("a tile of that name").0;
    let (factor, left) = (named("factor"), named("left"));
    assert_ne!(kernel.tiles[factor].ty.loc, kernel.tiles[left].ty.loc);
    // `left` is written while `factor` waits for its use.
    let mut bad = good.clone();
    bad.offsets[left] = good.offsets[factor].clone();
    let faults = plan_check::check(&kernel, &bad, &target);
    assert!(
        faults.iter().any(|f| matches!(f, PlanFault::Clobber(a, b, _) if (*a, *b) == (left, factor))),
        "{faults:?}"
    );
    // Where the locations have memories of their own, it is no fault.
    let a5 = Target::builtin("a5").expect("built in");
    let kernel = kernel_of(&product(64), a5);
    let mut plan = plan(&kernel, a5).expect("it fits");
    plan.offsets[left] = plan.offsets[factor].clone();
    assert_eq!(plan_check::check(&kernel, &plan, a5), []);
}

/// Constant addresses of the author's in two locations of a pool, and computed ones beside them.
#[test]
fn addresses_of_the_authors_in_two_locations() {
    let target = pooled();
    let source = "kernel k(x: in f32[16, 64], a: in f16[64, 64], b: in f16[64, 64], y: out f32[64, 64], z: out f32[16, \
            64]) {\n    \
            let m = tile Mat<f16, 64, 64> at 0x0;\n    \
            let v = tile Vec<f32, 16, 64> at 0x1000;\n    \
            TLOAD(m, a);\n    \
            TLOAD(v, x);\n    \
            TSTORE(y, matmul(Left(m), Right(Mat(b))));\n    \
            TSTORE(z, v);\n\
        }\n";
    let checked = check_for(&target, "pools.tile", source, &Flags::default(), None);
    insta::assert_snapshot!("addresses_in_two_locations", checked.text());
    let apart = check_for(&target, "pools.tile", &source.replace("0x1000", "0x2000"), &Flags::default(), None);
    assert_eq!(apart.errors(), 0, "{}", apart.text());
    // An address that the kernel computes, beside one of another location.
    let mut kernel = kernel_of(&source.replace("0x1000", "0x2000"), &target);
    let vec = kernel.tiles.iter().find(|(_, d)| d.ty.loc == Loc::Vec).expect("v").0;
    kernel.tiles[vec].addr = AddrKind::Dynamic;
    let good = plan(&kernel, &target).expect("it fits");
    let faults = plan_check::check(&kernel, &good, &target);
    let fault = faults.iter().find(|f| matches!(f, PlanFault::Unbounded(a, _) if *a == vec)).expect("refused");
    let d = fault.diagnostic(&kernel);
    assert_eq!(d.message, "nothing keeps `v`, whose address is computed, away from `m`");
}

/// Bytes of a pool that go from a tile of one location to one of another are ordered as those of one location are: by
/// the flags that are inserted, and in the eyes of the interpreter.
#[test]
fn bytes_that_change_hands_between_locations_are_ordered() {
    let pooled = pooled();
    let apart = include_str!("../targets/pooled.toml")
        .replace("[pool.smem]\ncapacity = 65536\nalign = 128\n\n", "")
        .replace("pool = \"smem\"", "capacity = 65536\nalign = 128");
    let apart = Target::parse(FileId(0), &apart).expect("a good file");
    // The store of `v` is done with its bytes before the load of `m` takes them.
    let text = "kernel k(x: in f32[16, 64], y: out f32[16, 64], a: in f16[64, 64], z: out f32[64, 64]) {
    let v = Vec(x);
    TSTORE(y, v);
    let m = Mat(a);
    TSTORE(z, matmul(Left(m), Right(m)));
}
";
    let kernel = kernel_of(text, &pooled);
    let placement = plan(&kernel, &pooled).expect("it fits");
    let named = |name: &str| kernel.tiles.iter().find(|(_, d)| d.name == name).expect("a tile of that name").0;
    assert_eq!(placement.offsets[named("v")], placement.offsets[named("m")]);
    let physical = ptoc_placement::physical(&kernel, &placement, &pooled);
    let ordered = |target: &Target| ptoc_opt::sync::insert_and_report(physical.clone(), target);
    let ((good, with), (bad, without)) = (ordered(&pooled), ordered(&apart));
    assert!(with.missing == 0 && with.pairs > without.pairs, "{with:?} {without:?}");
    let run = |kernel: &Kernel| {
        let arg = |dtype: DType, shape: [u64; 2]| {
            let bytes = shape[0] as usize * shape[1] as usize * dtype.size();
            TensorArg { dtype, shape: shape.to_vec(), data: vec![0; bytes] }
        };
        let pools = pooled.pools().iter().map(|pool| pool.locations.clone()).collect();
        let pipes = Pipes { order: Order::Random(1), barrier: pooled.pipes.barrier.clone(), pools, time: None };
        let mut launch = InterpreterLaunch {
            tensors: vec![
                arg(DType::F32, [16, 64]),
                arg(DType::F32, [16, 64]),
                arg(DType::F16, [64, 64]),
                arg(DType::F32, [64, 64]),
            ],
            dims: Vec::new(),
            scalars: Vec::new(),
            options: Options { pipes: Some(pipes), ..Options::default() },
            print: &mut |_| {},
        };
        ptoc_interp::run(kernel, &mut launch).map(|_| ()).map_err(|trap| trap.message)
    };
    assert_eq!(run(&good), Ok(()));
    let trap = run(&bad).expect_err("the load runs into the store");
    assert!(trap.contains("`m`"), "{trap}");
}
