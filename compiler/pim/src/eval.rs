//! Blocks, carried out as far as indices go: loops and conditions are followed, tile instructions are handed out.

use crate::slopes::{FLAT, GridBox, Linear, Slope, Slopes, sizes};
use ptoc_diagnostics::{Diagnostic, Span, codes};
use ptoc_interp::Trap;
use ptoc_ir::scalar;
use ptoc_ir::tile::{Inst, Kernel, Op, Region, Stmt, Tile, Ty, Value, ViewRef};

/// A window of a tensor with its numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EvaluatedWindow {
    /// Number of the tensor.
    pub tensor: u32,
    /// The first element.
    pub offset: i64,
    /// Extents.
    pub shape: Vec<i64>,
    /// Elements from index to index.
    pub strides: Vec<i64>,
}

/// Who takes the instructions of a block.
pub trait Visitor {
    /// An instruction of the block with these coordinates. Scalars and windows are asked of `numbers`.
    fn inst(&mut self, inst: &Inst, span: Span, numbers: &BlockScalars<'_>) -> Result<(), Box<Diagnostic>>;
    /// A tile's life begins.
    fn alloc(&mut self, _: Tile, _: Span) -> Result<(), Box<Diagnostic>> {
        Ok(())
    }

    /// Any other statement that touches tiles or tensors.
    fn other(&mut self, stmt: &Stmt, numbers: &BlockScalars<'_>) -> Result<(), Box<Diagnostic>>;
}

/// The scalars of a block. One that comes from a tensor or a tile has no value here: it may be computed with, but
/// nothing may depend on it. The units have no branches on data, and no addresses from data.
pub struct BlockScalars<'k> {
    kernel: &'k Kernel,
    values: Vec<u64>,
    vars: Vec<u64>,
    /// Where the data was read on which a value depends.
    data: Vec<Option<Span>>,
    data_vars: Vec<Option<Span>>,
    /// Scalars that are an element of a tensor as it is: its number and the element's.
    loads: Vec<Option<(u32, i64)>>,
    fuel: Fuel,
    /// How they move from block to block, if that is asked.
    slopes: Option<Slopes>,
}

/// Statements that may still be followed.
#[derive(Clone, Copy)]
struct Fuel {
    block: u64,
    launch: u64,
}

impl Fuel {
    const FULL: Fuel = Fuel { block: STEPS, launch: ALL_STEPS };

    fn take(&mut self, kernel: &Kernel, span: Span) -> Result<(), Box<Diagnostic>> {
        let message = match (self.block, self.launch) {
            (0, _) => format!("this block comes to more than {STEPS} statements"),
            (_, 0) => format!("the blocks of this launch come to more than {ALL_STEPS} statements"),
            _ => {
                (self.block, self.launch) = (self.block - 1, self.launch - 1);
                return Ok(());
            }
        };
        Err(Box::new(
            Diagnostic::error(codes::UNIT_CANNOT, span, message)
                .with_label("reached here")
                .with_note(
                    "what the units do is found by following every block statement by statement, round after round of \
                    its loops",
                )
                .with_help(format!(
                    "let loops go round less often, or divide the work between launches; or {}",
                    crate::advice::host(kernel)
                )),
        ))
    }
}

/// How a region was left.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RegionExit {
    On,
    Break(ptoc_ir::tile::Label),
    Continue(ptoc_ir::tile::Label),
    Leave(ptoc_ir::tile::Label),
}

/// Statements of one block that are followed; more is a kernel that is not meant for units.
const STEPS: u64 = 1 << 24;

/// Statements of all blocks of a launch that are followed.
const ALL_STEPS: u64 = 1 << 26;

impl<'k> BlockScalars<'k> {
    /// Those of a launch, before any block.
    pub fn new(kernel: &'k Kernel, values: &[u64]) -> BlockScalars<'k> {
        let mut all = values.to_vec();
        all.resize(kernel.values.len(), 0);
        let (data, vars, loads) = (vec![None; all.len()], kernel.vars.len(), vec![None; all.len()]);
        BlockScalars {
            kernel,
            values: all,
            vars: vec![0; vars],
            data,
            data_vars: vec![None; vars],
            loads,
            fuel: Fuel::FULL,
            slopes: None,
        }
    }

    /// All blocks are gone through anew.
    pub fn again(&mut self) {
        self.fuel = Fuel::FULL;
    }

    /// Where the data was read on which a scalar depends.
    pub fn data(&self, v: Value) -> Option<Span> {
        self.data[v.as_u32() as usize]
    }

    /// The tensor and the element that a scalar is, if it was read and nothing was computed with it.
    pub fn element(&self, v: Value) -> Option<(u32, i64)> {
        self.loads[v.as_u32() as usize]
    }

    /// The bits of a scalar on which something depends at `span`; an error if it depends on data.
    pub fn known(&self, v: Value, span: Span) -> Result<u64, Box<Diagnostic>> {
        match self.data(v) {
            None => Ok(self.bits(v)),
            Some(read) => Err(Box::new(
                Diagnostic::error(codes::UNIT_DECISION, span, "what the unit does would depend on data")
                    .with_label("depends on a number that is read while the units run")
                    .with_secondary(read, "read here")
                    .with_note(
                        "the units' programs are fixed before they start: they have no branches and no addresses from \
                        data",
                    )
                    .with_help(crate::advice::decided_before(self.kernel)),
            )),
        }
    }

    /// An index on which something depends at `span`.
    pub fn known_index(&self, v: Value, span: Span) -> Result<i64, Box<Diagnostic>> {
        self.known(v, span).map(|bits| bits as i64)
    }

    /// Of the operands, the first that depends on data makes the result depend on it.
    fn depends(&mut self, dst: Value, on: &[Value]) {
        self.data[dst.as_u32() as usize] = on.iter().find_map(|v| self.data(*v));
    }

    /// Bits of a scalar.
    pub fn bits(&self, v: Value) -> u64 {
        self.values[v.as_u32() as usize]
    }

    /// An index.
    pub fn index(&self, v: Value) -> i64 {
        self.bits(v) as i64
    }

    /// A window.
    pub fn window(&self, view: &ViewRef) -> EvaluatedWindow {
        EvaluatedWindow {
            tensor: view.tensor.as_u32(),
            offset: self.index(view.offset),
            shape: view.shape.iter().map(|v| self.index(*v)).collect(),
            strides: view.strides.iter().map(|v| self.index(*v)).collect(),
        }
    }

    /// Extents of the grid.
    pub fn grid(&self) -> Vec<i64> {
        self.kernel.grid.iter().map(|d| self.index(d.extent).max(0)).collect()
    }

    /// Goes through the block with these coordinates.
    pub fn block(&mut self, at: &[i64], visitor: &mut dyn Visitor) -> Result<(), Box<Diagnostic>> {
        self.slopes = None;
        self.follow(at, visitor)
    }

    /// The same, and finds out whether the block stands for all that are around it: whether what differs between them
    /// is where windows begin. That moves by [`BlockScalars::slope`].
    pub fn block_for(
        &mut self,
        at: &[i64],
        around: GridBox,
        visitor: &mut dyn Visitor,
    ) -> Result<bool, Box<Diagnostic>> {
        let mut slopes = Slopes::new(around, self.values.len(), self.vars.len());
        for (d, dim) in self.kernel.grid.iter().enumerate() {
            let mut own = FLAT;
            own[d] = 1;
            slopes.set(dim.index, Some(own));
        }
        self.slopes = Some(slopes);
        self.follow(at, visitor)?;
        Ok(self.slopes.take().is_some_and(|s| !s.is_alone()))
    }

    /// By how much a scalar moves from block to block, in a block that may stand for others; `None` where it may not,
    /// or the scalar moves otherwise.
    pub fn slope(&self, v: Value) -> Option<Slope> {
        self.slopes.as_ref()?.of(v)
    }

    fn follow(&mut self, at: &[i64], visitor: &mut dyn Visitor) -> Result<(), Box<Diagnostic>> {
        let kernel = self.kernel;
        for (dim, i) in kernel.grid.iter().zip(at) {
            self.set(dim.index, *i as u64);
        }
        self.vars.fill(0);
        self.data_vars.fill(None);
        self.fuel.block = STEPS;
        self.region(&kernel.body, visitor).map(|_| ())
    }

    fn set(&mut self, v: Value, bits: u64) {
        self.values[v.as_u32() as usize] = bits;
    }

    fn ty(&self, v: Value) -> Ty {
        self.kernel.values[v].ty
    }

    fn region(&mut self, region: &Region, visitor: &mut dyn Visitor) -> Result<RegionExit, Box<Diagnostic>> {
        for stmt in region {
            self.fuel.take(self.kernel, stmt.span)?;
            let flow = self.stmt(stmt, visitor)?;
            if flow != RegionExit::On {
                return Ok(flow);
            }
        }
        Ok(RegionExit::On)
    }

    /// The slopes of what a statement computes, and whether what it decides is the same in all blocks.
    fn move_slopes(&mut self, op: &Op) {
        let Some(mut slopes) = self.slopes.take() else { return };
        let of = |v: Value| slopes.of(v);
        let flat = |v: Value| of(v) == Some(FLAT);
        let line = |v: Value| Some(Linear { at: self.index(v), slope: of(v)? }).filter(|_| self.ty(v) == Ty::Index);
        let lines = |a: Value, b: Value| line(a).zip(line(b));
        match op {
            Op::Const { dst, .. } => slopes.set(*dst, Some(FLAT)),
            Op::Unary { dst, a, .. } | Op::Convert { dst, a, .. } | Op::Bitcast { dst, a } => {
                let own = flat(*a).then_some(FLAT);
                slopes.set(*dst, own);
            }
            Op::Binary { dst, a, b, .. } | Op::Compare { dst, a, b, .. } if flat(*a) && flat(*b) => {
                slopes.set(*dst, Some(FLAT));
            }
            Op::Binary { dst, op, a, b } => {
                let own = lines(*a, *b).and_then(|(a, b)| slopes.binary(*op, a, b));
                slopes.set(*dst, own);
            }
            Op::Compare { dst, op, a, b } => {
                let decided = lines(*a, *b).and_then(|(a, b)| slopes.decided(*op, a, b));
                slopes.set(*dst, decided.map(|_| FLAT));
            }
            Op::Select { dst, cond, a, b } => {
                let taken = of(if self.bits(*cond) != 0 { *a } else { *b });
                let own = taken.filter(|_| flat(*cond));
                slopes.set(*dst, own);
            }
            Op::Get { dst, var } => slopes.set(*dst, slopes.of_var(*var)),
            Op::Set { var, value } => slopes.set_var(*var, slopes.of(*value)),
            Op::Load { dst, offset, .. } => {
                slopes.decides(*offset);
                slopes.set(*dst, Some(FLAT));
            }
            Op::Check { cond, .. } => slopes.decides(*cond),
            Op::For(f) => {
                [f.lo, f.hi].into_iter().for_each(|v| slopes.decides(v));
                slopes.set(f.index, Some(FLAT));
            }
            Op::If(i) => slopes.decides(i.cond),
            Op::Inst(inst) => sizes(inst, &mut |v| slopes.decides(v)),
            // Its condition is computed later.
            Op::While(_) | Op::Alloc { .. } | Op::Sync(_) | Op::Scope(_) => {}
            Op::Break(_) | Op::Continue(_) | Op::Leave(_) => {}
            _ => slopes.stands_alone(),
        }
        self.slopes = Some(slopes);
    }

    fn stmt(&mut self, stmt: &Stmt, visitor: &mut dyn Visitor) -> Result<RegionExit, Box<Diagnostic>> {
        self.move_slopes(&stmt.op);
        match &stmt.op {
            Op::Unary { dst, a, .. } | Op::Convert { dst, a, .. } | Op::Bitcast { dst, a } => self.depends(*dst, &[*a]),
            Op::Binary { dst, a, b, .. } | Op::Compare { dst, a, b, .. } => self.depends(*dst, &[*a, *b]),
            Op::Select { dst, cond, a, b } => self.depends(*dst, &[*cond, *a, *b]),
            Op::Get { dst, var } => self.data[dst.as_u32() as usize] = self.data_vars[var.as_u32() as usize],
            Op::Set { var, value } => self.data_vars[var.as_u32() as usize] = self.data(*value),
            _ => {}
        }
        match &stmt.op {
            Op::Const { dst, value } => self.set(*dst, value.bits),
            Op::Unary { dst, op, a } => {
                let bits = scalar::unary(*op, self.ty(*a), self.bits(*a));
                self.set(*dst, bits.ok_or_else(|| unknown(stmt.span))?);
            }
            Op::Binary { dst, op, a, b } => {
                let bits = scalar::binary(*op, self.ty(*a), self.bits(*a), self.bits(*b));
                self.set(*dst, bits.ok_or_else(|| unknown(stmt.span))?);
            }
            Op::Compare { dst, op, a, b } => {
                let holds = scalar::compare(*op, self.ty(*a), self.bits(*a), self.bits(*b));
                self.set(*dst, u64::from(holds));
            }
            Op::Select { dst, cond, a, b } => {
                let bits = self.bits(if self.bits(*cond) != 0 { *a } else { *b });
                self.set(*dst, bits);
            }
            Op::Convert { dst, a, round, saturate } => {
                let (from, to) = (self.ty(*a), self.ty(*dst));
                let saturate = scalar::saturates(from, to, *saturate);
                let bits = scalar::convert(from, to, self.bits(*a), *round, saturate);
                self.set(*dst, bits);
            }
            Op::Bitcast { dst, a } => self.set(*dst, self.bits(*a)),
            Op::Get { dst, var } => self.set(*dst, self.vars[var.as_u32() as usize]),
            Op::Set { var, value } => self.vars[var.as_u32() as usize] = self.bits(*value),
            Op::Check { cond, check, args } if self.known(*cond, stmt.span)? == 0 => {
                let shown: Vec<String> = args.iter().map(|a| scalar::display(self.ty(*a), self.bits(*a))).collect();
                return Err(Box::new(failed(self.kernel, *check, &shown)));
            }
            Op::Check { .. } => {}
            Op::Alloc { tile } => visitor.alloc(*tile, stmt.span)?,
            // One statement after another there is nothing to order.
            Op::Sync(_) => {}
            Op::Load { dst, .. } | Op::TileGet { dst, .. } | Op::Atomic { dst, .. } => {
                visitor.other(stmt, self)?;
                self.loads[dst.as_u32() as usize] = match &stmt.op {
                    Op::Load { tensor, offset, .. } if self.data(*offset).is_none() => {
                        Some((tensor.as_u32(), self.index(*offset)))
                    }
                    _ => None,
                };
                self.set(*dst, 0);
                self.data[dst.as_u32() as usize] = Some(stmt.span);
            }
            Op::Inst(inst) => visitor.inst(inst, stmt.span, self)?,
            Op::For(f) => {
                for i in self.known(f.lo, stmt.span)? as i64..self.known(f.hi, stmt.span)? as i64 {
                    self.set(f.index, i as u64);
                    match self.region(&f.body, visitor)? {
                        RegionExit::Break(l) if l == f.label => break,
                        RegionExit::Continue(l) if l == f.label => {}
                        RegionExit::On => {}
                        other => return Ok(other),
                    }
                }
            }
            Op::If(i) => {
                return self.region(if self.known(i.cond, stmt.span)? != 0 { &i.then } else { &i.els }, visitor);
            }
            Op::While(w) => loop {
                let flow = self.region(&w.head, visitor)?;
                if flow != RegionExit::On {
                    return Ok(flow);
                }
                if let Some(slopes) = &mut self.slopes {
                    slopes.decides(w.cond);
                }
                if self.known(w.cond, stmt.span)? == 0 {
                    break;
                }
                match self.region(&w.body, visitor)? {
                    RegionExit::Break(l) if l == w.label => break,
                    RegionExit::Continue(l) if l == w.label => {}
                    RegionExit::On => {}
                    other => return Ok(other),
                }
            },
            Op::Scope(s) => match self.region(&s.body, visitor)? {
                RegionExit::Leave(l) if l == s.label => {}
                other => return Ok(other),
            },
            Op::Break(l) => return Ok(RegionExit::Break(*l)),
            Op::Continue(l) => return Ok(RegionExit::Continue(*l)),
            Op::Leave(l) => return Ok(RegionExit::Leave(*l)),
            _ => visitor.other(stmt, self)?,
        }
        Ok(RegionExit::On)
    }
}

/// A check that does not hold, told as the interpreter does.
fn failed(kernel: &Kernel, check: ptoc_ir::tile::CheckId, shown: &[String]) -> Diagnostic {
    let data = &kernel.checks[check];
    let fill = |text: &str| {
        let mut out = text.to_owned();
        for (n, value) in shown.iter().enumerate() {
            out = out.replace(&format!("{{{n}}}"), value);
        }
        out
    };
    let mut d = Trap::new(data.code, data.span, fill(&data.message)).to_diagnostic();
    if let Some(help) = &data.help {
        d = d.with_help(fill(help));
    }
    d
}

fn unknown(span: Span) -> Box<Diagnostic> {
    Box::new(Diagnostic::error(codes::UNIT_CANNOT, span, "this is computed by no operation of scalars"))
}
