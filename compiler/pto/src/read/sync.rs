//! Order between pipes.

use super::meaning::{Meaning, Scalar};
use super::{Reader, Res, not_read};
use crate::tree::Op;
use crate::types::Type;
use ptoc_diagnostics::{Diagnostic, codes};

/// The pipe of an operation that `record_event` and `wait_event` name.
const OPERATIONS: [(&str, &str); 9] = [
    ("TLOAD", "MTE2"),
    ("TSTORE_ACC", "FIX"),
    ("TSTORE_VEC", "MTE3"),
    ("TMOV_M2L", "MTE1"),
    ("TMOV_M2S", "FIX"),
    ("TMOV_M2B", "MTE1"),
    ("TMATMUL", "M"),
    ("TVEC", "V"),
    ("TVECWAIT_EVENT", "V"),
];

const PIPES: [&str; 7] = ["S", "V", "M", "MTE1", "MTE2", "MTE3", "FIX"];

/// Flags from one pipe to another: `EVENT_ID0` to `EVENT_ID7`.
const FLAGS: usize = 8;

/// The most numbers of events that one array has.
const MOST_NUMBERS: usize = 64;

/// The pipe that a word of the text means.
fn pipe_of(word: &str) -> Option<&str> {
    let pipe = word.strip_prefix("PIPE_").filter(|p| PIPES.contains(p));
    pipe.or_else(|| OPERATIONS.iter().find(|(o, _)| *o == word).map(|(_, pipe)| *pipe))
}

/// The pipes of an operation on a flag.
pub(super) fn pipes_of(op: &Op) -> Option<(&str, &str)> {
    let attrs = if op.row.name.ends_with("event") { ["src_op", "dst_op"] } else { ["src_pipe", "dst_pipe"] };
    let of = |attr| op.attr(attr).and_then(|a| a.value.as_ref()).and_then(|v| v.word()).and_then(pipe_of);
    of(attrs[0]).zip(of(attrs[1]))
}

/// The number of a flag that the text numbers.
pub(super) fn number_of(op: &Op) -> Option<u32> {
    op.attr("event_id")?.value.as_ref()?.word()?.strip_prefix("EVENT_ID")?.parse().ok()
}

impl Reader<'_> {
    pub(super) fn sync(&mut self, op: &Op) -> Res<()> {
        match op.row.name {
            "pto.set_flag" | "pto.set_flag_dyn" | "pto.record_event" => self.flag(op, "set"),
            "pto.wait_flag" | "pto.wait_flag_dyn" | "pto.wait_event" => self.flag(op, "wait"),
            _ => self.barrier(op),
        }
    }

    fn word<'o>(&self, op: &'o Op, attr: &str) -> Res<&'o str> {
        match op.attr(attr).and_then(|a| a.value.as_ref()).and_then(|v| v.word()) {
            Some(word) => Ok(word),
            None => not_read(op.span, format!("`{attr}` of `{}` is not read here", op.row.name)),
        }
    }

    fn pipe(&self, op: &Op, attr: &str) -> Res<String> {
        let word = self.word(op, attr)?;
        match pipe_of(word) {
            Some(pipe) => Ok(pipe.to_string()),
            None => not_read(op.span, format!("the pipe of `{word}` is not read")),
        }
    }

    /// Flags between two pipes are an event each, or one array if the launch knows the number of one.
    fn flag(&mut self, op: &Op, verb: &str) -> Res<()> {
        let attrs = if op.row.name.ends_with("event") { ["src_op", "dst_op"] } else { ["src_pipe", "dst_pipe"] };
        let (from, to) = (self.pipe(op, attrs[0])?, self.pipe(op, attrs[1])?);
        let id = match op.operand("event_id") {
            Some(id) => {
                let number = self.scalar(&id.value)?;
                number.constant.map_or(number.text, |n| n.to_string())
            }
            None => self.word(op, "event_id")?.trim_start_matches("EVENT_ID").to_string(),
        };
        let several = self.facts.numbered_flags.contains(&(from.clone(), to.clone()));
        let own = if several { String::new() } else { format!("_{id}") };
        let key = (from.clone(), to.clone(), own);
        if !self.events.contains_key(&key) {
            // Flags with numbers are declared in their order: that is their number where they are written again.
            let numbers = self.facts.flag_numbers.get(&(from.clone(), to.clone())).cloned().unwrap_or_default();
            let last = numbers.last().copied().unwrap_or_default();
            let all: Vec<(String, bool)> = match several {
                true => vec![(String::new(), true)],
                false => (0..=last).map(|n| (format!("_{n}"), numbers.contains(&n))).collect(),
            };
            let count = if several { format!("[{FLAGS}]") } else { String::new() };
            for (own, used) in all {
                let unused = if used { "" } else { "_" };
                let event = self.give(&format!("{unused}{}_{}{own}", from.to_lowercase(), to.to_lowercase()));
                self.top.line(&format!("let {event} = event<{from}, {to}>{count};"), op.span);
                self.events.insert((from.clone(), to.clone(), own), event);
            }
        }
        let Some(event) = self.events.get(&key).cloned() else {
            return not_read(op.span, format!("the flag `{id}` is not read here"));
        };
        let element = if several { format!("[{id}]") } else { String::new() };
        self.out.line(&format!("{verb}({event}{element});"), op.span);
        Ok(())
    }

    /// An array of numbers of events is a variable for each.
    pub(super) fn event_numbers(&mut self, op: &Op) -> Res<()> {
        if op.row.name == "pto.declare_eventid_array" {
            let count = op.result_types.first().and_then(|t| match &t.ty {
                Type::Other(text) => text.strip_prefix("!pto.eventid_array<")?.strip_suffix('>')?.parse().ok(),
                _ => None,
            });
            let Some(count) = count.filter(|n| (1..=MOST_NUMBERS).contains(n)) else {
                return not_read(op.span, format!("an array of 1 to {MOST_NUMBERS} numbers of events is read"));
            };
            let stem = op.results.first().map_or("event", |r| &r.name).to_string();
            let mut names = Vec::new();
            for n in 0..count {
                let name = self.give(&format!("{stem}_{n}"));
                self.out.line(&format!("var {name}: index = 0;"), op.span);
                names.push(name);
            }
            self.result(op, Meaning::Events(names));
            return Ok(());
        }
        let (array, at) = (self.operand(op, "array")?, self.operand(op, "index")?);
        let Meaning::Events(names) = self.meaning(&array.value)?.clone() else {
            return not_read(array.value.span, "this is no array of numbers of events");
        };
        let number = self.scalar(&at.value)?;
        let known = match number.constant {
            Some(n) => match usize::try_from(n).ok().and_then(|n| names.get(n)) {
                Some(name) => Some(name.clone()),
                None => {
                    let message =
                        format!("`%{}` has {} numbers, and none is number {n}", array.value.name, names.len());
                    return Err(Box::new(Diagnostic::error(codes::PTO_TYPE, at.value.span, message)));
                }
            },
            None => None,
        };
        if op.row.name == "pto.eventid_array_set" {
            let value = self.scalar(&self.operand(op, "value")?.value)?;
            let value = value.constant.map_or(value.text, |n| n.to_string());
            match known {
                Some(name) => self.out.line(&format!("{name} = {value};"), op.span),
                None => {
                    self.in_range(op, &number, names.len());
                    for (n, name) in names.iter().enumerate() {
                        let line = format!("{name} = if {} == {n} {{ {value} }} else {{ {name} }};", number.text);
                        self.out.line(&line, op.span);
                    }
                }
            }
            return Ok(());
        }
        let text = match known {
            Some(name) => name.to_string(),
            None => {
                self.in_range(op, &number, names.len());
                let (last, others) = names.split_last().map_or((String::new(), &[][..]), |(l, o)| (l.to_string(), o));
                let chain = others.iter().enumerate().rev();
                chain.fold(last, |rest, (n, name)| format!("if {} == {n} {{ {name} }} else {{ {rest} }}", number.text))
            }
        };
        // What is set later does not change a number that was got before.
        let name = self.give(op.results.first().map_or("event", |r| &r.name));
        self.out.line(&format!("let {name} = {text};"), op.span);
        let got = Scalar { text: name.to_string(), ty: Type::Index, constant: None, natural: false, product: None };
        self.result(op, Meaning::Scalar(got));
        Ok(())
    }

    /// The number of a number in an array, which the launch knows.
    fn in_range(&mut self, op: &Op, at: &Scalar, count: usize) {
        let message = "a number of an event outside of its array";
        self.out.line(&format!("assert({0} >= 0 && {0} < {count}, \"{message}\");", at.text), op.span);
    }

    /// Where the compiler orders the pipes, a barrier adds nothing.
    fn barrier(&mut self, op: &Op) -> Res<()> {
        if !self.facts.flags {
            return Ok(());
        }
        let attr = if op.row.name == "pto.barrier" { "pipe" } else { "op_type" };
        if self.word(op, attr)? == "PIPE_ALL" {
            self.out.line("barrier();", op.span);
            return Ok(());
        }
        let pipe = self.pipe(op, attr)?;
        self.out.line(&format!("barrier({pipe});"), op.span);
        Ok(())
    }
}
