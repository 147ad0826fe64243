//! Outlined loop nests: loop nests as functions of their own.
//!
//! Nearly all of a kernel's code is `Lanes`, alone or as the only effect of a loop over rows. Each becomes a function
//! of its own, with pointers for its accesses and registers for what it reads from outside; so nests that differ only
//! in where their operands lie are compiled once, and small functions compile faster than one large one. A [`Nest`] is
//! what such functions have in common: the body with registers renumbered, access n being to "tensor" n at offset 0.

use crate::shape::scalar_type;
use cranelift_codegen::ir::Type;
use cranelift_codegen::ir::types::I64;
use cranelift_entity::{PrimaryMap, SecondaryMap};
use ptoc_diagnostics::Span;
use ptoc_ir::loops::{
    Addr, Base, BinOp, For, Func, LTy, Lanes, MemTy, Op, Reg, RegData, Region, Stmt, Stride, operands,
};
use rustc_hash::FxHashMap;

/// Counts up to this are part of the code.
const SMALL: i64 = 16;

/// What moves from row to row, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum RowStride {
    Const(i64),
    /// A register of the caller (in a [`Nest`]: a parameter) times a constant.
    Reg(Reg, i64),
}

/// The end of a row whose elements were added to partials, f32: the row itself fills them, and adds them to one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Ending {
    /// The bits of what partials start with.
    pub(crate) identity: u32,
    /// The pointer to the row's partials.
    pub(crate) partials: u32,
    /// The pointer to the row's result.
    pub(crate) result: u32,
}

/// A loop nest as a function.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Nest {
    /// A loop over rows is around the lanes.
    pub(crate) rows: bool,
    /// The number of lanes, if it is part of the code.
    pub(crate) count: Option<i64>,
    /// From row to row, for each pointer; registers are numbered from 0, in order of appearance.
    pub(crate) steps: Vec<RowStride>,
    /// Register types of the body. The first are the lane, the count, the offset (0), then what is read from outside.
    pub(crate) regs: Vec<LTy>,
    /// How many are read from outside.
    pub(crate) inputs: usize,
    /// Bit n: what goes through pointer n may be written past the caches. It is whole words of an array that the nest
    /// does not read.
    pub(crate) non_temporal: u64,
    /// How its rows are reduced, each when it is done.
    pub(crate) ending: Option<Ending>,
    /// The body.
    pub(crate) body: Region,
}

/// Registers of a nest's body.
pub(crate) const LANE: u32 = 0;
pub(crate) const COUNT: u32 = 1;
pub(crate) const OFFSET: u32 = 2;
pub(crate) const FIRST_INPUT: u32 = 3;

impl Nest {
    /// Parameters: rows, count, pointers, steps in registers, whether to write past the caches, inputs.
    pub(crate) fn params(&self) -> Vec<Type> {
        let fixed = usize::from(self.rows) + usize::from(self.count.is_none()) + self.steps.len() + self.step_regs();
        let fixed = fixed + usize::from(self.non_temporal != 0);
        let mut params = vec![I64; fixed];
        params.extend(self.input_types().iter().map(|ty| scalar_type(*ty)));
        params
    }

    fn input_types(&self) -> &[LTy] {
        &self.regs[FIRST_INPUT as usize..][..self.inputs]
    }

    /// How many registers the steps need.
    pub(crate) fn step_regs(&self) -> usize {
        self.steps
            .iter()
            .map(|s| if let RowStride::Reg(r, _) = s { r.as_u32() as usize + 1 } else { 0 })
            .max()
            .unwrap_or(0)
    }

    /// The function's tables, for an emitter that wants a whole function.
    pub(crate) fn func(&self) -> Func {
        Func {
            name: "nest".into(),
            entry: ptoc_ir::loops::FunctionEntry::Block,
            params: Vec::new(),
            results: Vec::new(),
            regs: self.regs.iter().map(|&ty| RegData { ty }).collect::<PrimaryMap<_, _>>(),
            vars: PrimaryMap::new(),
            labels: PrimaryMap::new(),
            body: Region::new(),
        }
    }

    /// The bits of a register that the body defines as a constant.
    pub(crate) fn constant(&self, reg: Reg) -> Option<u64> {
        self.body.iter().find_map(|s| match s.op {
            Op::Const { dst, bits } if dst == reg => Some(bits),
            _ => None,
        })
    }

    pub(crate) fn lanes(&self) -> Lanes {
        Lanes { lane: Reg::from_u32(LANE), count: Reg::from_u32(COUNT), body: self.body.clone() }
    }
}

/// How a nest is called.
pub(crate) struct Site {
    pub(crate) nest: Nest,
    /// The source of each statement of the nest's body. It is no part of the nest: equal nests share their code.
    pub(crate) spans: Vec<Span>,
    /// Base and offset (a register of the caller) of each pointer, in the first row.
    pub(crate) pointers: Vec<(Base, Reg)>,
    /// Registers for the steps.
    pub(crate) steps: Vec<Reg>,
    /// Registers for the inputs.
    pub(crate) inputs: Vec<Reg>,
    pub(crate) count: Reg,
}

/// The loop around, while a nest is analysed.
pub(crate) struct Rows {
    /// How the registers of the loop's body move from row to row.
    steps: FxHashMap<Reg, RowStride>,
    /// Registers that are computed alike.
    same: FxHashMap<(BinOp, Reg, Reg), Reg>,
    alias: FxHashMap<Reg, Reg>,
}

impl Rows {
    /// Of a loop with this index.
    pub(crate) fn new(index: Reg) -> Rows {
        let steps = FxHashMap::from_iter([(index, RowStride::Const(1))]);
        Rows { steps, same: FxHashMap::default(), alias: FxHashMap::default() }
    }

    pub(crate) fn canonical(&self, reg: Reg) -> Reg {
        self.alias.get(&reg).copied().unwrap_or(reg)
    }

    pub(crate) fn step(&self, reg: Reg) -> RowStride {
        self.steps.get(&reg).copied().unwrap_or(RowStride::Const(0))
    }

    /// Takes in a statement of the loop's body; `None` if it is not an affine function of the row.
    pub(crate) fn statement(&mut self, op: &Op, func: &Func, known: &SecondaryMap<Reg, Option<u64>>) -> Option<()> {
        let &Op::Binary { dst, op, a, b } = op else { return None };
        if func.regs[dst].ty != LTy::I64 {
            return None;
        }
        let (a, b) = (self.canonical(a), self.canonical(b));
        let step = match (op, self.step(a), self.step(b)) {
            (BinOp::Add, x, RowStride::Const(0))
            | (BinOp::Sub, x, RowStride::Const(0))
            | (BinOp::Add, RowStride::Const(0), x) => x,
            (BinOp::Add, RowStride::Const(x), RowStride::Const(y)) => RowStride::Const(x.wrapping_add(y)),
            (BinOp::Sub, RowStride::Const(x), RowStride::Const(y)) => RowStride::Const(x.wrapping_sub(y)),
            (BinOp::Mul, RowStride::Const(0), RowStride::Const(0)) => RowStride::Const(0),
            (BinOp::Mul, RowStride::Const(x), RowStride::Const(0)) => times(x, b, known),
            (BinOp::Mul, RowStride::Const(0), RowStride::Const(y)) => times(y, a, known),
            _ => return None,
        };
        match self.same.get(&(op, a, b)) {
            Some(&first) => {
                self.alias.insert(dst, first);
            }
            None => {
                self.same.insert((op, a, b), dst);
                self.steps.insert(dst, step);
            }
        }
        Some(())
    }
}

fn times(step: i64, factor: Reg, known: &SecondaryMap<Reg, Option<u64>>) -> RowStride {
    match known[factor] {
        Some(bits) => RowStride::Const(step.wrapping_mul(bits as i64)),
        None => RowStride::Reg(factor, step),
    }
}

/// A loop over rows whose only effect is `Lanes`, as a nest; and the statements of its body that compute addresses.
pub(crate) fn of_loop(f: &For, func: &Func, known: &SecondaryMap<Reg, Option<u64>>) -> Option<(Site, Vec<Op>)> {
    let (last, before) = f.body.split_last()?;
    let Op::Lanes(lanes) = &last.op else { return None };
    if f.step != 1 {
        return None;
    }
    let mut rows = Rows::new(f.index);
    let mut needed = Vec::new();
    for stmt in before {
        rows.statement(&stmt.op, func, known)?;
        if let Op::Binary { dst, op, a, b } = stmt.op
            && rows.canonical(dst) == dst
        {
            needed.push(Op::Binary { dst, op, a: rows.canonical(a), b: rows.canonical(b) });
        }
    }
    let site = Analysis::new(func, known, Some(&rows)).run(lanes)?;
    Some((site, needed))
}

/// `Lanes` alone as a nest, unless it is short enough to stand where it is.
pub(crate) fn of_lanes(lanes: &Lanes, func: &Func, known: &SecondaryMap<Reg, Option<u64>>) -> Option<Site> {
    if known[lanes.count].is_some_and(|n| n as i64 <= SMALL) {
        return None;
    }
    Analysis::new(func, known, None).run(lanes)
}

/// A body being renumbered.
struct Analysis<'a> {
    func: &'a Func,
    known: &'a SecondaryMap<Reg, Option<u64>>,
    rows: Option<&'a Rows>,
    number: FxHashMap<Reg, Reg>,
    regs: Vec<LTy>,
    pointers: Vec<(Base, Reg, RowStride)>,
    inputs: Vec<Reg>,
    /// Registers that the body defines.
    own: Vec<Reg>,
    step_regs: Vec<Reg>,
}

impl<'a> Analysis<'a> {
    fn new(func: &'a Func, known: &'a SecondaryMap<Reg, Option<u64>>, rows: Option<&'a Rows>) -> Analysis<'a> {
        Analysis {
            func,
            known,
            rows,
            number: FxHashMap::default(),
            regs: vec![LTy::I64; FIRST_INPUT as usize],
            pointers: Vec::new(),
            inputs: Vec::new(),
            own: Vec::new(),
            step_regs: Vec::new(),
        }
    }

    /// Whether a register of the caller is the same in every row.
    fn fixed(&self, reg: Reg) -> bool {
        self.rows.is_none_or(|rows| !rows.steps.contains_key(&rows.canonical(reg)))
    }

    fn run(mut self, lanes: &Lanes) -> Option<Site> {
        if !self.fixed(lanes.count) {
            return None;
        }
        self.own.push(lanes.lane);
        self.own.extend(lanes.body.iter().filter_map(|s| operands(&s.op).1));
        // What is read from outside is numbered first: parameters, then constants, which the body defines anew.
        let mut constants = Vec::new();
        let mut outside: Vec<Reg> = Vec::new();
        for stmt in &lanes.body {
            let value_only = matches!(stmt.op, Op::Store { .. });
            let (inputs, _) = operands(&stmt.op);
            let (stride, gather) = match &stmt.op {
                Op::Load { addr, .. }
                | Op::Store { addr, .. }
                | Op::Fetch { addr, .. }
                | Op::Join { addr, .. }
                | Op::Nibble { addr, .. } => {
                    (if let Stride::Reg(r) = addr.stride { Some(r) } else { None }, addr.gather)
                }
                _ => (None, None),
            };
            for reg in inputs.into_iter().flatten().chain(stride).chain(gather) {
                if self.own.contains(&reg) || outside.contains(&reg) || constants.contains(&reg) {
                    continue;
                }
                if !self.fixed(reg) {
                    return None;
                }
                // A constant that is only stored is a parameter, so that fills with different values are one nest.
                if self.known[reg].is_some() && !(value_only && gather != Some(reg)) {
                    constants.push(reg);
                } else {
                    outside.push(reg);
                }
            }
        }
        for &reg in &outside {
            self.renumber(reg);
        }
        self.inputs = outside;
        let mut body = Region::new();
        let mut spans = vec![Span::default(); constants.len()];
        for &reg in &constants {
            let dst = self.renumber(reg);
            let bits = self.known[reg]?;
            body.push(Stmt { op: Op::Const { dst, bits }, span: Span::default() });
        }
        self.number.insert(lanes.lane, Reg::from_u32(LANE));
        for stmt in &lanes.body {
            let op = self.translated(&stmt.op)?;
            spans.push(stmt.span);
            body.push(Stmt { op, span: Span::default() });
        }
        let count = self.known[lanes.count].map(|n| n as i64).filter(|&n| n <= SMALL);
        let non_temporal = self.non_temporal(&lanes.body);
        let nest = Nest {
            non_temporal,
            ending: None,
            rows: self.rows.is_some(),
            count,
            steps: self.steps(),
            regs: self.regs,
            inputs: self.inputs.len(),
            body,
        };
        let pointers = self.pointers.iter().map(|p| (p.0, p.1)).collect();
        Some(Site { nest, spans, pointers, steps: self.step_regs, inputs: self.inputs, count: lanes.count })
    }

    /// The pointers of neighbouring words in arrays that are stored and not read.
    fn non_temporal(&self, body: &Region) -> u64 {
        let mut non_temporal = 0u64;
        for (n, &(base, offset, _)) in self.pointers.iter().enumerate().take(64) {
            let through = |addr: &Addr| {
                addr.base == base && self.rows.map_or(addr.offset, |r| r.canonical(addr.offset)) == offset
            };
            let words =
                |ty: MemTy, addr: &Addr| ty.size() == 4 && addr.stride == Stride::Const(4) && addr.gather.is_none();
            let fits = body.iter().all(|s| match &s.op {
                Op::Load { addr, .. } | Op::Join { addr, .. } | Op::Nibble { addr, .. } => addr.base != base,
                Op::Store { ty, addr, .. } => !through(addr) || words(*ty, addr),
                _ => true,
            });
            if fits && matches!(base, Base::Tensor(t) if t < 64) {
                non_temporal |= 1 << n;
            }
        }
        non_temporal
    }

    fn steps(&mut self) -> Vec<RowStride> {
        let mut steps = Vec::new();
        for (_, _, step) in &self.pointers {
            steps.push(match *step {
                RowStride::Reg(reg, factor) => {
                    let known = self.step_regs.iter().position(|r| *r == reg);
                    let n = known.unwrap_or(self.step_regs.len());
                    if known.is_none() {
                        self.step_regs.push(reg);
                    }
                    RowStride::Reg(Reg::from_u32(n as u32), factor)
                }
                step => step,
            });
        }
        steps
    }

    fn renumber(&mut self, reg: Reg) -> Reg {
        let new = Reg::from_u32(self.regs.len() as u32);
        self.regs.push(self.func.regs[reg].ty);
        self.number.insert(reg, new);
        new
    }

    fn translated(&mut self, op: &Op) -> Option<Op> {
        Some(match op {
            Op::Const { dst, bits } => Op::Const { dst: self.renumber(*dst), bits: *bits },
            &Op::Unary { dst, op, a } => {
                let a = self.read(a)?;
                Op::Unary { dst: self.renumber(dst), op, a }
            }
            &Op::Binary { dst, op, a, b } => {
                let (a, b) = (self.read(a)?, self.read(b)?);
                Op::Binary { dst: self.renumber(dst), op, a, b }
            }
            &Op::Fma { dst, a, b, c } => {
                let (a, b, c) = (self.read(a)?, self.read(b)?, self.read(c)?);
                Op::Fma { dst: self.renumber(dst), a, b, c }
            }
            &Op::Compare { dst, op, a, b } => {
                let (a, b) = (self.read(a)?, self.read(b)?);
                Op::Compare { dst: self.renumber(dst), op, a, b }
            }
            &Op::Select { dst, cond, a, b } => {
                let (cond, a, b) = (self.read(cond)?, self.read(a)?, self.read(b)?);
                Op::Select { dst: self.renumber(dst), cond, a, b }
            }
            &Op::Cast { dst, op, a } => {
                let a = self.read(a)?;
                Op::Cast { dst: self.renumber(dst), op, a }
            }
            Op::Load { dst, ty, addr } => {
                let addr = self.address(addr)?;
                Op::Load { dst: self.renumber(*dst), ty: *ty, addr }
            }
            Op::Nibble { dst, addr, moves } => {
                let addr = self.address(addr)?;
                Op::Nibble { dst: self.renumber(*dst), addr, moves: *moves }
            }
            Op::Store { ty, addr, value } => {
                let (addr, value) = (self.address(addr)?, self.read(*value)?);
                Op::Store { ty: *ty, addr, value }
            }
            Op::Fetch { ty, addr } => Op::Fetch { ty: *ty, addr: self.address(addr)? },
            Op::Join { op, ty, addr, value } => {
                let (addr, value) = (self.address(addr)?, self.read(*value)?);
                Op::Join { op: *op, ty: *ty, addr, value }
            }
            _ => return None,
        })
    }

    fn read(&self, reg: Reg) -> Option<Reg> {
        self.number.get(&reg).copied()
    }

    fn address(&mut self, addr: &Addr) -> Option<Addr> {
        let offset = self.rows.map_or(addr.offset, |rows| rows.canonical(addr.offset));
        // An offset that the body itself computes has no place outside.
        if self.own.contains(&offset) {
            return None;
        }
        let step = self.rows.map_or(RowStride::Const(0), |rows| rows.step(offset));
        let pointer = (addr.base, offset, step);
        let n = self.pointers.iter().position(|p| *p == pointer).unwrap_or_else(|| {
            self.pointers.push(pointer);
            self.pointers.len() - 1
        });
        let stride = match addr.stride {
            Stride::Reg(reg) => Stride::Reg(self.read(reg)?),
            stride => stride,
        };
        let gather = match addr.gather {
            Some(reg) => Some(self.read(reg)?),
            None => None,
        };
        Some(Addr { base: Base::Tensor(n as u32), offset: Reg::from_u32(OFFSET), stride, gather })
    }
}
