//! Arguments that fit: tiles by location and dtype of the operand, windows where a window stands, names of parameters,
//! modes.

use super::{Proposal, Rank, kinds, proposal};
use crate::context::Context;
use crate::cursor::{Call, Cursor, Static};
use ptoc_analysis::{Fact, TileFact};
use ptoc_isa::{DTypeRule, Instr, OperandKind, OperandSpec, Pipe, Role};
use ptoc_names::index::Definition;
use ptoc_syntax::ast::{Dir, ItemKind, StaticKind};
use ptoc_tensor::DType;

/// What a call wants at the cursor.
pub fn arguments(context: Context<'_>, cursor: &Cursor<'_>, call: &Call) -> Vec<Proposal> {
    let index = &context.loaded().index;
    let visible = index.visible(context.file(), cursor.word.start as u32);
    let own = visible.iter().find(|d| d.name == call.name.as_str() && d.kind.is_item());
    if let Some(item) = own {
        return parameters(context, item, call);
    }
    if ptoc_names::SyncFn::from_name(&call.name).is_some() && !call.method {
        return Pipe::ALL.iter().map(|p| Proposal::new(p.name(), kinds::ENUM_MEMBER, Rank::Named, "a pipe")).collect();
    }
    let Some(instr) = ptoc_isa::lookup(&call.name).map(|id| id.get()).filter(|_| !call.method && !call.statics) else {
        return Vec::new();
    };
    let Some(operand) = instr.written().get(call.index) else { return modes(instr) };
    let mut found = Vec::new();
    let wanted = dtypes(context, &visible, instr, call);
    for d in &visible {
        let mut p = proposal(context, d);
        p.rank = match fits(context, d, instr, operand, &wanted) {
            Some(true) => Rank::Fits,
            Some(false) => Rank::Unfit,
            None => continue,
        };
        found.push(p);
    }
    if call.index >= instr.written().len() - instr.optional {
        found.extend(modes(instr));
    }
    found
}

/// Words that may be said beside the operands.
fn modes(instr: &Instr) -> Vec<Proposal> {
    let words = instr.modes.iter().flat_map(|m| m.words.iter().map(move |w| (w, m.doc)));
    words.map(|(word, doc)| Proposal::new(*word, kinds::ENUM_MEMBER, Rank::Named, doc)).collect()
}

/// `name =` for the parameters of an item that are not given yet.
fn parameters(context: Context<'_>, item: &Definition, call: &Call) -> Vec<Proposal> {
    let Some(found) = context.item(item.span) else { return Vec::new() };
    let (statics, params) = match &found.kind {
        ItemKind::Kernel(k) | ItemKind::Program(k) => (&k.statics, &k.params),
        ItemKind::Fn(f) => (&f.statics, &f.params),
        _ => return Vec::new(),
    };
    let names: Vec<&str> = match call.statics {
        true => statics.iter().map(|p| p.name.name.as_str()).collect(),
        false => params.iter().map(|p| p.name.name.as_str()).collect(),
    };
    // Behind `name =` stands a value.
    let wanted = names.into_iter().filter(|_| call.named.is_none());
    wanted
        .map(|name| Proposal {
            insert: Some(format!("{name} = ")),
            ..Proposal::new(format!("{name} ="), kinds::PROPERTY, Rank::Named, format!("parameter of {}", item.name))
        })
        .collect()
}

/// What a static argument of an own item is: `k<act = |>`, or by its place.
pub fn parameter(context: Context<'_>, cursor: &Cursor<'_>) -> Option<Static> {
    let call = cursor.call().filter(|c| c.statics && !c.nested)?;
    let visible = context.loaded().index.visible(context.file(), cursor.word.start as u32);
    let item = visible.iter().find(|d| d.name == call.name.as_str() && d.kind.is_item())?;
    let statics = match &context.item(item.span)?.kind {
        ItemKind::Kernel(k) | ItemKind::Program(k) => &k.statics,
        ItemKind::Fn(f) => &f.statics,
        _ => return None,
    };
    // Where no name is written, names of parameters are proposed, too.
    let wanted = statics.iter().find(|p| Some(p.name.name.as_str()) == call.named.as_deref())?;
    Some(match wanted.kind {
        StaticKind::Const { .. } => Static::Constant,
        StaticKind::Type { .. } => Static::DType,
        StaticKind::Fn { .. } => Static::Function,
    })
}

/// Dtypes that the operand may have: those of the operands before it, or what the target admits.
fn dtypes(context: Context<'_>, visible: &[&Definition], instr: &Instr, call: &Call) -> Option<Vec<DType>> {
    if instr.dtypes == DTypeRule::Same {
        let given = call.names.iter().flatten().filter_map(|name| {
            let d = visible.iter().find(|d| d.name == name.as_str())?;
            tile(context, d).map(|t| t.ty.dtype)
        });
        if let Some(dtype) = given.into_iter().next() {
            return Some(vec![dtype]);
        }
    }
    match instr.dtypes {
        DTypeRule::Same => ptoc_isa::allowed_dtypes(context.target(), instr),
        _ => None,
    }
}

fn tile<'a>(context: Context<'a>, d: &Definition) -> Option<&'a TileFact> {
    context.facts(d.span).find_map(|f| if let Fact::Tile(t) = f { Some(t) } else { None })
}

/// Whether it fits the operand. Nothing for what is something else altogether.
fn fits(
    context: Context<'_>,
    d: &Definition,
    instr: &Instr,
    operand: &OperandSpec,
    dtypes: &Option<Vec<DType>>,
) -> Option<bool> {
    let fact = context.facts(d.span).next();
    let admitted = |dtype: &DType| dtypes.as_ref().is_none_or(|all| all.contains(dtype));
    Some(match (operand.kind, fact?) {
        (OperandKind::Tile(_), Fact::Tile(t)) => {
            let mask = matches!(instr.dtypes, DTypeRule::Mask);
            operand.takes(t.ty.loc) && (admitted(&t.ty.dtype) || mask)
        }
        (OperandKind::View, Fact::Tensor(..)) => {
            let written = operand.role == Role::Dst;
            direction(context, d).is_none_or(|dir| if written { dir != Dir::In } else { dir != Dir::Out })
        }
        (OperandKind::Scalar(_) | OperandKind::Address, Fact::Scalar(_) | Fact::Constant(_)) => true,
        (_, Fact::Tile(_) | Fact::Tensor(..)) => false,
        _ => return None,
    })
}

/// Of a tensor argument.
fn direction(context: Context<'_>, d: &Definition) -> Option<Dir> {
    let items = &context.loaded().unit.modules.root().ast.items;
    items.iter().find_map(|item| match &item.kind {
        ItemKind::Kernel(k) | ItemKind::Program(k) => {
            k.params.iter().find(|p| p.name.span == d.span)?.dir.map(|(dir, _)| dir)
        }
        _ => None,
    })
}
