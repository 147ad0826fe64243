//! Dead code elimination: values that nothing uses, as those that only run-time checks wanted. Then values without a
//! name are numbered without gaps.

use crate::lexer::Word;
use crate::tree::Op;
use rustc_hash::{FxHashMap, FxHashSet};

/// Drops pure operations whose results are not used, but for these.
pub(super) fn eliminate(ops: &mut Vec<Op>, kept: &FxHashSet<Word>) {
    let mut uses = FxHashMap::default();
    uses.extend(kept.iter().map(|name| (name.clone(), 1)));
    count(ops, &mut uses);
    sweep(ops, &mut uses);
}

fn count(ops: &[Op], uses: &mut FxHashMap<Word, u32>) {
    for op in ops {
        for operand in &op.operands {
            *uses.entry(operand.value.name.clone()).or_default() += 1;
        }
        op.regions.iter().for_each(|r| count(&r.ops, uses));
    }
}

/// Uses come behind definitions, so one walk from the end finds what becomes unused, too.
fn sweep(ops: &mut Vec<Op>, uses: &mut FxHashMap<Word, u32>) {
    for n in (0..ops.len()).rev() {
        let op = &mut ops[n];
        op.regions.iter_mut().for_each(|r| sweep(&mut r.ops, uses));
        let used = op.results.iter().any(|r| uses.get(&r.name).is_some_and(|n| *n > 0));
        if used || !is_pure(op) {
            continue;
        }
        for operand in &ops[n].operands {
            if let Some(n) = uses.get_mut(&operand.value.name) {
                *n -= 1;
            }
        }
        ops.remove(n);
    }
}

fn is_pure(op: &Op) -> bool {
    op.row.name.starts_with("arith.")
        || ["pto.make_tensor_view", "pto.partition_view", "pto.addptr", "pto.get_block_idx", "pto.get_block_num"]
            .contains(&op.row.name)
}

/// Numbers the values whose names are numbers, in the order of the text.
pub(super) fn renumber(ops: &mut [Op]) {
    let mut names = FxHashMap::default();
    ops.iter().for_each(|op| number(op, &mut names));
    ops.iter_mut().for_each(|op| rename(op, &names));
}

fn is_number(name: &str) -> bool {
    name.bytes().all(|b| b.is_ascii_digit())
}

fn number(op: &Op, names: &mut FxHashMap<Word, Word>) {
    for result in op.results.iter() {
        // Constants that have no short name stand in their order, too.
        let constant = result.name.starts_with("cst");
        if constant || is_number(&result.name) {
            let n = names.keys().filter(|n| n.starts_with("cst") == constant).count();
            let next = if constant { format!("cst_{n}") } else { n.to_string() };
            names.insert(result.name.clone(), Word::new(next));
        }
    }
    op.regions.iter().for_each(|r| r.ops.iter().for_each(|op| number(op, names)));
}

fn rename(op: &mut Op, names: &FxHashMap<Word, Word>) {
    let new = |name: &mut Word| {
        if let Some(n) = names.get(name) {
            *name = n.clone();
        }
    };
    op.results.iter_mut().for_each(|r| new(&mut r.name));
    op.operands.iter_mut().for_each(|o| new(&mut o.value.name));
    op.regions.iter_mut().for_each(|r| r.ops.iter_mut().for_each(|op| rename(op, names)));
}
