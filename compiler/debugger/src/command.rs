//! What is typed at the debugger.

use ptoc_diagnostics::suggest;

/// Commands with what they do, in the order of `help`. A prefix that fits one of them is enough; the letters in
/// [`SHORT`] mean what they mean in other debuggers.
pub const COMMANDS: [(&str, &str, &str); 25] = [
    (
        "break",
        "LINE | FILE:LINE | NAME [if EXPR]",
        "stop there: a line; a kernel, function, role; each instruction (TLOAD)",
    ),
    ("break", "NAME [if EXPR]", "before each write to a tile, tensor or var; each operation on an event"),
    ("watch", "NAME | NAME[r, c]", "stop when an element changes, or an event"),
    ("display", "EXPR | NAME[0:4, 0:8]", "print it now and at every stop where it is visible"),
    ("delete", "[N]", "remove breakpoint, watchpoint or display N, or all"),
    ("info", "[breaks | locals]", "list breakpoints, watchpoints, displays; or all names with their values"),
    ("step", "[N]", "run to the next statement of the source, into functions"),
    ("next", "[N]", "run to the next statement, over functions"),
    ("finish", "", "run until the function returns; in a kernel, until the block ends"),
    ("back", "", "to the statement before, over functions; the program runs again up to there"),
    ("back", "NAME", "before the last write to a tile, tensor or var"),
    ("until", "[LINE]", "run to a later line, out of a loop; or to LINE"),
    ("continue", "[N]", "run to the next stop, N times"),
    ("block", "[i=2 j=0]", "say which block of the grid runs; or run on until it is that one"),
    ("where", "", "the line, the functions around it, the role, the block, the loops, the pipes"),
    ("up", "[N]", "look from where the function is called: names, locals, list"),
    ("down", "[N]", "back towards where the run stands"),
    ("list", "[LINE | NAME]", "show source around here, or around LINE, or of a kernel or function"),
    ("print", "EXPR | NAME[b][0:4, 0:8]", "show a tile, a tensor, a slice of one, a scalar, an event, a ring"),
    ("tiles", "", "show the tiles that are live: memory, address, valid shape, how much is written"),
    ("events", "", "show which flags are up, the phase of barriers, the slots of rings"),
    ("help", "[COMMAND]", "show this"),
    ("quit", "", "end the run; nothing is written"),
    ("backtrace", "", "the same as where"),
    ("run", "", "the same as continue: the program is running already"),
];

/// Letters that several commands begin with.
const SHORT: [(&str, &str); 11] = [
    ("b", "break"),
    ("bt", "backtrace"),
    ("c", "continue"),
    ("d", "delete"),
    ("l", "list"),
    ("n", "next"),
    ("p", "print"),
    ("r", "run"),
    ("s", "step"),
    ("u", "until"),
    ("w", "where"),
];

/// The command that a word means.
pub fn resolve(word: &str) -> Result<&'static str, String> {
    if let Some((_, name)) = SHORT.iter().find(|(short, _)| *short == word) {
        return Ok(name);
    }
    let mut fits: Vec<&'static str> = COMMANDS.iter().map(|c| c.0).filter(|c| c.starts_with(word)).collect();
    // A command may have several lines.
    fits.dedup();
    match fits[..] {
        [only] => Ok(only),
        [] => {
            let near = suggest(word, COMMANDS.iter().map(|c| c.0));
            let near = near.map_or("`help` lists the commands".to_owned(), |n| format!("did you mean `{n}`?"));
            Err(format!("there is no command `{word}`; {near}"))
        }
        _ if fits.contains(&word) => Ok(COMMANDS.iter().map(|c| c.0).find(|c| *c == word).unwrap_or("help")),
        _ => Err(format!("`{word}` may be {}", fits.iter().map(|f| format!("`{f}`")).collect::<Vec<_>>().join(" or "))),
    }
}

/// Whether it is the name of something.
pub fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_alphabetic() || c == '_') && text.chars().all(|c| c.is_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes() {
        assert_eq!(resolve("cont"), Ok("continue"));
        assert_eq!(resolve("br"), Ok("break"));
        assert_eq!(resolve("st"), Ok("step"));
        assert_eq!(resolve("s"), Ok("step"));
        assert_eq!(resolve("u"), Ok("until"));
        assert_eq!(resolve("watch"), Ok("watch"));
        assert_eq!(resolve("wh"), Ok("where"));
        assert_eq!(resolve("bl"), Ok("block"));
        assert_eq!(resolve("back"), Ok("back"));
        assert_eq!(resolve("bac"), Err("`bac` may be `back` or `backtrace`".into()));
        assert!(resolve("x").unwrap_err().contains("no command `x`"));
        assert!(resolve("contniue").unwrap_err().contains("did you mean `continue`"));
        for (short, name) in SHORT {
            assert_eq!(resolve(short), Ok(name));
        }
        for (name, ..) in COMMANDS {
            assert_eq!(resolve(name), Ok(name));
        }
    }
}
