//! AiM: a unit of 16 bf16 lanes in every bank, an adder tree and an accumulator in each, and a buffer that all units
//! of a channel share.
//!
//! A MAC is a column command for all banks: the timing rules are those of the first one, whose rows the others open and
//! close with it. So all banks are closed when an exec begins and when it ends. The buffer and the accumulators are
//! reached without the banks ([`Apart`]).

use super::account::Bucket;
use super::lanes::{Apart, CommandSource, Effect, Rules, Want, Work};
use super::log::Log;
use super::memory::ChannelMemory;
use super::{Fail, Machine, MachineStop};
use half::bf16;
use ptoc_pim_stream::Geometry;
use ptoc_pim_stream::stream::{AimOp, BURST, ColumnOp, Exec, SourceLine};
use ptoc_pim_stream::unit::Aim;
use ptoc_tensor::Tensor;

/// Lanes of a unit: the numbers of a burst.
const LANES: usize = BURST / 2;

/// The units of a pseudo-channel.
#[derive(Clone, Debug)]
pub struct Units {
    /// The global buffer.
    buffer: Vec<[f32; LANES]>,
    /// Of each bank.
    sums: Vec<f32>,
    /// A product is rounded before it is added.
    round: bool,
}

impl Units {
    /// Those of so many banks.
    pub fn new(unit: &Aim, banks: u32) -> Units {
        Units {
            buffer: vec![[0.0; LANES]; unit.buffer_bytes as usize / BURST],
            sums: vec![0.0; banks as usize],
            round: unit.round_products != 0,
        }
    }

    /// A burst of a bank times a burst of the buffer, added up.
    fn step(&mut self, bank: usize, col: usize, burst: &[u8; BURST]) {
        let rounded = |x: f32| if self.round { bf16::from_f32(x).to_f32() } else { x };
        let (a, x) = (lanes(burst), &self.buffer[col]);
        let mut products: [f32; LANES] = std::array::from_fn(|l| rounded(a[l] * x[l]));
        let mut half = LANES / 2;
        while half > 0 {
            for l in 0..half {
                products[l] += products[l + half];
            }
            half /= 2;
        }
        self.sums[bank] += products[0];
    }
}

/// The numbers of a burst.
fn lanes(burst: &[u8; BURST]) -> [f32; LANES] {
    std::array::from_fn(|l| bf16::from_le_bytes([burst[2 * l], burst[2 * l + 1]]).to_f32())
}

/// Bytes of an array of the host that units gave: the array, the first byte, the bytes.
type Given = (u32, u64, Vec<u8>);

impl Machine<'_> {
    /// Executes commands to AiM's units; returns the tick when all are done.
    pub(super) fn exec_aim(&mut self, place: SourceLine, e: &Exec, unit: &Aim, start: u64) -> Result<u64, MachineStop> {
        let rules = Rules { act_weight: unit.act_weight, fence_data: true, waits: false, latency: unit.latency };
        let per_channel = self.geometry.pch as usize;
        let channels = self.aim.chunks_mut(per_channel).enumerate();
        let own = channels.filter(|(n, _)| e.pchs.iter().any(|p| usize::from(p.channel) == *n));
        let (arrays, g, timing_only) = (&self.arrays, &self.geometry, self.timing_only);
        let count = e.pchs.len() * e.ops.len();
        let done = self.dram.each(own, (start, count), |channel, all| {
            let number = channel.number;
            let place_of =
                |pc: usize| e.pchs.iter().position(|p| (usize::from(p.channel), usize::from(p.pc)) == (number, pc));
            let units = all.iter_mut().enumerate().filter_map(|(pc, units)| Some((pc, place_of(pc)?, units)));
            let mut lanes: Vec<AimLane<'_>> = units
                .map(|(pc, nth, units)| AimLane {
                    ops: &e.ops,
                    op: 0,
                    at: 0,
                    began: false,
                    ended: false,
                    units,
                    place,
                    arrays,
                    g,
                    home: [number as u32, pc as u32],
                    first: (nth * g.banks_of_pch() as usize) as u32,
                    given: Vec::new(),
                    timing_only,
                })
                .collect();
            let sources = lanes.iter_mut().map(|l| (l.home[1] as usize, l as &mut dyn CommandSource));
            let end = channel.run(rules, start, sources)?;
            Ok((end, lanes.into_iter().flat_map(|l| l.given).collect::<Vec<Given>>()))
        })?;
        for (tensor, offset, bytes) in done.iter().flat_map(|(_, given)| given) {
            self.own(*tensor as usize)?;
            if let Some(array) = &mut self.arrays[*tensor as usize] {
                let from = *offset as usize;
                array.bytes_mut()[from..from + bytes.len()].copy_from_slice(bytes);
            }
        }
        Ok(done.into_iter().map(|(end, _)| end).max().unwrap_or(start))
    }
}

/// The commands of an exec on one pseudo-channel.
struct AimLane<'e> {
    ops: &'e [ColumnOp],
    /// The operation, and which of its commands.
    op: usize,
    at: u32,
    /// All banks were closed before the first command, and behind the last.
    began: bool,
    ended: bool,
    units: &'e mut Units,
    place: SourceLine,
    arrays: &'e [Option<Tensor>],
    g: &'e Geometry,
    /// Channel and pseudo-channel.
    home: [u32; 2],
    /// Its first bank, counted through the exec's pseudo-channels.
    first: u32,
    given: Vec<Given>,
    /// See [`super::Options::timing_only`].
    timing_only: bool,
}

impl AimLane<'_> {
    /// Passes operations that take no time.
    fn settle(&mut self) {
        while let Some(ColumnOp::Line(place)) = self.ops.get(self.op) {
            self.place = *place;
            self.op += 1;
        }
    }

    fn step_op(&mut self, count: u32) {
        self.at += 1;
        if self.at >= count {
            (self.op, self.at) = (self.op + 1, 0);
            self.settle();
        }
    }

    /// The banks of the pseudo-channel as places of commands.
    const FIRST: [u16; 2] = [0, 0];

    /// A burst of the buffer.
    fn write_buffer(&mut self, col: u32, tensor: u32, offset: u64, bytes: u32, log: &mut Log) {
        let done = self.at as usize * BURST;
        let here = (bytes as usize - done).min(BURST);
        log.bytes.host_useful += here as u64;
        let all = self.arrays.get(tensor as usize).and_then(Option::as_ref).map_or(&[][..], Tensor::bytes);
        let mut burst = [0; BURST];
        // Its bytes were checked to be there; where only time is wanted there is no array.
        let from = usize::try_from(offset).unwrap_or(usize::MAX).saturating_add(done).min(all.len());
        let taken = &all[from..from.saturating_add(here).min(all.len())];
        burst[..taken.len()].copy_from_slice(taken);
        self.units.buffer[(col + self.at) as usize] = lanes(&burst);
    }

    fn mac(&mut self, row: u32, col: u32, memory: &ChannelMemory<'_>, log: &mut Log) {
        let banks = self.g.banks_of_pch();
        if !self.timing_only {
            for bank in 0..banks {
                let [bg, own] = [bank / self.g.bank, bank % self.g.bank];
                let address = self.g.address([self.home[0], self.home[1], bg, own], row, col);
                self.units.step(bank as usize, col as usize, &memory.read(address));
            }
        }
        let first = (self.home[1] * banks) as usize;
        log.stepped(first..first + banks as usize, 2 * LANES as u64, true);
    }

    /// What the array takes of the accumulators.
    fn give(&mut self, tensor: u32, offset: u64, (first, count): (u32, u32), log: &mut Log) {
        let banks = self.units.sums.len() as u32;
        let from = first.max(self.first);
        let to = (first + count).min(self.first + banks);
        if from >= to {
            return;
        }
        log.bytes.host_useful += 2 * u64::from(to - from);
        if self.timing_only {
            return;
        }
        let own = (from - self.first) as usize..(to - self.first) as usize;
        let bytes = self.units.sums[own].iter().flat_map(|s| bf16::from_f32(*s).to_le_bytes()).collect();
        self.given.push((tensor, offset + 2 * u64::from(from - first), bytes));
    }
}

impl CommandSource for AimLane<'_> {
    fn place(&self) -> SourceLine {
        self.place
    }

    fn want(&self) -> Want {
        if !self.began {
            return Want::Close;
        }
        let banks = self.g.banks_of_pch();
        match self.ops.get(self.op) {
            None if self.ended => Want::End,
            None | Some(ColumnOp::Aim(AimOp::Close)) => Want::Close,
            Some(ColumnOp::Aim(op)) => match *op {
                AimOp::Open { row } => Want::Open { bank: AimLane::FIRST, row, banks },
                AimOp::WriteBuffer { col, .. } => Want::Apart(Apart::Operand { col: col + self.at }),
                AimOp::Clear => Want::Apart(Apart::Sums),
                AimOp::Relu => Want::Apart(Apart::Step),
                AimOp::Read { .. } => Want::Apart(Apart::Read),
                AimOp::Close => Want::Close,
                AimOp::Mac { row, col, .. } => {
                    Want::Column { bank: AimLane::FIRST, row, col: col + self.at, write: false, banks }
                }
            },
            // Nothing that is read or written by these units is the check's to find.
            Some(_) => Want::Fence,
        }
    }

    fn done(&mut self, memory: &mut ChannelMemory<'_>, log: &mut Log) -> Result<Effect, MachineStop> {
        let place = self.place;
        let effect = |bucket, host| Effect { bucket, place, host, work: Work::Other };
        if !std::mem::replace(&mut self.began, true) {
            self.settle();
            return Ok(effect(Bucket::Row, false));
        }
        let ops = self.ops;
        let Some(op) = ops.get(self.op) else {
            self.ended = true;
            return Ok(effect(Bucket::Row, false));
        };
        let done = match op {
            ColumnOp::Aim(op) => match *op {
                AimOp::Close | AimOp::Open { .. } => (Bucket::Row, false, 1),
                AimOp::WriteBuffer { col, tensor, offset, bytes } => {
                    self.write_buffer(col, tensor, offset, bytes, log);
                    (Bucket::Column, true, bytes.div_ceil(BURST as u32))
                }
                AimOp::Clear => {
                    self.units.sums.fill(0.0);
                    (Bucket::Column, true, 1)
                }
                AimOp::Mac { row, col, count } => {
                    self.mac(row, col + self.at, memory, log);
                    (Bucket::Compute, false, count)
                }
                AimOp::Relu => {
                    for sum in &mut self.units.sums {
                        *sum = if sum.is_nan() || !sum.is_sign_negative() { *sum } else { 0.0 };
                    }
                    (Bucket::Compute, false, 1)
                }
                AimOp::Read { tensor, offset, lanes } => {
                    self.give(tensor, offset, lanes, log);
                    (Bucket::Column, true, 1)
                }
            },
            ColumnOp::Fence | ColumnOp::Line(_) => (Bucket::Column, false, 1),
            ColumnOp::Rd { .. } | ColumnOp::Wr { .. } => {
                return Err(MachineStop {
                    op: Some(self.op),
                    ..MachineStop::new(Fail::Unit, "no unit takes it".into())
                });
            }
        };
        let (bucket, host, count) = done;
        self.step_op(count);
        Ok(effect(bucket, host))
    }
}
