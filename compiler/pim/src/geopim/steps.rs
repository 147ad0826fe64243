//! The plan as steps of a stream: where operands and results lie beside the map, the descriptor, the entries and the
//! commands; the order of a query's loops that hits open rows most ([`loop_order`]).

use super::operands::Role;
use super::queries::Query;
use super::{Plan, Refused, geo_unit, refuse};
use crate::place::{last_slots, leaf, rows, slot_size, slots, within};
use crate::rows::{FreeRows, Laid};
use crate::{LaunchFragment, Lines, TensorPlace, advice};
use ptoc_abi::Coord;
use ptoc_diagnostics::{Diagnostic, codes};
use ptoc_isa::{GeoUnit, Oob, Target};
use ptoc_pim_stream::driver::{CommandKind, DriverCommand};
use ptoc_pim_stream::placement::{ArrayPlacement, Leaf};
use ptoc_pim_stream::stream::*;
use std::collections::BTreeSet;

impl Plan<'_> {
    /// An operand or result in slots of `size` bursts, one a query.
    fn slotted(&self, role: Role, size: u32, inner: &[Vec<Leaf>]) -> Option<ArrayPlacement> {
        // The last row of an item's only unit may be filled in part: nothing of the dimension comes behind.
        let of_unit = if self.units == 1 { last_slots } else { slots };
        let mut queries = of_unit(self.queries, size, self.row())?;
        queries.push(leaf(self.units, Coord::Unit, 1));
        let items = (i64::from(self.batch), vec![leaf(self.batch, Coord::Unit, self.units)]);
        let form = self.forms[role as usize].as_ref()?;
        let dims = form.dims([items, (form.count() / i64::from(self.batch), queries)], inner)?;
        Some(ArrayPlacement { dims, row: 0, replicated: false, ..ArrayPlacement::default() })
    }

    pub(super) fn piece(&self, lines: Lines<'_>, mut memory: FreeRows) -> Result<LaunchFragment, Refused> {
        let row = self.row();
        let bytes = u64::from(row) * 32;
        let q = self.first;
        let place = lines(q.span);
        let [map, geo, attn, offs, out] = self.tensors;
        let (Some(map), Some(geo), Some(attn), Some(out)) = (map, geo, attn, out) else {
            return refuse(
                codes::UNIT_CANNOT,
                q.span,
                "a query needs a map, a line, weights and a result".into(),
                &advice::host(self.kernel),
            );
        };
        // The entries and the units' counters decide where these lie.
        for tensor in [Some(geo), Some(attn), offs, Some(out)].into_iter().flatten() {
            let Some(t) = self.kernel.tensors.values().nth(tensor as usize).filter(|t| t.place.is_some()) else {
                continue;
            };
            let message =
                format!("`at` is for the map: where `{}` lies follows from which unit has which query", t.name);
            return refuse(
                codes::UNIT_QUERIES,
                t.span,
                message,
                "leave `at` out; lines, weights, offsets and results are put beside their queries, one behind the \
                other",
            );
        }
        let samples = q.samples();
        if samples == 0 {
            let message = "a unit takes at least one sample a query".into();
            return refuse(
                codes::UNIT_QUERIES,
                q.span,
                message,
                "without samples the result is 0: let the host write it",
            );
        }
        let Ok(samples) = u16::try_from(samples) else {
            let message = format!("{samples} samples a query; a unit counts them in 16 bits, up to 65535");
            return refuse(
                codes::UNIT_QUERIES,
                q.span,
                message,
                "divide the samples between queries and add the results on the host",
            );
        };
        let n = u32::from(samples);
        let [_, _, channels] = self.size;
        let attn_size = slot_size(self.queries, n.div_ceil(16).max(1), row);
        let offs_size = slot_size(self.queries, n.div_ceil(8).max(1), row);
        let unit = geo_unit(self.target, q.span)?;
        let order = loop_order(unit, self.target, q)?;
        let tile = 8 * u64::from(unit.tile_channels);
        let half = self.target.capacity(ptoc_isa::Loc::Buf) / u64::from(unit.buffers.max(1));
        if tile > half {
            let message = format!("a tile of four pixels takes {tile} bytes; half of the tile buffer has {half}");
            return refuse(
                codes::UNIT_CANNOT,
                q.span,
                message,
                &format!(
                    "give the unit a tile buffer that holds it: `-D capacity.Buf={}`",
                    tile * u64::from(unit.buffers.max(1))
                ),
            );
        }
        let address = |r: u32| u64::from(r) * bytes;
        let of_attn = self.slotted(Role::Attn, attn_size, &[within(n, 16, 2, row)]);
        let of_offs = offs.map(|t| {
            let pairs = vec![within(n, 8, 4, row), vec![leaf(2, Coord::Byte, 2)]];
            (t, self.slotted(Role::Offs, offs_size, &pairs))
        });
        let of_out = self.slotted(Role::Out, channels / 16, &[within(channels, 16, 2, row)]);
        let (Some(of_attn), Some(of_out)) = (of_attn, of_out) else {
            let fits = row / (channels / 16).max(1);
            let message = format!(
                "{} results of {channels} channels do not fill whole rows: a unit writes them one behind the other, \
                 and a row holds {fits}",
                self.queries
            );
            let help = match row.is_multiple_of((channels / 16).max(1)) {
                true => format!("give each unit at most {fits} queries, or a multiple of {fits}"),
                false => format!("give each unit at most {fits} queries"),
            };
            return refuse(codes::UNIT_QUERIES, q.span, message, &help);
        };
        let mut all = 0u32;
        let mut laid = |tensor: Option<u32>, placement: ArrayPlacement, rows: u32| {
            all = all.saturating_add(rows);
            let row = memory.take(tensor, &placement, rows)?;
            Some(Laid { placement: ArrayPlacement { row, ..placement }, rows })
        };
        let need = |tensor: u32, laid: Laid| TensorPlace { tensor, laid, place };
        let map_laid = laid(Some(map), self.map.clone(), self.map_rows);
        let params_laid = laid(None, ArrayPlacement::default(), rows(self.queries, 1, row));
        let attn_laid = laid(Some(attn), of_attn, rows(self.queries, attn_size, row));
        let mut of_offsets = None;
        if let Some((tensor, placement)) = of_offs {
            let Some(placement) = placement else {
                return refuse(
                    codes::UNIT_QUERIES,
                    q.span,
                    "offsets are `[B, Q, S, 2]`".into(),
                    "give each query a row of them: `offs[b, q, _, _]`",
                );
            };
            of_offsets = Some((tensor, laid(Some(tensor), placement, rows(self.queries, offs_size, row))));
        }
        let out_laid = laid(Some(out), of_out, rows(self.queries, channels / 16, row));
        let full = || {
            let most = self.target.data_rows();
            let message = format!(
                "map, weights and results of a unit take {all} rows of {bytes} bytes; its bank has {most}, {} free in \
                 one piece ({} for the map)",
                memory.longest(),
                self.map_rows
            );
            let help = "every bank has a copy of the map: give a smaller one, or fewer items";
            Box::new(Diagnostic::error(codes::UNIT_MAP, q.span, message).with_help(help))
        };
        let (Some(map_laid), Some(params_laid), Some(attn_laid), Some(out_laid)) =
            (map_laid, params_laid, attn_laid, out_laid)
        else {
            return Err(full());
        };
        let [map_row, params_row, attn_row, out_row] =
            [&map_laid, &params_laid, &attn_laid, &out_laid].map(|l| l.placement.row);
        let mut wants = vec![need(map, map_laid), need(attn, attn_laid)];
        let mut offsets = (0, false);
        if let Some((tensor, laid)) = of_offsets {
            let Some(laid) = laid else { return Err(full()) };
            offsets = (address(laid.placement.row), true);
            wants.push(need(tensor, laid));
        }
        let mut steps = Vec::new();
        let mut step = |action: Action| steps.push(StreamStep { place, action });
        step(Action::Descriptor(Descriptor {
            feature: address(map_row),
            height: self.size[0],
            width: self.size[1],
            channels,
            tile_channels: unit.tile_channels,
            batch: self.batch,
            border: if q.border == Oob::Zero { Border::Zero } else { Border::Clamp },
            fold: q.fold,
            order,
            first_unit: self.first_unit,
            units: self.units * self.batch,
            queries: self.queries,
            map: self.layout,
            items: self.items,
        }));
        step(Action::Params(Params {
            geo,
            address: address(params_row),
            samples,
            weights: (address(attn_row), attn_size * 32),
            offsets: offsets.1.then_some((offsets.0, offs_size * 32)),
        }));
        let load = DriverCommand {
            params: address(params_row),
            weights: address(attn_row),
            offsets: offsets.0,
            has_offsets: offsets.1,
            ..DriverCommand::new(CommandKind::Load)
        };
        step(Action::Driver(load));
        step(Action::Driver(DriverCommand {
            queries: self.queries.min(u32::from(u16::MAX)) as u16,
            samples: n,
            output: address(out_row),
            offsets: offsets.0,
            has_offsets: offsets.1,
            ..DriverCommand::new(CommandKind::Execute)
        }));
        step(Action::Driver(DriverCommand { output: address(out_row), ..DriverCommand::new(CommandKind::Read) }));
        // Every row of the results is some query's.
        let (gives, in_part) = (vec![need(out, out_laid)], BTreeSet::new());
        Ok(LaunchFragment { wants, host: vec![geo], steps, gives, in_part, ..LaunchFragment::default() })
    }
}

/// The loops of a query: what `unit.order` asks for, or the order with the most row hits that the query allows.
fn loop_order(unit: GeoUnit, target: &Target, q: &Query) -> Result<LoopOrder, Refused> {
    let best = if q.fold { LoopOrder::Neighbour } else { LoopOrder::Tile };
    let order = LoopOrder::ALL.iter().copied().find(|o| o.name() == unit.order).unwrap_or(best);
    if order == LoopOrder::Neighbour && !q.fold {
        let message = "`unit.order=neighbour` without folded weights: a value in f16 takes its four neighbours at once";
        return refuse(
            codes::UNIT_CANNOT,
            q.span,
            message.into(),
            "write `fold = true`, or let `unit.order` be `tile` or `outer`",
        );
    }
    let (needed, there) = (2 * u64::from(unit.tile_channels), target.capacity(ptoc_isa::Loc::Vec) / 4);
    if order == LoopOrder::Outer && needed > there {
        let message = format!(
            "`unit.order=outer` needs {needed} accumulators, two tiles of {} channels; the unit has {there}",
            unit.tile_channels
        );
        return refuse(codes::UNIT_CANNOT, q.span, message, "the unit needs a larger `capacity.Vec`");
    }
    Ok(order)
}
