//! Order between pipes.

use super::{Reader, Res, not_read};
use crate::lexer::Word;
use crate::tree::Op;

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

impl Reader<'_> {
    pub(super) fn sync(&mut self, op: &Op) -> Res<()> {
        match op.row.name {
            "pto.set_flag" | "pto.record_event" => self.flag(op, "set"),
            "pto.wait_flag" | "pto.wait_event" => self.flag(op, "wait"),
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
        let pipe = word.strip_prefix("PIPE_").filter(|p| PIPES.contains(p));
        let of_operation = OPERATIONS.iter().find(|(o, _)| *o == word).map(|(_, pipe)| *pipe);
        match pipe.or(of_operation) {
            Some(pipe) => Ok(pipe.to_string()),
            None => not_read(op.span, format!("the pipe of `{word}` is not read")),
        }
    }

    fn flag(&mut self, op: &Op, verb: &str) -> Res<()> {
        let attrs = if op.row.name.ends_with("event") { ["src_op", "dst_op"] } else { ["src_pipe", "dst_pipe"] };
        let (from, to) = (self.pipe(op, attrs[0])?, self.pipe(op, attrs[1])?);
        let id = self.word(op, "event_id")?.trim_start_matches("EVENT_ID").to_string();
        let key = (from.clone(), to.clone(), id.clone());
        let event: Word = match self.events.get(&key) {
            Some(event) => event.clone(),
            None => {
                let event = self.give(&format!("{}_{}_{id}", from.to_lowercase(), to.to_lowercase()));
                self.top.line(&format!("let {event} = event<{from}, {to}>;"), op.span);
                self.events.insert(key, event.clone());
                event
            }
        };
        self.out.line(&format!("{verb}({event});"), op.span);
        Ok(())
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
