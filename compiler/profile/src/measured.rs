//! What was measured, as text and as JSON.

use crate::format::{exact_ms, ms, percent, reason, scaled, time};
use crate::limits::Limits;
use crate::sample::percentile;
use crate::setup::Machine;
use ptoc_diagnostics::plural;
use ptoc_ir::loops::work::{OpCount, Unknown};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::time::Duration;

/// A kernel's measurement.
pub struct Measured {
    /// The kernel or program.
    pub name: String,
    /// What it was compiled for.
    pub target: String,
    /// Sizes of the dimensions.
    pub dims: Vec<(String, i64)>,
    /// Blocks of all grids.
    pub blocks: u64,
    /// Launches of a program; 1 for a kernel.
    pub launches: usize,
    /// Bytes of machine code.
    pub code_bytes: usize,
    /// Phases of the compilation.
    pub compile: Vec<(String, Duration)>,
    /// Of a launch, ascending.
    pub times: Vec<Duration>,
    /// The launches of a program.
    pub parts: Vec<Part>,
    /// Mean time of laying arguments out and copying windows, which is no part of `times`.
    pub around: Duration,
    /// Operations of a launch.
    pub work: Result<OpCount, Unknown>,
    /// Bytes of the arguments: of those that are read by data, what is found.
    pub bytes: u64,
    /// Of these, those that no launch does without.
    pub least_bytes: u64,
    /// The limits of the machine whose time a launch takes, where they can be measured.
    pub limits: Option<Limits>,
}

/// Launches of one place in a program.
pub struct Part {
    /// The kernel.
    pub kernel: String,
    /// The line of the launch.
    pub line: u32,
    /// How many launches it is.
    pub count: usize,
    /// Mean time of all of them.
    pub time: Duration,
}

/// Where a time stands under the two roofs of the machine.
struct Roofline {
    /// Operations a byte of the arguments.
    intensity: f64,
    /// Operations a byte from which on arithmetic is the limit.
    ridge: f64,
    /// Seconds that a launch takes at least.
    least: f64,
}

impl Roofline {
    fn bound(&self) -> &'static str {
        if self.intensity < self.ridge { "memory" } else { "arithmetic" }
    }
}

impl Measured {
    fn median(&self) -> f64 {
        percentile(&self.times, 0.5).as_secs_f64()
    }

    fn roofline(&self) -> Option<Roofline> {
        let work = self.work.as_ref().ok()?;
        let (operations, bytes) = (work.total() as f64, self.least_bytes as f64);
        let limits = self.limits.as_ref()?;
        let peak = limits.arithmetic(work).1;
        Some(Roofline {
            intensity: operations / bytes.max(1.0),
            ridge: peak / limits.copy,
            least: limits.least(work, self.least_bytes),
        })
    }

    /// For people.
    pub fn text(&self, on: &Machine) -> String {
        let mut out = String::new();
        let dims: Vec<String> = self.dims.iter().map(|(name, n)| format!("{name}={n}")).collect();
        let dims = if dims.is_empty() { String::new() } else { format!("{}, ", dims.join(" ")) };
        let launches = if self.launches > 1 { format!("{} launches, ", self.launches) } else { String::new() };
        let (head, tail) = (on.head(&self.name, &self.target), on.tail());
        let _ = writeln!(out, "{head}: {dims}{launches}{}{tail}", plural(self.blocks as usize, "block"));
        let mut line = |head: &str, value: String, rest: String| {
            let _ = writeln!(out, "{}", format!("{head:<8} {value:>14}   {rest}").trim_end());
        };
        let phases: Vec<String> = self.compile.iter().map(|(name, d)| format!("{name} {}", ms(*d))).collect();
        let all = self.compile.iter().map(|(_, d)| *d).sum();
        line("compile", format!("{} ms", ms(all)), format!("{}; {} bytes of code", phases.join(", "), self.code_bytes));
        let at = |share| time(percentile(&self.times, share).as_secs_f64());
        let spread = format!("best {}, 90 % within {}, 99 % within {}", at(0.0), at(0.9), at(0.99));
        line("launch", at(0.5), format!("median of {}: {spread}", self.times.len()));
        let sum: f64 = self.parts.iter().map(|p| p.time.as_secs_f64()).sum();
        let width = self.parts.iter().map(|p| p.kernel.len()).max().unwrap_or(0);
        for p in &self.parts {
            let seconds = p.time.as_secs_f64();
            let times = if p.count > 1 { format!(", {} launches", p.count) } else { String::new() };
            let share = percent(seconds / sum.max(f64::MIN_POSITIVE));
            line("", time(seconds), format!("{share:>6}  {:<width$}  line {}{times}", p.kernel, p.line));
        }
        if !self.around.is_zero() && !self.parts.is_empty() {
            line("copies", time(self.around.as_secs_f64()), "beside: arguments that are laid out, and windows".into());
        }
        let median = self.median();
        match &self.work {
            Ok(work) => {
                let total = work.total() as f64;
                let arrays = format!("on {} of arrays", scaled(self.bytes as f64, "B"));
                let ops = if work.product_ints + work.ints > 0 { "OP" } else { "FLOP" };
                line("work", scaled(total, ops), arrays);
                let limit = self.limits.as_ref().map(|l| l.arithmetic(work)).map(|(name, peak)| {
                    format!("{} of {}: {name}", percent(total / median / peak), scaled(peak, &format!("{ops}/s")))
                });
                let limit = limit.unwrap_or_default();
                line("speed", scaled(total / median, &format!("{ops}/s")), limit);
            }
            Err(why) => line("work", "not counted".into(), reason(*why).into()),
        }
        let rate = self.bytes as f64 / median;
        let limit = self
            .limits
            .as_ref()
            .map(|l| format!("{} of {}: copying as many bytes", percent(rate / l.copy), scaled(l.copy, "B/s")));
        let limit = limit.unwrap_or_default();
        line("memory", scaled(rate, "B/s"), limit);
        if let Some(r) = self.roofline() {
            let why = format!("{:.1} operations a byte; {:.1} is where arithmetic takes over", r.intensity, r.ridge);
            let least = format!("at least {}, {} of the median", time(r.least), percent(r.least / median));
            line("limit", r.bound().into(), format!("{least} ({why})"));
        }
        if let Some(limits) = &self.limits {
            let _ = writeln!(out, "machine  {}", limits.name);
        }
        if cfg!(debug_assertions) {
            let what = if on.host_threads().is_some() { "limits and compile times" } else { "compile times" };
            let _ = writeln!(out, "         a debug build of ptoc: the {what} above mean nothing");
        }
        out
    }

    /// For programs. Times in milliseconds, rates a second.
    pub fn json(&self, on: &Machine) -> String {
        let at = |share| exact_ms(percentile(&self.times, share));
        let mean = self.times.iter().sum::<Duration>() / self.times.len().max(1) as u32;
        let median = self.median();
        let work = match &self.work {
            Ok(w) => json!({
                "product_flops": w.product_flops, "product_ints": w.product_ints, "flops": w.flops, "ints": w.ints,
                "operations": w.total(), "per_second": w.total() as f64 / median,
            }),
            Err(why) => json!({ "unknown": reason(*why) }),
        };
        let roofline = self.roofline().map(|r| {
            json!({"operations_per_byte": r.intensity, "ridge": r.ridge, "bound": r.bound(),
                   "least_ms": r.least * 1e3, "fraction": r.least / median})
        });
        let phases: serde_json::Map<String, Value> =
            self.compile.iter().map(|(name, d)| (name.clone(), json!(exact_ms(*d)))).collect();
        let dims: serde_json::Map<String, Value> = self.dims.iter().map(|(n, v)| (n.clone(), json!(v))).collect();
        let machine = self.limits.as_ref().map(|l| {
            json!({"name": l.name, "fma_f32_per_second": l.fma, "dot_i8_per_second": l.dot,
                   "copy_bytes_per_second": l.copy, "debug_build": cfg!(debug_assertions)})
        });
        let sum: f64 = self.parts.iter().map(|p| exact_ms(p.time)).sum();
        let part = |p: &Part| {
            let share = exact_ms(p.time) / sum.max(f64::MIN_POSITIVE);
            json!({"kernel": p.kernel, "line": p.line, "count": p.count, "ms": exact_ms(p.time), "share": share})
        };
        let parts: Vec<Value> = self.parts.iter().map(part).collect();
        let report = json!({
            "kernel": self.name, "backend": on.backend.name(), "target": self.target,
            "dims": dims, "blocks": self.blocks,
            "threads": on.host_threads(), "code_bytes": self.code_bytes, "compile_ms": phases,
            "run_ms": {"launches": self.times.len(), "min": at(0.0), "median": at(0.5), "mean": exact_ms(mean),
                       "p90": at(0.9), "p99": at(0.99)},
            "launches": parts, "copies_ms": exact_ms(self.around),
            "work": work,
            "memory": {"bytes": self.bytes, "per_second": self.bytes as f64 / median},
            "roofline": roofline,
            "machine": machine,
        });
        format!("{report}\n")
    }
}
