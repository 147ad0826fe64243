//! What a tuner has stored before, and what it stores.

use crate::format::{flag, time};
use crate::setup::Machine;
use crate::tune::TuneAxis;
use ptoc_driver::launch::Tolerance;
use ptoc_driver::session::Session;
use ptoc_driver::tuning::{TuningResult, TuningSlot};
use serde_json::{Map, Value, json};

/// What is stored for exactly this call, if it names a value of each list, and was verified where the call verifies.
pub(crate) fn recall(slot: &TuningSlot, axes: &[TuneAxis<'_>], tolerance: Option<Tolerance>) -> Option<TuningResult> {
    let result = slot.stored(tolerance)?;
    let of = |axis: &TuneAxis<'_>| result.best.get(&axis.name).is_some_and(|value| axis.values.contains(value));
    (result.best.len() == axes.len() && axes.iter().all(of)).then_some(result)
}

/// Stores a result. What keeps it from being stored is a warning: the measurement is done.
pub(crate) fn keep(
    slot: &TuningSlot,
    session: &mut Session,
    best: Vec<(String, String)>,
    (median, tolerance, failed): (f64, Option<Tolerance>, usize),
) {
    match slot.keep(best, median, (tolerance, failed)) {
        Ok(path) => {
            let note = format!("stored in {}", path.display());
            if !session.notes.contains(&note) {
                session.notes.push(note);
            }
        }
        Err(e) => {
            session.diagnostics.push(e.warning());
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
