//! Transaction barriers: `mbarrier<P, Q>(arrivals = n)`, `arrive`, `expect`, `complete`, `wait(b, parity)`.

use super::{ElabResult, Elaborator};
use ptoc_diagnostics::{Diagnostic, Span, codes};
use ptoc_ir::sync::{MAX_ARRIVALS, MAX_BYTES};
use ptoc_ir::tile::{EventKind, SyncOp, Value};
use ptoc_names::builtins::SyncFn;
use ptoc_syntax::ast::*;
use ptoc_values::{EventSpec, Val};

impl Elaborator<'_> {
    /// `mbarrier<P, Q>(arrivals = n)`
    pub(crate) fn mbarrier_type(&mut self, statics: &[Arg], args: &[Arg], span: Span) -> ElabResult<Val> {
        let pipes = self.two_pipes(SyncFn::MBarrier, statics, span)?;
        let usage = "mbarrier<P, Q>(arrivals = n)";
        let [Arg { name, value }] = args else {
            let d = Diagnostic::error(codes::WRONG_ARGUMENTS, span, "a transaction barrier takes `arrivals = n`")
                .with_note(format!("usage: `{usage}`"));
            return self.report(d);
        };
        if let Some(n) = name.as_ref().filter(|n| n.name != "arrivals") {
            let d = Diagnostic::error(
                codes::WRONG_ARGUMENTS,
                n.span,
                format!("a transaction barrier has no argument `{}`", n.name),
            )
            .with_label("no such argument")
            .with_fix("it has `arrivals`", n.span, "arrivals");
            return self.report(d);
        }
        let v = self.expr(value)?;
        let n = self.static_int(&v, value.span, "the number of arrivals")?;
        let Some(arrivals) = u32::try_from(n).ok().filter(|n| (1..=MAX_ARRIVALS).contains(n)) else {
            let d = Diagnostic::error(codes::BAD_TRANSACTION, value.span, format!("a phase of {n} arrivals"))
                .with_label(format!("1 to {MAX_ARRIVALS} are possible"));
            return self.report(match n {
                ..=0 => d.with_help("a phase ends with its last arrival, so it has at least one"),
                _ => d.with_help("the count has 20 bits: let one arrival stand for several threads"),
            });
        };
        self.manual("a transaction barrier", span)?;
        Ok(Val::EventType(EventSpec { kind: EventKind::Barrier { arrivals }, pipes, count: None }))
    }

    /// `arrive(b)`, `expect(b, bytes)`, `arrive_and_expect(b, bytes)`, `complete(b, bytes)`
    pub(crate) fn transaction(&mut self, what: SyncFn, args: &[Arg], span: Span) -> ElabResult<Val> {
        let name = what.name();
        let (n, usage) = match what {
            SyncFn::Arrive => (1, "arrive(b)".to_string()),
            _ => (2, format!("{name}(b, bytes)")),
        };
        let parts = self.exactly(args, n, &usage, span)?;
        let e = self.event_arg(parts[0], name)?;
        self.of_kind(&e, false, name, parts[0].span)?;
        let e = Self::event_ref(&e);
        let op = match what {
            SyncFn::Arrive => SyncOp::Arrive(e),
            SyncFn::Expect => SyncOp::Expect(e, self.byte_count(parts[1])?),
            SyncFn::Complete => SyncOp::Complete(e, self.byte_count(parts[1])?),
            _ => SyncOp::ArriveExpect(e, self.byte_count(parts[1])?),
        };
        self.sync_op(op, span)?;
        Ok(Val::Unit)
    }

    /// A number of bytes: not negative, and no more than the hardware counts.
    fn byte_count(&mut self, e: &Expr) -> ElabResult<Value> {
        let v = self.expr(e)?;
        let n = self.index_of(&v, e.span)?;
        if let Some(bytes) = self.const_index(n).filter(|n| !(0..=MAX_BYTES).contains(n)) {
            let d = Diagnostic::error(codes::BAD_TRANSACTION, e.span, format!("a transaction of {bytes} bytes"))
                .with_label(format!("0 to {MAX_BYTES} are possible"));
            return self.report(match bytes {
                ..0 => d.with_help("bytes that have come are told by `complete(b, bytes)`"),
                _ => d.with_help("the count has 20 bits: announce a part, and use one barrier for each part"),
            });
        }
        let zero = self.idx(0);
        let message = "a transaction of {1} bytes".to_string();
        self.require_le(zero, n, codes::INDEX_OUT_OF_BOUNDS, message, e.span)?;
        Ok(n)
    }

    /// `wait(b, parity)`
    pub(crate) fn wait_phase(&mut self, e: &Expr, parity: &Expr, span: Span) -> ElabResult<Val> {
        let event = self.event_arg(e, "wait")?;
        self.of_kind(&event, false, "wait", e.span)?;
        let v = self.expr(parity)?;
        let p = self.index_of(&v, parity.span)?;
        let two = self.idx(2);
        self.check_index(p, two, "the two parities of a phase", parity.span)?;
        self.sync_op(SyncOp::WaitPhase(Self::event_ref(&event), p), span)?;
        Ok(Val::Unit)
    }
}
