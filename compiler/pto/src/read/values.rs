//! The basic form and level 1: each value becomes a tile of its own, and the operation writes to it.

use super::{Reader, Res, not_read};
use crate::ops::Form;
use crate::tree::{Op, Operand, Value};
use crate::types::{TileBuf, Type, Typed};
use ptoc_diagnostics::{Diagnostic, codes};
use ptoc_isa::Loc;

impl Reader<'_> {
    /// The operation in destination-passing style, behind the declaration of what it gives.
    pub(super) fn value_op(&mut self, op: &Op) -> Res<()> {
        let Form::Dps(dps) = &op.row.form else { return self.unread(op) };
        let mut written = Op { values: None, results: Vec::new(), result_types: Vec::new(), ..op.clone() };
        match (&op.results[..], &op.result_types[..], &dps.outs[..]) {
            ([], _, _) => {}
            ([result], [ty], [out, ..]) => {
                let Type::Tile(tile) = &ty.ty else {
                    return not_read(ty.span, format!("an operation that gives a `{}` is not read here", ty.ty));
                };
                let [Some(rows), Some(cols)] = tile.extents[..] else {
                    return not_read(ty.span, "a tile that is a value has two extents, both of them numbers");
                };
                let buffer = TileBuf::plain(tile.loc().unwrap_or(Loc::Vec), tile.dtype.clone(), rows, cols);
                let ty = Typed { ty: Type::TileBuf(Box::new(buffer)), span: ty.span };
                let declared = Op {
                    row: crate::ops::lookup("pto.alloc_tile").unwrap_or(op.row),
                    operands: Vec::new(),
                    attrs: Vec::new(),
                    result_types: vec![ty.clone()],
                    ..op.clone()
                };
                self.tile_op(&declared)?;
                let value = Value { name: result.name.clone(), index: None, span: result.span };
                written.operands.push(Operand { slot: out.name, value, ty: Some(ty) });
            }
            _ => {
                let message = format!("`{}` with {} results is not read", op.row.name, op.results.len());
                let help = "write it in level 2, with buffers: `pto.alloc_tile`, then `ins(..) outs(..)`";
                return Err(Box::new(Diagnostic::error(codes::PTO_NOT_READ, op.span, message).with_help(help)));
            }
        }
        self.instruction(&written)
    }
}
