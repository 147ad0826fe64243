//! Dimensions from the shapes of arrays and from `-D`, with every disagreement shown from both sides.

use super::arrays::Arrays;
use crate::defs;
use crate::files::ArrayFile;
use crate::session::{self, CompilationUnit, EntryPoint, Failed, Front, Session};
use indexmap::IndexMap;
use ptoc_diagnostics::{Diagnostic, Span, codes, list, plural};
use ptoc_syntax::ast::{Dir, ExprKind, Name, Param};

/// What a dimension was bound by.
struct Bound {
    value: i64,
    place: Span,
    /// "in `A` (extent 2 of f16[8, 64], a.npy)"
    by: String,
    /// By `-D`, and not by an array.
    defined: bool,
}

/// The value of each dimension of the kernel. `random` says that inputs without arrays will be made.
pub fn bind_dimensions(
    session: &mut Session,
    unit: &CompilationUnit,
    entry: &EntryPoint<'_>,
    arrays: &Arrays,
    random: bool,
) -> Result<IndexMap<Name, i64>, Failed> {
    let mut failed = check_ranks(session, unit, entry, arrays);
    let mut bound: IndexMap<Name, Bound> = IndexMap::new();
    for (param, array) in given(entry, arrays) {
        let extents = entry.axes(param, unit).unwrap_or_default();
        if extents.len() != array.shape().len() {
            continue;
        }
        for (i, (extent, &size)) in extents.iter().zip(array.shape()).enumerate() {
            let ExprKind::Name(name) = &*extent.kind else { continue };
            if !entry.is_dimension(name, unit) {
                continue;
            }
            let by = format!("in `{}` ({} extent of {})", param.name.name, ordinal(i), describe(array));
            let new = Bound { value: size as i64, place: extent.span, by, defined: false };
            match bound.get(name) {
                Some(old) if old.value != new.value => {
                    session.diagnostics.push(conflict(session.front, name, old, &new));
                    failed = true;
                }
                Some(_) => {}
                None => {
                    bound.insert(name.clone(), new);
                }
            }
        }
    }
    failed |= from_definitions(session, unit, entry, &mut bound);
    failed |= !random && missing_inputs(session, entry, arrays);
    if failed {
        return Err(Failed);
    }
    let mut bindings = session.bindings(entry, unit)?;
    bindings.dims = bound.iter().map(|(name, b)| (name.clone(), b.value)).collect();
    session.derive(entry, unit, &mut bindings);
    for (name, value) in bindings.dims {
        let by = "by `where`".into();
        let derived = Bound { value, place: entry.item.name.span, by, defined: false };
        bound.entry(name).or_insert(derived);
    }
    missing_dimensions(session, unit, entry, &bound)?;
    Ok(bound.into_iter().map(|(name, b)| (name, b.value)).collect())
}

/// The arguments that have arrays.
fn given<'e>(entry: &'e EntryPoint<'e>, arrays: &'e Arrays) -> impl Iterator<Item = (&'e Param, &'e ArrayFile)> {
    entry.tensors().filter_map(|p| Some((p, arrays.get(p.name.name.as_str())?)))
}

/// `f16[8, 64] from a.npy`; of a caller's array `f16[8, 64]`.
pub(super) fn describe(array: &ArrayFile) -> String {
    if array.is_lent() {
        return array.signature();
    }
    format!("{} from `{}`", array.signature(), array.path().display())
}

fn ordinal(i: usize) -> String {
    match i {
        0 => "first".into(),
        1 => "second".into(),
        2 => "third".into(),
        n => format!("{}th", n + 1),
    }
}

fn conflict(front: Front, name: &Name, old: &Bound, new: &Bound) -> Diagnostic {
    Diagnostic::error(
        codes::DIMENSION_CONFLICT,
        new.place,
        format!("`{name}` is {} {} but {} {}", old.value, old.by, new.value, new.by),
    )
    .with_label(format!("{} here", new.value))
    .with_secondary(old.place, format!("{} here", old.value))
    .with_help(match new.defined {
        true => format!("leave out `{}`: the arrays say what it is", front.name(name)),
        false => format!("give arrays whose extents for `{name}` are equal"),
    })
}

/// Reports each array that has another number of dimensions than its argument. Returns whether there is one.
fn check_ranks(session: &mut Session, unit: &CompilationUnit, entry: &EntryPoint<'_>, arrays: &Arrays) -> bool {
    let mut failed = false;
    for (param, array) in given(entry, arrays) {
        let Some(want) = entry.axes(param, unit).map(|e| e.len()) else { continue };
        let have = array.shape().len();
        if want == have {
            continue;
        }
        failed = true;
        let declared = session.sources.slice(session::type_span(param));
        let mut d = Diagnostic::error(
            codes::ARRAY_SHAPE,
            session::type_span(param),
            format!("`{}` has {}, its array has {have}", param.name.name, plural(want, "dimension")),
        )
        .with_label(format!("declared `{declared}`"))
        .with_note(format!("the array is {}", describe(array)));
        let ones = array.shape().iter().filter(|&&n| n == 1).count();
        d = match want < have && have - ones <= want {
            true => d.with_help(format!("drop the extents of 1: `x.reshape(..)` to {}", plural(want, "dimension"))),
            false => d.with_help(format!("reshape the array to {}", plural(want, "dimension"))),
        };
        session.diagnostics.push(d);
    }
    failed
}

fn from_definitions(
    session: &mut Session,
    unit: &CompilationUnit,
    entry: &EntryPoint<'_>,
    bound: &mut IndexMap<Name, Bound>,
) -> bool {
    let mut failed = false;
    for dim in entry.dimensions(unit) {
        let Some(expr) = session.definitions.values.get(&dim.name) else { continue };
        let value = match defs::dimension(&dim.name, expr) {
            Ok(value) => value,
            Err(d) => {
                session.diagnostics.push(d);
                failed = true;
                continue;
            }
        };
        let place = session.definitions.places.get(&dim.name).copied().unwrap_or(expr.span);
        let new = Bound { value, place, by: format!("by `{}`", session.front.name(&dim.name)), defined: true };
        match bound.get(&dim.name) {
            Some(old) if old.value != value => {
                session.diagnostics.push(conflict(session.front, &dim.name, old, &new));
                failed = true;
            }
            _ => {
                bound.insert(dim.name, new);
            }
        }
    }
    failed
}

fn missing_inputs(session: &mut Session, entry: &EntryPoint<'_>, arrays: &Arrays) -> bool {
    let missing: Vec<&Param> = entry
        .tensors()
        .filter(|p| p.default.is_none() && p.dir.is_some_and(|(dir, _)| dir != Dir::Out))
        .filter(|p| !arrays.contains_key(p.name.name.as_str()))
        .collect();
    for param in &missing {
        let name = &param.name.name;
        let declared = session.sources.slice(session::type_span(param)).to_owned();
        let d = Diagnostic::error(
            codes::MISSING_INPUT,
            param.span,
            format!("no array was given for `{name}`, which is `{declared}`"),
        )
        .with_label("an input")
        .with_help(match session.front {
            Front::Command => {
                format!("give it with `--in {name}=FILE.npy`, or fill all that are missing with `--random SEED`")
            }
            Front::Call => format!("pass it by position, or as `{name}=..`"),
        });
        session.diagnostics.push(d);
    }
    !missing.is_empty()
}

fn missing_dimensions(
    session: &mut Session,
    unit: &CompilationUnit,
    entry: &EntryPoint<'_>,
    bound: &IndexMap<Name, Bound>,
) -> Result<(), Failed> {
    let mut missing = entry.dimensions(unit);
    missing.retain(|d| !bound.contains_key(&d.name));
    let [first, rest @ ..] = &missing[..] else { return Ok(()) };
    let names: Vec<&str> = missing.iter().map(|d| d.name.as_str()).collect();
    let message = match rest {
        [] => format!("the size of `{}` is not known: no array has it", first.name),
        _ => format!("the sizes of {} are not known: no array has them", list(names.iter().copied())),
    };
    let flags: Vec<String> = names.iter().map(|n| session.front.definition(n)).collect();
    let mut d = Diagnostic::error(codes::MISSING_DIMENSION, first.span, message).with_label("its size is not known");
    for dim in rest {
        d = d.with_secondary(dim.span, "nor is this one");
    }
    let flags = flags.join(session.front.separator());
    session.fail(d.with_help(format!("say it: `{flags}`")))
}
