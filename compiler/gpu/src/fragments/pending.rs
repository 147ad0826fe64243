//! Products that are under way: a consumer waits for one where something touches its registers, and no earlier.
//!
//! Products complete in the order in which they were issued, so to wait for one is to allow as many as were issued
//! behind it. Slots of windows that it reads are free when it is done.

use super::Code;
use ptoc_ir::tile::{Op, Operand, Tile};
use ptoc_opt::contraction::{From, product};
use ptoc_opt::fragments::ramp;
use ptoc_ptx::Sm90;

/// A product that nobody has waited for.
#[derive(Debug)]
pub(super) struct Pending {
    /// Its sums, and its left operand if that is in registers.
    pub tiles: Vec<Tile>,
    /// Windows that it is the last to read.
    pub rings: Vec<usize>,
}

impl Code<'_> {
    /// Ends the group of products that were issued last.
    pub(super) fn commit(&mut self, tiles: Vec<Tile>) {
        self.b.sm90(Sm90::WgmmaCommit, &[], &[]);
        self.pending.push(Pending { tiles, rings: Vec::new() });
    }

    /// Waits for the oldest products, but for so many of the newest ones, and lets the producer have their slots.
    fn wait_but_for(&mut self, newest: usize) {
        let done = self.pending.len().saturating_sub(newest);
        if done == 0 {
            return;
        }
        self.b.sm90(Sm90::WgmmaWait(newest as u32), &[], &[]);
        let done: Vec<Pending> = self.pending.drain(..done).collect();
        done.iter().flat_map(|product| &product.rings).for_each(|ring| self.release(*ring));
    }

    /// Waits for all products.
    pub(super) fn wait_for_products(&mut self) {
        self.wait_but_for(0);
    }

    /// Waits for products of which this is so, and for those in front of them.
    fn wait_where(&mut self, is: impl Fn(&Pending) -> bool) {
        if let Some(last) = self.pending.iter().rposition(is) {
            self.wait_but_for(self.pending.len() - 1 - last);
        }
    }

    /// Waits for those that have one of these tiles in registers.
    fn settle(&mut self, tiles: &[Tile]) {
        self.wait_where(|p| p.tiles.iter().any(|t| tiles.contains(t)));
    }

    /// Waits for those whose end frees a slot of this ring: its next slot is not known before.
    pub(super) fn settle_ring(&mut self, ring: usize) {
        self.wait_where(|p| p.rings.contains(&ring));
    }

    /// Waits for what a statement touches. Behind branches the same products are under way on every path.
    pub(super) fn settle_for(&mut self, op: &Op) {
        match op {
            // Products that go on where the newest one stands are done in order; what is in the way is in registers of
            // the left operand.
            op if product(op).is_some_and(|(p, start)| start == From::Acc && self.is_newest(p.d.tile)) => {
                self.settle(&product(op).map(|(p, _)| p.a.tile).into_iter().collect::<Vec<_>>());
            }
            Op::Inst(inst) => {
                let tiles: Vec<Tile> = inst.operands.iter().filter_map(tile).collect();
                self.settle(&tiles);
            }
            Op::For(f) => match ramp(f, &self.defs) {
                Some(ramp) => self.settle(&[ramp.tile.tile]),
                None => self.wait_for_products(),
            },
            Op::Copy(copy) => {
                let stored: Vec<Tile> = copy.src.tile().map(|t| t.tile).into_iter().collect();
                self.settle(&stored);
            }
            Op::If(i) if self.is_simple(op) => {
                [&i.then, &i.els].into_iter().flatten().for_each(|stmt| self.settle_for(&stmt.op));
            }
            Op::If(_) => self.wait_for_products(),
            _ => {}
        }
    }

    /// Whether the newest product under way has these sums.
    fn is_newest(&self, sums: Tile) -> bool {
        self.pending.last().is_some_and(|p| p.tiles.first() == Some(&sums))
    }

    /// Whether a statement waits for what it touches alone: it is no loop and no product, and has none inside but loops
    /// that count up.
    pub(super) fn is_simple(&self, op: &Op) -> bool {
        match op {
            Op::For(f) => ramp(f, &self.defs).is_some(),
            Op::If(i) => [&i.then, &i.els].into_iter().flatten().all(|s| self.is_simple(&s.op)),
            op => op.regions().next().is_none() && product(op).is_none(),
        }
    }

    /// A slot is free: now, or when the product that reads it last is done.
    pub(super) fn free(&mut self, ring: usize, reader: Option<Tile>) {
        match self.pending.iter_mut().rev().find(|p| reader.is_some_and(|sums| p.tiles.first() == Some(&sums))) {
            Some(product) => product.rings.push(ring),
            None => self.release(ring),
        }
    }
}

fn tile(operand: &Operand) -> Option<Tile> {
    match operand {
        Operand::Tile(t) => Some(t.tile),
        _ => None,
    }
}
