//! From the text of a target file to a [`Target`], every mistake located.

use super::base;
use super::raw::{RawDevice, RawHost, RawMove, RawSums, RawTarget, RawTimes, RawUnit, Text};
use super::shape::{self, ShapeMistake};
use super::{
    AimUnit, Device, GeoUnit, Gpu, HbmUnit, InstructionSet, Limits, MemorySpace, MoveRule, PipeTimes, Pipes,
    ProcessingUnit, Rounding, Stepping, Target, Triple, UnitKind, UnitOperation, UnitOperations,
};
use crate::math::Exponential;
use crate::{Loc, Pipe, lookup, text};
use ptoc_diagnostics::{Code, Diagnostic, FileId, Span, codes};
use ptoc_tensor::DType;
use ptoc_tensor::matrix_unit::SumProfile;
use std::collections::BTreeMap;
use std::ops::{Range, RangeInclusive};
use std::sync::Arc;
use toml::Spanned;

/// Factors that are no dtype: f32, rounded.
const TF32: &str = "tf32";

impl Target {
    /// Reads a target file; all its mistakes are reported, of its shape (E0652) and of its values (E0653).
    pub fn parse(file: FileId, text: &str) -> Result<Target, Vec<Diagnostic>> {
        Target::parse_with(file, text, &[])
    }

    /// The same where `family` and `instructions` may name one of these sets too.
    pub fn parse_with(file: FileId, text: &str, own: &[Arc<InstructionSet>]) -> Result<Target, Vec<Diagnostic>> {
        let based = base::read(file, text).map_err(|d| vec![*d])?;
        let mut reader = Reader::new(file);
        reader.base = based.base.map(|at| (text.len(), at));
        let (raw, mistakes) = shape::read(based.document);
        let told = |(at, message): &ShapeMistake| {
            Diagnostic::error(codes::TARGET_SYNTAX, reader.within(at.clone()), message.clone())
        };
        let mut errors: Vec<Diagnostic> = mistakes.iter().map(told).collect();
        let Some(raw) = raw else { return Err(errors) };
        reader.mended = !errors.is_empty();
        let target = reader.target(raw, own);
        // What stands for a wrong value is nobody's mistake.
        let spans: Vec<Option<Span>> = errors.iter().map(|d| d.span).collect();
        errors.extend(reader.errors.into_iter().filter(|d| !spans.contains(&d.span)));
        errors.sort_by_key(|d| d.span.map(|s| s.start));
        if errors.is_empty() { Ok(target) } else { Err(errors) }
    }
}

pub(super) fn to_span(file: FileId, range: Range<usize>) -> Span {
    let clamp = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    Span::new(file, clamp(range.start), clamp(range.end))
}

pub(super) fn first_line(message: &str) -> String {
    message.lines().next().unwrap_or("not a target file").to_string()
}

/// The tables `[unit]`, `[device]` and `[host]`, and where `[dram]` stands.
type MemoryTables = (Option<Spanned<RawUnit>>, Option<RawDevice>, Option<RawHost>, Option<Range<usize>>);

/// Bytes of the stores whose sizes other tables give: vectors of 16 bits in the register files, rows in the bank.
fn stores(unit: Option<&ProcessingUnit>, device: Option<&Device>) -> Vec<(Loc, u64)> {
    let mut out = Vec::new();
    if let Some(ProcessingUnit { kind: UnitKind::HbmPim(hbm), lanes, .. }) = unit {
        let file = u64::from(hbm.registers).saturating_mul(u64::from(*lanes)).saturating_mul(2);
        out.extend([(Loc::GrfA, file), (Loc::GrfB, file)]);
    }
    out.extend(device.map(|d| (Loc::Bank, u64::from(d.rows).saturating_mul(d.row_bytes()))));
    out
}

/// The family of units in the memory, and the instruction set that the interpreter and the host follow there.
const IN_MEMORY: (&str, &str) = ("pim", "a5");

/// Collects errors; a wrong value becomes a harmless one so that reading goes on.
pub(super) struct Reader {
    file: FileId,
    pub(super) errors: Vec<Diagnostic>,
    /// Bytes of the file, behind which the spans of its base lie, and where it names that.
    base: Option<(usize, Range<usize>)>,
    /// Bytes of stores that follow from the other tables of a target with units in memory.
    pub(super) follows: Vec<(Loc, u64)>,
    /// The list `dtypes` is right, so that what is missing from it is worth a report.
    dtypes_known: bool,
    /// Keys were taken out, so that what is missing may be one of them.
    mended: bool,
}

impl Reader {
    pub(super) fn new(file: FileId) -> Reader {
        Reader { file, errors: Vec::new(), base: None, follows: Vec::new(), dtypes_known: true, mended: false }
    }

    pub(super) fn error(&mut self, at: Range<usize>, message: String) -> &mut Diagnostic {
        self.coded(codes::TARGET_VALUE, at, message)
    }

    fn coded(&mut self, code: Code, at: Range<usize>, message: String) -> &mut Diagnostic {
        let span = self.within(at);
        self.errors.push(Diagnostic::error(code, span, message));
        self.errors.last_mut().expect("just pushed")
    }

    /// Where something stands; what stands in the base is meant by its name.
    fn within(&self, at: Range<usize>) -> Span {
        match &self.base {
            Some((end, base)) if at.start > *end => to_span(self.file, base.clone()),
            _ => to_span(self.file, at),
        }
    }

    fn target(&mut self, raw: RawTarget, own: &[Arc<InstructionSet>]) -> Target {
        if raw.name.get_ref().is_empty() || raw.name.get_ref().contains(char::is_whitespace) {
            self.error(raw.name.span(), "a target's name is one word".into());
        }
        let in_memory = raw.family.get_ref() == IN_MEMORY.0;
        let instructions = self.instructions(&raw, own);
        let before = self.errors.len();
        let dtypes = self.dtypes(&raw.dtypes);
        self.dtypes_known = self.errors.len() == before;
        let mask_unit = match self.dtype(&raw.mask_unit) {
            Some(d @ (DType::U8 | DType::U16 | DType::U32 | DType::U64)) => d,
            Some(d) => {
                self.error(raw.mask_unit.span(), format!("masks are packed into an unsigned type, and {d} is none"));
                DType::U8
            }
            None => DType::U8,
        };
        let triples = self.triples(&raw.cube.triples, &dtypes);
        let moves = self.moves(&raw.moves, &dtypes);
        let limits = Limits {
            matmul_extent: self.range(&raw.limits.matmul_extent),
            load_rows: self.rows(&raw.limits.load_rows),
            store_rows: self.rows(&raw.limits.store_rows),
            store_cols: self.range(&raw.limits.store_cols),
            fill_blocks: {
                let r = self.range(&raw.limits.fill_blocks);
                u64::from(*r.start())..=u64::from(*r.end())
            },
        };
        let tables = (raw.unit, raw.device, raw.host, raw.dram.map(|d| d.span()));
        let (unit, device, host_vec) = self.memory_side(in_memory, raw.name.span(), tables);
        self.follows = stores(unit.as_ref(), device.as_ref());
        let (memories, pools) = self.memories(raw.memory, raw.pool, in_memory);
        let pipes = Pipes {
            barrier: raw.pipes.barrier.iter().filter_map(|p| self.pipe(p)).collect(),
            flags: self.positive(&raw.pipes.flags),
            time: raw.pipes.time.as_ref().map(|t| self.times(t)),
        };
        let gpu = raw.gpu.as_ref().map(|g| {
            let [major, minor] = *g.capability.get_ref();
            let capability = match (u32::try_from(major), u32::try_from(minor)) {
                (Ok(major @ 1..), Ok(minor)) => (major, minor),
                _ => {
                    self.error(g.capability.span(), "a compute capability is [major, minor], as [9, 0]".into());
                    (1, 0)
                }
            };
            let cluster = g.cluster.as_ref().map_or(1, |n| self.positive(n));
            Gpu { capability, exponential: self.exponential(g.exponential.as_ref()), cluster }
        });
        let (rounded, others): (Vec<_>, Vec<_>) =
            raw.matrix_unit.iter().partition(|s| s.factors.get_ref().as_str() == TF32);
        let matrix_unit = others.into_iter().filter_map(|s| Some((self.unit_dtype(s)?, self.sums(s)))).collect();
        let tf32 = rounded.first().map(|s| self.sums(s));
        Target {
            name: raw.name.into_inner(),
            description: raw.description,
            instructions,
            dtypes,
            mask_unit,
            triples,
            moves,
            limits,
            pipes,
            gpu,
            matrix_unit,
            tf32,
            unit,
            device,
            pools,
            host_vec,
            memories,
        }
    }

    /// The set that the target names: by `instructions`, or as its family.
    fn instructions(&mut self, raw: &RawTarget, own: &[Arc<InstructionSet>]) -> Arc<InstructionSet> {
        let find =
            |name: &str| own.iter().find(|set| set.name == name).or_else(|| InstructionSet::named(name)).cloned();
        let builtin = || InstructionSet::builtin().map(|set| &**set);
        let names = || own.iter().map(|set| &**set).chain(builtin()).map(|set| format!("`{}`", set.name));
        let family = match raw.family.get_ref().as_str() {
            name if name == IN_MEMORY.0 => find(IN_MEMORY.1),
            name => find(name),
        };
        if family.is_none() {
            let known = text::list(names().chain([format!("`{}`", IN_MEMORY.0)]));
            self.error(raw.family.span(), format!("family `{}` is none of {known}", raw.family.get_ref()));
        }
        let named = raw.instructions.as_ref().map(|name| (name.span(), name.get_ref(), find(name.get_ref())));
        let named = named.map(|(at, name, found)| {
            if found.is_none() {
                let message = format!("there is no instruction set `{name}`: those there are {}", text::list(names()));
                self.error(at, message);
            }
            found
        });
        named.unwrap_or(family).or_else(|| InstructionSet::builtin().next().cloned()).expect("there are some")
    }

    fn times(&mut self, raw: &RawTimes) -> PipeTimes {
        let mut macs = Vec::new();
        for (size, n) in raw.macs.get_ref() {
            match size.get_ref().parse::<usize>() {
                Ok(size @ (1 | 2 | 4 | 8)) => macs.push((size, self.positive(n))),
                _ => {
                    self.error(size.span(), "multiply-adds are given by bytes of an element: 1, 2, 4 or 8".into());
                }
            }
        }
        macs.sort_unstable();
        if macs.is_empty() {
            self.error(raw.macs.span(), "`macs` gives multiply-adds a cycle for one size of elements at least".into());
        }
        PipeTimes {
            clock: self.positive(&raw.clock),
            cores: self.positive(&raw.cores),
            issue: self.positive(&raw.issue),
            sync: self.positive(&raw.sync),
            startup: self.by_pipe(&raw.startup, &Pipe::ALL),
            bytes: self.by_pipe(&raw.bytes, &[Pipe::V, Pipe::Mte1, Pipe::Mte2, Pipe::Mte3, Pipe::Fix]),
            macs,
        }
    }

    /// A number for each of `pipes`, and for no other.
    fn by_pipe(&mut self, raw: &Spanned<BTreeMap<Text, Spanned<i64>>>, pipes: &[Pipe]) -> [u32; 7] {
        let mut numbers = [0; 7];
        for (name, n) in raw.get_ref() {
            let Some(pipe) = self.pipe(name) else { continue };
            if !pipes.contains(&pipe) {
                self.error(name.span(), format!("{pipe} has no number here"));
            }
            numbers[pipe as usize] = self.positive(n);
        }
        let missing: Vec<Pipe> = pipes.iter().copied().filter(|&p| numbers[p as usize] == 0).collect();
        if !missing.is_empty() {
            self.error(raw.span(), format!("no number for {}", text::list(missing)));
        }
        numbers
    }

    fn pipe(&mut self, name: &Text) -> Option<Pipe> {
        let found = Pipe::from_name(name.get_ref());
        if found.is_none() {
            let error = self.error(name.span(), format!("`{}` is not a pipe", name.get_ref()));
            error.notes.push(format!("the pipes are {}", text::list(Pipe::ALL)));
        }
        found
    }

    fn dtype(&mut self, name: &Text) -> Option<DType> {
        let found = DType::from_name(name.get_ref()).filter(|d| *d != DType::Bool);
        if found.is_none() {
            let known = DType::ALL.into_iter().filter(|d| *d != DType::Bool);
            let near = text::nearest(name.get_ref(), known.clone().map(DType::name)).first().map(|n| n.to_string());
            let error = self.error(name.span(), format!("`{}` is not a dtype of tiles", name.get_ref()));
            error.notes.push(format!("the dtypes are {}", text::list(known)));
            if let Some(near) = near {
                *error = error.clone().with_help(format!("did you mean `{near}`?"));
            }
        }
        found
    }

    /// The exponential between products: the program's, unless PTX's instruction is named.
    fn exponential(&mut self, name: Option<&Text>) -> Exponential {
        let Some(name) = name else { return Exponential::Program };
        if name.get_ref() != "ex2.approx.ftz" {
            let message = format!("`{}` is no exponential; `ex2.approx.ftz` is the one of the GPU", name.get_ref());
            self.error(name.span(), message).notes.push("without this key it is the published program".into());
        }
        Exponential::SpecialFunctionUnit
    }

    /// How a matrix unit adds. Sums are of f32, and computed in 64 bits.
    /// The dtype of a matrix unit's factors.
    fn unit_dtype(&mut self, raw: &RawSums) -> Option<DType> {
        let factors = self.dtype(&raw.factors)?;
        if !matches!(factors, DType::F16 | DType::BF16 | DType::F8E4M3 | DType::F8E5M2) {
            self.error(raw.factors.span(), format!("factors are f16, bf16, tf32 or 8-bit floats, and not {factors}"));
        }
        Some(factors)
    }

    fn sums(&mut self, raw: &RawSums) -> SumProfile {
        let mut digits = |n: &Spanned<i64>, most: u32| {
            let digits = self.positive(n);
            if digits > most {
                self.error(n.span(), format!("{digits} digits; at most {most} are kept"));
            }
            digits
        };
        let (addend_digits, sum_digits) = (digits(&raw.addend_digits, 30), digits(&raw.sum_digits, 23));
        SumProfile { block: self.positive(&raw.block), addend_digits, sum_digits }
    }

    fn dtypes(&mut self, names: &[Text]) -> Vec<DType> {
        let mut out = Vec::new();
        for name in names {
            if let Some(d) = self.dtype(name) {
                if out.contains(&d) {
                    self.error(name.span(), format!("{d} is listed twice"));
                }
                out.push(d);
            }
        }
        out
    }

    /// A dtype that the target itself lists.
    fn own_dtype(&mut self, name: &Text, own: &[DType]) -> Option<DType> {
        let d = self.dtype(name)?;
        if !own.contains(&d) && self.dtypes_known {
            self.error(name.span(), format!("{d} is not among the `dtypes` of this target"));
        }
        Some(d)
    }

    fn triples(&mut self, raw: &[[Text; 3]], own: &[DType]) -> Vec<Triple> {
        let mut out = Vec::new();
        for [acc, left, right] in raw {
            let all = [self.own_dtype(acc, own), self.own_dtype(left, own), self.own_dtype(right, own)];
            if let [Some(acc), Some(left), Some(right)] = all {
                out.push(Triple { acc, left, right });
            }
        }
        out
    }

    fn place(&mut self, name: &Text) -> Option<MemorySpace> {
        if name.get_ref() == "GM" {
            return Some(MemorySpace::Gm);
        }
        self.loc(name).map(MemorySpace::Tile)
    }

    pub(super) fn loc(&mut self, name: &Text) -> Option<Loc> {
        let found = Loc::from_name(name.get_ref());
        if found.is_none() {
            let error = self.error(name.span(), format!("`{}` is not a location", name.get_ref()));
            error.notes.push(format!("the locations are {}", text::list(Loc::ALL)));
        }
        found
    }

    fn moves(&mut self, raw: &[RawMove], own: &[DType]) -> Vec<MoveRule> {
        let mut out: Vec<MoveRule> = Vec::new();
        for m in raw {
            let instr =
                lookup(m.instr.get_ref()).filter(|_| matches!(m.instr.get_ref().as_str(), "TLOAD" | "TMOV" | "TSTORE"));
            if instr.is_none() {
                self.error(m.instr.span(), format!("`{}` is none of TLOAD, TMOV and TSTORE", m.instr.get_ref()));
            }
            let (from, to) = (self.place(&m.from), self.place(&m.to));
            let every = matches!(m.same.as_slice(), [word] if word.get_ref() == "all");
            let same =
                if every { own.to_vec() } else { m.same.iter().filter_map(|d| self.own_dtype(d, own)).collect() };
            let mut pairs: Vec<(DType, DType)> = same.into_iter().map(|d| (d, d)).collect();
            for [a, b] in &m.pairs {
                if let (Some(a), Some(b)) = (self.own_dtype(a, own), self.own_dtype(b, own)) {
                    pairs.push((a, b));
                }
            }
            let mut quantised = Vec::new();
            for [a, b] in &m.quantised {
                if let (Some(a), Some(b)) = (self.own_dtype(a, own), self.own_dtype(b, own)) {
                    quantised.push((a, b));
                }
            }
            let (Some(instr), Some(from), Some(to)) = (instr, from, to) else { continue };
            if !quantised.is_empty() && from != MemorySpace::Tile(Loc::Acc) {
                self.error(m.from.span(), format!("a move from {from} does not quantise: only those from Acc do"));
            }
            let fits = match instr.get().name {
                "TLOAD" => from == MemorySpace::Gm && to != MemorySpace::Gm,
                "TSTORE" => from != MemorySpace::Gm && to == MemorySpace::Gm,
                _ => from != MemorySpace::Gm && to != MemorySpace::Gm,
            };
            if !fits {
                self.error(m.instr.span(), format!("{} cannot go from {from} to {to}", instr.get().name));
            }
            if pairs.is_empty() {
                self.error(
                    m.instr.span(),
                    format!("the move from {from} to {to} takes no dtype: give `same` or `pairs`"),
                );
            }
            if out.iter().any(|o| (o.from, o.to) == (from, to)) {
                self.error(m.from.span(), format!("the move from {from} to {to} is given twice"));
            }
            out.push(MoveRule { instr, from, to, pairs, quantised });
        }
        out
    }

    fn rows(&mut self, raw: &BTreeMap<Text, Spanned<i64>>) -> Vec<(Loc, u32)> {
        let mut out = Vec::new();
        for (name, n) in raw {
            if let Some(loc) = self.loc(name) {
                out.push((loc, self.positive(n)));
            }
        }
        out.sort();
        out
    }

    pub(super) fn positive(&mut self, n: &Spanned<i64>) -> u32 {
        u32::try_from(*n.get_ref()).ok().filter(|n| *n > 0).unwrap_or_else(|| {
            self.error(n.span(), format!("{} is not a number of 1 to {}", n.get_ref(), u32::MAX));
            1
        })
    }

    fn range(&mut self, raw: &Spanned<[i64; 2]>) -> RangeInclusive<u32> {
        let [lo, hi] = *raw.get_ref();
        match (u32::try_from(lo), u32::try_from(hi)) {
            (Ok(lo), Ok(hi)) if lo <= hi => lo..=hi,
            _ => {
                self.error(raw.span(), format!("[{lo}, {hi}] is not a range of non-negative numbers, smaller first"));
                0..=0
            }
        }
    }

    /// `[unit]`, `[device]` and `[host]`, which a target of family `pim` has and no other.
    fn memory_side(
        &mut self,
        in_memory: bool,
        at: Range<usize>,
        (unit, device, host, dram): MemoryTables,
    ) -> (Option<ProcessingUnit>, Option<Device>, u64) {
        let all = [("unit", unit.is_some()), ("device", device.is_some()), ("host", host.is_some())];
        for (name, there) in all {
            match (in_memory, there) {
                (true, false) if !self.mended => {
                    self.error(at.clone(), format!("a target of family `pim` has a table `[{name}]`"));
                }
                (false, true) => {
                    self.error(at.clone(), format!("`[{name}]` is for family `pim`"));
                }
                _ => {}
            }
        }
        let device = device.map(|d| {
            match (&d.preset, &dram) {
                (None, None) if !self.mended => {
                    let message = "the DRAM is missing: give `device.preset` or a table `[dram]`";
                    self.error(at.clone(), message.into());
                }
                (Some(preset), Some(_)) => {
                    self.error(preset.span(), "the DRAM is given twice: by `preset`, and by `[dram]`".into());
                }
                _ => {}
            }
            let mut count = |n: &Option<Spanned<i64>>| n.as_ref().map_or(0, |n| self.positive(n));
            Device {
                pseudo_channels: count(&d.pseudo_channels),
                bank_groups: count(&d.bank_groups),
                banks: count(&d.banks),
                rows: count(&d.rows),
                bursts: count(&d.bursts),
                burst_bytes: count(&d.burst_bytes),
                preset: d.preset.map(Spanned::into_inner).unwrap_or_default(),
                stacks: self.few(&d.stacks),
                channels: self.few(&d.channels),
                refresh: "all",
                overrides: Vec::new(),
            }
        });
        if let (None, Some(at)) = (&device, dram) {
            self.error(at, "`[dram]` is the DRAM of a `[device]`, and there is none".into());
        }
        let host_vec = host.map_or(0, |h| u64::from(self.positive(&h.vec)));
        let unit = unit.map(|u| self.unit(u));
        (unit, device, host_vec)
    }

    fn unit(&mut self, raw: Spanned<RawUnit>) -> ProcessingUnit {
        let at = raw.span();
        let raw = raw.into_inner();
        let mut number = |name: &str, n: &Option<Spanned<i64>>| match n {
            // What a unit may lack, or do without.
            Some(n) if *n.get_ref() == 0 && matches!(name, "scratchpad" | "coordinate_cycles" | "fence_data") => 0,
            Some(n) => self.positive(n),
            None if self.mended => 1,
            None => {
                self.error(at.clone(), format!("a unit of this kind has a number `{name}`"));
                1
            }
        };
        let kind = match raw.kind.get_ref().as_str() {
            "geopim" => UnitKind::GeoPim(GeoUnit {
                tile_channels: number("tile_channels", &raw.tile_channels),
                buffers: number("buffers", &raw.buffers),
                parameters: number("parameters", &raw.parameters),
                scratchpad: number("scratchpad", &raw.scratchpad),
                coordinate_cycles: number("coordinate_cycles", &raw.coordinate_cycles),
                act_weight: number("act_weight", &raw.act_weight),
                order: "chosen",
            }),
            "hbm-pim" => UnitKind::HbmPim(HbmUnit {
                instructions: number("instructions", &raw.instructions),
                registers: number("registers", &raw.registers),
                scalars: number("scalars", &raw.scalars),
                act_weight: number("act_weight", &raw.act_weight),
                fence_data: number("fence_data", &raw.fence_data),
            }),
            "aim" => UnitKind::Aim(AimUnit {
                buffer: number("buffer", &raw.buffer),
                latency: number("latency", &raw.latency),
                act_weight: number("act_weight", &raw.act_weight),
            }),
            "described" => UnitKind::Described,
            other => {
                let message = format!("unit `{other}` is none of `geopim`, `hbm-pim`, `aim` and `described`");
                self.error(raw.kind.span(), message);
                UnitKind::Described
            }
        };
        let (rounding, stepping) = (self.rounding(&raw), self.stepping(&raw, kind));
        ProcessingUnit {
            kind,
            clock: self.positive(&raw.clock),
            lanes: self.positive(&raw.lanes),
            banks: self.positive(&raw.banks),
            operations: self.operations(&raw.operations),
            rounding,
            stepping,
        }
    }

    /// A number that is multiplied with others of its kind.
    fn few(&mut self, n: &Spanned<i64>) -> u32 {
        let value = self.positive(n);
        if value > 32 {
            self.error(n.span(), format!("{value} is more than 32"));
        }
        value.min(32)
    }

    fn operations(&mut self, names: &[Text]) -> UnitOperations {
        let mut out = UnitOperations::default();
        for name in names {
            let word = name.get_ref().as_str();
            match UnitOperation::ALL.into_iter().find(|o| o.name() == word) {
                Some(operation) if out.add(operation) => {}
                Some(_) => {
                    self.error(name.span(), format!("`{word}` is listed twice"));
                }
                None => {
                    let known = text::list(UnitOperation::ALL.map(|o| format!("`{}`", o.name())));
                    self.error(name.span(), format!("`{word}` is no operation of units: those there are {known}"));
                }
            }
        }
        out
    }

    fn rounding(&mut self, raw: &RawUnit) -> Rounding {
        match raw.rounding.as_ref().map(|word| (word.get_ref().as_str(), word.span())) {
            None | Some(("each", _)) => Rounding::Each,
            Some(("fused", _)) => Rounding::Fused,
            Some((word, at)) => {
                self.error(at, format!("rounding `{word}` is neither `each` nor `fused`"));
                Rounding::Each
            }
        }
    }

    /// Kinds with code are stepped as they are; of others the file says it.
    fn stepping(&mut self, raw: &RawUnit, kind: UnitKind) -> Stepping {
        let own = match kind {
            UnitKind::GeoPim(_) => Stepping::Autonomous,
            UnitKind::HbmPim(_) | UnitKind::Aim(_) | UnitKind::Described => Stepping::LockStep,
        };
        let Some(word) = &raw.steps else { return own };
        let said = match word.get_ref().as_str() {
            "lock-step" => Stepping::LockStep,
            "autonomous" => Stepping::Autonomous,
            other => {
                self.error(word.span(), format!("steps `{other}` is neither `lock-step` nor `autonomous`"));
                return own;
            }
        };
        if said != own && kind != UnitKind::Described {
            self.error(word.span(), format!("units of kind `{}` are not stepped so", kind.name()));
        }
        said
    }

    pub(super) fn power_of_two(&mut self, n: &Spanned<i64>) -> u32 {
        let value = self.positive(n);
        if !value.is_power_of_two() {
            self.error(n.span(), format!("an alignment is a power of two, and {value} is not"));
        }
        value
    }
}
