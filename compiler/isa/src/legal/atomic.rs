//! Updates of what is in memory (`atomic = ..`): which instruction makes which, on elements of which dtypes.
//!
//! PTO says that TSTORE adds, and MSCATTER adds on A2A3 and keeps the larger or smaller elsewhere. It leaves the dtypes
//! open: here all numbers are updated but those of 8-bit floats, which no unit adds.

use crate::{AtomicOp, InstrId, Target, text};
use ptoc_diagnostics::{Diagnostic, Span, codes};
use ptoc_tensor::DType;

/// An update that an instruction does not make on a target.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AtomicViolation {
    /// The instruction.
    pub instr: InstrId,
    /// The update.
    pub op: AtomicOp,
    /// The elements.
    pub dtype: DType,
    /// The target's name.
    pub target: String,
    /// Other built-in targets that make it.
    pub taken_by: Vec<&'static str>,
    /// The instruction updates by other operations, on elements of this dtype.
    pub of_op: bool,
    /// The dtypes that are updated.
    pub allowed: Vec<DType>,
}

/// Whether the instruction makes this update there.
fn makes(target: &Target, instr: InstrId, op: AtomicOp) -> bool {
    match instr.get().sem.scatters() {
        true => target.scatters_by(op),
        false => op == AtomicOp::Add,
    }
}

/// The dtypes whose elements are updated.
pub fn updated_dtypes(target: &Target) -> Vec<DType> {
    target.dtypes.iter().copied().filter(|d| !d.is_f8()).collect()
}

/// Checks the update of elements of `dtype` by `instr`.
pub fn check_atomic(target: &Target, instr: InstrId, op: AtomicOp, dtype: DType) -> Option<AtomicViolation> {
    let takes = |t: &Target| makes(t, instr, op) && updated_dtypes(t).contains(&dtype);
    if takes(target) {
        return None;
    }
    Some(AtomicViolation {
        instr,
        op,
        dtype,
        target: target.name.clone(),
        taken_by: target.others().filter(|t| takes(t)).map(|t| t.name.as_str()).collect(),
        of_op: !makes(target, instr, op),
        allowed: updated_dtypes(target),
    })
}

impl AtomicViolation {
    /// The report.
    pub fn diagnostic(&self, span: Span) -> Diagnostic {
        let name = self.instr.get().written_name();
        let AtomicViolation { op, dtype, target, .. } = self;
        let d =
            match self.of_op {
                true => {
                    let kept = if *op == AtomicOp::Min { "smaller" } else { "larger" };
                    let message =
                        format!("on {target}, {name} adds to what is there, and does not keep the {kept} of both");
                    let d = Diagnostic::error(codes::WRONG_ARGUMENTS, span, message)
                        .with_label("not a mode of this instruction here")
                        .with_note(format!("it updates by `atomic = true` alone, of {}", text::list(&self.allowed)));
                    match self.instr.get().sem.scatters() {
                    true => d.with_help(
                        "load the elements, take TMAX or TMIN in Vec, and store them again, where no other block uses \
                        them",
                    ),
                    false => d.with_help("`MSCATTER(table, a, idx, atomic = Max)` does, by indices, on a5 and the \
                        Kirins"),
                }
                }
                false => {
                    let message = format!("on {target}, {name} does not update elements of {dtype}");
                    Diagnostic::error(codes::INSTR_DTYPE, span, message)
                        .with_label(format!("`{dtype}`"))
                        .with_note(format!("it updates {}", text::list(&self.allowed)))
                        .with_help(
                            "make the tensor f16, which has every value of an 8-bit float, and convert with `f16(...)`",
                        )
                }
            };
        match self.taken_by.as_slice() {
            [] => d.with_note(format!("no target's {name} does")),
            some => d.with_note(format!("{} would take it", text::list(some))),
        }
    }
}
