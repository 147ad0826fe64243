//! The device of a stream: a preset and its overrides, read as one configuration file, so that they obey the same
//! rules.

use crate::dram::presets::PRESETS;
use crate::dram::timing::Timing;
use crate::dram::{Config, Controller, Refresh};
use crate::located::nearest;
use ptoc_pim_stream::{Geometry, stream};

/// What is wrong with the device of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceError {
    /// What is wrong.
    pub message: String,
    /// What mends it; may be empty.
    pub help: String,
}

/// Counts that can be overridden.
const COUNTS: [&str; 9] =
    ["channel", "pseudochannel", "sid", "bankgroup", "bank", "row", "column", "dq", "channel_width"];

/// The override of a key of the `energy` table: its name with a thousandth of the unit, as overrides are whole numbers.
fn in_thousandths(key: &str) -> Option<String> {
    let units = [("_mA", "_uA"), ("_V", "_mV"), ("_pJ_per_bit", "_fJ_per_bit")];
    units.iter().find_map(|(unit, thousandth)| Some(format!("{}{thousandth}", key.strip_suffix(unit)?)))
}

/// The key of the `energy` table that an override sets.
fn energy_key(name: &str) -> Option<&'static str> {
    let named = |(key, _): &&(&'static str, &'static str)| in_thousandths(key).as_deref() == Some(name);
    crate::energy::KEYS.iter().find(named).map(|(key, _)| *key)
}

/// The configuration of a device.
pub fn config(device: &stream::Device) -> Result<Config, DeviceError> {
    let wrong = |message: String, help: String| Err(DeviceError { message, help });
    let Some(preset) = PRESETS.iter().find(|p| p.name == device.preset) else {
        let help = match nearest(&device.preset, PRESETS.iter().map(|p| p.name)) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("the presets are {}", PRESETS.iter().map(|p| p.name).collect::<Vec<_>>().join(", ")),
        };
        return wrong(format!("there is no device `{}`", device.preset), help);
    };
    let Ok(mut document) = preset.text.parse::<toml::Table>() else {
        return wrong(format!("the preset `{}` cannot be read", preset.name), String::new());
    };
    for (name, value) in &device.overrides {
        if let Some(key) = energy_key(name) {
            let energy = document.entry("energy").or_insert_with(|| toml::Value::Table(toml::Table::new()));
            if let toml::Value::Table(t) = energy {
                t.insert(key.to_owned(), (f64::from(*value) / 1000.0).into());
            }
            continue;
        }
        let table = if COUNTS.contains(&name.as_str()) { "org" } else { "timing_nCK" };
        let known = || COUNTS.into_iter().chain(Timing::PARAMETERS.iter().map(|p| p.name));
        if !known().any(|k| k == name) {
            let help = match nearest(name, known()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("counts are {}; timing parameters are those of the preset's file", COUNTS.join(", ")),
            };
            return wrong(format!("a device has no `{name}`"), help);
        }
        if let Some(toml::Value::Table(t)) = document.get_mut(table) {
            // A preset may spell it otherwise.
            let spellings = Timing::PARAMETERS.iter().find(|p| p.name == name).map_or(&[][..], |p| p.aliases);
            spellings.iter().for_each(|s| drop(t.remove(*s)));
            t.insert(name.clone(), i64::from(*value).into());
        }
    }
    let config = match Config::parse(preset.name, &document.to_string()) {
        Ok(loaded) => loaded.config,
        Err(errors) => {
            let e = &errors[0];
            // The stream has the parameter without its table.
            let name = e.path.rsplit('.').next().unwrap_or_default();
            let path = if name.is_empty() { String::new() } else { format!("`{name}`: ") };
            return wrong(format!("{path}{}", e.message), e.help.clone());
        }
    };
    fits(&config)?;
    if device.refresh == stream::Refresh::Bank && !config.standard.refreshes_banks() {
        let name = config.standard.name();
        let help = "refresh all banks (`refresh=all`), or none".to_owned();
        return wrong(format!("{name} has no refresh of single banks"), help);
    }
    Ok(config)
}

/// The preset and the overrides that are this device for a stream. The number of channels is the caller's.
pub fn describe(own: &Config) -> Result<stream::Device, DeviceError> {
    fits(own)?;
    let wrong = |message: String| Err(DeviceError { message, help: String::new() });
    let base = |p: &&crate::dram::presets::Preset| {
        Config::preset(p.name).is_some_and(|p| (p.standard, p.tick_multiplier) == (own.standard, own.tick_multiplier))
    };
    let Some(preset) = PRESETS.iter().find(base) else {
        let ticks = own.tick_multiplier;
        return wrong(format!("streams know no {} with {ticks} ticks a clock", own.standard.name()));
    };
    let mut device =
        stream::Device { preset: preset.name.to_owned(), refresh: Default::default(), overrides: Vec::new() };
    let counts = |c: &Config| {
        let o = &c.org;
        [o.channel, o.pseudochannel, o.sid, o.bankgroup, o.bank, o.row, o.column, o.dq, o.channel_width]
    };
    let other = Config::preset(preset.name).unwrap_or_else(|| own.clone());
    let differ = COUNTS.iter().zip(counts(own).into_iter().zip(counts(&other))).skip(1);
    device.overrides.extend(differ.filter(|(_, (a, b))| a != b).map(|(name, (a, _))| ((*name).to_owned(), a)));
    for (key, value) in &own.energy {
        let thousandths = value * 1000.0;
        let whole =
            (0.0..=f64::from(u32::MAX)).contains(&thousandths) && (thousandths - thousandths.round()).abs() < 1e-6;
        match in_thousandths(key).filter(|_| whole) {
            Some(name) => device.overrides.push((name, thousandths.round() as u32)),
            None => return wrong(format!("`energy.{key}` is {value}: streams have thousandths of what it counts")),
        }
    }
    // What is not given follows from the rest, and may follow otherwise from other numbers.
    let mut now = None;
    for _ in 0..=Timing::PARAMETERS.len() {
        let made = config(&device)?;
        let next = Timing::PARAMETERS.iter().find(|p| made.timing.get(p.name) != own.timing.get(p.name));
        let Some(parameter) = next else {
            now = Some(made);
            break;
        };
        let value = own.timing.get(parameter.name).unwrap_or_default();
        device.overrides.retain(|(name, _)| name != parameter.name);
        device.overrides.push((parameter.name.to_owned(), value));
    }
    let same = |made: &Config| {
        let org = crate::dram::Org { channel: made.org.channel, density: made.org.density, ..own.org.clone() };
        made.org == org
            && made.timing == own.timing
            && made.command_ticks == own.command_ticks
            && made.constraints == own.constraints
    };
    match now.filter(same) {
        Some(_) => Ok(device),
        None => wrong("streams have the commands and constraints of the standard, and not lists of a file".to_owned()),
    }
}

/// Checks that streams can be for such a device.
pub fn fits(config: &Config) -> Result<(), DeviceError> {
    match config.org.burst_bytes() as usize {
        stream::BURST => Ok(()),
        n => Err(DeviceError {
            message: format!("a burst of this device has {n} bytes; streams have {}", stream::BURST),
            help: String::new(),
        }),
    }
}

/// Its counts.
pub fn geometry(config: &Config) -> Geometry {
    let org = &config.org;
    Geometry {
        channel: org.channel,
        pch: org.pseudochannel,
        bg: org.bankgroups_per_pc(),
        bank: org.bank,
        row: org.row,
        col: org.bursts_per_row(),
        burst: org.burst_bytes(),
    }
}

/// The host's controller.
pub fn controller(device: &stream::Device) -> Controller {
    let refresh = match device.refresh {
        stream::Refresh::Off => Refresh::Off,
        stream::Refresh::All => Refresh::AllBank,
        stream::Refresh::Bank => Refresh::PerBank,
    };
    Controller { refresh, ..Controller::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(preset: &str, overrides: &[(&str, u32)]) -> stream::Device {
        let overrides = overrides.iter().map(|(k, v)| ((*k).to_owned(), *v)).collect();
        stream::Device { preset: preset.into(), refresh: stream::Refresh::Off, overrides }
    }

    #[test]
    fn overrides_replace_the_presets_numbers() {
        for preset in PRESETS {
            let own = Config::preset(preset.name).unwrap();
            match config(&device(preset.name, &[])) {
                Ok(config) => assert_eq!(config, own),
                Err(e) => assert_eq!(
                    (own.org.burst_bytes(), e.message),
                    (64, "a burst of this device has 64 bytes; streams have 32".to_owned())
                ),
            }
        }
        // A parameter that the preset spells otherwise.
        assert_eq!(config(&device("hbm3_6400", &[("nRTPL", 11)])).unwrap().timing.rtp, 11);
        let c = config(&device("hbm2_2000", &[("channel", 8), ("nFAW", 30)])).unwrap();
        assert_eq!((c.org.channel, c.timing.faw), (8, 30));
        assert!(c.constraints.iter().any(|c| c.rule == "nFAW" && c.gap == 30));
    }

    /// A device with numbers of its own is that device again when its stream is read.
    #[test]
    fn a_described_device_is_the_same() {
        for preset in PRESETS.iter().filter(|p| !p.name.starts_with("ddr")) {
            let mut own = Config::preset(preset.name).unwrap();
            (own.org.bankgroup, own.org.row) = (2, 20_000);
            for (n, parameter) in Timing::PARAMETERS.iter().enumerate().skip(2) {
                own.timing.set(parameter.name, 3 + n as u32);
            }
            own.timing.refi = 5000;
            own.energy = [("idd0_mA", 71.5), ("vdd_V", 1.1)].map(|(k, v)| (k.to_owned(), v)).into();
            if !own.standard.has_stack_levels() {
                own.energy
                    .extend(["idd2n_mA", "idd3n_mA", "idd4r_mA", "idd4w_mA", "idd5ab_mA"].map(|k| (k.into(), 60.0)));
            }
            own.derive();
            let made = config(&describe(&own).unwrap_or_else(|e| panic!("{}: {}", preset.name, e.message))).unwrap();
            // For reports alone, and not carried.
            own.org.density = made.org.density;
            assert_eq!(
                (&made.org, &made.timing, &made.energy),
                (&own.org, &own.timing, &own.energy),
                "{}",
                preset.name
            );
            assert_eq!(made.constraints, own.constraints, "{}", preset.name);
        }
        let mut own = Config::preset("hbm2_2000").unwrap();
        own.energy = [("idd0_mA".to_owned(), 0.0001)].into();
        assert!(describe(&own).unwrap_err().message.contains("thousandths"));
    }

    #[test]
    fn what_no_device_has() {
        let says = |preset: &str, overrides: &[(&str, u32)]| {
            let e = config(&device(preset, overrides)).unwrap_err();
            format!("{}; {}", e.message, e.help)
        };
        assert_eq!(says("hbm2_200", &[]), "there is no device `hbm2_200`; did you mean `hbm2_2000`?");
        assert_eq!(says("hbm2_2000", &[("nFAV", 1)]), "a device has no `nFAV`; did you mean `nFAW`?");
        assert!(says("hbm2_2000", &[("channel", 0)]).starts_with("`channel`: "));
        assert!(says("hbm2_2000", &[("nRCDRD", 99_999_999)]).starts_with("`nRCDRD`: "));
    }
}
