//! Elements that a launch in numbers touches.

use super::{AffineForm, Clash, Hole, Meeting, Stop, Trial, TrialResult, Use, coordinates, each, element_name};
use crate::blocks::accesses::AccessKind;
use ptoc_diagnostics::Span;
use ptoc_ir::tile::{Affine, Copy, Elem, Mma, NestAccess as Side, TensorDir, TensorId, TileRef, Value, ViewRef};
use ptoc_isa::Oob;
use rustc_hash::FxHashSet;

impl<'k> Trial<'k, '_> {
    pub(super) fn use_of(&mut self, kind: AccessKind, span: Span) -> u32 {
        if let Some(&n) = self.known_uses.get(&(kind, span)) {
            return n;
        }
        self.uses.push(Use { kind, span, block: self.block.clone() });
        self.known_uses.insert((kind, span), self.uses.len() as u32);
        self.uses.len() as u32
    }

    /// The data decide which elements.
    pub(super) fn vague(&mut self, tensor: TensorId, kind: AccessKind) {
        self.out.vague.insert(tensor);
        if let Some(t) = self.tensors.get_mut(&tensor).filter(|_| kind != AccessKind::Read) {
            t.anywhere = true;
        }
    }

    pub(super) fn element(&mut self, tensor: TensorId, kind: AccessKind, offset: Value, span: Span) -> TrialResult {
        match self.index(offset) {
            Some(at) => self.touch(tensor, kind, at, span),
            None => {
                self.vague(tensor, kind);
                Ok(())
            }
        }
    }

    pub(super) fn touch(&mut self, tensor: TensorId, kind: AccessKind, at: i64, span: Span) -> TrialResult {
        if !self.tensors.contains_key(&tensor) {
            return Ok(());
        }
        self.spend(1 + self.dims())?;
        let me = self.use_of(kind, span);
        let sure = self.sure;
        let Some(t) = self.tensors.get_mut(&tensor) else { return Ok(()) };
        let Some(k) = usize::try_from(at).ok().filter(|k| *k < t.users.len()) else {
            // Outside: the launch ends here, if it comes here.
            return if sure { Err(Stop::Trap) } else { Ok(()) };
        };
        t.covered[k] |= kind != AccessKind::Read;
        if !sure {
            self.out.vague.insert(tensor);
            return Ok(());
        }
        let u = &mut t.users[k];
        let earlier = self.earlier;
        let foreign = |n: u32| n != 0 && n <= earlier;
        let users = [(AccessKind::Write, u.writer), (AccessKind::Atomic, u.atomic), (AccessKind::Read, u.reader)];
        let rival = users.into_iter().find(|(other, n)| kind.races_with(*other) && foreign(*n)).map(|(_, n)| n);
        match kind {
            AccessKind::Write => u.writer = me,
            AccessKind::Read if !foreign(u.reader) => u.reader = me,
            AccessKind::Atomic if !foreign(u.atomic) => u.atomic = me,
            _ => {}
        }
        if let Some(rival) = rival
            && !t.raced
        {
            t.raced = true;
            let (first, second) = (self.uses[rival as usize - 1].clone(), self.uses[me as usize - 1].clone());
            let element = t.coordinates(at);
            self.out.clashes.push(Clash { tensor, element, first, second });
        }
        Ok(())
    }

    pub(super) fn window(&mut self, view: &ViewRef, kind: AccessKind, span: Span) -> TrialResult {
        if !self.tensors.contains_key(&view.tensor) {
            return Ok(());
        }
        let numbers = |values: &[Value]| values.iter().map(|&v| self.index(v)).collect::<Option<Vec<i64>>>();
        let known = self.index(view.offset).zip(numbers(&view.shape)).zip(numbers(&view.strides));
        let Some(((offset, shape), strides)) = known else {
            self.vague(view.tensor, kind);
            return Ok(());
        };
        each(&shape, &mut |point| {
            let at = point.iter().zip(&strides).try_fold(offset, |n, (i, s)| n.checked_add(i.checked_mul(*s)?));
            self.touch(view.tensor, kind, at.unwrap_or(-1), span)
        })
    }

    pub(super) fn line(&self, f: &Affine) -> Option<AffineForm> {
        let strides = f.strides.iter().map(|&v| self.index(v)).collect::<Option<Vec<i64>>>()?;
        Some((self.index(f.start)?, strides))
    }

    pub(super) fn extents(&self, axes: &[Value]) -> Option<Vec<i64>> {
        axes.iter().map(|&v| self.index(v)).collect()
    }

    /// What a side is in numbers; `None`: data decide.
    pub(super) fn side(&self, side: &Side) -> Option<Numbers> {
        match side {
            Side::Tile { tile, row, col } => {
                let element = tile.element.map_or(Some(0), |e| self.index(e))?;
                let (r, c) = match tile.origin {
                    Some((r, c)) => (self.index(r)?, self.index(c)?),
                    None => (0, 0),
                };
                let (mut row, mut col) = (self.line(row)?, self.line(col)?);
                (row.0, col.0) = (row.0.checked_add(r)?, col.0.checked_add(c)?);
                Some(Numbers::Tile { tile: *tile, element, row, col })
            }
            Side::Tensor { tensor, elem, at, swizzle, tables } => {
                let own = Elem::Whole(self.kernel.tensors[*tensor].dtype);
                let plain = tables.is_empty() && elem.bits() == own.bits();
                if !plain {
                    return None;
                }
                Some(Numbers::Tensor { tensor: *tensor, at: self.line(at)?, swizzle: *swizzle })
            }
        }
    }

    pub(super) fn copy(&mut self, copy: &Copy, span: Span) -> TrialResult {
        for side in [&copy.src, &copy.dst] {
            side.tables().for_each(|t| self.vague(t, AccessKind::Read));
        }
        let limits: Option<Vec<(AffineForm, i64)>> =
            copy.guards.iter().map(|g| self.line(&g.at).zip(self.index(g.bound))).collect();
        let (src, dst) = (self.side(&copy.src), self.side(&copy.dst));
        let (Some(extents), Some(limits)) = (self.extents(&copy.extents), limits) else {
            self.unknown(&copy.src, AccessKind::Read);
            self.unknown(&copy.dst, AccessKind::Write);
            return Ok(());
        };
        if src.is_none() {
            self.unknown(&copy.src, AccessKind::Read);
        }
        if dst.is_none() {
            self.unknown(&copy.dst, AccessKind::Write);
        }
        let common = src.as_ref().zip(dst.as_ref()).is_some_and(|(a, b)| a.home() == b.home());
        let (mut read, mut written) = (FxHashSet::default(), FxHashSet::default());
        let absent = matches!(&copy.src, Side::Tensor { tables, .. } if tables.iter().any(|t| t.oob == Oob::Zero));
        let outer = self.sure;
        // What a table does not find is not written.
        self.sure &= !absent || copy.fill.is_some();
        each(&extents, &mut |point| {
            let inside = limits.iter().all(|(line, bound)| on(line, point).is_some_and(|at| at < *bound));
            if let Some(side) = src.as_ref().filter(|_| inside) {
                if common {
                    read.insert(side.spot(point));
                }
                self.one(side, AccessKind::Read, point, span)?;
            }
            if let Some(side) = dst.as_ref().filter(|_| inside || copy.fill.is_some()) {
                let spot = side.spot(point);
                if !written.insert(spot) {
                    self.meeting(side, point, true, span);
                }
                self.one(side, AccessKind::Write, point, span)?;
            }
            self.spend(1)
        })?;
        self.sure = outer;
        if let (Some(side), true) = (&dst, common)
            && let Some(spot) = read.intersection(&written).min()
        {
            self.meeting_at(side, *spot, false, span);
        }
        Ok(())
    }

    pub(super) fn mma(&mut self, mma: &Mma, span: Span) -> TrialResult {
        let axes: Vec<Value> = [&mma.m, &mma.n, &mma.k].into_iter().flatten().copied().collect();
        let extents = self.extents(&axes);
        for (side, kinds) in [
            (&mma.a, &[AccessKind::Read][..]),
            (&mma.b, &[AccessKind::Read]),
            (&mma.acc, &[AccessKind::Read, AccessKind::Write]),
        ] {
            side.tables().for_each(|t| self.vague(t, AccessKind::Read));
            let (Some(extents), Some(numbers)) = (&extents, self.side(side)) else {
                kinds.iter().for_each(|k| self.unknown(side, *k));
                continue;
            };
            if !matches!(&numbers, Numbers::Tensor { tensor, .. } if self.tensors.contains_key(tensor)) {
                continue;
            }
            each(extents, &mut |point| kinds.iter().try_for_each(|k| self.one(&numbers, *k, point, span)))?;
        }
        Ok(())
    }

    pub(super) fn unknown(&mut self, side: &Side, kind: AccessKind) {
        if let Side::Tensor { tensor, .. } = side {
            self.vague(*tensor, kind);
        }
    }

    pub(super) fn one(&mut self, side: &Numbers, kind: AccessKind, point: &[i64], span: Span) -> TrialResult {
        match side {
            Numbers::Tensor { tensor, .. } => self.touch(*tensor, kind, side.spot(point).1, span),
            Numbers::Tile { .. } => Ok(()),
        }
    }

    pub(super) fn meeting(&mut self, side: &Numbers, point: &[i64], twice: bool, span: Span) {
        self.meeting_at(side, side.spot(point), twice, span);
    }

    pub(super) fn meeting_at(&mut self, side: &Numbers, (row, at): (i64, i64), twice: bool, span: Span) {
        if !self.sure || self.out.meetings.iter().any(|m| m.span == span) {
            return;
        }
        let element = match side {
            Numbers::Tile { tile, .. } => format!("element ({row}, {at}) of `{}`", self.kernel.tiles[tile.tile].name),
            Numbers::Tensor { tensor, .. } => match self.tensors.get(tensor) {
                Some(t) => element_name(&self.kernel.tensors[*tensor].name, &t.coordinates(at)),
                None => format!("element {at} of `{}`", self.kernel.tensors[*tensor].name),
            },
        };
        self.out.meetings.push(Meeting { span, element, twice, block: self.block.clone() });
    }

    pub(super) fn holes(&mut self) {
        for (id, data) in &self.kernel.tensors {
            let Some(t) = self.tensors.get(&id).filter(|t| data.dir == TensorDir::Out && !t.anywhere) else { continue };
            if let Some(members) = &t.members {
                let missing = |(_, n): &&(Vec<i64>, i64)| t.covered.get(*n as usize) == Some(&false);
                if let Some((first, _)) = members.iter().find(missing) {
                    let (count, all) = (members.iter().filter(missing).count() as u64, members.len() as u64);
                    self.out.holes.push(Hole { tensor: id, count, all, first: first.clone() });
                }
                continue;
            }
            let mut missing = t.covered.iter().enumerate().filter(|(_, covered)| !**covered);
            if let Some((first, _)) = missing.next() {
                let count = 1 + missing.count() as u64;
                let all = t.covered.len() as u64;
                self.out.holes.push(Hole { tensor: id, count, all, first: coordinates(&t.shape, first as i64) });
            }
        }
    }
}

/// A side of a nest.
pub(super) enum Numbers {
    Tile { tile: TileRef, element: i64, row: AffineForm, col: AffineForm },
    Tensor { tensor: TensorId, at: AffineForm, swizzle: Option<ptoc_layout::Swizzle> },
}

impl Numbers {
    /// Row and column, or 0 and the number; -1 is outside.
    pub(super) fn spot(&self, point: &[i64]) -> (i64, i64) {
        match self {
            Numbers::Tile { row, col, .. } => (on(row, point).unwrap_or(-1), on(col, point).unwrap_or(-1)),
            Numbers::Tensor { at, swizzle, .. } => {
                let n = on(at, point).unwrap_or(-1);
                (0, swizzle.map_or(n, |s| s.apply(n)))
            }
        }
    }

    /// What has common elements.
    pub(super) fn home(&self) -> (u32, u32, i64) {
        match self {
            Numbers::Tile { tile, element, .. } => (0, tile.tile.as_u32(), *element),
            Numbers::Tensor { tensor, .. } => (1, tensor.as_u32(), 0),
        }
    }
}

pub(super) fn on((start, strides): &AffineForm, point: &[i64]) -> Option<i64> {
    strides.iter().zip(point).try_fold(*start, |n, (s, i)| n.checked_add(s.checked_mul(*i)?))
}
