//! A line at the foot of a terminal that says how far a command is, and how long it may take.

use std::time::{Duration, Instant};

/// What takes less is not worth a line.
const PATIENCE: Duration = Duration::from_secs(1);

/// Between two lines.
const PAUSE: Duration = Duration::from_millis(100);

/// Takes the cursor to the beginning of a line and empties it.
pub const CLEAR: &str = "\r\x1b[2K";

/// The progress of one command.
#[derive(Debug)]
pub struct Progress {
    begun: Instant,
    last: Option<Instant>,
}

impl Progress {
    /// Of a command that begins now.
    pub fn new(now: Instant) -> Progress {
        Progress { begun: now, last: None }
    }

    /// The line to show now, if one is due.
    pub fn line(&mut self, now: Instant, done: usize, all: usize, what: &str) -> Option<String> {
        let took = now.saturating_duration_since(self.begun);
        let early = self.last.is_some_and(|last| now.saturating_duration_since(last) < PAUSE);
        if took < PATIENCE || early || done >= all {
            return None;
        }
        self.last = Some(now);
        let left = match done {
            0 => String::new(),
            done => {
                let left = took.as_secs_f64() / done as f64 * (all - done) as f64;
                format!(", about {} left", duration(left))
            }
        };
        Some(format!("{CLEAR}{done} of {all} {what}{left}"))
    }
}

/// `12 s`, `3 min`, `2 h`
fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 90.0 => format!("{} s", s.ceil()),
        s if s < 5400.0 => format!("{} min", (s / 60.0).round()),
        s => format!("{:.1} h", s / 3600.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_said_of_what_is_soon_over() {
        let begun = Instant::now();
        let at = |ms| begun + Duration::from_millis(ms);
        let mut p = Progress::new(begun);
        assert_eq!(p.line(at(900), 3, 10, "lines"), None);
        assert_eq!(p.line(at(2000), 2, 10, "lines").unwrap(), format!("{CLEAR}2 of 10 lines, about 8 s left"));
        // Not so soon again, and not when it is over.
        assert_eq!(p.line(at(2050), 3, 10, "lines"), None);
        assert_eq!(p.line(at(3000), 10, 10, "lines"), None);
        assert_eq!(p.line(at(9000), 0, 10, "lines").unwrap(), format!("{CLEAR}0 of 10 lines"));
        assert_eq!(p.line(at(600_000), 1, 10, "lines").unwrap(), format!("{CLEAR}1 of 10 lines, about 1.5 h left"));
        assert_eq!(duration(7200.0), "2.0 h");
    }
}
