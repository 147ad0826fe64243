//! `-D NAME=VALUE`: values as expressions, capacities, settings of units in memory, and the whole numbers among them.

use crate::backend;
use crate::project::{self, Project};
use indexmap::IndexMap;
use ptoc_diagnostics::{Diagnostic, Diagnostics, FileId, SourceMap, Span, codes};
use ptoc_isa::{Allowed, Loc, Target};
use ptoc_syntax::ast::{BinaryOp, Expr, ExprKind, Name, UnaryOp};
use std::borrow::Cow;
use std::collections::HashSet;

/// One definition as it came: from the command line or from a test line.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Definition {
    /// `BM`, `capacity.Vec`, `unit.clock`
    pub name: String,
    /// The text of an expression.
    pub value: String,
}

/// Definitions, parsed.
#[derive(Clone, Debug, Default)]
pub struct Definitions {
    /// Everything but capacities and settings, by name, the last of a name counts.
    pub values: IndexMap<Name, Expr>,
    /// Where each stands, for messages.
    pub places: IndexMap<Name, Span>,
    /// Those of `ptoc.toml`, which hold where there is something of that name.
    pub of_project: HashSet<Name>,
}

impl Definitions {
    /// The names that stand alone as values: `gelu` of `-D act=gelu`.
    pub fn names(&self) -> impl Iterator<Item = Name> + '_ {
        self.values.values().filter_map(|e| if let ExprKind::Name(n) = &*e.kind { Some(n.clone()) } else { None })
    }

    /// Parses definitions, each as a source file of its own called `<-D NAME>`, and applies capacities and settings to
    /// the target. Of those of the project, which come first and give way to others of their names, a capacity or
    /// setting that the target does not have is passed over.
    pub fn parse(
        definitions: &[Definition],
        project: &Project,
        target: &mut Target,
        sources: &mut SourceMap,
        out: &mut Diagnostics,
    ) -> Definitions {
        let mut parsed = Definitions::default();
        // The DRAM decides what its numbers may be.
        let given = |d: &&Definition| definitions.iter().any(|own| own.name == d.name);
        let places = &project.places;
        let project: Vec<&Definition> =
            project.define.iter().filter(|d| !given(d) && applies(target, &d.name)).collect();
        let all = project.iter().copied().chain(definitions);
        let (first, rest): (Vec<_>, Vec<_>) = all.partition(|d| d.name == PRESET);
        let before = out.error_count();
        for d in first.into_iter().chain(rest) {
            let text = spelled(&d.value);
            let own = project.iter().any(|p| std::ptr::eq(*p, d));
            let origin = if own { project::FILE } else { "-D" };
            let file = sources.add(format!("<{origin} {}>", d.name), &*text);
            let place = places.get(&d.name).filter(|_| own);
            let placed = |problem: Diagnostic| match place {
                Some(place) => problem.with_note(format!("it is set in {place}")),
                None => problem,
            };
            if d.name.starts_with("unit.") || d.name.starts_with("device.") {
                let span = Span::new(file, 0, d.value.len() as u32);
                if let Err(problem) = setting(target, d, file, span) {
                    out.push(placed(problem));
                }
                continue;
            }
            let (expr, diagnostics) = ptoc_syntax::parse_expr(file, &text);
            let errors = diagnostics.iter().any(Diagnostic::is_error);
            out.extend(diagnostics.into_iter().map(placed));
            if errors {
                continue;
            }
            match d.name.strip_prefix("capacity.") {
                Some(location) => match capacity(target, location, &expr) {
                    Ok(changed) => *target = changed,
                    Err(problem) => {
                        out.push(placed(problem));
                    }
                },
                None => {
                    let span = Span::new(file, 0, text.len() as u32);
                    if own {
                        parsed.of_project.insert(Name::new(&d.name));
                    }
                    parsed.values.insert(Name::new(&d.name), expr);
                    parsed.places.insert(Name::new(&d.name), span);
                }
            }
        }
        if out.error_count() == before
            && let Err(problem) = target.check_settings()
        {
            out.push(problem);
        }
        parsed
    }
}

/// Whether the target has what a capacity or setting is of. Other names are those of kernels.
fn applies(target: &Target, name: &str) -> bool {
    match name.strip_prefix("capacity.") {
        Some(location) => Loc::from_name(location).is_none_or(|loc| target.capacity(loc) > 0),
        None if name.starts_with("unit.") || name.starts_with("device.") => target.setting(name).is_ok(),
        None => true,
    }
}

/// A number as the language spells it. A shell's `.8` and `8.` have digits on one side of the point alone, which a
/// program's numbers have on both.
fn spelled(value: &str) -> Cow<'_, str> {
    let (sign, number) = match value.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", value),
    };
    let (mantissa, exponent) = number.split_at(number.find(['e', 'E']).unwrap_or(number.len()));
    let Some((whole, part)) = mantissa.split_once('.') else { return value.into() };
    let digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
    if !(digits(whole) && digits(part)) || whole.is_empty() == part.is_empty() {
        return value.into();
    }
    let or_zero = |s: &str| if s.is_empty() { "0".to_owned() } else { s.to_owned() };
    format!("{sign}{}.{}{exponent}", or_zero(whole), or_zero(part)).into()
}

/// The setting that other settings depend on.
const PRESET: &str = "device.preset";

/// `unit.clock=300`, `device.stacks=6`, `device.refresh=off`
#[allow(clippy::result_large_err, reason = "at most once a definition")]
fn setting(target: &mut Target, d: &Definition, file: FileId, span: Span) -> Result<(), Diagnostic> {
    let allowed = target.setting(&d.name)?.allowed;
    let value = d.value.trim();
    match allowed {
        Allowed::Preset => {
            let preset = backend::default_of(target).preset(value, span).map_err(|d| *d)?;
            target.with_preset(preset);
            Ok(())
        }
        Allowed::Words(_) => target.set(&d.name, value, None, span),
        Allowed::Range(..) | Allowed::OneOf(_) => {
            let (expr, diagnostics) = ptoc_syntax::parse_expr(file, &d.value);
            match diagnostics.into_iter().find(Diagnostic::is_error) {
                Some(problem) => Err(problem),
                None => target.set(&d.name, value, integer(&expr), span),
            }
        }
    }
}

fn capacity(target: &Target, location: &str, expr: &Expr) -> Result<Target, Diagnostic> {
    let bytes = integer(expr).and_then(|n| u64::try_from(n).ok()).ok_or_else(|| {
        Diagnostic::error(codes::BAD_SIZE, expr.span, format!("the capacity of `{location}` is no number of bytes"))
            .with_help(format!("for example `-D capacity.{location}=0x20000`"))
    })?;
    target.clone().override_capacity(location, bytes)
}

/// The value of an expression of whole numbers only; `None` if it is anything else or leaves the range of `i64`.
pub fn integer(expr: &Expr) -> Option<i64> {
    fn value(expr: &Expr) -> Option<i128> {
        match &*expr.kind {
            ExprKind::Int(n) => Some(*n),
            ExprKind::Paren(e) => value(e),
            ExprKind::Unary(UnaryOp::Neg, e) => value(e)?.checked_neg(),
            ExprKind::Binary(op, a, b) => {
                let (a, b) = (value(a)?, value(b)?);
                match op {
                    BinaryOp::Add => a.checked_add(b),
                    BinaryOp::Sub => a.checked_sub(b),
                    BinaryOp::Mul => a.checked_mul(b),
                    BinaryOp::Div if b > 0 => Some(a.div_euclid(b)),
                    BinaryOp::Shl => u32::try_from(b).ok().filter(|&n| n < 63).and_then(|n| a.checked_mul(1 << n)),
                    _ => None,
                }
            }
            _ => None,
        }
    }
    value(expr).and_then(|n| i64::try_from(n).ok())
}

/// The size that `-D` gives a dimension.
pub fn dimension(name: &str, expr: &Expr) -> Result<i64, Diagnostic> {
    integer(expr).filter(|&n| n >= 0).ok_or_else(|| {
        Diagnostic::error(codes::BAD_SIZE, expr.span, format!("`{name}` is a dimension, and this is no size"))
            .with_label("a whole number, 0 or more")
            .with_help(format!("for example `-D {name}=128`"))
    })
}

#[cfg(test)]
mod tests {
    use super::spelled;

    #[test]
    fn numbers_of_a_shell() {
        for (given, want) in
            [(".8", "0.8"), ("-.5", "-0.5"), ("8.", "8.0"), ("-3.", "-3.0"), (".5e-3", "0.5e-3"), ("1.e6", "1.0e6")]
        {
            assert_eq!(spelled(given), want);
        }
        for same in ["0.8", "8", ".", "-", "", "x.", ".T", "a.b", "gelu", "1..2", "(1, .5)", "..", "1e5"] {
            assert_eq!(spelled(same), same);
        }
    }
}
