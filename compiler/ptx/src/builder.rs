//! Making a kernel line by line.

use crate::inst::{AddrBase, Address, Cmp, Inst, Op, Round, Shfl, Src};
use crate::kernel::{BodyItem, Label, Param, PtxKernel, Symbol, VReg};
use crate::sm90::Sm90;
use crate::table::{Arith, Operands, wide};
use crate::types::{Class, Space, Type};

/// A kernel in the making.
#[derive(Debug, Default)]
pub struct Builder {
    kernel: PtxKernel,
    /// What the next instructions are made for.
    pub site: u32,
    /// The next instructions are under this guard.
    pub guard: Option<(VReg, bool)>,
}

impl Builder {
    /// A kernel without lines.
    pub fn new(name: impl Into<String>, threads: u32) -> Builder {
        let kernel = PtxKernel { name: name.into(), threads, ..PtxKernel::default() };
        Builder { kernel, ..Builder::default() }
    }

    /// The kernel.
    pub fn finish(self) -> PtxKernel {
        self.kernel
    }

    /// A new register.
    pub fn reg(&mut self, class: Class) -> VReg {
        self.kernel.regs.push(class)
    }

    /// A register's class.
    pub fn class(&self, reg: VReg) -> Class {
        self.kernel.regs[reg]
    }

    /// A new label, not yet placed.
    pub fn label(&mut self) -> Label {
        self.kernel.labels.push(())
    }

    /// A new parameter: its number.
    pub fn param(&mut self, name: impl Into<String>, ty: Type) -> u32 {
        self.kernel.params.push(Param { name: name.into(), ty, map: false });
        (self.kernel.params.len() - 1) as u32
    }

    /// A new parameter that is a tensor map: its address, for bulk copies.
    pub fn tensor_map(&mut self, name: impl Into<String>) -> VReg {
        self.kernel.params.push(Param { name: name.into(), ty: Type::B8, map: true });
        let at = self.mov(Type::B64, Src::Param((self.kernel.params.len() - 1) as u32));
        self.value(Class::B64, Op::CvtaParam, &[at.into()])
    }

    /// New memory: its number.
    pub fn symbol(&mut self, symbol: Symbol) -> u32 {
        self.kernel.symbols.push(symbol);
        (self.kernel.symbols.len() - 1) as u32
    }

    /// Text for who reads the code.
    pub fn comment(&mut self, text: impl Into<String>) {
        self.kernel.body.push(BodyItem::Comment(text.into()));
    }

    /// Puts a label here.
    pub fn place(&mut self, label: Label) {
        self.kernel.body.push(BodyItem::Label(label));
    }

    /// An instruction.
    pub fn push(&mut self, op: Op, dsts: &[VReg], srcs: &[Src]) {
        let inst = Inst { guard: self.guard, op, dsts: dsts.into(), srcs: srcs.into(), site: self.site };
        self.kernel.body.push(BodyItem::Inst(inst));
    }

    /// One result of a class.
    fn value(&mut self, class: Class, op: Op, srcs: &[Src]) -> VReg {
        let dst = self.reg(class);
        self.push(op, &[dst], srcs);
        dst
    }

    /// An instruction of the table, into a new register.
    pub fn arith(&mut self, arith: Arith, ty: Type, srcs: &[Src]) -> VReg {
        let class = if arith.row().operands == Operands::Wide { wide(ty).class() } else { ty.class() };
        self.value(class, Op::Arith(arith, ty), srcs)
    }

    /// A copy into a new register.
    pub fn mov(&mut self, ty: Type, src: impl Into<Src>) -> VReg {
        self.value(ty.class(), Op::Mov(ty), &[src.into()])
    }

    /// A copy into a register that is there.
    pub fn set(&mut self, dst: VReg, ty: Type, src: impl Into<Src>) {
        self.push(Op::Mov(ty), &[dst], &[src.into()]);
    }

    /// The same bits in a class of the same width.
    pub fn bits(&mut self, class: Class, src: VReg) -> VReg {
        let ty = if class.bits() == 64 { Type::B64 } else { Type::B32 };
        self.value(class, Op::Bits(ty), &[src.into()])
    }

    /// Two halves in a word.
    pub fn pack(&mut self, low: VReg, high: VReg) -> VReg {
        self.value(Class::B32, Op::Pack, &[low.into(), high.into()])
    }

    /// Whether the lane of a thread is an odd one.
    pub fn is_odd(&mut self, thread: VReg) -> VReg {
        let low = self.arith(Arith::And, Type::B32, &[thread.into(), Src::Imm(1)]);
        self.setp(Cmp::Ne, Type::U32, low, Src::Imm(0))
    }

    /// Two words of each of two neighbouring lanes, exchanged: the even one gets the first words of both, the odd one
    /// the second ones.
    pub fn exchanged(&mut self, [first, second]: [VReg; 2], odd: VReg) -> [VReg; 2] {
        let sent = self.selp(Type::B32, first, second, odd);
        let srcs = [sent.into(), Src::Imm(1), Src::Imm(31), Src::Imm(0xffff_ffff)];
        let other = self.value(Class::B32, Op::Shfl(Shfl::Bfly), &srcs);
        [self.selp(Type::B32, other, first, odd), self.selp(Type::B32, second, other, odd)]
    }

    /// Two words as 64 bits.
    pub fn pair(&mut self, low: VReg, high: VReg) -> VReg {
        self.value(Class::B64, Op::Pair, &[low.into(), high.into()])
    }

    /// An instruction of Hopper.
    pub fn sm90(&mut self, op: Sm90, dsts: &[VReg], srcs: &[Src]) {
        self.push(Op::Sm90(op), dsts, srcs);
    }

    /// Waits until the phase of a parity of an `mbarrier` is complete.
    pub fn mbarrier_wait(&mut self, at: Address, parity: impl Into<Src>) {
        let (again, done, parity) = (self.label(), self.reg(Class::Pred), parity.into());
        self.place(again);
        self.sm90(Sm90::MbarrierTryWait, &[done], &[Src::Addr(at), parity]);
        self.bra_if(done, false, again);
    }

    /// A comparison.
    pub fn setp(&mut self, cmp: Cmp, ty: Type, a: impl Into<Src>, b: impl Into<Src>) -> VReg {
        self.value(Class::Pred, Op::Setp(cmp, ty), &[a.into(), b.into()])
    }

    /// `c ? a : b`
    pub fn selp(&mut self, ty: Type, a: impl Into<Src>, b: impl Into<Src>, c: VReg) -> VReg {
        self.value(ty.class(), Op::Selp(ty), &[a.into(), b.into(), c.into()])
    }

    /// A conversion.
    pub fn cvt(&mut self, to: Type, from: Type, round: Round, src: VReg) -> VReg {
        self.value(to.class(), Op::Cvt { to, from, round }, &[src.into()])
    }

    /// A load of one value into a new register.
    pub fn ld(&mut self, space: Space, ty: Type, at: Address) -> VReg {
        self.value(ty.class(), Op::Ld(space, ty), &[Src::Addr(at)])
    }

    /// A store of one value.
    pub fn st(&mut self, space: Space, ty: Type, at: Address, value: VReg) {
        self.push(Op::St(space, ty), &[], &[Src::Addr(at), value.into()]);
    }

    /// A jump.
    pub fn bra(&mut self, label: Label) {
        self.push(Op::Bra, &[], &[Src::Label(label)]);
    }

    /// A jump where a predicate is so.
    pub fn bra_if(&mut self, pred: VReg, so: bool, label: Label) {
        let before = self.guard.replace((pred, so));
        self.bra(label);
        self.guard = before;
    }
}

impl Address {
    /// At a register.
    pub fn at(reg: VReg) -> Address {
        Address { base: AddrBase::Reg(reg), disp: 0 }
    }

    /// A parameter.
    pub fn param(n: u32) -> Address {
        Address { base: AddrBase::Param(n), disp: 0 }
    }
}
