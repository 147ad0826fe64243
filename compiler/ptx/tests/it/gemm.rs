//! A product as it is written for Hopper: a producer warp with bulk tensor copies, a ring of `mbarrier`s, warp-groups
//! with `wgmma`, and bulk stores of staged tiles. C = A B of f16, A [M, K], B [N, K] or [K, N].

use crate::deletions::deletions;
use crate::model::{bytes, dot, halves, numbers};
use half::f16;
use ptoc_ptx::sim::{Global, Refusal, SimFault, SimLaunch, Swizzle, TensorMap, Why, run};
use ptoc_ptx::{
    Address, Arith, Builder, Class, Cmp, MmaType, Op, PtxKernel, Sm90, Space, Special, Src, Symbol, Type, VReg, Wgmma,
    parse, print, verify,
};

/// Columns of a tile, and depth of a step.
const BN: u32 = 64;
const BK: u32 = 64;
/// Bytes of 64 rows of 64 halves.
const PART: u32 = 64 * 128;

/// What is built.
#[derive(Clone, Copy, Debug)]
pub struct Gemm {
    stages: u32,
    /// Warp-groups that multiply, 64 rows each.
    consumers: u32,
    /// B is [K, N], read MN-major.
    transposed: bool,
}

/// Shorthands for code.
pub struct Code {
    pub b: Builder,
}

impl Code {
    pub fn op(&mut self, arith: Arith, ty: Type, srcs: &[Src]) -> VReg {
        self.b.arith(arith, ty, srcs)
    }

    /// `reg = a op b`
    pub fn update(&mut self, reg: VReg, arith: Arith, ty: Type, a: impl Into<Src>, b: impl Into<Src>) {
        self.b.push(Op::Arith(arith, ty), &[reg], &[a.into(), b.into()]);
    }

    /// `a * k + c`
    pub fn at(&mut self, a: VReg, k: u32, c: VReg) -> VReg {
        self.op(Arith::MadLo, Type::U32, &[a.into(), Src::Imm(k.into()), c.into()])
    }

    pub fn plus(&mut self, a: VReg, k: u32) -> VReg {
        self.op(Arith::Add, Type::U32, &[a.into(), Src::Imm(k.into())])
    }

    pub fn word(&mut self, n: u32) -> VReg {
        self.b.mov(Type::U32, Src::Imm(n.into()))
    }

    /// The next stage of a ring, and the parity of its phase.
    pub fn advance(&mut self, stage: VReg, phase: VReg, stages: u32) {
        let same = self.b.label();
        self.update(stage, Arith::Add, Type::U32, stage, Src::Imm(1));
        let inside = self.b.setp(Cmp::Lt, Type::U32, stage, Src::Imm(stages.into()));
        self.b.bra_if(inside, true, same);
        self.b.set(stage, Type::U32, Src::Imm(0));
        self.update(phase, Arith::Xor, Type::B32, phase, Src::Imm(1));
        self.b.place(same);
    }

    /// A descriptor of a matrix with rows of 128 bytes, swizzled; `leading` bytes between chunks of 64 columns.
    pub fn descriptor(&mut self, at: VReg, leading: u32) -> VReg {
        let low = self.op(Arith::Shr, Type::U32, &[at.into(), Src::Imm(4)]);
        let low = self.op(Arith::Or, Type::B32, &[low.into(), Src::Imm(u64::from(leading >> 4) << 16)]);
        let high = self.word(1 << 30 | 1024 >> 4);
        self.b.pair(low, high)
    }

    /// One lane of each warp says that a stage is free.
    pub fn release(&mut self, lane: VReg, barrier: VReg) {
        let first = self.b.setp(Cmp::Eq, Type::U32, lane, Src::Imm(0));
        self.b.guard = Some((first, true));
        self.b.sm90(Sm90::MbarrierArrive, &[], &[Src::Addr(Address::at(barrier)), Src::Imm(1)]);
        self.b.guard = None;
    }

    pub fn named(&mut self, barrier: VReg) {
        self.b.sm90(Sm90::BarSync, &[], &[barrier.into(), Src::Imm(128)]);
    }
}

/// Registers of the kernel.
struct Regs {
    maps: [VReg; 3],
    base: VReg,
    thread: VReg,
    lane: VReg,
    group: VReg,
    tile: VReg,
    tiles: VReg,
    wide: VReg,
    steps: VReg,
    stage: VReg,
    phase: VReg,
}

impl Gemm {
    fn stage_a(self) -> u32 {
        self.consumers * PART
    }

    fn staging(self) -> u32 {
        self.stages * (self.stage_a() + PART)
    }

    fn barriers(self) -> u32 {
        self.staging() + self.consumers * PART
    }

    pub fn shared(self) -> u32 {
        self.barriers() + 16 * self.stages
    }

    pub fn kernel(self) -> PtxKernel {
        let mut c = Code { b: Builder::new("gemm", 128 * (1 + self.consumers)) };
        c.b.symbol(Symbol { name: "smem".into(), space: Space::Shared, align: 1024, size: None });
        let maps = ["a", "b", "c"].map(|name| c.b.tensor_map(name));
        let scalars = ["tiles", "wide", "steps"].map(|name| {
            let n = c.b.param(name, Type::U32);
            c.b.ld(Space::Param, Type::U32, Address::param(n))
        });
        let [tiles, wide, steps] = scalars;
        let thread = c.b.mov(Type::U32, Src::Special(Special::Tid));
        let lane = c.op(Arith::And, Type::B32, &[thread.into(), Src::Imm(31)]);
        let group = c.op(Arith::Shr, Type::U32, &[thread.into(), Src::Imm(7)]);
        let base = c.b.mov(Type::U32, Src::Symbol(0));
        let tile = c.b.mov(Type::U32, Src::Special(Special::Ctaid));
        let (stage, phase) = (c.word(0), c.word(0));
        let r = Regs { maps, base, thread, lane, group, tile, tiles, wide, steps, stage, phase };
        let (ready, consumer, done) = (c.b.label(), c.b.label(), c.b.label());
        let first = c.b.setp(Cmp::Eq, Type::U32, thread, Src::Imm(0));
        c.b.bra_if(first, false, ready);
        for stage in 0..self.stages {
            let full = c.plus(base, self.barriers() + 8 * stage);
            c.b.sm90(Sm90::MbarrierInit, &[], &[Src::Addr(Address::at(full)), Src::Imm(1)]);
            let empty = Address { disp: 8 * self.stages as i32, ..Address::at(full) };
            c.b.sm90(Sm90::MbarrierInit, &[], &[Src::Addr(empty), Src::Imm(u64::from(4 * self.consumers))]);
        }
        c.b.sm90(Sm90::FenceMbarrierInit, &[], &[]);
        c.b.place(ready);
        c.b.push(Op::Bar(0), &[], &[]);
        let is_consumer = c.b.setp(Cmp::Ne, Type::U32, group, Src::Imm(0));
        c.b.bra_if(is_consumer, true, consumer);
        self.producer(&mut c, &r, done);
        c.b.place(consumer);
        self.consumer(&mut c, &r);
        c.b.place(done);
        c.b.push(Op::Ret, &[], &[]);
        // Without this, nobody knows how many registers a thread begins with.
        PtxKernel { resident: Some(1), ..c.b.finish() }
    }

    /// The first row and column of a tile.
    fn place(self, c: &mut Code, r: &Regs) -> (VReg, VReg) {
        let m = c.op(Arith::Div, Type::U32, &[r.tile.into(), r.wide.into()]);
        let n = c.op(Arith::Rem, Type::U32, &[r.tile.into(), r.wide.into()]);
        let m = c.op(Arith::MulLo, Type::U32, &[m.into(), Src::Imm(u64::from(64 * self.consumers))]);
        let n = c.op(Arith::MulLo, Type::U32, &[n.into(), Src::Imm(BN.into())]);
        (m, n)
    }

    fn barrier(self, c: &mut Code, r: &Regs) -> VReg {
        let full = c.at(r.stage, 8, r.base);
        c.plus(full, self.barriers())
    }

    /// Begins a loop over the CTA's tiles; its head, and where it ends.
    fn tiles(c: &mut Code, r: &Regs, end: ptoc_ptx::Label) -> ptoc_ptx::Label {
        let head = c.b.label();
        c.b.place(head);
        let over = c.b.setp(Cmp::Ge, Type::U32, r.tile, r.tiles);
        c.b.bra_if(over, true, end);
        head
    }

    fn next_tile(c: &mut Code, r: &Regs, head: ptoc_ptx::Label) {
        let stride = c.b.mov(Type::U32, Src::Special(Special::Nctaid));
        c.update(r.tile, Arith::Add, Type::U32, r.tile, stride);
        c.b.bra(head);
    }

    fn producer(self, c: &mut Code, r: &Regs, done: ptoc_ptx::Label) {
        c.b.sm90(Sm90::SetMaxReg { inc: false, count: 40 }, &[], &[]);
        let other = c.b.setp(Cmp::Ge, Type::U32, r.thread, Src::Imm(32));
        c.b.bra_if(other, true, done);
        let leads = c.b.reg(Class::Pred);
        c.b.sm90(Sm90::ElectSync, &[leads], &[Src::Imm(0xffff_ffff)]);
        c.b.bra_if(leads, false, done);
        r.maps.iter().for_each(|map| c.b.sm90(Sm90::PrefetchTensorMap, &[], &[Src::Addr(Address::at(*map))]));
        let head = Gemm::tiles(c, r, done);
        let (m, n) = self.place(c, r);
        let k = c.word(0);
        let step = c.b.label();
        c.b.place(step);
        let full = self.barrier(c, r);
        let parity = c.op(Arith::Xor, Type::B32, &[r.phase.into(), Src::Imm(1)]);
        c.b.mbarrier_wait(Address { disp: 8 * self.stages as i32, ..Address::at(full) }, parity);
        let (at_full, bytes) = (Src::Addr(Address::at(full)), self.stage_a() + PART);
        c.b.sm90(Sm90::MbarrierArriveExpectTx, &[], &[at_full, Src::Imm(bytes.into())]);
        let a = c.at(r.stage, self.stage_a(), r.base);
        let b = c.at(r.stage, PART, r.base);
        let b = c.plus(b, self.stages * self.stage_a());
        let load = Sm90::TensorLoad(2);
        c.b.sm90(load, &[], &[Src::Addr(Address::at(a)), r.maps[0].into(), k.into(), m.into(), at_full]);
        let (x, y) = if self.transposed { (n, k) } else { (k, n) };
        c.b.sm90(load, &[], &[Src::Addr(Address::at(b)), r.maps[1].into(), x.into(), y.into(), at_full]);
        c.advance(r.stage, r.phase, self.stages);
        c.update(k, Arith::Add, Type::U32, k, Src::Imm(BK.into()));
        let end = c.op(Arith::MulLo, Type::U32, &[r.steps.into(), Src::Imm(BK.into())]);
        let more = c.b.setp(Cmp::Lt, Type::U32, k, end);
        c.b.bra_if(more, true, step);
        Gemm::next_tile(c, r, head);
    }

    fn consumer(self, c: &mut Code, r: &Regs) {
        c.b.sm90(Sm90::SetMaxReg { inc: true, count: 232 }, &[], &[]);
        let named = r.group;
        let mine = c.op(Arith::Sub, Type::U32, &[r.group.into(), Src::Imm(1)]);
        let in_group = c.op(Arith::And, Type::B32, &[r.thread.into(), Src::Imm(127)]);
        let leads = c.b.setp(Cmp::Eq, Type::U32, in_group, Src::Imm(0));
        let sums: Vec<VReg> = (0..BN / 2).map(|_| c.b.reg(Class::F32)).collect();
        let (end, yes) = (c.b.label(), c.b.setp(Cmp::Eq, Type::U32, r.lane, r.lane));
        let head = Gemm::tiles(c, r, end);
        let (m, n) = self.place(c, r);
        let (k, last) = (c.word(0), c.word(0));
        let (step, kept) = (c.b.label(), c.b.label());
        c.b.place(step);
        let full = self.barrier(c, r);
        c.b.mbarrier_wait(Address::at(full), r.phase);
        self.multiply(c, r, mine, k, yes, &sums);
        c.b.sm90(Sm90::WgmmaWait(1), &[], &[]);
        let begins = c.b.setp(Cmp::Eq, Type::U32, k, Src::Imm(0));
        c.b.bra_if(begins, true, kept);
        c.release(r.lane, last);
        c.b.place(kept);
        c.update(last, Arith::Add, Type::U32, full, Src::Imm(u64::from(8 * self.stages)));
        c.advance(r.stage, r.phase, self.stages);
        c.update(k, Arith::Add, Type::U32, k, Src::Imm(1));
        let more = c.b.setp(Cmp::Lt, Type::U32, k, r.steps);
        c.b.bra_if(more, true, step);
        c.b.sm90(Sm90::WgmmaWait(0), &[], &[]);
        c.release(r.lane, last);
        let rows = c.at(mine, 64, m);
        self.store(c, r, mine, (named, leads), (rows, n), &sums);
        Gemm::next_tile(c, r, head);
        c.b.place(end);
        c.b.guard = Some((leads, true));
        c.b.sm90(Sm90::BulkWait { pending: 0, read: false }, &[], &[]);
        c.b.guard = None;
    }

    /// The products of a stage.
    fn multiply(self, c: &mut Code, r: &Regs, mine: VReg, k: VReg, yes: VReg, sums: &[VReg]) {
        let a = c.at(r.stage, self.stage_a(), r.base);
        let a = c.at(mine, PART, a);
        let b = c.at(r.stage, PART, r.base);
        let b = c.plus(b, self.stages * self.stage_a());
        let adds = c.b.setp(Cmp::Ne, Type::U32, k, Src::Imm(0));
        c.b.sm90(Sm90::WgmmaFence, &[], &[]);
        for part in 0..BK / 16 {
            let left = c.plus(a, 32 * part);
            let left = c.descriptor(left, 16);
            let right = c.plus(b, if self.transposed { 2048 } else { 32 } * part);
            let right = c.descriptor(right, if self.transposed { BK * 128 } else { 16 });
            let product = Wgmma { trans_b: self.transposed, ..Wgmma::new(BN as u16, MmaType::F16) };
            let adds = if part == 0 { adds } else { yes };
            c.b.sm90(Sm90::Wgmma(product), sums, &[left.into(), right.into(), adds.into()]);
        }
        c.b.sm90(Sm90::WgmmaCommit, &[], &[]);
    }

    /// The sums as f16 into a staged tile, swizzled, and that to memory.
    fn store(
        self,
        c: &mut Code,
        r: &Regs,
        mine: VReg,
        (named, leads): (VReg, VReg),
        (m, n): (VReg, VReg),
        sums: &[VReg],
    ) {
        let staging = c.at(mine, PART, r.base);
        let staging = c.plus(staging, self.staging());
        c.b.guard = Some((leads, true));
        c.b.sm90(Sm90::BulkWait { pending: 0, read: true }, &[], &[]);
        c.b.guard = None;
        c.named(named);
        // A lane has the address of a row of its warp, and of one of two chunks of 16 bytes.
        let warp = c.op(Arith::Shr, Type::U32, &[r.thread.into(), Src::Imm(5)]);
        let warp = c.op(Arith::And, Type::B32, &[warp.into(), Src::Imm(3)]);
        let low = c.op(Arith::And, Type::B32, &[r.lane.into(), Src::Imm(15)]);
        let row = c.at(warp, 16, low);
        let chunk = c.op(Arith::Shr, Type::U32, &[r.lane.into(), Src::Imm(4)]);
        let line = c.at(row, 128, staging);
        let turn = c.op(Arith::And, Type::B32, &[row.into(), Src::Imm(7)]);
        for part in 0..BN / 16 {
            let of = &sums[part as usize * 8..][..8];
            let words: Vec<VReg> = (0..4)
                .map(|n| {
                    let word = c.b.reg(Class::B32);
                    c.b.push(Op::Cvt2(Type::F16), &[word], &[of[2 * n + 1].into(), of[2 * n].into()]);
                    word
                })
                .collect();
            let at = c.plus(chunk, 2 * part);
            let at = c.op(Arith::Xor, Type::B32, &[at.into(), turn.into()]);
            let at = c.at(at, 16, line);
            let mut srcs = vec![Src::Addr(Address::at(at))];
            srcs.extend(words.iter().map(|w| Src::Reg(*w)));
            c.b.sm90(Sm90::StMatrix { count: 4, trans: false }, &[], &srcs);
        }
        c.b.sm90(Sm90::FenceProxyAsync(Some(Space::Shared)), &[], &[]);
        c.named(named);
        c.b.guard = Some((leads, true));
        let to = [r.maps[2].into(), n.into(), m.into(), Src::Addr(Address::at(staging))];
        c.b.sm90(Sm90::TensorStore(2), &[], &to);
        c.b.sm90(Sm90::BulkCommit, &[], &[]);
        c.b.guard = None;
    }
}

/// Sizes of a product.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    m: usize,
    n: usize,
    k: usize,
}

/// An array of f16 in a buffer, by boxes.
pub fn map(global: &mut Global, array: &[f16], columns: usize, tile: [u32; 2]) -> u64 {
    let base = global.add(bytes(array));
    let dims = vec![columns as u64, (array.len() / columns) as u64];
    let (strides, tile) = (vec![2 * columns as u64], tile.to_vec());
    global.add_map(TensorMap { base, dtype: Type::F16, dims, strides, tile, swizzle: Swizzle::B128, tf32: false })
}

/// The product of a launch.
pub fn product(gemm: Gemm, kernel: &PtxKernel, size: Size, seed: u64) -> Result<[Vec<f16>; 3], SimFault> {
    let (a, b) = (numbers(1, size.m * size.k), numbers(2, size.n * size.k));
    let mut global = Global::default();
    let rows = 64 * gemm.consumers;
    let map_a = map(&mut global, &a, size.k, [BK, rows]);
    let map_b = if gemm.transposed {
        let turned: Vec<f16> = (0..size.k * size.n).map(|i| b[i % size.n * size.k + i / size.n]).collect();
        map(&mut global, &turned, size.n, [BN, BK])
    } else {
        map(&mut global, &b, size.k, [BK, BN])
    };
    let map_c = map(&mut global, &vec![f16::NAN; size.m * size.n], size.n, [BN, 64]);
    let wide = size.n.div_ceil(BN as usize) as u64;
    let tiles = size.m.div_ceil(rows as usize) as u64 * wide;
    let params = [map_a, map_b, map_c, tiles, wide, size.k.div_ceil(BK as usize) as u64];
    let (shared, fuel) = (gemm.shared(), 1 << 22);
    let launch =
        SimLaunch { kernel, ctas: 2, shared, params: &params, seed, fuel, races: true, aligned: true, keep_nan: false };
    run(&launch, &mut global)?;
    Ok([a, b, halves(&global.buffers[2])])
}

fn check(gemm: Gemm, kernel: &PtxKernel, size: Size, seed: u64) -> Result<(), String> {
    let [a, b, c] = product(gemm, kernel, size, seed).map_err(|fault| fault.to_string())?;
    let depth = size.k.next_multiple_of(BK as usize);
    let row = |array: &[f16], i: usize| {
        let mut row = array[i * size.k..][..size.k].to_vec();
        row.resize(depth, f16::ZERO);
        row
    };
    for i in 0..size.m {
        for j in 0..size.n {
            let want = f16::from_f32(dot(&row(&a, i), &row(&b, j), 0.0));
            let got = c[i * size.n + j];
            if want.to_bits() != got.to_bits() {
                return Err(format!("[{i}, {j}] is {got:?}, not {want:?}"));
            }
        }
    }
    Ok(())
}

const SMALL: Size = Size { m: 64, n: 192, k: 320 };

#[test]
fn products_have_the_bits_of_the_model() {
    for (stages, consumers, transposed) in [(2, 1, false), (3, 2, false), (4, 1, true), (2, 2, true)] {
        let gemm = Gemm { stages, consumers, transposed };
        let kernel = gemm.kernel();
        verify(&kernel).unwrap_or_else(|e| panic!("{e}"));
        for seed in 0..4 {
            // Tails on every side, two tiles for one of the CTAs.
            let size = Size { m: 64 * consumers as usize + 7, n: 72, k: 200 };
            check(gemm, &kernel, size, seed).unwrap_or_else(|e| panic!("{gemm:?} {seed}: {e}"));
        }
    }
}

#[test]
fn its_text_is_read_again() {
    let gemm = Gemm { stages: 3, consumers: 2, transposed: true };
    let text = print(&gemm.kernel());
    let again = parse(&text).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(print(&again), text);
    check(gemm, &again, SMALL, 5).unwrap_or_else(|e| panic!("{e}"));
    if let Some(folder) = std::env::var_os("PTX_DUMP") {
        std::fs::write(std::path::Path::new(&folder).join("hopper_gemm.ptx"), text).expect("it is written");
    }
}

/// Every barrier, wait, fence, commit and arrival is needed: without it a launch is refused, or wrong, in one of some
/// orders.
#[test]
fn nothing_can_be_left_out() {
    let gemm = Gemm { stages: 2, consumers: 1, transposed: false };
    let all = deletions(&gemm.kernel());
    let mut kept = Vec::new();
    for (name, without) in &all {
        let found = (0..6).find_map(|seed| check(gemm, without, SMALL, seed).err());
        match found {
            Some(how) => println!("{name}: {how}"),
            None => kept.push(name),
        }
    }
    assert!(all.len() >= 20, "{}", all.len());
    assert!(kept.is_empty(), "{kept:?}");
}

/// What is reported of a fence that is missing, and of a wait that has no end.
#[test]
fn faults_say_what_is_missing() {
    let gemm = Gemm { stages: 2, consumers: 1, transposed: false };
    let without = |what: &str| {
        let all = deletions(&gemm.kernel());
        let (_, kernel) = all.into_iter().find(|(name, _)| name.contains(what)).expect("there is one");
        product(gemm, &kernel, SMALL, 3).expect_err("refused")
    };
    let fault = without("fence.proxy.async");
    assert!(matches!(fault.why, Why::Access(Refusal::Proxy, _)), "{fault}");
    let text = fault.to_string();
    assert!(text.contains("cp.async.bulk.tensor.2d.global") && text.contains("the write at"), "{text}");
    let fault = without("mbarrier.arrive.shared");
    assert_eq!(fault.why, Why::Deadlock);
    let text = fault.to_string();
    assert!(text.contains("warp 0 of CTA 0") && text.contains("4 of 4 arrivals and 0 bytes are missing"), "{text}");
}
