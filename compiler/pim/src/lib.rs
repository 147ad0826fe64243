//! Kernels for units in memory: tile IR of a program's launches becomes one command stream.
//!
//! All sizes are known, so a kernel is not translated but carried out in part: [`eval`] goes through every block,
//! computes indices, and hands each tile instruction with the elements that it touches to whoever knows the unit.
//! [`geopim`] makes of them queries for the units' address generators, [`hbm`] programs and column commands for units
//! that commands step, [`aim`] sums of products for units that share a buffer. What a unit cannot do is an error that
//! says who could. [`program`] puts the launches together: arrays stay in the memory from launch to launch, at [`rows`]
//! of their own.
//!
//! The crate knows no simulator: a [`ptoc_pim_stream::Stream`] is all that leaves it.

#![forbid(unsafe_code)]

mod advice;
pub mod aim;
pub mod eval;
pub mod geopim;
pub mod hbm;
pub mod holes;
pub mod movement;
mod place;
pub mod program;
pub mod rows;
pub mod slopes;

use hbm::usage::Usage;
use program::{Array, LaunchWork, PimProgram, ProgramLaunch};
use ptoc_diagnostics::{Diagnostic, Span, codes};
use ptoc_ir::tile::{Kernel, TensorDir};
use ptoc_isa::{Rounding, Target, UnitKind};
use ptoc_pim_stream::stream::{Role, SourceLine, StreamStep, TensorDecl};
use ptoc_pim_stream::unit::{Aim, HbmPim};
use ptoc_pim_stream::{Geometry, Stream, UnitConfig};
use rows::{FreeRows, Laid};
use std::collections::BTreeSet;

/// Where a span lies in the source: the number of its file from 1 and its line, or [`SourceLine::default`].
pub type Lines<'l> = &'l dyn Fn(Span) -> SourceLine;

/// A tensor of a launch in the memory, by its number in the kernel.
#[derive(Clone, Debug)]
pub struct TensorPlace {
    /// Which.
    pub tensor: u32,
    /// Where.
    pub laid: Laid,
    /// The source.
    pub place: SourceLine,
}

/// What a launch does with the memory. Arrays are the kernel's tensors by number.
#[derive(Clone, Debug, Default)]
pub struct LaunchFragment {
    /// Tensors that must be there with their values before it begins.
    pub wants: Vec<TensorPlace>,
    /// Tensors whose values the host must have: it brings them to the units itself.
    pub host: Vec<u32>,
    /// What is done.
    pub steps: Vec<StreamStep>,
    /// Tensors that are there afterwards.
    pub gives: Vec<TensorPlace>,
    /// Those of them that it does not store everywhere. They must have been there with their values, too.
    pub in_part: BTreeSet<u32>,
    /// Tensors that the host has with their values afterwards: its units give results to it.
    pub returns: Vec<u32>,
    /// Arrays that the steps have for themselves, numbered behind the kernel's tensors.
    pub temps: Vec<TensorDecl>,
    /// How much of the device it uses, where units work in lock step.
    pub usage: Option<Usage>,
}

/// Compiles one launch of a kernel by itself. `values` are those of the prologue (`ptoc_interp::prologue`), by number.
/// The caller fills in [`Stream::files`], whose names `lines` counts.
///
/// Errors: what the unit cannot do, each once.
pub fn compile(kernel: &Kernel, values: &[u64], target: &Target, lines: Lines<'_>) -> Result<Stream, Box<Diagnostic>> {
    let numbers = eval::BlockScalars::new(kernel, values);
    let mut arrays = Vec::new();
    for t in kernel.tensors.values() {
        let role = match t.dir {
            TensorDir::In => Role::In,
            TensorDir::Out => Role::Out,
            TensorDir::InOut => Role::InOut,
            TensorDir::Scratch => Role::Temp,
        };
        let shape: Option<Vec<u32>> = t.shape.iter().map(|v| u32::try_from(numbers.index(*v)).ok()).collect();
        let Some(shape) = shape else {
            let message = format!("`{}` is too large for the memory", t.name);
            return Err(Box::new(Diagnostic::error(codes::UNIT_CANNOT, t.span, message)));
        };
        arrays.push(Array { name: t.name.to_string(), dtype: t.dtype, shape, role, fill: None, span: t.span });
    }
    let launch = ProgramLaunch {
        kernel,
        values: values.to_vec(),
        arrays: (0..arrays.len() as u32).collect(),
        elsewhere: Vec::new(),
        work: LaunchWork::Units,
        span: kernel.span,
    };
    let program = PimProgram { arrays, launches: vec![launch], whole: false, resident: Vec::new() };
    program::compile(&program, target, lines).map(|l| l.stream)
}

/// How much of the device a launch of this kernel by itself would use; `None` where its units refuse it, or have no
/// lock step.
pub fn usage(kernel: &Kernel, values: &[u64], target: &Target) -> Option<Usage> {
    let g = geometry(target)?;
    if !matches!(target.unit.as_ref()?.kind, UnitKind::HbmPim(_)) {
        return None;
    }
    let rows = FreeRows::new(0..g.row, std::iter::empty());
    hbm::compile(kernel, values, target, &|_| SourceLine::default(), &rows).ok()?.usage
}

/// The kernel without what its author says of places: where its tensors are and who has a block. `None` if that is
/// nothing.
pub fn without_places(kernel: &Kernel) -> Option<Kernel> {
    let placed = kernel.on.is_some() || kernel.tensors.values().any(|t| t.place.is_some());
    placed.then(|| {
        let mut own = kernel.clone();
        own.on = None;
        own.tensors.values_mut().for_each(|t| t.place = None);
        own
    })
}

/// Compiles what a launch does, with its tensors at these rows. A tensor that lies where another launch says is taken
/// there, if the units can; else it is placed for this launch, and the program moves it.
fn piece(
    launch: &ProgramLaunch<'_>,
    target: &Target,
    lines: Lines<'_>,
    rows: &FreeRows,
) -> Result<LaunchFragment, Box<Diagnostic>> {
    let there = piece_of(launch.kernel, launch, target, lines, rows);
    let d = match there {
        Err(d) if !launch.elsewhere.is_empty() && d.code != codes::UNIT_CANNOT => d,
        other => return other,
    };
    let mut own = launch.kernel.clone();
    for (n, tensor) in (0..).zip(own.tensors.values_mut()) {
        if launch.elsewhere.contains(&n) {
            tensor.place = None;
        }
    }
    // Where the author says who runs the blocks, he means them to be where the data is.
    piece_of(&own, launch, target, lines, rows).map_err(|own| match launch.kernel.on.is_some() {
        true => Box::new(d.with_note("where tensors are that have no `at` here, other launches of the program say")),
        false => own,
    })
}

fn piece_of(
    kernel: &Kernel,
    launch: &ProgramLaunch<'_>,
    target: &Target,
    lines: Lines<'_>,
    rows: &FreeRows,
) -> Result<LaunchFragment, Box<Diagnostic>> {
    let (Some(unit), Some(device)) = (&target.unit, &target.device) else {
        let message = format!("`{}` has no units in memory", target.name);
        return Err(Box::new(Diagnostic::error(codes::UNIT_CANNOT, launch.span, message)));
    };
    match &unit.kind {
        UnitKind::GeoPim(_) => geopim::compile(kernel, &launch.values, target, lines, rows),
        UnitKind::HbmPim(hbm) => {
            hbm::described::fits(kernel, unit, hbm, device)?;
            let made = hbm::compile(kernel, &launch.values, target, lines, rows)?;
            hbm::described::uses_what_is_there(kernel, unit, &made)?;
            Ok(made)
        }
        UnitKind::Aim(aim) => {
            aim::fits(kernel, unit, aim, device)?;
            aim::compile(kernel, &launch.values, target, lines, rows)
        }
        UnitKind::Described => Err(hbm::described::only_described(kernel, target, unit)),
    }
}

/// Why no launch of a kernel can run on the units of a target, whatever its sizes, as far as that is seen without them.
pub fn refused_at_any_size(kernel: &Kernel, target: &Target) -> Option<Box<Diagnostic>> {
    let (unit, device) = (target.unit.as_ref()?, target.device.as_ref()?);
    match &unit.kind {
        _ if kernel.host => None,
        UnitKind::HbmPim(hbm) => {
            let fits = hbm::described::fits(kernel, unit, hbm, device);
            fits.err().or_else(|| hbm::refusals::at_any_size(kernel))
        }
        UnitKind::Aim(aim) => aim::fits(kernel, unit, aim, device).err().or_else(|| aim::at_any_size(kernel)),
        UnitKind::Described => Some(hbm::described::only_described(kernel, target, unit)),
        UnitKind::GeoPim(_) => None,
    }
}

/// The units of a target, as streams describe them.
fn unit(target: &Target) -> UnitConfig {
    let Some(of) = target.unit else { return UnitConfig::None };
    match of.kind {
        UnitKind::Described => UnitConfig::None,
        UnitKind::GeoPim(geo) => geopim::unit(target, of, geo),
        UnitKind::Aim(aim) => UnitConfig::Aim(Aim {
            clock_mhz: of.clock,
            buffer_bytes: aim.buffer,
            latency: aim.latency,
            round_products: u32::from(of.rounding == Rounding::Each),
            act_weight: aim.act_weight,
        }),
        UnitKind::HbmPim(hbm) => {
            UnitConfig::HbmPim(HbmPim { clock_mhz: of.clock, act_weight: hbm.act_weight, fence_data: hbm.fence_data })
        }
    }
}

/// Counts of a target's device, with the rows that data may have.
fn geometry(target: &Target) -> Option<Geometry> {
    let device = target.device.as_ref()?;
    Some(Geometry {
        channel: device.stacks * device.channels,
        pch: device.pseudo_channels,
        bg: device.bank_groups,
        bank: device.banks,
        row: target.data_rows(),
        col: device.bursts,
        burst: device.burst_bytes,
    })
}
