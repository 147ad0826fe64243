//! Commands in their order: the buffer is written while rows change, sums are read when they are there.
//!
//! A row change takes tRTP, tRP and tRCD, in which the data bus is free: as many bursts of the buffer are written then
//! as fit. Those that do not fit are written between the MACs before, each behind the one that has used its column.

use super::LANES;
use super::place::{Line, Matrix, Slot};
use super::trace::Output;
use crate::Lines;
use ptoc_pim_stream::stream::{AimOp, BURST, ColumnOp, SourceLine};

/// Bursts that are written while a row closes, and while the next one opens, on the shipped device: tRP and tRCD over
/// the distance of two bursts.
const CLOSING: u32 = 15;
const OPENING: u32 = 17;

/// MACs of one row for all units, with a part of the line in the buffer.
#[derive(Clone, Copy)]
struct Segment {
    row: u32,
    col: u32,
    count: u32,
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

    /// The sums so far are read.
    fn finish(&mut self) {
        let pending = std::mem::take(&mut self.pending);
        pending.into_iter().for_each(|op| self.push(op));
    }

    /// MACs, with bursts that are written between the last of them.
    fn macs(&mut self, segment: Segment, between: &[AimOp]) {
        let apart = segment.count - between.len() as u32;
        if apart > 0 {
            self.push(AimOp::Mac { row: segment.row, col: segment.col, count: apart });
        }
        for (n, write) in (0..).zip(between) {
            self.push(AimOp::Mac { row: segment.row, col: segment.col + apart + n, count: 1 });
            self.push(write.clone());
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

/// The bursts of a part of a line, each as a write to the buffer, for all its copies.
fn writes(matrix: &Matrix, line: &Line, chunk: u32, copies: u32) -> Vec<AimOp> {
    let first = chunk * matrix.columns * LANES;
    let here = (line.len as u32 - first).min(matrix.columns * LANES);
    let burst = |copy: u32, n: u32| AimOp::WriteBuffer {
        col: copy * matrix.columns + n,
        tensor: line.tensor,
        offset: 2 * (line.first as u64 + u64::from(first + n * LANES)),
        bytes: 2 * (here - n * LANES).min(LANES),
    };
    (0..copies).flat_map(|copy| (0..here.div_ceil(LANES)).map(move |n| burst(copy, n))).collect()
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

/// The commands of all products of a matrix, whose first row is `first`.
pub(super) fn ops(
    matrix: &Matrix,
    first: u32,
    lists: &[(Line, Vec<(&Output, Line)>)],
    lines: Lines<'_>,
) -> Vec<ColumnOp> {
    let mut e = Emitter { ops: Vec::new(), lines, place: SourceLine::default(), open: None, pending: Vec::new() };
    // The MACs before, whose columns are free behind them, and what waits to be told of them.
    let mut before: Option<Segment> = None;
    let mut held: Option<(usize, u32)> = None;
    for (n, (line, own)) in lists.iter().enumerate() {
        let mut slots: Vec<(Slot, Reads, &Output)> = Vec::new();
        let mut places: Vec<(Slot, u32, &Output)> = own
            .iter()
            .map(|(o, row)| {
                let (slot, bank) = matrix.find(row.first);
                (slot, bank, *o)
            })
            .collect();
        places.sort_by_key(|(slot, bank, o)| (*slot, *bank, o.to));
        for (slot, bank, o) in places {
            match slots.last_mut().filter(|(s, ..)| *s == slot) {
                Some((_, reads, _)) => reads.push((bank, o.to.0, o.to.1)),
                None => slots.push((slot, vec![(bank, o.to.0, o.to.1)], o)),
            }
        }
        let copies = 1 + slots.iter().map(|(s, ..)| s.beside).max().unwrap_or(0);
        let chunks = (line.len as u32).div_ceil(matrix.columns * LANES);
        for (slot, reads, o) in &slots {
            for chunk in 0..chunks {
                let left = (line.len as u32 - chunk * matrix.columns * LANES).div_ceil(LANES);
                let segment = Segment {
                    row: first + slot.row + chunk,
                    col: slot.beside * matrix.columns,
                    count: left.min(matrix.columns),
                };
                let fresh = match held.replace((n, chunk)) {
                    Some(had) if had == (n, chunk) => Vec::new(),
                    _ => writes(matrix, line, chunk, copies),
                };
                let turns = e.open != Some(segment.row);
                let room = if turns { (CLOSING + OPENING) as usize } else { 0 };
                // Bursts that the row change has no room for go between the MACs before.
                let early = before.map_or(0, |b| match copies == 1 && b.col == 0 {
                    true => fresh.len().saturating_sub(room).min(b.count as usize),
                    false => 0,
                });
                let (between, rest) = fresh.split_at(early);
                if let Some(b) = before.take() {
                    e.macs(b, between);
                }
                let closing = rest.len().min(if turns { CLOSING as usize } else { rest.len() });
                if turns && e.open.is_some() {
                    e.push(AimOp::Close);
                }
                if chunk == 0 {
                    e.finish();
                    e.line(o.span);
                    e.push(AimOp::Clear);
                }
                joined(&rest[..closing]).into_iter().for_each(|w| e.push(w));
                if turns {
                    e.push(AimOp::Open { row: segment.row });
                    e.open = Some(segment.row);
                }
                joined(&rest[closing..]).into_iter().for_each(|w| e.push(w));
                before = Some(segment);
            }
            e.pending = taken(reads, o.relu);
        }
    }
    if let Some(b) = before {
        e.macs(b, &[]);
    }
    e.finish();
    e.ops
}
