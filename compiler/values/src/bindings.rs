//! What an elaboration is given.

use crate::Val;
use indexmap::IndexMap;
use ptoc_diagnostics::{Budget, Span};
use ptoc_syntax::ast::{Expr, ExprKind, Name};
use std::rc::Rc;

/// What the caller fixes: `-D` definitions, and dimensions known from the arguments.
#[derive(Clone, Debug, Default)]
pub struct Bindings {
    /// `-D NAME=VALUE`, parsed; for static parameters and scalar arguments.
    pub defs: IndexMap<Name, Expr>,
    /// Values of dimensions, used where one sizes a tile; all others stay symbolic.
    pub dims: IndexMap<Name, i64>,
    /// Dimensions that are constants throughout.
    pub fixed: IndexMap<Name, i64>,
    /// Tensor arguments with `= none` that are given; all others of that kind are absent.
    pub given: Vec<Name>,
    /// Dtypes that stand for others: what a repair would be is tried so.
    pub retyped: Vec<(ptoc_tensor::DType, ptoc_tensor::DType)>,
    /// Static parameters that a program gives to a kernel.
    pub statics: IndexMap<Name, Val>,
    /// Where it gives them.
    pub places: IndexMap<Name, Span>,
    /// Steps of compile-time evaluation that several elaborations have together.
    pub steps: Option<Rc<Budget>>,
}

impl Bindings {
    /// The whole number that a program gives a static parameter, and the argument that says so.
    pub fn launched(&self, parameter: &str) -> Option<(i64, Span)> {
        match self.statics.get(parameter)? {
            Val::Int(n) => Some((i64::try_from(*n).ok()?, self.places.get(parameter).copied()?)),
            _ => None,
        }
    }

    /// Gives a static parameter another value, whoever gave it one; `span` is the place of that.
    pub fn change(&mut self, parameter: &str, value: i64, span: Span) {
        let name = Name::new(parameter);
        match self.statics.get_mut(&name) {
            Some(given) => *given = Val::Int(i128::from(value)),
            None => {
                let kind = Box::new(ExprKind::Int(i128::from(value)));
                self.defs.insert(name, Expr { kind, span, depth: 1 });
            }
        }
    }
}
