//! Which accesses of a run are not ordered: by vector clocks on what the reference interpreter does, byte by byte. It
//! knows nothing of the analyses that it tests: values, addresses and loops are those of the run.

use ptoc_interp::{Observer, RunningKernel};
use ptoc_ir::tile::{
    self, AddrKind, Event, Kernel, Op, Operand, PrintPart, Stmt, SyncOp, TileRef, Value, ViewRef, pipe_of_op,
};
use ptoc_isa::{Order, Pipe, Role, Sem, Target};
use std::collections::HashMap;
use std::ops::ControlFlow;

/// Bytes that are told apart: elements of fewer share one mark.
const GRAIN: u64 = 8;
/// Statements of one block that are followed.
const LIMIT: u64 = 400;
/// Blocks that are followed: the first ones, of which the last has a tail in small grids.
const BLOCKS: u64 = 2;

/// Seven pipes, and what the issuer reads.
const CLOCKS: usize = 8;
const READS: usize = 7;
type Clock = [u64; CLOCKS];

fn merge(a: &mut Clock, b: &Clock) {
    a.iter_mut().zip(b).for_each(|(a, b)| *a = (*a).max(*b));
}

#[derive(Clone, Copy, Default)]
struct Mark {
    /// Component and number of the last write.
    write: Option<(usize, u64)>,
    atomic: bool,
    /// The last read of each component.
    reads: Clock,
}

/// What a run did wrong.
pub struct Trace<'t> {
    target: &'t Target,
    /// One line each, the first ones.
    pub faults: Vec<String>,
    now: Clock,
    start: Vec<Clock>,
    done: Vec<Clock>,
    flags: HashMap<(Event, u64), (bool, Clock, u64)>,
    marks: HashMap<(bool, u32, u64), Mark>,
    steps: u64,
    blocks: u64,
    /// Sets, waits and barriers that ran.
    pub synchronisations: u64,
}

impl<'t> Trace<'t> {
    /// For runs of kernels of this target.
    pub fn new(target: &'t Target) -> Trace<'t> {
        Trace {
            target,
            faults: Vec::new(),
            now: [0; CLOCKS],
            start: vec![[0; CLOCKS]; 7],
            done: vec![[0; CLOCKS]; 7],
            flags: HashMap::new(),
            marks: HashMap::new(),
            steps: 0,
            blocks: 0,
            synchronisations: 0,
        }
    }

    fn fault(&mut self, text: String) {
        if self.faults.len() < 5 {
            self.faults.push(text);
        }
    }

    fn eager(&self, p: Pipe) -> bool {
        self.target.pipes.barrier.contains(&p)
    }

    /// `known` is done before whatever starts next on `p`.
    fn learn(&mut self, p: Pipe, known: &Clock) {
        let all: Vec<usize> = if p == Pipe::S { (0..7).collect() } else { vec![p as usize] };
        for q in all {
            merge(&mut self.start[q], known);
            merge(&mut self.done[q], known);
        }
    }

    /// The next number on a pipe.
    fn tick(&mut self, p: Pipe) -> u64 {
        self.now[p as usize] += 1;
        let n = self.now[p as usize];
        self.done[p as usize][p as usize] = n;
        if !self.eager(p) {
            self.start[p as usize][p as usize] = n;
        }
        n
    }

    /// The block's end: all flags are down.
    pub fn finish(&mut self, kernel: &Kernel) {
        let up: Vec<Event> = self.flags.iter().filter(|(_, f)| f.0).map(|((e, _), _)| *e).collect();
        for e in up {
            self.fault(format!("flag `{}` is up at the end", kernel.events[e].name));
        }
        self.flags.clear();
        self.marks.clear();
        self.steps = 0;
        self.now = [0; CLOCKS];
        self.start.fill([0; CLOCKS]);
        self.done.fill([0; CLOCKS]);
    }

    fn sync(&mut self, state: &RunningKernel<'_>, sync: &SyncOp) {
        self.synchronisations += 1;
        let kernel = state.kernel();
        match sync {
            SyncOp::Barrier(None) => {
                let now = self.now;
                self.start.iter_mut().chain(&mut self.done).for_each(|c| *c = now);
            }
            SyncOp::Barrier(Some(p)) => self.start[*p as usize] = self.done[*p as usize],
            SyncOp::Set(r) | SyncOp::Wait(r) => {
                let data = &kernel.events[r.event];
                let element = r.element.map_or(0, |v| state.value(v));
                if element >= u64::from(data.count) {
                    self.fault(format!("flag `{}` has no element {element}", data.name));
                }
                let (up, clock, last) = self.flags.get(&(r.event, element)).copied().unwrap_or((false, [0; CLOCKS], 0));
                if matches!(sync, SyncOp::Set(_)) {
                    let from = data.from as usize;
                    if up {
                        self.fault(format!("flag `{}` is raised twice", data.name));
                    }
                    if self.done[from][data.to as usize] < last {
                        self.fault(format!("flag `{}` may be raised before its last wait is over", data.name));
                    }
                    self.flags.insert((r.event, element), (true, self.done[from], last));
                } else {
                    if !up {
                        self.fault(format!("flag `{}` is waited for and down", data.name));
                    }
                    let n = self.tick(data.to);
                    let mut known = clock;
                    known[data.to as usize] = known[data.to as usize].max(n);
                    // A wait is no instruction that could be under way.
                    if self.eager(data.to) {
                        known[data.to as usize] = clock[data.to as usize];
                    }
                    self.learn(data.to, &known);
                    self.flags.insert((r.event, element), (false, clock, n));
                }
            }
            other => self.fault(format!("`{}` was not inserted", other.word())),
        }
    }

    fn touch(&mut self, (tensor, id, at): (bool, u32, u64), bytes: u64, access: Access, what: &str) {
        let Access { pipe, n, write, atomic } = access;
        let own = if pipe == Pipe::S && !write { READS } else { pipe as usize };
        for grain in at / GRAIN..(at + bytes).div_ceil(GRAIN) {
            let mark = self.marks.entry((tensor, id, grain)).or_default();
            let known = &self.start[pipe as usize];
            let mut late = None;
            if let Some((p, last)) = mark.write
                && (p, last) != (own, n)
                && known[p] < last
                && !(atomic && mark.atomic)
            {
                late = Some(p);
            }
            if write {
                late = late.or_else(|| (0..CLOCKS).find(|&c| known[c] < mark.reads[c]));
                mark.write = Some((own, n));
                mark.atomic = atomic;
            } else {
                mark.reads[own] = n;
            }
            if let Some(c) = late {
                let other = Pipe::ALL.get(c).map_or("S", |p| p.name());
                self.fault(format!("{what} on {pipe} comes too early for {other} at byte {:#x}", grain * GRAIN));
                return;
            }
        }
    }

    fn tile(&mut self, state: &RunningKernel<'_>, r: &TileRef, valid: bool, access: Access) {
        let kernel = state.kernel();
        let data = &kernel.tiles[r.tile];
        let element = r.element.map_or(0, |v| state.value(v)) as usize;
        let base = match &data.addr {
            AddrKind::Fixed(at) => at.get(element).copied(),
            _ => match state.storage(r.tile, element) {
                ptoc_interp::Storage::At(at) => Some(at),
                _ => None,
            },
        };
        let Some(base) = base else { return self.fault(format!("`{}` has no address", data.name)) };
        let space = (false, data.ty.loc as u32);
        let plain = data.ty.dtype != ptoc_tensor::DType::Bool && data.ty.loc.bytes_observable();
        if !plain || !valid {
            return self.touch((space.0, space.1, base), data.ty.bytes(), access, &data.name);
        }
        let (r0, c0) = r.origin.map_or((0, 0), |(a, b)| (state.value(a) as u32, state.value(b) as u32));
        let (rows, cols) = (state.value(r.valid.0) as u32, state.value(r.valid.1) as u32);
        let size = data.ty.dtype.size() as u64;
        for row in r0..r0 + rows {
            if data.ty.layout.is_none() && data.ty.order == Order::Nd {
                let at = base + data.ty.element(row, c0) * size;
                self.touch((space.0, space.1, at), size * u64::from(cols), access, &data.name);
                continue;
            }
            for col in c0..c0 + cols {
                let at = base + data.ty.element(row, col) * size;
                self.touch((space.0, space.1, at), size, access, &data.name);
            }
        }
    }

    fn view(&mut self, state: &RunningKernel<'_>, v: &ViewRef, access: Access) {
        let kernel = state.kernel();
        let data = &kernel.tensors[v.tensor];
        let size = data.dtype.size() as u64;
        let shape: Vec<u64> = v.shape.iter().map(|&s| state.value(s)).collect();
        // Rows without gaps go as one.
        let dense = v.strides.last().is_some_and(|&s| state.value(s) == 1);
        let run = if dense { shape.last().copied().unwrap_or(1) } else { 1 };
        let count: u64 = shape.iter().product();
        for n in (0..count).step_by(run.max(1) as usize) {
            let (mut rest, mut at) = (n, state.value(v.offset) as i64);
            for (extent, &stride) in shape.iter().zip(&v.strides).rev() {
                at += (rest % extent) as i64 * state.value(stride) as i64;
                rest /= extent;
            }
            self.touch((true, v.tensor.as_u32(), at as u64 * size), size * run, access, &data.name);
        }
    }

    /// A whole tensor: where the interpreter's nests go is not followed.
    fn tensor(&mut self, state: &RunningKernel<'_>, t: tile::TensorId, access: Access) {
        let data = &state.kernel().tensors[t];
        let bytes = state.shape(t).iter().product::<u64>() * data.dtype.size() as u64;
        self.touch((true, t.as_u32(), 0), bytes, access, &data.name);
    }

    fn element(&mut self, state: &RunningKernel<'_>, t: tile::TensorId, offset: Value, access: Access) {
        let data = &state.kernel().tensors[t];
        let size = data.dtype.size() as u64;
        self.touch((true, t.as_u32(), state.value(offset) * size), size, access, &data.name);
    }

    fn side(&mut self, state: &RunningKernel<'_>, side: &tile::NestAccess, access: Access, read: Access) {
        if let Some(r) = side.tile() {
            self.tile(state, r, false, access);
        }
        if let Some(t) = side.tensor() {
            self.tensor(state, t, access);
        }
        side.tables().for_each(|t| self.tensor(state, t, read));
    }
}

#[derive(Clone, Copy)]
struct Access {
    pipe: Pipe,
    n: u64,
    write: bool,
    atomic: bool,
}

impl Observer for Trace<'_> {
    fn block(&mut self, state: &RunningKernel<'_>) -> ControlFlow<()> {
        self.finish(state.kernel());
        self.blocks += 1;
        if self.blocks > BLOCKS || !self.faults.is_empty() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn before(&mut self, state: &RunningKernel<'_>, stmt: &Stmt) -> ControlFlow<()> {
        if let Op::Sync(sync) = &stmt.op {
            self.sync(state, sync);
            return ControlFlow::Continue(());
        }
        let Some(pipe) = pipe_of_op(state.kernel(), &stmt.op) else { return ControlFlow::Continue(()) };
        self.steps += 1;
        if self.steps > LIMIT {
            // Flags that are up now are nobody's fault.
            self.flags.clear();
            return ControlFlow::Break(());
        }
        // The marks of this statement's accesses are made before its number is known to anyone.
        let n = self.now[pipe as usize] + 1;
        let read = Access { pipe, n, write: false, atomic: false };
        let read = if pipe == Pipe::S { Access { n: self.now[READS] + 1, ..read } } else { read };
        let write = Access { pipe, n, write: true, atomic: false };
        match &stmt.op {
            Op::TileGet { tile, .. } => self.tile(state, tile, false, read),
            Op::TileSet { tile, .. } => self.tile(state, tile, false, write),
            Op::Print { parts } => parts.iter().for_each(|p| {
                if let PrintPart::Tile(t) = p {
                    self.tile(state, t, true, read);
                }
            }),
            Op::Load { tensor, offset, .. } => self.element(state, *tensor, *offset, read),
            Op::Store { tensor, offset, .. } => self.element(state, *tensor, *offset, write),
            Op::Atomic { tensor, offset, .. } => {
                self.element(state, *tensor, *offset, Access { atomic: true, ..write });
            }
            Op::Inst(inst) => {
                assert!(inst.instr.get().sem != Sem::Assign, "it has no pipe");
                let operands = || inst.instr.get().operands.iter().zip(&inst.operands);
                // Writes first: what the statement reads itself is not in its own way.
                inst.scratch.iter().for_each(|t| self.tile(state, t, false, write));
                for role in [Role::Dst, Role::Src] {
                    for (_, operand) in operands().filter(|(spec, _)| spec.role == role) {
                        let access = if role == Role::Src { read } else { write };
                        match operand {
                            Operand::Tile(t) => self.tile(state, t, true, access),
                            Operand::View(v) => {
                                self.view(state, v, Access { atomic: inst.attrs.atomic.is_some(), ..access });
                            }
                            Operand::Scalar(_) => {}
                        }
                    }
                }
            }
            Op::Copy(copy) => {
                self.side(state, &copy.dst, write, read);
                self.side(state, &copy.src, read, read);
            }
            Op::Mma(mma) => {
                self.side(state, &mma.acc, write, read);
                self.side(state, &mma.a, read, read);
                self.side(state, &mma.b, read, read);
            }
            _ => {}
        }
        self.tick(pipe);
        if pipe == Pipe::S {
            // What the issuer has read is read before anything later starts.
            self.now[READS] += 1;
            let n = self.now[READS];
            self.start.iter_mut().chain(&mut self.done).for_each(|c| c[READS] = n);
        }
        ControlFlow::Continue(())
    }

    fn after(&mut self, _: &RunningKernel<'_>, _: &Stmt) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

/// Follows a kernel that runs with these arguments: its faults, and how many synchronisations ran.
pub fn faults(kernel: &Kernel, target: &Target, launch: &mut ptoc_interp::InterpreterLaunch<'_>) -> (Vec<String>, u64) {
    let mut trace = Trace::new(target);
    let end = ptoc_interp::run_observed(kernel, launch, &mut trace);
    match end {
        Ok(_) => trace.finish(kernel),
        Err(ptoc_interp::End::Stopped) => {}
        Err(ptoc_interp::End::Trap(trap)) => trace.fault(format!("{} {}", trap.code, trap.message)),
    }
    (trace.faults, trace.synchronisations)
}
