//! What a target's `[unit]` and `[device]` let one set, as `-D unit.clock=300` does: the one list of names, values and
//! ranges.

use super::{ProcessingUnit, Target, UnitKind};
use crate::{Loc, text};
use ptoc_diagnostics::{Diagnostic, Span, codes};
use std::fmt;

/// Values that a setting may have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Allowed {
    /// Whole numbers, both ends among them.
    Range(u32, u32),
    /// These numbers.
    OneOf(&'static [u32]),
    /// These words.
    Words(&'static [&'static str]),
    /// A preset of the simulator, which the target does not know: [`Target::with_preset`].
    Preset,
}

impl Allowed {
    /// Whether a number is one of them.
    fn has(&self, n: u32) -> bool {
        match self {
            Allowed::Range(from, to) => (*from..=*to).contains(&n),
            Allowed::OneOf(all) => all.contains(&n),
            Allowed::Words(_) | Allowed::Preset => true,
        }
    }
}

impl fmt::Display for Allowed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let or = |words: Vec<String>| match words.split_last() {
            Some((last, first)) if !first.is_empty() => format!("{} or {last}", first.join(", ")),
            _ => words.concat(),
        };
        match self {
            Allowed::Range(from, to) => write!(f, "{from} to {to}"),
            Allowed::OneOf(all) => f.write_str(&or(all.iter().map(u32::to_string).collect())),
            Allowed::Words(all) => f.write_str(&or(all.iter().map(|w| format!("`{w}`")).collect())),
            Allowed::Preset => f.write_str("a preset of `ptoc dram --presets`"),
        }
    }
}

/// A setting of a target.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Setting {
    /// `unit.clock`
    pub name: &'static str,
    /// What it is, with its unit.
    pub what: &'static str,
    /// What it may be.
    pub allowed: Allowed,
    /// What it is now.
    pub value: String,
}

/// A preset of the simulator as targets see it. Counts are those of [`super::Device`].
#[derive(Clone, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "as in Device")]
pub struct Preset {
    pub name: String,
    pub pseudo_channels: u32,
    pub bank_groups: u32,
    pub banks: u32,
    pub rows: u32,
    pub bursts: u32,
    pub burst_bytes: u32,
    pub overrides: Vec<(String, u32)>,
}

/// Where a value is kept.
enum Slot<'t> {
    Number(&'t mut u32),
    Word(&'t mut &'static str),
    Name(&'t mut String),
}

type Field<'t> = (&'static str, &'static str, Allowed, Slot<'t>);

/// Who is refreshed: the words of the stream's `refresh=`.
const REFRESH: Allowed = Allowed::Words(&["off", "all", "bank"]);
/// Loop orders of GeoPIM: the compiler's choice, or the words of the stream's `order=`.
const ORDERS: Allowed = Allowed::Words(&["chosen", "tile", "neighbour", "outer"]);

/// Every setting of the target with its place.
fn fields(t: &mut Target) -> Vec<Field<'_>> {
    use Allowed::{OneOf, Range};
    use Slot::{Name, Number, Word};
    let mut all: Vec<Field<'_>> = Vec::new();
    // A command for many banks opens no more rows than a pseudo-channel has banks; the stream's validator says the
    // same.
    let banks = t.device.as_ref().map_or(1, |d| u32::try_from(d.banks_of_pseudo_channel()).unwrap_or(u32::MAX));
    if let Some(unit) = &mut t.unit {
        all.push(("unit.clock", "MHz of the units", Range(1, 10_000), Number(&mut unit.clock)));
        match &mut unit.kind {
            UnitKind::GeoPim(u) => all.extend([
                ("unit.lanes", "f16 lanes of a unit", OneOf(&[1, 2, 4, 8, 16]), Number(&mut unit.lanes)),
                ("unit.tile_channels", "channels fetched together", OneOf(&[8, 16]), Number(&mut u.tile_channels)),
                ("unit.buffers", "halves of the tile buffer", OneOf(&[1, 2]), Number(&mut u.buffers)),
                ("unit.parameters", "queries loaded at once", Range(1, 65_535), Number(&mut u.parameters)),
                ("unit.scratchpad", "bytes shared in a channel; 0: none", Range(0, 1 << 20), Number(&mut u.scratchpad)),
                ("unit.coordinate_cycles", "cycles of an address", Range(0, 1000), Number(&mut u.coordinate_cycles)),
                (
                    "unit.act_weight",
                    "activations that one for all banks counts",
                    Range(1, banks),
                    Number(&mut u.act_weight),
                ),
                ("unit.order", "loops of a query", ORDERS, Word(&mut u.order)),
            ]),
            UnitKind::Described => {}
            UnitKind::Aim(u) => all.push((
                "unit.act_weight",
                "activations that one for all banks counts",
                Range(1, banks),
                Number(&mut u.act_weight),
            )),
            UnitKind::HbmPim(u) => all.extend([
                (
                    "unit.act_weight",
                    "activations that one for many banks counts",
                    Range(1, banks),
                    Number(&mut u.act_weight),
                ),
                (
                    "unit.fence_data",
                    "1: a fence waits for data; 0: for commands",
                    OneOf(&[0, 1]),
                    Number(&mut u.fence_data),
                ),
            ]),
        }
    }
    if let Some(d) = &mut t.device {
        let most = d.rows;
        all.extend([
            ("device.preset", "the DRAM", Allowed::Preset, Name(&mut d.preset)),
            ("device.stacks", "stacks", Range(1, 32), Number(&mut d.stacks)),
            ("device.channels", "channels of a stack", Range(1, 32), Number(&mut d.channels)),
            ("device.rows", "rows of a bank that data may have", Range(1, most), Number(&mut d.rows)),
            ("device.refresh", "who is refreshed", REFRESH, Word(&mut d.refresh)),
        ]);
    }
    all
}

#[allow(clippy::result_large_err, reason = "at most once a run, and then the run is over")]
impl Target {
    /// What can be set, in the order of the target's file.
    pub fn settings(&self) -> Vec<Setting> {
        let mut copy = self.clone();
        let setting = |(name, what, allowed, slot): Field<'_>| {
            let value = match slot {
                Slot::Number(n) => n.to_string(),
                Slot::Word(w) => w.to_string(),
                Slot::Name(n) => n.clone(),
            };
            Setting { name, what, allowed, value }
        };
        fields(&mut copy).into_iter().map(setting).collect()
    }

    /// The setting of that name; E1323 with the list if there is none.
    pub fn setting(&self, name: &str) -> Result<Setting, Diagnostic> {
        let all = self.settings();
        if let Some(found) = all.iter().find(|s| s.name == name) {
            return Ok(found.clone());
        }
        let message = match all.is_empty() {
            true => format!("`{name}` cannot be set: `{}` has no units in memory", self.name),
            false => format!("`{name}` is no setting of `{}`", self.name),
        };
        let error = Diagnostic::global(codes::UNKNOWN_SETTING, message);
        if all.is_empty() {
            let pim = Target::all().iter().filter(|t| t.has_units()).map(|t| format!("`{}`", t.name));
            return Err(error.with_note(format!("targets that have are {}", text::list(pim))));
        }
        let names = || all.iter().map(|s| s.name);
        let error = error.with_note(format!("the settings are {}", text::list(names().map(|n| format!("`{n}`")))));
        Err(match text::nearest(name, names()).first() {
            Some(near) => error.with_help(format!("did you mean `{near}`?")),
            None => error,
        })
    }

    /// Sets `name` to `value`, a number (`number` is what its expression comes to) or a word. Errors: E1323, and E1324
    /// at `span`.
    pub fn set(&mut self, name: &str, value: &str, number: Option<i64>, span: Span) -> Result<(), Diagnostic> {
        let setting = self.setting(name)?;
        let whole = number.and_then(|n| u32::try_from(n).ok());
        let fits = match setting.allowed {
            Allowed::Range(..) | Allowed::OneOf(_) => whole.is_some_and(|n| setting.allowed.has(n)),
            Allowed::Words(all) => all.contains(&value),
            Allowed::Preset => true,
        };
        if !fits {
            let shown = number.map_or_else(|| format!("`{value}`"), |n| n.to_string());
            let message = format!("`{name}` is {shown}; it may be {}", setting.allowed);
            return Err(Diagnostic::error(codes::SETTING_VALUE, span, message)
                .with_label(setting.what)
                .with_note(format!("`{}` has {}", self.name, setting.value)));
        }
        for (_, _, allowed, slot) in fields(self).into_iter().filter(|f| f.0 == name) {
            match (slot, allowed) {
                (Slot::Number(n), _) => *n = whole.unwrap_or(*n),
                (Slot::Word(w), Allowed::Words(all)) => *w = all.iter().find(|a| **a == value).copied().unwrap_or(*w),
                (Slot::Word(_), _) => {}
                (Slot::Name(n), _) => *n = value.to_owned(),
            }
        }
        self.bank_follows();
        Ok(())
    }

    /// The target on another DRAM. Rows stay as few as the target has, where some are reserved.
    pub fn with_preset(&mut self, preset: Preset) {
        if let Some(d) = &mut self.device {
            d.preset = preset.name;
            d.overrides = preset.overrides;
            d.pseudo_channels = preset.pseudo_channels;
            d.bank_groups = preset.bank_groups;
            d.banks = preset.banks;
            d.rows = d.rows.min(preset.rows);
            d.bursts = preset.bursts;
            d.burst_bytes = preset.burst_bytes;
        }
        self.bank_follows();
    }

    /// Rows of a bank that data may have: those of the device, or fewer where `capacity.Bank` was set.
    pub fn data_rows(&self) -> u32 {
        let Some(d) = &self.device else { return 0 };
        let room = self.capacity(Loc::Bank) / d.row_bytes().max(1);
        d.rows.min(u32::try_from(room).unwrap_or(u32::MAX))
    }

    /// A bank has the bytes of its rows, if nobody said otherwise.
    fn bank_follows(&mut self) {
        let Some(d) = &self.device else { return };
        let bytes = u64::from(d.rows) * d.row_bytes();
        let bank = &mut self.memories[Loc::Bank as usize];
        if !bank.overridden {
            bank.capacity = bytes;
        }
    }

    /// Numbers that a target file gives and no device has, with their names: the ranges of `-D`, and those of what
    /// cannot be set. The stream's validator says the same.
    pub fn out_of_range(&self) -> Vec<(&'static str, String)> {
        let mut copy = self.clone();
        let given = |(name, _, allowed, slot): Field<'_>| match slot {
            Slot::Number(n) => Some((name, *n, allowed)),
            Slot::Word(_) | Slot::Name(_) => None,
        };
        let mut all: Vec<(&str, u32, Allowed)> = fields(&mut copy).into_iter().filter_map(given).collect();
        if let Some(UnitKind::Aim(u)) = self.unit.as_ref().map(|u| u.kind) {
            all.push(("unit.buffer", u.buffer, Allowed::Range(1, 1 << 20)));
            all.push(("unit.latency", u.latency, Allowed::Range(1, 1 << 16)));
        }
        let wrong = all.into_iter().filter(|(_, n, allowed)| !allowed.has(*n));
        wrong.map(|(name, n, allowed)| (name, format!("`{name}` is {n}; it may be {allowed}"))).collect()
    }

    /// Settings that do not go together, and capacities that the units cannot have; E1324 with both numbers.
    pub fn check_settings(&self) -> Result<(), Diagnostic> {
        let Some(unit) = &self.unit else { return Ok(()) };
        self.check_capacities(unit)?;
        let UnitKind::GeoPim(geo) = unit.kind else { return Ok(()) };
        if geo.tile_channels.is_multiple_of(unit.lanes) {
            return Ok(());
        }
        let message =
            format!("`unit.lanes` is {}, which does not divide a tile of {} channels", unit.lanes, geo.tile_channels);
        Err(Diagnostic::global(codes::SETTING_VALUE, message)
            .with_help(format!("set `unit.lanes` to at most {}", geo.tile_channels)))
    }

    /// What was set by `-D capacity.*` is what the units have then, so it must be something that they could have.
    fn check_capacities(&self, unit: &ProcessingUnit) -> Result<(), Diagnostic> {
        let set = |loc: Loc| Some(self.capacity(loc)).filter(|_| self.memory(loc).overridden);
        let refuse = |loc: Loc, bytes: u64, can: String| {
            let message = format!("`capacity.{loc}` is {}; {can}", text::bytes(bytes));
            Err(Diagnostic::global(codes::SETTING_VALUE, message))
        };
        if let Some(d) = &self.device
            && let Some(bytes) = set(Loc::Bank)
        {
            let (row, most) = (d.row_bytes(), u64::from(d.rows) * d.row_bytes());
            if bytes > most || !bytes.is_multiple_of(row) || bytes == 0 {
                let can = format!("data may have 1 to {} whole rows of {} of a bank", d.rows, text::bytes(row));
                return refuse(Loc::Bank, bytes, can);
            }
        }
        if let UnitKind::HbmPim(hbm) = unit.kind {
            for loc in [Loc::GrfA, Loc::GrfB] {
                let vector = u64::from(unit.lanes) * 2;
                let most = u64::from(hbm.registers) * vector;
                match set(loc) {
                    Some(bytes) if bytes > most || !bytes.is_multiple_of(vector) || bytes == 0 => {
                        let can = format!("a unit has 1 to {} vectors of {} there", hbm.registers, text::bytes(vector));
                        return refuse(loc, bytes, can);
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }
}
