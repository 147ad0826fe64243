//! Tiled MMAs in the language: `tiled_mma` and its members, and what an MMA does to blocks.
//!
//! The thread is one more mode that nobody slices: [`partition`] cuts a block into (thread, (value, rest, rest)), a
//! fragment is an ordinary tile whose rows are threads and whose columns are their values, and [`product`] finds from
//! the elements' coordinates in the block which axes count M, N and K.

pub(crate) mod coverage;
mod partition;
mod product;
mod select;

use super::{ElabResult, Elaborator, ErrorReported};
use ptoc_diagnostics::{Code, Diagnostic, Span, codes};
use ptoc_layout::{Int, IntTuple, LayoutError, MmaAtom, Operand, TiledMma, Value as Algebra};
use ptoc_syntax::ast::{Arg, ExprKind};
use ptoc_tensor::DType;
use ptoc_values::Val;
use std::sync::Arc;

/// How the modes of the product are called.
const MODES: [&str; 3] = ["M", "N", "K"];

/// The dtype of an operand's elements.
fn dtype_of(atom: &MmaAtom, operand: Operand) -> Option<DType> {
    DType::from_name(
        &atom.types[match operand {
            Operand::A => 1,
            Operand::B => 2,
            Operand::C => 3,
        }],
    )
}

impl Elaborator<'_> {
    /// `tiled_mma(ATOM, atoms = (2, 2, 1), tiler = (32, 32, 16))`
    pub(crate) fn tiled_mma(&mut self, args: &[Arg], span: Span) -> ElabResult<Val> {
        let usage = "usage: `tiled_mma(ATOM, atoms = (2, 2, 1), tiler = (32, 32, 16))`";
        let places = self.places("tiled_mma", ["atom", "atoms", "tiler"], usage, args)?;
        let Some(atom_at) = places[0] else {
            let d = Diagnostic::error(codes::WRONG_ARGUMENTS, span, "`tiled_mma` needs an atom").with_note(usage);
            return self.report(d);
        };
        let atom = match self.expr(&atom_at.value)? {
            Val::Algebra(a) if matches!(&*a, Algebra::Atom(_)) => match &*a {
                Algebra::Atom(atom) => atom.clone(),
                _ => return Err(ErrorReported),
            },
            Val::Poison => return Err(ErrorReported),
            other => {
                let message = format!("`tiled_mma` tiles an atom, found {}", other.describe());
                let help = match &other {
                    Val::Algebra(a) if matches!(&**a, Algebra::Family(_)) => {
                        format!("`select_mma({a}, n)` is the one of its atoms that a tile of n columns takes")
                    }
                    _ => "an atom is declared by `atom NAME { .. }`, or one of `use std::atoms::..`".into(),
                };
                let d = Diagnostic::error(codes::TYPE_MISMATCH, atom_at.value.span, message).with_help(help);
                return self.report(d);
            }
        };
        let ones = Algebra::Tuple(vec![Algebra::Int(Int::ONE), Algebra::Int(Int::ONE), Algebra::Int(Int::ONE)]);
        let atoms = match places[1] {
            None => ones,
            Some(a) => self.mma_arg(a, "the atoms side by side are a tuple (M, N, K) or a layout of them")?,
        };
        let tiler = match places[2] {
            None => Algebra::Tuple(vec![Algebra::Keep; 3]),
            Some(a) => self.mma_arg(a, "the tiler is a tuple of extents, layouts or `_` for M, N and K")?,
        };
        let at = places.map(|p| p.map(|a| &a.value));
        let Some(op) = ptoc_layout::ops::find("tiled_mma") else { return Err(ErrorReported) };
        let operands = [Algebra::Atom(atom), atoms, tiler];
        match self.algebra(span, |cx| (op.eval)(cx, &operands))? {
            Ok(mma) => Ok(Val::Algebra(mma.into())),
            Err(e) => {
                // A refusal of an entry of the tiler points at it.
                let arg = e.arg.and_then(|k| at.get(k).copied().flatten());
                let entry = match (arg.map(|a| &*a.kind), &e.path.0[..]) {
                    (Some(ExprKind::Tuple(l)), [k, ..]) => l.get(*k).map(|e| e.span),
                    _ => None,
                };
                self.mma_error(codes::BAD_TILED_MMA, e, span, entry.or(arg.map(|a| a.span)).unwrap_or(span))
            }
        }
    }

    /// The arguments by the names of their places.
    fn places<'a, const N: usize>(
        &mut self,
        op: &str,
        names: [&str; N],
        usage: &str,
        args: &'a [Arg],
    ) -> ElabResult<[Option<&'a Arg>; N]> {
        let mut places: [Option<&Arg>; N] = [None; N];
        for (k, a) in args.iter().enumerate() {
            let slot = match &a.name {
                None => k,
                Some(n) => match names.iter().position(|x| *x == n.name) {
                    Some(slot) => slot,
                    None => {
                        let message = format!("`{op}` has no argument `{}`", n.name);
                        let d = Diagnostic::error(codes::WRONG_ARGUMENTS, n.span, message).with_note(usage);
                        return self.report(d);
                    }
                },
            };
            let message = match places.get_mut(slot) {
                Some(place @ None) => {
                    *place = Some(a);
                    continue;
                }
                Some(Some(_)) => "this argument is given twice".to_owned(),
                None => format!("`{op}` takes {}", names.join(", ")),
            };
            let d = Diagnostic::error(codes::WRONG_ARGUMENTS, a.value.span, message).with_note(usage);
            return self.report(d);
        }
        Ok(places)
    }

    fn mma_arg(&mut self, a: &Arg, what: &str) -> ElabResult<Algebra> {
        let v = self.expr(&a.value)?;
        if matches!(v, Val::Poison) {
            return Err(ErrorReported);
        }
        match self.algebra_of(&v) {
            Some(x) => Ok(x),
            None => {
                let message = format!("{what}, found {}", v.describe());
                self.error(codes::TYPE_MISMATCH, a.value.span, message)
            }
        }
    }

    /// A refusal by the algebra, which names the mode M, N or K.
    fn mma_error<T>(&mut self, code: Code, e: LayoutError, span: Span, at: Span) -> ElabResult<T> {
        let mut d = Diagnostic::error(code, at, format!("`{}`: {}", e.op, e.message));
        if at != span {
            d = d.with_label("does not fit").with_secondary(span, format!("in this `{}`", e.op));
        }
        if let Some(h) = e.help {
            d = d.with_help(h);
        }
        self.misfit(d)
    }

    /// Reports sizes that do not fit, unless a `static_assert` that failed has said it in the author's words.
    fn misfit<T>(&mut self, d: Diagnostic) -> ElabResult<T> {
        match self.diags.iter().any(|d| d.code == codes::STATIC_ASSERT) {
            true => Err(ErrorReported),
            false => self.report(d),
        }
    }

    /// The extent in M, N and K that one call of the MMA covers.
    fn mma_tile(&mut self, mma: &TiledMma, span: Span) -> ElabResult<[i64; 3]> {
        let mut tile = [0; 3];
        for (k, n) in tile.iter_mut().enumerate() {
            *n = match mma.tile_size(k) {
                Ok(n) => n,
                Err(e) => return self.mma_error(codes::BAD_TILED_MMA, e, span, span),
            };
        }
        Ok(tile)
    }

    /// A product of the atom's dtypes must exist: its accumulator follows from the operands.
    fn mma_types(&mut self, mma: &TiledMma, at: Span) -> ElabResult<()> {
        use DType::{BF16, F16, F32, I8, I32};
        let [d, a, b, c] = &mma.atom.types;
        let name = &mma.atom.name;
        if let Some(unknown) = mma.atom.types.iter().find(|t| DType::from_name(t).is_none()) {
            return self.not_yet(at, &format!("products with the dtype `{unknown}` of {name}"));
        }
        let (x, acc) = (DType::from_name(a), DType::from_name(c));
        let (legal, accumulators) = match x {
            Some(I8) => (acc == Some(I32), "`i32`"),
            Some(F16) => (matches!(acc, Some(F32 | F16)), "`f32` or `f16`"),
            Some(BF16 | F32) => (acc == Some(F32), "`f32`"),
            _ => {
                let d =
                    Diagnostic::error(codes::MMA_TYPES, at, format!("there is no product of `{a}` operands ({name})"))
                        .with_note("operands are `f32`, `f16`, `bf16` or `i8`");
                return self.report(d);
            }
        };
        let message = if a != b {
            format!("the operands of {name} have two dtypes, A `{a}` and B `{b}`")
        } else if d != c {
            format!("{name} adds to `{c}` and gives `{d}`: an accumulator has one dtype")
        } else if !legal {
            format!("products of `{a}` are added up in {accumulators}, {name} has `{c}`")
        } else {
            return Ok(());
        };
        let d = Diagnostic::error(codes::MMA_TYPES, at, message)
            .with_label(format!("types = ({d}, {a}, {b}, {c})"))
            .with_note("`types` are the dtypes of D, A, B and C");
        self.report(d)
    }

    /// `MMA.tiler`, `MMA.threads`, ...; `None` if there is no such member.
    pub(crate) fn mma_member(&mut self, mma: &Arc<TiledMma>, name: &str, span: Span) -> ElabResult<Option<Algebra>> {
        let n = match name {
            "atom" => return Ok(Some(Algebra::Atom(mma.atom.clone()))),
            "tiler" => return Ok(Some(Algebra::ints(&IntTuple::flat(&self.mma_tile(mma, span)?)))),
            "threads" => mma.thread_count(),
            "atoms" => mma.atom_count(),
            _ => return Ok(None),
        };
        match n {
            Ok(n) => Ok(Some(Algebra::Int(Int::Const(n)))),
            Err(e) => self.mma_error(codes::BAD_TILED_MMA, e, span, span),
        }
    }

    /// The MMA that an argument is.
    fn mma_of(&mut self, v: &Val, at: Span) -> ElabResult<Arc<TiledMma>> {
        match v {
            Val::Algebra(a) if matches!(&**a, Algebra::Mma(_)) => match &**a {
                Algebra::Mma(m) => Ok(m.clone()),
                _ => Err(ErrorReported),
            },
            Val::Poison => Err(ErrorReported),
            other => {
                let message = format!("the first argument is a tiled MMA, found {}", other.describe());
                let d = Diagnostic::error(codes::TYPE_MISMATCH, at, message)
                    .with_help("`tiled_mma(ATOM, atoms = (2, 2, 1))` makes one of an atom");
                self.report(d)
            }
        }
    }
}
