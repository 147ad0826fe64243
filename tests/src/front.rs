//! `ptoc check` in process: a file's kernels and programs through every stage that can refuse them.

use ptoc_analysis::{Bindings, Instance, instantiate, instantiate_program};
use ptoc_diagnostics::{Budget, Diagnostic, Diagnostics, FileId, SourceMap, render};
use ptoc_driver::repair::KernelSource;
use ptoc_isa::Target;
use ptoc_names::{ItemId, Loader, Modules, check_names};
use ptoc_passes::pipeline::{Pipeline, Request, pipeline_of};
use ptoc_syntax::ast::{ItemKind, Name};
use std::path::PathBuf;

/// What a check found, with the sources that it speaks of.
#[derive(Debug)]
pub struct Checked {
    /// All texts.
    pub sources: SourceMap,
    /// Sorted, without repetitions.
    pub diagnostics: Vec<Diagnostic>,
    /// Kernels that went through all passes.
    pub compiled: usize,
}

impl Checked {
    /// As a terminal of 100 columns without colours shows it.
    pub fn text(&self) -> String {
        let shown = self.diagnostics.iter().map(|d| render::terminal(d, &self.sources, false, 100));
        shown.collect::<Vec<_>>().join("\n")
    }

    /// The codes in order.
    pub fn codes(&self) -> Vec<&'static str> {
        self.diagnostics.iter().map(|d| d.code.as_str()).collect()
    }

    /// How many errors there are.
    pub fn errors(&self) -> usize {
        self.diagnostics.iter().filter(|d| d.is_error()).count()
    }
}

/// What stands on the command line beside the file.
#[derive(Clone, Debug)]
pub struct Flags {
    /// `--target`
    pub target: String,
    /// `-D NAME=VALUE`
    pub defs: Vec<(String, String)>,
}

impl Default for Flags {
    fn default() -> Flags {
        Flags { target: "a2a3".into(), defs: Vec::new() }
    }
}

impl Flags {
    /// From a command line's words.
    ///
    /// # Panics
    /// On any other word than `--target T` and `-D NAME=VALUE`: a mistake in the test.
    pub fn parse<'w>(words: impl IntoIterator<Item = &'w str>) -> Flags {
        let mut flags = Flags::default();
        let mut words = words.into_iter();
        while let Some(word) = words.next() {
            let value = words.next().expect("flags come in pairs");
            match word {
                "--target" => flags.target = value.into(),
                "-D" => {
                    let (name, value) = value.split_once('=').expect("-D NAME=VALUE");
                    flags.defs.push((name.into(), value.into()));
                }
                _ => panic!("unknown flag `{word}`"),
            }
        }
        flags
    }

    /// From comments such as `// target: a5` and `// -D N=3` among a file's first lines.
    pub fn of_comments(text: &str) -> Flags {
        let mut flags = Flags::default();
        for line in text.lines().map_while(|l| l.strip_prefix("//")) {
            let line = line.trim();
            if let Some(target) = line.strip_prefix("target:") {
                flags.target = target.trim().into();
            }
            for (name, value) in line.split("-D ").skip(1).filter_map(|d| d.trim().split_once('=')) {
                flags.defs.push((name.into(), value.into()));
            }
        }
        flags
    }
}

/// Modules of the standard library, and those of a directory.
pub struct Library<'s> {
    sources: &'s mut SourceMap,
    directory: Option<PathBuf>,
}

impl<'s> Library<'s> {
    /// The standard library alone.
    pub fn new(sources: &'s mut SourceMap) -> Library<'s> {
        Library { sources, directory: None }
    }
}

impl Loader for Library<'_> {
    fn load(&mut self, path: &[Name], _: FileId) -> Result<(FileId, String), String> {
        let parts: Vec<&str> = path.iter().map(|n| n.as_str()).collect();
        if let ["std", rest @ ..] = &parts[..] {
            let (name, text) = ptoc_stdlib::module(rest).ok_or("the standard library has `std::act`")?;
            let file = self.sources.find(name).unwrap_or_else(|| self.sources.add(name, text));
            return Ok((file, text.into()));
        }
        let name = format!("{}.tile", parts.join("/"));
        let directory = self.directory.as_ref().ok_or("there are no other files here")?;
        let text = std::fs::read_to_string(directory.join(&name)).map_err(|_| format!("there is no file `{name}`"))?;
        let file = self.sources.find(&name).unwrap_or_else(|| self.sources.add(name, text.as_str()));
        Ok((file, text))
    }
}

/// Checks `text`; imports are looked for in the standard library and in `directory`.
pub fn check(name: &str, text: &str, flags: &Flags, directory: Option<PathBuf>) -> Checked {
    let target = Target::builtin(&flags.target).expect("a target that exists");
    check_for(target, name, text, flags, directory)
}

/// As [`check`], for this target, which need not be one that comes with the compiler.
pub fn check_for(target: &Target, name: &str, text: &str, flags: &Flags, directory: Option<PathBuf>) -> Checked {
    let mut sources = SourceMap::default();
    let file = sources.add(name, text);
    let mut all = Diagnostics::new();
    let mut found = Vec::new();
    let modules = Modules::load(file, text, &mut Library { sources: &mut sources, directory }, &mut found);
    check_names(&modules, &mut found);
    let mut bindings = Bindings::default();
    for (name, value) in &flags.defs {
        if let Ok(i) = value.parse() {
            bindings.dims.insert(name.as_str().into(), i);
        }
        let file = sources.add(format!("<-D {name}>"), value.as_str());
        let (e, problems) = ptoc_syntax::parse_expr(file, value);
        found.extend(problems);
        bindings.defs.insert(name.as_str().into(), e);
    }
    all.extend(found);
    let mut compiled = 0;
    let mut pipeline = |instance: Instance, kernel: ItemId, bindings: &Bindings, all: &mut Diagnostics| {
        let source = KernelSource { sources: &sources, modules: &modules, kernel, bindings };
        let called = |d: Diagnostic| instance.debug.called_from(d);
        let budget = Budget::default();
        let request = Request::new(&source, &budget, Pipeline::of(target));
        match pipeline_of(instance.kernel, target, request) {
            Ok(prepared) => {
                all.extend(prepared.warnings.into_iter().map(called));
                compiled += 1;
            }
            Err(errors) => all.extend(errors.into_iter().map(called)),
        }
    };
    for (id, _) in modules.entries() {
        if matches!(modules.item(id).kind, ItemKind::Program(_)) {
            let outcome = instantiate_program(&modules, id, target, &bindings);
            all.extend(outcome.diagnostics);
            for step in outcome.result.into_iter().flat_map(|p| p.steps) {
                pipeline(step.instance, step.kernel, &step.bindings, &mut all);
            }
        } else {
            let outcome = instantiate(&modules, id, target, &bindings);
            all.extend(outcome.diagnostics);
            if let Some(instance) = outcome.result {
                pipeline(instance, id, &bindings, &mut all);
                // What may be absent is given, too.
                let mut given = bindings.clone();
                if let ItemKind::Kernel(k) = &modules.item(id).kind {
                    given.given =
                        k.params.iter().filter(|p| p.default.is_some()).map(|p| p.name.name.clone()).collect();
                }
                if !given.given.is_empty() {
                    let outcome = instantiate(&modules, id, target, &given);
                    all.extend(outcome.diagnostics);
                    outcome.result.into_iter().for_each(|i| pipeline(i, id, &given, &mut all));
                }
            }
        }
    }
    Checked { sources, diagnostics: all.into_sorted(), compiled }
}
