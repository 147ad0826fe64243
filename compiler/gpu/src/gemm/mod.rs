//! Products on the tensor cores: a kernel that is one product ([`ptoc_opt::matrix_unit`]) as a warp-specialised GEMM.
//!
//! A warp-group is the producer. It brings steps of 128 bytes of k to shared memory, swizzled by as much, into the
//! slots of a ring: by bulk tensor copies, which one thread issues, or where an array's address or stride is no
//! multiple of 16 bytes, element by element, which all its threads do, to the same places. One or two warp-groups are
//! consumers: each has 64 rows of the block, sums in registers, operands by descriptors of shared memory. Each slot has
//! two `mbarrier`s: one completes when the slot is full, the other when all warps of consumers have read it. CTAs are
//! persistent, so the producer is ahead of the consumers across blocks, too. CTAs of a cluster share loads
//! ([`cluster`]). Of blocks that are small on both sides a warp has 16 rows ([`warps`]).

mod arguments;
mod cluster;
mod consumer;
mod epilogue;
mod producer;
mod warps;

pub use arguments::{GemmAbi, HALVES, Major, Obstacle, OperandSide};
pub(crate) use arguments::{map, value};

use crate::abi::Abi;
use crate::allocation::MOST_SHARED;
use crate::emit::{Compiled, Options, name};
use crate::fragments;
use crate::raster::coordinates;
use crate::unsupported::{RefusalCode, Refused};
use arguments::{ARRAYS, MAPPED, ROW};
use cluster::{ClusterShape, Member};
use ptoc_abi::Raster;
use ptoc_diagnostics::Span;
use ptoc_ir::loops::{MemTy, Module};
use ptoc_ir::tile::Kernel;
use ptoc_isa::Target;
use ptoc_opt::fragments::find as several;
use ptoc_opt::matrix_unit::{self, ArrayMatrix, Number, UnitProduct};
use ptoc_opt::rings::straight;
use ptoc_ptx::{
    Address, Arith, Builder, Class, Cmp, Label, MmaType, Op as Ptx, Round, Sm90, Space, Special, Src, Symbol, Type,
    VReg,
};
use ptoc_tensor::DType;

/// Threads of a warp-group.
const GROUP: u32 = 128;

/// Slots of the ring at most, and where the author asks for no pipeline.
const SLOTS: u32 = 8;
const PLAIN_SLOTS: u32 = 4;
/// The same of a step that is small: what counts is how much is under way.
const SMALL_SLOTS: u32 = 16;
const SMALL: u32 = 12 << 10;

/// What slots are multiples of: the swizzle's pattern.
const PATTERN: u32 = 1024;

/// Registers of a thread of the producer and of consumers, where the consumers' sums need more than an equal share.
const PRODUCER: u32 = 40;
const CONSUMER: u32 = 232;

/// Compiles a kernel, of which `module` is the loop IR: on the tensor cores where [`matrix_unit::find`] or
/// [`ptoc_opt::fragments::find`] says so, unless `exact` forbids it: sums of integers are exact there.
///
/// # Errors
/// What has no translation.
pub fn compile_kernel(
    kernel: &Kernel,
    target: &Target,
    module: &Module,
    exact: bool,
    options: &Options,
) -> Result<Compiled, Refused> {
    let kernel = &*straight(kernel);
    match matrix_unit::find(kernel, target) {
        Ok(product) if !exact || product.profile.is_none() => return compile(&product, kernel, target, module),
        _ => {}
    }
    if !exact && let Ok(products) = several(kernel, target) {
        return fragments::compile(&products, module);
    }
    crate::emit::compile(module, options)
}

/// The shape of the code.
#[derive(Clone, Debug)]
struct Plan {
    a: OperandSide,
    b: OperandSide,
    /// Rows and columns of a block, and the dimensions of the grid that count them.
    tile: [u32; 2],
    grid: [usize; 2],
    /// Those that count matrices.
    batch: Vec<usize>,
    /// Warps that multiply: of a warp-group 64 rows, or each 16 of a block that has no more than 32.
    warps: u32,
    slots: u32,
    factors: [MmaType; 2],
    /// Factors of a step.
    depth: u32,
    /// Arrays of the epilogue, and behind them the bias, if there is one.
    arrays: Vec<PlanArray>,
    biased: bool,
    /// CTAs that share what they load.
    cluster: ClusterShape,
    /// The array where sums are stored as they are, if that is all, and its rows are dense.
    plain: Option<usize>,
    raster: Option<Raster>,
}

/// An array of results, or of what they are made of.
#[derive(Clone, Debug)]
struct PlanArray {
    dtype: DType,
    /// Neighbours of a row are next to each other.
    dense: bool,
    /// Which of rows and columns it has.
    has: [bool; 2],
}

impl PlanArray {
    fn size(&self) -> u64 {
        self.dtype.size() as u64
    }

    /// Two neighbours may be one access.
    fn pairs(&self) -> bool {
        self.dense && self.has[1] && matches!(MemTy::of(self.dtype), MemTy::F32 | MemTy::I32 | MemTy::F16 | MemTy::BF16)
    }
}

impl Plan {
    fn new(p: &UnitProduct<'_>, abi: &GemmAbi, cluster: ClusterShape, raster: Option<Raster>) -> Plan {
        let [a, b] = abi.operands.clone();
        let depth = ROW / a.factor;
        let wanted = match p.stages {
            (1, _) if a.bytes() + b.bytes() <= SMALL => SMALL_SLOTS,
            (1, _) => PLAIN_SLOTS,
            (stages, deep) => stages.saturating_mul(deep.div_ceil(depth)),
        };
        let dense = |m: &ArrayMatrix| m.strides[1].number() == Some(1);
        let arrays = p.epilogue.arrays.iter().map(|a| (a.dtype, dense(&a.matrix), a.has));
        let zero = |n: &Number| n.number() == Some(0);
        let bias = p.bias.iter().map(|m| (p.sums, dense(m), [0, 1].map(|side| !zero(&m.strides[side]))));
        let arrays: Vec<PlanArray> =
            arrays.chain(bias).map(|(dtype, dense, has)| PlanArray { dtype, dense, has }).collect();
        let room = (MOST_SHARED - PATTERN) / (a.bytes() + b.bytes() + 16);
        Plan {
            tile: p.tile,
            grid: p.grid,
            batch: p.batch.clone(),
            warps: p.tile[0] / warps::ROWS,
            slots: wanted.clamp(2, if a.bytes() + b.bytes() <= SMALL { SMALL_SLOTS } else { SLOTS }).min(room),
            factors: p.factors.map(mma_type),
            depth,
            // Of others `ptxas` would convert sums before products are waited for (C7514), if nothing branched there.
            plain: p.epilogue.plain().filter(|n| arrays[*n].dense),
            arrays,
            biased: p.bias.is_some(),
            cluster,
            raster,
            a,
            b,
        }
    }

    fn threads(&self) -> u32 {
        GROUP + 32 * self.warps
    }

    /// Where the right operand's slots begin, and the barriers.
    fn right(&self) -> u32 {
        self.slots * self.a.bytes()
    }

    fn barriers(&self) -> u32 {
        self.right() + self.slots * self.b.bytes()
    }

    /// Bytes of shared memory: it may begin anywhere.
    fn shared(&self) -> u32 {
        PATTERN + self.barriers() + 16 * self.slots
    }

    /// Registers move from the producer to the consumers.
    fn moves_registers(&self) -> bool {
        self.warps == 8 && self.tile[1] > 128
    }

    /// Warps that issue bulk copies in turn. To wait for a slot and to issue its copies takes longer than products of a
    /// small one, and no less than of a large one. A slot is always the same warp's, as a wait tells the phase before
    /// from no other but the one at hand.
    fn turns(&self) -> u32 {
        let small = self.a.bytes() + self.b.bytes() <= SMALL;
        if small { 1 << self.slots.trailing_zeros().min((GROUP / 32).ilog2()) } else { 1 }
    }

    /// Each warp multiplies for itself.
    fn in_warps(&self) -> bool {
        self.warps < 4
    }
}

fn mma_type(factors: DType) -> MmaType {
    match factors {
        DType::BF16 => MmaType::Bf16,
        DType::F8E4M3 => MmaType::E4m3,
        DType::F8E5M2 => MmaType::E5m2,
        DType::I8 => MmaType::S8,
        DType::F32 => MmaType::Tf32,
        _ => MmaType::F16,
    }
}

/// Code in the making, and registers that are there all the time.
struct Gemm {
    b: Builder,
    plan: Plan,
    /// Rows, columns, depth.
    sizes: [VReg; 3],
    /// What becomes of an element, if sums are not stored as they are.
    element: Option<Module>,
    /// The parameter that is the first dimension.
    params: usize,
    /// Addresses of the first elements of A and B, and their strides in bytes.
    first: [VReg; 2],
    strides: [[VReg; 2]; 2],
    /// The same of other arrays.
    arrays: Vec<(VReg, [VReg; 2])>,
    /// The first elements of the first matrices of all of them, and bytes from matrix to matrix.
    batches: Vec<(VReg, Vec<VReg>)>,
    /// The block's matrix, along each dimension of the batch.
    matrix: Vec<VReg>,
    /// Predicates: bulk copies of A and of B will do.
    mapped: [VReg; 2],
    maps: [VReg; 2],
    turns: Vec<VReg>,
    blocks: VReg,
    thread: VReg,
    lane: VReg,
    /// The warp-group.
    group: VReg,
    /// The first slot.
    base: VReg,
    /// The CTA's place in its cluster, if there are any.
    member: Option<Member>,
    /// The block's number; of a cluster the cluster's.
    block: VReg,
    slot: VReg,
    phase: VReg,
}

fn compile(p: &UnitProduct<'_>, kernel: &Kernel, target: &Target, module: &Module) -> Result<Compiled, Refused> {
    let internal = |message: String| Refused::new(RefusalCode::Internal, Span::default(), message);
    let mut gemm_abi = GemmAbi::new(p);
    let cluster = ClusterShape::of(&module.cluster, p, &gemm_abi.operands);
    gemm_abi.operands.iter_mut().enumerate().for_each(|(n, o)| o.shared = cluster.sharing(n));
    let plan = Plan::new(p, &gemm_abi, cluster, module.raster);
    let spans = if cluster.is_alone() { &[] } else { &module.cluster[..] };
    let abi = Abi {
        tensors: module.tensors.len(),
        params: module.launch.params.len(),
        rank: module.launch.results.len(),
        threads: plan.threads(),
        shared: plan.shared(),
        scratch: 0,
        raster: module.raster,
        spans: spans.iter().map(|n| u64::from(*n)).collect(),
        cluster: cluster.ctas(),
        gemm: Some(gemm_abi),
        arrays: Vec::new(),
    };
    let element = match plan.plain {
        Some(_) => None,
        None => {
            let element = ptoc_lower::lower_element(kernel, target, (p.sums, &p.epilogue));
            Some(element.map_err(|e| internal(e.into_iter().map(|d| d.message).collect()))?)
        }
    };
    let mut kernel = Gemm::new(plan, element, &abi, &module.name).kernel();
    // Unless said, a thread has as few registers as 1024 threads would have.
    kernel.resident = Some(1);
    kernel.cluster = (!cluster.is_alone()).then_some(cluster.ctas());
    ptoc_ptx::verify(&kernel).map_err(|e| internal(e.to_string()))?;
    Ok(Compiled { kernel, abi, sites: vec![p.span], checks: false })
}

impl Gemm {
    /// Parameters, in the order of [`Abi::arguments`], and maps.
    fn new(plan: Plan, element: Option<Module>, abi: &Abi, of: &str) -> Gemm {
        let mut b = Builder::new(name(of), plan.threads());
        let smem = b.symbol(Symbol { name: "smem".into(), space: Space::Shared, align: 1024, size: None });
        let count = abi.arguments_len();
        let all: Vec<u32> = (0..count).map(|n| b.param(format!("{}_{n}", name(of)), Type::U64)).collect();
        let maps = [0, 1].map(|n| b.tensor_map(format!("{}_{}", name(of), count + n)));
        let load = |b: &mut Builder, n: usize| b.ld(Space::Param, Type::U64, Address::param(all[n]));
        let gemm = abi.gemm.as_ref().expect("it is a product");
        let numbers = count - gemm.numbers_len();
        let number = |b: &mut Builder, n: usize| load(b, numbers + n);
        let sizes = [0, 1, 2].map(|n| number(&mut b, n));
        let tensors = gemm.tensors();
        let matrix = |b: &mut Builder, n: usize| {
            let at = if n < 2 { 3 + 3 * n } else { ARRAYS + 3 * (n - 2) };
            let address = load(b, tensors[n] as usize);
            let offset = number(b, at);
            let address = b.arith(Arith::Add, Type::U64, &[address.into(), offset.into()]);
            let first = b.reg(Class::B64);
            b.push(Ptx::CvtaTo(Space::Global), &[first], &[address.into()]);
            (first, [1, 2].map(|n| number(b, at + n)))
        };
        let operands = [0, 1].map(|n| matrix(&mut b, n));
        let arrays: Vec<_> = (2..tensors.len()).map(|n| matrix(&mut b, n)).collect();
        let (from, dims) = (gemm.batches(), plan.batch.len());
        let firsts = operands.iter().chain(&arrays).map(|array| array.0).enumerate();
        let steps = |b: &mut Builder, n: usize| (0..dims).map(|d| number(b, from + n * dims + d)).collect();
        let batches = firsts.map(|(n, first)| (first, steps(&mut b, n))).collect();
        let mapped = [0, 1].map(|n| {
            let good = number(&mut b, MAPPED + n);
            b.setp(Cmp::Ne, Type::U64, good, Src::Imm(0))
        });
        let turns = (0..abi.rank).map(|n| load(&mut b, abi.tensors + abi.params + n)).collect();
        let blocks = load(&mut b, abi.tensors + abi.params + abi.rank);
        let thread = b.mov(Type::U32, Src::Special(Special::Tid));
        let lane = b.arith(Arith::And, Type::B32, &[thread.into(), Src::Imm(31)]);
        let group = b.arith(Arith::Shr, Type::U32, &[thread.into(), Src::Imm(u64::from(GROUP.ilog2()))]);
        let base = b.mov(Type::U32, Src::Symbol(smem));
        let base = b.arith(Arith::Add, Type::U32, &[base.into(), Src::Imm(u64::from(PATTERN - 1))]);
        let base = b.arith(Arith::And, Type::B32, &[base.into(), Src::Imm(u64::from(!(PATTERN - 1)))]);
        let [turn, _] = plan.cluster.turns();
        let turn = b.mov(Type::U32, Src::Special(turn));
        let block = b.cvt(Type::U64, Type::U32, Round::None, turn);
        let [slot, phase] = [0, 1].map(|_| b.mov(Type::U32, Src::Imm(0)));
        Gemm {
            member: None,
            b,
            plan,
            sizes,
            element,
            params: abi.tensors,
            first: operands.map(|o| o.0),
            strides: operands.map(|o| o.1),
            arrays,
            batches,
            matrix: Vec::new(),
            mapped,
            maps,
            turns,
            blocks,
            thread,
            lane,
            group,
            base,
            block,
            slot,
            phase,
        }
    }

    fn kernel(mut self) -> ptoc_ptx::PtxKernel {
        self.b.comment("a product on the tensor cores");
        let all = self.all_mapped();
        self.member = self.member(all);
        self.make_barriers(all);
        let (consumer, done) = (self.b.label(), self.b.label());
        let consumes = self.b.setp(Cmp::Ne, Type::U32, self.group, Src::Imm(0));
        self.b.bra_if(consumes, true, consumer);
        self.producer(done);
        self.b.place(consumer);
        self.consumer(done);
        self.leave(done);
        self.b.push(Ptx::Ret, &[], &[]);
        self.b.finish()
    }

    /// The predicate that both operands come by bulk copies.
    fn all_mapped(&mut self) -> VReg {
        let [a, b] = self.mapped;
        self.b.arith(Arith::And, Type::Pred, &[a.into(), b.into()])
    }

    /// The first thread makes the barriers: a slot is full when the thread that issues copies has arrived and their
    /// bytes are there, or when all threads of the producer have arrived.
    fn make_barriers(&mut self, all: VReg) {
        let ready = self.b.label();
        let arrivals = self.b.selp(Type::B32, Src::Imm(1), Src::Imm(u64::from(GROUP)), all);
        let warps = self.plan.warps;
        let releases = self.b.selp(
            Type::B32,
            Src::Imm((warps * self.plan.cluster.partners()).into()),
            Src::Imm(warps.into()),
            all,
        );
        let first = self.b.setp(Cmp::Eq, Type::U32, self.thread, Src::Imm(0));
        self.b.bra_if(first, false, ready);
        for slot in 0..self.plan.slots {
            let full = self.plus(self.base, self.plan.barriers() + 8 * slot);
            self.b.sm90(Sm90::MbarrierInit, &[], &[Src::Addr(Address::at(full)), arrivals.into()]);
            let empty = Src::Addr(self.empty(full));
            self.b.sm90(Sm90::MbarrierInit, &[], &[empty, releases.into()]);
        }
        self.b.sm90(Sm90::FenceMbarrierInit, &[], &[]);
        self.b.place(ready);
        match self.member {
            Some(_) => self.meet(),
            None => self.b.push(Ptx::Bar(0), &[], &[]),
        }
    }

    // ---- what producer and consumers have in common -----------------------------------------------------------------

    /// Begins the loop over the CTA's blocks: its head, and the first row and column of a block. Operands and arrays
    /// begin at the block's matrix then.
    fn blocks(&mut self, end: Label) -> (Label, [VReg; 2]) {
        let head = self.b.label();
        self.b.place(head);
        let over = self.b.setp(Cmp::Ge, Type::U64, self.block, self.blocks);
        self.b.bra_if(over, true, end);
        let at = coordinates(&mut self.b, self.block, &self.turns, self.plan.raster);
        let first = [0, 1].map(|n| {
            let tile = Src::Imm(u64::from(self.plan.tile[n]));
            let at = self.of_cluster(at[self.plan.grid[n]], n);
            self.b.arith(Arith::MulLo, Type::U64, &[at.into(), tile])
        });
        self.matrix = self.plan.batch.iter().map(|d| at[*d]).collect();
        let firsts: Vec<VReg> = self.batches.clone().into_iter().map(|array| self.first_of_matrix(array)).collect();
        let (operands, arrays) = firsts.split_at(2);
        self.first = [operands[0], operands[1]];
        self.arrays.iter_mut().zip(arrays).for_each(|(array, first)| array.0 = *first);
        (head, first)
    }

    /// The first element of the block's matrix in an array.
    fn first_of_matrix(&mut self, (first, steps): (VReg, Vec<VReg>)) -> VReg {
        let mut at = first;
        for (step, n) in steps.into_iter().zip(self.matrix.clone()) {
            at = self.b.arith(Arith::MadLo, Type::U64, &[n.into(), step.into(), at.into()]);
        }
        at
    }

    fn next_block(&mut self, head: Label) {
        let [_, turns] = self.plan.cluster.turns();
        let turns = self.b.mov(Type::U32, Src::Special(turns));
        let turns = self.long(turns);
        self.update(self.block, Arith::Add, Type::U64, turns);
        self.b.bra(head);
    }

    /// The barrier of the slot at hand that completes when it is full.
    fn full(&mut self) -> VReg {
        let at = self.at(self.slot, 8, self.base);
        self.plus(at, self.plan.barriers())
    }

    /// The one beside it that completes when it is empty.
    fn empty(&self, full: VReg) -> Address {
        Address { disp: 8 * self.plan.slots as i32, ..Address::at(full) }
    }

    /// Where the operands of the slot at hand are.
    fn operands(&mut self) -> [VReg; 2] {
        let a = self.at(self.slot, self.plan.a.bytes(), self.base);
        let b = self.at(self.slot, self.plan.b.bytes(), self.base);
        [a, self.plus(b, self.plan.right())]
    }

    /// The next slot; the parity of its phase changes at the end of the ring.
    fn advance(&mut self) {
        let same = self.b.label();
        self.update(self.slot, Arith::Add, Type::U32, Src::Imm(1));
        let inside = self.b.setp(Cmp::Lt, Type::U32, self.slot, Src::Imm(u64::from(self.plan.slots)));
        self.b.bra_if(inside, true, same);
        self.b.set(self.slot, Type::U32, Src::Imm(0));
        self.update(self.phase, Arith::Xor, Type::B32, Src::Imm(1));
        self.b.place(same);
    }

    /// The loop over steps of k.
    fn steps(&mut self, body: impl FnOnce(&mut Gemm, VReg)) {
        let k = self.b.mov(Type::U64, Src::Imm(0));
        let (head, end) = (self.b.label(), self.b.label());
        self.b.place(head);
        let over = self.b.setp(Cmp::Ge, Type::U64, k, self.sizes[2]);
        self.b.bra_if(over, true, end);
        body(self, k);
        self.update(k, Arith::Add, Type::U64, Src::Imm(u64::from(self.plan.depth)));
        self.b.bra(head);
        self.b.place(end);
    }

    // ---- shorthands -------------------------------------------------------------------------------------------------

    /// `reg = reg op by`
    fn update(&mut self, reg: VReg, op: Arith, ty: Type, by: impl Into<Src>) {
        self.b.push(Ptx::Arith(op, ty), &[reg], &[reg.into(), by.into()]);
    }

    fn u32(&mut self, op: Arith, a: impl Into<Src>, by: u32) -> VReg {
        let ty = if matches!(op, Arith::And | Arith::Or | Arith::Xor | Arith::Shl) { Type::B32 } else { Type::U32 };
        self.b.arith(op, ty, &[a.into(), Src::Imm(u64::from(by))])
    }

    fn u64(&mut self, op: Arith, a: impl Into<Src>, by: impl Into<Src>) -> VReg {
        self.b.arith(op, Type::U64, &[a.into(), by.into()])
    }

    fn plus(&mut self, a: VReg, by: u32) -> VReg {
        self.u32(Arith::Add, a, by)
    }

    /// `a * by + c`
    fn at(&mut self, a: VReg, by: u32, c: VReg) -> VReg {
        self.b.arith(Arith::MadLo, Type::U32, &[a.into(), Src::Imm(u64::from(by)), c.into()])
    }

    fn long(&mut self, a: VReg) -> VReg {
        self.b.cvt(Type::U64, Type::U32, Round::None, a)
    }
}
