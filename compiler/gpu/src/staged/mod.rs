//! Large products, tiled through shared memory (double-buffered, no tensor cores): a CTA computes a macro-tile, each
//! thread 8 x 8 elements of it in registers. Panels of both operands, [`DEPTH`] deep, go to shared memory through
//! registers, in two buffers: the next panel's loads are under way while the products of this one are formed.
//!
//! An element is one chain of fused multiply-adds, k ascending, as everywhere ([`crate::products`]). A last panel of
//! less depth has fewer steps: padding with zeros would turn a sum of -0 into +0.

mod panels;
mod results;

use crate::bounds::{Interval, intervals};
use crate::emit::Emit;
use crate::memory::GpuAddress;
use crate::products::Product;
use crate::vectors::{LowBits, WIDEST};
use cranelift_entity::SecondaryMap;
use panels::Fetch;
use ptoc_ir::loops::{Contract, LTy, MemTy, Module, Op, Reg, Region, Stride};
use ptoc_ptx::{Arith, Cmp, Src, Type, VReg};

/// Steps of k in a panel.
const DEPTH: u64 = 8;

/// Rows and columns of a thread's part: two groups of four, half a macro-tile apart, so that a warp's loads of operands
/// meet no bank twice.
const PART: u64 = 8;
const GROUP: u64 = 4;

/// Elements between one row of a panel and the next, beside its own.
const PAD: u64 = 4;

/// Products with fewer rows or columns are not staged.
const LEAST: i64 = 33;

/// How the threads of a CTA share a macro-tile. A warp is 4 x 8 threads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Tiling {
    /// Warps along the columns, of which a warp has 64.
    across: u64,
    /// Warps along the rows, of which a warp has 32.
    down: u64,
}

impl Tiling {
    /// For so many threads, if they can share one.
    pub(crate) fn new(threads: u32) -> Option<Tiling> {
        let (across, down) = match threads {
            64 => (1, 2),
            128 => (2, 2),
            256 => (2, 4),
            _ => return None,
        };
        Some(Tiling { across, down })
    }

    pub(crate) fn rows(self) -> u64 {
        4 * PART * self.down
    }

    pub(crate) fn cols(self) -> u64 {
        8 * PART * self.across
    }

    fn threads(self) -> u64 {
        32 * self.across * self.down
    }

    /// Bytes of one pair of panels.
    fn stage(self) -> u64 {
        4 * DEPTH * (self.rows() + self.cols() + 2 * PAD)
    }

    /// Bytes of shared memory.
    pub(crate) fn bytes(self) -> u64 {
        2 * self.stage()
    }
}

/// Whether the product may be large enough.
pub(crate) fn worthwhile(c: &Contract, intervals: &SecondaryMap<Reg, Interval>) -> bool {
    intervals[c.m].hi >= LEAST && intervals[c.n].hi >= LEAST
}

/// The products of a block that may be large enough.
fn products<'f>(module: &'f Module, spans: &[u64]) -> Vec<(&'f Contract, Interval, Interval)> {
    fn find<'f>(region: &'f Region, all: &mut Vec<&'f Contract>) {
        for stmt in region {
            if let Op::Contract(c) = &stmt.op {
                all.push(c);
            }
            stmt.op.regions().for_each(|r| find(r, all));
        }
    }
    let mut all = Vec::new();
    find(&module.block.body, &mut all);
    let known = intervals(module, spans);
    all.retain(|c| worthwhile(c, &known));
    all.into_iter().map(|c| (c, known[c.m], known[c.n])).collect()
}

/// Whether the module has a product that may be staged.
pub(crate) fn any(module: &Module) -> bool {
    !products(module, &[]).is_empty()
}

/// How many blocks of the grid a CTA takes at once along each dimension, where several are one product
/// ([`Module::spread`]): as many as fill a macro-tile.
pub(crate) fn spans(module: &Module, tiling: Option<Tiling>) -> Vec<u64> {
    let mut spans = vec![1; if module.spread.is_empty() { 0 } else { module.launch.results.len() }];
    let Some(tiling) = tiling else { return spans };
    let one = products(module, &spans);
    let [(_, m, n)] = one[..] else { return spans };
    for dim in &module.spread {
        let dim = *dim as usize;
        let mut two = spans.clone();
        two[dim] = 2;
        let [(_, rows, cols)] = products(module, &two)[..] else { continue };
        let factor = |tile: u64, one: i64| (tile / one as u64).max(1);
        if rows.hi > m.hi {
            spans[dim] = factor(tiling.rows(), m.hi);
        } else if cols.hi > n.hi {
            spans[dim] = factor(tiling.cols(), n.hi);
        }
    }
    spans
}

/// An operand: its rows or columns are its side, the other dimension is k.
struct Operand {
    place: GpuAddress,
    ty: MemTy,
    along_side: Stride,
    along_k: Stride,
    /// Rows or columns of the product.
    extent: Src,
    /// Of the macro-tile.
    size: u64,
    /// Where its panels are, behind the start of a stage.
    panel: u64,
}

impl Operand {
    /// Whether elements are neighbours along k.
    fn deep(&self) -> bool {
        self.along_k == Stride::Const(i64::from(self.ty.size()))
    }

    fn flat(&self) -> bool {
        self.along_side == Stride::Const(i64::from(self.ty.size()))
    }

    /// Elements from one k to the next in the panel.
    fn row(&self) -> u64 {
        self.size + PAD
    }
}

/// What is the same for all macro-tiles.
struct Stage<'p, 'c> {
    p: &'p Product<'c>,
    tiling: Tiling,
    operands: [Operand; 2],
    /// Where a thread's pieces go in shared memory, behind the start of a stage.
    puts: [Vec<VReg>; 2],
    /// Where this thread reads panels, behind the start of a stage.
    reads: [VReg; 2],
    /// The first byte of the first stage.
    base: VReg,
    aligned: Option<VReg>,
}

/// A macro-tile.
struct Tile {
    /// First row, first column.
    from: [Src; 2],
    sums: Vec<VReg>,
    /// The byte at which the stage begins that is read next.
    stage: VReg,
}

impl Emit<'_> {
    /// The product, macro-tile by macro-tile.
    pub(crate) fn by_stages(&mut self, p: &Product<'_>, tiling: Tiling, at: u32) {
        // `.ci/ptxas` looks for it.
        self.b.comment("a product, staged");
        let stage = self.staging(p, tiling, at);
        let [m, n] = [p.c.m, p.c.n].map(|reg| self.intervals[reg].hi);
        if m <= tiling.rows() as i64 && n <= tiling.cols() as i64 {
            return self.macro_tile(&stage, [Src::Imm(0); 2]);
        }
        let rows = self.variable(LTy::I64, Src::Imm(0));
        let (down, right, next, exit) = (self.b.label(), self.b.label(), self.b.label(), self.b.label());
        self.b.place(down);
        let over = self.b.setp(Cmp::Ge, Type::S64, rows, p.m);
        self.b.bra_if(over, true, exit);
        let cols = self.variable(LTy::I64, Src::Imm(0));
        self.b.place(right);
        let over = self.b.setp(Cmp::Ge, Type::S64, cols, p.n);
        self.b.bra_if(over, true, next);
        self.macro_tile(&stage, [rows.into(), cols.into()]);
        self.advance(cols, Type::U64, Src::Imm(tiling.cols()));
        self.b.bra(right);
        self.b.place(next);
        self.advance(rows, Type::U64, Src::Imm(tiling.rows()));
        self.b.bra(down);
        self.b.place(exit);
    }

    fn staging<'p, 'c>(&mut self, p: &'p Product<'c>, tiling: Tiling, at: u32) -> Stage<'p, 'c> {
        let c = p.c;
        let left = Operand {
            place: p.a,
            ty: c.ab_ty,
            along_side: c.a_strides.0,
            along_k: c.a_strides.1,
            extent: p.m,
            size: tiling.rows(),
            panel: 0,
        };
        let right = Operand {
            place: p.b,
            ty: c.ab_ty,
            along_side: c.b_strides.1,
            along_k: c.b_strides.0,
            extent: p.n,
            size: tiling.cols(),
            panel: 4 * DEPTH * left.row(),
        };
        let operands = [left, right];
        let aligned = self.operands_aligned(&operands);
        let puts = [0, 1].map(|n| {
            let o = &operands[n];
            let pieces = self.pieces(o, tiling);
            let put = pieces.into_iter().map(|piece| {
                let to = self.b.arith(Arith::MadLo, Type::U32, &[piece.k.into(), Src::Imm(o.row()), piece.side.into()]);
                self.b.arith(Arith::MadLo, Type::U32, &[to.into(), Src::Imm(4), Src::Imm(o.panel)])
            });
            put.collect::<Vec<VReg>>()
        });
        let part = self.part(tiling);
        let reads = [0, 1].map(|n| {
            let panel = Src::Imm(operands[n].panel);
            self.b.arith(Arith::MadLo, Type::U32, &[part[n].into(), Src::Imm(4), panel])
        });
        let base = self.b.arith(Arith::Add, Type::U32, &[self.smem.into(), Src::Imm(u64::from(at))]);
        Stage { p, tiling, operands, puts, reads, base, aligned }
    }

    /// The thread's first row and column in the macro-tile. Computed anew where it is wanted, for the sake of
    /// registers; so are pieces and numbers of panels.
    fn part(&mut self, tiling: Tiling) -> [VReg; 2] {
        // The thread in its warp, and the warp in the CTA.
        let bits = |e: &mut Self, by: u64, mask: u64| {
            let n = e.b.arith(Arith::Shr, Type::U32, &[e.tid.into(), Src::Imm(by)]);
            e.b.arith(Arith::And, Type::B32, &[n.into(), Src::Imm(mask)])
        };
        let (x, y) = (bits(self, 0, 7), bits(self, 3, 3));
        let warp_x = bits(self, 5, tiling.across - 1);
        let warp_y = bits(self, 5 + u64::from(tiling.across.ilog2()), tiling.down - 1);
        let col = self.b.arith(Arith::MadLo, Type::U32, &[warp_x.into(), Src::Imm(8), x.into()]);
        let row = self.b.arith(Arith::MadLo, Type::U32, &[warp_y.into(), Src::Imm(4), y.into()]);
        [row, col].map(|n| self.b.arith(Arith::MulLo, Type::U32, &[n.into(), Src::Imm(GROUP)]))
    }

    /// The predicate that vectors of both operands are aligned. `None`: they are not, wherever they begin.
    fn operands_aligned(&mut self, operands: &[Operand; 2]) -> Option<VReg> {
        let mut bits = LowBits::default();
        for o in operands {
            if !o.deep() && !o.flat() {
                return None;
            }
            let bytes = (GROUP * u64::from(o.ty.size())).min(WIDEST);
            self.low_bits(&mut bits, o.place, bytes);
            self.low_bits_of_stride(&mut bits, if o.deep() { o.along_side } else { o.along_k }, bytes);
        }
        self.all_zero(bits)
    }

    fn macro_tile(&mut self, s: &Stage<'_, '_>, from: [Src; 2]) {
        let extents = [s.p.m, s.p.n];
        let sizes = [s.tiling.rows(), s.tiling.cols()];
        let mut inside: Option<VReg> = None;
        for n in 0..2 {
            let end = self.u64(Arith::Add, from[n], Src::Imm(sizes[n]));
            let fits = self.b.setp(Cmp::Le, Type::S64, end, extents[n]);
            inside = Some(self.both(inside, fits));
        }
        let sums = self.starts(s, from);
        let stage = self.variable(LTy::I32, s.base.into());
        let tile = Tile { from, sums, stage };
        let (slow, last) = (self.b.label(), self.b.label());
        if let (Some(aligned), Some(inside)) = (s.aligned, inside) {
            let fast = self.both(Some(aligned), inside);
            self.b.bra_if(fast, false, slow);
            self.panels(s, &tile, Fetch::Vectors);
            self.b.bra(last);
        }
        self.b.place(slow);
        self.panels(s, &tile, Fetch::Elements);
        self.b.place(last);
        self.last_panel(s, &tile);
        self.finish(s, &tile, inside);
    }
}
