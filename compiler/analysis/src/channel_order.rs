//! Maps whose channels come first. TSAMPLE wants them last, and sizes alone do not tell where width and channels are
//! equal; then the names of the dimensions do.

use ptoc_diagnostics::{Diagnostic, Span, codes};
use ptoc_ir::tile::{Inst, Kernel, Op, Operand, Stmt, TensorDir};
use ptoc_isa::Sem;
use ptoc_syntax::ast::{Expr, ExprKind, KernelItem, Name};

/// Maps of TSAMPLE whose last dimension is no result's, where that of an earlier one is: `feat[b, _, _, _]` of
/// `feat: f16[B, C, H, W]`, for `y: f16[B, Q, C]`.
pub fn channels_first(item: &KernelItem, kernel: &Kernel) -> Vec<Diagnostic> {
    let results = || {
        let written = kernel.tensors.values().filter(|t| t.dir != TensorDir::In);
        written
            .filter_map(|t| item.params.iter().find(|p| p.name.name == t.name))
            .filter_map(|p| *dimensions(&p.ty)?.last()?)
    };
    let mut told: Vec<&str> = Vec::new();
    let mut out = Vec::new();
    samples(&kernel.body, &mut |inst, span| {
        let [_, Operand::View(map), _, Operand::View(weights), ..] = &inst.operands[..] else { return };
        // A view in another order has them apart; constants are one value, and so are those of weights in a line.
        if map.strides.last() != weights.strides.last() {
            return;
        }
        let name = &*kernel.tensors[map.tensor].name;
        let Some(param) = item.params.iter().find(|p| p.name.name == name) else { return };
        let Some(dims) = dimensions(&param.ty) else { return };
        let [.., first, _, Some(channels)] = &dims[..] else { return };
        let is_result = |name: &Name| results().any(|n| n == name);
        match first {
            Some(first) if is_result(first) && !is_result(channels) && !told.contains(&name) => {
                told.push(name);
                let message =
                    format!("the channels of `{name}` come first: `{first}`, and TSAMPLE has `{channels}` last");
                out.push(
                    Diagnostic::error(codes::SHAPE_MISMATCH, span, message)
                        .with_label("wants rows, columns and channels")
                        .with_secondary(param.span, format!("`{first}` before `{channels}`"))
                        .with_help(
                            "declare it in that order; or move it by a kernel of the host before (`#[on(host)]`), \
                             which is a relayout in the memory if it does nothing else",
                        ),
                );
            }
            _ => {}
        }
    });
    out
}

/// The dimensions of a tensor's type, by name.
fn dimensions(ty: &Expr) -> Option<Vec<Option<&Name>>> {
    let ExprKind::Index(_, args) = &*ty.kind else { return None };
    Some(args.iter().map(|a| name(&a.value)).collect())
}

fn name(e: &Expr) -> Option<&Name> {
    match &*e.kind {
        ExprKind::Name(name) => Some(name),
        _ => None,
    }
}

/// Calls `f` with each TSAMPLE of a region.
fn samples(region: &[Stmt], f: &mut dyn FnMut(&Inst, Span)) {
    for stmt in region {
        match &stmt.op {
            Op::Inst(inst) if inst.instr.get().sem == Sem::Sample => f(inst, stmt.span),
            op => op.regions().for_each(|r| samples(r, f)),
        }
    }
}
