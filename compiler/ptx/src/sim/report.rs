//! Why a launch did not end, in words.

use super::memory::Refusal;
use super::races::RaceAccess;
use crate::kernel::PtxKernel;
use crate::print::instruction;
use std::fmt;

/// Why a launch did not end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// The kernel is not valid.
    Invalid(String),
    /// The launch does not fit the kernel.
    Arguments(String),
    /// An access that is refused.
    Access(Refusal, u64),
    /// What the instruction does has no meaning.
    Undefined(String),
    /// Lanes wait for others that do not come.
    Deadlock,
    /// It has taken too long.
    Fuel,
}

/// A launch that did not end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimFault {
    /// Why.
    pub why: Why,
    /// The instruction: its number, its text, what it was made for.
    pub at: Option<(usize, String, u32)>,
    /// The CTA and the thread.
    pub thread: Option<(u32, u32)>,
    /// Of a race, the access that came before.
    pub other: Option<Other>,
    /// It is what an asynchronous operation did, that the thread had issued there.
    pub asynchronous: bool,
    /// Of lanes that wait for ever, who they are.
    pub waits: Vec<Waiting>,
}

/// Lanes that wait for ever.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// Of which CTA.
    pub cta: u32,
    /// Of which warps of it.
    pub warps: Vec<u32>,
    /// Which of each: a mask.
    pub lanes: u32,
    /// As [`SimFault::at`].
    pub at: (usize, String, u32),
    /// What for.
    pub on: String,
}

impl fmt::Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Waiting { cta, warps, lanes, at: (n, text, _), on } = self;
        let warps: Vec<String> = warps.iter().map(ToString::to_string).collect();
        let lanes = if *lanes == u32::MAX { String::new() } else { format!(", lanes {lanes:#x}") };
        let s = if warps.len() > 1 { "s" } else { "" };
        write!(f, "warp{s} {} of CTA {cta}{lanes}, at {n}: `{text}`: {on}", warps.join(", "))
    }
}

/// An access that another races with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Other {
    /// What it did.
    pub access: RaceAccess,
    /// As [`SimFault::at`].
    pub at: (usize, String, u32),
    /// As [`SimFault::thread`].
    pub thread: (u32, u32),
    /// As [`SimFault::asynchronous`].
    pub asynchronous: bool,
}

impl Other {
    /// What it did, as a noun.
    pub fn what(&self) -> String {
        format!("{}{}", if self.asynchronous { "asynchronous " } else { "" }, self.access.name())
    }
}

impl fmt::Display for Other {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ((n, text, _), (cta, thread)) = (&self.at, self.thread);
        write!(f, "the {} at {n}: `{text}`, thread {thread} of CTA {cta}", self.what())
    }
}

impl fmt::Display for SimFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.why {
            Why::Invalid(message) | Why::Arguments(message) => write!(f, "{message}")?,
            Why::Access(Refusal::Bounds, at) => write!(f, "no memory at {at:#x}")?,
            Why::Access(Refusal::Alignment, at) => write!(f, "{at:#x} is not aligned")?,
            Why::Access(Refusal::Race, at) => write!(f, "a race at {at:#x}")?,
            Why::Access(Refusal::Proxy, at) => write!(f, "no proxy fence between two accesses to {at:#x}")?,
            Why::Undefined(message) => write!(f, "undefined: {message}")?,
            Why::Deadlock => write!(f, "lanes wait for ever")?,
            Why::Fuel => write!(f, "out of steps")?,
        }
        if !self.waits.is_empty() {
            let waits: Vec<String> = self.waits.iter().map(ToString::to_string).collect();
            return write!(f, ":\n{}", waits.join("\n"));
        }
        if let Some((n, text, _)) = &self.at {
            let when = if self.asynchronous { "in the asynchronous operation " } else { "" };
            write!(f, ", {when}at {n}: `{text}`")?;
        }
        if let Some((cta, thread)) = self.thread {
            write!(f, ", thread {thread} of CTA {cta}")?;
        }
        if let Some(other) = &self.other {
            write!(f, ", with {other}")?;
        }
        Ok(())
    }
}

impl std::error::Error for SimFault {}

impl From<Why> for SimFault {
    fn from(why: Why) -> SimFault {
        SimFault { why, at: None, thread: None, other: None, asynchronous: false, waits: Vec::new() }
    }
}

impl SimFault {
    /// With the text of the instructions that it names.
    pub(super) fn named(mut self, kernel: &PtxKernel) -> SimFault {
        let others = self.other.iter_mut().map(|other| &mut other.at);
        for at in self.at.iter_mut().chain(others).chain(self.waits.iter_mut().map(|w| &mut w.at)) {
            if let Some(inst) = kernel.insts().nth(at.0) {
                (at.1, at.2) = (instruction(kernel, inst), inst.site);
            }
        }
        self
    }
}
