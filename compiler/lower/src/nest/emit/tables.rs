//! Entries of tables, looked up where their axes are known.

use super::{Body, LevelState, NestEmitter};
use crate::code::FunctionBuilder;
use crate::nest::Lookup;
use ptoc_ir::loops::{Addr, BinOp, Cast, CmpOp, LTy, Op, Reg, Stride};
use ptoc_isa::Oob;

impl NestEmitter<'_> {
    /// The entries of this level's tables, from number `first` on.
    pub(super) fn look_up(&mut self, l: usize, first: usize, mut state: LevelState, body: Body<'_>) {
        let wanted = |n: &usize| self.lookups[*n] == l && !state.missing[self.tables[*n].side];
        let Some(n) = (first..self.tables.len()).find(wanted) else {
            return self.settled(l, state, body);
        };
        let (table, code) = (&self.tables[n], &mut *self.code);
        let at = state.at[table.at];
        let offset = code.times(at, i64::from(table.ty.size()));
        let entry = code.load(table.ty, Addr { base: table.base, offset, stride: Stride::Const(0), gather: None });
        let entry = match code.ty(entry) {
            LTy::I64 => entry,
            _ => code.cast(if table.unsigned { Cast::Zext } else { Cast::Sext }, entry, LTy::I64),
        };
        let zero = code.int(0);
        if let Some(check) = table.no_entries {
            let some = code.cmp(CmpOp::Lt, zero, table.extent);
            failing(code, table, check, some, (entry, at));
        }
        if let Some(check) = table.outside {
            let inside = code.cmp(CmpOp::LtU, entry, table.extent);
            failing(code, table, check, inside, (entry, at));
        }
        let inside = match table.oob {
            Oob::Undefined | Oob::Zero => entry,
            Oob::Clamp => {
                let last = code.plus(table.extent, -1);
                let low = code.bin(if table.unsigned { BinOp::MinU } else { BinOp::Min }, entry, last);
                code.bin(BinOp::Max, low, zero)
            }
            Oob::Wrap => code.bin(if table.unsigned { BinOp::RemU } else { BinOp::RemFloor }, entry, table.extent),
        };
        let step = code.bin(BinOp::Mul, inside, table.stride);
        let form = self.sides[table.side].at;
        if table.oob != Oob::Zero {
            state.at[form] = code.add(state.at[form], step);
            return self.look_up(l, n + 1, state, body);
        }
        let cond = code.cmp(CmpOp::LtU, entry, table.extent);
        code.push();
        let mut moved = state.clone();
        moved.at[form] = code.add(state.at[form], step);
        self.look_up(l, n + 1, moved, body);
        let then = self.code.pop();
        self.code.push();
        if self.zeros {
            state.missing[table.side] = true;
            self.look_up(l, n + 1, state, body);
        } else {
            self.fill_level(l, state);
        }
        let els = self.code.pop();
        self.conditional(cond, then, els);
    }
}

/// Ends the launch unless `holds`. What the message needs is only computed then.
fn failing(code: &mut FunctionBuilder, table: &Lookup, check: u32, holds: Reg, (entry, at): (Reg, Reg)) {
    code.either(
        holds,
        |_| {},
        |code| {
            let mut args = vec![entry, table.extent];
            match table.inner[..] {
                [cols] => args.extend([code.bin(BinOp::DivFloor, at, cols), code.bin(BinOp::RemFloor, at, cols)]),
                _ => args.push(at),
            }
            code.emit(Op::Check { cond: holds, check, args });
        },
    );
}
