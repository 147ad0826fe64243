//! A kernel on a simulated device: every run takes as many cycles, so one run is the measurement. It is verified, as it
//! has results anyway.

use crate::format::{exact_ms, ms, percent, scaled, time};
use crate::setup::{Machine, Setup};
use crate::verify::{Checked, Rejected, checked};
use ptoc_diagnostics::plural;
use ptoc_driver::launch::{CompiledPlan, Plan};
use ptoc_driver::session::{Failed, Session};
use ptoc_tensor::Tensor;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::time::Duration;

/// What a run came to.
pub(crate) struct Simulation<'s> {
    plan: &'s Plan,
    target: String,
    compile: Vec<(String, Duration)>,
    checked: Checked,
    /// `ensures` say what is right, and it was asked for.
    wanted: bool,
}

/// Simulates a run, as text or JSON.
///
/// # Errors
/// What is wrong is among the diagnostics.
pub(crate) fn simulate(
    setup: &Setup,
    on: &Machine,
    session: &mut Session,
    (compiled, tensors): (&CompiledPlan<'_>, &[Tensor]),
    (compile, json): (Vec<(String, Duration)>, bool),
) -> Result<String, Failed> {
    let checked = match checked(session, compiled, tensors, on.threads, (setup.verify, &[]), false) {
        Ok(checked) => checked,
        Err(Rejected::Failed(why) | Rejected::Wrong(why) | Rejected::Slow(why)) => return session.fail(*why),
    };
    let (plan, target) = (compiled.plan(), session.target.name.to_string());
    let run = Simulation { plan, target, compile, checked, wanted: setup.verify.is_some() };
    Ok(if json { run.json(on) } else { run.text(on) })
}

/// Digits in groups of three.
fn grouped(n: f64) -> String {
    let digits = format!("{:.0}", n.round());
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Picojoules with four digits and a unit.
fn energy(pj: f64) -> String {
    let units = ["pJ", "nJ", "uJ", "mJ", "J"];
    let at = (0..units.len() - 1).find(|n| pj < 1000f64.powi(*n as i32 + 1)).unwrap_or(units.len() - 1);
    let value = pj / 1000f64.powi(at as i32);
    format!(
        "{value:.*} {}",
        if value < 10.0 {
            3
        } else if value < 100.0 {
            2
        } else {
            1
        },
        units[at]
    )
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or(0.0)
}

impl Simulation<'_> {
    fn report(&self) -> &Value {
        &self.checked.outcome.stats["report"]
    }

    /// For people.
    fn text(&self, on: &Machine) -> String {
        let (plan, report) = (self.plan, self.report());
        let dims: Vec<String> = plan.dims.iter().map(|(name, n)| format!("{name}={n}")).collect();
        let dims = if dims.is_empty() { String::new() } else { format!("{}, ", dims.join(" ")) };
        let launches = if plan.steps.len() > 1 { format!("{} launches, ", plan.steps.len()) } else { String::new() };
        let blocks: u64 = plan.steps.iter().map(|s| s.blocks).sum();
        let mut out = String::new();
        let head = on.head(&plan.name, &self.target);
        let _ = writeln!(out, "{head}: {dims}{launches}{}", plural(blocks as usize, "block"));
        let mut line = |head: &str, value: String, rest: String| {
            let _ = writeln!(out, "{}", format!("{head:<9} {value:>13}   {rest}").trim_end());
        };
        let parts: Vec<String> = self.compile.iter().map(|(name, d)| format!("{name} {}", ms(*d))).collect();
        let all: Duration = self.compile.iter().map(|(_, d)| *d).sum();
        line("compile", format!("{} ms", ms(all)), parts.join(", "));
        let (cycles, ns) = (number(&report["cycles"]), number(&report["ns"]));
        let units =
            report["unit_cycles"].as_f64().map(|n| format!(", {} of the units", grouped(n))).unwrap_or_default();
        let device = report["device"].as_str().unwrap_or_default();
        line("cycles", grouped(cycles), format!("{} of {device}{units}", time(ns * 1e-9)));
        for (name, kind) in report["kinds"].as_object().into_iter().flatten() {
            let own = number(&kind["cycles"]);
            if own == 0.0 {
                continue;
            }
            let share = percent(own / cycles.max(1.0));
            let bound = &kind["bound"];
            let bound = match bound["factor"].as_f64() {
                Some(factor) => {
                    let parts = bound["parts"].as_object().into_iter().flatten();
                    let parts = parts.filter(|(_, n)| number(n) > 0.0);
                    let parts: Vec<String> = parts.map(|(by, n)| format!("{by} {}", grouped(number(n)))).collect();
                    let all = grouped(number(&bound["cycles"]));
                    format!(", {factor:.2} of the bound {all}: {}", parts.join(", "))
                }
                None => String::new(),
            };
            line(&format!("  {name}"), grouped(own), format!("{share:>6}{bound}"));
        }
        let host = &report["host_baseline"]["streaming"]["cycles"];
        if let Some(host) = host.as_f64().filter(|host| *host > 0.0 && cycles > 0.0) {
            let rest = "the host alone, each array once on the same buses";
            line("host", grouped(host), format!("{rest}: {:.2} of the cycles above", host / cycles));
        }
        for launch in report["launches"].as_array().into_iter().flatten().filter(|_| plan.program) {
            let own = number(&launch["cycles"]);
            let name = launch["kernel"].as_str().unwrap_or_default();
            let place = launch["place"].as_str().unwrap_or_default();
            line("  launch", grouped(own), format!("{:>6}  {name}  {place}", percent(own / cycles.max(1.0))));
        }
        let operations = number(&report["lane_operations"]);
        if operations > 0.0 && ns > 0.0 {
            line("speed", scaled(operations / ns * 1e9, "OP/s"), "of the units' lanes".into());
        }
        line("energy", energy(number(&report["energy_pj"]["total"])), String::new());
        let verified = match self.checked.right {
            Some((n, error)) => format!("verified {}, largest error {error:.3e}", plural(n, "element")),
            None if self.wanted => "not verified: there is no `ensures`".into(),
            None => "not verified".into(),
        };
        line("simulated", time(self.checked.outcome.run_time.as_secs_f64()), verified);
        out
    }

    /// For programs: the report of the simulation, and what it is of.
    fn json(&self, on: &Machine) -> String {
        let plan = self.plan;
        let dims: serde_json::Map<String, Value> = plan.dims.iter().map(|(n, v)| (n.to_string(), json!(v))).collect();
        let compile: serde_json::Map<String, Value> =
            self.compile.iter().map(|(name, d)| (name.clone(), json!(exact_ms(*d)))).collect();
        let right = self.checked.right.map(|(n, error)| json!({"elements": n, "max_error": error}));
        let report = json!({
            "kernel": plan.name.as_str(), "backend": on.backend.name(), "target": self.target, "dims": dims,
            "blocks": plan.steps.iter().map(|s| s.blocks).sum::<u64>(), "threads": on.host_threads(),
            "compile_ms": compile, "cycles": self.checked.cycles(), "verified": right, "report": self.report(),
        });
        format!("{report}\n")
    }
}

#[cfg(test)]
mod tests {
    use super::{energy, grouped};

    #[test]
    fn digits_are_grouped() {
        assert_eq!([0.0, 999.0, 1000.0, 1_234_567.4].map(grouped), ["0", "999", "1,000", "1,234,567"]);
    }

    #[test]
    fn energies_have_units() {
        assert_eq!([0.0, 999.0, 62_200_580.3, 5e15].map(energy), ["0.000 pJ", "999.0 pJ", "62.20 uJ", "5000.0 J"]);
    }
}
