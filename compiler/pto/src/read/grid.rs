//! The grid: the loop over all blocks that [`crate::write`] makes of one. Each core begins at its own number and goes
//! on by the number of cores; the number of a block is taken apart, the last dimension fastest.

use super::meaning::{Meaning, Scalar};
use super::{Reader, Res};
use crate::lexer::Word;
use crate::tree::{Op, Region, Value};
use crate::types::Type;

/// A function that is a loop over blocks.
#[derive(Clone, Debug)]
pub(super) struct Grid<'f> {
    /// The loop.
    pub looped: &'f Op,
    /// Names of the indices and values of the extents, the slowest dimension first.
    dims: Vec<(&'f Word, &'f Value)>,
    /// Operations at the beginning of a block that take its number apart.
    skipped: usize,
}

fn by<'f>(region: &'f Region, name: &Word) -> Option<&'f Op> {
    region.ops.iter().find(|op| op.results.first().is_some_and(|r| r.name == *name))
}

/// The grid of a function, if it is a loop over blocks.
pub(super) fn of(body: &Region) -> Option<Grid<'_>> {
    let number = |name: &Word, what: &str| {
        let cast = by(body, name).filter(|op| op.row.name == "arith.index_cast");
        let from = cast.and_then(|op| op.operands.first()).and_then(|o| by(body, &o.value.name));
        from.is_some_and(|op| op.row.name == what)
    };
    let looped = body.ops.iter().rev().find(|op| op.row.name != "func.return")?;
    let bound = |slot| looped.operand(slot).map(|o| &o.value);
    let is_loop = looped.row.name == "scf.for"
        && looped.result_types.is_empty()
        && bound("lower").is_some_and(|v| number(&v.name, "pto.get_block_idx"))
        && bound("step").is_some_and(|v| number(&v.name, "pto.get_block_num"));
    // What stands in front of it is done once for all blocks: numbers, and what the launch has to satisfy.
    let trap = |op: &Op| {
        let ends = |r: &Region| matches!(&r.ops[..], [only] if only.row.name == "pto.trap");
        op.row.name == "scf.if" && op.result_types.is_empty() && matches!(&op.regions[..], [then] if ends(then))
    };
    let pure = |op: &Op| {
        trap(op)
            || op.row.name.starts_with("arith.")
            || ["pto.get_block_idx", "pto.get_block_num", "pto.make_tensor_view", "func.return"].contains(&op.row.name)
    };
    if !is_loop || !body.ops.iter().all(|op| std::ptr::eq(op, looped) || pure(op)) {
        return None;
    }
    // A grid has no number of its core, and none of cores: the loop's bounds are the only use of both.
    let alone = |value: &Value| {
        let cast = by(body, &value.name).and_then(|op| op.operands.first());
        uses(body, &value.name) == 1 && cast.is_some_and(|o| uses(body, &o.value.name) == 1)
    };
    if !["lower", "step"].iter().all(|slot| bound(slot).is_some_and(alone)) {
        return None;
    }
    let index = &looped.regions.first()?.args.first()?.name;
    let upper = bound("upper")?;
    Some(coordinates(body, looped, index, upper).unwrap_or(Grid { looped, dims: vec![(index, upper)], skipped: 0 }))
}

impl Grid<'_> {
    /// Whether each block ends with a barrier of all pipes, as the text that is written has it: where the text orders
    /// the pipes, nothing else keeps a core's next block from what this one has begun.
    pub fn is_ended(&self) -> bool {
        let ops = self.looped.regions.first().map_or(&[][..], |r| &r.ops);
        let last = ops.iter().rev().find(|op| !op.row.name.starts_with("arith.") && op.row.name != "scf.yield");
        let word = last.filter(|op| op.row.name == "pto.barrier").and_then(|op| op.attr("pipe"));
        word.and_then(|a| a.value.as_ref()).and_then(|v| v.word()) == Some("PIPE_ALL")
    }
}

/// `%j = remsi %block, %n`, `%i = floordivsi %block, %n`, and so on, where the loop ends at `%m * %n`.
fn coordinates<'f>(body: &'f Region, looped: &'f Op, index: &'f Word, upper: &'f Value) -> Option<Grid<'f>> {
    let ops = &looped.regions.first()?.ops;
    let (mut dims, mut rest, mut total) = (Vec::new(), index, upper);
    while let [first, second, ..] = &ops[2 * dims.len()..] {
        let of = |op: &'f Op, name: &str| -> Option<(&'f Word, &'f Value)> {
            let (lhs, rhs) = (op.operand("lhs")?, op.operand("rhs")?);
            (op.row.name == name && lhs.value.name == *rest).then_some((&op.results.first()?.name, &rhs.value))
        };
        let (Some((own, extent)), Some((next, same))) = (of(first, "arith.remsi"), of(second, "arith.floordivsi"))
        else {
            break;
        };
        let product = by(body, &total.name).filter(|op| op.row.name == "arith.muli")?;
        let (lhs, rhs) = (&product.operand("lhs")?.value, &product.operand("rhs")?.value);
        let others = match same.name == extent.name {
            true if rhs.name == extent.name => lhs,
            true if lhs.name == extent.name => rhs,
            _ => return None,
        };
        dims.push((own, extent));
        (rest, total) = (next, others);
    }
    let skipped = 2 * dims.len();
    dims.push((rest, total));
    dims.reverse();
    // The number of the block itself may have no other use.
    let used = |op: &Op| op.operands.iter().any(|o| o.value.name == *index);
    let again = dims.len() > 1 && ops[skipped..].iter().any(|op| used(op) || op.regions.iter().any(|r| any(r, &used)));
    (!again).then_some(Grid { looped, dims, skipped })
}

/// How often operations of a region, and of regions in it, have a value.
fn uses(region: &Region, name: &Word) -> usize {
    let of = |op: &Op| {
        let own = op.operands.iter().filter(|o| o.value.name == *name).count();
        own + op.regions.iter().map(|r| uses(r, name)).sum::<usize>()
    };
    region.ops.iter().map(of).sum()
}

fn any(region: &Region, f: &dyn Fn(&Op) -> bool) -> bool {
    region.ops.iter().any(|op| f(op) || op.regions.iter().any(|r| any(r, f)))
}

impl Reader<'_> {
    pub(super) fn grid_loop(&mut self, grid: &Grid<'_>) -> Res<()> {
        let mut vars = Vec::new();
        for (name, extent) in &grid.dims {
            let extent = self.scalar(extent)?;
            let i = self.give(name);
            vars.push(format!("{i} in 0 .. {}", extent.text));
            let text = i.to_string();
            let scalar = Scalar { text, ty: Type::Index, constant: None, natural: true, product: None };
            self.define(name, vec![Meaning::Scalar(scalar)]);
        }
        self.out.line(&format!("grid ({});", vars.join(", ")), grid.looped.name_span);
        self.top_at = self.out.text.len();
        let ops = grid.looped.regions.first().map_or(&[][..], |r| &r.ops[grid.skipped..]);
        ops.iter().try_for_each(|op| self.op(op))
    }
}
