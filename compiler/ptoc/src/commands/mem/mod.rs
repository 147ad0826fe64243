//! `ptoc mem`

mod source;

use super::Report;
use crate::args::MemArgs;
use crate::io::Io;
use ptoc_driver::files::Outputs;
use ptoc_driver::maps;
use ptoc_driver::session::{Failed, Session};
use ptoc_views::memory::lines::Lines;
use ptoc_views::memory::{Maps, html, json, svg, table};

/// Shows where the tiles of a kernel are and when.
pub fn mem(args: &MemArgs, io: &mut Io<'_>) -> u8 {
    let (mut session, mut report) = match Report::begin(&args.compile, &args.file, io) {
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
    let Ok(maps) = load(args, &mut session) else {
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

fn load(args: &MemArgs, session: &mut Session) -> Result<Maps, Failed> {
    session.command = Some(args.compile.command("mem", &args.file, args.kernel.as_deref()));
    let unit = session.load_code(&args.file)?;
    let entry = match unit.entry(args.kernel.as_deref(), "mem") {
        Ok(entry) => entry,
        Err(d) => return session.fail(*d),
    };
    session.check_definitions(&[entry], &unit);
    let list = maps::maps_of(session, &unit, &entry)?;
    Ok(Maps { name: entry.item.name.name.to_string(), program: entry.program, file: unit.file, list })
}

#[cfg(test)]
mod tests;
