//! `ptoc targets`

use super::show;
use crate::args::{MessageFormat, TargetsArgs};
use crate::io::Io;
use crate::{DONE, ERRORS, WRONG_CALL};
use ptoc_diagnostics::{Diagnostics, SourceMap};
use ptoc_driver::{backend, devices};
use ptoc_isa::{Loc, Target, UnitKind};
use serde_json::{Map, Value, json};
use std::fmt::Write as _;

/// Lists targets with the memory, capacity and alignment of each location, and with what `-D` sets of their units.
pub fn targets(args: &TargetsArgs, io: &mut Io<'_>) -> u8 {
    let described;
    let chosen: Vec<&Target> = match &args.name {
        None => Target::all().iter().chain(Target::devices()).collect(),
        Some(name) => {
            let (mut sources, mut found) = (SourceMap::default(), Diagnostics::default());
            described = match devices::find(name, &mut sources, &mut found) {
                Ok(target) => target,
                Err(d) => {
                    show(*d, io, MessageFormat::Human);
                    return WRONG_CALL;
                }
            };
            if io.report(found, &sources, MessageFormat::Human).errors > 0 {
                return ERRORS;
            }
            vec![&described]
        }
    };
    let text = match args.json {
        false => chosen.iter().map(|t| table(t)).collect::<Vec<_>>().join("\n"),
        // One target is an object, all of them are a list.
        true => {
            let mut list: Vec<Value> = chosen.iter().map(|t| object(t)).collect();
            let value = if args.name.is_some() { list.remove(0) } else { Value::Array(list) };
            format!("{value:#}\n")
        }
    };
    io.print(&text);
    DONE
}

fn table(t: &Target) -> String {
    let dtypes: Vec<&str> = t.dtypes.iter().map(|d| d.name()).collect();
    let mut out = format!("{}  ({})\n", t.name, dtypes.join(" "));
    let _ = writeln!(out, "  {:<10}  {:<12}  {:>8}  {:>9}  {:>5}", "location", "memory", "bytes", "", "align");
    for loc in t.locations() {
        let m = t.memory(loc);
        if m.capacity == 0 {
            let _ = writeln!(out, "  {:<10}  none", loc.name());
            continue;
        }
        let kib = if m.capacity.is_multiple_of(1024) { format!("{} KiB", m.capacity / 1024) } else { String::new() };
        let _ = writeln!(out, "  {:<10}  {:<12}  {:>8}  {kib:>9}  {:>5}", loc.name(), m.name, m.capacity, m.align);
    }
    for pool in t.pools() {
        let shared = ptoc_isa::text::list(&pool.locations);
        let _ = writeln!(out, "  {}: one memory, {} bytes, for {shared}", pool.name, t.capacity(pool.locations[0]));
    }
    if let (Some(unit), Some(d)) = (&t.unit, &t.device) {
        let banks = if unit.banks == 1 { "each bank".to_owned() } else { format!("every {} banks", unit.banks) };
        let units = d.units(unit);
        let operations: Vec<&str> = unit.operations.iter().map(|o| o.name()).collect();
        let _ = writeln!(
            out,
            "  {units} units, one for {banks}: {} lanes, {} MHz; {}{}",
            unit.lanes,
            unit.clock,
            operations.join(" "),
            if unit.kind == UnitKind::Described { "; no code is made for them" } else { "" }
        );
        let _ = writeln!(
            out,
            "  {}{}: {} stacks x {} channels x {} pch x {} bg x {} banks; {} rows of {} bursts of {} bytes",
            d.preset,
            if d.overrides.is_empty() { "" } else { " with other numbers" },
            d.stacks,
            d.channels,
            d.pseudo_channels,
            d.bank_groups,
            d.banks,
            d.rows,
            d.bursts,
            d.burst_bytes
        );
        let _ = writeln!(out, "  a kernel of the host has {} bytes of Vec", t.host().capacity(Loc::Vec));
    }
    let settings = t.settings();
    let width = settings.iter().map(|s| s.name.len() + s.value.len() + 1).max().unwrap_or(0);
    for (n, s) in settings.iter().enumerate() {
        let set = format!("{}={}", s.name, s.value);
        let _ = writeln!(out, "  {}  {set:<width$}  {} ({})", if n == 0 { "-D" } else { "  " }, s.what, s.allowed);
    }
    out
}

fn object(t: &Target) -> Value {
    let mut locations = Map::new();
    for loc in t.locations() {
        let m = t.memory(loc);
        let memory = if m.capacity == 0 { Value::Null } else { json!(m.name) };
        locations.insert(loc.name().into(), json!({"memory": memory, "capacity": m.capacity, "align": m.align}));
    }
    let dtypes: Vec<&str> = t.dtypes.iter().map(|d| d.name()).collect();
    let backends: Vec<&str> = backend::serving(t).iter().map(|b| b.name()).collect();
    let mut object = json!({"name": t.name, "dtypes": dtypes, "backends": backends, "locations": locations});
    if !t.pools().is_empty() {
        let names = |pool: &ptoc_isa::Pool| pool.locations.iter().map(|l| json!(l.name())).collect::<Value>();
        object["pools"] = t.pools().iter().map(|pool| json!({"name": pool.name, "locations": names(pool)})).collect();
    }
    if let (Some(unit), Some(d)) = (&t.unit, &t.device) {
        let operations: Vec<&str> = unit.operations.iter().map(|o| o.name()).collect();
        object["unit"] = json!({
            "clock_mhz": unit.clock, "lanes": unit.lanes, "banks": unit.banks, "units": d.units(unit),
            "operations": operations,
        });
        object["device"] = json!({
            "preset": d.preset, "stacks": d.stacks, "channels": d.channels, "pseudo_channels": d.pseudo_channels,
            "bank_groups": d.bank_groups, "banks": d.banks, "rows": d.rows, "bursts": d.bursts,
            "burst_bytes": d.burst_bytes,
        });
        let settings = t.settings().into_iter().map(|s| {
            json!({"name": s.name, "value": s.value, "what": s.what, "allowed": s.allowed.to_string().replace('`', "")})
        });
        object["settings"] = settings.collect();
    }
    object
}
