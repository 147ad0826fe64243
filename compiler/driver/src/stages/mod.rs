//! Stages of a compilation as text: what `ptoc emit` prints, and what an editor shows.

mod order;

use crate::launch::wrong_stage;
use crate::session::{Entry, Failed, Origin, Session, Unit, Waiting};
use ptoc_analysis::{Bindings, Instance, ItemId};
use ptoc_ir::{loops, tile};
use ptoc_opt::pass::{Recorder, Snapshot};
use ptoc_placement::PlacedKernel;
use ptoc_syntax::ast::Name;
use std::fmt::Write as _;

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
    /// Loop IR.
    Loop,
    /// Cranelift IR.
    Clif,
    /// Machine code.
    Asm,
    /// Command stream.
    Pim,
    /// PTO C++.
    Pto,
}

impl Stage {
    /// All stages, each with its name and with what the help of `--stage` says of it.
    pub const ALL: [(Stage, &str, &str); 10] = [
        (Stage::Tokens, "tokens", "Tokens, one a line"),
        (Stage::Ast, "ast", "Syntax tree"),
        (Stage::Ir, "ir", "Tile IR"),
        (Stage::Placed, "placed", "Tile IR with the addresses of its tiles"),
        (Stage::Sync, "sync", "What orders the pipes, beside the source; then tile IR with it"),
        (Stage::Loop, "loop", "Loop IR"),
        (Stage::Clif, "clif", "Cranelift IR"),
        (Stage::Asm, "asm", "Machine code"),
        (Stage::Pim, "pim", "Command stream for units in memory; into a file `.pim`, its binary form"),
        (Stage::Pto, "pto", "PTO C++ (not yet)"),
    ];

    /// The stage of this name.
    pub fn named(word: &str) -> Option<Stage> {
        Stage::ALL.iter().find(|(_, name, _)| *name == word).map(|(stage, ..)| *stage)
    }

    /// As it is written.
    pub fn name(self) -> &'static str {
        Stage::ALL.iter().find(|(stage, ..)| *stage == self).map_or("", |(_, name, _)| name)
    }
}

/// The IR after each pass that changed it, or after one of them. A pass that changed nothing has its predecessor's.
pub fn after_passes(
    session: &mut Session,
    unit: &Unit,
    entry: &Entry<'_>,
    only: Option<&str>,
    given: Vec<Name>,
) -> Result<String, Failed> {
    let order: Vec<&str> = ptoc_passes::pipeline::steps().into_iter().map(|s| s.0).collect();
    let place = |name: &str| order.iter().position(|n| *n == name);
    let mut out = String::new();
    for (instance, kernel, bindings) in instances(session, unit, entry, given)? {
        session.recorder = Some(Recorder::default());
        let prepared = session.prepare(instance.kernel, &instance.debug, &Origin { unit, kernel, bindings: &bindings });
        let recorded = session.recorder.take().map(|r| r.take()).unwrap_or_default();
        prepared.ok_or(Failed)?;
        match only {
            None => {
                for (name, ir) in &recorded {
                    let _ = writeln!(out, "# after {name}");
                    out.push_str(&printed(ir));
                    out.push('\n');
                }
            }
            // Units in memory have no loops, and none of the rewrites that lead to them.
            Some(only) if session.target.is_pim() && place(only) > place("address-checks") => {
                return session.fail(wrong_stage(&session.target, &format!("after:{only}")));
            }
            Some(only) => match recorded.iter().rev().find(|(name, _)| place(name) <= place(only)) {
                Some((name, ir)) => {
                    if *name != only {
                        let _ = writeln!(out, "# {only} changed nothing: as after {name}");
                    }
                    out.push_str(&printed(ir));
                }
                None => return session.fail(wrong_stage(&session.target, &format!("after:{only}"))),
            },
        }
    }
    Ok(out)
}

/// Recorded IR as text.
fn printed(ir: &Snapshot) -> String {
    match ir {
        Snapshot::Tile(kernel, None) => tile::text::print(kernel, tile::text::Spans::Omit),
        Snapshot::Tile(kernel, Some(placement)) => {
            let placed = PlacedKernel { kernel: kernel.clone(), placement: placement.clone(), watched: false };
            placed.print(tile::text::Spans::Omit)
        }
        Snapshot::Loop(module) => loops::text::print(module, false),
        Snapshot::Decided(text) => text.clone(),
    }
}

/// The kernel's instance, or those of a program's launches.
fn instances(
    session: &mut Session,
    unit: &Unit,
    entry: &Entry<'_>,
    given: Vec<Name>,
) -> Result<Vec<(Instance, ItemId, Bindings)>, Failed> {
    let mut bindings = session.bindings(entry, unit)?;
    bindings.given = given;
    let instances = if entry.program {
        let program = session.instantiate_program(unit, entry.id, &bindings, Waiting::IsError).ok_or(Failed)?;
        program.steps.into_iter().map(|s| (s.instance, s.kernel, s.bindings)).collect()
    } else {
        vec![(session.instantiate(unit, entry.id, &bindings, Waiting::IsError).ok_or(Failed)?, entry.id, bindings)]
    };
    if session.diagnostics.has_errors() {
        return Err(Failed);
    }
    Ok(instances)
}

/// What a stage from tile IR to machine code makes of a kernel, or of the launches of a program.
pub fn text_of(
    session: &mut Session,
    unit: &Unit,
    entry: &Entry<'_>,
    stage: Stage,
    given: Vec<Name>,
) -> Result<String, Failed> {
    let mut out = String::new();
    for (instance, kernel, bindings) in instances(session, unit, entry, given)? {
        if stage == Stage::Ir {
            out.push_str(&tile::text::print(&instance.kernel, tile::text::Spans::Omit));
            continue;
        }
        let prepared = session
            .prepare(instance.kernel, &instance.debug, &Origin { unit, kernel, bindings: &bindings })
            .ok_or(Failed)?;
        match stage {
            Stage::Placed => {
                let placed: &PlacedKernel = &prepared.placed;
                out.push_str(&placed.print(tile::text::Spans::Omit));
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
                        "# line {line}: one flag from {} to {} for {} iterations, as {name} has {flags} from one pipe to another",
                        n.from, n.to, n.count
                    );
                }
                if report.untried {
                    out.push_str("# not all was tried that could make this less\n");
                }
                out.push('\n');
                out.push_str(&tile::text::print(&ordered, tile::text::Spans::Omit));
            }
            Stage::Loop => match &prepared.module {
                Some(module) => {
                    let mut module = (**module).clone();
                    let own = prepared.placed.kernel.span.file;
                    module.locate(|span| {
                        let at = session.sources.position(span.file, span.start);
                        let file = (span.file != own).then(|| session.sources.name(span.file).into());
                        loops::Place { file, line: at.line, column: at.column }
                    });
                    out.push_str(&loops::text::print(&module, false));
                }
                None => return session.fail(wrong_stage(&session.target, stage.name())),
            },
            _ => {
                let Some(module) = &prepared.module else {
                    return session.fail(wrong_stage(&session.target, stage.name()));
                };
                let options = ptoc_cpu::Options { text: true, vectors: session.vectors, ..Default::default() };
                let compiled = match ptoc_cpu::compile(module, &options) {
                    Ok(compiled) => compiled,
                    Err(d) => return session.fail(d),
                };
                if let Some(text) = compiled.text() {
                    let _ = write!(out, "{}", if stage == Stage::Clif { &text.clif } else { &text.asm });
                }
            }
        }
    }
    Ok(out)
}
