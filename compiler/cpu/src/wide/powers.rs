//! Exponentials in fewer operations, where all lanes permit (AVX2).
//!
//! e^x is 2^n p(r) with p between 0.7 and 1.42. In general x is first kept between bounds, and p is multiplied by two
//! powers of two ([`Lower::scaled`](super::lower::Lower)), since 2^n may be no normal number. With n from -125 to 127
//! the bounds change nothing and n may be added to the exponent of p: the same bits by 12 operations in place of 18. A
//! guard looks at n early, before anything of its group of steps is stored; if a lane has another n, the group and
//! those behind it in the turn are done in full. A step that stores something before the last n is known has the full
//! form only.

use super::arith::BIASES;
use super::ops::VOp;
use super::program::{Action, Home, Ins, Mask, NestProgram, Origin, VReg, sweep};
use ptoc_isa::math::EXPONENTIAL;
use rustc_hash::FxHashMap;

/// The numbers n for which 2^n p is a normal number whatever p is.
const LEAST: i32 = -125;
const MOST: i32 = 127;

/// In place of the number that rounds in [`EXPONENTIAL`], which has 254 more: these last digits are n itself. Both are
/// even, so that ties go to the same sides. Shifted to the exponent's place, n is all that is left of the sum.
const ROUNDS: f32 = EXPONENTIAL[1] - BIASES as f32;

/// The power of this number is 0, and of all below. A lower bound that has an n of its own, from -151 on, says which
/// lanes are 0.
const ZERO: f32 = -104.0;
const LOWER: f32 = -105.0;
const ZERO_N: f32 = -151.0;

/// Of `CmpF`: NaN is not equal either.
const NOT_EQUAL: u8 = 4;

/// A step whose exponentials are short.
pub(crate) struct Short {
    pub(crate) step: Vec<Ins>,
    /// Instructions with n of each exponential, less [`LEAST`] and plus `i32::MIN`: the lowest that is right is the
    /// lowest there is. And the last of them.
    numbers: Vec<usize>,
    pub(crate) last: usize,
}

impl Short {
    /// What stands behind the last number of some copies of the step: leaves the turn for the group of this number,
    /// unless all are right for it.
    pub(crate) fn guard(&self, program: &mut NestProgram, copies: &[Vec<Ins>], group: usize) -> Vec<Ins> {
        let most = program.homed(Home::Const((i32::MIN + (MOST - LEAST)) as u32));
        let mut out = Vec::new();
        let origin = copies.first().map_or_else(Origin::default, |copy| copy[self.last].origin);
        let mut compute = |op: VOp, args: [VReg; 2]| {
            let dst = program.reg(program.class(most));
            out.push(vector(origin, op, dst, &args, None));
            dst
        };
        let numbers = copies.iter().flat_map(|copy| self.numbers.iter().filter_map(|&n| copy[n].dst));
        let beyond = numbers.reduce(|a, b| compute(VOp::MaxI, [a, b])).map(|n| compute(VOp::CmpGtI, [n, most]));
        let (args, action) = (Vec::from_iter(beyond), Action::Guard { group });
        out.push(Ins { action, dst: None, args, place: None, imm: None, mask: Mask::All, origin });
        out
    }
}

/// A program's step with short exponentials, if it has any and nothing is stored too early. Its own step gets what
/// elements need that the short one is not for.
pub(crate) fn short(program: &mut NestProgram) -> Option<Short> {
    let found = RowStep::new(program).exponentials();
    let short = shortened(program, &found);
    let mut step = std::mem::take(&mut program.main);
    found.iter().for_each(|e| zero(program, &mut step, e));
    program.main = step;
    short
}

/// Elements that were masked out have the lower bound in place of minus infinity. That its power is 0 the last product
/// finds by an underflow, which the processor is slow at: a vector with one takes several times as long. So p is 0 for
/// them.
fn zero(program: &mut NestProgram, step: &mut Vec<Ins>, e: &Exponential) {
    let at = |reg: VReg| step.iter().position(|ins| ins.dst == Some(reg));
    let (Some(bounded), Some(behind), Some(product)) = (e.bounded.and_then(at), at(e.p), at(e.product)) else { return };
    let zero_n = program.homed(Home::Const((EXPONENTIAL[1] + ZERO_N).to_bits()));
    let [above, p] = [(); 2].map(|()| program.reg(program.class(e.p)));
    step[bounded].args[0] = program.homed(Home::Const(LOWER.to_bits()));
    step[product].args[0] = p;
    // While nothing but p and n is in registers.
    let keep = [(VOp::CmpF, above, [e.moved, zero_n], Some(NOT_EQUAL)), (VOp::And, p, [e.p, above], None)];
    let origin = step[behind].origin;
    step.splice(behind + 1..behind + 1, keep.map(|(op, dst, args, imm)| vector(origin, op, dst, &args, imm)));
}

fn shortened(program: &mut NestProgram, found: &[Exponential]) -> Option<Short> {
    let mut step = program.main.clone();
    let mut numbers = Vec::with_capacity(found.len());
    for e in found {
        let rounds = program.homed(Home::Const(ROUNDS.to_bits()));
        let moves =
            program.homed(Home::Const((i32::MIN as u32).wrapping_sub(ROUNDS.to_bits()).wrapping_add(-LEAST as u32)));
        let [power, number] = [(); 2].map(|()| program.reg(program.class(e.moved)));
        let at = |step: &[Ins], reg: VReg| step.iter().position(|ins| ins.dst == Some(reg));
        let (upper, n, last) = (at(&step, e.upper)?, at(&step, e.n)?, at(&step, e.result)?);
        step[upper].args[2] = e.x;
        step[n].args[1] = rounds;
        let origin = step[last].origin;
        step[last] = vector(origin, VOp::AddI, e.result, &[e.p, power], None);
        step.insert(last, vector(origin, VOp::ShlIBy, power, &[e.moved], Some(23)));
        let first = at(&step, e.moved)?;
        step[first].args[0] = e.x;
        step[first].args[2] = rounds;
        step.insert(first + 1, vector(origin, VOp::AddI, number, &[e.moved, moves], None));
        numbers.push(number);
    }
    let mut read = vec![false; program.regs.len()];
    numbers.iter().for_each(|number| read[number.0 as usize] = true);
    sweep(&mut step, &mut read);
    let at = |number: &VReg| step.iter().position(|ins| ins.dst == Some(*number));
    let numbers: Vec<usize> = numbers.iter().filter_map(at).collect();
    let last = *numbers.iter().max()?;
    // What is done over must have stored nothing.
    let stores = step[..last].iter().any(|ins| ins.dst.is_none() && ins.action != Action::Vector(VOp::Fetch));
    (!stores).then_some(Short { step, numbers, last })
}

fn vector(origin: Origin, op: VOp, dst: VReg, args: &[VReg], imm: Option<u8>) -> Ins {
    Ins { action: Action::Vector(op), dst: Some(dst), args: args.to_vec(), place: None, imm, mask: Mask::All, origin }
}

/// An exponential of a step.
struct Exponential {
    /// The argument before it was kept between bounds.
    x: VReg,
    /// n in the last digits, and n.
    moved: VReg,
    n: VReg,
    /// x without the upper part of n ln 2.
    upper: VReg,
    p: VReg,
    /// p by the first factor.
    product: VReg,
    result: VReg,
    /// The argument between its bounds, the power of the lower one being 0, if nothing else reads it.
    bounded: Option<VReg>,
}

/// A step to look things up in.
struct RowStep<'p> {
    program: &'p NestProgram,
    defs: FxHashMap<VReg, usize>,
}

impl<'p> RowStep<'p> {
    fn new(program: &'p NestProgram) -> RowStep<'p> {
        let defs = program.main.iter().enumerate().filter_map(|(at, ins)| Some((ins.dst?, at))).collect();
        RowStep { program, defs }
    }

    /// In their order.
    fn exponentials(&self) -> Vec<Exponential> {
        (0..self.program.main.len()).filter_map(|at| self.exponential(at)).collect()
    }

    /// The instruction that computes a register, if it is this operation on that many registers.
    fn def<const N: usize>(&self, op: VOp, reg: VReg) -> Option<[VReg; N]> {
        let ins = &self.program.main[*self.defs.get(&reg)?];
        let plain = ins.action == Action::Vector(op) && ins.place.is_none() && ins.mask == Mask::All;
        ins.args[..].try_into().ok().filter(|_| plain)
    }

    /// `reg` as a shift of another by so many digits.
    fn shift(&self, op: VOp, reg: VReg, by: u8) -> Option<VReg> {
        let [of] = self.def(op, reg)?;
        (self.program.main[self.defs[&reg]].imm == Some(by)).then_some(of)
    }

    fn constant(&self, reg: VReg) -> Option<f32> {
        match self.program.regs[reg.0 as usize].home {
            Some(Home::Const(bits)) => Some(f32::from_bits(bits)),
            _ => None,
        }
    }

    fn is(&self, reg: VReg, constant: f32) -> bool {
        self.constant(reg).is_some_and(|c| c.to_bits() == constant.to_bits())
    }

    /// The exponential whose last product is at this place.
    fn exponential(&self, last: usize) -> Option<Exponential> {
        let result = self.program.main[last].dst?;
        let [log2e, rounds, ln2 @ .., _, _, _, _, _, _, _] = EXPONENTIAL;
        let coefficients = &EXPONENTIAL[4..];
        // p 2^h 2^(n - h), as `Lower::scaled` has it.
        let [product, power] = self.def(VOp::MulF, result)?;
        let [p, first] = self.def(VOp::MulF, product)?;
        let [moved, half] = self.def(VOp::SubI, self.shift(VOp::ShlIBy, power, 23)?)?;
        let halves = self.shift(VOp::ShlIBy, first, 23)? == half && self.shift(VOp::ShrIBy, half, 1)? == moved;
        // p by its coefficients, from the lowest up.
        let (mut rest, mut r) = (p, None);
        for (n, &c) in coefficients.iter().enumerate().skip(1).rev() {
            let [q, by, add] = self.def(VOp::Fma, rest)?;
            // The highest stands where the others have what was computed so far.
            let end = n > 1 || self.is(q, coefficients[0]);
            if !end || !self.is(add, c) || *r.get_or_insert(by) != by {
                return None;
            }
            rest = q;
        }
        // r = x - n ln 2 in two parts, n as rounded.
        let r = r?;
        let [n, low, upper] = self.def(VOp::Fma, r)?;
        let [n_too, high, x] = self.def(VOp::Fma, upper)?;
        let [by, c] = self.def(VOp::SubF, n)?;
        let [x_too, by_log, c_too] = self.def(VOp::Fma, moved)?;
        let constants = self.is(by_log, log2e)
            && self.is(c, rounds)
            && self.is(c_too, rounds)
            && self.is(high, ln2[0])
            && self.is(low, ln2[1]);
        // n in other digits is for these alone.
        let reads = |of: VReg| self.program.main.iter().flat_map(Ins::reads).filter(|reg| *reg == of).count();
        let known = halves && constants && by == moved && n_too == n && x_too == x && reads(moved) == 3;
        let zero = self.def(VOp::MaxF, x).and_then(|[bound, _]| self.constant(bound)).is_some_and(|c| c <= ZERO);
        let bounded = (zero && reads(x) == 2).then_some(x);
        known.then(|| Exponential { x: self.free(x), moved, n, upper, p, product, result, bounded })
    }

    /// What a register is without bounds that lie where exponents are beyond [`LEAST`] and [`MOST`].
    fn free(&self, x: VReg) -> VReg {
        let exponent = |reg: VReg| self.constant(reg).map(|c| c * std::f32::consts::LOG2_E);
        let mut x = x;
        if let Some([bound, inner]) = self.def(VOp::MaxF, x)
            && exponent(bound).is_some_and(|n| n < (LEAST - 1) as f32)
        {
            x = inner;
        }
        if let Some([bound, inner]) = self.def(VOp::MinF, x)
            && exponent(bound).is_some_and(|n| n > (MOST + 1) as f32)
        {
            x = inner;
        }
        x
    }
}
