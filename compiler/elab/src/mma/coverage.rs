//! Loops that leave a part of a partition unused: W1065.
//!
//! A rest mode counts repetitions of the atoms, and `BK / MMA.tiler.2` those of the tiler; they differ if the tiler is
//! larger than the atoms. A warning is given only if each index into that mode of that partition, in the whole kernel,
//! is the variable of a loop from 0 whose ends are constants: anything else may reach what the loop leaves out.

use crate::Elaborator;
use ptoc_diagnostics::{Diagnostic, Span, codes};
use ptoc_ir::tile::{Tile, Value};
use ptoc_layout::{Operand, Tuple};
use ptoc_syntax::ast::{Arg, ExprKind, Name};
use ptoc_values::{Binding, TilePartition, Val};

/// An index into a rest mode of a partition.
pub(crate) struct RestUse {
    tile: Tile,
    operand: Operand,
    /// 1 or 2: that of (value, rest, rest).
    mode: usize,
    /// The partition as the author calls it.
    partition: Option<Name>,
    /// By what it is counted; `None` if by something that may be anywhere.
    by: Option<Counted>,
}

#[derive(Clone)]
struct Counted {
    name: Name,
    at: Span,
    /// The loop's end, and where it stands.
    end: i64,
    range: Span,
    /// Entries of the rest mode.
    extent: i64,
}

impl Elaborator<'_> {
    /// `kk` runs over `lo .. hi`.
    pub(crate) fn note_loop(&mut self, index: Value, lo: Value, hi: Value, range: Span) {
        if let (Some(0), Some(end)) = (self.const_index(lo), self.const_index(hi)) {
            self.constant_loops.insert(index, (end, range));
        }
    }

    /// `tA[_, (_, _, kk)]`
    pub(crate) fn note_rest_uses(&mut self, base: &ExprKind, p: &TilePartition, args: &[Arg]) {
        let Some(pattern) = &p.window.pattern else { return };
        let (tile, operand) = (p.tile.tile, pattern.operand);
        let partition = match base {
            ExprKind::Name(n) => Some(n.clone()),
            _ => None,
        };
        for mode in [1, 2] {
            let by = self.counted_by(p, args, mode);
            self.rest_uses.push(RestUse { tile, operand, mode, partition: partition.clone(), by });
        }
    }

    /// A partition is used; if it is not sliced, all of it.
    pub(crate) fn note_whole_use(&mut self, p: &TilePartition) {
        let whole =
            matches!(&p.window.modes[..], [_, values] if matches!(&values.tree, Tuple::Node(t) if t.len() == 3));
        let Some(pattern) = p.window.pattern.as_ref().filter(|_| whole) else { return };
        let (tile, operand) = (p.tile.tile, pattern.operand);
        self.rest_uses.extend([1, 2].map(|mode| RestUse { tile, operand, mode, partition: None, by: None }));
    }

    fn counted_by(&self, p: &TilePartition, args: &[Arg], mode: usize) -> Option<Counted> {
        let ([_, inner], [_, values]) = (args, &p.window.modes[..]) else { return None };
        let (ExprKind::Tuple(coord), Tuple::Node(tree)) = (&*inner.value.kind, &values.tree) else { return None };
        let (3, 3) = (coord.len(), tree.len()) else { return None };
        let ExprKind::Name(name) = &*coord[mode].kind else { return None };
        let Some((Binding::Let(Val::Scalar(v)), _)) = self.env.get(name) else { return None };
        let &(end, range) = self.constant_loops.get(v)?;
        let mut extents = tree[mode].leaves().into_iter().map(|l| self.const_index(l.extent));
        let extent = extents.try_fold(1i64, |n, e| n.checked_mul(e?))?;
        Some(Counted { name: name.clone(), at: coord[mode].span, end, range, extent })
    }

    /// Warns of each rest mode that no loop covers.
    pub(crate) fn warn_of_uncovered(&mut self) {
        let uses = std::mem::take(&mut self.rest_uses);
        for (k, first) in uses.iter().enumerate() {
            let same = |u: &&RestUse| (u.tile, u.operand, u.mode) == (first.tile, first.operand, first.mode);
            if uses[..k].iter().any(|u| same(&u)) {
                continue;
            }
            let Some(all) = uses.iter().filter(same).map(|u| u.by.clone()).collect::<Option<Vec<_>>>() else {
                continue;
            };
            let Some(most) = all.iter().max_by_key(|c| c.end) else { continue };
            if most.end < 1 || all.iter().any(|c| c.extent != most.extent) || most.end >= most.extent {
                continue;
            }
            let rest = ["M", "N", "K"][first.operand.modes()[first.mode - 1]];
            let Counted { name, end, extent, .. } = most;
            let message =
                format!("`{name}` stops at {}, and the partition has {extent} repetitions in {rest}", end - 1);
            let part = first.partition.as_ref().map_or("the partition".into(), Name::to_string);
            let d = Diagnostic::warning(codes::UNCOVERED_REST, most.at, message)
                .with_label(format!("{} of {extent} are never used", extent - end))
                .with_secondary(most.range, format!("{end} of them"))
                .with_note("a rest mode counts the repetitions of the atoms side by side, not those of the tiler")
                .with_help(format!("count them: `0..size<1, {}>({part})`", first.mode));
            // One loop, one warning, whatever operands it indexes.
            let said = |x: &Diagnostic| x.code == d.code && x.labels.iter().any(|l| l.span == most.range);
            if !self.diags.iter().any(said) {
                self.diags.push(d);
            }
        }
    }
}
