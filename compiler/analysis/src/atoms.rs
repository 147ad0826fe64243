//! Atoms: the matrix instructions that a program declares, as values.

use crate::layout_codes;
use ptoc_diagnostics::{Diagnostic, FileId, Span, codes, suggest};
use ptoc_layout::{ATOM_FIELDS, ErrorKind, Int, IntTuple, Layout, LayoutError, MmaAtom, Stride, Tuple};
use ptoc_syntax::ast::{AtomItem, BinaryOp, Expr, ExprKind, Ident, ItemKind, UnaryOp};
use ptoc_tensor::DType;

/// A dtype that matrix instructions have and tiles have not.
const ONLY_IN_ATOMS: &[&str] = &["f64"];

/// How fields are written, in the order of [`ATOM_FIELDS`].
const EXAMPLES: [&str; 6] = [
    "shape = (16, 8, 16);",
    "types = (f32, f16, f16, f32);",
    "thr = 32:1;",
    "A = ((4, 8), (2, 2, 2)):((32, 1), (16, 8, 128));",
    "B = ((4, 8), (2, 2)):((16, 1), (8, 64));",
    "C = ((4, 8), (2, 2)):((32, 1), (16, 8));",
];

/// Evaluates a declaration. The faults are one for each mistake; none, if all that is wrong was reported by the parser.
pub fn atom(item: &AtomItem) -> Result<MmaAtom, Vec<Diagnostic>> {
    let mut faults = Vec::new();
    // A field that the parser could not read may be any of those that are missing.
    let damaged = item.fields.iter().any(|(_, e)| is_damaged(e));
    let mut found: [Option<(&Ident, &Expr)>; 6] = [None; 6];
    for (name, value) in &item.fields {
        let Some(k) = ATOM_FIELDS.iter().position(|f| *f == name.name) else {
            let d = Diagnostic::error(
                codes::UNKNOWN_ATOM_FIELD,
                name.span,
                format!("an atom has no field `{}`", name.name),
            )
            .with_note("the fields are shape, types, thr, A, B and C");
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
    let mut read = Reader { faults };
    let shape = found[0].and_then(|(name, e)| read.extents(name, e));
    let types = found[1].and_then(|(name, e)| read.types(name, e));
    let [thr, a, b, c] = [2, 3, 4, 5].map(|k| found[k].and_then(|(name, e)| read.layout(name, e)));
    let mut faults = read.faults;
    let (Some(shape), Some(types), Some(thr), Some(a), Some(b), Some(c)) = (shape, types, thr, a, b, c) else {
        return Err(faults);
    };
    let atom = MmaAtom { name: item.name.name.to_string(), shape, types, thr, a, b, c };
    for e in atom.faults() {
        let (name, value) = e.arg.and_then(|k| found.get(k).copied().flatten()).unzip();
        faults.push(misfit(e, name, value.map_or(item.name.span, |v| v.span)));
    }
    if faults.is_empty() { Ok(atom) } else { Err(faults) }
}

/// The atoms of the library: `std::atoms`.
pub fn standard() -> Vec<MmaAtom> {
    let Some((_, text)) = ptoc_stdlib::module(&["atoms"]) else { return Vec::new() };
    let items = ptoc_syntax::parse(FileId(0), text).file.items;
    let atoms = items.iter().filter_map(|item| match &item.kind {
        ItemKind::Atom(a) => atom(a).ok(),
        _ => None,
    });
    atoms.collect()
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
}

impl Reader {
    fn wrong<T>(&mut self, field: &Ident, e: &Expr, wanted: &str) -> Option<T> {
        if !is_damaged(e) {
            let example = ATOM_FIELDS.iter().position(|f| *f == field.name).map_or("", |k| EXAMPLES[k]);
            self.faults.push(
                Diagnostic::error(
                    codes::ATOM_FIELD_KIND,
                    e.span,
                    format!("the field `{}` of an atom takes {wanted}, found {}", field.name, kind_of(e)),
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
            *n = match integer(e) {
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
            _ => match integer(e) {
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

/// A constant: a literal, or sums and products of such.
fn integer(e: &Expr) -> Option<i64> {
    match &*e.kind {
        ExprKind::Int(n) => i64::try_from(*n).ok(),
        ExprKind::Paren(inner) => integer(inner),
        ExprKind::Unary(UnaryOp::Neg, inner) => integer(inner)?.checked_neg(),
        ExprKind::Binary(op, a, b) => {
            let (a, b) = (integer(a)?, integer(b)?);
            match op {
                BinaryOp::Add => a.checked_add(b),
                BinaryOp::Sub => a.checked_sub(b),
                BinaryOp::Mul => a.checked_mul(b),
                _ => None,
            }
        }
        _ => None,
    }
}

/// What stands there, for messages.
fn kind_of(e: &Expr) -> String {
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
        _ => "an expression that is not constant".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(text: &str) -> Vec<String> {
        let parsed = ptoc_syntax::parse(FileId(0), text);
        let mut out = Vec::new();
        for item in &parsed.file.items {
            if let ItemKind::Atom(a) = &item.kind
                && let Err(d) = atom(a)
            {
                out.extend(d.iter().map(|d| {
                    let at = d.span.map_or("", |s| &text[s.start as usize..s.end as usize]);
                    format!("{} {at}: {}", d.code, d.message)
                }));
            }
        }
        out
    }

    fn of(fields: &[(&str, &str)]) -> String {
        let fields: String = fields.iter().map(|(n, v)| format!("{n} = {v}; ")).collect();
        format!("atom T {{ {fields}}}")
    }

    const GOOD: [(&str, &str); 6] = [
        ("shape", "(2, 2, 1)"),
        ("types", "(f32, f16, f16, f32)"),
        ("thr", "2:1"),
        ("A", "(2, 1):(1, 0)"),
        ("B", "(2, 1):(1, 0)"),
        ("C", "(2, (2,)):(1, (2 * 1,))"),
    ];

    fn with(k: usize, name: &'static str, value: &'static str) -> Vec<String> {
        let mut fields = GOOD;
        fields[k] = (name, value);
        faults(&of(&fields))
    }

    #[test]
    fn the_library_has_good_atoms() {
        let names: Vec<String> = standard().into_iter().map(|a| a.name).collect();
        assert_eq!(
            names,
            [
                "UniversalFMA",
                "SM70_8x8x4_F32F16F16F32_TN",
                "SM70_8x8x4_F32F16F16F32_NT",
                "SM80_16x8x8_F32F16F16F32_TN",
                "SM80_16x8x16_F32F16F16F32_TN",
                "SM80_8x8x4_F64F64F64F64_TN"
            ]
        );
        let text = ptoc_stdlib::module(&["atoms"]).unwrap().1;
        assert!(ptoc_syntax::parse(FileId(0), text).diagnostics.is_empty());
        assert_eq!(text.matches("\natom ").count(), names.len());
    }

    #[test]
    fn fields() {
        assert_eq!(faults(&of(&GOOD)), [""; 0]);
        assert_eq!(faults(&of(&GOOD[..4])), ["E1030 T: the atom `T` lacks the fields `B`, `C`"]);
        // The unknown one is the missing one.
        assert_eq!(with(5, "c", "(2, 2):(1, 2)"), ["E1031 c: an atom has no field `c`"]);
        assert_eq!(with(1, "shape", "(2, 2, 1)")[0], "E1033 shape: the field `shape` is given twice");
        assert_eq!(
            with(0, "shape", "(2, 2)"),
            ["E1032 (2, 2): the field `shape` of an atom takes three numbers, M, N and K, found a tuple of 2"]
        );
        assert_eq!(
            with(0, "shape", "(2, N, 1)"),
            ["E1032 N: the field `shape` of an atom takes three numbers, M, N and K, found `N`"]
        );
        assert_eq!(
            with(1, "types", "(f32, f16, float, f32)"),
            ["E1032 float: the field `types` of an atom takes four dtypes, those of D, A, B and C, found `float`"]
        );
        assert_eq!(
            with(2, "thr", "2"),
            ["E1032 2: the field `thr` of an atom takes a layout, `shape : stride`, found 2"]
        );
        assert_eq!(
            with(3, "A", "(2, 1):(1, 0.5)"),
            ["E1032 0.5: the field `A` of an atom takes constant integers in its layout, found 0.5"]
        );
        assert_eq!(with(3, "A", "(2, 1):1"), ["E1007 (2, 1):1: shape (2,1) and stride 1 are nested differently"]);
        assert_eq!(with(0, "shape", "(0, 2, 1)"), ["E1034 (0, 2, 1): extent 0 in mode M is not in 1 to 4194304"]);
    }

    #[test]
    fn layouts() {
        assert_eq!(
            with(2, "thr", "(2, 1):(0, 1)"),
            ["E1035 (2, 1):(0, 1): thr = (2,1):(0,1) gives two logical threads one thread of the machine"]
        );
        assert_eq!(
            with(3, "A", "(4, 1):(1, 0)"),
            ["E1034 (4, 1):(1, 0): A = (4,1):(1,0) has 4 threads in mode 0, thr = 2:1 has 2"]
        );
        assert_eq!(with(3, "A", "2:1"), ["E1034 2:1: A = 2:1 has 1 modes, not two"]);
        assert_eq!(
            with(4, "B", "(2, 1):(2, 0)"),
            ["E1035 (2, 1):(2, 0): B = (2,1):(2,0) gives value 0 of thread 1 element 2, N x K = 2 x 1 has 0 to 1"]
        );
        assert_eq!(
            with(5, "C", "(2, 2):(1, 1)"),
            [
                "E1035 (2, 2):(1, 1): C = (2,2):(1,1) gives element 1 of M x N = 2 x 2 to value 0 of thread 1 and to value 1 of thread 0"
            ]
        );
        assert_eq!(
            with(5, "C", "(2, 1):(1, 0)"),
            ["E1035 (2, 1):(1, 0): C = (2,1):(1,0) gives element 2 of M x N = 2 x 2 to no thread"]
        );
        // A and B may be shared.
        assert_eq!(with(3, "A", "(2, 2):(0, 1)"), [""; 0]);
        // Two mistakes, two faults.
        let mut fields = GOOD;
        fields[3].1 = "(2, 1):(2, 0)";
        fields[4].1 = "(2, 1):(-1, 0)";
        assert_eq!(faults(&of(&fields)).len(), 2);
    }
}
