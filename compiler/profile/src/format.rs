//! Numbers and times, for people.

use ptoc_ir::loops::work::Unknown;
use std::time::Duration;

/// Why operations are not counted.
pub fn reason(why: Unknown) -> &'static str {
    match why {
        Unknown::Data => "how much is computed depends on what the kernel computes",
        Unknown::Long => "the launch has too many steps to count",
        Unknown::Fails => "a check of the launch fails",
    }
}

/// Milliseconds.
pub fn exact_ms(d: Duration) -> f64 {
    d.as_nanos() as f64 / 1e6
}

/// Milliseconds, as text.
pub fn ms(d: Duration) -> String {
    format!("{:.2}", exact_ms(d))
}

/// Seconds with four digits and a unit.
pub fn time(seconds: f64) -> String {
    let (value, unit) = match seconds {
        s if s < 1e-3 => (s * 1e6, "us"),
        s if s < 1.0 => (s * 1e3, "ms"),
        s => (s, "s"),
    };
    format!("{} {unit}", digits(value))
}

/// A quantity with four digits, a prefix and its unit.
pub fn scaled(value: f64, unit: &str) -> String {
    let steps = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")];
    let (by, prefix) = steps.into_iter().find(|(by, _)| value >= *by).unwrap_or((1.0, ""));
    format!("{} {prefix}{unit}", digits(value / by))
}

fn digits(value: f64) -> String {
    let decimals = match value {
        v if v >= 1000.0 => 0,
        v if v >= 100.0 => 1,
        v if v >= 10.0 => 2,
        _ => 3,
    };
    format!("{value:.decimals$}")
}

/// A share, as text.
pub fn percent(share: f64) -> String {
    if share < 0.1 { format!("{:.1} %", share * 100.0) } else { format!("{:.0} %", share * 100.0) }
}

/// `-D BM=64`, as a shell takes it.
pub fn flag(name: &str, value: &str) -> String {
    let definition = format!("{name}={value}");
    let plain = |c: char| c.is_alphanumeric() || "-_./=:,+@%".contains(c);
    match definition.chars().all(plain) {
        true => format!("-D {definition}"),
        false => format!("-D '{}'", definition.replace('\'', "'\\''")),
    }
}
