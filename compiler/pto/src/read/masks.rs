//! Masks in memory: the text has them as tiles of bytes, eight elements of a row in each, and so they are loaded and
//! stored. The language's masks have elements, and no bytes.

use super::meaning::{Meaning, Tile};
use super::{Reader, Res, not_read};
use crate::tree::Op;
use crate::types::{Major, Type, dtype_of};
use ptoc_diagnostics::{Diagnostic, codes};
use ptoc_tensor::DType;
use rustc_hash::FxHashMap;

/// Elements in a byte, the first one in its lowest bit.
const BITS: i64 = 8;

/// How many bytes the elements of a row have.
fn bytes_of(cols: i64) -> i64 {
    cols / BITS + i64::from(cols % BITS != 0)
}

impl Reader<'_> {
    /// A transfer of the mask in `slot`; `false` if it is no mask.
    pub(super) fn mask_transfer(&mut self, op: &Op, slot: &str) -> Res<bool> {
        let operand = self.operand(op, slot)?;
        let Meaning::Tile(mask) = self.meaning(&operand.value)?.clone() else { return Ok(false) };
        let text = match operand.ty.as_ref().map(|t| &t.ty) {
            Some(Type::TileBuf(text)) if mask.ty.dtype == "i1" && text.dtype != "i1" => (**text).clone(),
            _ => return Ok(false),
        };
        if self.facts.flags {
            let message = "a mask that is loaded or stored is not read where the author orders the pipes";
            let note = "its bytes are made of its elements in a loop, whose place among the flags is not known";
            return Err(Box::new(Diagnostic::error(codes::PTO_NOT_READ, op.span, message).with_note(note)));
        }
        let used = bytes_of(mask.ty.cols);
        let ((Some(rows), Some(width)), true) = (text.valid, text.blayout == Major::Row && mask.is_whole()) else {
            return not_read(op.span, "a mask that is loaded or stored is valid in full, and row-major");
        };
        if used > width || rows != mask.ty.rows {
            let message =
                format!("the mask of {} columns has {used} bytes in each of {} rows", mask.ty.cols, mask.ty.rows);
            return not_read(op.span, format!("{message}, and {rows} rows of {width} are valid"));
        }
        let valid = [Some(rows.to_string()), Some(width.to_string())];
        let declared = self.declaration(&text, &valid, op.span)?;
        let name = self.give("bytes");
        self.out.line(&format!("let {name} = {declared};"), op.span);
        let bytes = Tile { text: name.to_string(), name: name.clone(), ty: text.clone(), addr: None, unknown: false };
        let loaded = op.row.name == "pto.tload";
        if !loaded {
            self.pack(op, &mask, &bytes, used < width)?;
        }
        let instead = (operand.value.name.clone(), vec![Meaning::Tile(bytes.clone())]);
        self.scopes.push(FxHashMap::from_iter([instead]));
        let moved = self.instruction(op);
        self.scopes.pop();
        moved?;
        if loaded {
            self.unpack(op, &mask, &bytes)?;
        }
        Ok(true)
    }

    /// `mask = bytes`
    fn unpack(&mut self, op: &Op, mask: &Tile, bytes: &Tile) -> Res<()> {
        let dtype = self.byte_type(op, bytes)?;
        let (row, col) = (self.give("row"), self.give("col"));
        self.out.open(&format!("for {row} in 0 .. {} {{", mask.ty.rows), op.name_span);
        self.out.open(&format!("for {col} in 0 .. {} {{", mask.ty.cols), op.name_span);
        let byte = format!("{}[{row}, {col} / {BITS}]", bytes.text);
        let bit = format!("({byte} >> {dtype}({col} % {BITS})) & {dtype}(1)");
        self.out.line(&format!("{}[{row}, {col}] = ({bit}) != {dtype}(0);", mask.text), op.span);
        self.out.close("}", op.name_span);
        self.out.close("}", op.name_span);
        Ok(())
    }

    /// `bytes = mask`; those that have no elements are 0.
    fn pack(&mut self, op: &Op, mask: &Tile, bytes: &Tile, rest: bool) -> Res<()> {
        let dtype = self.byte_type(op, bytes)?;
        let (packed, row, col) = (self.give("packed"), self.give("row"), self.give("col"));
        self.out.line(&format!("let {packed} = packbits({});", mask.text), op.span);
        let used = bytes_of(mask.ty.cols);
        self.out.open(&format!("for {row} in 0 .. {} {{", mask.ty.rows), op.name_span);
        self.out.open(&format!("for {col} in 0 .. {used} {{",), op.name_span);
        self.out.line(&format!("{}[{row}, {col}] = {dtype}({packed}[{row}, {col}]);", bytes.text), op.span);
        self.out.close("}", op.name_span);
        if rest {
            let (_, width) = bytes.ty.valid;
            self.out.open(&format!("for {col} in {used} .. {} {{", width.unwrap_or(used)), op.name_span);
            self.out.line(&format!("{}[{row}, {col}] = {dtype}(0);", bytes.text), op.span);
            self.out.close("}", op.name_span);
        }
        self.out.close("}", op.name_span);
        Ok(())
    }

    fn byte_type(&self, op: &Op, bytes: &Tile) -> Res<DType> {
        match dtype_of(&bytes.ty.dtype).filter(|d| d.size() == 1) {
            Some(dtype) => Ok(dtype),
            None => not_read(op.span, format!("a mask of `{}` is not loaded or stored", bytes.ty.dtype)),
        }
    }
}
