//! Locations that a target does not have: the matrix unit's where units in memory compute, and a unit's own stores
//! elsewhere.
//!
//! Memories that one of PTO's targets lacks and another has are a matter of their sizes ([`super::check_size`],
//! SA-0351).

use crate::{Loc, Target, UnitKind, text};
use ptoc_diagnostics::{Diagnostic, Span, codes};

/// A location that a program names and its target has not.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AbsentLocation {
    /// Which.
    pub loc: Loc,
    /// It is one of the matrix unit's, and the target has none of them.
    pub of_matrix: bool,
    /// The target's name.
    pub target: String,
    /// The locations that it has.
    pub locations: Vec<Loc>,
    /// Built-in targets that have it.
    pub there: Vec<&'static str>,
    /// The target's units, if it has any.
    units: Option<UnitKind>,
}

/// Whether the matrix unit reads or writes tiles there, and no other unit.
pub fn of_matrix(loc: Loc) -> bool {
    matches!(loc, Loc::Left | Loc::Right | Loc::Acc | Loc::Bias | Loc::Scaling | Loc::ScaleLeft | Loc::ScaleRight)
}

/// The target has the location, or it is for [`super::check_size`] to say that it has no bytes.
pub fn check_there(target: &Target, loc: Loc) -> Result<(), Box<AbsentLocation>> {
    if target.knows(loc) {
        return Ok(());
    }
    let there = Target::all().iter().filter(|t| t.capacity(loc) > 0).map(|t| t.name.as_str()).collect();
    Err(Box::new(AbsentLocation {
        loc,
        of_matrix: of_matrix(loc),
        target: target.name.clone(),
        locations: target.locations(),
        there,
        units: target.unit.map(|u| u.kind),
    }))
}

impl AbsentLocation {
    /// The report. `host`: a kernel of the host beside the units names it.
    pub fn diagnostic(&self, host: bool, span: Span) -> Diagnostic {
        let AbsentLocation { loc, target, .. } = self;
        let who = if host { format!("the host beside {target}") } else { target.clone() };
        let message = match self.of_matrix {
            true => format!("{who} has no matrix unit, and so no {loc}"),
            false => format!("{who} has no {loc}"),
        };
        let d = Diagnostic::error(codes::ABSENT_LOCATION, span, message).with_label(match self.of_matrix {
            true => "a store of the matrix unit",
            false => "not a location of this target",
        });
        let d = d.with_note(match host {
            true => "a kernel of the host has Vec alone".to_owned(),
            false => format!("its locations are {}", text::list(&self.locations)),
        });
        match (self.of_matrix, self.units) {
            (true, _) if host => d.with_help("sum products of tiles in Vec: `rowsum(Vec(a) * Vec(b))`"),
            (true, Some(UnitKind::HbmPim(_))) => d.with_help(
                "sum products: the matrix in `Bank`, the operand that all units share in `GrfA`, sums in `GrfB`, as in \
                 `examples/hbm_gemm.tile`; or let the host sum them, in a kernel `#[on(host)]`",
            ),
            (true, Some(UnitKind::Aim(_))) => {
                d.with_help("sum products in f32: `bf16(rowsum(f32(Vec(a.tile(m, _))) * f32(Vec(x.tile(_)))))`")
            }
            (true, Some(UnitKind::GeoPim(_))) => {
                d.with_help("its units do TSAMPLE alone; let the host sum products, in a kernel `#[on(host)]`")
            }
            _ if host || self.there.is_empty() => d,
            // A unit's store where there are no such units.
            (_, None) => d.with_help(format!(
                "compile for a target that has it: {}",
                text::either(self.there.iter().map(|t| format!("`--target {t}`")))
            )),
            _ => {
                d.with_help(format!("declare it in {}", text::either(self.locations.iter().map(|l| format!("`{l}`")))))
            }
        }
    }
}
