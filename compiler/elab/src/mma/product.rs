//! `mma(MMA, acc, a, b)`: which axes of the three partitions count M, N and K.
//!
//! Every axis of a partition moves the element's coordinates in its block ([`Quantity::Coord`]). Sorted by how far, the
//! axes of one mode are the inverse of the thread-value layout: they count the mode's indices upwards, each once,
//! however threads and values are assigned. Along axes that move no coordinate several threads hold one element: of an
//! operand one of them is read, of the accumulator each is written. The operands that share a mode are walked together.

use super::partition::multiples;
use super::{MODES, dtype_of};
use crate::{ElabResult, Elaborator, ErrorReported};
use ptoc_diagnostics::{Diagnostic, Span, codes};
use ptoc_ir::tile::{Affine, Mma, NestAccess, Op, Value};
use ptoc_isa::Loc;
use ptoc_layout::{Operand, TiledMma};
use ptoc_syntax::ast::Arg;
use ptoc_values::{Pattern, Quantity, TilePartition, TileVal, Val, WindowMap};
use std::sync::Arc;

/// An axis of a partition that moves along one mode.
#[derive(Clone, Debug)]
struct MmaAxis {
    extent: i64,
    /// Indices of the mode for each step.
    step: i64,
    /// Rows and columns of the tile.
    by: [i64; 2],
}

/// An axis of two operands.
struct Shared {
    extent: i64,
    by: [[i64; 2]; 2],
}

/// An operand of the product.
struct MmaOperand {
    operand: Operand,
    part: TilePartition,
    at: Span,
    /// Of each of its two modes, by ascending step.
    axes: [Vec<MmaAxis>; 2],
    /// Axes along which the tile holds an element again.
    copies: Vec<MmaAxis>,
}

impl MmaOperand {
    /// What the author calls it.
    fn name(&self) -> String {
        match self.operand {
            Operand::C => "the accumulator".into(),
            other => format!("operand {other:?}"),
        }
    }
}

impl Elaborator<'_> {
    /// `mma(MMA, acc, a, b)`
    pub(crate) fn mma(&mut self, args: &[Arg], span: Span) -> ElabResult<Val> {
        let e = self.exactly(args, 4, "mma(MMA, acc, a, b)", span)?;
        let mma = self.expr(e[0])?;
        let mma = self.mma_of(&mma, e[0].span)?;
        self.outside_prologue(span)?;
        let mut sides = Vec::new();
        for (k, operand) in [Operand::C, Operand::A, Operand::B].into_iter().enumerate() {
            let at = e[k + 1].span;
            let v = self.expr(e[k + 1])?;
            if operand == Operand::C {
                self.destination(&v, e[k + 1])?;
            }
            let part = self.operand_part(&v, operand, at)?;
            self.is_operand(&mma, operand, &part.window, e[0].span, at)?;
            self.operand_type(&mma, operand, &part.tile, at)?;
            self.whole_operand(&mma, operand, &part, at)?;
            let (axes, copies) = self.axes_of(operand, &part.window, at)?;
            sides.push(MmaOperand { operand, part, at, axes, copies });
        }
        self.mma_types(&mma, e[0].span)?;
        let Ok([c, a, b]) = <[MmaOperand; 3]>::try_from(sides) else { return Err(ErrorReported) };
        for x in [&a, &b] {
            if (x.part.tile.tile, x.part.tile.element) == (c.part.tile.tile, c.part.tile.element) {
                let d = Diagnostic::error(codes::MMA_OPERAND, x.at, "an operand of `mma` is in the accumulator's tile")
                    .with_label("read here")
                    .with_secondary(c.at, "and written here")
                    .with_help("accumulate into another tile");
                return self.report(d);
            }
        }
        let tile = self.mma_tile(&mma, span)?;
        let mut m = self.shared(&c, 0, &a, 0, &tile)?;
        let n = self.shared(&c, 1, &b, 0, &tile)?;
        let k = self.shared(&a, 1, &b, 1, &tile)?;
        // A thread that holds an element too has the sum too: to the nest that is one more row.
        m.extend(c.copies.iter().map(|x| Shared { extent: x.extent, by: [x.by, [0, 0]] }));
        let extents = |s: &mut Self, l: &[Shared]| l.iter().map(|x| s.idx(x.extent)).collect::<Vec<Value>>();
        // What each operand sees of the axes of M, N and K.
        let sees = [[Some(0), Some(0), None], [Some(1), None, Some(0)], [None, Some(1), Some(1)]];
        let lists = [&m, &n, &k];
        let mut access = Vec::new();
        for (side, sees) in [&c, &a, &b].into_iter().zip(sees) {
            let mut strides = [Vec::new(), Vec::new()];
            for (list, which) in lists.iter().zip(sees) {
                for x in list.iter() {
                    let by = which.map_or([0, 0], |w: usize| x.by[w]);
                    strides[0].push(self.idx(by[0]));
                    strides[1].push(self.idx(by[1]));
                }
            }
            let [rows, cols] = strides;
            let t = &side.part.tile;
            let shape = (self.idx(i64::from(t.rows)), self.idx(i64::from(t.cols)));
            let w = &side.part.window;
            access.push(NestAccess::Tile {
                tile: self.tile_ref(t, shape),
                row: Affine { start: w.starts[0], strides: rows },
                col: Affine { start: w.starts[1], strides: cols },
            });
        }
        let Ok([acc, left, right]) = <[NestAccess; 3]>::try_from(access) else { return Err(ErrorReported) };
        let product = Mma { m: extents(self, &m), n: extents(self, &n), k: extents(self, &k), acc, a: left, b: right };
        self.emit(Op::Mma(Box::new(product)), span);
        Ok(Val::Unit)
    }

    /// The partition that an operand is.
    fn operand_part(&mut self, v: &Val, operand: Operand, at: Span) -> ElabResult<TilePartition> {
        let role = match operand {
            Operand::C => "accumulator",
            _ => "operand",
        };
        match v {
            Val::Part(p) if p.window.pattern.is_some() => {
                self.note_whole_use(p);
                Ok((**p).clone())
            }
            Val::Tile(t) if self.patterns.contains_key(&t.tile) && t.origin.is_none() => {
                let window = self.patterns[&t.tile].clone();
                Ok(TilePartition { tile: *t, window, within: None })
            }
            Val::Poison => Err(ErrorReported),
            Val::View(_) => {
                let d = Diagnostic::error(
                    codes::NOT_PARTITIONED,
                    at,
                    "`mma` multiplies tiles, this is a window of a tensor",
                )
                .with_label("in global memory")
                .with_help(match operand {
                    Operand::C => "accumulate in `fragment_C(MMA, (BM, BN))` and copy it out after the loop",
                    _ => "load it into a tile and partition the tile, or copy it to a fragment",
                });
                self.report(d)
            }
            other => {
                let message = format!("the {role} {operand:?} of `mma` is {}, no partition", other.describe());
                let d = Diagnostic::error(codes::NOT_PARTITIONED, at, message)
                    .with_label("not cut by the MMA")
                    .with_help(match operand {
                        Operand::C => "accumulate in `fragment_C(MMA, (BM, BN))`".to_string(),
                        _ => format!("`partition_{operand:?}(MMA, x)` cuts a tile over threads and values"),
                    });
                self.report(d)
            }
        }
    }

    /// It must be partitioned by this MMA, for this operand.
    fn is_operand(
        &mut self,
        mma: &Arc<TiledMma>,
        operand: Operand,
        w: &WindowMap,
        mma_at: Span,
        at: Span,
    ) -> ElabResult<()> {
        let Some(Pattern { mma: of, operand: found }) = w.pattern.clone() else { return Err(ErrorReported) };
        let d = if of != *mma {
            Diagnostic::error(
                codes::PATTERN_MISMATCH,
                at,
                format!("operand {operand:?} is partitioned by another tiled MMA"),
            )
            .with_label(format!("pattern {found:?} of {}", of.atom.name))
            .with_secondary(mma_at, "the product's MMA")
            .with_note(format!("the product: {mma}"))
            .with_note(format!("the operand: {of}"))
        } else if found != operand {
            let message = format!("operand {operand:?} of `mma` is a partition by pattern {found:?}");
            Diagnostic::error(codes::PATTERN_MISMATCH, at, message)
                .with_label(format!("pattern {found:?}"))
                .with_note("the order is `mma(MMA, C, A, B)`: A has modes (M, K), B (N, K), C (M, N)")
        } else {
            return Ok(());
        };
        self.report(d.with_help(format!("`partition_{operand:?}(MMA, x)` with this MMA")))
    }

    /// The dtype must be the atom's, the place one that both sides can see.
    fn operand_type(&mut self, mma: &TiledMma, operand: Operand, t: &TileVal, at: Span) -> ElabResult<()> {
        let declared = self.b.kernel().tiles[t.tile].span;
        if dtype_of(&mma.atom, operand) != Some(t.ty.dtype) {
            let want = &mma.atom.types[match operand {
                Operand::A => 1,
                Operand::B => 2,
                Operand::C => 3,
            }];
            let message = format!("operand {operand:?} is `{}`, {} takes `{want}`", t.ty.dtype, mma.atom.name);
            let d = Diagnostic::error(codes::MMA_DTYPE, at, message)
                .with_label(format!("`{}`", t.ty.dtype))
                .with_secondary(declared, "declared here")
                .with_help(format!("convert it, `{want}(x)`, or take an atom of `{}`", t.ty.dtype));
            return self.report(d);
        }
        if !matches!(t.ty.loc, Loc::Vec | Loc::Mat) {
            let message = format!("operand {operand:?} lives in {}, `mma` works on Vec and Mat", t.ty.loc);
            let d = Diagnostic::error(codes::OPERAND_LOCATION, at, message)
                .with_secondary(declared, "declared here")
                .with_help("the cube's own memories belong to TMATMUL");
            return self.report(d);
        }
        Ok(())
    }

    /// A product reads and writes every element of its partitions: none may lie outside of the block.
    fn whole_operand(&mut self, mma: &TiledMma, operand: Operand, part: &TilePartition, at: Span) -> ElabResult<()> {
        let w = &part.window;
        let guards: Vec<(usize, Value)> = w.guards().collect();
        let tile = self.mma_tile(mma, at)?;
        let declared = self.b.kernel().tiles[part.tile.tile].span;
        let short = w.modes.iter().any(|m| {
            let span = m.tree.leaves().iter().try_fold(1i64, |n, l| n.checked_mul(self.const_index(l.extent)?));
            span != self.const_index(m.extent)
        });
        for (q, bound) in guards {
            let Some(mode) = self.mode_of_guard(w, operand, q) else { continue };
            let name = MODES[mode];
            if let Some(n) = self.const_index(bound)
                && n % tile[mode] != 0
            {
                let message = format!(
                    "operand {operand:?}, mode {name}: {n} is no multiple of {}, what the MMA covers",
                    tile[mode]
                );
                let d = Diagnostic::error(codes::MMA_BLOCK, at, message)
                    .with_label(format!("{n} in mode {name}"))
                    .with_secondary(declared, "the tile")
                    .with_note(mma.to_string())
                    .with_help(multiples(n, tile[mode]));
                return self.misfit(d);
            }
            return self.not_whole(operand, Some(name), declared, at);
        }
        match short {
            true => self.not_whole(operand, None, declared, at),
            false => self.padding_written(part, at),
        }
    }

    fn not_whole<T>(&mut self, operand: Operand, mode: Option<&str>, declared: Span, at: Span) -> ElabResult<T> {
        let mode = mode.map_or(String::new(), |m| format!(" in mode {m}"));
        let message = format!("operand {operand:?} may end before the tile does{mode}, and `mma` reads all of it");
        let d = Diagnostic::error(codes::MMA_PADDING, at, message)
            .with_label("valid in part")
            .with_secondary(declared, "declared here");
        self.report(match operand {
            Operand::C => d.with_help("accumulate in `fragment_C(MMA, (BM, BN))`, which is whole"),
            _ => d.with_help("declare the tile with `pad = Zero`: a load then writes zeros beyond the valid shape"),
        })
    }

    /// The mode that a guard of a partition bounds: its coordinate moves as the block's does.
    fn mode_of_guard(&self, w: &WindowMap, operand: Operand, q: usize) -> Option<usize> {
        let moves = |q: usize| w.leaves().iter().map(|l| self.const_index(l.by[q]) != Some(0)).collect::<Vec<_>>();
        let guard = moves(q);
        (0..2).find_map(|k| {
            let c = w.quantities.iter().position(|x| *x == Quantity::Coord(k))?;
            let same = moves(c).iter().zip(&guard).any(|(a, b)| *a && *b);
            same.then(|| operand.modes()[k])
        })
    }

    /// Where a partition reads beyond a tile's valid shape, a load must have written zeros there.
    pub(crate) fn padding_written(&mut self, part: &TilePartition, at: Span) -> ElabResult<()> {
        let t = part.tile;
        if !self.pads.contains_key(&t.tile) || t.origin.is_some() || part.window.pattern.is_none() {
            return Ok(());
        }
        let valid = self.valid_of(&t, at)?;
        let whole = |v: Value, n: u32| self.const_index(v) == Some(i64::from(n));
        if whole(valid.0, t.rows) && whole(valid.1, t.cols)
            || self.padded_loads.get(&(t.tile, t.element)) == Some(&valid)
        {
            return Ok(());
        }
        let declared = self.b.kernel().tiles[t.tile].span;
        let name = self.b.kernel().tiles[t.tile].name.clone();
        let message = format!("what lies beyond the valid shape of `{name}` is read here, and no load has written it");
        let d = Diagnostic::error(codes::MMA_PADDING, at, message)
            .with_label("reads all of the tile")
            .with_secondary(declared, "`pad = Zero` speaks of loads")
            .with_help(
                "load the tile before, on the same path; what is computed into it reaches the valid shape alone",
            );
        self.report(d)
    }

    /// The axes along each of the two modes of an operand, and those along none.
    fn axes_of(&mut self, operand: Operand, w: &WindowMap, at: Span) -> ElabResult<([Vec<MmaAxis>; 2], Vec<MmaAxis>)> {
        let coord = |k: usize| w.quantities.iter().position(|q| *q == Quantity::Coord(k));
        let (Some(c0), Some(c1)) = (coord(0), coord(1)) else { return Err(ErrorReported) };
        let mut axes = [Vec::new(), Vec::new()];
        let mut copies = Vec::new();
        for l in w.leaves() {
            let known = |v: Value| self.const_index(v);
            let numbers = (known(l.extent), known(l.by[c0]), known(l.by[c1]), known(l.by[0]), known(l.by[1]));
            let (Some(extent), Some(d0), Some(d1), Some(row), Some(col)) = numbers else {
                return self.not_yet(at, "products of partitions whose extents are known at run time alone");
            };
            let (k, step) = match (d0, d1) {
                _ if extent == 1 => continue,
                (0, 0) => {
                    if (row, col) != (0, 0) {
                        copies.push(MmaAxis { extent, step: 0, by: [row, col] });
                    }
                    continue;
                }
                (step, 0) => (0, step),
                (0, step) => (1, step),
                _ => return self.not_yet(at, "products of partitions whose axes run along two modes at once"),
            };
            axes[k].push(MmaAxis { extent, step, by: [row, col] });
        }
        for axes in &mut axes {
            axes.sort_by_key(|a| a.step);
            // Each index once: an axis begins where the ones below it end.
            let mut end = 1;
            for a in axes.iter() {
                let far = a.step.checked_mul(a.extent);
                let (true, Some(far)) = (a.step >= end, far) else {
                    let message = format!("pattern {operand:?} counts an element twice: its axes overlap");
                    return self.error(codes::NOT_INJECTIVE, at, message);
                };
                end = far;
            }
        }
        Ok((axes, copies))
    }

    /// The axes of a mode that two operands share.
    fn shared(
        &mut self,
        x: &MmaOperand,
        i: usize,
        y: &MmaOperand,
        j: usize,
        tile: &[i64; 3],
    ) -> ElabResult<Vec<Shared>> {
        let mode = x.operand.modes()[i];
        let name = MODES[mode];
        let count = |axes: &[MmaAxis]| axes.iter().map(|a| a.extent).product::<i64>();
        let (nx, ny) = (count(&x.axes[i]), count(&y.axes[j]));
        if nx != ny {
            // A copy has said that a tile has not the size of its block.
            if [x, y].iter().any(|o| self.wrong_sizes.contains(&o.part.tile.tile)) {
                return Err(ErrorReported);
            }
            let message = format!("mode {name}: {} has {ny}, {} has {nx}", y.name(), x.name());
            let rests = |n: i64| match (n % tile[mode] == 0, n / tile[mode]) {
                (true, 1) => format!("{n} in mode {name}: once the MMA's {}", tile[mode]),
                (true, times) => format!("{n} in mode {name}: {times} times the MMA's {}", tile[mode]),
                (false, _) => format!("{n} in mode {name}"),
            };
            let d = Diagnostic::error(codes::MMA_EXTENTS, y.at, message)
                .with_label(rests(ny))
                .with_secondary(x.at, rests(nx))
                .with_help("partition blocks of one size; an index fixes a rest mode, as in `tA[_, (_, _, k)]`");
            return self.misfit(d);
        }
        let (mut a, mut b) = (x.axes[i].clone(), y.axes[j].clone());
        a.reverse();
        b.reverse();
        let mut out: Vec<Shared> = Vec::new();
        while let (Some(p), Some(q)) = (a.pop(), b.pop()) {
            let least = p.extent.min(q.extent);
            if p.step != q.step || p.extent.max(q.extent) % least != 0 {
                let message = format!(
                    "mode {name}: {} and {} hold the same number of indices, but other ones",
                    x.name(),
                    y.name()
                );
                let show = |axes: &[MmaAxis]| {
                    let axes: Vec<String> = axes.iter().map(|a| format!("{}:{}", a.extent, a.step)).collect();
                    format!("indices {}", axes.join(" + "))
                };
                let d = Diagnostic::error(codes::MMA_EXTENTS, y.at, message)
                    .with_label(show(&y.axes[j]))
                    .with_secondary(x.at, show(&x.axes[i]));
                return self.misfit(d);
            }
            let rest = |l: &MmaAxis| {
                (l.extent > least).then(|| MmaAxis {
                    extent: l.extent / least,
                    step: l.step * least,
                    by: l.by.map(|v| v * least),
                })
            };
            a.extend(rest(&p));
            b.extend(rest(&q));
            let by = [p.by, q.by];
            // One walk through both tiles is one axis.
            match out.last_mut() {
                Some(last) if last.by.map(|b| b.map(|v| v * last.extent)) == by => last.extent *= least,
                _ => out.push(Shared { extent: least, by }),
            }
        }
        Ok(out)
    }
}
