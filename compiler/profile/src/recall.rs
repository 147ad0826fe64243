//! What a tuner has stored before, and what it stores.

use crate::format::{flag, time};
use crate::setup::Machine;
use crate::tune::TuneAxis;
use ptoc_driver::launch::{Arrays, bind_dimensions};
use ptoc_driver::session::{CompilationUnit, EntryPoint, Failed, Session};
use ptoc_driver::tuning::{self, TuningKey, TuningResult, TuningStore};
use serde_json::{Map, Value, json};
use std::time::{SystemTime, UNIX_EPOCH};

/// The store, and what results of this call are of.
pub(crate) struct Memory {
    store: TuningStore,
    key: TuningKey,
    file: String,
}

impl Memory {
    /// Of a call; `None` if results are not stored.
    ///
    /// # Errors
    /// Sizes are missing, or disagree.
    pub fn of(
        session: &mut Session,
        on: &Machine,
        (unit, entry): (&CompilationUnit, &EntryPoint<'_>),
        arrays: &Arrays,
    ) -> Result<Option<Memory>, Failed> {
        let machine = tuning::machine(on.backend, on.threads);
        let (Some(store), Some(machine)) = (TuningStore::of_environment(), machine) else { return Ok(None) };
        let sizes = bind_dimensions(session, unit, entry, arrays, true)?;
        let key = tuning::key(session, unit, entry, &sizes, (on.backend.name(), &machine));
        Ok(Some(Memory { store, key, file: unit.path.display().to_string() }))
    }

    /// What is stored for exactly this call, if it names a value of each list.
    pub fn recall(&self, axes: &[TuneAxis<'_>]) -> Option<TuningResult> {
        let all = self.store.read().ok()?;
        let result = all.into_iter().filter(|r| r.key == self.key).max_by_key(|r| r.stored)?;
        let of = |axis: &TuneAxis<'_>| {
            result.best.get(axis.param.name.name.as_str()).is_some_and(|value| axis.values.contains(value))
        };
        (result.best.len() == axes.len() && axes.iter().all(of)).then_some(result)
    }

    /// Stores a result. What keeps it from being stored is a warning: the measurement is done.
    pub fn keep(&self, session: &mut Session, best: Vec<(String, String)>, median: f64, verified: bool) {
        let stored = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let best = best.into_iter().collect();
        let (key, file) = (self.key.clone(), self.file.clone());
        match self.store.add(vec![TuningResult { key, file, best, median, verified, stored }]) {
            Ok(_) => session.notes.push(format!("stored in {}", self.store.path().display())),
            Err(e) => {
                session.diagnostics.push(e.warning());
            }
        }
    }
}

/// A stored result, as text.
pub(crate) fn text(on: &Machine, stored: &TuningResult) -> String {
    let flags: Vec<String> = stored.best.iter().map(|(name, value)| flag(name, value)).collect();
    let verified = if stored.verified { "" } else { ", not verified" };
    format!(
        "{}: tuned before, nothing was measured\nbest: {}\n{} a launch{verified}, stored {}; `--retune` measures \
         again\n",
        on.head(&stored.key.kernel, &stored.key.target),
        flags.join(" "),
        time(stored.median),
        stored.date()
    )
}

/// A stored result, as JSON: like one that was measured now, without the measurements.
pub(crate) fn json(on: &Machine, stored: &TuningResult) -> String {
    let best: Map<String, Value> = stored.best.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
    let report = json!({
        "kernel": stored.key.kernel, "backend": stored.key.backend, "target": stored.key.target,
        "threads": on.host_threads(), "best": best, "measured": [], "discarded": [], "stored": stored.date(),
    });
    format!("{report}\n")
}
