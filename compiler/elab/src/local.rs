//! Windows of tensors and tiles, cut by tilers: `modes`, `local_tile`.

use super::labels::count;
use super::{ElabResult, Elaborator, ErrorReported};
use ptoc_diagnostics::{Diagnostic, Span, codes};
use ptoc_layout::{Layout, Tiler, Tuple, Value as Algebra};
use ptoc_syntax::ast::Arg;
use ptoc_values::{Val, WindowMap, WindowMode};

/// A division by its name.
pub(crate) fn divide(name: &'static str, cx: &ptoc_layout::Cx, l: &Layout, t: &Tiler) -> ptoc_layout::Result<Layout> {
    let kind = |m: &str| ptoc_layout::LayoutError::new(ptoc_layout::ErrorKind::Kind, name, m);
    let op = ptoc_layout::ops::find(name).ok_or_else(|| kind("not known"))?;
    match (op.eval)(cx, &[Algebra::Layout(l.clone()), Algebra::Tiler(t.clone())])? {
        Algebra::Layout(l) => Ok(l),
        _ => Err(kind("gives no layout")),
    }
}

impl Elaborator<'_> {
    /// A call of a layout operation by its name in the language.
    pub(crate) fn layout_call(
        &mut self,
        name: &'static str,
        statics: &[Arg],
        args: &[Arg],
        span: Span,
    ) -> ElabResult<Val> {
        let whole = match name {
            "modes" | "local_tile" | "local_partition" => 0,
            "tiled_copy_partition" => 2,
            _ => return self.layout_op(name, statics, args, span),
        };
        if statics.is_empty() {
            self.no_names(args)?;
            let mut values = Vec::new();
            for a in args {
                values.push((self.operand_value(&a.value)?, a.value.span));
            }
            if values.iter().any(|(v, _)| matches!(v, Val::Poison)) {
                return Err(ErrorReported);
            }
            let given = values.get(whole).cloned();
            if let Some((x, at)) = &given
                && let Some(side) = self.windowed(x, *at)?
            {
                values.remove(whole);
                let w = side.window().clone();
                let out = match name {
                    "modes" => self.modes(&w, &values, span)?,
                    "local_tile" => self.local_tile(&w, &values, span)?,
                    "local_partition" => self.local_partition(&side, &values, span)?,
                    _ => self.tiled_copy_partition(&side, &values, span)?,
                };
                return Ok(self.of_window(&side, out, span));
            }
            if name == "modes" {
                let d = Diagnostic::error(codes::TYPE_MISMATCH, span, "`modes` reorders the modes of a window");
                return self.report(d.with_help("for a layout: `select`, `group`, `flatten`"));
            }
            // With a projection it is an operation of its own.
            return match (name, args.len()) {
                ("local_tile", 4) => self.layout_op("local_tile_proj", &[], args, span),
                ("local_partition", 4) => self.layout_op("local_partition_proj", &[], args, span),
                _ => self.layout_op(name, &[], args, span),
            };
        }
        self.layout_op(name, statics, args, span)
    }

    /// `modes(x, (0, 1, (3, 2)))`: selects, reorders and groups; a group that is one walk through memory becomes one
    /// axis.
    fn modes(&mut self, w: &WindowMap, args: &[(Val, Span)], span: Span) -> ElabResult<WindowMap> {
        let usage = "`modes(x, (2, 0, (1, 3)))`: each mode of x once, by number; parentheses make one mode of several";
        let [(Val::Tuple(order), at)] = args else {
            return self.error(codes::WRONG_ARGUMENTS, span, usage);
        };
        let exposed = self.expose(w, span);
        let mut used = vec![false; exposed.modes.len()];
        // Modes in another order are no longer those of a pattern.
        let mut out = WindowMap { modes: Vec::new(), threads: None, ..exposed.clone() };
        for entry in order {
            let mut picked = Vec::new();
            self.picked(entry, &exposed, &mut used, &mut picked, *at)?;
            let mode = match (entry, picked.len()) {
                (Val::Tuple(_), _) => {
                    let tree = Tuple::Node(picked.into_iter().map(|m| m.tree).collect());
                    let extent = self.span_of(&tree, span);
                    let cap = self.const_index(extent).and_then(|n| u32::try_from(n).ok());
                    self.coalesce_mode(&WindowMode { extent, cap, tree, skip: None }, span)
                }
                _ => picked.remove(0),
            };
            out.modes.push(mode);
        }
        if let Some(k) = used.iter().position(|u| !u) {
            let d = Diagnostic::error(codes::RANK_MISMATCH, *at, format!("mode {k} is missing"))
                .with_label(format!("{}, numbered from 0", count(used.len(), "mode", "modes")))
                .with_help("to leave a mode out, fix its index first: `x[_, i, _]`");
            return self.report(d);
        }
        Ok(self.settle(&out, span))
    }

    fn picked(
        &mut self,
        entry: &Val,
        w: &WindowMap,
        used: &mut [bool],
        out: &mut Vec<WindowMode>,
        at: Span,
    ) -> ElabResult<()> {
        if let Val::Tuple(l) = entry {
            return l.iter().try_for_each(|e| self.picked(e, w, used, out, at));
        }
        let k = self.static_int(entry, at, "the number of a mode")?;
        match usize::try_from(k).ok().filter(|k| *k < used.len()) {
            Some(k) if !used[k] => {
                used[k] = true;
                out.push(w.modes[k].clone());
                Ok(())
            }
            Some(k) => {
                let d = Diagnostic::error(codes::RANK_MISMATCH, at, format!("mode {k} is named twice"))
                    .with_label(format!("{}, numbered from 0, each once", count(used.len(), "mode", "modes")));
                self.report(d)
            }
            None => {
                let message = format!("there is no mode {k}: the window has {}", used.len());
                self.error(codes::RANK_MISMATCH, at, message)
            }
        }
    }

    /// Tile modes and rest modes, each with its parts lifted, of a window divided by a tiler.
    pub(crate) fn divided(
        &mut self,
        name: &'static str,
        w: &WindowMap,
        tiler: &Tiler,
        span: Span,
        at: Span,
    ) -> ElabResult<WindowMap> {
        let tiler = match tiler {
            Tiler::ByMode(_) => tiler.clone(),
            one => Tiler::ByMode(vec![one.clone()]),
        };
        if let Tiler::ByMode(modes) = &tiler
            && modes.len() > w.modes.len()
        {
            let d = Diagnostic::error(
                codes::RANK_MISMATCH,
                at,
                format!(
                    "`{name}`: a tiler of {} for a window of {}",
                    count(modes.len(), "mode", "modes"),
                    w.modes.len()
                ),
            )
            .with_label(format!("{tiler}"));
            return self.report(d);
        }
        let divided = self.apply_layout(w, span, |cx, l| divide("zipped_divide", cx, l, &tiler))?;
        divided.or_else(|e| self.layout_error(e.of(name), span, &[span, at]))
    }

    /// Of a projection `(1, X, 1)`: which entries are kept.
    pub(crate) fn projection(&mut self, v: &Val, at: Span) -> ElabResult<Vec<bool>> {
        let help = "`(1, X, 1)` keeps modes 0 and 2 of the tiler and of the coordinate";
        let Val::Tuple(l) = v else {
            return self.error(codes::WRONG_ARGUMENTS, at, format!("a projection is a tuple: {help}"));
        };
        let kept = l.iter().map(|e| match e {
            Val::Int(1) => Some(true),
            Val::Word(ptoc_names::builtins::Word::Skip) => Some(false),
            _ => None,
        });
        match kept.collect() {
            Some(kept) => Ok(kept),
            None => self.error(codes::WRONG_ARGUMENTS, at, format!("a projection holds `1` and `X`: {help}")),
        }
    }

    pub(crate) fn project<T: Clone>(&mut self, items: &[T], keep: &[bool], what: &str, at: Span) -> ElabResult<Vec<T>> {
        if items.len() != keep.len() {
            let message =
                format!("the {what} has {}, the projection {}", count(items.len(), "entry", "entries"), keep.len());
            return self.error(codes::RANK_MISMATCH, at, message);
        }
        Ok(items.iter().zip(keep).filter(|(_, k)| **k).map(|(x, _)| x.clone()).collect())
    }

    fn tiler_arg(&mut self, v: &Val, at: Span) -> ElabResult<Tiler> {
        match self.algebra_of(v) {
            Some(Algebra::Tiler(t)) => Ok(t),
            Some(Algebra::Layout(l)) => Ok(Tiler::Layout(l)),
            Some(Algebra::Tuple(l)) => {
                let modes = l
                    .iter()
                    .map(|m| match m {
                        Algebra::Keep => Some(Tiler::Keep),
                        Algebra::Layout(l) => Some(Tiler::Layout(l.clone())),
                        Algebra::Tiler(t) => Some(t.clone()),
                        other => other.as_ints().map(|s| Tiler::of_shape(&s)),
                    })
                    .collect::<Option<_>>();
                match modes {
                    Some(modes) => Ok(Tiler::ByMode(modes)),
                    None => self.error(codes::TYPE_MISMATCH, at, "expected extents, layouts or `_` in a tiler"),
                }
            }
            Some(a) if a.as_ints().is_some() => Ok(Tiler::of_shape(&a.as_ints().expect("just seen"))),
            _ => {
                let message = format!("expected a tiler, found {}", v.describe());
                self.error(codes::TYPE_MISMATCH, at, message)
            }
        }
    }

    /// `local_tile(x, <BM, BK>, (m, _))`, with a projection `local_tile(x, <BM, BN, BK>, (m, n, _), (1, X, 1))`.
    fn local_tile(&mut self, w: &WindowMap, args: &[(Val, Span)], span: Span) -> ElabResult<WindowMap> {
        let ((tiler, tiler_at), (coord, coord_at), proj) = match args {
            [t, c] => (t.clone(), c.clone(), None),
            [t, c, p] => (t.clone(), c.clone(), Some(p.clone())),
            _ => {
                let usage = "usage: `local_tile(x, <BM, BK>, (m, k))`, with a projection as fourth argument";
                return self.error(codes::WRONG_ARGUMENTS, span, usage);
            }
        };
        let mut tiler = self.tiler_arg(&tiler, tiler_at)?;
        let mut coord = match coord {
            Val::Tuple(l) => l,
            one => vec![one],
        };
        if let Some((p, at)) = proj {
            let keep = self.projection(&p, at)?;
            let Tiler::ByMode(modes) = &tiler else {
                return self.error(codes::WRONG_ARGUMENTS, tiler_at, "a projection needs a tiler with modes");
            };
            tiler = Tiler::ByMode(self.project(modes, &keep, "tiler", tiler_at)?);
            coord = self.project(&coord, &keep, "coordinate", coord_at)?;
        }
        let divided = self.divided("local_tile", w, &tiler, span, tiler_at)?;
        let rest = divided.modes[1].tree.rank();
        if coord.len() > rest {
            let message = format!(
                "{}, and {} of tiles",
                count(coord.len(), "coordinate", "coordinates"),
                count(rest, "mode", "modes")
            );
            return self.error(codes::RANK_MISMATCH, coord_at, message);
        }
        coord.resize(rest, Val::Hole);
        let mut out = WindowMap { modes: Vec::new(), ..divided.clone() };
        self.lift(&mut out, &divided.modes[0], span);
        self.pick_tree(&mut out, &divided.modes[1], &coord, coord_at)?;
        Ok(self.settle(&out, span))
    }

    /// The parts of a mode as modes.
    pub(crate) fn lift(&mut self, out: &mut WindowMap, mode: &WindowMode, span: Span) {
        for tree in mode.tree.modes() {
            let extent = self.span_of(tree, span);
            let cap = self.const_index(extent).and_then(|n| u32::try_from(n).ok());
            out.modes.push(WindowMode { extent, cap, tree: tree.clone(), skip: None });
        }
    }

    /// Coordinates inside a mode.
    pub(crate) fn pick_tree(
        &mut self,
        out: &mut WindowMap,
        mode: &WindowMode,
        coord: &[Val],
        at: Span,
    ) -> ElabResult<()> {
        // A mode of one part may be a bare axis.
        let tree = match &mode.tree {
            leaf @ Tuple::Leaf(_) => Tuple::Node(vec![leaf.clone()]),
            node => node.clone(),
        };
        self.index_tree(out, &tree, coord, "the tiles", at)
    }
}
