//! `%` of tiles: no operator, but instructions of two kinds. What is said names those that take what is there.

use super::super::inst::{instr_for, usage};
use super::super::{ElabResult, Elaborator};
use super::symbol;
use ptoc_diagnostics::{Diagnostic, Span, codes};
use ptoc_isa::{BinOp, DTypeProblem, Expr, InstrId, Nearest, Sem, text};
use ptoc_tensor::DType;

/// A side of the operator.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum RemainderOperand {
    Left,
    Right,
}

/// What stands on the two sides.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// Tiles of one shape.
    Tiles,
    /// A tile and a column or a row, which is spread by this instruction.
    Spread(Sem, RemainderOperand),
    /// A tile and a scalar.
    ByScalar,
    /// A scalar and a tile.
    OfScalar,
}

impl Elaborator<'_> {
    /// Says what computes remainders.
    pub(super) fn no_remainder<T>(&mut self, dtype: DType, way: Way, span: Span) -> ElabResult<T> {
        let what = symbol(BinOp::Rem.name());
        let message = match dtype.is_float() {
            true => format!("`{what}` is not defined on tiles of `{dtype}`"),
            false => format!("there is no instruction for `{what}` on tiles"),
        };
        let d = Diagnostic::error(codes::UNDEFINED_OPERATION, span, message);
        let d = match self.remainders(dtype, way) {
            Ok(help) => d.with_help(help),
            Err(note) => d.with_note(note),
        };
        self.report(d)
    }

    /// The instructions that compute remainders of this dtype, or of the nearest one that they take; else that there
    /// are none.
    fn remainders(&self, dtype: DType, way: Way) -> Result<String, String> {
        let is_rem = |e: &Expr| matches!(e, Expr::Bin(BinOp::Rem, ..));
        let all = InstrId::all().filter_map(|id| Some((id, id.get().sem.expr()?)));
        let form = |id: InstrId| id.get().operands[2].is_tile() != (way == Way::ByScalar);
        let all: Vec<(InstrId, Expr)> = all.filter(|(id, e)| e.any(&is_rem) && form(*id)).collect();
        // `Err`: what to use instead, if there is something.
        let takes = |id: InstrId| match ptoc_isa::check_dtypes(self.target, id, &[dtype; 3], None).map(|v| v.problem) {
            None => Ok(()),
            Some(DTypeProblem::Unsupported { instead, .. }) => Err(instead),
            Some(_) => Err(None),
        };
        let rank = |n: &Nearest| match n {
            Nearest::Keeps(d) => (0, d.size()),
            Nearest::Rounds(d) => (1, d.size()),
            Nearest::Declared(d) => (2, d.size()),
        };
        let any = all.iter().any(|(id, _)| takes(*id).is_ok());
        let instead = all.iter().filter_map(|(id, _)| takes(*id).err().flatten()).min_by_key(rank).filter(|_| !any);
        let to = instead.map_or(dtype, Nearest::dtype);
        let there = |id: &InstrId| ptoc_isa::check_dtypes(self.target, *id, &[to; 3], None).is_none();
        let said = all.iter().filter(|(id, _)| there(id)).map(|(id, e)| {
            let sign = if is_rem(e) { "dividend" } else { "divisor" };
            format!("`{}` (the sign of the {sign})", usage(*id))
        });
        let said: Vec<String> = said.collect();
        if said.is_empty() {
            return Err(format!("{} has no instruction for remainders of {dtype}", self.target.name));
        }
        let mut help = format!("remainders of tiles are instructions: {}", text::either(said));
        if let Some(nearest) = instead {
            help += &format!("; of {dtype} there is none: {}", nearest.help(dtype, &self.target.name));
        }
        match way {
            Way::OfScalar => help += "; fill a tile with the scalar for `a`: `t = 1;`",
            Way::Spread(sem, side) => {
                let name = if side == RemainderOperand::Left { "a" } else { "b" };
                let spread = instr_for(sem).map_or_else(String::new, usage);
                help += &format!("; tiles of one shape, so spread `{name}` first: `{spread}`");
            }
            Way::Tiles | Way::ByScalar => {}
        }
        Ok(help)
    }
}
