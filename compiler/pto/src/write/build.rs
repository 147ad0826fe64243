//! Nodes of the tree.

use super::Writer;
use crate::attr::{Attr, AttrValue};
use crate::lexer::Word;
use crate::ops::{self, Op as Row};
use crate::read::{is_keyword, is_taken};
use crate::tree::{Op, Operand, Region, ResultName, Value as Use};
use crate::types::{Type, Typed};
use ptoc_diagnostics::Span;
use rustc_hash::{FxHashMap, FxHashSet};

/// Names of values, each given once.
#[derive(Default)]
pub(super) struct Names {
    taken: FxHashSet<String>,
    next: u32,
}

/// A name with the letters that MLIR has.
pub(crate) fn cleaned(name: &str) -> String {
    let clean: String = name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '_' }).collect();
    if clean.is_empty() || clean.starts_with(|c: char| c.is_ascii_digit()) { format!("v{clean}") } else { clean }
}

/// The name of a function: that which it had where it was read.
pub(super) fn function_name(kernel: &str) -> String {
    let name = cleaned(kernel);
    match name.strip_suffix('_').filter(|word| is_taken(word)) {
        Some(word) => word.to_owned(),
        None => name,
    }
}

/// Whether a name is what `%3` is called where it is read: `v3`.
pub(super) fn is_numbered(name: &str) -> bool {
    name.strip_prefix('v').is_some_and(|d| !d.is_empty() && d.bytes().all(|b| b.is_ascii_digit()))
}

/// A name without the number that told it apart: of `sum_3` another one like it is `sum_4`.
pub(crate) fn unnumbered(name: &str) -> &str {
    match name.rsplit_once('_') {
        Some((stem, n)) if !stem.is_empty() && !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()) => stem,
        _ => name,
    }
}

impl Names {
    /// A name like this one.
    pub fn give(&mut self, name: &str) -> Word {
        let mut base = cleaned(name);
        // What is read has no such name, and what had it is called so again.
        if is_keyword(&base) {
            base.push('_');
        } else if let Some(word) = base.strip_suffix('_').filter(|word| is_keyword(word)) {
            base.truncate(word.len());
        }
        let mut candidate = base.clone();
        let mut n = 1;
        while !self.taken.insert(candidate.clone()) {
            n += 1;
            candidate = format!("{}_{n}", unnumbered(&base));
        }
        Word::new(&candidate)
    }

    /// The next number.
    pub fn number(&mut self) -> Word {
        self.next += 1;
        Word::new((self.next - 1).to_string())
    }
}

fn row(name: &'static str) -> &'static Row {
    ops::lookup(name).unwrap_or_else(|| unreachable!("`{name}` is a row of ops.txt"))
}

/// An operand and its type, if the text says it.
pub(super) type Given = (&'static str, Word, Option<Type>);

impl Writer<'_> {
    /// An operation of this name at the present place.
    pub(super) fn op(&self, name: &'static str, operands: Vec<Given>) -> Op {
        self.row_op(row(name), operands)
    }

    pub(super) fn row_op(&self, row: &'static Row, operands: Vec<Given>) -> Op {
        let span = self.span;
        let operands = operands.into_iter().map(|(slot, name, ty)| Operand {
            slot,
            value: Use { name, index: None, span },
            ty: ty.map(|ty| Typed { ty, span }),
        });
        Op {
            values: None,
            results: Vec::new(),
            row,
            elided: row.name == "func.return",
            name_span: span,
            operands: operands.collect(),
            attrs: Vec::new(),
            result_types: Vec::new(),
            regions: Vec::new(),
            span,
            source: (self.places)(span),
        }
    }

    pub(super) fn push(&mut self, op: Op) {
        if let Some(region) = self.regions.last_mut() {
            region.push(op);
        }
    }

    /// An operation without types.
    pub(super) fn simple(&mut self, name: &'static str, operands: &[(&'static str, Word)]) {
        let op = self.op(name, operands.iter().map(|(slot, name)| (*slot, name.clone(), None)).collect());
        self.push(op);
    }

    /// Adds an operation that defines a value of this name; `ty` if its form says the type.
    pub(super) fn define(&mut self, mut op: Op, name: Word, ty: Option<Type>) -> Word {
        op.results.push(ResultName { name: name.clone(), count: None, span: self.span });
        op.result_types.extend(ty.map(|ty| Typed { ty, span: self.span }));
        self.push(op);
        name
    }

    /// `%c16 = arith.constant 16 : index`, at the beginning of the function.
    pub(super) fn constant(&mut self, value: AttrValue, ty: &Type) -> Word {
        let key = (value.to_string(), ty.to_string());
        if let Some(known) = self.constant_names.get(&key) {
            return known.clone();
        }
        let name = match (&value, ty) {
            (AttrValue::Int(n, _), Type::Index) if *n >= 0 => self.names.give(&format!("c{n}")),
            (AttrValue::Int(n, _), ty) if *n >= 0 => self.names.give(&format!("c{n}_{ty}")),
            (AttrValue::Bool(b), _) => self.names.give(&b.to_string()),
            _ => self.names.give("cst"),
        };
        match (&value, ty) {
            (AttrValue::Int(n, _), Type::Index) => {
                self.constant_values.extend(i64::try_from(*n).ok().map(|n| (name.clone(), n)));
            }
            (AttrValue::Bool(b), _) => {
                self.constant_values.insert(name.clone(), i64::from(*b));
            }
            _ => {}
        }
        let mut op = self.op("arith.constant", Vec::new());
        op.attrs.push(self.attr("value", value));
        op.results.push(ResultName { name: name.clone(), count: None, span: self.span });
        // It is of no one place.
        op.source = None;
        self.constants.push(op);
        self.constant_names.insert(key, name.clone());
        name
    }

    /// A whole number of type `index`.
    pub(super) fn index(&mut self, n: i64) -> Word {
        self.constant(AttrValue::Int(i128::from(n), Some(Type::Index)), &Type::Index)
    }

    /// The number that a constant of type `index` is, and 1 or 0 for a condition.
    pub(super) fn constant_value(&self, name: &Word) -> Option<i64> {
        self.constant_values.get(name).copied()
    }

    pub(super) fn attr(&self, name: &'static str, value: AttrValue) -> Attr {
        Attr { name: Word::new_static(name), value: Some(value), span: self.span }
    }

    /// Writes a block.
    pub(super) fn block<T>(&mut self, f: impl FnOnce(&mut Self) -> super::Res<T>) -> super::Res<(Region, T)> {
        self.regions.push(Vec::new());
        self.visible.push(Vec::new());
        self.chosen.push(FxHashMap::default());
        self.sums.push(Vec::new());
        let result = f(self);
        self.visible.pop();
        self.chosen.pop();
        self.sums.pop();
        let ops = self.regions.pop().unwrap_or_default();
        Ok((Region { args: Vec::new(), ops }, result?))
    }

    /// Runs `f` at another place of the source.
    pub(super) fn at<T>(&mut self, span: Span, f: impl FnOnce(&mut Self) -> T) -> T {
        let before = std::mem::replace(&mut self.span, span);
        let result = f(self);
        self.span = before;
        result
    }
}
