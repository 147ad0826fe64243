//! Tile types as PTO's C++ writes them, `Tile<TileType::Vec, float, 64, 64, BLayout::ColMajor, ..>`, and their words
//! behind a location, `Vec<f32, 64, 64, ColMajor>`: one report, which spells the declaration.

use crate::foreign::{Foreign, foreign};
use ptoc_diagnostics::{Diagnostic, Span, codes};
use ptoc_isa::{Loc, text};
use ptoc_syntax::ast::{Arg, Expr, ExprKind, UnaryOp};
use ptoc_tensor::DType;

/// What the type is here, and what of it is not said.
struct Declared {
    ty: String,
    notes: Vec<String>,
}

/// The report of `base<args>`, if it is a tile type of PTO's.
pub fn report(base: &Expr, args: &[Arg], span: Span) -> Option<Diagnostic> {
    let ExprKind::Name(name) = &*base.kind else { return None };
    let values: Vec<&Expr> = args.iter().filter(|a| a.name.is_none()).map(|a| &a.value).collect();
    let own = Loc::from_name(name);
    let (loc, rest) = match (name.as_str(), own) {
        ("TileLeft", _) => (Some(Loc::Left), &values[..]),
        ("TileRight", _) => (Some(Loc::Right), &values[..]),
        ("TileAcc", _) => (Some(Loc::Acc), &values[..]),
        ("Tile", _) => (values.first().and_then(|e| name_of(e)).and_then(Loc::from_name), values.get(1..)?),
        // Behind the extents this language has names alone.
        (_, Some(loc)) if values.len() > 3 => (Some(loc), &values[..]),
        _ => return None,
    };
    let message = match own {
        Some(_) => format!("`{name}<..>` takes a dtype, rows and columns; what else is said has a name"),
        None => format!("PTO's `{name}<..>` is spelled by its location here"),
    };
    let label = if own.is_some() { format!("{} given", values.len()) } else { "PTO's spelling".to_owned() };
    let d = Diagnostic::error(codes::BAD_TILE_TYPE, span, message).with_label(label);
    // Words of PTO's stand behind rows and columns; another extent is one too many.
    let extra = |e: &&Expr| match name_of(e) {
        Some("RowMajor" | "ColMajor" | "NoneBox" | "Zero" | "Null" | "Normal" | "Max" | "Min" | "DYNAMIC") => false,
        Some(word) => !word.starts_with("Row"),
        None => false,
    };
    if let (Some(loc), [_, _, _, more @ ..]) = (own, rest)
        && more.len() != 2
        && more.iter().all(extra)
    {
        let written = rest[1..].iter().map(|e| extent(e)).collect::<Option<Vec<_>>>().unwrap_or_default().join(", ");
        let d = Diagnostic::error(
            codes::BAD_TILE_TYPE,
            span,
            format!("a tile has rows and columns, and `{loc}<..>` is given {} extents", rest.len() - 1),
        );
        let label = if written.is_empty() { String::new() } else { format!("the extents {written}") };
        return Some(d.with_label(label).with_help(
            "walk the other modes by index, one of them at a time: `x[b, _, _].tile(i, j)` is a window of two modes; \
             or make one mode of several: `modes(x, ((0, 1), 2))`",
        ));
    }
    let declared = loc.filter(|_| values.len() == args.len()).and_then(|loc| declared(loc, rest));
    Some(match declared {
        Some(Declared { ty, notes }) => {
            let d = notes.into_iter().fold(d, Diagnostic::with_note);
            d.with_fix(format!("here it is `{ty}`"), span, ty)
        }
        None => {
            let example = format!("{}<f32, 16, 64, layout = DN, valid = (8, 64)>", loc.unwrap_or(Loc::Vec));
            d.with_help(format!("for example `{example}`, of which `layout` and `valid` may be left out"))
        }
    })
}

fn name_of(e: &Expr) -> Option<&str> {
    if let ExprKind::Name(n) = &*e.kind { Some(n) } else { None }
}

/// The arguments behind the location, in PTO's order: dtype, rows, columns, order of blocks, valid rows and columns,
/// order in a block, its size, pad, compact mode. Its aliases leave the orders out, and any list may end early.
fn declared(loc: Loc, args: &[&Expr]) -> Option<Declared> {
    let [dtype, rows, cols, rest @ ..] = args else { return None };
    let dtype = name_of(dtype)?;
    let dtype = match (DType::from_name(dtype), foreign(dtype)) {
        (Some(d), _) => d,
        (None, Some(Foreign::Is(d))) => DType::from_name(d)?,
        _ => return None,
    };
    let (rows, cols) = (extent(rows)?, extent(cols)?);
    let (mut words, mut valid) = (Vec::new(), Vec::new());
    let mut pad = None;
    for e in rest {
        match name_of(e) {
            Some(word @ ("RowMajor" | "ColMajor" | "NoneBox")) => words.push(word),
            Some("Zero") => pad = Some("Zero"),
            Some("Null" | "Normal") => {}
            Some("Max" | "Min" | "RowPlusOne" | "RowAlignedPadding") => return None,
            // The size of a block stands behind the orders.
            _ if words.len() < 2 && valid.len() < 2 => valid.push(extent(e)?),
            _ if matches!(&*e.kind, ExprKind::Int(_)) => {}
            _ => return None,
        }
    }
    let vec = loc == Loc::Vec;
    // Blocks in Vec have no spelling.
    if words.len() > 2 || vec && words.get(1).is_some_and(|w| *w != "NoneBox") {
        return None;
    }
    let mut notes = Vec::new();
    let columns = vec && words.first() == Some(&"ColMajor");
    if !vec && !words.is_empty() {
        notes.push(format!("how blocks lie in {loc} is the target's, so {} is left out", text::list(words)));
    }
    let dynamic = |v: &String| v == "DYNAMIC" || v == "-1";
    let mut ty = format!("{loc}<{dtype}, {rows}, {cols}");
    if columns {
        ty.push_str(", layout = DN");
    }
    match &valid[..] {
        all if all.iter().any(dynamic) => {
            notes.push("the valid shape of a tile follows what is written to it, as `DYNAMIC` says".to_owned());
        }
        [r, c] if (r, c) != (&rows, &cols) => ty.push_str(&format!(", valid = ({r}, {c})")),
        _ => {}
    }
    if let Some(pad) = pad {
        ty.push_str(&format!(", pad = {pad}"));
    }
    ty.push('>');
    Some(Declared { ty, notes })
}

fn extent(e: &Expr) -> Option<String> {
    match &*e.kind {
        ExprKind::Name(n) => Some(n.to_string()),
        ExprKind::Int(n) => Some(n.to_string()),
        ExprKind::Paren(e) => extent(e),
        ExprKind::Unary(UnaryOp::Neg, e) => Some(format!("-{}", extent(e)?)),
        _ => None,
    }
}
