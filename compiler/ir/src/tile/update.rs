//! Atomic updates, as far as their order matters.

use super::{Kernel, Op, Operand, Region, TensorId, Value};
use cranelift_entity::EntitySet;
use ptoc_isa::AtomicOp;

/// An atomic update of elements of a tensor.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Update {
    /// What it does.
    pub op: AtomicOp,
    /// Something uses the old value that it gives.
    pub seen: bool,
}

impl Update {
    /// The update of an instruction, which gives no old value.
    pub fn unseen(op: AtomicOp) -> Update {
        Update { op, seen: false }
    }

    /// Whether two of them may come in any order, so that the result is the same. An old value that is used tells which
    /// came first. A sum of floats counts as the same: its rounding is all that differs (`spec/numerics.md`).
    pub fn commutes(self, other: Update) -> bool {
        self.op == other.op && self.op.commutes() && !self.seen && !other.seen
    }

    /// Why two that do not commute do not, as a sentence.
    pub fn disagreement(self, other: Update) -> String {
        let (a, b) = (self.op, other.op);
        match a == b {
            false => format!("`{a}` and then `{b}` leaves another value than `{b}` and then `{a}`"),
            true if !a.commutes() => format!("of two `{a}` the last one decides what stays"),
            true => format!("the old value that `atomic_{a}` gives is used, and it tells which of the two came first"),
        }
    }
}

/// The values that something in the kernel uses.
pub fn used_values(kernel: &Kernel) -> EntitySet<Value> {
    fn collect(region: &Region, out: &mut EntitySet<Value>) {
        for stmt in region {
            stmt.op.for_each_use(&mut |v| {
                out.insert(v);
            });
            stmt.op.regions().for_each(|r| collect(r, out));
        }
    }
    let mut out = EntitySet::new();
    collect(&kernel.prologue, &mut out);
    collect(&kernel.body, &mut out);
    out
}

/// Whether the kernel adds floats in steps that may come in any order. Its results may then differ by their rounding.
pub fn adds_floats(kernel: &Kernel) -> bool {
    fn any(kernel: &Kernel, region: &Region) -> bool {
        let float = |t: TensorId| kernel.tensors[t].dtype.is_float();
        region.iter().any(|stmt| {
            let own = match &stmt.op {
                Op::Atomic { tensor, .. } => float(*tensor),
                Op::Inst(inst) if inst.attrs.atomic == Some(AtomicOp::Add) => {
                    inst.operands.iter().any(|o| matches!(o, Operand::View(v) if float(v.tensor)))
                }
                _ => false,
            };
            own || stmt.op.regions().any(|r| any(kernel, r))
        })
    }
    any(kernel, &kernel.body)
}

impl Op {
    /// The update that the operation is, among such values that are used; `None`: it is no scalar atomic.
    pub fn update(&self, used: &EntitySet<Value>) -> Option<Update> {
        match *self {
            Op::Atomic { dst, op, .. } => Some(Update { op, seen: used.contains(dst) }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scalar;
    use crate::tile::Ty;
    use ptoc_isa::BinOp;
    use ptoc_tensor::DType;

    fn apply(op: AtomicOp, old: u64, value: u64) -> u64 {
        let binary = |op| scalar::binary(op, Ty::D(DType::I8), old, value).expect("i8 has it");
        match op {
            AtomicOp::Add => binary(BinOp::Add),
            AtomicOp::Max => binary(BinOp::Max),
            AtomicOp::Min => binary(BinOp::Min),
            AtomicOp::And => binary(BinOp::And),
            AtomicOp::Or => binary(BinOp::Or),
            AtomicOp::Xor => binary(BinOp::Xor),
            AtomicOp::Exchange => value,
            // Expects what the value is not.
            AtomicOp::Cas => {
                if old == value ^ 3 {
                    value
                } else {
                    old
                }
            }
        }
    }

    /// All pairs of operations on all pairs of values: those that are said to commute do, and the others do not for
    /// some.
    #[test]
    fn what_commutes() {
        for &a in AtomicOp::ALL {
            for &b in AtomicOp::ALL {
                let values = [0u64, 1, 2, 3, 5, 0x7f, 0x80, 0xff];
                let same = values.iter().all(|&x| {
                    values
                        .iter()
                        .all(|&y| values.iter().all(|&z| apply(b, apply(a, x, y), z) == apply(a, apply(b, x, z), y)))
                });
                let (first, second) = (Update { op: a, seen: false }, Update { op: b, seen: false });
                assert!(same || !first.commutes(second), "{a} {b}");
                assert!(a != b || same == first.commutes(second), "{a} {b}");
                assert!(!Update { seen: true, ..first }.commutes(second));
            }
        }
    }
}
