//! What a run of the simulator of units in memory leaves: its timeline, held to the rules of DRAM by the independent
//! checker, and the codes of its failures.

use ptoc_diagnostics::{Code, Diagnostic, codes};
use ptoc_pim_sim::check as rules;
use ptoc_pim_sim::dram::{Config, Issued};
use ptoc_pim_sim::machine::{Fail, MachineOutcome};
use ptoc_pim_stream::Stream;
use ptoc_pim_stream::stream::Refresh;
use ptoc_trace::Trace;

/// The timeline; its commands are held to the rules once more.
pub fn timeline(stream: &Stream, config: &Config, outcome: &MachineOutcome) -> Result<Trace, Diagnostic> {
    rules_kept(stream, config, outcome)?;
    Ok(outcome.report.timeline(config))
}

/// The independent checker finds nothing in the commands of a run, which were recorded.
pub fn rules_kept(stream: &Stream, config: &Config, outcome: &MachineOutcome) -> Result<(), Diagnostic> {
    let channels: Vec<&[Issued]> = outcome.report.trace.iter().flatten().map(|c| &c[..]).collect();
    let options = rules::Options { refresh: stream.device.refresh != Refresh::Off, ..Default::default() };
    // Units with sequencers of their own use no buses of the pseudo-channel.
    let broken = match stream.unit.is_autonomous() {
        true => rules::check_autonomous,
        false => rules::check,
    };
    for (channel, trace) in channels.iter().enumerate() {
        if let Some(violation) = broken(config, trace, options).first() {
            let message = format!("the simulator broke a rule in channel {channel}: {violation}");
            return Err(Diagnostic::global(codes::SIM_SELF_CHECK, message)
                .with_help("this is an error in ptoc; please report it with the stream and the configuration"));
        }
    }
    Ok(())
}

/// The code of a failure, and what mends it in a stream; empty where nothing can be said.
pub fn failure(kind: Fail) -> (Code, &'static str) {
    match kind {
        Fail::Array => (codes::SIM_ARRAY, ""),
        Fail::Unit => (codes::SIM_UNIT, ""),
        Fail::Time => (codes::SIM_TIME, "give a longer nREFI, a shorter nRFC, or `refresh=off`"),
        Fail::Size => (codes::SIM_SIZE, "simulate a smaller part of the work"),
        Fail::Host => (codes::SIM_HOST, "execute the program: `ptoc run PROGRAM.tile --backend pim`"),
    }
}
