//! Views of global memory that `pto.tassign` binds to another pointer: views of the same shape and strides, of that
//! pointer.

use super::unique_names::Fresh;
use crate::lexer::Word;
use crate::ops;
use crate::tree::{Function, Op, Operand, Region, ResultName};
use crate::types::Type;
use rustc_hash::{FxHashMap, FxHashSet};

/// The function with a `make_tensor_view` for each binding of a view to a pointer; `None` if it has none. What has no
/// result binds the view itself, from there to the end of the block that makes it.
pub(super) fn remade(f: &Function) -> Option<Function> {
    if !f.body.as_ref().is_some_and(binds) {
        return None;
    }
    let mut made = f.clone();
    let mut rewriter = Rewriter { fresh: Fresh::of(f), ..Rewriter::default() };
    rewriter.region(made.body.as_mut()?);
    rewriter.changed.then_some(made)
}

/// Whether something is bound in a block.
fn binds(region: &Region) -> bool {
    region.ops.iter().any(|op| op.row.name == "pto.tassign" || op.regions.iter().any(binds))
}

#[derive(Default)]
struct Rewriter {
    /// The operation that makes a view, by its name.
    views: FxHashMap<Word, Op>,
    /// New names of views that were bound themselves.
    names: FxHashMap<Word, Word>,
    fresh: Fresh,
    changed: bool,
}

impl Rewriter {
    fn region(&mut self, region: &mut Region) {
        let mut own = FxHashSet::default();
        for op in &mut region.ops {
            for operand in &mut op.operands {
                if let Some(name) = self.names.get(&operand.value.name) {
                    operand.value.name = name.clone();
                }
            }
            if let Some(view) = self.bound(op, &own) {
                *op = view;
                self.changed = true;
            }
            if let ("pto.make_tensor_view", [result]) = (op.row.name, &op.results[..]) {
                own.insert(result.name.clone());
                self.views.insert(result.name.clone(), op.clone());
            }
            op.regions.iter_mut().for_each(|r| self.region(r));
        }
        self.names.retain(|_, new| !own.contains(new));
    }

    /// The view that a binding makes. `own` has the views of this block.
    fn bound(&mut self, op: &Op, own: &FxHashSet<Word>) -> Option<Op> {
        let tile = op.operand("tile").filter(|_| op.row.name == "pto.tassign")?;
        let addr = op.operand("addr")?;
        let view = self.views.get(&tile.value.name)?.clone();
        let results = match &op.results[..] {
            [] if own.contains(&tile.value.name) => {
                let name = self.fresh.name(&tile.value.name);
                // Both the name in the text and the one that it had until now.
                let old: Vec<Word> =
                    self.names.iter().filter(|(_, n)| **n == tile.value.name).map(|(o, _)| o.clone()).collect();
                self.names.extend(old.into_iter().chain([tile.value.name.clone()]).map(|old| (old, name.clone())));
                vec![ResultName { name, count: None, span: op.span }]
            }
            [result] => vec![result.clone()],
            _ => return None,
        };
        let is_view = view.result_types.first().is_some_and(|t| matches!(t.ty, Type::TensorView(..)));
        let row = ops::lookup("pto.make_tensor_view").filter(|_| is_view)?;
        let ptr = Operand { slot: "ptr", value: addr.value.clone(), ty: None };
        let rest = view.operands.iter().filter(|o| o.slot != "ptr").cloned();
        Some(Op {
            values: None,
            results,
            row,
            elided: false,
            operands: [ptr].into_iter().chain(rest).collect(),
            regions: Vec::new(),
            ..Op { attrs: view.attrs, result_types: view.result_types, ..op.clone() }
        })
    }
}
