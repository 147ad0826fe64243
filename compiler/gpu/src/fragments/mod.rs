//! Products whose tiles stay in registers ([`ptoc_opt::fragments`]): attention, parts of k, groups of problems.
//!
//! The statements of a block are walked twice. The producer walks loops and scalar code, and brings the window of each
//! load to a ring of slots in shared memory: a thread for each ring by bulk copies, or all of it by elements.
//! Consumers, warp-groups with 64 rows of the block each, walk all of it: tiles are fragments in their registers, in
//! the arrangement of the unit's sums. A column of a fragment is in four threads of a warp, which exchange what a
//! reduction of rows asks for; whatever else is done row by row needs nobody else. Weights of a product are its left
//! operand as they stand.

mod accumulated;
mod arguments;
mod checks;
mod chunks;
mod elements;
mod exponentials;
mod gathered;
mod images;
mod loads;
mod narrow;
mod nibbles;
mod pages;
mod pending;
mod pipelined;
mod products;
mod reductions;
mod registers;
mod rows;
mod scalars;
mod staged;
mod statements;
mod store;

pub use arguments::ArrayMap;

use crate::abi::Abi;
use crate::emit::{Compiled, name};
use crate::raster::coordinates;
use crate::unsupported::{RefusalCode, Refused};
use loads::Ring;
use narrow::Integers;
use pending::Pending;
use pipelined::Ahead;
use ptoc_diagnostics::Span;
use ptoc_ir::analysis::poly::Definitions;
use ptoc_ir::loops::Module;
use ptoc_ir::tile::{Kernel, Region, Stmt, Tile, Value};
use ptoc_opt::contraction::{From, product};
use ptoc_opt::fragments::{FragmentKernel, OperandLoad};
use ptoc_ptx::{
    Address, Arith, Builder, Class, Cmp, Label, Op as Ptx, PtxKernel, Round, Shfl, Sm90, Space, Special, Src, Symbol,
    Type, VReg,
};
use registers::Registers;
use rustc_hash::FxHashMap;

/// Threads of a warp-group, and its rows.
const GROUP: u32 = 128;
const ROWS: u32 = 64;

/// Warps of a warp-group.
const WARPS: u32 = 4;

/// What slots are multiples of: the swizzle's pattern.
const PATTERN: u32 = 1024;

/// The named barriers of consumers, and of the producer's threads.
const CONSUMERS: u64 = 1;
const PRODUCERS: u64 = 2;

/// Code in the making, of one of both roles at a time.
struct Code<'k> {
    b: Builder,
    kernel: &'k Kernel,
    plan: &'k FragmentKernel,
    defs: Definitions<'k>,
    /// Windows that are loaded, in the order of the plan.
    rings: Vec<Ring>,
    maps: Vec<VReg>,
    /// Predicates that bulk copies can bring the arrays of windows, where a launch says so.
    mapped: Vec<Option<VReg>>,
    /// Predicates of the threads that issue bulk copies: rings take turns among them.
    leads: Vec<VReg>,
    /// The end, the status, the block's number and the number of CTAs: of blocks whose checks may fail.
    done: Label,
    status: VReg,
    block: VReg,
    ctas: VReg,
    /// The loop IR's table of checks: numbers of checks, and sources.
    checks: Vec<(u32, Span)>,
    /// Addresses of the arrays.
    tensors: Vec<VReg>,
    values: FxHashMap<Value, Src>,
    tiles: FxHashMap<Tile, Vec<VReg>>,
    /// What tiles have beyond their valid columns, where that is known.
    fills: FxHashMap<Tile, u64>,
    /// Pairs of f16 that are integers of bytes, as what they were made of: above a number whose last digit counts 1.
    integers: FxHashMap<Tile, Integers>,
    spans: Vec<Span>,
    produces: bool,
    /// Products that are under way, the oldest first.
    pending: Vec<Pending>,
    /// The product of the next iteration that is issued in this one.
    ahead: Option<Ahead>,
    /// The index of a loop of which this is not the last iteration.
    steady: Option<Value>,
    /// The thread among those of its role.
    thread: VReg,
    /// The warp-group of consumers, and the first row of the lane in the block.
    group: VReg,
    row: VReg,
    /// The first column of the lane, of every eight.
    column: VReg,
    base: VReg,
    /// Predicates: always, never, for the first lane of a warp.
    yes: VReg,
    no: VReg,
    first: VReg,
}

/// Compiles a kernel of that kind, of which `module` is the loop IR.
///
/// # Errors
/// Mistakes of this crate.
pub(crate) fn compile(plan: &FragmentKernel, module: &Module) -> Result<Compiled, Refused> {
    let internal = |message: String| Refused::new(RefusalCode::Internal, Span::default(), message);
    let consumers = consumers(plan);
    let rings = Ring::all(&plan.loads);
    let bytes = PATTERN + plan.loads.iter().map(|load| load.bytes()).sum::<u32>();
    let tiles = plan.registers + ahead_registers(&plan.kernel.body);
    let registers = Registers::new((consumers, columns(&plan.kernel.body)), bytes, tiles, plan.all_threads);
    let abi = Abi {
        tensors: module.tensors.len(),
        params: module.launch.params.len(),
        rank: module.launch.results.len(),
        threads: GROUP * (1 + consumers),
        shared: bytes,
        scratch: 0,
        raster: module.raster,
        spans: Vec::new(),
        cluster: 1,
        gemm: None,
        arrays: plan.loads.iter().map(ArrayMap::new).collect(),
    };
    let (mut ptx, sites) = kernel_code(plan, &abi, rings, (module, &registers))
        .ok_or_else(|| internal("a kernel that was taken has no translation".into()))?;
    ptx.resident = Some(registers.resident);
    ptoc_ptx::verify(&ptx).map_err(|e| internal(e.to_string()))?;
    Ok(Compiled { kernel: ptx, abi, sites, checks: plan.checks })
}

/// Warp-groups that multiply: blocks of fewer rows than one has leave some of them unused.
fn consumers(plan: &FragmentKernel) -> u32 {
    plan.rows.div_ceil(ROWS)
}

/// Columns of the widest product.
fn columns(region: &Region) -> u32 {
    let of = |stmt: &Stmt| match product(&stmt.op) {
        Some((p, _)) => p.d.cols,
        None => stmt.op.regions().map(columns).max().unwrap_or(0),
    };
    region.iter().map(of).max().unwrap_or(0)
}

/// Registers for the sums of a product that may be issued an iteration ahead: the largest that starts at zero.
fn ahead_registers(region: &Region) -> u32 {
    let of = |stmt: &Stmt| match product(&stmt.op) {
        Some((p, From::Zero)) => p.d.cols / 2,
        _ => stmt.op.regions().map(ahead_registers).max().unwrap_or(0),
    };
    region.iter().map(of).max().unwrap_or(0)
}

/// Parameters in the order of [`Abi::arguments`], maps, barriers, and both roles.
fn kernel_code(
    plan: &FragmentKernel,
    abi: &Abi,
    rings: Vec<Ring>,
    (module, registers): (&Module, &Registers),
) -> Option<(PtxKernel, Vec<Span>)> {
    let (kernel, of) = (&plan.kernel, &module.name);
    let mut b = Builder::new(name(of), abi.threads);
    let smem = b.symbol(Symbol { name: "smem".into(), space: Space::Shared, align: PATTERN, size: None });
    let count = abi.arguments_len();
    let params: Vec<u32> = (0..count).map(|n| b.param(format!("{}_{n}", name(of)), Type::U64)).collect();
    let maps: Vec<VReg> = (0..rings.len()).map(|n| b.tensor_map(format!("{}_{}", name(of), count + n))).collect();
    b.comment("products in a row on the tensor cores");
    let loaded: Vec<VReg> = params.iter().map(|p| b.ld(Space::Param, Type::U64, Address::param(*p))).collect();
    let global = |b: &mut Builder, address: VReg| {
        let at = b.reg(Class::B64);
        b.push(Ptx::CvtaTo(Space::Global), &[at], &[address.into()]);
        at
    };
    let tensors: Vec<VReg> = loaded[..abi.tensors].iter().map(|address| global(&mut b, *address)).collect();
    let status = match plan.checks {
        true => global(&mut b, loaded[abi.tensors + abi.params + abi.rank + 1]),
        false => loaded[0],
    };
    let mut told = loaded[count - abi.numbers_len()..].iter();
    let mapped = abi.arrays.iter().map(|array| {
        let good = array.told.then(|| told.next()).flatten()?;
        Some(b.setp(Cmp::Ne, Type::U64, *good, Src::Imm(0)))
    });
    let mapped: Vec<Option<VReg>> = mapped.collect();
    let thread = b.mov(Type::U32, Src::Special(Special::Tid));
    let lane = b.arith(Arith::And, Type::B32, &[thread.into(), Src::Imm(31)]);
    let base = b.mov(Type::U32, Src::Symbol(smem));
    let base = b.arith(Arith::Add, Type::U32, &[base.into(), Src::Imm(u64::from(PATTERN - 1))]);
    let base = b.arith(Arith::And, Type::B32, &[base.into(), Src::Imm(u64::from(!(PATTERN - 1)))]);
    let (yes, no) = (b.setp(Cmp::Eq, Type::U32, lane, lane), b.setp(Cmp::Ne, Type::U32, lane, lane));
    let first = b.setp(Cmp::Eq, Type::U32, lane, Src::Imm(0));
    let done = b.label();
    let mut code = Code {
        mapped,
        leads: Vec::new(),
        done,
        status,
        block: thread,
        ctas: thread,
        checks: module.checks.iter().map(|row| (row.id, row.span)).collect(),
        defs: Definitions::new(kernel),
        values: FxHashMap::default(),
        tiles: FxHashMap::default(),
        fills: FxHashMap::default(),
        integers: FxHashMap::default(),
        spans: vec![Span::default()],
        produces: true,
        pending: Vec::new(),
        ahead: None,
        steady: None,
        group: thread,
        row: thread,
        column: thread,
        b,
        kernel,
        plan,
        rings,
        maps,
        tensors,
        thread,
        base,
        yes,
        no,
        first,
    };
    code.launch_values(&loaded[abi.tensors..abi.tensors + abi.params]);
    for stmt in &kernel.prologue {
        if stmt.op.def().is_some_and(|v| plan.needed.contains(&v)) {
            code.scalar(&stmt.op)?;
        }
    }
    code.make_barriers();
    let turns = &loaded[abi.tensors + abi.params..][..abi.rank + 1];
    code.roles(turns, abi, registers)?;
    Some((code.b.finish(), code.spans))
}

impl Code<'_> {
    /// Dimensions and scalars.
    fn launch_values(&mut self, params: &[VReg]) {
        let kernel = self.kernel;
        let values = kernel.dims.values().map(|d| d.value).chain(kernel.scalars.iter().map(|s| s.value));
        for (value, param) in values.zip(params) {
            if self.plan.needed.contains(&value) {
                let src = self.narrowed(value, *param);
                self.values.insert(value, src.into());
            }
        }
    }

    fn roles(&mut self, turns: &[VReg], abi: &Abi, registers: &Registers) -> Option<()> {
        let (consumer, done) = (self.b.label(), self.done);
        let group = self.u32(Arith::Shr, self.thread, GROUP.ilog2());
        let consumes = self.b.setp(Cmp::Ne, Type::U32, group, Src::Imm(0));
        self.b.bra_if(consumes, true, consumer);
        if let Some([count, _]) = registers.moved {
            self.b.sm90(Sm90::SetMaxReg { inc: false, count }, &[], &[]);
        }
        // Bulk copies of a ring are one thread's work, those of other rings another warp's: to wait for a slot and to
        // issue its copies takes longer than a small step computes. Where an entry of a table is none, everything ends
        // at its window, so all copies are one thread's then. All threads walk where some windows are brought element
        // by element.
        let paged = self.plan.loads.iter().any(OperandLoad::is_paged);
        let warps = if paged { 1 } else { (self.rings.len() as u32).clamp(1, WARPS) };
        let leads = |c: &mut Self, warp: u32| c.b.setp(Cmp::Eq, Type::U32, c.thread, Src::Imm((32 * warp).into()));
        self.leads = (0..warps).map(|warp| leads(self, warp)).collect();
        if !self.plan.all_threads {
            let walks = if warps > 1 { self.first } else { self.leads[0] };
            self.b.bra_if(walks, false, done);
        }
        self.start_rings();
        let known = self.values.clone();
        self.blocks(turns, abi)?;
        self.b.bra(done);
        self.b.place(consumer);
        if let Some([_, count]) = registers.moved {
            self.b.sm90(Sm90::SetMaxReg { inc: true, count }, &[], &[]);
        }
        self.values = known;
        self.produces = false;
        self.place_lane(group);
        self.start_rings();
        self.blocks(turns, abi)?;
        self.b.place(done);
        // A block that fails may end while vectors of the next ones are under way.
        if self.plan.checks && self.plan.loads.iter().any(OperandLoad::is_listed) {
            self.b.sm90(Sm90::CpAsyncWait, &[], &[]);
        }
        self.b.push(Ptx::Ret, &[], &[]);
        Some(())
    }

    /// Which rows and columns a thread has.
    fn place_lane(&mut self, group: VReg) {
        // A number that all lanes have lets descriptors be computed once for a warp.
        let first = [group.into(), Src::Imm(0), Src::Imm(31), Src::Imm(0xffff_ffff)];
        let uniform = self.b.reg(Class::B32);
        self.b.push(Ptx::Shfl(Shfl::Idx), &[uniform], &first);
        self.group = self.u32(Arith::Sub, uniform, 1);
        self.thread = self.u32(Arith::Sub, self.thread, GROUP);
        let lane = self.u32(Arith::And, self.thread, 31);
        let warp = self.u32(Arith::Shr, self.thread, 5);
        let row = self.u32(Arith::Shr, lane, 2);
        self.row = self.at(warp, 16, row);
        let column = self.u32(Arith::And, lane, 3);
        self.column = self.u32(Arith::Shl, column, 1);
    }

    /// The CTA's blocks, the last ones first: where work grows with the number of a block, as below a diagonal, short
    /// ones end a launch.
    fn blocks(&mut self, turns: &[VReg], abi: &Abi) -> Option<()> {
        let (turns, all) = (&turns[..abi.rank], turns[abi.rank]);
        let (cta, ctas) = (self.b.mov(Type::U32, Src::Special(Special::Ctaid)), Src::Special(Special::Nctaid));
        let next = self.b.cvt(Type::U64, Type::U32, Round::None, cta);
        let ctas = self.b.mov(Type::U32, ctas);
        let ctas = self.b.cvt(Type::U64, Type::U32, Round::None, ctas);
        let (head, end) = (self.b.label(), self.b.label());
        self.b.place(head);
        let over = self.b.setp(Cmp::Ge, Type::U64, next, all);
        self.b.bra_if(over, true, end);
        // The first block that fails is the one that is reported, so those with checks come in their order.
        let block = match self.plan.checks {
            true => next,
            false => {
                let block = self.b.arith(Arith::Sub, Type::U64, &[all.into(), next.into()]);
                self.b.arith(Arith::Sub, Type::U64, &[block.into(), Src::Imm(1)])
            }
        };
        (self.block, self.ctas) = (block, ctas);
        let at = coordinates(&mut self.b, block, turns, abi.raster);
        let kernel = self.kernel;
        for (dim, at) in kernel.grid.iter().zip(at) {
            self.values.insert(dim.index, at.into());
        }
        self.forget_all();
        self.region(&kernel.body)?;
        self.wait_for_products();
        self.b.push(Ptx::Arith(Arith::Add, Type::U64), &[next], &[next.into(), ctas.into()]);
        self.b.bra(head);
        self.b.place(end);
        Some(())
    }

    // ---- shorthands -------------------------------------------------------------------------------------------------

    /// A tile is written.
    fn forget(&mut self, tile: Tile) {
        self.fills.remove(&tile);
        self.integers.remove(&tile);
    }

    /// Code begins here that is reached from elsewhere, too.
    fn forget_all(&mut self) {
        self.fills.clear();
        self.integers.clear();
    }

    fn u32(&mut self, op: Arith, a: impl Into<Src>, by: u32) -> VReg {
        let ty = if matches!(op, Arith::And | Arith::Or | Arith::Xor | Arith::Shl) { Type::B32 } else { Type::U32 };
        self.b.arith(op, ty, &[a.into(), Src::Imm(u64::from(by))])
    }

    /// `a * by + c`
    fn at(&mut self, a: VReg, by: u32, c: VReg) -> VReg {
        self.b.arith(Arith::MadLo, Type::U32, &[a.into(), Src::Imm(u64::from(by)), c.into()])
    }

    fn long(&mut self, a: VReg) -> VReg {
        self.b.cvt(Type::U64, Type::U32, Round::None, a)
    }

    /// Runs `body` where a predicate is so.
    fn only_if(&mut self, pred: VReg, so: bool, body: impl FnOnce(&mut Self)) {
        let skip = self.b.label();
        self.b.bra_if(pred, !so, skip);
        body(self);
        self.b.place(skip);
    }
}
