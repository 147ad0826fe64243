//! `ptoc mem`

pub(crate) mod calls;
mod html;
mod json;
pub(crate) mod lines;
mod source;
mod svg;
mod table;

use super::Report;
use crate::args::MemArgs;
use crate::files::Outputs;
use crate::io::Io;
use crate::session::{Entry, Failed, Origin, Session, Unit, Waiting};
use lines::Lines;
use ptoc_analysis::{Bindings, Instance, ItemId};
use ptoc_diagnostics::{Diagnostic, FileId, codes};
use ptoc_isa::{Loc, Target};
use ptoc_placement::MemoryMap;

/// The maps of a kernel, or of the launches of a program.
pub(crate) struct Maps {
    /// The kernel's or program's name.
    name: String,
    program: bool,
    /// Where it is declared.
    file: FileId,
    list: Vec<MemoryMap>,
}

/// Shows where the tiles of a kernel are and when.
pub fn mem(args: &MemArgs, io: &mut Io<'_>) -> u8 {
    let (mut session, mut report) = match Report::begin(&args.compile, io) {
        Ok(begun) => begun,
        Err(status) => return status,
    };
    if args.source {
        return print_source(args, &mut session, &mut report, io);
    }
    let mut outputs = Outputs::new();
    let mut plan = |path: &Option<std::path::PathBuf>| path.as_ref().map(|p| outputs.plan(p)).transpose();
    let (page, picture) = match plan(&args.html).and_then(|page| Ok((page, plan(&args.svg)?))) {
        Ok(planned) => planned,
        Err(d) => {
            session.diagnostics.push(d);
            report.flush(&mut session, io);
            return report.status();
        }
    };
    let Ok(maps) = maps(args, &mut session) else {
        report.flush(&mut session, io);
        return report.status();
    };
    report.flush(&mut session, io);
    report.times(&session, io);
    let lines = Lines::new(&session.sources, maps.file);
    let mut files = Vec::new();
    if let Some(n) = page {
        files.push((n, html::page(&maps.list, &lines)));
    }
    if let Some(n) = picture {
        files.push((n, svg::file(&maps.list, &lines)));
    }
    if files.is_empty() {
        match args.json {
            true => io.print(&json::maps(&maps, &lines)),
            false => io.print(&table::maps(&maps.list, &lines, io.width)),
        }
        return report.status();
    }
    let kept = outputs.keep_sources(&session.read);
    let written = kept.and_then(|()| files.into_iter().try_for_each(|(n, text)| outputs.write(n, text.as_bytes())));
    match written.and_then(|()| outputs.commit()) {
        Ok(()) => {
            for path in args.html.iter().chain(&args.svg) {
                io.print(&format!("written to {}\n", path.display()));
            }
        }
        Err(d) => {
            session.diagnostics.push(d);
            report.flush(&mut session, io);
        }
    }
    report.status()
}

/// `--source`
fn print_source(args: &MemArgs, session: &mut Session, report: &mut Report, io: &mut Io<'_>) -> u8 {
    let mut outputs = Outputs::new();
    let planned = args.output.as_ref().map(|path| outputs.plan(path)).transpose();
    let printed = match planned {
        Ok(n) => source::print(args, session).map(|text| (n, text)),
        Err(d) => session.fail(d),
    };
    report.flush(session, io);
    report.times(session, io);
    // A warning that is denied leaves nothing to print.
    let (Ok((n, text)), true) = (printed, report.status() == crate::DONE) else { return report.status() };
    let (Some(n), Some(path)) = (n, &args.output) else {
        io.print(&text);
        return report.status();
    };
    let kept = outputs.keep_sources(&session.read);
    match kept.and_then(|()| outputs.write(n, text.as_bytes())).and_then(|()| outputs.commit()) {
        Ok(()) => io.print(&format!("written to {}\n", path.display())),
        Err(d) => {
            session.diagnostics.push(d);
            report.flush(session, io);
        }
    }
    report.status()
}

fn maps(args: &MemArgs, session: &mut Session) -> Result<Maps, Failed> {
    session.command = Some(args.compile.command("mem", &args.file, args.kernel.as_deref()));
    let unit = session.load_code(&args.file)?;
    let entry = match unit.entry(args.kernel.as_deref(), "mem") {
        Ok(entry) => entry,
        Err(d) => return session.fail(*d),
    };
    session.check_definitions(&[entry], &unit);
    maps_of(session, &unit, &entry)
}

/// The page of some maps.
pub(crate) fn html_of(maps: &Maps, session: &Session) -> String {
    html::page(&maps.list, &Lines::new(&session.sources, maps.file))
}

/// Maps as JSON.
pub(crate) fn json_of(maps: &Maps, session: &Session) -> String {
    json::maps(maps, &Lines::new(&session.sources, maps.file))
}

/// The maps of an entry with the session's definitions.
pub(crate) fn maps_of(session: &mut Session, unit: &Unit, entry: &Entry<'_>) -> Result<Maps, Failed> {
    let bindings = session.bindings(entry, unit)?;
    if session.diagnostics.has_errors() {
        return Err(Failed);
    }
    let instances = instances(session, unit, entry, &bindings)?;
    let told = session.diagnostics.has_errors();
    let mut list = Vec::new();
    for (mut instance, kernel, bindings) in instances {
        let debug = std::mem::take(&mut instance.debug);
        let (mut map, found) = session.map(instance, &Origin { unit, kernel, bindings: &bindings });
        // What lies past the end was said of its address.
        session.diagnostics.extend(found.into_iter().filter(|d| !(told && d.code == codes::CAPACITY)));
        if let Some(map) = &mut map {
            map.calls = calls::of(map, &debug);
        }
        list.extend(map);
    }
    if list.is_empty() {
        return Err(Failed);
    }
    Ok(Maps { name: entry.item.name.name.to_string(), program: entry.program, file: unit.file, list })
}

/// Elaborates. A constant address past the end of its memory is refused there; for the map, which shows such things,
/// the kernel is elaborated once more as if the memories were larger.
fn instances(
    session: &mut Session,
    unit: &Unit,
    entry: &Entry<'_>,
    bindings: &Bindings,
) -> Result<Vec<(Instance, ItemId, Bindings)>, Failed> {
    if entry.program {
        let program = session.instantiate_program(unit, entry.id, bindings, Waiting::IsError).ok_or(Failed)?;
        return Ok(program.steps.into_iter().map(|s| (s.instance, s.kernel, s.bindings)).collect());
    }
    if let Some(instance) = session.instantiate(unit, entry.id, bindings, Waiting::IsError) {
        return Ok(vec![(instance, entry.id, bindings.clone())]);
    }
    let beyond = |d: &Diagnostic| !d.is_error() || d.code == codes::ASSIGN_OUT_OF_RANGE;
    if !session.diagnostics.iter().all(beyond) {
        return Err(Failed);
    }
    let outcome = ptoc_analysis::instantiate(&unit.modules, entry.id, &roomy(&session.target), bindings);
    outcome.result.map(|i| vec![(i, entry.id, bindings.clone())]).ok_or(Failed)
}

/// The target with memories that nothing is too large for. One that it has not stays away.
fn roomy(target: &Target) -> Target {
    let there = Loc::ALL.into_iter().filter(|&l| target.capacity(l) > 0);
    there.fold(target.clone(), |t, l| t.with_capacity(l, 1 << 40))
}
