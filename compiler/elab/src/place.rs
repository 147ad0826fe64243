//! Where tensors and blocks are in the memory of a PIM target: `at LAYOUT [over unit]`, `grid (..) on LAYOUT`.
//!
//! A placement is a layout with named strides whose shape is the tensor's (or the grid's). Each leaf moves along one
//! coordinate, and coordinates do not carry; so a placement is right if it is right along every coordinate by itself.

use super::{ElabResult, Elaborator, ErrorReported};
use ptoc_diagnostics::{Diagnostic, Span, codes};
use ptoc_ir::tile::{Coord, ElementPlacement, PlaceLeaf, TensorId, Value};
use ptoc_isa::{Device, ProcessingUnit};
use ptoc_layout::{Layout, NAMED, Value as Algebra};
use ptoc_syntax::ast::{Expr, GridClause, Ident, ItemKind, KernelItem, Name, StmtKind};
use ptoc_tensor::DType;
use ptoc_values::Val;

/// What a placement is of.
struct Placed<'a> {
    /// "`W`", "the grid".
    what: String,
    /// Names of the modes, for messages.
    extents: &'a [Value],
    /// Bytes of an element; `None` for blocks.
    bytes: Option<i64>,
    /// The layout in the source.
    span: Span,
}

/// Whether the kernel is run by the host. Because it says so, or because the target's units have one instruction, and
/// it gives them no blocks.
pub fn on_host(item: &ptoc_syntax::ast::Item, target: &ptoc_isa::Target) -> bool {
    let ItemKind::Kernel(k) = &item.kind else { return false };
    let Some(unit) = &target.unit else { return false };
    let says = item.attrs.iter().any(|a| a.name.name == "on");
    let placed = k.body.stmts.iter().any(|s| match &s.kind {
        StmtKind::Grid { clauses, .. } => clauses.iter().any(|c| matches!(c, GridClause::On(_))),
        _ => false,
    });
    says || (matches!(unit.kind, ptoc_isa::UnitKind::GeoPim(_)) && !placed)
}

impl Elaborator<'_> {
    /// `at` of the arguments, once their extents are known and `where` holds for them.
    pub fn argument_places(&mut self, k: &KernelItem) -> ElabResult<()> {
        let mut failed = false;
        for p in &k.params {
            let Some(at) = &p.at else { continue };
            let found = self.b.kernel().tensors.iter().find(|(_, t)| t.name == p.name.name);
            let Some((id, _)) = found else { continue };
            failed |= self.tensor_place(id, &p.name.name, at, p.over.as_ref()).is_err();
        }
        if failed { Err(ErrorReported) } else { Ok(()) }
    }

    /// `at LAYOUT over unit` of one tensor.
    pub fn tensor_place(&mut self, id: TensorId, name: &Name, at: &Expr, over: Option<&Ident>) -> ElabResult<()> {
        self.has_banks(at.span, "`at` says where a tensor is in the memory of a PIM target")?;
        if let Some(over) = over.filter(|o| o.name != "unit") {
            let d = Diagnostic::error(
                codes::OVER_NO_UNIT,
                over.span,
                format!("`over {}`: nothing has copies there", over.name),
            )
            .with_label("no unit")
            .with_fix("a copy for every unit", over.span, "unit")
            .with_help("or leave it out: the tensor is there once");
            return self.report(d);
        }
        if self.unfinished() {
            return Ok(());
        }
        let data = &self.b.kernel().tensors[id];
        let (extents, dtype) = (data.shape.clone(), data.dtype);
        let placed =
            Placed { what: format!("`{name}`"), extents: &extents, bytes: Some(dtype_bytes(dtype)), span: at.span };
        let Some(mut place) = self.placement(at, &placed)? else { return Ok(()) };
        place.replicated = over.is_some();
        if let Some(over) = over {
            self.below_unit(&place, over, at)?;
        }
        self.b.kernel_mut().tensors[id].place = Some(place);
        Ok(())
    }

    /// What every unit has in its bank says nothing of which bank.
    fn below_unit(&mut self, place: &ElementPlacement, over: &Ident, at: &Expr) -> ElabResult<()> {
        let above = |l: &&PlaceLeaf| l.coord.is_some_and(|c| c < Coord::Row || c == Coord::Unit);
        let Some(leaf) = place.leaves().find(above) else { return Ok(()) };
        let coord = leaf.coord.map_or("bank", Coord::name);
        let d = Diagnostic::error(
            codes::OVER_NO_UNIT,
            at.span,
            format!("`{leaf}` moves from {coord} to {coord}, and `over unit` puts a copy into every unit's bank"),
        )
        .with_label(format!("names `{coord}`"))
        .with_secondary(over.span, "in every bank")
        .with_help("place it with `row`, `col` and `byte` alone, or leave `over unit` out");
        self.report(d)
    }

    /// `on LAYOUT`: the blocks' places.
    pub(crate) fn grid_place(&mut self, e: &Expr) -> ElabResult<()> {
        self.has_banks(e.span, "`on` gives the blocks of a grid to units in the memory of a PIM target")?;
        if self.b.kernel().host {
            let d = Diagnostic::error(codes::NO_BANKS, e.span, "a kernel of the host gives no blocks to units")
                .with_label("units")
                .with_help("leave `on` out, or the attribute `#[on(host)]`");
            return self.report(d);
        }
        if self.unfinished() {
            return Ok(());
        }
        let extents: Vec<Value> = self.b.kernel().grid.iter().map(|d| d.extent).collect();
        let placed = Placed { what: "the grid".into(), extents: &extents, bytes: None, span: e.span };
        let Some(place) = self.placement(e, &placed)? else { return Ok(()) };
        let inside = place.leaves().find(|l| matches!(l.coord, Some(Coord::Row | Coord::Col | Coord::Byte)));
        if let Some(leaf) = inside {
            let d = Diagnostic::error(
                codes::PLACE_COORDINATE,
                e.span,
                format!("`{leaf}`: a block runs on a unit, and not inside of a bank"),
            )
            .with_label("the place of blocks")
            .with_help(
                "blocks are placed along `unit`, `bank`, `bg`, `pch` and `channel`; a stride of 0 is one after the \
                other",
            );
            return self.report(d);
        }
        self.b.kernel_mut().on = Some(place);
        Ok(())
    }

    /// Whether it is settled already that nothing comes of this instance. Placements would only add to the noise then.
    fn unfinished(&self) -> bool {
        self.where_failed
            || !self.waits.is_empty()
            || !self.specialised.iter().all(|(n, _)| self.bindings.fixed.contains_key(n))
    }

    fn has_banks(&mut self, span: Span, what: &str) -> ElabResult<()> {
        if self.target.has_banks() {
            return Ok(());
        }
        let d = Diagnostic::error(codes::NO_BANKS, span, format!("{what}, and {} is none", self.target.name))
            .with_label("for PIM targets")
            .with_note("the PIM targets are `geopim` and `hbm-pim`")
            .with_help("choose one with `--target`, or leave the placement out");
        self.report(d)
    }

    /// The layout as a placement, checked. `None`: it depends on something that was reported.
    fn placement(&mut self, e: &Expr, of: &Placed<'_>) -> ElabResult<Option<ElementPlacement>> {
        let v = self.expr(e)?;
        let layout = match self.algebra_of(&v) {
            Some(Algebra::Layout(l)) => l,
            _ if matches!(v, Val::Poison) => return Err(ErrorReported),
            _ => {
                let d = Diagnostic::error(
                    codes::TYPE_MISMATCH,
                    e.span,
                    format!("a placement is a layout, found {}", v.describe()),
                )
                .with_help("for example `(64, 16):(1@row, 2@byte)`");
                return self.report(d);
            }
        };
        let place = self.place_leaves(&layout, of)?;
        self.place_shape(&place, of)?;
        let (Some(device), Some(unit)) = (self.memory_device(), self.memory_unit()) else { return Ok(None) };
        self.place_ranges(&place, of, &device, &unit)?;
        if let Some(bytes) = of.bytes {
            self.place_bytes(&place, of, &device, bytes)?;
        }
        Ok(Some(place))
    }

    /// The target's device; also for kernels of the host.
    fn memory_device(&self) -> Option<Device> {
        self.target.device.clone()
    }

    /// The target's unit; also for kernels of the host, which see none.
    fn memory_unit(&self) -> Option<ProcessingUnit> {
        let built_in = || ptoc_isa::Target::all().iter().find(|t| t.name == self.target.name).and_then(|t| t.unit);
        self.target.unit.or_else(built_in)
    }

    /// Modes to dimensions: a grid or tensor of one dimension may have a layout of several modes.
    fn place_leaves(&mut self, layout: &Layout, of: &Placed<'_>) -> ElabResult<ElementPlacement> {
        let modes = match of.extents.len() {
            1 => vec![layout.clone()],
            n => {
                if layout.rank() != n || layout.is_leaf() {
                    let message = format!(
                        "{} has {}, its placement has {}",
                        of.what,
                        super::labels::count(n, "mode", "modes"),
                        if layout.is_leaf() { 1 } else { layout.rank() }
                    );
                    let d = Diagnostic::error(codes::PLACE_SIZE, of.span, message)
                        .with_label(format!("{layout}"))
                        .with_help("give a mode of the layout for each, in the same order");
                    return self.report(d);
                }
                layout.modes()
            }
        };
        let mut dims = Vec::new();
        for mode in &modes {
            let mut leaves = Vec::new();
            for (extent, stride) in mode.leaves() {
                let (Some(n), Some(scale)) = (extent.as_const(), stride.scale.as_const()) else {
                    let message =
                        format!("a placement is known when the kernel is compiled, and `{extent}:{stride}` is not");
                    return self.error(codes::NOT_CONSTANT, of.span, message);
                };
                let coord = match stride.basis[..] {
                    [k] => k.checked_sub(NAMED).and_then(|k| Coord::ALL.get(k)).copied(),
                    _ => None,
                };
                let moves = n > 1 && scale != 0;
                if moves && coord.is_none() {
                    let d = Diagnostic::error(
                        codes::PLACE_COORDINATE,
                        of.span,
                        format!("the stride of `{n}:{stride}` names no coordinate of the memory"),
                    )
                    .with_label(format!("`{stride}`: of what?"))
                    .with_note(format!("the coordinates are {}", coordinates()))
                    .with_help(format!("for example `{n}:{scale}@row`"));
                    return self.report(d);
                }
                if moves && scale < 0 {
                    let message = format!("`{n}:{stride}` goes below the first {}", coord.map_or("place", Coord::name));
                    let d = Diagnostic::error(codes::PLACE_RANGE, of.span, message).with_label("a negative stride");
                    return self.report(d);
                }
                leaves.push(match coord {
                    Some(c) if scale > 0 => PlaceLeaf { extent: n, coord: Some(c), stride: scale },
                    _ => PlaceLeaf { extent: n, coord: None, stride: 0 },
                });
            }
            dims.push(leaves);
        }
        Ok(ElementPlacement { dims, replicated: false })
    }

    /// Mode by mode the tensor's extents.
    fn place_shape(&mut self, place: &ElementPlacement, of: &Placed<'_>) -> ElabResult<()> {
        let shape = place.shape();
        for (k, &extent) in of.extents.iter().enumerate() {
            let want = self.static_int(&Val::Scalar(extent), of.span, "an extent")?.max(0);
            let have = shape.as_ref().map(|s| i128::from(s[k]));
            if have == Some(want) {
                continue;
            }
            let have = have.map_or("too many".to_string(), |n| n.to_string());
            let leaves: Vec<String> = place.dims[k].iter().map(|l| l.extent.to_string()).collect();
            let label = match &leaves[..] {
                [_] => format!("mode {k} has {have}"),
                leaves => format!("mode {k}: {} = {have}", leaves.join(" x ")),
            };
            let d = Diagnostic::error(
                codes::PLACE_SIZE,
                of.span,
                format!("mode {k} of {} has {want}, its placement has {have}", of.what),
            )
            .with_label(label)
            .with_help("the extents of a placement are those of what it places; say with `where` what must divide");
            return self.report(d);
        }
        Ok(())
    }

    /// Every coordinate is inside the device.
    fn place_ranges(
        &mut self,
        place: &ElementPlacement,
        of: &Placed<'_>,
        device: &Device,
        unit: &ProcessingUnit,
    ) -> ElabResult<()> {
        if place.names(Coord::Unit)
            && let Some(leaf) =
                place.leaves().find(|l| matches!(l.coord, Some(Coord::Channel | Coord::Pch | Coord::Bg)))
        {
            let coord = leaf.coord.map_or("bg", Coord::name);
            let d = Diagnostic::error(
                codes::PLACE_COORDINATE,
                of.span,
                format!("the placement of {} names both `unit` and `{coord}`", of.what),
            )
            .with_label(format!("`{leaf}`"))
            .with_help(format!("the number of a unit says in which {coord} it is: use one or the other"));
            return self.report(d);
        }
        let reach = |c: Coord| {
            place.reach(c).map(i128::from).unwrap_or(if place.leaves().any(|l| l.extent == 0) { 0 } else { i128::MAX })
        };
        let steps = i128::from(device.pseudo_channels);
        let ranges = [
            (Coord::Channel, reach(Coord::Channel), device.all_channels()),
            (
                Coord::Pch,
                reach(Coord::Pch).saturating_add(reach(Coord::Channel).saturating_mul(steps)),
                device.all_pseudo_channels(),
            ),
            (Coord::Bg, reach(Coord::Bg), device.bank_groups.into()),
            (
                Coord::Bank,
                reach(Coord::Bank),
                if place.names(Coord::Unit) { unit.banks.into() } else { device.banks.into() },
            ),
            (Coord::Row, reach(Coord::Row), device.rows.into()),
            (Coord::Col, reach(Coord::Col), device.bursts.into()),
            (Coord::Byte, reach(Coord::Byte), device.burst_bytes.into()),
            (Coord::Unit, reach(Coord::Unit), device.units(unit)),
        ];
        for (coord, last, range) in ranges {
            if last < i128::from(range) {
                continue;
            }
            // A channel is so many pseudo-channels further.
            let weight = |c: Option<Coord>| match c {
                c if c == Some(coord) => Some(1),
                Some(Coord::Channel) if coord == Coord::Pch => Some(i64::from(device.pseudo_channels)),
                _ => None,
            };
            let term = |l: &PlaceLeaf| Some(format!("{} * {}", l.extent - 1, l.stride * weight(l.coord)?));
            let terms: Vec<String> = place.leaves().filter_map(term).collect();
            let of_what = match coord {
                Coord::Channel | Coord::Pch | Coord::Unit => "has",
                Coord::Bg => "has in a pseudo-channel",
                Coord::Bank if place.names(Coord::Unit) => "has beside a unit",
                Coord::Bank => "has in a bank group",
                Coord::Row => "has in a bank for data",
                Coord::Col => "has in a row (bursts of 32 bytes)",
                Coord::Byte => "has in a burst",
            };
            let plural = match coord {
                Coord::Channel => "channels",
                Coord::Pch => "pseudo-channels",
                Coord::Bg => "bank groups",
                Coord::Bank => "banks",
                Coord::Row => "rows",
                Coord::Col => "columns",
                Coord::Byte => "bytes",
                Coord::Unit => "units",
            };
            let d = Diagnostic::error(
                codes::PLACE_RANGE,
                of.span,
                format!("the placement of {} needs {coord} {last}, and the last one is {}", of.what, range - 1),
            )
            .with_label(format!("{coord}: {} = {last}", terms.join(" + ")))
            .with_note(format!("{range} {plural} is what {} {of_what}", self.target.name));
            let over = u64::try_from((last + i128::from(range)) / i128::from(range.max(1))).unwrap_or(u64::MAX);
            return self.report(match (coord, of.bytes) {
                (Coord::Unit, None) if matches!(unit.kind, ptoc_isa::UnitKind::GeoPim(_)) => {
                    d.with_help(super::sample::several(over))
                }
                (Coord::Unit, None) => d.with_help(
                    "let blocks be larger, or give several to one unit, one after the other: a further mode of `on` \
                     with a stride of 0",
                ),
                _ => d,
            });
        }
        Ok(())
    }

    /// No element crosses the end of a burst, and no two share a byte.
    fn place_bytes(
        &mut self,
        place: &ElementPlacement,
        of: &Placed<'_>,
        device: &Device,
        bytes: i64,
    ) -> ElabResult<()> {
        if place.leaves().any(|l| l.extent == 0) {
            return Ok(());
        }
        let (last, burst) = (place.reach(Coord::Byte).unwrap_or(0), i64::from(device.burst_bytes));
        if last + bytes > burst {
            let d = Diagnostic::error(
                codes::PLACE_STRADDLES,
                of.span,
                format!("an element of {} would cross the end of a burst: byte {last} + {bytes} > {burst}", of.what),
            )
            .with_label(format!("elements have {bytes} bytes"))
            .with_help(format!("a burst has room for {} elements, {bytes}@byte apart", burst / bytes));
            return self.report(d);
        }
        // What moves nowhere has its elements on top of each other.
        for coord in std::iter::once(None).chain(Coord::ALL.map(Some)) {
            if let Some((a, b)) = collision(place, coord, bytes, i64::from(device.pseudo_channels)) {
                let show = |i: &[i64]| format!("[{}]", i.iter().map(i64::to_string).collect::<Vec<_>>().join(", "));
                let d = Diagnostic::error(
                    codes::PLACE_NOT_INJECTIVE,
                    of.span,
                    format!("two elements of {} would be on the same byte: {} and {}", of.what, show(&a), show(&b)),
                )
                .with_label(match coord {
                    None => "a stride of 0".to_string(),
                    Some(c) => format!("they have the same {c}, and all other coordinates are the same too"),
                })
                .with_note(format!("a placement is one-to-one; elements have {bytes} bytes"));
                return self.report(d);
            }
        }
        Ok(())
    }
}

/// Two elements that the leaves along one coordinate put on the same place, all other leaves being 0; `None` if there
/// are none. Along `byte` an element has so many places; a channel is as many pseudo-channels as it has.
fn collision(
    place: &ElementPlacement,
    coord: Option<Coord>,
    bytes: i64,
    pseudo_channels: i64,
) -> Option<(Vec<i64>, Vec<i64>)> {
    // (dimension, what the leaf's index is multiplied by in the dimension's, extent, stride)
    let mut leaves = Vec::new();
    for (d, dim) in place.dims.iter().enumerate() {
        let mut weight = 1i64;
        for leaf in dim {
            let stride = match (coord, leaf.coord) {
                (a, b) if a == b => Some(leaf.stride),
                (Some(Coord::Pch), Some(Coord::Channel)) => Some(leaf.stride * pseudo_channels),
                _ => None,
            };
            if let Some(stride) = stride.filter(|_| leaf.extent > 1) {
                leaves.push((d, weight, leaf.extent, stride));
            }
            weight = weight.saturating_mul(leaf.extent);
        }
    }
    if coord == Some(Coord::Channel) {
        return None;
    }
    let width = if coord == Some(Coord::Byte) { bytes } else { 1 };
    leaves.sort_by_key(|l| l.3);
    // Each stride beyond all that the smaller ones reach: one-to-one without looking.
    let mut reach = width - 1;
    let nested = leaves.iter().all(|&(_, _, extent, stride)| {
        let ok = stride > reach;
        reach = reach.saturating_add((extent - 1).saturating_mul(stride));
        ok
    });
    if nested {
        return None;
    }
    // Places are below the coordinate's range, so a collision comes up after as many elements at the latest.
    let mut seen: rustc_hash::FxHashMap<i64, Vec<i64>> = rustc_hash::FxHashMap::default();
    let mut digits = vec![0i64; leaves.len()];
    loop {
        let mut index = vec![0; place.dims.len()];
        let mut at = 0;
        for (&(d, weight, _, stride), &digit) in leaves.iter().zip(&digits) {
            index[d] += digit * weight;
            at += digit * stride;
        }
        for k in 0..width {
            if let Some(other) = seen.insert(at + k, index.clone()) {
                return Some((other, index));
            }
        }
        let mut k = 0;
        loop {
            let (_, _, extent, _) = *leaves.get(k)?;
            digits[k] += 1;
            if digits[k] < extent {
                break;
            }
            digits[k] = 0;
            k += 1;
        }
    }
}

fn dtype_bytes(dtype: DType) -> i64 {
    dtype.size() as i64
}

/// `channel`, `pch`, .. and `unit`
pub(crate) fn coordinates() -> String {
    let names: Vec<String> = Coord::ALL.iter().map(|c| format!("`{c}`")).collect();
    let (last, rest) = names.split_last().expect("there are eight");
    format!("{} and {last}", rest.join(", "))
}
