//! The syntax tree: MLIR's generic structure. What an operation is stands in its name and its row of
//! [`crate::ops`], not in the shape of the node.

use crate::attr::{Attr, AttrValue, Source};
use crate::lexer::Word;
use crate::ops::Op as Row;
use crate::types::{Extent, Typed};
use ptoc_diagnostics::Span;

/// Greatest depth of regions, of attributes and of modules.
pub const MAX_DEPTH: u32 = 64;

/// `module attributes {..} { .. }`, or what stands in a file without one.
#[derive(Clone, Debug, PartialEq)]
pub struct Module {
    /// `pto.target_arch = "a3"` and others.
    pub attrs: Vec<Attr>,
    /// Functions and modules in source order.
    pub items: Vec<Item>,
    /// Whether the word `module` is written.
    pub written: bool,
    /// All of it.
    pub span: Span,
}

/// What stands in a module.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// A function.
    Function(Function),
    /// A module in a module: functions of one core each.
    Module(Module),
}

impl Module {
    /// All functions, also those of modules in it.
    pub fn functions(&self) -> Vec<&Function> {
        let mut all = Vec::new();
        for item in &self.items {
            match item {
                Item::Function(f) => all.push(f),
                Item::Module(m) => all.extend(m.functions()),
            }
        }
        all
    }
}

/// `func.func @name(..) { .. }`
#[derive(Clone, Debug, PartialEq)]
pub struct Function {
    /// `private`, if it is written.
    pub visibility: Option<Word>,
    /// The name, without `@`.
    pub name: Word,
    /// Where it stands.
    pub name_span: Span,
    /// Arguments.
    pub params: Vec<BlockArg>,
    /// Types of results.
    pub results: Vec<Typed>,
    /// Behind the word `attributes`.
    pub attrs: Vec<Attr>,
    /// The body; `None` for a declaration.
    pub body: Option<Region>,
    /// All of it.
    pub span: Span,
    /// Where it comes from.
    pub source: Option<Source>,
}

/// A value that a region or a function defines.
#[derive(Clone, Debug, PartialEq)]
pub struct BlockArg {
    /// Its name, without `%`.
    pub name: Word,
    /// The name's place.
    pub span: Span,
    /// Its type; `None` where the operation says it (the index of a loop).
    pub ty: Option<Typed>,
    /// Attributes of an argument.
    pub attrs: Vec<Attr>,
}

/// A list of operations with arguments: one block.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Region {
    /// Arguments of the block.
    pub args: Vec<BlockArg>,
    /// Operations in order.
    pub ops: Vec<Op>,
}

/// The use of a value: `%x`, or `%x#1` for a result of several.
#[derive(Clone, Debug, PartialEq)]
pub struct Value {
    /// The name, without `%`.
    pub name: Word,
    /// Which of several results.
    pub index: Option<u32>,
    /// Where.
    pub span: Span,
}

/// A result's name: `%x`, or `%x:2` for two values of that name.
#[derive(Clone, Debug, PartialEq)]
pub struct ResultName {
    /// The name, without `%`.
    pub name: Word,
    /// How many values have it, if that is written.
    pub count: Option<u32>,
    /// Where.
    pub span: Span,
}

/// An operand and the part that it plays.
#[derive(Clone, Debug, PartialEq)]
pub struct Operand {
    /// The name of the slot, as [`crate::ops`] has it.
    pub slot: &'static str,
    /// The value.
    pub value: Value,
    /// Its type, where the text says it.
    pub ty: Option<Typed>,
}

/// How an operation on tiles that are values is written. Its tiles are results, and not operands.
#[derive(Clone, Debug, PartialEq)]
pub struct ValueForm {
    /// Whether the dialect's name is left out: `tadd`.
    pub basic: bool,
    /// How many operands stand in brackets at the end, as in `%src[%row, %col]`.
    pub bracketed: usize,
    /// Types behind `:`, as they are written.
    pub types: Vec<Typed>,
    /// Whether these stand in parentheses.
    pub parens: bool,
    /// Whether the results' types stand behind `->`.
    pub arrow: bool,
}

/// An operation.
#[derive(Clone, Debug, PartialEq)]
pub struct Op {
    /// Its form, if its tiles are values: the basic form and level 1.
    pub values: Option<Box<ValueForm>>,
    /// What it defines.
    pub results: Vec<ResultName>,
    /// Its row.
    pub row: &'static Row,
    /// Whether the dialect's name is left out: `return`, `call`.
    pub elided: bool,
    /// Where its name stands.
    pub name_span: Span,
    /// Operands, in the order of the text.
    pub operands: Vec<Operand>,
    /// Attributes, in the order of the text.
    pub attrs: Vec<Attr>,
    /// Types of results, where the text says them.
    pub result_types: Vec<Typed>,
    /// Regions of control flow.
    pub regions: Vec<Region>,
    /// All of it.
    pub span: Span,
    /// Where it comes from.
    pub source: Option<Source>,
}

impl Op {
    /// The first operand in that slot.
    pub fn operand(&self, slot: &str) -> Option<&Operand> {
        self.operands.iter().find(|o| o.slot == slot)
    }

    /// All operands in that slot.
    pub fn operands_of<'a>(&'a self, slot: &'a str) -> impl Iterator<Item = &'a Operand> {
        self.operands.iter().filter(move |o| o.slot == slot)
    }

    /// Rows and columns of a part, as its attribute `sizes` says them; `None` of one that is none.
    pub fn sizes(&self) -> Vec<Extent> {
        match self.attr("sizes").and_then(|a| a.value.as_ref()) {
            Some(AttrValue::Array(list)) => list.iter().map(|v| v.int().and_then(|n| i64::try_from(n).ok())).collect(),
            _ => Vec::new(),
        }
    }

    /// The attribute of that name.
    pub fn attr(&self, name: &str) -> Option<&Attr> {
        self.attrs.iter().find(|a| a.name == name)
    }
}
