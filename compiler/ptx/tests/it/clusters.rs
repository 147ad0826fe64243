//! Clusters of two CTAs: each brings half of every round to both, by multicast; a round's place is free when the
//! warps of both have read it.

use crate::deletions::deletions;
use ptoc_ptx::sim::{Global, SimFault, SimLaunch, Swizzle, TensorMap, Why, run};
use ptoc_ptx::{
    Address, Arith, Builder, Class, Cmp, Op, PtxKernel, Sm90, Space, Special, Src, Symbol, Type, VReg, parse, print,
    verify,
};

const ROUNDS: u64 = 4;
const FULL: i32 = 256;
const EMPTY: i32 = 264;

fn meets(b: &mut Builder) {
    b.sm90(Sm90::BarWarpSync, &[], &[Src::Imm(0xffff_ffff)]);
    b.sm90(Sm90::ClusterArrive, &[], &[]);
    b.sm90(Sm90::ClusterWait, &[], &[]);
}

/// 96 threads: a warp that brings words, two that add them up.
fn kernel() -> PtxKernel {
    let mut b = Builder::new("shared", 96);
    b.symbol(Symbol { name: "smem".into(), space: Space::Shared, align: 1024, size: Some(512) });
    let map = b.tensor_map("map");
    let out = b.param("out", Type::U64);
    let out = b.ld(Space::Param, Type::U64, Address::param(out));
    let thread = b.mov(Type::U32, Src::Special(Special::Tid));
    let rank = b.mov(Type::U32, Src::Special(Special::ClusterCtarank));
    let cta = b.mov(Type::U32, Src::Special(Special::Ctaid));
    let shared = b.mov(Type::U32, Src::Symbol(0));
    let at = |disp: i32| Address { disp, ..Address::at(shared) };
    let (ready, adds, over) = (b.label(), b.label(), b.label());
    let first = b.setp(Cmp::Eq, Type::U32, thread, Src::Imm(0));
    b.bra_if(first, false, ready);
    b.sm90(Sm90::MbarrierInit, &[], &[Src::Addr(at(FULL)), Src::Imm(1)]);
    b.sm90(Sm90::MbarrierInit, &[], &[Src::Addr(at(EMPTY)), Src::Imm(4)]);
    b.sm90(Sm90::FenceMbarrierInit, &[], &[]);
    b.place(ready);
    meets(&mut b);
    let round = b.mov(Type::U32, Src::Imm(0));
    let sum = b.mov(Type::U32, Src::Imm(0));
    let other = b.setp(Cmp::Ge, Type::U32, thread, Src::Imm(32));
    b.bra_if(other, true, adds);
    b.bra_if(first, false, over);
    let again = b.label();
    b.place(again);
    let turn = b.arith(Arith::Add, Type::U32, &[round.into(), Src::Imm(1)]);
    b.mbarrier_wait(at(EMPTY), turn);
    b.sm90(Sm90::MbarrierArriveExpectTx, &[], &[Src::Addr(at(FULL)), Src::Imm(256)]);
    let to = b.arith(Arith::MadLo, Type::U32, &[rank.into(), Src::Imm(128), shared.into()]);
    let part = b.arith(Arith::MadLo, Type::U32, &[round.into(), Src::Imm(2), rank.into()]);
    let from = b.arith(Arith::MulLo, Type::U32, &[part.into(), Src::Imm(32)]);
    let both = b.mov(Type::B16, Src::Imm(3));
    let srcs = [Src::Addr(Address::at(to)), map.into(), from.into(), Src::Addr(at(FULL)), both.into()];
    b.sm90(Sm90::TensorMulticast(1), &[], &srcs);
    next(&mut b, round, again);
    b.bra(over);
    b.place(adds);
    add(&mut b, shared, thread, round, sum);
    let words = b.arith(Arith::MulLo, Type::U32, &[cta.into(), Src::Imm(64)]);
    let word = b.arith(Arith::Add, Type::U32, &[words.into(), thread.into()]);
    let to = b.arith(Arith::MadWide, Type::U32, &[word.into(), Src::Imm(4), out.into()]);
    b.st(Space::Global, Type::B32, Address { disp: -128, ..Address::at(to) }, sum);
    b.place(over);
    meets(&mut b);
    b.push(Op::Ret, &[], &[]);
    PtxKernel { cluster: Some(2), resident: Some(1), ..b.finish() }
}

fn next(b: &mut Builder, round: VReg, again: ptoc_ptx::Label) {
    b.push(Op::Arith(Arith::Add, Type::U32), &[round], &[round.into(), Src::Imm(1)]);
    let more = b.setp(Cmp::Lt, Type::U32, round, Src::Imm(ROUNDS));
    b.bra_if(more, true, again);
}

/// Each thread adds its word of every round.
fn add(b: &mut Builder, shared: VReg, thread: VReg, round: VReg, sum: VReg) {
    let at = |disp: i32| Address { disp, ..Address::at(shared) };
    let again = b.label();
    b.place(again);
    b.mbarrier_wait(at(FULL), round);
    let word = b.arith(Arith::MadLo, Type::U32, &[thread.into(), Src::Imm(4), shared.into()]);
    let word = b.ld(Space::Shared, Type::B32, Address { disp: -128, ..Address::at(word) });
    b.push(Op::Arith(Arith::Add, Type::U32), &[sum], &[sum.into(), word.into()]);
    b.sm90(Sm90::BarWarpSync, &[], &[Src::Imm(0xffff_ffff)]);
    let leads = b.reg(Class::Pred);
    b.sm90(Sm90::ElectSync, &[leads], &[Src::Imm(0xffff_ffff)]);
    let empty = b.arith(Arith::Add, Type::U32, &[shared.into(), Src::Imm(EMPTY as u64)]);
    for rank in 0..2 {
        let there = b.reg(Class::B32);
        b.sm90(Sm90::Mapa, &[there], &[empty.into(), Src::Imm(rank)]);
        b.guard = Some((leads, true));
        b.sm90(Sm90::MbarrierArriveCluster, &[], &[Src::Addr(Address::at(there)), Src::Imm(1)]);
        b.guard = None;
    }
    next(b, round, again);
}

fn sums(kernel: &PtxKernel, seed: u64) -> Result<Vec<u32>, SimFault> {
    let mut global = Global::default();
    let words = 64 * ROUNDS as u32;
    let base = global.add((0..words).flat_map(|n| (n * n).to_le_bytes()).collect());
    let (dims, strides, tile, swizzle) = (vec![words.into()], vec![], vec![32], Swizzle::None);
    let map = global.add_map(TensorMap { base, dtype: Type::U32, dims, strides, tile, swizzle, tf32: false });
    let params = &[map, global.add(vec![0; 4 * 64 * 4])];
    let (ctas, fuel) = (4, 1 << 20);
    let launch = SimLaunch { kernel, ctas, shared: 0, params, seed, fuel, races: true, aligned: true, keep_nan: false };
    run(&launch, &mut global)?;
    Ok(global.buffers[1].chunks(4).map(|b| u32::from_le_bytes(b.try_into().expect("four bytes"))).collect())
}

fn check(kernel: &PtxKernel, seed: u64) -> Result<(), String> {
    let got = sums(kernel, seed).map_err(|fault| fault.to_string())?;
    let want = |n: usize| (0..ROUNDS as u32).map(|round| (64 * round + n as u32 % 64).pow(2)).sum::<u32>();
    let differs = (0..got.len()).find(|n| got[*n] != want(*n));
    differs.map_or(Ok(()), |n| Err(format!("word {n} is {}, not {}", got[n], want(n))))
}

#[test]
fn halves_come_from_both() {
    let kernel = kernel();
    verify(&kernel).unwrap_or_else(|e| panic!("{e}"));
    let text = print(&kernel);
    let again = parse(&text).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(print(&again), text);
    assert_eq!(again.cluster, Some(2));
    for seed in 0..20 {
        check(&again, seed).unwrap_or_else(|e| panic!("{seed}: {e}"));
    }
    if let Some(folder) = std::env::var_os("PTX_DUMP") {
        std::fs::write(std::path::Path::new(&folder).join("hopper_cluster.ptx"), text).expect("it is written");
    }
}

#[test]
fn nothing_can_be_left_out_of_a_cluster() {
    let all = deletions(&kernel());
    let mut kept = Vec::new();
    for (name, without) in &all {
        match (0..12).find_map(|seed| check(without, seed).err()) {
            Some(how) => println!("{name}: {how}"),
            None => kept.push(name),
        }
    }
    assert!(all.len() >= 13, "{}", all.len());
    assert!(kept.is_empty(), "{kept:?}");
}

#[test]
fn clusters_are_whole() {
    let (kernel, params) = (&kernel(), &[0, 0]);
    let launch =
        SimLaunch { kernel, ctas: 3, shared: 0, params, seed: 0, fuel: 1, races: true, aligned: true, keep_nan: false };
    let mut global = Global::default();
    let tile = vec![32];
    let (dims, strides, swizzle) = (vec![64], vec![], Swizzle::None);
    global.add_map(TensorMap { base: 1 << 40, dtype: Type::U32, dims, strides, tile, swizzle, tf32: false });
    let fault = run(&launch, &mut global).expect_err("half a cluster");
    assert_eq!(fault.why, Why::Arguments("3 CTAs in clusters of 2".into()));
    let large = PtxKernel { cluster: Some(17), ..kernel.clone() };
    assert!(verify(&large).expect_err("too many").to_string().contains("1 to 16 CTAs"));
}
