//! Executes a command stream: the arrays of the host go in and come out, everything between is computed by the
//! simulated units from what the simulated banks hold, and takes the time that the DRAM model says.
//!
//! One step begins when the one before is done; device, clock, modes and registers go on from step to step. [`host`] is
//! the host's path through the controllers, [`hbm`] and [`aim`] the units that commands step, [`geopim`] those with
//! sequencers of their own, [`lanes`] the engine that issues commands in order. [`baseline`] is what the host would do
//! without units. [`account`] charges every tick of every pseudo-channel once.

pub mod account;
mod aim;
pub mod baseline;
pub mod bound;
pub mod device;
pub mod geopim;
mod hbm;
pub mod history;
mod host;
mod kept;
mod lanes;
pub mod launches;
pub mod log;
mod memory;
pub mod report;

use crate::dram::{Config, Session};
use crate::energy::Model;
use baseline::{Baseline, Requests};
use lanes::Dram;
use log::Log;
use memory::Memory;
use ptoc_pim_stream::stream::{Action, Host, Role, Stream, TensorDecl};
use ptoc_pim_stream::{Geometry, UnitConfig};
use ptoc_tensor::Tensor;
use report::Report;
use std::fmt;

/// What kind of failure it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fail {
    /// The host's arrays are not those that the stream declares.
    Array,
    /// The unit met something that it cannot execute.
    Unit,
    /// Refreshes leave no time, or a rule has no end.
    Time,
    /// Too much memory.
    Size,
    /// The host's kernels are not known here, or one failed.
    Host,
}

/// Why a run stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachineStop {
    /// What kind.
    pub kind: Fail,
    /// The step, if it was one.
    pub step: Option<usize>,
    /// The operation of an exec.
    pub op: Option<usize>,
    /// The array.
    pub tensor: Option<usize>,
    /// What is wrong.
    pub message: String,
}

impl MachineStop {
    fn new(kind: Fail, message: String) -> MachineStop {
        MachineStop { kind, step: None, op: None, tensor: None, message }
    }
}

impl fmt::Display for MachineStop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(step) = self.step {
            write!(f, "step {step}: ")?;
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for MachineStop {}

const FULL: &str = "the rows that are written take more than 4 GiB of the simulator";

/// What is kept of a run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Every DRAM command, and slices for a timeline.
    pub trace: bool,
    /// What every bank did when, in bins; commands one by one from this tick on, as far as their bytes are bounded.
    pub history: Option<u64>,
    /// Threads on which channels are simulated, with the same results; 0: as many as the machine runs at once.
    pub threads: usize,
    /// Time alone: no elements are moved or computed, inputs are not wanted, and there are no outputs. For units that
    /// column commands step, whose time depends on no element; kernels of the host are not carried out.
    pub timing_only: bool,
}

impl Options {
    fn threads(&self) -> usize {
        match self.threads {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            n => n,
        }
    }
}

/// What a run gives.
#[derive(Debug)]
pub struct MachineOutcome {
    /// The arrays that go to the host, by number of the stream; the others are `None`.
    pub outputs: Vec<Option<Tensor>>,
    /// What happened.
    pub report: Report,
}

struct Machine<'s> {
    stream: &'s Stream,
    geometry: Geometry,
    dram: Dram,
    /// The host's arrays by number; a `temp` is not there, and none is where only time is wanted.
    arrays: Vec<Option<Tensor>>,
    /// See [`Options::timing_only`].
    timing_only: bool,
    /// Units of HBM-PIM, by pseudo-channel.
    hbm: Vec<hbm::Units>,
    /// Units of AiM, likewise.
    aim: Vec<aim::Units>,
    /// What the driver has told GeoPIM's.
    geopim: geopim::DriverState,
    /// What the host would read in their place.
    gathering: Requests,
}

/// Executes a stream that [`Stream::check`] accepts on the device of [`device::config`].
///
/// `inputs` are the host's arrays by number; those of role in and inout must be there. Pure: the result depends on the
/// arguments alone.
///
/// Errors: [`Fail`]; a stream with kernels of the host is for [`run_with`].
pub fn run(
    stream: &Stream,
    config: &Config,
    inputs: Vec<Option<Tensor>>,
    options: Options,
) -> Result<MachineOutcome, MachineStop> {
    run_with(stream, config, inputs, options, &mut |h, _| {
        let message = format!("the host runs kernel `{}` here, and a stream does not say what it computes", h.kernel);
        Err(MachineStop::new(Fail::Host, message))
    })
}

/// The host's kernels: carries one out on the host's arrays, by number. Those that it reads and writes are there.
pub type HostKernels<'k> = &'k mut dyn FnMut(&Host, &mut [Option<Tensor>]) -> Result<(), MachineStop>;

/// The same for a stream with kernels of the host, which `kernels` carries out in the order of their steps.
pub fn run_with(
    stream: &Stream,
    config: &Config,
    inputs: Vec<Option<Tensor>>,
    options: Options,
    kernels: HostKernels<'_>,
) -> Result<MachineOutcome, MachineStop> {
    if options.timing_only && stream.unit.is_autonomous() {
        let message = "how long these units take depends on the elements that they sample".to_owned();
        return Err(MachineStop::new(Fail::Unit, message));
    }
    let geometry = device::geometry(config);
    let model =
        Model::of(config).map_err(|e| MachineStop::new(Fail::Size, format!("energy.{}: {}", e.key, e.message)))?;
    let controller = device::controller(&stream.device);
    let dram = Dram {
        config: config.clone(),
        sessions: (0..geometry.channel).map(|_| Session::new(config, &controller)).collect(),
        logs: (0..geometry.channel).map(|_| Log::new(config, &controller, model, options)).collect(),
        threads: options.threads(),
        controller,
        memory: match options.timing_only {
            true => Memory::forgetful(geometry.row_bytes()),
            false => Memory::new(geometry.row_bytes()),
        },
    };
    let pchs = geometry.channel * geometry.pch;
    let mut machine = Machine {
        stream,
        geometry,
        dram,
        arrays: if options.timing_only { vec![None; stream.tensors.len()] } else { arrays(stream, inputs)? },
        timing_only: options.timing_only,
        hbm: match stream.unit {
            UnitConfig::HbmPim(_) => (0..pchs).map(|_| hbm::Units::new(geometry.banks_of_pch())).collect(),
            _ => Vec::new(),
        },
        aim: match stream.unit {
            UnitConfig::Aim(unit) => (0..pchs).map(|_| aim::Units::new(&unit, geometry.banks_of_pch())).collect(),
            _ => Vec::new(),
        },
        geopim: geopim::DriverState::default(),
        gathering: Requests::new(config),
    };
    let mut now = 0;
    let mut times = Vec::with_capacity(stream.steps.len());
    for (n, step) in stream.steps.iter().enumerate() {
        let end = match &step.action {
            Action::Host(h) => {
                machine.dram.begin(step.action.name());
                machine.host_kernel(h, kernels).map(|()| now)
            }
            _ => machine.step(n, now),
        };
        let end = end.map_err(|stop| MachineStop { step: Some(n), ..stop })?;
        machine.dram.end(now, end, step.place);
        times.push((now, end));
        now = end;
    }
    machine.left()?;
    let all = (0..machine.dram.sessions.len()).map(|n| (n, ()));
    machine.dram.each(all, (now, 0), |_, ()| Ok(()))?;
    let threads = machine.dram.threads;
    let outputs = machine
        .arrays
        .into_iter()
        .zip(&stream.tensors)
        .map(|(a, t)| a.filter(|_| matches!(t.role, Role::Out | Role::InOut)))
        .collect();
    let baseline = Baseline {
        streaming: baseline::streaming(stream, config, threads),
        gathering: machine.gathering.serve(stream, config, threads),
        launches: baseline::launches(stream, config, threads),
    };
    let report = Report::new(stream, config, machine.dram, times, baseline);
    Ok(MachineOutcome { outputs, report })
}

impl Machine<'_> {
    /// Executes a step from `start` on; returns the tick when it is done.
    fn step(&mut self, n: usize, start: u64) -> Result<u64, MachineStop> {
        let step = &self.stream.steps[n];
        let place = step.place;
        self.dram.begin(step.action.name());
        match &step.action {
            Action::Write(t) => self.write(place, t, start),
            Action::Resident(t) => self.resident(t).map(|()| start),
            Action::Read(t) => self.read(place, t, start),
            Action::Move { tensor, from, to } => self.shift(place, *tensor, [from, to], start),
            Action::Relayout(r) => self.relayout(place, r, start),
            Action::Exec(e) => match self.stream.unit {
                UnitConfig::HbmPim(unit) => self.exec(place, e, &unit, start),
                UnitConfig::Aim(unit) => self.exec_aim(place, e, &unit, start),
                _ => Err(MachineStop::new(Fail::Unit, "no unit of the stream is stepped by commands".into())),
            },
            Action::Descriptor(d) => {
                self.describe(d);
                Ok(start)
            }
            // Its kernels are carried out by whoever knows them.
            Action::Launch(_) | Action::Host(_) => Ok(start),
            Action::Params(p) => self.params(place, p, start),
            Action::Driver(c) => match self.stream.unit {
                UnitConfig::GeoPim(unit) => self.drive(place, c, &unit, start),
                _ => Err(MachineStop::new(Fail::Unit, "no unit of the stream takes a driver's commands".into())),
            },
        }
    }
}

impl Machine<'_> {
    /// A kernel of the host. Its time is not the memory's.
    fn host_kernel(&mut self, h: &Host, kernels: HostKernels<'_>) -> Result<(), MachineStop> {
        if self.timing_only {
            return Ok(());
        }
        for &n in &h.writes {
            self.own(n as usize)?;
        }
        kernels(h, &mut self.arrays)
    }

    /// Room with the host for an array, which it may not have had until now.
    fn own(&mut self, n: usize) -> Result<(), MachineStop> {
        if self.arrays[n].is_none() {
            self.arrays[n] = Some(filled(n, &self.stream.tensors[n], 0)?);
        }
        Ok(())
    }
}

/// An array with the same bits everywhere.
fn filled(n: usize, decl: &TensorDecl, bits: u64) -> Result<Tensor, MachineStop> {
    let shape: Vec<usize> = decl.shape.iter().map(|e| *e as usize).collect();
    let wrong = |e| MachineStop { tensor: Some(n), ..MachineStop::new(Fail::Array, format!("`{}`: {e}", decl.name)) };
    Tensor::filled(decl.dtype, &shape, bits).map_err(wrong)
}

/// The host's arrays: those that are given, and first values for those that it gets (zeros, unless the stream says
/// otherwise).
fn arrays(stream: &Stream, inputs: Vec<Option<Tensor>>) -> Result<Vec<Option<Tensor>>, MachineStop> {
    let mut inputs = inputs.into_iter();
    let mut out = Vec::new();
    for (n, decl) in stream.tensors.iter().enumerate() {
        let wrong = |message: String| Err(MachineStop { tensor: Some(n), ..MachineStop::new(Fail::Array, message) });
        let shape: Vec<usize> = decl.shape.iter().map(|e| *e as usize).collect();
        let given = inputs.next().flatten();
        out.push(match decl.role {
            Role::In | Role::InOut => match given {
                None => return wrong(format!("the stream takes `{}`, and it is not given", decl.name)),
                Some(t) if t.dtype() != decl.dtype || t.shape() != shape => {
                    let got = format!("{}{:?}", t.dtype(), t.shape());
                    return wrong(format!("the stream takes `{}` as {}{shape:?}; it is {got}", decl.name, decl.dtype));
                }
                some => some,
            },
            Role::Out => Some(filled(n, decl, decl.fill.unwrap_or(0))?),
            Role::Temp => decl.fill.map(|bits| filled(n, decl, bits)).transpose()?,
        });
    }
    Ok(out)
}

#[cfg(test)]
mod tests;
