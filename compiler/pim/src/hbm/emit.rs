//! Programs to column commands: modes, words, registers, steps and fences.
//!
//! Between two fences a controller keeps the order of commands that read, or that write, one bank and come back to no
//! row, and that of writes to reserved rows (`spec/stream.md`). So a fence stands where steps go on in another bank or
//! direction or in a row that they have left, and between the host's writes to registers and the units' steps.
//! [`ptoc_pim_stream::Stream::unordered`] checks it.

use super::code::{Bring, HostWrite};
use super::node::BankBurst;
use super::program::{Segment, UnitGroup};
use crate::Lines;
use ptoc_pim_stream::WordError;
use ptoc_pim_stream::crf::Instruction;
use ptoc_pim_stream::mode::{
    CONFIG_COLUMN, CRF_COLUMNS, ENTER_ROW, GRF_A_COLUMNS, GRF_B_COLUMNS, LEAVE_ROW, REGISTER_ROW, SRF_COLUMN,
    SWITCH_COLUMN,
};
use ptoc_pim_stream::stream::{BURST, Burst, ColumnOp, Data, SourceLine};
use rustc_hash::FxHashSet;

/// Words of a burst.
const WORDS: usize = 8;
/// Byte 0 of the configuration: the units compute.
const ENTER: [u8; BURST] = config(1);
/// They do not.
const STOP: [u8; BURST] = config(0);

const fn config(run: u8) -> [u8; BURST] {
    let mut bytes = [0; BURST];
    bytes[0] = run;
    // Commands to even and odd banks step.
    bytes[16] = 2;
    bytes
}

fn control(bank: u16, row: u32, col: u32, data: Data) -> ColumnOp {
    ColumnOp::Wr { at: Burst { bg: 0, bank, row, col }, count: 1, data }
}

/// Commands that keep their order among each other.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kept {
    /// Writes to reserved rows.
    Control,
    /// Steps at the even or the odd banks, by reads or by writes.
    Steps { odd: u8, write: bool },
}

struct Emitter<'l> {
    ops: Vec<ColumnOp>,
    /// What stands behind the last fence.
    open: Option<Kept>,
    /// The rows of its steps, and the one that they are in.
    rows: FxHashSet<u32>,
    row: Option<u32>,
    /// The bank through which the host writes registers. Any will do, so it is one beside those that are stepped next:
    /// the reserved row and the data's row are both open then.
    registers: u16,
    lines: Lines<'l>,
    place: SourceLine,
}

impl Emitter<'_> {
    /// Commands of this kind come next: behind a fence if others are open.
    fn next(&mut self, kept: Kept) {
        if self.open.replace(kept).is_some_and(|open| open != kept) {
            self.fence();
        }
    }

    fn fence(&mut self) {
        self.ops.push(ColumnOp::Fence);
        self.rows.clear();
    }

    /// Steps at this row come next.
    fn steps(&mut self, odd: u8, row: u32, write: bool) {
        self.next(Kept::Steps { odd, write });
        let stays = self.rows.contains(&row) && self.row == Some(row);
        if !stays && self.rows.contains(&row) {
            self.fence();
        }
        self.rows.insert(row);
        self.row = Some(row);
    }

    /// To the units' modes: a write to each of four banks. Those beside the ones that are stepped first have less often
    /// a row open that the host left.
    fn enter(&mut self) {
        self.next(Kept::Control);
        let first = self.registers;
        for bank in [first, first + 2, 1 - first, 3 - first] {
            self.ops.push(control(bank, ENTER_ROW, SWITCH_COLUMN, Data::Bytes([0; BURST])));
        }
    }

    fn line(&mut self, span: ptoc_diagnostics::Span) {
        let place = (self.lines)(span);
        if place != self.place && place.file != 0 {
            self.ops.push(ColumnOp::Line(place));
            self.place = place;
        }
    }

    fn program(&mut self, words: &[Instruction]) -> Result<(), WordError> {
        self.next(Kept::Control);
        let exit = [Instruction::Exit];
        let all: Vec<Instruction> = words.iter().chain(&exit).copied().collect();
        for (n, part) in (0..).zip(all.chunks(WORDS)) {
            let mut bytes = [0; BURST];
            for (out, word) in bytes.chunks_exact_mut(4).zip(part) {
                out.copy_from_slice(&word.encode()?.to_le_bytes());
            }
            self.ops.push(control(self.registers, REGISTER_ROW, CRF_COLUMNS.start() + n, Data::Bytes(bytes)));
        }
        Ok(())
    }

    fn configure(&mut self, bytes: [u8; BURST]) {
        self.next(Kept::Control);
        self.ops.push(control(self.registers, REGISTER_ROW, CONFIG_COLUMN, Data::Bytes(bytes)));
    }

    fn group(&mut self, group: &UnitGroup) {
        match *group {
            UnitGroup::Host(HostWrite::Vector { file_b, index, what }, span) => {
                self.next(Kept::Control);
                self.line(span);
                let first = if file_b { *GRF_B_COLUMNS.start() } else { *GRF_A_COLUMNS.start() };
                let data = match what {
                    Bring::Array(tensor, offset) => Data::Tensor { tensor, offset },
                    Bring::Lanes(bits) => {
                        let mut bytes = [0; BURST];
                        bytes.chunks_exact_mut(2).for_each(|lane| lane.copy_from_slice(&bits.to_le_bytes()));
                        Data::Bytes(bytes)
                    }
                };
                let col = first + u32::from(index);
                // Successive registers from successive bytes are one operation.
                if let Some(ColumnOp::Wr { at, count, data: old }) = self.ops.last_mut()
                    && (at.row, at.bank) == (REGISTER_ROW, self.registers)
                    && at.col + *count == col
                    && follows(old, &data, *count)
                {
                    *count += 1;
                    return;
                }
                self.ops.push(control(self.registers, REGISTER_ROW, col, data));
            }
            UnitGroup::Host(HostWrite::Scalars(products, sums), span) => {
                self.next(Kept::Control);
                self.line(span);
                let mut bytes = [0; BURST];
                for (n, lane) in bytes.chunks_exact_mut(2).enumerate() {
                    lane.copy_from_slice(&if n < 8 { products } else { sums }.to_le_bytes());
                }
                self.ops.push(control(self.registers, REGISTER_ROW, SRF_COLUMN, Data::Bytes(bytes)));
            }
            UnitGroup::Host(HostWrite::Elements(tensor, offset), span) => {
                self.next(Kept::Control);
                self.line(span);
                self.ops.push(control(self.registers, REGISTER_ROW, SRF_COLUMN, Data::Tensor { tensor, offset }));
            }
            UnitGroup::Steps { write, at: BankBurst { odd, row, col }, count, span, .. } => {
                self.steps(odd, row, write);
                self.line(span);
                let at = Burst { bg: 0, bank: u16::from(odd), row, col };
                // Successive columns are one operation, whatever instructions they step.
                match self.ops.last_mut() {
                    Some(ColumnOp::Rd { at: first, count: n }) if !write && on(first, *n) == at => *n += count,
                    Some(ColumnOp::Wr { at: first, count: n, data: Data::Unit }) if write && on(first, *n) == at => {
                        *n += count;
                    }
                    _ => self.ops.push(match write {
                        true => ColumnOp::Wr { at, count, data: Data::Unit },
                        false => ColumnOp::Rd { at, count },
                    }),
                }
            }
        }
    }
}

/// For each group a bank of the parity that the next steps, from it on, do not use.
fn banks_beside(groups: &[UnitGroup]) -> Vec<u16> {
    let mut bank = 0;
    let mut out: Vec<u16> = Vec::with_capacity(groups.len());
    for group in groups.iter().rev() {
        if let UnitGroup::Steps { at, .. } = group {
            bank = 1 - u16::from(at.odd);
        }
        out.push(bank);
    }
    out.reverse();
    out
}

/// The burst `count` columns further.
fn on(at: &Burst, count: u32) -> Burst {
    Burst { col: at.col + count, ..*at }
}

/// Whether the data continues `count` bursts of the data before.
fn follows(old: &Data, new: &Data, count: u32) -> bool {
    match (old, new) {
        (Data::Tensor { tensor, offset }, Data::Tensor { tensor: t, offset: o }) => {
            tensor == t && offset + u64::from(count) * BURST as u64 == *o
        }
        (Data::Bytes(a), Data::Bytes(b)) => a == b,
        _ => false,
    }
}

/// tCCD_L of the shipped device.
pub const COLUMN: u64 = 4;
/// RL + BL/2: a fence waits for the data.
pub const FENCE: u64 = 22;
/// tRP + tRCD.
pub const ROW: u64 = 28;
/// The data bus from reads to writes, or back.
pub const TURN: u64 = 15;

/// Clocks that commands take, roughly, on the shipped device: what two ways to place the same kernel are compared by.
pub fn clocks(ops: &[ColumnOp]) -> u64 {
    let (mut clocks, mut open, mut writes) = (0, [None; 2], false);
    for op in ops {
        let (at, count, write) = match op {
            ColumnOp::Rd { at, count } => (at, *count, false),
            ColumnOp::Wr { at, count, .. } => (at, *count, true),
            ColumnOp::Fence => {
                clocks += FENCE;
                continue;
            }
            ColumnOp::Line(_) | ColumnOp::Aim(_) => continue,
        };
        let row = &mut open[usize::from(at.bank % 2)];
        clocks += if row.replace(at.row) == Some(at.row) { 0 } else { ROW };
        clocks += if std::mem::replace(&mut writes, write) == write { 0 } else { TURN };
        clocks += COLUMN * u64::from(count);
    }
    clocks
}

/// The first scalars, as the place of their group in the first program: nothing reads scalars before them, so they may
/// be written with the program, where units do not wait for them.
fn first_scalars(segments: &[Segment]) -> Option<usize> {
    let scalars = |g: &UnitGroup| matches!(g, UnitGroup::Host(HostWrite::Scalars(..) | HostWrite::Elements(..), _));
    segments.first()?.groups.iter().position(scalars)
}

/// Column commands of all programs.
pub fn exec(segments: &[Segment], lines: Lines<'_>) -> Result<Vec<ColumnOp>, WordError> {
    let place = SourceLine { file: 0, line: 0 };
    let mut e =
        Emitter { ops: Vec::new(), open: None, rows: FxHashSet::default(), row: None, registers: 0, lines, place };
    if segments.is_empty() {
        return Ok(e.ops);
    }
    let first = first_scalars(segments);
    for (n, segment) in segments.iter().enumerate() {
        let beside = banks_beside(&segment.groups);
        e.registers = beside.first().copied().unwrap_or(e.registers);
        match n {
            0 => e.enter(),
            _ => e.configure(STOP),
        }
        e.program(&segment.words)?;
        let before = first.filter(|_| n == 0);
        if let Some(at) = before {
            e.group(&segment.groups[at]);
        }
        e.configure(ENTER);
        let groups = segment.groups.iter().zip(beside).enumerate();
        for (_, (group, bank)) in groups.filter(|(n, _)| Some(*n) != before) {
            e.registers = bank;
            e.group(group);
        }
    }
    e.configure(STOP);
    // The bank that has just been written, to stop the units, may not close before the other one.
    for bank in [1 - e.registers, e.registers] {
        e.ops.push(control(bank, LEAVE_ROW, SWITCH_COLUMN, Data::Bytes([0; BURST])));
    }
    Ok(e.ops)
}
