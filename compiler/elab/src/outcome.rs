//! What an elaboration gives.

use crate::NameFact;
use ptoc_diagnostics::Diagnostic;
use ptoc_syntax::ast::Name;

/// What an elaboration gives.
#[derive(Debug)]
pub struct ElaborationOutcome<T> {
    /// The product; absent if there were errors, or if it waits for dimensions.
    pub result: Option<T>,
    /// Errors, warnings and notes, in the order of discovery.
    pub diagnostics: Vec<Diagnostic>,
    /// Dimensions that size tiles and are not known.
    pub waits: Vec<Name>,
    /// What its names stand for, as far as that was found out.
    pub names: Vec<NameFact>,
}
