//! The sign of numbers. Integers of the text have none; tiles have one, and an instruction's number is of its tile's
//! type.

use crate::lexer::Word;
use crate::tree::{Op, Operand, Region};
use crate::types::{Type, dtype_of};
use ptoc_tensor::DType;
use rustc_hash::FxHashMap;

/// The dtype of the tiles of an instruction; masks have bytes.
pub(super) fn of_tiles(op: &Op, masks: &FxHashMap<Word, i64>) -> Option<DType> {
    let is_mask = |o: &&Operand| masks.contains_key(&o.value.name);
    let tiles = op.operands.iter().filter(|o| !is_mask(o)).filter_map(|o| o.ty.as_ref());
    tiles.filter(|t| matches!(t.ty, Type::TileBuf(_))).find_map(|t| t.ty.element().and_then(|e| dtype_of(e)))
}

/// The dtype that every use of a value asks for; `None` where uses differ, or one is not an instruction's.
pub(super) fn wanted(body: &Region, masks: &FxHashMap<Word, i64>) -> FxHashMap<Word, Option<DType>> {
    let mut found = FxHashMap::default();
    region(body, masks, &mut found);
    found
}

fn region(region_: &Region, masks: &FxHashMap<Word, i64>, found: &mut FxHashMap<Word, Option<DType>>) {
    for op in &region_.ops {
        let own = op.row.instr.and_then(|_| of_tiles(op, masks)).filter(|d| d.is_int());
        for operand in op.operands.iter().filter(|o| !matches!(o.ty.as_ref().map(|t| &t.ty), Some(Type::TileBuf(_)))) {
            let wanted = found.entry(operand.value.name.clone()).or_insert(own);
            if *wanted != own || operand.slot == "diagonal" {
                *wanted = None;
            }
        }
        op.regions.iter().for_each(|r| region(r, masks, found));
    }
}
