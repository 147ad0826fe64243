//! Deduction of static parameters: those that a call leaves out and its arguments say. A `type` is the dtype of the
//! first argument whose parameter is of it, a `const` the first extent that its name stands for.

use super::{ElabResult, Elaborator};
use ptoc_diagnostics::{Diagnostic, Span, codes};
use ptoc_ir::tile::Ty;
use ptoc_names::builtins::Word;
use ptoc_syntax::ast::*;
use ptoc_tensor::DType;
use ptoc_values::{Binding, TileVal, Val};

/// The arguments of a call in the order of the parameters.
pub(super) type Arguments = [Option<(Val, Span)>];

impl Elaborator<'_> {
    /// Static parameters of a function that has been entered: what the call gives, what the arguments say, defaults.
    pub(crate) fn define_statics(
        &mut self,
        f: &FnItem,
        given: Vec<Option<(Val, Span)>>,
        arguments: &Arguments,
    ) -> ElabResult<()> {
        for (p, given) in f.statics.iter().zip(given) {
            let v = match given {
                Some((v, at)) => self.static_value(p, v, at)?,
                None => match self.deduce(p, &f.params, arguments)? {
                    Some((v, at)) => {
                        self.deduced.push((p.name.span, at));
                        v
                    }
                    None if has_default(p) => self.static_default(p, &f.name)?,
                    None => return self.not_deduced(p, f, arguments),
                },
            };
            self.env.define(p.name.name.clone(), Binding::Let(v), p.name.span);
        }
        Ok(())
    }

    /// A tile of an array or a list.
    fn first_tile(&self, v: &Val) -> Option<Val> {
        match v {
            Val::TileArray(a) => Some(Val::Tile(self.element_of(a, None))),
            Val::List(l) => l.first().cloned(),
            _ => None,
        }
    }

    /// What the arguments say of a static parameter, and which one does.
    fn deduce(&mut self, p: &StaticParam, params: &[Param], given: &Arguments) -> ElabResult<Option<(Val, Span)>> {
        for (param, argument) in params.iter().zip(given) {
            let Some((v, at)) = argument else { continue };
            let found = match &p.kind {
                StaticKind::Type { .. } => self.dtype_by(&param.ty, &p.name.name, v).map(|d| Val::Word(Word::DType(d))),
                StaticKind::Const { ty, .. } if !ty.as_ref().is_some_and(super::statics::is_layout) => {
                    self.extent_by(&param.ty, p, v, *at)?
                }
                _ => None,
            };
            if let Some(v) = found {
                return Ok(Some((v, *at)));
            }
        }
        Ok(None)
    }

    /// The dtype for which `name` stands in a parameter's type. Numbers without a dtype of their own say nothing.
    fn dtype_by(&self, ty: &Expr, name: &Name, v: &Val) -> Option<DType> {
        match (&*ty.kind, v) {
            (ExprKind::Static(_, args), Val::Tile(t)) if is_name(&args.first()?.value, name) => Some(t.ty.dtype),
            (ExprKind::Index(element, _), v) if matches!(&*element.kind, ExprKind::Static(..)) => {
                self.dtype_by(element, name, &self.first_tile(v)?)
            }
            (ExprKind::Index(base, _), Val::View(view) | Val::Cut(view)) if is_name(base, name) => Some(view.dtype),
            (ExprKind::Tuple(types), v) => {
                parts_of(ty, types, v).into_iter().find_map(|(ty, v)| self.dtype_by(ty, name, v))
            }
            (ExprKind::Name(_), v) if is_name(ty, name) => match v {
                Val::Tile(t) => Some(t.ty.dtype),
                Val::Mask(..) => Some(DType::Bool),
                Val::Scalar(x) => match self.ty(*x) {
                    Ty::D(d) => Some(d),
                    Ty::Index => None,
                },
                _ => None,
            },
            _ => None,
        }
    }

    /// The extent for which a constant stands in a parameter's type.
    fn extent_by(&mut self, ty: &Expr, p: &StaticParam, v: &Val, at: Span) -> ElabResult<Option<Val>> {
        let name = &p.name.name;
        match (&*ty.kind, v) {
            (ExprKind::Static(_, args), Val::Tile(t)) => {
                let Some(mode) = args.iter().skip(1).take(2).position(|a| is_name(&a.value, name)) else {
                    return Ok(None);
                };
                self.tile_extent(t, mode, p, at).map(Some)
            }
            (ExprKind::Index(element, count), v) if matches!(&*element.kind, ExprKind::Static(..)) => {
                let n = match v {
                    Val::TileArray(a) => a.count as usize,
                    Val::List(l) => l.len(),
                    _ => return Ok(None),
                };
                if count.first().is_some_and(|c| is_name(&c.value, name)) {
                    return Ok(Some(Val::Int(n as i128)));
                }
                self.first_tile(v).map_or(Ok(None), |first| self.extent_by(element, p, &first, at))
            }
            (ExprKind::Index(_, dims), Val::View(view) | Val::Cut(view)) if dims.len() == view.modes.len() => {
                let Some(mode) = dims.iter().position(|d| is_name(&d.value, name)) else { return Ok(None) };
                let extent = Val::Scalar(view.modes[mode].extent);
                Ok(Some(Val::Int(self.static_int(&extent, at, &format!("`{name}`"))?)))
            }
            (ExprKind::Tuple(types), v) => {
                for (ty, v) in parts_of(ty, types, v) {
                    if let Some(found) = self.extent_by(ty, p, v, at)? {
                        return Ok(Some(found));
                    }
                }
                Ok(None)
            }
            _ => Ok(None),
        }
    }

    /// Rows (0) or columns (1) of a tile, which have to be valid, all of them.
    fn tile_extent(&mut self, t: &TileVal, mode: usize, p: &StaticParam, at: Span) -> ElabResult<Val> {
        let shape = self.valid_of(t, at)?;
        let (cap, len) = if mode == 0 { (t.rows, shape.0) } else { (t.cols, shape.1) };
        if let Some(len) = self.known_index(len) {
            return Ok(Val::Int(len.into()));
        }
        let whole = self.idx(i64::from(cap));
        if self.facts.le_certain(whole, len, 0) {
            return Ok(Val::Int(cap.into()));
        }
        let name = &p.name.name;
        let what = if mode == 0 { "rows" } else { "columns" };
        let message =
            format!("`{name}` is a constant, and how many {what} of this tile are valid is known when it runs");
        let d = Diagnostic::error(codes::NOT_CONSTANT, at, message)
            .with_label(format!("at most {cap} {what}"))
            .with_secondary(p.span, "must be known at compile time")
            .with_help(format!("leave `const {name}` out: a bare name takes what is valid, block by block"));
        self.report(d)
    }

    /// Nothing says what a static parameter without default is.
    fn not_deduced<T>(&mut self, p: &StaticParam, f: &FnItem, arguments: &Arguments) -> ElabResult<T> {
        let name = &p.name.name;
        let message = format!("`{}` needs a value for `{name}`", f.name.name);
        let of_type = f.params.iter().zip(arguments).find(|(param, _)| is_name(&param.ty, name));
        let d = match of_type {
            Some((_, Some((v, at)))) => {
                let why = match v {
                    Val::Int(_) | Val::Float(_) => "a number without a dtype of its own".to_owned(),
                    Val::Scalar(_) => "an `index` has no dtype".to_owned(),
                    other => format!("{} has no dtype", other.describe()),
                };
                let d = Diagnostic::error(codes::MISSING_STATIC, *at, message).with_label(why);
                d.with_secondary(p.span, "no default, and no argument says it")
            }
            _ => Diagnostic::error(codes::MISSING_STATIC, p.span, message).with_label("no default"),
        };
        let value = if matches!(p.kind, StaticKind::Type { .. }) { "f32" } else { ".." };
        self.report(d.with_help(format!("give it in the call: `{}<{name} = {value}>(..)`", f.name.name)))
    }

    /// Names the argument by which a name in a parameter's type was deduced.
    pub(crate) fn deduced_here(&self, d: Diagnostic, e: &Expr) -> Diagnostic {
        let ExprKind::Name(n) = &*e.kind else { return d };
        let Some((Binding::Let(v), defined)) = self.env.get(n) else { return d };
        match (self.deduced.iter().rev().find(|(name, _)| *name == defined), v) {
            (Some((_, at)), Val::Word(Word::DType(dtype))) => {
                d.with_secondary(*at, format!("`{n}` is `{dtype}` by this argument"))
            }
            _ => d,
        }
    }

    /// The dtypes of the tensors that a launch is given, for static parameters that it leaves out.
    pub fn deduce_types<'p>(
        &mut self,
        statics: &'p [StaticParam],
        params: &[Param],
        given: &Arguments,
        known: impl Fn(&Name) -> bool,
    ) -> ElabResult<Vec<(&'p StaticParam, Val, Span)>> {
        let mut out = Vec::new();
        for p in statics.iter().filter(|p| matches!(p.kind, StaticKind::Type { .. }) && !known(&p.name.name)) {
            if let Some((v, at)) = self.deduce(p, params, given)? {
                out.push((p, v, at));
            }
        }
        Ok(out)
    }
}

/// The parts of a record or a tuple, with their types.
fn parts_of<'t, 'v>(ty: &'t Expr, types: &'t [Expr], v: &'v Val) -> Vec<(&'t Expr, &'v Val)> {
    match (ty.record_type(), v) {
        (Some(types), Val::Record(r)) => types.into_iter().filter_map(|(n, ty)| Some((ty, r.get(&n.name)?))).collect(),
        (None, Val::Tuple(l)) => types.iter().zip(l).collect(),
        _ => Vec::new(),
    }
}

/// Whether the parameter can do without a value.
fn has_default(p: &StaticParam) -> bool {
    match &p.kind {
        StaticKind::Const { default, .. } | StaticKind::Type { default } => default.is_some(),
        StaticKind::Fn { default } => default.is_some(),
    }
}

fn is_name(e: &Expr, name: &Name) -> bool {
    matches!(&*e.kind, ExprKind::Name(n) if n == name)
}
