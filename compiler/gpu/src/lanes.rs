//! `Lanes`: a lane is a thread's, and where there are more, every so many.

use crate::emit::{Emit, Val};
use crate::memory::Index;
use crate::touched;
use ptoc_ir::loops::{LTy, Lanes, MemTy, Op, PARTIALS, Stmt, Stride};
use ptoc_ptx::{Arith, Cmp, Round, Src, Type};

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

    /// A thread's lanes: from `first` on, every so many.
    pub(crate) fn lane_loop(&mut self, lanes: &Lanes, first: Index, count: Src, stride: Src) {
        let (head, exit) = (self.b.label(), self.b.label());
        let lane = self.variable(LTy::I64, first.1.into());
        let once = matches!((count, stride), (Src::Imm(n), Src::Imm(m)) if n as i64 <= m as i64);
        if !once {
            self.b.place(head);
        }
        let over = self.b.setp(Cmp::Ge, Type::S64, lane, count);
        self.b.bra_if(over, true, exit);
        let small = self.b.cvt(Type::U32, Type::U64, Round::None, lane);
        self.lane = Some((small, lane));
        self.partial = Some(first);
        self.values[lanes.lane] = Some(Val::Reg(lane));
        for stmt in &lanes.body {
            self.lane_statement(stmt);
        }
        self.lane = None;
        if !once {
            self.advance(lane, Type::U64, stride);
            self.b.bra(head);
        }
        self.b.place(exit);
    }

    fn lane_statement(&mut self, stmt: &Stmt) {
        self.at(stmt.span);
        match &stmt.op {
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
            Op::Join { op, ty, addr, value } => {
                let size = i64::from(ty.size());
                let place = self.origin(addr.base, addr.offset);
                // The first of a thread's lanes has the partial's number.
                let place = match self.partial {
                    Some(partial) => self.along(place, partial, Stride::Const(size)),
                    None => place,
                };
                let old = self.load(*ty, place);
                let value = self.src(*value);
                let new = self.binary(*op, MemTy::reg(*ty), old.into(), value, None);
                self.store(*ty, place, new, None);
            }
            Op::Fetch { .. } => {}
            // The verifier admits nothing but arithmetic beside.
            op => self.compute(op),
        }
    }

    /// The elements of a matrix of `rows * cols`, one a thread, row by row: `body` gets the element's number, row and
    /// column.
    pub(crate) fn elements(
        &mut self,
        rows: Src,
        cols: Src,
        body: &mut dyn FnMut(&mut Self, ptoc_ptx::VReg, Index, Index),
    ) {
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
