//! Two products in a row, as attention has them: S = Q K^T, weights P = max(S / 8, 0) of f16 in registers, O += P V.
//! The scores of the next keys are multiplied while the weights before meet their values. O goes by a plain bulk store.

use crate::deletions::deletions;
use crate::gemm::{Code, map};
use crate::model::{dot, halves, numbers};
use half::f16;
use ptoc_ptx::sim::{Global, SimFault, SimLaunch, run};
use ptoc_ptx::{
    Address, Arith, Builder, Class, Cmp, MmaType, Op, PtxKernel, Sm90, Space, Special, Src, Symbol, Type, VReg, Wgmma,
    parse, print, verify,
};

/// Bytes of 64 rows of 64 halves.
const PART: u32 = 64 * 128;
const STAGES: u32 = 2;
/// Queries, of which O takes the place; rings of keys and of values; barriers.
const KEYS: u32 = PART;
const VALUES: u32 = KEYS + STAGES * PART;
const BARRIERS: u32 = VALUES + STAGES * PART;
const SHARED: u32 = BARRIERS + 8 + 32 * STAGES;

/// One eighth, of f32.
const EIGHTH: u64 = 0x3e00_0000;

/// A ring: its tiles, and its barriers when they are full; when they are free is behind both.
#[derive(Clone, Copy)]
struct Ring {
    tiles: u32,
    full: u32,
}

const K: Ring = Ring { tiles: KEYS, full: BARRIERS + 8 };
const V: Ring = Ring { tiles: VALUES, full: BARRIERS + 8 + 8 * STAGES };

/// Registers of a thread that multiplies.
struct Consumer {
    base: VReg,
    lane: VReg,
    yes: VReg,
    no: VReg,
    scores: Vec<VReg>,
    sums: Vec<VReg>,
    weights: Vec<VReg>,
    /// Of both rings the stage and the parity.
    keys: (VReg, VReg),
    values: (VReg, VReg),
}

fn barrier(c: &mut Code, base: VReg, ring: Ring, stage: VReg) -> VReg {
    let at = c.at(stage, 8, base);
    c.plus(at, ring.full)
}

fn tile(c: &mut Code, base: VReg, ring: Ring, stage: VReg) -> VReg {
    let at = c.at(stage, PART, base);
    c.plus(at, ring.tiles)
}

fn kernel() -> PtxKernel {
    let mut c = Code { b: Builder::new("attention", 256) };
    c.b.symbol(Symbol { name: "smem".into(), space: Space::Shared, align: 1024, size: None });
    let maps = ["q", "k", "v"].map(|name| c.b.tensor_map(name));
    let out = c.b.param("o", Type::U64);
    let out = c.b.ld(Space::Param, Type::U64, Address::param(out));
    let steps = c.b.param("steps", Type::U32);
    let steps = c.b.ld(Space::Param, Type::U32, Address::param(steps));
    let thread = c.b.mov(Type::U32, Src::Special(Special::Tid));
    let base = c.b.mov(Type::U32, Src::Symbol(0));
    let block = c.b.mov(Type::U32, Src::Special(Special::Ctaid));
    let rows = c.op(Arith::MulLo, Type::U32, &[block.into(), Src::Imm(64)]);
    let (ready, consumer, done) = (c.b.label(), c.b.label(), c.b.label());
    let first = c.b.setp(Cmp::Eq, Type::U32, thread, Src::Imm(0));
    c.b.bra_if(first, false, ready);
    for n in 0..1 + 4 * STAGES {
        let at = c.plus(base, BARRIERS + 8 * n);
        let count = if n <= 2 * STAGES { 1 } else { 4 };
        c.b.sm90(Sm90::MbarrierInit, &[], &[Src::Addr(Address::at(at)), Src::Imm(count)]);
    }
    // As CUDA's guide has it, instead of a fence of barriers alone.
    c.b.sm90(Sm90::FenceProxyAsync(Some(Space::Shared)), &[], &[]);
    c.b.place(ready);
    c.b.push(Op::Bar(0), &[], &[]);
    let multiplies = c.b.setp(Cmp::Ge, Type::U32, thread, Src::Imm(128));
    c.b.bra_if(multiplies, true, consumer);
    c.b.bra_if(first, false, done);
    producer(&mut c, maps, base, rows, steps);
    c.b.bra(done);
    c.b.place(consumer);
    multiply(&mut c, thread, base, steps, rows, out);
    c.b.place(done);
    c.b.push(Op::Ret, &[], &[]);
    c.b.finish()
}

fn producer(c: &mut Code, maps: [VReg; 3], base: VReg, rows: VReg, steps: VReg) {
    let zero = c.word(0);
    let load = |c: &mut Code, to: VReg, map: VReg, row: VReg, full: VReg| {
        let full = Src::Addr(Address::at(full));
        c.b.sm90(Sm90::MbarrierArriveExpectTx, &[], &[full, Src::Imm(PART.into())]);
        let srcs = [Src::Addr(Address::at(to)), map.into(), zero.into(), row.into(), full];
        c.b.sm90(Sm90::TensorLoad(2), &[], &srcs);
    };
    let full = c.plus(base, BARRIERS);
    load(c, base, maps[0], rows, full);
    let (stage, phase, j) = (c.word(0), c.word(0), c.word(0));
    let step = c.b.label();
    c.b.place(step);
    let row = c.op(Arith::MulLo, Type::U32, &[j.into(), Src::Imm(64)]);
    for (ring, map) in [(K, maps[1]), (V, maps[2])] {
        let full = barrier(c, base, ring, stage);
        let parity = c.op(Arith::Xor, Type::B32, &[phase.into(), Src::Imm(1)]);
        c.b.mbarrier_wait(Address { disp: 16 * STAGES as i32, ..Address::at(full) }, parity);
        let to = tile(c, base, ring, stage);
        load(c, to, map, row, full);
    }
    c.advance(stage, phase, STAGES);
    c.update(j, Arith::Add, Type::U32, j, Src::Imm(1));
    let more = c.b.setp(Cmp::Lt, Type::U32, j, steps);
    c.b.bra_if(more, true, step);
}

impl Consumer {
    /// S = Q K^T of the next keys.
    fn scores(&self, c: &mut Code) {
        let full = barrier(c, self.base, K, self.keys.0);
        c.b.mbarrier_wait(Address::at(full), self.keys.1);
        let keys = tile(c, self.base, K, self.keys.0);
        c.b.sm90(Sm90::WgmmaFence, &[], &[]);
        for part in 0..4 {
            let left = c.plus(self.base, 32 * part);
            let left = c.descriptor(left, 16);
            let right = c.plus(keys, 32 * part);
            let right = c.descriptor(right, 16);
            let adds = if part == 0 { self.no } else { self.yes };
            let srcs = [left.into(), right.into(), adds.into()];
            c.b.sm90(Sm90::Wgmma(Wgmma::new(64, MmaType::F16)), &self.scores, &srcs);
        }
        c.b.sm90(Sm90::WgmmaCommit, &[], &[]);
    }

    /// O += P V of the weights that are there.
    fn values(&self, c: &mut Code) {
        let full = barrier(c, self.base, V, self.values.0);
        c.b.mbarrier_wait(Address::at(full), self.values.1);
        let values = tile(c, self.base, V, self.values.0);
        c.b.sm90(Sm90::WgmmaFence, &[], &[]);
        for part in 0..4usize {
            let right = c.plus(values, 2048 * part as u32);
            let right = c.descriptor(right, 64 * 128);
            let product = Wgmma { a_in_regs: true, trans_b: true, ..Wgmma::new(64, MmaType::F16) };
            let mut srcs: Vec<Src> = self.weights[4 * part..][..4].iter().map(|w| Src::Reg(*w)).collect();
            srcs.extend([Src::Reg(right), Src::Reg(self.yes)]);
            c.b.sm90(Sm90::Wgmma(product), &self.sums, &srcs);
        }
        c.b.sm90(Sm90::WgmmaCommit, &[], &[]);
    }

    /// Scores to weights, in their places.
    fn weigh(&self, c: &mut Code) {
        for s in &self.scores {
            c.update(*s, Arith::MulF, Type::F32, *s, Src::Imm(EIGHTH));
            c.update(*s, Arith::MaxF, Type::F32, *s, Src::Imm(0));
        }
    }

    /// The fragment of sums of f32 is the fragment of a left operand of f16.
    fn pack(&self, c: &mut Code) {
        for (n, word) in self.weights.iter().enumerate() {
            let (low, high) = (self.scores[2 * n], self.scores[2 * n + 1]);
            c.b.push(Op::Cvt2(Type::F16), &[*word], &[high.into(), low.into()]);
        }
    }

    fn release(&self, c: &mut Code, ring: Ring, (stage, phase): (VReg, VReg)) {
        let full = barrier(c, self.base, ring, stage);
        let free = c.plus(full, 16 * STAGES);
        c.release(self.lane, free);
        c.advance(stage, phase, STAGES);
    }
}

fn multiply(c: &mut Code, thread: VReg, base: VReg, steps: VReg, rows: VReg, out: VReg) {
    let lane = c.op(Arith::And, Type::B32, &[thread.into(), Src::Imm(31)]);
    let (yes, no) = (c.b.setp(Cmp::Eq, Type::U32, lane, lane), c.b.setp(Cmp::Ne, Type::U32, lane, lane));
    let scores = (0..32).map(|_| c.b.reg(Class::F32)).collect();
    let sums: Vec<VReg> = (0..32).map(|_| c.b.mov(Type::F32, Src::Imm(0))).collect();
    let weights = (0..16).map(|_| c.b.reg(Class::B32)).collect();
    let (keys, values) = ((c.word(0), c.word(0)), (c.word(0), c.word(0)));
    let one = Consumer { base, lane, yes, no, scores, sums, weights, keys, values };
    let queries = c.plus(base, BARRIERS);
    c.b.mbarrier_wait(Address::at(queries), Src::Imm(0));
    one.scores(c);
    c.b.sm90(Sm90::WgmmaWait(0), &[], &[]);
    one.release(c, K, one.keys);
    one.weigh(c);
    one.pack(c);
    let j = c.word(1);
    let (step, last) = (c.b.label(), c.b.label());
    let only = c.b.setp(Cmp::Ge, Type::U32, j, steps);
    c.b.bra_if(only, true, last);
    c.b.place(step);
    one.scores(c);
    one.values(c);
    c.b.sm90(Sm90::WgmmaWait(1), &[], &[]);
    one.release(c, K, one.keys);
    one.weigh(c);
    c.b.sm90(Sm90::WgmmaWait(0), &[], &[]);
    one.release(c, V, one.values);
    one.pack(c);
    c.update(j, Arith::Add, Type::U32, j, Src::Imm(1));
    let more = c.b.setp(Cmp::Lt, Type::U32, j, steps);
    c.b.bra_if(more, true, step);
    c.b.place(last);
    one.values(c);
    c.b.sm90(Sm90::WgmmaWait(0), &[], &[]);
    store(c, &one, thread, rows, out);
}

/// O in place of Q, of which each warp has read its own rows; each warp stores them.
fn store(c: &mut Code, one: &Consumer, thread: VReg, rows: VReg, out: VReg) {
    let warp = c.op(Arith::Shr, Type::U32, &[thread.into(), Src::Imm(5)]);
    let warp = c.op(Arith::And, Type::B32, &[warp.into(), Src::Imm(3)]);
    let mine = c.at(warp, 16 * 128, one.base);
    let row = c.op(Arith::Shr, Type::U32, &[one.lane.into(), Src::Imm(2)]);
    let column = c.op(Arith::And, Type::B32, &[one.lane.into(), Src::Imm(3)]);
    let at = c.at(row, 128, mine);
    let at = c.at(column, 4, at);
    for (n, pair) in one.sums.chunks(2).enumerate() {
        let word = c.b.reg(Class::B32);
        c.b.push(Op::Cvt2(Type::F16), &[word], &[pair[1].into(), pair[0].into()]);
        let disp = (n / 2 * 16 + n % 2 * 1024) as i32;
        c.b.st(Space::Shared, Type::B32, Address { disp, ..Address::at(at) }, word);
    }
    c.b.sm90(Sm90::FenceProxyAsync(Some(Space::Shared)), &[], &[]);
    c.b.sm90(Sm90::BarWarpSync, &[], &[Src::Imm(0xffff_ffff)]);
    let row = c.at(warp, 16, rows);
    let to = c.b.arith(Arith::MadWide, Type::U32, &[row.into(), Src::Imm(128), out.into()]);
    let leads = c.b.reg(Class::Pred);
    c.b.sm90(Sm90::ElectSync, &[leads], &[Src::Imm(0xffff_ffff)]);
    c.b.guard = Some((leads, true));
    let srcs = [Src::Addr(Address::at(to)), Src::Addr(Address::at(mine)), Src::Imm(16 * 128)];
    c.b.sm90(Sm90::BulkStore, &[], &srcs);
    c.b.sm90(Sm90::BulkCommit, &[], &[]);
    c.b.sm90(Sm90::BulkWait { pending: 0, read: true }, &[], &[]);
    c.b.guard = None;
}

const QUERIES: usize = 128;
const COUNT: usize = 320;

fn attend(kernel: &PtxKernel, seed: u64) -> Result<Vec<f16>, SimFault> {
    let (q, k, v) = (numbers(3, QUERIES * 64), numbers(4, COUNT * 64), numbers(5, COUNT * 64));
    let mut global = Global::default();
    let maps = [&q, &k, &v].map(|array| map(&mut global, array, 64, [64, 64]));
    let out = global.add(vec![0xff; QUERIES * 128]);
    let params = [maps[0], maps[1], maps[2], out, COUNT as u64 / 64];
    let (ctas, shared, fuel) = (QUERIES as u32 / 64, SHARED, 1 << 22);
    let launch =
        SimLaunch { kernel, ctas, shared, params: &params, seed, fuel, races: true, aligned: true, keep_nan: false };
    run(&launch, &mut global)?;
    Ok(halves(&global.buffers[3]))
}

/// By the model of the sums, row by row.
fn expected() -> Vec<f16> {
    let (q, k, v) = (numbers(3, QUERIES * 64), numbers(4, COUNT * 64), numbers(5, COUNT * 64));
    let turned: Vec<f16> = (0..COUNT * 64).map(|i| v[i % COUNT * 64 + i / COUNT]).collect();
    let row = |i: usize| {
        let weight = |key: &[f16]| f16::from_f32((dot(&q[64 * i..][..64], key, 0.0) * 0.125).max(0.0));
        let weights: Vec<f16> = k.chunks(64).map(weight).collect();
        turned.chunks(COUNT).map(|column| f16::from_f32(dot(&weights, column, 0.0))).collect::<Vec<_>>()
    };
    (0..QUERIES).flat_map(row).collect()
}

fn check(kernel: &PtxKernel, want: &[f16], seed: u64) -> Result<(), String> {
    let got = attend(kernel, seed).map_err(|fault| fault.to_string())?;
    let differs = got.iter().zip(want).position(|(a, b)| a.to_bits() != b.to_bits());
    differs.map_or(Ok(()), |n| Err(format!("element {n} is {:?}, not {:?}", got[n], want[n])))
}

#[test]
fn two_products_have_the_bits_of_the_model() {
    let (kernel, want) = (kernel(), expected());
    verify(&kernel).unwrap_or_else(|e| panic!("{e}"));
    let text = print(&kernel);
    let again = parse(&text).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(print(&again), text);
    for seed in 0..8 {
        check(&again, &want, seed).unwrap_or_else(|e| panic!("{seed}: {e}"));
    }
    if let Some(folder) = std::env::var_os("PTX_DUMP") {
        std::fs::write(std::path::Path::new(&folder).join("hopper_attention.ptx"), text).expect("it is written");
    }
}

/// What may be left out, and why.
const SURPLUS: [(&str, &str); 1] =
    [("wgmma.fence.sync.aligned #3", "nothing accesses weights or sums between the fence of the scores and this one")];

#[test]
fn nothing_else_can_be_left_out() {
    let (all, want) = (deletions(&kernel()), expected());
    let mut kept = Vec::new();
    for (name, without) in &all {
        match (0..6).find_map(|seed| check(without, &want, seed).err()) {
            Some(how) => println!("{name}: {how}"),
            None => kept.push(name.as_str()),
        }
    }
    assert!(all.len() >= 40, "{}", all.len());
    assert_eq!(kept, SURPLUS.map(|(name, _)| name));
}
