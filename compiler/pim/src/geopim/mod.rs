//! GeoPIM: a kernel of TSAMPLEs becomes a descriptor, a parameter entry for each query, and the driver's three
//! commands.
//!
//! A unit goes through its entries by itself, so the kernel must ask for what the units' registers can say: query `q`
//! of batch item `b` samples the item's map, takes its own row of `geo`, `attn` and `offs`, and leaves its result in
//! its own row of the output; and the blocks must give each unit queries that follow each other. What differs is an
//! error with both numbers.

mod map;
mod operands;
mod queries;
mod steps;

use crate::eval::BlockScalars;
use crate::rows::FreeRows;
use crate::{LaunchFragment, Lines, advice};
use operands::{Form, counts, dense, forms};
use ptoc_diagnostics::{Diagnostic, Span, codes};
use ptoc_ir::tile::{Coord, Kernel};
use ptoc_isa::{GeoUnit, Target, UnitKind};
use ptoc_pim_stream::ArrayPlacement;
use ptoc_pim_stream::stream::{Items, MapLayout};
use ptoc_pim_stream::unit::{GeoPim, UnitConfig};
use queries::{Order, Query, in_order, queries};

type Refused = Box<Diagnostic>;

fn refuse<T>(code: ptoc_diagnostics::Code, span: Span, message: String, help: &str) -> Result<T, Refused> {
    Err(Box::new(Diagnostic::error(code, span, message).with_help(help)))
}

/// Compiles a launch, whose tensors go to these rows.
pub fn compile(
    kernel: &Kernel,
    values: &[u64],
    target: &Target,
    lines: Lines<'_>,
    rows: &FreeRows,
) -> Result<LaunchFragment, Refused> {
    let queries = queries(kernel, values, target)?;
    if BlockScalars::new(kernel, values).grid().contains(&0) {
        return Ok(LaunchFragment::default());
    }
    let Some(first) = queries.first() else {
        let message = "no block samples anything: there is nothing for units to do".into();
        return refuse(codes::UNIT_CANNOT, kernel.span, message, &advice::host(kernel));
    };
    let plan = Plan::new(kernel, values, target, &queries, first)?;
    plan.piece(lines, rows.clone())
}

/// The unit that runs a block; `None` if the author does not say.
fn unit_of(kernel: &Kernel, target: &Target, at: &[i64]) -> Option<i64> {
    unit_at(target, kernel.on.as_ref()?.at(at))
}

/// The unit at these coordinates, counted through bank groups, pseudo-channels and channels.
fn unit_at(target: &Target, c: [i64; 8]) -> Option<i64> {
    let d = target.device.as_ref()?;
    let of = |coord: Coord| c[coord as usize];
    let pch = of(Coord::Channel) * i64::from(d.pseudo_channels) + of(Coord::Pch);
    let group = pch * i64::from(d.bank_groups) + of(Coord::Bg);
    Some(group * i64::from(d.banks) + of(Coord::Bank) + of(Coord::Unit))
}

/// What the descriptor, the entries and the placements say.
struct Plan<'k> {
    kernel: &'k Kernel,
    target: &'k Target,
    /// Tensors by number: map, geo, attn, offs, output.
    tensors: [Option<u32>; 5],
    /// Their dimensions.
    forms: [Option<Form>; 5],
    first: &'k Query,
    /// The first unit, units of a batch item, queries of a unit, batch items.
    first_unit: u32,
    units: u32,
    queries: u32,
    batch: u32,
    size: [u32; 3],
    layout: MapLayout,
    map: ArrayPlacement,
    map_rows: u32,
    /// Whose maps a bank holds.
    items: Items,
}

impl<'k> Plan<'k> {
    fn new(
        kernel: &'k Kernel,
        values: &[u64],
        target: &'k Target,
        queries: &[Query],
        first: &'k Query,
    ) -> Result<Plan<'k>, Refused> {
        let numbers = BlockScalars::new(kernel, values);
        let mut shapes = Vec::new();
        for t in kernel.tensors.values() {
            let shape: Option<Vec<u32>> = t.shape.iter().map(|v| u32::try_from(numbers.index(*v)).ok()).collect();
            let Some(shape) = shape else {
                return refuse(
                    codes::UNIT_CANNOT,
                    t.span,
                    format!("`{}` is too large for the memory", t.name),
                    &advice::host(kernel),
                );
            };
            shapes.push(shape);
        }
        let tensors = [
            Some(first.map.tensor),
            Some(first.geo.tensor),
            Some(first.attn.tensor),
            first.offs.as_ref().map(|w| w.tensor),
            first.out.as_ref().map(|w| w.tensor),
        ];
        let [h, w, c] = <[i64; 3]>::try_from(first.map.shape.clone()).unwrap_or([0; 3]);
        let size = [h, w, c].map(|n| u32::try_from(n).unwrap_or(0));
        for (n, q) in queries.iter().enumerate() {
            dense(kernel, n, q, first)?;
        }
        let forms = forms(kernel, &shapes, first)?;
        let items = forms[0].as_ref().map_or(0, Form::count).max(1);
        let (total, item) = (queries.len() as i64, h * w * c);
        counts(kernel, &forms, first, total, items)?;
        let batch = u32::try_from(items).unwrap_or(u32::MAX);
        let (per_item, first_unit) = (total / items, first.unit);
        let each = queries.iter().take_while(|q| q.unit == first_unit).count() as i64;
        let units = (per_item + each - 1) / each;
        in_order(kernel, queries, first, &Order { per_item, each, units, item })?;
        let [Ok(unit @ 0), Ok(units), Ok(queries)] = [first_unit, units, each].map(u32::try_from) else {
            let message = format!("the first query is on unit {first_unit}, and its operands lie from unit 0 on");
            let help = "let `on` give the first block that samples to unit 0";
            return refuse(codes::UNIT_QUERIES, first.span, message, help);
        };
        let mut plan = Plan {
            kernel,
            target,
            tensors,
            forms,
            first,
            first_unit: unit,
            units,
            queries,
            batch,
            size,
            layout: MapLayout::Pixels,
            map: ArrayPlacement::default(),
            map_rows: 0,
            items: Items::All,
        };
        plan.place_map()?;
        Ok(plan)
    }
}

/// The numbers of the target's units, which are GeoPIM's.
fn geo_unit(target: &Target, span: Span) -> Result<GeoUnit, Refused> {
    match target.unit.map(|u| u.kind) {
        Some(UnitKind::GeoPim(unit)) => Ok(unit),
        _ => {
            refuse(codes::UNIT_CANNOT, span, format!("`{}` has no GeoPIM units", target.name), "use `--target geopim`")
        }
    }
}

/// The units of a target that has GeoPIM's.
pub fn unit(target: &Target, of: ptoc_isa::ProcessingUnit, geo: GeoUnit) -> UnitConfig {
    let buffer = target.capacity(ptoc_isa::Loc::Buf).min(1 << 20) as u32 / geo.buffers.max(1);
    UnitConfig::GeoPim(GeoPim {
        clock_mhz: of.clock,
        lanes: of.lanes,
        buffer_bytes: buffer,
        buffers: geo.buffers,
        acc_regs: (target.capacity(ptoc_isa::Loc::Vec) / 4).min(1 << 20) as u32,
        param_entries: geo.parameters,
        scratchpad_bytes: geo.scratchpad,
        coordinate_cycles: geo.coordinate_cycles,
        act_weight: geo.act_weight,
        // The language counts units through a bank group first; a kernel of the units has an `on`.
        spread: 0,
        ..GeoPim::default()
    })
}
