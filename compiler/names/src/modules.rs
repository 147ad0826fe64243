//! Source files and what they import from each other. Reading a file is the caller's: see [`Loader`].

use crate::library::UsePlace;
use indexmap::IndexMap;
use ptoc_diagnostics::{Diagnostic, FileId, Span, codes, suggest};
use ptoc_syntax::Directive;
use ptoc_syntax::ast::{self, Ident, Item, ItemKind, Name};
use rustc_hash::FxHashMap;
use std::sync::{Arc, OnceLock};

/// Depth of imports; also what stops a loader that never gives the same id twice.
const MAX_IMPORTS: usize = 64;

/// Gives the text of imported modules.
pub trait Loader {
    /// The module at `path` (`["std", "scan"]`), imported by the file `from`. The same module gives the same id each
    /// time. `Err` says what was looked for.
    fn load(&mut self, path: &[Name], from: FileId) -> Result<(FileId, String), String>;

    /// The tree of a text that was loaded, or of the root. Who keeps trees may give one that was made before of the
    /// same file and text.
    fn tree(&mut self, file: FileId, text: &str) -> Arc<Tree> {
        Arc::new(Tree::new(file, text))
    }
}

/// What is read off the text of one file alone.
#[derive(Debug)]
pub struct Tree {
    /// The tree.
    pub ast: Arc<ast::File>,
    /// What is wrong with the text.
    pub diagnostics: Vec<Diagnostic>,
    /// Its test lines.
    pub directives: Vec<Directive>,
    /// Where one more `use` goes.
    pub imports: UsePlace,
}

impl Tree {
    /// Parses a text.
    pub fn new(file: FileId, text: &str) -> Tree {
        let parsed = ptoc_syntax::parse(file, text);
        let imports = UsePlace::of(&parsed.file, text);
        let (diagnostics, directives) = (parsed.diagnostics, parsed.directives);
        Tree { ast: Arc::new(parsed.file), diagnostics, directives, imports }
    }
}

/// A loader for a file that imports nothing.
pub struct NoImports;

impl Loader for NoImports {
    fn load(&mut self, path: &[Name], _: FileId) -> Result<(FileId, String), String> {
        Err(format!("no module `{}` here", join(path)))
    }
}

/// Index of a module.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ModuleId(pub u32);

/// An item of a module.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ItemId {
    /// The module.
    pub module: ModuleId,
    /// Index into its items.
    pub index: u32,
}

/// One file, parsed.
#[derive(Debug)]
pub struct Module {
    /// The import path; empty for the root.
    pub path: Vec<Name>,
    /// The file.
    pub file: FileId,
    /// The tree.
    pub ast: Arc<ast::File>,
    /// What the file's own names and imports mean.
    pub scope: IndexMap<Name, ItemId>,
    /// Uses, with the span of the imported name, for "unused" warnings.
    pub imports: Vec<(Ident, ItemId)>,
    /// Names whose import failed: that was reported, their uses are not.
    pub broken: Vec<Name>,
    /// What its test lines give to parameters (`act=silu`): names in there are used.
    pub given: Vec<Name>,
    /// Its test lines.
    pub directives: Vec<Directive>,
    /// Where one more `use` goes.
    pub new_import: UsePlace,
}

/// All files of a compilation; the root is the first.
#[derive(Debug, Default)]
pub struct Modules {
    list: Vec<Module>,
    /// An error of names is in one of them. Cached, since every kernel that is refused asks.
    misnamed: OnceLock<bool>,
}

impl Modules {
    /// Parses `text` and, through `loader`, everything that it imports.
    pub fn load(file: FileId, text: &str, loader: &mut dyn Loader, out: &mut Vec<Diagnostic>) -> Modules {
        let mut modules = Modules::default();
        let mut open = Vec::new();
        let mut known = FxHashMap::default();
        modules.add(Vec::new(), file, text, loader, out, &mut open, &mut known);
        modules
    }

    /// Names that the command line gives to parameters of the root (`-D act=gelu`): they are used, as those of test
    /// lines are.
    pub fn give(&mut self, names: impl IntoIterator<Item = Name>) {
        self.list[0].given.extend(names);
    }

    /// Names were checked, and some are wrong or none.
    pub(crate) fn note_names(&self, wrong: bool) {
        self.misnamed.get_or_init(|| wrong);
    }

    /// Whether a name is wrong somewhere.
    pub fn misnamed(&self) -> bool {
        if let Some(known) = self.misnamed.get() {
            return *known;
        }
        let mut found = Vec::new();
        crate::resolve::check(self, &mut found);
        found.iter().any(Diagnostic::is_error)
    }

    /// The file that was asked for.
    pub fn root(&self) -> &Module {
        &self.list[0]
    }

    /// All modules, the root first.
    pub fn all(&self) -> impl Iterator<Item = (ModuleId, &Module)> {
        self.list.iter().enumerate().map(|(i, m)| (ModuleId(i as u32), m))
    }

    /// A module.
    pub fn get(&self, id: ModuleId) -> &Module {
        &self.list[id.0 as usize]
    }

    /// An item.
    pub fn item(&self, id: ItemId) -> &Item {
        &self.get(id.module).ast.items[id.index as usize]
    }

    /// Kernels and programs of the root, in source order.
    pub fn entries(&self) -> impl Iterator<Item = (ItemId, &ast::KernelItem)> {
        self.root().ast.items.iter().enumerate().filter_map(|(i, item)| match &item.kind {
            ItemKind::Kernel(k) | ItemKind::Program(k) => Some((ItemId { module: ModuleId(0), index: i as u32 }, k)),
            _ => None,
        })
    }

    #[allow(clippy::too_many_arguments, reason = "one recursive walk with its state")]
    fn add(
        &mut self,
        path: Vec<Name>,
        file: FileId,
        text: &str,
        loader: &mut dyn Loader,
        out: &mut Vec<Diagnostic>,
        open: &mut Vec<(FileId, Vec<Name>)>,
        known: &mut FxHashMap<FileId, ModuleId>,
    ) -> ModuleId {
        let tree = loader.tree(file, text);
        out.extend(tree.diagnostics.iter().cloned());
        let id = ModuleId(self.list.len() as u32);
        let mut scope: IndexMap<Name, ItemId> = IndexMap::new();
        let mut spans: FxHashMap<Name, Span> = FxHashMap::default();
        for (i, item) in tree.ast.items.iter().enumerate() {
            let Some(name) = item_name(item) else { continue };
            if let Some(first) = spans.get(&name.name) {
                out.push(
                    Diagnostic::error(codes::DUPLICATE_NAME, name.span, format!("`{}` is defined twice", name.name))
                        .with_label("second definition")
                        .with_secondary(*first, "first definition"),
                );
                continue;
            }
            spans.insert(name.name.clone(), name.span);
            scope.insert(name.name.clone(), ItemId { module: id, index: i as u32 });
        }
        let uses: Vec<Vec<Ident>> = tree
            .ast
            .items
            .iter()
            .filter_map(|i| if let ItemKind::Use(p) = &i.kind { Some(p.clone()) } else { None })
            .collect();
        self.list.push(Module {
            path: path.clone(),
            file,
            ast: Arc::clone(&tree.ast),
            scope,
            imports: Vec::new(),
            broken: Vec::new(),
            given: given(&tree.directives),
            directives: tree.directives.clone(),
            new_import: tree.imports,
        });
        known.insert(file, id);
        open.push((file, path));
        for segments in uses {
            if self.import(id, &segments, &spans, loader, out, open, known).is_none()
                && let Some(name) = segments.last()
            {
                self.list[id.0 as usize].broken.push(name.name.clone());
            }
        }
        open.pop();
        id
    }

    #[allow(clippy::too_many_arguments, reason = "one recursive walk with its state")]
    fn import(
        &mut self,
        into: ModuleId,
        segments: &[Ident],
        spans: &FxHashMap<Name, Span>,
        loader: &mut dyn Loader,
        out: &mut Vec<Diagnostic>,
        open: &mut Vec<(FileId, Vec<Name>)>,
        known: &mut FxHashMap<FileId, ModuleId>,
    ) -> Option<()> {
        let (item, module_path) = segments.split_last()?;
        let whole = segments[0].span.to(item.span);
        if module_path.is_empty() {
            out.push(
                Diagnostic::error(
                    codes::UNKNOWN_MODULE,
                    whole,
                    format!("`use {}` names no item of a module", item.name),
                )
                .with_label("an item without its module")
                .with_help("write `use module::item;`, for example `use std::act::gelu;`"),
            );
            return None;
        }
        let path: Vec<Name> = module_path.iter().map(|i| i.name.clone()).collect();
        let module_span = module_path[0].span.to(module_path[module_path.len() - 1].span);
        // A module is its file: one path may mean different files from different directories.
        let (file, text) = match loader.load(&path, self.get(into).file) {
            Ok(found) => found,
            Err(why) => {
                out.push(
                    Diagnostic::error(codes::UNKNOWN_MODULE, module_span, format!("no module `{}`", join(&path)))
                        .with_label("not found")
                        .with_note(why),
                );
                return None;
            }
        };
        if open.iter().any(|(f, _)| *f == file) || open.len() >= MAX_IMPORTS {
            out.push(
                Diagnostic::error(codes::IMPORT_CYCLE, whole, format!("module `{}` imports itself", join(&path)))
                    .with_label("this closes the circle")
                    .with_note(circle(open, file))
                    .with_help("move what both need into a third module"),
            );
            return None;
        }
        let target = match known.get(&file) {
            Some(id) => *id,
            None => self.add(path.clone(), file, &text, loader, out, open, known),
        };
        let found = self.get(target).scope.get(&item.name).copied().filter(|i| i.module == target);
        if let Some(id) = found.filter(|_| is_private(&item.name)) {
            out.push(self.private(id, item, &path));
            return None;
        }
        let Some(found) = found else {
            let own = self.get(target).scope.iter().filter(|(n, id)| id.module == target && !is_private(n));
            let names: Vec<&str> = own.map(|(n, _)| n.as_str()).collect();
            let mut d = Diagnostic::error(
                codes::UNKNOWN_ITEM,
                item.span,
                format!("module `{}` has no item `{}`", join(&path), item.name),
            )
            .with_label("not in this module");
            if let Some(s) = suggest(&item.name, names.iter().copied()) {
                d = d.with_suggestion(format!("did you mean `{s}`?"), item.span, s);
            } else {
                d = d.with_note(format!("it defines: {}", names.join(", ")));
            }
            out.push(d);
            return None;
        };
        let clash = spans
            .get(&item.name)
            .copied()
            .or_else(|| self.get(into).imports.iter().find(|(i, _)| i.name == item.name).map(|(i, _)| i.span));
        if let Some(first) = clash {
            out.push(
                Diagnostic::error(codes::DUPLICATE_NAME, item.span, format!("`{}` is defined twice", item.name))
                    .with_label("imported a second time under this name")
                    .with_secondary(first, "first definition"),
            );
            return None;
        }
        let module = &mut self.list[into.0 as usize];
        module.scope.insert(item.name.clone(), found);
        module.imports.push((item.clone(), found));
        Some(())
    }

    /// The refusal of an import of a private item.
    fn private(&self, id: ItemId, item: &Ident, path: &[Name]) -> Diagnostic {
        let message = format!("`{}` is private to module `{}`", item.name, join(path));
        let d = Diagnostic::error(codes::UNKNOWN_ITEM, item.span, message)
            .with_label("for that module alone: its name begins with `_`")
            .with_help(format!("call it `{}` there, if it is for others", item.name.trim_start_matches('_')));
        match item_name(self.item(id)) {
            Some(name) => d.with_secondary(name.span, "defined here"),
            None => d,
        }
    }
}

/// Whether an item of this name is for its own module alone.
pub fn is_private(name: &str) -> bool {
    name.starts_with('_')
}

/// The name that an item defines.
pub fn item_name(item: &Item) -> Option<&Ident> {
    match &item.kind {
        ItemKind::Const(c) => Some(&c.name),
        ItemKind::Fn(f) => Some(&f.name),
        ItemKind::Kernel(k) | ItemKind::Program(k) => Some(&k.name),
        ItemKind::Atom(a) => Some(&a.name),
        ItemKind::Use(_) | ItemKind::Error => None,
    }
}

/// `a -> b -> a`
fn circle(open: &[(FileId, Vec<Name>)], back: FileId) -> String {
    let from = open.iter().position(|(f, _)| *f == back).unwrap_or(0);
    let name = |p: &Vec<Name>| if p.is_empty() { "this file".to_string() } else { format!("`{}`", join(p)) };
    let mut chain: Vec<String> = open[from..].iter().map(|(_, p)| name(p)).collect();
    chain.extend(chain.first().cloned());
    chain.join(" -> ")
}

fn join(path: &[Name]) -> String {
    path.iter().map(|n| n.as_str()).collect::<Vec<_>>().join("::")
}

/// The values that test lines give to parameters.
fn given(directives: &[Directive]) -> Vec<Name> {
    directives.iter().flat_map(|d| &d.settings().params).map(|p| p.value.clone()).collect()
}
