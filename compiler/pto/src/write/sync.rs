//! Order between pipes.

use super::{Res, Writer, unsaid};
use crate::attr::{AttrValue, Spelling};
use crate::lexer::Word;
use ptoc_ir::analysis::poly::Poly;
use ptoc_ir::tile::{EventKind, EventRef, SyncOp};
use ptoc_isa::Pipe;

/// Flags from one pipe to another.
const FLAGS: u32 = 8;

fn angles(word: String) -> AttrValue {
    AttrValue::Enum(Spelling::Angles, Word::default(), Word::new(word))
}

fn pipe(pipe: Pipe) -> AttrValue {
    angles(format!("PIPE_{pipe}"))
}

impl Writer<'_> {
    pub(super) fn sync(&mut self, sync: &SyncOp) -> Res<()> {
        match sync {
            SyncOp::Set(e) => self.flag("pto.set_flag", "pto.set_flag_dyn", *e),
            SyncOp::Wait(e) => self.flag("pto.wait_flag", "pto.wait_flag_dyn", *e),
            SyncOp::Barrier(of) => {
                self.barrier(*of);
                Ok(())
            }
            _ => unsaid(self.span, "transaction barriers"),
        }
    }

    /// Nothing later starts on a pipe, or on any, before all earlier work is done.
    pub(super) fn barrier(&mut self, of: Option<Pipe>) {
        let mut op = self.op("pto.barrier", Vec::new());
        op.attrs.push(self.attr("pipe", of.map_or_else(|| angles("PIPE_ALL".into()), pipe)));
        self.push(op);
    }

    /// The number of an event's first flag among those of its pipes.
    fn first_flag(&mut self, event: ptoc_ir::tile::Event) -> Res<u32> {
        if let Some(first) = self.events.get(&event) {
            return Ok(*first);
        }
        let data = &self.kernel.events[event];
        if data.kind != EventKind::Flag {
            return unsaid(data.span, "transaction barriers");
        }
        let before = self.kernel.events.iter().take_while(|(e, _)| *e != event).map(|(_, e)| e);
        let same = before.filter(|e| (e.from, e.to) == (data.from, data.to) && e.kind == EventKind::Flag);
        let first: u32 = same.map(|e| e.count).sum();
        if first + data.count > FLAGS {
            let message = format!("more than {FLAGS} flags from {} to {}", data.from, data.to);
            return unsaid(data.span, message);
        }
        self.events.insert(event, first);
        Ok(first)
    }

    fn flag(&mut self, fixed: &'static str, dynamic: &'static str, e: EventRef) -> Res<()> {
        let first = self.first_flag(e.event)?;
        let data = &self.kernel.events[e.event];
        let (from, to) = (pipe(data.from), pipe(data.to));
        let element = e.element.map_or(Some(0), |v| self.number(v));
        let mut op = match element {
            Some(n) => {
                let mut op = self.op(fixed, Vec::new());
                op.attrs.push(self.attr("event_id", angles(format!("EVENT_ID{}", i64::from(first) + n))));
                op
            }
            None => {
                let Some(element) = e.element else { return Ok(()) };
                let number = self.poly(element).unwrap_or_else(|| Poly::symbol(element));
                let id = match number.plus(&Poly::constant(i64::from(first)), 1) {
                    Some(number) if first > 0 => self.sum(&number)?,
                    _ => self.value(element)?,
                };
                self.op(dynamic, vec![("event_id", id, None)])
            }
        };
        op.attrs.push(self.attr("src_pipe", from));
        op.attrs.push(self.attr("dst_pipe", to));
        self.push(op);
        Ok(())
    }
}
