//! The four checks of a constant TASSIGN (PTO's SA-0351 to SA-0354).

use super::tile::granule;
use crate::{Order, Target, TileType, left_out_as, text};
use ptoc_diagnostics::{Code, Diagnostic, Span, codes};
use ptoc_tensor::DType;

/// Which check fails.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SaKind {
    /// SA-0351: the target has no such memory.
    Absent,
    /// SA-0352: the tile alone is larger than the memory.
    TooLarge,
    /// SA-0353: the tile does not end inside the memory, or starts before it.
    OutOfRange,
    /// SA-0354: the address is not aligned.
    Misaligned,
}

impl SaKind {
    /// The code.
    pub fn code(self) -> Code {
        match self {
            SaKind::Absent => codes::ASSIGN_MEMORY_ABSENT,
            SaKind::TooLarge => codes::ASSIGN_TILE_TOO_LARGE,
            SaKind::OutOfRange => codes::ASSIGN_OUT_OF_RANGE,
            SaKind::Misaligned => codes::ASSIGN_MISALIGNED,
        }
    }
}

/// A failed check with its numbers and what would mend it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SaViolation {
    /// Which.
    pub kind: SaKind,
    /// The tile's type.
    pub ty: TileType,
    /// The address; `None` if the tile has none (yet).
    pub addr: Option<i128>,
    /// Bytes of the tile.
    pub size: u64,
    /// Bytes of the memory.
    pub capacity: u64,
    /// The capacity was overridden.
    pub overridden: bool,
    /// Required alignment.
    pub align: u64,
    /// The memory's name.
    pub memory: String,
    /// The target's name.
    pub target: String,
    /// Aligned addresses near `addr` at which the tile fits, nearest first.
    pub addresses: Vec<u64>,
    /// The most rows, of these columns, that fit (at `addr`, if there is one); `None` if not one granule does.
    pub fewer_rows: Option<u32>,
    /// The most columns, of these rows, that fit.
    pub fewer_cols: Option<u32>,
    /// Other built-in targets whose memory holds the tile (empty for SA-0354, which all share).
    pub fits_on: Vec<&'static str>,
    /// The number in the source that is the address: repairs replace it.
    literal: Option<Span>,
}

/// The checks that need no address: SA-0351, else SA-0352. For every tile, placed or not.
pub fn check_size(target: &Target, ty: TileType) -> Option<SaViolation> {
    failing(target, ty, None).into_iter().next().map(|kind| violation(target, ty, None, kind))
}

/// All four checks. SA-0351 suppresses 0352 and 0353, 0352 suppresses 0353, and 0354 stands on its own. Addresses
/// are mathematical integers, so nothing wraps around.
pub fn check_address(target: &Target, ty: TileType, addr: i128) -> Vec<SaViolation> {
    failing(target, ty, Some(addr)).into_iter().map(|kind| violation(target, ty, Some(addr), kind)).collect()
}

fn failing(target: &Target, ty: TileType, addr: Option<i128>) -> Vec<SaKind> {
    let memory = target.memory(ty.loc);
    let (size, capacity) = (i128::from(ty.bytes()), i128::from(memory.capacity));
    let mut out = Vec::new();
    if memory.capacity == 0 {
        out.push(SaKind::Absent);
    } else if size > capacity {
        out.push(SaKind::TooLarge);
    } else if addr.is_some_and(|a| a < 0 || a > capacity - size) {
        out.push(SaKind::OutOfRange);
    }
    if addr.is_some_and(|a| a.rem_euclid(i128::from(memory.align)) != 0) {
        out.push(SaKind::Misaligned);
    }
    out
}

fn violation(target: &Target, ty: TileType, addr: Option<i128>, kind: SaKind) -> SaViolation {
    let memory = target.memory(ty.loc);
    let size = ty.bytes();
    // Bytes that a smaller tile may take: to the end of the memory from the address, if that is inside.
    let room = match (kind, addr.and_then(|a| u64::try_from(a).ok())) {
        (SaKind::OutOfRange, Some(a)) => {
            let start = a.checked_next_multiple_of(memory.align).unwrap_or(u64::MAX);
            memory.capacity.saturating_sub(start)
        }
        (SaKind::OutOfRange, None) => 0,
        _ => memory.capacity,
    };
    let (fewer_rows, fewer_cols) = match kind {
        // Which smaller tile a layout of the author's would have is for the author to say.
        SaKind::TooLarge | SaKind::OutOfRange if ty.layout.is_none() => {
            (most_rows(target, ty, room), most_cols(target, ty, room))
        }
        _ => (None, None),
    };
    SaViolation {
        kind,
        ty,
        addr,
        size,
        capacity: memory.capacity,
        overridden: memory.overridden,
        align: memory.align,
        memory: target.pool_of(ty.loc).map_or(&memory.name, |pool| &pool.name).clone(),
        target: target.name.clone(),
        addresses: match (kind, addr) {
            (SaKind::OutOfRange | SaKind::Misaligned, Some(a)) => {
                good_addresses(memory.capacity, memory.align, size, a)
            }
            _ => Vec::new(),
        },
        fewer_rows,
        fewer_cols,
        // Units in memory are each for work of their own.
        fits_on: target
            .others()
            .filter(|_| kind != SaKind::Misaligned && target.device.is_none())
            .filter(|t| failing(t, ty, addr).iter().all(|k| *k == SaKind::Misaligned))
            .map(|t| t.name.as_str())
            .collect(),
        literal: None,
    }
}

/// The aligned addresses on both sides of `addr` (or the last one) at which `size` bytes fit.
fn good_addresses(capacity: u64, align: u64, size: u64, addr: i128) -> Vec<u64> {
    let Some(last) = capacity.checked_sub(size).map(|free| free / align * align) else { return Vec::new() };
    let (last, align) = (i128::from(last), i128::from(align));
    // The remainder is below `align`, so this cannot leave i128 unless `addr` is at its very end.
    let down = addr.saturating_sub(addr.rem_euclid(align)).clamp(0, last);
    let up = if addr.rem_euclid(align) == 0 { addr } else { down.saturating_add(align) }.clamp(0, last);
    let mut out = vec![up as u64];
    if down != up {
        out.push(down as u64);
    }
    out.sort_by_key(|a| i128::from(*a).saturating_sub(addr).unsigned_abs());
    out
}

fn most_rows(target: &Target, ty: TileType, room: u64) -> Option<u32> {
    let step = granule(target, ty.loc, ty.dtype, ty.order).rows;
    largest(ty.rows, step, room, TileType { rows: step, ..ty }.bytes())
}

fn most_cols(target: &Target, ty: TileType, room: u64) -> Option<u32> {
    let step = match ty.dtype {
        // 32 bytes of bits: narrower masks are padded to as much.
        DType::Bool => 256,
        d => granule(target, ty.loc, d, ty.order).cols,
    };
    largest(ty.cols, step, room, TileType { cols: step, ..ty }.bytes())
}

/// The largest multiple of `step` below `now` such that `per_step` bytes a step fit into `room`.
fn largest(now: u32, step: u32, room: u64, per_step: u64) -> Option<u32> {
    let steps = (room.checked_div(per_step)?).min(u64::from(now.saturating_sub(1) / step));
    u32::try_from(steps).ok().filter(|n| *n > 0).map(|n| n * step)
}

impl SaViolation {
    /// The code.
    pub fn code(&self) -> Code {
        self.kind.code()
    }

    /// The same of an address that stands in the source as this number.
    #[must_use]
    pub fn editing(self, literal: Option<Span>) -> SaViolation {
        SaViolation { literal, ..self }
    }

    /// The report; `subject` is how the author calls the tile ("tile `x`").
    pub fn diagnostic(&self, subject: &str, span: Span) -> Diagnostic {
        let SaViolation { ty, size, capacity, align, target, .. } = self;
        // `UB`, but `the Bias buffer`.
        let memory = if self.memory.contains(' ') { format!("the {}", self.memory) } else { self.memory.clone() };
        let addr = self.addr.unwrap_or(0);
        let error = |message: String, label: String| Diagnostic::error(self.code(), span, message).with_label(label);
        let mut d = match self.kind {
            SaKind::Absent => error(
                format!("{subject} lives in {}, which {target} does not have", ty.loc),
                format!("{ty}: {memory} has no bytes on {target}"),
            ),
            SaKind::TooLarge => error(
                format!("{subject} is larger than {memory}: {size} > {capacity} bytes"),
                format!("{ty} takes {}", text::bytes(*size)),
            ),
            SaKind::OutOfRange if addr < 0 => {
                error(format!("{subject} would start before {memory}"), format!("address {addr} is negative"))
            }
            SaKind::OutOfRange => {
                // As i128 the sum may overflow only for addresses that are no addresses anyway.
                let end = addr.saturating_add(i128::from(*size));
                error(
                    format!("{subject} runs past the end of {memory}"),
                    format!("ends at {end:#x}, and {memory} at {capacity:#x}"),
                )
            }
            SaKind::Misaligned => error(
                format!("the address of {subject} is not a multiple of {align}"),
                match addr.rem_euclid(i128::from(*align)) {
                    1 => format!("{} is 1 byte past a multiple of {align}", hex(addr)),
                    n => format!("{} is {n} bytes past a multiple of {align}", hex(addr)),
                },
            ),
        };
        if self.kind == SaKind::Absent {
            let out = left_out_as(ty.loc.name());
            if let [there, ..] = self.fits_on[..]
                && out.is_empty()
            {
                d = d.with_help(format!("compile for a target that has it, as `--target {there}`"));
            }
            if !out.is_empty() {
                d = out.iter().fold(d, |d, p| p.told(d)).with_help(
                    "a table in Scaling has a factor for each column of a result: `TMOV_FP(dst, acc, scale)`",
                );
            }
        }
        if matches!(self.kind, SaKind::TooLarge | SaKind::OutOfRange) {
            let source = if self.overridden { " (as overridden)" } else { "" };
            d = d.with_note(format!("{memory} has {} on {target}{source}; {ty} takes {size}", text::bytes(*capacity)));
        }
        if let Some(place) = self.literal {
            for address in &self.addresses {
                let latest = if self.kind == SaKind::OutOfRange && addr >= 0 { " at the latest" } else { "" };
                d = d.with_suggestion(format!("place it at {address:#x}{latest}"), place, format!("{address:#x}"));
            }
        } else if !self.addresses.is_empty() {
            let list = text::either(self.addresses.iter().map(|a| format!("{a:#x}")));
            d = d.with_help(match self.kind {
                SaKind::OutOfRange if addr >= 0 => format!("place it at {list} at the latest"),
                _ => format!("place it at {list}"),
            });
        }
        let name = |rows: u32, cols: u32| format!("`{}`", TileType { rows, cols, ..*ty });
        let smaller: Vec<String> =
            [self.fewer_rows.map(|r| name(r, ty.cols)), self.fewer_cols.map(|c| name(ty.rows, c))]
                .into_iter()
                .flatten()
                .collect();
        if !smaller.is_empty() {
            let place = if self.kind == SaKind::OutOfRange { " at this address" } else { "" };
            d = d.with_help(format!("{} would fit{place}", text::either(smaller)));
        }
        if !self.fits_on.is_empty() {
            d = d.with_note(format!("it fits on {}", text::list(&self.fits_on)));
        }
        if ty.order == Order::Dn && ty.layout.is_none() && self.kind == SaKind::TooLarge {
            d = d.with_note("the tile is column-major");
        }
        d
    }
}

fn hex(addr: i128) -> String {
    if addr < 0 { format!("-{:#x}", addr.unsigned_abs()) } else { format!("{addr:#x}") }
}
