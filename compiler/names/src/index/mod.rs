//! Every name of a unit: where it is defined, and what each of its occurrences stands for. For an editor; it works on
//! trees with error nodes, and says of an unknown name nothing.
//!
//! The rules of look-up are those of [`crate::check_names`]. A definition is known by the span of its name, which is
//! the same for everyone who meets it.

mod records;
mod walk;

use crate::builtins::{self, SyncFn, Word};
use crate::modules::Modules;
use ptoc_diagnostics::{FileId, SourceMap, Span};
use ptoc_isa::InstrId;
use ptoc_syntax::ast::Name;
use rustc_hash::FxHashMap;

/// What is defined.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum DefinitionKind {
    /// `kernel`
    Kernel,
    /// `program`
    Program,
    /// `fn`
    Function,
    /// `const`, of a file or a block.
    Constant,
    /// `atom`
    Atom,
    /// `<const N>`
    ConstParam,
    /// `<type T>`
    TypeParam,
    /// `<fn f>`
    FnParam,
    /// A tensor argument.
    Tensor,
    /// Another argument.
    Parameter,
    /// An extent of a tensor argument, or a type taken from an argument: bound where it is first named.
    Dimension,
    /// `let`
    Let,
    /// `var`
    Variable,
    /// Of `for`, `pipeline`, `grid`.
    LoopVariable,
    /// An index of `ensures`, `where` or `sum<k>`.
    BoundIndex,
    /// Of a record, in a literal or a type.
    Field,
}

impl DefinitionKind {
    /// How people call it.
    pub fn words(self) -> &'static str {
        match self {
            DefinitionKind::Kernel => "kernel",
            DefinitionKind::Program => "program",
            DefinitionKind::Function => "function",
            DefinitionKind::Constant => "constant",
            DefinitionKind::Atom => "atom",
            DefinitionKind::ConstParam => "constant parameter",
            DefinitionKind::TypeParam => "type parameter",
            DefinitionKind::FnParam => "function parameter",
            DefinitionKind::Tensor => "tensor argument",
            DefinitionKind::Parameter => "argument",
            DefinitionKind::Dimension => "dimension",
            DefinitionKind::Let => "local name",
            DefinitionKind::Variable => "variable",
            DefinitionKind::LoopVariable => "loop variable",
            DefinitionKind::BoundIndex => "index",
            DefinitionKind::Field => "field",
        }
    }

    /// Whether it is an item of a file.
    pub fn is_item(self) -> bool {
        matches!(
            self,
            DefinitionKind::Kernel | DefinitionKind::Program | DefinitionKind::Function | DefinitionKind::Atom
        )
    }
}

/// A definition.
#[derive(Clone, Debug)]
pub struct Definition {
    /// The name.
    pub name: Name,
    /// Where the name stands.
    pub span: Span,
    /// What it is.
    pub kind: DefinitionKind,
    /// All of it: the item, the parameter, the statement.
    pub whole: Span,
    /// Where it can be named by this name.
    pub scope: Span,
    /// The type that is written for it, if there is one: `f32[M, N]`, `Vec<f32, i, j>`.
    pub ty: Option<Span>,
    /// What it is set to, where that is written: the value of `let`, the range of a loop, the default of a parameter.
    pub value: Option<Span>,
}

/// A name that every file knows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KnownName {
    /// A dtype, or `index`.
    DType,
    /// A location.
    Loc,
    /// An instruction of the table.
    Instruction(InstrId),
    /// A function.
    Function,
    /// A pipe, or who issues in `role`.
    Pipe,
    /// Another word: `inf`, `EQ`, `Rint`.
    Word,
}

/// What a name that every file knows is. Pipes are known by their position alone: `M` is a dimension elsewhere.
pub fn known(name: &str) -> Option<KnownName> {
    if let Some(word) = builtins::word(name) {
        return Some(match word {
            Word::DType(_) | Word::Index => KnownName::DType,
            Word::Loc(_) => KnownName::Loc,
            _ => KnownName::Word,
        });
    }
    if let Some(id) = ptoc_isa::lookup(name) {
        return Some(KnownName::Instruction(id));
    }
    (builtins::function(name).is_some() || SyncFn::from_name(name).is_some()).then_some(KnownName::Function)
}

/// What an occurrence stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Meaning {
    /// The definition whose name stands there.
    Source(Span),
    /// A module, by its file.
    Module(FileId),
    /// What every file knows.
    Known(KnownName),
}

/// What an occurrence does.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum OccurrenceAccess {
    /// It is the definition.
    Define,
    /// Takes the value.
    Read,
    /// Gives a value: left of `=`, or the destination of an instruction.
    Write,
    /// `use`
    Import,
    /// In a test line, in the braces of a text, or the name of an argument.
    Mention,
}

/// A name at a place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Occurrence {
    /// The name, nothing else.
    pub span: Span,
    /// What it stands for.
    pub meaning: Meaning,
    /// What is done with it.
    pub access: OccurrenceAccess,
}

/// The names of one file.
#[derive(Clone, Debug, Default)]
pub struct FileIndex {
    /// In the order of their names.
    pub definitions: Vec<Definition>,
    /// In source order; no two overlap.
    pub occurrences: Vec<Occurrence>,
}

/// The names of a file and of all that it imports.
#[derive(Clone, Debug, Default)]
pub struct NameIndex {
    files: FxHashMap<FileId, FileIndex>,
    /// The root, then imports in the order in which they are first met.
    order: Vec<FileId>,
}

impl NameIndex {
    /// The names of all modules, whose texts are in `sources`.
    pub fn new(modules: &Modules, sources: &SourceMap) -> NameIndex {
        let mut index = NameIndex::default();
        for (id, module) in modules.all() {
            index.order.push(module.file);
            index.files.insert(module.file, walk::file(modules, id, sources.text(module.file)));
        }
        index
    }

    /// The names of a file.
    pub fn file(&self, file: FileId) -> Option<&FileIndex> {
        self.files.get(&file)
    }

    /// All files, the root first.
    pub fn files(&self) -> impl Iterator<Item = (FileId, &FileIndex)> {
        self.order.iter().map(|id| (*id, &self.files[id]))
    }

    /// The occurrence that touches a byte; of two that do the one that begins there.
    pub fn at(&self, file: FileId, offset: u32) -> Option<&Occurrence> {
        let all = &self.files.get(&file)?.occurrences;
        let after = all.partition_point(|o| o.span.start <= offset);
        let before = all[..after].last()?;
        (offset <= before.span.end).then_some(before)
    }

    /// The definition whose name stands there.
    pub fn definition(&self, name: Span) -> Option<&Definition> {
        let all = &self.files.get(&name.file)?.definitions;
        all.binary_search_by_key(&name.start, |d| d.span.start).ok().map(|at| &all[at])
    }

    /// All occurrences of a definition, its own among them, file by file.
    pub fn occurrences(&self, name: Span) -> impl Iterator<Item = &Occurrence> {
        self.files().flat_map(|(_, f)| &f.occurrences).filter(move |o| o.meaning == Meaning::Source(name))
    }

    /// What can be named at a byte, the innermost first; of equal names only the one that is meant.
    pub fn visible(&self, file: FileId, offset: u32) -> Vec<&Definition> {
        let Some(index) = self.files.get(&file) else { return Vec::new() };
        // A field is named behind a `.`, where its record says which.
        let inside =
            |d: &&Definition| d.kind != DefinitionKind::Field && d.scope.start <= offset && offset <= d.scope.end;
        let mut found: Vec<&Definition> = index.definitions.iter().filter(inside).collect();
        found.sort_by_key(|d| (d.scope.end - d.scope.start, std::cmp::Reverse(d.span.start)));
        let mut names = rustc_hash::FxHashSet::default();
        found.retain(|d| names.insert(d.name.clone()));
        found
    }
}

#[cfg(test)]
mod tests;
