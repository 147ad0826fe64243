//! Elements of views in `ensures` and `where`: `logical(Wq, ORDER, K)[n, k]` is an element of the tensor, found by the
//! same layouts that the kernel uses.

use super::{Math, OracleElaborator, OracleScopes};
use ptoc_diagnostics::{Span, codes};
use ptoc_elab::{ElabResult, ErrorReported, count};
use ptoc_ir::oracle::{IntExpr, IntOp};
use ptoc_ir::tile::{Elem, TensorId, Value};
use ptoc_isa::{BinOp, Oob};
use ptoc_names::builtins::Builtin;
use ptoc_syntax::ast::{Arg, Expr, ExprKind, ItemKind};
use ptoc_values::{Quantity, Val, View};

fn op(op: IntOp, a: IntExpr, b: IntExpr) -> IntExpr {
    // Identities keep the expressions as deep as they must be.
    match (op, &a, &b) {
        (IntOp::Add, IntExpr::Const(0), _) | (IntOp::Mul, IntExpr::Const(1), _) => b,
        (IntOp::Add | IntOp::Sub, _, IntExpr::Const(0)) | (IntOp::Mul | IntOp::Div, _, IntExpr::Const(1)) => a,
        (IntOp::Mul, IntExpr::Const(0), _) | (IntOp::Mul, _, IntExpr::Const(0)) => IntExpr::Const(0),
        _ => IntExpr::binary(op, a, b),
    }
}

impl OracleElaborator<'_, '_> {
    /// What is indexed: a tensor, or a view that layout functions make of one.
    pub(super) fn math_base(&mut self, base: &Expr, st: &mut OracleScopes) -> ElabResult<Math> {
        let ExprKind::Call(callee, _) = &*base.kind else { return self.math(base, st) };
        let name = match &*callee.kind {
            ExprKind::Static(b, _) => b,
            _ => callee,
        };
        let view = match &*name.kind {
            ExprKind::Name(n) if st.get(n).is_none() => match self.elab.name(n, name.span)? {
                Val::Fn(id) => {
                    let modules = self.elab.modules;
                    matches!(&modules.item(id).kind, ItemKind::Fn(f) if f.ret.as_ref().is_some_and(is_view))
                }
                Val::Builtin(b) => matches!(b, Builtin::Layout(_) | Builtin::Recast | Builtin::Gather | Builtin::Col),
                _ => false,
            },
            _ => false,
        };
        match view {
            true => {
                let v = self.elab.expr(base)?;
                self.math_of(&v, base.span)
            }
            false => self.math(base, st),
        }
    }

    /// An element of a view.
    pub(super) fn math_view(
        &mut self,
        view: &View,
        args: &[Arg],
        span: Span,
        st: &mut OracleScopes,
    ) -> ElabResult<Math> {
        if view.modes.len() != args.len() {
            let message = format!(
                "the view has {}, and {} given",
                count(view.modes.len(), "mode", "modes"),
                count(args.len(), "index is", "indices are")
            );
            return self.elab.error(codes::RANK_MISMATCH, span, message);
        }
        if view.swizzle.is_some() {
            return self.elab.not_yet(span, "swizzled views in `ensures` and `where`");
        }
        let mut at = Vec::new();
        for start in &view.starts {
            at.push(self.launch_int(*start, span)?);
        }
        for (a, mode) in args.iter().zip(&view.modes) {
            let m = self.math(&a.value, st)?;
            let mut rest = self.int(m, a.value.span)?;
            if let IntExpr::Var(v) = rest
                && !st.ranges.iter().any(|(x, _)| *x == v)
            {
                let extent = self.launch_int(mode.extent, span)?;
                st.ranges.push((v, extent));
            }
            let leaves = mode.tree.leaves();
            for (k, leaf) in leaves.iter().enumerate() {
                let extent = self.launch_int(leaf.extent, span)?;
                let here = match k + 1 == leaves.len() {
                    true => rest.clone(),
                    false => op(IntOp::Rem, rest.clone(), extent.clone()),
                };
                rest = op(IntOp::Div, rest, extent);
                for (q, by) in leaf.by.iter().enumerate() {
                    let by = self.launch_int(*by, span)?;
                    at[q] = op(IntOp::Add, at[q].clone(), op(IntOp::Mul, here.clone(), by));
                }
            }
        }
        let mut offset = at[0].clone();
        for (q, kind) in view.quantities.iter().enumerate() {
            let Quantity::Entry(table) = kind else { continue };
            if table.oob != Oob::Undefined {
                return self.elab.not_yet(span, "gathers with `oob =` in `ensures` and `where`");
            }
            let index = self.flat(table.tensor, at[q].clone(), span)?;
            let entry = IntExpr::Elem { tensor: table.tensor.as_u32() as usize, index };
            let stride = self.launch_int(table.stride, span)?;
            offset = op(IntOp::Add, offset, op(IntOp::Mul, entry, stride));
        }
        let tensor = view.tensor.as_u32() as usize;
        let own = self.elab.b.kernel().tensors[view.tensor].dtype;
        match view.elem {
            Elem::Whole(d) if d == own => Ok(Math::Elem(tensor, self.flat(view.tensor, offset, span)?)),
            Elem::Whole(_) => self.elab.not_yet(span, "`recast` to whole elements in `ensures` and `where`"),
            Elem::U4 | Elem::I4 if own.size() != 1 || !own.is_int() => {
                self.elab.not_yet(span, "half bytes of wider elements in `ensures` and `where`")
            }
            packed => {
                let two = || IntExpr::Const(2);
                let byte = self.flat(view.tensor, op(IntOp::Div, offset.clone(), two()), span)?;
                let byte = IntExpr::Elem { tensor, index: byte };
                // The high half is the byte over 16; floor division keeps the sign bits apart.
                let high = op(IntOp::Rem, offset, two());
                let weight = op(IntOp::Add, IntExpr::Const(1), op(IntOp::Mul, high, IntExpr::Const(15)));
                let half = op(IntOp::Rem, op(IntOp::Div, byte, weight), IntExpr::Const(16));
                Ok(Math::Int(match packed {
                    Elem::U4 => half,
                    _ => {
                        let up = op(IntOp::Rem, op(IntOp::Add, half, IntExpr::Const(8)), IntExpr::Const(16));
                        op(IntOp::Sub, up, IntExpr::Const(8))
                    }
                }))
            }
        }
    }

    /// The indices of element number `offset` of a row-major tensor.
    fn flat(&mut self, tensor: TensorId, offset: IntExpr, span: Span) -> ElabResult<Vec<IntExpr>> {
        if !self.elab.is_row_major(tensor) {
            return self.elab.not_yet(span, "views of tensors with a layout of their own in `ensures` and `where`");
        }
        let t = tensor.as_u32() as usize;
        let rank = self.elab.b.kernel().tensors[tensor].shape.len();
        let mut out = Vec::new();
        let mut rest = offset;
        for mode in (0..rank).rev() {
            let extent = IntExpr::Extent { tensor: t, mode };
            if mode == 0 {
                out.push(rest.clone());
                break;
            }
            out.push(op(IntOp::Rem, rest.clone(), extent.clone()));
            rest = op(IntOp::Div, rest, extent);
        }
        out.reverse();
        Ok(out)
    }

    /// A value of the prologue as the oracle computes it.
    fn launch_int(&mut self, v: Value, span: Span) -> ElabResult<IntExpr> {
        if let Some(c) = self.elab.const_index(v) {
            return Ok(IntExpr::Const(c));
        }
        let Some((operation, a, b)) = self.elab.facts.definition(v) else {
            return match self.launch_scalar(v, span)? {
                Math::Int(i) => Ok(i),
                _ => Err(ErrorReported),
            };
        };
        let int = match operation {
            BinOp::Add => IntOp::Add,
            BinOp::Sub => IntOp::Sub,
            BinOp::Mul => IntOp::Mul,
            BinOp::Div => IntOp::Div,
            BinOp::Rem => IntOp::Rem,
            BinOp::Min => IntOp::Min,
            BinOp::Max => IntOp::Max,
            _ => return self.elab.not_yet(span, "such sizes in `ensures` and `where`"),
        };
        let (a, b) = (self.launch_int(a, span)?, self.launch_int(b, span)?);
        Ok(op(int, a, b))
    }
}

/// The type `view`.
fn is_view(ty: &Expr) -> bool {
    matches!(&*ty.kind, ExprKind::Name(n) if n == "view")
}
