//! Loops of consumers in which the first product of the next iteration is under way while this one computes:
//! attention's scores of the next keys.
//!
//! It is issued where its sums, which are copied, are not read any more. The last iteration issues none, so it stands
//! behind the loop, and in the loop every window is whole. (A product that goes on into the next iteration, values
//! times weights, makes that slower: the next product ahead is issued behind it, and a warp goes no further than that.)

use super::Code;
use ptoc_ir::tile::{For, Inst, Kernel, Op, Operand, Region, Stmt, Tile, Value};
use ptoc_isa::Sem;
use ptoc_opt::contraction::{From, Product, moved, product};
use ptoc_opt::fragments::{filled_by, ordered};
use ptoc_ptx::{Arith, Cmp, Op as Ptx, Src, Type};

/// Registers of a thread for tiles, with the sums of one more product.
const MOST: u32 = 232;

/// A product that is issued an iteration ahead.
#[derive(Clone, Debug)]
pub(super) struct Ahead {
    product: Product,
    /// Its windows that the loop loads.
    rings: Vec<usize>,
    /// The product, and the statement behind which its sums are not read, by their numbers in the body.
    at: usize,
    behind: usize,
    /// There is a next iteration.
    issues: bool,
}

impl Code<'_> {
    /// Whether these are all rows or columns of a tile here.
    pub(super) fn is_whole(&self, valid: Value) -> bool {
        let steady = self.steady.is_some() && self.plan.blocks.get(&valid).copied() == self.steady;
        steady || self.plan.whole.contains(&valid)
    }

    /// The product of a loop that can be issued ahead.
    pub(super) fn ahead_in(&self, f: &For) -> Option<Ahead> {
        // A block that fails ends where producer and consumers are at one statement.
        if self.produces || self.plan.checks && self.may_fail(&f.body) {
            return None;
        }
        let body = ordered(self.kernel, &f.body);
        let of = |s: &Stmt| product(&s.op);
        let at = body.iter().position(|s| of(s).is_some())?;
        let (product, From::Zero) = of(body[at])? else { return None };
        let loaded = |tile: Tile| body.iter().any(|s| filled_by(&s.op) == Some(tile));
        let windows = [product.a.tile, product.b.tile].map(|t| self.rings.iter().position(|r| r.operand == t));
        let [Some(a), Some(b)] = windows else { return None };
        let rings: Vec<usize> = [a, b].into_iter().filter(|n| loaded(self.rings[*n].filled)).collect();
        // Its sums are only copied.
        let sums = product.d.tile;
        let copy = body.iter().position(|s| moved(&s.op).is_some_and(|(_, from)| from.tile == sums))?;
        let (copied, _) = moved(&body[copy].op)?;
        let reader = body[copy + 1..].iter().position(|s| reads(s, copied.tile)).map(|n| copy + 1 + n)?;
        let behind = if matches!(body[reader].op, Op::Inst(_)) { reader } else { copy };
        let between = body[at + 1..=behind].iter().all(|s| of(s).is_none());
        let later = body[behind + 1..].iter().any(|s| of(s).is_some());
        let slots = rings.iter().all(|n| self.plan.loads[*n].slots > 1) && !rings.is_empty();
        let registers = self.plan.registers + product.d.cols / 2 <= MOST;
        let fits = between && later && slots && registers && copy > at && occurrences(self.kernel, sums) == 2;
        fits.then_some(Ahead { product, rings, at, behind, issues: true })
    }

    /// The loop.
    pub(super) fn pipelined(&mut self, f: &For, (lo, hi): (Src, Src), ahead: Ahead) -> Option<()> {
        let index = self.b.mov(Type::U64, lo);
        self.values.insert(f.index, index.into());
        let last = self.b.mov(Type::U64, hi);
        let last = self.b.arith(Arith::Sub, Type::S64, &[last.into(), Src::Imm(1)]);
        let (head, tail, end) = (self.b.label(), self.b.label(), self.b.label());
        let none = self.b.setp(Cmp::Gt, Type::S64, index, last);
        self.b.bra_if(none, true, end);
        self.issue_ahead(&ahead)?;
        self.wait_for_products();
        self.b.place(head);
        let over = self.b.setp(Cmp::Ge, Type::S64, index, last);
        self.b.bra_if(over, true, tail);
        let around = self.steady.replace(f.index);
        self.iteration(&f.body, ahead.clone())?;
        self.steady = around;
        // For the product ahead, and for those of the iteration, which are younger.
        self.wait_for_products();
        self.b.push(Ptx::Arith(Arith::Add, Type::S64), &[index], &[index.into(), Src::Imm(1)]);
        self.b.bra(head);
        self.b.place(tail);
        self.iteration(&f.body, Ahead { issues: false, ..ahead })?;
        self.wait_for_products();
        self.b.place(end);
        self.forget_all();
        Some(())
    }

    fn iteration(&mut self, body: &Region, ahead: Ahead) -> Option<()> {
        self.forget_all();
        self.ahead = Some(ahead);
        self.region(body)
    }

    fn issue_ahead(&mut self, ahead: &Ahead) -> Option<()> {
        ahead.rings.iter().for_each(|ring| self.wait_for(*ring));
        self.issue(&ahead.product, From::Zero)
    }

    /// A statement of such a loop: the product is done, its windows are there.
    pub(super) fn statement_behind(&mut self, ahead: &Ahead, at: usize, op: &Op) -> Option<()> {
        let there = filled_by(op).is_some_and(|t| ahead.rings.iter().any(|n| self.rings[*n].filled == t));
        if !there && at != ahead.at {
            self.statement(op)?;
        }
        if ahead.issues && at == ahead.behind {
            self.issue_ahead(ahead)?;
        }
        Some(())
    }
}

/// How often instructions have a tile as an operand.
fn occurrences(kernel: &Kernel, tile: Tile) -> usize {
    fn of(region: &Region, tile: Tile) -> usize {
        let own = |s: &Stmt| if let Op::Inst(inst) = &s.op { operands(inst, tile) } else { 0 };
        region.iter().map(|s| own(s) + s.op.regions().map(|r| of(r, tile)).sum::<usize>()).sum()
    }
    of(&kernel.body, tile)
}

fn operands(inst: &Inst, tile: Tile) -> usize {
    inst.operands.iter().filter(|o| matches!(o, Operand::Tile(t) if t.tile == tile)).count()
}

/// Whether a statement, or one in it, reads a tile.
fn reads(stmt: &Stmt, tile: Tile) -> bool {
    let own = match &stmt.op {
        Op::Inst(inst) if inst.instr.get().sem == Sem::Store => operands(inst, tile) > 0,
        Op::Inst(inst) => inst.operands.iter().skip(1).any(|o| matches!(o, Operand::Tile(t) if t.tile == tile)),
        _ => false,
    };
    own || stmt.op.regions().flatten().any(|s| reads(s, tile))
}
