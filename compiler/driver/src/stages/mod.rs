//! Stages of a compilation as text: what `ptoc emit` prints, and what an editor shows.

mod order;
mod pto;

use crate::backend::{self, BackendRef, wrong_stage};
use crate::session::{CompilationUnit, EntryPoint, Failed, RepairOrigin, Session, Waiting};
pub use pto::Cpp;
use ptoc_analysis::{Bindings, Instance};
use ptoc_diagnostics::{SourceMap, Span};
use ptoc_ir::tile::text::Spans;
use ptoc_ir::{loops, tile};
use ptoc_names::ItemId;
use ptoc_opt::pass::{Recorder, Snapshot};
use ptoc_placement::PlacedKernel;
pub use ptoc_pto::write::Level;
use ptoc_syntax::ast::Name;
use std::fmt::Write as _;
use std::path::Path;

/// A stage that a backend has beyond tile IR.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BackendStage {
    /// As it is written.
    pub name: &'static str,
    /// What the help of `--stage` says of it.
    pub about: &'static str,
    /// It is of a whole plan, for which all sizes must be known, and not of a kernel.
    pub plan: bool,
    /// What the names of files end with that hold its binary form.
    pub extension: Option<&'static str>,
}

/// A form of a kernel, or of its source.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stage {
    /// Tokens of the source.
    Tokens,
    /// Its syntax tree.
    Ast,
    /// Tile IR.
    Ir,
    /// Tile IR with addresses.
    Placed,
    /// What orders the pipes, and tile IR with it.
    Sync,
    /// A stage of a backend.
    Of(BackendRef, &'static BackendStage),
    /// PTO text.
    Pto,
    /// C++ against the headers of pto-isa.
    PtoCpp,
}

impl Stage {
    /// All stages, each with its name and with what the help of `--stage` says of it.
    pub fn all() -> Vec<(Stage, &'static str, &'static str)> {
        let mut all = Stage::with_left_out();
        all.retain(|(stage, ..)| !stage.is_left_out());
        all
    }

    /// All stages, with those of backends that this build leaves out.
    pub fn with_left_out() -> Vec<(Stage, &'static str, &'static str)> {
        let mut all = vec![
            (Stage::Tokens, "tokens", "Tokens, one a line"),
            (Stage::Ast, "ast", "Syntax tree"),
            (Stage::Ir, "ir", "Tile IR"),
            (Stage::Placed, "placed", "Tile IR with the addresses of its tiles"),
            (Stage::Sync, "sync", "What orders the pipes, beside the source; then tile IR with it"),
        ];
        for backend in backend::with_left_out() {
            // Some have a stage in common, which is that of the target's own backend ([`text_of`]).
            let known: Vec<&str> = all.iter().map(|a| a.1).collect();
            let new = backend.stages().iter().filter(|s| !known.contains(&s.name));
            all.extend(new.map(|s| (Stage::Of(backend, s), s.name, s.about)));
        }
        all.push((Stage::Pto, "pto", "PTO text for PTOAS (--pto-level); what it can say: spec/pto.md"));
        all.push((Stage::PtoCpp, "pto-cpp", "C++ against the headers of pto-isa (--pto-level)"));
        all
    }

    /// Whether it is one of a backend that this build leaves out.
    pub fn is_left_out(self) -> bool {
        matches!(self, Stage::Of(backend, _) if backend.left_out().is_some())
    }

    /// The stage of this name; it may be left out.
    pub fn named(word: &str) -> Option<Stage> {
        Stage::with_left_out().into_iter().find(|(_, name, _)| *name == word).map(|(stage, ..)| stage)
    }

    /// As it is written.
    pub fn name(self) -> &'static str {
        if let Stage::Of(_, stage) = self {
            return stage.name;
        }
        Stage::with_left_out().into_iter().find(|(stage, ..)| *stage == self).map_or("", |(_, name, _)| name)
    }
}

/// The steps that change IR on the way to any backend, in their order, and what each does.
pub fn steps() -> Vec<(&'static str, &'static str)> {
    let mut steps: Vec<(&str, &str)> = Vec::new();
    for pipeline in backend::all().into_iter().filter_map(|b| b.pipeline()) {
        let new = pipeline.steps().into_iter().filter(|(name, _)| steps.iter().all(|(known, _)| known != name));
        let new: Vec<_> = new.collect();
        steps.extend(new);
    }
    steps
}

/// The IR after each pass that changed it, or after one of them. A pass that changed nothing has its predecessor's.
pub fn after_passes(
    session: &mut Session,
    unit: &CompilationUnit,
    entry: &EntryPoint<'_>,
    only: Option<&str>,
    given: Vec<Name>,
) -> Result<String, Failed> {
    let order: Vec<&str> = session.pipeline.steps().into_iter().map(|s| s.0).collect();
    let place = |name: &str| order.iter().position(|n| *n == name);
    let mut out = String::new();
    for (instance, kernel, bindings) in instances(session, unit, entry, given)? {
        session.recorder = Some(Recorder::default());
        let prepared =
            session.prepare(instance.kernel, &instance.debug, &RepairOrigin { unit, kernel, bindings: &bindings });
        let recorded = session.recorder.take().map(|r| r.take()).unwrap_or_default();
        prepared.ok_or(Failed)?;
        match only {
            None => {
                for (name, ir) in &recorded {
                    let _ = writeln!(out, "# after {name}");
                    out.push_str(&printed(ir, Spans::Omit));
                    out.push('\n');
                }
            }
            // Not every backend has loops, and the rewrites that lead to them.
            Some(only) if place(only).is_none() => {
                return session.fail(wrong_stage(&session.target, &format!("after:{only}")));
            }
            Some(only) => match recorded.iter().rev().find(|(name, _)| place(name) <= place(only)) {
                Some((name, ir)) => {
                    if *name != only {
                        let _ = writeln!(out, "# {only} changed nothing: as after {name}");
                    }
                    out.push_str(&printed(ir, Spans::Omit));
                }
                None => return session.fail(wrong_stage(&session.target, &format!("after:{only}"))),
            },
        }
    }
    Ok(out)
}

/// Recorded IR as text.
pub fn printed(ir: &Snapshot, spans: Spans) -> String {
    match ir {
        Snapshot::Tile(kernel, None) => tile::text::print(kernel, spans),
        Snapshot::Tile(kernel, Some(placement)) => {
            let placed = PlacedKernel { kernel: kernel.clone(), placement: placement.clone(), watched: false };
            placed.print(spans)
        }
        Snapshot::Loop(module) => loops::text::print(module, spans == Spans::Keep),
        Snapshot::Decided(text) => text.clone(),
    }
}

/// `softmax.tile:12  let e = exp(x - m);`: where a span begins, and the line there. Files are called by their last
/// names, but for those of the standard library.
pub fn quoted(sources: &SourceMap, span: Span) -> String {
    let line = sources.position(span.file, span.start).line;
    let name = sources.name(span.file);
    let last = Path::new(name).file_name().filter(|_| !name.starts_with("<std>"));
    let name = last.map_or(name.into(), |last| last.to_string_lossy());
    format!("{name}:{line}  {}", sources.line(span.file, line.saturating_sub(1)).trim())
}

/// The kernel's instance, or those of a program's launches, equal ones once.
pub fn instances(
    session: &mut Session,
    unit: &CompilationUnit,
    entry: &EntryPoint<'_>,
    given: Vec<Name>,
) -> Result<Vec<(Instance, ItemId, Bindings)>, Failed> {
    let mut bindings = session.bindings(entry, unit)?;
    bindings.given = given;
    let instances = if entry.program {
        let program = session.instantiate_program(unit, entry.id, &bindings, Waiting::IsError).ok_or(Failed)?;
        program.kernels()
    } else {
        vec![(session.instantiate(unit, entry.id, &bindings, Waiting::IsError).ok_or(Failed)?, entry.id, bindings)]
    };
    if session.diagnostics.has_errors() {
        return Err(Failed);
    }
    Ok(instances)
}

/// A kernel in C++ against the headers of pto-isa; `launcher` is the name of the function that runs it.
pub fn cpp_of(
    session: &mut Session,
    unit: &CompilationUnit,
    entry: &EntryPoint<'_>,
    given: Vec<Name>,
    launcher: Option<&str>,
) -> Result<pto::Cpp, Failed> {
    if let Some(d) = pto::foreign(session, entry.item.name.span) {
        return session.fail(d);
    }
    let Some((instance, kernel, bindings)) = instances(session, unit, entry, given)?.into_iter().next() else {
        return Err(Failed);
    };
    let origin = RepairOrigin { unit, kernel, bindings: &bindings };
    let prepared = session.prepare(instance.kernel, &instance.debug, &origin).ok_or(Failed)?;
    pto::cpp(session, &prepared.placed, launcher)
}

/// What a stage from tile IR to machine code makes of a kernel, or of the launches of a program.
pub fn text_of(
    session: &mut Session,
    unit: &CompilationUnit,
    entry: &EntryPoint<'_>,
    stage: Stage,
    given: Vec<Name>,
) -> Result<String, Failed> {
    let mut out = String::new();
    if let Stage::Of(backend, _) = stage {
        session.select(backend);
    }
    if matches!(stage, Stage::Pto | Stage::PtoCpp)
        && let Some(d) = pto::foreign(session, entry.item.name.span)
    {
        return session.fail(d);
    }
    for (instance, kernel, bindings) in instances(session, unit, entry, given)? {
        if stage == Stage::Ir {
            out.push_str(&tile::text::print(&instance.kernel, Spans::Omit));
            continue;
        }
        let prepared = session
            .prepare(instance.kernel, &instance.debug, &RepairOrigin { unit, kernel, bindings: &bindings })
            .ok_or(Failed)?;
        match stage {
            Stage::Placed => {
                let placed: &PlacedKernel = &prepared.placed;
                out.push_str(&placed.print(Spans::Omit));
            }
            Stage::Sync => {
                let PlacedKernel { kernel, placement, .. } = &prepared.placed;
                let bytes = ptoc_placement::physical(kernel, placement, &session.target);
                let (ordered, report) = ptoc_opt::sync::insert_and_report(bytes, &session.target);
                out.push_str(&order::listing(&ordered, &session.sources));
                for f in &report.fallbacks {
                    let line = session.sources.position(f.span.file, f.span.start).line;
                    let _ = writeln!(out, "# line {line}: all pipes meet, as {}", f.reason);
                }
                for n in &report.narrowed {
                    let line = session.sources.position(n.span.file, n.span.start).line;
                    let (flags, name) = (session.target.pipes.flags, &session.target.name);
                    let _ = writeln!(
                        out,
                        "# line {line}: one flag from {} to {} for {} iterations, as {name} has {flags} from one pipe \
                        to another",
                        n.from, n.to, n.count
                    );
                }
                if report.untried {
                    out.push_str("# not all was tried that could make this less\n");
                }
                out.push('\n');
                out.push_str(&tile::text::print(&ordered, Spans::Omit));
            }
            Stage::Of(_, stage) => {
                let own = backend::serving(&session.target).into_iter();
                let mut own =
                    own.flat_map(|b| b.stages().iter().map(move |s| (b, s))).filter(|(_, s)| s.name == stage.name);
                let Some((backend, stage)) = own.next() else {
                    let d = wrong_stage(&session.target, stage.name);
                    return session.fail(d);
                };
                out.push_str(&backend.emit_kernel(session, &prepared, stage)?);
            }
            Stage::Pto => out.push_str(&pto::text(session, &prepared.placed)?),
            Stage::PtoCpp => out.push_str(&pto::cpp(session, &prepared.placed, None)?.unit),
            // They are shown before there is an instance, or before it is prepared.
            Stage::Tokens | Stage::Ast | Stage::Ir => {}
        }
    }
    Ok(out)
}
