//! Definite initialisation: what is an error, what a check, what a warning, and what is fine.

use crate::harness::*;
use ptoc_diagnostics::Diagnostic;
use ptoc_ir::tile::{CheckId, Kernel, Op, TileRef, Value};
use ptoc_isa::{BinOp, CmpOp, Loc, Order};
use ptoc_tensor::DType;

/// A kernel over tiles of 8 x 8 that are written by `w` and read by `r`.
struct T {
    k: K,
    n: Value,
    flag: Value,
}

impl T {
    fn new() -> T {
        let mut k = K::new("init");
        let n = k.dim("N");
        let one = k.c(1);
        let flag = k.b.compare(CmpOp::Lt, one, n, at(1));
        k.b.begin_body();
        T { k, n, flag }
    }

    fn tile(&mut self, name: &str) -> TileRef {
        let t = self.k.tile(name, Loc::Vec, DType::F32, (8, 8), Order::Nd);
        self.k.b.whole(t)
    }

    fn w(&mut self, t: TileRef) {
        let span = self.k.span();
        let x = self.k.b.float_const(DType::F32, 0.0);
        let (instr, attrs) = (ptoc_isa::lookup("TEXPANDS").unwrap(), Default::default());
        let operands = vec![ptoc_ir::tile::Operand::Tile(t), ptoc_ir::tile::Operand::Scalar(x)];
        self.k.b.inst(ptoc_ir::tile::Inst { instr, operands, scratch: vec![], attrs }, span);
    }

    /// Reads `t` (and writes a tile of its own).
    fn r(&mut self, t: TileRef) {
        let d = self.tile("sink");
        self.k.tiles("TNEG", &[d, t]);
    }

    /// t = -t
    fn rw(&mut self, t: TileRef) {
        self.k.tiles("TNEG", &[t, t]);
    }

    fn repeat(&mut self, lo: Value, hi: Value, f: impl FnOnce(&mut T, Value, ptoc_ir::tile::Label)) {
        let span = self.k.span();
        let label = self.k.b.label(span);
        let index = self.k.b.new_value(ptoc_ir::tile::Ty::Index, Some("i".into()), span);
        self.k.b.push_region();
        self.k.b.define_here(index);
        f(self, index, label);
        let body = self.k.b.pop_region();
        let f = ptoc_ir::tile::For { label, index, lo, hi, stages: 1, body };
        self.k.b.emit(Op::For(Box::new(f)), span);
    }

    fn choose(&mut self, cond: Value, then: impl FnOnce(&mut T), els: impl FnOnce(&mut T)) {
        let span = self.k.span();
        self.k.b.push_region();
        then(self);
        let then = self.k.b.pop_region();
        self.k.b.push_region();
        els(self);
        let els = self.k.b.pop_region();
        self.k.b.emit(Op::If(Box::new(ptoc_ir::tile::If { cond, then, els })), span);
    }
}

/// The findings as short words, and the messages of the checks that were added.
fn findings(build: impl FnOnce(&mut T)) -> (Vec<String>, Vec<String>) {
    let mut t = T::new();
    build(&mut t);
    let mut kernel: Kernel = t.k.finish();
    let diagnostics: Vec<Diagnostic> = ptoc_checks::init::check(&mut kernel);
    ptoc_ir::tile::verify::verify(&kernel).unwrap_or_else(|e| panic!("{kernel}\n{e:?}"));
    let words = diagnostics.iter().map(|d| format!("{} {}", d.code, d.message)).collect();
    let checks: Vec<CheckId> = kernel.checks.keys().collect();
    (words, checks.into_iter().map(|c| kernel.checks[c].message.clone()).collect())
}

fn clean(build: impl FnOnce(&mut T)) {
    assert_eq!(findings(build), (vec![], vec![]));
}

fn one(code: &str, build: impl FnOnce(&mut T)) {
    let (words, checks) = findings(build);
    assert!(words.len() == 1 && words[0].starts_with(code) && checks.is_empty(), "{words:?} {checks:?}");
}

fn checked(message: &str, build: impl FnOnce(&mut T)) {
    let (words, checks) = findings(build);
    assert!(words.is_empty() && checks == [message], "{words:?} {checks:?}");
}

const ERROR: &str = "E0501";
const WARNING: &str = "E0502";

#[test]
fn straight_line() {
    clean(|t| {
        let a = t.tile("a");
        t.w(a);
        t.r(a);
    });
    one(ERROR, |t| {
        let a = t.tile("a");
        t.r(a);
        t.r(a);
    });
    assert_eq!(
        findings(|t| {
            let a = t.tile("a");
            t.r(a);
        })
        .0,
        ["E0501 tile `a` is read here, and nothing has written it"]
    );
}

#[test]
fn branches() {
    clean(|t| {
        let (a, flag) = (t.tile("a"), t.flag);
        t.choose(flag, |t| t.w(a), |t| t.w(a));
        t.r(a);
    });
    one(WARNING, |t| {
        let (a, flag) = (t.tile("a"), t.flag);
        t.choose(flag, |t| t.w(a), |_| {});
        t.r(a);
    });
    one(ERROR, |t| {
        let (a, flag) = (t.tile("a"), t.flag);
        t.choose(flag, |t| t.r(a), |t| t.w(a));
    });
}

#[test]
fn a_loop_that_may_not_run() {
    checked("N = {0} leaves tile `a` unwritten: the loop over `i` does not run", |t| {
        let (a, n, zero) = (t.tile("a"), t.n, t.k.c(0));
        t.repeat(zero, n, |t, _, _| t.w(a));
        t.r(a);
        t.r(a);
    });
    // It is known to run.
    clean(|t| {
        let (a, zero, four) = (t.tile("a"), t.k.c(0), t.k.c(4));
        t.repeat(zero, four, |t, _, _| t.w(a));
        t.r(a);
    });
    one(ERROR, |t| {
        let (a, zero) = (t.tile("a"), t.k.c(0));
        t.repeat(zero, zero, |t, _, _| t.w(a));
        t.r(a);
    });
    // Written before: the loop does not matter.
    clean(|t| {
        let (a, n, zero) = (t.tile("a"), t.n, t.k.c(0));
        t.w(a);
        t.repeat(zero, n, |t, _, _| t.rw(a));
        t.r(a);
    });
    // Both of two nested loops have to run, and the inner one's bound is known outside.
    let (words, checks) = findings(|t| {
        let (a, n, zero) = (t.tile("a"), t.n, t.k.c(0));
        let two = t.k.c(2);
        let half = t.k.b.binary(BinOp::Div, n, two, at(3));
        t.repeat(zero, n, |t, _, _| t.repeat(zero, half, |t, _, _| t.w(a)));
        t.r(a);
    });
    assert_eq!((words.len(), checks.len()), (0, 2), "{words:?} {checks:?}");
    // The inner bound depends on the outer index: nothing can be said.
    one(WARNING, |t| {
        let (a, n, zero) = (t.tile("a"), t.n, t.k.c(0));
        t.repeat(zero, n, |t, i, _| t.repeat(zero, i, |t, _, _| t.w(a)));
        t.r(a);
    });
}

#[test]
fn the_first_iteration() {
    let first = |t: &mut T, i, zero| t.k.b.compare(CmpOp::Eq, i, zero, at(2));
    // if i.first { write } else { update }
    checked("N = {0} leaves tile `a` unwritten: the loop over `i` does not run", |t| {
        let (a, n, zero) = (t.tile("a"), t.n, t.k.c(0));
        t.repeat(zero, n, |t, i, _| {
            let cond = first(t, i, zero);
            t.choose(cond, |t| t.w(a), |t| t.rw(a));
        });
        t.r(a);
    });
    // The same, the other way round, read in the loop.
    clean(|t| {
        let (a, n, zero) = (t.tile("a"), t.n, t.k.c(0));
        t.repeat(zero, n, |t, i, _| {
            let later = t.k.b.compare(CmpOp::Gt, i, zero, at(2));
            t.choose(later, |t| t.rw(a), |t| t.w(a));
            t.r(a);
        });
    });
    // Forgotten: the first iteration reads what nothing wrote.
    one(ERROR, |t| {
        let (a, n, zero) = (t.tile("a"), t.n, t.k.c(0));
        t.repeat(zero, n, |t, _, _| t.rw(a));
    });
    // The accumulator is declared in an outer loop.
    one(ERROR, |t| {
        let (n, zero) = (t.n, t.k.c(0));
        t.repeat(zero, n, |t, _, _| {
            let a = t.tile("a");
            t.repeat(zero, n, |t, _, _| t.rw(a));
        });
    });
    // `first` of the outer loop, then anything in the inner one.
    clean(|t| {
        let (a, n, zero) = (t.tile("a"), t.n, t.k.c(0));
        t.repeat(zero, n, |t, i, _| {
            let cond = first(t, i, zero);
            t.choose(cond, |t| t.w(a), |_| {});
            t.repeat(zero, n, |t, _, _| t.rw(a));
            t.r(a);
        });
    });
    // Prime before, use in every iteration but the first: software pipelining.
    clean(|t| {
        let (a, n, zero) = (t.tile("a"), t.n, t.k.c(0));
        t.repeat(zero, n, |t, i, _| {
            let cond = t.k.b.compare(CmpOp::Ne, i, zero, at(2));
            t.choose(cond, |t| t.r(a), |_| {});
            t.w(a);
        });
    });
    // Correct for a reason that is not understood: never an error.
    let (words, _) = findings(|t| {
        let (a, n, zero, two) = (t.tile("a"), t.n, t.k.c(0), t.k.c(2));
        t.repeat(zero, n, |t, i, _| {
            let rest = t.k.b.binary(BinOp::Rem, i, two, at(2));
            let odd = t.k.b.compare(CmpOp::Gt, rest, zero, at(2));
            t.choose(odd, |t| t.r(a), |t| t.w(a));
        });
    });
    assert!(words.iter().all(|w| w.starts_with(WARNING)), "{words:?}");
    let (words, _) = findings(|t| {
        let (a, n, zero) = (t.tile("a"), t.n, t.k.c(0));
        t.repeat(zero, n, |t, i, _| {
            t.repeat(zero, i, |t, _, _| t.r(a));
            t.w(a);
        });
    });
    assert!(words.iter().all(|w| w.starts_with(WARNING)), "{words:?}");
}

#[test]
fn jumps() {
    // Every way out of the loop has written.
    checked("N = {0} leaves tile `a` unwritten: the loop over `i` does not run", |t| {
        let (a, n, zero, flag) = (t.tile("a"), t.n, t.k.c(0), t.flag);
        t.repeat(zero, n, |t, _, label| {
            t.w(a);
            t.choose(flag, |t| t.k.b.emit(Op::Break(label), at(3)), |_| {});
            t.r(a);
        });
        t.r(a);
    });
    one(WARNING, |t| {
        let (a, n, zero, flag) = (t.tile("a"), t.n, t.k.c(0), t.flag);
        t.repeat(zero, n, |t, _, label| {
            t.choose(flag, |t| t.k.b.emit(Op::Break(label), at(3)), |_| {});
            t.w(a);
        });
        t.r(a);
    });
    // Left early only after writing.
    clean(|t| {
        let (a, flag) = (t.tile("a"), t.flag);
        let span = at(4);
        let label = t.k.b.label(span);
        t.k.b.push_region();
        t.choose(
            flag,
            |t| {
                t.w(a);
                t.k.b.emit(Op::Leave(label), span);
            },
            |_| {},
        );
        t.w(a);
        let body = t.k.b.pop_region();
        t.k.b.emit(Op::Scope(Box::new(ptoc_ir::tile::Scope { label, role: None, body })), span);
        t.r(a);
    });
}

#[test]
fn a_while_may_not_run() {
    one(WARNING, |t| {
        let (a, flag) = (t.tile("a"), t.flag);
        let span = at(4);
        let label = t.k.b.label(span);
        t.k.b.push_region();
        t.w(a);
        let body = t.k.b.pop_region();
        let w = ptoc_ir::tile::While { label, head: vec![], cond: flag, body };
        t.k.b.emit(Op::While(Box::new(w)), span);
        t.r(a);
    });
}

/// A side of a nest without axes: element (0, 0).
fn corner(t: &mut T, tile: TileRef) -> ptoc_ir::tile::NestAccess {
    let start = t.k.c(0);
    let at = ptoc_ir::tile::Affine { start, strides: vec![] };
    ptoc_ir::tile::NestAccess::Tile { tile, row: at.clone(), col: at }
}

fn copy(t: &mut T, dst: TileRef, src: TileRef) {
    let (dst, src) = (corner(t, dst), corner(t, src));
    let span = t.k.span();
    let copy = ptoc_ir::tile::Copy { extents: vec![], dst, src, guards: vec![], fill: None, covers: false };
    t.k.b.copy(copy, span);
}

fn mma(t: &mut T, acc: TileRef, a: TileRef, b: TileRef) {
    let (acc, a, b) = (corner(t, acc), corner(t, a), corner(t, b));
    let span = t.k.span();
    t.k.b.mma(ptoc_ir::tile::Mma { m: vec![], n: vec![], k: vec![], acc, a, b }, span);
}

/// A copy reads its source, and a part that it writes counts as one element that is set does: the interpreter knows the
/// elements. A product reads all three, the accumulator too.
#[test]
fn nests() {
    one(ERROR, |t| {
        let (x, y) = (t.tile("x"), t.tile("y"));
        copy(t, y, x);
    });
    clean(|t| {
        let (x, y) = (t.tile("x"), t.tile("y"));
        t.w(x);
        copy(t, y, x);
        t.r(y);
    });
    for missing in ["acc", "a", "b"] {
        let (words, _) = findings(|t| {
            let tiles = ["acc", "a", "b"].map(|n| (n, t.tile(n)));
            for (_, tile) in tiles.iter().filter(|(n, _)| *n != missing) {
                t.w(*tile);
            }
            mma(t, tiles[0].1, tiles[1].1, tiles[2].1);
            t.r(tiles[0].1);
        });
        assert_eq!(words, [format!("E0501 tile `{missing}` is read here, and nothing has written it")]);
    }
}
