//! The coordinates of a block, from its number in the order of the launch.

use ptoc_abi::Raster;
use ptoc_ptx::{Arith, Builder, Class, Cmp, Op as Ptx, Round, Src, Type, VReg};

fn u64(b: &mut Builder, op: Arith, x: impl Into<Src>, y: impl Into<Src>) -> VReg {
    b.arith(op, Type::U64, &[x.into(), y.into()])
}

/// The coordinates of a block, as [`ptoc_abi::Raster::place`] has them.
pub(crate) fn coordinates(b: &mut Builder, block: VReg, extents: &[VReg], raster: Option<Raster>) -> Vec<VReg> {
    let rank = extents.len();
    let Some(last) = rank.checked_sub(1) else { return Vec::new() };
    let (along, swizzle) = raster.map_or((last, 1), |r| (r.along as usize, u64::from(r.swizzle.max(1))));
    let across = (0..rank).rev().find(|d| *d != along);
    let mut at = vec![block; rank];
    let inner = match across {
        Some(across) => u64(b, Arith::MulLo, extents[along], extents[across]),
        None => extents[along],
    };
    let (mut n, mut rest) = (block, None);
    if rank > 2 {
        let (outer, within) = div_rem(b, block.into(), inner.into());
        (n, rest) = (within, Some(outer));
    }
    for d in (0..rank).rev().filter(|d| *d != along && Some(*d) != across) {
        let outer = rest.unwrap_or(block);
        let (further, within) = div_rem(b, outer.into(), extents[d].into());
        (at[d], rest) = (within, Some(further));
    }
    let Some(across) = across else {
        at[along] = n;
        return at;
    };
    if swizzle == 1 {
        (at[across], at[along]) = div_rem(b, n.into(), extents[along].into());
        return at;
    }
    let band = u64(b, Arith::MulLo, extents[along], Src::Imm(swizzle));
    let (number, within) = div_rem(b, n.into(), band.into());
    let first = u64(b, Arith::MulLo, number, Src::Imm(swizzle));
    let left = u64(b, Arith::Sub, extents[across], first);
    let width = u64(b, Arith::Min, left, Src::Imm(swizzle));
    let (long, beside) = div_rem(b, within.into(), width.into());
    at[along] = long;
    at[across] = u64(b, Arith::Add, first, beside);
    at
}

/// Quotient and remainder of numbers without sign. A division of 64 bits is a routine of a hundred instructions, so
/// numbers that fit are divided in 32 bits.
pub(crate) fn div_rem(b: &mut Builder, x: Src, y: Src) -> (VReg, VReg) {
    let (quotient, rest) = (b.reg(Class::B64), b.reg(Class::B64));
    let [x, y] = [x, y].map(|n| if let Src::Reg(reg) = n { reg } else { b.mov(Type::U64, n) });
    let either = b.arith(Arith::Or, Type::B64, &[x.into(), y.into()]);
    let large = b.setp(Cmp::Gt, Type::U64, either, Src::Imm(u64::from(u32::MAX)));
    let (wide, done) = (b.label(), b.label());
    b.bra_if(large, true, wide);
    let [n, by] = [x, y].map(|n| b.cvt(Type::U32, Type::U64, Round::None, n));
    let q = b.arith(Arith::Div, Type::U32, &[n.into(), by.into()]);
    let product = b.arith(Arith::MulLo, Type::U32, &[q.into(), by.into()]);
    let r = b.arith(Arith::Sub, Type::U32, &[n.into(), product.into()]);
    for (dst, n) in [(quotient, q), (rest, r)] {
        b.push(Ptx::Cvt { to: Type::U64, from: Type::U32, round: Round::None }, &[dst], &[n.into()]);
    }
    b.bra(done);
    b.place(wide);
    b.push(Ptx::Arith(Arith::Div, Type::U64), &[quotient], &[x.into(), y.into()]);
    let product = u64(b, Arith::MulLo, quotient, y);
    b.push(Ptx::Arith(Arith::Sub, Type::U64), &[rest], &[x.into(), product.into()]);
    b.place(done);
    (quotient, rest)
}
