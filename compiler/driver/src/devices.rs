//! Targets by name, or by the path of a file that describes a device with units in memory (`spec/devices.md`).

use crate::backend;
use ptoc_diagnostics::{Diagnostic, FileId, SourceMap, Span, codes};
use ptoc_isa::{Preset, Target, UnitKind};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use toml::de::DeTable;

/// What mistakes of a target file leave to go on with: they are errors, so nothing is compiled for it.
const STAND_IN: &str = "hbm-pim";

/// Most bytes of a file.
const MOST: u64 = 1 << 20;

/// Whether this is the path of a file, and no name.
pub fn is_path(name: &str) -> bool {
    name.ends_with(".toml") || name.contains(['/', '\\'])
}

/// The name of a target as a file of `folder` gives it: the path of a device is from there.
pub fn named_in(name: &str, folder: &Path) -> String {
    if is_path(name) { folder.join(name).display().to_string() } else { name.to_owned() }
}

/// The target of this name or file, if nothing is wrong with it: for what is shown beside a text, whose analysis tells
/// the mistakes. Descriptions stay as long as the process, one for each text that a file has had.
pub fn shown(name: &str) -> Option<&'static Target> {
    static DESCRIBED: Mutex<BTreeMap<String, &'static Target>> = Mutex::new(BTreeMap::new());
    if !is_path(name) {
        return Target::builtin(name).ok();
    }
    let text = read(Path::new(name)).ok()?;
    let mut all = DESCRIBED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(target) = all.get(&text) {
        return Some(target);
    }
    let target = described(SourceMap::new().add(name, &*text), &text).ok()?;
    Some(*all.entry(text).or_insert(Box::leak(Box::new(target))))
}

/// The target of this name or file. What is wrong in a file is among the diagnostics; that there is no such target or
/// file is the caller's mistake.
pub fn find(
    name: &str,
    sources: &mut SourceMap,
    out: &mut ptoc_diagnostics::Diagnostics,
) -> Result<Target, Box<Diagnostic>> {
    if !is_path(name) {
        return Ok(Target::builtin(name)?.clone());
    }
    let text = read(Path::new(name)).map_err(|why| {
        let d = Diagnostic::global(codes::DEVICE_FILE_UNREADABLE, format!("the target `{name}` cannot be read: {why}"));
        Box::new(d.with_help("a target is a name of `ptoc targets`, or a TOML file that describes a device"))
    })?;
    let file = sources.add(name, &*text);
    match described(file, &text) {
        Ok(target) => Ok(target),
        Err(mistakes) => {
            out.extend(mistakes);
            Ok(Target::builtin(STAND_IN)?.clone())
        }
    }
}

/// The text of the file that describes a target, if one does.
pub fn text(name: &str) -> Option<String> {
    is_path(name).then(|| read(Path::new(name)).ok()).flatten()
}

fn read(path: &Path) -> Result<String, String> {
    let reason = |e: std::io::Error| match e.kind() {
        std::io::ErrorKind::InvalidData => "it is no text".to_owned(),
        _ => e.to_string(),
    };
    let meta = std::fs::metadata(path).map_err(reason)?;
    if !meta.is_file() {
        return Err("it is no file".into());
    }
    if meta.len() > MOST {
        return Err(format!("it has {} bytes, and {MOST} are read", meta.len()));
    }
    std::fs::read_to_string(path).map_err(reason)
}

/// The target of a file's text.
fn described(file: FileId, text: &str) -> Result<Target, Vec<Diagnostic>> {
    let mut target = Target::parse(file, text)?;
    let file = Described { file, text };
    if !target.is_pim() {
        return Err(vec![
            file.error(&["family"], "a file describes a device with units in memory: family `pim`".into()),
        ]);
    }
    if Target::builtin(&target.name).is_ok() {
        let message = format!("there is a target `{}` already: take another name", target.name);
        return Err(vec![file.error(&["name"], message)]);
    }
    let preset = backend::default_of(&target).memory(file.file, text, &target)?;
    let mistakes = file.contradictions(&target, &preset);
    if !mistakes.is_empty() {
        return Err(mistakes);
    }
    if let Some(d) = &mut target.device
        && d.rows == 0
    {
        d.rows = preset.rows.min(most_rows(target.unit.as_ref().map(|u| u.kind)));
    }
    target.with_preset(preset);
    let wrong = target.out_of_range().into_iter().map(|(name, message)| {
        let path: Vec<&str> = name.split('.').collect();
        Diagnostic::error(codes::TARGET_VALUE, place(file.file, file.text, &path), message)
    });
    let wrong: Vec<Diagnostic> = wrong.collect();
    if !wrong.is_empty() {
        return Err(wrong);
    }
    target
        .check_settings()
        .map_err(|d| vec![Diagnostic { span: Some(place(file.file, file.text, &["unit"])), ..d }])?;
    Ok(target)
}

/// Rows of a bank that data may have: HBM-PIM's units are reached by rows with bit 12.
fn most_rows(kind: Option<UnitKind>) -> u32 {
    match kind {
        Some(UnitKind::HbmPim(_)) => 1 << 12,
        _ => u32::MAX,
    }
}

/// Rows that the units are reached by, which the DRAM must have.
fn least_rows(kind: Option<UnitKind>) -> u32 {
    match kind {
        Some(UnitKind::HbmPim(_)) => 1 << 14,
        _ => 1,
    }
}

/// A target file.
struct Described<'t> {
    file: FileId,
    text: &'t str,
}

impl Described<'_> {
    fn error(&self, path: &[&str], message: String) -> Diagnostic {
        Diagnostic::error(codes::DEVICE_FILE, place(self.file, self.text, path), message)
    }

    /// What the file says of its DRAM in `[device]` and the DRAM does not have.
    fn contradictions(&self, target: &Target, dram: &Preset) -> Vec<Diagnostic> {
        let Some(d) = &target.device else { return Vec::new() };
        let counts = [
            ("pseudo_channels", d.pseudo_channels, dram.pseudo_channels),
            ("bank_groups", d.bank_groups, dram.bank_groups),
            ("banks", d.banks, dram.banks),
            ("bursts", d.bursts, dram.bursts),
            ("burst_bytes", d.burst_bytes, dram.burst_bytes),
        ];
        let other = counts.iter().filter(|(_, given, there)| *given != 0 && given != there);
        let mut out: Vec<Diagnostic> = other
            .map(|(name, given, there)| {
                let message = format!("`device.{name}` is {given}, and the DRAM has {there}");
                self.error(&["device", name], message).with_help("leave it out: it follows from the DRAM")
            })
            .collect();
        let kind = target.unit.as_ref().map(|u| u.kind);
        let most = dram.rows.min(most_rows(kind));
        if d.rows > most {
            let message = format!("`device.rows` is {}, and data may have {most} rows of a bank", d.rows);
            out.push(self.error(&["device", "rows"], message));
        }
        if dram.rows < least_rows(kind) {
            let message = format!("a bank has {} rows, and the units are reached by rows up to 16383", dram.rows);
            out.push(self.error(&["dram", "org", "row"], message));
        }
        out
    }
}

/// Where the value of a path of keys stands in a file, or the table that would have it; the beginning, if neither is
/// there.
pub(crate) fn place(file: FileId, text: &str, path: &[&str]) -> Span {
    let whole = Span::new(file, 0, 0);
    let Ok(document) = DeTable::parse(text) else { return whole };
    let (mut table, mut found) = (Some(document.get_ref()), whole);
    for key in path {
        let Some(value) = table.and_then(|t| t.get(*key)) else { break };
        // Texts are at most 4 GiB.
        found = Span::new(file, value.span().start as u32, value.span().end as u32);
        table = value.get_ref().as_table();
    }
    found
}
