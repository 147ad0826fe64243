//! What stands for a dtype that the target does not have: a proposal is tried on the kernel before it is made.

use ptoc_diagnostics::{Code, Diagnostic, Fix, Span, codes};
use ptoc_isa::Target;
use ptoc_tensor::DType;

/// What is wrong with dtypes.
const DTYPES: [Code; 8] = [
    codes::DTYPE_NOT_ON_TARGET,
    codes::CUBE_DTYPE,
    codes::INSTR_DTYPE,
    codes::MOVE_DTYPE,
    codes::NO_MOVE_PATH,
    codes::CVT_PAIR,
    codes::CUBE_TRIPLE,
    codes::DTYPE_MISMATCH,
];

/// Replaces what the reports of absent dtypes propose, each for its own place, by the nearest dtype with which the
/// kernel has no error that it does not have anyway. `trial` gives what is said of the kernel with dtypes replaced.
/// Where none helps, none is proposed.
pub(crate) fn propose(
    target: &Target,
    absent: &[(DType, Option<Span>)],
    diagnostics: &mut [Diagnostic],
    trial: impl Fn(Vec<(DType, DType)>) -> Vec<Diagnostic>,
) {
    let about = |d: &Diagnostic| {
        let here = absent.iter().find(|(_, span)| d.span == *span);
        here.filter(|_| d.code == codes::DTYPE_NOT_ON_TARGET).map(|(dtype, _)| *dtype)
    };
    let known: Vec<_> = diagnostics.iter().filter(|d| d.is_error()).map(|d| (d.code, d.span)).collect();
    let errors = |to: DType| -> Vec<Diagnostic> {
        let instead = absent.iter().map(|(from, _)| (*from, to)).collect();
        let new = |d: &Diagnostic| d.is_error() && !(known.contains(&(d.code, d.span)) && about(d).is_none());
        trial(instead).into_iter().filter(new).collect()
    };
    let first = absent.first().map_or(DType::F32, |a| a.0);
    // What else is wrong with the kernel, and was not looked at for want of a dtype, is no reason against one.
    let mut found = None;
    for to in ptoc_isa::dtypes_instead(target, first) {
        let errors = errors(to);
        if errors.is_empty() {
            found = Some(to);
            break;
        }
        if found.is_none() && !errors.iter().any(|d| DTYPES.contains(&d.code)) {
            found = Some(to);
        }
    }
    for d in diagnostics {
        let Some(from) = about(d) else { continue };
        let parameter =
            d.fixes.iter().find_map(|f| f.message.strip_prefix("`-D ")?.split('=').next().map(str::to_owned));
        d.fixes.clear();
        if let Some(to) = found {
            let message = ptoc_isa::instead_of(parameter.as_deref(), from, to);
            d.fixes.push(Fix::advice(message));
        }
    }
}
