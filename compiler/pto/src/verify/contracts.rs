//! What PTOAS's verifier asks of single operations, also of those that have no counterpart in the language: a text that
//! breaks it is wrong, and not merely unread. Rules of one target are those of the language's instructions.

use super::{Res, err};
use crate::attr::AttrValue;
use crate::ops::Form;
use crate::tree::{Function, Op, Region};
use crate::types::{Extent, Major, TileBuf, Type};
use ptoc_diagnostics::{Diagnostic, Span, codes};
use ptoc_isa::{Loc, Sem};

pub(super) fn check(op: &Op, types: &[Option<Type>]) -> Res<()> {
    match op.row.name {
        "pto.tput_async" | "pto.tget_async" => async_transfer(op, types),
        "pto.tget_scale_addr" => scale_address(op, types),
        "pto.textract" => extract(op, types),
        "pto.tquant" => quantized(op, types),
        "pto.tpop_from_aic" | "pto.tpop_from_aiv" => popped(op),
        "pto.tgetval" => element(op, types, "src", op.result_types.first().map(|t| &t.ty)),
        "pto.load_scalar" => element(op, types, "ptr", op.result_types.first().map(|t| &t.ty)),
        "pto.tsetval" => element(op, types, "dst", type_in(op, types, "val")),
        "pto.store_scalar" => element(op, types, "ptr", type_in(op, types, "value")),
        _ => element_wise(op, types),
    }
}

/// The place of an operand, or else of the operation.
fn place(op: &Op, slot: &str) -> Span {
    op.operand(slot).map_or(op.span, |o| o.value.span)
}

/// The type of the operand in a slot, as far as it is known.
pub(super) fn type_in<'t>(op: &Op, types: &'t [Option<Type>], slot: &str) -> Option<&'t Type> {
    let at = op.operands.iter().position(|o| o.slot == slot)?;
    types.get(at)?.as_ref()
}

/// The tile in a slot.
pub(super) fn tile<'t>(op: &Op, types: &'t [Option<Type>], slot: &str) -> Option<&'t TileBuf> {
    match type_in(op, types, slot)? {
        Type::TileBuf(tile) => Some(tile),
        _ => None,
    }
}

/// Two extents that are known and differ.
pub(super) fn differ(a: Extent, b: Extent) -> bool {
    a.zip(b).is_some_and(|(a, b)| a != b)
}

fn pair((rows, cols): (Extent, Extent)) -> String {
    let text = |e: Extent| e.map_or("?".to_string(), |n| n.to_string());
    format!("{}x{}", text(rows), text(cols))
}

/// What is moved between devices lies one behind the other, and its number is known.
fn async_transfer(op: &Op, types: &[Option<Type>]) -> Res<()> {
    let mut sides = Vec::new();
    for slot in ["dst", "src"] {
        let Some(ty) = type_in(op, types, slot) else { continue };
        let (extents, element) = match ty {
            Type::TensorView(extents, element) | Type::PartitionView(extents, element) => {
                (extents.clone(), element.clone())
            }
            other => match other.memref() {
                Some((extents, element, "gm")) => (extents.into_iter().map(Some).collect(), element),
                _ => return err(codes::PTO_TYPE, place(op, slot), format!("`{slot}` is a view of global memory")),
            },
        };
        let rows = extents.split_last().map_or(&[][..], |(_, rows)| rows);
        if extents.iter().any(Option::is_none) || rows.iter().any(|n| *n != Some(1)) {
            let message = format!("`{slot}` of `{}` is one row of a known length, and this is a `{ty}`", op.row.name);
            return err(codes::PTO_TYPE, place(op, slot), message);
        }
        sides.push((extents, element, ty));
    }
    match &sides[..] {
        [dst, src] if (&dst.0, &dst.1) != (&src.0, &src.1) => {
            let message = format!("`dst` is a `{}`, and `src` a `{}`", dst.2, src.2);
            err(codes::PTO_TYPE, op.span, message)
        }
        _ => Ok(()),
    }
}

/// A number that is read from a tile or an array, or written to it, is of the elements' type. Integers of `arith` have
/// no sign, so that of an element does not count.
fn element(op: &Op, types: &[Option<Type>], of: &str, number: Option<&Type>) -> Res<()> {
    let (Some(holder), Some(number)) = (type_in(op, types, of), number) else { return Ok(()) };
    let Some(own) = holder.memref().map(|m| m.1).or_else(|| holder.element().cloned()) else { return Ok(()) };
    let signless = |e: &str| e.trim_start_matches(['u', 's']).to_owned();
    let fine = matches!(number, Type::Element(e) if *e == own || signless(e) == signless(&own));
    if fine {
        return Ok(());
    }
    let message = format!("the elements are `{own}`, and the number of `{}` is {}", op.row.name, number.with_article());
    err(codes::PTO_TYPE, op.span, message)
}

/// The scales of an operand are in Scaling, as many as it has elements.
fn scale_address(op: &Op, types: &[Option<Type>]) -> Res<()> {
    let Some(dst) = tile(op, types, "dst") else { return Ok(()) };
    if dst.loc != Loc::Scaling {
        let message = format!("`dst` of `{}` is in `scaling`, and this is a `{}`", op.row.name, ty(dst));
        return err(codes::PTO_TYPE, place(op, "dst"), message);
    }
    match tile(op, types, "src") {
        Some(src) if (src.rows, src.cols) != (dst.rows, dst.cols) => {
            let message = format!("`src` is {}x{}, and `dst` {}x{}", src.rows, src.cols, dst.rows, dst.cols);
            err(codes::PTO_TYPE, op.span, message)
        }
        _ => Ok(()),
    }
}

fn ty(tile: &TileBuf) -> Type {
    Type::TileBuf(Box::new(tile.clone()))
}

/// Between two Vec tiles elements are cut out of rows that have no boxes.
fn extract(op: &Op, types: &[Option<Type>]) -> Res<()> {
    let (Some(src), Some(dst)) = (tile(op, types, "src"), tile(op, types, "dst")) else { return Ok(()) };
    if (src.loc, dst.loc) != (Loc::Vec, Loc::Vec) {
        return Ok(());
    }
    for (slot, tile) in [("src", src), ("dst", dst)] {
        if tile.blayout != Major::Row || tile.slayout.is_some() {
            let message = format!("`{slot}` of `pto.textract` from Vec to Vec is row-major and has no boxes");
            let d = Diagnostic::error(codes::PTO_TYPE, place(op, slot), message);
            return Err(Box::new(d.with_label(format!("this is a `{}`", ty(tile)))));
        }
    }
    Ok(())
}

/// `INT8_SYM` gives signed bytes, `INT8_ASYM` unsigned ones and takes an offset.
fn quantized(op: &Op, types: &[Option<Type>]) -> Res<()> {
    let asymmetric = match op.attr("quant_type").and_then(|a| a.value.as_ref()).and_then(AttrValue::word) {
        Some("INT8_SYM") => false,
        Some("INT8_ASYM") => true,
        _ => return err(codes::PTO_TYPE, op.span, "`pto.tquant` says with `quant_type` what it makes of its source"),
    };
    let mode = if asymmetric { "INT8_ASYM" } else { "INT8_SYM" };
    match op.operand("offset") {
        None if asymmetric => return err(codes::PTO_TYPE, op.span, "`INT8_ASYM` asks for an operand `offset`"),
        Some(offset) if !asymmetric => {
            return err(codes::PTO_TYPE, offset.value.span, "`INT8_SYM` takes no `offset`");
        }
        _ => {}
    }
    let element = type_in(op, types, "dst").and_then(|ty| match ty.memref() {
        Some((_, element, _)) => Some(element),
        None => ty.element().cloned(),
    });
    let (wanted, words) = if asymmetric { ("ui8", &["ui8"][..]) } else { ("i8", &["i8", "si8"][..]) };
    match element.filter(|e| !words.contains(&e.as_str())) {
        Some(e) => {
            err(codes::PTO_TYPE, place(op, "dst"), format!("`{mode}` gives elements of `{wanted}`, and not of `{e}`"))
        }
        None => Ok(()),
    }
}

/// Numbers of valid rows and columns stand for what is `?` in the type.
fn popped(op: &Op) -> Res<()> {
    let (row, col) = (op.operand("valid_row"), op.operand("valid_col"));
    let (Some(row), Some(_)) = (row, col) else {
        return match row.or(col) {
            Some(one) => err(codes::PTO_TYPE, one.value.span, "valid rows and columns are given together"),
            None => Ok(()),
        };
    };
    match op.result_types.first().map(|t| (&t.ty, t.span)) {
        Some((Type::TileBuf(tile), _)) if tile.valid == (None, None) => Ok(()),
        Some((found, span)) => {
            let message = format!("`{}` is given what is valid, and the type does not say `?x?`", op.row.name);
            let d = Diagnostic::error(codes::PTO_TYPE, span, message).with_label(format!("this is a `{found}`"));
            Err(Box::new(d.with_secondary(row.value.span, "given here")))
        }
        None => Ok(()),
    }
}

/// Element by element: what is valid in the destination is what is valid in the sources, where the types say it.
fn element_wise(op: &Op, types: &[Option<Type>]) -> Res<()> {
    let (Some(instr), Form::Dps(dps)) = (op.row.instr, &op.row.form) else { return Ok(()) };
    let by_elements =
        matches!(instr.get().sem, Sem::Map(_) | Sem::Binary(_) | Sem::BinaryScalar(_) | Sem::Unary(_) | Sem::Convert);
    // Of a row or a column that is spread out another part is valid, and so of a mask and of what scales rows.
    if !by_elements
        || ["expand", "tcmp", "dequant"].iter().any(|part| op.row.name.contains(part))
        || op.values.is_some()
    {
        return Ok(());
    }
    let Some(dst) = tile(op, types, "dst") else { return Ok(()) };
    for slot in dps.ins.iter().map(|s| s.name).filter(|s| !["tmp", "mask"].contains(s)) {
        let Some(src) = tile(op, types, slot) else { continue };
        if differ(src.valid.0, dst.valid.0) || differ(src.valid.1, dst.valid.1) {
            let (own, other) = (pair(src.valid), pair(dst.valid));
            let message = format!("{own} of `{slot}` are valid, and {other} of `dst`");
            let d = Diagnostic::error(codes::PTO_TYPE, place(op, slot), message);
            return Err(Box::new(d.with_secondary(place(op, "dst"), "the destination")));
        }
    }
    Ok(())
}

/// What the operations of pipes between cores ask of the function that they are in, and of the one at the other end.
pub(super) fn pipes(f: &Function, peers: &dyn Fn(&str) -> Option<Vec<String>>) -> Res<()> {
    let Some(body) = &f.body else { return Ok(()) };
    let kind = f.attrs.iter().find(|a| a.name == "pto.kernel_kind").and_then(|a| a.value.as_ref()?.word());
    all_ops(body, &mut |op| pipe_op(op, kind, peers))
}

/// All operations of a block, also those in blocks of it.
fn all_ops<'o>(region: &'o Region, f: &mut dyn FnMut(&'o Op) -> Res<()>) -> Res<()> {
    for op in &region.ops {
        f(op)?;
        for inner in &op.regions {
            all_ops(inner, f)?;
        }
    }
    Ok(())
}

fn pipe_op(op: &Op, kind: Option<&str>, peers: &dyn Fn(&str) -> Option<Vec<String>>) -> Res<()> {
    let wanted = match op.row.name {
        "pto.aic_initialize_pipe" | "pto.tpush_to_aiv" | "pto.tpop_from_aiv" | "pto.tfree_from_aiv" => Some("cube"),
        "pto.aiv_initialize_pipe" | "pto.tpush_to_aic" | "pto.tpop_from_aic" | "pto.tfree_from_aic" => Some("vector"),
        _ => None,
    };
    // A function that does not say for which core it is may stand in a module that does.
    if let Some(wanted) = wanted.filter(|w| kind.is_some_and(|kind| kind != *w)) {
        let d = Diagnostic::error(
            codes::PTO_TYPE,
            op.name_span,
            format!("`{}` stands in a function for the {wanted} core", op.row.name),
        );
        return Err(Box::new(d.with_help(format!("say `pto.kernel_kind = #pto.kernel_kind<{wanted}>`"))));
    }
    let int = |name: &str| op.attr(name).and_then(|a| Some((a.value.as_ref()?.int()?, a.span)));
    let most = |name: &str, fine: fn(i128) -> bool, what: &str| match int(name) {
        Some((n, span)) if !fine(n) => err(codes::PTO_TYPE, span, format!("`{name}` is {what}, and this is {n}")),
        _ => Ok(()),
    };
    most("split", |n| (0..=2).contains(&n), "0, 1 or 2")?;
    most("dir_mask", |n| (1..=3).contains(&n), "1, 2 or 3")?;
    most("slot_size", |n| n > 0, "greater than 0")?;
    most("slot_num", |n| n == 4 || n == 8, "4 or 8")?;
    match op.row.name {
        "pto.reserve_buffer" => reserved(op),
        "pto.import_reserved_buffer" => imported(op, peers),
        _ => Ok(()),
    }
}

fn reserved(op: &Op) -> Res<()> {
    let value = |name: &str| op.attr(name).and_then(|a| Some((a.value.as_ref()?, a.span)));
    if let Some((size, span)) = value("size").filter(|(n, _)| n.int().is_some_and(|n| n <= 0)) {
        return err(codes::PTO_TYPE, span, format!("`size` is greater than 0, and this is {size}"));
    }
    if let Some((location, span)) =
        value("location").filter(|(l, _)| l.word().is_some_and(|w| !["vec", "mat"].contains(&w)))
    {
        return err(codes::PTO_TYPE, span, format!("`location` is `vec` or `mat`, and this is `{location}`"));
    }
    let automatic = value("autoAlloc").is_some_and(|(v, _)| *v == AttrValue::Bool(true));
    match value("base") {
        None if !automatic => err(codes::PTO_TYPE, op.span, "`auto` is false, and `base` is not given"),
        Some((base, span)) if base.int().is_some_and(|n| n < 0) => {
            err(codes::PTO_TYPE, span, format!("`base` is not negative, and this is {base}"))
        }
        _ => Ok(()),
    }
}

fn imported(op: &Op, peers: &dyn Fn(&str) -> Option<Vec<String>>) -> Res<()> {
    let (Some(name), Some(peer)) = (op.attr("name"), op.attr("peer_func")) else { return Ok(()) };
    let (Some(AttrValue::Str(wanted)), Some(AttrValue::Symbol(function))) = (&name.value, &peer.value) else {
        return Ok(());
    };
    match peers(function) {
        None => err(codes::PTO_VALUE, peer.span, format!("there is no function `@{function}`")),
        Some(buffers) if !buffers.iter().any(|b| b == wanted.as_str()) => {
            err(codes::PTO_VALUE, name.span, format!("`@{function}` reserves no buffer {wanted}"))
        }
        _ => Ok(()),
    }
}

/// The names of the buffers that a function reserves, as they are written.
pub(super) fn reserves(f: &Function) -> Vec<String> {
    let mut names = Vec::new();
    if let Some(body) = &f.body {
        let _ = all_ops(body, &mut |op| {
            if op.row.name == "pto.reserve_buffer"
                && let Some(AttrValue::Str(name)) = op.attr("name").and_then(|a| a.value.as_ref())
            {
                names.push(name.to_string());
            }
            Ok(())
        });
    }
    names
}
