//! Random kernels with two transaction barriers: the compiler's verdict is that of the interpreter, in every order of
//! the pipes, over all small launches.

use super::program::{At, Trip, When};
use crate::harness::*;
use proptest::prelude::*;
use ptoc_diagnostics::Diagnostic;
use ptoc_hazards::check;
use ptoc_interp::{InterpreterLaunch, Options, Order as Pace, Pipes};
use ptoc_ir::tile::{
    AddrKind, Event, EventData, EventKind, EventRef, For, If, Kernel, Op, Purpose, RoleData, RoleId, Scope, SyncMode,
    SyncOp, TensorDir, TensorId, Tile, TileRef, Ty, Value,
};
use ptoc_isa::{BinOp, CmpOp, Loc, Order, Pipe, Target, TileType};
use ptoc_tensor::DType;

/// Which barrier: of the loads, or of the stores.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum B {
    Full,
    Empty,
}

/// Which phase is waited for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Parity {
    Fixed(i64),
    /// `(counter + n) / m % 2` of the innermost loop.
    Round(i64, i64),
    /// The other one.
    Other(i64, i64),
}

/// A statement.
#[derive(Clone, PartialEq, Debug)]
enum Q {
    Load(At),
    Store(At),
    Arrive(B, At),
    Expect(B, At, i64),
    Both(B, At, i64),
    Complete(B, At),
    Wait(B, At, Parity),
    Loop(Trip, Vec<Q>),
    If(When, Vec<Q>),
}

/// Bytes of a load.
const BYTES: i64 = 2048;
/// Elements of everything.
const SLOTS: u32 = 2;

/// A program, its arrivals, and whether loads and stores have issuers of their own.
#[derive(Clone, Debug)]
struct Program {
    all: Vec<Q>,
    arrivals: [u32; 2],
    roles: bool,
}

struct Build {
    k: K,
    tile: Tile,
    x: TensorId,
    y: TensorId,
    dim: Value,
    roles: Option<[RoleId; 2]>,
    loops: Vec<(Value, Value)>,
}

fn kernel(program: &Program) -> Kernel {
    let mut k = K::new("phases");
    k.b.kernel_mut().target = "a2a3".into();
    let dim = k.dim("N");
    let (rows, cols) = (k.c(8), k.c(64));
    let x = k.tensor("x", DType::F32, TensorDir::In, &[rows, cols]);
    let y = k.tensor("y", DType::F32, TensorDir::Out, &[rows, cols]);
    k.b.kernel_mut().sync = SyncMode::Manual;
    let ends = [("full", Pipe::Mte2, Pipe::Mte3), ("empty", Pipe::Mte3, Pipe::Mte2)];
    for ((name, from, to), arrivals) in ends.into_iter().zip(program.arrivals) {
        let span = k.span();
        let kind = EventKind::Barrier { arrivals };
        let (name, purpose) = (name.into(), Purpose::Author);
        k.b.kernel_mut().events.push(EventData { name, kind, from, to, count: SLOTS, purpose, span });
    }
    // Raised when the tiles have been written for the first time.
    let span = k.span();
    let (from, to) = (Pipe::Mte2, Pipe::Mte3);
    let ready =
        EventData { name: "ready".into(), kind: EventKind::Flag, from, to, count: 1, purpose: Purpose::Author, span };
    let ready = k.b.kernel_mut().events.push(ready);
    let roles = program.roles.then(|| {
        ["producer", "consumer"].map(|name| {
            let span = k.span();
            k.b.kernel_mut().roles.push(RoleData { name: name.into(), span })
        })
    });
    k.b.begin_body();
    let ty = TileType { loc: Loc::Vec, dtype: DType::F32, rows: 8, cols: 64, order: Order::Nd, layout: None };
    let at = AddrKind::Fixed((0..u64::from(SLOTS)).map(|n| n * BYTES as u64).collect());
    let tile = k.place("p", ty, at, SLOTS, 1);
    let mut build = Build { k, tile, x, y, dim, roles, loops: Vec::new() };
    for n in 0..i64::from(SLOTS) {
        build.one(&Q::Load(At::Fixed(n)));
    }
    let ready = EventRef { event: ready, element: None };
    for (loads, op) in [(true, SyncOp::Set(ready)), (false, SyncOp::Wait(ready))] {
        build.issue(loads, |build| {
            let span = build.k.span();
            build.k.b.sync(op, span);
        });
    }
    build.several(&program.all);
    build.k.finish()
}

impl Build {
    fn several(&mut self, program: &[Q]) {
        program.iter().for_each(|q| self.one(q));
    }

    /// Statements of the pipe that loads, or of the one that stores.
    fn issue(&mut self, loads: bool, inside: impl FnOnce(&mut Self)) {
        let Some([producer, consumer]) = self.roles else { return inside(self) };
        let role = Some(if loads { producer } else { consumer });
        let span = self.k.span();
        let label = self.k.b.label(span);
        self.k.b.push_region();
        inside(self);
        let body = self.k.b.pop_region();
        self.k.b.emit(Op::Scope(Box::new(Scope { label, role, body })), span);
    }

    fn at(&mut self, at: At) -> Value {
        match at {
            At::Fixed(n) => self.k.c(n),
            At::Turn(n, m) => {
                let Some(&(j, _)) = self.loops.last() else { return self.k.c(n % m) };
                let (n, m, span) = (self.k.c(n), self.k.c(m), self.k.span());
                let sum = self.k.b.add(j, n, span);
                self.k.b.binary(BinOp::Rem, sum, m, span)
            }
        }
    }

    fn parity(&mut self, parity: Parity) -> Value {
        let (n, m, other) = match parity {
            Parity::Fixed(n) => return self.k.c(n),
            Parity::Round(n, m) => (n, m, false),
            Parity::Other(n, m) => (n, m, true),
        };
        let Some(&(j, _)) = self.loops.last() else { return self.k.c((n / m % 2) ^ i64::from(other)) };
        let (n, m, one, two, span) = (self.k.c(n), self.k.c(m), self.k.c(1), self.k.c(2), self.k.span());
        let sum = self.k.b.add(j, n, span);
        let round = self.k.b.binary(BinOp::Div, sum, m, span);
        let parity = self.k.b.binary(BinOp::Rem, round, two, span);
        if other { self.k.b.sub(one, parity, span) } else { parity }
    }

    fn tile(&mut self, at: At) -> TileRef {
        let element = Some(self.at(at));
        TileRef { element, ..self.k.b.whole(self.tile) }
    }

    /// A step of a barrier.
    fn step(&mut self, b: B, at: At, waits: bool, op: impl FnOnce(&mut Self, EventRef) -> SyncOp) {
        self.issue((b == B::Full) != waits, |build| {
            let e = EventRef { event: Event::from_u32(b as u32), element: Some(build.at(at)) };
            let op = op(build, e);
            let span = build.k.span();
            build.k.b.sync(op, span);
        });
    }

    fn one(&mut self, q: &Q) {
        let (rows, cols, zero) = (self.k.c(8), self.k.c(64), self.k.c(0));
        match q {
            Q::Load(at) => self.issue(true, |build| {
                let t = build.tile(*at);
                let view = build.k.view(build.x, rows, cols);
                build.k.load(t, view);
            }),
            Q::Store(at) => self.issue(false, |build| {
                let t = build.tile(*at);
                let view = build.k.view(build.y, rows, cols);
                build.k.store(view, t);
            }),
            Q::Arrive(b, at) => self.step(*b, *at, false, |_, e| SyncOp::Arrive(e)),
            Q::Expect(b, at, n) => self.step(*b, *at, false, |build, e| SyncOp::Expect(e, build.k.c(*n))),
            Q::Both(b, at, n) => self.step(*b, *at, false, |build, e| SyncOp::ArriveExpect(e, build.k.c(*n))),
            Q::Complete(b, at) => self.step(*b, *at, false, |build, e| SyncOp::Complete(e, build.k.c(BYTES))),
            Q::Wait(b, at, p) => self.step(*b, *at, true, |build, e| SyncOp::WaitPhase(e, build.parity(*p))),
            Q::Loop(trip, body) => {
                let hi = match trip {
                    Trip::Dim(_) => self.dim,
                    Trip::Times(n) => self.k.c(*n),
                };
                let span = self.k.span();
                let label = self.k.b.label(span);
                let index = self.k.b.new_value(Ty::Index, Some("j".into()), span);
                self.k.b.push_region();
                self.k.b.define_here(index);
                self.loops.push((index, hi));
                self.several(body);
                self.loops.pop();
                let body = self.k.b.pop_region();
                self.k.b.emit(Op::For(Box::new(For { label, index, lo: zero, hi, stages: 1, body })), span);
            }
            Q::If(when, body) => {
                let Some(&(j, hi)) = self.loops.last() else { return self.several(body) };
                let (one, span) = (self.k.c(1), self.k.span());
                let next = self.k.b.add(j, one, span);
                let cond = match when {
                    When::First => self.k.b.compare(CmpOp::Eq, j, zero, span),
                    When::NotFirst | When::Argument => self.k.b.compare(CmpOp::Gt, j, zero, span),
                    When::Last => self.k.b.compare(CmpOp::Eq, next, hi, span),
                    When::NotLast => self.k.b.compare(CmpOp::Lt, next, hi, span),
                };
                self.k.b.push_region();
                self.several(body);
                let then = self.k.b.pop_region();
                self.k.b.emit(Op::If(Box::new(If { cond, then, els: Vec::new() })), span);
            }
        }
    }
}

/// Iterations that are tried: enough for two slots, two parities and three arrivals, and what is special at either end.
const LENGTHS: i64 = 15;

/// What a run in this order says: the code of its trap.
fn run(kernel: &Kernel, target: &Target, length: i64, order: Pace) -> Option<String> {
    let data = tensor(DType::F32, &[8, 64], noise(DType::F32, 1));
    let out = ptoc_interp::TensorArg::empty(DType::F32, vec![8, 64]);
    let pipes = Pipes { order, barrier: target.pipes.barrier.clone(), ..Pipes::default() };
    let mut launch = InterpreterLaunch {
        tensors: vec![data, out],
        dims: vec![length],
        scalars: Vec::new(),
        options: Options { pipes: Some(pipes), ..Options::default() },
        print: &mut |_| {},
    };
    let trap = ptoc_interp::run(kernel, &mut launch).err()?;
    Some(format!("{} N={length}: {}", trap.code, trap.message))
}

/// The interpreter's verdict: the first launch that goes wrong, in any order.
fn observed(kernel: &Kernel, target: &Target, looped: bool) -> Result<Option<String>, TestCaseError> {
    for length in 0..if looped { LENGTHS } else { 1 } {
        let program = run(kernel, target, length, Pace::Program);
        for order in [Pace::Late, Pace::Random(length as u64), Pace::Random(77)] {
            let other = run(kernel, target, length, order);
            prop_assert_eq!(&program, &other, "the verdict depends on the order {:?}\n{}", order, kernel);
        }
        if program.is_some() {
            return Ok(program);
        }
    }
    Ok(None)
}

fn agree(program: &Program) -> Result<(), TestCaseError> {
    let target = Target::builtin("a2a3").expect("built in");
    let kernel = kernel(program);
    fn looped(all: &[Q]) -> bool {
        all.iter().any(|q| match q {
            Q::Loop(Trip::Dim(_), _) => true,
            Q::Loop(_, body) | Q::If(_, body) => looped(body),
            _ => false,
        })
    }
    let wrong = observed(&kernel, target, looped(&program.all))?;
    let told = check(&kernel, target);
    let errors = told.iter().any(Diagnostic::is_error);
    let text = || {
        let told: Vec<_> = told.iter().map(|d| format!("{} {}", d.code, d.message)).collect();
        format!("{program:?}\ninterpreter: {wrong:?}\ncompiler: {told:#?}\n{kernel}")
    };
    prop_assert!(!errors || wrong.is_some(), "a false alarm\n{}", text());
    prop_assert!(wrong.is_none() || !told.is_empty(), "missed\n{}", text());
    // In these programs everything can be decided.
    prop_assert!(told.is_empty() || errors, "not decided\n{}", text());
    Ok(())
}

fn at(looped: bool) -> BoxedStrategy<At> {
    let fixed = (0i64..2).prop_map(At::Fixed);
    if looped { prop_oneof![1 => fixed, 3 => (0i64..2).prop_map(|n| At::Turn(n, 2))].boxed() } else { fixed.boxed() }
}

fn parity(looped: bool) -> BoxedStrategy<Parity> {
    let fixed = (0i64..2).prop_map(Parity::Fixed);
    if !looped {
        return fixed.boxed();
    }
    let turn = || (0i64..3, 1i64..3);
    prop_oneof![
        1 => fixed,
        2 => turn().prop_map(|(n, m)| Parity::Round(n, m)),
        2 => turn().prop_map(|(n, m)| Parity::Other(n, m)),
    ]
    .boxed()
}

fn barrier() -> impl Strategy<Value = B> {
    prop_oneof![3 => Just(B::Full), 2 => Just(B::Empty)]
}

fn bytes() -> impl Strategy<Value = i64> {
    prop_oneof![6 => Just(BYTES), 1 => Just(2 * BYTES)]
}

fn one(looped: bool) -> BoxedStrategy<Q> {
    let a = move || at(looped);
    prop_oneof![
        2 => a().prop_map(Q::Load),
        2 => a().prop_map(Q::Store),
        3 => (barrier(), a()).prop_map(|(b, a)| Q::Arrive(b, a)),
        1 => (a(), bytes()).prop_map(|(a, n)| Q::Expect(B::Full, a, n)),
        1 => (a(), bytes()).prop_map(|(a, n)| Q::Both(B::Full, a, n)),
        1 => a().prop_map(|a| Q::Complete(B::Full, a)),
        4 => (barrier(), a(), parity(looped)).prop_map(|(b, a, p)| Q::Wait(b, a, p)),
    ]
    .boxed()
}

fn trip() -> impl Strategy<Value = Trip> {
    prop_oneof![3 => Just(Trip::Dim(0)), 1 => (0i64..6).prop_map(Trip::Times)]
}

fn when() -> impl Strategy<Value = When> {
    prop_oneof![Just(When::First), Just(When::NotFirst), Just(When::Last), Just(When::NotLast)]
}

fn arrivals() -> impl Strategy<Value = [u32; 2]> {
    let n = || prop_oneof![5 => Just(1u32), 2 => Just(2), 1 => Just(3)];
    (n(), n()).prop_map(|(a, b)| [a, b])
}

/// Loads and stores with two slots and both barriers; `bytes` says how the loads announce theirs.
fn double(trip: Trip, bytes: usize) -> Vec<Q> {
    let b = At::Turn(0, 2);
    let announced = match bytes {
        0 => vec![Q::Load(b), Q::Arrive(B::Full, b)],
        1 => vec![Q::Both(B::Full, b, BYTES), Q::Load(b), Q::Complete(B::Full, b)],
        _ => vec![Q::Expect(B::Full, b, BYTES), Q::Load(b), Q::Complete(B::Full, b), Q::Arrive(B::Full, b)],
    };
    let mut body = vec![Q::Wait(B::Empty, b, Parity::Other(0, 2))];
    body.extend(announced);
    body.extend([Q::Wait(B::Full, b, Parity::Round(0, 2)), Q::Store(b), Q::Arrive(B::Empty, b)]);
    vec![Q::Loop(trip, body)]
}

/// One statement changed, moved, doubled, left out, or put under a condition.
#[derive(Clone, Debug)]
enum Change {
    Swap(usize, usize),
    Remove(usize),
    Double(usize),
    Insert(usize, Q),
    Under(usize, When),
    Nothing,
}

fn change() -> impl Strategy<Value = Change> {
    let n = || 0usize..9;
    prop_oneof![
        1 => Just(Change::Nothing),
        3 => (n(), n()).prop_map(|(a, b)| Change::Swap(a, b)),
        2 => n().prop_map(Change::Remove),
        2 => n().prop_map(Change::Double),
        3 => (n(), one(true)).prop_map(|(a, q)| Change::Insert(a, q)),
        2 => (n(), when()).prop_map(|(a, w)| Change::Under(a, w)),
    ]
}

fn apply(body: &mut Vec<Q>, change: Change) {
    let len = body.len();
    match change {
        Change::Swap(a, b) => body.swap(a % len, b % len),
        Change::Remove(a) if len > 1 => drop(body.remove(a % len)),
        Change::Double(a) => body.insert(a % len, body[a % len].clone()),
        Change::Insert(a, q) => body.insert(a % (len + 1), q),
        Change::Under(a, when) => {
            let inner = body[a % len].clone();
            body[a % len] = Q::If(when, vec![inner]);
        }
        Change::Remove(_) | Change::Nothing => {}
    }
}

/// Right programs: nothing is told.
#[test]
fn two_slots_are_fine() {
    for bytes in 0..3 {
        for trip in [Trip::Dim(0), Trip::Times(1), Trip::Times(2), Trip::Times(7)] {
            for roles in [false, true] {
                let program = Program { all: double(trip, bytes), arrivals: [1, 1], roles };
                let target = Target::builtin("a2a3").expect("built in");
                let kernel = kernel(&program);
                assert_eq!(observed(&kernel, target, true).expect("one verdict"), None, "{program:?}");
                assert!(check(&kernel, target).is_empty(), "{program:?}");
            }
        }
    }
}

/// What random programs have shown before.
#[test]
fn known_ones() {
    let (b, next) = (At::Turn(0, 2), At::Turn(1, 2));
    let looped = |body| vec![Q::Loop(Trip::Dim(0), body)];
    let programs = [
        // An announcement behind an arrival that has ended a phase of its own.
        looped(vec![Q::Both(B::Full, b, BYTES), Q::Arrive(B::Full, next), Q::Complete(B::Full, b)]),
        // As many bytes come as are announced, and nobody arrives.
        vec![Q::Expect(B::Full, b, BYTES), Q::Complete(B::Full, b)],
    ];
    for all in programs {
        for (arrivals, roles) in [([1, 1], false), ([2, 1], false), ([1, 1], true), ([2, 2], true)] {
            agree(&Program { all: all.clone(), arrivals, roles }).expect("one verdict");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ptoc_tests_budget::cases(30, 80), ..ProptestConfig::default() })]

    #[test]
    fn straight_line(
        all in proptest::collection::vec(one(false), 0..9), arrivals in arrivals(), roles in any::<bool>(),
    ) {
        agree(&Program { all, arrivals, roles })?;
    }

    #[test]
    fn one_loop(
        trip in trip(), body in proptest::collection::vec(one(true), 1..8), arrivals in arrivals(),
        roles in any::<bool>(),
    ) {
        agree(&Program { all: vec![Q::Loop(trip, body)], arrivals, roles })?;
    }

    /// A right program with one or two things changed.
    #[test]
    fn mutated(
        trip in trip(), bytes in 0usize..3, first in change(), second in change(), arrivals in arrivals(),
        roles in any::<bool>(), before in proptest::collection::vec(one(false), 0..2),
    ) {
        let mut all = double(trip, bytes);
        if let Q::Loop(_, body) = &mut all[0] {
            apply(body, first);
            apply(body, second);
        }
        all.splice(0..0, before);
        agree(&Program { all, arrivals, roles })?;
    }
}
