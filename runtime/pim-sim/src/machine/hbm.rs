//! HBM-PIM: units that column commands step.
//!
//! A pseudo-channel has a mode and its units. In the all-bank modes a command to an even bank is for all even banks,
//! one to an odd bank for all odd ones: the timing rules are those of the addressed bank, whose rows the others open
//! and close with it. When the mode changes between single and all-bank, all banks are closed, so that both ways of
//! addressing find one state.

use super::account::Bucket;
use super::lanes::{CommandSource, Effect, Rules, Want, Work};
use super::log::Log;
use super::memory::ChannelMemory;
use super::{Fail, Machine, MachineStop};
use crate::units::hbm_pim::{
    ColumnAccess, Control, HbmPimFault, HbmPimUnit, ModeMachine, PimMode, StepResult, register,
};
use crate::units::vector::{LANES, Vector};
use ptoc_pim_stream::Geometry;
use ptoc_pim_stream::crf::{self, Alu, Instruction, OperandLocation as Operand};
use ptoc_pim_stream::mode::{GRF_A_COLUMNS, GRF_B_COLUMNS, SRF_COLUMN};
use ptoc_pim_stream::stream::{BURST, Burst, ColumnOp, Data, Exec, SourceLine};
use ptoc_pim_stream::unit::HbmPim;
use ptoc_tensor::Tensor;

/// The units of a pseudo-channel.
#[derive(Clone, Debug, Default)]
pub struct Units {
    mode: ModeMachine,
    units: Vec<HbmPimUnit>,
}

impl Units {
    /// Those of so many banks.
    pub fn new(banks: u32) -> Units {
        Units { mode: ModeMachine::default(), units: vec![HbmPimUnit::default(); banks as usize / 2] }
    }
}

impl Machine<'_> {
    /// Executes column commands on the pseudo-channels that they name; returns the tick when all are done.
    pub(super) fn exec(&mut self, place: SourceLine, e: &Exec, unit: &HbmPim, start: u64) -> Result<u64, MachineStop> {
        let rules = Rules { act_weight: unit.act_weight, fence_data: unit.fence_data != 0, waits: true, latency: 0 };
        let per_channel = self.geometry.pch as usize;
        let channels = self.hbm.chunks_mut(per_channel).enumerate();
        let own = channels.filter(|(n, _)| e.pchs.iter().any(|p| usize::from(p.channel) == *n));
        let (arrays, g, timing_only) = (&self.arrays, &self.geometry, self.timing_only);
        let count = e.pchs.len() * e.ops.len();
        let ends = self.dram.each(own, (start, count), |channel, all| {
            channel.log.bounds.commands_units();
            let number = channel.number;
            let works = |pc: usize| e.pchs.iter().any(|p| (usize::from(p.channel), usize::from(p.pc)) == (number, pc));
            let units = all.iter_mut().enumerate().filter(|(pc, _)| works(*pc));
            let mut lanes: Vec<ExecLane<'_>> = units
                .map(|(pc, units)| {
                    let home = [number as u32, pc as u32];
                    let mut lane = ExecLane {
                        ops: &e.ops,
                        op: 0,
                        at: 0,
                        close: false,
                        units,
                        place,
                        arrays,
                        g,
                        home,
                        timing_only,
                    };
                    lane.settle();
                    lane
                })
                .collect();
            let sources = lanes.iter_mut().map(|l| (l.home[1] as usize, l as &mut dyn CommandSource));
            channel.run(rules, start, sources)
        })?;
        Ok(ends.into_iter().max().unwrap_or(start))
    }
}

/// The commands of an exec on one pseudo-channel.
struct ExecLane<'e> {
    ops: &'e [ColumnOp],
    /// The operation, and which of its commands.
    op: usize,
    at: u32,
    /// The mode changed: all banks close.
    close: bool,
    units: &'e mut Units,
    place: SourceLine,
    arrays: &'e [Option<Tensor>],
    g: &'e Geometry,
    /// Channel and pseudo-channel.
    home: [u32; 2],
    /// See [`super::Options::timing_only`].
    timing_only: bool,
}

impl ExecLane<'_> {
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

    fn stop(&self, kind: Fail, message: String) -> MachineStop {
        MachineStop { op: Some(self.op), ..MachineStop::new(kind, message) }
    }

    /// Banks of the pseudo-channel that follow a command.
    fn banks(&self) -> u32 {
        match self.units.mode.mode() {
            PimMode::SingleBank => 1,
            PimMode::AllBank | PimMode::AllBankPim => (self.g.banks_of_pch() / 2).max(1),
        }
    }

    fn address(&self, bank: u32, row: u32, col: u32) -> u64 {
        self.g.address([self.home[0], self.home[1], bank / self.g.bank, bank % self.g.bank], row, col)
    }

    fn data(&self, data: &Data) -> Result<[u8; BURST], MachineStop> {
        match data {
            Data::Bytes(bytes) => Ok(*bytes),
            Data::Unit => Ok([0; BURST]),
            Data::Tensor { tensor, offset } => {
                let bytes = self.arrays.get(*tensor as usize).and_then(Option::as_ref).map_or(&[][..], Tensor::bytes);
                let first = offset + u64::from(self.at) * BURST as u64;
                let from = usize::try_from(first).unwrap_or(usize::MAX).min(bytes.len());
                let taken = &bytes[from..(from + BURST).min(bytes.len())];
                let mut out = [0; BURST];
                out[..taken.len()].copy_from_slice(taken);
                Ok(out)
            }
        }
    }

    /// Every unit makes a step; what they all execute, if they do.
    fn compute(
        &mut self,
        bank: u32,
        at: &Burst,
        col: u32,
        write: bool,
        memory: &mut ChannelMemory<'_>,
        log: &mut Log,
    ) -> Result<Option<Instruction>, MachineStop> {
        let odd = bank % 2;
        let mut executed = None;
        // All units execute one program, and the first tells what it costs.
        let stepped = if self.timing_only { 1 } else { self.units.units.len() };
        for n in 0..stepped {
            let address = self.address(2 * n as u32 + odd, at.row, col);
            let mut burst = Vector::from_bytes(&memory.read(address));
            let before = burst;
            let unit = &mut self.units.units[n];
            let (even, other) = if odd == 0 { (Some(&mut burst), None) } else { (None, Some(&mut burst)) };
            let access = ColumnAccess { row: at.row, column: col, write, even, odd: other };
            match unit.step(access) {
                Ok(StepResult::Executed(pc)) => executed = unit.instruction(pc).or(executed),
                Ok(StepResult::Idle) => {}
                Err(fault) => {
                    let [channel, pc] = self.home;
                    let message = format!("unit {n} of pseudo-channel {channel}.{pc}: {}", describe(&fault));
                    return Err(self.stop(Fail::Unit, message));
                }
            }
            if burst != before {
                memory.write(address, &burst.to_bytes()).map_err(|_| self.stop(Fail::Size, super::FULL.into()))?;
            }
        }
        let Some(instruction) = executed else { return Ok(None) };
        let g = self.g;
        let first = (self.home[1] * g.banks_of_pch() + odd) as usize;
        let (ops, access) = cost(&instruction);
        log.stepped((0..self.units.units.len()).map(|n| first + 2 * n), ops, access);
        Ok(Some(instruction))
    }

    fn column(
        &mut self,
        at: Burst,
        count: u32,
        data: Option<&Data>,
        memory: &mut ChannelMemory<'_>,
        log: &mut Log,
    ) -> Result<Effect, MachineStop> {
        let place = self.place;
        let bank = u32::from(at.bg) * self.g.bank + u32::from(at.bank);
        let col = at.col + self.at;
        let mut effect = Effect { bucket: Bucket::Column, place, host: data.is_some(), work: Work::Other };
        if self.units.mode.steps(bank as usize, at.row) {
            effect.host = false;
            if let Some(instruction) = self.compute(bank, &at, col, data.is_some(), memory, log)? {
                effect.bucket = Bucket::Compute;
                effect.work = work(&instruction, data.is_some(), at.row, col);
            }
        } else if let Some(data) = data {
            let bytes = self.data(data)?;
            let before = self.units.mode.mode();
            let Units { mode, units } = &mut *self.units;
            match mode.write(bank as usize, at.row, col, &bytes, units) {
                Control::None => self.store(before, bank, &at, col, &bytes, memory)?,
                Control::Registers => {
                    let file = [GRF_A_COLUMNS, GRF_B_COLUMNS].iter().position(|columns| columns.contains(&col));
                    if let Some(file) = file {
                        // The files begin at multiples of eight.
                        effect.work = Work::Feeds { file, register: (col % 8) as u8 };
                    } else if col == SRF_COLUMN {
                        effect.work = Work::Scalars { elements: matches!(data, Data::Tensor { .. }) };
                    }
                }
                Control::Counted | Control::Program => effect.bucket = Bucket::Mode,
                Control::Changed(to) => {
                    effect.bucket = Bucket::Mode;
                    self.close = (before == PimMode::SingleBank) != (to == PimMode::SingleBank);
                    if self.close {
                        effect.work = Work::Closes;
                    }
                }
            }
            log.bytes.host_moved += BURST as u64;
            if let (Data::Tensor { .. }, Bucket::Column) = (data, effect.bucket) {
                log.bytes.host_useful += BURST as u64;
            }
        } else {
            log.bytes.host_moved += BURST as u64;
        }
        self.step_op(count);
        Ok(effect)
    }

    /// The host's data, in the bank or in all of its parity.
    fn store(
        &self,
        mode: PimMode,
        bank: u32,
        at: &Burst,
        col: u32,
        bytes: &[u8; BURST],
        memory: &mut ChannelMemory<'_>,
    ) -> Result<(), MachineStop> {
        let full = |_| self.stop(Fail::Size, super::FULL.into());
        if mode == PimMode::SingleBank {
            return memory.write(self.address(bank, at.row, col), bytes).map_err(full);
        }
        (bank % 2..self.g.banks_of_pch())
            .step_by(2)
            .try_for_each(|b| memory.write(self.address(b, at.row, col), bytes))
            .map_err(full)
    }
}

impl CommandSource for ExecLane<'_> {
    fn place(&self) -> SourceLine {
        self.place
    }

    fn want(&self) -> Want {
        if self.close {
            return Want::Close;
        }
        let (at, write) = match self.ops.get(self.op) {
            None => return Want::End,
            Some(ColumnOp::Fence | ColumnOp::Line(_) | ColumnOp::Aim(_)) => return Want::Fence,
            Some(ColumnOp::Rd { at, .. }) => (at, false),
            Some(ColumnOp::Wr { at, .. }) => (at, true),
        };
        Want::Column { bank: [at.bg, at.bank], row: at.row, col: at.col + self.at, write, banks: self.banks() }
    }

    fn done(&mut self, memory: &mut ChannelMemory<'_>, log: &mut Log) -> Result<Effect, MachineStop> {
        let nothing = Effect { bucket: Bucket::Column, place: self.place, host: false, work: Work::Other };
        if std::mem::take(&mut self.close) {
            return Ok(nothing);
        }
        let ops = self.ops;
        match &ops[self.op] {
            // The check leaves no command of other units.
            ColumnOp::Fence | ColumnOp::Line(_) | ColumnOp::Aim(_) => {
                self.step_op(1);
                Ok(nothing)
            }
            ColumnOp::Rd { at, count } => self.column(*at, *count, None, memory, log),
            ColumnOp::Wr { at, count, data } => self.column(*at, *count, Some(data), memory, log),
        }
    }
}

/// What an instruction does with registers.
fn work(instruction: &Instruction, write: bool, row: u32, col: u32) -> Work {
    let Instruction::Alu { op, dst, a, b, auto, .. } = *instruction else { return Work::Other };
    let of = |o: crf::Operand| {
        let files = [Operand::GrfA, Operand::GrfB, Operand::SrfM, Operand::SrfA];
        let file = files.iter().position(|file| *file == o.place)?;
        Some((file, register(o, op, auto || op == Alu::Fill, row, col) as u8))
    };
    match of(dst) {
        None if write => Work::Stores { from: of(a) },
        Some((file, register)) if write => Work::Feeds { file, register },
        written => {
            let old = Some(dst).filter(|_| op == Alu::Mac);
            Work::Steps { reads: [Some(a), b, old].map(|o| o.and_then(of)), written }
        }
    }
}

/// Operations of all lanes in an instruction, and whether it uses the bank.
fn cost(instruction: &Instruction) -> (u64, bool) {
    let Instruction::Alu { op, dst, a, b, relu, .. } = instruction else { return (0, false) };
    let ops = match op {
        Alu::Add | Alu::Mul => 1,
        Alu::Mac | Alu::Mad => 2,
        Alu::Mov => u64::from(*relu),
        Alu::Fill => 0,
    };
    let bank = |p: Operand| matches!(p, Operand::EvenBank | Operand::OddBank);
    let access = bank(dst.place) || bank(a.place) || b.is_some_and(|b| bank(b.place));
    (ops * LANES as u64, access)
}

fn describe(fault: &HbmPimFault) -> String {
    match fault {
        HbmPimFault::Word(n, e) => format!("word {n} of the program is no instruction: {e}"),
        HbmPimFault::PastEnd(n) => format!("control leaves the program at instruction {n}"),
        HbmPimFault::Direction(n, place) => {
            format!("instruction {n} uses {} in the wrong direction: reads read banks, writes write them", place.name())
        }
        HbmPimFault::Bank(n, place) => {
            format!("instruction {n} uses {}, which the command does not address", place.name())
        }
        HbmPimFault::Endless(n) => format!("from instruction {n} on there are jumps alone"),
    }
}
