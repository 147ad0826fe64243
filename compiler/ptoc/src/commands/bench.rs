//! `ptoc bench`: a kernel launched again and again by its target's backend, and held against what the machine can do
//! whose time a launch takes: this host, or its device; on a simulated device, launched once, since cycles are the same
//! each time.

use super::{Report, host_threads, show};
use crate::args::{BenchArgs, Margin, MessageFormat};
use crate::io::Io;
use crate::{DONE, ERRORS};
use ptoc_diagnostics::{Diagnostic, codes};
use ptoc_driver::backend::{self, BackendRef};
use ptoc_driver::launch::Tolerance;
use ptoc_driver::tuning::TuningUse;
use ptoc_isa::Target;
use ptoc_profile::model::MARGIN;
use ptoc_profile::setup::{Machine, Setup};
use ptoc_profile::tune::TuneOptions;

/// Measures a kernel, or all its configurations, and reports.
pub fn bench(args: &BenchArgs, io: &mut Io<'_>) -> u8 {
    let (mut session, mut report) = match Report::begin(&args.compile, &args.file, io) {
        Ok(begun) => begun,
        Err(status) => return status,
    };
    session.vectors = args.launch.vectors;
    session.exact = args.launch.exact;
    let on = match machine("bench", &session.target, args.launch.backend, args.launch.threads) {
        Ok(on) => on,
        Err(d) => return refuse(*d, io, args.compile.message_format),
    };
    if !args.resident.is_empty() && !on.backend.capabilities().units {
        return refuse(super::no_residents(on.backend, &session.target), io, args.compile.message_format);
    }
    session.resident = args.resident.clone();
    // A tuner begins with what the source has.
    if !args.tune {
        session.tuning = TuningUse::of(on.backend, on.threads);
    }
    let setup = Setup {
        command: "bench",
        file: args.file.clone(),
        kernel: args.kernel.clone(),
        target: args.compile.target.clone(),
        define: args.compile.define.clone(),
        input: args.launch.input.clone(),
        expect: Vec::new(),
        random: args.launch.random,
        vectors: args.launch.vectors,
        exact: args.launch.exact,
        resident: args.resident.clone(),
        seconds: args.seconds,
        verify: Some(tolerance(args.rtol, args.atol)),
    };
    // Everything that is wrong is among the diagnostics. Warnings come before the wait.
    let text = match args.tune {
        true => ptoc_profile::tune::tune(&setup, &on, &mut session, options(args)),
        false => {
            let mut warn = |session: &mut _| {
                report.flush(session, io);
            };
            ptoc_profile::bench::bench(&setup, &on, &mut session, args.json, &mut warn)
        }
    };
    report.flush(&mut session, io);
    match text {
        Ok(text) if report.status() == DONE => io.print(&text),
        _ => {}
    }
    report.times(&session, io);
    report.status()
}

/// How to tune. A target that is asked for is what is tuned for: its model of time counts.
fn options(args: &BenchArgs) -> TuneOptions {
    let usual = Margin(args.compile.target.as_ref().map(|_| MARGIN));
    TuneOptions {
        json: args.json,
        again: args.search.retune,
        exhaustive: args.search.exhaustive,
        margin: args.search.prune.unwrap_or(usual).0,
    }
}

/// Shows what keeps a call from beginning.
pub(super) fn refuse(d: Diagnostic, io: &mut Io<'_>, format: MessageFormat) -> u8 {
    show(d, io, format);
    ERRORS
}

/// What results of kernels that are measured are held to.
pub(super) fn tolerance(rtol: Option<f64>, atol: Option<f64>) -> Tolerance {
    match (rtol, atol) {
        (None, None) => Tolerance::Rounding,
        (rtol, atol) => Tolerance::Given { rtol: rtol.unwrap_or(0.0), atol: atol.unwrap_or(0.0) },
    }
}

/// What launches are measured on.
///
/// # Errors
/// The target does not have the backend, or nobody's time can be taken.
pub(super) fn machine(
    command: &str,
    target: &Target,
    asked: Option<BackendRef>,
    threads: usize,
) -> Result<Machine, Box<Diagnostic>> {
    let backend = backend::choose(target, asked)?;
    let Some(timed) = backend.capabilities().timed else {
        let what = if asked.is_some() { backend.name() } else { &target.name };
        let message = format!("`ptoc {command}` measures machine code, and {what} has none");
        let d = Diagnostic::global(codes::BACKEND_TARGET, message);
        return Err(Box::new(d.with_help("leave `--backend` out: the target's own is measured")));
    };
    Ok(Machine { backend, timed, threads: host_threads(threads) })
}
