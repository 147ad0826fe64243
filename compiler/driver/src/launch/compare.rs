//! Holding inputs to `where` and results to `ensures`.

use super::mismatch::explain;
use super::plan::Plan;
use super::witness;
use crate::session::{Failed, Session};
use ptoc_diagnostics::{Diagnostic, Span, codes};
use ptoc_ir::oracle::{Inputs, Oracle, OracleError, OracleTensor, Predicate};
use ptoc_tensor::{DType, Stats, Tensor, compare, compare_f64, scalar};

/// A result that is as it should be.
#[derive(Clone, Debug)]
pub struct Verified {
    /// The tensor.
    pub name: String,
    /// What it was compared with: `ensures`, or the file of an array.
    pub with: String,
    /// How near it is.
    pub stats: Stats,
}

impl Plan {
    fn oracle_tensors<'t>(
        &self,
        before: &'t [Tensor],
        after: &'t [Tensor],
        shapes: &'t [Vec<u64>],
    ) -> Vec<OracleTensor<'t>> {
        // An `inout` on the right side means its contents before the launch.
        let pick = |i: usize| if self.arguments[i].is_input() { &before[i] } else { &after[i] };
        let tensor = |i: usize| OracleTensor { dtype: pick(i).dtype(), shape: &shapes[i], data: pick(i).bytes() };
        (0..self.arguments.len()).map(tensor).collect()
    }

    fn shapes(&self) -> Vec<Vec<u64>> {
        self.arguments.iter().map(|a| a.shape.iter().map(|&n| n as u64).collect()).collect()
    }

    fn oracle_failed(&self, e: &OracleError, span: Span, what: &str) -> Diagnostic {
        let why = match e {
            OracleError::OutOfRange { tensor, mode, index, extent } => match self.arguments.get(*tensor) {
                Some(a) => format!("index {index} in mode {mode} of `{}`, whose extent there is {extent}", a.name),
                None => e.to_string(),
            },
            e => e.to_string(),
        };
        Diagnostic::error(codes::ORACLE_FAILED, span, format!("{what} cannot be evaluated: {why}"))
            .with_note("this is a mistake of the specification, whatever the kernel computes")
    }

    /// Holds the inputs to the `where` conditions over contents.
    pub fn check_inputs(&self, session: &mut Session, tensors: &[Tensor]) -> Result<(), Failed> {
        let spec = &self.specification;
        let shapes = self.shapes();
        let oracle_tensors = self.oracle_tensors(tensors, tensors, &shapes);
        let inputs = Inputs { tensors: &oracle_tensors, ints: &spec.ints, scalars: &spec.scalars };
        let mut failed = false;
        for (condition, span) in &spec.conditions {
            let d = match Predicate::new(condition).and_then(|p| p.counterexample(inputs)) {
                Ok(None) => continue,
                Ok(Some(at)) => {
                    let shown = witness::values(condition, &at, &self.arguments, tensors, spec);
                    let at: Vec<String> = at.iter().map(i64::to_string).collect();
                    let place = match (shown.split_last(), at.len()) {
                        (Some((last, [])), _) => format!(": {last}"),
                        (Some((last, rest)), _) => format!(": {} and {last}", rest.join(", ")),
                        (None, 0) => String::new(),
                        (None, 1) => format!(", first at index {}", at[0]),
                        (None, _) => format!(", first at indices {}", at.join(", ")),
                    };
                    Diagnostic::error(
                        codes::DATA_VIOLATES_WHERE,
                        *span,
                        format!("the inputs of `{}` do not satisfy this `where`{place}", self.name),
                    )
                    .with_label("false for these data")
                    .with_help("give arrays that satisfy it with `--in`")
                }
                Err(e) => self.oracle_failed(&e, *span, "this `where`"),
            };
            session.diagnostics.push(d);
            failed = true;
        }
        if failed { Err(Failed) } else { Ok(()) }
    }
}

/// As a conversion by name rounds: to floats of 8 bits it saturates.
fn rounded(dtype: DType, value: f64) -> u64 {
    let most = if dtype.is_f8() { f64::from(ptoc_ir::formula::largest(dtype)) } else { f64::INFINITY };
    scalar::bits_from_f64(dtype, value.clamp(-most, most))
}

/// The oracle's value rounded once to the dtype is right, however small the tolerance: where the result is that, the
/// oracle is taken to say so.
fn accept_rounded(got: &Tensor, want: &mut [f64]) {
    if want.len() != got.len() {
        return;
    }
    for (i, want) in want.iter_mut().enumerate() {
        let bits = got.get_bits(i);
        if bits == rounded(got.dtype(), *want) {
            *want = scalar::bits_to_f64(got.dtype(), bits);
        }
    }
}

/// Holds the results to the `ensures`. `before` are the tensors before the launch, `after` those after it.
pub fn verify(
    session: &mut Session,
    plan: &Plan,
    before: &[Tensor],
    after: &[Tensor],
    rtol: f64,
    atol: f64,
) -> Result<Vec<Verified>, Failed> {
    let spec = &plan.specification;
    let shapes = plan.shapes();
    let tensors = plan.oracle_tensors(before, after, &shapes);
    let inputs = Inputs { tensors: &tensors, ints: &spec.ints, scalars: &spec.scalars };
    let begin = session.clock.now();
    let (mut verified, mut failed) = (Vec::new(), false);
    for (equation, span) in &spec.ensures {
        let Some(argument) = plan.arguments.get(equation.tensor) else { continue };
        let got = &after[equation.tensor];
        let result = Oracle::new(equation.clone()).and_then(|oracle| {
            if oracle.is_exact() {
                let want = oracle.evaluate_exact(inputs)?;
                let dtype = argument.dtype;
                let tensor = Tensor::from_fn(dtype, &argument.shape, |i| scalar::bits_from_i128(dtype, want[i]));
                let tensor = tensor.map_err(|_| OracleError::Malformed("the expected tensor is too large"))?;
                let compared = compare(got, &tensor, rtol, atol);
                Ok(compared.map_err(|m| (m, want.iter().map(|n| *n as f64).collect())))
            } else {
                let mut want = oracle.evaluate(inputs)?;
                accept_rounded(got, &mut want);
                Ok(compare_f64(got, &want, rtol, atol).map_err(|m| (m, want)))
            }
        });
        let d = match result {
            Ok(Ok(stats)) => {
                verified.push(Verified { name: argument.name.to_string(), with: "ensures".into(), stats });
                continue;
            }
            Ok(Err((mismatch, want))) => {
                let want: Vec<f64> = want;
                let message = format!("`{}` is not what `ensures` says: {mismatch}", argument.name);
                let d = Diagnostic::error(crate::files::code(mismatch.code()), *span, message)
                    .with_label("what it should be");
                explain(d, got, &want, (rtol, atol))
            }
            Err(e) => plan.oracle_failed(&e, *span, "this `ensures`"),
        };
        session.diagnostics.push(d);
        failed = true;
    }
    session.clock.phase("verify", begin);
    if failed { Err(Failed) } else { Ok(verified) }
}
