//! Operations on windows: what the algebra does to a layout happens here to every quantity of a window at once.
//!
//! An operation sees the window's *identity layout*: its extents, with stride `1@l` for axis number `l`. In the result
//! a leaf with stride `v@l` steps `v` along axis `l`, so each quantity moves `v` times what axis `l` moves it. Where
//! the result runs over the end of an axis (a tile that does not divide it), a guard on that axis' coordinate is added:
//! this is predication from the identity tensor.

use super::{ElabResult, Elaborator};
use ptoc_diagnostics::Span;
use ptoc_ir::tile::Value;
use ptoc_isa::BinOp;
use ptoc_layout::{Condition, Cx, ErrorKind, Int, Layout, LayoutError, Stride, Tuple};
use ptoc_values::{Leaf, Quantity, View, WindowMap, WindowMode};

impl Elaborator<'_> {
    /// A mode of one axis.
    pub(crate) fn axis(&mut self, extent: Value, cap: Option<u32>, by: Vec<Value>) -> WindowMode {
        let cap = cap.or_else(|| self.const_index(extent).and_then(|n| u32::try_from(n).ok()));
        WindowMode { extent, cap, tree: Tuple::Leaf(Leaf { extent, by }), skip: None }
    }

    /// Adds a quantity that nothing moves yet.
    pub(crate) fn add_quantity(&mut self, w: &mut WindowMap, kind: Quantity, start: Value) -> usize {
        let zero = self.idx(0);
        w.quantities.push(kind);
        w.starts.push(start);
        for m in &mut w.modes {
            m.tree = m.tree.map(&mut |l: &Leaf| {
                let mut l = l.clone();
                l.by.push(zero);
                l
            });
        }
        w.quantities.len() - 1
    }

    /// Every mode's axes span exactly its extent: a shorter valid extent becomes a guard on the index, so that static
    /// extents stay static.
    pub(crate) fn expose(&mut self, w: &WindowMap, span: Span) -> WindowMap {
        let mut out = w.clone();
        for k in 0..out.modes.len() {
            let (extent, cap) = (out.modes[k].extent, out.modes[k].cap);
            let whole = match (out.modes[k].plain().is_some(), cap) {
                (true, Some(c)) => self.idx(i64::from(c)),
                _ => self.span_of(&out.modes[k].tree, span),
            };
            if whole == extent || self.facts.le_certain(whole, extent, 0) {
                out.modes[k].extent = whole;
                if let Tuple::Leaf(l) = &mut out.modes[k].tree {
                    l.extent = whole;
                }
                continue;
            }
            let zero = self.idx(0);
            let q = self.add_quantity(&mut out, Quantity::Guard(extent), zero);
            if let Tuple::Leaf(l) = &mut out.modes[k].tree {
                l.extent = whole;
            }
            out.modes[k].extent = whole;
            let mut step = self.idx(1);
            let mut tree = out.modes[k].tree.clone();
            self.natural(&mut tree, q, &mut step, span);
            out.modes[k].tree = tree;
        }
        out
    }

    /// Quantity `q` counts the index of the mode.
    pub(crate) fn natural(&mut self, tree: &mut Tuple<Leaf>, q: usize, step: &mut Value, span: Span) {
        match tree {
            Tuple::Leaf(l) => {
                l.by[q] = *step;
                *step = self.bin(BinOp::Mul, *step, l.extent, span);
            }
            Tuple::Node(modes) => modes.iter_mut().for_each(|m| self.natural(m, q, step, span)),
        }
    }

    /// Product of the extents.
    pub(crate) fn span_of(&mut self, tree: &Tuple<Leaf>, span: Span) -> Value {
        let one = self.idx(1);
        let extents: Vec<Value> = tree.leaves().into_iter().map(|l| l.extent).collect();
        if let [extent] = extents[..] {
            return extent;
        }
        let product = extents.into_iter().fold(one, |n, e| self.bin(BinOp::Mul, n, e, span));
        // What is known of divisibility makes equal extents the same value: 8 * (K / 8) is K.
        let n = self.int_of(product);
        let known = self.cx.normal(&n);
        if known == n { product } else { self.value_of(&known, span) }
    }

    /// The extents with strides that name the axes. `w` is exposed.
    pub(crate) fn identity(&mut self, w: &WindowMap) -> Layout {
        let mut axis = 0;
        let modes = w.modes.clone();
        let modes = modes.iter().map(|m| self.identity_of(&m.tree, &mut axis)).collect();
        Layout::of_modes(modes)
    }

    fn identity_of(&mut self, tree: &Tuple<Leaf>, axis: &mut usize) -> Layout {
        match tree {
            Tuple::Leaf(l) => {
                let stride = Stride { scale: Int::ONE, basis: vec![*axis] };
                *axis += 1;
                Layout::leaf(self.int_of(l.extent), stride)
            }
            Tuple::Node(modes) => Layout::of_modes(modes.iter().map(|m| self.identity_of(m, axis)).collect()),
        }
    }

    /// The extents with the strides of quantity `q`: for a view's first quantity, its data layout.
    pub(crate) fn layout_of(&mut self, w: &WindowMap, q: usize) -> Layout {
        let modes: Vec<Layout> = w.modes.clone().iter().map(|m| self.mode_layout(m, q)).collect();
        Layout::of_modes(modes)
    }

    /// One mode's extents and strides. A mode of one axis has its valid extent.
    pub(crate) fn mode_layout(&mut self, m: &WindowMode, q: usize) -> Layout {
        match &m.tree {
            Tuple::Leaf(l) => Layout::leaf(self.int_of(m.extent), Stride::int(self.int_of(l.by[q]))),
            tree => self.tree_layout(tree, q),
        }
    }

    fn tree_layout(&mut self, tree: &Tuple<Leaf>, q: usize) -> Layout {
        match tree {
            Tuple::Leaf(l) => Layout::leaf(self.int_of(l.extent), Stride::int(self.int_of(l.by[q]))),
            Tuple::Node(modes) => Layout::of_modes(modes.iter().map(|m| self.tree_layout(m, q)).collect()),
        }
    }

    /// Applies an operation of the algebra.
    pub(crate) fn apply_layout(
        &mut self,
        w: &WindowMap,
        span: Span,
        f: impl Fn(&Cx, &Layout) -> ptoc_layout::Result<Layout>,
    ) -> ElabResult<Result<WindowMap, LayoutError>> {
        let exposed = self.expose(w, span);
        let identity = self.identity(&exposed);
        let result = match self.algebra(span, |cx| f(cx, &identity))? {
            Ok(l) => l,
            Err(e) => return Ok(Err(e)),
        };
        if let Err(e) = self.steps_forward(&result, span)? {
            return Ok(Err(e));
        }
        Ok(Ok(self.relabel(&exposed, &result, span)))
    }

    /// A step along an axis must not go back, nor so far that numbers overflow: what lies beyond the axis' end is
    /// guarded, and what would lie before its beginning is not. Steps of the launch are checked when the kernel runs.
    fn steps_forward(&mut self, result: &Layout, span: Span) -> ElabResult<Result<(), LayoutError>> {
        /// Far beyond any tensor, and short enough for sums of products.
        const FAR: i64 = 1 << 40;
        let refuse =
            |kind, message: String, help: &str| Ok(Err(LayoutError::new(kind, "composition", message).with_help(help)));
        for (n, d) in result.leaves() {
            if d.basis.is_empty() || n.is(1) || n.is(0) {
                continue;
            }
            if let Some(step) = d.scale.as_const() {
                if step < 0 {
                    let message = format!("stride {step} walks backwards, out of the window's beginning");
                    return refuse(ErrorKind::OutOfRange, message, "a window is walked forwards only");
                }
                let far = n.as_const().map_or(Some(step), |n| (n - 1).checked_mul(step));
                if far.is_none_or(|far| far > FAR) {
                    let message = format!("{n} steps of {step} reach beyond any tensor");
                    return refuse(ErrorKind::Overflow, message, "no tensor has as many elements");
                }
                continue;
            }
            let v = self.value_of(&d.scale.clone(), span);
            let why = LayoutError::new(ErrorKind::OutOfRange, "composition", "");
            // Products of dimensions are bounded by the arrays that have them; other products may have wrapped around,
            // whatever is known of their factors.
            if !self.is_dimensional(v) {
                self.require_condition(&Condition::Le(Int::ZERO, d.scale.clone()), &why, span)?;
                self.require_condition(&Condition::Le(d.scale.clone(), Int::Const(FAR)), &why, span)?;
                continue;
            }
            let forward = self.facts.min_of(v).is_some_and(|m| m >= 0);
            if !forward && self.cx.le(&Int::ZERO, &d.scale) != ptoc_layout::Truth::Yes {
                self.require_condition(&Condition::Le(Int::ZERO, d.scale.clone()), &why, span)?;
            }
        }
        Ok(Ok(()))
    }

    /// The window whose axes are those of `result`, a layout over the axes of `w`.
    pub(crate) fn relabel(&mut self, w: &WindowMap, result: &Layout, span: Span) -> WindowMap {
        let axes: Vec<Leaf> = w.leaves().into_iter().cloned().collect();
        // How far each axis is walked: 1 + sum (extent - 1) * step.
        let mut reach = vec![Some(Int::ONE); axes.len()];
        // What was cut, composed or regrouped no longer has the modes of a thread's part.
        let mut out = WindowMap { modes: Vec::new(), threads: None, ..w.clone() };
        let zero = self.idx(0);
        for mode in result.modes() {
            let tree = self.relabel_tree(&mode, &axes, &mut reach, zero, w.quantities.len(), span);
            let extent = self.span_of(&tree, span);
            let cap = self.const_index(extent).and_then(|n| u32::try_from(n).ok());
            out.modes.push(WindowMode { extent, cap, tree, skip: None });
        }
        for (axis, reach) in reach.into_iter().enumerate() {
            let bound = self.int_of(axes[axis].extent);
            let inside = reach.is_some_and(|r| self.cx.le(&r, &bound) == ptoc_layout::Truth::Yes);
            if inside {
                continue;
            }
            let q = self.add_quantity(&mut out, Quantity::Guard(axes[axis].extent), zero);
            let mut leaf = 0;
            let steps: Vec<Value> = result
                .leaves()
                .into_iter()
                .map(|(_, d)| if d.basis == [axis] { self.value_of(&d.scale.clone(), span) } else { zero })
                .collect();
            for m in &mut out.modes {
                m.tree = m.tree.map(&mut |l: &Leaf| {
                    let mut l = l.clone();
                    l.by[q] = steps[leaf];
                    leaf += 1;
                    l
                });
            }
        }
        out
    }

    fn relabel_tree(
        &mut self,
        layout: &Layout,
        axes: &[Leaf],
        reach: &mut [Option<Int>],
        zero: Value,
        quantities: usize,
        span: Span,
    ) -> Tuple<Leaf> {
        if let (Tuple::Leaf(n), Tuple::Leaf(d)) = (layout.shape(), layout.stride()) {
            let extent = self.value_of(n, span);
            let Some(&axis) = d.basis.first() else {
                return Tuple::Leaf(Leaf { extent, by: vec![zero; quantities] });
            };
            let step = self.value_of(&d.scale, span);
            reach[axis] = reach[axis].take().and_then(|r| {
                let far = n.sub(&Int::ONE).ok()?.mul(&d.scale).ok()?;
                r.add(&far).ok()
            });
            let by = axes[axis].by.clone().into_iter().map(|b| self.bin(BinOp::Mul, step, b, span)).collect();
            return Tuple::Leaf(Leaf { extent, by });
        }
        Tuple::Node(layout.modes().iter().map(|m| self.relabel_tree(m, axes, reach, zero, quantities, span)).collect())
    }

    /// Axes of one mode that are one walk through memory become one axis, so that `(W, H):(1, W)` tiles like `W*H:1`.
    pub(crate) fn coalesce_mode(&mut self, m: &WindowMode, span: Span) -> WindowMode {
        let leaves: Vec<Leaf> = m.tree.leaves().into_iter().cloned().collect();
        let mut out: Vec<Leaf> = Vec::new();
        for l in leaves {
            if self.const_index(l.extent) == Some(1) {
                continue;
            }
            let Some(last) = out.last().cloned() else {
                out.push(l);
                continue;
            };
            let continues = last.by.iter().zip(&l.by).all(|(a, b)| {
                let far = self.bin(BinOp::Mul, *a, last.extent, span);
                far == *b || {
                    let (x, y) = (self.int_of(far), self.int_of(*b));
                    self.cx.eq(&x, &y) == ptoc_layout::Truth::Yes
                }
            });
            if continues {
                let extent = self.bin(BinOp::Mul, last.extent, l.extent, span);
                *out.last_mut().expect("there is one") = Leaf { extent, by: last.by };
            } else {
                out.push(l);
            }
        }
        let tree = match (out.len(), m.tree.leaves().first()) {
            (0, Some(first)) => Tuple::Leaf((*first).clone()),
            (1, _) => Tuple::Leaf(out.remove(0)),
            _ => Tuple::Node(out.into_iter().map(Tuple::Leaf).collect()),
        };
        let mut tree = tree;
        // A mode of one axis is as long as it is valid.
        if let Tuple::Leaf(l) = &mut tree
            && m.cap.is_none()
        {
            l.extent = m.extent;
        }
        WindowMode { extent: m.extent, cap: m.cap, tree, skip: m.skip }
    }

    /// Guards that say no more than "the first so many of a mode" become its valid extent; those that always hold go.
    /// A guard that counts in steps stays: a window of every fourth column has the extent of its layout, and `copy`
    /// skips what is not there.
    pub(crate) fn settle(&mut self, w: &WindowMap, span: Span) -> WindowMap {
        self.settle_counted(w, false, span)
    }

    /// [`Elaborator::settle`], of guards that count in steps, too: what is left is as long as its elements exist.
    pub(crate) fn trim(&mut self, w: &WindowMap, span: Span) -> WindowMap {
        self.settle_counted(w, true, span)
    }

    fn settle_counted(&mut self, w: &WindowMap, steps: bool, span: Span) -> WindowMap {
        let mut out = w.clone();
        let mut q = 0;
        while q < out.quantities.len() {
            let Quantity::Guard(bound) = out.quantities[q] else {
                q += 1;
                continue;
            };
            // A partition keeps the shape that its MMA gives it.
            let prefix = out.pattern.is_none();
            if self.always_inside(&out, q, bound, span) || (prefix && self.as_prefix(&mut out, q, bound, steps, span)) {
                out.quantities.remove(q);
                out.starts.remove(q);
                for m in &mut out.modes {
                    m.tree = m.tree.map(&mut |l: &Leaf| {
                        let mut l = l.clone();
                        l.by.remove(q);
                        l
                    });
                }
                continue;
            }
            q += 1;
        }
        out
    }

    fn always_inside(&mut self, w: &WindowMap, q: usize, bound: Value, span: Span) -> bool {
        let mut far = w.starts[q];
        let zero = self.idx(0);
        for l in w.leaves().into_iter().cloned().collect::<Vec<_>>() {
            if l.by[q] == zero {
                continue;
            }
            if self.facts.min_of(l.by[q]).is_none_or(|m| m < 0) {
                return false;
            }
            let one = self.idx(1);
            let last = self.bin(BinOp::Sub, l.extent, one, span);
            let step = self.bin(BinOp::Mul, last, l.by[q], span);
            far = self.bin(BinOp::Add, far, step, span);
        }
        self.facts.le_certain(far, bound, -1) || {
            let (x, y) = (self.int_of(far), self.int_of(bound));
            let next = x.add(&Int::ONE);
            next.is_ok_and(|n| self.cx.le(&n, &y) == ptoc_layout::Truth::Yes)
        }
    }

    /// `start + c * (index / n) < bound` for the index of one mode, where `n` is what the axes before the counted ones
    /// span: the first `ceil_div(bound - start, c) * n` indices. `c` is 1 without `steps`.
    fn as_prefix(&mut self, w: &mut WindowMap, q: usize, bound: Value, steps: bool, span: Span) -> bool {
        let zero = self.idx(0);
        let moved: Vec<usize> =
            (0..w.modes.len()).filter(|&k| w.modes[k].tree.leaves().iter().any(|l| l.by[q] != zero)).collect();
        let k = match moved[..] {
            [k] => k,
            // All of the window exists, or none of it: no more than one row of it, if it is a row.
            [] if steps && !w.modes.is_empty() => {
                (0..w.modes.len()).find(|&k| w.modes[k].cap == Some(1)).unwrap_or_default()
            }
            _ => return false,
        };
        // With another guard inside the mode, what is valid is a box and no prefix.
        let alone = |g: usize| g == q || w.modes[k].tree.leaves().iter().all(|l| l.by[g] == zero);
        if w.modes[k].plain().is_none() && !w.guards().all(|(g, _)| alone(g)) {
            return false;
        }
        let one = self.idx(1);
        let (mut before, mut first, mut step) = (one, one, None);
        for l in w.modes[k].tree.clone().leaves() {
            // An axis of one index says nothing.
            if self.const_index(l.extent) == Some(1) {
                continue;
            }
            if step.is_none() && l.by[q] == zero {
                before = self.bin(BinOp::Mul, before, l.extent, span);
                continue;
            }
            if step.is_none() && steps && self.facts.min_of(l.by[q]).is_some_and(|least| least >= 1) {
                first = l.by[q];
            }
            let here = step.unwrap_or(first);
            if l.by[q] != here {
                return false;
            }
            step = Some(self.bin(BinOp::Mul, here, l.extent, span));
        }
        let left = self.bin(BinOp::Sub, bound, w.starts[q], span);
        let mut left = self.bin(BinOp::Max, left, zero, span);
        if first != one {
            let short = self.bin(BinOp::Sub, first, one, span);
            let up = self.bin(BinOp::Add, left, short, span);
            left = self.bin(BinOp::Div, up, first, span);
        }
        if moved.is_empty() {
            left = self.bin(BinOp::Min, left, one, span);
        }
        let left = self.bin(BinOp::Mul, left, before, span);
        let extent = self.bin(BinOp::Min, left, w.modes[k].extent, span);
        w.modes[k].extent = extent;
        let bounded = w.modes[k].cap.is_some();
        if let Tuple::Leaf(l) = &mut w.modes[k].tree
            && bounded
        {
            l.extent = extent;
        }
        true
    }

    /// A view with another window.
    pub(crate) fn with_window(&self, view: &View, window: WindowMap) -> View {
        View { window, ..view.clone() }
    }
}
