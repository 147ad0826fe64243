//! Source text to loop IR: every stage may refuse with diagnostics, none may panic or produce what a verifier refuses.

use super::{hash, ir};
use ptoc_analysis::{Bindings, instantiate, instantiate_program};
use ptoc_diagnostics::{Diagnostic, FileId, SourceMap, codes, render};
use ptoc_ir::loops;
use ptoc_ir::tile::Kernel;
use ptoc_ir::tile::verify::verify;
use ptoc_isa::Target;
use ptoc_names::{ItemId, Loader, Modules, Tree, check_names};
use ptoc_passes::Prepared;
use ptoc_syntax::ast::{ItemKind, KernelItem, Name, StaticKind};
use std::sync::Arc;

/// The second target, beside a2a3.
const TARGETS: [&str; 3] = ["kirin9030", "a5", "kirinx90"];

/// What dimensions are bound to when a kernel waits for them.
const DIMS: [i64; 6] = [32, 16, 64, 7, 1, 100];

/// Rounds of binding dimensions.
const ROUNDS: usize = 4;

/// Modules of the standard library, and no others.
pub struct Library<'s> {
    /// Where their texts go.
    pub sources: &'s mut SourceMap,
}

impl Loader for Library<'_> {
    fn load(&mut self, path: &[Name], _: FileId) -> Result<(FileId, String), String> {
        let parts: Vec<&str> = path.iter().map(|n| n.as_str()).collect();
        let ["std", rest @ ..] = &parts[..] else { return Err("there are no other files".into()) };
        let (name, text) = ptoc_stdlib::module(rest).ok_or("no such module")?;
        Ok((self.sources.add(name, text), text.into()))
    }

    fn tree(&mut self, file: FileId, text: &str) -> Arc<Tree> {
        let is_pto = ptoc_driver::pto::is_pto(self.sources.name(file));
        Arc::new(if is_pto { ptoc_driver::pto::tree(file, text) } else { Tree::new(file, text) })
    }
}

/// A parsed source with what its kernels become.
pub(crate) struct Source {
    /// All texts.
    pub sources: SourceMap,
    /// The files' trees.
    pub modules: Modules,
    /// From parsing and names.
    pub diagnostics: Vec<Diagnostic>,
    /// What picks the sizes of dimensions.
    pub seed: u64,
}

impl Source {
    /// Parses and resolves names of a file, whose name says whether it is PTO text.
    pub fn new(name: &str, data: &[u8]) -> Source {
        let text = String::from_utf8_lossy(data);
        let mut sources = SourceMap::default();
        let file = sources.add(name, &*text);
        let mut diagnostics = Vec::new();
        let modules = Modules::load(file, &text, &mut Library { sources: &mut sources }, &mut diagnostics);
        check_names(&modules, &mut diagnostics);
        Source { sources, modules, diagnostics, seed: hash(data) }
    }

    /// Every kernel for `target`, first with nothing known, then with the dimensions bound that it waits for.
    pub fn kernels(&self, target: &Target) -> Vec<Kernel> {
        let entries: Vec<(ItemId, &KernelItem)> = self.modules.entries().collect();
        entries.into_iter().flat_map(|(id, item)| self.kernel(id, item, target)).collect()
    }

    fn kernel(&self, id: ItemId, item: &KernelItem, target: &Target) -> Vec<Kernel> {
        let mut bindings = self.statics(item);
        let mut all = Vec::new();
        for round in 0..ROUNDS {
            let waits = if matches!(self.modules.item(id).kind, ItemKind::Program(_)) {
                let outcome = instantiate_program(&self.modules, id, target, &bindings);
                self.render(&outcome.diagnostics);
                self.consistent(&outcome.diagnostics, outcome.result.is_some(), &outcome.waits);
                let steps = outcome.result.into_iter().flat_map(|p| p.steps);
                all.extend(steps.map(|s| s.instance.kernel));
                outcome.waits
            } else {
                let outcome = instantiate(&self.modules, id, target, &bindings);
                self.render(&outcome.diagnostics);
                self.consistent(&outcome.diagnostics, outcome.result.is_some(), &outcome.waits);
                all.extend(outcome.result.map(|i| i.kernel));
                outcome.waits
            };
            if waits.is_empty() {
                break;
            }
            for (n, name) in waits.into_iter().enumerate() {
                let pick = ((self.seed >> (8 * round)) as usize).wrapping_add(n);
                bindings.dims.entry(name).or_insert(DIMS[pick % DIMS.len()]);
            }
        }
        all
    }

    /// Something for every static parameter without a default.
    fn statics(&self, item: &KernelItem) -> Bindings {
        let mut bindings = Bindings::default();
        for param in &item.statics {
            let text = match &param.kind {
                StaticKind::Const { default: None, .. } => "32",
                StaticKind::Type { default: None } => "f32",
                _ => continue,
            };
            // The expression's spans point into the source; where is of no interest.
            let (e, _) = ptoc_syntax::parse_expr(FileId(0), text);
            bindings.defs.insert(param.name.name.clone(), e);
        }
        bindings
    }

    /// Nothing is made in spite of an error, and nothing is refused in silence.
    fn consistent(&self, diagnostics: &[Diagnostic], made: bool, waits: &[Name]) {
        let errors = diagnostics.iter().any(Diagnostic::is_error);
        assert!(!made || !errors && waits.is_empty(), "made, but waits for {waits:?} and says {diagnostics:#?}");
        let reason = errors || !waits.is_empty() || self.diagnostics.iter().any(Diagnostic::is_error);
        assert!(made || reason, "refused in silence: {diagnostics:#?}");
    }

    /// Shows diagnostics in every form.
    pub fn render(&self, diagnostics: &[Diagnostic]) {
        for d in diagnostics {
            for (color, width) in [(false, 100), (true, 20)] {
                assert!(!render::terminal(d, &self.sources, color, width).is_empty());
            }
            let json = render::json(d, &self.sources);
            assert!(json.starts_with('{') && !json.contains('\n'), "{json}");
        }
    }
}

/// The passes, with what must hold of their product.
pub(crate) fn passes(kernel: Kernel, target: &Target) -> Result<Prepared, Vec<Diagnostic>> {
    let prepared = ptoc_passes::pipeline(kernel, target).inspect_err(|errors| {
        assert!(errors.iter().any(Diagnostic::is_error), "refused without an error: {errors:#?}");
        assert!(!errors.iter().any(|d| d.code == codes::PLAN_FAULT), "{errors:#?}");
    })?;
    if let Err(errors) = verify(&prepared.placed.kernel) {
        panic!("the passes broke the kernel:\n{}\n{errors:#?}", prepared.placed);
    }
    if let Some(module) = &prepared.module
        && let Err(errors) = loops::verify(module)
    {
        panic!("invalid loop IR:\n{}\n{errors:#?}", loops::text::print(module, false));
    }
    Ok(prepared)
}

/// Bytes as source text, through every stage on two targets.
pub fn source_to_ir(data: &[u8]) {
    let source = Source::new("fuzz.tile", data);
    source.render(&source.diagnostics);
    for name in ["a2a3", TARGETS[source.seed as usize % TARGETS.len()]] {
        let target = Target::builtin(name).expect("built in");
        for kernel in source.kernels(target) {
            if let Err(errors) = verify(&kernel) {
                panic!("invalid tile IR:\n{}\n{errors:#?}", kernel);
            }
            ir::round_trip(&kernel);
            match passes(kernel, target) {
                Ok(prepared) => {
                    source.render(&prepared.warnings);
                    prepared.module.iter().for_each(|module| super::loops::round_trip(module));
                }
                Err(errors) => source.render(&errors),
            }
        }
    }
}
