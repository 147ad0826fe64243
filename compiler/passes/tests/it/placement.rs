//! Placement: reuse, stages, fixed and run-time addresses, overflow reports; every plan passes the checker.

use crate::harness::*;
use proptest::prelude::*;
use ptoc_checks::plan_check;
use ptoc_ir::tile::text::Spans;
use ptoc_ir::tile::{AddrKind, Kernel, Op, Tile, TileRef, Ty};
use ptoc_isa::{Loc, Order, Target, TileType};
use ptoc_passes::place;
use ptoc_placement::PlacedKernel;
use ptoc_placement::placement::plan;
use ptoc_tensor::DType;

fn f32s(rows: u32, cols: u32) -> TileType {
    TileType { loc: Loc::Vec, dtype: DType::F32, rows, cols, order: Order::Nd, layout: None }
}

fn fill(k: &mut K, t: Tile) {
    let x = k.b.float_const(DType::F32, 1.0);
    let r = k.b.whole(t);
    k.inst("TEXPANDS", vec![ptoc_ir::tile::Operand::Tile(r), ptoc_ir::tile::Operand::Scalar(x)], Default::default());
}

fn op(k: &mut K, name: &str, tiles: &[Tile]) {
    let refs: Vec<_> = tiles.iter().map(|t| k.b.whole(*t)).collect();
    k.tiles(name, &refs);
}

fn repeat(k: &mut K, stages: u32, f: impl FnOnce(&mut K)) {
    let span = k.span();
    let label = k.b.label(span);
    let index = k.b.new_value(Ty::Index, Some("k".into()), span);
    let (lo, hi) = (k.c(0), k.c(9));
    k.b.push_region();
    k.b.define_here(index);
    f(k);
    let body = k.b.pop_region();
    k.b.emit(Op::For(Box::new(ptoc_ir::tile::For { label, index, lo, hi, stages, body })), span);
}

fn offsets(kernel: &Kernel, target: &Target) -> Vec<Vec<u64>> {
    let plan = plan(kernel, target).unwrap();
    assert_eq!(plan_check::check(kernel, &plan, target), []);
    kernel.tiles.keys().map(|t| plan.offsets[t].clone()).collect()
}

#[test]
fn a_chain_of_operations_takes_one_slot() {
    let mut k = K::new("chain");
    k.b.begin_body();
    let t: Vec<Tile> = (0..4).map(|n| k.place(&format!("t{n}"), f32s(8, 64), AddrKind::Auto, 1, 1)).collect();
    fill(&mut k, t[0]);
    op(&mut k, "TEXP", &[t[1], t[0]]);
    op(&mut k, "TADD", &[t[2], t[1], t[1]]);
    // Not in place, so that it needs another slot.
    op(&mut k, "TRECIP", &[t[3], t[2]]);
    assert_eq!(offsets(&k.finish(), a5()), [[0], [0], [0], [2048]]);
}

/// Whole cache lines would put the second tile at 64.
#[test]
fn whole_cache_lines_cost_no_bytes() {
    let mut k = K::new("small");
    k.b.begin_body();
    let t: Vec<Tile> = (0..2).map(|n| k.place(&format!("t{n}"), f32s(1, 8), AddrKind::Auto, 1, 1)).collect();
    fill(&mut k, t[0]);
    fill(&mut k, t[1]);
    op(&mut k, "TADD", &[t[0], t[0], t[1]]);
    let kernel = k.finish();
    let plan = plan(&kernel, a5()).unwrap();
    let memory = plan.memory(Loc::Vec).unwrap();
    assert_eq!((memory.extent, memory.peak), (64, 64));
}

/// Flags say when a tile may be read and written; that its bytes belong to another tile they do not know.
#[test]
fn a_kernel_that_orders_its_pipes_shares_no_bytes() {
    let mut k = K::new("manual");
    k.b.kernel_mut().sync = ptoc_ir::tile::SyncMode::Manual;
    k.b.begin_body();
    let t: Vec<Tile> = (0..3).map(|n| k.place(&format!("t{n}"), f32s(8, 64), AddrKind::Auto, 1, 1)).collect();
    fill(&mut k, t[0]);
    op(&mut k, "TEXP", &[t[1], t[0]]);
    fill(&mut k, t[2]);
    let mut all = offsets(&k.finish(), a5()).concat();
    all.sort_unstable();
    assert_eq!(all, [0, 2048, 4096]);
}

/// A source that dies may hand its bytes over only if nothing reads it at other positions than the one written.
#[test]
fn a_source_that_is_read_elsewhere_keeps_its_bytes() {
    // The row or column that is repeated: a window of the dying tile, and a dying tile that is larger than it needs be.
    for (name, shape) in [("TCOLEXPANDADD", (1, 64)), ("TROWEXPANDADD", (8, 1))] {
        for same in [true, false] {
            let mut k = K::new("broadcast");
            k.b.begin_body();
            let t: Vec<Tile> = (0..3).map(|n| k.place(&format!("t{n}"), f32s(8, 64), AddrKind::Auto, 1, 1)).collect();
            fill(&mut k, t[0]);
            fill(&mut k, t[1]);
            let (a, b, d) = (k.b.whole(t[0]), k.b.whole(t[usize::from(!same)]), k.b.whole(t[2]));
            let valid = (k.c(shape.0), k.c(shape.1));
            let zero = k.c(0);
            let window = TileRef { origin: Some((zero, zero)), rows: shape.0 as u32, cols: shape.1 as u32, ..b };
            let small = if same { TileRef { valid, ..window } } else { TileRef { valid, ..b } };
            k.tiles(name, &[d, a, small]);
            if !same {
                // Only the small operand dies there.
                op(&mut k, "TNEG", &[t[0], t[0]]);
            }
            let at = offsets(&k.finish(), a5());
            assert_ne!(at[2], at[usize::from(!same)], "{name}, same tile: {same}");
        }
    }
    // Two windows of one tile, of which one is the whole of it; the same twice may work in place.
    for moved in [true, false] {
        let mut k = K::new("twice");
        k.b.begin_body();
        let t: Vec<Tile> = (0..2).map(|n| k.place(&format!("t{n}"), f32s(8, 64), AddrKind::Auto, 1, 1)).collect();
        fill(&mut k, t[0]);
        let (a, d, zero) = (k.b.whole(t[0]), k.b.whole(t[1]), k.c(0));
        let b = if moved { TileRef { origin: Some((zero, zero)), ..a } } else { a };
        k.tiles("TSUB", &[d, a, b]);
        let at = offsets(&k.finish(), a5());
        assert_eq!(at[0] == at[1], !moved);
    }
}

/// A fault of the planner is reported as such, where it happens.
#[test]
fn a_plan_fault_says_whose_mistake_it_is() {
    let mut k = K::new("fault");
    k.b.begin_body();
    let t = k.place("t", f32s(8, 64), AddrKind::Auto, 1, 1);
    fill(&mut k, t);
    let kernel = k.finish();
    let d = plan_check::PlanFault::Clobber(t, t, at(77)).diagnostic(&kernel);
    assert!(d.message.starts_with("a bug of ptoc: "), "{}", d.message);
    assert_eq!(d.span, Some(at(77)));
    assert!(format!("{:?}", d.fixes).contains("TASSIGN(t, ..)"), "{d:?}");
}

#[test]
fn tiles_that_are_only_declared_take_no_bytes() {
    let mut k = K::new("declared");
    k.b.begin_body();
    repeat(&mut k, 2, |k| {
        // Two copies of either would fill the memory.
        let large =
            TileType { loc: Loc::Left, dtype: DType::F16, rows: 128, cols: 256, order: Order::Nd, layout: None };
        k.place("a", large, AddrKind::Auto, 1, 2);
        k.place("b", large, AddrKind::Auto, 1, 2);
    });
    assert_eq!(offsets(&k.finish(), a5()), [[0], [0]]);
}

#[test]
fn what_a_loop_carries_is_kept() {
    let mut k = K::new("carried");
    k.b.begin_body();
    let sum = k.place("sum", f32s(8, 64), AddrKind::Auto, 1, 1);
    let before = k.place("before", f32s(8, 64), AddrKind::Auto, 1, 1);
    fill(&mut k, before);
    op(&mut k, "TNEG", &[before, before]);
    fill(&mut k, sum);
    repeat(&mut k, 1, |k| {
        let x = k.place("x", f32s(8, 64), AddrKind::Auto, 1, 1);
        fill(k, x);
        op(k, "TADD", &[sum, sum, x]);
        let y = k.place("y", f32s(8, 64), AddrKind::Auto, 1, 1);
        fill(k, y);
        op(k, "TADD", &[sum, sum, y]);
    });
    let after = k.place("after", f32s(8, 64), AddrKind::Auto, 1, 1);
    op(&mut k, "TNEG", &[after, sum]);
    let at = offsets(&k.finish(), a5());
    // x and y share; `before` is dead by then; `after` takes over from `sum`.
    assert_eq!(at[2], at[3]);
    assert_ne!(at[0], at[2]);
    assert_eq!(at[0], at[4]);
}

/// The checker is not asleep: two live tiles on the same bytes, a source that an instruction overwrites too early.
#[test]
fn the_checker_finds_what_a_plan_destroys() {
    for name in ["TADD", "TRECIP"] {
        let mut k = K::new("clobber");
        k.b.begin_body();
        let t: Vec<Tile> = (0..3).map(|n| k.place(&format!("t{n}"), f32s(8, 64), AddrKind::Auto, 1, 1)).collect();
        fill(&mut k, t[0]);
        fill(&mut k, t[1]);
        match name {
            "TADD" => op(&mut k, name, &[t[2], t[0], t[1]]),
            _ => op(&mut k, name, &[t[2], t[0]]),
        }
        let kernel = k.finish();
        let mut plan = plan(&kernel, a5()).unwrap();
        // TADD needs both sources; TRECIP may not work in place.
        let (a, b) = if name == "TADD" { (t[0], t[1]) } else { (t[0], t[2]) };
        plan.offsets[a] = vec![64];
        plan.offsets[b] = vec![96];
        let faults = plan_check::check(&kernel, &plan, a5());
        assert!(faults.iter().any(|f| matches!(f, plan_check::PlanFault::Clobber(..))), "{name}: {faults:?}");
    }
}

#[test]
fn stages_and_arrays_count() {
    let mut k = K::new("stages");
    k.b.begin_body();
    repeat(&mut k, 3, |k| {
        let x = k.place("x", f32s(8, 64), AddrKind::Auto, 1, 3);
        let y = k.place("y", f32s(8, 64), AddrKind::Auto, 2, 3);
        fill(k, x);
        op(k, "TNEG", &[y, x]);
        let z = k.place("z", f32s(8, 64), AddrKind::Auto, 1, 3);
        op(k, "TNEG", &[z, y]);
    });
    let kernel = k.finish();
    let plan = plan(&kernel, a5()).unwrap();
    // Copies of different iterations are in flight at once: nothing is shared.
    assert_eq!(plan.memory(Loc::Vec).unwrap().peak, 2048 * (3 + 6 + 3));
    assert_eq!(plan.memory(Loc::Vec).unwrap().extent, 2048 * 12);
    let y = plan.offsets.iter().nth(1).unwrap().1;
    assert_eq!(y[1] - y[0], 2048);
}

#[test]
fn fixed_tiles_are_obstacles_while_they_live() {
    let mut k = K::new("fixed");
    k.b.begin_body();
    let early = k.place("early", f32s(8, 64), AddrKind::Auto, 1, 1);
    fill(&mut k, early);
    let sink = k.place("sink", f32s(8, 64), AddrKind::Auto, 1, 1);
    op(&mut k, "TRECIP", &[sink, early]);
    let fixed = k.place("fixed", f32s(8, 64), AddrKind::Fixed(vec![0]), 1, 1);
    fill(&mut k, fixed);
    let late = k.place("late", f32s(8, 64), AddrKind::Auto, 1, 1);
    op(&mut k, "TNEG", &[late, fixed]);
    let at = offsets(&k.finish(), a5());
    assert_eq!(at[3], [2048]);
    assert!(at[0] == [0] || at[1] == [0]);
}

#[test]
fn automatic_tiles_leave_the_bottom_to_run_time_addresses() {
    let mut k = K::new("mixed");
    let span = k.span();
    let base = k.b.scalar_param("base", Ty::Index, span);
    k.b.begin_body();
    let x = k.place("x", f32s(8, 64), AddrKind::Dynamic, 1, 1);
    k.b.emit(Op::Assign { tile: x, element: None, addr: base }, span);
    fill(&mut k, x);
    let y = k.place("y", f32s(8, 64), AddrKind::Auto, 1, 1);
    op(&mut k, "TNEG", &[y, x]);
    let kernel = k.finish();
    let (placed, _) = place(kernel, a5()).unwrap();
    let limit = 262144 - 2048;
    assert_eq!(placed.placement.memory(Loc::Vec).unwrap().dynamic_limit, Some(limit));
    let check = placed.kernel.checks.values().last().unwrap();
    assert_eq!(check.code.as_str(), "PA-1040");
    let prepared = compile(&placed.kernel, a5());
    let run = |base: u64| run_lowered(&prepared, &Args { scalars: vec![base], ..Args::default() });
    assert_eq!(run(limit - 2048), End::Done(vec![]));
    assert_eq!(run(limit - 2048 + 32), End::Failed("PA-1040".into()));
}

fn overflowing() -> Kernel {
    let mut k = K::new("big");
    k.b.begin_body();
    repeat(&mut k, 2, |k| {
        let x = k.place("x", f32s(128, 128), AddrKind::Auto, 1, 2);
        let y = k.place("y", f32s(128, 128), AddrKind::Auto, 1, 2);
        fill(k, x);
        op(k, "TRECIP", &[y, x]);
    });
    k.finish()
}

fn show(d: &ptoc_diagnostics::Diagnostic) -> String {
    let mut out = format!("{:?} {}: {} @{:?} {}\n", d.severity, d.code, d.message, d.span, d.label);
    d.labels.iter().for_each(|l| out += &format!("  @{:?} {}\n", l.span, l.message));
    d.notes.iter().for_each(|n| out += &format!("  note: {n}\n"));
    d.fixes.iter().for_each(|f| out += &format!("  help: {}\n", f.message));
    out
}

#[test]
fn overflow_reports() {
    let target = |name| Target::builtin(name).unwrap();
    let mut text = String::new();
    for name in ["a2a3", "kirin9030"] {
        for d in place(overflowing(), target(name)).unwrap_err() {
            text += &show(&d);
        }
    }
    // A tile that is too large by itself silences the sum; a memory that does not exist is said once a tile.
    let mut k = K::new("alone");
    k.b.begin_body();
    let x = k.place("x", f32s(256, 256), AddrKind::Auto, 1, 1);
    let scale = TileType { loc: Loc::ScaleLeft, dtype: DType::U8, rows: 16, cols: 32, order: Order::Nd, layout: None };
    k.place("s", scale, AddrKind::Auto, 1, 1);
    fill(&mut k, x);
    for d in place(k.finish(), target("a2a3")).unwrap_err() {
        text += &show(&d);
    }
    // Fragments: each half is free at one point only.
    let mut k = K::new("holes");
    k.b.begin_body();
    let fixed = k.place("middle", f32s(128, 64), AddrKind::Fixed(vec![0x18000]), 1, 1);
    fill(&mut k, fixed);
    let x = k.place("x", f32s(128, 240), AddrKind::Auto, 1, 1);
    fill(&mut k, x);
    op(&mut k, "TNEG", &[x, x]);
    op(&mut k, "TNEG", &[fixed, fixed]);
    for d in place(k.finish(), target("a2a3")).unwrap_err() {
        text += &show(&d);
    }
    insta::assert_snapshot!(text);
}

#[test]
fn the_text_of_a_placed_kernel_round_trips() {
    let mut k = K::new("text");
    k.b.begin_body();
    let x = k.place("x", f32s(8, 64), AddrKind::Auto, 2, 1);
    let f = k.place("f", f32s(8, 64), AddrKind::Fixed(vec![0x4000]), 1, 1);
    fill(&mut k, x);
    op(&mut k, "TNEG", &[f, x]);
    let (placed, _) = place(k.finish(), a5()).unwrap();
    let text = placed.print(Spans::Keep);
    let again = PlacedKernel::parse(&text, ptoc_diagnostics::FileId(0)).unwrap();
    assert_eq!(again.print(Spans::Keep), text);
    assert_eq!(again.placement, placed.placement);
    assert!(PlacedKernel::parse(&text.replace("live", "alive"), ptoc_diagnostics::FileId(0)).is_err());
    insta::assert_snapshot!(placed.print(Spans::Omit));
}

/// A random program over tiles of random sizes: fills, unary and binary operations, loops, branches.
fn random_kernel(script: &[(u8, u8, u8, u8)]) -> Kernel {
    fn build(k: &mut K, script: &mut std::slice::Iter<(u8, u8, u8, u8)>, live: &mut Vec<Tile>, depth: u32) {
        while let Some(&(what, a, b, size)) = script.next() {
            let pick = |live: &[Tile], n: u8| live.get(n as usize % live.len().max(1)).copied();
            let rows = [8, 16, 24][size as usize % 3];
            match what % 9 {
                0 | 1 => {
                    let stages = if depth > 0 && b % 4 == 0 { 2 } else { 1 };
                    let addr = if b % 7 == 6 { AddrKind::Fixed(vec![u64::from(a) * 512]) } else { AddrKind::Auto };
                    let stages = if addr == AddrKind::Auto { stages } else { 1 };
                    let t = k.place("t", f32s(rows, 64), addr, 1, stages);
                    fill(k, t);
                    live.push(t);
                }
                2..=4 => {
                    let Some(x) = pick(live, a) else { continue };
                    let ty = k.b.kernel().tiles[x].ty;
                    let t = k.place("u", ty, AddrKind::Auto, 1, 1);
                    op(k, ["TNEG", "TRECIP"][b as usize % 2], &[t, x]);
                    live.push(t);
                }
                5 => {
                    let (Some(x), Some(y)) = (pick(live, a), pick(live, b)) else { continue };
                    if k.b.kernel().tiles[x].ty == k.b.kernel().tiles[y].ty {
                        op(k, "TADD", &[x, x, y]);
                    }
                }
                6 if depth < 3 => {
                    let mut inner = live.clone();
                    repeat(k, if a % 2 == 0 { 2 } else { 1 }, |k| build(k, script, &mut inner, depth + 1));
                }
                7 if depth < 3 => {
                    let (zero, n) = (k.c(0), k.c(i64::from(a)));
                    let cond = k.b.compare(ptoc_isa::CmpOp::Lt, zero, n, at(1));
                    let mut inner = live.clone();
                    k.b.push_region();
                    build(k, script, &mut inner, depth + 1);
                    let then = k.b.pop_region();
                    k.b.emit(Op::If(Box::new(ptoc_ir::tile::If { cond, then, els: vec![] })), at(1));
                }
                8 if depth > 0 => return,
                _ => {}
            }
        }
    }
    let mut k = K::new("random");
    k.b.begin_body();
    build(&mut k, &mut script.iter(), &mut Vec::new(), 0);
    k.finish()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ptoc_tests_budget::cases(60, 200), ..ProptestConfig::default() })]
    #[test]
    fn plans_pass_the_checker(script in proptest::collection::vec(any::<(u8, u8, u8, u8)>(), 0..40)) {
        let kernel = random_kernel(&script);
        let roomy = a5().clone().with_capacity(Loc::Vec, 1 << 24);
        let plan = plan(&kernel, &roomy).unwrap();
        prop_assert_eq!(plan_check::check(&kernel, &plan, &roomy), vec![]);
    }

    /// The checker is not asleep: moving a tile onto another one that is live is found.
    #[test]
    fn broken_plans_are_found(
        script in proptest::collection::vec(any::<(u8, u8, u8, u8)>(), 10..40), n in any::<usize>(),
    ) {
        let kernel = random_kernel(&script);
        let roomy = a5().clone().with_capacity(Loc::Vec, 1 << 24);
        let mut plan = plan(&kernel, &roomy).unwrap();
        let auto: Vec<Tile> = kernel.tiles.keys().filter(|t| kernel.tiles[*t].addr == AddrKind::Auto).collect();
        prop_assume!(auto.len() > 1);
        let t = auto[n % auto.len()];
        plan.offsets[t] = vec![(1 << 24) - 32];
        prop_assert!(!plan_check::check(&kernel, &plan, &roomy).is_empty());
        plan.offsets[t] = vec![8];
        prop_assert!(!plan_check::check(&kernel, &plan, &roomy).is_empty());
    }
}

/// What an instruction writes besides its result is in use while it works.
#[test]
fn scratch_operands_share_nothing_with_the_operands() {
    let mut k = K::new("scratch");
    k.b.begin_body();
    let t: Vec<Tile> = (0..3).map(|n| k.place(&format!("t{n}"), f32s(8, 64), AddrKind::Auto, 1, 1)).collect();
    fill(&mut k, t[0]);
    let refs: Vec<_> = t.iter().map(|t| k.b.whole(*t)).collect();
    k.tiles("TEXP", &[refs[1], refs[0]]);
    let mut kernel = k.finish();
    let last = kernel.body.iter_mut().rev().find_map(|s| match &mut s.op {
        Op::Inst(inst) => Some(inst),
        _ => None,
    });
    last.unwrap().scratch = vec![refs[2]];
    let good = plan(&kernel, a5()).unwrap();
    assert_eq!(plan_check::check(&kernel, &good, a5()), []);
    for other in [0, 1] {
        let mut bad = good.clone();
        bad.offsets[t[2]] = bad.offsets[t[other]].clone();
        assert!(!plan_check::check(&kernel, &bad, a5()).is_empty(), "on t{other}");
    }
}

/// Every address of a plan is judged, whoever chose it.
#[test]
fn fixed_tiles_are_judged_too() {
    for (at, good) in
        [(0, true), (0x3f800, true), (0x3f820, false), (0x40000, false), (u64::MAX - 31, false), (8, false)]
    {
        let mut k = K::new("fixed");
        k.b.begin_body();
        let t = k.place("t", f32s(8, 64), AddrKind::Fixed(vec![at]), 1, 1);
        fill(&mut k, t);
        let kernel = k.finish();
        let target = a5().clone().with_capacity(Loc::Vec, 0x40000);
        match plan(&kernel, &target) {
            Ok(p) => assert_eq!(plan_check::check(&kernel, &p, &target).is_empty(), good, "{at:#x}"),
            Err(_) => assert!(!good, "{at:#x}"),
        }
    }
}

/// A tile with copies shares nothing with what its pipeline touches, staged or not, before it or after.
#[test]
fn copies_are_apart_from_all_that_their_pipeline_touches() {
    let mut k = K::new("apart");
    k.b.begin_body();
    let once = k.place("once", f32s(8, 64), AddrKind::Auto, 1, 1);
    fill(&mut k, once);
    let mut staged = None;
    let mut inner = None;
    repeat(&mut k, 3, |k| {
        let s = k.place("staged", f32s(8, 64), AddrKind::Auto, 1, 3);
        let i = k.place("inner", f32s(8, 64), AddrKind::Auto, 1, 1);
        fill(k, s);
        op(k, "TEXP", &[i, s]);
        (staged, inner) = (Some(s), Some(i));
    });
    let kernel = k.finish();
    let (staged, inner) = (staged.unwrap(), inner.unwrap());
    let good = plan(&kernel, a5()).unwrap();
    assert_eq!(plan_check::check(&kernel, &good, a5()), []);
    for copy in 0..3 {
        let mut bad = good.clone();
        bad.offsets[inner] = vec![bad.offsets[staged][0] + copy * 2048];
        assert!(!plan_check::check(&kernel, &bad, a5()).is_empty(), "on copy {copy}");
    }
    // What is over before the pipeline begins may lie there.
    let mut shared = good.clone();
    shared.offsets[once] = shared.offsets[staged].clone();
    assert_eq!(plan_check::check(&kernel, &shared, a5()), []);
}

/// Run-time addresses end where the tiles of the planner begin.
#[test]
fn tiles_in_reach_of_run_time_addresses_are_found() {
    let mut k = K::new("reach");
    k.b.begin_body();
    let t = k.place("t", f32s(8, 64), AddrKind::Auto, 1, 1);
    let d = k.place("d", f32s(8, 64), AddrKind::Dynamic, 1, 1);
    let (addr, span) = (k.c(0), k.span());
    k.b.emit(Op::Assign { tile: d, element: None, addr }, span);
    fill(&mut k, t);
    fill(&mut k, d);
    op(&mut k, "TEXP", &[t, t]);
    let kernel = k.finish();
    let good = plan(&kernel, a5()).unwrap();
    assert_eq!(plan_check::check(&kernel, &good, a5()), []);
    let mut bad = good.clone();
    bad.offsets[t] = vec![0];
    assert!(matches!(plan_check::check(&kernel, &bad, a5())[..], [plan_check::PlanFault::WithinReach(..)]));
}
