//! The statements of a block, as both roles walk them.

use super::Code;
use ptoc_ir::tile::{For, If, Inst, Op, Operand, Region, Stmt, Tile, TileRef};
use ptoc_isa::Sem;
use ptoc_opt::contraction;
use ptoc_opt::fragments::{Fragment, Ramp, filled_by, first_column, fragment, ordered, ramp};
use ptoc_ptx::{Arith, Class, Cmp, Op as Ptx, Src, Type, VReg};
use ptoc_tensor::DType;

impl Code<'_> {
    pub(super) fn region(&mut self, region: &Region) -> Option<()> {
        // Regions inside have none of their own.
        let ahead = self.ahead.take();
        let region = ordered(self.kernel, region);
        // Slots are free behind the last product that reads them.
        let mine = self.rings.iter().enumerate().filter(|(_, r)| region.iter().any(|s| fills(s, r.filled)));
        let ends: Vec<(usize, Option<usize>)> =
            mine.map(|(n, r)| (n, region.iter().rposition(|s| multiplies(s, r.operand)))).collect();
        for (at, stmt) in region.iter().enumerate() {
            if self.spans.last() != Some(&stmt.span) {
                self.spans.push(stmt.span);
            }
            self.b.site = (self.spans.len() - 1) as u32;
            match ahead.clone() {
                Some(ahead) => self.statement_behind(&ahead, at, &stmt.op)?,
                None => self.statement(&stmt.op)?,
            }
            if !self.produces {
                for (ring, _) in ends.iter().filter(|(_, last)| *last == Some(at)) {
                    let reader = contraction::product(&stmt.op).map(|(p, _)| p.d.tile);
                    self.free(*ring, reader);
                }
            }
        }
        Some(())
    }

    pub(super) fn statement(&mut self, op: &Op) -> Option<()> {
        self.settle_for(op);
        match op {
            op if op.is_pure() || matches!(op, Op::Load { .. }) => self.scalar(op),
            Op::Alloc { .. } | Op::Sync(_) => Some(()),
            Op::Check { cond, check, args } if self.plan.checks => self.check(*cond, *check, args),
            // Those that are there hold.
            Op::Check { .. } => Some(()),
            Op::For(f) => match ramp(f, &self.defs) {
                Some(_) if self.produces => Some(()),
                Some(ramp) => self.count_up(f, &ramp),
                None => self.iterate(f),
            },
            Op::If(i) => {
                let simple = self.is_simple(op);
                self.branch(i, simple)
            }
            Op::Copy(copy) => match filled_by(op) {
                Some(filled) => {
                    let ring = self.rings.iter().position(|r| r.filled == filled)?;
                    match self.produces {
                        true => self.bring(ring),
                        false if self.plan.loads[ring].staged => self.take_nibbles(ring, copy),
                        false if self.plan.loads[ring].is_listed() => {
                            self.wait_for(ring);
                            Some(())
                        }
                        false => self.pages_are_there(ring),
                    }
                }
                None => self.scatter(copy),
            },
            Op::Inst(inst) if self.produces => self.produce(inst),
            Op::Inst(inst) => self.consume(inst, op),
            _ => None,
        }
    }

    fn iterate(&mut self, f: &For) -> Option<()> {
        let (lo, hi) = (self.value(f.lo)?, self.value(f.hi)?);
        if let Some(sum) = self.accumulation_of(f) {
            return self.accumulate(f, (lo, hi), &sum);
        }
        if let Some(ahead) = self.ahead_in(f) {
            return self.pipelined(f, (lo, hi), ahead);
        }
        let index = self.b.mov(Type::U64, lo);
        self.values.insert(f.index, index.into());
        let (head, end) = (self.b.label(), self.b.label());
        // What is known before a loop may not be known in its second iteration.
        self.forget_all();
        self.b.place(head);
        let over = self.b.setp(Cmp::Ge, Type::S64, index, hi);
        self.b.bra_if(over, true, end);
        self.region(&f.body)?;
        self.wait_for_products();
        self.b.push(Ptx::Arith(Arith::Add, Type::S64), &[index], &[index.into(), Src::Imm(1)]);
        self.b.bra(head);
        self.b.place(end);
        self.forget_all();
        Some(())
    }

    fn branch(&mut self, i: &If, simple: bool) -> Option<()> {
        let Src::Reg(cond) = self.value(i.cond)? else { return None };
        let (otherwise, end) = (self.b.label(), self.b.label());
        self.b.bra_if(cond, false, otherwise);
        self.forget_all();
        self.region(&i.then)?;
        if !simple {
            self.wait_for_products();
        }
        self.b.bra(end);
        self.b.place(otherwise);
        self.forget_all();
        self.region(&i.els)?;
        if !simple {
            self.wait_for_products();
        }
        self.b.place(end);
        self.forget_all();
        Some(())
    }

    fn produce(&mut self, inst: &Inst) -> Option<()> {
        let [Operand::Tile(t), ..] = &inst.operands[..] else { return Some(()) };
        match self.rings.iter().position(|r| r.filled == t.tile) {
            Some(ring) if matches!(inst.instr.get().sem, Sem::Load | Sem::Cells(_)) => self.bring(ring),
            _ => Some(()),
        }
    }

    fn consume(&mut self, inst: &Inst, op: &Op) -> Option<()> {
        if let Some((product, start)) = contraction::product(op) {
            return self.issue(&product, start);
        }
        match (inst.instr.get().sem, &inst.operands[..]) {
            // What images are unfolded from stays where it is.
            (Sem::Load, [Operand::Tile(t), _]) if self.plan.loads.iter().any(|l| l.image() == Some(t.tile)) => Some(()),
            (Sem::Cells(_), [Operand::Tile(t), ..]) => {
                self.wait_for(self.rings.iter().position(|r| r.filled == t.tile)?);
                Some(())
            }
            (Sem::Load, [Operand::Tile(t), Operand::View(v)]) => {
                match self.rings.iter().position(|r| r.filled == t.tile) {
                    Some(ring) if self.plan.loads[ring].staged => self.take_staged(ring, t, v)?,
                    Some(ring) => self.wait_for(ring),
                    None => self.load(t, v)?,
                }
                Some(())
            }
            // On the way from a window that is there.
            (Sem::Move, [_, Operand::Tile(a)])
                if self.rings.iter().any(|r| r.filled == a.tile && r.operand != a.tile) =>
            {
                Some(())
            }
            (Sem::Move, [Operand::Tile(d), Operand::Tile(a)]) => {
                let (from, to) = (self.tile(a.tile)?, self.tile(d.tile)?);
                for (from, to) in from.into_iter().zip(to) {
                    let class = self.b.class(from);
                    self.b.set(to, copied(class), from);
                }
                let (fill, integers) = (self.fills.get(&a.tile).copied(), self.integers.get(&a.tile).cloned());
                self.forget(d.tile);
                self.fills.extend(fill.map(|fill| (d.tile, fill)));
                self.integers.extend(integers.map(|integers| (d.tile, integers)));
                Some(())
            }
            (Sem::Store, [Operand::View(v), Operand::Tile(a)]) => self.store(v, a),
            (Sem::RowReduce(by), [Operand::Tile(d), Operand::Tile(a)]) => self.reduce(by, d, a),
            (sem, [Operand::Tile(d), ..]) => self.elements(inst, d, &sem.expr()?),
            _ => None,
        }
    }

    /// The registers of a tile. Of two narrow elements a register has both, of bytes as numbers of 16 bits; of truth
    /// values each is a predicate.
    pub(super) fn tile(&mut self, tile: Tile) -> Option<Vec<VReg>> {
        if let Some(known) = self.tiles.get(&tile) {
            return Some(known.clone());
        }
        let count = self.layout(tile)?.elements();
        let (count, class) = match self.kernel.tiles[tile].ty.dtype {
            DType::F32 => (count, Class::F32),
            DType::I32 => (count, Class::B32),
            DType::Bool => (count, Class::Pred),
            DType::F16 | DType::BF16 | DType::U8 | DType::I8 => (count / 2, Class::B32),
            _ => return None,
        };
        let regs: Vec<VReg> = (0..count).map(|_| self.b.reg(class)).collect();
        self.tiles.insert(tile, regs.clone());
        Some(regs)
    }

    pub(super) fn layout(&self, tile: Tile) -> Option<Fragment> {
        fragment(self.kernel, tile, self.plan.rows)
    }

    /// The registers of the columns that a reference names, and how those lie.
    pub(super) fn part(&mut self, t: &TileRef) -> Option<(Vec<VReg>, Fragment)> {
        let regs = self.tile(t.tile)?;
        let Fragment::Full(columns) = self.layout(t.tile)? else { return Some((regs, self.layout(t.tile)?)) };
        let first = first_column(self.kernel, &self.defs, t)?;
        let [first, count] = [first, t.cols].map(|c| regs.len() * c as usize / columns as usize);
        Some((regs[first..][..count].to_vec(), Fragment::Full(t.cols)))
    }

    /// Fills a column or a row by what is computed of the number of each element.
    fn count_up(&mut self, f: &For, ramp: &Ramp) -> Option<()> {
        let regs = self.tile(ramp.tile.tile)?;
        let from = if ramp.column { self.row } else { self.column };
        let from = self.long(from);
        for (n, reg) in regs.into_iter().enumerate() {
            let n = if ramp.column { 8 * n } else { 8 * (n / 2) + n % 2 };
            let index = self.b.arith(Arith::Add, Type::U64, &[from.into(), Src::Imm(n as u64)]);
            self.values.insert(f.index, index.into());
            for stmt in f.body.iter().filter(|s| s.op.is_pure()) {
                self.scalar(&stmt.op)?;
            }
            let value = self.value(ramp.value)?;
            let class = self.b.class(reg);
            self.b.set(reg, copied(class), value);
        }
        self.forget(ramp.tile.tile);
        Some(())
    }
}

/// The type of a copy.
pub(super) fn copied(class: Class) -> Type {
    match class {
        Class::F32 => Type::F32,
        Class::Pred => Type::Pred,
        Class::B64 => Type::B64,
        _ => Type::B32,
    }
}

/// Whether a statement itself loads a tile.
fn fills(stmt: &Stmt, tile: Tile) -> bool {
    filled_by(&stmt.op) == Some(tile)
}

/// Whether a statement, or one in it, is a product of a tile.
fn multiplies(stmt: &Stmt, tile: Tile) -> bool {
    let own = contraction::product(&stmt.op).is_some_and(|(p, _)| p.a.tile == tile || p.b.tile == tile);
    own || stmt.op.regions().flatten().any(|s| multiplies(s, tile))
}
