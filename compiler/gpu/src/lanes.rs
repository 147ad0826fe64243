//! `Lanes`: a lane is a thread's, and where there are more, every so many.

use crate::emit::{Emit, Val};
use crate::memory::Index;
use crate::touched;
use ptoc_ir::loops::{Addr, BinOp, LTy, Lanes, MemTy, Op, PARTIALS, Reg, SharedInfo, Stride, operands};
use ptoc_ptx::{Arith, Cmp, Round, Src, Type, VReg};
use rustc_hash::FxHashMap;

impl Emit<'_> {
    pub(crate) fn lanes(&mut self, lanes: &Lanes) {
        self.order(&touched::of(&Op::Lanes(Box::new(lanes.clone())), &self.broadcast));
        // Lanes that share a partial are one thread's, which takes them in ascending order.
        let joins = lanes.body.iter().any(|s| matches!(s.op, Op::Join { .. }));
        let stride = u64::from(if joins { PARTIALS as u32 } else { self.threads });
        let count = self.src(lanes.count);
        let exit = self.b.label();
        if joins {
            let idle = self.b.setp(Cmp::Ge, Type::U32, self.tid, Src::Imm(stride));
            self.b.bra_if(idle, true, exit);
        }
        let tid = self.b.cvt(Type::U64, Type::U32, Round::None, self.tid);
        self.lane_loop(lanes, (self.tid, tid), count, Src::Imm(stride));
        self.b.place(exit);
    }

    /// A thread's lanes: from `first` on, every so many. Several of them at a time while there are as many, so that
    /// their loads are under way together; then one by one.
    pub(crate) fn lane_loop(&mut self, lanes: &Lanes, first: Index, count: Src, stride: Src) {
        let lane = self.variable(LTy::I64, first.1.into());
        self.partial = Some(first);
        let known =
            if let (Src::Imm(n), Src::Imm(m)) = (count, stride) { Some(((n as i64).max(0) as u64, m)) } else { None };
        let copies = copies(lanes).min(known.map_or(u64::MAX, |(n, m)| n / m));
        if copies > 1 {
            self.turns(lanes, lane, count, stride, copies);
        }
        let none_left = known.is_some_and(|(n, m)| n % (m * copies.max(1)) == 0);
        if copies <= 1 || !none_left {
            self.turns(lanes, lane, count, stride, 1);
        }
    }

    /// Turns of so many lanes, as long as there are as many.
    fn turns(&mut self, lanes: &Lanes, lane: VReg, count: Src, stride: Src, copies: u64) {
        let (head, exit) = (self.b.label(), self.b.label());
        let once = matches!((count, stride), (Src::Imm(n), Src::Imm(m)) if n as i64 <= (m * copies) as i64);
        if !once {
            self.b.place(head);
        }
        let mut all = vec![lane];
        for _ in 1..copies {
            let before = all[all.len() - 1];
            all.push(self.u64(Arith::Add, before, stride));
        }
        let over = self.b.setp(Cmp::Ge, Type::S64, all[all.len() - 1], count);
        self.b.bra_if(over, true, exit);
        let all: Vec<Index> =
            all.into_iter().map(|lane| (self.b.cvt(Type::U32, Type::U64, Round::None, lane), lane)).collect();
        self.body(lanes, &all);
        if !once {
            let by = match stride {
                Src::Imm(n) => Src::Imm(n * copies),
                stride if copies == 1 => stride,
                stride => self.u64(Arith::MulLo, stride, Src::Imm(copies)).into(),
            };
            self.advance(lane, Type::U64, by);
            self.b.bra(head);
        }
        self.b.place(exit);
    }

    /// The body for some lanes, statement by statement.
    fn body(&mut self, lanes: &Lanes, all: &[Index]) {
        let info = SharedInfo::new(lanes);
        // Registers that differ between lanes, for each of them.
        let mut own: Vec<FxHashMap<Reg, Val>> =
            all.iter().map(|lane| FxHashMap::from_iter([(lanes.lane, Val::Reg(lane.1))])).collect();
        for (stmt, shared) in lanes.body.iter().zip(&info.shared) {
            self.at(stmt.span);
            let mut read = Vec::new();
            crate::control::reads(&stmt.op, &mut |reg| read.push(reg));
            let mut joined = Vec::new();
            for (own, lane) in own.iter_mut().zip(all) {
                self.lane = Some(*lane);
                for reg in &read {
                    if let Some(value) = own.get(reg) {
                        self.values[*reg] = Some(*value);
                    }
                }
                if let Op::Join { value, .. } = stmt.op {
                    joined.push(self.src(value));
                    continue;
                }
                self.lane_statement(&stmt.op);
                if *shared {
                    break;
                }
                if let Some(dst) = operands(&stmt.op).1
                    && let Some(value) = self.values[dst]
                {
                    own.insert(dst, value);
                }
            }
            if let Op::Join { op, ty, ref addr, .. } = stmt.op {
                self.join(op, ty, addr, &joined);
            }
        }
        self.lane = None;
    }

    fn lane_statement(&mut self, op: &Op) {
        match op {
            Op::Load { dst, ty, addr } => {
                let place = self.address(addr);
                let value = self.load(*ty, place);
                self.define(*dst, value);
            }
            Op::Store { ty, addr, value } => {
                let place = self.address(addr);
                let value = self.reg(*value);
                self.store(*ty, place, value, None);
            }
            Op::Fetch { .. } => {}
            // The verifier admits nothing but arithmetic beside.
            op => self.compute(op),
        }
    }

    /// Joins values of lanes, in ascending order, with the thread's partial.
    fn join(&mut self, op: BinOp, ty: MemTy, addr: &Addr, values: &[Src]) {
        let place = self.origin(addr.base, addr.offset);
        // The first of a thread's lanes has the partial's number.
        let place = match self.partial {
            Some(partial) => self.along(place, partial, Stride::Const(i64::from(ty.size()))),
            None => place,
        };
        let mut joined = self.load(ty, place);
        for value in values {
            joined = self.binary(op, ty.reg(), joined.into(), *value, None);
        }
        self.store(ty, place, joined, None);
    }

    /// The elements of a matrix of `rows * cols`, one a thread, row by row: `body` gets the element's number, row and
    /// column.
    pub(crate) fn elements(&mut self, rows: Src, cols: Src, body: &mut dyn FnMut(&mut Self, VReg, Index, Index)) {
        let (head, exit) = (self.b.label(), self.b.label());
        let rows = self.b.arith(Arith::Max, Type::S64, &[rows, Src::Imm(0)]);
        let cols = self.b.arith(Arith::Max, Type::S64, &[cols, Src::Imm(0)]);
        let total = self.u64(Arith::MulLo, rows, cols);
        let tid = self.b.cvt(Type::U64, Type::U32, Round::None, self.tid);
        let number = self.variable(LTy::I64, tid.into());
        self.b.place(head);
        let over = self.b.setp(Cmp::Ge, Type::U64, number, total);
        self.b.bra_if(over, true, exit);
        let row = self.u64(Arith::Div, number, cols);
        let before = self.u64(Arith::MulLo, row, cols);
        let col = self.u64(Arith::Sub, number, before);
        let [i, j] = [row, col].map(|n| (self.b.cvt(Type::U32, Type::U64, Round::None, n), n));
        body(self, number, i, j);
        self.advance(number, Type::U64, Src::Imm(u64::from(self.threads)));
        self.b.bra(head);
        self.b.place(exit);
    }
}

/// How many lanes a thread takes at a time: fewer of long bodies, for the sake of registers.
fn copies(lanes: &Lanes) -> u64 {
    match lanes.body.len() {
        0..=48 => 4,
        49..=120 => 2,
        _ => 1,
    }
}
