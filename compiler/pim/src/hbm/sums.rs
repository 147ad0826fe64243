//! Sums as units make them, every addition rounded to f16 (spec/numerics.md): of columns, row after row; of rows, 16
//! partial sums in the lanes of a burst, which the host turns ([`super::turn`]) so that they can be added.

use super::Res;
use super::node::{Node, NodeId};
use super::trace::{BurstWindow, LANES, Store, Tracer};
use crate::eval::BlockScalars;
use ptoc_diagnostics::Span;
use ptoc_ir::tile::TileRef;

impl Tracer<'_> {
    /// Sums of the columns of a burst: 0 and the rows in their order.
    pub(super) fn column_sums(&mut self, x: &BurstWindow, b: u32, span: Span) -> Res<NodeId> {
        let mut sum = self.nodes.intern(Node::Const(0), span);
        for i in 0..x.rows {
            let a = self.take(x, i, b, span)?;
            sum = self.add(sum, a, span);
        }
        Ok(sum)
    }

    /// Sums of rows 16 g to 16 g + 15, in the lanes of a burst.
    pub(super) fn row_sums(&mut self, x: &BurstWindow, g: u32, span: Span) -> Res<NodeId> {
        if x.is_down() {
            return self.down_sums(x, g, span);
        }
        self.sums_of((x.rows, x.cols), g, span, |t, i, b| t.take(x, i, b, span))
    }

    /// The product of two tiles, and what it is added to: each row of the one goes through the rows of the other, whose
    /// sums lie in the lanes of the result.
    pub(super) fn matmul(
        &mut self,
        numbers: &BlockScalars<'_>,
        d: &TileRef,
        start: Option<&TileRef>,
        [a, b]: [&TileRef; 2],
        span: Span,
    ) -> Res {
        let w = self.window(numbers, d, span)?;
        let [left, right] = [self.window(numbers, a, span)?, self.window(numbers, b, span)?];
        let start = start.map(|c| self.window(numbers, c, span)).transpose()?;
        if left.is_down() || !right.is_down() || start.as_ref().is_some_and(|c| c.is_down() != w.is_down()) {
            return self.lacks(span, "product of operands that lie otherwise: a lane does not reach other lanes");
        }
        let (lines, other) = if w.is_down() { (left, right) } else { (right, left) };
        self.each(&w, span, |t, r, g| {
            let sum = t.sums_of((lines.rows, lines.cols), g, span, |t, i, b| {
                let (p, q) = (t.take(&lines, i, b, span)?, t.take(&other, r, b, span)?);
                Ok(t.nodes.intern(Node::Mul(p, q), span))
            })?;
            match &start {
                None => Ok(sum),
                Some(c) => {
                    let c = t.take(c, r, g, span)?;
                    Ok(t.add(c, sum, span))
                }
            }
        })
    }

    /// Sums of rows 16 g to 16 g + 15 of so many rows and columns, in the lanes of a burst; `burst` gives burst b of
    /// row i.
    fn sums_of(
        &mut self,
        (rows, cols): (u32, u32),
        g: u32,
        span: Span,
        mut burst: impl FnMut(&mut Self, u32, u32) -> Res<NodeId>,
    ) -> Res<NodeId> {
        let rows = g * LANES..((g + 1) * LANES).min(rows);
        let (whole, rest) = (cols / LANES, cols % LANES);
        let (mut sums, mut ends) = (Vec::new(), Vec::new());
        for i in rows {
            let mut sum = None;
            for b in 0..whole {
                let a = burst(self, i, b)?;
                sum = Some(self.after(sum, a, span));
            }
            sums.extend(sum);
            // Of the last burst only some lanes count, so its elements are turned and added one by one.
            if rest > 0 {
                ends.push(burst(self, i, whole)?);
            }
        }
        let mut lanes = if whole > 0 { self.turned(&sums, LANES, span) } else { Vec::new() };
        if rest > 0 {
            lanes.extend(self.turned(&ends, rest, span));
        }
        Ok(self.chain(lanes, span))
    }

    /// The same of rows that lie in lanes already.
    fn down_sums(&mut self, x: &BurstWindow, b: u32, span: Span) -> Res<NodeId> {
        let whole = x.rows - x.rows % LANES;
        let mut lanes = Vec::new();
        for l in 0..LANES.min(whole) {
            let mut sum = None;
            for j in (l..whole).step_by(LANES as usize) {
                let a = self.take(x, j, b, span)?;
                sum = Some(self.after(sum, a, span));
            }
            lanes.extend(sum);
        }
        for j in whole..x.rows {
            lanes.push(self.take(x, j, b, span)?);
        }
        Ok(self.chain(lanes, span))
    }

    /// A sum goes on with a term, or begins with it.
    fn after(&mut self, sum: Option<NodeId>, term: NodeId, span: Span) -> NodeId {
        sum.map_or(term, |sum| self.add(sum, term, span))
    }

    /// The sum of partial sums and single elements, one after the other; of none it is +0.
    fn chain(&mut self, lanes: Vec<NodeId>, span: Span) -> NodeId {
        let sum = lanes.into_iter().fold(None, |sum, lane| Some(self.after(sum, lane, span)));
        sum.unwrap_or_else(|| self.nodes.intern(Node::Const(0), span))
    }

    /// Bursts, one a row, as bursts, one a lane.
    fn turned(&mut self, bursts: &[NodeId], lanes: u32, span: Span) -> Vec<NodeId> {
        let slot = self.turns.slot(bursts);
        for (n, &node) in (0..).zip(bursts) {
            self.trace.stores.push(Store { at: self.turns.stored(slot, n), node, lanes: LANES, span });
        }
        (0..lanes).map(|l| self.nodes.intern(Node::Bank { at: self.turns.turned(slot, l) }, span)).collect()
    }
}
