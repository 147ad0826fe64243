//! One launch of a plan: the kernel behind all passes, and its sizes.

use super::plan::known_and_late;
use super::tensors::ArgWindow;
use crate::session::{Failed, LaunchSizes, RepairOrigin, Session};
use ptoc_analysis::debug::DebugInfo;
use ptoc_analysis::{ArgLayout, HostExpr, Instance, LateWindow, LaunchSite, ProgramStep, TensorArg, TensorSource};
use ptoc_diagnostics::{Diagnostic, Span, codes};
use ptoc_ir::loops::Module;
use ptoc_ir::oracle::Condition;
use ptoc_ir::tile::{Kernel, TensorDir, Ty};
use ptoc_layout::Storage;
use ptoc_placement::Placement;
use ptoc_syntax::ast::Name;
use std::sync::Arc;

/// What the host computes before a launch, by the numbers of what it is for.
pub(super) type LateValues = Vec<(usize, HostExpr)>;

/// What of a launch the host computes before it.
#[derive(Clone, Debug, Default)]
pub(super) struct Late {
    /// Scalar arguments.
    pub values: LateValues,
    /// How far windows are moved.
    pub moved: LateValues,
    /// Windows whose extents are computed, by argument.
    pub windows: Vec<(usize, LateWindow)>,
    /// Where dimensions are found that are known by then: the argument and its mode, by dimension.
    pub dims: Vec<Option<(usize, usize)>>,
    /// Data decide whether it comes to the launch.
    pub undecided: bool,
}

impl Late {
    fn is_empty(&self) -> bool {
        self.values.is_empty() && self.moved.is_empty() && self.windows.is_empty()
    }

    /// What the host computes.
    pub fn computed(&self) -> impl Iterator<Item = &HostExpr> {
        let lengths = self.windows.iter().flat_map(|(_, w)| &w.lengths);
        self.values.iter().chain(&self.moved).chain(lengths).map(|(_, value)| value)
    }
}

/// Scalar arguments, places and extents of windows that the host computes before a launch of a program, and what its
/// kernel is sized by then.
#[derive(Clone, Debug)]
pub struct LateScalars {
    /// What is computed.
    pub(super) late: Late,
    /// Bits of the others; `None`: the default.
    known: Vec<Option<u64>>,
    /// Layouts of the arguments that have one.
    layouts: Vec<Option<ArgLayout>>,
}

/// What a `where` says of the contents of a launch's arguments.
#[derive(Debug)]
pub struct Contents {
    /// The kernel.
    pub name: Name,
    /// The conditions, each with its place.
    pub conditions: Vec<(Condition, Span)>,
    /// Types of the scalars.
    pub scalars: Vec<Ty>,
}

impl Contents {
    /// Whether a condition reads elements of the tensor of this number.
    pub(super) fn reads(&self, number: usize) -> bool {
        self.conditions.iter().any(|(c, _)| c.cond.reads(&|n, is_scalar| !is_scalar && n == number))
    }
}

/// One launch.
#[derive(Clone, Debug)]
pub struct PlannedLaunch {
    /// Tile IR with all checks, for the interpreter.
    pub kernel: Arc<Kernel>,
    /// What the source's names stand for in it.
    pub debug: Arc<DebugInfo>,
    /// Where its tiles are.
    pub placement: Arc<Placement>,
    /// Loop IR, for machine code.
    pub module: Option<Arc<Module>>,
    /// Where each tensor argument comes from.
    pub tensors: Vec<TensorSource>,
    /// Which elements of it the launch gets, where that is not all of it.
    pub windows: Vec<Option<ArgWindow>>,
    /// Declarations of the arguments.
    pub parameters: Vec<Span>,
    /// Extents of what it gets.
    pub shapes: Vec<Vec<usize>>,
    /// How each tensor argument lies in the kernel's memory, where that is not its C order.
    pub storage: Vec<Option<Storage>>,
    /// Values of the symbolic dimensions, in the kernel's order.
    pub dims: Vec<i64>,
    /// Bits of the scalar arguments, in the kernel's order; 0 for those that come [late](PlannedLaunch::late).
    pub scalars: Vec<u64>,
    /// Scalar arguments that the host computes before the launch. What depends on scalars (storage, blocks) is not
    /// known before.
    pub late: Option<Box<LateScalars>>,
    /// What the kernel's `where` says of contents, for a launch of a program.
    pub contents: Option<Arc<Contents>>,
    /// Tensors of the kernel, by number, that lie where another launch of the program says.
    pub elsewhere: Vec<u32>,
    /// Bit n: no launch of the program reads anything of tensor n. Its windows are written by non-temporal stores if
    /// all of it is too large for the caches.
    pub write_only: u64,
    /// Blocks of the grid.
    pub blocks: u64,
    /// See [`ptoc_placement::PlacedKernel::watched`].
    pub watched: bool,
    /// The call in a program; of a kernel by itself its name.
    pub span: Span,
    /// That call and those of the programs around it, the innermost first; of a kernel by itself none.
    pub sites: Arc<[LaunchSite]>,
    /// Which of [`Session::origins`] it has, where other ways to write its kernel may be tried.
    #[cfg_attr(not(feature = "pim"), expect(dead_code))]
    pub(crate) origin: Option<usize>,
}

/// Calls that a report shows; of more the innermost ones and the outermost.
const SHOWN: usize = 4;

/// A report of a launch, with the calls that lead to it.
fn launched_from(sites: &[LaunchSite], d: Diagnostic) -> Diagnostic {
    let between = sites.len().saturating_sub(SHOWN);
    let shown = sites.iter().enumerate().filter(|(k, _)| k + 1 < SHOWN || k + 1 == sites.len());
    let d = shown.fold(d, |d, (_, site)| {
        let with = match &site.with[..] {
            [] => String::new(),
            list => format!(", with {}", ptoc_isa::text::list(list)),
        };
        d.with_secondary(site.span, format!("`{}` is launched here{with}", site.name))
    });
    match between {
        0 => d,
        1 => d.with_note("between the launches that are shown there is another one"),
        n => d.with_note(format!("between the launches that are shown there are {n} others")),
    }
}

/// What a launch demands of its dimensions and scalars and does not get, where all of them are known before the
/// program runs.
pub(crate) fn refuted(step: &ProgramStep) -> Option<Diagnostic> {
    let (known, late) = known_and_late(step);
    if !late.is_empty() || !step.lengths.is_empty() {
        return None;
    }
    let kernel = &step.instance.kernel;
    let dims: Option<Vec<i64>> = kernel.dims.values().map(|d| step.bindings.dims.get(&d.name).copied()).collect();
    let mut scalars = Vec::new();
    for s in &step.instance.scalars {
        let bits = known.iter().find(|(n, _)| *n == s.name).map(|&(_, bits)| bits).or(s.given);
        if bits.is_none() && !s.has_default {
            return None;
        }
        scalars.push(bits);
    }
    let trap = ptoc_interp::prologue(kernel, &dims?, &scalars).err()?;
    Some(launched_from(&step.sites, trap.to_diagnostic()))
}

impl PlannedLaunch {
    /// Sizes of the dimensions, then the bits of the scalars: what the launch record has.
    pub fn params(&self) -> Vec<i64> {
        self.dims.iter().copied().chain(self.scalars.iter().map(|&bits| bits as i64)).collect()
    }

    /// Whether no launch of the program reads the array of which this argument is a part.
    pub fn streams(&self, argument: usize) -> bool {
        argument < 64 && self.write_only >> argument & 1 == 1
    }

    /// A report of this launch, with the calls that lead to it.
    pub fn launched(&self, d: Diagnostic) -> Diagnostic {
        launched_from(&self.sites, d)
    }

    /// A trap of the running kernel, with the calls of functions and the launches that lead there.
    pub fn trapped(&self, d: Diagnostic) -> Diagnostic {
        self.launched(self.debug.trapped_in(&self.kernel, d))
    }

    /// Runs the passes, and the prologue where all scalars are known. Where its tensors are is the caller's to say.
    pub(super) fn new(
        session: &mut Session,
        mut instance: Instance,
        origin: &RepairOrigin<'_>,
        declared: &[TensorArg],
        (dims, scalars): (Vec<i64>, &[Option<u64>]),
        late: Late,
        sites: Arc<[LaunchSite]>,
    ) -> Result<PlannedLaunch, Failed> {
        let debug = Arc::new(std::mem::take(&mut instance.debug));
        let sizes = LaunchSizes { dims: &dims, scalars, all_known: late.values.is_empty() && late.windows.is_empty() };
        let Some(prepared) = session.prepare_to_run(instance, origin, sizes) else { return Err(Failed) };
        let ptoc_placement::PlacedKernel { kernel, placement, watched } = prepared.placed;
        let layouts: Vec<_> = declared.iter().map(|t| t.layout.clone()).collect();
        let span = kernel.span;
        let mut step = PlannedLaunch {
            kernel: Arc::new(kernel),
            debug,
            placement: Arc::new(placement),
            module: prepared.module,
            tensors: Vec::new(),
            windows: Vec::new(),
            parameters: declared.iter().map(|t| t.span).collect(),
            shapes: Vec::new(),
            storage: vec![None; declared.len()],
            dims,
            scalars: vec![0; scalars.len()],
            late: None,
            contents: None,
            elsewhere: Vec::new(),
            write_only: 0,
            blocks: 0,
            span,
            sites,
            watched,
            origin: session.target.has_units().then(|| {
                session.origins.push((origin.kernel, origin.bindings.clone()));
                session.origins.len() - 1
            }),
        };
        if late.is_empty() {
            match step.size(scalars, &layouts) {
                Ok(()) => return Ok(step),
                // It is refused if it comes to it.
                Err(_) if late.undecided => {}
                Err(d) => return session.fail(step.launched(*d)),
            }
        }
        step.late = Some(Box::new(LateScalars { late, known: scalars.to_vec(), layouts }));
        Ok(step)
    }

    /// Runs the prologue: storage, extents and blocks for these scalars.
    fn size(&mut self, scalars: &[Option<u64>], layouts: &[Option<ArgLayout>]) -> Result<(), Box<Diagnostic>> {
        let kernel = &self.kernel;
        let values =
            ptoc_interp::prologue(kernel, &self.dims, scalars).map_err(|trap| Box::new(trap.to_diagnostic()))?;
        let value = |v: ptoc_ir::tile::Value| values[v.as_u32() as usize];
        let (mut shapes, mut storage) = (Vec::new(), Vec::new());
        let arguments = kernel.tensors.values().filter(|t| t.dir != TensorDir::Scratch);
        for ((t, layout), span) in arguments.zip(layouts).zip(&self.parameters) {
            if let Some(layout) = layout {
                let tensor = (t.name.as_str(), t.dtype, t.dir, *span);
                let s = layout.storage(tensor, &mut |v| values.get(v.as_u32() as usize).map(|bits| *bits as i64))?;
                shapes.push(s.shape().iter().map(|&n| n as usize).collect());
                storage.push(Some(s));
                continue;
            }
            let mut shape = Vec::new();
            for &v in &t.shape {
                let n = value(v) as i64;
                let Ok(n) = usize::try_from(n) else {
                    let message = format!("an extent of `{}` is {n}", t.name);
                    return Err(Box::new(Diagnostic::error(codes::ARRAY_SHAPE, t.span, message)));
                };
                shape.push(n);
            }
            shapes.push(shape);
            storage.push(None);
        }
        // More than 64 bits are refused by whoever launches it.
        let extents = kernel.grid.iter().map(|g| (value(g.extent) as i64).max(0) as u64);
        self.blocks = extents.fold(1, u64::saturating_mul);
        let bits = kernel.scalars.iter().zip(scalars).map(|(p, given)| given.unwrap_or(value(p.value)));
        self.scalars = bits.collect();
        (self.shapes, self.storage) = (shapes, storage);
        Ok(())
    }

    /// The launch of a kernel without layouts with other scalars, where its prologue takes them; `None`: the default.
    pub(crate) fn with_values(&self, scalars: &[Option<u64>]) -> Option<PlannedLaunch> {
        let mut step = self.clone();
        let layouts = vec![None; self.parameters.len()];
        step.size(scalars, &layouts).ok()?;
        Some(step)
    }

    /// Takes the extents that a program's launch gives its parameters, which must be theirs.
    pub(super) fn takes(mut self, given: Vec<Vec<usize>>) -> Result<PlannedLaunch, Box<Diagnostic>> {
        if self.late.is_some() {
            self.shapes = given;
            return Ok(self);
        }
        let arguments = self.kernel.tensors.values().zip(&self.parameters);
        for ((have, want), (t, span)) in given.iter().zip(&self.shapes).zip(arguments) {
            if have != want {
                let message = format!("`{}` must be {}{want:?}, and this launch gives it {have:?}", t.name, t.dtype);
                let d = Diagnostic::error(codes::ARRAY_SHAPE, self.span, message);
                return Err(Box::new(d.with_secondary(*span, "the parameter")));
            }
        }
        Ok(self)
    }

    /// Gives the window of an argument the extents of these modes. That they are inside was tested before.
    fn shorten(
        &mut self,
        argument: usize,
        window: &LateWindow,
        lengths: &[(usize, i64)],
    ) -> Result<(), Box<Diagnostic>> {
        let mut modes = window.modes.clone();
        for &(mode, n) in lengths {
            let most = modes[mode][0].0;
            let Some(extent) = usize::try_from(n).ok().filter(|n| *n as i128 <= most) else {
                let message = format!("this launch gets a window of {n} in mode {mode}, of which there are {most}");
                return Err(Box::new(Diagnostic::error(codes::VIEW_OUT_OF_BOUNDS, self.span, message)));
            };
            modes[mode][0].0 = n.into();
            self.shapes[argument][mode] = extent;
        }
        let elements = Storage::of_numbers(&modes, None, window.offset).map_err(|e| {
            let message = format!("this window is no argument of a launch: {e}");
            Box::new(Diagnostic::error(codes::LAUNCH_WINDOW, self.span, message))
        })?;
        self.windows[argument] = Some(ArgWindow::new(elements, self.dtype(argument)));
        Ok(())
    }

    /// Moves the window of an argument, whose tensor has `len` elements.
    pub(super) fn move_window(&mut self, argument: usize, by: i64, len: usize) -> Result<(), Box<Diagnostic>> {
        let dtype = self.dtype(argument);
        let Some(window) = &mut self.windows[argument] else { return Ok(()) };
        let moved = u64::try_from(by).ok().and_then(|by| window.elements.moved(by)).filter(|m| m.len() <= len as u64);
        let Some(elements) = moved else {
            let message = format!("this launch gets a window from element {by} on, and the tensor has {len} elements");
            return Err(Box::new(Diagnostic::error(codes::VIEW_OUT_OF_BOUNDS, self.span, message)));
        };
        *window = ArgWindow::new(elements, dtype);
        Ok(())
    }

    /// The launch with what `value` computes for it, but for where its windows are.
    pub(super) fn ready(
        &self,
        late: &LateScalars,
        value: &mut dyn FnMut(&HostExpr) -> Result<u64, Box<Diagnostic>>,
    ) -> Result<PlannedLaunch, Box<Diagnostic>> {
        let mut scalars = late.known.clone();
        for (n, expr) in &late.late.values {
            scalars[*n] = Some(value(expr)?);
        }
        let mut step = PlannedLaunch { late: None, ..self.clone() };
        for (argument, window) in &late.late.windows {
            let lengths = window.lengths.iter().map(|(mode, expr)| Ok((*mode, value(expr)? as i64)));
            let lengths: Vec<_> = lengths.collect::<Result<_, Box<Diagnostic>>>()?;
            step.shorten(*argument, window, &lengths)?;
        }
        for (dim, place) in late.late.dims.iter().enumerate() {
            if let Some((argument, mode)) = place {
                step.dims[dim] = step.shapes[*argument][*mode] as i64;
            }
        }
        let given = std::mem::take(&mut step.shapes);
        let told =
            |d: Box<Diagnostic>| Box::new(d.with_secondary(self.span, "this launch, with scalars of earlier ones"));
        step.size(&scalars, &late.layouts).map_err(told)?;
        step.takes(given)
    }
}
