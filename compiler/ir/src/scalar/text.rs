//! How a scalar's value looks in printed output and in messages.

use super::{float, to_f32, to_int};
use crate::tile::Ty;

/// The value as text: integers in decimal, `true` and `false`, floats as the shortest text of their value in f32
/// (`inf`, `-inf` and `NaN` included).
pub fn display(ty: Ty, bits: u64) -> String {
    match float(ty) {
        Some(d) => format!("{}", to_f32(d, bits)),
        None if ty == Ty::BOOL => (if bits & 1 == 1 { "true" } else { "false" }).to_owned(),
        None => to_int(ty, bits).to_string(),
    }
}
