//! What only ptoc shows: `ptoc/memoryMap`, `ptoc/ir`, `ptoc/layout`, `ptoc/pim`. spec/lsp.md has a section on each.

use crate::analysis::session;
use crate::context::Context;
use crate::failure::{Failure, read};
use crate::reply::{Reply, result};
use crate::world::{World, path};
use lsp_types::{Position, TextDocumentIdentifier};
use ptoc_analysis::Fact;
use ptoc_driver::backend::{self, Artefact};
use ptoc_driver::launch::Plan;
use ptoc_driver::maps;
use ptoc_driver::session::{CompilationUnit, EntryPoint, Failed, Session};
use ptoc_driver::stages::{Stage, text_of};
use ptoc_layout::Cx;
use ptoc_layout::picture::Picture;
use ptoc_pim_sim::machine::report::Report;
use ptoc_pim_sim::machine::{self, Options, device};
use ptoc_pim_stream::Stream;
use ptoc_pim_stream::stream::Role;
use ptoc_tensor::Tensor;
use ptoc_views::memory::lines::Lines;
use ptoc_views::memory::{self, Maps, html};
use ptoc_views::page::{Page, escape};
use serde::Deserialize;
use serde_json::{Value, json};

/// A text, and a place in a kernel of it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct At {
    text_document: TextDocumentIdentifier,
    position: Option<Position>,
    /// `ptoc/ir`
    stage: Option<String>,
    /// `ptoc/memoryMap`: `html` or `json`.
    format: Option<String>,
}

/// A session with the text loaded, and the kernel around the place: else the only one.
struct Chosen {
    session: Session,
    unit: CompilationUnit,
    name: String,
}

fn choose(world: &mut World, at: &At) -> Result<Chosen, Failure> {
    let context = world.known(&at.text_document.uri)?;
    let offset = at.position.map(|p| context.offset(p) as u32);
    let mut session = session(&context.world.settings.of(&path(context.uri)), &context.world.texts());
    let unit = session.load_text(&path(context.uri), context.text().to_owned());
    let entries = unit.entries();
    let around = |e: &&EntryPoint<'_>| {
        let item = unit.modules.item(e.id).span;
        offset.is_some_and(|at| item.start <= at && at <= item.end)
    };
    let name = match (entries.iter().find(around), &entries[..]) {
        (Some(e), _) | (None, [e]) => e.item.name.name.to_string(),
        (None, []) => return Err(Failure::refused("the text has no kernel")),
        (None, _) => return Err(Failure::refused("the text has several kernels: put the cursor into one")),
    };
    if session.diagnostics.has_errors() {
        return Err(said(&mut session));
    }
    Ok(Chosen { session, unit, name })
}

/// The first error that was found, in the words of the command line.
fn said(session: &mut Session) -> Failure {
    let found = std::mem::take(&mut session.diagnostics).into_sorted();
    let message = found.iter().find(|d| d.is_error()).map(|d| {
        let line = d.span.map(|s| format!("line {}: ", session.sources.position(s.file, s.start).line));
        format!("{}{} {}", line.unwrap_or_default(), d.code.as_str(), d.message)
    });
    Failure::refused(message.unwrap_or_else(|| "there is nothing to show".into()))
}

/// `ptoc/memoryMap`: the page of `ptoc mem --html`, or the data of `ptoc mem --json`.
pub fn memory_map(world: &mut World, params: Value) -> Result<Reply, Failure> {
    let at: At = read(params)?;
    let mut chosen = choose(world, &at)?;
    let Chosen { session, unit, name } = &mut chosen;
    let Ok(entry) = unit.entry(Some(name), "mem") else { return Err(Failure::refused("there is no such kernel")) };
    let Ok(list) = maps::maps_of(session, unit, &entry) else { return Err(said(session)) };
    let lines = Lines::new(&session.sources, unit.file);
    let title = format!("{name}: memory map, {}", session.target.name);
    match at.format.as_deref() {
        None | Some("html") => result(json!({"title": title, "html": html::page(&list, &lines)})),
        Some("json") => {
            let maps = Maps { name: name.clone(), program: entry.program, file: unit.file, list };
            let map: Value = serde_json::from_str(&memory::json::maps(&maps, &lines))
                .map_err(|e| Failure::new(Failure::INTERNAL, e.to_string()))?;
            result(json!({"title": title, "map": map}))
        }
        Some(other) => Err(Failure::new(Failure::INVALID_PARAMS, format!("`format` is html or json, and not {other}"))),
    }
}

/// `ptoc/ir`: what `ptoc emit --stage` prints.
pub fn ir(world: &mut World, params: Value) -> Result<Reply, Failure> {
    let at: At = read(params)?;
    let word = at.stage.clone().unwrap_or_else(|| "ir".into());
    let stage = Stage::named(&word);
    let stage =
        stage.ok_or_else(|| Failure::new(Failure::INVALID_PARAMS, format!("`{word}` is no stage that ptoc has")))?;
    if stage.name() == "pim" {
        return pim(world, json!({"textDocument": at.text_document, "position": at.position}));
    }
    if matches!(stage, Stage::Tokens | Stage::Ast) {
        // Of broken texts, too.
        let context = world.known(&at.text_document.uri)?;
        let text = match stage {
            Stage::Tokens if ptoc_driver::pto::is_pto(at.text_document.uri.as_ref()) => {
                ptoc_driver::pto::listed(context.text())
            }
            Stage::Tokens => {
                ptoc_syntax::print::tokens(context.text(), &ptoc_syntax::tokens(context.file(), context.text()))
            }
            _ => ptoc_syntax::print::ast(&context.loaded().unit.modules.root().ast, false),
        };
        return result(json!({"title": word, "text": text}));
    }
    let mut chosen = choose(world, &at)?;
    let Chosen { session, unit, name } = &mut chosen;
    let Ok(entry) = unit.entry(Some(name), "emit") else { return Err(Failure::refused("there is no such kernel")) };
    let text = match stage {
        Stage::Of(backend, own) if own.plan => {
            session.select(backend);
            let plan = Plan::without_arrays(session, unit, &entry, &[]);
            plan.and_then(|plan| backend.emit_plan(session, &plan, own)).map(|artefact| artefact.text)
        }
        _ => text_of(session, unit, &entry, stage, Vec::new()),
    };
    let Ok(text) = text else { return Err(said(session)) };
    result(json!({"title": format!("{name}: {word}, {}", session.target.name), "text": text}))
}

/// `ptoc/layout`: the picture of the layout that the name at the place stands for.
pub fn layout(world: &mut World, params: Value) -> Result<Reply, Failure> {
    let at: At = read(params)?;
    let context = world.known(&at.text_document.uri)?;
    let Some((name, value)) = at.position.and_then(|p| layout_at(context, p)) else {
        return Err(Failure::refused("the name here stands for no layout"));
    };
    let cx = Cx::default().with_families(ptoc_names::standard_families());
    let picture = Picture::of(&cx, value).map_err(|e| Failure::refused(e.to_string()))?;
    let title = format!("{name} = {value}");
    let page = Page {
        title: title.clone(),
        header: format!("<h1>{}</h1>", escape(&title)),
        main: picture.svg(),
        ..Page::default()
    };
    result(json!({"title": title, "html": page.html()}))
}

fn layout_at(context: Context<'_>, at: Position) -> Option<(&str, &ptoc_layout::Value)> {
    let (_, d) = context.definition(at)?;
    let value = context.facts(d.span).find_map(|f| if let Fact::Algebra(v) = f { Some(&**v) } else { None })?;
    Some((&d.name, value))
}

/// `ptoc/pim`: the command stream of `ptoc emit --stage pim`, with what its execution costs on the simulator.
pub fn pim(world: &mut World, params: Value) -> Result<Reply, Failure> {
    let at: At = read(params)?;
    let mut chosen = choose(world, &at)?;
    let Chosen { session, unit, name } = &mut chosen;
    let Ok(entry) = unit.entry(Some(name), "emit --stage pim") else {
        return Err(Failure::refused("there is no such kernel"));
    };
    let plan = Plan::without_arrays(session, unit, &entry, &[]);
    let Ok(plan) = plan else { return Err(said(session)) };
    let Ok(artefact) = artefact(session, &plan) else { return Err(said(session)) };
    let cost = match stream(&artefact).and_then(|stream| cost(name, &stream)) {
        Ok(text) => text,
        Err(why) => format!("no cost: {why}\n"),
    };
    result(json!({
        "title": format!("{name}: command stream, {}", session.target.name), "text": artefact.text, "cost": cost,
    }))
}

/// What the target's backend makes of a whole plan.
fn artefact(session: &mut Session, plan: &Plan) -> Result<Artefact, Failed> {
    let backend = backend::default_of(&session.target);
    match backend.stages().iter().find(|stage| stage.plan) {
        Some(stage) => backend.emit_plan(session, plan, stage),
        None => {
            let d = backend::wrong_stage(&session.target, "pim");
            session.fail(d)
        }
    }
}

/// The artefact as a command stream.
fn stream(artefact: &Artefact) -> Result<Stream, String> {
    let bytes = artefact.binary.as_ref().ok_or("it is no command stream")?;
    Stream::decode(bytes).map_err(|e| e.message)
}

/// Bytes of the arrays of a stream that is simulated although nobody has asked to see it, at most: some tenths of a
/// second.
const SMALL: u64 = 1 << 20;

/// `1166 cycles, 1.166 us`: what a small kernel costs on the simulator; nothing if something is missing for that.
pub fn simulated(session: &mut Session, unit: &CompilationUnit, entry: &EntryPoint<'_>) -> Option<String> {
    let plan = Plan::without_arrays(session, unit, entry, &[]).ok().filter(|plan| !plan.is_host())?;
    let stream = artefact(session, &plan).ok().and_then(|artefact| stream(&artefact).ok())?;
    let bytes = |shape: &[u32], size: usize| shape.iter().fold(size as u64, |n, e| n.saturating_mul(u64::from(*e)));
    let all = stream.tensors.iter().fold(0u64, |n, t| n.saturating_add(bytes(&t.shape, t.dtype.size())));
    let report = (all <= SMALL).then(|| report(&stream).ok()).flatten()?;
    Some(ptoc_views::sim::report::time(&report))
}

/// What the simulator says of the stream.
fn cost(name: &str, stream: &Stream) -> Result<String, String> {
    report(stream).map(|report| ptoc_views::sim::report::summary(name, &report))
}

/// A run on the simulator, with zeros for all arrays: times do not depend on them.
fn report(stream: &Stream) -> Result<Report, String> {
    let config = device::config(&stream.device).map_err(|e| e.message)?;
    let shape = |s: &[u32]| s.iter().map(|e| *e as usize).collect::<Vec<_>>();
    let given = stream.tensors.iter().map(|t| match t.role {
        Role::In | Role::InOut => Tensor::zeros(t.dtype, &shape(&t.shape)).map(Some).map_err(|e| e.to_string()),
        _ => Ok(None),
    });
    let given: Vec<Option<Tensor>> = given.collect::<Result<_, String>>()?;
    let outcome = machine::run(stream, &config, given, Options::default()).map_err(|stop| stop.message)?;
    Ok(outcome.report)
}
