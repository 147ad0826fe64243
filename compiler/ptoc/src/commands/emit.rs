//! `ptoc emit`

use super::{Report, trace};
use crate::args::{EmitArgs, StageArg};
use crate::io::Io;
use ptoc_diagnostics::{Diagnostic, codes};
use ptoc_driver::backend::{Artefact, BackendRef};
use ptoc_driver::files::{self, Outputs};
use ptoc_driver::launch::{Plan, check_given};
use ptoc_driver::session::{CompilationUnit, EntryPoint, Failed, Session};
use ptoc_driver::stages::{BackendStage, Stage, after_passes, text_of};

/// Shows what a stage makes of a kernel.
pub fn emit(args: &EmitArgs, io: &mut Io<'_>) -> u8 {
    let (mut session, mut report) = match Report::begin(&args.compile, &args.file, io) {
        Ok(begun) => begun,
        Err(status) => return status,
    };
    session.vectors = args.vectors;
    session.exact = args.exact;
    session.pto_level = args.pto_level.map(Into::into);
    let mut outputs = Outputs::new();
    let place = args.output.as_ref().or(args.html.as_ref()).map(|path| outputs.plan(path)).transpose();
    let place = match place {
        Ok(place) => place,
        Err(d) => {
            session.diagnostics.push(d);
            report.flush(&mut session, io);
            return report.status();
        }
    };
    let made = match args.stage {
        Some(StageArg::Stage(Stage::Of(backend, _))) if !args.resident.is_empty() && !backend.capabilities().units => {
            session.fail(super::no_residents(backend, &session.target))
        }
        Some(StageArg::Stage(Stage::Of(backend, stage))) if stage.plan => {
            plan_stage(args, &mut session, backend, stage)
        }
        _ if args.html.is_some() => trace::page(args, &mut session).map(|text| Artefact { text, binary: None }),
        _ => stage_text(args, &mut session).map(|text| Artefact { text, binary: None }),
    };
    report.flush(&mut session, io);
    // With errors there is text only for the stages that show any source.
    if let Ok(artefact) = made {
        match place {
            None => io.print(&artefact.text),
            Some(n) if report.counts.errors == 0 => {
                let bytes = bytes_of(args, artefact);
                let written = outputs.keep_sources(&session.read).and_then(|()| outputs.write(n, &bytes));
                if let Err(d) = written.and_then(|()| outputs.commit()) {
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

/// What the file holds: the binary form if its name ends with the stage's extension, else the text.
fn bytes_of(args: &EmitArgs, Artefact { text, binary }: Artefact) -> Vec<u8> {
    let Some(StageArg::Stage(Stage::Of(_, stage))) = args.stage else { return text.into_bytes() };
    let ends = |extension: &str| args.output.as_ref().is_some_and(|p| p.extension().is_some_and(|e| e == extension));
    binary.filter(|_| stage.extension.is_some_and(ends)).unwrap_or_else(|| text.into_bytes())
}

/// A stage of a whole plan of a kernel or program.
fn plan_stage(
    args: &EmitArgs,
    session: &mut Session,
    backend: BackendRef,
    stage: &BackendStage,
) -> Result<Artefact, Failed> {
    let command = format!("emit --stage {}", stage.name);
    session.command = Some(args.compile.command(&command, &args.file, args.kernel.as_deref()));
    let unit = session.load_code(&args.file)?;
    let entry = entry(args, session, &unit)?;
    session.check_definitions(&[entry], &unit);
    if session.diagnostics.has_errors() {
        return Err(Failed);
    }
    let given = check_given(session, &entry, &args.given)?;
    session.select(backend);
    session.resident = args.resident.clone();
    let plan = Plan::without_arrays(session, &unit, &entry, &given)?;
    backend.emit_plan(session, &plan, stage)
}

pub(super) fn entry<'u>(
    args: &EmitArgs,
    session: &mut Session,
    unit: &'u CompilationUnit,
) -> Result<EntryPoint<'u>, Failed> {
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
        Some(StageArg::Stage(stage)) => format!("emit --stage {}", stage.name()),
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

/// Tokens and trees are shown for sources with errors too.
fn source_text(args: &EmitArgs, stage: Stage, session: &mut Session) -> Result<String, Failed> {
    let text = match files::read_source(&args.file) {
        Ok(text) => text,
        Err(d) => return session.fail(d),
    };
    session.read.push(args.file.clone());
    let file = session.sources.add(args.file.display().to_string(), text.clone());
    // The tree of PTO text is that of its kernels in the language.
    let is_pto = ptoc_driver::pto::is_pto(&args.file.display().to_string());
    let (mut ast, diagnostics) = if is_pto {
        let tree = ptoc_driver::pto::tree(file, &text);
        ((*tree.ast).clone(), tree.diagnostics)
    } else {
        let parsed = ptoc_syntax::parse(file, &text);
        (parsed.file, parsed.diagnostics)
    };
    let is_wrong = is_pto && diagnostics.iter().any(Diagnostic::is_error);
    session.diagnostics.extend(diagnostics);
    match stage {
        Stage::Tokens if is_pto => return Ok(ptoc_driver::pto::listed(&text)),
        Stage::Tokens => return Ok(ptoc_syntax::print::tokens(&text, &ptoc_syntax::tokens(file, &text))),
        // Half of such a text is not translated.
        _ if is_wrong => return Err(Failed),
        _ => {}
    }
    if let Some(name) = &args.kernel {
        ast.items.retain(|item| ptoc_names::item_name(item).is_some_and(|n| n.name == *name));
        if ast.items.is_empty() {
            let message = format!("`{}` has no item `{name}`", args.file.display());
            return session.fail(Diagnostic::global(codes::UNKNOWN_KERNEL, message));
        }
    }
    Ok(ptoc_syntax::print::ast(&ast, false))
}
