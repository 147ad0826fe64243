//! Checks of events, barriers and roles.

use super::Verifier;
use crate::sync::MAX_ARRIVALS;
use crate::tile::{EventKind, EventRef, RoleId, SyncOp, Ty};
use ptoc_diagnostics::codes;

impl Verifier<'_> {
    pub(super) fn events(&mut self) {
        for (id, event) in &self.k.events {
            self.span = event.span;
            let name = &event.name;
            if event.count == 0 {
                self.error(codes::IR_DECLARATION, format!("event {id} `{name}` has no elements"));
            }
            if let EventKind::Barrier { arrivals } = event.kind
                && !(1..=MAX_ARRIVALS).contains(&arrivals)
            {
                let message =
                    format!("barrier {id} `{name}` has {arrivals} arrivals, and 1 to {MAX_ARRIVALS} are possible");
                self.error(codes::IR_DECLARATION, message);
            }
        }
    }

    pub(super) fn sync(&mut self, sync: &SyncOp) {
        let flag = match sync {
            SyncOp::Barrier(_) => return,
            SyncOp::Set(_) | SyncOp::Wait(_) => true,
            _ => false,
        };
        if let Some(event) = sync.event() {
            self.event(event, flag, sync.word());
        }
        if let Some(value) = sync.value() {
            self.expect(value, Ty::Index, "a number of bytes or a parity");
            let parity = self.scopes.index(value).filter(|_| matches!(sync, SyncOp::WaitPhase(..)));
            if let Some(n) = parity.filter(|n| !(0..=1).contains(n)) {
                self.error(codes::IR_OPERANDS, format!("a parity is 0 or 1, not {n}"));
            }
        }
    }

    fn event(&mut self, r: EventRef, flag: bool, word: &str) {
        let Some(data) = self.k.events.get(r.event) else {
            return self.error(codes::IR_NO_SUCH_ENTITY, format!("there is no event {}", r.event));
        };
        if flag != (data.kind == EventKind::Flag) {
            let what = if flag { "transaction barrier" } else { "flag" };
            self.error(codes::IR_OPERANDS, format!("`{word}` of {}, which is a {what}", r.event));
        }
        let Some(element) = r.element else { return };
        self.expect(element, Ty::Index, "the element of an array of events");
        if let Some(n) = self.scopes.index(element).filter(|n| !(0..i64::from(data.count)).contains(n)) {
            self.error(codes::IR_WINDOW, format!("{} has {} elements, {n} is used", r.event, data.count));
        }
    }

    /// Runs `inside` for the region of a role (or of none).
    pub(super) fn in_role(&mut self, role: Option<RoleId>, inside: impl FnOnce(&mut Self)) {
        let Some(id) = role else { return inside(self) };
        if self.k.roles.get(id).is_none() {
            self.error(codes::IR_NO_SUCH_ENTITY, format!("there is no role {id}"));
        }
        if let Some(outer) = self.role {
            self.error(codes::IR_DECLARATION, format!("role {id} inside role {outer}"));
        }
        let outer = self.role.replace(id);
        inside(self);
        self.role = outer;
    }
}
