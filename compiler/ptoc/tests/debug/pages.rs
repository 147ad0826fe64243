//! The sessions in `spec/debugging.md` are what happens. `UPDATE_PAGES=1` writes them anew.

use super::{ROOT, calls, session};
use std::fs;

#[test]
fn sessions_in_the_specification() {
    let path = format!("{ROOT}spec/debugging.md");
    let page = fs::read_to_string(&path).unwrap();
    let (mut text, mut seen) = (String::new(), 0);
    for (n, part) in page.split("```").enumerate() {
        if n > 0 {
            text.push_str("```");
        }
        match part.strip_prefix("console\n") {
            Some(block) if n % 2 == 1 && block.starts_with("$ ptoc run") => {
                seen += 1;
                text.push_str("console\n");
                text.push_str(&again(block));
            }
            _ => text.push_str(part),
        }
    }
    assert!(seen >= 3, "only {seen} sessions");
    if std::env::var_os("UPDATE_PAGES").is_some() {
        fs::write(&path, text).unwrap();
        return;
    }
    assert!(text == page, "{path} is out of date (UPDATE_PAGES=1 writes it): {}", first_difference(&text, &page));
}

fn first_difference(a: &str, b: &str) -> String {
    let pair = a.lines().zip(b.lines()).find(|(x, y)| x != y);
    pair.map_or("another length".into(), |(x, y)| format!("`{x}` and not `{y}`"))
}

/// The session with the same commands.
fn again(block: &str) -> String {
    let call = block.lines().next().unwrap_or("").trim_start_matches("$ ptoc ");
    let call = call.replace('\'', "");
    let commands: Vec<&str> = block.lines().filter_map(|l| l.strip_prefix("(ptoc) ")).collect();
    let first = block.lines().next().unwrap_or("");
    if commands.is_empty() {
        let text = calls(&[&call]);
        // The last line of the page's session is left out with the results.
        let body: Vec<&str> =
            text.lines().skip(2).filter(|l| l.starts_with('[') || l.starts_with(' ') && l.contains(']')).collect();
        return format!("{first}\n{}\n", body.join("\n"));
    }
    let text = session(&call, &commands.join("\n"));
    let body: Vec<&str> = text.lines().skip(1).collect();
    format!("{first}\n{}\n", body.join("\n"))
}
