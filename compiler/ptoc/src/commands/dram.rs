//! `ptoc dram`

mod check;
pub(super) mod input;
mod report;

use super::show;
use crate::args::{DramArgs, DramPage, DramPolicy, DramRefresh, MessageFormat};
use crate::io::{Counts, Io};
use crate::{DONE, ERRORS, WRONG_CALL};
use input::Inputs;
use ptoc_diagnostics::{Diagnostic, codes, suggest};
use ptoc_driver::files::Outputs;
use ptoc_pim_sim::check as rules;
use ptoc_pim_sim::dram::controller::RowPolicy;
use ptoc_pim_sim::dram::presets::PRESETS;
use ptoc_pim_sim::dram::trace::write_commands;
use ptoc_pim_sim::dram::{ChannelOutcome, Config, Controller, Issued, Policy, Refresh, SimError, simulate_channels};
use ptoc_pim_sim::energy::Model;
use ptoc_pim_sim::timeline;
use ptoc_trace::Format;
use std::fmt::Write as _;
use std::path::Path;

/// Requests of one run, and how it was run.
struct Run<'a> {
    args: &'a DramArgs,
    config: Config,
    controller: Controller,
    model: Model,
    outcomes: Vec<ChannelOutcome>,
}

/// Simulates a request trace, or checks a command trace.
pub fn dram(args: &DramArgs, io: &mut Io<'_>) -> u8 {
    if let Some(name) = &args.presets {
        return presets(name, io);
    }
    let mut inputs = Inputs::default();
    let result = match &args.check_trace {
        Some(path) => check::check_trace(args, path, &mut inputs, io),
        None => simulate(args, &mut inputs, io),
    };
    if let Err(d) = result {
        inputs.found.push(d);
    }
    match inputs.flush(args.message_format, io).errors {
        0 => DONE,
        _ => ERRORS,
    }
}

/// Names of presets, or the text of one.
fn presets(name: &str, io: &mut Io<'_>) -> u8 {
    if name.is_empty() {
        let mut out = String::new();
        for preset in PRESETS {
            let first = preset.text.lines().next().unwrap_or_default();
            let _ = writeln!(out, "{:<18}{}", preset.name, first.trim_start_matches(['#', ' ']));
        }
        io.print(&out);
        return DONE;
    }
    match PRESETS.iter().find(|p| p.name == name) {
        Some(preset) => {
            io.print(preset.text);
            DONE
        }
        None => {
            let d = Diagnostic::global(codes::DRAM_NO_CONFIG, format!("there is no preset `{name}`"));
            show(with_presets(d, name), io, MessageFormat::Human);
            WRONG_CALL
        }
    }
}

/// Says which presets there are.
fn with_presets(d: Diagnostic, name: &str) -> Diagnostic {
    match suggest(name, PRESETS.iter().map(|p| p.name)) {
        Some(near) => d.with_help(format!("did you mean `{near}`?")),
        None => {
            let names: Vec<String> = PRESETS.iter().map(|p| format!("`{}`", p.name)).collect();
            d.with_help(format!("the presets are {}; a file is given by its path", names.join(", ")))
        }
    }
}

/// The controller that the flags ask for.
fn controller(args: &DramArgs) -> Controller {
    Controller {
        policy: match args.policy {
            DramPolicy::Inorder => Policy::InOrder,
            DramPolicy::Frfcfs => Policy::FrFcfs,
        },
        row_policy: match args.page {
            DramPage::Open => RowPolicy::Open,
            DramPage::Closed => RowPolicy::Closed,
        },
        refresh: match args.refresh {
            DramRefresh::Off => Refresh::Off,
            DramRefresh::On => Refresh::AllBank,
            DramRefresh::PerBank => Refresh::PerBank,
        },
        read_queue: args.queues.0,
        write_queue: args.queues.1,
        write_high: args.drain.0,
        write_low: args.drain.1,
        ..Controller::default()
    }
}

fn simulate(args: &DramArgs, inputs: &mut Inputs, io: &mut Io<'_>) -> Result<(), Diagnostic> {
    // Places are taken before the work, so that what cannot be written is told at once.
    let mut outputs = Outputs::new();
    let commands = args.commands.as_deref().map(|path| outputs.plan(path)).transpose()?;
    let trace = args.trace.as_deref().map(|path| outputs.plan(path)).transpose()?;
    let (Some(name), Some(path)) = (&args.config, &args.requests) else {
        unreachable!("the arguments require both");
    };
    let Some(config) = inputs.config(name)? else { return Ok(()) };
    let Some(model) = inputs.energy(&config) else { return Ok(()) };
    let Some(requests) = inputs.requests(&config, args.map.as_deref(), path)? else { return Ok(()) };
    inputs.keep(&mut outputs)?;
    let controller = controller(args);
    let threads = match args.threads {
        0 => std::thread::available_parallelism().map_or(1, |n| n.get()),
        n => n,
    };
    let outcomes = simulate_channels(&config, &controller, &requests, true, threads)
        .map_err(|(channel, e)| failed(&config, channel, &e))?;
    let run = Run { args, config, controller, model, outcomes };
    run.check_itself(inputs);
    let traces = run.traces();
    if let Some(n) = commands {
        outputs.write(n, write_commands(traces.iter().copied()).as_bytes())?;
    }
    if let Some(n) = trace {
        outputs.write(n, &traced(&run.config, &traces, args.trace.as_deref()))?;
    }
    outputs.commit()?;
    let text = match args.json {
        true => report::json(&run),
        false => report::text(&run, path),
    };
    io.print(&text);
    Ok(())
}

impl Run<'_> {
    /// The commands of each channel.
    fn traces(&self) -> Vec<&[Issued]> {
        self.outcomes.iter().map(|o| &o.commands[..]).collect()
    }

    /// Holds the commands to the rules. The simulator obeys a list of constraints; the checker has the parameters.
    fn check_itself(&self, inputs: &mut Inputs) {
        let options = rules::Options { refresh: self.controller.refresh != Refresh::Off, ..Default::default() };
        let mut derived = self.config.clone();
        derived.derive();
        let own_list = derived.constraints != self.config.constraints;
        let mut count = 0usize;
        let (mut first, mut doubted) = (None, false);
        for (channel, outcome) in self.outcomes.iter().enumerate() {
            for violation in rules::check(&self.config, &outcome.commands, options) {
                let doubt = match violation.rule {
                    rules::Rule::RefreshCount => Some((
                        "refreshes fall behind",
                        "the requests leave too little time for them, or nREFIpb is too long for every bank to have \
                        its turn in nREFI",
                    )),
                    rules::Rule::DataBus => Some((
                        "bursts overlap on the data bus",
                        "nRTW is shorter than nCL + nBL - nCWL: give a longer one, or leave it out",
                    )),
                    _ => None,
                };
                if let Some((what, help)) = doubt {
                    if !std::mem::replace(&mut doubted, true) {
                        let d = Diagnostic::global(codes::DRAM_SELF_CHECK, format!("{what}: {violation}"));
                        inputs.found.push(warning(d.with_help(help)));
                    }
                    continue;
                }
                count += 1;
                first.get_or_insert((channel, violation));
            }
        }
        let Some((channel, violation)) = first else { return };
        let place = if self.outcomes.len() > 1 { format!(" in channel {channel}") } else { String::new() };
        let others = match count {
            1 => String::new(),
            n => format!("; there are {n} such commands"),
        };
        let d = match own_list {
            true => Diagnostic::global(
                codes::DRAM_SELF_CHECK,
                format!(
                    "the configuration's list of constraints allows what its parameters forbid{place}: \
                    {violation}{others}"
                ),
            )
            .with_help("mend the list, or leave out `constraints_override` to have it derived"),
            false => Diagnostic::global(
                codes::DRAM_SELF_CHECK,
                format!("the simulator broke a rule{place}: {violation}{others}"),
            )
            .with_help("this is an error in ptoc; please report it with the trace and the configuration"),
        };
        inputs.found.push(if own_list { warning(d) } else { d });
    }
}

/// The same as a warning.
fn warning(mut d: Diagnostic) -> Diagnostic {
    d.severity = ptoc_diagnostics::Severity::Warning;
    d
}

fn failed(config: &Config, channel: usize, e: &SimError) -> Diagnostic {
    let message = match config.org.channel {
        1 => e.to_string(),
        _ => format!("channel {channel}: {e}"),
    };
    match e {
        SimError::OutOfRange { .. } => Diagnostic::global(codes::DRAM_PLACE, message),
        SimError::RefreshStarves { .. } => Diagnostic::global(codes::DRAM_SIMULATION, message)
            .with_help("give a longer interval, a shorter refresh, or `--refresh off`"),
        SimError::NoBankRefresh { .. } => Diagnostic::global(codes::DRAM_SIMULATION, message)
            .with_help("give `--refresh on`, which refreshes all banks, or `--refresh off`"),
        SimError::Stuck { .. } => Diagnostic::global(codes::DRAM_SIMULATION, message)
            .with_help("this is an error in ptoc; please report it with the trace and the configuration"),
        SimError::Controller(_) => Diagnostic::global(codes::DRAM_SIMULATION, message),
    }
}

/// The bytes of the file of `--trace`.
fn traced(config: &Config, channels: &[&[Issued]], path: Option<&Path>) -> Vec<u8> {
    timeline::of_commands(config, channels).write(path.map_or(Format::Chrome, Format::of))
}

/// The name of a file as the user wrote it.
fn shown(path: &Path) -> String {
    path.display().to_string()
}

impl Inputs {
    /// Shows what was found.
    pub(in crate::commands) fn flush(&mut self, format: MessageFormat, io: &mut Io<'_>) -> Counts {
        let found = std::mem::take(&mut self.found);
        io.report(found, &self.sources, format)
    }
}
