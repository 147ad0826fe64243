//! Types of the text as C++ has them.

use super::{Res, unsaid};
use crate::types::{FRACTAL, Major, TileBuf, Type};
use ptoc_diagnostics::Span;
use ptoc_isa::Loc;

/// An element type, or `None` if the headers have none.
pub(super) fn element(word: &str) -> Option<&'static str> {
    Some(match word {
        "i1" => "bool",
        "i8" | "si8" => "int8_t",
        "i16" | "si16" => "int16_t",
        "i32" | "si32" => "int32_t",
        "i64" | "si64" => "int64_t",
        "ui8" => "uint8_t",
        "ui16" => "uint16_t",
        "ui32" => "uint32_t",
        "ui64" => "uint64_t",
        "f16" => "half",
        "bf16" => "bfloat16_t",
        "f32" => "float",
        "f8E4M3FN" => "float8_e4m3_t",
        "f8E5M2" => "float8_e5m2_t",
        _ => return None,
    })
}

/// The type of a number.
pub(super) fn scalar(ty: &Type, span: Span) -> Res<&'static str> {
    let known = match ty {
        Type::Index => Some("int64_t"),
        Type::Element(word) => element(word),
        _ => None,
    };
    known.map_or_else(|| unsaid(span, format!("values of type `{ty}`")), Ok)
}

/// Whether C++ has the type of an argument.
pub(super) fn scalar_or_ptr(ty: &Type, span: Span) -> Res<()> {
    match ty {
        Type::Ptr(word) if element(word).is_some() => Ok(()),
        Type::Ptr(word) => unsaid(span, format!("elements of type `{word}`")),
        ty => scalar(ty, span).map(|_| ()),
    }
}

/// A parameter that [`scalar_or_ptr`] has seen; `space` qualifies what a pointer points to.
pub(super) fn param(ty: &Type, name: &str, space: &str) -> String {
    match ty {
        Type::Ptr(word) => format!("{space}{}* {name}", element(word).unwrap_or("uint8_t")),
        Type::Element(word) => format!("{} {name}", element(word).unwrap_or("int64_t")),
        _ => format!("int64_t {name}"),
    }
}

fn major(major: Major) -> &'static str {
    match major {
        Major::Row => "RowMajor",
        Major::Col => "ColMajor",
    }
}

/// `Tile<TileType::Vec, float, 16, 64>`: what is the default is left out at the end.
pub(super) fn tile(ty: &TileBuf, span: Span) -> Res<String> {
    let loc = match ty.loc {
        Loc::Vec => "Vec",
        Loc::Mat => "Mat",
        Loc::Left => "Left",
        Loc::Right => "Right",
        Loc::Acc => "Acc",
        Loc::Bias => "Bias",
        Loc::Scaling => "Scaling",
        loc => return unsaid(span, format!("tiles in {loc}")),
    };
    let Some(element) = element(&ty.dtype) else {
        return unsaid(span, format!("tiles of `{}`", ty.dtype));
    };
    let valid = |extent: Option<i64>| extent.map_or_else(|| "-1".to_owned(), |n| n.to_string());
    let mut args = vec![
        format!("BLayout::{}", major(ty.blayout)),
        valid(ty.valid.0),
        valid(ty.valid.1),
        format!("SLayout::{}", ty.slayout.map_or("NoneBox", major)),
        ty.fractal.to_string(),
        format!("PadValue::{}", ["Null", "Zero", "Max", "Min"][ty.pad.min(3) as usize]),
        format!("CompactMode::{}", ["Null", "Normal", "RowPlusOne"][ty.compact.min(2) as usize]),
    ];
    let defaults = [
        "BLayout::RowMajor".to_owned(),
        ty.rows.to_string(),
        ty.cols.to_string(),
        "SLayout::NoneBox".to_owned(),
        FRACTAL.to_string(),
        "PadValue::Null".to_owned(),
        "CompactMode::Null".to_owned(),
    ];
    while args.last().is_some_and(|last| *last == defaults[args.len() - 1]) {
        args.pop();
    }
    let rest: String = args.iter().map(|a| format!(", {a}")).collect();
    Ok(format!("Tile<TileType::{loc}, {element}, {}, {}{rest}>", ty.rows, ty.cols))
}
