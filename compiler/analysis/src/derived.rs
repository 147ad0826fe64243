//! Dimensions that `where` defines: `where NB == ceil_div(N, B)` gives a launch the size of `NB` where no array has it.

use ptoc_elab::{Bindings, Elaborator, is_tensor};
use ptoc_ir::tile::Const;
use ptoc_isa::Target;
use ptoc_names::{ItemId, Modules};
use ptoc_syntax::ast::*;
use ptoc_values::{Binding, Val};

/// The dimensions among `open` whose values follow from those that the bindings have.
pub fn derived_dimensions(
    modules: &Modules,
    id: ItemId,
    target: &Target,
    bindings: &Bindings,
    open: &[Name],
) -> Vec<(Name, i64)> {
    let (ItemKind::Kernel(k) | ItemKind::Program(k)) = &modules.item(id).kind else { return Vec::new() };
    let mut bindings = bindings.clone();
    let mut out: Vec<(Name, i64)> = Vec::new();
    // What one defines another one may be computed from.
    loop {
        bindings.fixed = bindings.dims.clone();
        let open = open.iter().filter(|n| !bindings.dims.contains_key(*n));
        let found: Vec<(Name, i64)> =
            open.filter_map(|n| Some((n.clone(), derived(modules, id, target, &bindings, k, n)?))).collect();
        if found.is_empty() {
            return out;
        }
        bindings.dims.extend(found.iter().cloned());
        out.extend(found);
    }
}

fn derived(
    modules: &Modules,
    id: ItemId,
    target: &Target,
    bindings: &Bindings,
    k: &KernelItem,
    name: &Name,
) -> Option<i64> {
    let is_it = |e: &Expr| matches!(&*e.kind, ExprKind::Name(n) if n == name);
    let value = k.wheres.iter().find_map(|e| match &*e.kind {
        ExprKind::Binary(BinaryOp::Eq, a, b) if is_it(a) => Some(b),
        ExprKind::Binary(BinaryOp::Eq, a, b) if is_it(b) => Some(a),
        _ => None,
    })?;
    let mut e = Elaborator::new(modules, target, bindings, id);
    e.env.push_frame();
    e.kernel_statics(k).ok()?;
    e.dimensions(k);
    for p in k.params.iter().filter(|p| !is_tensor(&p.ty)) {
        let Ok(s) = e.scalar_argument(p) else { continue };
        let default = |e: &Elaborator<'_>| {
            let p = e.b.kernel().scalars.iter().find(|p| p.name == s.name)?;
            e.b.const_of(p.default?).map(|c| c.bits)
        };
        if let Some(bits) = s.given.or_else(|| default(&e)) {
            let v = e.constant(Const { ty: s.ty, bits });
            e.env.define(s.name.clone(), Binding::Let(Val::Scalar(v)), s.span);
        }
    }
    let v = e.expr(value).ok()?;
    let n = e.int_const(&v)?;
    i64::try_from(n).ok().filter(|n| *n >= 0)
}
