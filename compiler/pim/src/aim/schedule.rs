//! Commands in their order: the buffer is written while rows change, sums are read when they are there.
//!
//! A row change takes tRTP, tRP and tRCD, in which the data bus is free: as many bursts of the buffer are written then
//! as fit. Those that do not fit are written between the MACs before, each behind the one that has used its column;
//! what is left then, between the first MACs that need them. So lines of a row that share it with others have their
//! copy of the buffer's line written when their turn comes, and a row stays open for all lines that go through the
//! buffer, if they fit into it.

use super::LANES;
use super::place::{Line, Matrix, Slot};
use super::trace::Output;
use crate::Lines;
use ptoc_pim_stream::stream::{AimOp, BURST, ColumnOp, SourceLine};

/// Bursts that are written while a row closes, and while the next one opens, on the shipped device: tRP and tRCD over
/// the distance of two bursts.
const CLOSING: usize = 15;
const OPENING: usize = 17;

/// Bursts less while a row closes whose last sums are taken: for the first read, for each other one, for TRELU's work.
const READ: usize = 5;
const ANOTHER: usize = 1;
const WORK: usize = 8;

/// Bursts that are written before the first MAC where no row changes.
const AHEAD: usize = 2;

/// MACs of one row for all units, with a part of the line in the buffer.
struct Segment {
    row: u32,
    col: u32,
    count: u32,
    /// Bursts that are written meanwhile, behind the first MAC and those that follow.
    late: Vec<AimOp>,
}

/// The sums of one line at one slot.
struct Task<'a> {
    /// The line's number.
    line: usize,
    slot: Slot,
    reads: Reads,
    output: &'a Output,
}

struct Emitter<'l> {
    ops: Vec<ColumnOp>,
    lines: Lines<'l>,
    place: SourceLine,
    open: Option<u32>,
    /// What is done with the sums of the MACs before.
    pending: Vec<AimOp>,
}

impl Emitter<'_> {
    fn push(&mut self, op: AimOp) {
        self.ops.push(ColumnOp::Aim(op));
    }

    fn line(&mut self, span: ptoc_diagnostics::Span) {
        let place = (self.lines)(span);
        if place != self.place && place.file != 0 {
            self.ops.push(ColumnOp::Line(place));
            self.place = place;
        }
    }

    /// Bursts that are written while a row closes, behind what is done with the sums.
    fn closing(&self, ends: bool) -> usize {
        let taken = self.pending.iter().filter(|_| ends).enumerate().map(|(n, op)| match op {
            AimOp::Relu => WORK,
            _ if n == 0 || matches!(self.pending[n - 1], AimOp::Relu) => READ,
            _ => ANOTHER,
        });
        CLOSING.saturating_sub(taken.sum())
    }

    /// The sums so far are read.
    fn finish(&mut self) {
        let pending = std::mem::take(&mut self.pending);
        pending.into_iter().for_each(|op| self.push(op));
    }

    /// MACs, with their own bursts between the first and those of the next ones, no more than there are MACs, between
    /// the last of them.
    fn macs(&mut self, segment: Segment, next: &[AimOp]) {
        let Segment { row, col, count, late } = segment;
        let apart = count as usize - next.len();
        let mut done = 0;
        for n in 0..count as usize {
            let behind = late.get(n).into_iter().chain(n.checked_sub(apart).and_then(|n| next.get(n)));
            let mut behind = behind.cloned().peekable();
            if behind.peek().is_some() || n + 1 == count as usize {
                self.push(AimOp::Mac { row, col: col + done, count: n as u32 + 1 - done });
                done = n as u32 + 1;
            }
            behind.for_each(|write| self.push(write));
        }
    }
}

/// What is done with sums: reads of successive banks for successive elements are one.
fn taken(reads: &[(u32, u32, i64)], relu: bool) -> Vec<AimOp> {
    let mut out: Vec<AimOp> = relu.then_some(AimOp::Relu).into_iter().collect();
    for &(bank, to, element) in reads {
        let at = 2 * element as u64;
        if let Some(AimOp::Read { tensor, offset, lanes: (first, count) }) = out.last_mut()
            && (*tensor, *first + *count, *offset + 2 * u64::from(*count)) == (to, bank, at)
        {
            *count += 1;
            continue;
        }
        out.push(AimOp::Read { tensor: to, offset: at, lanes: (bank, 1) });
    }
    out
}

/// The bursts of a part of a line, each as a write to the buffer, for one of its copies.
fn writes(matrix: &Matrix, line: &Line, chunk: u32, copy: u32) -> Vec<AimOp> {
    let first = chunk * matrix.columns * LANES;
    let here = (line.len as u32 - first).min(matrix.columns * LANES);
    let burst = |n: u32| AimOp::WriteBuffer {
        col: copy * matrix.columns + n,
        tensor: line.tensor,
        offset: 2 * (line.first as u64 + u64::from(first + n * LANES)),
        bytes: 2 * (here - n * LANES).min(LANES),
    };
    (0..here.div_ceil(LANES)).map(burst).collect()
}

/// Successive bursts as one operation.
fn joined(writes: &[AimOp]) -> Vec<AimOp> {
    let mut out: Vec<AimOp> = Vec::new();
    for write in writes {
        if let (
            Some(AimOp::WriteBuffer { col, tensor, offset, bytes }),
            AimOp::WriteBuffer { col: c, tensor: t, offset: o, bytes: b },
        ) = (out.last_mut(), write)
            && tensor == t
            && bytes.is_multiple_of(BURST as u32)
            && *col + *bytes / BURST as u32 == *c
            && *offset + u64::from(*bytes) == *o
        {
            *bytes += b;
            continue;
        }
        out.push(write.clone());
    }
    out
}

/// The outputs of one line at one slot: their bank, counted through the pseudo-channels, and their element.
type Reads = Vec<(u32, u32, i64)>;

/// The sums of all lines, slot by slot, in the order in which they are computed.
fn tasks<'a>(matrix: &Matrix, lists: &'a [(Line, Vec<(&'a Output, Line)>)]) -> Vec<Task<'a>> {
    let mut tasks: Vec<Task<'_>> = Vec::new();
    for (n, (_, own)) in lists.iter().enumerate() {
        let mut places: Vec<(Slot, u32, &Output)> = own
            .iter()
            .map(|(o, row)| {
                let (slot, bank) = matrix.find(row.first);
                (slot, bank, *o)
            })
            .collect();
        places.sort_by_key(|(slot, bank, o)| (*slot, *bank, o.to));
        for (slot, bank, o) in places {
            match tasks.last_mut().filter(|t| (t.line, t.slot) == (n, slot)) {
                Some(task) => task.reads.push((bank, o.to.0, o.to.1)),
                None => tasks.push(Task { line: n, slot, reads: vec![(bank, o.to.0, o.to.1)], output: o }),
            }
        }
    }
    // A row is opened once for all of them, unless a sum goes through several.
    if lists.iter().all(|(line, _)| chunks(matrix, line) == 1) {
        tasks.sort_by_key(|t| (t.slot.row, t.line, t.slot.beside));
    }
    tasks
}

/// Rows that a line goes through.
fn chunks(matrix: &Matrix, line: &Line) -> u32 {
    (line.len as u32).div_ceil(matrix.columns * LANES)
}

/// The commands of all products of a matrix, whose first row is `first`.
pub(super) fn ops(
    matrix: &Matrix,
    first: u32,
    lists: &[(Line, Vec<(&Output, Line)>)],
    lines: Lines<'_>,
) -> Vec<ColumnOp> {
    let mut e = Emitter { ops: Vec::new(), lines, place: SourceLine::default(), open: None, pending: Vec::new() };
    // The MACs before, whose columns are free behind them, and what each copy holds.
    let mut before: Option<Segment> = None;
    let mut held: Vec<Option<(usize, u32)>> = Vec::new();
    let tasks = tasks(matrix, lists);
    for (at, Task { line: n, slot, reads, output }) in tasks.iter().enumerate() {
        let (n, line) = (*n, &lists[*n].0);
        let copy = slot.beside as usize;
        held.resize(held.len().max(copy + 1), None);
        for chunk in 0..chunks(matrix, line) {
            let left = (line.len as u32 - chunk * matrix.columns * LANES).div_ceil(LANES);
            let mut segment = Segment {
                row: first + slot.row + chunk,
                col: slot.beside * matrix.columns,
                count: left.min(matrix.columns),
                late: Vec::new(),
            };
            let fresh = match held[copy].replace((n, chunk)) {
                Some(had) if had == (n, chunk) => Vec::new(),
                _ => writes(matrix, line, chunk, slot.beside),
            };
            let turns = e.open != Some(segment.row);
            let closing = e.closing(chunk == 0);
            let room = if turns { closing + OPENING } else { 0 };
            // Bursts that the row change has no room for go between the MACs before.
            let early = before.as_ref().map_or(0, |b| fresh.len().saturating_sub(room).min(b.count as usize));
            let (between, rest) = fresh.split_at(early);
            if let Some(b) = before.take() {
                e.macs(b, between);
            }
            let (ahead, late) = rest.split_at(rest.len().min(room.max(AHEAD)));
            segment.late = late.to_vec();
            let mut ahead = ahead.to_vec();
            // Where there is room left, for the sums that come then.
            let next = tasks[at + 1..].iter().take_while(|t| turns && (t.line, t.slot.row) == (n, slot.row));
            for copy in next.map(|t| t.slot.beside) {
                let bursts = writes(matrix, line, chunk, copy);
                if ahead.len() + bursts.len() > room {
                    break;
                }
                held.resize(held.len().max(copy as usize + 1), None);
                held[copy as usize] = Some((n, chunk));
                ahead.extend(bursts);
            }
            let (closing, opening) = ahead.split_at(ahead.len().min(if turns { closing } else { ahead.len() }));
            if turns && e.open.is_some() {
                e.push(AimOp::Close);
            }
            if chunk == 0 {
                e.finish();
                e.line(output.span);
                e.push(AimOp::Clear);
            }
            joined(closing).into_iter().for_each(|w| e.push(w));
            if turns {
                e.push(AimOp::Open { row: segment.row });
                e.open = Some(segment.row);
            }
            joined(opening).into_iter().for_each(|w| e.push(w));
            before = Some(segment);
        }
        e.pending = taken(reads, output.relu);
    }
    if let Some(b) = before {
        e.macs(b, &[]);
    }
    e.finish();
    e.ops
}
