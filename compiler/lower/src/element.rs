//! What becomes of one element of a product ([`ptoc_opt::matrix_unit::Epilogue`]) as a function of loop IR: scalars
//! first, then `Lanes`, whose body is about one element. It loads the sum from the only space, and the element of array
//! n from tensor n; where those are, the emitter knows.

use super::{Lower, ops};
use cranelift_entity::SecondaryMap;
use ptoc_diagnostics::{Diagnostic, Span};
use ptoc_ir::loops::{Addr, Base, FunctionEntry, If, MemTy, Op, Reg, SpaceData, SpaceId, Stride, VarId};
use ptoc_ir::loops::{Func, Module};
use ptoc_ir::tile::{self, InstAttrs, Kernel, Operand, Stmt, Tile, Ty, Value};
use ptoc_isa::{Expr, Target};
use ptoc_opt::analyses::Analyses;
use ptoc_opt::matrix_unit::{Epilogue, EpilogueStep, Place};
use ptoc_opt::pass::RewriteUnit;
use ptoc_placement::Placement;
use ptoc_tensor::DType;
use rustc_hash::FxHashMap;

/// Lowers an epilogue. The block function has the launch's parameters, dimensions first, then scalars.
///
/// # Errors
/// What cannot be lowered: a mistake of the steps before, never the author's.
pub fn lower_element(
    kernel: &Kernel,
    target: &Target,
    (acc, epilogue): (DType, &Epilogue<'_>),
) -> Result<Module, Vec<Diagnostic>> {
    let placement = Placement { offsets: SecondaryMap::new(), intervals: SecondaryMap::new(), memories: Vec::new() };
    let unit = RewriteUnit::new(kernel.clone(), placement);
    let lower = Lower::new(&unit, Analyses::none(&unit), target);
    let mut element =
        Element { lower, epilogue, acc, sums: SpaceId::from_u32(0), at: None, tiles: FxHashMap::default() };
    let block = element.function();
    let errors = std::mem::take(&mut element.lower.errors);
    if !errors.is_empty() {
        return Err(errors);
    }
    let mut spaces = element.lower.spaces;
    spaces.push(SpaceData { name: "sums".into(), offset: 0, size: 4 });
    Ok(Module {
        name: kernel.name.clone(),
        tensors: epilogue.arrays.iter().map(|a| kernel_tensor(kernel, a.matrix.tensor)).collect(),
        spaces,
        arena: 4,
        raster: None,
        cluster: Vec::new(),
        spread: Vec::new(),
        checks: Vec::new(),
        bounds: Vec::new(),
        launch: Func { name: "none".into(), body: Vec::new(), params: Vec::new(), ..block.clone() },
        block,
    })
}

/// An element-wise instruction as a function of one element of each source: it loads that of source n from tensor n,
/// and stores the result to the tensor behind them. Nothing else is in it.
pub fn lower_formula(expr: &Expr, dst: DType, sources: &[DType], attrs: &InstAttrs) -> Module {
    let mut code = super::FunctionBuilder::new("formula", FunctionEntry::Block, Span::default());
    let offset = code.int(0);
    let at = |n: usize| Addr { base: Base::Tensor(n as u32), offset, stride: Stride::Const(0), gather: None };
    let loaded: Vec<(DType, Reg)> =
        sources.iter().enumerate().map(|(n, dtype)| (*dtype, code.load(MemTy::of(*dtype), at(n)))).collect();
    let value = crate::formula::emit(&mut code, expr, dst, &loaded, attrs);
    let value = ops::settle(&mut code, Ty::D(dst), value);
    code.store(MemTy::of(dst), at(sources.len()), value);
    let block = code.finish(Vec::new());
    Module {
        name: "formula".into(),
        tensors: (0..=sources.len()).map(|_| smol_str::SmolStr::default()).collect(),
        spaces: cranelift_entity::PrimaryMap::new(),
        arena: 0,
        raster: None,
        cluster: Vec::new(),
        spread: Vec::new(),
        checks: Vec::new(),
        bounds: Vec::new(),
        launch: Func { name: "none".into(), body: Vec::new(), ..block.clone() },
        block,
    }
}

fn kernel_tensor(kernel: &Kernel, n: u32) -> smol_str::SmolStr {
    kernel.tensors.values().nth(n as usize).map(|t| t.name.clone()).unwrap_or_default()
}

struct Element<'k, 'e> {
    lower: Lower<'k>,
    epilogue: &'e Epilogue<'e>,
    /// What sums are.
    acc: DType,
    sums: SpaceId,
    /// The number 0, an offset.
    at: Option<Reg>,
    /// Elements of tiles.
    tiles: FxHashMap<Tile, Reg>,
}

impl Element<'_, '_> {
    fn function(&mut self) -> Func {
        let name = format!("{}.element", self.lower.kernel.name);
        let code = super::FunctionBuilder::new(name, FunctionEntry::Block, self.lower.kernel.span);
        drop(std::mem::replace(&mut self.lower.code, code));
        self.enter();
        self.at = Some(self.lower.code.int(0));
        let mut scalars = Vec::new();
        for step in &self.epilogue.steps {
            step.each(&mut |step| match step {
                EpilogueStep::Inst { pattern, .. } => scalars.extend(pattern.inst.operands.iter().filter_map(scalar)),
                EpilogueStep::If { cond, .. } => scalars.push(*cond),
            });
        }
        scalars.into_iter().for_each(|v| self.scalar(v));
        let one = self.lower.code.int(1);
        let lane = self.lower.code.reg(ptoc_ir::loops::LTy::I64);
        self.lower.code.open_lanes();
        self.steps(&self.epilogue.steps);
        self.lower.code.close_lanes(lane, one);
        let after = super::FunctionBuilder::new("", FunctionEntry::Block, self.lower.kernel.span);
        std::mem::replace(&mut self.lower.code, after).finish(Vec::new())
    }

    /// Parameters. Scalars are unpacked where something needs them.
    fn enter(&mut self) {
        for dim in self.lower.kernel.dims.values() {
            let reg = self.lower.code.param();
            self.lower.values[dim.value] = Some(reg);
        }
        for scalar in &self.lower.kernel.scalars {
            let bits = self.lower.code.param();
            let ty = self.lower.kernel.values[scalar.value].ty;
            let wide = matches!(ty, Ty::Index) || !matches!(ty, Ty::D(d) if d.is_float() && d != DType::F32);
            if wide {
                self.lower.values[scalar.value] = Some(self.lower.unpack(ty, bits));
            }
        }
    }

    /// A scalar, and what it is computed of.
    fn scalar(&mut self, v: Value) {
        if self.lower.values[v].is_some() {
            return;
        }
        let Some(op) = self.lower.defs.of(v) else { return };
        match op {
            tile::Op::Unary { a, .. } | tile::Op::Convert { a, .. } => self.scalar(*a),
            tile::Op::Binary { a, b, .. } | tile::Op::Compare { a, b, .. } => {
                self.scalar(*a);
                self.scalar(*b);
            }
            tile::Op::Select { cond, a, b, .. } => [cond, a, b].into_iter().for_each(|v| self.scalar(*v)),
            _ => {}
        }
        let span = self.lower.code.span;
        self.lower.stmt(&Stmt { op: op.clone(), span });
    }

    fn steps(&mut self, steps: &[EpilogueStep<'_>]) {
        for step in steps {
            match step {
                EpilogueStep::Inst { pattern, from, to, span } => {
                    self.lower.code.span = *span;
                    let inputs: Vec<Reg> = from.iter().map(|place| self.operand(*place)).collect();
                    let f = self.lower.function(pattern);
                    let raw = f(&mut self.lower.code, &inputs);
                    self.result(*to, self.lower.dtype(&pattern.dst), raw);
                }
                EpilogueStep::If { cond, then, els } => self.choice(*cond, then, els),
            }
        }
    }

    fn operand(&mut self, place: Place) -> Reg {
        match place {
            Place::Acc => {
                let addr = self.addr(Base::Space(self.sums));
                self.lower.code.load(MemTy::of(self.acc), addr)
            }
            Place::Array(n) => {
                let addr = self.addr(Base::Tensor(n as u32));
                self.lower.code.load(MemTy::of(self.epilogue.arrays[n].dtype), addr)
            }
            Place::Tile(tile) => match self.tiles.get(&tile) {
                Some(reg) => *reg,
                None => unreachable!("the analysis saw a result before every use"),
            },
        }
    }

    fn result(&mut self, place: Place, dtype: DType, raw: Reg) {
        match place {
            Place::Tile(tile) => {
                let settled = ops::settle(&mut self.lower.code, Ty::D(dtype), raw);
                self.tiles.insert(tile, settled);
            }
            Place::Array(n) => {
                let addr = self.addr(Base::Tensor(n as u32));
                self.lower.code.store(MemTy::of(dtype), addr, raw);
            }
            Place::Acc => {}
        }
    }

    fn addr(&self, base: Base) -> Addr {
        let Some(offset) = self.at else { unreachable!("it is the first register") };
        Addr { base, offset, stride: Stride::Const(0), gather: None }
    }

    /// Steps that a scalar decides about: what they make of tiles is told by variables.
    fn choice(&mut self, cond: Value, then: &[EpilogueStep<'_>], els: &[EpilogueStep<'_>]) {
        let cond = self.lower.value(cond);
        let before = self.tiles.clone();
        let mut branches = Vec::new();
        for steps in [then, els] {
            self.lower.code.push();
            self.steps(steps);
            branches.push((self.lower.code.pop(), std::mem::replace(&mut self.tiles, before.clone())));
        }
        let mut changed: Vec<(Tile, [Reg; 2])> = Vec::new();
        for (tile, first) in &branches[0].1 {
            if let Some(second) = branches[1].1.get(tile)
                && first != second
            {
                changed.push((*tile, [*first, *second]));
            }
        }
        changed.sort_by_key(|(tile, _)| tile.as_u32());
        let vars: Vec<VarId> = changed.iter().map(|(_, r)| self.lower.code.var(self.lower.code.ty(r[0]))).collect();
        let mut regions = branches.into_iter().enumerate().map(|(n, (region, _))| {
            self.lower.code.push();
            self.lower.code.append(region);
            for ((_, regs), var) in changed.iter().zip(&vars) {
                self.lower.code.emit(Op::Set { var: *var, value: regs[n] });
            }
            self.lower.code.pop()
        });
        let (then, els) = (regions.next().unwrap_or_default(), regions.next().unwrap_or_default());
        drop(regions);
        self.lower.code.emit(Op::If(Box::new(If { cond, then, els })));
        for ((tile, _), var) in changed.iter().zip(vars) {
            let reg = self.lower.code.get(var);
            self.tiles.insert(*tile, reg);
        }
    }
}

fn scalar(operand: &Operand) -> Option<Value> {
    if let Operand::Scalar(v) = operand { Some(*v) } else { None }
}
