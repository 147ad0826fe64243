//! Instructions on two narrow numbers at once, dequantisation among them: a register has two neighbours of a row, of
//! f16 or of bytes with 16 bits each.

use super::Code;
use super::staged::BOTH;
use ptoc_ir::tile::{Inst, Op, Operand, TileRef};
use ptoc_isa::{BinOp, Expr, Read, To};
use ptoc_opt::fragments::{Fragment, is_byte};
use ptoc_ptx::{Arith, Class, Src, Type, VReg};
use ptoc_tensor::DType;
use rustc_hash::FxHashMap;

/// 2^23 as f32 and 2^10 as f16, whose last digits count 1: an integer in those is added exactly, and a subtraction
/// gives it alone. Both take the full rate, of which a conversion has a fourth.
const TWO_TO_23: u32 = 0x4b00_0000;
const TWO_TO_10: u32 = 0x6400;

/// What an integer of 8 bits with a sign is above its least number.
const SIGN: u32 = 0x80;

/// Integers of bytes as pairs of f16, before what they are above was subtracted.
#[derive(Clone, Debug)]
pub(super) struct Integers {
    above: Vec<VReg>,
    /// What they are above, twice.
    base: u32,
}

impl Code<'_> {
    /// An instruction of that kind; false if it is none.
    pub(super) fn narrow(&mut self, inst: &Inst, d: &TileRef, expr: &Expr) -> Option<bool> {
        let kernel = self.kernel;
        let dtype = |t: &TileRef| kernel.tiles[t.tile].ty.dtype;
        let to = dtype(d);
        Some(match (expr, &inst.operands[1..]) {
            (Expr::Convert(Expr::Arg(1), To::Mode), [Operand::Tile(a)]) if is_byte(dtype(a)) => {
                self.convert_bytes(a, d, dtype(a) == DType::I8)?;
                true
            }
            (Expr::Bin(op, Expr::Arg(1), Expr::Arg(2)), [Operand::Tile(a), b]) if is_byte(to) => {
                self.of_bytes(*op, (a, b), d)?;
                self.forget(d.tile);
                true
            }
            (Expr::Bin(op, Expr::Arg(1), Expr::Arg(2)), [Operand::Tile(a), Operand::Tile(b)]) if to == DType::F16 => {
                let arith = match op {
                    BinOp::Add => Arith::AddF,
                    BinOp::Sub => Arith::SubF,
                    BinOp::Mul => Arith::MulF,
                    _ => return None,
                };
                let (regs, of) = self.part(d)?;
                let row = inst.instr.get();
                let mut sources = [self.pairs_as(a, row.read(1), of)?, self.pairs_as(b, row.read(2), of)?];
                if inst.attrs.reversed {
                    sources.swap(0, 1);
                } else if arith == Arith::SubF {
                    self.subtract_from_above((a, b), &mut sources);
                }
                for (n, reg) in regs.into_iter().enumerate() {
                    let srcs = [sources[0][n].into(), sources[1][n].into()];
                    let pair = self.b.arith(arith, Type::F16x2, &srcs);
                    self.b.set(reg, Type::B32, pair);
                }
                self.forget(d.tile);
                true
            }
            _ => false,
        })
    }

    /// A difference of integers of bytes (a weight and its zero point) in one subtraction: `(1024 + w) - (1024 + z)`
    /// for `((1024 + w) - 1024) - z`. All are integers of less than 2048, which f16 has exactly.
    fn subtract_from_above(&mut self, (a, b): (&TileRef, &TileRef), [left, right]: &mut [Vec<VReg>; 2]) {
        let Some(Integers { above, base }) = self.integers.get(&a.tile).cloned() else { return };
        // Not of a part of the left tile.
        if above.len() != left.len() || !self.integers.contains_key(&b.tile) {
            return;
        }
        let mut raised: FxHashMap<VReg, VReg> = FxHashMap::default();
        let base = self.b.mov(Type::U32, Src::Imm(base.into()));
        for reg in right.iter_mut() {
            let b = &mut self.b;
            *reg =
                *raised.entry(*reg).or_insert_with(|| b.arith(Arith::AddF, Type::F16x2, &[(*reg).into(), base.into()]));
        }
        *left = above;
    }

    /// The pairs of an operand that go with those of a result: a number of a column is both.
    fn pairs_as(&mut self, t: &TileRef, read: Read, of: Fragment) -> Option<Vec<VReg>> {
        let (regs, own) = self.part(t)?;
        match (read, of, own) {
            (Read::Column, Fragment::Full(columns), Fragment::Column) => {
                let rows = [0, 1].map(|half| {
                    let number = match half {
                        0 => self.u32(Arith::And, regs[0], 0xffff),
                        _ => self.u32(Arith::Shr, regs[0], 16),
                    };
                    self.beside(number, number)
                });
                Some((0..columns as usize / 4).map(|n| rows[n % 2]).collect())
            }
            (Read::Row, Fragment::Full(columns), Fragment::Row(_)) => {
                Some((0..columns as usize / 4).map(|n| regs[n / 2]).collect())
            }
            _ => Some(regs),
        }
    }

    /// Integers of 8 bits as f32, f16 or bf16, all of which have them exactly.
    fn convert_bytes(&mut self, a: &TileRef, d: &TileRef, signed: bool) -> Option<()> {
        let (pairs, _) = self.part(a)?;
        let (to, _) = self.part(d)?;
        let sign = if signed { SIGN } else { 0 };
        if self.kernel.tiles[d.tile].ty.dtype == DType::F16 {
            let base = (TWO_TO_10 | sign) * BOTH;
            let less = self.b.mov(Type::U32, Src::Imm(base.into()));
            let above: Vec<VReg> = pairs.into_iter().map(|pair| self.u32(Arith::Xor, pair, base)).collect();
            for (above, to) in above.iter().zip(to) {
                let pair = self.b.arith(Arith::SubF, Type::F16x2, &[(*above).into(), less.into()]);
                self.b.set(to, Type::B32, pair);
            }
            self.forget(d.tile);
            if above.len() == self.tile(d.tile)?.len() {
                self.integers.insert(d.tile, Integers { above, base });
            }
            return Some(());
        }
        self.forget(d.tile);
        let mut numbers = Vec::new();
        for pair in pairs {
            let halves = [self.u32(Arith::And, pair, 0xffff), self.u32(Arith::Shr, pair, 16)];
            numbers.extend(halves.map(|byte| self.float(byte, sign)));
        }
        match self.kernel.tiles[d.tile].ty.dtype {
            DType::F32 => to.into_iter().zip(numbers).for_each(|(to, n)| self.b.set(to, Type::F32, n)),
            _ => {
                for (to, pair) in to.into_iter().zip(numbers.chunks(2)) {
                    self.b.push(ptoc_ptx::Op::Cvt2(Type::BF16), &[to], &[pair[1].into(), pair[0].into()]);
                }
            }
        }
        Some(())
    }

    fn float(&mut self, byte: VReg, sign: u32) -> VReg {
        let bits = self.u32(Arith::Xor, byte, TWO_TO_23 | sign);
        let above = self.b.bits(Class::F32, bits);
        let less = f32::from_bits(TWO_TO_23) + sign as f32;
        self.b.arith(Arith::SubF, Type::F32, &[above.into(), Src::Imm(u64::from(less.to_bits()))])
    }

    /// Masks and shifts, which leave the 8 digits above a byte zero.
    fn of_bytes(&mut self, op: BinOp, (a, b): (&TileRef, &Operand), d: &TileRef) -> Option<()> {
        let ((pairs, _), (to, _)) = (self.part(a)?, self.part(d)?);
        let others = match b {
            Operand::Tile(b) => self.part(b)?.0.into_iter().map(Src::Reg).collect(),
            Operand::Scalar(v) => {
                let Op::Const { value, .. } = self.defs.of(*v)? else { return None };
                let digits = value.bits as u32 & 0xff;
                vec![Src::Imm(u64::from(if op == BinOp::Shr { digits } else { digits * BOTH })); pairs.len()]
            }
            Operand::View(_) => return None,
        };
        for ((pair, other), to) in pairs.into_iter().zip(others).zip(to) {
            let srcs = [pair.into(), other];
            let value = match (op, other) {
                (BinOp::And, _) => self.b.arith(Arith::And, Type::B32, &srcs),
                (BinOp::Or, _) => self.b.arith(Arith::Or, Type::B32, &srcs),
                (BinOp::Xor, _) => self.b.arith(Arith::Xor, Type::B32, &srcs),
                (BinOp::Shr, Src::Imm(by)) => {
                    let moved = self.b.arith(Arith::Shr, Type::U32, &srcs);
                    self.u32(Arith::And, moved, (0xff >> by) * BOTH)
                }
                _ => return None,
            };
            self.b.set(to, Type::B32, value);
        }
        Some(())
    }
}
