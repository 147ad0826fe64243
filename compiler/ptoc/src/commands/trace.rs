//! `ptoc emit --html`: a kernel after each pass, as data for the page.

use super::emit::entry;
use crate::args::EmitArgs;
use ptoc_diagnostics::{FileId, SourceMap, Span};
use ptoc_driver::backend;
use ptoc_driver::launch::check_given;
use ptoc_driver::session::{Failed, RepairOrigin, Session};
use ptoc_driver::stages::{instances, printed};
use ptoc_ir::tile::text::Spans;
use ptoc_opt::pass::{Recorder, Snapshot};
use ptoc_passes::Prepared;
use ptoc_views::trace::{KernelTrace, SourceFile, SourceLines, StageForm, StageLine, TracePage, TraceStage};

/// The page.
pub(super) fn page(args: &EmitArgs, session: &mut Session) -> Result<String, Failed> {
    session.command = Some(args.compile.command("emit --html", &args.file, args.kernel.as_deref()));
    let unit = session.load_code(&args.file)?;
    let entry = entry(args, session, &unit)?;
    session.check_definitions(&[entry], &unit);
    let given = check_given(session, &entry, &args.given)?;
    let mut files = vec![unit.modules.item(entry.id).span.file];
    let mut kernels = Vec::new();
    for (instance, kernel, bindings) in instances(session, &unit, &entry, given)? {
        let name = instance.kernel.name.to_string();
        session.recorder = Some(Recorder::default());
        let origin = RepairOrigin { unit: &unit, kernel, bindings: &bindings };
        let prepared = session.prepare(instance.kernel, &instance.debug, &origin);
        let recorded = session.recorder.take().map(|r| r.take()).unwrap_or_default();
        let prepared = prepared.ok_or(Failed)?;
        let mut stages: Vec<TraceStage> =
            recorded.iter().map(|(pass, ir)| stage(pass, ir, session, &mut files)).collect();
        stages.extend(code(&prepared, session, &mut files)?);
        kernels.push(KernelTrace { name, stages });
    }
    let sources = &session.sources;
    let file = |id: &FileId| SourceFile { name: sources.name(*id).into(), text: sources.text(*id).into() };
    let trace = TracePage {
        name: entry.item.name.name.to_string(),
        target: session.target.name.to_string(),
        files: files.iter().map(file).collect(),
        kernels,
    };
    Ok(trace.html())
}

/// What the target's own backend makes of loop IR. Units in memory have none.
fn code(prepared: &Prepared, session: &mut Session, files: &mut Vec<FileId>) -> Result<Option<TraceStage>, Failed> {
    let Some(code) = backend::default_of(&session.target).listing(session, prepared)? else { return Ok(None) };
    let lines = code.lines.into_iter().map(|(text, spans)| {
        let places = spans.iter().filter_map(|span| place(&session.sources, *span, files));
        StageLine { text, places: places.collect() }
    });
    Ok(Some(TraceStage { name: code.name, about: code.about, form: StageForm::Code, lines: lines.collect() }))
}

/// What a pass left.
fn stage(pass: &str, ir: &Snapshot, session: &Session, files: &mut Vec<FileId>) -> TraceStage {
    let (shown, spans) = (printed(ir, Spans::Omit), printed(ir, Spans::Keep));
    let lines = shown.lines().zip(spans.lines()).map(|(text, with_spans)| {
        let places = span_of(with_spans).and_then(|span| place(&session.sources, span, files));
        StageLine { text: text.to_owned(), places: places.into_iter().collect() }
    });
    let about = session.pipeline.steps().into_iter().find(|s| s.0 == pass).map_or("", |s| s.1);
    TraceStage {
        name: pass.to_owned(),
        about: about.to_owned(),
        form: match ir {
            Snapshot::Tile(..) => StageForm::Tile,
            Snapshot::Decided(..) => StageForm::Decided,
            Snapshot::Loop(..) => StageForm::Loop,
        },
        lines: lines.collect(),
    }
}

/// The span that a line of IR ends with: that of its statement. Those before it are of the values that it defines.
fn span_of(line: &str) -> Option<Span> {
    line.rmatch_indices(" @").find_map(|(at, mark)| {
        let text = line[at + mark.len()..].split(' ').next()?;
        let (file, range) = text.split_once(':')?;
        let (start, end) = range.split_once("..")?;
        Some(Span::new(FileId(file.parse().ok()?), start.parse().ok()?, end.parse().ok()?))
    })
}

/// The lines of a span; the file gets a number, if it has none.
fn place(sources: &SourceMap, span: Span, files: &mut Vec<FileId>) -> Option<SourceLines> {
    if span == Span::default() {
        return None;
    }
    let file = files.iter().position(|id| *id == span.file).unwrap_or_else(|| {
        files.push(span.file);
        files.len() - 1
    });
    let (first, last) = sources.range(span);
    Some(SourceLines { file, first: first.line, last: last.line })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_the_span_of_its_statement() {
        let of = |line: &str| span_of(line).map(|s| (s.file.0, s.start, s.end));
        assert_eq!(of("  v3 \"x\": i64 @1:2..5 = add v1, v2 @1:2..9"), Some((1, 2, 9)));
        assert_eq!(of("for l0 r4: i64 in r2..r0 step 1 @0:10..19 {"), Some((0, 10, 19)));
        assert_eq!(of("  store f32 t0[r1]"), None);
        assert_eq!(of("  v1: i64 = const 1 @?"), None);
    }
}
