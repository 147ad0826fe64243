//! The place of a call's result in the store.

use super::{StoreError, TuningKey, TuningResult, TuningStore, key, machine};
use crate::backend::BackendRef;
use crate::launch::{Arrays, Tolerance, bind_dimensions};
use crate::session::{CompilationUnit, EntryPoint, Failed, Session};
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

/// The store, and what results of a call are of.
#[derive(Clone, Debug)]
pub struct TuningSlot {
    store: TuningStore,
    key: TuningKey,
    file: String,
    /// There are `ensures`.
    specified: bool,
}

impl TuningSlot {
    /// Of launches of an entry point with these arrays, by a backend with so many threads of this host; `None` if
    /// results are not stored.
    ///
    /// # Errors
    /// Sizes are missing, or disagree.
    pub fn of(
        session: &mut Session,
        (unit, entry): (&CompilationUnit, &EntryPoint<'_>),
        arrays: &Arrays,
        (backend, threads): (BackendRef, usize),
    ) -> Result<Option<TuningSlot>, Failed> {
        let (Some(store), Some(machine)) = (TuningStore::of_environment(), machine(backend, threads)) else {
            return Ok(None);
        };
        let sizes = bind_dimensions(session, unit, entry, arrays, true)?;
        let key = key(session, unit, entry, &sizes, (backend.name(), &machine));
        let specified = !entry.item.ensures.is_empty();
        Ok(Some(TuningSlot { store, key, file: unit.path.display().to_string(), specified }))
    }

    /// What is stored for exactly this call, which holds results to `ensures` under this tolerance, or to nothing.
    pub fn stored(&self, tolerance: Option<Tolerance>) -> Option<TuningResult> {
        let all = self.store.read().ok()?.results;
        let last = all.into_iter().filter(|r| r.key == self.key).max_by_key(|r| r.stored)?;
        let counts = tolerance.filter(|_| self.specified).is_none_or(|tolerance| last.holds(tolerance));
        counts.then_some(last)
    }

    /// Stores the best values, whose results were held to `ensures` (where there are some) under this tolerance, and
    /// returns the file. `failed`: how many others failed or were wrong.
    ///
    /// # Errors
    /// The file cannot be read or written.
    pub fn keep(
        &self,
        best: Vec<(String, String)>,
        median: f64,
        (tolerance, failed): (Option<Tolerance>, usize),
    ) -> Result<PathBuf, StoreError> {
        let stored = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let (key, file) = (self.key.clone(), self.file.clone());
        let best = best.into_iter().collect();
        let tolerance = tolerance.filter(|_| self.specified);
        let (verified, failed) = (tolerance.is_some(), Some(failed));
        // JSON has no infinity.
        let tolerance = tolerance.and_then(|tolerance| match tolerance {
            Tolerance::Given { rtol, atol } => Some((rtol.min(f64::MAX), atol.min(f64::MAX))),
            Tolerance::Rounding => None,
        });
        self.store.replace(TuningResult { key, file, best, median, verified, tolerance, failed, stored })?;
        Ok(self.store.path())
    }
}
