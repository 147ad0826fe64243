//! Pipes on the interpreter: which kernels run that way, and what the model of time says of them.

use super::planned::PlannedLaunch;
use crate::session::Session;
use ptoc_diagnostics::{SourceMap, Span};
use ptoc_interp::{Cause, Order, Pipes, Slice, Timing};
use ptoc_ir::tile::{Kernel, SyncMode};
use ptoc_isa::Target;
use ptoc_trace::Value::Number;
use ptoc_trace::{Process, Trace, Track};
use serde_json::{Map, Value, json};
use std::fmt::Write as _;

/// How the pipes of a run are wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Schedule {
    /// The order that was asked for; `None` is program order.
    pub order: Option<Order>,
    /// Kernels that leave their pipes to the compiler have them ordered by it. Without, they run one statement after
    /// another.
    pub insert: bool,
    /// Time the pipes by the target's model.
    pub time: bool,
}

/// The order that a word names: `program`, `late`, `random`, `random:SEED`.
///
/// # Errors
/// What such a word is, for a message.
pub fn parse_order(text: &str) -> Result<Order, String> {
    match text.split_once(':').unwrap_or((text, "0")) {
        ("program", "0") if text == "program" => Ok(Order::Program),
        ("late", "0") if text == "late" => Ok(Order::Late),
        ("random", seed) => {
            let wrong = |_| format!("`{seed}` is no seed, which is a whole number of at most 64 bits");
            seed.parse().map(Order::Random).map_err(wrong)
        }
        _ => Err("it is `program`, `late`, `random` or `random:SEED`".into()),
    }
}

/// The model's word on one launch.
#[derive(Clone, Debug)]
pub struct Timed {
    /// The kernel's name.
    pub kernel: String,
    /// Names of its roles.
    pub roles: Vec<String>,
    /// Names of its events, by their numbers, and whether each is an array.
    pub events: Vec<(String, bool)>,
    /// The numbers.
    pub timing: Timing,
}

impl Timed {
    /// Of a launch of `kernel`.
    pub fn new(kernel: &Kernel, timing: Timing) -> Timed {
        let roles = kernel.roles.values().map(|r| r.name.to_string()).collect();
        let events = kernel.events.values().map(|e| (e.name.to_string(), e.count > 1)).collect();
        Timed { kernel: kernel.name.to_string(), roles, events, timing }
    }

    /// `V`, `V of loader`
    fn lane(&self, role: u32, pipe: ptoc_isa::Pipe) -> String {
        let name = role.checked_sub(1).and_then(|n| self.roles.get(n as usize));
        name.map_or(pipe.to_string(), |name| format!("{pipe} of {name}"))
    }

    fn micros(&self, cycles: u64) -> f64 {
        cycles as f64 / f64::from(self.timing.clock.max(1))
    }

    fn share(&self, cycles: u64) -> f64 {
        cycles as f64 * 100.0 / (self.timing.cycles.max(1)) as f64
    }

    /// For `--stats`.
    pub fn text(&self, sources: &SourceMap) -> String {
        let t = &self.timing;
        let mut out = format!("pipes of {} (a model of time, not measured)\n", self.kernel);
        let row = |out: &mut String, name: &str, cycles: u64| {
            let _ = writeln!(out, "  {name:<14} {cycles} cycles, {:.3} us", self.micros(cycles));
        };
        row(&mut out, "longest block", t.longest);
        let cores = if t.cores == 1 { "core" } else { "cores" };
        row(&mut out, &format!("{} {cores}", t.cores), t.makespan);
        let mut busy = |name: &str, busy: u64, count: u64| {
            let share = self.share(busy);
            let _ = writeln!(out, "  {name:<14} {busy} cycles busy, {share:.1} %, {count} instructions");
        };
        for unit in t.units() {
            busy(unit.unit.name(), unit.busy, unit.count);
            for lane in t.lanes.iter().filter(|l| l.pipe == unit.unit && !self.roles.is_empty()) {
                busy(&format!("  of {}", self.role(lane.role).unwrap_or("the kernel")), lane.busy, lane.count);
            }
        }
        for stall in t.stalls.iter().take(MOST_STALLS) {
            let _ = writeln!(
                out,
                "  {} {} at line {}: {} cycles, {:.1} %",
                self.lane(stall.role, stall.pipe),
                cause(stall.cause),
                line(sources, stall.span),
                stall.cycles,
                self.share(stall.cycles)
            );
        }
        out
    }

    /// For `--json`.
    pub fn json(&self, sources: &SourceMap) -> Value {
        let t = &self.timing;
        let pipes: Vec<Value> = (t.lanes.iter())
            .map(|l| {
                json!({"pipe": l.pipe.name(), "role": self.role(l.role), "busy_cycles": l.busy,
                       "share": self.share(l.busy) / 100.0, "instructions": l.count})
            })
            .collect();
        let units: Vec<Value> = (t.units().iter())
            .map(|u| {
                json!({"unit": u.unit.name(), "busy_cycles": u.busy, "share": self.share(u.busy) / 100.0,
                       "instructions": u.count})
            })
            .collect();
        let stalls: Vec<Value> = (t.stalls.iter())
            .map(|s| {
                let on = match s.cause {
                    Cause::Event(pipe) => pipe.name(),
                    Cause::Barrier => "barrier",
                    Cause::Issue => "issue",
                    Cause::Unit => "unit",
                };
                json!({"pipe": s.pipe.name(), "role": self.role(s.role), "waits_for": on,
                       "line": line(sources, s.span), "cycles": s.cycles, "share": self.share(s.cycles) / 100.0})
            })
            .collect();
        json!({"kernel": self.kernel, "model": true, "clock_mhz": t.clock, "cores": t.cores, "blocks": t.blocks,
               "block_cycles": t.longest, "block_us": self.micros(t.longest), "total_cycles": t.makespan,
               "total_us": self.micros(t.makespan), "units": units, "pipes": pipes, "stalls": stalls})
    }

    fn role(&self, role: u32) -> Option<&str> {
        role.checked_sub(1).and_then(|n| self.roles.get(n as usize)).map(String::as_str)
    }

    /// The first block as a process of a trace, with a track for each unit, which shows who had it when.
    pub fn trace(&self, sources: &SourceMap, trace: &mut Trace) {
        let mut units: Vec<ptoc_isa::Pipe> = self.timing.first.slices.iter().map(|s| s.pipe).collect();
        units.sort_unstable();
        units.dedup();
        let mut tracks: Vec<Track> =
            units.iter().map(|unit| Track { name: unit.name().into(), slices: Vec::new() }).collect();
        for s in &self.timing.first.slices {
            let at = units.iter().position(|unit| *unit == s.pipe).unwrap_or(0);
            tracks[at].slices.push(self.slice(s, sources, trace));
        }
        let (name, clock) = (format!("first block of {} (model)", self.kernel), u64::from(self.timing.clock));
        trace.push(Process { name, picoseconds: 1_000_000, ticks: clock, tick: "cycle", tracks });
    }

    fn slice(&self, s: &Slice, sources: &SourceMap, trace: &mut Trace) -> ptoc_trace::Slice {
        let role = self.role(s.role);
        let name = role.map_or(s.name.to_owned(), |role| format!("{} of {role}", s.name));
        let arguments = vec![
            ("line", Number(u64::from(line(sources, s.span)))),
            ("done", Number(s.end)),
            ("role", ptoc_trace::Value::Text(role.map(str::to_owned))),
        ];
        ptoc_trace::Slice {
            begin: s.begin,
            end: s.free,
            name: trace.text(&name),
            class: trace.text(s.name),
            depth: 0,
            arguments: trace.arguments(arguments),
        }
    }
}

/// Stalls that are shown.
const MOST_STALLS: usize = 8;

fn cause(cause: Cause) -> String {
    match cause {
        Cause::Event(pipe) => format!("waits for {pipe}"),
        Cause::Barrier => "waits at a barrier".into(),
        Cause::Issue => "waits for the issuer".into(),
        Cause::Unit => "waits for its unit, which another role has,".into(),
    }
}

fn line(sources: &SourceMap, span: Span) -> u32 {
    sources.position(span.file, span.start).line
}

impl PlannedLaunch {
    /// The kernel whose pipes are run, and how; `None`: one statement after another.
    pub(crate) fn pipes(&self, session: &Session, schedule: Schedule) -> Option<(Kernel, Pipes)> {
        let target: &Target = &session.target;
        if self.kernel.sync == SyncMode::Auto && !schedule.insert {
            return None;
        }
        let kernel = ptoc_placement::physical(&self.kernel, &self.placement, target);
        let kernel = ptoc_opt::sync::insert(kernel, target);
        let time = schedule.time.then(|| target.pipes.time.clone()).flatten();
        let order = schedule.order.unwrap_or_default();
        let pools = target.pools().iter().map(|pool| pool.locations.clone()).collect();
        Some((kernel, Pipes { order, barrier: target.pipes.barrier.clone(), pools, time }))
    }
}

/// The model's word on every launch, for `--json`.
pub fn stats(timed: &[Timed], sources: &SourceMap, into: &mut Map<String, Value>) {
    if !timed.is_empty() {
        into.insert("pipes".into(), timed.iter().map(|t| t.json(sources)).collect());
    }
}
