//! The order of a block: operations that do something stay in theirs, and in front of each stands what computes its
//! operands, in the order of the operands, if nothing in front of it asked for that. So the text does not show when the
//! source, or another text, happened to compute a number.

use super::dead::is_pure;
use crate::attr::Source;
use crate::lexer::Word;
use crate::tree::Op;
use crate::types::Type;
use rustc_hash::{FxHashMap, FxHashSet};

/// Orders a block, and the blocks in it. Constants stand first, then what says what an array or the grid is: the names
/// in `kept`.
pub(super) fn late(ops: &mut Vec<Op>, kept: &FxHashSet<Word>) {
    for op in ops.iter_mut() {
        op.regions.iter_mut().for_each(|r| late(&mut r.ops, kept));
    }
    let mut waiting: Vec<Option<Op>> = std::mem::take(ops).into_iter().map(Some).collect();
    let (mut constants, mut first, mut stays) = (Vec::new(), Vec::new(), Vec::new());
    let mut definitions = FxHashMap::default();
    for (n, op) in waiting.iter().flatten().enumerate() {
        let moves = is_pure(op) && op.row.name != "arith.constant";
        if moves {
            definitions.extend(op.results.iter().map(|r| (r.name.clone(), n)));
        }
        match (op.row.name, moves) {
            ("arith.constant", _) => constants.push(n),
            _ if op.results.iter().any(|r| kept.contains(&r.name)) => first.push(n),
            (_, true) => {}
            _ => stays.push(n),
        }
    }
    constants.into_iter().chain(first).chain(stays).for_each(|n| emit(n, &mut waiting, &definitions, ops));
}

/// Puts an operation behind what computes its operands. Values are defined in front of their uses, so this ends.
fn emit(first: usize, waiting: &mut [Option<Op>], definitions: &FxHashMap<Word, usize>, out: &mut Vec<Op>) {
    // Operations whose operands are not all there, and which of these is next.
    let mut open: Vec<(usize, Vec<Word>, usize)> = Vec::new();
    let uses = |n: usize, waiting: &[Option<Op>]| {
        let mut names = Vec::new();
        waiting[n].iter().for_each(|op| used(op, &mut names));
        (n, names, 0)
    };
    open.push(uses(first, waiting));
    while let Some((n, names, next)) = open.last_mut() {
        let Some(name) = names.get(*next) else {
            out.extend(waiting[*n].take());
            open.pop();
            continue;
        };
        *next += 1;
        if let Some(of) = definitions.get(name).filter(|of| waiting[**of].is_some()) {
            let of = *of;
            open.push(uses(of, waiting));
        }
    }
}

/// Gives sums and products of type `index` the place of the first operation that asks for them: windows compute some of
/// them, too, and only one of both has its place in the IR. `asked` has the places where values are asked for behind.
pub(super) fn place(ops: &mut [Op], asked: &mut FxHashMap<Word, Option<Source>>) {
    for op in ops.iter_mut().rev() {
        op.regions.iter_mut().rev().for_each(|r| place(&mut r.ops, asked));
        let is_index = op.operands.iter().all(|o| o.ty.as_ref().is_none_or(|t| t.ty == Type::Index));
        if let Some(first) = op.results.first().and_then(|r| asked.get(&r.name))
            && is_index
            && ["arith.addi", "arith.muli"].contains(&op.row.name)
        {
            op.source.clone_from(first);
        }
        for operand in &op.operands {
            asked.insert(operand.value.name.clone(), op.source.clone());
        }
    }
}

/// All values that an operation uses, also in its blocks.
fn used(op: &Op, names: &mut Vec<Word>) {
    names.extend(op.operands.iter().map(|o| o.value.name.clone()));
    op.regions.iter().for_each(|r| r.ops.iter().for_each(|op| used(op, names)));
}
