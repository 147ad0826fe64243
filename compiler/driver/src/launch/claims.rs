//! Holding results to what an `ensures` says of several elements at once: relations and conditions.

use super::compare::{Verified, rounded};
use super::plan::Plan;
use super::tolerance::Tolerance;
use super::witness;
use ptoc_diagnostics::{Diagnostic, Span, codes};
use ptoc_ir::oracle::{Clause, Compared, Comparison, Condition, Inputs, OracleExpr, Predicate, Relation, Shift};
use ptoc_tensor::{DType, Stats, Tensor, scalar};

/// A place where both sides of a relation differ.
struct Difference {
    at: Vec<i64>,
    left: f64,
    right: f64,
    error: f64,
}

/// What a relation was seen to be.
#[derive(Default)]
struct Tally {
    all: usize,
    wrong: usize,
    largest: f64,
    first: Option<Difference>,
    worst: Option<Difference>,
}

impl Tally {
    fn take(&mut self, c: Compared<'_>, (rtol, atol): (f64, f64)) {
        self.all += 1;
        if c.equal {
            return;
        }
        let error = match c.left.is_nan() || c.right.is_nan() {
            true => f64::INFINITY,
            // Integers beyond f64 may differ and look equal.
            false => (c.left - c.right).abs().max(f64::MIN_POSITIVE),
        };
        self.largest = self.largest.max(error);
        if error.is_finite() && error <= atol + rtol * c.right.abs() {
            return;
        }
        self.wrong += 1;
        let here = || Difference { at: c.at.to_vec(), left: c.left, right: c.right, error };
        if self.first.is_none() {
            self.first = Some(here());
        }
        if self.worst.as_ref().is_none_or(|w| error > w.error) {
            self.worst = Some(here());
        }
    }

    fn verified(&self, with: &str) -> Verified {
        let stats = Stats { elements: self.all, max_error: self.largest, max_error_index: Vec::new(), max_ulps: None };
        Verified { name: "ensures".into(), with: with.into(), stats, left_out: 0 }
    }
}

/// `i = 3, c = 5`; nothing if there are no indices.
fn place(names: &[String], at: &[i64]) -> String {
    let list: Vec<String> = names.iter().zip(at).map(|(n, x)| format!("{n} = {x}")).collect();
    list.join(", ")
}

fn number(x: f64) -> String {
    scalar::format_f64(x)
}

impl Plan {
    /// Both sides are equal, up to the tolerance, for all values of the variables.
    pub(super) fn hold_relation(
        &self,
        relation: &Relation,
        clause: &Clause,
        span: Span,
        (before, after): (&[Tensor], &[Tensor]),
        inputs: Inputs<'_>,
        tolerance: Tolerance,
    ) -> Result<Verified, Box<Diagnostic>> {
        let shift = Shift(self.arguments.len());
        let shifted = Relation { left: relation.left.rewritten(&shift), ..relation.clone() };
        // An element that is the right side rounded to its dtype is right.
        let dtype = match &relation.left {
            OracleExpr::Elem { tensor, .. } => self.arguments.get(*tensor).map(|a| a.dtype),
            _ => None,
        };
        let mut right = Vec::new();
        if tolerance == Tolerance::Rounding {
            let collected = Comparison::new(&shifted).and_then(|c| c.each(inputs, &mut |c| right.push(c.right)));
            if let Err(e) = collected {
                return Err(Box::new(self.oracle_failed(&e, span, "this `ensures`")));
            }
        }
        let tolerance = match dtype {
            Some(d) if !d.is_float() => tolerance.of_integers(),
            d => tolerance.of_floats(self.rounded_to(d.unwrap_or(DType::F32)), &right),
        };
        let mut tally = Tally::default();
        let result = Comparison::new(&shifted).and_then(|c| {
            c.each(inputs, &mut |c| {
                let near = dtype.is_some_and(|d: DType| d.is_float() && rounds_to(d, c.left, c.right));
                tally.take(Compared { equal: c.equal || near, ..c }, tolerance);
            })
        });
        if let Err(e) = result {
            return Err(Box::new(self.oracle_failed(&e, span, "this `ensures`")));
        }
        let (Some(worst), Some(first)) = (&tally.worst, &tally.first) else {
            return Ok(tally.verified("an equation"));
        };
        let sides = format!("the left side is {}, the right side {}", number(worst.left), number(worst.right));
        let message = match place(&clause.names, &worst.at).as_str() {
            "" => format!("this `ensures` does not hold: {sides}"),
            at => format!(
                "this `ensures` does not hold for {} of {} values of the indices; the worst is {at}: {sides}, error \
                 {:.3e}; the first is {}",
                tally.wrong,
                tally.all,
                worst.error,
                place(&clause.names, &first.at)
            ),
        };
        let d = Diagnostic::error(codes::EXPECTED_VALUES, span, message).with_label("not equal");
        let vars: Vec<(usize, i64)> = relation.vars.iter().zip(&first.at).map(|((v, ..), x)| (*v, *x)).collect();
        let mut read = witness::read(&relation.left, vars.clone(), &self.arguments, after, &self.specification);
        for text in witness::read(&relation.right, vars, &self.arguments, before, &self.specification) {
            if !read.contains(&text) {
                read.push(text);
            }
        }
        Err(Box::new(match read.is_empty() {
            true => d,
            false => d.with_note(format!("first: {}", read.join(", "))),
        }))
    }

    /// The condition is true for all values of its variables.
    pub(super) fn hold_condition(
        &self,
        condition: &Condition,
        clause: &Clause,
        span: Span,
        after: &[Tensor],
        inputs: Inputs<'_>,
    ) -> Result<Verified, Box<Diagnostic>> {
        let shift = Shift(self.arguments.len());
        let shifted = Condition { cond: condition.cond.rewritten(&shift), ..condition.clone() };
        match Predicate::new(&shifted).and_then(|p| p.counterexample(inputs)) {
            Ok(None) => {
                let stats = Stats { elements: 1, max_error: 0.0, max_error_index: Vec::new(), max_ulps: None };
                Ok(Verified { name: "ensures".into(), with: "a condition".into(), stats, left_out: 0 })
            }
            Ok(Some(at)) => {
                let message = match place(&clause.names, &at).as_str() {
                    "" => "this `ensures` is false".to_owned(),
                    at => format!("this `ensures` is false, first for {at}"),
                };
                let d = Diagnostic::error(codes::EXPECTED_VALUES, span, message).with_label("false for the results");
                let read = witness::values(condition, &at, &self.arguments, after, &self.specification);
                Err(Box::new(match read.is_empty() {
                    true => d,
                    false => d.with_note(read.join(", ")),
                }))
            }
            Err(e) => Err(Box::new(self.oracle_failed(&e, span, "this `ensures`"))),
        }
    }
}

/// Whether `got`, a value of the dtype, is `want` rounded to it.
fn rounds_to(dtype: DType, got: f64, want: f64) -> bool {
    got == scalar::bits_to_f64(dtype, rounded(dtype, want))
}
