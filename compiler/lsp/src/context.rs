//! A text that a request is about, with what is known of it.

use super::analysis::{Analysis, Loaded, load};
use super::cursor::Cursor;
use super::documents::Document;
use super::world::World;
use lsp_types::{Location, Position, Range, Uri};
use ptoc_analysis::Fact;
use ptoc_diagnostics::{FileId, Span};
use ptoc_isa::Target;
use ptoc_names::index::{Definition, DefinitionKind, Meaning, Occurrence};
use ptoc_names::item_name;
use ptoc_syntax::ast::Item;
use std::path::PathBuf;

/// An open text.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// All that the server knows.
    pub world: &'a World,
    /// The text's name.
    pub uri: &'a Uri,
    /// The text.
    pub document: &'a Document,
    /// What is known of it.
    pub analysis: &'a Analysis,
}

impl<'a> Context<'a> {
    /// The text with its imports.
    pub fn loaded(self) -> &'a Loaded {
        &self.analysis.loaded
    }

    /// The target that it is looked at for.
    pub fn target(self) -> &'static Target {
        self.world.target(self.uri)
    }

    /// The text.
    pub fn text(self) -> &'a str {
        &self.document.text
    }

    /// Its number.
    pub fn file(self) -> FileId {
        self.loaded().file()
    }

    /// The byte at a position.
    pub fn offset(self, at: Position) -> usize {
        self.document.lines.offset(&self.document.text, at, self.world.encoding)
    }

    /// What stands around a position, by the tokens.
    pub fn cursor(self, at: Position) -> Cursor<'a> {
        let offset = self.offset(at);
        Cursor::new(self.file(), self.text(), self.loaded().part(offset), offset)
    }

    /// The range of a span, in whichever file it is.
    pub fn range(self, span: Span) -> Range {
        self.world.range(self.loaded(), span)
    }

    /// The range of bytes of the text.
    pub fn range_of(self, bytes: std::ops::Range<usize>) -> Range {
        self.range(Span::new(self.file(), bytes.start as u32, bytes.end as u32))
    }

    /// A span as the protocol has it; what stands in no file has no place.
    pub fn location(self, span: Span) -> Option<Location> {
        Some(Location { uri: self.world.uri_of(self.loaded(), span.file)?, range: self.range(span) })
    }

    /// The name at a position.
    pub fn occurrence(self, at: Position) -> Option<&'a Occurrence> {
        self.loaded().index.at(self.file(), self.offset(at) as u32)
    }

    /// The name at a position, if a source text defines it.
    pub fn definition(self, at: Position) -> Option<(&'a Occurrence, &'a Definition)> {
        let occurrence = self.occurrence(at)?;
        let Meaning::Source(name) = occurrence.meaning else { return None };
        Some((occurrence, self.loaded().index.definition(name)?))
    }

    /// The item whose name stands there.
    pub fn item(self, name: Span) -> Option<&'a Item> {
        let modules = self.loaded().unit.modules.all();
        let mut items = modules.filter(|(_, m)| m.file == name.file).flat_map(|(_, m)| &m.ast.items);
        items.find(|item| item_name(item).is_some_and(|n| n.span == name))
    }

    /// What elaboration knows of a definition.
    pub fn facts(self, name: Span) -> impl Iterator<Item = &'a Fact> {
        let all = &self.analysis.names;
        let from = all.partition_point(|n| n.span < name);
        all[from..].iter().take_while(move |n| n.span == name).map(|n| &n.fact)
    }

    /// The texts in which a definition may be named, loaded: other files name items by importing them, and parameters
    /// of these in calls; what is defined inside of an item nobody else can name.
    pub fn reach(self, d: &Definition) -> Vec<(PathBuf, Loaded)> {
        let home = self.loaded().place(d.span.file);
        let items = self.loaded().unit.modules.all().flat_map(|(_, m)| &m.ast.items);
        let around = items.filter(|item| item.span.contains(d.span)).find_map(item_name);
        let units = match (d.kind, around) {
            (
                DefinitionKind::ConstParam
                | DefinitionKind::TypeParam
                | DefinitionKind::FnParam
                | DefinitionKind::Tensor
                | DefinitionKind::Parameter,
                Some(item),
            ) => self.world.with_words(&[&d.name, &item.name]),
            (_, Some(item)) if item.span != d.span => {
                let text = self.loaded().sources.text(d.span.file);
                let loaded = load(&home, text, &self.world.texts());
                vec![(home.clone(), loaded)]
            }
            _ => self.world.with_words(&[&d.name]),
        };
        // Elsewhere the word is somebody else's.
        let imports = |u: &Loaded| u.sources.files().any(|file| u.place(file) == home);
        units.into_iter().filter(|(_, u)| imports(u)).collect()
    }
}
