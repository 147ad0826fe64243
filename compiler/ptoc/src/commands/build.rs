//! `ptoc build`

use super::Report;
use crate::args::BuildArgs;
use crate::io::Io;
use ptoc_driver::build::{self, Built, Request};
use ptoc_driver::files::Outputs;
use ptoc_driver::launch::check_given;
use ptoc_driver::session::{Failed, Session};

/// Compiles a kernel to a file that other programs link or load.
pub fn build(args: &BuildArgs, io: &mut Io<'_>) -> u8 {
    let (mut session, mut report) = match Report::begin(&args.compile, &args.file, io) {
        Ok(begun) => begun,
        Err(status) => return status,
    };
    session.pto_level = args.pto_level.map(Into::into);
    session.exact = args.exact;
    let mut outputs = Outputs::new();
    let places = outputs.plan(&args.output).and_then(|file| {
        let header = args.header.as_ref().map(|path| outputs.plan(path)).transpose()?;
        let package = args.pkg_config.as_ref().map(|path| outputs.plan(path)).transpose()?;
        let launcher = args.launcher.as_ref().map(|path| outputs.plan(path)).transpose()?;
        Ok((file, header, package, launcher))
    });
    let (file, header, package, launcher) = match places {
        Ok(places) => places,
        Err(d) => {
            session.diagnostics.push(d);
            report.flush(&mut session, io);
            return report.status();
        }
    };
    let made = made(args, &mut session);
    report.flush(&mut session, io);
    if let Ok(built) = made
        && report.counts.errors == 0
    {
        let written = outputs
            .keep_sources(&session.read)
            .and_then(|()| outputs.write(file, &built.bytes))
            .and_then(|()| header.map_or(Ok(()), |n| outputs.write(n, built.header.as_bytes())))
            .and_then(|()| match (launcher, &built.launcher) {
                (Some(n), Some(text)) => outputs.write(n, text.as_bytes()),
                _ => Ok(()),
            })
            .and_then(|()| match (package, &args.pkg_config) {
                (Some(n), Some(path)) => outputs.write(n, build::pkg_config(path, &args.output, &built).as_bytes()),
                _ => Ok(()),
            });
        match written.and_then(|()| outputs.commit()) {
            Ok(()) => built.remarks.iter().for_each(|remark| io.note(&format!("{remark}\n"))),
            Err(d) => {
                session.diagnostics.push(d);
                report.flush(&mut session, io);
            }
        }
    }
    report.times(&session, io);
    report.status()
}

fn made(args: &BuildArgs, session: &mut Session) -> Result<Built, Failed> {
    let command = args.compile.command("build", &args.file, args.kernel.as_deref());
    let command = format!("{command} -o {}", build::file_name(&args.output));
    session.command = Some(command.clone());
    let unit = session.load_code(&args.file)?;
    let entry = unit.entry(args.kernel.as_deref(), "build").or_else(|d| session.fail(*d))?;
    session.check_definitions(&[entry], &unit);
    let given = check_given(session, &entry, &args.given)?;
    if session.diagnostics.has_errors() {
        return Err(Failed);
    }
    let extension = args.output.extension().map(|e| e.to_string_lossy().into_owned()).unwrap_or_default();
    let request = Request {
        extension,
        symbol: args.symbol.clone(),
        header: args.header.as_deref().map(build::file_name),
        launcher: args.launcher.as_deref().map(build::file_name),
        file: build::file_name(&args.output),
        command,
    };
    build::build(session, &unit, &entry, given, &request)
}
