//! Instructions that compute, on the registers of all lanes of a warp at once.

use super::arith;
use super::bulk::PARAMS;
use super::cluster::there;
use super::code::{Operand, SimInst};
use super::warp::{Values, each};
use super::{Cta, World};
use crate::inst::{Op, Round, Special};
use crate::table::Arith;
use crate::types::Type;

impl World<'_> {
    /// The values of an operand, by lane.
    pub(super) fn values(&self, cta: &Cta, w: usize, operand: Operand) -> Values {
        let warp = &cta.warps[w];
        match operand {
            Operand::Reg(reg) => *warp.reg(reg),
            Operand::Imm(bits) => [bits; 32],
            Operand::Addr(None, at) => [at; 32],
            Operand::Addr(Some(reg), disp) => warp.reg(reg).map(|base| base.wrapping_add(disp)),
            Operand::Own(at) => [there(at, self.rank(cta)); 32],
            Operand::Target(_) => [0; 32],
            Operand::Special(special) => match special {
                Special::Tid => std::array::from_fn(|l| u64::from(32 * warp.number) + l as u64),
                Special::Laneid => std::array::from_fn(|l| l as u64),
                Special::Ntid => [u64::from(self.launch.kernel.threads); 32],
                Special::Ctaid => [u64::from(cta.number); 32],
                Special::Nctaid => [u64::from(self.launch.ctas); 32],
                Special::ClusterCtarank => [self.rank(cta); 32],
                Special::Clusterid => [u64::from(cta.number / self.cluster()); 32],
                Special::Nclusterid => [u64::from(self.launch.ctas / self.cluster()); 32],
            },
        }
    }

    /// An instruction of some lanes, which goes to no memory.
    pub(super) fn compute(&self, cta: &mut Cta, w: usize, step: &SimInst, mask: u32) {
        let value = |n: usize| self.values(cta, w, step.srcs[n]);
        let keep_nan = self.launch.keep_nan;
        let mut out = [0; 32];
        match step.op {
            Op::Arith(op, ty) => {
                let (a, b, c) = (value(0), value(1), value(2));
                let operands = [&a, &b, &c];
                let done = simple(op, ty, operands, &mut out)
                    || (ty == Type::F32 && !keep_nan && single(op, operands, &mut out));
                if !done {
                    each(mask).for_each(|l| out[l] = arith::arith(op, ty, a[l], b[l], c[l], keep_nan));
                }
            }
            Op::Mov(ty) => out = value(0).map(|x| narrow(ty, x)),
            Op::Bits(_) | Op::CvtaTo(_) => out = value(0),
            Op::Pack => {
                let (a, b) = (value(0), value(1));
                (0..32).for_each(|l| out[l] = narrow(Type::B16, a[l]) | narrow(Type::B16, b[l]) << 16);
            }
            Op::Pair => {
                let (a, b) = (value(0), value(1));
                (0..32).for_each(|l| out[l] = narrow(Type::B32, a[l]) | narrow(Type::B32, b[l]) << 32);
            }
            Op::CvtaParam => out = value(0).map(|at| at | PARAMS),
            Op::Cvt2(ty) => {
                let (high, low) = (value(0), value(1));
                let half = |x: u64| arith::convert(ty, Type::F32, Round::Rn, x, keep_nan);
                each(mask).for_each(|l| out[l] = half(high[l]) << 16 | half(low[l]));
            }
            Op::Setp(cmp, ty) => {
                let (a, b) = (value(0), value(1));
                each(mask).for_each(|l| out[l] = u64::from(arith::compare(cmp, ty, a[l], b[l])));
            }
            Op::Selp(ty) => {
                let (a, b, c) = (value(0), value(1), value(2));
                (0..32).for_each(|l| out[l] = narrow(ty, if c[l] != 0 { a[l] } else { b[l] }));
            }
            Op::Cvt { to, from, round } => {
                let a = value(0);
                each(mask).for_each(|l| out[l] = arith::convert(to, from, round, a[l], keep_nan));
            }
            _ => unreachable!("control and memory have been seen to"),
        }
        cta.warps[w].set(step.dsts[0], mask, &out);
    }
}

/// What most instructions are, of all lanes; false if it is none of these. It is what [`arith::arith`] says.
fn simple(op: Arith, ty: Type, [a, b, c]: [&Values; 3], out: &mut Values) -> bool {
    let signed = matches!(ty, Type::S32 | Type::S64);
    match (op, ty.size()) {
        _ if ty.is_float() => return false,
        (Arith::Add, 4) => all(out, |l| u64::from((a[l] as u32).wrapping_add(b[l] as u32))),
        (Arith::Sub, 4) => all(out, |l| u64::from((a[l] as u32).wrapping_sub(b[l] as u32))),
        (Arith::MulLo, 4) => all(out, |l| u64::from((a[l] as u32).wrapping_mul(b[l] as u32))),
        (Arith::MadLo, 4) => all(out, |l| u64::from((a[l] as u32).wrapping_mul(b[l] as u32).wrapping_add(c[l] as u32))),
        (Arith::Add, 8) => all(out, |l| a[l].wrapping_add(b[l])),
        (Arith::Sub, 8) => all(out, |l| a[l].wrapping_sub(b[l])),
        (Arith::MulLo, 8) => all(out, |l| a[l].wrapping_mul(b[l])),
        (Arith::MadLo, 8) => all(out, |l| a[l].wrapping_mul(b[l]).wrapping_add(c[l])),
        (Arith::MulWide, 4) if signed => all(out, |l| (i64::from(a[l] as i32) * i64::from(b[l] as i32)) as u64),
        (Arith::MulWide, 4) => all(out, |l| u64::from(a[l] as u32) * u64::from(b[l] as u32)),
        (Arith::MadWide, 4) if signed => {
            all(out, |l| ((i64::from(a[l] as i32) * i64::from(b[l] as i32)) as u64).wrapping_add(c[l]));
        }
        (Arith::MadWide, 4) => all(out, |l| (u64::from(a[l] as u32) * u64::from(b[l] as u32)).wrapping_add(c[l])),
        (Arith::And, 4) => all(out, |l| u64::from((a[l] & b[l]) as u32)),
        (Arith::Or, 4) => all(out, |l| u64::from((a[l] | b[l]) as u32)),
        (Arith::Xor, 4) => all(out, |l| u64::from((a[l] ^ b[l]) as u32)),
        (Arith::And, 8) => all(out, |l| a[l] & b[l]),
        (Arith::Or, 8) => all(out, |l| a[l] | b[l]),
        (Arith::Xor, 8) => all(out, |l| a[l] ^ b[l]),
        _ => return false,
    }
    true
}

fn all(out: &mut Values, f: impl Fn(usize) -> u64) {
    out.iter_mut().enumerate().for_each(|(l, x)| *x = f(l));
}

/// The same for sums and products of f32 on a card, which makes one NaN of all.
fn single(op: Arith, [a, b, c]: [&Values; 3], out: &mut Values) -> bool {
    let f = |x: u64| f32::from_bits(x as u32);
    let bits = |x: f32| if x.is_nan() { arith::NAN32 } else { u64::from(x.to_bits()) };
    match op {
        Arith::AddF => all(out, |l| bits(f(a[l]) + f(b[l]))),
        Arith::SubF => all(out, |l| bits(f(a[l]) - f(b[l]))),
        Arith::MulF => all(out, |l| bits(f(a[l]) * f(b[l]))),
        Arith::Fma => all(out, |l| bits(f(a[l]).mul_add(f(b[l]), f(c[l])))),
        _ => return false,
    }
    true
}

/// Numbers of an instruction have as many bits as its type.
pub(super) fn narrow(ty: Type, bits: u64) -> u64 {
    arith::truncate(ty.class().bits().div_ceil(8) * u32::from(ty != Type::Pred), bits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::TABLE;

    /// What is done for all lanes at once is what the definition says, on corners of the types.
    #[test]
    fn whole_warps_are_the_definition() {
        let floats = [1.5f32, -0.0, f32::MAX, f32::NAN, f32::INFINITY, 1e-40].map(|x| u64::from(x.to_bits()));
        let corners = [0, 1, 5, 31, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff, 1 << 40, u64::MAX - 6, u64::MAX, 1 << 63];
        let corners: Vec<u64> = corners.into_iter().chain(floats).collect();
        let lane = |k: usize| std::array::from_fn(|l| corners[(l * k + l / 12 + k) % corners.len()]);
        let [a, b, c]: [Values; 3] = [lane(1), lane(5), lane(7)];
        let mut count = 0;
        for (op, ty) in TABLE.iter().flat_map(|row| row.types.iter().map(|ty| (row.arith, *ty))) {
            let mut out = [0; 32];
            let operands = [&a, &b, &c];
            if simple(op, ty, operands, &mut out) || (ty == Type::F32 && single(op, operands, &mut out)) {
                count += 1;
                for l in 0..32 {
                    assert_eq!(out[l], arith::arith(op, ty, a[l], b[l], c[l], false), "{op:?} {ty:?} lane {l}");
                }
            }
        }
        assert!(count > 25, "{count}");
    }
}
