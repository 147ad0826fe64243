//! The verifier of loop IR: everything that the emitters rely on.
//!
//! Types of every operation; registers defined once, before use, visible only in their region; straight-line lanes
//! with uniform offsets; labels; references into the module's tables. What it cannot see is whether addresses stay
//! inside their memory: tile IR says that, where `ptoc_checks::bounds` proves each access or puts a check in front of
//! it. The module's table of bounds tells by what. Here it is held to two things: the block function has the checks
//! that it names, and it tells of each tensor that the block function touches. (Not of each statement: the lowering
//! makes one of several.)

use super::{
    Addr, Atomic, Base, BinOp, Bounded, Cast, CmpOp, Contract, For, Func, FunctionEntry, Gather, LTy, Label, Lanes,
    MERGED, MemTy, Merge, Module, Op, PrintPart, Reduce, Reg, Region, SharedInfo, Sort, Start, Stride, UnOp, VarId,
    fields,
};
use cranelift_entity::{EntityRef, SecondaryMap};
use ptoc_diagnostics::{Code, Diagnostic, Span, codes};
use ptoc_isa::AtomicOp;
use rustc_hash::FxHashSet;
use smol_str::SmolStr;
use std::fmt::Display;

/// Deepest nesting of regions: the passes recurse over them, on stacks of 2 MiB too.
pub const MAX_DEPTH: usize = 100;

/// Reports that one module gets at most.
const MAX_ERRORS: usize = 20;

/// Checks a module.
///
/// # Errors
/// Up to twenty reports, each with the span of its statement.
pub fn verify(module: &Module) -> Result<(), Vec<Diagnostic>> {
    let mut errors = Vec::new();
    tables(module, &mut errors);
    let mut found = vec![false; module.checks.len()];
    let bounded: FxHashSet<&SmolStr> = module.bounds.iter().map(|row| &row.what).collect();
    for func in [&module.launch, &module.block] {
        found.fill(false);
        Verifier {
            module,
            func,
            errors: &mut errors,
            state: SecondaryMap::new(),
            visible: Vec::new(),
            labels: Vec::new(),
            used_labels: SecondaryMap::new(),
            lanes: None,
            span: Span::default(),
            found: &mut found,
            bounded: (func.entry == FunctionEntry::Block && !bounded.is_empty()).then_some(&bounded),
        }
        .function();
    }
    named_checks(module, &found, &mut errors);
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

/// The table of bounds names checks that the block function has.
fn named_checks(module: &Module, found: &[bool], errors: &mut Vec<Diagnostic>) {
    for row in &module.bounds {
        let Bounded::Checks(named) = &row.by else { continue };
        for n in named.iter().filter(|n| !found.get(**n as usize).is_some_and(|found| *found)) {
            let message = format!("`{}` is in bounds by check {n}, which the block function does not have", row.what);
            errors.push(Diagnostic::error(codes::LOOP_IR_REFERENCE, row.span, message));
        }
    }
}

fn tables(module: &Module, errors: &mut Vec<Diagnostic>) {
    let mut bad = |message: String| errors.push(Diagnostic::global(codes::LOOP_IR_REFERENCE, message));
    for (space, data) in &module.spaces {
        let end = data.offset.checked_add(data.size);
        if data.offset % 64 != 0 || data.size % 64 != 0 || end.is_none_or(|end| end > module.arena) {
            bad(format!(
                "space {space} `{}` at {} with {} bytes: both must be multiples of 64 inside the arena of {} bytes",
                data.name, data.offset, data.size, module.arena
            ));
        }
    }
    if i64::try_from(module.arena).is_err() {
        bad(format!("an arena of {} bytes", module.arena));
    }
    if module.launch.entry != FunctionEntry::Launch || module.block.entry != FunctionEntry::Block {
        bad("the module's functions are not a launch and a block function".into());
    }
    let (launch, block) = (&module.launch, &module.block);
    let spans = if module.spread.is_empty() { 0 } else { launch.results.len() };
    let expected = launch.params.len() + launch.results.len() + spans;
    if block.params.len() != expected {
        bad(format!(
            "the block function has {} parameters; the launch function's {}, its {} extents and {spans} numbers of \
             blocks make {expected}",
            block.params.len(),
            launch.params.len(),
            launch.results.len(),
        ));
    }
    if let Some(dim) = module.spread.iter().find(|d| **d as usize >= launch.results.len()) {
        bad(format!("blocks join along dimension {dim} of a grid of {}", launch.results.len()));
    }
    if let Some(raster) = module.raster.filter(|r| r.along as usize >= launch.results.len() || r.swizzle == 0) {
        let rank = launch.results.len();
        bad(format!("a raster along dimension {} of a grid of {rank}, {} abreast", raster.along, raster.swizzle));
    }
    if !module.cluster.is_empty() && (module.cluster.len() != launch.results.len() || module.cluster.contains(&0)) {
        bad(format!("clusters of {:?} blocks in a grid of {}", module.cluster, launch.results.len()));
    }
    if !block.results.is_empty() {
        bad("a block function has no results".into());
    }
}

/// What is known of a register at the point at hand.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum RegisterState {
    #[default]
    Undefined,
    Visible,
    /// Its region has ended.
    Gone,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum LabelKind {
    Loop,
    Scope,
}

struct Verifier<'a> {
    module: &'a Module,
    func: &'a Func,
    errors: &'a mut Vec<Diagnostic>,
    state: SecondaryMap<Reg, RegisterState>,
    /// Registers in the order of their definitions; a region cuts it back when it ends.
    visible: Vec<Reg>,
    /// The enclosing labels.
    labels: Vec<(Label, LabelKind)>,
    used_labels: SecondaryMap<Label, bool>,
    /// Inside `Lanes`: what differs between lanes.
    lanes: Option<SharedInfo>,
    span: Span,
    /// Which rows of the check table the function has a check for.
    found: &'a mut [bool],
    /// What the table of bounds tells of, if it tells of anything and this is the block function.
    bounded: Option<&'a FxHashSet<&'a SmolStr>>,
}

impl Verifier<'_> {
    fn error(&mut self, code: Code, message: impl Display) {
        if self.errors.len() < MAX_ERRORS {
            let message = format!("in `{}`: {message}", self.func.name);
            self.errors.push(Diagnostic::error(code, self.span, message));
        }
    }

    fn function(mut self) {
        for &reg in &self.func.params {
            self.define(reg, &[LTy::I64], "a parameter");
        }
        self.statements(&self.func.body, 0);
        self.span = Span::default();
        for &reg in &self.func.results {
            self.read(reg, &[LTy::I64], "a result");
        }
    }

    fn ty(&self, reg: Reg) -> Option<LTy> {
        self.func.regs.get(reg).map(|data| data.ty)
    }

    /// A use of `reg`; `types` may be empty for any type.
    fn read(&mut self, reg: Reg, types: &[LTy], what: &str) -> Option<LTy> {
        let Some(ty) = self.ty(reg) else {
            self.error(codes::LOOP_IR_REFERENCE, format_args!("{what}: there is no register {reg}"));
            return None;
        };
        match self.state[reg] {
            RegisterState::Visible => {}
            RegisterState::Undefined => {
                self.error(codes::LOOP_IR_DEFINITION, format_args!("{what}: {reg} has no value yet"));
            }
            RegisterState::Gone => {
                let message = format_args!("{what}: {reg} belongs to a region that has ended");
                self.error(codes::LOOP_IR_DEFINITION, message);
            }
        }
        if !types.is_empty() && !types.contains(&ty) {
            let wanted: Vec<&str> = types.iter().map(|t| t.name()).collect();
            self.error(codes::LOOP_IR_TYPE, format_args!("{what}: {reg} is {ty}, {} is needed", wanted.join(" or ")));
            return None;
        }
        Some(ty)
    }

    fn define(&mut self, reg: Reg, types: &[LTy], what: &str) {
        let Some(ty) = self.ty(reg) else {
            return self.error(codes::LOOP_IR_REFERENCE, format_args!("{what}: there is no register {reg}"));
        };
        if self.state[reg] != RegisterState::Undefined {
            self.error(codes::LOOP_IR_DEFINITION, format_args!("{what}: {reg} is defined twice"));
        }
        if !types.is_empty() && !types.contains(&ty) {
            let wanted: Vec<&str> = types.iter().map(|t| t.name()).collect();
            self.error(codes::LOOP_IR_TYPE, format_args!("{what}: {reg} is {ty}, not {}", wanted.join(" or ")));
        }
        self.state[reg] = RegisterState::Visible;
        self.visible.push(reg);
    }

    /// Operands of one type, and a result of it.
    fn same(&mut self, dst: Reg, inputs: &[Reg], types: &[LTy], what: &str) {
        let mut first = None;
        for &reg in inputs {
            let wanted = first.map_or_else(|| types.to_vec(), |ty| vec![ty]);
            let ty = self.read(reg, &wanted, what);
            first = first.or(ty);
        }
        let wanted = first.map_or_else(|| types.to_vec(), |ty| vec![ty]);
        self.define(dst, &wanted, what);
    }

    fn region(&mut self, region: &Region, depth: usize) {
        let mark = self.visible.len();
        self.statements(region, depth);
        self.close(mark);
    }

    fn close(&mut self, mark: usize) {
        for reg in self.visible.drain(mark..) {
            self.state[reg] = RegisterState::Gone;
        }
    }

    fn statements(&mut self, region: &Region, depth: usize) {
        if depth > MAX_DEPTH {
            let message = format_args!("regions are nested more than {MAX_DEPTH} deep");
            return self.error(codes::LOOP_IR_CONTROL, message);
        }
        for stmt in region {
            self.span = stmt.span;
            self.statement(&stmt.op, depth);
        }
    }

    fn statement(&mut self, op: &Op, depth: usize) {
        if self.lanes.is_some() && !straight(op) {
            let message = "`lanes` holds only arithmetic, loads and stores";
            return self.error(codes::LOOP_IR_LANES, message);
        }
        match op {
            Op::Const { dst, .. } => self.define(*dst, &[], "const"),
            Op::Unary { dst, op, a } => self.same(*dst, &[*a], unary_types(*op), op.name()),
            Op::Binary { dst, op, a, b } => self.same(*dst, &[*a, *b], binary_types(*op), op.name()),
            Op::Fma { dst, a, b, c } => self.same(*dst, &[*a, *b, *c], &[LTy::F32], "fma"),
            Op::Compare { dst, op, a, b } => {
                let ty = self.read(*a, compare_types(*op), op.name());
                let wanted = ty.map_or_else(|| compare_types(*op).to_vec(), |ty| vec![ty]);
                self.read(*b, &wanted, op.name());
                self.define(*dst, &[LTy::Bool], op.name());
            }
            Op::Select { dst, cond, a, b } => {
                self.read(*cond, &[LTy::Bool], "the condition of select");
                self.same(*dst, &[*a, *b], &[], "select");
            }
            Op::Cast { dst, op, a } => {
                let from = self.read(*a, cast_from(*op), op.name());
                self.define(*dst, &cast_to(*op, from), op.name());
            }
            Op::Get { dst, var } => {
                let ty = self.var(*var, "get");
                self.define(*dst, &Vec::from_iter(ty), "get");
            }
            Op::Set { var, value } => {
                let ty = self.var(*var, "set");
                self.read(*value, &Vec::from_iter(ty), "set");
            }
            Op::Load { dst, ty, addr } => {
                self.addr(addr, "load");
                self.in_statement(*ty, "load");
                self.define(*dst, &[ty.reg()], "load");
            }
            Op::Store { ty, addr, value } => {
                self.addr(addr, "store");
                self.in_statement(*ty, "store");
                self.read(*value, &[ty.reg()], "store");
            }
            Op::Fetch { addr, .. } => {
                self.addr(addr, "fetch");
                if self.lanes.is_none() {
                    self.error(codes::LOOP_IR_LANES, "fetch: what may be wanted is that of lanes");
                }
            }
            Op::Join { op, ty, addr, value } => self.join(*op, *ty, addr, *value),
            Op::Nibble { dst, addr, moves } => {
                self.addr(addr, "nibble");
                self.define(*dst, &[LTy::I32], "nibble");
                if self.lanes.is_none() || addr.stride != Stride::Const(0) || addr.gather.is_some() {
                    self.error(codes::LOOP_IR_LANES, "nibble: words begin at one address, and are those of lanes");
                }
                if moves.iter().map(|n| u32::from(*n)).sum::<u32>() > 7 {
                    self.error(codes::LOOP_IR_TYPE, "nibble: a word has eight half bytes");
                }
            }
            Op::Atomic(atomic) => self.atomic(atomic),
            Op::For(f) => self.counted(f, depth),
            Op::Lanes(lanes) => self.lanes(lanes, depth),
            Op::If(i) => {
                self.read(i.cond, &[LTy::Bool], "the condition of if");
                self.region(&i.then, depth + 1);
                self.region(&i.els, depth + 1);
            }
            Op::While(w) => {
                self.label(w.label, LabelKind::Loop);
                let mark = self.visible.len();
                self.statements(&w.head, depth + 1);
                self.read(w.cond, &[LTy::Bool], "the condition of while");
                self.statements(&w.body, depth + 1);
                self.close(mark);
                self.labels.pop();
            }
            Op::Scope(s) => {
                self.label(s.label, LabelKind::Scope);
                self.region(&s.body, depth + 1);
                self.labels.pop();
            }
            Op::Break(label) => self.target(*label, LabelKind::Loop, "break"),
            Op::Continue(label) => self.target(*label, LabelKind::Loop, "continue"),
            Op::Leave(label) => self.target(*label, LabelKind::Scope, "leave"),
            Op::Contract(c) => self.contract(c),
            Op::Reduce(r) => self.reduce(r),
            Op::Gather(g) => self.gather(g),
            Op::Sort(s) => self.sort(s),
            Op::Merge(m) => self.merge(m),
            Op::Check { cond, check, args } => {
                self.read(*cond, &[LTy::Bool], "the condition of check");
                if let Some(found) = self.found.get_mut(*check as usize) {
                    *found = true;
                } else {
                    self.error(codes::LOOP_IR_REFERENCE, format_args!("there is no check {check}"));
                }
                if args.len() > 4 {
                    self.error(codes::LOOP_IR_TYPE, format_args!("check takes at most 4 numbers, not {}", args.len()));
                }
                for &arg in args {
                    self.read(arg, &[LTy::I64], "an argument of check");
                }
            }
            Op::Watch(w) => {
                for &arg in &w.args {
                    self.read(arg, &[LTy::I64], "an argument of watch");
                }
                for (addr, _) in &w.data {
                    self.addr(addr, "watch");
                }
            }
            Op::Print { parts } => self.print(parts),
        }
    }

    fn var(&mut self, var: VarId, what: &str) -> Option<LTy> {
        let ty = self.func.vars.get(var).map(|data| data.ty);
        if ty.is_none() {
            self.error(codes::LOOP_IR_REFERENCE, format_args!("{what}: there is no variable {var}"));
        }
        ty
    }

    fn stride(&mut self, stride: Stride, what: &str) {
        if let Stride::Reg(reg) = stride {
            self.read(reg, &[LTy::I64], &format!("a stride of {what}"));
        }
    }

    fn addr(&mut self, addr: &Addr, what: &str) {
        if let (Base::Tensor(n), Some(bounded)) = (addr.base, self.bounded)
            && let Some(name) = self.module.tensors.get(n as usize)
            && !bounded.contains(name)
        {
            self.error(
                codes::LOOP_IR_REFERENCE,
                format_args!("{what}: nothing says by what accesses of `{name}` are in bounds"),
            );
        }
        match addr.base {
            Base::Tensor(n) if n as usize >= self.module.tensors.len() => {
                self.error(codes::LOOP_IR_REFERENCE, format_args!("{what}: there is no tensor t{n}"));
            }
            Base::Space(space) if !self.module.spaces.is_valid(space) => {
                self.error(codes::LOOP_IR_REFERENCE, format_args!("{what}: there is no space {space}"));
            }
            _ => {}
        }
        self.read(addr.offset, &[LTy::I64], "the offset of an address");
        let differs = |v: &Self, reg: Reg| v.lanes.as_ref().is_some_and(|info| !info.is_shared(reg));
        if differs(self, addr.offset) {
            let message = format_args!("{what}: the offset {} differs between lanes; use `gather`", addr.offset);
            self.error(codes::LOOP_IR_LANES, message);
        }
        if let Stride::Reg(reg) = addr.stride {
            self.read(reg, &[LTy::I64], "the stride of an address");
            if differs(self, reg) {
                self.error(codes::LOOP_IR_LANES, format_args!("{what}: the stride {reg} differs between lanes"));
            }
        }
        if self.lanes.is_none() && addr.stride != Stride::Const(0) {
            self.error(codes::LOOP_IR_LANES, format_args!("{what}: a stride outside `lanes`"));
        }
        if let Some(gather) = addr.gather {
            self.read(gather, &[LTy::I64], "the gather of an address");
        }
    }

    fn in_statement(&mut self, ty: MemTy, what: &str) {
        if ty.is_f8() {
            self.error(codes::LOOP_IR_TYPE, format_args!("{what} of {}: statements have its bits, u8", ty.name()));
        }
    }

    fn atomic(&mut self, atomic: &Atomic) {
        self.addr(&atomic.addr, "atomic");
        let float = matches!(atomic.ty, MemTy::F32 | MemTy::F16 | MemTy::BF16)
            && matches!(atomic.op, AtomicOp::Add | AtomicOp::Max | AtomicOp::Min);
        let integer = matches!(atomic.ty.reg(), LTy::I32 | LTy::I64);
        if !integer && !float {
            let message = format_args!("atomic {} on {}", atomic.op, atomic.ty.name());
            self.error(codes::LOOP_IR_TYPE, message);
        }
        let ty = [atomic.ty.reg()];
        self.read(atomic.value, &ty, "the operand of atomic");
        if atomic.expected.is_some() != (atomic.op == AtomicOp::Cas) {
            self.error(codes::LOOP_IR_TYPE, "atomic: `expected` belongs to cas, and to nothing else");
        }
        if let Some(expected) = atomic.expected {
            self.read(expected, &ty, "the expected value of atomic");
        }
        self.define(atomic.dst, &ty, "atomic");
    }

    fn counted(&mut self, f: &For, depth: usize) {
        self.read(f.lo, &[LTy::I64], "the start of for");
        self.read(f.hi, &[LTy::I64], "the end of for");
        if f.step <= 0 {
            self.error(codes::LOOP_IR_CONTROL, format_args!("for: a step of {}", f.step));
        }
        self.label(f.label, LabelKind::Loop);
        let mark = self.visible.len();
        self.define(f.index, &[LTy::I64], "the index of for");
        self.statements(&f.body, depth + 1);
        self.close(mark);
        self.labels.pop();
    }

    fn lanes(&mut self, lanes: &Lanes, depth: usize) {
        self.read(lanes.count, &[LTy::I64], "the count of lanes");
        let mark = self.visible.len();
        self.define(lanes.lane, &[LTy::I64], "the lane");
        self.lanes = Some(SharedInfo::new(lanes));
        self.statements(&lanes.body, depth + 1);
        self.lanes = None;
        self.close(mark);
    }

    fn label(&mut self, label: Label, kind: LabelKind) {
        if label.index() >= self.func.labels.len() {
            self.error(codes::LOOP_IR_REFERENCE, format_args!("there is no label {label}"));
        } else if std::mem::replace(&mut self.used_labels[label], true) {
            self.error(codes::LOOP_IR_CONTROL, format_args!("{label} labels two statements"));
        }
        self.labels.push((label, kind));
    }

    fn target(&mut self, label: Label, kind: LabelKind, what: &str) {
        if !self.labels.contains(&(label, kind)) {
            let wanted = if kind == LabelKind::Loop { "loop" } else { "scope" };
            self.error(codes::LOOP_IR_CONTROL, format_args!("{what}: {label} is no enclosing {wanted}"));
        }
    }

    fn reduce(&mut self, r: &Reduce) {
        self.read(r.rows, &[LTy::I64], "the rows of reduce");
        self.read(r.cols, &[LTy::I64], "the columns of reduce");
        self.addr(&r.d, "reduce");
        self.addr(&r.a, "reduce");
        if !Reduce::exists(r.op, r.ty) {
            let message = format_args!("reduce: there is no {} of {}", r.op.name(), r.ty.name());
            self.error(codes::LOOP_IR_TYPE, message);
        }
    }

    fn gather(&mut self, g: &Gather) {
        let counts =
            [(g.rows, "the rows of gather"), (g.cols, "the columns of gather"), (g.total, "the table of gather")];
        for (reg, what) in counts {
            self.read(reg, &[LTy::I64], what);
        }
        let more = g.plus.iter().map(|p| &p.0).chain(g.places.iter().map(|p| &p.0));
        for addr in [&g.d, &g.table, &g.index].into_iter().chain(more) {
            self.addr(addr, "gather");
        }
        if g.ty.reg() == LTy::F32 {
            self.error(codes::LOOP_IR_TYPE, format_args!("gather: bits are moved, not {}", g.ty.name()));
        }
        if g.plus.is_some() && g.places.is_none() {
            self.error(codes::LOOP_IR_TYPE, "gather: what is added to indices goes with places of rows");
        }
        self.define(g.dst, &[LTy::I64], "gather");
    }

    fn sort(&mut self, s: &Sort) {
        self.read(s.rows, &[LTy::I64], "the rows of sort");
        self.read(s.cols, &[LTy::I64], "the columns of sort");
        for addr in [&s.d, &s.a, &s.index] {
            self.addr(addr, "sort");
        }
        self.record(s.ty, "sort");
    }

    fn merge(&mut self, m: &Merge) {
        for reg in m.counts() {
            self.read(reg, &[LTy::I64], "a count of merge");
        }
        self.addr(&m.d, "merge");
        for records in m.read() {
            self.addr(&records.at, "merge");
        }
        self.record(m.ty, "merge");
        if m.read().len() > MERGED {
            let message = format_args!("merge: {} lists, {MERGED} are the most", m.read().len());
            self.error(codes::LOOP_IR_TYPE, message);
        }
    }

    fn record(&mut self, ty: MemTy, what: &str) {
        if fields(ty).is_none() {
            self.error(codes::LOOP_IR_TYPE, format_args!("{what}: records of {}, f32 or f16 is needed", ty.name()));
        }
    }

    fn join(&mut self, op: BinOp, ty: MemTy, addr: &Addr, value: Reg) {
        self.addr(addr, "join");
        self.read(value, &[ty.reg()], "join");
        if self.lanes.is_none() || addr.stride != Stride::Const(0) || addr.gather.is_some() {
            self.error(codes::LOOP_IR_LANES, "join: partials are at one address, and those of lanes");
        }
        if !Reduce::exists(op, ty) || !matches!(ty, MemTy::F32 | MemTy::I32) {
            self.error(codes::LOOP_IR_TYPE, format_args!("join: there is no {} of {} partials", op.name(), ty.name()));
        }
    }

    fn contract(&mut self, c: &Contract) {
        for (reg, what) in
            [(c.m, "the rows of contract"), (c.n, "the columns of contract"), (c.k, "the depth of contract")]
        {
            self.read(reg, &[LTy::I64], what);
        }
        for reg in c.part_of.into_iter().flatten() {
            self.read(reg, &[LTy::I64], "what contract is a part of");
        }
        for addr in [&c.d, &c.a, &c.b] {
            self.addr(addr, "contract");
        }
        let ty = c.ab_ty.reg();
        for (x, y) in [c.d_strides, c.a_strides, c.b_strides] {
            self.stride(x, "contract");
            self.stride(y, "contract");
        }
        if !matches!(c.ab_ty, MemTy::F32 | MemTy::F16 | MemTy::BF16 | MemTy::I32 | MemTy::I8) {
            let message = format_args!("contract: operands of {}, f32, f16, bf16, i32 or i8 is needed", c.ab_ty.name());
            self.error(codes::LOOP_IR_TYPE, message);
        }
        if c.d_ty.reg() != ty {
            let message = format_args!("contract: the product is {ty}, the result {}", c.d_ty.name());
            self.error(codes::LOOP_IR_TYPE, message);
        }
        if let Start::At { addr, ty: start, row, col } = &c.start {
            self.addr(addr, "contract");
            self.stride(*row, "contract");
            self.stride(*col, "contract");
            if start.reg() != ty {
                let message = format_args!("contract: the product is {ty}, the start {}", start.name());
                self.error(codes::LOOP_IR_TYPE, message);
            }
        }
    }

    fn print(&mut self, parts: &[PrintPart]) {
        for part in parts {
            match part {
                PrintPart::Text(_) => {}
                PrintPart::Scalar { value, ty, .. } => {
                    self.in_statement(*ty, "print");
                    self.read(*value, &[ty.reg()], "print");
                }
                PrintPart::Matrix { addr, rows, cols, .. } => {
                    self.addr(addr, "print");
                    self.read(*rows, &[LTy::I64], "the rows of print");
                    self.read(*cols, &[LTy::I64], "the columns of print");
                }
            }
        }
    }
}

/// Whether the operation may stand in `lanes`.
fn straight(op: &Op) -> bool {
    matches!(
        op,
        Op::Const { .. }
            | Op::Unary { .. }
            | Op::Binary { .. }
            | Op::Fma { .. }
            | Op::Compare { .. }
            | Op::Select { .. }
            | Op::Cast { .. }
            | Op::Load { .. }
            | Op::Store { .. }
            | Op::Fetch { .. }
            | Op::Join { .. }
            | Op::Nibble { .. }
    )
}

/// Types that a unary operation has.
pub(crate) fn unary_types(op: UnOp) -> &'static [LTy] {
    match op {
        UnOp::Neg | UnOp::Abs => &[LTy::I32, LTy::I64, LTy::F32],
        UnOp::Not => &[LTy::I32, LTy::I64, LTy::Bool],
        _ => &[LTy::F32],
    }
}

/// Types that a binary operation has.
pub(crate) fn binary_types(op: BinOp) -> &'static [LTy] {
    match op {
        BinOp::Add | BinOp::Sub | BinOp::Mul | BinOp::Div | BinOp::Max | BinOp::Min => &[LTy::I32, LTy::I64, LTy::F32],
        BinOp::And | BinOp::Or | BinOp::Xor => &[LTy::I32, LTy::I64, LTy::Bool],
        BinOp::Scale => &[LTy::F32],
        _ => &[LTy::I32, LTy::I64],
    }
}

/// Types that a comparison has.
pub(crate) fn compare_types(op: CmpOp) -> &'static [LTy] {
    match op {
        CmpOp::Eq | CmpOp::Ne => &[LTy::I32, LTy::I64, LTy::F32, LTy::Bool],
        CmpOp::Lt | CmpOp::Le | CmpOp::Gt | CmpOp::Ge => &[LTy::I32, LTy::I64, LTy::F32],
        _ => &[LTy::I32, LTy::I64],
    }
}

/// Types that a cast takes.
pub(crate) fn cast_from(op: Cast) -> &'static [LTy] {
    match op {
        Cast::Sext | Cast::Zext | Cast::IToB => &[LTy::I32],
        Cast::Wrap => &[LTy::I64],
        Cast::IToF | Cast::UToF => &[LTy::I32, LTy::I64],
        Cast::FToI32 | Cast::FToU32 | Cast::FToI64 | Cast::FToU64 => &[LTy::F32],
        Cast::Bits => &[LTy::F32, LTy::I32],
        Cast::BToI => &[LTy::Bool],
    }
}

/// What a cast of `from` gives.
pub(crate) fn cast_to(op: Cast, from: Option<LTy>) -> Vec<LTy> {
    match op {
        Cast::Sext | Cast::Zext | Cast::FToI64 | Cast::FToU64 => vec![LTy::I64],
        Cast::Wrap | Cast::FToI32 | Cast::FToU32 | Cast::BToI => vec![LTy::I32],
        Cast::IToF | Cast::UToF => vec![LTy::F32],
        Cast::Bits => match from {
            Some(LTy::F32) => vec![LTy::I32],
            Some(LTy::I32) => vec![LTy::F32],
            _ => vec![LTy::F32, LTy::I32],
        },
        Cast::IToB => vec![LTy::Bool],
    }
}
