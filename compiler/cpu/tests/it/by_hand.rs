//! Loop IR by hand: for the tests of the backends that execute it.

use cranelift_entity::PrimaryMap;
use ptoc_diagnostics::Span;
use ptoc_ir::loops::{
    Addr, Base, BinOp, Cast, CheckRow, Func, FunctionEntry, LTy, MemTy, Module, Op, Reg, RegData, Region, SpaceData,
    SpaceId, Stmt, Stride,
};

/// A function in the making.
pub struct Build {
    pub regs: PrimaryMap<Reg, RegData>,
    pub vars: PrimaryMap<ptoc_ir::loops::VarId, ptoc_ir::loops::VarData>,
    pub labels: PrimaryMap<ptoc_ir::loops::Label, ()>,
    /// The open regions; statements go to the last.
    pub open: Vec<Region>,
    pub params: Vec<Reg>,
}

impl Build {
    /// With that many i64 parameters.
    pub fn new(params: usize) -> Build {
        let mut regs = PrimaryMap::new();
        let params = (0..params).map(|_| regs.push(RegData { ty: LTy::I64 })).collect();
        Build { regs, vars: PrimaryMap::new(), labels: PrimaryMap::new(), open: vec![vec![]], params }
    }

    pub fn reg(&mut self, ty: LTy) -> Reg {
        self.regs.push(RegData { ty })
    }

    pub fn push(&mut self, op: Op) {
        let span = Span::default();
        self.open.last_mut().unwrap().push(Stmt { op, span });
    }

    pub fn def(&mut self, ty: LTy, op: impl FnOnce(Reg) -> Op) -> Reg {
        let dst = self.reg(ty);
        self.push(op(dst));
        dst
    }

    pub fn i64(&mut self, value: i64) -> Reg {
        self.def(LTy::I64, |dst| Op::Const { dst, bits: value as u64 })
    }

    pub fn constant(&mut self, ty: LTy, bits: u64) -> Reg {
        self.def(ty, |dst| Op::Const { dst, bits })
    }

    pub fn binary(&mut self, op: BinOp, a: Reg, b: Reg) -> Reg {
        let ty = self.regs[a].ty;
        self.def(ty, |dst| Op::Binary { dst, op, a, b })
    }

    pub fn cast(&mut self, ty: LTy, op: Cast, a: Reg) -> Reg {
        self.def(ty, |dst| Op::Cast { dst, op, a })
    }

    pub fn load(&mut self, ty: MemTy, addr: Addr) -> Reg {
        self.def(ty.reg(), |dst| Op::Load { dst, ty, addr })
    }

    pub fn store(&mut self, ty: MemTy, addr: Addr, value: Reg) {
        self.push(Op::Store { ty, addr, value });
    }

    /// A block function of a module with tensors of these sizes, two spaces of 2 KiB and eight checks. All
    /// parameters belong to the launch; the grid is one block.
    pub fn module(mut self, tensors: usize) -> Module {
        let body = self.open.pop().unwrap();
        let mut spaces = PrimaryMap::new();
        for n in 0..2 {
            spaces.push(SpaceData { name: format!("s{n}").into(), offset: 64 + n * 2048, size: 2048 });
        }
        let mut regs = PrimaryMap::new();
        let params: Vec<Reg> = self.params.iter().map(|_| regs.push(RegData { ty: LTy::I64 })).collect();
        let launch = Func {
            name: "test.launch".into(),
            entry: FunctionEntry::Launch,
            params,
            results: vec![],
            regs,
            vars: PrimaryMap::new(),
            labels: PrimaryMap::new(),
            body: vec![],
        };
        let block = Func {
            name: "test.block".into(),
            entry: FunctionEntry::Block,
            params: self.params,
            results: vec![],
            regs: self.regs,
            vars: self.vars,
            labels: self.labels,
            body,
        };
        Module {
            spread: Vec::new(),
            raster: None,
            cluster: Vec::new(),
            name: "test".into(),
            tensors: (0..tensors).map(|n| format!("T{n}").into()).collect(),
            spaces,
            arena: 64 + 2 * 2048,
            checks: (0..8).map(|id| CheckRow { id, span: Span::default() }).collect(),
            bounds: Vec::new(),
            launch,
            block,
        }
    }
}

pub fn tensor(n: u32, offset: Reg) -> Addr {
    Addr { base: Base::Tensor(n), offset, stride: Stride::Const(0), gather: None }
}

pub fn space(n: u32, offset: Reg) -> Addr {
    Addr { base: Base::Space(SpaceId::from_u32(n)), offset, stride: Stride::Const(0), gather: None }
}

pub fn strided(addr: Addr, stride: i64) -> Addr {
    Addr { stride: Stride::Const(stride), ..addr }
}
