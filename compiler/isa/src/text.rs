//! Small helpers for messages: lists in words, numbers in bytes, nearest names.

use std::fmt::Display;

/// `a`, `b and c`, `a, b and c`; `none` for nothing.
pub fn list<T: Display>(items: impl IntoIterator<Item = T>) -> String {
    join(items, "and")
}

/// `a`, `b or c`, `a, b or c`; `none` for nothing.
pub fn either<T: Display>(items: impl IntoIterator<Item = T>) -> String {
    join(items, "or")
}

/// `a, b, c`.
pub(crate) fn joined<T: Display>(items: impl IntoIterator<Item = T>) -> String {
    let items: Vec<String> = items.into_iter().map(|t| t.to_string()).collect();
    items.join(", ")
}

fn join<T: Display>(items: impl IntoIterator<Item = T>, last: &str) -> String {
    let items: Vec<String> = items.into_iter().map(|t| t.to_string()).collect();
    match items.as_slice() {
        [] => "none".to_string(),
        [one] => one.clone(),
        [init @ .., end] => format!("{} {last} {end}", init.join(", ")),
    }
}

/// `196608 bytes (192 KiB)`: the second form only where it is exact.
pub(crate) fn bytes(n: u64) -> String {
    match n {
        1 => "1 byte".to_string(),
        n if n >= 1 << 20 && n.is_multiple_of(1 << 20) => format!("{n} bytes ({} MiB)", n >> 20),
        n if n >= 1 << 10 && n.is_multiple_of(1 << 10) => format!("{n} bytes ({} KiB)", n >> 10),
        n => format!("{n} bytes"),
    }
}

/// Up to three of `names` that are close to `name`, best first.
pub(crate) fn nearest<'a>(name: &str, names: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let length = name.chars().count();
    let limit = (length / 3).max(1);
    // Each character more is an edit.
    let near = |n: &&str| n.chars().count().abs_diff(length) <= limit;
    let mut found: Vec<(usize, &str)> = names
        .into_iter()
        .filter(near)
        .map(|n| (strsim::damerau_levenshtein(name, n), n))
        .filter(|(d, _)| *d <= limit)
        .collect();
    found.sort();
    found.into_iter().take(3).map(|(_, n)| n).collect()
}
