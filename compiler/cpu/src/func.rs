//! A function: entry, structured control flow, scalars.

use crate::ending;
use crate::lanes::Rep;
use crate::link::Link;
use crate::listing::{Numbering, Sources};
use crate::routines::Available;
use crate::shape::{Shape, plain, scalar_type};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I32, I64};
use cranelift_codegen::ir::{Block, BlockArg, FuncRef, InstBuilder, MemFlagsData, SourceLoc, Value};
use cranelift_entity::SecondaryMap;
use cranelift_entity::packed_option::PackedOption;
use cranelift_frontend::{FunctionBuilder, Variable};
use cranelift_module::FuncId;
use ptoc_abi::{Frame, PrintItem};
use ptoc_diagnostics::Span;
use ptoc_ir::loops::{
    For, Func, FunctionEntry, If, Label, Module, Op, Reg, Region, Scope, SpaceId, Stmt, VarId, While,
};
use rustc_hash::FxHashMap;
use std::mem::offset_of;

/// Whether control reaches the point after a statement.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flow {
    On,
    Ended,
}

/// Where `break` (or `leave`) and `continue` go.
#[derive(Clone, Copy)]
struct Targets {
    exit: Block,
    next: Option<Block>,
}

/// Emission of one function. The module was verified, so every register is defined before it is used.
pub(crate) struct Emit<'a, 'b> {
    pub(crate) b: FunctionBuilder<'b>,
    pub(crate) module: &'a Module,
    pub(crate) func: &'a Func,
    /// The launch record.
    pub(crate) frame: Value,
    /// Data of the tensors.
    pub(crate) tensors: Vec<Value>,
    /// First byte of the arena.
    pub(crate) arena: Value,
    /// Scalar registers.
    regs: SecondaryMap<Reg, PackedOption<Value>>,
    /// Bits of the registers that are constants.
    pub(crate) known: SecondaryMap<Reg, Option<u64>>,
    /// Registers of the `Lanes` body at hand that differ between lanes.
    pub(crate) reps: SecondaryMap<Reg, Rep>,
    vars: SecondaryMap<VarId, PackedOption<VarRef>>,
    labels: FxHashMap<Label, Targets>,
    /// The `print` statements of the module so far.
    pub(crate) prints: &'a mut Vec<Vec<PrintItem>>,
    /// The space of partials, if only reductions read it.
    pub(crate) partials: Option<SpaceId>,
    /// `Lanes` may use vectors.
    pub(crate) vectors: bool,
    /// The routines that it may call.
    pub(crate) routines: Available,
    /// Lanes that the repetition at hand adds to the loop's index.
    pub(crate) ahead: i64,
    /// Functions that this one may call, and those that it calls. A function of its own calls none.
    pub(crate) link: Option<&'a mut Link>,
    pub(crate) callees: FxHashMap<FuncId, FuncRef>,
    /// The source of the statement at hand.
    pub(crate) span: Span,
    /// How instructions are marked with it.
    pub(crate) numbering: Numbering,
}

/// A Cranelift variable as an entity that packs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct VarRef(u32);
cranelift_entity::entity_impl!(VarRef);

impl<'a, 'b> Emit<'a, 'b> {
    pub(crate) fn new(
        b: FunctionBuilder<'b>,
        module: &'a Module,
        func: &'a Func,
        prints: &'a mut Vec<Vec<PrintItem>>,
        (vectors, routines): (bool, Available),
        link: Option<&'a mut Link>,
        numbering: Numbering,
    ) -> Emit<'a, 'b> {
        let nothing = Value::from_u32(0);
        Emit {
            b,
            module,
            func,
            frame: nothing,
            tensors: Vec::new(),
            arena: nothing,
            regs: SecondaryMap::new(),
            known: SecondaryMap::new(),
            reps: SecondaryMap::new(),
            vars: SecondaryMap::new(),
            labels: FxHashMap::default(),
            prints,
            partials: if link.is_some() { ending::partials(func) } else { None },
            vectors,
            routines,
            ahead: 0,
            link,
            callees: FxHashMap::default(),
            span: Span::default(),
            numbering,
        }
    }

    /// The source of the statement at hand, which what is around it goes back to behind it.
    pub(crate) fn here(&self) -> (Span, SourceLoc) {
        (self.span, self.b.srcloc())
    }

    pub(crate) fn back_to(&mut self, (span, number): (Span, SourceLoc)) {
        self.span = span;
        self.b.set_srcloc(number);
    }

    /// Marks what follows with the source of a statement (of lanes the n-th): with that of what is around it, if it has
    /// none.
    pub(crate) fn at(&mut self, stmt: &Stmt, n: usize, around: (Span, SourceLoc)) {
        self.span = if stmt.span == Span::default() { around.0 } else { stmt.span };
        self.b.set_srcloc(self.numbering.number(stmt.span, n).map_or(around.1, SourceLoc::new));
    }

    /// Emits the whole function.
    pub(crate) fn function(mut self) -> (FunctionBuilder<'b>, Sources) {
        let entry = self.b.create_block();
        self.b.append_block_params_for_function_params(entry);
        self.b.switch_to_block(entry);
        self.b.seal_block(entry);
        self.frame = self.b.block_params(entry)[0];
        // The record and its tables do not change while the function runs.
        let constant = plain().with_readonly().with_can_move();
        let field = |e: &mut Self, offset: usize| {
            let frame = e.frame;
            e.b.ins().load(I64, constant, frame, offset as i32)
        };
        let params = field(&mut self, offset_of!(Frame, params));
        let tensors = field(&mut self, offset_of!(Frame, tensors));
        self.arena = field(&mut self, offset_of!(Frame, arena));
        let coords = field(&mut self, offset_of!(Frame, coords));
        for n in 0..self.module.tensors.len() {
            let data = self.b.ins().load(I64, constant, tensors, 8 * n as i32);
            self.tensors.push(data);
        }
        let shared = self.module.launch.params.len();
        for (n, &reg) in self.func.params.iter().enumerate() {
            let (table, slot) = if n < shared { (params, n) } else { (coords, n - shared) };
            let value = self.b.ins().load(I64, constant, table, 8 * slot as i32);
            self.define(reg, value);
        }
        for (var, data) in &self.func.vars {
            let variable = self.b.declare_var(scalar_type(data.ty));
            let zero = self.constant(data.ty, 0);
            self.b.def_var(variable, zero);
            self.vars[var] = VarRef::from_u32(variable.as_u32()).into();
        }
        let func = self.func;
        if self.region(&func.body) == Flow::On {
            if func.entry == FunctionEntry::Launch {
                let results = field(&mut self, offset_of!(Frame, results));
                for (n, &reg) in func.results.iter().enumerate() {
                    let value = self.value(reg);
                    self.b.ins().store(MemFlagsData::trusted(), value, results, 8 * n as i32);
                }
            }
            let ok = self.b.ins().iconst(I32, 0);
            self.b.ins().return_(&[ok]);
        }
        self.b.seal_all_blocks();
        (self.b, self.numbering.sources())
    }

    /// The value of a scalar register.
    pub(crate) fn value(&self, reg: Reg) -> Value {
        self.regs[reg].expand().expect("the verifier saw a definition before every use")
    }

    pub(crate) fn define(&mut self, reg: Reg, value: Value) {
        self.regs[reg] = value.into();
    }

    fn variable(&self, var: VarId) -> Variable {
        let VarRef(index) = self.vars[var].expand().expect("every variable is declared at entry");
        Variable::from_u32(index)
    }

    pub(crate) fn region(&mut self, region: &Region) -> Flow {
        let around = self.here();
        let mut flow = Flow::On;
        let mut done = 0;
        while let Some(stmt) = region.get(done) {
            self.at(stmt, 0, around);
            if self.rows_that_end(&region[done..]) {
                done += ending::STATEMENTS;
                continue;
            }
            flow = self.statement(&stmt.op);
            if flow == Flow::Ended {
                break;
            }
            done += 1;
        }
        self.back_to(around);
        flow
    }

    fn statement(&mut self, op: &Op) -> Flow {
        match op {
            Op::Get { dst, var } => {
                let variable = self.variable(*var);
                let value = self.b.use_var(variable);
                self.define(*dst, value);
            }
            Op::Set { var, value } => {
                let (variable, value) = (self.variable(*var), self.value(*value));
                self.b.def_var(variable, value);
            }
            Op::Load { dst, ty, addr } => {
                let at = self.address(addr);
                let value = self.load_one(*ty, at);
                self.define(*dst, value);
            }
            Op::Store { ty, addr, value } => {
                let at = self.address(addr);
                let value = self.value(*value);
                self.store_one(*ty, value, at);
            }
            Op::Atomic(atomic) => self.atomic(atomic),
            Op::For(f) => {
                if !self.nest_of_loop(f) && !self.scan_of_loop(f) {
                    self.counted(f);
                }
            }
            Op::Lanes(lanes) => {
                if !self.nest_of_lanes(lanes) {
                    self.lanes(lanes);
                }
            }
            Op::If(i) => return self.conditional(i),
            Op::While(w) => self.conditional_loop(w),
            Op::Scope(s) => return self.scope(s),
            Op::Break(label) | Op::Leave(label) => {
                let exit = self.labels[label].exit;
                self.b.ins().jump(exit, &[]);
                return Flow::Ended;
            }
            Op::Continue(label) => {
                if let Some(next) = self.labels[label].next {
                    self.b.ins().jump(next, &[]);
                }
                return Flow::Ended;
            }
            Op::Contract(c) => self.contract(c),
            Op::Reduce(r) => self.reduce(r),
            Op::Gather(g) => self.gather(g),
            Op::Sort(s) => self.sort(s),
            Op::Merge(m) => self.merge(m),
            Op::Check { cond, check, args } => self.check(*cond, *check, args),
            Op::Watch(watch) => self.watch(watch),
            Op::Print { parts } => self.print(parts),
            // They stand in lanes, which have emitted them.
            Op::Fetch { .. } | Op::Join { .. } | Op::Nibble { .. } => {}
            Op::Const { .. }
            | Op::Unary { .. }
            | Op::Binary { .. }
            | Op::Fma { .. }
            | Op::Compare { .. }
            | Op::Select { .. }
            | Op::Cast { .. } => self.scalar(op),
        }
        Flow::On
    }

    /// A statement without memory or control, on scalars.
    pub(crate) fn scalar(&mut self, op: &Op) {
        let one = Shape::One;
        let (dst, value) = match *op {
            Op::Const { dst, bits } => {
                self.known[dst] = Some(bits);
                (dst, self.constant(self.func.regs[dst].ty, bits))
            }
            Op::Unary { dst, op, a } => (dst, self.unary(one, self.func.regs[dst].ty, op, self.value(a))),
            Op::Binary { dst, op, a, b } => {
                let (x, y) = (self.value(a), self.value(b));
                (dst, self.binary(one, self.func.regs[dst].ty, op, x, y, self.known[b]))
            }
            Op::Fma { dst, a, b, c } => {
                let (x, y, z) = (self.value(a), self.value(b), self.value(c));
                (dst, self.b.ins().fma(x, y, z))
            }
            Op::Compare { dst, op, a, b } => {
                let (x, y) = (self.value(a), self.value(b));
                (dst, self.compare(self.func.regs[a].ty, op, x, y))
            }
            Op::Select { dst, cond, a, b } => {
                let (c, x, y) = (self.value(cond), self.value(a), self.value(b));
                (dst, self.choose(one, c, x, y))
            }
            Op::Cast { dst, op, a } => (dst, self.cast(one, op, self.value(a))),
            _ => return,
        };
        self.define(dst, value);
    }

    fn counted(&mut self, f: &For) {
        let (lo, hi) = (self.value(f.lo), self.value(f.hi));
        let (body, next, exit) = (self.b.create_block(), self.b.create_block(), self.b.create_block());
        let index = self.b.append_block_param(body, I64);
        let any = self.b.ins().icmp(IntCC::SignedLessThan, lo, hi);
        self.b.ins().brif(any, body, &[BlockArg::Value(lo)], exit, &[]);
        self.b.switch_to_block(body);
        self.define(f.index, index);
        self.labels.insert(f.label, Targets { exit, next: Some(next) });
        if self.region(&f.body) == Flow::On {
            self.b.ins().jump(next, &[]);
        }
        self.b.switch_to_block(next);
        let following = self.b.ins().iadd_imm_s(index, f.step);
        let more = self.b.ins().icmp(IntCC::SignedLessThan, following, hi);
        self.b.ins().brif(more, body, &[BlockArg::Value(following)], exit, &[]);
        self.b.switch_to_block(exit);
    }

    fn conditional(&mut self, i: &If) -> Flow {
        let cond = self.value(i.cond);
        let (then, els, join) = (self.b.create_block(), self.b.create_block(), self.b.create_block());
        self.b.ins().brif(cond, then, &[], els, &[]);
        let mut flow = Flow::Ended;
        for (block, region) in [(then, &i.then), (els, &i.els)] {
            self.b.switch_to_block(block);
            if self.region(region) == Flow::On {
                self.b.ins().jump(join, &[]);
                flow = Flow::On;
            }
        }
        if flow == Flow::On {
            self.b.switch_to_block(join);
        }
        flow
    }

    fn conditional_loop(&mut self, w: &While) {
        let (head, body, exit) = (self.b.create_block(), self.b.create_block(), self.b.create_block());
        self.b.ins().jump(head, &[]);
        self.labels.insert(w.label, Targets { exit, next: Some(head) });
        self.b.switch_to_block(head);
        if self.region(&w.head) == Flow::On {
            let cond = self.value(w.cond);
            self.b.ins().brif(cond, body, &[], exit, &[]);
            self.b.switch_to_block(body);
            if self.region(&w.body) == Flow::On {
                self.b.ins().jump(head, &[]);
            }
        }
        self.b.switch_to_block(exit);
    }

    fn scope(&mut self, s: &Scope) -> Flow {
        let exit = self.b.create_block();
        self.labels.insert(s.label, Targets { exit, next: None });
        if self.region(&s.body) == Flow::On {
            self.b.ins().jump(exit, &[]);
        }
        self.b.switch_to_block(exit);
        Flow::On
    }
}
