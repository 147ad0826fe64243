//! Elaboration of kernels and programs, with what `-D` gives them.

use super::{CompilationUnit, EntryPoint, Failed, Session};
use crate::defs;
use ptoc_analysis::{Bindings, ElaborationOutcome, Instance, ProgramInstance};
use ptoc_diagnostics::{Diagnostic, Fix, Severity, codes, list, suggest};
use ptoc_isa::Loc;
use ptoc_names::ItemId;
use ptoc_syntax::ast::Name;
use std::collections::HashSet;
use std::rc::Rc;

/// A number for a dimension, where a command is proposed.
const EXAMPLE: i64 = 128;

/// What it means that a kernel cannot be elaborated before the numbers of some dimensions are known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Waiting {
    /// That the rest of it is not checked.
    IsNote,
    /// That there is nothing to compile.
    IsError,
}

impl Session {
    /// Errors for definitions that mean nothing to any of these kernels.
    pub fn check_definitions(&mut self, entries: &[EntryPoint<'_>], unit: &CompilationUnit) {
        let who = match entries {
            [only] => format!("`{}` has nothing", only.item.name.name),
            _ => format!("no kernel of `{}` has anything", unit.path.display()),
        };
        let known: Vec<Name> = entries.iter().flat_map(|e| e.settable(unit)).collect();
        self.check_known(&known, &who);
    }

    /// Errors for definitions of names that are not `known`. `who` has "nothing called so".
    pub fn check_known(&mut self, known: &[Name], who: &str) {
        let mut seen: HashSet<&str> = HashSet::new();
        let names: Vec<&str> = known.iter().map(Name::as_str).filter(|n| seen.insert(n)).collect();
        let given = self.definitions.values.keys().filter(|n| !self.definitions.of_project.contains(*n));
        for name in given.filter(|n| !seen.contains(n.as_str())) {
            let mut d = Diagnostic::global(codes::UNKNOWN_DEFINITION, format!("-D {name}: {who} called `{name}`"));
            d = match names.is_empty() {
                true => d.with_note("nothing can be set but capacities, such as `-D capacity.Vec=262144`"),
                false => {
                    // Those of what is launched would be the longer part.
                    let own = names.iter().copied().filter(|name| !name.contains('.'));
                    let all = list(own);
                    d.with_note(format!("`-D` sets {all}, or a capacity such as `capacity.Vec`"))
                }
            };
            if let Some(near) = suggest(name, names.iter().copied()) {
                d = d.with_help(format!("did you mean `-D {near}=..`?"));
            } else if let Some(loc) = Loc::ALL.into_iter().find(|l| l.name().eq_ignore_ascii_case(name)) {
                d = d.with_help(format!("did you mean `-D capacity.{loc}=..`?"));
            }
            self.diagnostics.push(d);
        }
    }

    /// Bindings for a kernel: definitions, with those of dimensions as numbers.
    pub fn bindings(&mut self, entry: &EntryPoint<'_>, unit: &CompilationUnit) -> Result<Bindings, Failed> {
        let mut bindings = Bindings { steps: Some(Rc::clone(&self.evaluation)), ..Bindings::default() };
        let dims = entry.dimensions(unit);
        let mut failed = false;
        for (name, expr) in &self.definitions.values {
            if !dims.iter().any(|d| d.name == *name) {
                bindings.defs.insert(name.clone(), expr.clone());
                continue;
            }
            match defs::dimension(name, expr) {
                Ok(n) => {
                    bindings.dims.insert(name.clone(), n);
                }
                Err(d) => {
                    self.diagnostics.push(d);
                    failed = true;
                }
            }
        }
        if failed {
            return Err(Failed);
        }
        self.derive(entry, unit, &mut bindings);
        Ok(bindings)
    }

    /// Adds the dimensions that `where` defines by others.
    pub(crate) fn derive(&self, entry: &EntryPoint<'_>, unit: &CompilationUnit, bindings: &mut Bindings) {
        let dims = entry.dimensions(unit).into_iter().map(|d| d.name);
        let open: Vec<Name> = dims.filter(|n| !bindings.dims.contains_key(n)).collect();
        if !open.is_empty() && !entry.item.wheres.is_empty() {
            let derived = ptoc_analysis::derived_dimensions(&unit.modules, entry.id, &self.target, bindings, &open);
            bindings.dims.extend(derived);
        }
    }

    /// Elaborates a kernel. `waiting` says what it means that the kernel needs the number of a dimension.
    pub fn instantiate(
        &mut self,
        unit: &CompilationUnit,
        id: ItemId,
        bindings: &Bindings,
        waiting: Waiting,
    ) -> Option<Instance> {
        let begin = self.clock.now();
        let outcome = ptoc_analysis::instantiate(&unit.modules, id, &self.target, bindings);
        self.clock.phase("elaborate", begin);
        self.outcome(outcome, waiting)
    }

    /// Elaborates a program.
    pub fn instantiate_program(
        &mut self,
        unit: &CompilationUnit,
        id: ItemId,
        bindings: &Bindings,
        waiting: Waiting,
    ) -> Option<ProgramInstance> {
        let begin = self.clock.now();
        let outcome = ptoc_analysis::instantiate_program(&unit.modules, id, &self.target, bindings);
        self.clock.phase("elaborate", begin);
        self.outcome(outcome, waiting)
    }

    fn outcome<T>(&mut self, outcome: ElaborationOutcome<T>, waiting: Waiting) -> Option<T> {
        self.names.extend(outcome.names);
        for mut d in outcome.diagnostics {
            if d.code == codes::DEPENDS_ON_DIMENSION && waiting == Waiting::IsError {
                self.nothing_to_show(&mut d, &outcome.waits);
            }
            self.diagnostics.push(d);
        }
        // A refusal has its reason, here or where the file was read.
        if outcome.result.is_none() && waiting == Waiting::IsError && !self.diagnostics.has_errors() {
            let d = Diagnostic::global(codes::NOT_YET, "ptoc has refused this and does not say why");
            self.diagnostics.push(d.with_note("the program is not at fault: please report it"));
        }
        outcome.result
    }

    /// What was a note of a check keeps this command from showing anything.
    fn nothing_to_show(&self, d: &mut Diagnostic, waits: &[Name]) {
        d.severity = Severity::Error;
        let Some(command) = self.command.as_ref().filter(|_| !waits.is_empty()) else { return };
        let names: Vec<String> = waits.iter().map(|n| format!("`{n}`")).collect();
        let given: String = waits.iter().map(|n| format!(" -D {n}={EXAMPLE}")).collect();
        let names = names.join(", ");
        let verb = if command.starts_with("ptoc build ") { "build" } else { "show" };
        d.message =
            format!("there is nothing to {verb} yet: tile sizes depend on {names}, which only the launch knows");
        d.fixes.clear();
        d.fixes.push(Fix::advice(format!("give it, for example `{command}{given}`")));
    }
}
