//! Names of a text: what each one defines, and where it is meant. For editors, so a text may be wrong: of one that is
//! not parsed as a whole, what was parsed has names.

use crate::attr::AttrValue;
use crate::lexer::{Tok, Word, next};
use crate::parse;
use crate::tree::{BlockArg, Function, Module, Op, Region};
use ptoc_diagnostics::{FileId, Span};
use rustc_hash::FxHashMap;
use std::ops::Range;

/// What a name is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Defined {
    /// `func.func @f`
    Function,
    /// An argument of a function.
    Argument,
    /// An argument of a block, or a loop's index.
    BlockArgument,
    /// What an operation gives.
    Result {
        /// Whether it is a tile or a view, which an outline shows.
        shown: bool,
    },
}

/// A definition.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Definition {
    /// With its `%` or `@`.
    pub name: String,
    /// What it is.
    pub kind: Defined,
    /// Where the name stands.
    pub range: Range<usize>,
    /// All that defines it.
    pub whole: Range<usize>,
    /// The definition of the function around it.
    pub function: Option<usize>,
}

/// A place where a name stands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Occurrence {
    /// The name.
    pub range: Range<usize>,
    /// The number of its definition.
    pub definition: usize,
    /// Whether it is the one that defines.
    pub defines: bool,
}

/// The names of a text.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct NameIndex {
    /// In source order; a function in front of what is in it.
    pub definitions: Vec<Definition>,
    /// In source order.
    pub occurrences: Vec<Occurrence>,
}

impl NameIndex {
    /// The names of a text.
    pub fn of(text: &str) -> NameIndex {
        let module = parse(FileId(0), text).module;
        let mut walk = Walk { text, index: NameIndex::default(), functions: FxHashMap::default(), scopes: Vec::new() };
        walk.declare(&module);
        walk.module(&module);
        let mut index = walk.index;
        index.occurrences.sort_by_key(|o| o.range.start);
        index.occurrences.dedup();
        index
    }

    /// The name at a byte, or in front of it.
    pub fn at(&self, offset: usize) -> Option<&Occurrence> {
        self.occurrences.iter().find(|o| o.range.start <= offset && offset <= o.range.end)
    }

    /// All places of a definition.
    pub fn of_definition(&self, definition: usize) -> impl Iterator<Item = &Occurrence> {
        self.occurrences.iter().filter(move |o| o.definition == definition)
    }

    /// The name in the text's spelling, if a definition can have it: it is a word, and no other value of the function,
    /// or function of the text, has it. The mark in front may be left out.
    ///
    /// # Errors
    /// Why it cannot.
    pub fn renamed(&self, definition: usize, to: &str) -> Result<String, String> {
        let own = &self.definitions[definition];
        let mark = &own.name[..1];
        let name = if to.starts_with(mark) { to.to_string() } else { format!("{mark}{to}") };
        let token = next(&name, 0);
        let word = matches!(token.tok, Tok::Value | Tok::Symbol) && token.end == name.len() && !name.contains('"');
        if !word {
            return Err(format!("`{to}` is no name of a value or of a function"));
        }
        let home = |d: &Definition| (d.kind == Defined::Function, d.function);
        let taken =
            self.definitions.iter().enumerate().any(|(n, d)| n != definition && d.name == name && home(d) == home(own));
        if taken { Err(format!("`{name}` is there already")) } else { Ok(name) }
    }
}

struct Walk<'t> {
    text: &'t str,
    index: NameIndex,
    functions: FxHashMap<Word, usize>,
    /// Values, by the blocks around a place.
    scopes: Vec<FxHashMap<Word, usize>>,
}

impl Walk<'_> {
    /// Functions may be called in front of their definition.
    fn declare(&mut self, module: &Module) {
        for f in module.functions() {
            let place = f.name_span.range();
            let definition = Definition {
                name: format!("@{}", f.name),
                kind: Defined::Function,
                range: place,
                whole: f.span.range(),
                function: None,
            };
            self.functions.entry(f.name.clone()).or_insert(self.index.definitions.len());
            self.index.definitions.push(definition);
        }
    }

    fn module(&mut self, module: &Module) {
        for (number, f) in module.functions().into_iter().enumerate() {
            self.function(number, f);
        }
        // Those of a function stand behind it.
        let mut order: Vec<usize> = (0..self.index.definitions.len()).collect();
        order.sort_by_key(|n| self.index.definitions[*n].range.start);
        let mut place = vec![0; order.len()];
        order.iter().enumerate().for_each(|(to, from)| place[*from] = to);
        let mut sorted: Vec<Definition> = order.iter().map(|n| self.index.definitions[*n].clone()).collect();
        sorted.iter_mut().for_each(|d| d.function = d.function.map(|f| place[f]));
        self.index.definitions = sorted;
        self.index.occurrences.iter_mut().for_each(|o| o.definition = place[o.definition]);
    }

    fn function(&mut self, number: usize, f: &Function) {
        self.occurs(f.name_span, number, true);
        self.scopes = vec![FxHashMap::default()];
        for param in &f.params {
            self.arg(param, Defined::Argument, number);
        }
        if let Some(body) = &f.body {
            self.region(body, number);
        }
    }

    fn arg(&mut self, arg: &BlockArg, kind: Defined, function: usize) {
        let whole = arg.ty.as_ref().map_or(arg.span, |ty| arg.span.to(ty.span));
        self.define(&arg.name, arg.span, whole, kind, function);
    }

    fn region(&mut self, region: &Region, function: usize) {
        self.scopes.push(FxHashMap::default());
        for arg in &region.args {
            self.arg(arg, Defined::BlockArgument, function);
        }
        for op in &region.ops {
            self.op(op, function);
        }
        self.scopes.pop();
    }

    fn op(&mut self, op: &Op, function: usize) {
        for operand in &op.operands {
            let value = &operand.value;
            let found = self.scopes.iter().rev().find_map(|s| s.get(&value.name)).copied();
            if let Some(definition) = found {
                self.occurs(value.span, definition, false);
            }
        }
        if let Some(attr) = op.attr("callee")
            && let Some(AttrValue::Symbol(callee)) = &attr.value
            && let Some(definition) = self.functions.get(callee).copied()
        {
            self.occurs(attr.span, definition, false);
        }
        op.regions.iter().for_each(|r| self.region(r, function));
        let shown = ["pto.alloc_tile", "pto.make_tensor_view"].contains(&op.row.name) || op.values.is_some();
        for result in &op.results {
            self.define(&result.name, result.span, op.span, Defined::Result { shown }, function);
        }
    }

    fn define(&mut self, name: &Word, span: Span, whole: Span, kind: Defined, function: usize) {
        let number = self.index.definitions.len();
        let (range, whole) = (self.named(span), whole.range());
        self.index.definitions.push(Definition {
            name: format!("%{name}"),
            kind,
            range,
            whole,
            function: Some(function),
        });
        self.occurs(span, number, true);
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(name.clone(), number);
        }
    }

    fn occurs(&mut self, span: Span, definition: usize, defines: bool) {
        let range = self.named(span);
        self.index.occurrences.push(Occurrence { range, definition, defines });
    }

    /// The name alone, of what may have a number or a count behind it: `%x#1`, `%x:2`.
    fn named(&self, span: Span) -> Range<usize> {
        let token = next(self.text, span.start as usize);
        token.start..token.end.min(span.end as usize).max(token.start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
module {
  func.func @g(%x: index) {
    return
  }
  func.func @f(%x: index, %c: i1) {
    %a:2 = scf.if %c -> (index, index) {
      %b = arith.addi %x, %x : index
      scf.yield %b, %x : index, index
    } else {
      %b = arith.muli %x, %x : index
      scf.yield %b, %b : index, index
    }
    call @g(%a#1) : (index) -> ()
    return
  }
}
";

    #[test]
    fn names_and_their_places() {
        let index = NameIndex::of(TEXT);
        let names: Vec<&str> = index.definitions.iter().map(|d| d.name.as_str()).collect();
        assert_eq!(names, ["@g", "%x", "@f", "%x", "%c", "%a", "%b", "%b"]);
        for o in &index.occurrences {
            assert_eq!(TEXT[o.range.clone()], index.definitions[o.definition].name);
        }
        let places = |n| index.of_definition(n).count();
        assert_eq!((0..8).map(places).collect::<Vec<_>>(), [2, 1, 1, 6, 2, 2, 2, 3]);
        let at = TEXT.find("%a#1").unwrap();
        assert_eq!(index.at(at + 1).unwrap().definition, 5);
        assert_eq!(index.definitions[7].function, Some(2));
    }

    #[test]
    fn names_that_can_be_changed() {
        let index = NameIndex::of(TEXT);
        assert_eq!(index.renamed(3, "rows"), Ok("%rows".to_string()));
        assert_eq!(index.renamed(0, "@h"), Ok("@h".to_string()));
        for (definition, to) in
            [(3, "a"), (3, "%c"), (0, "f"), (3, "a b"), (3, ""), (3, "@x"), (3, "x#1"), (0, "\"a b\"")]
        {
            assert!(index.renamed(definition, to).is_err(), "{to}");
        }
    }
}
