//! What the checker says of a command that breaks a rule.

use super::rule::Rule;
use crate::dram::{Command, Config, Issued, Standard};
use std::fmt;

/// A rule that a command breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The rule.
    pub rule: Rule,
    /// The parameters that make up the needed gap, with their clocks: `nRCDRD` 14.
    pub parameters: Vec<(&'static str, u32)>,
    /// Index in the trace of the earlier command, and the command. None where the state is that of the start.
    pub first: Option<(usize, Issued)>,
    /// Index in the trace of the command that breaks the rule, and the command.
    pub second: (usize, Issued),
    /// Ticks between the first cycles of the two; 0 where the rule counts none.
    pub gap: u64,
    /// Ticks that the rule needs; 0 where the rule counts none.
    pub need: u64,
    /// What a rule that counts no ticks has to say.
    pub detail: String,
}

/// The parameters that enter a rule between these two commands.
pub(super) fn parameters(
    rule: Rule,
    first: Option<Command>,
    second: Command,
    config: &Config,
) -> Vec<(&'static str, u32)> {
    let chosen: Vec<&'static str> = match rule {
        Rule::Rcd => vec![if second.is_read() { "nRCDRD" } else { "nRCDWR" }],
        Rule::CcdL => vec![match config.standard {
            Standard::Ddr5 if second.is_write() => "nCCDLWR",
            _ => "nCCDL",
        }],
        Rule::Rp => vec![match (config.standard, first) {
            (Standard::Lpddr5, Some(Command::PreAb)) => "nRPab",
            _ => "nRP",
        }],
        Rule::Rfc => vec![if first == Some(Command::RfmAb) { "nRFMab" } else { "nRFC" }],
        Rule::RfcPb => vec![if first == Some(Command::RfmPb) { "nRFMpb" } else { "nRFCpb" }],
        _ => rule.parameters().to_vec(),
    };
    chosen.into_iter().filter_map(|name| Some((name, config.timing.get(name)?))).collect()
}

/// `ACT (0, 0) row 5 at tick 12`
pub(super) struct Shown<'a>(pub &'a Issued);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Issued { tick, command, address: a } = self.0;
        write!(f, "{}", command.name())?;
        if a.pc > 0 {
            write!(f, " pseudo-channel {}", a.pc)?;
        }
        if !command.is_all_bank() {
            write!(f, " bank group {} bank {}", a.bankgroup, a.bank)?;
        }
        if *command == Command::Act || command.is_column() {
            write!(f, " row {}", a.row)?;
        }
        write!(f, " at tick {tick}")
    }
}

impl Violation {
    /// The parameters as `nRCDRD = 14`, joined.
    pub fn shown_parameters(&self) -> String {
        self.parameters.iter().map(|(name, clocks)| format!("{name} = {clocks}")).collect::<Vec<_>>().join(", ")
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (index, second) = &self.second;
        write!(f, "{}: command {index}, {}", self.rule.name(), Shown(second))?;
        if !self.rule.is_timing() {
            write!(f, ": {}", self.detail)?;
            if let Some((index, first)) = &self.first {
                write!(f, " (command {index}, {})", Shown(first))?;
            }
            return Ok(());
        }
        if let Some((index, first)) = &self.first {
            let ticks = if self.gap == 1 { "tick" } else { "ticks" };
            write!(f, ", comes {} {ticks} after command {index}, {}", self.gap, Shown(first))?;
        }
        write!(f, "; {} are needed", self.need)?;
        if !self.parameters.is_empty() {
            write!(f, " ({})", self.shown_parameters())?;
        }
        Ok(())
    }
}
