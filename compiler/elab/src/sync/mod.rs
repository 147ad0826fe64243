//! What orders pipes: flags, transaction barriers, rings, roles (`ptoc_ir::tile::sync` says what they mean).
//!
//! A ring becomes two arrays of flags and two variables here; what is between them and the hardware's flags is nothing.
//! Whether the flags are enough is not decided here but after placement, on bytes.

mod barrier;
mod event;
mod ring;
mod role;

use super::{ElabResult, Elaborator, ErrorReported};
use ptoc_diagnostics::{Diagnostic, Span, codes, suggest};
use ptoc_ir::tile::{EventKind, RoleId, SyncMode, SyncOp, Var};
use ptoc_isa::{Loc, MemorySpace, Pipe};
use ptoc_names::builtins::{Builtin, SyncFn};
use ptoc_syntax::ast::*;
use ptoc_values::{EventVal, Val};
use rustc_hash::FxHashMap;

/// What elaboration remembers of synchronisation.
#[derive(Default)]
pub(crate) struct SyncState {
    /// The kernel's item begins here: for the attribute that is missing. `None` in a program.
    pub item: Option<Span>,
    /// `#[sync(manual)]`, where it stands.
    pub manual: Option<Span>,
    /// A missing `#[sync(manual)]` was reported.
    refused: bool,
    /// Rings whose scope has not ended.
    rings: Vec<ring::Live>,
    /// Roles by their names.
    roles: FxHashMap<Name, RoleId>,
    /// The role around.
    role: Option<role::Inside>,
    /// Variables that roles write.
    owners: FxHashMap<Var, role::Owner>,
}

/// A jump out of loops or of a function.
#[derive(Clone, Copy)]
pub(crate) enum Jump {
    /// `break` or `continue` of the innermost loop.
    Loop(&'static str),
    /// `return` from the innermost function.
    Return,
}

/// The type of a parameter that is an event or a ring.
pub(crate) fn parameter(name: &str) -> Option<SyncFn> {
    SyncFn::from_name(name).filter(|f| f.is_type())
}

impl Elaborator<'_> {
    /// Whether it is a flag (`event`) or a transaction barrier (`mbarrier`).
    pub(crate) fn is_kind(&self, e: &EventVal, what: SyncFn) -> bool {
        let flag = self.b.kernel().events[e.event].kind == EventKind::Flag;
        what == if flag { SyncFn::Event } else { SyncFn::MBarrier }
    }

    /// The pipes of `event<P, Q>`, different ones of the target.
    fn two_pipes(&mut self, what: SyncFn, statics: &[Arg], span: Span) -> ElabResult<(Pipe, Pipe)> {
        let name = what.name();
        if let Some(n) = statics.iter().find_map(|a| a.name.as_ref()) {
            return self.error(codes::UNKNOWN_STATIC, n.span, format!("`{name}` has no static argument `{}`", n.name));
        }
        let [from, to] = statics else {
            let message = format!("`{name}` takes two pipes, {} given", statics.len());
            let d = Diagnostic::error(codes::WRONG_ARGUMENTS, span, message).with_note(format!(
                "`{name}<P, Q>`: {}",
                match what {
                    SyncFn::Ring => "P fills the slots and Q empties them",
                    _ => "P announces that its earlier work is done, and Q waits for it",
                }
            ));
            return self.report(d);
        };
        let (p, q) = (self.pipe(&from.value), self.pipe(&to.value));
        let (p, q) = (p?, q?);
        if p == q {
            let d = Diagnostic::error(
                codes::SAME_PIPE,
                to.value.span,
                format!("`{name}<{p}, {q}>` orders {p} after itself"),
            )
            .with_label("the same pipe")
            .with_secondary(from.value.span, "announces")
            .with_note("a pipe does its instructions in order")
            .with_help(if self.target.pipes.barrier.contains(&p) {
                format!("where {p} needs a result of its own earlier work, write `barrier({p});`")
            } else {
                format!("{p} finishes an instruction before it starts the next: nothing is needed")
            });
            return self.report(d);
        }
        Ok((p, q))
    }

    /// The pipe that `e` names: by position, whatever else is called so (a dimension `M`).
    fn pipe(&mut self, e: &Expr) -> ElabResult<Pipe> {
        let names = || Pipe::ALL.map(Pipe::name);
        let ExprKind::Name(n) = &*e.kind else {
            if matches!(&*e.kind, ExprKind::Error) {
                return Err(ErrorReported);
            }
            let d = Diagnostic::error(codes::UNKNOWN_PIPE, e.span, "expected the name of a pipe")
                .with_label("no name of a pipe")
                .with_note(format!("pipes are {}", names().join(", ")));
            return self.report(d);
        };
        let Some(pipe) = Pipe::from_name(n) else {
            let d = Diagnostic::error(codes::UNKNOWN_PIPE, e.span, format!("there is no pipe `{n}`"))
                .with_label("no pipe of this name")
                .with_note(format!("pipes are {}", names().join(", ")));
            let upper = n.trim_start_matches("PIPE_").to_ascii_uppercase();
            let best = Pipe::from_name(&upper).or_else(|| by_unit(&upper)).map(Pipe::name);
            let best = best.or_else(|| suggest(&upper, names()));
            return self.report(match best {
                Some(best) => d.with_suggestion(format!("did you mean `{best}`?"), e.span, best),
                None if upper == "ALL" => d.with_help("`barrier()` is one of all pipes"),
                None => d,
            });
        };
        if !self.has_pipe(pipe) {
            let name = &self.target.name;
            let message = format!("the target `{name}` has nothing that runs on {pipe}");
            let d = Diagnostic::error(codes::UNKNOWN_PIPE, e.span, message)
                .with_label("no instruction runs here")
                .with_help("name the pipe of the instruction: `spec/pipes.md` says which runs where");
            return self.report(d);
        }
        Ok(pipe)
    }

    /// Whether any instruction of the target runs on `pipe`.
    fn has_pipe(&self, pipe: Pipe) -> bool {
        let has = |l: Loc| self.target.capacity(l) > 0;
        match pipe {
            Pipe::S => true,
            Pipe::V => has(Loc::Vec),
            Pipe::M => has(Loc::Acc) && !self.target.triples.is_empty(),
            _ => self.target.moves.iter().any(|m| {
                let loc = |p: MemorySpace| match p {
                    MemorySpace::Gm => None,
                    MemorySpace::Tile(l) => Some(l),
                };
                let (from, to) = (loc(m.from), loc(m.to));
                from.into_iter().chain(to).all(has) && ptoc_isa::pipe_of(m.instr, from, to) == pipe
            }),
        }
    }

    /// Synchronisation is written by the author of a `#[sync(manual)]` kernel only. Said once.
    fn manual(&mut self, what: &str, span: Span) -> ElabResult<()> {
        if self.b.kernel().sync == SyncMode::Manual {
            return Ok(());
        }
        if std::mem::replace(&mut self.sync.refused, true) {
            return Err(ErrorReported);
        }
        let Some(at) = self.sync.item else {
            let d = Diagnostic::error(codes::TYPE_MISMATCH, span, format!("{what} in a program"))
                .with_label("orders the pipes of a kernel")
                .with_note("the launches of a program run one after another");
            return self.report(d);
        };
        let kernel = self.b.kernel().name.clone();
        let d = Diagnostic::error(
            codes::SYNC_NOT_MANUAL,
            span,
            format!("{what} in `{kernel}`, whose pipes are ordered by the compiler"),
        )
        .with_label("written by hand")
        .with_secondary(self.b.kernel().span, "this kernel has no `#[sync(manual)]`")
        .with_note("one of the two orders the pipes, the compiler or the author")
        .with_suggestion("order them all by hand", at, "#[sync(manual)]\n")
        .with_help("or remove it: without it the order is as the program's");
        self.report(d)
    }

    fn sync_op(&mut self, op: SyncOp, span: Span) -> ElabResult<()> {
        self.outside_prologue(span)?;
        self.b.sync(op, span);
        Ok(())
    }

    /// `event<P, Q>`, as a type.
    pub(crate) fn sync_type(&mut self, what: SyncFn, statics: &[Arg], span: Span) -> ElabResult<Val> {
        match what {
            SyncFn::Event => self.event_type(statics, span),
            SyncFn::Ring => {
                let d = Diagnostic::error(codes::WRONG_ARGUMENTS, span, "a ring needs slots")
                    .with_label("no tiles")
                    .with_help("for example `ring<MTE2, V>(tile Vec<f32, 16, 64>[2])`");
                self.report(d)
            }
            SyncFn::MBarrier => {
                let d = Diagnostic::error(codes::WRONG_ARGUMENTS, span, "a transaction barrier needs its arrivals")
                    .with_label("how many arrivals end a phase?")
                    .with_suggestion("one arrival a phase", Span::new(span.file, span.end, span.end), "(arrivals = 1)");
                self.report(d)
            }
            other => {
                let message = format!("`{}` takes no static arguments", other.name());
                self.error(codes::UNKNOWN_STATIC, span, message)
            }
        }
    }

    /// A call of a function that orders pipes.
    pub(crate) fn sync_call(
        &mut self,
        what: SyncFn,
        statics: &[Arg],
        args: &[Arg],
        span: Span,
        name: Span,
    ) -> ElabResult<Val> {
        if what.is_type() && statics.is_empty() {
            let pipe = |a: &Arg| match &*a.value.kind {
                ExprKind::Name(n) => Pipe::from_name(n).map(Pipe::name),
                _ => None,
            };
            let d = self.without_pipes(what, name);
            return self.report(match args {
                [p, q] => match (pipe(p), pipe(q)) {
                    (Some(p), Some(q)) => {
                        let rest = Span::new(span.file, name.end, span.end);
                        d.with_fix("pipes stand in `<` and `>`", rest, format!("<{p}, {q}>"))
                    }
                    _ => d,
                },
                _ => d,
            });
        }
        if !what.is_type() && !statics.is_empty() {
            let pipe =
                statics.iter().any(|a| matches!(&*a.value.kind, ExprKind::Name(n) if Pipe::from_name(n).is_some()));
            let message = format!("`{}` takes no static arguments", what.name());
            let d = Diagnostic::error(codes::UNKNOWN_STATIC, span, message).with_label("no such parameter");
            return self.report(match pipe {
                true => d.with_help(format!("a pipe is an argument: `{}(V)`", what.name())),
                false if what == SyncFn::TSync => d.with_help(
                    "`TSYNC(V)` is a barrier of a pipe, `TSYNC()` of all, and `TSYNC(e)` waits for an event",
                ),
                false => d,
            });
        }
        match what {
            SyncFn::Event => {
                let d = Diagnostic::error(codes::NOT_CALLABLE, span, "an event is not called")
                    .with_help("`event<MTE2, V>` is one, `event<MTE2, V>[2]` an array of two");
                self.report(d)
            }
            SyncFn::MBarrier => self.mbarrier_type(statics, args, span),
            SyncFn::Ring => self.ring_type(statics, args, span),
            SyncFn::Set => self.set_flag(args, span),
            SyncFn::Wait => self.wait_call(args, span),
            SyncFn::Barrier => self.pipe_barrier(args, span, name),
            SyncFn::TSync => self.tsync(args, span, name),
            SyncFn::Arrive | SyncFn::Expect | SyncFn::ArriveExpect | SyncFn::Complete => {
                self.transaction(what, args, span)
            }
            SyncFn::TAlloc | SyncFn::TPush | SyncFn::TPop | SyncFn::TFree => self.ring_call(what, args, span),
        }
    }

    fn without_pipes(&self, what: SyncFn, span: Span) -> Diagnostic {
        let name = what.name();
        let d = Diagnostic::error(codes::WRONG_ARGUMENTS, span, format!("between which pipes? `{name}` takes two"))
            .with_label("no pipes");
        d.with_help(format!("for example `{name}<MTE2, V>`"))
    }

    /// A value that `let` names, if it is one that a declaration is needed for.
    pub(crate) fn declare_sync(&mut self, v: Val, name: &Ident, at: Span) -> ElabResult<Val> {
        match v {
            Val::Builtin(Builtin::Sync(what)) if what.is_type() => {
                let d = self.without_pipes(what, at);
                self.report(d)
            }
            Val::EventType(spec) => self.declare_event(&spec, name),
            Val::RingType(spec) => self.declare_ring(&spec, name),
            v => Ok(v),
        }
    }

    /// `pipeline` is the compiler's way to overlap.
    pub(crate) fn automatic_pipeline(&mut self, span: Span) -> ElabResult<()> {
        let Some(at) = self.sync.manual else { return Ok(()) };
        let word = Span::new(span.file, span.start, span.start + "pipeline".len() as u32);
        let d = Diagnostic::error(codes::MANUAL_PIPELINE, word, "`pipeline` in a kernel that is ordered by hand")
            .with_label("the compiler would have to order its stages")
            .with_secondary(at, "nothing is inserted here")
            .with_help("use `for` and a ring: `let loads = ring<MTE2, V>(tile Vec<..>[2]);`")
            .with_help("or leave the order to the compiler: remove `#[sync(manual)]` and the flags");
        self.report(d)
    }

    /// A jump from here to the end of a loop or function: it must not leave a role, nor a ring that is not drained.
    pub(crate) fn may_jump(&mut self, jump: Jump, span: Span) -> ElabResult<()> {
        self.jump_in_role(jump, span)?;
        self.jump_over_ring(jump, span)
    }

    /// The loops around, and the functions.
    fn nesting(&self) -> (usize, usize) {
        (self.calls.len(), self.loops.len())
    }
}

/// The pipe of a unit or memory, for who calls it by that.
fn by_unit(upper: &str) -> Option<Pipe> {
    Some(match upper {
        "SCALAR" => Pipe::S,
        "VECTOR" | "VEC" | "UB" => Pipe::V,
        "CUBE" | "MATRIX" | "MMA" => Pipe::M,
        "FIXP" | "FIXPIPE" => Pipe::Fix,
        _ => return None,
    })
}

impl Jump {
    fn word(self) -> &'static str {
        match self {
            Jump::Loop(word) => word,
            Jump::Return => "return",
        }
    }
}
