//! How the scalars of a block move from block to block.
//!
//! The blocks of a grid mostly do the same elsewhere: an offset grows with the coordinates of the block, and all that
//! decides is equal. While one block is gone through, every scalar gets its slopes, one for each dimension of the grid;
//! they hold for the blocks of a [`GridBox`] around it. A `min` or a comparison has slopes where it turns out the same
//! way in the whole box. Where a scalar with other slopes than 0, or with none, decides something, the block stands for
//! no other.

use ptoc_ir::tile::{Inst, Operand, Value, Var};
use ptoc_isa::{BinOp, CmpOp};

/// Dimensions of a grid that are followed.
pub const DIMS: usize = 4;

/// By how much a scalar moves with each coordinate of the grid.
pub type Slope = [i64; DIMS];

/// The slope of what is the same in all blocks.
pub const FLAT: Slope = [0; DIMS];

/// Blocks around a block: how far each coordinate goes down and up from its own.
pub type GridBox = [(i64, i64); DIMS];

/// An index that moves linearly.
#[derive(Clone, Copy, Debug)]
pub struct Linear {
    /// Its value in the block at hand.
    pub at: i64,
    /// Its slope.
    pub slope: Slope,
}

/// Slopes of the scalars of a block.
#[derive(Clone, Debug)]
pub struct Slopes {
    around: GridBox,
    values: Vec<Option<Slope>>,
    vars: Vec<Option<Slope>>,
    /// Something decided that is not the same in the whole box.
    alone: bool,
}

impl Slopes {
    /// For so many scalars, of which those that are not told are the launch's own.
    pub fn new(around: GridBox, values: usize, vars: usize) -> Slopes {
        Slopes { around, values: vec![Some(FLAT); values], vars: vec![Some(FLAT); vars], alone: false }
    }

    /// The slope of a scalar; `None` if it has none.
    pub fn of(&self, v: Value) -> Option<Slope> {
        self.values[v.as_u32() as usize]
    }

    /// That of a mutable scalar.
    pub fn of_var(&self, v: Var) -> Option<Slope> {
        self.vars[v.as_u32() as usize]
    }

    /// Notes a scalar's slope.
    pub fn set(&mut self, v: Value, slope: Option<Slope>) {
        self.values[v.as_u32() as usize] = slope;
    }

    /// That of a mutable scalar.
    pub fn set_var(&mut self, v: Var, slope: Option<Slope>) {
        self.vars[v.as_u32() as usize] = slope;
    }

    /// Something is decided by this scalar.
    pub fn decides(&mut self, v: Value) {
        self.alone |= self.of(v) != Some(FLAT);
    }

    /// The block stands for itself alone.
    pub fn stands_alone(&mut self) {
        self.alone = true;
    }

    /// Whether it does.
    pub fn is_alone(&self) -> bool {
        self.alone
    }

    /// The slope of `a op b`, where all are indices.
    pub fn binary(&self, op: BinOp, a: Linear, b: Linear) -> Option<Slope> {
        let each = |f: fn(i64, i64) -> Option<i64>| zip(a.slope, b.slope, f);
        match op {
            BinOp::Add => each(i64::checked_add),
            BinOp::Sub => each(i64::checked_sub),
            BinOp::Mul if b.slope == FLAT => scaled(a.slope, b.at),
            BinOp::Mul if a.slope == FLAT => scaled(b.slope, a.at),
            // Whole steps of the divisor are whole steps of the quotient, and the rest stays.
            BinOp::Div if b.slope == FLAT && divides(b.at, a.slope) => Some(a.slope.map(|s| s / b.at)),
            BinOp::Rem if b.slope == FLAT && divides(b.at, a.slope) => Some(FLAT),
            BinOp::Div | BinOp::Rem if b.slope == FLAT && b.at > 0 => {
                let (low, high) = self.range(a);
                let same = low.div_euclid(i128::from(b.at)) == high.div_euclid(i128::from(b.at));
                same.then_some(if op == BinOp::Div { FLAT } else { a.slope })
            }
            BinOp::Min => self.decided(CmpOp::Le, a, b).map(|first| if first { a.slope } else { b.slope }),
            BinOp::Max => self.decided(CmpOp::Ge, a, b).map(|first| if first { a.slope } else { b.slope }),
            _ => None,
        }
        .filter(|slope| self.fits(a, b, *slope))
    }

    /// A comparison that turns out the same way in the whole box: which.
    pub fn decided(&self, op: CmpOp, a: Linear, b: Linear) -> Option<bool> {
        let slope = zip(a.slope, b.slope, i64::checked_sub)?;
        let (low, high) = self.range(Linear { at: a.at.checked_sub(b.at)?, slope });
        let (always, never) = match op {
            CmpOp::Lt => (high < 0, low >= 0),
            CmpOp::Le => (high <= 0, low > 0),
            CmpOp::Gt => (low > 0, high <= 0),
            CmpOp::Ge => (low >= 0, high < 0),
            CmpOp::Eq => (low == 0 && high == 0, high < 0 || low > 0),
            CmpOp::Ne => (high < 0 || low > 0, low == 0 && high == 0),
        };
        (always || never).then_some(always)
    }

    /// Smallest and largest value in the box.
    fn range(&self, x: Linear) -> (i128, i128) {
        let (mut low, mut high) = (i128::from(x.at), i128::from(x.at));
        for (slope, (down, up)) in x.slope.iter().zip(self.around) {
            let ends = [down, up].map(|d| i128::from(*slope) * i128::from(d));
            low += ends[0].min(ends[1]);
            high += ends[0].max(ends[1]);
        }
        (low, high)
    }

    /// Operands that stay far from where 64 bits wrap: what is computed of them with this slope does not wrap.
    fn fits(&self, a: Linear, b: Linear, slope: Slope) -> bool {
        const FAR: i128 = 1 << 62;
        let near = |(low, high): (i128, i128)| low > -FAR && high < FAR;
        let product = i128::from(a.at) * i128::from(b.at);
        near(self.range(a)) && near(self.range(b)) && product.abs() < FAR && near(self.range(Linear { at: 0, slope }))
    }
}

fn zip(a: Slope, b: Slope, f: fn(i64, i64) -> Option<i64>) -> Option<Slope> {
    let mut out = FLAT;
    for (out, (a, b)) in out.iter_mut().zip(a.into_iter().zip(b)) {
        *out = f(a, b)?;
    }
    Some(out)
}

fn scaled(slope: Slope, by: i64) -> Option<Slope> {
    zip(slope, [by; DIMS], i64::checked_mul)
}

fn divides(divisor: i64, slope: Slope) -> bool {
    divisor > 0 && slope.iter().all(|s| s % divisor == 0)
}

/// Calls `f` with every scalar of an instruction but the first elements of its windows.
pub fn sizes(inst: &Inst, f: &mut dyn FnMut(Value)) {
    for operand in &inst.operands {
        match operand {
            Operand::Tile(t) => t.for_each_value(f),
            Operand::View(v) => v.shape.iter().chain(&v.strides).copied().for_each(&mut *f),
            Operand::Scalar(v) => f(*v),
        }
    }
    inst.scratch.iter().for_each(|t| t.for_each_value(f));
}

/// The class of a block: blocks of one class lie in a box in which the last tile of a dimension is by itself, since it
/// may be smaller than the others. Returns which dimensions are at their last tile, and the box around the block.
/// `None` if the grid has more dimensions than are followed.
pub fn around(grid: &[i64], at: &[i64]) -> Option<(u32, GridBox)> {
    if grid.len() > DIMS {
        return None;
    }
    let (mut class, mut out) = (0, [(0, 0); DIMS]);
    for (d, (&extent, &i)) in grid.iter().zip(at).enumerate() {
        match i + 1 == extent {
            true => class |= 1 << d,
            false => out[d] = (-i, extent - 2 - i),
        }
    }
    Some((class, out))
}

/// By how much what has this slope moves from one block to another.
pub fn moved(slope: &Slope, from: &[i64], to: &[i64]) -> Option<i64> {
    let mut steps = slope.iter().zip(from.iter().zip(to));
    steps.try_fold(0i64, |sum, (s, (from, to))| sum.checked_add(s.checked_mul(to - from)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ptoc_ir::scalar;
    use ptoc_ir::tile::Ty;

    const OPS: [BinOp; 7] = [BinOp::Add, BinOp::Sub, BinOp::Mul, BinOp::Div, BinOp::Rem, BinOp::Min, BinOp::Max];
    const COMPARISONS: [CmpOp; 6] = [CmpOp::Lt, CmpOp::Le, CmpOp::Gt, CmpOp::Ge, CmpOp::Eq, CmpOp::Ne];

    /// Every block of a box has the value that the slope says, of random operations on random lines.
    #[test]
    fn slopes_hold_in_the_whole_box() {
        let mut seed = 77u64;
        let mut next = |n: u64| {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (seed >> 33) % n
        };
        let mut found = [0usize; 9];
        for _ in 0..40_000 {
            let around: GridBox =
                [(-(next(4) as i64), next(4) as i64), (-(next(3) as i64), next(3) as i64), (0, 0), (0, 0)];
            let slopes = Slopes::new(around, 0, 0);
            let mut line = || Linear {
                at: next(60) as i64 - 20,
                slope: [next(3) as i64 * 8, if next(2) == 0 { 0 } else { next(9) as i64 - 4 }, 0, 0],
            };
            let (a, mut b) = (line(), line());
            if next(2) == 0 {
                b.slope = FLAT;
            }
            let (op, cmp) = (next(7) as usize, COMPARISONS[next(6) as usize]);
            let (slope, decided) = (slopes.binary(OPS[op], a, b), slopes.decided(cmp, a, b));
            found[op] += usize::from(slope.is_some());
            found[7 + usize::from(decided.is_some())] += 1;
            let value =
                |x: i64, y: i64| scalar::binary(OPS[op], Ty::Index, x as u64, y as u64).expect("of indices") as i64;
            for i in around[0].0..=around[0].1 {
                for j in around[1].0..=around[1].1 {
                    let here = |l: Linear| l.at + l.slope[0] * i + l.slope[1] * j;
                    if let Some(s) = slope {
                        assert_eq!(value(here(a), here(b)), value(a.at, b.at) + s[0] * i + s[1] * j, "{a:?} {b:?}");
                    }
                    if let Some(holds) = decided {
                        assert_eq!(scalar::compare(cmp, Ty::Index, here(a) as u64, here(b) as u64), holds);
                    }
                }
            }
        }
        assert!(found.iter().all(|n| *n > 500), "{found:?}");
    }

    #[test]
    fn boxes_leave_the_last_tiles_out() {
        assert_eq!(around(&[5, 3], &[1, 2]), Some((2, [(-1, 2), (0, 0), (0, 0), (0, 0)])));
        assert_eq!(around(&[1], &[0]), Some((1, [(0, 0); DIMS])));
        assert_eq!(around(&[2; 5], &[0; 5]), None);
        assert_eq!(moved(&[3, -1, 0, 0], &[1, 2], &[4, 0]), Some(11));
        assert_eq!(moved(&[i64::MAX, 0, 0, 0], &[0], &[2]), None);
    }
}
