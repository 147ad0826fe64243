//! The comment at the head of a file that is built.

use super::{BuildUnit, Request};

/// What a file says at its head: which kernel, built by what, and as it is declared.
pub fn heading(unit: &BuildUnit, request: &Request) -> Vec<String> {
    let mut lines = vec![
        format!("Kernel `{}` of {}, built by ptoc {}:", unit.name, unit.source, env!("CARGO_PKG_VERSION")),
        format!("    {}", request.command),
        String::new(),
    ];
    if !unit.docs.is_empty() {
        lines.extend(unit.docs.trim().lines().map(|l| l.trim().to_owned()));
        lines.push(String::new());
    }
    lines.push(format!("    {}", unit.declaration));
    lines.extend(unit.wheres.iter().map(|(condition, _)| format!("        where {condition}")));
    lines.push(String::new());
    if !unit.definitions.is_empty() {
        let fixed: Vec<String> = unit.definitions.iter().map(|(name, value)| format!("{name} = {value}")).collect();
        lines.push(format!("Compiled for {}.", fixed.join(", ")));
        lines.push(String::new());
    }
    lines
}

/// Lines as a comment, which nothing in them ends.
pub fn comment(lines: &[String]) -> String {
    let mut out = String::new();
    for (n, line) in lines.iter().enumerate() {
        let line = line.replace("*/", "* /").replace("/*", "/ *");
        let text = format!("{} {line}", if n == 0 { "/*" } else { " *" });
        out.push_str(text.trim_end());
        out.push('\n');
    }
    out.push_str(" */\n");
    out
}
