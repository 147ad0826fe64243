//! Which statements of a `Lanes` body give every lane the same value.

use super::{Addr, Lanes, Op, Reg, Stride};
use rustc_hash::FxHashSet;

/// What differs between the lanes of a body, and what does not.
#[derive(Clone, Debug, Default)]
pub struct SharedInfo {
    /// For each statement, whether its result is the same in all lanes, so that it may be computed once, before the
    /// loop.
    pub shared: Vec<bool>,
    /// Registers of the body that may differ between lanes, the lane's number among them.
    pub own: FxHashSet<Reg>,
}

/// The registers that a statement without control flow reads, and the one that it defines. Addresses are not included.
pub fn operands(op: &Op) -> ([Option<Reg>; 3], Option<Reg>) {
    match *op {
        Op::Const { dst, .. } | Op::Get { dst, .. } | Op::Load { dst, .. } | Op::Nibble { dst, .. } => {
            ([None; 3], Some(dst))
        }
        Op::Unary { dst, a, .. } | Op::Cast { dst, a, .. } => ([Some(a), None, None], Some(dst)),
        Op::Binary { dst, a, b, .. } | Op::Compare { dst, a, b, .. } => ([Some(a), Some(b), None], Some(dst)),
        Op::Fma { dst, a, b, c } => ([Some(a), Some(b), Some(c)], Some(dst)),
        Op::Select { dst, cond, a, b } => ([Some(cond), Some(a), Some(b)], Some(dst)),
        Op::Store { value, .. } | Op::Join { value, .. } => ([Some(value), None, None], None),
        _ => ([None; 3], None),
    }
}

impl SharedInfo {
    /// Analyses a body. A load is shared if its address is and no store of the body stands before it (behind a store it
    /// may read what its own lane has stored).
    pub fn new(lanes: &Lanes) -> SharedInfo {
        let mut info = SharedInfo::default();
        info.own.insert(lanes.lane);
        let mut stored = false;
        for stmt in &lanes.body {
            let op = &stmt.op;
            let (inputs, dst) = operands(op);
            let shared = match op {
                Op::Store { .. } | Op::Join { .. } => {
                    stored = true;
                    false
                }
                Op::Fetch { .. } | Op::Nibble { .. } => false,
                Op::Load { addr, .. } => !stored && info.same_place(addr),
                _ => inputs.into_iter().flatten().all(|r| info.is_shared(r)),
            };
            if let Some(dst) = dst.filter(|_| !shared) {
                info.own.insert(dst);
            }
            info.shared.push(shared);
        }
        info
    }

    /// Whether all lanes have the same value in `reg`.
    pub fn is_shared(&self, reg: Reg) -> bool {
        !self.own.contains(&reg)
    }

    fn same_place(&self, addr: &Addr) -> bool {
        addr.stride == Stride::Const(0) && addr.gather.is_none_or(|g| self.is_shared(g))
    }
}
