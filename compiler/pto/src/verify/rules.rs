//! Rules of single operations that the language has no words for: shapes of views, forms of types.

use super::Functions;
use super::{Res, err, same};
use crate::attr::AttrValue;
use crate::lexer::Word;
use crate::ops::{Form, Kind};
use crate::tree::{Op, Operand};
use crate::types::{Extent, Major, TileBuf, Type, dtype_of};
use crate::words::{ENUMERATIONS, enumeration};
use ptoc_diagnostics::{Diagnostic, codes, list, suggest};
use rustc_hash::FxHashMap;

pub(super) fn check(
    op: &Op,
    types: &[Option<Type>],
    functions: &Functions<'_>,
    constants: &FxHashMap<Word, i128>,
) -> Res<()> {
    attributes(op)?;
    enumerations(op)?;
    values(op)?;
    levels(op, types)?;
    kinds(op, types)?;
    match op.row.name {
        "pto.make_tensor_view" => make_tensor_view(op, types),
        "pto.partition_view" => partition_view(op, constants),
        "pto.alloc_tile" => alloc_tile(op, types),
        "pto.tload" | "pto.tstore" => transfer(op, types),
        "pto.addptr" => match (&types[0], op.result_types.first()) {
            (Some(ptr @ Type::Ptr(_)), Some(result)) if same(ptr, &result.ty) => Ok(()),
            _ => err(codes::PTO_TYPE, op.span, "`pto.addptr` gives a pointer of the type that it is given"),
        },
        "pto.tassign" => tassign(op, types, constants),
        "func.call" => call(op, functions),
        "pto.subset" => {
            part(op, types, constants)?;
            boxed_part(op, types, constants)
        }
        "pto.subview" => part(op, types, constants),
        "pto.set_validshape" => valid_shape(op, types, constants),
        "scf.if" | "scf.condition" => condition(op, types),
        "scf.for" => bounds(op, types),
        name if name.starts_with("arith.") => super::numbers::check(op, types),
        _ => Ok(()),
    }
}

/// The values that attributes of instructions have: words of an enumeration, a condition, or a whole number.
const VALUES: [(&str, &str); 21] = [
    ("layout", "layout"),
    ("pad_mode", "padmode"),
    ("stPhase", "st_phase"),
    ("atomicType", "atomic_type"),
    ("reluPreMode", "relu_pre_mode"),
    ("accToVecMode", "acc_to_vec_mode"),
    ("gatherOob", "gather_oob"),
    ("scatterAtomicOp", "scatter_atomic_op"),
    ("scatterOob", "scatter_oob"),
    ("cmpMode", "cmp"),
    ("rmode", "round_mode"),
    ("sat_mode", "saturation_mode"),
    ("satmode", "saturation_mode"),
    ("maskPattern", "mask_pattern"),
    ("quant_type", "quant_type"),
    ("init_out_buffer", "true or false"),
    ("isMSB", "true or false"),
    ("descending", "true or false"),
    ("isBinary", "true or false"),
    ("exhausted", "true or false"),
    ("upperOrLower", "0 (lower) or 1 (upper)"),
];

/// An attribute of an instruction has a value of the kind that its definition says.
fn values(op: &Op) -> Res<()> {
    if !matches!(op.row.form, Form::Dps(_)) {
        return Ok(());
    }
    for attr in &op.attrs {
        let Some((_, kind)) = VALUES.iter().find(|(name, _)| *name == attr.name.as_str()) else { continue };
        let fine = match (&attr.value, *kind) {
            (Some(AttrValue::Int(n, _)), "0 (lower) or 1 (upper)") => matches!(n, 0 | 1),
            (Some(AttrValue::Bool(_)), "true or false") => true,
            (Some(AttrValue::Enum(_, of, word)), kind) => {
                of.as_str() == kind
                    || of.is_empty() && enumeration(kind).is_some_and(|e| e.words.contains(&word.as_str()))
            }
            _ => false,
        };
        if fine {
            continue;
        }
        let (what, help) = match enumeration(kind) {
            Some(e) => (
                format!("a word of `{kind}`"),
                format!("write `{} = #pto<{kind} {}>`", attr.name, e.words.last().copied().unwrap_or_default()),
            ),
            None => (
                (*kind).to_owned(),
                format!("write `{} = {}`", attr.name, if kind.starts_with('t') { "true" } else { "1" }),
            ),
        };
        let d = Diagnostic::error(codes::PTO_TYPE, attr.span, format!("`{}` is {what}", attr.name));
        return Err(Box::new(d.with_help(help)));
    }
    Ok(())
}

/// Operands of type `index`, of operations that are not in destination-passing style.
const INDICES: [(&str, &[&str]); 9] = [
    ("pto.tgetval", &["offset"]),
    ("pto.load_scalar", &["offset"]),
    ("pto.store_scalar", &["offset"]),
    ("pto.addptr", &["offset"]),
    ("pto.subset", &["offsets"]),
    ("pto.partition_view", &["offsets", "sizes"]),
    ("pto.make_tensor_view", &["shape", "strides"]),
    ("pto.alloc_tile", &["valid_row", "valid_col"]),
    ("pto.set_validshape", &["valid_row", "valid_col"]),
];

/// Operands that are integers, also those with a sign in their type.
const WHOLE: [&str; 3] = ["S", "diagonal", "blockLen"];

fn is_integer(ty: &Type) -> bool {
    ty.element().and_then(|e| dtype_of(e)).is_some_and(|d| !d.is_float())
}

/// A number stands where a number is asked for, and an `index` where that is.
fn kinds(op: &Op, types: &[Option<Type>]) -> Res<()> {
    let kind = |slot: &str| match &op.row.form {
        Form::Dps(dps) => dps.ins.iter().find(|s| s.name == slot).map(|s| s.kind),
        _ => {
            let (_, slots) = INDICES.iter().find(|(name, _)| *name == op.row.name)?;
            slots.contains(&slot).then_some(Kind::Index)
        }
    };
    for (operand, ty) in op.operands.iter().zip(types) {
        let Some(ty) = ty else { continue };
        let (fine, what) = match kind(operand.slot) {
            Some(Kind::Scalar) if WHOLE.contains(&operand.slot) => (is_integer(ty), "an integer"),
            Some(Kind::Scalar) => match ty {
                Type::Element(word) if word.starts_with(['s', 'u']) => (false, "an integer without a sign or a float"),
                ty => (matches!(ty, Type::Element(_)), "an integer or a float"),
            },
            Some(Kind::Index) => (*ty == Type::Index, "an `index`"),
            _ => continue,
        };
        if !fine {
            let message =
                format!("`{}` of `{}` is {what}, and this is {}", operand.slot, op.row.name, ty.with_article());
            return err(codes::PTO_TYPE, operand.value.span, message);
        }
    }
    Ok(())
}

/// A part lies in its tile, as far as the numbers are constants.
fn part(op: &Op, types: &[Option<Type>], constants: &FxHashMap<Word, i128>) -> Res<()> {
    let Some(Some(Type::TileBuf(tile))) = types.first() else { return Ok(()) };
    let Some(AttrValue::Array(sizes)) = op.attr("sizes").and_then(|a| a.value.as_ref()) else { return Ok(()) };
    for ((offset, size), (what, has)) in
        op.operands_of("offsets").zip(sizes).zip([("rows", tile.rows), ("columns", tile.cols)])
    {
        let Some(size) = size.int() else { continue };
        if size < 1 || size > i128::from(has) {
            return err(codes::PTO_TYPE, op.span, format!("a part has 1 to {has} {what} of this tile, and not {size}"));
        }
        let Some(at) = constants.get(&offset.value.name) else { continue };
        if *at < 0 || at.saturating_add(size) > i128::from(has) {
            let message = format!("{size} {what} from {at} on are not in a tile of {has}");
            return err(codes::PTO_TYPE, offset.value.span, message);
        }
    }
    Ok(())
}

/// Rows and columns of a box, if the tile has any: `computeInnerShape` of PTOAS.
fn box_of(tile: &TileBuf) -> Option<(i64, i64)> {
    let line = 32 / i64::try_from(dtype_of(&tile.dtype)?.size()).ok()?;
    match (tile.slayout?, tile.fractal) {
        (_, 1024) => Some((16, 16)),
        (_, 32) => Some((16, 2)),
        (Major::Row, _) => Some((16, line)),
        (Major::Col, _) => Some((line, 16)),
    }
}

/// A part of a tile of boxes is whole boxes, and whole columns of them, or rows where these are what is contiguous.
fn boxed_part(op: &Op, types: &[Option<Type>], constants: &FxHashMap<Word, i128>) -> Res<()> {
    let Some(Some(Type::TileBuf(tile))) = types.first() else { return Ok(()) };
    let (Some(inner), [Some(rows), Some(cols)]) = (box_of(tile), &op.sizes()[..]) else { return Ok(()) };
    let refused = |span, message: String| {
        let note = format!("its boxes are {}x{}", inner.0, inner.1);
        Err(Box::new(Diagnostic::error(codes::PTO_TYPE, span, message).with_note(note)))
    };
    if rows % inner.0 != 0 || cols % inner.1 != 0 {
        return refused(op.span, format!("a part of a tile of boxes is whole boxes, and this is {rows}x{cols}"));
    }
    for (k, (offset, (step, what))) in
        op.operands_of("offsets").zip([(inner.0, "row"), (inner.1, "column")]).enumerate()
    {
        let at = constants.get(&offset.value.name).copied();
        if let Some(at) = at.filter(|at| at % i128::from(step) != 0) {
            return refused(
                offset.value.span,
                format!("a part of a tile of boxes begins at a box, and not {what} {at}"),
            );
        }
        // What lies one behind the other is rows of boxes, or columns of them.
        let whole = if tile.blayout == Major::Row { 1 } else { 0 };
        let (size, has) = if k == 0 { (*rows, tile.rows) } else { (*cols, tile.cols) };
        if k == whole && (size != has || at != Some(0)) {
            let message =
                format!("a part of this tile has all its {has} {what}s: its boxes follow each other along them");
            return refused(op.span, message);
        }
    }
    Ok(())
}

/// The bounds and the step of a loop have the type of its number.
fn bounds(op: &Op, types: &[Option<Type>]) -> Res<()> {
    let number = op.regions.first().and_then(|r| r.args.first()).and_then(|a| a.ty.as_ref());
    let wanted = number.map_or(Type::Index, |t| t.ty.clone());
    for (operand, ty) in op.operands.iter().zip(types).filter(|(o, _)| o.slot != "inits") {
        if let Some(ty) = ty.as_ref().filter(|ty| !same(ty, &wanted)) {
            let message =
                format!("the number of this loop is of type `{wanted}`, and `%{}` of `{ty}`", operand.value.name);
            let d = Diagnostic::error(codes::PTO_TYPE, operand.value.span, message);
            return Err(Box::new(
                d.with_help("make it one with `arith.index_cast`, or say the type behind the bounds"),
            ));
        }
    }
    Ok(())
}

/// What is valid is changed where the type says `?x?`, to no more than the tile has.
fn valid_shape(op: &Op, types: &[Option<Type>], constants: &FxHashMap<Word, i128>) -> Res<()> {
    let Some(Some(Type::TileBuf(tile))) = types.first() else { return Ok(()) };
    if tile.valid != (None, None) {
        let message = "what is valid of a tile is changed where its type says `valid=?x?`";
        return err(codes::PTO_TYPE, op.operands[0].value.span, message);
    }
    for (slot, what, has) in [("valid_row", "rows", tile.rows), ("valid_col", "columns", tile.cols)] {
        let Some(operand) = op.operand(slot) else { continue };
        if let Some(n) = constants.get(&operand.value.name).filter(|n| **n < 0 || **n > i128::from(has)) {
            let message = format!("{n} {what} cannot be valid of a tile that has {has}");
            return err(codes::PTO_TYPE, operand.value.span, message);
        }
    }
    Ok(())
}

/// What a branch or a loop asks for is of type `i1`.
fn condition(op: &Op, types: &[Option<Type>]) -> Res<()> {
    match (types.first(), op.operands.first()) {
        (Some(Some(ty)), Some(operand)) if !super::numbers::is_condition(ty) => err(
            codes::PTO_TYPE,
            operand.value.span,
            format!("a condition is an `i1`, and this is {}", ty.with_article()),
        ),
        _ => Ok(()),
    }
}

/// A buffer is bound to an integer, a view to a pointer with its elements.
fn tassign(op: &Op, types: &[Option<Type>], constants: &FxHashMap<Word, i128>) -> Res<()> {
    let (Some(Some(bound)), Some(Some(to)), Some(operand)) = (types.first(), types.get(1), op.operand("addr")) else {
        return Ok(());
    };
    let refused = |message: String, help: &str| {
        let d = Diagnostic::error(codes::PTO_TASSIGN, operand.value.span, message);
        Err(Box::new(d.with_help(help)))
    };
    let name = &operand.value.name;
    let integer = matches!(to, Type::Index)
        || matches!(to, Type::Element(word) if dtype_of(word).is_some_and(|d| d.is_int() && d.size() > 1));
    match (bound, to) {
        (Type::TensorView(_, own) | Type::PartitionView(_, own), Type::Ptr(other)) if own != other => refused(
            format!("a view of `{own}` is bound to a pointer, `%{name}`, whose elements are `{other}`"),
            "bind it to a pointer with elements of its own type",
        ),
        (Type::TensorView(..) | Type::PartitionView(..), Type::Ptr(_)) => Ok(()),
        (Type::TensorView(..) | Type::PartitionView(..), _) if integer && constants.contains_key(name) => refused(
            format!("a view of global memory is bound to a pointer, and `%{name}` is a constant"),
            "only a tile has a constant address: bind the view to an argument of type `!pto.ptr`",
        ),
        (Type::TensorView(..) | Type::PartitionView(..), _) if integer => refused(
            format!("a view of global memory is bound to a pointer, and `%{name}` is a number"),
            "where an array is the launch knows: bind the view to an argument of type `!pto.ptr`",
        ),
        (Type::TensorView(..) | Type::PartitionView(..), to) => refused(
            format!("a view of global memory is bound to a pointer, and `%{name}` is {}", to.with_article()),
            "bind it to one",
        ),
        (_, Type::Ptr(_)) => refused(
            format!("a tile is bound to a byte offset in its memory, and `%{name}` is a pointer into global memory"),
            "load what it points to: `pto.tload`",
        ),
        _ if integer => Ok(()),
        (_, to) => refused(
            format!(
                "a tile is bound to a byte offset in its memory, an integer, and `%{name}` is {}",
                to.with_article()
            ),
            "give the offset as an `i64`",
        ),
    }
}

/// A word of an enumeration is one that it has. Without a name any of them may be meant.
fn enumerations(op: &Op) -> Res<()> {
    for attr in &op.attrs {
        let Some(AttrValue::Enum(_, of, word)) = &attr.value else { continue };
        let known: Vec<&str> = match enumeration(of) {
            Some(enumeration) => enumeration.words.clone(),
            None if of.is_empty() => ENUMERATIONS.iter().flat_map(|e| e.words.iter().copied()).collect(),
            None => return err(codes::PTO_UNKNOWN, attr.span, format!("the dialect has no attribute `#pto.{of}`")),
        };
        if known.contains(&word.as_str()) {
            continue;
        }
        let d = Diagnostic::error(codes::PTO_UNKNOWN, attr.span, format!("`{word}` is no word of `{}`", attr.name));
        return Err(Box::new(match suggest(word, known.iter().copied()) {
            Some(near) => d.with_help(format!("did you mean `{near}`?")),
            None if of.is_empty() => d,
            None => d.with_note(format!("it has {}", list(known.iter().copied()))),
        }));
    }
    Ok(())
}

/// An operation in destination-passing style has no other attributes than those of its definition.
fn attributes(op: &Op) -> Res<()> {
    let Form::Dps(dps) = &op.row.form else { return Ok(()) };
    for attr in &op.attrs {
        // PTOAS keeps what stands in another dialect's name space.
        if dps.attrs.contains(&attr.name.as_str()) || attr.name.contains('.') {
            continue;
        }
        let message = format!("`{}` has no attribute `{}`", op.row.name, attr.name);
        let mut d = Diagnostic::error(codes::PTO_UNKNOWN, attr.span, message);
        d = match suggest(&attr.name, dps.attrs.iter().copied()) {
            Some(near) => d.with_help(format!("did you mean `{near}`?")),
            None if dps.attrs.is_empty() => d.with_note("it has none"),
            None => d.with_note(format!("it has {}", list(dps.attrs.iter().copied()))),
        };
        return Err(Box::new(d));
    }
    Ok(())
}

/// Buffers are operands of buffers' operations, and not of values'.
fn levels(op: &Op, types: &[Option<Type>]) -> Res<()> {
    const NOTE: &str = "`!pto.tile` is a value (level 1), `!pto.tile_buf` a buffer (levels 2 and 3)";
    if !matches!(op.row.form, Form::Dps(_)) {
        return Ok(());
    }
    if op.values.is_some() {
        let results = op.result_types.iter().map(|t| (t.span, Some(&t.ty)));
        let operands = op.operands.iter().map(|o| o.value.span).zip(types.iter().map(Option::as_ref));
        for (span, ty) in operands.chain(results) {
            if let Some(Type::TileBuf(_)) = ty {
                let message =
                    format!("`{}` without `ins` and `outs` is about values, and this is a buffer", op.row.name);
                return Err(Box::new(Diagnostic::error(codes::PTO_TYPE, span, message).with_note(NOTE)));
            }
        }
        if op.result_types.is_empty() && !op.results.is_empty() {
            let message = format!("the type of what `{}` gives is not said", op.row.name);
            let d = Diagnostic::error(codes::PTO_TYPE, op.span, message);
            return Err(Box::new(d.with_help("write it behind `->`")));
        }
        return Ok(());
    }
    for (operand, ty) in op.operands.iter().zip(types) {
        if let Some(Type::Tile(..)) = ty {
            let message = format!("`{}` with `ins` and `outs` is about buffers, and this is a value", op.row.name);
            let d = Diagnostic::error(codes::PTO_TYPE, operand.value.span, message);
            return Err(Box::new(d.with_note(NOTE)));
        }
    }
    Ok(())
}

fn make_tensor_view(op: &Op, types: &[Option<Type>]) -> Res<()> {
    let Some(Type::TensorView(extents, element)) = op.result_types.first().map(|t| &t.ty) else {
        return err(codes::PTO_TYPE, op.span, "`pto.make_tensor_view` gives a `!pto.tensor_view`");
    };
    for slot in ["shape", "strides"] {
        let given = op.operands_of(slot).count();
        if given != extents.len() {
            let message = format!("the view has {} modes, and {given} numbers in `{slot}`", extents.len());
            return err(codes::PTO_TYPE, op.span, message);
        }
    }
    match types.first() {
        Some(Some(Type::Ptr(of))) if of == element => Ok(()),
        Some(Some(Type::Ptr(of))) => {
            let message = format!("a view of `{element}` is made of a pointer to `{of}`");
            let d = Diagnostic::error(codes::PTO_TYPE, op.operands[0].value.span, message);
            Err(Box::new(d.with_help(format!("bind it to a `!pto.ptr<{element}>`"))))
        }
        Some(Some(Type::Index | Type::Element(_))) => {
            err(codes::PTO_TYPE, op.operands[0].value.span, "a view is made of a pointer, and this is a number")
        }
        _ => Ok(()),
    }
}

fn partition_view(op: &Op, constants: &FxHashMap<Word, i128>) -> Res<()> {
    let said = op.result_types.first().map(|t| &t.ty);
    let (Some(Type::TensorView(of, from)), None | Some(Type::PartitionView(..))) =
        (op.operands[0].ty.as_ref().map(|t| &t.ty), said)
    else {
        let message = "`pto.partition_view` makes a `!pto.partition_tensor_view` of a `!pto.tensor_view`";
        return err(codes::PTO_TYPE, op.span, message);
    };
    for slot in ["offsets", "sizes"] {
        let given = op.operands_of(slot).count();
        if given != of.len() {
            let message = format!("the view has {} modes, and {given} numbers in `{slot}`", of.len());
            return err(codes::PTO_TYPE, op.span, message);
        }
    }
    for (mode, ((offset, size), of)) in op.operands_of("offsets").zip(op.operands_of("sizes")).zip(of).enumerate() {
        let number = |o: &Operand| constants.get(&o.value.name).copied();
        let (at, Some(n), Some(has)) = (number(offset).unwrap_or(0).max(0), number(size), of) else { continue };
        if at.saturating_add(n) > i128::from(*has) {
            let message = format!("mode {mode} of the part has {n} elements from {at} on, and that of its view {has}");
            return err(codes::PTO_TYPE, size.value.span, message);
        }
    }
    let Some(Type::PartitionView(extents, to)) = said else { return Ok(()) };
    if from != to {
        return err(codes::PTO_TYPE, op.span, format!("a part of a view of `{from}` has no elements of `{to}`"));
    }
    if extents.len() > of.len() {
        return err(codes::PTO_TYPE, op.span, "a part has no more modes than its view");
    }
    Ok(())
}

/// Operands of `alloc_tile` stand for what is `?` in the type, and for nothing else.
fn alloc_tile(op: &Op, types: &[Option<Type>]) -> Res<()> {
    let Some(Type::TileBuf(tile)) = op.result_types.first().map(|t| &t.ty) else {
        return err(codes::PTO_TYPE, op.span, "`pto.alloc_tile` gives a `!pto.tile_buf`");
    };
    if let (Some(operand), Some(ty)) = (op.operand("addr"), super::contracts::type_in(op, types, "addr"))
        && *ty != Type::Element(Word::new_static("i64"))
    {
        let message = format!("the address of a tile is an `i64`, and this is of type `{ty}`");
        return err(codes::PTO_TYPE, operand.value.span, message);
    }
    shape(op, tile)?;
    for (slot, extent) in [("valid_row", tile.valid.0), ("valid_col", tile.valid.1)] {
        match (op.operand(slot), extent) {
            (Some(operand), Some(n)) => {
                let message = format!("`{slot}` is given, and the type has {n} for it");
                let d = Diagnostic::error(codes::PTO_TYPE, operand.value.span, message);
                return Err(Box::new(d.with_help(format!("write `?` in the type, or leave `{slot}` out"))));
            }
            (None, None) => {
                let message = format!("the type has `?` for what is valid, and `{slot}` is not given");
                return err(codes::PTO_TYPE, op.span, message);
            }
            _ => {}
        }
    }
    Ok(())
}

fn shape(op: &Op, tile: &TileBuf) -> Res<()> {
    for (what, valid, capacity) in [("rows", tile.valid.0, tile.rows), ("columns", tile.valid.1, tile.cols)] {
        if let Some(valid) = valid.filter(|v| *v > capacity) {
            let message = format!("{valid} {what} are valid, and the tile has {capacity}");
            return err(codes::PTO_TYPE, op.span, message);
        }
    }
    Ok(())
}

/// What is loaded or stored has as many elements as the tile's valid part, where both are known.
fn transfer(op: &Op, types: &[Option<Type>]) -> Res<()> {
    let (mut view, mut tile) = (None, None);
    for ty in types.iter().flatten() {
        match ty {
            Type::PartitionView(extents, _) => view = Some(extents),
            Type::TileBuf(t) => tile = Some(t.valid),
            Type::Tile(t) => tile = pair(&t.extents),
            _ => {}
        }
    }
    if let Some(Type::Tile(t)) = op.result_types.first().map(|t| &t.ty) {
        tile = pair(&t.extents);
    }
    let (Some(view), Some(tile)) = (view, tile) else { return Ok(()) };
    let (Some(elements), Some(rows), Some(cols)) = (product(view), tile.0, tile.1) else { return Ok(()) };
    if elements != rows.checked_mul(cols) {
        let extents: Vec<String> = view.iter().map(|e| e.unwrap_or_default().to_string()).collect();
        let message = format!("the view is {}, and {rows}x{cols} of the tile are valid", extents.join("x"));
        return err(codes::PTO_TYPE, op.span, message);
    }
    Ok(())
}

fn pair(extents: &[Extent]) -> Option<(Extent, Extent)> {
    match extents {
        [rows, cols] => Some((*rows, *cols)),
        _ => None,
    }
}

/// `Some(None)` if it is too large.
fn product(extents: &[Extent]) -> Option<Option<i64>> {
    let all: Option<Vec<i64>> = extents.iter().copied().collect();
    Some(all?.into_iter().try_fold(1i64, i64::checked_mul))
}

fn call(op: &Op, functions: &Functions<'_>) -> Res<()> {
    let Some(AttrValue::Symbol(callee)) = op.attr("callee").and_then(|a| a.value.as_ref()) else { return Ok(()) };
    if let Some(f) = functions.get(callee.as_str()) {
        let params: Vec<&Type> = f.params.iter().filter_map(|p| p.ty.as_ref()).map(|t| &t.ty).collect();
        let given: Vec<&Type> = op.operands.iter().filter_map(|o| o.ty.as_ref()).map(|t| &t.ty).collect();
        let results: Vec<&Type> = f.results.iter().map(|t| &t.ty).collect();
        let taken: Vec<&Type> = op.result_types.iter().map(|t| &t.ty).collect();
        for (what, own, said) in [("arguments", params, given), ("results", results, taken)] {
            if own.len() != said.len() || own.iter().zip(&said).any(|(a, b)| !same(a, b)) {
                let message = format!("the types of `@{callee}`'s {what} are others");
                let d = Diagnostic::error(codes::PTO_TYPE, op.span, message);
                let own = own.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
                let d = d.with_note(format!("they are ({own})"));
                return Err(Box::new(d.with_secondary(f.name_span, "defined here")));
            }
        }
        return Ok(());
    }
    let message = format!("there is no function `@{callee}`");
    let mut d = Diagnostic::error(codes::PTO_VALUE, op.span, message);
    if let Some(near) = near(callee, functions) {
        d = d.with_help(format!("did you mean `@{near}`?"));
    }
    Err(Box::new(d))
}

/// The function whose name is like this one, unless there are so many that looking at all takes long.
fn near<'f>(name: &str, functions: &Functions<'f>) -> Option<&'f str> {
    const MOST: usize = 1000;
    suggest(name, functions.keys().take(MOST).copied())
}
