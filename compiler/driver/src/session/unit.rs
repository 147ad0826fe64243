//! A file with its imports, and the kernels and programs in it.

use crate::defs::Definitions;
use ptoc_diagnostics::{Diagnostic, FileId, Span, codes, list, suggest};
use ptoc_isa::Loc;
use ptoc_names::{ItemId, ModuleId, Modules, WORD_NAMES};
use ptoc_syntax::ast::{Expr, ExprKind, Ident, ItemKind, KernelItem, Name, Param, StaticParam};
use ptoc_tensor::DType;
use std::collections::HashSet;
use std::path::PathBuf;

/// A file with everything that it imports.
#[derive(Debug)]
pub struct CompilationUnit {
    /// The path as it was given.
    pub path: PathBuf,
    /// The file.
    pub file: FileId,
    /// Its tree and those of its imports.
    pub modules: Modules,
}

/// A kernel or program of a unit.
#[derive(Clone, Copy, Debug)]
pub struct EntryPoint<'u> {
    /// The item.
    pub id: ItemId,
    /// The declaration.
    pub item: &'u KernelItem,
    /// A program, and no kernel.
    pub program: bool,
}

impl CompilationUnit {
    /// Kernels and programs, in source order.
    pub fn entries(&self) -> Vec<EntryPoint<'_>> {
        let program = |id| matches!(self.modules.item(id).kind, ItemKind::Program(_));
        self.modules.entries().map(|(id, item)| EntryPoint { id, item, program: program(id) }).collect()
    }

    /// The entry of that name; without a name, the only one. `command` is for the message's example.
    pub fn entry(&self, name: Option<&str>, command: &str) -> Result<EntryPoint<'_>, Box<Diagnostic>> {
        let entries = self.entries();
        let names: Vec<&str> = entries.iter().map(|e| e.item.name.name.as_str()).collect();
        let path = self.path.display();
        let Some(name) = name else {
            return match &entries[..] {
                [only] => Ok(*only),
                [] => {
                    Err(Box::new(Diagnostic::global(codes::WHICH_KERNEL, format!("`{path}` has no kernel")).with_help(
                        match crate::pto::is_pto(&path.to_string()) {
                            true => "a kernel is a function of a module: `func.func @NAME(ARGUMENTS) {`",
                            false => "a kernel begins with `kernel NAME(ARGUMENTS) {`",
                        },
                    )))
                }
                _ => Err(Box::new(
                    Diagnostic::global(
                        codes::WHICH_KERNEL,
                        format!("`{path}` has {} kernels: which one?", names.len()),
                    )
                    .with_note(format!("it has {}", list(names.iter().copied())))
                    .with_help(format!("name one: `ptoc {command} {path} {}`", names[0])),
                )),
            };
        };
        if let Some(found) = entries.iter().find(|e| e.item.name.name == name) {
            return Ok(*found);
        }
        // A function of PTO text may have a name that no kernel has.
        let other = format!("{name}_");
        if let Some(found) = entries.iter().find(|e| e.item.name.name == other && crate::pto::is_pto(&path.to_string()))
        {
            return Ok(*found);
        }
        let mut d = Diagnostic::global(codes::UNKNOWN_KERNEL, format!("`{path}` has no kernel `{name}`"));
        d = match names.is_empty() {
            true => d.with_note("it has no kernel at all"),
            false => d.with_note(format!("it has {}", list(names.iter().copied()))),
        };
        if let Some(near) = suggest(name, names.iter().copied()) {
            d = d.with_help(format!("did you mean `{near}`?"));
        }
        Err(Box::new(d))
    }
}

impl EntryPoint<'_> {
    /// The dimensions, each where it is first used: bare names in the types of tensors that nothing else defines.
    /// This is the rule of the analysis, needed here before there is an instance.
    pub fn dimensions(&self, unit: &CompilationUnit) -> Vec<Ident> {
        let mut found: Vec<Ident> = Vec::new();
        let item = self.item;
        let given = item.statics.iter().map(|s| &s.name.name).chain(item.params.iter().map(|p| &p.name.name));
        // Names that are none, or are found already.
        let mut taken: HashSet<&Name> = given.collect();
        for param in &self.item.params {
            for extent in extents(param).unwrap_or_default() {
                self.add_dimensions(extent, unit, &mut taken, &mut found);
            }
        }
        found
    }

    /// Those of an extent: a name, or names in the shape of a layout.
    fn add_dimensions<'e>(
        &self,
        extent: &'e Expr,
        unit: &CompilationUnit,
        taken: &mut HashSet<&'e Name>,
        found: &mut Vec<Ident>,
    ) {
        match &*extent.kind {
            ExprKind::Name(name) if taken.insert(name) && is_free(name, unit, self.id.module) => {
                found.push(Ident { name: name.clone(), span: extent.span });
            }
            ExprKind::Layout(e, _) | ExprKind::Paren(e) => self.add_dimensions(e, unit, taken, found),
            ExprKind::Tuple(list) => list.iter().for_each(|e| self.add_dimensions(e, unit, taken, found)),
            _ => {}
        }
    }

    /// The extents of a tensor argument's array, one for each mode; `None` where the layout's value says how many there
    /// are.
    pub fn axes<'p>(&self, param: &'p Param, unit: &CompilationUnit) -> Option<Vec<&'p Expr>> {
        let extents = extents(param).unwrap_or_default();
        let [one] = extents[..] else { return Some(extents) };
        match &*one.kind {
            ExprKind::Layout(shape, _) => Some(match &*shape.kind {
                ExprKind::Tuple(list) => list.iter().collect(),
                ExprKind::Paren(e) => vec![e],
                _ => vec![shape],
            }),
            ExprKind::Name(n) if !self.is_dimension(n, unit) => None,
            ExprKind::Call(..) => None,
            _ => Some(extents),
        }
    }

    /// Whether the parameter has one mode more than an array of this rank, which 1 can be the extent of: a batch. A
    /// vector is no matrix of one column.
    pub fn has_batch(&self, param: &Param, rank: usize) -> bool {
        let extents = extents(param).unwrap_or_default();
        let free = |n: &Name| {
            !self.item.statics.iter().any(|s| s.name.name == *n) && !self.item.params.iter().any(|p| p.name.name == *n)
        };
        let last = extents.last().map(|e| &*e.kind);
        rank >= 2
            && extents.len() == rank + 1
            && match last {
                Some(ExprKind::Name(n)) => free(n),
                Some(ExprKind::Int(n)) => *n == 1,
                _ => false,
            }
    }

    /// Whether a bare name in a tensor's type is a dimension.
    pub fn is_dimension(&self, name: &Name, unit: &CompilationUnit) -> bool {
        let item = self.item;
        !(item.statics.iter().any(|s| s.name.name == *name) || item.params.iter().any(|p| p.name.name == *name))
            && is_free(name, unit, self.id.module)
    }

    /// Everything that `-D` can set: static parameters, also of what a program launches, scalar arguments, dimensions.
    pub fn settable(&self, unit: &CompilationUnit) -> Vec<Name> {
        let statics = self.static_params(unit).into_iter().map(|(name, _)| name);
        let scalars = self.item.params.iter().filter(|p| extents(p).is_none()).map(|p| p.name.name.clone());
        statics.chain(scalars).chain(self.dimensions(unit).into_iter().map(|d| d.name)).collect()
    }

    /// Static parameters, by the names that set them: its own, and those of what a program launches as `KERNEL.NAME`,
    /// for launches that do not give them.
    pub fn static_params<'u>(&self, unit: &'u CompilationUnit) -> Vec<(Name, &'u StaticParam)>
    where
        Self: 'u,
    {
        let (ItemKind::Kernel(item) | ItemKind::Program(item)) = &unit.modules.item(self.id).kind else {
            return Vec::new();
        };
        let own = item.statics.iter().map(|s| (s.name.name.clone(), s));
        let launched = ptoc_names::launched(&unit.modules, self.id);
        let theirs = launched
            .iter()
            .flat_map(|(_, k)| k.statics.iter().map(|s| (Name::new(format!("{}.{}", k.name.name, s.name.name)), s)));
        let mut seen = HashSet::new();
        own.chain(theirs).filter(|(name, _)| seen.insert(name.clone())).collect()
    }

    /// The tensor arguments in order.
    pub fn tensors(&self) -> impl Iterator<Item = &Param> {
        self.item.params.iter().filter(|p| extents(p).is_some())
    }

    /// A static parameter without a default that no definition sets.
    pub fn missing_static(&self, definitions: &Definitions) -> Option<&Ident> {
        use ptoc_syntax::ast::StaticKind as K;
        let missing = |kind: &K| match kind {
            K::Const { default, .. } | K::Type { default } => default.is_none(),
            K::Fn { default } => default.is_none(),
        };
        let found =
            self.item.statics.iter().find(|s| missing(&s.kind) && !definitions.values.contains_key(&s.name.name));
        found.map(|s| &s.name)
    }

    /// `kernel` or `program`.
    pub fn word(&self) -> &'static str {
        if self.program { "program" } else { "kernel" }
    }
}

/// Whether neither the module nor the language knows a name.
fn is_free(name: &Name, unit: &CompilationUnit, module: ModuleId) -> bool {
    !(unit.modules.get(module).scope.contains_key(name)
        || WORD_NAMES.contains(&name.as_str())
        || DType::from_name(name).is_some()
        || Loc::from_name(name).is_some())
}

/// The extents in a tensor's type; `None` for a scalar argument.
pub fn extents(param: &Param) -> Option<Vec<&Expr>> {
    match &*param.ty.kind {
        ExprKind::Index(_, dims) => Some(dims.iter().map(|d| &d.value).collect()),
        _ => None,
    }
}

/// The span of an argument's type.
pub fn type_span(param: &Param) -> Span {
    param.ty.span
}
