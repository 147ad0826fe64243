//! Scalar code that a pass adds to a finished kernel. The builder is gone by then; constants are looked up, or defined
//! at the start of the prologue, where everything sees them.

use cranelift_entity::PrimaryMap;
use ptoc_diagnostics::Span;
use ptoc_ir::tile::{Const, Op, Region, Stmt, Ty, Value, ValueData};
use ptoc_isa::BinOp;
use rustc_hash::FxHashMap;

/// Makes values.
pub struct Scalars<'k> {
    values: &'k mut PrimaryMap<Value, ValueData>,
    constants: FxHashMap<i64, Value>,
    /// Constants that the prologue does not have yet.
    fresh: Region,
}

impl<'k> Scalars<'k> {
    /// For a kernel with these values and this prologue.
    pub fn new(values: &'k mut PrimaryMap<Value, ValueData>, prologue: &[Stmt]) -> Scalars<'k> {
        let constant = |stmt: &Stmt| match stmt.op {
            Op::Const { dst, value } => value.as_index().map(|n| (n, dst)),
            _ => None,
        };
        // The prologue's own regions do not count: nothing outside sees their values.
        let constants = prologue.iter().rev().filter_map(constant).collect();
        Scalars { values, constants, fresh: Region::new() }
    }

    /// A value of type `ty`, to be defined by the caller.
    pub fn value(&mut self, ty: Ty, span: Span) -> Value {
        self.values.push(ValueData { ty, name: None, span })
    }

    /// The `index` constant that `value` is, if the prologue says so.
    pub fn constant(&self, value: Value) -> Option<i64> {
        self.constants.iter().find(|(_, v)| **v == value).map(|(n, _)| *n)
    }

    /// An `index` constant.
    pub fn index(&mut self, n: i64) -> Value {
        if let Some(&v) = self.constants.get(&n) {
            return v;
        }
        let dst = self.value(Ty::Index, Span::default());
        self.fresh.push(Stmt { op: Op::Const { dst, value: Const::index(n) }, span: Span::default() });
        self.constants.insert(n, dst);
        dst
    }

    /// `a op b` of `index` values, appended to `out` unless it is `a` itself.
    pub fn binary(&mut self, op: BinOp, a: Value, b: Value, span: Span, out: &mut Region) -> Value {
        let is = |v: Value, n: i64| self.constants.get(&n) == Some(&v);
        match op {
            BinOp::Add | BinOp::Sub if is(b, 0) => return a,
            BinOp::Add if is(a, 0) => return b,
            BinOp::Mul if is(b, 1) => return a,
            _ => {}
        }
        let dst = self.value(Ty::Index, span);
        out.push(Stmt { op: Op::Binary { dst, op, a, b }, span });
        dst
    }

    /// Puts the new constants into the prologue.
    pub fn finish(self, prologue: &mut Region) {
        prologue.splice(0..0, self.fresh);
    }
}
