//! The state of a run, the launch, and structured control.

use super::clusters::{Clusters, Window};
use super::launch::{InterpreterLaunch, InterpreterOutcome, Options, Stats, TensorBytes, Unwritten};
use super::observe::{End, Observer, RunningKernel};
use super::overlap::Overlaps;
use super::pipes::Running;
use super::pipes::touches::Touches;
use super::tensors::{self, Tensor, Tensors};
use super::tiles::Tiles;
use super::trap::Trap;
use super::wording::Words;
use cranelift_entity::{EntitySet, PrimaryMap, SecondaryMap};
use ptoc_diagnostics::{Span, codes};
use ptoc_ir::scalar;
use ptoc_ir::tile::{Kernel, Label, Op, Region, TensorDir, TensorId, Ty, Value, used_values};
use std::ops::ControlFlow;

/// What comes after a statement.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Flow {
    Next,
    Break(Label),
    Continue(Label),
    Leave(Label),
}

pub(super) struct Machine<'k, 'l> {
    pub k: &'k Kernel,
    pub options: Options,
    pub print: &'l mut dyn FnMut(&str),
    /// Bits of every value; those that are not visible are leftovers.
    pub values: Vec<u64>,
    pub vars: Vec<u64>,
    pub tiles: Tiles,
    pub tensors: Tensors,
    pub stats: Stats,
    /// Number of the running block, and its coordinates.
    pub block: u32,
    coordinates: Option<Vec<i64>>,
    /// Of the running statement.
    pub span: Span,
    /// Who looks on.
    pub observer: Option<&'l mut dyn Observer>,
    /// It has ended the run.
    stopped: bool,
    /// The pipes, if they run at the same time.
    pub pipes: Option<Box<Running<'k>>>,
    /// What the running instruction touches, if anybody asks.
    pub touches: Option<Touches>,
    /// Who wrote which byte, if anybody asks.
    pub overlaps: Option<Box<Overlaps>>,
    /// Values that something uses, if pipes run at the same time.
    pub pipes_used: EntitySet<Value>,
    /// Loads that blocks share, if the grid has clusters.
    pub clusters: Option<Box<Clusters>>,
    /// Another block has fetched what the running statement loads.
    pub fetched: bool,
    /// Half bytes of each tensor: read, fetched, written.
    pub moved: SecondaryMap<TensorId, [u64; 3]>,
}

type TrapResult<T = ()> = Result<T, Trap>;

/// See [`super::prologue`].
pub(super) fn prologue(k: &Kernel, dims: &[i64], scalars: &[Option<u64>]) -> TrapResult<Vec<u64>> {
    let mut print = |_: &str| {};
    let mut m = Machine::empty(k, Options::default(), &mut print);
    m.bind(dims, scalars)?;
    m.prologue(scalars)?;
    Ok(m.values)
}

impl<'k, 'l> Machine<'k, 'l> {
    /// Binds arguments, runs the prologue, and takes the tensors out of the launch record.
    pub fn new(k: &'k Kernel, launch: &'l mut InterpreterLaunch<'_>) -> TrapResult<Machine<'k, 'l>> {
        let mut m = Machine::empty(k, launch.options.clone(), &mut *launch.print);
        m.bind(&launch.dims, &launch.scalars)?;
        m.prologue(&launch.scalars)?;
        if let Some(pipes) = &m.options.pipes {
            m.pipes = Some(Box::new(Running::new(k, pipes)?));
            m.pipes_used = used_values(k);
        }
        m.overlaps = m.options.overlap.then(|| Box::new(Overlaps::new(k)));
        m.bind_tensors(&mut launch.tensors)?;
        Ok(m)
    }

    fn empty(k: &'k Kernel, options: Options, print: &'l mut dyn FnMut(&str)) -> Machine<'k, 'l> {
        Machine {
            k,
            values: vec![0; k.values.len()],
            vars: vec![0; k.vars.len()],
            tiles: Tiles::new(options.memory),
            options,
            print,
            tensors: PrimaryMap::new(),
            stats: Stats::default(),
            block: 0,
            coordinates: None,
            span: k.span,
            observer: None,
            stopped: false,
            pipes: None,
            touches: None,
            overlaps: None,
            pipes_used: EntitySet::new(),
            clusters: (!k.cluster.is_empty()).then(|| Box::new(Clusters::new(&k.cluster))),
            fetched: false,
            moved: SecondaryMap::new(),
        }
    }

    pub fn trap<T>(&self, code: ptoc_diagnostics::Code, message: impl Into<String>) -> TrapResult<T> {
        Err(Trap { block: self.coordinates.clone(), ..Trap::new(code, self.span, message) })
    }

    /// A fault of memory.
    pub fn fault<T>(&self, (code, message): Words) -> TrapResult<T> {
        self.trap(code, message)
    }

    fn mismatch<T>(&self, span: Span, message: String) -> TrapResult<T> {
        Err(Trap::new(codes::TRAP_LAUNCH_MISMATCH, span, message))
    }

    fn bind(&mut self, dims: &[i64], scalars: &[Option<u64>]) -> TrapResult {
        let k = self.k;
        if dims.len() != k.dims.len() {
            let message = format!("kernel `{}` has {} dimensions, the launch {}", k.name, k.dims.len(), dims.len());
            return self.mismatch(k.span, message);
        }
        for (dim, &n) in k.dims.values().zip(dims) {
            if n < 0 {
                return self.mismatch(dim.span, format!("dimension {} is {n}", dim.name));
            }
            self.set(dim.value, n as u64);
        }
        if scalars.len() != k.scalars.len() {
            let (want, have) = (k.scalars.len(), scalars.len());
            return self.mismatch(k.span, format!("kernel `{}` has {want} scalars, the launch {have}", k.name));
        }
        for (param, bits) in k.scalars.iter().zip(scalars) {
            match bits {
                Some(bits) => self.set(param.value, bits & scalar::mask(k.values[param.value].ty)),
                None if param.default.is_none() => {
                    let ty = k.values[param.value].ty;
                    let message = format!("scalar {}: {ty} is not given and has no default", param.name);
                    return self.mismatch(param.span, message);
                }
                None => {}
            }
        }
        Ok(())
    }

    fn prologue(&mut self, scalars: &[Option<u64>]) -> TrapResult {
        let k = self.k;
        // Defaults that are no statement's result (another argument, a dimension) are known from the start.
        let open: Vec<(Value, Value)> = k
            .scalars
            .iter()
            .zip(scalars)
            .filter_map(|(p, given)| given.is_none().then_some((p.value, p.default?)))
            .collect();
        let take = |m: &mut Self, of: Option<Value>| {
            for &(param, default) in &open {
                if of.is_none_or(|v| v == default) {
                    m.set(param, m.get(default));
                }
            }
        };
        take(self, None);
        for stmt in &k.prologue {
            self.stmt(&stmt.op, stmt.span)?;
            if let Some(dst) = stmt.op.def() {
                take(self, Some(dst));
            }
        }
        Ok(())
    }

    fn bind_tensors(&mut self, args: &mut [super::TensorArg]) -> TrapResult {
        let k = self.k;
        let count = k.tensors.values().filter(|t| t.dir != TensorDir::Scratch).count();
        if args.len() != count {
            let message = format!("kernel `{}` has {count} tensors, the launch {}", k.name, args.len());
            return self.mismatch(k.span, message);
        }
        let mut memory = self.options.memory;
        let mut sizes = Vec::new();
        for (id, t) in &k.tensors {
            let mut shape = Vec::new();
            let mut bytes = t.dtype.size() as u64;
            for &v in &t.shape {
                let n = self.index(v);
                let Ok(n) = u64::try_from(n) else {
                    return self.mismatch(t.span, format!("tensor {} has extent {n}", t.name));
                };
                bytes = bytes.saturating_mul(n);
                shape.push(n);
            }
            let elements = bytes / t.dtype.size() as u64;
            let marks = if t.dir == TensorDir::In { 0 } else { elements.saturating_mul(tensors::MARKS) };
            let Some(left) = memory.checked_sub(bytes.saturating_add(marks)) else {
                self.span = t.span;
                return self.trap(
                    codes::TRAP_MEMORY_LIMIT,
                    format!("tensor {} of {bytes} bytes exceeds the limit of {} bytes", t.name, self.options.memory),
                );
            };
            memory = left;
            sizes.push(bytes as usize);
            if let Some(arg) = args.get(id.as_u32() as usize) {
                if arg.dtype != t.dtype || arg.shape != shape {
                    let message = format!(
                        "tensor {} is {}{shape:?}, the launch gives {}{:?}",
                        t.name, t.dtype, arg.dtype, arg.shape
                    );
                    return self.mismatch(t.span, message);
                }
                let may_be_made = t.dir == TensorDir::Out && arg.data.is_empty();
                if arg.data.len() as u64 != bytes && !may_be_made {
                    let message = format!("tensor {} has {bytes} bytes, the launch gives {}", t.name, arg.data.len());
                    return self.mismatch(t.span, message);
                }
            }
        }
        self.tiles = Tiles::new(memory);
        for ((id, t), size) in k.tensors.iter().zip(sizes) {
            let shape = t.shape.iter().map(|&v| self.index(v) as u64).collect();
            let mut data = args.get_mut(id.as_u32() as usize).map_or_else(Vec::new, |a| std::mem::take(&mut a.data));
            data.resize(size, 0);
            let tensor = Tensor::new(t.dtype, t.dir, shape, data, self.options.races);
            self.tensors.push(match self.options.storage.get(id.as_u32() as usize) {
                Some(Some(storage)) => tensor.stored(storage),
                _ => tensor,
            });
        }
        Ok(())
    }

    /// Returns the data of the arguments.
    pub fn give_back(self) -> Vec<Vec<u8>> {
        self.tensors.into_iter().map(|(_, t)| t.data).collect()
    }

    /// Runs every block.
    pub fn launch(&mut self) -> TrapResult<InterpreterOutcome> {
        let k = self.k;
        let extents: Vec<i64> = k.grid.iter().map(|d| self.index(d.extent).max(0)).collect();
        let blocks = match super::blocks(k, &extents) {
            Ok(blocks) => blocks,
            Err(trap) => {
                self.span = trap.span;
                return self.trap(trap.code, trap.message);
            }
        };
        let prologue = self.values.clone();
        let mut at = vec![0i64; extents.len()];
        for block in 0..blocks {
            if let Some(raster) = k.raster {
                raster.place(u64::from(block), &extents, &mut at);
            }
            self.block = block;
            self.coordinates = Some(at.clone());
            self.values.copy_from_slice(&prologue);
            self.vars.fill(0);
            self.tiles.reset();
            if let Some(overlaps) = &mut self.overlaps {
                overlaps.reset();
            }
            for tensor in self.tensors.values_mut() {
                tensor.reset_scratch();
            }
            for (dim, &i) in k.grid.iter().zip(&at) {
                self.set(dim.index, i as u64);
            }
            if let Some(clusters) = &mut self.clusters {
                clusters.begin(&at);
            }
            self.stats.blocks += 1;
            self.span = k.span;
            // A block without statements takes time too.
            self.spend(1)?;
            if self.observer.is_some() {
                self.observe(|observer, state| observer.block(state))?;
            }
            if let Some(pipes) = &mut self.pipes {
                pipes.begin(k, block);
            }
            self.region(&k.body)?;
            self.drain()?;
            for (i, &extent) in at.iter_mut().zip(&extents).rev() {
                *i += 1;
                if *i < extent {
                    break;
                }
                *i = 0;
            }
        }
        if let Some(trap) = self.overlaps.take().and_then(|o| o.end(k)) {
            return Err(trap);
        }
        let mut unwritten = Vec::new();
        for (id, t) in &self.tensors {
            if let (TensorDir::Out, Some((count, first))) = (t.dir, t.unwritten()) {
                unwritten.push(Unwritten { tensor: id, count, first: t.coordinates(first) });
            }
        }
        let timing = self.pipes.take().and_then(|pipes| pipes.timing());
        self.stats.clusters = self.clusters.as_ref().map_or(0, |clusters| clusters.begun());
        self.stats.tensors = self.tensors.keys().map(|t| (self.tensor_name(t).to_owned(), self.bytes_of(t))).collect();
        Ok(InterpreterOutcome { stats: self.stats.clone(), unwritten, timing })
    }

    // ---- values --------------------------------------------------------------------------------------------------

    pub fn get(&self, value: Value) -> u64 {
        self.values[value.as_u32() as usize]
    }

    pub fn set(&mut self, value: Value, bits: u64) {
        self.values[value.as_u32() as usize] = bits;
    }

    pub fn index(&self, value: Value) -> i64 {
        self.get(value) as i64
    }

    pub fn ty(&self, value: Value) -> Ty {
        self.k.values[value].ty
    }

    fn truth(&self, value: Value) -> bool {
        self.get(value) & 1 == 1
    }

    /// Counts steps against the fuel.
    pub fn spend(&mut self, steps: u64) -> TrapResult {
        self.stats.steps = self.stats.steps.saturating_add(steps);
        match self.options.fuel {
            Some(fuel) if self.stats.steps > fuel => {
                self.trap(codes::TRAP_OUT_OF_FUEL, format!("stopped after {fuel} steps"))
            }
            _ => Ok(()),
        }
    }

    // ---- control -------------------------------------------------------------------------------------------------

    pub fn region(&mut self, region: &'k Region) -> TrapResult<Flow> {
        for stmt in region {
            if self.observer.is_some() {
                self.observe(|observer, state| observer.before(state, stmt))?;
            }
            let flow = self.stmt(&stmt.op, stmt.span)?;
            if self.observer.is_some() {
                self.observe(|observer, state| observer.after(state, stmt))?;
            }
            if flow != Flow::Next {
                return Ok(flow);
            }
        }
        Ok(Flow::Next)
    }

    fn observe(&mut self, f: impl FnOnce(&mut dyn Observer, &RunningKernel<'_>) -> ControlFlow<()>) -> TrapResult {
        let Some(observer) = self.observer.take() else { return Ok(()) };
        let flow = f(observer, &RunningKernel::new(self));
        self.observer = Some(observer);
        if flow.is_break() {
            self.stopped = true;
            return self.trap(codes::TRAP_OUT_OF_FUEL, "stopped by its observer");
        }
        Ok(())
    }

    /// What a failure means: the observer's wish, or an error that it is told of.
    pub fn end(&mut self, trap: Trap) -> End {
        if self.stopped {
            return End::Stopped;
        }
        if let Some(observer) = self.observer.take() {
            observer.trapped(&RunningKernel::new(self), &trap);
        }
        End::Trap(trap)
    }

    /// The running block's; `None` before the first.
    pub fn coordinates(&self) -> Option<&[i64]> {
        self.coordinates.as_deref()
    }

    fn stmt(&mut self, op: &'k Op, span: Span) -> TrapResult<Flow> {
        self.span = span;
        self.spend(1)?;
        match op {
            Op::For(x) => {
                let (lo, hi) = (self.index(x.lo), self.index(x.hi));
                for i in lo..hi {
                    self.span = span;
                    self.spend(1)?;
                    self.set(x.index, i as u64);
                    if let Some(pipes) = &mut self.pipes {
                        pipes.enter_loop(x.label, i - lo);
                    }
                    match self.region(&x.body)? {
                        Flow::Next => {}
                        Flow::Continue(l) if l == x.label => {}
                        Flow::Break(l) if l == x.label => break,
                        other => return Ok(self.leave_loop(x.label, other)),
                    }
                }
                Ok(self.leave_loop(x.label, Flow::Next))
            }
            Op::If(x) => self.region(if self.truth(x.cond) { &x.then } else { &x.els }),
            Op::While(x) => {
                for i in 0.. {
                    self.span = span;
                    self.spend(1)?;
                    if let Some(pipes) = &mut self.pipes {
                        pipes.enter_loop(x.label, i);
                    }
                    match self.region(&x.head)? {
                        Flow::Next => {}
                        other => return Ok(self.leave_loop(x.label, other)),
                    }
                    if !self.truth(x.cond) {
                        break;
                    }
                    match self.region(&x.body)? {
                        Flow::Next => {}
                        Flow::Continue(l) if l == x.label => {}
                        Flow::Break(l) if l == x.label => break,
                        other => return Ok(self.leave_loop(x.label, other)),
                    }
                }
                Ok(self.leave_loop(x.label, Flow::Next))
            }
            Op::Scope(x) => {
                let before = self.pipes.as_mut().map(|pipes| pipes.enter_role(x.role));
                let flow = self.region(&x.body)?;
                if let (Some(pipes), Some(before)) = (&mut self.pipes, before) {
                    pipes.leave_role(before);
                }
                Ok(match flow {
                    Flow::Leave(l) if l == x.label => Flow::Next,
                    other => other,
                })
            }
            Op::Break(label) => Ok(Flow::Break(*label)),
            Op::Continue(label) => Ok(Flow::Continue(*label)),
            Op::Leave(label) => Ok(Flow::Leave(*label)),
            _ => {
                self.fetched = false;
                self.issue(op, span)?;
                Ok(Flow::Next)
            }
        }
    }

    fn leave_loop(&mut self, label: Label, flow: Flow) -> Flow {
        if let Some(pipes) = &mut self.pipes {
            pipes.leave_loop(label);
        }
        flow
    }

    /// A check failed.
    pub fn failed(&self, check: ptoc_ir::tile::CheckId, args: &[Value]) -> Trap {
        let data = &self.k.checks[check];
        let fill = |text: &str| {
            args.iter().enumerate().fold(text.to_owned(), |text, (n, &arg)| {
                text.replace(&format!("{{{n}}}"), &scalar::display(self.ty(arg), self.get(arg)))
            })
        };
        Trap {
            help: data.help.as_deref().map(fill),
            block: self.coordinates.clone(),
            ..Trap::new(data.code, data.span, fill(&data.message))
        }
    }

    /// What the run moved of a tensor.
    fn bytes_of(&self, tensor: TensorId) -> TensorBytes {
        let [read, fetched, written] = self.moved[tensor].map(|halves| halves.div_ceil(2));
        TensorBytes { read, fetched, written }
    }

    /// The running statement loads a window: whether another block of the cluster has fetched it.
    pub fn loads(&mut self, window: impl FnOnce() -> Window) {
        if let Some(clusters) = &mut self.clusters {
            self.fetched = clusters.shared(window());
        }
    }

    pub fn tensor_name(&self, tensor: ptoc_ir::tile::TensorId) -> &'k str {
        tensors::name(self.k, tensor)
    }
}
