//! A module to a kernel: parameters, the loop over blocks, the order of memory.

use crate::abi::{Abi, SLOT};
use crate::allocation::{CONTROL, Homes, MOST_SHARED};
use crate::bounds::{Interval, intervals};
use crate::demand::Demands;
use crate::dependences::{Key, Keys, Touched, of_region};
use crate::exponents::{RoundedSums, rounded_sums};
use crate::lanes::Lane;
use crate::raster;
use crate::reduce;
use crate::resident::Residents;
use crate::staged::{self, Tiling};
use crate::threads::{STAGED_BESIDE, STAGED_THREADS, resident, resident_narrow, threads};
use crate::unsupported::{RefusalCode, Refused};
use crate::vectors::Factors;
use cranelift_entity::SecondaryMap;
use ptoc_abi::MAX_GRID_RANK;
use ptoc_diagnostics::Span;
use ptoc_ir::loops::{Base, Func, LTy, Label, Module, Op, Reg, Region, SpaceId, VarId};
use ptoc_ptx::{
    Address, Arith, Builder, Class, Cmp, Op as Ptx, PtxKernel, Round, Space, Special, Src, Symbol, Type, VReg,
};
use rustc_hash::{FxHashMap, FxHashSet};

/// How to compile.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Threads of a CTA: whole warps, at least 64, at most 1024. Unless given, as many as fill a multiprocessor with
    /// the CTAs that shared memory has room for.
    pub threads: Option<u32>,
    /// The most shared memory that is used, in bytes.
    pub shared: u32,
}

impl Default for Options {
    fn default() -> Options {
        Options { threads: None, shared: MOST_SHARED }
    }
}

/// A kernel, and how it is launched.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// The code.
    pub kernel: PtxKernel,
    /// Its parameters.
    pub abi: Abi,
    /// The source of each [`ptoc_ptx::Inst::site`].
    pub sites: Vec<Span>,
    /// There are checks in it, whose failure the status tells.
    pub checks: bool,
}

/// A register of loop IR.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Val {
    /// Bits.
    Known(u64),
    Reg(VReg),
}

/// Where `break` (or `leave`) and `continue` go.
#[derive(Clone, Copy)]
pub(crate) struct Targets {
    pub(crate) exit: ptoc_ptx::Label,
    pub(crate) next: Option<ptoc_ptx::Label>,
}

/// Emission of a block function.
pub(crate) struct Emit<'a> {
    pub(crate) b: Builder,
    pub(crate) module: &'a Module,
    pub(crate) func: &'a Func,
    pub(crate) threads: u32,
    pub(crate) homes: Homes,
    pub(crate) values: SecondaryMap<Reg, Option<Val>>,
    pub(crate) vars: SecondaryMap<VarId, Option<VReg>>,
    pub(crate) labels: FxHashMap<Label, Targets>,
    /// Addresses of the tensors.
    pub(crate) tensors: Vec<VReg>,
    /// The first byte of shared memory.
    pub(crate) smem: VReg,
    /// The CTA's part of scratch memory.
    pub(crate) scratch: VReg,
    pub(crate) tid: VReg,
    /// Predicate: this is the first thread.
    pub(crate) first: VReg,
    /// The block's number.
    pub(crate) block: VReg,
    pub(crate) status: VReg,
    /// Where a CTA goes that has failed.
    pub(crate) done: ptoc_ptx::Label,
    /// The lane, inside `Lanes`.
    pub(crate) lane: Option<Lane>,
    /// How large products are staged, and from which byte of shared memory on.
    pub(crate) staging: Option<(Tiling, u32)>,
    /// Rows in registers.
    pub(crate) residents: Residents,
    /// Threads tell each other through the words of control which iteration failed.
    pub(crate) tells: bool,
    /// Where the words of rows that several warps share begin in shared memory.
    pub(crate) words: Option<u32>,
    /// There are checks.
    pub(crate) checks: bool,
    /// What is known of registers.
    pub(crate) intervals: SecondaryMap<Reg, Interval>,
    /// What registers of 64 bits are multiples of.
    pub(crate) factors: Factors,
    /// The code at hand runs on the first thread alone.
    pub(crate) solo: bool,
    /// What has been touched since the last barrier.
    pub(crate) pending: Touched,
    /// Arrays that the kernel updates atomically: other CTAs may change them at any time.
    pub(crate) broadcast: FxHashSet<Key>,
    /// For the places of each gather: whether all are multiples of the widest access, as a predicate.
    pub(crate) aligned_rows: FxHashMap<(SpaceId, u64), VReg>,
    /// Values that were rounded to 16 bits, by what they were rounded to: a store takes the half as it is.
    pub(crate) halves: FxHashMap<(VReg, Type), VReg>,
    /// The halves of f16 that values were loaded as, of which a NaN may be a signalling one.
    pub(crate) loaded: FxHashMap<VReg, VReg>,
    /// Exponents whose bits are in the low bits of a sum.
    pub(crate) rounded: RoundedSums,
    /// What is wanted of merges.
    pub(crate) demands: Demands,
    /// Registers that something reads.
    pub(crate) used: FxHashSet<Reg>,
    pub(crate) span: Span,
    sites: Vec<Span>,
}

/// The registers of a type.
pub(crate) fn class(ty: LTy) -> Class {
    match ty {
        LTy::I32 => Class::B32,
        LTy::I64 => Class::B64,
        LTy::F32 => Class::F32,
        LTy::Bool => Class::Pred,
    }
}

/// The type of a copy.
pub(crate) fn whole(ty: LTy) -> Type {
    match ty {
        LTy::I32 => Type::B32,
        LTy::I64 => Type::B64,
        LTy::F32 => Type::F32,
        LTy::Bool => Type::Pred,
    }
}

/// Compiles a module.
///
/// # Errors
/// What has no translation.
pub fn compile(module: &Module, options: &Options) -> Result<Compiled, Refused> {
    ptoc_ir::loops::verify(module).map_err(Refused::of)?;
    let rank = module.launch.results.len();
    let whole = |code, message: String| Err(Refused::new(code, Span::default(), message));
    if rank > MAX_GRID_RANK {
        return whole(RefusalCode::Rank, format!("a grid of {rank} dimensions; launches count {MAX_GRID_RANK}"));
    }
    let params = module.launch.params.len();
    let all = module.tensors.len() + params + rank + 3;
    if all > 500 {
        return whole(RefusalCode::Parameters, format!("{all} parameters; a launch passes 500"));
    }
    if options.shared < CONTROL {
        return whole(RefusalCode::Invalid, format!("{} bytes of shared memory: at least {CONTROL}", options.shared));
    }
    let mut homes = Homes::new(module, options.shared);
    let products = staged::any(module) && homes.shared <= STAGED_BESIDE;
    let threads = options.threads.unwrap_or_else(|| if products { STAGED_THREADS } else { threads(module, &homes) });
    let least = if options.threads.is_some() { 64 } else { 32 };
    if !(least..=1024).contains(&threads) || !threads.is_multiple_of(32) {
        return whole(RefusalCode::Invalid, format!("{threads} threads: whole warps, 64 to 1024"));
    }
    let tiling = Tiling::new(threads).filter(|_| products);
    let staging = tiling.and_then(|t| homes.reserve(t.bytes(), options.shared).map(|at| (t, at)));
    let words = match reduce::words(&module.block.body, &homes.segments, threads) {
        0 => None,
        bytes => homes.reserve(u64::from(bytes), options.shared),
    };
    let spans = staged::spans(module, staging.map(|s| s.0));
    let resident = resident(threads, staging.is_some(), !homes.displaced.is_empty());
    let abi = Abi {
        tensors: module.tensors.len(),
        params,
        rank,
        threads,
        shared: homes.shared,
        scratch: homes.scratch,
        raster: module.raster,
        spans: spans.clone(),
        cluster: 1,
        gemm: None,
        arrays: Vec::new(),
    };
    let mut emit = Emit::new(module, threads, homes);
    emit.staging = staging;
    emit.words = words;
    emit.plan_residents();
    let narrow = emit.residents.any_narrow();
    emit.intervals = intervals(module, &spans);
    let internal = |e: ptoc_ptx::Error| Refused::new(RefusalCode::Internal, Span::default(), e.to_string());
    let (mut kernel, sites, checks) = emit.kernel(&spans)?;
    kernel.resident = resident.or(narrow.then(|| resident_narrow(threads, abi.shared)));
    ptoc_ptx::verify(&kernel).map_err(internal)?;
    Ok(Compiled { kernel, abi, sites, checks })
}

/// A name that PTX takes.
pub(crate) fn name(text: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    format!("ptoc_{}", text.chars().map(plain).collect::<String>())
}

impl<'a> Emit<'a> {
    pub(crate) fn new(module: &'a Module, threads: u32, homes: Homes) -> Emit<'a> {
        let mut b = Builder::new(name(&module.name), threads);
        let nothing = b.reg(Class::B32);
        let done = b.label();
        let demands = Demands::new(&module.block, &homes.segments);
        let mut emit = Emit {
            b,
            module,
            func: &module.block,
            threads,
            homes,
            values: SecondaryMap::new(),
            vars: SecondaryMap::new(),
            labels: FxHashMap::default(),
            tensors: Vec::new(),
            smem: nothing,
            scratch: nothing,
            tid: nothing,
            first: nothing,
            block: nothing,
            status: nothing,
            done,
            lane: None,
            staging: None,
            tells: false,
            words: None,
            checks: false,
            residents: Residents::default(),
            intervals: SecondaryMap::new(),
            factors: Factors::new(&module.block),
            solo: false,
            pending: Touched::default(),
            broadcast: FxHashSet::default(),
            aligned_rows: FxHashMap::default(),
            halves: FxHashMap::default(),
            loaded: FxHashMap::default(),
            rounded: rounded_sums(&module.block),
            demands,
            used: FxHashSet::default(),
            span: Span::default(),
            sites: vec![Span::default()],
        };
        emit.look(&module.block.body);
        emit
    }

    /// What has to be known of the code before it is emitted.
    fn look(&mut self, region: &Region) {
        for stmt in region {
            if let Op::Atomic(a) = &stmt.op
                && let Base::Tensor(n) = a.addr.base
            {
                self.broadcast.insert(Key::Tensor(n));
            }
            crate::control::reads(&stmt.op, &mut |reg| {
                self.used.insert(reg);
            });
            stmt.op.regions().for_each(|r| self.look(r));
        }
    }

    /// What the next instructions are made for.
    pub(crate) fn at(&mut self, span: Span) {
        self.span = span;
        if self.sites.last() != Some(&span) {
            self.sites.push(span);
        }
        self.b.site = (self.sites.len() - 1) as u32;
    }

    pub(crate) fn refuse<T>(&self, code: RefusalCode, message: impl Into<String>) -> Result<T, Refused> {
        Err(Refused::new(code, self.span, message))
    }

    /// The whole kernel.
    /// The kernel, the sources of its sites, and whether it has checks.
    fn kernel(mut self, spans: &[u64]) -> Result<(PtxKernel, Vec<Span>, bool), Refused> {
        let smem = Symbol { name: "smem".into(), space: Space::Shared, align: 128, size: None };
        let smem = self.b.symbol(smem);
        let module = self.module;
        let prefix = name(&module.name);
        let count = module.tensors.len();
        let rank = module.launch.results.len();
        let total = count + module.launch.params.len() + rank + 3;
        let params: Vec<u32> = (0..total).map(|n| self.b.param(format!("{prefix}_{n}"), Type::U64)).collect();
        let mut loaded = Vec::new();
        for param in params {
            let address = Address::param(param);
            loaded.push(self.b.ld(Space::Param, Type::U64, address));
        }
        let global = |e: &mut Self, reg: VReg| {
            let out = e.b.reg(Class::B64);
            e.b.push(Ptx::CvtaTo(Space::Global), &[out], &[reg.into()]);
            out
        };
        self.tensors = loaded[..count].iter().map(|r| global(&mut self, *r)).collect();
        let launch = &loaded[count..count + module.launch.params.len()];
        let extents = &loaded[total - 3 - rank..total - 3];
        let blocks = loaded[total - 3];
        self.status = global(&mut self, loaded[total - 2]);
        let scratch = global(&mut self, loaded[total - 1]);
        self.smem = self.b.mov(Type::U32, Src::Symbol(smem));
        self.tid = self.b.mov(Type::U32, Src::Special(Special::Tid));
        self.first = self.b.setp(Cmp::Eq, Type::U32, self.tid, Src::Imm(0));
        let cta = self.b.mov(Type::U32, Src::Special(Special::Ctaid));
        let ctas = self.b.mov(Type::U32, Src::Special(Special::Nctaid));
        let cta = self.b.cvt(Type::U64, Type::U32, Round::None, cta);
        let ctas = self.b.cvt(Type::U64, Type::U32, Round::None, ctas);
        let bytes = Src::Imm(self.homes.scratch);
        self.scratch = self.b.arith(Arith::MadLo, Type::U64, &[cta.into(), bytes, scratch.into()]);
        self.block = self.b.reg(Class::B64);
        self.b.set(self.block, Type::B64, cta);
        let head = self.b.label();
        self.b.place(head);
        let over = self.b.setp(Cmp::Ge, Type::U64, self.block, blocks);
        self.b.bra_if(over, true, self.done);

        let mut coords = raster::coordinates(&mut self.b, self.block, extents, module.raster);
        for (coord, span) in coords.iter_mut().zip(spans).filter(|(_, span)| **span > 1) {
            *coord = self.u64(Arith::MulLo, *coord, Src::Imm(*span));
        }
        for (reg, value) in module.block.params.iter().zip(launch.iter().chain(&coords)) {
            self.values[*reg] = Some(Val::Reg(*value));
        }
        for (reg, span) in module.block.params.iter().skip(launch.len() + rank).zip(spans) {
            self.values[*reg] = Some(Val::Known(*span));
        }
        for (var, data) in &module.block.vars {
            let reg = self.b.reg(class(data.ty));
            self.b.set(reg, whole(data.ty), Src::Imm(0));
            self.vars[var] = Some(reg);
        }
        self.region(&module.block.body)?;
        self.at(Span::default());
        if self.blocks_share_memory() {
            self.b.push(Ptx::Bar(0), &[], &[]);
        }
        let next = [Src::Reg(self.block), Src::Reg(ctas)];
        self.b.push(Ptx::Arith(Arith::Add, Type::U64), &[self.block], &next);
        self.b.bra(head);
        self.b.place(self.done);
        self.b.push(Ptx::Ret, &[], &[]);
        Ok((self.b.finish(), self.sites, self.checks))
    }

    /// Whether a block touches memory that the CTA's next block may touch as well. Then a barrier stands between them.
    /// Blocks write no element of an array that another block reads or writes, unless it is updated atomically.
    fn blocks_share_memory(&self) -> bool {
        let mut all = Touched::default();
        of_region(&self.module.block.body, self.keys(), &mut all);
        let tensors = |set: &FxHashSet<Key>| set.iter().all(|key| matches!(key, Key::Tensor(_)));
        let private = [&all.reads, &all.writes, &all.solo_reads, &all.solo_writes].into_iter().all(tensors);
        let written: Vec<&Key> = all.writes.iter().chain(&all.solo_writes).collect();
        let words = self.words.is_some() || self.tells;
        let read_too = written.iter().any(|key| all.reads.contains(key) || all.solo_reads.contains(key));
        !private || read_too || words
    }

    /// Quotient and remainder of numbers without sign.
    pub(crate) fn div_rem(&mut self, a: Src, b: Src) -> (VReg, VReg) {
        raster::div_rem(&mut self.b, a, b)
    }

    pub(crate) fn u64(&mut self, op: Arith, a: impl Into<Src>, b: impl Into<Src>) -> VReg {
        self.b.arith(op, Type::U64, &[a.into(), b.into()])
    }

    pub(crate) fn keys(&self) -> Keys<'_> {
        Keys { segments: &self.homes.segments, broadcast: &self.broadcast, displaced: &self.homes.displaced }
    }

    /// Before something is touched: a barrier, if it must not come before what was touched.
    pub(crate) fn order(&mut self, next: &Touched) {
        if self.solo {
            return;
        }
        if self.pending.conflicts(next) {
            self.b.push(Ptx::Bar(0), &[], &[]);
            self.pending = Touched::default();
        }
        self.pending.add(next);
    }

    /// Bits of a register that are known.
    pub(crate) fn known(&self, reg: Reg) -> Option<u64> {
        match self.values[reg] {
            Some(Val::Known(bits)) => Some(bits),
            _ => None,
        }
    }

    /// A register as an operand. Predicates are never numbers.
    pub(crate) fn src(&mut self, reg: Reg) -> Src {
        match self.values[reg] {
            Some(Val::Known(bits)) if self.func.regs[reg].ty != LTy::Bool => Src::Imm(bits),
            _ => Src::Reg(self.reg(reg)),
        }
    }

    /// A register as a register.
    pub(crate) fn reg(&mut self, reg: Reg) -> VReg {
        let ty = self.func.regs[reg].ty;
        match self.values[reg] {
            Some(Val::Reg(reg)) => reg,
            Some(Val::Known(bits)) => self.b.mov(whole(ty), Src::Imm(bits)),
            None => unreachable!("the verifier saw a definition before every use"),
        }
    }

    pub(crate) fn define(&mut self, reg: Reg, value: VReg) {
        self.values[reg] = Some(Val::Reg(value));
    }

    /// Unless `cond`: the CTA leaves its arguments, the status learns of it, and the CTA is done.
    pub(crate) fn check(&mut self, cond: Reg, check: u32, args: &[Reg]) {
        self.checks = true;
        let on = self.b.label();
        let cond = self.reg(cond);
        self.b.bra_if(cond, true, on);
        self.b.bra_if(self.first, false, self.done);
        let cta = self.b.mov(Type::U32, Src::Special(Special::Ctaid));
        let words = [cta.into(), Src::Imm(8 * SLOT as u64), self.status.into()];
        let slot = self.b.arith(Arith::MadWide, Type::U32, &words);
        let count = self.b.mov(Type::B64, Src::Imm(args.len() as u64));
        let word = |n: i32| Address { disp: 8 * (1 + n), ..Address::at(slot) };
        self.b.st(Space::Global, Type::B64, word(0), count);
        for (n, arg) in args.iter().enumerate() {
            let value = self.reg(*arg);
            self.b.st(Space::Global, Type::B64, word(1 + n as i32), value);
        }
        let number = self.b.arith(Arith::Shl, Type::B64, &[self.block.into(), Src::Imm(32)]);
        let number = self.b.arith(Arith::Or, Type::B64, &[number.into(), Src::Imm(u64::from(check))]);
        let old = self.b.reg(Class::B64);
        let at = Src::Addr(Address::at(self.status));
        let min = Ptx::Atom(Space::Global, ptoc_ptx::AtomOp::Min, Type::U64);
        self.b.push(min, &[old], &[at, number.into()]);
        self.b.bra(self.done);
        self.b.place(on);
    }
}
