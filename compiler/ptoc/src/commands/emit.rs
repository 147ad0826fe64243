//! `ptoc emit`

use super::{Report, order, show};
use crate::args::{EmitArgs, Stage, StageArg};
use crate::files::Outputs;
use crate::io::Io;
use crate::launch::{Plan, check_given, pim};
use crate::session::{Entry, Failed, Origin, Session, Unit, Waiting};
use crate::{ERRORS, files};
use clap::ValueEnum;
use ptoc_analysis::{Bindings, Instance, ItemId};
use ptoc_diagnostics::{Diagnostic, codes};
use ptoc_ir::{loops, tile};
use ptoc_opt::pass::{Recorder, Snapshot};
use ptoc_pim_stream::Stream;
use ptoc_placement::PlacedKernel;
use ptoc_syntax::ast::Name;
use std::fmt::Write as _;

/// Shows what a stage makes of a kernel.
pub fn emit(args: &EmitArgs, io: &mut Io<'_>) -> u8 {
    let later = match args.stage {
        Some(StageArg::Stage(Stage::Pto)) => Some(("pto", "output as PTO C++")),
        _ => None,
    };
    if let Some((stage, what)) = later {
        let message = format!("--stage {stage}: ptoc does not have {what} yet");
        let d = Diagnostic::global(codes::NOT_YET, message);
        show(d.with_help("`ptoc emit --help` lists the stages"), io, args.compile.message_format);
        return ERRORS;
    }
    let (mut session, mut report) = match Report::begin(&args.compile, io) {
        Ok(begun) => begun,
        Err(status) => return status,
    };
    session.vectors = args.vectors;
    let mut outputs = Outputs::new();
    let place = args.output.as_ref().map(|path| outputs.plan(path)).transpose();
    let place = match place {
        Ok(place) => place,
        Err(d) => {
            session.diagnostics.push(d);
            report.flush(&mut session, io);
            return report.status();
        }
    };
    let made = match args.stage {
        Some(StageArg::Stage(Stage::Pim)) => stream(args, &mut session).map(|s| (s.to_text(), Some(s))),
        _ => stage_text(args, &mut session).map(|text| (text, None)),
    };
    report.flush(&mut session, io);
    // With errors there is text only for the stages that show any source.
    if let Ok((text, stream)) = made {
        match place {
            None => io.print(&text),
            Some(n) if report.counts.errors == 0 => {
                let bytes = outputs.keep_sources(&session.read).and_then(|()| bytes_of(args, text, stream));
                if let Err(d) = bytes.and_then(|bytes| outputs.write(n, &bytes)).and_then(|()| outputs.commit()) {
                    session.diagnostics.push(d);
                    report.flush(&mut session, io);
                }
            }
            Some(_) => {}
        }
    }
    report.times(&session, io);
    report.status()
}

/// What the file holds: a stream's binary form if its name ends with `.pim`, else the text.
fn bytes_of(args: &EmitArgs, text: String, stream: Option<Stream>) -> Result<Vec<u8>, Diagnostic> {
    let binary = args.output.as_ref().is_some_and(|path| path.extension().is_some_and(|e| e == "pim"));
    match stream.filter(|_| binary) {
        None => Ok(text.into_bytes()),
        // It was encoded once, when it was checked.
        Some(stream) => stream.encode().map_err(|e| Diagnostic::global(codes::SIM_SELF_CHECK, e.to_string())),
    }
}

/// The command stream of a kernel or program.
fn stream(args: &EmitArgs, session: &mut Session) -> Result<Stream, Failed> {
    session.command = Some(args.compile.command("emit --stage pim", &args.file, args.kernel.as_deref()));
    let unit = session.load_code(&args.file)?;
    let entry = entry(args, session, &unit)?;
    session.check_definitions(&[entry], &unit);
    if session.diagnostics.has_errors() {
        return Err(Failed);
    }
    let given = check_given(session, &entry, &args.given)?;
    let plan = Plan::without_arrays(session, &unit, &entry, &given)?;
    match pim::emit(session, &plan) {
        Ok(stream) => Ok(stream),
        Err(d) => session.fail(*d),
    }
}

fn entry<'u>(args: &EmitArgs, session: &mut Session, unit: &'u Unit) -> Result<Entry<'u>, Failed> {
    match unit.entry(args.kernel.as_deref(), "emit") {
        Ok(entry) => Ok(entry),
        Err(d) => session.fail(*d),
    }
}

fn stage_text(args: &EmitArgs, session: &mut Session) -> Result<String, Failed> {
    if let Some(StageArg::Stage(stage @ (Stage::Tokens | Stage::Ast))) = args.stage {
        return source_text(args, stage, session);
    }
    let flags = match &args.stage {
        Some(StageArg::Stage(stage)) => format!("emit --stage {}", name_of(*stage)),
        Some(StageArg::After(pass)) => format!("emit --stage after:{pass}"),
        None => "emit --print-after-all".to_owned(),
    };
    session.command = Some(args.compile.command(&flags, &args.file, args.kernel.as_deref()));
    let unit = session.load_code(&args.file)?;
    let entry = entry(args, session, &unit)?;
    session.check_definitions(&[entry], &unit);
    let given = check_given(session, &entry, &args.given)?;
    match args.stage {
        Some(StageArg::Stage(stage)) => text_of(session, &unit, &entry, stage, given),
        Some(StageArg::After(pass)) => after_passes(session, &unit, &entry, Some(pass), given),
        None => after_passes(session, &unit, &entry, None, given),
    }
}

/// The IR after each pass that changed it, or after one of them. A pass that changed nothing has its predecessor's.
fn after_passes(
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
                return session.fail(crate::launch::wrong_stage(&session.target, &format!("after:{only}")));
            }
            Some(only) => match recorded.iter().rev().find(|(name, _)| place(name) <= place(only)) {
                Some((name, ir)) => {
                    if *name != only {
                        let _ = writeln!(out, "# {only} changed nothing: as after {name}");
                    }
                    out.push_str(&printed(ir));
                }
                None => return session.fail(crate::launch::wrong_stage(&session.target, &format!("after:{only}"))),
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

/// How the flag calls a stage.
fn name_of(stage: Stage) -> String {
    stage.to_possible_value().map_or_else(String::new, |v| v.get_name().to_owned())
}

/// What a stage from tile IR to machine code makes of a kernel, or of the launches of a program.
pub(crate) fn text_of(
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
                None => return session.fail(crate::launch::wrong_stage(&session.target, &name_of(stage))),
            },
            _ => {
                let Some(module) = &prepared.module else {
                    return session.fail(crate::launch::wrong_stage(&session.target, &name_of(stage)));
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

/// Tokens and trees are shown for sources with errors too.
fn source_text(args: &EmitArgs, stage: Stage, session: &mut Session) -> Result<String, Failed> {
    let text = match files::read_source(&args.file) {
        Ok(text) => text,
        Err(d) => return session.fail(d),
    };
    session.read.push(args.file.clone());
    let file = session.sources.add(args.file.display().to_string(), text.clone());
    let mut parsed = ptoc_syntax::parse(file, &text);
    session.diagnostics.extend(std::mem::take(&mut parsed.diagnostics));
    if stage == Stage::Tokens {
        return Ok(ptoc_syntax::print::tokens(&text, &ptoc_syntax::tokens(file, &text)));
    }
    if let Some(name) = &args.kernel {
        parsed.file.items.retain(|item| ptoc_analysis::item_name(item).is_some_and(|n| n.name == *name));
        if parsed.file.items.is_empty() {
            let message = format!("`{}` has no item `{name}`", args.file.display());
            return session.fail(Diagnostic::global(codes::UNKNOWN_KERNEL, message));
        }
    }
    Ok(ptoc_syntax::print::ast(&parsed.file, false))
}
