//! Instances: kernels with their static parameters fixed. A kernel is elaborated until no dimension that sizes a tile
//! is open.

use crate::channel_order::channels_first;
use crate::oracle::OracleElaborator;
use crate::retyped::propose;
use ptoc_diagnostics::{Diagnostic, Span, codes};
use ptoc_elab::{Bindings, ElabResult, ElaborationOutcome, Elaborator, ErrorReported, ScalarArg, TensorArg, on_host};
use ptoc_ir::oracle::{Clause, Condition};
use ptoc_ir::tile::{Builder, Kernel, TensorDir};
use ptoc_isa::Target;
use ptoc_names::{ItemId, Modules};
use ptoc_syntax::ast::*;
use ptoc_values::debug::DebugInfo;
use ptoc_values::lengths;

/// A kernel with its static parameters fixed, ready for the passes.
#[derive(Clone, Debug)]
pub struct Instance {
    /// Tile IR.
    pub kernel: Kernel,
    /// Tensor arguments in order.
    pub tensors: Vec<TensorArg>,
    /// Scalar arguments in order.
    pub scalars: Vec<ScalarArg>,
    /// Static parameters and their values, for messages.
    pub statics: Vec<(Name, String)>,
    /// Dimensions that were needed as constants: the instance is for these values only.
    pub fixed: Vec<(Name, i64)>,
    /// `ensures`.
    pub ensures: Vec<Clause>,
    /// `where` conditions over the contents of tensors.
    pub conditions: Vec<Condition>,
    /// What the source's names stand for.
    pub debug: DebugInfo,
}

/// Elaborates the kernel `id` for `target`. Dimensions that size tiles are made constants: those are found as they are
/// met, so the walk is repeated until no new one appears.
pub fn instantiate(
    modules: &Modules,
    id: ItemId,
    target: &Target,
    bindings: &Bindings,
) -> ElaborationOutcome<Instance> {
    let mut bindings = bindings.clone();
    let on_host = on_host(modules.item(id), target);
    let whole = target;
    let host = on_host.then(|| target.host());
    let target = host.as_ref().unwrap_or(target);
    loop {
        let mut e = Elaborator::new(modules, target, &bindings, id);
        e.b.kernel_mut().host = on_host;
        let instance = kernel(&mut e, id);
        let new: Vec<(Name, i64)> =
            e.specialised.iter().filter(|(n, _)| !bindings.fixed.contains_key(n)).cloned().collect();
        if new.is_empty() {
            e.explain(instance.is_err());
            let waits = std::mem::take(&mut e.waits);
            let mut diagnostics = std::mem::take(&mut e.diags);
            // Placement needs a whole kernel, and a store of a few registers is too small for a tile without it.
            if target.has_banks() && (instance.is_err() || !waits.is_empty()) {
                let kernel = instance.as_ref().map_or(e.b.kernel(), |i| &i.kernel);
                diagnostics.extend(too_large(kernel, target));
            }
            if let (Ok(instance), ItemKind::Kernel(k)) = (&instance, &modules.item(id).kind) {
                diagnostics.extend(channels_first(k, &instance.kernel));
            }
            let errors = diagnostics.iter().any(Diagnostic::is_error);
            if !e.absent_places.is_empty() && bindings.retyped.is_empty() && !whole.has_units() {
                let trial = |instead| {
                    let bindings = Bindings { retyped: instead, ..bindings.clone() };
                    instantiate(modules, id, whole, &bindings).diagnostics
                };
                propose(whole, &e.absent_places, &mut diagnostics, trial);
            }
            if !errors && !waits.is_empty() {
                diagnostics.push(waiting(&modules.item(id).kind, &waits, e.unbounded, target));
            }
            let instance = if errors || !waits.is_empty() { None } else { instance.ok() };
            let waits = waits.into_iter().map(|w| w.0).collect();
            return ElaborationOutcome { result: instance, diagnostics, waits, names: std::mem::take(&mut e.names) };
        }
        for (n, v) in new {
            bindings.fixed.insert(n, v);
        }
    }
}

/// Tiles of the author's that are larger than their memory.
fn too_large(kernel: &Kernel, target: &Target) -> Vec<Diagnostic> {
    let tiles = kernel.tiles.values().filter(|t| !t.hidden);
    tiles
        .filter_map(|t| Some(ptoc_isa::check_size(target, t.ty)?.diagnostic(&format!("tile `{}`", t.name), t.span)))
        .collect()
}

fn waiting(item: &ItemKind, waits: &[(Name, Span)], unbounded: Option<Span>, target: &Target) -> Diagnostic {
    let name = match item {
        ItemKind::Kernel(k) | ItemKind::Program(k) => k.name.name.clone(),
        _ => "?".into(),
    };
    let list = waits.iter().map(|w| format!("`{}`", w.0)).collect::<Vec<_>>().join(", ");
    let defs = waits.iter().map(|w| format!("-D {}=..", w.0)).collect::<Vec<_>>().join(" ");
    let d = Diagnostic::note(
        codes::DEPENDS_ON_DIMENSION,
        waits[0].1,
        format!(
            "`{name}` was not checked beyond here: {} {list}",
            if target.has_banks() { "where data and blocks are depends on" } else { "tile sizes depend on" }
        ),
    )
    .with_label("needs a number")
    .with_help(format!("give it: `{defs}`"));
    match unbounded {
        Some(at) if at == waits[0].1 => d.with_help(format!("or {}", lengths::SAY_THE_MOST)),
        _ => d,
    }
}

/// Elaborates a kernel with the dimensions that are known. Each part is checked whether or not those before it are in
/// order: what they define is poisoned.
fn kernel(e: &mut Elaborator<'_>, id: ItemId) -> ElabResult<Instance> {
    let modules = e.modules;
    let item = modules.item(id);
    let ItemKind::Kernel(k) = &item.kind else { return Err(ErrorReported) };
    e.begin_kernel(item.span, k);
    let statics = e.kernel_statics(k);
    let (mut tensors, scalars, arguments) = e.arguments(k);
    let attributes = e.attributes(&item.attrs, &tensors);
    let conditions = wheres(e, k);
    let places = e.argument_places(k);
    let ensures = OracleElaborator::new(e).ensures(k, &tensors);
    let body = e.kernel_body(&k.body);
    e.finish_kernel();
    let (statics, conditions, ensures) = (statics?, conditions?, ensures?);
    arguments.and(attributes).and(places).and(body)?;
    tensors.retain(|t| t.dir != TensorDir::Scratch);
    let fixed: Vec<(Name, i64)> = e.bindings.fixed.iter().map(|(n, v)| (n.clone(), *v)).collect();
    let b = std::mem::replace(&mut e.b, Builder::new("", Span::default(), ""));
    let (mut kernel, trail) = b.finish_with_trail();
    ptoc_ir::analysis::ranges::settle(&mut kernel);
    let debug = DebugInfo::new(e.env.take_entered(), trail);
    Ok(Instance { kernel, tensors, scalars, statics, fixed, ensures, conditions, debug })
}

/// `where`: on dimensions and scalars it is checked at launch (and believed); on contents it is an oracle's.
pub(crate) fn wheres(e: &mut Elaborator<'_>, k: &KernelItem) -> ElabResult<Vec<Condition>> {
    let mut conditions = Vec::new();
    let mut failed = false;
    for condition in &k.wheres {
        match has_index(condition) {
            true => match OracleElaborator::new(e).condition(condition) {
                Ok(c) => conditions.push(c),
                Err(_) => failed = true,
            },
            false => failed |= e.where_condition(condition).is_err(),
        }
    }
    e.where_failed = failed;
    if failed { Err(ErrorReported) } else { Ok(conditions) }
}

/// Whether an element of a tensor is read.
pub(crate) fn has_index(e: &Expr) -> bool {
    match &*e.kind {
        ExprKind::Index(..) => true,
        ExprKind::Paren(a) | ExprKind::Unary(_, a) | ExprKind::Field(a, _) => has_index(a),
        ExprKind::Binary(_, a, b) => has_index(a) || has_index(b),
        ExprKind::Call(_, args) => args.iter().any(|a| has_index(&a.value)),
        _ => false,
    }
}
