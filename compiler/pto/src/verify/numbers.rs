//! Rules of MLIR's `arith`: types of both sides, ranges of constants, widths of conversions.

use super::{Res, err, same};
use crate::attr::AttrValue;
use crate::tree::Op;
use crate::types::{Type, dtype_of};
use ptoc_diagnostics::{Diagnostic, codes, list};

pub(super) fn check(op: &Op, types: &[Option<Type>]) -> Res<()> {
    match op.row.name {
        "arith.constant" => constant(op),
        "arith.select" => select(op, types),
        "arith.cmpi" | "arith.cmpf" => predicate(op).and_then(|()| two_sides(op, types)),
        _ if op.operand("in").is_some() && !op.result_types.is_empty() => conversion(op, types),
        _ => two_sides(op, types),
    }
}

/// Whether it is the type of conditions.
pub(super) fn is_condition(ty: &Type) -> bool {
    matches!(ty, Type::Element(e) if e.as_str() == "i1")
}

fn is_float(ty: &Type) -> bool {
    matches!(ty, Type::Element(e) if e.contains('f'))
}

/// Bits of an integer, of `index` too.
fn width(ty: &Type) -> Option<u32> {
    match ty {
        Type::Index => Some(64),
        Type::Element(e) => e.trim_start_matches(['u', 's']).strip_prefix('i')?.parse().ok(),
        _ => None,
    }
}

/// A constant is a number of its type. Without a sign in the type its bits may be those of either.
fn constant(op: &Op) -> Res<()> {
    let Some(attr) = op.attr("value") else { return Ok(()) };
    match &attr.value {
        Some(AttrValue::Int(n, Some(ty))) => {
            let Some(bits) = width(ty).filter(|bits| (1..=64).contains(bits)) else { return Ok(()) };
            let signed = *ty == Type::Index || matches!(ty, Type::Element(e) if e.starts_with('s'));
            let unsigned = matches!(ty, Type::Element(e) if e.starts_with('u'));
            let low = if unsigned { 0 } else { -(1i128 << (bits - 1)) };
            let high = (1i128 << if signed { bits - 1 } else { bits }) - 1;
            if (low..=high).contains(n) {
                return Ok(());
            }
            err(codes::PTO_TYPE, attr.span, format!("`{ty}` has numbers from {low} to {high}, and {n} is none"))
        }
        Some(AttrValue::Float(word, Some(ty))) => {
            if !is_float(ty) {
                return err(codes::PTO_TYPE, attr.span, format!("`{word}` is no number of type `{ty}`"));
            }
            let whole = word.trim_start_matches('-');
            if whole.bytes().all(|b| b.is_ascii_digit()) {
                let d = Diagnostic::error(codes::PTO_TYPE, attr.span, format!("a number of type `{ty}` has a point"));
                return Err(Box::new(d.with_help(format!("write `{word}.0 : {ty}`"))));
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

fn select(op: &Op, types: &[Option<Type>]) -> Res<()> {
    if let (Some(Some(ty)), Some(operand)) = (types.first(), op.operands.first())
        && !is_condition(ty)
    {
        let message = format!("a condition is an `i1`, and this is {}", ty.with_article());
        return err(codes::PTO_TYPE, operand.value.span, message);
    }
    Ok(())
}

/// The comparison is one of its operation's.
fn predicate(op: &Op) -> Res<()> {
    const INTEGERS: [&str; 10] = ["eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"];
    const FLOATS: [&str; 16] = [
        "false", "oeq", "ogt", "oge", "olt", "ole", "one", "ord", "ueq", "ugt", "uge", "ult", "ule", "une", "uno",
        "true",
    ];
    let Some(attr) = op.attr("predicate") else { return Ok(()) };
    let word = match &attr.value {
        Some(AttrValue::Other(word)) => word.as_str(),
        Some(AttrValue::Bool(b)) => ["false", "true"][usize::from(*b)],
        _ => return Ok(()),
    };
    let known = if op.row.name == "arith.cmpi" { &INTEGERS[..] } else { &FLOATS[..] };
    if known.contains(&word) {
        return Ok(());
    }
    let d = Diagnostic::error(codes::PTO_UNKNOWN, attr.span, format!("`{}` has no comparison `{word}`", op.row.name));
    Err(Box::new(d.with_note(format!("it has {}", list(known.iter().copied())))))
}

/// A conversion goes to a wider type, a narrower one, or the other kind, as its name says.
fn conversion(op: &Op, types: &[Option<Type>]) -> Res<()> {
    let (Some(Some(from)), Some(to)) = (types.first(), op.result_types.first().map(|t| &t.ty)) else { return Ok(()) };
    let bits = |ty: &Type| match is_float(ty) {
        true => match ty {
            Type::Element(e) => {
                dtype_of(e).map(|d| 8 * d.size() as u32).or_else(|| (e.as_str() == "f64").then_some(64))
            }
            _ => None,
        },
        false => width(ty),
    };
    let integer = |ty: &Type| matches!(ty, Type::Element(_)) && width(ty).is_some();
    let (Some(a), Some(b)) = (bits(from), bits(to)) else { return Ok(()) };
    let (fine, what) = match op.row.name {
        "arith.extsi" | "arith.extui" => (integer(from) && integer(to) && b > a, "an integer to a wider one"),
        "arith.trunci" => (integer(from) && integer(to) && b < a, "an integer to a narrower one"),
        "arith.extf" => (is_float(from) && is_float(to) && b > a, "a float to a wider one"),
        "arith.truncf" => (is_float(from) && is_float(to) && b < a, "a float to a narrower one"),
        "arith.sitofp" | "arith.uitofp" => (integer(from) && is_float(to), "an integer to a float"),
        "arith.fptosi" | "arith.fptoui" => (is_float(from) && integer(to), "a float to an integer"),
        "arith.index_cast" | "arith.index_castui" => {
            let index = |ty: &Type| *ty == Type::Index;
            (index(from) && integer(to) || integer(from) && index(to), "between `index` and an integer")
        }
        "arith.bitcast" => (a == b && !matches!((from, to), (Type::Index, _) | (_, Type::Index)), "to as many bits"),
        _ => (true, ""),
    };
    match fine {
        true => Ok(()),
        false => {
            let name = op.row.name;
            err(codes::PTO_TYPE, op.span, format!("`{name}` converts {what}, and this is `{from}` to `{to}`"))
        }
    }
}

/// Both sides have one type, and the operation is about it.
fn two_sides(op: &Op, types: &[Option<Type>]) -> Res<()> {
    let (Some(a), Some(b)) = (op.operand("lhs"), op.operand("rhs")) else { return Ok(()) };
    let [Some(ta), Some(tb)] = types else { return Ok(()) };
    let said = a.ty.as_ref().map(|t| &t.ty);
    for (operand, ty) in [(a, ta), (b, tb)] {
        if let Some(said) = said.filter(|said| !same(said, ty)) {
            let message =
                format!("`%{}` is {}, and `{}` is of `{said}`", operand.value.name, ty.with_article(), op.row.name);
            return err(codes::PTO_TYPE, operand.value.span, message);
        }
    }
    let of_floats = op.row.name.ends_with('f');
    if of_floats != is_float(ta) {
        let kind = if of_floats { "floats" } else { "integers" };
        return err(
            codes::PTO_TYPE,
            op.span,
            format!("`{}` is of {kind}, and this is {}", op.row.name, ta.with_article()),
        );
    }
    Ok(())
}
