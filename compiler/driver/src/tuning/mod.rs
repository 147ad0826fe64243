//! Results of tuning that outlive the process: which values of `tune` lists were the fastest, for a source, a shape and
//! a machine.
//!
//! A result is used by launches of the same text, of shapes of the same class, for the same target, by the same backend
//! and on the same machine, where nobody has set what it sets. It is never used for another text: a change may have
//! made it slow, or wrong. What was used is said ([`Session::notes`]).

mod date;
mod slot;
mod store;

pub use slot::TuningSlot;
pub use store::{Merged, StoreError, Stored, TuningStore, VARIABLE, lines};

use crate::backend::{BackendRef, Timed};
use crate::launch::{Plan, Tolerance};
use crate::session::{CompilationUnit, EntryPoint, Failed, Session};
use indexmap::IndexMap;
use ptoc_analysis::Bindings;
use ptoc_diagnostics::{Diagnostic, SourceMap, codes};
use ptoc_exec::Vectors;
use ptoc_isa::Target;
use ptoc_names::Modules;
use ptoc_syntax::ast::Name;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// What a result is of.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct TuningKey {
    /// Kernel or program.
    pub kernel: String,
    /// A digest of the file and of all that it imports.
    pub source: String,
    /// The target.
    pub target: String,
    /// The backend.
    pub backend: String,
    /// What it was measured on, and with how many threads.
    pub machine: String,
    /// What was asked beside the usual: `--vectors 128 --exact`, `--resident A`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub options: String,
    /// Sizes of the dimensions.
    pub sizes: BTreeMap<String, i64>,
    /// What was set beside the sizes, as it was written.
    #[serde(default)]
    pub set: BTreeMap<String, String>,
}

/// A result.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct TuningResult {
    /// What it is of.
    #[serde(flatten)]
    pub key: TuningKey,
    /// The file, as it was named.
    pub file: String,
    /// The fastest values.
    pub best: BTreeMap<String, String>,
    /// Seconds of a launch with these.
    pub median: f64,
    /// Results were compared with `ensures`.
    pub verified: bool,
    /// The relative and the absolute tolerance, where they were given; nothing: [`Tolerance::Rounding`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tolerance: Option<(f64, f64)>,
    /// How many other configurations failed or were wrong; nothing: it was not counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<usize>,
    /// Seconds since 1970, when it was stored.
    pub stored: u64,
}

impl TuningKey {
    /// Whether results for the one are used for the other: sizes are of the same class if the same power of two is the
    /// next one that is not smaller.
    fn is_like(&self, other: &TuningKey) -> bool {
        let class = |sizes: &BTreeMap<String, i64>| -> Vec<(String, u64)> {
            let of = |n: &i64| u64::try_from(*n).unwrap_or(0).checked_next_power_of_two().unwrap_or(u64::MAX);
            sizes.iter().map(|(name, n)| (name.clone(), of(n))).collect()
        };
        let rest = |key: &TuningKey| TuningKey { sizes: BTreeMap::new(), ..key.clone() };
        rest(self) == rest(other) && class(&self.sizes) == class(&other.sizes)
    }
}

impl TuningResult {
    /// Whether its configuration was held to `ensures`, under a tolerance that is nowhere wider than this one. What
    /// [`Tolerance::Rounding`] comes to depends on the results, so it is compared with itself alone.
    pub fn holds(&self, wanted: Tolerance) -> bool {
        self.verified
            && match (self.tolerance, wanted) {
                (None, Tolerance::Rounding) => true,
                (None, Tolerance::Given { .. }) => false,
                (Some((rtol, atol)), Tolerance::Rounding) => rtol == 0.0 && atol == 0.0,
                (Some(own), Tolerance::Given { rtol, atol }) => own.0 <= rtol && own.1 <= atol,
            }
    }

    /// `BM=64 BN=128`
    pub fn values(&self) -> String {
        let values: Vec<String> = self.best.iter().map(|(name, value)| format!("{name}={value}")).collect();
        values.join(" ")
    }

    /// The day on which it was stored.
    pub fn date(&self) -> String {
        date::of(self.stored)
    }
}

/// Which results launches of a session may use.
#[derive(Clone, Debug)]
pub struct TuningUse {
    /// Where they are.
    pub store: TuningStore,
    /// The name of the backend.
    pub backend: String,
    /// See [`machine`].
    pub machine: String,
}

impl TuningUse {
    /// For launches by a backend with so many threads of this host; `None`: nothing is stored, or stored results are
    /// not wanted.
    pub fn of(backend: BackendRef, threads: usize) -> Option<TuningUse> {
        let store = TuningStore::of_environment().filter(TuningStore::exists)?;
        Some(TuningUse { store, backend: backend.name().to_owned(), machine: machine(backend, threads)? })
    }
}

/// What a backend's launches are made on, with so many threads of this host; `None` of a backend whose launches are not
/// measured.
pub fn machine(backend: BackendRef, threads: usize) -> Option<String> {
    match backend.capabilities().timed? {
        Timed::Host => Some(format!("{}, {}", ptoc_exec::machine::name(), ptoc_diagnostics::plural(threads, "thread"))),
        Timed::Device => backend.machine(false),
        // Its numbers are the target's.
        Timed::Simulated => Some("simulated".into()),
    }
}

/// The digest of a file and of all that it imports.
pub fn source(modules: &Modules, sources: &SourceMap) -> String {
    let mut all = Vec::new();
    for (_, module) in modules.all() {
        let text = sources.text(module.file);
        all.extend((text.len() as u64).to_le_bytes());
        all.extend(text.as_bytes());
    }
    digest(&all)
}

/// The target's name, and a digest of what was set in it, such as capacities.
fn target(session: &Session) -> String {
    let name = session.target.name.to_string();
    match Target::builtin(&name) {
        Ok(known) if *known == session.target => name,
        _ => format!("{name}, set to {}", digest(format!("{:?}", session.target).as_bytes())),
    }
}

/// What a session asks beside the usual: of machine code, and of units' memory.
fn options(session: &Session) -> String {
    let asked = |vectors: &Vectors| *vectors == session.vectors && *vectors != Vectors::default();
    let width = Vectors::NAMES.into_iter().find(|(_, vectors)| asked(vectors));
    let vectors = width.map(|(name, _)| format!("--vectors {name}"));
    let exact = session.exact.then(|| "--exact".to_owned());
    let resident = (!session.resident.is_empty()).then(|| format!("--resident {}", session.resident.join(",")));
    vectors.into_iter().chain(exact).chain(resident).collect::<Vec<_>>().join(" ")
}

fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().take(12).map(|byte| format!("{byte:02x}")).collect()
}

/// The key of a launch of an entry point with these sizes.
pub fn key(
    session: &Session,
    unit: &CompilationUnit,
    entry: &EntryPoint<'_>,
    sizes: &IndexMap<Name, i64>,
    (backend, machine): (&str, &str),
) -> TuningKey {
    // Scalars of a kernel are the launch's, and its code as a rule does not depend on them.
    let is_static = |name: &Name| entry.item.statics.iter().any(|p| p.name.name == *name);
    let counts = |name: &Name| is_static(name) || entry.program && !sizes.contains_key(name);
    let given = session.definitions.values.iter().filter(|(name, _)| counts(name));
    TuningKey {
        kernel: entry.item.name.name.to_string(),
        source: source(&unit.modules, &session.sources),
        target: target(session),
        backend: backend.to_owned(),
        machine: machine.to_owned(),
        options: options(session),
        sizes: sizes.iter().map(|(name, n)| (name.to_string(), *n)).collect(),
        set: given.map(|(name, value)| (name.to_string(), session.sources.slice(value.span).to_owned())).collect(),
    }
}

/// A stored result as bindings.
pub(crate) struct StoredBindings {
    pub result: TuningResult,
    pub bindings: Bindings,
}

impl Session {
    /// What is stored for a launch, if the session uses such results.
    pub(crate) fn stored_tuning(
        &mut self,
        unit: &CompilationUnit,
        entry: &EntryPoint<'_>,
        bindings: &Bindings,
    ) -> Option<StoredBindings> {
        let used = self.tuning.clone()?;
        let statics = entry.static_params(unit);
        if statics.is_empty() {
            return None;
        }
        let all = match used.store.read() {
            Ok(all) => all,
            Err(e) => {
                self.diagnostics.push(e.warning());
                return None;
            }
        };
        if let Some(warning) = all.warning() {
            self.diagnostics.push(warning);
        }
        let key = key(self, unit, entry, &bindings.dims, (&used.backend, &used.machine));
        // A launch is not compared with anything: what was not held to `ensures` as strictly as by default is not used.
        let unspecified = entry.item.ensures.is_empty();
        let (usable, rest): (Vec<TuningResult>, Vec<TuningResult>) =
            all.results.into_iter().partition(|r| unspecified || r.holds(Tolerance::Rounding));
        let Some(result) = find(&usable, &key) else {
            let file = unit.path.display().to_string();
            self.notes.extend(unverified(&rest, &key).or_else(|| outdated(&usable, &key, &file)));
            return None;
        };
        let mut bindings = bindings.clone();
        for (name, value) in &result.best {
            let known = statics.iter().any(|(known, _)| **known == **name);
            let file = self.sources.add(format!("<tuned {name}>"), value.as_str());
            let (expr, found) = ptoc_syntax::parse_expr(file, value);
            // Somebody has changed the file by hand.
            if !known || found.iter().any(Diagnostic::is_error) {
                return None;
            }
            bindings.defs.insert(Name::new(name), expr);
        }
        Some(StoredBindings { result: result.clone(), bindings })
    }

    /// A plan with what is stored for it. Where that is refused the source's own values stay, and a warning says so.
    pub(crate) fn with_stored(
        &mut self,
        unit: &CompilationUnit,
        entry: &EntryPoint<'_>,
        bindings: &Bindings,
        make: &mut dyn FnMut(&mut Session, &Bindings) -> Result<Plan, Failed>,
    ) -> Result<Plan, Failed> {
        let Some(stored) = self.stored_tuning(unit, entry, bindings) else { return make(self, bindings) };
        let before = std::mem::take(&mut self.diagnostics);
        let made = make(self, &stored.bindings);
        let told = std::mem::replace(&mut self.diagnostics, before);
        let (values, date) = (stored.result.values(), stored.result.date());
        if made.is_ok() {
            self.diagnostics.extend(told.iter().cloned());
            self.notes.push(format!("tuned: {values}, stored {date}"));
            return made;
        }
        self.renew_steps();
        let made = make(self, bindings)?;
        let why = told.iter().find(|d| d.is_error()).map_or(String::new(), |d| format!(": {}: {}", d.code, d.message));
        let message = format!("what was stored on {date} ({values}) is refused here{why}");
        let d = Diagnostic::warning(codes::TUNING_NOT_USED, entry.item.name.span, message);
        let d = d.with_label("launched with the values of the source");
        self.diagnostics.push(d.with_help("tune for these sizes: `ptoc bench --tune`"));
        Ok(made)
    }
}

/// The result for a key: for the same sizes, or else the last one for sizes like these.
pub fn find<'r>(all: &'r [TuningResult], key: &TuningKey) -> Option<&'r TuningResult> {
    let exact = all.iter().filter(|r| r.key == *key).max_by_key(|r| r.stored);
    exact.or_else(|| all.iter().filter(|r| r.key.is_like(key)).max_by_key(|r| r.stored))
}

/// What is said where what is stored was not held to `ensures` as strictly as by default.
fn unverified(rest: &[TuningResult], key: &TuningKey) -> Option<String> {
    let last = find(rest, key)?;
    let how = match last.tolerance.filter(|_| last.verified) {
        Some((rtol, atol)) => format!("verified with --rtol {rtol} --atol {atol} alone"),
        None => "not verified".to_owned(),
    };
    Some(format!(
        "not tuned: what was stored on {} ({}) was {how}; `ptoc bench --tune` measures anew",
        last.date(),
        last.values()
    ))
}

/// What is said where there are results for another text of the same kernel alone.
fn outdated(all: &[TuningResult], key: &TuningKey, file: &str) -> Option<String> {
    let same = |r: &&TuningResult| {
        r.file == file
            && r.key.source != key.source
            && TuningKey { source: key.source.clone(), ..r.key.clone() }.is_like(key)
    };
    let last = all.iter().filter(same).max_by_key(|r| r.stored)?;
    Some(format!(
        "not tuned: `{}` has changed since {}, when {} was stored; `ptoc bench --tune` measures anew",
        key.kernel,
        last.date(),
        last.values()
    ))
}

#[cfg(test)]
mod tests;
