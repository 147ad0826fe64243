//! The diagnostic code of each kind of refusal of the layout algebra.

use ptoc_diagnostics::{Code, codes};
use ptoc_layout::ErrorKind;

/// The code of what `ptoc_layout` refuses.
pub fn code(kind: ErrorKind) -> Code {
    match kind {
        ErrorKind::StrideDivisibility => codes::STRIDE_DIVISIBILITY,
        ErrorKind::ShapeDivisibility => codes::SHAPE_DIVISIBILITY,
        ErrorKind::NotInjective => codes::NOT_INJECTIVE,
        ErrorKind::NotBijective => codes::NOT_BIJECTIVE,
        ErrorKind::StrideOrder => codes::STRIDE_ORDER,
        ErrorKind::Width => codes::LAYOUT_WIDTH,
        ErrorKind::Profile => codes::LAYOUT_PROFILE,
        ErrorKind::Size => codes::LAYOUT_SIZE,
        ErrorKind::OutOfRange => codes::LAYOUT_OUT_OF_RANGE,
        ErrorKind::Domain => codes::LAYOUT_DOMAIN,
        ErrorKind::Divisibility => codes::LAYOUT_DIVISIBILITY,
        ErrorKind::Kind => codes::LAYOUT_KIND,
        ErrorKind::NoInstruction => codes::NO_MMA_INSTRUCTION,
        ErrorKind::NoExtent => codes::NO_MMA_EXTENT,
        ErrorKind::Overflow => codes::LAYOUT_OVERFLOW,
        ErrorKind::Undecided => codes::LAYOUT_UNDECIDED,
    }
}
