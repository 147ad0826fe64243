//! Sums as units make them, every addition rounded to f16 (spec/numerics.md): of columns, row after row; of rows, 16
//! partial sums in the lanes of a burst, which the host turns ([`super::turn`]) so that they can be added.

use super::Res;
use super::node::{Node, NodeId};
use super::trace::{BurstWindow, LANES, Store, Tracer};
use ptoc_diagnostics::Span;

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
        let rows = g * LANES..((g + 1) * LANES).min(x.rows);
        let (whole, rest) = (x.cols / LANES, x.cols % LANES);
        let (mut sums, mut ends) = (Vec::new(), Vec::new());
        for i in rows {
            let mut sum = self.nodes.intern(Node::Const(0), span);
            for b in 0..whole {
                let a = self.take(x, i, b, span)?;
                sum = self.add(sum, a, span);
            }
            sums.push(sum);
            // Of the last burst only some lanes count, so it is turned by itself.
            if rest > 0 {
                ends.push(self.take(x, i, whole, span)?);
            }
        }
        let sums = if whole > 0 { self.turned(&sums, LANES, span) } else { Vec::new() };
        let ends = if rest > 0 { self.turned(&ends, rest, span) } else { Vec::new() };
        // A sum that began with +0 is never -0, so adding a lane without elements would change nothing.
        let lanes: Vec<Option<NodeId>> = (0..LANES as usize)
            .map(|l| match (sums.get(l), ends.get(l)) {
                (Some(&a), Some(&b)) => Some(self.add(a, b, span)),
                (None, Some(&b)) => Some(self.nodes.intern(Node::AddScalar(b, 0), span)),
                (a, None) => a.copied(),
            })
            .collect();
        Ok(self.tree(lanes, span))
    }

    /// The same of rows that lie in lanes already.
    fn down_sums(&mut self, x: &BurstWindow, b: u32, span: Span) -> Res<NodeId> {
        let mut lanes = vec![None; LANES as usize];
        for j in 0..x.rows {
            let (a, lane) = (self.take(x, j, b, span)?, (j % LANES) as usize);
            let sum = lanes[lane].unwrap_or_else(|| self.nodes.intern(Node::Const(0), span));
            lanes[lane] = Some(self.add(sum, a, span));
        }
        Ok(self.tree(lanes, span))
    }

    /// The sum of partial sums: a half to the other one, again and again.
    fn tree(&mut self, mut lanes: Vec<Option<NodeId>>, span: Span) -> NodeId {
        while lanes.len() > 1 {
            let upper = lanes.split_off(lanes.len() / 2);
            for (low, high) in lanes.iter_mut().zip(upper) {
                *low = match (*low, high) {
                    (Some(a), Some(b)) => Some(self.add(a, b, span)),
                    (a, b) => a.or(b),
                };
            }
        }
        lanes[0].unwrap_or_else(|| self.nodes.intern(Node::Const(0), span))
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
