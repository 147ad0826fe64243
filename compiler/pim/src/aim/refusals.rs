//! What AiM's units do not do: the words for it, and a look at a kernel whose sizes are not known.

use crate::advice;
use ptoc_diagnostics::{Diagnostic, Span, codes};
use ptoc_ir::tile::{Kernel, Op, Operand, Region};
use ptoc_isa::{BinOp, Reduce, Sem, UnOp};
use ptoc_tensor::DType;

/// What the units are for.
const DOES: &str = "a unit multiplies 16 bf16 of its bank with 16 of a buffer and adds the sum to its accumulator; \
                    what a kernel stores is `bf16(rowsum(f32(a) * f32(x)))`, `matmul(a, b)` in Acc, or its maximum \
                    with 0";

/// The unit has nothing for this.
pub(super) fn cannot(kernel: &Kernel, span: Span, message: String) -> Box<Diagnostic> {
    cannot_with(span, message, &advice::host(kernel))
}

/// The same with what mends it.
pub(super) fn cannot_with(span: Span, message: String, help: &str) -> Box<Diagnostic> {
    Box::new(
        Diagnostic::error(codes::UNIT_CANNOT, span, message)
            .with_label("no command of the units")
            .with_note(DOES)
            .with_help(help),
    )
}

/// There is no such instruction.
pub(super) fn lacks(kernel: &Kernel, span: Span, name: &str) -> Box<Diagnostic> {
    cannot(kernel, span, format!("an AiM unit has no {name}"))
}

/// An array whose elements no unit multiplies.
pub(super) fn other_dtype(kernel: &Kernel, span: Span, name: &str, dtype: DType) -> Box<Diagnostic> {
    cannot(kernel, span, format!("`{name}` is {dtype}, and AiM's units multiply bf16"))
}

/// Whether sizes and operands decide if the units do it.
pub(super) fn may(sem: Sem) -> bool {
    matches!(
        sem,
        Sem::Load
            | Sem::Store
            | Sem::Move
            | Sem::Convert
            | Sem::ColExpand
            | Sem::RowExpand
            | Sem::Binary(BinOp::Mul)
            | Sem::ColExpandBinary(BinOp::Mul)
            | Sem::RowExpandBinary(BinOp::Mul)
            | Sem::Matmul
            | Sem::RowReduce(Reduce::Sum)
            | Sem::ColReduce(Reduce::Sum)
            | Sem::Unary(UnOp::Relu)
            | Sem::BinaryScalar(BinOp::Max)
    )
}

/// The first statement that every block reaches and that no unit does, whatever the sizes. What stands under a
/// condition may never happen, so only the sizes of a launch tell.
pub fn at_any_size(kernel: &Kernel) -> Option<Box<Diagnostic>> {
    in_region(kernel, &kernel.body)
}

fn in_region(kernel: &Kernel, region: &Region) -> Option<Box<Diagnostic>> {
    region.iter().find_map(|stmt| match &stmt.op {
        Op::For(x) => in_region(kernel, &x.body),
        Op::Scope(x) => in_region(kernel, &x.body),
        Op::Inst(inst) => {
            let row = inst.instr.get();
            let narrow = inst.operands.iter().find_map(|o| match o {
                Operand::View(v) => Some(&kernel.tensors[v.tensor]).filter(|t| t.dtype != DType::BF16),
                _ => None,
            });
            match narrow {
                _ if !may(row.sem) => Some(lacks(kernel, stmt.span, row.name)),
                Some(t) => Some(other_dtype(kernel, stmt.span, &t.name, t.dtype)),
                None => None,
            }
        }
        Op::Copy(_) => Some(lacks(kernel, stmt.span, "`copy` of element by element")),
        Op::Mma(_) => Some(lacks(kernel, stmt.span, "matrix product")),
        Op::Print { .. } => Some(lacks(kernel, stmt.span, "`print`")),
        _ => None,
    })
}
