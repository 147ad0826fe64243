//! What is told of the findings.

use super::contents::{Bytes, Def, FIRST_DEF};
use super::repair::free_address;
use super::touches::{Constants, constants, touches};
use super::walk::{DefInfo, Findings, Overlap, Unwritten};
use super::window::{Shape, TouchedPart, elements_in};
use crate::capacity::FixContext;
use crate::init::{RUNS_ARE_WATCHED, TileKind, kind, zeros};
use ptoc_diagnostics::{Account, Diagnostic, Span, codes};
use ptoc_ir::tile::{AddrKind, Kernel, Stmt, SyncMode, Tile, TileRef};
use ptoc_isa::Target;
use ptoc_placement::access::AccessMode;
use ptoc_placement::liveness::liveness;
use ptoc_placement::memories;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;

/// Overlaps for which an address is sought.
const REPAIRED: usize = 4;

pub(super) struct Report<'a> {
    pub(super) kernel: &'a Kernel,
    pub(super) target: &'a Target,
    pub(super) earlier: &'a [Diagnostic],
    pub(super) author: &'a dyn FixContext,
    pub(super) findings: &'a Findings,
    /// For repairs that are tried.
    pub(super) trial: Account<'a>,
}

impl Report<'_> {
    pub(super) fn all(&self) -> Vec<Diagnostic> {
        let mut out = self.own_sources();
        out.extend(self.unwritten());
        out.extend(self.overlaps());
        out.extend(self.dead());
        out
    }

    // ---- use before write ----------------------------------------------------------------------------------------

    fn unwritten(&self) -> Vec<Diagnostic> {
        // One of a tile: what comes after it was written no better. Errors first.
        let mut best: BTreeMap<Tile, &Unwritten> = BTreeMap::new();
        // Of the compiler's own scratch there is nothing to warn of: it is wrong or it is not.
        let of_interest = |u: &&Unwritten| u.always || u.sure || !self.kernel.tiles[u.tile].hidden;
        for u in self.findings.unwritten.iter().filter(of_interest) {
            let told = self.earlier.iter().any(|d| {
                matches!(d.code, codes::UNINITIALISED | codes::MAYBE_UNINITIALISED)
                    && d.labels.iter().any(|l| l.span == self.kernel.tiles[u.tile].span)
            });
            if !told {
                let slot = best.entry(u.tile).or_insert(u);
                if (u.always || u.sure) && !(slot.always || slot.sure) {
                    *slot = u;
                }
            }
        }
        let mut out: Vec<Diagnostic> = best.values().map(|u| self.unwritten_one(u)).collect();
        out.extend(self.unproved(&best));
        out
    }

    /// Reads of which nothing was shown: neither that they find something unwritten, nor that they do not.
    fn unproved(&self, told: &BTreeMap<Tile, &Unwritten>) -> Vec<Diagnostic> {
        let mut first: BTreeMap<Tile, Span> = BTreeMap::new();
        for &(span, tile) in &self.findings.unproved {
            let data = &self.kernel.tiles[tile];
            let earlier = self.earlier.iter().any(|d| {
                matches!(d.code, codes::UNINITIALISED | codes::MAYBE_UNINITIALISED)
                    && d.labels.iter().any(|l| l.span == data.span)
            });
            // What a slot holds when is a matter of the ring's order.
            let in_turn = self.kernel.sync == SyncMode::Manual && kind(self.kernel, tile) == TileKind::Ring;
            if data.hidden || earlier || in_turn || told.contains_key(&tile) {
                continue;
            }
            let slot = first.entry(tile).or_insert(span);
            if span.range().start < slot.range().start {
                *slot = span;
            }
        }
        first.into_iter().map(|(tile, span)| self.unproved_one(tile, span)).collect()
    }

    fn unproved_one(&self, tile: Tile, span: Span) -> Diagnostic {
        let data = &self.kernel.tiles[tile];
        let own = self.own(tile);
        let help = match zeros(self.kernel, tile) {
            // Zeros would overwrite what is there, or are there.
            _ if written_before(self.kernel, tile, span) => "read only the part that is written".to_owned(),
            Ok(zeros) => format!("start with `{zeros}`, or read only the part that is written"),
            Err(instead) => instead,
        };
        let message = format!("{own} may be read here before all of it is written");
        Diagnostic::warning(codes::MAYBE_UNINITIALISED, span, message)
            .with_label("not proved: each byte that this reads was written before")
            .with_secondary(data.span, "declared here; a tile starts without a value")
            .with_note(RUNS_ARE_WATCHED)
            .with_help(help)
    }

    fn own(&self, tile: Tile) -> String {
        let name = &self.kernel.tiles[tile].name;
        match kind(self.kernel, tile) {
            TileKind::One => format!("tile `{name}`"),
            TileKind::Array => format!("an element of `{name}`"),
            TileKind::Ring => format!("a slot of ring `{name}`"),
        }
    }

    fn unwritten_one(&self, u: &Unwritten) -> Diagnostic {
        let data = &self.kernel.tiles[u.tile];
        let placed = data.addr == AddrKind::Auto;
        let part = elements_in(Shape::new(data.ty, placed), u.rows, u.cols, &u.bytes);
        let own = self.own(u.tile);
        let region = match part {
            Some((rows, cols)) => match (rows != (0, data.ty.rows), cols != (0, data.ty.cols)) {
                (false, false) => None,
                (false, true) => Some(span_of("column", cols)),
                (true, false) => Some(span_of("row", rows)),
                (true, true) => Some(format!("{}, {}", span_of("row", rows), span_of("column", cols))),
            },
            None => Some("a part".to_owned()),
        };
        let count: u64 = u.bytes.iter().map(|(s, e)| e - s).sum();
        // Not all that lies between the first and the last.
        let holes = part.is_some_and(|(rows, cols)| {
            let all = |(start, end): (u32, u32)| u64::from(end - start);
            count < all(rows) * all(cols) * data.ty.dtype.size() as u64 && data.ty.dtype != ptoc_tensor::DType::Bool
        });
        let region = match region {
            Some(r) if holes => Some(format!("some of {r}")),
            None if holes => Some("some".to_owned()),
            region => region,
        };
        let what = region.as_ref().map_or(own.clone(), |r| format!("{r} of {own}"));
        let bytes = |is: &str| {
            format!(
                "{count} of the bytes that are read {is}, the first of them byte {:#x} of the tile",
                first(&u.bytes)
            )
        };
        let help = match zeros(self.kernel, u.tile) {
            Ok(zeros) => format!("write it before, or start with `{zeros}`, or read only the part that is written"),
            Err(instead) => instead,
        };
        let declared = "declared here; a tile starts without a value";
        if data.hidden {
            return self.made_by_the_compiler(u, &what, &bytes("are unwritten"));
        }
        if u.always || u.sure {
            let message = match region {
                None => format!("{own} is read here, and nothing has written it"),
                Some(r) => format!("{own} is read here, and nothing has written {r} of it"),
            };
            return Diagnostic::error(codes::UNINITIALISED, u.span, message)
                .with_label("reads what is unwritten")
                .with_secondary(data.span, declared)
                .with_note(bytes(if count == 1 { "is unwritten" } else { "are unwritten" }))
                .with_help(help);
        }
        if u.beyond {
            let message = format!("nothing has written {what}, which may be read here");
            return Diagnostic::warning(codes::MAYBE_UNINITIALISED, u.span, message)
                .with_label("reads it, if all that can be valid is")
                .with_secondary(data.span, declared)
                .with_note(bytes("would be unwritten"))
                .with_note(RUNS_ARE_WATCHED)
                .with_help(help);
        }
        let label = match u.empty_loop {
            true => "not written if the loop before does not run",
            false => "not written on every path that leads here",
        };
        Diagnostic::warning(codes::MAYBE_UNINITIALISED, u.span, format!("{what} may be read here before being written"))
            .with_label(label)
            .with_secondary(data.span, declared)
            .with_note(bytes("may be unwritten"))
            .with_note(RUNS_ARE_WATCHED)
            .with_help(help)
    }

    /// Scratch of the compiler's own that is read unwritten.
    fn made_by_the_compiler(&self, u: &Unwritten, what: &str, bytes: &str) -> Diagnostic {
        let message = format!("a bug of ptoc: {what}, which the compiler made, is read before it is written");
        Diagnostic::error(codes::UNINITIALISED, u.span, message)
            .with_label("the code for this reads it")
            .with_note(bytes)
            .with_note("the program is not at fault: please report it")
    }

    // ---- the destination is a source ------------------------------------------------------------------------------

    fn own_sources(&self) -> Vec<Diagnostic> {
        let told = self.findings.own_sources.iter().filter_map(|o| {
            let violation = ptoc_isa::check_overlap(self.target, o.instr, o.source)?;
            let (dst, src) = (&self.kernel.tiles[o.tiles.0], &self.kernel.tiles[o.tiles.1]);
            let memory = memories::name(self.target, dst.ty.loc);
            let mut d = violation.diagnostic(o.span);
            if o.bytes.is_none() {
                let row = o.instr.get();
                let operand = row.operands.get(o.source).map_or("a", |s| s.name);
                d = Diagnostic::warning(
                    codes::OVERLAPPING_OPERANDS,
                    o.span,
                    format!(
                        "the destination of {} may have bytes of its operand `{operand}`, and must not have any",
                        row.name
                    ),
                )
                .with_note(format!(
                    "{} reads its operands again after it has begun to write; which bytes these are is known when the \
                     kernel runs, and the interpreter ends a run in which they meet (PA-1015)",
                    row.name
                ))
                .with_help("write to another tile, or demand with `where` what keeps the two apart");
            }
            d = d.with_label(match o.tiles.0 == o.tiles.1 {
                true if o.bytes.is_none() => {
                    format!("not proved: two windows of `{}` with no element in common", dst.name)
                }
                false if o.bytes.is_none() => format!("not proved: `{}` has no byte of `{}`", dst.name, src.name),
                true => format!("two windows of `{}` that have elements in common", dst.name),
                false => format!("`{}` has bytes of `{}`", dst.name, src.name),
            });
            for data in [dst, src].into_iter().take(1 + usize::from(o.tiles.0 != o.tiles.1)) {
                d = d.with_secondary(data.span, format!("`{}`: {}", data.name, data.ty));
            }
            let Some((start, end)) = o.bytes else { return Some(d) };
            Some(match dst.addr {
                AddrKind::Auto => d,
                _ => d.with_note(format!("bytes {start:#x}-{:#x} of {memory} belong to both", end - 1)),
            })
        });
        told.collect()
    }

    // ---- overlap -------------------------------------------------------------------------------------------------

    fn overlaps(&self) -> Vec<Diagnostic> {
        // One for a pair of tiles: the first read that finds the other's bytes.
        let mut pairs: BTreeMap<(Tile, Tile), &Overlap> = BTreeMap::new();
        for o in &self.findings.overlaps {
            let by = self.findings.def(o.by);
            let (x, y) = (&self.kernel.tiles[o.tile], &self.kernel.tiles[by.tile]);
            // The plan checker has an error for these (E0452).
            if !x.ty.loc.bytes_observable() && x.ty != y.ty && fixed(x) && fixed(y) {
                continue;
            }
            let pair = (o.tile.min(by.tile), o.tile.max(by.tile));
            let slot = pairs.entry(pair).or_insert(o);
            if slot.maybe && !o.maybe {
                *slot = o;
            }
        }
        let mut all: Vec<&Overlap> = pairs.into_values().collect();
        all.sort_by_key(|o| (self.findings.def(o.by).span.range().start, o.read.range().start));
        let one = |(n, o): (usize, &Overlap)| match o.maybe {
            true => self.overlap_perhaps(o),
            false => self.overlap(o, n < REPAIRED),
        };
        all.into_iter().enumerate().map(one).collect()
    }

    /// Two tiles of which nobody knows whether they meet.
    fn overlap_perhaps(&self, o: &Overlap) -> Diagnostic {
        let (by, lost) = (self.findings.def(o.by), self.findings.def(o.lost));
        let (x, y) = (&self.kernel.tiles[o.tile], &self.kernel.tiles[by.tile]);
        let (a, b) = (self.element(lost), self.element(by));
        let mut d = Diagnostic::warning(
            codes::OVERLAP,
            by.span,
            format!("writing `{b}` may destroy `{a}`, which is read afterwards"),
        )
        .with_label(format!("not proved: `{b}` keeps off the bytes of `{a}`"));
        for (span, message) in [
            (lost.span, format!("`{a}` gets its value here")),
            (o.read, format!("`{a}` is read here, and may hold what was written as `{b}`")),
        ] {
            if span != by.span {
                d = d.with_secondary(span, message);
            }
        }
        d = d.with_secondary(x.span, self.describe(lost));
        if by.tile != o.tile {
            d = d.with_secondary(y.span, self.describe(by));
        }
        let dynamic = [(x, &a), (y, &b)].into_iter().find(|(t, _)| matches!(t.addr, AddrKind::Dynamic));
        let (note, help) = match dynamic {
            Some((_, name)) => (
                format!("the address of `{name}` is known when the kernel runs"),
                "demand addresses of the launch that keep the two apart, with `where`".to_owned(),
            ),
            None => (
                "which bytes are written or read is known when the kernel runs".to_owned(),
                format!("put `{b}` where no byte of `{a}` is"),
            ),
        };
        d.with_note(format!("{note}; the interpreter watches every byte, and ends the run if one is lost (PA-1014)"))
            .with_help(help)
    }

    fn overlap(&self, o: &Overlap, repair: bool) -> Diagnostic {
        let (by, lost) = (self.findings.def(o.by), self.findings.def(o.lost));
        let (x, y) = (&self.kernel.tiles[o.tile], &self.kernel.tiles[by.tile]);
        let memory = memories::name(self.target, x.ty.loc);
        let (a, b) = (self.element(lost), self.element(by));
        let mut d = Diagnostic::warning(
            codes::OVERLAP,
            by.span,
            format!("writing `{b}` destroys `{a}`, which is read afterwards"),
        )
        .with_label(format!("writes `{b}` over it"));
        for (span, message) in [
            (lost.span, format!("`{a}` gets its value here")),
            (o.read, format!("`{a}` is read here, and holds what was written as `{b}`")),
        ] {
            if span != by.span {
                d = d.with_secondary(span, message);
            }
        }
        d = d.with_secondary(x.span, self.describe(lost));
        if by.tile != o.tile {
            d = d.with_secondary(y.span, self.describe(by));
        }
        let (start, end) = o.bytes;
        let bytes = format!("bytes {start:#x}..{end:#x} of {memory} belong to both");
        let wherever = match by.somewhere {
            true => format!(", at every address that `{b}` may have here"),
            false => String::new(),
        };
        d = d.with_note(format!("{bytes}{wherever}"));
        let tiles = if by.tile < o.tile { [o.tile, by.tile] } else { [by.tile, o.tile] };
        let found = tiles.into_iter().filter(|_| repair).find_map(|t| {
            free_address(self.kernel, t, self.target, self.trial).map(|at| (&self.kernel.tiles[t].name, at))
        });
        if let Some((name, at)) = found {
            d = d.with_help(format!("put `{name}` at {at:#x}, the first address where it is in nobody's way"));
        }
        if by.tile == o.tile {
            return d.with_help(format!("put the tiles of `{}` at least {:#x} bytes apart", x.name, x.ty.bytes()));
        }
        // `at` is for what is declared later.
        let (first, second) = if by.tile < o.tile { (y, x) } else { (x, y) };
        if by.somewhere {
            d = d.with_help(format!("put `{b}` elsewhere, at addresses at which it has no byte of `{a}`"));
        } else if x.ty.loc.bytes_observable() {
            d = d.with_help(format!(
                "if they share bytes on purpose, say so: `let {} = tile .. at {};`",
                second.name, first.name
            ));
        }
        d
    }

    /// `x`, `x[1]`
    fn element(&self, def: &DefInfo) -> String {
        let data = &self.kernel.tiles[def.tile];
        match def.element {
            Some(n) if data.count > 1 => format!("{}[{n}]", data.name),
            _ => data.name.to_string(),
        }
    }

    /// Type, bytes and lifetime.
    fn describe(&self, def: &DefInfo) -> String {
        let data = &self.kernel.tiles[def.tile];
        let mut out = format!("`{}`: {}", data.name, data.ty);
        if let AddrKind::Fixed(at) = &data.addr
            && let Some(start) = def.element.and_then(|n| at.get(n as usize))
        {
            out.push_str(&format!(", bytes {start:#x}..{:#x}", start.saturating_add(data.ty.bytes())));
        }
        let live = liveness(self.kernel);
        if let Some(life) = live.intervals[def.tile] {
            let at = |p: u32| live.spans.get(p as usize).copied();
            let (start, end) = (at(life.start), at(life.end).map(Span::after));
            let line = |s: Option<Span>| s.and_then(|s| self.author.line(s));
            match (line(start), line(end)) {
                (Some(a), Some(b)) if a == b => out.push_str(&format!(", used on line {a}")),
                (Some(a), Some(b)) => out.push_str(&format!(", used on lines {a} to {b}")),
                _ => {}
            }
        }
        out
    }

    // ---- dead stores ---------------------------------------------------------------------------------------------

    fn dead(&self) -> Vec<Diagnostic> {
        // What was destroyed is an overlap and no dead store.
        let lost: FxHashSet<Def> = self.findings.overlaps.iter().map(|o| o.lost).collect();
        // A statement stands for several: functions are inlined, an array's elements are written in turn.
        let mut places: FxHashMap<(Span, Tile), Option<&DefInfo>> = FxHashMap::default();
        let mut used: FxHashSet<Span> = FxHashSet::default();
        // Where each tile is written, if that is one place.
        let mut place: FxHashMap<Tile, Option<Span>> = FxHashMap::default();
        for def in &self.findings.defs {
            let one = place.entry(def.tile).or_insert(Some(def.span));
            *one = one.filter(|span| *span == def.span);
        }
        for (n, def) in self.findings.defs.iter().enumerate() {
            let data = &self.kernel.tiles[def.tile];
            let exempt = data.hidden || data.name.starts_with('_') || lost.contains(&Def(n as u32 + FIRST_DEF));
            // Of a name that nothing uses at all, the one with the source has spoken (W0110).
            let alone = || place.get(&def.tile) == Some(&Some(def.span));
            let exempt = exempt || (self.author.introduces(data.span, def.span) && alone());
            if def.used || exempt {
                used.insert(def.span);
            } else {
                places.entry((def.span, def.tile)).or_insert(Some(def));
            }
        }
        let mut dead: Vec<&DefInfo> =
            places.into_iter().filter(|((span, _), _)| !used.contains(span)).filter_map(|(_, d)| d).collect();
        dead.sort_by_key(|d| (d.span.range().start, d.tile));
        dead.dedup_by_key(|d| d.span);
        dead.into_iter().map(|d| self.dead_one(d)).collect()
    }

    fn dead_one(&self, def: &DefInfo) -> Diagnostic {
        let data = &self.kernel.tiles[def.tile];
        let mut d = Diagnostic::warning(
            codes::DEAD_STORE,
            def.span,
            format!("nothing reads what is written to `{}` here", data.name),
        )
        .with_label("this value is never read");
        match def.overwritten.filter(|_| !def.at_end) {
            Some(span) if span == def.span => {
                d = d.with_note("the next iteration overwrites it before anything reads it")
            }
            Some(span) => d = d.with_secondary(span, "overwritten here, before anything reads it"),
            None if def.at_end => d = d.with_note("the block ends before anything reads it"),
            None => {
                d = d
                    .with_note(format!("`{}` is declared anew, or the block ends, before anything reads it", data.name))
            }
        }
        match self.author.removal(def.span) {
            Some(edit) => d.with_edits("remove the statement", vec![edit]),
            None => d.with_help(format!("remove it, or begin the name with `_` to keep it: `_{}`", data.name)),
        }
    }
}

/// Whether a statement before this one writes the whole valid shape of the tile.
fn written_before(kernel: &Kernel, tile: Tile, span: Span) -> bool {
    fn find(kernel: &Kernel, constants: &Constants, region: &[Stmt], tile: Tile, span: Span) -> bool {
        let whole = |(access, r, part): &(AccessMode, TileRef, TouchedPart)| {
            let all = r.tile == tile && r.element.is_none() && r.origin.is_none();
            all && *access == AccessMode::Write && matches!(part, TouchedPart::Valid)
        };
        region.iter().any(|stmt| {
            stmt.span.range().start < span.range().start && touches(kernel, constants, stmt).iter().any(whole)
                || stmt.op.regions().any(|r| find(kernel, constants, r, tile, span))
        })
    }
    find(kernel, &constants(kernel), &kernel.body, tile, span)
}

fn fixed(data: &ptoc_ir::tile::TileData) -> bool {
    matches!(data.addr, AddrKind::Fixed(_))
}

fn first(bytes: &[Bytes]) -> u64 {
    bytes.first().map_or(0, |b| b.0)
}

/// `column 3`, `columns 32 to 63`
fn span_of(what: &str, (start, end): (u32, u32)) -> String {
    match end - start {
        1 => format!("{what} {start}"),
        _ => format!("{what}s {start} to {}", end - 1),
    }
}
