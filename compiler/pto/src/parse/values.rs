//! The basic form and level 1: tiles are values, which an operation gives.
//!
//! ```text
//! basic     %d = tadd %a, %b : !pto.tile<16x64xf32>
//! level 1   %d = pto.tadd %a, %b : (!pto.tile<16x64xf32>, !pto.tile<16x64xf32>) -> !pto.tile<16x64xf32>
//! ```

use super::ops::UNPLACED;
use super::{Parser, Res};
use crate::ops::{Count, Dps, Slot};
use crate::tree::{Op, Operand, ValueForm};
use crate::types::{Type, Typed};
use ptoc_diagnostics::codes;

impl Parser<'_> {
    /// Operands, attributes and types of an operation on values.
    pub(super) fn values_form(&mut self, op: &mut Op, dps: &Dps, basic: bool) -> Res<()> {
        let start = self.token.start;
        self.values(UNPLACED, op)?;
        let plain = op.operands.len();
        if self.eat("[") {
            self.values(UNPLACED, op)?;
            self.expect("]", "behind the indices")?;
        }
        let bracketed = op.operands.len() - plain;
        if self.is("{") {
            op.attrs = self.dict()?;
        }
        self.expect(":", "and the types, as in `: (T, T) -> T`")?;
        let parens = self.eat("(");
        let types = if parens { self.list(")", |p| p.ty())? } else { self.bare_types()? };
        let arrow = self.eat("->");
        if arrow {
            op.result_types = if self.eat("(") { self.list(")", |p| p.ty())? } else { self.bare_types()? };
        } else if !op.results.is_empty() {
            // One type is that of all tiles; else the last one, if there is one more than operands.
            op.result_types
                .extend(types.last().filter(|_| types.len() == 1 || types.len() > op.operands.len()).cloned());
        }
        self.types_of_operands(op, &types, (arrow, bracketed), start)?;
        self.slots(op, dps, start)?;
        op.values = Some(Box::new(ValueForm { basic, bracketed, types, parens, arrow }));
        Ok(())
    }

    fn bare_types(&mut self) -> Res<Vec<Typed>> {
        let mut types = vec![self.ty()?];
        while self.eat(",") {
            types.push(self.ty()?);
        }
        Ok(types)
    }

    /// Each operand's type, where each has one.
    fn types_of_operands(
        &mut self,
        op: &mut Op,
        types: &[Typed],
        (arrow, bracketed): (bool, usize),
        start: usize,
    ) -> Res<()> {
        let operands = op.operands.len();
        let own = types.len() - usize::from(!arrow && types.len() == operands + 1);
        // Indices in brackets may have none.
        if own == operands || own == operands - bracketed {
            op.operands.iter_mut().zip(types).for_each(|(operand, ty)| operand.ty = Some(ty.clone()));
            // In the basic form a tile's type among those of operands is that of the result, too.
            if op.result_types.is_empty() && !op.results.is_empty() {
                op.result_types.extend(types.iter().find(|t| matches!(t.ty, Type::Tile(_))).cloned());
            }
            return Ok(());
        }
        if types.len() == 1 {
            return Ok(());
        }
        let message = format!("{operands} operands have {own} types");
        self.wrong(codes::PTO_TYPE, self.since(start), message)
    }

    /// Operands are those that the operation reads, in order. Storage to work in may be left out.
    fn slots(&mut self, op: &mut Op, dps: &Dps, start: usize) -> Res<()> {
        // What is written to global memory is an operand.
        let outs = if op.results.is_empty() { &dps.outs[..] } else { &[] };
        let of = |keep: &dyn Fn(&Slot) -> bool| -> Vec<&'static str> {
            dps.ins.iter().filter(|s| keep(s)).chain(outs).map(|s| s.name).collect()
        };
        let all = of(&|_| true);
        let choices = [of(&|s| s.name != "tmp" && s.count == Count::One), of(&|s| s.name != "tmp"), all];
        let places = choices.iter().find(|names| op.operands.len() <= names.len()).unwrap_or(&choices[2]);
        if op.operands.len() > places.len() {
            let message = format!("`{}` has at most {} operands here", op.row.name, places.len());
            return self.wrong(codes::PTO_TYPE, self.since(start), message);
        }
        let place = |(operand, slot): (&mut Operand, &&'static str)| operand.slot = slot;
        op.operands.iter_mut().zip(places).for_each(place);
        Ok(())
    }
}
