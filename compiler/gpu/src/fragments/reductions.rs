//! Reductions of rows in the language's order, and what lies beyond the valid columns.
//!
//! A sum has 64 partials, of which the l-th has the columns j = l modulo 64; then 32 of them add the other 32, 16 the
//! other 16, and so on. A thread has two neighbours of every eight columns: so it has both sides of the steps of 32, 16
//! and 8; those of 4 and 2 are two and one threads away; and the last two are neighbours. Four shuffles a row are all
//! of it, and two where the order cannot be seen.

use super::Code;
use ptoc_ir::tile::{TileRef, Value};
use ptoc_isa::Reduce;
use ptoc_opt::fragments::Fragment;
use ptoc_ptx::{Arith, Class, Cmp, Op as Ptx, Round, Shfl, Src, Type, VReg};

/// All lanes of a warp.
const ALL: u64 = 0xffff_ffff;

/// Partials of a sum, in eights.
const PARTIALS: usize = 8;

impl Code<'_> {
    /// The reduction of each row, as a column.
    pub(super) fn reduce(&mut self, by: Reduce, d: &TileRef, a: &TileRef) -> Option<()> {
        let (neutral, arith) = match by {
            Reduce::Sum => (0f32, Arith::AddF),
            Reduce::Max => (f32::NEG_INFINITY, Arith::MaxF),
            Reduce::Min => (f32::INFINITY, Arith::MinF),
            Reduce::Prod => return None,
        };
        self.fill(a, u64::from(neutral.to_bits()))?;
        let (regs, to) = (self.tile(a.tile)?, self.tile(d.tile)?);
        for (half, to) in to.into_iter().enumerate() {
            // Pairs of neighbours, every eight columns.
            let row: Vec<[VReg; 2]> = regs.chunks(4).map(|four| [four[2 * half], four[2 * half + 1]]).collect();
            let [even, odd] = self.partials(arith, &row);
            let whole = match by {
                Reduce::Sum => {
                    let [even, odd] = [even, odd].map(|p| self.over_columns(arith, p));
                    let whole = self.f32(arith, even, odd);
                    // Partials start at +0, which only a sum of nothing but -0 shows.
                    self.f32(arith, whole, Src::Imm(0))
                }
                // The order cannot be seen.
                _ => {
                    let both = self.f32(arith, even, odd);
                    self.over_columns(arith, both)
                }
            };
            self.b.set(to, Type::F32, whole);
        }
        self.forget(d.tile);
        Some(())
    }

    /// What the columns of a lane become: those 64 apart in ascending order, then the steps of 32, 16 and 8.
    fn partials(&mut self, arith: Arith, row: &[[VReg; 2]]) -> [VReg; 2] {
        let mut sums: Vec<[VReg; 2]> = row[..row.len().min(PARTIALS)].to_vec();
        for (n, pair) in row.iter().enumerate().skip(PARTIALS) {
            let before = sums[n % PARTIALS];
            sums[n % PARTIALS] = [0, 1].map(|e| self.f32(arith, before[e], pair[e]));
        }
        for step in [4, 2, 1] {
            for n in 0..step {
                if let Some(other) = sums.get(n + step).copied() {
                    let before = sums[n];
                    sums[n] = [0, 1].map(|e| self.f32(arith, before[e], other[e]));
                }
            }
            sums.truncate(step);
        }
        sums[0]
    }

    /// The steps of 4 and 2, after which four threads have the same.
    fn over_columns(&mut self, arith: Arith, x: VReg) -> VReg {
        let x = self.with_neighbour(arith, x, 2);
        self.with_neighbour(arith, x, 1)
    }

    fn with_neighbour(&mut self, arith: Arith, x: VReg, distance: u64) -> VReg {
        let (bits, other) = (self.f32_bits(x), self.b.reg(Class::B32));
        let srcs = [bits.into(), Src::Imm(distance), Src::Imm(31), Src::Imm(ALL)];
        self.b.push(Ptx::Shfl(Shfl::Bfly), &[other], &srcs);
        let other = self.b.bits(Class::F32, other);
        self.f32(arith, x, other)
    }

    fn f32(&mut self, arith: Arith, a: VReg, b: impl Into<Src>) -> VReg {
        self.b.arith(arith, Type::F32, &[a.into(), b.into()])
    }

    /// Puts a number beyond the valid columns of a tile, if there are such columns; nobody reads what was there.
    pub(super) fn fill(&mut self, t: &TileRef, bits: u64) -> Option<()> {
        let Fragment::Full(columns) = self.layout(t.tile)? else { return None };
        let whole = self.defs.number(t.valid.1) == Some(columns.into()) || self.is_whole(t.valid.1);
        if whole || self.fills.get(&t.tile) == Some(&bits) {
            return Some(());
        }
        let regs = self.tile(t.tile)?;
        let left = self.columns_left(t.valid.1)?;
        let packed = regs.len() < columns as usize / 2;
        let most = Src::Imm(u64::from(columns));
        let whole = self.b.setp(Cmp::Ge, Type::S32, left, most);
        self.only_if(whole, false, |c| {
            for (n, reg) in regs.into_iter().enumerate() {
                match packed {
                    false => {
                        let column = (n / 4 * 8 + n % 2) as u64;
                        let inside = c.b.setp(Cmp::Gt, Type::S32, left, Src::Imm(column));
                        c.b.push(Ptx::Selp(Type::F32), &[reg], &[reg.into(), Src::Imm(bits), inside.into()]);
                    }
                    // Zeros alone are put into pairs.
                    true => {
                        let column = (n / 2 * 8) as u64;
                        let some = c.b.setp(Cmp::Gt, Type::S32, left, Src::Imm(column));
                        let both = c.b.setp(Cmp::Gt, Type::S32, left, Src::Imm(column + 1));
                        let kept = c.b.selp(Type::B32, Src::Imm(ALL), Src::Imm(0xffff), both);
                        let kept = c.b.selp(Type::B32, kept, Src::Imm(0), some);
                        c.b.push(Ptx::Arith(Arith::And, Type::B32), &[reg], &[reg.into(), kept.into()]);
                    }
                }
            }
        });
        self.forget(t.tile);
        self.fills.insert(t.tile, bits);
        Some(())
    }

    /// Valid columns from the first one of the lane on.
    fn columns_left(&mut self, valid: Value) -> Option<VReg> {
        let valid = self.value(valid)?;
        let valid = self.long_reg(valid);
        let valid = self.b.cvt(Type::U32, Type::U64, Round::None, valid);
        Some(self.b.arith(Arith::Sub, Type::S32, &[valid.into(), self.column.into()]))
    }
}
