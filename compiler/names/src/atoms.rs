//! Atoms: the matrix instructions that a program declares, as values. One with the field `N`, a list of extents, is a
//! family: an atom for each, in whose fields `N` is the extent.

use crate::layout_codes;
use ptoc_diagnostics::{Diagnostic, FileId, Span, codes, suggest};
use ptoc_layout::{
    ATOM_FIELDS, AtomFamily, ErrorKind, Int, IntTuple, Layout, LayoutError, MmaAtom, Stride, Tuple, Value,
};
use ptoc_syntax::ast::{AtomItem, BinaryOp, Expr, ExprKind, Ident, ItemKind, UnaryOp};
use ptoc_tensor::DType;
use std::sync::{Arc, OnceLock};

/// A dtype that matrix instructions have and tiles have not.
const ONLY_IN_ATOMS: &[&str] = &["f64"];

/// How fields are written, in the order of [`ATOM_FIELDS`].
pub const EXAMPLES: [&str; 6] = [
    "shape = (16, 8, 16);",
    "types = (f32, f16, f16, f32);",
    "thr = 32:1;",
    "A = ((4, 8), (2, 2, 2)):((32, 1), (16, 8, 128));",
    "B = ((4, 8), (2, 2)):((16, 1), (8, 64));",
    "C = ((4, 8), (2, 2)):((32, 1), (16, 8));",
];

/// The field that makes a family, and what stands for its extent in the other fields.
const EXTENTS: &str = "N";

/// A family may have this many atoms.
const MOST_EXTENTS: usize = 1024;

/// Evaluates a declaration: a [`Value::Atom`] or a [`Value::Family`]. The faults are one for each mistake; none, if all
/// that is wrong was reported by the parser.
pub fn atom(item: &AtomItem) -> Result<Value, Vec<Diagnostic>> {
    let (value, fields) = read(item)?;
    // Of a family the ends; each other atom is looked at when it is tiled.
    let atoms: Vec<&MmaAtom> = match &value {
        Value::Atom(atom) => vec![atom],
        Value::Family(family) => {
            family.atoms().first().into_iter().chain(family.atoms().last()).map(|a| &**a).collect()
        }
        _ => return Ok(value),
    };
    for atom in &atoms {
        let mut faults = Vec::new();
        for e in atom.faults() {
            let (name, value) = e.arg.and_then(|k| fields.get(k).copied().flatten()).unzip();
            let d = misfit(e, name, value.map_or(item.name.span, |v| v.span));
            faults.push(match atoms.len() {
                1 => d,
                _ => d.with_note(format!("for N = {}", atom.shape[1])),
            });
        }
        if !faults.is_empty() {
            return Err(faults);
        }
    }
    Ok(value)
}

/// The fields of a declaration, in the order of [`ATOM_FIELDS`].
type Fields<'a> = [Option<(&'a Ident, &'a Expr)>; 6];

/// A declaration whose fields are of the right kinds; that they are a matrix instruction's is not known yet.
fn read(item: &AtomItem) -> Result<(Value, Fields<'_>), Vec<Diagnostic>> {
    let mut faults = Vec::new();
    // A field that the parser could not read may be any of those that are missing.
    let damaged = item.fields.iter().any(|(_, e)| is_damaged(e));
    let mut found: [Option<(&Ident, &Expr)>; 7] = [None; 7];
    for (name, value) in &item.fields {
        let Some(k) = ATOM_FIELDS.iter().chain([&EXTENTS]).position(|f| *f == name.name) else {
            let d = Diagnostic::error(
                codes::UNKNOWN_ATOM_FIELD,
                name.span,
                format!("an atom has no field `{}`", name.name),
            )
            .with_note("the fields are shape, types, thr, A, B and C; and N in a family");
            faults.push(match suggest(&name.name, ATOM_FIELDS) {
                Some(near) => d.with_help(format!("did you mean `{near}`?")),
                None => d,
            });
            continue;
        };
        match found[k] {
            None => found[k] = Some((name, value)),
            Some((first, _)) => faults.push(
                Diagnostic::error(
                    codes::REPEATED_ATOM_FIELD,
                    name.span,
                    format!("the field `{}` is given twice", name.name),
                )
                .with_secondary(first.span, "the first time")
                .with_help("remove one of them"),
            ),
        }
    }
    let missing: Vec<usize> = (0..6).filter(|&k| found[k].is_none()).collect();
    if !missing.is_empty() && !damaged && faults.iter().all(|d| d.code != codes::UNKNOWN_ATOM_FIELD) {
        let names: Vec<String> = missing.iter().map(|&k| format!("`{}`", ATOM_FIELDS[k])).collect();
        let help: Vec<&str> = missing.iter().map(|&k| EXAMPLES[k]).collect();
        let what = if missing.len() == 1 { "field" } else { "fields" };
        let message = format!("the atom `{}` lacks the {what} {}", item.name.name, names.join(", "));
        faults.push(
            Diagnostic::error(codes::MISSING_ATOM_FIELD, item.name.span, message)
                .with_help(format!("such as `{}`", help.join(" "))),
        );
    }
    let fields: Fields<'_> = [0, 1, 2, 3, 4, 5].map(|k| found[k]);
    let mut reader = Reader { faults, n: None };
    let Some((name, list)) = found[6] else {
        let atom = reader.atom(item.name.name.to_string(), &fields);
        return finished(reader.faults, atom.map(|a| Value::Atom(a.into())), fields);
    };
    let Some(extents) = reader.extents_list(name, list) else { return Err(reader.faults) };
    let mut atoms = Vec::new();
    for n in extents {
        reader.n = Some(n);
        let Some(atom) = reader.atom(member(&item.name.name, n), &fields) else { return Err(reader.faults) };
        if atom.shape[1] != n {
            let at = fields[0].map_or(item.name.span, |(_, e)| e.span);
            let message = format!("the shape has {} in mode N where N is {n}", atom.shape[1]);
            reader.faults.push(
                Diagnostic::error(codes::ATOM_MISFIT, at, message)
                    .with_help("a family's atoms differ in N: `shape = (64, N, 16);`"),
            );
            return Err(reader.faults);
        }
        atoms.push(Arc::new(atom));
    }
    let family = AtomFamily::new(&*item.name.name, atoms);
    finished(reader.faults, family.map(|f| Value::Family(f.into())), fields)
}

fn finished(faults: Vec<Diagnostic>, v: Option<Value>, f: Fields<'_>) -> Result<(Value, Fields<'_>), Vec<Diagnostic>> {
    match v {
        Some(v) if faults.is_empty() => Ok((v, f)),
        _ => Err(faults),
    }
}

/// `SM90_64xNx16_..` for N = 8 is `SM90_64x8x16_..`; where the name does not say where N stands, it comes last.
fn member(family: &str, n: i64) -> String {
    match family.split_once("xNx") {
        Some((before, after)) => format!("{before}x{n}x{after}"),
        None => format!("{family}_N{n}"),
    }
}

/// The atoms and families of the library: `std::atoms`. A test has checked them.
pub fn standard() -> &'static [Value] {
    static ATOMS: OnceLock<Vec<Value>> = OnceLock::new();
    ATOMS.get_or_init(|| {
        let Some((_, text)) = ptoc_stdlib::module(&["atoms"]) else { return Vec::new() };
        let items = ptoc_syntax::parse(FileId(0), text).file.items;
        let atoms = items.iter().filter_map(|item| match &item.kind {
            ItemKind::Atom(a) => read(a).ok().map(|(value, _)| value),
            _ => None,
        });
        atoms.collect()
    })
}

/// The families of [`standard`], which `select_mma` chooses from.
pub fn standard_families() -> Arc<[Arc<AtomFamily>]> {
    let families = standard().iter().filter_map(|v| match v {
        Value::Family(f) => Some(f.clone()),
        _ => None,
    });
    families.collect()
}

/// Layouts that are no matrix instruction's, at the field to blame.
fn misfit(e: LayoutError, name: Option<&Ident>, at: Span) -> Diagnostic {
    let code = match e.kind {
        ErrorKind::NotBijective | ErrorKind::NotInjective => codes::ATOM_NOT_BIJECTIVE,
        ErrorKind::Profile | ErrorKind::Size | ErrorKind::Domain => codes::ATOM_MISFIT,
        other => layout_codes::code(other),
    };
    let d = Diagnostic::error(code, at, e.message);
    let d = match name {
        Some(name) => d.with_label(format!("the field `{}`", name.name)),
        None => d,
    };
    match e.help {
        Some(help) => d.with_help(help),
        None => d,
    }
}

fn is_damaged(e: &Expr) -> bool {
    match &*e.kind {
        ExprKind::Error => true,
        ExprKind::Paren(a) | ExprKind::Unary(_, a) | ExprKind::Basis(a, _) => is_damaged(a),
        ExprKind::Tuple(l) | ExprKind::List(l) | ExprKind::Tiler(l) => l.iter().any(is_damaged),
        ExprKind::Layout(a, b) | ExprKind::Binary(_, a, b) => is_damaged(a) || is_damaged(b),
        _ => false,
    }
}

/// Reads the fields. What cannot be read is `None`, and a fault unless the parser has reported it.
struct Reader {
    faults: Vec<Diagnostic>,
    /// What `N` is, in a family.
    n: Option<i64>,
}

impl Reader {
    fn atom(&mut self, name: String, found: &Fields<'_>) -> Option<MmaAtom> {
        let shape = found[0].and_then(|(name, e)| self.extents(name, e));
        let types = found[1].and_then(|(name, e)| self.types(name, e));
        let [thr, a, b, c] = [2, 3, 4, 5].map(|k| found[k].and_then(|(name, e)| self.layout(name, e)));
        Some(MmaAtom { name, shape: shape?, types: types?, thr: thr?, a: a?, b: b?, c: c? })
    }

    /// `[8, 16, 32]`
    fn extents_list(&mut self, field: &Ident, e: &Expr) -> Option<Vec<i64>> {
        const WANTED: &str = "a list of ascending extents";
        let entries = match &*strip(e).kind {
            ExprKind::List(l) if !l.is_empty() && l.len() <= MOST_EXTENTS => l,
            _ => return self.wrong(field, e, WANTED),
        };
        let mut out: Vec<i64> = Vec::new();
        for e in entries {
            let last = out.last().copied();
            match integer(e, None) {
                Some(n) if n > last.unwrap_or(0) => out.push(n),
                Some(n) => {
                    let message = match last {
                        Some(last) => format!("the extents in `N` ascend, here {n} stands after {last}"),
                        None => format!("an extent in `N` is at least 1, found {n}"),
                    };
                    self.faults.push(Diagnostic::error(codes::ATOM_FIELD_KIND, e.span, message));
                    return None;
                }
                None => return self.wrong(field, e, WANTED),
            }
        }
        Some(out)
    }

    fn wrong<T>(&mut self, field: &Ident, e: &Expr, wanted: &str) -> Option<T> {
        if !is_damaged(e) {
            let example = ATOM_FIELDS.iter().position(|f| *f == field.name).map_or("N = [8, 16, 32];", |k| EXAMPLES[k]);
            self.faults.push(
                Diagnostic::error(
                    codes::ATOM_FIELD_KIND,
                    e.span,
                    format!("the field `{}` of an atom takes {wanted}, found {}", field.name, kind_of(e, self.n)),
                )
                .with_help(format!("such as `{example}`")),
            );
        }
        None
    }

    /// M, N, K
    fn extents(&mut self, field: &Ident, e: &Expr) -> Option<[i64; 3]> {
        const WANTED: &str = "three numbers, M, N and K";
        let shape = match &*strip(e).kind {
            ExprKind::Tuple(l) if l.len() == 3 => l,
            _ => return self.wrong(field, e, WANTED),
        };
        let mut out = [0; 3];
        for (n, e) in out.iter_mut().zip(shape) {
            *n = match integer(e, self.n) {
                Some(n) => n,
                None => return self.wrong(field, e, WANTED),
            };
        }
        Some(out)
    }

    /// D, A, B, C
    fn types(&mut self, field: &Ident, e: &Expr) -> Option<[String; 4]> {
        const WANTED: &str = "four dtypes, those of D, A, B and C";
        let names = match &*strip(e).kind {
            ExprKind::Tuple(l) if l.len() == 4 => l,
            _ => return self.wrong(field, e, WANTED),
        };
        let mut out = [const { String::new() }; 4];
        for (name, e) in out.iter_mut().zip(names) {
            match &*strip(e).kind {
                ExprKind::Name(n) if DType::from_name(n).is_some() || ONLY_IN_ATOMS.contains(&n.as_str()) => {
                    *name = n.to_string();
                }
                _ => return self.wrong(field, e, WANTED),
            }
        }
        Some(out)
    }

    fn layout(&mut self, field: &Ident, e: &Expr) -> Option<Layout> {
        let ExprKind::Layout(shape, stride) = &*strip(e).kind else {
            return self.wrong(field, e, "a layout, `shape : stride`");
        };
        let (shape, stride) = (self.integers(field, shape)?, self.integers(field, stride)?);
        match Layout::new(shape, stride.map(&mut |n: &Int| Stride::int(n.clone()))) {
            Ok(layout) => Some(layout),
            Err(fault) => {
                let d = Diagnostic::error(layout_codes::code(fault.kind), e.span, fault.message);
                self.faults.push(match fault.help {
                    Some(help) => d.with_help(help),
                    None => d,
                });
                None
            }
        }
    }

    /// `4`, `(4, (2, 2))`, `(4,)`
    fn integers(&mut self, field: &Ident, e: &Expr) -> Option<IntTuple> {
        match &*strip(e).kind {
            ExprKind::Tuple(l) => Some(Tuple::Node(l.iter().map(|e| self.integers(field, e)).collect::<Option<_>>()?)),
            _ => match integer(e, self.n) {
                Some(n) => Some(IntTuple::from(n)),
                None => self.wrong(field, e, "constant integers in its layout"),
            },
        }
    }
}

/// Without parentheses; `(4)` is 4.
fn strip(e: &Expr) -> &Expr {
    match &*e.kind {
        ExprKind::Paren(inner) => strip(inner),
        _ => e,
    }
}

/// A constant: a literal, in a family `N`, or sums, products and exact quotients of such.
fn integer(e: &Expr, n: Option<i64>) -> Option<i64> {
    match &*e.kind {
        ExprKind::Int(n) => i64::try_from(*n).ok(),
        ExprKind::Name(name) if name == EXTENTS => n,
        ExprKind::Paren(inner) => integer(inner, n),
        ExprKind::Unary(UnaryOp::Neg, inner) => integer(inner, n)?.checked_neg(),
        ExprKind::Binary(op, a, b) => {
            let (a, b) = (integer(a, n)?, integer(b, n)?);
            match op {
                BinaryOp::Add => a.checked_add(b),
                BinaryOp::Sub => a.checked_sub(b),
                BinaryOp::Mul => a.checked_mul(b),
                BinaryOp::Div => a.checked_rem(b).filter(|rest| *rest == 0).and_then(|_| a.checked_div(b)),
                _ => None,
            }
        }
        _ => None,
    }
}

/// What stands there, for messages.
fn kind_of(e: &Expr, n: Option<i64>) -> String {
    match &*strip(e).kind {
        ExprKind::Int(n) if i64::try_from(*n).is_err() => format!("{n}, which does not fit 64 bits"),
        ExprKind::Int(n) => format!("{n}"),
        ExprKind::Float(_, text) => format!("{text}"),
        ExprKind::Bool(b) => format!("{b}"),
        ExprKind::Str(_) => "a text".into(),
        ExprKind::Name(n) => format!("`{n}`"),
        ExprKind::Tuple(l) if l.len() == 1 => "a tuple of one".into(),
        ExprKind::Tuple(l) => format!("a tuple of {}", l.len()),
        ExprKind::Layout(..) => "a layout".into(),
        ExprKind::Basis(..) => "a unit of a coordinate".into(),
        ExprKind::Tiler(_) => "a tiler".into(),
        ExprKind::List(_) => "a list".into(),
        _ => match n {
            Some(n) => format!("an expression that is no integer for N = {n}"),
            None => "an expression that is not constant".into(),
        },
    }
}

#[cfg(test)]
mod tests;
