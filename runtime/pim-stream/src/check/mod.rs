//! What a stream must satisfy beyond its form, found before anything runs.
//!
//! The device's counts come from whoever knows its presets: [`Geometry`]. A stream without [`StreamFault`]s can still
//! fail at run time by what depends on data: the values of registers and jumps of a unit's program.

mod aim;
mod geopim;
mod hbm;
mod order;
mod unwritten;

use crate::driver;
use crate::mode::Machine;
use crate::placement::{ArrayPlacement, Geometry};
use crate::stream::*;
use crate::unit::UnitConfig;
use std::collections::{BTreeMap, HashSet};
use std::fmt;

pub use order::Unordered;
pub use unwritten::Unwritten;

/// What kind of mistake it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// An array that is not there, too large, of another type or role; bytes beyond its end.
    Array,
    /// A placement, a burst or an address that the device does not have, or has twice.
    Place,
    /// A driver's command that is malformed by itself, or parameters out of range.
    Command,
    /// Steps in an order in which they cannot be executed.
    Order,
    /// Words and modes of a unit's program.
    Program,
    /// What the units of the stream do not have or cannot hold.
    Unit,
}

/// Where a mistake is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Site {
    /// The array with this number.
    Tensor(usize),
    /// The step with this number.
    Step(usize),
    /// Operation of the exec that is that step.
    Op(usize, usize),
    /// The unit's parameters.
    Unit,
}

/// A mistake of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamFault {
    /// Where.
    pub site: Site,
    /// Of what kind.
    pub kind: FaultKind,
    /// What is wrong.
    pub message: String,
    /// What mends it; empty where nothing can be said.
    pub help: String,
}

impl fmt::Display for StreamFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.site {
            Site::Tensor(n) => write!(f, "array {n}: ")?,
            Site::Step(n) => write!(f, "step {n}: ")?,
            Site::Op(step, op) => write!(f, "step {step}, operation {op}: ")?,
            Site::Unit => f.write_str("units: ")?,
        }
        f.write_str(&self.message)
    }
}

/// Faults that are reported of one stream.
const MOST: usize = 20;
/// Bytes of all arrays together.
pub const MAX_BYTES: u64 = 1 << 32;

/// A mistake without its site.
struct Wrong {
    kind: FaultKind,
    message: String,
    /// Empty where the kind and the message say enough for [`help`].
    help: String,
}

/// What a check of one thing says.
type Said<T = ()> = Result<T, Wrong>;

fn fault<T>(kind: FaultKind, message: impl Into<String>) -> Said<T> {
    Err(Wrong { kind, message: message.into(), help: String::new() })
}

impl Stream {
    /// The `out` arrays with elements that no step gives to the host, and without a first value: they would stay zeros.
    pub fn unread(&self) -> Vec<usize> {
        let mut given = vec![false; self.tensors.len()];
        let mut give = |n: u32| {
            if let Some(given) = given.get_mut(n as usize) {
                *given = true;
            }
        };
        for step in &self.steps {
            match &step.action {
                Action::Read(t) => give(t.tensor),
                Action::Host(h) => h.writes.iter().for_each(|n| give(*n)),
                Action::Exec(e) => e.ops.iter().for_each(|op| {
                    if let ColumnOp::Aim(AimOp::Read { tensor, .. }) = op {
                        give(*tensor);
                    }
                }),
                _ => {}
            }
        }
        let tensors = self.tensors.iter().zip(&given).enumerate();
        let unread = tensors
            .filter(|(_, (t, given))| t.role == Role::Out && t.fill.is_none() && !**given && t.elements() != Some(0));
        unread.map(|(n, _)| n).collect()
    }

    /// Everything that can be known to be wrong before the stream runs, in the order of its parts.
    pub fn check(&self, geometry: &Geometry) -> Vec<StreamFault> {
        let mut c = Checker {
            stream: self,
            g: geometry,
            faults: Vec::new(),
            host: self.tensors.iter().map(|t| matches!(t.role, Role::In | Role::InOut) || t.fill.is_some()).collect(),
            machines: BTreeMap::new(),
            descriptor: None,
            params: None,
            told: None,
            computed: BTreeMap::new(),
            driver: driver::Sequence::default(),
            pending: false,
            lost: false,
            file: false,
            unit: false,
            said: HashSet::new(),
        };
        c.tensors();
        if c.faults.is_empty() {
            c.unit();
            for (n, step) in self.steps.iter().enumerate() {
                c.step(n, step);
                if c.faults.len() >= MOST {
                    break;
                }
            }
        }
        c.faults
    }
}

struct Checker<'s> {
    stream: &'s Stream,
    g: &'s Geometry,
    faults: Vec<StreamFault>,
    /// For each array, whether the host has its values by now.
    host: Vec<bool>,
    machines: BTreeMap<Pch, Machine>,
    descriptor: Option<Descriptor>,
    params: Option<Params>,
    /// What the last LOAD told the units, with what it may leave out.
    told: Option<driver::DriverCommand>,
    /// By the address of their results, what the units were told when they computed them.
    computed: BTreeMap<u64, driver::DriverCommand>,
    /// What the driver's commands so far allow.
    driver: driver::Sequence,
    /// Units have computed what no READ has fetched.
    pending: bool,
    /// A command was wrong: modes and the driver's sequence are not known from there on.
    lost: bool,
    /// A file that there is not was told.
    file: bool,
    /// The units, or what they cannot hold, were told: what is wrong with steps for them may follow from that.
    unit: bool,
    /// What was told, but for its numbers: if the extents or the type of an array are wrong, every step with it is. Of
    /// coordinates the bound: other commands beyond it are the same mistake.
    said: HashSet<String>,
}

impl Checker<'_> {
    fn note(&mut self, site: Site, said: Said) {
        let Err(Wrong { kind, message, help: mends }) = said else { return };
        // What would follow from an earlier mistake alone.
        if self.lost && matches!(kind, FaultKind::Order | FaultKind::Program) {
            return;
        }
        let commands = match site {
            Site::Op(..) => true,
            Site::Step(n) => self.stream.steps.get(n).is_some_and(|s| {
                matches!(s.action, Action::Exec(_) | Action::Descriptor(_) | Action::Params(_) | Action::Driver(_))
            }),
            Site::Tensor(_) | Site::Unit => false,
        };
        self.lost |= commands || kind == FaultKind::Order;
        let of_units = kind == FaultKind::Unit;
        if of_units && std::mem::replace(&mut self.unit, true) && site != Site::Unit {
            return;
        }
        if !self.said.insert(beyond(&message).unwrap_or_else(|| without_numbers(&message))) {
            return;
        }
        let help = if mends.is_empty() { help(kind, &message).to_owned() } else { mends };
        self.faults.push(StreamFault { site, kind, message, help });
    }

    /// A place names a file that there is not: the first of them is told.
    fn known(&mut self, site: Site, place: SourceLine) {
        if let Err(Wrong { kind, message, .. }) = self.place(place)
            && !std::mem::replace(&mut self.file, true)
        {
            let help = "name it before the arrays: `file \"NAME\"`; places count files from 1".to_owned();
            self.faults.push(StreamFault { site, kind, message, help });
        }
    }

    fn tensors(&mut self) {
        let mut names = HashSet::new();
        let mut bytes = 0u64;
        for (n, t) in self.stream.tensors.iter().enumerate() {
            let said = if !TensorDecl::is_name(&t.name) {
                fault(FaultKind::Array, format!("`{}` is no name of an array", t.name.escape_debug()))
            } else if !names.insert(&t.name) {
                fault(FaultKind::Array, format!("there are two arrays `{}`", t.name))
            } else if t.shape.len() > TensorDecl::MAX_RANK {
                fault(FaultKind::Array, format!("`{}` has more than {} dimensions", t.name, TensorDecl::MAX_RANK))
            } else if t
                .fill
                .is_some_and(|bits| !t.role.may_begin() || bits.checked_shr(8 * t.dtype.size() as u32) > Some(0))
            {
                let message = format!("`{}` cannot begin as {:#x} in {}", t.name, t.fill.unwrap_or(0), t.dtype);
                fault(
                    FaultKind::Array,
                    format!("{message}: temp and out arrays have a first value, of as many bits as an element"),
                )
            } else {
                match t.bytes().and_then(|b| bytes.checked_add(b)).filter(|b| *b <= MAX_BYTES) {
                    Some(sum) => {
                        bytes = sum;
                        Ok(())
                    }
                    None => fault(
                        FaultKind::Array,
                        format!(
                            "`{}` is too large: an array has at most {} elements, and all together 4 GiB",
                            t.name,
                            TensorDecl::MAX_ELEMENTS
                        ),
                    ),
                }
            };
            self.note(Site::Tensor(n), said);
            if self.faults.len() >= MOST {
                return;
            }
        }
    }

    /// Parameters of the units that no unit could have.
    fn unit(&mut self) {
        let (per_unit, banks) = (self.stream.unit.banks(), self.g.bank);
        if per_unit > 0 && !banks.is_multiple_of(per_unit) {
            let message = format!("a unit serves {per_unit} banks of a group; the device has {banks} in each");
            self.note(Site::Unit, fault(FaultKind::Unit, message));
        }
        for ((name, _), value) in self.stream.unit.names().iter().zip(self.stream.unit.values()) {
            let (least, most) = match *name {
                "clock_mhz" => (1, 100_000),
                "act_weight" => (1, self.g.banks_of_pch()),
                "fence_data" | "spread" | "round_products" => (0, 1),
                "latency" => (0, 1 << 16),
                "lanes" | "buffer_bytes" | "acc_regs" | "param_entries" => (1, 1 << 20),
                "buffers" => (1, 2),
                "coordinate_cycles" => (0, 1 << 10),
                "units" => (0, self.g.banks()),
                _ => (0, 1 << 30),
            };
            if !(least..=most).contains(&value) {
                let said = fault(FaultKind::Unit, format!("{name} is {value}; it may be {least} to {most}"));
                self.note(Site::Unit, said);
            }
        }
    }

    fn step(&mut self, n: usize, step: &StreamStep) {
        self.known(Site::Step(n), step.place);
        let said = match &step.action {
            Action::Write(t) => {
                self.host_steps().and_then(|()| self.given(t.tensor)).and_then(|()| self.placed(t.tensor, &t.placement))
            }
            Action::Resident(t) => self.resident(n, t),
            Action::Read(t) => self.read(t),
            Action::Move { tensor, from, to } => self
                .host_steps()
                .and_then(|()| self.placed(*tensor, from))
                .and_then(|()| self.one_copy(from))
                .and_then(|()| self.placed(*tensor, to)),
            Action::Relayout(r) => self.host_steps().and_then(|()| self.relayout(r)),
            Action::Exec(e) if matches!(self.stream.unit, UnitConfig::Aim(_)) => self.aim_exec(n, e),
            Action::Exec(e) => self.exec(n, e),
            Action::Descriptor(d) => self.descriptor(d),
            Action::Params(p) => self.host_steps().and_then(|()| self.params(p)),
            Action::Driver(c) => self.driver(c),
            Action::Launch(l) => Self::kernel(&l.kernel)
                .and_then(|()| l.reads.iter().chain(&l.writes).try_for_each(|n| self.tensor(*n).map(drop))),
            Action::Host(h) => self.host_steps().and_then(|()| self.host_kernel(h)),
        };
        self.note(Site::Step(n), said);
    }

    fn place(&self, place: SourceLine) -> Said {
        match place.file as usize <= self.stream.files.len() {
            true => Ok(()),
            false => fault(
                FaultKind::Array,
                format!("there is no file {}; the stream names {}", place.file, self.stream.files.len()),
            ),
        }
    }

    fn tensor(&self, number: u32) -> Said<&TensorDecl> {
        match self.stream.tensors.get(number as usize) {
            Some(t) => Ok(t),
            None => fault(
                FaultKind::Array,
                format!("there is no array {number}; the stream has {}", self.stream.tensors.len()),
            ),
        }
    }

    /// The host has the values of the array.
    fn given(&self, number: u32) -> Said {
        let t = self.tensor(number)?;
        match (self.host[number as usize], t.role) {
            (true, _) => Ok(()),
            (false, _) => fault(FaultKind::Order, format!("the host has no values of `{}` before it is read", t.name)),
        }
    }

    fn placed(&self, number: u32, placement: &ArrayPlacement) -> Said {
        let t = self.tensor(number)?;
        match placement.resolve(&t.shape, t.dtype.size() as u32, self.g, &self.stream.unit) {
            Ok(_) => Ok(()),
            Err(message) => fault(FaultKind::Place, format!("`{}`: {message}", t.name)),
        }
    }

    fn one_copy(&self, placement: &ArrayPlacement) -> Said {
        match placement.replicated {
            false => Ok(()),
            true => fault(
                FaultKind::Place,
                "a replicated array is written; it is read from one bank, which the layout names",
            ),
        }
    }

    /// The array was in the memory before the first step.
    fn resident(&self, n: usize, t: &Transfer) -> Said {
        let decl = self.tensor(t.tensor)?;
        if self.stream.steps[..n].iter().any(|s| !matches!(s.action, Action::Resident(_))) {
            return fault(
                FaultKind::Order,
                format!("`{}` is resident: it is there before the first other step", decl.name),
            );
        }
        if !matches!(decl.role, Role::In | Role::InOut) {
            let message = format!("`{}` is resident: that is for arrays of role in or inout", decl.name);
            return fault(FaultKind::Array, message);
        }
        self.placed(t.tensor, &t.placement)
    }

    fn read(&mut self, t: &Transfer) -> Said {
        self.host_steps()?;
        let decl = self.tensor(t.tensor)?;
        if decl.role == Role::In {
            return fault(FaultKind::Array, format!("`{}` is in: the host does not take it", decl.name));
        }
        // Also if it is read from a wrong place: that is told, and nothing of what follows from it.
        self.host[t.tensor as usize] = true;
        self.placed(t.tensor, &t.placement)?;
        self.one_copy(&t.placement)?;
        match self.pending {
            true => fault(FaultKind::Order, "the results of the units are taken after the driver's READ"),
            false => Ok(()),
        }
    }

    fn kernel(name: &str) -> Said {
        match TensorDecl::is_name(name) {
            true => Ok(()),
            false => fault(FaultKind::Array, format!("`{}` is no name of a kernel", name.escape_debug())),
        }
    }

    /// The host has what it reads, and afterwards what it writes.
    fn host_kernel(&mut self, h: &Host) -> Said {
        let read = h.reads.iter().try_for_each(|n| self.given(*n));
        for n in &h.writes {
            if let Some(has) = self.host.get_mut(*n as usize) {
                *has = true;
            }
        }
        Self::kernel(&h.kernel)?;
        read?;
        for (k, n) in h.writes.iter().enumerate() {
            let t = self.tensor(*n)?;
            if t.role == Role::In {
                return fault(FaultKind::Array, format!("`{}` is in: nothing changes it", t.name));
            }
            if h.writes[..k].contains(n) {
                return fault(FaultKind::Array, format!("`{}` is named twice", t.name));
            }
        }
        Ok(())
    }

    fn relayout(&self, r: &Relayout) -> Said {
        self.placed(r.src, &r.from)?;
        self.one_copy(&r.from)?;
        self.placed(r.dst, &r.to)?;
        let (src, dst) = (self.tensor(r.src)?, self.tensor(r.dst)?);
        if src.dtype != dst.dtype {
            return fault(
                FaultKind::Array,
                format!("`{}` is {} and `{}` {}", src.name, src.dtype, dst.name, dst.dtype),
            );
        }
        let (mut rounds, mut last) = (1u64, r.start.map(u64::from));
        for a in &r.axes {
            if a.extent == 0 || r.axes.len() > TensorDecl::MAX_RANK {
                return fault(FaultKind::Array, "a relayout has at most 16 loops, and each has rounds");
            }
            rounds = rounds.saturating_mul(u64::from(a.extent));
            for (last, stride) in last.iter_mut().zip([a.src, a.dst]) {
                *last = last.saturating_add(u64::from(a.extent - 1).saturating_mul(u64::from(stride)));
            }
        }
        for (t, last) in [src, dst].into_iter().zip(last) {
            let elements = t.elements().unwrap_or(0);
            if last >= elements {
                return fault(
                    FaultKind::Array,
                    format!("the loops reach element {last} of `{}`, which has {elements}", t.name),
                );
            }
        }
        // An element is written once.
        match rounds <= dst.elements().unwrap_or(0) {
            true => Ok(()),
            false => fault(
                FaultKind::Array,
                format!("the loops have {rounds} rounds, and `{}` {} elements", dst.name, dst.elements().unwrap_or(0)),
            ),
        }
    }

    /// The host's accesses are for single banks.
    fn host_steps(&self) -> Said {
        match self.machines.iter().find(|(_, m)| m.mode() != crate::mode::PimMode::SingleBank) {
            None => Ok(()),
            Some((pch, m)) => fault(
                FaultKind::Order,
                format!("pseudo-channel {pch} is in {} mode; the host's accesses need single-bank mode", mode_name(m)),
            ),
        }
    }

    fn needs(&self, unit: &str, step: &str) -> Said {
        match self.stream.unit.name() == unit {
            true => Ok(()),
            false => fault(
                FaultKind::Unit,
                format!("{step} is for units of kind {unit}; the stream's are {}", self.stream.unit.name()),
            ),
        }
    }
}

/// The coordinate and the bound of a place that the device does not have: `row 4096`.
fn beyond(message: &str) -> Option<String> {
    let (before, bound) = message.split_once(" is not below ")?;
    let what = before.rsplit(' ').nth(1)?;
    Some(format!("{what} {bound}"))
}

/// A message without its numbers.
fn without_numbers(message: &str) -> String {
    message.chars().filter(|c| !c.is_ascii_digit()).collect()
}

/// What mends a mistake, where its kind says enough.
fn help(kind: FaultKind, message: &str) -> &'static str {
    let has = |part: &str| message.contains(part);
    match kind {
        FaultKind::Order if has("the host's accesses need") => {
            "leave the mode first: `wr 0 0 0x3fff 0 0x00` stops the units, `wr 0 0 0x1fff 31 0x00` and \
             `wr 0 1 0x1fff 31 0x00` go back to single banks"
        }
        FaultKind::Order if has("after the driver's READ") => "put `driver read output=..` before it",
        FaultKind::Order if has("execute before any load") => "put `params ..` and `driver load ..` before it",
        FaultKind::Order if has("after the last LOAD") => "put `driver load ..` between them",
        FaultKind::Order if has("after a descriptor") => "put `descriptor ..` before it",
        FaultKind::Order if has("LOAD comes after params") => "put `params NAME ..` before it",
        FaultKind::Program if has("its data is `unit`") => "write `unit` in place of the data",
        FaultKind::Program if has("no unit drives") => {
            "write data, or start the units before it: `wr 0 0 0x3fff 0 0x01..`, in all-bank mode"
        }
        FaultKind::Place if has("two elements would lie") => {
            "let the part step over what those below it take, or move it along another coordinate"
        }
        FaultKind::Place if has("byte ") && has("is not below") => {
            "a burst has 32 bytes: let a further part move `col`"
        }
        FaultKind::Place if has("col") && has("is not below") => "let a further part move `row`, or another bank",
        FaultKind::Place if has("is not below") => {
            "coordinates count from 0; `device` can have other counts, as in `row=32768`"
        }
        FaultKind::Array if has("the host does not take it") => "declare it `out` or `inout`",
        _ => "",
    }
}

fn mode_name(machine: &Machine) -> &'static str {
    match machine.mode() {
        crate::mode::PimMode::SingleBank => "single-bank",
        crate::mode::PimMode::AllBank => "all-bank",
        crate::mode::PimMode::AllBankPim => "all-bank PIM",
    }
}

impl UnitConfig {
    /// Whether the stream is for units with commands of a driver.
    pub fn is_autonomous(&self) -> bool {
        matches!(self, UnitConfig::GeoPim(_))
    }
}

#[cfg(test)]
mod tests;
