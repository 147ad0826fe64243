//! Windows as arguments of launches: which elements of a tensor the kernel gets, and whether two arguments share some.

use super::written::added;
use super::{HostExpr, Parts, ProgramElaborator, TensorSource};
use ptoc_diagnostics::{Diagnostic, Span, codes};
use ptoc_elab::{ElabResult, ErrorReported, FailingTest};
use ptoc_ir::tile::{CheckData, Elem, Region, Value};
use ptoc_layout::Storage;
use ptoc_tensor::DType;
use ptoc_values::View;
use rangemap::RangeSet;

/// What a launch gets for a tensor argument.
pub(super) struct Passed {
    /// The tensor.
    pub source: TensorSource,
    /// The elements, in C order of the tensor; `None`: all of it.
    pub window: Option<Storage>,
    /// Where the window begins, if that is known only when it comes to the launch: its elements are moved there.
    pub moved: Option<Moved>,
    /// Extents that are known only when it comes to the launch; the window has the most that they can be.
    pub lengths: Option<LateWindow>,
    /// Element type.
    pub dtype: DType,
    /// The argument.
    pub at: Span,
}

/// How far a window is moved.
pub(super) struct Moved {
    /// As the elaborator has it.
    pub value: Value,
    /// As the host computes it.
    pub host: HostExpr,
}

/// A window of which extents are known only when it comes to the launch.
#[derive(Clone, Debug)]
pub struct LateWindow {
    /// Extent and stride of each leaf, mode by mode, with the most that extents can be.
    pub modes: Vec<Vec<(i128, i128)>>,
    /// The first element.
    pub offset: i128,
    /// Extents as the host computes them, by the numbers of their modes, which have one leaf each.
    pub lengths: Vec<(usize, HostExpr)>,
}

impl Passed {
    /// Whether it is known which elements it has.
    pub fn is_known(&self) -> bool {
        self.moved.is_none() && self.lengths.is_none()
    }

    /// Whether the extent of a mode is known only when it comes to the launch.
    pub fn is_late(&self, mode: usize) -> bool {
        self.lengths.as_ref().is_some_and(|l| l.lengths.iter().any(|(m, _)| *m == mode))
    }

    /// The window at its longest, if its place is known.
    pub fn fixed(&self) -> Option<&Storage> {
        self.window.as_ref().filter(|_| self.moved.is_none())
    }
}

/// Extent and stride of each leaf, mode by mode, and the first element.
type LeavesAt = (Vec<Vec<(i128, i128)>>, i128);

/// Whether both have an element in common. What is too large to be followed counts as if.
fn have_in_common(a: &Storage, b: &Storage) -> bool {
    let bounds = |s: &Storage| {
        let (mut low, mut high) = (u64::MAX, 0);
        s.runs(|place, count| {
            low = low.min(place as u64);
            high = high.max((place + count) as u64);
        });
        (low, high)
    };
    let (a_bounds, b_bounds) = (bounds(a), bounds(b));
    if a_bounds.1 <= b_bounds.0 || b_bounds.1 <= a_bounds.0 {
        return false;
    }
    let Some(taken) = added(RangeSet::new(), a) else { return true };
    let mut meets = false;
    b.runs(|place, count| meets |= taken.overlaps(&(place..place + count)));
    meets
}

impl ProgramElaborator<'_> {
    /// Whether both have an element in common. What is not known counts as if.
    pub(super) fn meet_in(&mut self, p: &Passed, q: &Passed) -> bool {
        if p.source != q.source {
            return false;
        }
        let (Some(a), Some(b)) = (&p.window, &q.window) else { return true };
        let apart = match (&p.moved, &q.moved) {
            (None, None) => return have_in_common(a, b),
            (Some(p), Some(q)) => self.elab.constant_distance(p.value, q.value),
            _ => None,
        };
        let Some(apart) = apart else { return true };
        let (forward, back) = (apart.max(0) as u64, apart.min(0).unsigned_abs());
        a.moved(back).zip(b.moved(forward)).is_none_or(|(a, b)| have_in_common(&a, &b))
    }

    /// What a launch gets for a view of a tensor with `len` elements.
    pub(super) fn passed(
        &mut self,
        view: &View,
        (source, len): (TensorSource, u64),
        at: Span,
        parts: &Parts,
    ) -> ElabResult<Passed> {
        let offset = view.offset();
        let moved = match !self.elab.is_whole(view) && self.is_late(offset) && view.swizzle.is_none() {
            true => Some(Moved { value: offset, host: self.computed_late(offset, &Region::default(), at, parts)? }),
            false => None,
        };
        let mut lengths = Vec::new();
        for (mode, m) in view.modes.iter().enumerate() {
            if m.plain().is_some()
                && view.swizzle.is_none()
                && self.is_late(m.extent)
                && self.elab.facts.max_of(m.extent).is_some()
            {
                lengths.push((mode, self.computed_late(m.extent, &Region::default(), at, parts)?));
            }
        }
        let (window, modes) = self.passed_window(view, len, moved.is_some(), at)?.unzip();
        let late = modes.filter(|_| !lengths.is_empty());
        let lengths = late.map(|(modes, offset)| LateWindow { modes, offset, lengths });
        Ok(Passed { source, window, moved, lengths, dtype: view.dtype, at })
    }

    /// The elements of its tensor that a view has, which has `len` of them; `None` for the tensor as it was declared.
    /// What is moved there later begins with the first one, and extents that are known later are the most that they can
    /// be.
    fn passed_window(
        &mut self,
        view: &View,
        len: u64,
        moved: bool,
        at: Span,
    ) -> ElabResult<Option<(Storage, LeavesAt)>> {
        if self.elab.is_whole(view) {
            return Ok(None);
        }
        if !self.elab.is_row_major(view.tensor) {
            let message = "a window of a tensor that has a layout of its own is no argument of a launch";
            let d = Diagnostic::error(codes::LAUNCH_WINDOW, at, message)
                .with_help("give the program's parameter extents alone: launches lay tensors out as their kernels say");
            return self.elab.report(d);
        }
        let whole = matches!(view.elem, Elem::Whole(d) if d == view.dtype);
        if !whole || view.quantities.len() != 1 {
            let what =
                if whole { "looks elements up in a table, or masks some" } else { "reads bytes as another dtype" };
            let d = Diagnostic::error(codes::LAUNCH_WINDOW, at, format!("this window {what}"))
                .with_label("no argument of a launch")
                .with_note("a launch takes windows whose elements lie at known strides")
                .with_help("pass the tensor, and take this window in the kernel");
            return self.elab.report(d);
        }
        let mut modes = Vec::new();
        for m in &view.modes {
            let mut leaves = Vec::new();
            let extent = self.most(m.extent, at)?;
            for l in m.tree.leaves() {
                let own = if l.extent == m.extent { extent } else { self.known_number(l.extent, at)? };
                leaves.push((own, self.known_number(l.by[0], at)?));
            }
            if let [only] = &mut leaves[..] {
                only.0 = extent;
            } else if leaves.iter().map(|l| l.0).product::<i128>() != extent {
                // The last blocks of a mode, of which the tensor has a part.
                let message = "a mode of several axes that ends inside of one is no argument of a launch";
                let d = Diagnostic::error(codes::LAUNCH_WINDOW, at, message)
                    .with_help("pass the tensor, and take this window in the kernel");
                return self.elab.report(d);
            }
            modes.push(leaves);
        }
        let offset = if moved { 0 } else { self.known_number(view.offset(), at)? };
        match Storage::of_numbers(&modes, view.swizzle, offset) {
            Ok(s) if s.len() <= len => Ok(Some((s, (modes, offset)))),
            Ok(_) => {
                let size = |m: &Vec<(i128, i128)>| m.iter().map(|l| l.0).product::<i128>().to_string();
                let extents: Vec<String> = modes.iter().map(size).collect();
                let name = &self.elab.b.kernel().tensors[view.tensor].name;
                let message = format!(
                    "a window of {} elements is larger than what `{name}` has of them, {len}",
                    extents.join(" x ")
                );
                if self.elab.undecided {
                    let data = CheckData { code: codes::VIEW_OUT_OF_BOUNDS, message, span: at, help: None };
                    self.elab.failing = Some(FailingTest { data, args: Vec::new(), span: at });
                    return Err(ErrorReported);
                }
                let d = Diagnostic::error(codes::VIEW_OUT_OF_BOUNDS, at, message);
                self.elab.report(if moved { d.with_label("wherever it begins") } else { d })
            }
            Err(e) => {
                let d =
                    Diagnostic::error(codes::LAUNCH_WINDOW, at, format!("this window is no argument of a launch: {e}"))
                        .with_help("pass the tensor, and take this window in the kernel");
                self.elab.report(d)
            }
        }
    }

    /// An extent, or the most that it can be if the host computes it.
    fn most(&mut self, extent: Value, at: Span) -> ElabResult<i128> {
        match self.elab.facts.max_of(extent).filter(|_| self.is_late(extent)) {
            Some(most) => Ok(most.max(0).into()),
            None => self.known_number(extent, at),
        }
    }

    fn known_number(&mut self, v: Value, at: Span) -> ElabResult<i128> {
        // The most that a number can be which the host computes follows from sizes.
        if self.elab.b.const_of(v).is_none() && !self.elab.is_dimensional(v) {
            self.waits_for_all(at)?;
        }
        self.elab.static_int(&ptoc_values::Val::Scalar(v), at, "a window that is an argument of a launch")
    }
}
