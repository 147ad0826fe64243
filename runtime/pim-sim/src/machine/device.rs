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
const COUNTS: [&str; 6] = ["channel", "pseudochannel", "sid", "bankgroup", "bank", "row"];

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
        let c = config(&device("hbm2_2000", &[("channel", 8), ("nFAW", 30)])).unwrap();
        assert_eq!((c.org.channel, c.timing.faw), (8, 30));
        assert!(c.constraints.iter().any(|c| c.rule == "nFAW" && c.gap == 30));
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
