//! Element-wise instructions on fragments: the expression of the table for each element.

use super::scalars::{arithmetic, binary, bits, comparison};
use super::statements::copied;
use super::{Code, GROUP};
use crate::allocation::Homes;
use crate::emit::{Emit, whole};
use crate::ops::pure;
use ptoc_ir::formula::typed;
use ptoc_ir::loops::{Base, Module, Op};
use ptoc_ir::tile::{Inst, InstAttrs, Operand, TileRef, Ty};
use ptoc_isa::{BinOp, Expr, Read, Sem, To, UnOp};
use ptoc_lower::lower_formula;
use ptoc_opt::fragments::{Fragment, is_direct};
use ptoc_ptx::{Arith, Class, Cmp, Op as Ptx, Round, Src, Type, VReg};
use ptoc_tensor::DType;

/// Where the elements of an operand are.
enum Source {
    Scalar(Src),
    Tile(Vec<VReg>, Fragment, Read),
}

impl Source {
    /// What goes with element `n` of a fragment: two neighbours in a row, then two eight rows below, then the next
    /// eight columns.
    fn at(&self, n: usize, of: Fragment) -> Src {
        match self {
            Source::Scalar(src) => *src,
            Source::Tile(regs, own, read) => {
                let place = match (read, of, own) {
                    (Read::Column, Fragment::Full(_), Fragment::Column) => n / 2 % 2,
                    (Read::Row, Fragment::Full(_), Fragment::Row(_)) => n / 4 * 2 + n % 2,
                    _ => n,
                };
                regs[place].into()
            }
        }
    }
}

impl Code<'_> {
    /// An element-wise instruction.
    pub(super) fn elements(&mut self, inst: &Inst, d: &TileRef, expr: &Expr) -> Option<()> {
        let row = inst.instr.get();
        let kernel = self.kernel;
        let dtype = |t: &TileRef| kernel.tiles[t.tile].ty.dtype;
        if self.narrow(inst, d, expr)? {
            return Some(());
        }
        let mut types = vec![dtype(d)];
        let mut sources = Vec::new();
        for (k, operand) in inst.operands.iter().enumerate().skip(1) {
            match operand {
                Operand::Tile(t) => {
                    types.push(dtype(t));
                    let (regs, lies) = self.part(t)?;
                    let regs = self.widened(regs, dtype(t));
                    sources.push(Source::Tile(regs, lies, row.read(k)));
                }
                Operand::Scalar(v) => {
                    let Ty::D(ty) = self.kernel.values[*v].ty else { return None };
                    types.push(ty);
                    sources.push(Source::Scalar(self.value(*v)?));
                }
                Operand::View(_) => return None,
            }
        }
        if inst.attrs.reversed && sources.len() == 2 {
            sources.swap(0, 1);
            types.swap(1, 2);
        }
        let (to, of) = self.part(d)?;
        if let (Sem::RowExpandBinary(BinOp::Mul), [Source::Tile(a, ..), Source::Tile(by, ..)]) = (row.sem, &sources[..])
            && matches!(of, Fragment::Full(_))
        {
            self.forget(d.tile);
            self.scale_rows(&to, a, by);
            return Some(());
        }
        let formula = Formula { inst, types };
        let mut values = Vec::new();
        let count = of.elements() as usize;
        if !matches!(expr, Expr::Convert(..)) && !is_direct(expr, &formula.types) {
            let function = lower_formula(expr, formula.types[0], &formula.types[1..], &unreversed(inst));
            self.forget(d.tile);
            for (n, reg) in to.into_iter().enumerate() {
                let args: Vec<Src> = sources.iter().map(|s| s.at(n, of)).collect();
                self.call(&function, &args, reg)?;
            }
            return Some(());
        }
        // Of many exponentials the arguments come first.
        let (inner, exponentials) = match expr {
            Expr::Un(UnOp::Exp, inner) if count > 4 => (*inner, true),
            _ => (expr, false),
        };
        let difference = match inner {
            Expr::Bin(BinOp::Sub, a, b) if exponentials && self.has_special_function_unit() => Some((*a, *b)),
            _ => None,
        };
        let mut subtrahends = Vec::new();
        for n in 0..count {
            let args: Vec<Src> = sources.iter().map(|s| s.at(n, of)).collect();
            values.push(match difference {
                Some((a, b)) => {
                    let (a, b) = (self.formula(&formula, a, &args)?, self.formula(&formula, b, &args)?);
                    self.exponential_of_difference(a, b, &mut subtrahends)
                }
                None => self.formula(&formula, inner, &args)?,
            });
        }
        if exponentials && difference.is_none() {
            values = self.exponentials(&values)?;
        }
        self.forget(d.tile);
        match formula.types[0] {
            DType::F16 | DType::BF16 => {
                let ty = if formula.types[0] == DType::BF16 { Type::BF16 } else { Type::F16 };
                for (reg, pair) in to.into_iter().zip(values.chunks(2)) {
                    self.b.push(Ptx::Cvt2(ty), &[reg], &[pair[1], pair[0]]);
                }
            }
            _ => {
                for (reg, value) in to.into_iter().zip(values) {
                    let class = self.b.class(reg);
                    self.b.set(reg, copied(class), value);
                }
            }
        }
        Some(())
    }

    /// A function of the lowering, of an element of each source.
    fn call(&mut self, function: &Module, args: &[Src], to: VReg) -> Option<()> {
        let mut e = Emit::new(function, GROUP, Homes::new(function, 0));
        std::mem::swap(&mut self.b, &mut e.b);
        for stmt in &function.block.body {
            match &stmt.op {
                Op::Load { dst, addr, .. } => {
                    let Base::Tensor(n) = addr.base else { return None };
                    let value = match args[n as usize] {
                        Src::Reg(reg) => reg,
                        other => e.b.mov(whole(function.block.regs[*dst].ty), other),
                    };
                    e.define(*dst, value);
                }
                Op::Store { value, .. } => {
                    let value = e.reg(*value);
                    let class = e.b.class(value);
                    e.b.set(to, copied(class), value);
                }
                op if pure(op) => e.compute(op),
                _ => return None,
            }
        }
        std::mem::swap(&mut self.b, &mut e.b);
        Some(())
    }

    /// Elements as f32, of which a register has two where they are narrow.
    fn widened(&mut self, regs: Vec<VReg>, dtype: DType) -> Vec<VReg> {
        let from = match dtype {
            DType::F16 => Type::F16,
            DType::BF16 => Type::BF16,
            _ => return regs,
        };
        let halves = self.unpacked(&regs, dtype);
        halves.into_iter().map(|half| self.b.cvt(Type::F32, from, Round::None, half)).collect()
    }

    /// Rows times a column. Where a thread's rows are multiplied by 1, they stay: so it is with sums of a softmax as
    /// long as no greater number comes.
    fn scale_rows(&mut self, to: &[VReg], a: &[VReg], by: &[VReg]) {
        let one = Src::Imm(1f32.to_bits().into());
        let other = [by[0], by[1]].map(|x| self.b.setp(Cmp::Neu, Type::F32, x, one));
        let any = self.b.arith(Arith::Or, Type::Pred, &[other[0].into(), other[1].into()]);
        let (same, end) = (self.b.label(), self.b.label());
        self.b.bra_if(any, false, same);
        for (n, (to, a)) in to.iter().zip(a).enumerate() {
            self.b.push(Ptx::Arith(Arith::MulF, Type::F32), &[*to], &[(*a).into(), by[n / 2 % 2].into()]);
        }
        self.b.bra(end);
        self.b.place(same);
        for (to, a) in to.iter().zip(a) {
            self.b.set(*to, Type::F32, *a);
        }
        self.b.place(end);
    }

    /// The value of an expression.
    fn formula(&mut self, f: &Formula<'_>, e: &Expr, args: &[Src]) -> Option<Src> {
        let ty = |e: &Expr| arithmetic(Ty::D(typed(e, &f.types)?));
        Some(match *e {
            Expr::Arg(k) => *args.get(k.checked_sub(1)?)?,
            Expr::Number(n, _) if ty(e)? == Type::F32 => Src::Imm(u64::from((n as f32).to_bits())),
            Expr::Number(n, _) => Src::Imm(u64::from(n as u32)),
            Expr::Bin(op, a, b) => {
                let (arith, ty) = binary(op, ty(e)?)?;
                let srcs = [self.formula(f, a, args)?, self.formula(f, b, args)?];
                self.b.arith(arith, ty, &srcs).into()
            }
            Expr::Un(op, a) => {
                let x = self.formula(f, a, args)?;
                self.unary(op, ty(e)?, x)?
            }
            Expr::Fma(a, b, c) => {
                let srcs = [self.formula(f, a, args)?, self.formula(f, b, args)?, self.formula(f, c, args)?];
                self.b.arith(Arith::Fma, Type::F32, &srcs).into()
            }
            Expr::Cmp(op, a, b) => self.compare(f, op, (a, b), args)?,
            Expr::CmpMode(a, b) => self.compare(f, f.inst.attrs.cmp?, (a, b), args)?,
            Expr::Select(c, a, b) => {
                let (a, b, ty) = (self.formula(f, a, args)?, self.formula(f, b, args)?, bits(ty(e)?));
                let Src::Reg(c) = self.formula(f, c, args)? else { return None };
                self.b.selp(ty, a, b, c).into()
            }
            // What is narrow is rounded where two become a word.
            Expr::Convert(Expr::Arg(1), To::Mode) => *args.first()?,
            Expr::Pow(..) | Expr::Convert(..) => return None,
        })
    }

    fn compare(&mut self, f: &Formula<'_>, op: ptoc_isa::CmpOp, (a, b): (&Expr, &Expr), args: &[Src]) -> Option<Src> {
        let ty = arithmetic(Ty::D(typed(a, &f.types)?))?;
        let (a, b) = (self.formula(f, a, args)?, self.formula(f, b, args)?);
        Some(self.b.setp(comparison(op, ty), ty, a, b).into())
    }

    fn unary(&mut self, op: UnOp, ty: Type, x: Src) -> Option<Src> {
        let one = Src::Imm(u64::from(1f32.to_bits()));
        let mut arith = |arith, srcs: &[Src]| Src::Reg(self.b.arith(arith, ty, srcs));
        Some(match op {
            UnOp::Neg => arith(Arith::Neg, &[x]),
            UnOp::Abs => arith(Arith::Abs, &[x]),
            UnOp::Not => arith(Arith::Not, &[x]),
            UnOp::Relu => arith(Arith::MaxF, &[x, Src::Imm(0)]),
            UnOp::Sqrt => arith(Arith::SqrtF, &[x]),
            UnOp::Recip => arith(Arith::DivF, &[one, x]),
            UnOp::Rsqrt => {
                let root = arith(Arith::SqrtF, &[x]);
                arith(Arith::DivF, &[one, root])
            }
            UnOp::Exp => return self.exponential(x),
            _ => return None,
        })
    }

    /// As a register of f32.
    pub(super) fn f32_bits(&mut self, reg: VReg) -> VReg {
        self.b.bits(Class::B32, reg)
    }
}

/// The modes of an instruction whose operands have been put in order.
fn unreversed(inst: &Inst) -> InstAttrs {
    InstAttrs { reversed: false, ..inst.attrs }
}

/// An instruction, and the types of its operands in the order of the expression.
struct Formula<'i> {
    inst: &'i Inst,
    types: Vec<DType>,
}
