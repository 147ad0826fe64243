//! Blocks handed out to threads: `local_partition`, `tiled_copy_partition`. A thread's part knows the pattern by which
//! it was cut, and a copy between two patterns is refused.

use super::copies::CopyEnd;
use super::labels::count;
use super::{ElabResult, Elaborator, ErrorReported};
use ptoc_diagnostics::{Diagnostic, Span, codes};
use ptoc_ir::tile::{TensorId, Tile, Value};
use ptoc_isa::BinOp;
use ptoc_layout::ops::{CopyAtom, CopySide, TiledCopy};
use ptoc_layout::{Condition, Int, Layout, LayoutError, TiledMma, Tiler, Truth, Value as Algebra};
use ptoc_syntax::ast::Name;
use ptoc_values::{Astray, Compared, ThreadPattern, Val, WindowMap};

/// What is handed out.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Handed {
    Tensor(TensorId),
    Tile(Tile),
}

/// A thread's part of something.
pub(crate) struct ThreadUse {
    of: Handed,
    /// The number of threads that the layout has.
    threads: i64,
    /// The number of the thread.
    at: Span,
    /// The loop or grid that counts the threads; `None` if it is not known how many have a turn.
    by: Option<Turns>,
}

/// A part that a tiled MMA takes of something.
pub(crate) struct MmaUse {
    of: Handed,
    name: Name,
    threads: i64,
    at: Span,
}

#[derive(Clone, Copy)]
struct Turns {
    /// How many threads have a turn, and where that stands.
    end: i64,
    range: Span,
}

impl Elaborator<'_> {
    /// `local_partition(x, threads, t)`: what thread `t` holds when the threads' shape is repeated over x.
    pub(crate) fn local_partition(
        &mut self,
        side: &CopyEnd,
        args: &[(Val, Span)],
        span: Span,
    ) -> ElabResult<WindowMap> {
        let ((threads, threads_at), (index, index_at), proj) = match args {
            [t, i] => (t.clone(), i.clone(), None),
            [t, i, p] => (t.clone(), i.clone(), Some(p.clone())),
            _ => {
                let usage = "usage: `local_partition(x, threads, t)`, with a projection as fourth argument";
                return self.error(codes::WRONG_ARGUMENTS, span, usage);
            }
        };
        let Some(Algebra::Layout(threads)) = self.algebra_of(&threads) else {
            return self.error(codes::TYPE_MISMATCH, threads_at, "the threads are a layout, as `(32, 8):(1, 32)`");
        };
        let mut modes = threads.modes();
        let index = self.index_of(&index, index_at)?;
        self.one_of(&threads, index, index_at, span)?;
        // Every thread is somewhere, and none at two places.
        match self.algebra(span, |cx| ptoc_layout::ops::is_bijection(cx, &threads))? {
            Ok(true) => {}
            Ok(false) => {
                let message = format!("`local_partition`: {threads} does not number its threads 0, 1, .. each once");
                let d = Diagnostic::error(codes::NOT_BIJECTIVE, threads_at, message)
                    .with_label("a thread is missing, or at two places")
                    .with_help("column-major numbering is `make_layout(shape)`, as in `(32, 8):(1, 32)`");
                return self.report(d);
            }
            Err(e) => return self.layout_error(e.of("local_partition"), span, &[threads_at]),
        }
        if let Some((p, at)) = proj {
            let keep = self.projection(&p, at)?;
            modes = self.project(&modes, &keep, "thread layout", threads_at)?;
        }
        let mut sizes = Vec::new();
        let mut coord = Vec::new();
        for m in &modes {
            let n = match self.algebra(span, |_| m.size())? {
                Ok(n) => n,
                Err(e) => return self.layout_error(e, span, &[]),
            };
            sizes.push(Tiler::Extent(n));
            coord.push(Val::Scalar(self.flat_coordinate(m, index, span)));
        }
        let divided = self.divided("local_partition", side.window(), &Tiler::ByMode(sizes), span, threads_at)?;
        self.note_threads(side, &threads, index, index_at);
        let mut out = WindowMap { modes: Vec::new(), ..divided.clone() };
        self.pick_tree(&mut out, &divided.modes[0], &coord, index_at)?;
        self.lift(&mut out, &divided.modes[1], span);
        let mut out = self.settle(&out, span);
        out.threads = Some(ThreadPattern::Threads { threads, modes }.into());
        Ok(out)
    }

    /// Where index `i` of all threads lies in one mode of them: `(i / d) % s` for each leaf, counted
    /// colexicographically. A stride of 0 is a broadcast: 0.
    fn flat_coordinate(&mut self, mode: &Layout, i: Value, span: Span) -> Value {
        let mut at = self.idx(0);
        let mut step = self.idx(1);
        for (s, d) in mode.leaves() {
            let (s, d) = (s.clone(), d.scale.clone());
            let extent = self.value_of(&s, span);
            if !d.is(0) && s != Int::ONE {
                let d = self.value_of(&d, span);
                let q = self.bin(BinOp::Div, i, d, span);
                // The outermost threads are counted without a remainder.
                let inside = self.facts.min_of(q) >= Some(0) && self.facts.le_certain(q, extent, -1);
                let c = if inside { q } else { self.bin(BinOp::Rem, q, extent, span) };
                let c = self.bin(BinOp::Mul, c, step, span);
                at = self.bin(BinOp::Add, at, c, span);
            }
            step = self.bin(BinOp::Mul, step, extent, span);
        }
        at
    }

    /// `index` must be the number of one of the threads.
    fn one_of(&mut self, threads: &Layout, index: Value, at: Span, span: Span) -> ElabResult<()> {
        let count = match self.algebra(span, |_| threads.size())? {
            Ok(n) => self.value_of(&n, span),
            Err(e) => return self.layout_error(e, span, &[]),
        };
        self.warn_of_more_turns(index, count, at);
        self.check_index(index, count, "the threads", at)
    }

    /// Warns of a loop or grid from 0 that goes on behind the last thread, and no condition ends it.
    fn warn_of_more_turns(&mut self, index: Value, count: Value, at: Span) {
        let (Some(&(end, range)), Some(n)) = (self.constant_loops.get(&index), self.const_index(count)) else { return };
        if end <= n || self.facts.le_certain(index, count, -1) {
            return;
        }
        let turns = count_of(end);
        let message = format!("{turns} take a part here, and the layout has {n}");
        let d = Diagnostic::warning(codes::INDEX_OUT_OF_BOUNDS, at, message)
            .with_label(format!("thread {n} is none of the layout's"))
            .with_secondary(range, turns)
            .with_note("the launch stops where a thread that does not exist takes a part")
            .with_help(format!("end behind the last one, `0..{n}`, or lay out {}", count_of(end)));
        // One loop, one warning, whatever is handed out in it.
        if !self.diags.iter().any(|x| x.code == d.code && x.labels.iter().any(|l| l.span == range)) {
            self.diags.push(d);
        }
    }

    /// `tiled_copy_partition(threads, values, x, t)`: what thread `t` moves, with the modes (value, rest, ..).
    pub(crate) fn tiled_copy_partition(
        &mut self,
        side: &CopyEnd,
        args: &[(Val, Span)],
        span: Span,
    ) -> ElabResult<WindowMap> {
        const OP: &str = "tiled_copy_partition";
        let [(threads, threads_at), (values, values_at), (index, index_at)] = args else {
            let usage = "usage: `tiled_copy_partition(threads, values, x, t)`";
            return self.error(codes::WRONG_ARGUMENTS, span, usage);
        };
        let mut layouts = Vec::new();
        for (v, at, what) in [(threads, *threads_at, "threads"), (values, *values_at, "values of a thread")] {
            match self.algebra_of(v) {
                Some(Algebra::Layout(l)) => layouts.push(l),
                _ => {
                    let message = format!("the {what} are a layout, as `(8, 4):(4, 1)`, found {}", v.describe());
                    return self.error(codes::TYPE_MISMATCH, at, message);
                }
            }
        }
        let [threads, values] = [layouts.remove(0), layouts.remove(0)];
        let index = self.index_of(index, *index_at)?;
        let spans = [*threads_at, *values_at];
        let made = self.algebra(span, |cx| {
            let copy = TiledCopy::new(cx, CopyAtom::single(), &threads, &values)?;
            Ok((copy.tv(cx, CopySide::Src)?, copy))
        })?;
        let (tv, copy) = match made {
            Ok(made) => made,
            Err(e) => return self.layout_error(e.of(OP), span, &spans),
        };
        self.one_of(&threads, index, *index_at, span)?;
        let cut = self.apply_layout(side.window(), span, |cx, l| copy.tidfrg(cx, CopySide::Src, l))?;
        let cut = match cut {
            Ok(w) => w,
            Err(e) => return self.layout_error(e.of(OP), span, &[]),
        };
        self.note_threads(side, &threads, index, *index_at);
        let mut out = WindowMap { modes: Vec::new(), ..cut.clone() };
        self.fix_mode(&mut out, &cut.modes[0].tree, index, span);
        out.modes.push(cut.modes[1].clone());
        if let Some(rest) = cut.modes.get(2) {
            self.lift(&mut out, rest, span);
        }
        let mut out = self.settle(&out, span);
        out.threads = Some(ThreadPattern::Values { threads, values, tv, tile: copy.extents().to_vec() }.into());
        Ok(out)
    }

    /// What `tiled_copy_tv` gives stands for its pattern in a composition.
    pub(crate) fn note_tv(&mut self, op: &str, operands: &[Algebra], made: &Algebra) {
        let ("tiled_copy_tv", [Algebra::Layout(threads), Algebra::Layout(values)], Algebra::Layout(tv)) =
            (op, operands, made)
        else {
            return;
        };
        let (threads, values) = (threads.clone(), values.clone());
        let Ok(copy) = TiledCopy::new(&self.cx, CopyAtom::single(), &threads, &values) else { return };
        let pattern = ThreadPattern::Values { threads, values, tv: tv.clone(), tile: copy.extents().to_vec() };
        self.tv_layouts.insert(tv.clone(), pattern.into());
    }

    /// Thread parts on both sides of a copy must be cut by one pattern.
    pub(crate) fn same_threads(&mut self, to: &WindowMap, from: &WindowMap, at: (Span, Span)) -> ElabResult<()> {
        let (Some(a), Some(b)) = (to.threads.clone(), from.threads.clone()) else { return Ok(()) };
        let astray = match a.compare(&b) {
            Compared::Same => return Ok(()),
            Compared::Astray(astray) => Some(astray),
            Compared::Unknown => match self.numbers_agree(&a, &b, at.1)? {
                true => return Ok(()),
                false => None,
            },
        };
        if self.assertion_failed() {
            return Err(ErrorReported);
        }
        let message = format!("a partition by {b} is written to one by {a}");
        let d = Diagnostic::error(codes::PATTERN_MISMATCH, at.1, message);
        let d = match &astray {
            Some(x) => told(d, x, at.0),
            None => d
                .with_label(b.to_string())
                .with_secondary(at.0, a.to_string())
                .with_note("only the launch knows whether the two are one pattern"),
        };
        let d = match (a.count(), b.count()) {
            (Some(m), Some(n)) if m != n => {
                d.with_note(format!("{n} threads read and {m} write: each would have to do both"))
            }
            _ => d,
        };
        let name = match &*a {
            ThreadPattern::Threads { threads, .. } => {
                format!("by one layout that has a name: `const THREADS = {threads};`")
            }
            ThreadPattern::Values { threads, values, .. } => {
                format!("by the same threads and values: `const THREADS = {threads};`, `const VALUES = {values};`")
            }
        };
        let other = "to put elements elsewhere on purpose, partition `x.T`, `modes(x, ..)` or `composition(x, ..)`";
        self.report(d.with_help(format!("partition both sides {name}")).with_help(other))
    }

    /// Patterns with the same nesting whose numbers are equal: known, or checked when the kernel runs.
    fn numbers_agree(&mut self, a: &ThreadPattern, b: &ThreadPattern, span: Span) -> ElabResult<bool> {
        if !a.congruent(b) {
            return Ok(false);
        }
        let pairs: Vec<(Int, Int)> = a.numbers().into_iter().zip(b.numbers()).collect();
        if pairs.iter().any(|(x, y)| self.cx.eq(x, y) == Truth::No) {
            return Ok(false);
        }
        let why = LayoutError::new(ptoc_layout::ErrorKind::Size, "copy", "");
        for (x, y) in pairs {
            if self.cx.eq(&x, &y) != Truth::Yes {
                self.require_condition(&Condition::Eq(x, y), &why, span)?;
            }
        }
        Ok(true)
    }

    /// A part of thread `index` of `side` is taken.
    fn note_threads(&mut self, side: &CopyEnd, threads: &Layout, index: Value, at: Span) {
        let Some(n) = threads.size().ok().and_then(|n| n.as_const()) else { return };
        let of = match side {
            CopyEnd::View(v) => Handed::Tensor(v.tensor),
            CopyEnd::Part(p) => Handed::Tile(p.tile.tile),
        };
        let by = self.constant_loops.get(&index).map(|&(end, range)| Turns { end, range });
        self.thread_uses.push(ThreadUse { of, threads: n, at, by });
    }

    /// A tiled MMA takes a part of a tile, or of a window of a tensor.
    pub(crate) fn note_mma_threads(&mut self, x: &Val, mma: &TiledMma, at: Span) {
        let (of, name) = match x {
            Val::View(v) => (Handed::Tensor(v.tensor), self.b.kernel().tensors[v.tensor].name.clone()),
            Val::Tile(t) => (Handed::Tile(t.tile), self.b.kernel().tiles[t.tile].name.clone()),
            _ => return,
        };
        let Ok(threads) = mma.thread_count() else { return };
        let known = |u: &MmaUse| u.of == of && u.threads == threads;
        if !self.mma_uses.iter().any(known) {
            self.mma_uses.push(MmaUse { of, name, threads, at });
        }
    }

    /// Warns of a tile or tensor that other threads than those of a tiled MMA hold.
    pub(crate) fn warn_of_other_threads(&mut self) {
        for mma in std::mem::take(&mut self.mma_uses) {
            let mut others = self.thread_uses.iter().filter(|u| u.of == mma.of);
            let Some(ThreadUse { threads, at, .. }) = others.next().filter(|u| u.threads != mma.threads) else {
                continue;
            };
            if others.any(|u| u.threads == mma.threads) {
                continue;
            }
            let MmaUse { name, threads: of_mma, .. } = &mma;
            let message = format!("`{name}` is handed out to {}, and the tiled MMA has {of_mma}", count_of(*threads));
            let d = Diagnostic::warning(codes::OTHER_THREADS, *at, message)
                .with_label(count_of(*threads))
                .with_secondary(mma.at, format!("{} take it from here", count_of(*of_mma)))
                .with_note("on a GPU a block has one number of threads, for its copies and its products")
                .with_help(format!(
                    "lay out {}, and demand it: `static_assert(size(THREADS) == MMA.threads);`",
                    count_of(*of_mma)
                ));
            if !self.diags.iter().any(|x| x.code == d.code && x.span == d.span) {
                self.diags.push(d);
            }
        }
    }

    /// Warns of threads that never have a turn: all parts of a tensor or tile are taken by the variables of loops or
    /// grids from 0 that end before the threads do.
    pub(crate) fn warn_of_idle_threads(&mut self) {
        let uses = std::mem::take(&mut self.thread_uses);
        for (k, first) in uses.iter().enumerate() {
            let same = |u: &&ThreadUse| u.of == first.of;
            if uses[..k].iter().any(|u| same(&u)) {
                continue;
            }
            let Some(all) =
                uses.iter().filter(same).map(|u| Some((u.by?, u.threads, u.at))).collect::<Option<Vec<_>>>()
            else {
                continue;
            };
            let idle = |(t, n, _): &(Turns, i64, Span)| t.end < *n;
            if !all.iter().all(idle) {
                continue;
            }
            let Some((Turns { end, range }, n, at)) = all.iter().max_by_key(|(t, ..)| t.end) else { continue };
            let turns = count_of(*end);
            let message = format!("{turns} take a part here, and the layout has {n}");
            let d = Diagnostic::warning(codes::IDLE_THREADS, *at, message)
                .with_label(format!(
                    "never {}",
                    if n - end == 1 { end.to_string() } else { format!("{end} to {}", n - 1) }
                ))
                .with_secondary(*range, turns.clone())
                .with_note("what the others hold is not touched")
                .with_help(format!("let all of them have a turn, `0..{n}`, or lay out {turns}"));
            // One loop, one warning, whatever is handed out in it.
            let said = |x: &Diagnostic| x.code == d.code && x.labels.iter().any(|l| l.span == *range);
            if !self.diags.iter().any(said) {
                self.diags.push(d);
            }
        }
    }
}

fn count_of(threads: i64) -> String {
    count(usize::try_from(threads).unwrap_or(0), "thread", "threads")
}

/// Which element the thread holds on either side.
fn told(d: Diagnostic, x: &Astray, to: Span) -> Diagnostic {
    let element = |at: &[i64]| {
        let list: Vec<String> = at.iter().map(i64::to_string).collect();
        format!("({})", list.join(", "))
    };
    let holds = |at: &Option<Vec<i64>>| match at {
        Some(at) => format!("thread {} holds element {}", x.thread, element(at)),
        None => format!("thread {} holds less", x.thread),
    };
    let d = d.with_label(holds(&x.second)).with_secondary(to, holds(&x.first));
    match (&x.second, &x.first) {
        (Some(from), Some(to)) => d.with_note(format!(
            "so element {} of the source would go to {} of the destination, the first of those that go astray",
            element(from),
            element(to)
        )),
        _ => d,
    }
}
