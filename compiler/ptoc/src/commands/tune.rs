//! `ptoc tune`: stored results of tuning.

use super::show;
use crate::args::{MessageFormat, TuneArgs};
use crate::io::Io;
use crate::{DONE, ERRORS};
use ptoc_diagnostics::{Diagnostic, codes, plural};
use ptoc_driver::files::Outputs;
use ptoc_driver::tuning::{TuningResult, TuningStore, VARIABLE, lines};
use std::fmt::Write as _;
use std::path::Path;

/// Shows, exports, imports or drops results.
pub fn tune(args: &TuneArgs, io: &mut Io<'_>) -> u8 {
    let carried_out = carried_out(args, &mut |warning| show(warning, io, MessageFormat::Human));
    match carried_out {
        Ok(text) => {
            io.print(&text);
            DONE
        }
        Err(d) => {
            show(*d, io, MessageFormat::Human);
            ERRORS
        }
    }
}

fn carried_out(args: &TuneArgs, warn: &mut dyn FnMut(Diagnostic)) -> Result<String, Box<Diagnostic>> {
    let store = TuningStore::of_environment().ok_or_else(|| {
        let message = format!("results of tuning are not stored: `{VARIABLE}` is `off`, or there is no home directory");
        Box::new(
            Diagnostic::global(codes::TUNING_STORE, message)
                .with_help(format!("name a directory: `{VARIABLE}=DIRECTORY ptoc tune --list`")),
        )
    })?;
    let wanted = |result: &TuningResult| args.kernel.as_ref().is_none_or(|kernel| *kernel == result.key.kernel);
    let place = store.path();
    if args.clear {
        let (dropped, broken) = match args.kernel {
            Some(_) => store.drop_if(wanted).map(|dropped| (dropped, 0)),
            None => store.clear(),
        }
        .map_err(|e| e.diagnostic())?;
        let also = if broken > 0 { format!(", and {},", plural(broken, "broken line")) } else { String::new() };
        return Ok(format!("{}{also} dropped from {}\n", plural(dropped, "result"), place.display()));
    }
    if !args.import.is_empty() {
        let mut results = Vec::new();
        for file in &args.import {
            results.extend(TuningStore::read_export(file).map_err(|e| e.diagnostic())?);
        }
        results.retain(wanted);
        let m = store.add(results).map_err(|e| e.diagnostic())?;
        let rest = format!("{} replaced, {} not newer than what was there", m.replaced, m.kept);
        return Ok(format!("{} added to {}, {rest}\n", plural(m.added, "result"), place.display()));
    }
    let stored = store.read().map_err(|e| e.diagnostic())?;
    if let Some(warning) = stored.warning() {
        warn(warning);
    }
    let mut results = stored.results;
    results.retain(wanted);
    match &args.export {
        Some(file) => export(file, &results),
        None if args.json => Ok(lines(results.iter())),
        None => Ok(listed(&results, &place)),
    }
}

fn export(file: &Path, results: &[TuningResult]) -> Result<String, Box<Diagnostic>> {
    Outputs::replace(file, lines(results.iter()).as_bytes())?;
    Ok(format!("{} written to {}\n", plural(results.len(), "result"), file.display()))
}

fn listed(results: &[TuningResult], place: &Path) -> String {
    if results.is_empty() {
        return format!("no results in {}\n", place.display());
    }
    let mut out = String::new();
    for r in results {
        let key = &r.key;
        let sizes = key.sizes.iter().map(|(name, n)| format!("{name}={n}"));
        let set = key.set.iter().map(|(name, value)| format!("{name}={value}"));
        let options = Some(key.options.clone()).filter(|options| !options.is_empty());
        let of: Vec<String> = sizes.chain(set).chain(options).collect();
        writeln!(out, "{} {} on {} ({}): {}", key.kernel, of.join(" "), key.backend, key.target, r.values()).ok();
        let verified = if r.verified { "" } else { ", not verified" };
        writeln!(
            out,
            "    {:.3} ms a launch{verified}, stored {}, {} of source {}, {}",
            r.median * 1e3,
            r.date(),
            r.file,
            key.source,
            key.machine
        )
        .ok();
    }
    out
}
