//! Launches in order become one stream.
//!
//! The host writes an array to the memory when a launch first wants it there, and arrays stay there from launch to
//! launch, each in rows of its own until nobody reads it any more. A launch that wants an array elsewhere than it is
//! moves it, unless the host has its values anyway and writes them there too. Results are read when no launch writes
//! them any more. Kernels of the host that only move elements are `relayout` steps; others are `host` steps, for which
//! the host reads what it does not have.

use crate::hbm::usage::Usage;
use crate::movement::Nest;
use crate::place::interleaved;
use crate::rows::{FreeRows, Laid, reach, same};
use crate::{LaunchFragment, Lines, geometry, hbm, place};
use ptoc_diagnostics::{Diagnostic, Span, codes};
use ptoc_ir::tile::{Kernel, TensorDir};
use ptoc_isa::{Target, UnitKind};
use ptoc_pim_stream::stream::*;
use ptoc_pim_stream::{ArrayPlacement, Geometry};
use ptoc_tensor::DType;
use std::collections::BTreeSet;

/// An array of a program.
#[derive(Clone, Debug)]
pub struct Array {
    /// The name.
    pub name: String,
    /// Element type.
    pub dtype: DType,
    /// Extents.
    pub shape: Vec<u32>,
    /// Who gives and gets it; the program's own are [`Role::Temp`].
    pub role: Role,
    /// Bits that every element of one of its own begins with.
    pub fill: Option<u64>,
    /// The declaration.
    pub span: Span,
}

/// Who does the work of a launch.
#[derive(Clone, Debug)]
pub enum LaunchWork {
    /// The units.
    Units,
    /// The host.
    Host,
    /// The host, which only moves the elements of the one tensor to the other along these loops.
    Moves(Vec<Nest>),
}

/// A launch.
#[derive(Clone, Debug)]
pub struct ProgramLaunch<'k> {
    /// The kernel.
    pub kernel: &'k Kernel,
    /// Its prologue's values.
    pub values: Vec<u64>,
    /// The array of each of its tensors.
    pub arrays: Vec<u32>,
    /// Tensors, by number, whose placement is not the kernel's own: it stands elsewhere in the program.
    pub elsewhere: Vec<u32>,
    /// Who does it.
    pub work: LaunchWork,
    /// The call.
    pub span: Span,
}

/// A program, or a kernel by itself.
#[derive(Clone, Debug)]
pub struct PimProgram<'k> {
    /// Arrays by number.
    pub arrays: Vec<Array>,
    /// Launches in order.
    pub launches: Vec<ProgramLaunch<'k>>,
    /// It is a program: the stream says where its launches begin.
    pub whole: bool,
    /// Arrays that stay in the memory from run to run: the host does not write them.
    pub resident: Vec<u32>,
}

/// The stream of a program.
#[derive(Clone, Debug)]
pub struct Linked {
    /// The stream. The caller fills in the files.
    pub stream: Stream,
    /// The launch of each `host` step, in order.
    pub hosted: Vec<usize>,
    /// How much of the device launches of units in lock step use, by the launch.
    pub usage: Vec<(usize, Usage)>,
    /// Arrays of [`PimProgram::resident`] that no launch wants in the memory.
    pub absent: Vec<u32>,
}

/// Times that a program is put together to find where its resident arrays are. A launch may want one elsewhere as soon
/// as it is somewhere, which is rare.
const ROUNDS: usize = 4;

/// Compiles a program.
///
/// Where its resident arrays are is where it wants them when they are not there yet: it is put together again with
/// them, until it wants none of them elsewhere.
///
/// Errors: what the units cannot do; no room for the arrays that are alive.
pub fn compile(program: &PimProgram<'_>, target: &Target, lines: Lines<'_>) -> Result<Linked, Box<Diagnostic>> {
    let mut kept = Kept::new();
    for _ in 1..ROUNDS {
        let (linked, wanted) = link(program, &kept, target, lines)?;
        if wanted.is_empty() {
            return Ok(linked);
        }
        kept.extend(wanted);
    }
    link(program, &kept, target, lines).map(|(linked, _)| linked)
}

/// The stream of a program whose arrays `kept` are there, and where it wants resident arrays that are not.
fn link(program: &PimProgram<'_>, kept: &[(u32, Laid)], target: &Target, lines: Lines<'_>) -> Res<(Linked, Kept)> {
    let (Some(g), Some(d)) = (geometry(target), &target.device) else {
        let message = format!("`{}` has no units in memory", target.name);
        return Err(Box::new(Diagnostic::global(codes::UNIT_CANNOT, message)));
    };
    let given = |a: &Array| matches!(a.role, Role::In | Role::InOut) || a.fill.is_some();
    let states = program.arrays.iter().map(|a| ArrayState { host: given(a), copies: Vec::new() }).collect();
    let pieces = program.launches.iter().map(|_| None).collect();
    let mut linker = Linker {
        program,
        target,
        lines,
        g,
        states,
        pieces,
        steps: Vec::new(),
        hosted: Vec::new(),
        usage: Vec::new(),
        wanted: Vec::new(),
        temps: Vec::new(),
        zeros: BTreeSet::new(),
    };
    for (array, laid) in kept {
        let place = lines(program.arrays[*array as usize].span);
        linker.step(place, Action::Resident(Transfer { tensor: *array, placement: laid.placement.clone() }));
        let state = &mut linker.states[*array as usize];
        state.copies.push(laid.clone());
        // What runs change only the memory has.
        state.host &= program.arrays[*array as usize].role != Role::InOut;
    }
    for n in 0..program.launches.len() {
        linker.launch(n)?;
    }
    for (array, laid) in kept {
        linker.goes_back(*array, laid);
    }
    let declared = |(n, a): (usize, &Array)| TensorDecl {
        name: a.name.clone(),
        dtype: a.dtype,
        shape: a.shape.clone(),
        role: a.role,
        fill: a.fill.or_else(|| linker.zeros.contains(&(n as u32)).then_some(0)),
    };
    let tensors = program.arrays.iter().enumerate().map(declared).chain(linker.temps.iter().cloned()).collect();
    let stream = Stream {
        device: Device {
            preset: d.preset.clone(),
            refresh: Refresh::ALL.iter().copied().find(|r| r.name() == d.refresh).unwrap_or(Refresh::All),
            overrides: {
                let channels = ("channel".into(), d.all_channels().min(1 << 16) as u32);
                std::iter::once(channels).chain(d.overrides.iter().cloned()).collect()
            },
        },
        unit: crate::unit(target),
        tensors,
        files: Vec::new(),
        steps: linker.steps,
    };
    debug_assert_eq!(stream.unordered(&linker.g), [], "a fence is missing");
    let there = |a: &u32| kept.iter().any(|(k, _)| k == a);
    let absent = program.resident.iter().copied().filter(|a| !there(a)).collect();
    Ok((Linked { stream, hosted: linker.hosted, usage: linker.usage, absent }, linker.wanted))
}

/// Where an array's values are.
#[derive(Clone, Debug, Default)]
struct ArrayState {
    /// The host has them.
    host: bool,
    /// They are in the memory.
    copies: Vec<Laid>,
}

struct Linker<'p, 'k> {
    program: &'p PimProgram<'k>,
    target: &'p Target,
    lines: Lines<'p>,
    g: Geometry,
    states: Vec<ArrayState>,
    /// What each launch of units does, compiled as if it were alone: for where it wants its tensors.
    pieces: Vec<Option<LaunchFragment>>,
    steps: Vec<StreamStep>,
    hosted: Vec<usize>,
    usage: Vec<(usize, Usage)>,
    /// Where launches want resident arrays that are not there.
    wanted: Vec<(u32, Laid)>,
    /// Arrays of steps, behind the program's.
    temps: Vec<TensorDecl>,
    /// Arrays that are read, or stored in part, before anything gave them values: they have zeros from the start.
    zeros: BTreeSet<u32>,
}

type Res<T = ()> = Result<T, Box<Diagnostic>>;

/// Resident arrays by number, each with how its rows lie.
type Kept = Vec<(u32, Laid)>;

impl<'p, 'k> Linker<'p, 'k> {
    fn launch(&mut self, n: usize) -> Res {
        let program = self.program;
        let launch = &program.launches[n];
        if program.whole {
            let of = |dirs: [TensorDir; 2]| -> Vec<u32> {
                let tensors = launch.kernel.tensors.values().zip(&launch.arrays);
                let mut arrays: Vec<u32> = tensors.filter(|(t, _)| dirs.contains(&t.dir)).map(|(_, a)| *a).collect();
                arrays.sort_unstable();
                arrays.dedup();
                arrays
            };
            let (reads, writes) = (of([TensorDir::In, TensorDir::InOut]), of([TensorDir::Out, TensorDir::InOut]));
            let kernel = launch.kernel.name.to_string();
            self.step((self.lines)(launch.span), Action::Launch(Launch { kernel, reads, writes }));
        }
        match &launch.work {
            LaunchWork::Units => self.units(n)?,
            LaunchWork::Host => self.host(n)?,
            LaunchWork::Moves(nests) => self.moves(n, nests)?,
        }
        for &a in &launch.arrays {
            let later = || program.launches[n + 1..].iter().any(|l| l.arrays.contains(&a));
            // A resident one stays in the memory.
            if self.is_result(n, a) && !program.resident.contains(&a) {
                self.begin(a);
                self.bring_back(a, (self.lines)(program.arrays[a as usize].span));
            }
            // Resident arrays keep their rows for the next run.
            if !later() && !program.resident.contains(&a) {
                self.states[a as usize].copies.clear();
            }
        }
        Ok(())
    }

    fn step(&mut self, place: SourceLine, action: Action) {
        self.steps.push(StreamStep { place, action });
    }

    /// Whether the launch writes the array, as the last one that does, for the host.
    fn is_result(&self, n: usize, array: u32) -> bool {
        let writes = |l: &ProgramLaunch<'_>| {
            let mut tensors = l.kernel.tensors.values().zip(&l.arrays);
            tensors.any(|(t, a)| *a == array && matches!(t.dir, TensorDir::Out | TensorDir::InOut))
        };
        let role = self.program.arrays[array as usize].role;
        let launches = &self.program.launches;
        matches!(role, Role::Out | Role::InOut) && writes(&launches[n]) && !launches[n + 1..].iter().any(writes)
    }

    /// What is free, and where these arrays are.
    fn rows(&self, arrays: &[u32]) -> FreeRows {
        let taken = self.states.iter().flat_map(|s| &s.copies).map(Laid::range);
        let mut rows = FreeRows::new(self.all_rows(), taken);
        for (tensor, &a) in arrays.iter().enumerate() {
            let shape = &self.program.arrays[a as usize].shape;
            self.states[a as usize].copies.iter().for_each(|laid| rows.is_at(tensor as u32, shape, laid));
        }
        rows
    }

    /// Rows for arrays. GeoPIM's row 0 stays empty: address 0 is none.
    fn all_rows(&self) -> std::ops::Range<u32> {
        let first = matches!(self.target.unit.map(|u| u.kind), Some(UnitKind::GeoPim(_)));
        u32::from(first)..self.g.row
    }

    /// A launch of the units.
    fn units(&mut self, n: usize) -> Res {
        let (launch, program_arrays) = (&self.program.launches[n], self.program.arrays.len());
        let rows = self.rows(&launch.arrays);
        let piece =
            crate::piece(launch, self.target, self.lines, &rows).map_err(|d| self.crowded(d, &launch.arrays))?;
        self.usage.extend(piece.usage.map(|u| (n, u)));
        let array = |tensor: u32| launch.arrays[tensor as usize];
        let call = (self.lines)(launch.span);
        for &t in &piece.host {
            self.begin(array(t));
            self.bring_back(array(t), call);
        }
        // What the launch does not store of an array stays as it was.
        for need in piece.wants.iter().chain(piece.gives.iter().filter(|n| piece.in_part.contains(&n.tensor))) {
            let place = if self.program.whole { call } else { need.place };
            self.bring_in(array(need.tensor), &need.laid, place);
        }
        let first = (program_arrays + self.temps.len()) as u32;
        for mut step in piece.steps {
            rename(&mut step.action, launch, first);
            self.steps.push(step);
        }
        for (n, temp) in (first..).zip(piece.temps) {
            self.temps.push(TensorDecl { name: format!("lanes..{n}"), ..temp });
        }
        for t in piece.returns {
            self.states[array(t) as usize] = ArrayState { host: true, copies: Vec::new() };
        }
        for need in piece.gives {
            self.states[array(need.tensor) as usize] = ArrayState { host: false, copies: vec![need.laid] };
        }
        Ok(())
    }

    /// A kernel of the host.
    fn host(&mut self, n: usize) -> Res {
        let launch = &self.program.launches[n];
        let call = (self.lines)(launch.span);
        let of = |dirs: [TensorDir; 2]| -> Vec<u32> {
            let tensors = launch.kernel.tensors.values().zip(&launch.arrays);
            tensors.filter(|(t, _)| dirs.contains(&t.dir)).map(|(_, a)| *a).collect()
        };
        let reads = of([TensorDir::In, TensorDir::InOut]);
        let writes = of([TensorDir::Out, TensorDir::InOut]);
        for &a in &reads {
            self.begin(a);
        }
        // A kernel of the host may store an array in part.
        for &a in reads.iter().chain(&writes) {
            self.bring_back(a, call);
        }
        for &a in &writes {
            self.states[a as usize] = ArrayState { host: true, copies: Vec::new() };
        }
        self.step(call, Action::Host(Host { kernel: launch.kernel.name.to_string(), reads, writes }));
        self.hosted.push(n);
        Ok(())
    }

    /// A resident array that launches changed lies where it was at the end.
    fn goes_back(&mut self, array: u32, laid: &Laid) {
        let a = &self.program.arrays[array as usize];
        if a.role == Role::InOut {
            let wanted = self.wanted.len();
            self.bring_in(array, laid, (self.lines)(a.span));
            // It is there from the start: nothing new is wanted.
            self.wanted.truncate(wanted);
        }
    }

    /// A kernel that moves elements: in the memory, if they are there or are wanted there.
    fn moves(&mut self, n: usize, nests: &[Nest]) -> Res {
        let launch = &self.program.launches[n];
        let dir = |dir| launch.kernel.tensors.values().position(|t| t.dir == dir);
        let partly = dir(TensorDir::InOut);
        let (Some(from), Some(to)) = (dir(TensorDir::In), dir(TensorDir::Out).or(partly)) else { return self.host(n) };
        let (src, dst) = (launch.arrays[from], launch.arrays[to]);
        // What is not moved to stays as it is, so the array is there, and where it is.
        let here = self.states[dst as usize].copies.first().cloned().filter(|_| partly.is_some());
        if partly.is_some() && here.is_none() {
            return self.host(n);
        }
        let wanted = match &here {
            Some(laid) => Some(laid.placement.clone()),
            None => self.wanted(n, dst)?,
        };
        if self.states[src as usize].copies.is_empty() && wanted.is_none() {
            return self.host(n);
        }
        let call = (self.lines)(launch.span);
        if self.states[src as usize].copies.is_empty() {
            let placement = self.author(launch, from).unwrap_or_else(|| self.spread(src));
            let laid = self.room(src, placement, launch)?;
            self.bring_in(src, &laid, call);
        }
        let to = match here {
            Some(laid) => laid,
            None => {
                let placement = wanted.unwrap_or_else(|| self.spread(dst));
                self.room(dst, placement, launch)?
            }
        };
        let source = &self.states[src as usize].copies[0];
        let from = one_copy(&source.placement);
        for Nest { start, axes } in nests {
            let (axes, from) = (axes.clone(), from.clone());
            let relayout = Relayout { src, from, dst, to: to.placement.clone(), axes, start: *start };
            self.step(call, Action::Relayout(relayout));
        }
        self.states[dst as usize] = ArrayState { host: false, copies: vec![to] };
        Ok(())
    }

    /// Elements over the whole memory.
    fn spread(&self, array: u32) -> ArrayPlacement {
        let a = &self.program.arrays[array as usize];
        interleaved(&a.shape, a.dtype.size() as u32, &self.g)
    }

    /// Rows for an array with this placement.
    fn room(&self, array: u32, placement: ArrayPlacement, launch: &ProgramLaunch<'_>) -> Res<Laid> {
        let rows = reach(&placement);
        match self.rows(&[array]).take(Some(0), &placement, rows) {
            Some(row) => Ok(Laid { placement: ArrayPlacement { row, ..placement }, rows }),
            None => {
                let name = &self.program.arrays[array as usize].name;
                let message = format!("`{name}` takes {rows} rows of every bank, and there are none free in one piece");
                let d = Diagnostic::error(codes::UNIT_ROOM, launch.span, message).with_label("no place for it");
                Err(self.crowded(Box::new(d.with_help("make the arrays smaller")), &[array]))
            }
        }
    }

    /// Where the first launch of units behind number `n` that reads the array wants it, or the author.
    fn wanted(&mut self, n: usize, array: u32) -> Res<Option<ArrayPlacement>> {
        let program = self.program;
        for (k, launch) in program.launches.iter().enumerate().skip(n) {
            let Some(tensor) = launch.arrays.iter().position(|a| *a == array) else { continue };
            // What units do not say themselves, they may not be able to take.
            let own = !matches!(launch.work, LaunchWork::Units) || !launch.elsewhere.contains(&(tensor as u32));
            if let Some(author) = self.author(launch, tensor).filter(|_| own) {
                return Ok(Some(author));
            }
            let dir = launch.kernel.tensors.values().nth(tensor).map(|t| t.dir);
            if k > n && dir == Some(TensorDir::Out) {
                return Ok(None);
            }
            if !matches!(launch.work, LaunchWork::Units) {
                continue;
            }
            if self.pieces[k].is_none() {
                let rows = FreeRows::new(self.all_rows(), std::iter::empty());
                self.pieces[k] = Some(crate::piece(launch, self.target, self.lines, &rows)?);
            }
            let piece = self.pieces[k].as_ref();
            let need = piece.and_then(|p| p.wants.iter().find(|need| need.tensor as usize == tensor));
            if let Some(need) = need {
                return Ok(Some(ArrayPlacement { row: 0, ..need.laid.placement.clone() }));
            }
        }
        Ok(None)
    }

    /// Where the source says that a tensor is.
    fn author(&self, launch: &ProgramLaunch<'_>, tensor: usize) -> Option<ArrayPlacement> {
        let place = launch.kernel.tensors.values().nth(tensor)?.place.as_ref()?;
        match self.target.unit.map(|u| u.kind) {
            Some(UnitKind::HbmPim(_)) => hbm::places::of_author(place, &self.g),
            _ => place::of_author(place),
        }
    }

    /// An array that nobody has given values has zeros with the host, as in the interpreter: what should have stored it
    /// did not.
    fn begin(&mut self, array: u32) {
        let state = &mut self.states[array as usize];
        if !state.host && state.copies.is_empty() {
            state.host = true;
            self.zeros.insert(array);
        }
    }

    /// The host has the values afterwards, if there are any.
    fn bring_back(&mut self, array: u32, place: SourceLine) {
        let state = &self.states[array as usize];
        let Some(laid) = state.copies.first().filter(|_| !state.host) else { return };
        let placement = one_copy(&laid.placement);
        self.step(place, Action::Read(Transfer { tensor: array, placement }));
        self.states[array as usize].host = true;
    }

    /// The values are there afterwards.
    fn bring_in(&mut self, array: u32, laid: &Laid, place: SourceLine) {
        self.begin(array);
        let shape = &self.program.arrays[array as usize].shape;
        let state = &self.states[array as usize];
        let there = |c: &Laid| c.placement.row == laid.placement.row && same(&c.placement, &laid.placement, shape);
        if state.copies.iter().any(there) {
            return;
        }
        if self.program.resident.contains(&array) {
            self.wanted.push((array, laid.clone()));
        }
        let to = laid.placement.clone();
        let action = match state.copies.first() {
            // The host has them at hand: writing costs less than reading and writing.
            Some(from) if !state.host => Action::Move { tensor: array, from: one_copy(&from.placement), to },
            _ => Action::Write(Transfer { tensor: array, placement: to }),
        };
        self.step(place, action);
        self.states[array as usize].copies.push(laid.clone());
    }

    /// A launch has no room: what else is in the memory.
    fn crowded(&self, d: Box<Diagnostic>, own: &[u32]) -> Box<Diagnostic> {
        if ![codes::UNIT_ROOM, codes::UNIT_MAP].contains(&d.code) {
            return d;
        }
        let others = self.states.iter().zip(&self.program.arrays).enumerate();
        let others: Vec<String> = others
            .filter(|(n, (s, _))| !s.copies.is_empty() && !own.contains(&(*n as u32)))
            .map(|(_, (s, a))| format!("`{}` {}", a.name, s.copies.iter().map(|c| c.rows).sum::<u32>()))
            .collect();
        match others.is_empty() {
            true => d,
            false => Box::new(d.with_note(format!("rows that later launches need: {}", others.join(", ")))),
        }
    }
}

/// A placement as one reads it: of copies, that in the first bank.
fn one_copy(p: &ArrayPlacement) -> ArrayPlacement {
    ArrayPlacement { replicated: false, ..p.clone() }
}

/// A kernel's numbers of tensors become the program's of arrays; its steps' own arrays begin with number `first`.
fn rename(action: &mut Action, launch: &ProgramLaunch<'_>, first: u32) {
    let tensors = launch.arrays.len() as u32;
    let array = |tensor: &mut u32| {
        *tensor = launch.arrays.get(*tensor as usize).copied().unwrap_or_else(|| first + *tensor - tensors);
    };
    match action {
        Action::Params(p) => array(&mut p.geo),
        Action::Exec(e) => e.ops.iter_mut().for_each(|op| {
            if let ColumnOp::Wr { data: Data::Tensor { tensor, .. }, .. }
            | ColumnOp::Aim(AimOp::WriteBuffer { tensor, .. } | AimOp::Read { tensor, .. }) = op
            {
                array(tensor);
            }
        }),
        Action::Move { tensor, .. } => array(tensor),
        // Pieces have no steps that name other arrays.
        _ => {}
    }
}
