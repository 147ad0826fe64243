//! Locations of an instruction's tile operands.

use super::moves::shortest_path;
use crate::{DTypeRule, InstrId, Loc, OperandKind, Role, Target, TileType, text};
use ptoc_diagnostics::{Diagnostic, Span, codes};

/// A tile operand in a location where the instruction does not work.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LocationViolation {
    /// The instruction.
    pub instr: InstrId,
    /// Index of the operand.
    pub operand: usize,
    /// The tile.
    pub ty: TileType,
    /// Where the instruction takes it.
    pub allowed: Vec<Loc>,
    /// The first of them to which the target can move the tile (of a source).
    pub movable_to: Option<Loc>,
}

/// Checks the location of operand `operand` of `instr`, which is a tile of type `ty`. Loads, stores and moves are left
/// to [`super::check_move`], whose message knows the way round.
pub fn check_location(target: &Target, instr: InstrId, operand: usize, ty: TileType) -> Option<LocationViolation> {
    let row = instr.get();
    let spec = row.operands.get(operand)?;
    let OperandKind::Tile(_) = spec.kind else { return None };
    if row.dtypes == DTypeRule::Move || spec.takes(ty.loc) {
        return None;
    }
    let allowed = spec.locations(target);
    let movable = |to: &&Loc| shortest_path(target, ty.loc, **to, ty.dtype).is_some();
    let movable_to = allowed.iter().filter(|_| spec.role == Role::Src).find(movable).copied();
    Some(LocationViolation { instr, operand, ty, allowed, movable_to })
}

impl LocationViolation {
    /// The report; `subject` is how the author calls the tile ("tile `x`").
    pub fn diagnostic(&self, subject: &str, span: Span) -> Diagnostic {
        let row = self.instr.get();
        let operand = row.operands[self.operand].name;
        let (is, there) = (self.ty.loc, text::either(&self.allowed));
        let d = Diagnostic::error(
            codes::OPERAND_LOCATION,
            span,
            format!("{} takes `{operand}` in {there}, and {subject} is in {is}", row.written_name()),
        )
        .with_label(self.ty.to_string());
        match self.movable_to {
            Some(loc) => d.with_help(format!("move it: `{loc}(...)`")),
            None => d.with_help(format!("declare the tile in {there}")),
        }
    }
}
