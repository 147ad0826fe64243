//! `ptoc dram --check-trace`: a command trace held to the rules, and to the requests that it should serve.

use super::input::Inputs;
use super::traced;
use crate::args::{DramArgs, DramRefresh};
use crate::io::Io;
use ptoc_diagnostics::{Diagnostic, FileId, Span, codes, plural};
use ptoc_driver::files::Outputs;
use ptoc_pim_sim::check::{self, CommandTrace, Options, Rule, Violation};
use ptoc_pim_sim::dram::{Address, Config, Issued, Request};
use serde_json::json;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::Path;

/// The device of a trace whose configuration is not named.
const DEFAULT: &str = "hbm2_2000";

/// Diagnostics of one kind that are shown.
const SHOWN: usize = 20;

/// Checks the commands in a file; what is found becomes diagnostics.
pub(super) fn check_trace(
    args: &DramArgs,
    path: &Path,
    inputs: &mut Inputs,
    io: &mut Io<'_>,
) -> Result<(), Diagnostic> {
    let mut outputs = Outputs::new();
    let timeline = args.trace.as_deref().map(|path| outputs.plan(path)).transpose()?;
    let Some(config) = inputs.config(args.config.as_deref().unwrap_or(DEFAULT))? else { return Ok(()) };
    let file = inputs.text(path, "command trace", ".json")?;
    let mut trace = match CommandTrace::parse(&config, inputs.sources.text(file)) {
        Ok(trace) => trace,
        Err(errors) => {
            inputs.refuse(codes::DRAM_COMMANDS, file, &errors);
            return Ok(());
        }
    };
    let requests = match &args.requests {
        None => None,
        Some(path) => match inputs.requests(&config, args.map.as_deref(), path)? {
            Some(requests) => Some(requests),
            None => return Ok(()),
        },
    };
    inputs.keep(&mut outputs)?;
    let options = Options { strict: args.strict, refresh: args.refresh != DramRefresh::Off, ..Options::default() };
    let mut rules: Vec<(Rule, usize)> = Vec::new();
    let mut broken = 0;
    for channel in 0..trace.channels.len() {
        for violation in check::check(&config, &trace.channels[channel], options) {
            match rules.iter_mut().find(|(rule, _)| *rule == violation.rule) {
                Some((_, n)) => *n += 1,
                None => rules.push((violation.rule, 1)),
            }
            if broken < SHOWN {
                inputs.found.push(diagnostic(file, &violation, &trace.bytes[channel]));
            }
            broken += 1;
        }
    }
    if broken > SHOWN {
        let rest = broken - SHOWN;
        let message = format!(
            "{} more {} rules of the device",
            rest,
            if rest == 1 { "command breaks" } else { "commands break" }
        );
        inputs.found.push(Diagnostic::global(codes::DRAM_RULE, message));
    }
    if let Some(requests) = requests {
        for (channel, requests) in requests.iter().enumerate() {
            served(&config, file, channel, requests, &trace, inputs);
        }
    }
    if let Some(n) = timeline {
        trace.channels.iter_mut().for_each(|c| c.sort_by_key(|issued| issued.tick));
        let channels: Vec<&[Issued]> = trace.channels.iter().map(|c| &c[..]).collect();
        outputs.write(n, &traced(&config, &channels, args.trace.as_deref()))?;
    }
    outputs.commit()?;
    let by_rule: serde_json::Map<String, serde_json::Value> =
        rules.iter().fold(Default::default(), |mut map, (rule, n)| {
            let old = map.get(rule.name()).and_then(serde_json::Value::as_u64).unwrap_or(0);
            map.insert(rule.name().into(), json!(old + *n as u64));
            map
        });
    if args.json {
        let result = json!({"config": config.name, "commands": trace.len(), "violations": broken, "rules": by_rule});
        io.print(&format!("{result}\n"));
        return Ok(());
    }
    let default = if args.config.is_none() { " (the default; `--config` names another)" } else { "" };
    let mut text = format!("{} checked against {}{default}: ", plural(trace.len(), "command"), config.name);
    match broken {
        0 => text.push_str("no rule is broken\n"),
        _ => {
            let kinds: Vec<String> = by_rule.iter().map(|(rule, n)| format!("{rule} {n}")).collect();
            let _ = writeln!(text, "{} ({})", plural(broken, "violation"), kinds.join(", "));
        }
    }
    io.print(&text);
    Ok(())
}

/// A violation at its command, the earlier command as a second place.
fn diagnostic(file: FileId, v: &Violation, bytes: &[std::ops::Range<usize>]) -> Diagnostic {
    // Texts are at most 4 GiB.
    let span = |n: usize| Span::new(file, bytes[n].start as u32, bytes[n].end as u32);
    let code = if v.rule == Rule::Address { codes::DRAM_PLACE } else { codes::DRAM_RULE };
    let d = Diagnostic::error(code, span(v.second.0), v.to_string());
    let d = match v.rule.is_timing() {
        true => {
            let early = usize::try_from(v.need.saturating_sub(v.gap)).unwrap_or(usize::MAX);
            d.with_label(format!("{} too early", plural(early, "tick")))
        }
        false => d.with_label("here"),
    };
    let d = match &v.first {
        Some((n, _)) => d.with_secondary(span(*n), "after this command"),
        None => d,
    };
    match v.rule.is_timing() {
        true => d.with_note(format!("{}: {}", v.rule.name(), v.rule.describe())),
        false => d,
    }
}

/// Compares the data commands of a channel with its requests.
fn served(
    config: &Config,
    file: FileId,
    channel: usize,
    requests: &[Request],
    trace: &CommandTrace,
    inputs: &mut Inputs,
) {
    let mut open: HashMap<(Address, bool), i64> = HashMap::new();
    for r in requests {
        *open.entry((r.address, r.write)).or_default() += 1;
    }
    let place = |a: &Address| {
        let pc = if config.org.pseudochannel > 1 { format!("pseudo-channel {} ", a.pc) } else { String::new() };
        format!("{pc}bank group {} bank {} row {} column {}", a.bankgroup, a.bank, a.row, a.column)
    };
    let mut without = 0usize;
    for (n, c) in trace.channels[channel].iter().enumerate().filter(|(_, c)| c.command.is_column()) {
        let left = open.entry((c.address, c.command.is_write())).or_default();
        *left -= 1;
        if *left >= 0 {
            continue;
        }
        without += 1;
        if without <= SHOWN {
            let bytes = &trace.bytes[channel][n];
            let span = Span::new(file, bytes.start as u32, bytes.end as u32);
            let message = format!("{} serves no request of the trace", check::shown(c));
            inputs.found.push(Diagnostic::error(codes::DRAM_NOT_SERVED, span, message));
        }
    }
    let mut seen: HashMap<(Address, bool), i64> = HashMap::new();
    let missing: Vec<(usize, &Request)> = requests
        .iter()
        .enumerate()
        .rev()
        .filter(|(_, r)| {
            let n = seen.entry((r.address, r.write)).or_default();
            *n += 1;
            open.get(&(r.address, r.write)).is_some_and(|left| *n <= *left)
        })
        .collect();
    if let Some((n, r)) = missing.last() {
        let kind = if r.write { "write" } else { "read" };
        let message = format!(
            "{} no command; the first is request {} of channel {channel}, a {kind} of {}",
            if missing.len() == 1 { "a request has".into() } else { format!("{} requests have", missing.len()) },
            n + 1,
            place(&r.address)
        );
        let help = "a controller that merges writes, or answers reads from its write queue, leaves such requests: \
                    check its commands without the request trace";
        inputs.found.push(Diagnostic::global(codes::DRAM_NOT_SERVED, message).with_help(help));
    }
    if without > SHOWN {
        let message = format!("{} more commands serve no request of the trace", without - SHOWN);
        inputs.found.push(Diagnostic::global(codes::DRAM_NOT_SERVED, message));
    }
}
