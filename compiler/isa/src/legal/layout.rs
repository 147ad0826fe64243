//! Tiles whose elements lie where their author said: which instructions take them.

use crate::{InstrId, Sem, TileType};
use ptoc_diagnostics::{Diagnostic, Span, codes};
use ptoc_layout::TileLayout;

/// A tile with a layout of its own as an operand of an instruction that walks rows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LayoutViolation {
    /// The instruction.
    pub instr: InstrId,
    /// Index of the operand.
    pub operand: usize,
    /// The tile.
    pub ty: TileType,
    /// Its layout.
    pub layout: TileLayout,
}

/// Checks operand `operand` of `instr`, a tile of type `ty`. Loads and stores become copies, which take any layout, and
/// TASSIGN looks at no element; every other instruction walks rows (or, column-major, columns).
pub fn check_layout(instr: InstrId, operand: usize, ty: TileType) -> Option<LayoutViolation> {
    let layout = ty.layout?;
    let any = matches!(instr.get().sem, Sem::Load | Sem::Store | Sem::Assign);
    (!any).then_some(LayoutViolation { instr, operand, ty, layout })
}

impl LayoutViolation {
    /// The report; `subject` is how the author calls the tile ("tile `x`").
    pub fn diagnostic(&self, subject: &str, span: Span) -> Diagnostic {
        let row = self.instr.get();
        let operand = row.operands.get(self.operand).map_or("a", |o| o.name);
        let (TileType { dtype, rows, cols, .. }, layout) = (self.ty, self.layout);
        let message =
            format!("{} walks the rows of `{operand}`, and {subject} has a layout of its own", row.written_name());
        Diagnostic::error(codes::OPERAND_LAYOUT, span, message)
            .with_label(format!("layout {layout}"))
            .with_note("only TLOAD, TSTORE, `copy` and access to single elements follow a tile's layout")
            .with_help(format!("`Vec(..)` of it is a plain tile of {rows} x {cols} {dtype}, and `=` copies one to it"))
    }
}
