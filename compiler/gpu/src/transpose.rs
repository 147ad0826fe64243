//! Transposing nests: what they load lies along rows, what they store along lanes, or the other way round.
//!
//! A thread has a square of rows and lanes in registers. It loads and stores by vectors along whichever dimension an
//! access has its neighbours in; a warp is 8 squares along the rows and 4 along the lanes, so each of its accesses is
//! of whole lines or halves, in both directions. Shared memory, with the same squares, has no bank conflicts.

use crate::emit::{Emit, Val};
use crate::lanes::{Lane, Row, neighbours};
use crate::memory::{GpuAddress, Index};
use crate::rows::{RowAccess, Rows};
use crate::vectors::{LowBits, WIDEST};
use ptoc_ir::loops::{Addr, For, LTy, Lanes, MemTy, Op, Reg, SharedInfo, Stmt, Stride, operands};
use ptoc_ptx::{Arith, Cmp, Round, Special, Src, Type, VReg};
use rustc_hash::FxHashMap;

/// Squares of a warp along the rows, and along the lanes.
const WARP: (u64, u64) = (8, 4);

/// The direction in which an access has its neighbours.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Along {
    Lanes,
    Rows,
    Neither,
}

/// What turning a nest takes.
pub(crate) struct Turning {
    /// For each statement of the body.
    along: Vec<Along>,
    /// Rows and lanes of a square.
    side: u64,
}

impl Turning {
    /// Whether it is worth it, for these lanes in these rows.
    pub(crate) fn of(lanes: &Lanes, rows: &Rows<'_>) -> Option<Turning> {
        let mut along = Vec::new();
        let (mut turned, mut straight) = (false, false);
        let mut narrowest = u64::MAX;
        for stmt in &lanes.body {
            along.push(match &stmt.op {
                Op::Load { ty, addr, .. } | Op::Store { ty, addr, .. } => {
                    let kind = match RowAccess::of(stmt) {
                        _ if neighbours(addr, *ty) => Along::Lanes,
                        // One element for all lanes of a row turns nothing.
                        Some(access) if rows.neighbours(&access) && addr.stride != Stride::Const(0) => Along::Rows,
                        _ => Along::Neither,
                    };
                    turned |= kind == Along::Rows;
                    straight |= kind == Along::Lanes;
                    if kind != Along::Neither {
                        narrowest = narrowest.min(u64::from(ty.size()));
                    }
                    kind
                }
                Op::Join { .. } => return None,
                _ => Along::Neither,
            });
        }
        // Squares of values that are in registers at once.
        let side = (WIDEST / narrowest.min(WIDEST)).clamp(2, 8);
        (turned && straight && lanes.body.len() as u64 * side <= 96).then_some(Turning { along, side })
    }
}

/// A square.
struct Square<'n> {
    turning: &'n Turning,
    before: &'n [Stmt],
    lanes: &'n Lanes,
    info: &'n SharedInfo,
    /// Registers of each row.
    rows: Vec<Row>,
    /// The first lane.
    lane: Index,
    /// How many rows and lanes it has.
    size: u64,
}

impl Emit<'_> {
    /// The nest, square by square.
    pub(crate) fn turned(
        &mut self,
        f: &For,
        before: &[Stmt],
        lanes: &Lanes,
        range: (Src, Src, Src),
        turning: &Turning,
    ) {
        let (lo, hi, count) = range;
        let side = turning.side;
        let groups = |e: &mut Self, n: Src, by: u64| {
            let n = e.b.arith(Arith::Max, Type::S64, &[n, Src::Imm(0)]);
            let n = e.u64(Arith::Add, n, Src::Imm(side * by - 1));
            e.b.arith(Arith::Shr, Type::U64, &[n.into(), Src::Imm(u64::from((side * by).ilog2()))])
        };
        let rows = self.b.arith(Arith::Sub, Type::S64, &[hi, lo]);
        let tall = groups(self, rows.into(), WARP.0);
        let wide = groups(self, count, WARP.1);
        let total = self.u64(Arith::MulLo, tall, wide);
        let in_warp = self.b.mov(Type::U32, Src::Special(Special::Laneid));
        let y = self.b.arith(Arith::And, Type::B32, &[in_warp.into(), Src::Imm(WARP.0 - 1)]);
        let x = self.b.arith(Arith::Shr, Type::U32, &[in_warp.into(), Src::Imm(u64::from(WARP.0.ilog2()))]);
        let [x, y] = [x, y].map(|n| self.b.cvt(Type::U64, Type::U32, Round::None, n));
        let warp = self.b.arith(Arith::Shr, Type::U32, &[self.tid.into(), Src::Imm(5)]);
        let warp = self.b.cvt(Type::U64, Type::U32, Round::None, warp);
        let number = self.variable(LTy::I64, warp.into());
        let (head, next, exit) = (self.b.label(), self.b.label(), self.b.label());
        self.b.place(head);
        let over = self.b.setp(Cmp::Ge, Type::U64, number, total);
        self.b.bra_if(over, true, exit);
        let (down, right) = self.div_rem(number.into(), wide.into());
        let place = |e: &mut Self, n: VReg, by: u64, within: VReg| {
            let n = e.b.arith(Arith::MadLo, Type::U64, &[n.into(), Src::Imm(by), within.into()]);
            e.u64(Arith::MulLo, n, Src::Imm(side))
        };
        let row = place(self, down, WARP.0, y);
        let row = self.b.arith(Arith::Add, Type::S64, &[row.into(), lo]);
        let lane = place(self, right, WARP.1, x);
        for (n, end) in [(row, hi), (lane, count)] {
            let over = self.b.setp(Cmp::Ge, Type::S64, n, end);
            self.b.bra_if(over, true, next);
        }
        let info = SharedInfo::new(lanes);
        let lane = (self.low(lane), lane);
        let mut square = Square { turning, before, lanes, info: &info, rows: Vec::new(), lane, size: side };
        let slow = self.b.label();
        for (n, end) in [(row, hi), (lane.1, count)] {
            let last = self.u64(Arith::Add, n, Src::Imm(side));
            let beyond = self.b.setp(Cmp::Gt, Type::S64, last, end);
            self.b.bra_if(beyond, true, slow);
        }
        square.rows = self.enter_rows(f, before, row, Src::Imm(1), side);
        let places = self.places(&square);
        if let Some(aligned) = self.all_aligned(&square, &places) {
            self.b.bra_if(aligned, false, slow);
        }
        self.square(&square, &places);
        self.b.bra(next);
        self.b.place(slow);
        self.by_cells(f, &mut square, row, (hi, count));
        self.b.place(next);
        self.advance(number, Type::U64, Src::Imm(u64::from(self.threads / 32)));
        self.b.bra(head);
        self.b.place(exit);
    }

    /// One element after the other, of a square that is not whole or not aligned.
    fn by_cells(&mut self, f: &For, square: &mut Square<'_>, row: VReg, (hi, count): (Src, Src)) {
        let side = Src::Imm(square.turning.side);
        let ends = [(row, hi), (square.lane.1, count)].map(|(from, end)| {
            let last = self.u64(Arith::Add, from, side);
            self.b.arith(Arith::Min, Type::S64, &[last.into(), end])
        });
        let (down, right, below, exit) = (self.b.label(), self.b.label(), self.b.label(), self.b.label());
        let row = self.variable(LTy::I64, row.into());
        let first = square.lane;
        self.b.place(down);
        let over = self.b.setp(Cmp::Ge, Type::S64, row, ends[0]);
        self.b.bra_if(over, true, exit);
        square.size = 1;
        square.rows = self.enter_rows(f, square.before, row, Src::Imm(1), 1);
        let lane = self.variable(LTy::I64, first.1.into());
        self.b.place(right);
        let over = self.b.setp(Cmp::Ge, Type::S64, lane, ends[1]);
        self.b.bra_if(over, true, below);
        square.lane = (self.low(lane), lane);
        self.square(square, &FxHashMap::default());
        self.advance(lane, Type::U64, Src::Imm(1));
        self.b.bra(right);
        self.b.place(below);
        self.advance(row, Type::S64, Src::Imm(1));
        self.b.bra(down);
        self.b.place(exit);
    }

    fn access(op: &Op) -> Option<(&Addr, MemTy)> {
        match op {
            Op::Load { addr, ty, .. } | Op::Store { addr, ty, .. } => Some((addr, *ty)),
            _ => None,
        }
    }

    /// Where each vector begins: of each access, as many as the square has rows or lanes.
    fn places(&mut self, square: &Square<'_>) -> FxHashMap<usize, Vec<GpuAddress>> {
        let mut all = FxHashMap::default();
        for (n, (stmt, along)) in square.lanes.body.iter().zip(&square.turning.along).enumerate() {
            let Some((addr, _)) = Self::access(&stmt.op) else { continue };
            let places = (0..square.size).map(|k| {
                let (row, plus) = match along {
                    Along::Lanes => (k, 0),
                    _ => (0, k),
                };
                self.enter(&square.rows[row as usize]);
                self.lane = Some(self.cell(square, plus));
                self.address(addr)
            });
            if *along != Along::Neither {
                let places = places.collect();
                all.insert(n, places);
            }
        }
        self.lane = None;
        all
    }

    /// A lane of the square. Strides that are registers take a number of their own.
    fn cell(&mut self, square: &Square<'_>, plus: u64) -> Lane {
        let first = match plus {
            0 => square.lane,
            plus => {
                let lane = self.u64(Arith::Add, square.lane.1, Src::Imm(plus));
                (self.low(lane), lane)
            }
        };
        Lane { first, plus: 0, row: 0 }
    }

    fn all_aligned(&mut self, square: &Square<'_>, places: &FxHashMap<usize, Vec<GpuAddress>>) -> Option<VReg> {
        let mut bits = LowBits::default();
        let mut numbers: Vec<&usize> = places.keys().collect();
        numbers.sort_unstable();
        for n in numbers {
            let Some((_, ty)) = Self::access(&square.lanes.body[*n].op) else { continue };
            let bytes = (square.size * u64::from(ty.size())).min(WIDEST);
            places[n].iter().for_each(|place| self.low_bits(&mut bits, *place, bytes));
        }
        self.all_zero(bits)
    }

    /// The body for all elements of a square, statement by statement; by vectors, where there are places for them.
    fn square(&mut self, square: &Square<'_>, places: &FxHashMap<usize, Vec<GpuAddress>>) {
        let side = square.size as usize;
        let body = &square.lanes.body;
        let mut own: Vec<FxHashMap<Reg, Val>> = vec![FxHashMap::default(); side * side];
        let lanes: Vec<Lane> = (0..square.size).map(|plus| self.cell(square, plus)).collect();
        if self.used.contains(&square.lanes.lane) {
            for (n, own) in own.iter_mut().enumerate() {
                own.insert(square.lanes.lane, Val::Reg(lanes[n % side].first.1));
            }
        }
        for (n, (stmt, shared)) in body.iter().zip(&square.info.shared).enumerate() {
            self.at(stmt.span);
            if let Some(places) = places.get(&n) {
                let along = square.turning.along[n];
                for (k, place) in places.iter().enumerate() {
                    let cells: Vec<usize> = match along {
                        Along::Lanes => (0..side).map(|l| k * side + l).collect(),
                        _ => (0..side).map(|r| r * side + k).collect(),
                    };
                    self.vector(&stmt.op, *place, &cells, square, &mut own);
                }
                continue;
            }
            let mut read = Vec::new();
            crate::control::reads(&stmt.op, &mut |reg| read.push(reg));
            for row in 0..side {
                self.enter(&square.rows[row]);
                for lane in 0..side {
                    let own = &mut own[row * side + lane];
                    self.take(own, &read);
                    self.lane = Some(lanes[lane]);
                    self.lane_statement(&stmt.op);
                    if let Some(dst) = operands(&stmt.op).1
                        && let Some(value) = self.values[dst]
                    {
                        own.insert(dst, value);
                    }
                    if *shared && operands(&stmt.op).1.is_none() {
                        break;
                    }
                }
            }
        }
        self.lane = None;
    }

    fn vector(
        &mut self,
        op: &Op,
        place: GpuAddress,
        cells: &[usize],
        square: &Square<'_>,
        own: &mut [FxHashMap<Reg, Val>],
    ) {
        match op {
            Op::Load { dst, ty, .. } => {
                let values = self.load_vector(*ty, place, cells.len() as u64);
                for (cell, value) in cells.iter().zip(values) {
                    own[*cell].insert(*dst, Val::Reg(value));
                }
            }
            Op::Store { ty, value, .. } => {
                let mut values = Vec::new();
                for cell in cells {
                    self.enter(&square.rows[cell / square.size as usize]);
                    self.take(&own[*cell], &[*value]);
                    values.push(self.reg(*value));
                }
                self.store_vector(*ty, place, &values);
            }
            _ => {}
        }
    }
}
