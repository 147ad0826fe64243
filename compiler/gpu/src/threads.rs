//! How many threads a CTA has.
//!
//! The numbers were found on an H200 with kernels of `examples`, large shapes, by trying the powers of two.

use crate::allocation::{CONTROL, Homes, residents};
use crate::lanes::neighbours;
use crate::vectors::width;
use ptoc_ir::loops::{Lanes, Module, Op, Region};

/// Threads of a kernel whose products are staged: registers for 8 x 8 sums each.
pub(crate) const STAGED_THREADS: u32 = 256;

/// CTAs of them on a multiprocessor: one computes while the other waits for its panels.
const STAGED_RESIDENT: u32 = 2;

/// Bytes of shared memory above which other work decides how many threads there are.
pub(crate) const STAGED_BESIDE: u32 = 96 << 10;

/// Threads of a kernel without staged products.
///
/// Where rows are reduced, half a warp for each of those that are reduced at once, or more where few CTAs fit. In
/// kernels without shared memory, so few that a thread has some vectors, whose loads are under way together. Else so
/// many that a multiprocessor is full of them, with as many CTAs as shared memory has room for.
pub(crate) fn threads(module: &Module, homes: &Homes) -> u32 {
    let found = Extents::of(&module.block.body, homes);
    match found.reduced {
        0 if homes.shared == CONTROL && found.vectors > 0 => {
            (found.vectors / 4).clamp(1, 256).next_power_of_two().max(32) as u32
        }
        0 => match residents(homes.shared) {
            0..=4 => 512,
            _ => 256,
        },
        rows => {
            let of_rows = 16 * rows.next_power_of_two().clamp(4, 16) as u32;
            // Of a row that is alone a thread has some elements, which registers may keep: two of 16 bits in each.
            let (each, least) = if found.narrow { (32, LEAST_THREADS / 2) } else { (16, LEAST_THREADS) };
            let alone = if rows == 1 { (found.elements / each).clamp(1, 256).next_power_of_two() as u32 } else { 1 };
            of_rows.max(alone).max((least / residents(homes.shared)).next_power_of_two().min(512))
        }
    }
}

/// CTAs for which `ptxas` has to leave room on a multiprocessor, where it would use more registers: of staged products
/// two, and as many as keep memory busy where threads wait for the indices of rows before they load them.
pub(crate) fn resident(threads: u32, staged: bool, row_pointers: bool) -> Option<u32> {
    match (staged, row_pointers) {
        (true, _) => (threads == STAGED_THREADS).then_some(STAGED_RESIDENT),
        (false, true) => Some((LEAST_THREADS / threads).max(1)),
        (false, false) => None,
    }
}

/// The same of rows of 16 bits in registers: with as many threads as fit, too few loads of one are under way.
pub(crate) fn resident_narrow(threads: u32, shared: u32) -> u32 {
    (NARROW_THREADS / threads).min(residents(shared)).max(1)
}

/// Threads of a multiprocessor with rows of 16 bits in registers: 48 registers each.
const NARROW_THREADS: u32 = 1280;

/// Threads that a multiprocessor needs so that memory is kept busy; half of them where elements have 16 bits.
const LEAST_THREADS: u32 = 1536;

/// What statements of a block work on at once, at most.
#[derive(Clone, Copy, Default)]
struct Extents {
    /// Rows that are reduced; 0 where none are.
    reduced: u64,
    /// Vectors of lanes; 0 where their number is not known.
    vectors: u64,
    /// Elements of the longest lanes, of those that several threads share.
    elements: u64,
    /// Some of their elements have less than 32 bits.
    narrow: bool,
}

impl Extents {
    fn of(region: &Region, homes: &Homes) -> Extents {
        let mut all = Extents::default();
        for stmt in region {
            all.add(Extents::statement(&stmt.op, homes));
            for region in stmt.op.regions().filter(|_| !matches!(stmt.op, Op::Lanes(_))) {
                let mut inner = Extents::of(region, homes);
                if let Op::For(f) = &stmt.op {
                    inner.vectors = inner.vectors.saturating_mul(bounded(homes.segments.interval(f.hi).hi));
                }
                all.add(inner);
            }
        }
        all
    }

    fn statement(op: &Op, homes: &Homes) -> Extents {
        match op {
            Op::Reduce(r) => {
                Extents { reduced: homes.segments.interval(r.rows).hi.clamp(1, 32) as u64, ..Extents::default() }
            }
            Op::Lanes(lanes) => {
                let joins = lanes.body.iter().any(|s| matches!(s.op, Op::Join { .. }));
                let count = bounded(homes.segments.interval(lanes.count).hi);
                let vectors = count.div_ceil(width(lanes));
                let shared = !joins && vectors >= 32;
                let elements = if shared { count } else { 0 };
                Extents { reduced: u64::from(joins), vectors, elements, narrow: shared && narrow(lanes) }
            }
            _ => Extents::default(),
        }
    }

    fn add(&mut self, other: Extents) {
        self.reduced = self.reduced.max(other.reduced);
        self.vectors = self.vectors.max(other.vectors);
        self.elements = self.elements.max(other.elements);
        self.narrow |= other.narrow;
    }
}

/// Whether neighbours are loaded or stored that have less than 32 bits.
fn narrow(lanes: &Lanes) -> bool {
    lanes.body.iter().any(|s| match &s.op {
        Op::Load { addr, ty, .. } | Op::Store { addr, ty, .. } => ty.size() < 4 && neighbours(addr, *ty),
        _ => false,
    })
}

/// An extent that is known; else 0.
fn bounded(most: i64) -> u64 {
    if (0..1 << 30).contains(&most) { most as u64 } else { 0 }
}
