//! What instructions cost by a target's model of time ([`PipeTimes`]): the startup of the pipe, and the work over its
//! rate. The interpreter times runs with it; [`BlockCost`] says without a run what a whole block keeps each pipe busy
//! for.

use ptoc_diagnostics::Span;
use ptoc_ir::tile::{Kernel, NestAccess, Op, Operand, Region, RoleId, TileRef, Value, pipe_of_op};
use ptoc_isa::{Pipe, PipeTimes, Sem};
use ptoc_tensor::DType;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// What an instruction has to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Work {
    Bytes(u64),
    /// Multiply-adds of operands of so many bytes.
    Products(u64, usize),
}

impl Work {
    /// Cycles of it on a pipe, without the startup.
    pub fn cycles(self, times: &PipeTimes, pipe: Pipe) -> u64 {
        let rate = match self {
            Work::Bytes(_) => times.bytes[pipe as usize],
            Work::Products(_, size) => times.macs.iter().find(|(s, _)| *s >= size).map_or(1, |&(_, n)| n),
        };
        let (Work::Bytes(n) | Work::Products(n, _)) = self;
        n.div_ceil(u64::from(rate.max(1))).max(1)
    }
}

/// How large a value is that is an extent; of one that is bounded, by what.
type Extent<'a> = dyn Fn(Value, Option<u64>) -> u64 + 'a;

/// What an instruction has to do: the bytes of its largest operand, or its products.
pub(crate) fn work_of(kernel: &Kernel, op: &Op, extent: &Extent<'_>) -> Work {
    let sides = |t: &TileRef| (extent(t.valid.0, Some(t.rows.into())), extent(t.valid.1, Some(t.cols.into())));
    // Bytes of the valid part; a mask packs its bits.
    let bytes = |t: &TileRef| {
        let (rows, cols) = sides(t);
        let n = rows.saturating_mul(cols);
        match kernel.tiles[t.tile].ty.dtype {
            DType::Bool => n.div_ceil(8),
            dtype => n.saturating_mul(dtype.size() as u64),
        }
    };
    let width = |side: &NestAccess| match side {
        NestAccess::Tile { tile, .. } => kernel.tiles[tile.tile].ty.dtype.size(),
        NestAccess::Tensor { elem, .. } => elem.dtype().size(),
    };
    let all = |values: &[Value]| values.iter().fold(1u64, |n, &v| n.saturating_mul(extent(v, None)));
    match op {
        Op::Inst(inst) => {
            let tiles = inst.operands.iter().filter_map(|o| if let Operand::Tile(t) = o { Some(t) } else { None });
            let tiles: Vec<&TileRef> = tiles.collect();
            let factors = match (inst.instr.get().sem, &tiles[..]) {
                (Sem::Matmul | Sem::MatmulBias, [_, a, b, ..]) | (Sem::MatmulAcc, [_, _, a, b, ..]) => Some((a, b)),
                _ => None,
            };
            match factors {
                Some((a, b)) => {
                    let (m, k) = sides(a);
                    let n = m.saturating_mul(k).saturating_mul(sides(b).1);
                    Work::Products(n, kernel.tiles[a.tile].ty.dtype.size())
                }
                None => Work::Bytes(tiles.iter().map(|t| bytes(t)).max().unwrap_or(0)),
            }
        }
        Op::Copy(copy) => Work::Bytes(all(&copy.extents).saturating_mul(width(&copy.dst) as u64)),
        Op::Mma(mma) => {
            let n = [&mma.m, &mma.n, &mma.k].into_iter().fold(1u64, |n, axes| n.saturating_mul(all(axes)));
            Work::Products(n, width(&mma.a))
        }
        _ => Work::Bytes(0),
    }
}

/// Cycles for which pipes are at work; of those that roles have the name is said, too.
pub type Lanes = BTreeMap<(Option<RoleId>, Pipe), u64>;

/// What a block costs that is as large as the grid's tiles, by the model of time: cycles for which each pipe is at
/// work, whatever it waits for. Of branches the one counts that costs more.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct BlockCost {
    /// The kernel.
    pub span: Span,
    /// Once a block.
    pub once: Lanes,
    /// For each turn of a loop whose number of turns is not known before the launch: the loop, and what is in it but
    /// for such loops inside. In the order in which they begin.
    pub turns: Vec<(Span, Lanes)>,
}

impl BlockCost {
    /// Of a kernel, for the times of its target.
    pub fn new(kernel: &Kernel, times: &PipeTimes) -> BlockCost {
        let mut known = FxHashMap::default();
        constants(&kernel.prologue, &mut known);
        constants(&kernel.body, &mut known);
        let mut walk = CostModel { kernel, times, known, role: None, turns: Vec::new() };
        let once = walk.region(&kernel.body);
        let turns = walk.turns.into_iter().filter(|(_, lanes)| !lanes.is_empty()).collect();
        BlockCost { span: kernel.span, once, turns }
    }

    /// Whether no pipe does anything.
    pub fn is_empty(&self) -> bool {
        self.once.is_empty() && self.turns.is_empty()
    }
}

/// Cycles for which each unit of the core is at work, which all roles share.
pub fn units(lanes: &Lanes) -> BTreeMap<Pipe, u64> {
    let mut units = BTreeMap::new();
    for (&(_, pipe), &cycles) in lanes {
        let sum: &mut u64 = units.entry(pipe).or_default();
        *sum = sum.saturating_add(cycles);
    }
    units
}

/// The unit that is at work longest: no block takes less.
pub fn busiest(lanes: &Lanes) -> Option<(Pipe, u64)> {
    units(lanes).into_iter().max_by_key(|&(pipe, cycles)| (cycles, std::cmp::Reverse(pipe)))
}

fn constants(region: &Region, known: &mut FxHashMap<Value, i64>) {
    for stmt in region {
        if let Op::Const { dst, value } = stmt.op
            && let Some(n) = value.as_index()
        {
            known.insert(dst, n);
        }
        match &stmt.op {
            Op::For(f) => constants(&f.body, known),
            Op::If(i) => [&i.then, &i.els].into_iter().for_each(|r| constants(r, known)),
            Op::While(w) => [&w.head, &w.body].into_iter().for_each(|r| constants(r, known)),
            Op::Scope(s) => constants(&s.body, known),
            _ => {}
        }
    }
}

struct CostModel<'k> {
    kernel: &'k Kernel,
    times: &'k PipeTimes,
    /// Values that are constants.
    known: FxHashMap<Value, i64>,
    role: Option<RoleId>,
    turns: Vec<(Span, Lanes)>,
}

impl CostModel<'_> {
    fn region(&mut self, region: &Region) -> Lanes {
        let mut lanes = Lanes::new();
        for stmt in region {
            match &stmt.op {
                Op::For(f) => {
                    let ends = (self.known.get(&f.lo), self.known.get(&f.hi));
                    match ends {
                        (Some(lo), Some(hi)) => {
                            let turns = hi.saturating_sub(*lo).max(0) as u64;
                            let body = self.region(&f.body);
                            add(&mut lanes, &body, turns);
                        }
                        _ => self.turn(stmt.span, &[&f.body]),
                    }
                }
                Op::While(w) => self.turn(stmt.span, &[&w.head, &w.body]),
                Op::If(i) => {
                    let (then, els) = (self.region(&i.then), self.region(&i.els));
                    let more = |lane| then.get(lane).max(els.get(lane)).copied().unwrap_or(0);
                    let both: Lanes = then.keys().chain(els.keys()).map(|lane| (*lane, more(lane))).collect();
                    add(&mut lanes, &both, 1);
                }
                Op::Scope(s) => {
                    let outer = self.role;
                    self.role = s.role.or(outer);
                    let body = self.region(&s.body);
                    self.role = outer;
                    add(&mut lanes, &body, 1);
                }
                Op::Sync(_) => {}
                op => {
                    if let Some(pipe) = pipe_of_op(self.kernel, op) {
                        let sum = lanes.entry((self.role, pipe)).or_default();
                        *sum = sum.saturating_add(self.cycles(op, pipe));
                    }
                }
            }
        }
        lanes
    }

    /// A loop that nobody knows the turns of.
    fn turn(&mut self, span: Span, bodies: &[&Region]) {
        let at = self.turns.len();
        self.turns.push((span, Lanes::new()));
        let mut lanes = Lanes::new();
        for body in bodies {
            let body = self.region(body);
            add(&mut lanes, &body, 1);
        }
        self.turns[at].1 = lanes;
    }

    fn cycles(&self, op: &Op, pipe: Pipe) -> u64 {
        let startup = u64::from(self.times.startup[pipe as usize]);
        if pipe == Pipe::S {
            return startup;
        }
        let extent = |v: Value, most: Option<u64>| match (self.known.get(&v), most) {
            (Some(n), _) => (*n).max(0) as u64,
            (None, Some(most)) => most,
            // Of a nest along axes that only the launch knows, one step counts.
            (None, None) => 1,
        };
        startup.saturating_add(work_of(self.kernel, op, &extent).cycles(self.times, pipe))
    }
}

fn add(to: &mut Lanes, more: &Lanes, times: u64) {
    for (lane, cycles) in more.iter().filter(|(_, cycles)| **cycles > 0 && times > 0) {
        let sum = to.entry(*lane).or_default();
        *sum = sum.saturating_add(cycles.saturating_mul(times));
    }
}
