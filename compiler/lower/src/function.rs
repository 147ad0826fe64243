//! The function of an element-wise instruction, emitted: what becomes of the elements of its operands
//! ([`ptoc_opt::pattern`]).

use super::code::FunctionBuilder;
use super::{Lower, convert, formula};
use ptoc_ir::loops::Reg;
use ptoc_ir::tile::{Operand, Ty};
use ptoc_isa::{Expr, RoundMode, Sem, drained};
use ptoc_opt::fusion::{self, copies};
use ptoc_opt::pattern::{OperandWindow, Pattern, Read};
use ptoc_tensor::DType;

/// What becomes of the elements.
pub(super) type Function = Box<dyn Fn(&mut FunctionBuilder, &[Reg]) -> Reg>;

impl Lower<'_> {
    pub(super) fn dtype(&self, place: &OperandWindow<'_>) -> DType {
        fusion::dtype(self.kernel, place)
    }

    /// Whether the bits are taken as they are. Of a chain, see [`copies`].
    pub(super) fn keeps_bits(&self, p: &Pattern<'_>) -> bool {
        let same = |(src, _): &(OperandWindow<'_>, Read)| self.dtype(src) == self.dtype(&p.dst);
        copies(self.kernel, p) || (p.inst.instr.get().sem == Sem::Move && !p.inst.attrs.relu && p.srcs.iter().all(same))
    }

    /// What a pattern computes of the elements of its operands. The result may hold more than its type (`ops::settle`).
    pub(super) fn function(&mut self, p: &Pattern<'_>) -> Function {
        let inst = p.inst;
        let ty = Ty::D(self.dtype(&p.dst));
        let from = p.srcs.first().map_or(ty, |(src, _)| Ty::D(self.dtype(src)));
        match inst.instr.get().sem {
            sem if let Some(expr) = sem.expr() => self.expression(p, expr),
            Sem::Store | Sem::Move if inst.attrs.relu => {
                let (from, to) = (p.srcs.first().map_or(DType::F32, |(src, _)| self.dtype(src)), self.dtype(&p.dst));
                let attrs = inst.attrs;
                Box::new(move |code, v| formula::emit(code, drained(false, true), to, &[(from, v[0])], &attrs))
            }
            Sem::Load | Sem::Store | Sem::Move if from != ty => {
                let saturate = ptoc_ir::scalar::saturates_unasked(from, ty);
                Box::new(move |code, v| convert::convert(code, from, ty, v[0], RoundMode::Rint, saturate))
            }
            // The others put elements elsewhere.
            _ => Box::new(|_, v| v[0]),
        }
    }
    /// The expression of an element-wise instruction.
    fn expression(&mut self, p: &Pattern<'_>, expr: Expr) -> Function {
        let (dst, attrs) = (self.dtype(&p.dst), p.inst.attrs);
        let mut tiles = p.srcs.iter().enumerate();
        let mut sources: Vec<(DType, ExprSource)> = Vec::new();
        for operand in &p.inst.operands[1..] {
            sources.push(match operand {
                Operand::Scalar(v) => {
                    let dtype = if let Ty::D(d) = self.kernel.values[*v].ty { d } else { dst };
                    (dtype, ExprSource::Scalar(self.value(*v)))
                }
                _ => match tiles.next() {
                    Some((n, (place, _))) => (self.dtype(place), ExprSource::Tile(n)),
                    None => continue,
                },
            });
        }
        if attrs.reversed && sources.len() == 2 {
            sources.swap(0, 1);
        }
        Box::new(move |code, v| {
            let register = |s: &ExprSource| match s {
                ExprSource::Scalar(r) => *r,
                ExprSource::Tile(n) => v[*n],
            };
            let registers: Vec<(DType, Reg)> = sources.iter().map(|(d, s)| (*d, register(s))).collect();
            formula::emit(code, &expr, dst, &registers, &attrs)
        })
    }
}

/// A source of an expression.
enum ExprSource {
    Scalar(Reg),
    /// The tile source with this number.
    Tile(usize),
}
