//! Holding inputs to `where` and results to `ensures`.

use super::mismatch::explain;
use super::plan::{Argument, Plan};
use super::planned::PlannedLaunch;
use super::tensors::Used;
use super::tolerance::Tolerance;
use super::witness;
use crate::session::{Failed, Front, Session};
use ptoc_diagnostics::{Diagnostic, Span, codes};
use ptoc_ir::oracle::{Claim, Equation, Inputs, MAX_WORK, Oracle, OracleError, OracleTensor, Predicate, Sampled};
use ptoc_isa::Target;
use ptoc_tensor::{DType, Stats, Tensor, TensorError, compare, compare_f64, scalar};
use std::ops::Range;

/// A result that is as it should be.
#[derive(Clone, Debug)]
pub struct Verified {
    /// The tensor.
    pub name: String,
    /// What it was compared with: `ensures`, or the file of an array.
    pub with: String,
    /// How near it is.
    pub stats: Stats,
    /// Elements that were not looked at, since the evaluation of all would take too long.
    pub left_out: usize,
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

    /// The argument with that number, of which there are two: before the launch, and after it.
    fn argument(&self, tensor: usize) -> Option<&Argument> {
        self.arguments.get(tensor).or_else(|| self.arguments.get(tensor.checked_sub(self.arguments.len())?))
    }

    fn shapes(&self) -> Vec<Vec<u64>> {
        self.arguments.iter().map(|a| a.shape.iter().map(|&n| n as u64).collect()).collect()
    }

    pub(super) fn oracle_failed(&self, e: &OracleError, span: Span, what: &str) -> Diagnostic {
        oracle_failed(e, &|n| self.argument(n), span, what)
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
                    violated(&format!("inputs of `{}`", self.name), *span, &at, &shown).with_help(match session.front {
                        Front::Command => "give arrays that satisfy it with `--in`",
                        Front::Call => "pass arrays that satisfy it",
                    })
                }
                Err(e) => self.oracle_failed(&e, *span, "this `where`"),
            };
            session.diagnostics.push(d);
            failed = true;
        }
        if failed { Err(Failed) } else { Ok(()) }
    }
}

/// Data for which a `where` is false, with the values of its indices and the elements that it reads.
pub(super) fn violated(whose: &str, span: Span, at: &[i64], shown: &[String]) -> Diagnostic {
    let at: Vec<String> = at.iter().map(i64::to_string).collect();
    let place = match (shown.split_last(), at.len()) {
        (Some((last, [])), _) => format!(": {last}"),
        (Some((last, rest)), _) => format!(": {} and {last}", rest.join(", ")),
        (None, 0) => String::new(),
        (None, 1) => format!(", first at index {}", at[0]),
        (None, _) => format!(", first at indices {}", at.join(", ")),
    };
    let message = format!("the {whose} do not satisfy this `where`{place}");
    Diagnostic::error(codes::DATA_VIOLATES_WHERE, span, message).with_label("false for these data")
}

/// An oracle without a value; `argument` is a tensor by its number there.
pub(super) fn oracle_failed<'a>(
    e: &OracleError,
    argument: &dyn Fn(usize) -> Option<&'a Argument>,
    span: Span,
    what: &str,
) -> Diagnostic {
    let why = match e {
        OracleError::OutOfRange { tensor, mode, index, extent } => match argument(*tensor) {
            Some(a) => format!("index {index} in mode {mode} of `{}`, whose extent there is {extent}", a.name),
            None => e.to_string(),
        },
        e => e.to_string(),
    };
    Diagnostic::error(codes::ORACLE_FAILED, span, format!("{what} cannot be evaluated: {why}"))
        .with_note("this is a mistake of the specification, whatever the kernel computes")
}

impl PlannedLaunch {
    /// Holds the arguments of a launch of a program to what its kernel's `where` says of their contents.
    pub(super) fn check_contents(&self, session: &mut Session, used: &mut Used<'_>) -> Result<(), Failed> {
        let Some(contents) = &self.contents else { return Ok(()) };
        let begin = session.clock.now();
        let argument = |n: usize| match &self.windows[n] {
            None => Ok(used.get(self.tensors[n]).clone()),
            Some(window) => self.gathered(n, window, used),
        };
        let tensors: Result<Vec<Tensor>, TensorError> = (0..self.tensors.len()).map(argument).collect();
        let tensors = tensors.or_else(|e| {
            let code = crate::files::code(e.code());
            session.fail(Diagnostic::error(code, self.span, format!("what `where` reads: {e}")))
        })?;
        let before = std::mem::take(&mut session.diagnostics);
        let held = Plan::of_contents(self, contents).check_inputs(session, &tensors);
        let told = std::mem::replace(&mut session.diagnostics, before);
        session.diagnostics.extend(told.iter().map(|d| self.launched(d.clone())));
        session.clock.phase("where", begin);
        held
    }
}

/// As a conversion by name rounds: to floats of 8 bits it saturates.
pub(super) fn rounded(dtype: DType, value: f64) -> u64 {
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
    tolerance: Tolerance,
) -> Result<Vec<Verified>, Failed> {
    let spec = &plan.specification;
    let shapes = plan.shapes();
    // On the left, and in conditions, tensors are what the launch leaves: they are numbered behind the others.
    let mut tensors = plan.oracle_tensors(before, after, &shapes);
    tensors.extend(plan.oracle_tensors(after, after, &shapes));
    let inputs = Inputs { tensors: &tensors, ints: &spec.ints, scalars: &spec.scalars };
    let begin = session.clock.now();
    let target = session.target.clone();
    let (mut verified, mut failed) = (Vec::new(), false);
    for (clause, span) in &spec.ensures {
        let tolerance = match (clause.rtol, clause.atol) {
            (None, None) => tolerance,
            (r, a) => Tolerance::from((r.unwrap_or(0.0), a.unwrap_or(0.0))),
        };
        let held = match &clause.claim {
            Claim::Equation(equation) => plan.hold_equation(equation, *span, (after, &target), inputs, tolerance),
            Claim::Relation(relation) => {
                plan.hold_relation(relation, clause, *span, (before, after), inputs, tolerance)
            }
            Claim::Condition(condition) => plan.hold_condition(condition, clause, *span, after, inputs),
        };
        match held {
            Ok(v) => verified.push(v),
            Err(d) => {
                session.diagnostics.push(*d);
                failed = true;
            }
        }
    }
    session.clock.phase("verify", begin);
    if failed { Err(Failed) } else { Ok(verified) }
}

impl Plan {
    /// Each element of a tensor is what the equation says.
    fn hold_equation(
        &self,
        equation: &Equation,
        span: Span,
        (after, target): (&[Tensor], &Target),
        inputs: Inputs<'_>,
        tolerance: Tolerance,
    ) -> Result<Verified, Box<Diagnostic>> {
        let (argument, got) = (&self.arguments[equation.tensor], &after[equation.tensor]);
        // What is not in the sample is compared with itself.
        let (mut left_out, mut held_to) = (0, (0.0, 0.0));
        let result = Oracle::new(equation.clone()).and_then(|oracle| {
            let sample = oracle.sample(inputs, MAX_WORK);
            if oracle.is_exact() {
                let dtype = argument.dtype;
                let Sampled { values: mut want, skipped } = oracle.evaluate_exact(inputs, sample)?;
                skipped.iter().cloned().flatten().for_each(|i| want[i] = got.get_i128(i));
                left_out = skipped.iter().map(Range::len).sum();
                let tensor = Tensor::from_fn(dtype, &argument.shape, |i| scalar::bits_from_i128(dtype, want[i]));
                let tensor = tensor.map_err(|_| OracleError::Malformed("the expected tensor is too large"))?;
                held_to = tolerance.of_integers();
                let compared = compare(got, &tensor, held_to.0, held_to.1);
                Ok(compared.map_err(|m| (m, want.iter().map(|n| *n as f64).collect())))
            } else {
                let Sampled { values: mut want, skipped } = oracle.evaluate_sample(inputs, sample)?;
                skipped.iter().cloned().flatten().for_each(|i| want[i] = got.get_f64(i));
                left_out = skipped.iter().map(Range::len).sum();
                accept_rounded(got, &mut want);
                let rounded = self.sums_of(oracle.addends(inputs), argument.dtype, target);
                held_to = tolerance.of_floats(rounded, &want);
                Ok(compare_f64(got, &want, held_to.0, held_to.1).map_err(|m| (m, want)))
            }
        });
        match result {
            Ok(Ok(stats)) => {
                let stats = Stats { elements: stats.elements - left_out, ..stats };
                Ok(Verified { name: argument.name.to_string(), with: "ensures".into(), stats, left_out })
            }
            Ok(Err((mismatch, want))) => {
                let want: Vec<f64> = want;
                let message = format!("`{}` is not what `ensures` says: {mismatch}", argument.name);
                let d = Diagnostic::error(crate::files::code(mismatch.code()), span, message)
                    .with_label("what it should be");
                Err(Box::new(explain(d, got, &want, held_to)))
            }
            Err(e) => Err(Box::new(self.oracle_failed(&e, span, "this `ensures`"))),
        }
    }
}
