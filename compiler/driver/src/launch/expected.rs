//! Holding results to arrays from files.

use super::arrays::{Arrays, for_argument};
use super::compare::Verified;
use super::mismatch::explain;
use super::plan::Plan;
use super::tolerance::Tolerance;
use crate::files::code;
use crate::session::{Failed, Session};
use ptoc_diagnostics::{Diagnostic, codes};
use ptoc_tensor::{Tensor, compare, scalar};
use std::path::PathBuf;

/// What an output is compared with.
pub struct Expected {
    /// The number of the argument.
    argument: usize,
    want: Tensor,
    path: PathBuf,
}

impl Plan {
    /// Dtype and shape of expected arrays, before anything runs.
    ///
    /// # Errors
    /// Those that no result of the plan can be equal to are among the diagnostics.
    pub fn check_expected(&self, session: &mut Session, expected: &Arrays) -> Result<(), Failed> {
        let mut failed = false;
        for (name, want) in expected {
            let Some(a) = self.arguments.iter().find(|a| a.name == *name) else { continue };
            let same_dtype = want.dtype() == a.dtype || a.dtype.has_bits_of(want.dtype());
            if same_dtype && want.shape() == a.shape {
                continue;
            }
            failed = true;
            let code = if same_dtype { codes::EXPECTED_SHAPE } else { codes::EXPECTED_DTYPE };
            let declared = format!("{}{:?}", a.dtype, a.shape);
            let message = format!("`{name}` will be {declared}, the expected array is {}", want.signature());
            session.diagnostics.push(Diagnostic::error(code, a.span, message).with_label("the result"));
        }
        if failed { Err(Failed) } else { Ok(()) }
    }

    /// The elements of expected arrays.
    ///
    /// # Errors
    /// What of their files cannot be read is among the diagnostics.
    pub fn read_expected(&self, session: &mut Session, expected: Arrays) -> Result<Vec<Expected>, Failed> {
        let mut read = Vec::new();
        for (name, array) in expected {
            let Some(argument) = self.arguments.iter().position(|a| a.name == *name) else { continue };
            let path = array.path().to_owned();
            match array.into_tensor() {
                Ok(want) => read.push(Expected { argument, want, path }),
                Err(d) => return session.fail(for_argument(d, Some(self.arguments[argument].span))),
            }
        }
        Ok(read)
    }

    /// Holds results to expected arrays: those that are as they should be, and whether all are.
    ///
    /// # Errors
    /// How others differ is among the diagnostics.
    pub fn compare(
        &self,
        session: &mut Session,
        all: &[Expected],
        tensors: &[Tensor],
        tolerance: Tolerance,
    ) -> (Vec<Verified>, Result<(), Failed>) {
        let (mut held, mut result) = (Vec::new(), Ok(()));
        for Expected { argument: at, want, path } in all {
            let (at, a) = (*at, &self.arguments[*at]);
            let name = a.name.to_string();
            let cast = a
                .dtype
                .has_bits_of(want.dtype())
                .then(|| Tensor::from_bytes(a.dtype, &a.shape, want.bytes()).ok())
                .flatten();
            let want = cast.as_ref().unwrap_or(want);
            let bits = |i| scalar::bits_to_f64(want.dtype(), want.get_bits(i));
            let values = || -> Vec<f64> { (0..want.len()).map(bits).collect() };
            let (rtol, atol) = match (tolerance, a.dtype.is_float()) {
                (Tolerance::Given { rtol, atol }, _) => (rtol, atol),
                (_, true) => tolerance.of_floats(self.rounded_to(a.dtype), &values()),
                (_, false) => tolerance.of_integers(),
            };
            match compare(&tensors[at], want, rtol, atol) {
                Ok(stats) => {
                    held.push(Verified { name: name.clone(), with: path.display().to_string(), stats, left_out: 0 });
                }
                Err(mismatch) => {
                    let message = format!("`{name}` is not `{}`: {mismatch}", path.display());
                    let d = Diagnostic::error(code(mismatch.code()), a.span, message).with_label("the result");
                    let same = want.shape() == tensors[at].shape() && want.dtype() == tensors[at].dtype();
                    let values = if same { values() } else { Vec::new() };
                    session.diagnostics.push(explain(d, &tensors[at], &values, (rtol, atol)));
                    result = Err(Failed);
                }
            }
        }
        (held, result)
    }
}
