//! `ptoc emit`

use super::{Report, order, show};
use crate::args::{EmitArgs, Stage};
use crate::files::Outputs;
use crate::io::Io;
use crate::session::{Failed, Origin, Session, Waiting};
use crate::{ERRORS, files};
use clap::ValueEnum;
use ptoc_diagnostics::{Diagnostic, codes};
use ptoc_ir::{loops, tile};
use ptoc_passes::PlacedKernel;
use ptoc_pim_stream::Stream;
use std::fmt::Write as _;

/// Shows what a stage makes of a kernel.
pub fn emit(args: &EmitArgs, io: &mut Io<'_>) -> u8 {
    let later = match args.stage {
        Stage::Pto => Some(("pto", "output as PTO C++")),
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
    let text = stage_text(args, &mut session);
    report.flush(&mut session, io);
    // With errors there is text only for the stages that show any source.
    if let Ok(text) = text {
        match place {
            None => io.print(&text),
            Some(n) if report.counts.errors == 0 => {
                let bytes = bytes_of(args, text);
                if let Err(d) = bytes.and_then(|bytes| outputs.write(n, &bytes)).and_then(|()| outputs.commit()) {
                    session.diagnostics.push(d);
                    report.flush(&mut session, io);
                }
            }
            Some(_) => {}
        }
    }
    report.status()
}

/// What the file holds: a stream's binary form if its name ends with `.pim`, else the text.
fn bytes_of(args: &EmitArgs, text: String) -> Result<Vec<u8>, Diagnostic> {
    let binary = args.output.as_ref().is_some_and(|path| path.extension().is_some_and(|e| e == "pim"));
    if args.stage != Stage::Pim || !binary {
        return Ok(text.into_bytes());
    }
    let several = |what: String| {
        Diagnostic::global(codes::STREAM_TEXT, format!("a `.pim` file holds one stream, and here is not one: {what}"))
            .with_help("name one kernel of the units; a file with another name takes the text of several")
    };
    let parsed = Stream::parse(&text).map_err(|e| several(e.message))?;
    parsed.stream.encode().map_err(|e| several(e.to_string()))
}

fn stage_text(args: &EmitArgs, session: &mut Session) -> Result<String, Failed> {
    if matches!(args.stage, Stage::Tokens | Stage::Ast) {
        return source_text(args, session);
    }
    let stage = args.stage.to_possible_value().map_or_else(String::new, |v| v.get_name().to_owned());
    session.command = Some(args.compile.command(&format!("emit --stage {stage}"), &args.file, args.kernel.as_deref()));
    let unit = session.load_code(&args.file)?;
    let entry = match unit.entry(args.kernel.as_deref(), "emit") {
        Ok(entry) => entry,
        Err(d) => return session.fail(*d),
    };
    session.check_definitions(&[entry], &unit);
    let bindings = session.bindings(&entry, &unit)?;
    let instances = if entry.program {
        let program = session.instantiate_program(&unit, entry.id, &bindings, Waiting::IsError).ok_or(Failed)?;
        program.steps.into_iter().map(|s| (s.instance, s.kernel, s.bindings)).collect()
    } else {
        vec![(session.instantiate(&unit, entry.id, &bindings, Waiting::IsError).ok_or(Failed)?, entry.id, bindings)]
    };
    if session.diagnostics.has_errors() {
        return Err(Failed);
    }
    let mut out = String::new();
    for (instance, kernel, bindings) in instances {
        if args.stage == Stage::Ir {
            out.push_str(&tile::text::print(&instance.kernel, tile::text::Spans::Omit));
            continue;
        }
        let prepared = session.prepare(instance, &Origin { unit: &unit, kernel, bindings: &bindings }).ok_or(Failed)?;
        match args.stage {
            Stage::Placed => {
                let placed: &PlacedKernel = &prepared.placed;
                out.push_str(&placed.print(tile::text::Spans::Omit));
            }
            Stage::Sync => {
                let PlacedKernel { kernel, placement } = &prepared.placed;
                let bytes = ptoc_passes::physical(kernel, placement, &session.target);
                let (ordered, report) = ptoc_passes::sync::insert_and_report(bytes, &session.target);
                out.push_str(&order::listing(&ordered, &session.sources));
                for f in &report.fallbacks {
                    let line = session.sources.position(f.span.file, f.span.start).line;
                    let _ = writeln!(out, "# line {line}: all pipes meet, as {}", f.reason);
                }
                if report.untried {
                    out.push_str("# not all was tried that could make this less\n");
                }
                out.push('\n');
                out.push_str(&tile::text::print(&ordered, tile::text::Spans::Omit));
            }
            Stage::Pim if prepared.placed.kernel.host => {
                let _ = writeln!(out, "# {} is run by the host", prepared.placed.kernel.name);
            }
            Stage::Pim => match crate::launch::pim::emit(session, &prepared.placed.kernel) {
                Ok(text) => out.push_str(&text),
                Err(d) => return session.fail(*d),
            },
            Stage::Loop => match &prepared.module {
                Some(module) => out.push_str(&loops::text::print(module, false)),
                None => return session.fail(crate::launch::wrong_backend(&session.target, "cpu")),
            },
            _ => {
                let Some(module) = &prepared.module else {
                    return session.fail(crate::launch::wrong_backend(&session.target, "cpu"));
                };
                let options = ptoc_cpu::Options { text: true, ..ptoc_cpu::Options::default() };
                let compiled = match ptoc_cpu::compile(module, &options) {
                    Ok(compiled) => compiled,
                    Err(d) => return session.fail(d),
                };
                if let Some(text) = compiled.text() {
                    let _ = write!(out, "{}", if args.stage == Stage::Clif { &text.clif } else { &text.asm });
                }
            }
        }
    }
    Ok(out)
}

/// Tokens and trees are shown for sources with errors too.
fn source_text(args: &EmitArgs, session: &mut Session) -> Result<String, Failed> {
    let text = match files::read_source(&args.file) {
        Ok(text) => text,
        Err(d) => return session.fail(d),
    };
    let file = session.sources.add(args.file.display().to_string(), text.clone());
    let mut parsed = ptoc_syntax::parse(file, &text);
    session.diagnostics.extend(std::mem::take(&mut parsed.diagnostics));
    if args.stage == Stage::Tokens {
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
