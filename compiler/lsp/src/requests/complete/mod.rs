//! Completion. The tokens around the cursor say what kind of thing can stand there, the index what can be named, and
//! the analysis what of that fits.

mod fit;
mod library;
mod words;

use super::hover;
use crate::client::Client;
use crate::context::Context;
use crate::cursor::{Cursor, Declared, Static};
use crate::failure::{Failure, read};
use crate::reply::{Reply, result};
use crate::world::World;
use lsp_types::{Range, TextDocumentPositionParams, TextEdit};
use ptoc_analysis::Fact;
use ptoc_driver::pto;
use ptoc_names::UsePlace;
use ptoc_names::index::{Definition, DefinitionKind, known};
use ptoc_syntax::Tok;
use serde::Serialize;
use serde_json::{Value, json};

/// What the protocol calls the kinds of proposals.
mod kinds {
    pub const METHOD: u32 = 2;
    pub const FUNCTION: u32 = 3;
    pub const VARIABLE: u32 = 6;
    pub const CLASS: u32 = 7;
    pub const MODULE: u32 = 9;
    pub const PROPERTY: u32 = 10;
    pub const KEYWORD: u32 = 14;
    pub const ENUM_MEMBER: u32 = 20;
    pub const CONSTANT: u32 = 21;
    pub const STRUCT: u32 = 22;
    pub const TYPE_PARAMETER: u32 = 25;
}

/// In which order proposals are shown: what fits the operand first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Fits,
    Named,
    Local,
    Item,
    Keyword,
    Instruction,
    Function,
    Location,
    DType,
    Layout,
    Library,
    Unfit,
}

/// A proposal.
struct Proposal {
    label: String,
    kind: u32,
    rank: Rank,
    detail: String,
    /// What is written, if not the label; with places to be filled if `snippet`.
    insert: Option<String>,
    snippet: bool,
    /// `use` lines and the like.
    more: Option<TextEdit>,
}

impl Proposal {
    fn new(label: impl Into<String>, kind: u32, rank: Rank, detail: impl Into<String>) -> Proposal {
        Proposal { label: label.into(), kind, rank, detail: detail.into(), insert: None, snippet: false, more: None }
    }
}

/// `textDocument/completion`
pub fn complete(world: &mut World, params: Value) -> Result<Reply, Failure> {
    let at: TextDocumentPositionParams = read(params)?;
    let context = world.known(&at.text_document.uri)?;
    let (word, mut found) = match pto::is_pto(context.loaded().sources.name(context.file())) {
        true => of_pto(context.text(), context.offset(at.position)),
        false => {
            let cursor = context.cursor(at.position);
            (cursor.word.clone(), proposals(context, &cursor))
        }
    };
    // The same name by two ways: the better one stays.
    found.sort_by(|a, b| (a.rank, &a.label).cmp(&(b.rank, &b.label)));
    let mut seen = std::collections::HashSet::new();
    found.retain(|p| seen.insert(p.label.clone()));
    let range = context.range_of(word);
    let client = &context.world.client;
    let items = found.iter().map(|p| Item::new(p, range, client)).collect();
    result(List {
        is_incomplete: false,
        item_defaults: client.edit_range.then_some(Defaults { edit_range: range }),
        items,
    })
}

/// What may stand at a place of PTO text, and the word that it replaces.
fn of_pto(text: &str, offset: usize) -> (std::ops::Range<usize>, Vec<Proposal>) {
    let (word, found) = pto::proposals(text, offset);
    let proposal = |p: pto::Proposal| {
        let (kind, rank) = match p.kind {
            pto::Proposed::Value => (kinds::VARIABLE, Rank::Local),
            pto::Proposed::Operation => (kinds::FUNCTION, Rank::Instruction),
            pto::Proposed::Type => (kinds::CLASS, Rank::DType),
            pto::Proposed::Attribute => (kinds::ENUM_MEMBER, Rank::Layout),
            pto::Proposed::Word => (kinds::KEYWORD, Rank::Keyword),
        };
        Proposal::new(p.label, kind, rank, p.detail)
    };
    (word, found.into_iter().map(proposal).collect())
}

/// Proposals as the protocol has them.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct List<'a> {
    is_incomplete: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    item_defaults: Option<Defaults>,
    items: Vec<Item<'a>>,
}

/// What holds for every proposal.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Defaults {
    edit_range: Range,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Item<'a> {
    label: &'a str,
    kind: u32,
    sort_text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    text_edit: Option<Edit<'a>>,
    /// Where the range is among the defaults, and what is written is not the label.
    #[serde(skip_serializing_if = "Option::is_none")]
    text_edit_text: Option<&'a str>,
    #[serde(skip_serializing_if = "str::is_empty")]
    detail: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    insert_text_format: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    additional_text_edits: Option<[&'a TextEdit; 1]>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Edit<'a> {
    range: Range,
    new_text: &'a str,
}

impl<'a> Item<'a> {
    /// A proposal; `range` is the word that it replaces.
    fn new(p: &'a Proposal, range: Range, client: &Client) -> Item<'a> {
        let snippet = p.snippet && client.snippets;
        let new_text = p.insert.as_deref().filter(|_| snippet || !p.snippet).unwrap_or(&p.label);
        Item {
            label: &p.label,
            kind: p.kind,
            sort_text: format!("{:02}{}", p.rank as u32, p.label),
            text_edit: (!client.edit_range).then_some(Edit { range, new_text }),
            text_edit_text: Some(new_text).filter(|text| client.edit_range && *text != p.label),
            detail: &p.detail,
            insert_text_format: snippet.then_some(2),
            additional_text_edits: p.more.as_ref().map(|more| [more]),
        }
    }
}

/// `completionItem/resolve`: the page of an instruction, a function, a location, when it is looked at.
pub fn resolve(world: &mut World, params: Value) -> Result<Reply, Failure> {
    let mut item = params;
    let Some(label) = item.get("label").and_then(Value::as_str) else {
        return Err(Failure::new(Failure::INVALID_PARAMS, "a proposal has a label"));
    };
    if let Some(page) = known(label).and_then(|k| hover::about_known(world.default_target(), k, label)) {
        item["documentation"] = json!({"kind": "markdown", "value": page});
    }
    result(item)
}

/// What can stand at the cursor.
fn proposals(context: Context<'_>, cursor: &Cursor<'_>) -> Vec<Proposal> {
    if cursor.quoted || cursor.word.clone().next().is_some_and(|at| context.text().as_bytes()[at].is_ascii_digit()) {
        return Vec::new();
    }
    match (cursor.previous(1), cursor.previous(2)) {
        (Some(Tok::Dot), _) => return words::members(context, cursor),
        (Some(Tok::LBracket), Some(Tok::Hash)) => return words::attributes(),
        (Some(Tok::Use), _) => return library::modules(context, &[]),
        (Some(Tok::PathSep), _) => return library::path(context, cursor),
        // What comes is a new name.
        (Some(Tok::Let | Tok::Var | Tok::Kernel | Tok::Program | Tok::For | Tok::Const | Tok::Atom | Tok::Type), _) => {
            return Vec::new();
        }
        (Some(Tok::Fn), _) => return Vec::new(),
        (Some(Tok::Tile), _) => return words::locations(context, Rank::Fits, true),
        (Some(Tok::Tensor), _) => return words::dtypes(context, Rank::Fits),
        (Some(Tok::LParen), Some(Tok::Name))
            if words::is_attribute(cursor.previous_text(2)) && cursor.previous(4) == Some(Tok::Hash) =>
        {
            return words::attribute_words(cursor.previous_text(2));
        }
        _ => {}
    }
    let start = matches!(cursor.previous(1), None | Some(Tok::Semi | Tok::LBrace | Tok::RBrace));
    // What the grammar wants here; where what is being written has a mistake before, the tokens alone say what may
    // come.
    let next = cursor.next(context.file());
    let keywords = |rank| next.iter().flat_map(move |n| words::keywords(&n.words, rank)).collect::<Vec<_>>();
    match cursor.declaration() {
        // A new name, or what begins a static parameter.
        Some(Declared::Name) => return keywords(Rank::Fits),
        Some(Declared::Type) => {
            let directions = keywords(Rank::Fits).into_iter().filter(|p| !words::is_value(&p.label));
            let directed = cursor.previous(1) != Some(Tok::Colon);
            let own = named(context, cursor, &[DefinitionKind::TypeParam]);
            return directions.chain(words::types(context, directed)).chain(own).collect();
        }
        _ => {}
    }
    if !cursor.in_block() && (start || cursor.previous(1) == Some(Tok::RBracket)) && cursor.bracket().is_none() {
        return words::items();
    }
    if next.as_ref().is_some_and(|n| !n.name) {
        return keywords(Rank::Fits);
    }
    if let Some(kind) = cursor.constant().or_else(|| fit::parameter(context, cursor)) {
        return constants(context, cursor, kind, keywords(Rank::Keyword));
    }
    let mut found = Vec::new();
    if start {
        found.extend(words::statements());
        found.extend(words::instructions(context));
    }
    found.extend(keywords(Rank::Keyword));
    if let Some(call) = cursor.call().filter(|c| !c.nested) {
        if call.statics && words::is_location(&call.name) {
            let at = if call.index == 0 { Rank::Fits } else { Rank::Unfit };
            found.extend(words::dtypes(context, at));
            found.extend(words::tile_options(&call));
        }
        found.extend(fit::arguments(context, cursor, &call));
    }
    found.extend(named(context, cursor, &[]));
    found.extend(cursor.locals().into_iter().map(|n| Proposal::new(n, kinds::VARIABLE, Rank::Local, "")));
    found.extend(words::functions(context));
    found.extend(words::values());
    found.extend(words::locations(context, Rank::Location, false));
    found.extend(words::dtypes(context, Rank::DType));
    found.extend(library::items(context));
    found
}

/// What is known when a kernel is compiled.
fn constants(context: Context<'_>, cursor: &Cursor<'_>, kind: Static, words: Vec<Proposal>) -> Vec<Proposal> {
    let mut found = Vec::new();
    match kind {
        Static::Field => found.extend(words::fields()),
        Static::DType => {
            found.extend(named(context, cursor, &[DefinitionKind::TypeParam]));
            found.extend(words::dtypes(context, Rank::DType));
        }
        Static::Type => {
            found.extend(named(context, cursor, &[DefinitionKind::TypeParam]));
            found.extend(words::types(context, false));
        }
        Static::Function => {
            found.extend(named(context, cursor, &[DefinitionKind::Function, DefinitionKind::FnParam]));
            found.extend(words::constant_functions(false));
            found.extend(library::items(context).into_iter().filter(|p| p.kind == kinds::FUNCTION));
        }
        Static::Constant => {
            let run =
                [DefinitionKind::Tensor, DefinitionKind::Variable, DefinitionKind::Kernel, DefinitionKind::Program];
            let all = scope(context, cursor).into_iter().filter(|d| !run.contains(&d.kind));
            found.extend(all.map(|d| proposal(context, d)));
            found.extend(words.into_iter().filter(|p| !matches!(p.label.as_str(), "tile" | "tensor")));
            found.extend(words::constant_functions(true));
            found.extend(words::values());
            found.extend(words::dtypes(context, Rank::DType));
            found.extend(library::items(context));
        }
    }
    found
}

/// What is in scope, of some kinds or of all.
fn named(context: Context<'_>, cursor: &Cursor<'_>, only: &[DefinitionKind]) -> Vec<Proposal> {
    let wanted = scope(context, cursor).into_iter().filter(|d| only.is_empty() || only.contains(&d.kind));
    wanted.map(|d| proposal(context, d)).collect()
}

/// What can be named, with what is imported.
fn scope<'a>(context: Context<'a>, cursor: &Cursor<'_>) -> Vec<&'a Definition> {
    let index = &context.loaded().index;
    let visible = index.visible(context.file(), cursor.word.start as u32);
    let imports = context.loaded().unit.modules.root().imports.iter();
    let imported = imports
        .filter_map(|(_, id)| index.definition(ptoc_names::item_name(context.loaded().unit.modules.item(*id))?.span));
    let defined = cursor.defined();
    visible.into_iter().filter(|d| !defined.contains(&d.span.start)).chain(imported).collect()
}

fn proposal(context: Context<'_>, d: &Definition) -> Proposal {
    let kind = match d.kind {
        DefinitionKind::Kernel | DefinitionKind::Program | DefinitionKind::Function | DefinitionKind::FnParam => {
            kinds::FUNCTION
        }
        DefinitionKind::Constant | DefinitionKind::ConstParam => kinds::CONSTANT,
        DefinitionKind::Atom => kinds::STRUCT,
        DefinitionKind::TypeParam | DefinitionKind::Dimension => kinds::TYPE_PARAMETER,
        _ => kinds::VARIABLE,
    };
    let rank = if d.kind.is_item() { Rank::Item } else { Rank::Local };
    Proposal::new(d.name.as_str(), kind, rank, type_of(context, d))
}

/// The type of a definition: what the analysis knows, what is written, or what it is.
fn type_of(context: Context<'_>, d: &Definition) -> String {
    let facts: Vec<String> = context.facts(d.span).map(Fact::to_string).collect();
    match (&facts[..], d.ty) {
        ([], Some(ty)) => context.loaded().sources.slice(ty).to_owned(),
        ([], None) => d.kind.words().to_owned(),
        (all, _) => all.join(" or "),
    }
}

/// Where `use` lines go.
struct Imports {
    range: Range,
    place: UsePlace,
}

impl Imports {
    fn of(context: Context<'_>) -> Imports {
        let place = UsePlace::of(&context.loaded().unit.modules.root().ast, context.text());
        let at = place.at as usize;
        Imports { range: context.range_of(at..at), place }
    }

    fn edit(&self, path: &str) -> TextEdit {
        TextEdit { range: self.range, new_text: self.place.text(path) }
    }
}
