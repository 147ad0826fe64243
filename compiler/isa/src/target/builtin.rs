//! The targets that come with the compiler.

use super::Target;
use crate::{Loc, text};
use ptoc_diagnostics::{Diagnostic, FileId, codes};
use std::sync::{LazyLock, OnceLock};

/// File name and text of each, in the order in which they are listed.
const FILES: [(&str, &str); 7] = [
    ("a2a3.toml", include_str!("../../targets/a2a3.toml")),
    ("a5.toml", include_str!("../../targets/a5.toml")),
    ("kirin9030.toml", include_str!("../../targets/kirin9030.toml")),
    ("kirinx90.toml", include_str!("../../targets/kirinx90.toml")),
    ("sm90.toml", include_str!("../../targets/sm90.toml")),
    ("geopim.toml", include_str!("../../targets/geopim.toml")),
    ("hbm-pim.toml", include_str!("../../targets/hbm-pim.toml")),
];

/// Devices: files on the base of one of [`FILES`]. They are found by name like any target, and are not among
/// [`Target::all`], for which pages and messages say what each has.
const DEVICES: [(&str, &str); 2] = [
    ("gddr6-aim.toml", include_str!("../../targets/gddr6-aim.toml")),
    ("lpddr5-pim.toml", include_str!("../../targets/lpddr5-pim.toml")),
];

static DEVICE_TARGETS: LazyLock<Vec<Target>> =
    LazyLock::new(|| (FILES.len()..FILES.len() + DEVICES.len()).map(|n| read(n).clone()).collect());

/// The text of a target that others may be based on: one with units in memory.
pub(super) fn base(name: &str) -> Option<&'static str> {
    let file = |(file, _): &&(&str, &str)| file.strip_suffix(".toml") == Some(name);
    bases().find(|b| *b == name).and_then(|_| FILES.iter().find(file)).map(|(_, text)| *text)
}

/// Names of these.
pub(super) fn bases() -> impl Iterator<Item = &'static str> {
    ["geopim", "hbm-pim"].into_iter()
}

static ALL: LazyLock<Vec<Target>> = LazyLock::new(|| (0..FILES.len()).map(|n| read(n).clone()).collect());

/// The target of a file of [`FILES`] or [`DEVICES`], by its number. It is read when it is first asked for: most runs
/// need one, and reading all takes a tenth of the time of a small check.
fn read(n: usize) -> &'static Target {
    static EACH: [OnceLock<Target>; FILES.len() + DEVICES.len()] =
        [const { OnceLock::new() }; FILES.len() + DEVICES.len()];
    EACH[n].get_or_init(|| {
        let (name, text) = FILES.iter().chain(&DEVICES).nth(n).expect("as many as there are");
        match Target::parse(FileId(0), text) {
            Ok(target) => target,
            // A broken built-in file is a mistake in this crate; its tests read all of them.
            Err(errors) => panic!("{name}: {errors:?}"),
        }
    })
}

#[allow(clippy::result_large_err, reason = "at most once a run, and then the run is over")]
impl Target {
    /// Every built-in target.
    pub fn all() -> &'static [Target] {
        &ALL
    }

    /// Devices with units in memory that are described on the base of one of them.
    pub fn devices() -> &'static [Target] {
        &DEVICE_TARGETS
    }

    /// PTO's targets among them.
    pub fn pto() -> &'static [Target] {
        let pto = ALL.iter().take_while(|t| t.device.is_none() && t.gpu.is_none()).count();
        &ALL[..pto]
    }

    /// The built-in target called `name`, or why there is none: E0650 lists what exists.
    pub fn builtin(name: &str) -> Result<&'static Target, Diagnostic> {
        if let Some(n) = FILES.iter().chain(&DEVICES).position(|(file, _)| file.strip_suffix(".toml") == Some(name)) {
            return Ok(read(n));
        }
        let names = || Target::all().iter().chain(Target::devices()).map(|t| t.name.as_str());
        let mut error = Diagnostic::global(codes::UNKNOWN_TARGET, format!("there is no target `{name}`"))
            .with_note(format!("the targets are {}", text::list(names().map(|n| format!("`{n}`")))));
        if let Some(near) = text::nearest(&name.to_ascii_lowercase(), names()).first() {
            error = error.with_help(format!("did you mean `{near}`?"));
        }
        Err(error)
    }

    /// Same as [`Target::builtin`].
    pub fn find(name: &str) -> Result<&'static Target, Diagnostic> {
        Target::builtin(name)
    }

    /// The target with `capacity.<memory>` set, as `-D capacity.Vec=262144` asks, for a location or a pool; E0654 if
    /// there is no such location.
    pub fn override_capacity(self, location: &str, bytes: u64) -> Result<Target, Diagnostic> {
        let pool = self.pools.iter().find(|pool| pool.name == location).map(|pool| pool.locations[0]);
        let Some(loc) = pool.or_else(|| Loc::from_name(location)) else {
            let mut error =
                Diagnostic::global(codes::UNKNOWN_CAPACITY, format!("`capacity.{location}` names no location"))
                    .with_note(format!("the locations are {}", text::list(self.locations())));
            if let Some(near) = nearest_location(location) {
                error = error.with_help(format!("did you mean `capacity.{near}`?"));
            }
            return Err(error);
        };
        Ok(self.with_capacity(loc, bytes))
    }
}

fn nearest_location(name: &str) -> Option<Loc> {
    Loc::ALL
        .into_iter()
        .find(|l| l.name().eq_ignore_ascii_case(name))
        .or_else(|| text::nearest(name, Loc::ALL.iter().map(|l| l.name())).first().and_then(|n| Loc::from_name(n)))
}
