//! A kernel or program with all that is known before it runs: shapes, scalars, loop IR.

use super::arrays::{Arrays, for_argument};
use super::bind::{bind_dimensions, describe};
use super::order::PlanStep;
use super::planned::{Contents, Late, LateValues, PlannedLaunch};
use super::random::Bounds;
use super::tensors::ArgWindow;
use super::workspace::Workspace;
use crate::files::{ArrayFile, numpy_name};
use crate::session::{self, CompilationUnit, EntryPoint, Failed, RepairOrigin, Session, Waiting};
use indexmap::IndexMap;
use ptoc_analysis::{
    ArgDim, Bindings, HostExpr, ProgramStep, ProgramTensor, ScalarArg, ScalarSource, TensorArg, TensorSource,
};
use ptoc_diagnostics::{Diagnostic, Span, codes, list};
use ptoc_ir::oracle::{Clause, Condition};
use ptoc_ir::tile::{TensorDir, TensorId, Ty};
use ptoc_syntax::ast::{Expr, ItemKind, KernelItem, Name};
use ptoc_tensor::{DType, Tensor, TensorError};
use std::sync::Arc;

/// A tensor argument of the whole.
#[derive(Clone, Debug)]
pub struct Argument {
    /// The name.
    pub name: Name,
    /// Element type.
    pub dtype: DType,
    /// Use.
    pub dir: TensorDir,
    /// Extents.
    pub shape: Vec<usize>,
    /// The declaration.
    pub span: Span,
}

impl Argument {
    /// Whether the launch gives its contents.
    pub fn is_input(&self) -> bool {
        self.dir != TensorDir::Out
    }

    /// Whether the launch produces its contents.
    pub fn is_output(&self) -> bool {
        self.dir != TensorDir::In
    }
}

/// What the results of a kernel are held to.
#[derive(Debug, Default)]
pub struct Specification {
    /// `ensures`, each with its place.
    pub ensures: Vec<(Clause, Span)>,
    /// `where` over contents, each with its place.
    pub conditions: Vec<(Condition, Span)>,
    /// Launch integers and scalars, as the oracle numbers them.
    pub ints: Vec<i64>,
    /// See `ints`.
    pub scalars: Vec<(Ty, u64)>,
}

/// A kernel or program, ready to be compiled and run.
#[derive(Debug)]
pub struct Plan {
    /// The kernel's name.
    pub name: Name,
    /// Arguments in order.
    pub arguments: Vec<Argument>,
    /// Tensors of a program.
    pub locals: Vec<ProgramTensor>,
    /// Launches, as they stand in the text.
    pub steps: Vec<PlannedLaunch>,
    /// What runs in which order.
    pub order: Vec<PlanStep>,
    /// Scalars that the host keeps between launches.
    pub slots: usize,
    /// It is a program.
    pub program: bool,
    /// `ensures` and `where`.
    pub specification: Specification,
    /// Sizes of the dimensions.
    pub dims: IndexMap<Name, i64>,
    bounds: Bounds,
}

impl Plan {
    /// Binds dimensions, elaborates, and runs all passes. Arrays are checked against the types of their arguments.
    pub fn new(
        session: &mut Session,
        unit: &CompilationUnit,
        entry: &EntryPoint<'_>,
        arrays: &Arrays,
        random: bool,
    ) -> Result<Plan, Failed> {
        session.renew_steps();
        let given = arrays.keys().map(Name::new).collect();
        Plan::of(session, unit, entry, (arrays, given), random)
    }

    /// Without arrays: all sizes come from definitions, and `given` are the optional arguments that a launch would
    /// give.
    pub fn without_arrays(
        session: &mut Session,
        unit: &CompilationUnit,
        entry: &EntryPoint<'_>,
        given: &[Name],
    ) -> Result<Plan, Failed> {
        Plan::of(session, unit, entry, (&Arrays::new(), given.to_vec()), true)
    }

    fn of(
        session: &mut Session,
        unit: &CompilationUnit,
        entry: &EntryPoint<'_>,
        (arrays, given): (&Arrays, Vec<Name>),
        random: bool,
    ) -> Result<Plan, Failed> {
        let dims = bind_dimensions(session, unit, entry, arrays, random)?;
        let mut bindings = session.bindings(entry, unit)?;
        bindings.dims = dims.clone();
        bindings.given = given;
        let bounds = Bounds::of(entry, &dims);
        let mut make = |session: &mut Session, bindings: &Bindings| match entry.program {
            true => Plan::program(session, unit, entry, bindings, arrays),
            false => Plan::kernel(session, unit, entry, bindings, arrays),
        };
        let mut plan = session.with_stored(unit, entry, &bindings, &mut make)?;
        plan.dims = dims;
        plan.bounds = bounds;
        Ok(plan)
    }

    /// Whether it is one kernel, which the host runs.
    pub fn is_host(&self) -> bool {
        matches!(&self.steps[..], [step] if step.kernel.host && !self.program)
    }

    fn kernel(
        session: &mut Session,
        unit: &CompilationUnit,
        entry: &EntryPoint<'_>,
        bindings: &Bindings,
        arrays: &Arrays,
    ) -> Result<Plan, Failed> {
        let Some(mut instance) = session.instantiate(unit, entry.id, bindings, Waiting::IsError) else {
            return Err(Failed);
        };
        check_dtypes(session, entry, &instance.tensors, arrays)?;
        let launch = launch_scalars(session, &instance.scalars)?;
        let scalars = given_scalars(session, &instance.scalars, &launch, &[], instance.kernel.span)?;
        let dims = instance.kernel.dims.values().map(|d| bindings.dims.get(&d.name).copied().unwrap_or(0)).collect();
        let declared = std::mem::take(&mut instance.tensors);
        let ensures = std::mem::take(&mut instance.ensures);
        let conditions = std::mem::take(&mut instance.conditions);
        let types: Vec<Ty> = instance.scalars.iter().map(|s| s.ty).collect();
        let origin = RepairOrigin { unit, kernel: entry.id, bindings };
        let before = std::mem::take(&mut session.diagnostics);
        let late = Late::default();
        let made = PlannedLaunch::new(session, instance, &origin, &declared, (dims, &scalars), late, Arc::new([]));
        let told = std::mem::replace(&mut session.diagnostics, before);
        let mut step = match made {
            Ok(made) => made,
            Err(failed) => {
                session.diagnostics.extend(told.iter().cloned());
                return Err(failed);
            }
        };
        let proved = step.watched && !session.watched && proved_for_these(session, &origin);
        step.watched &= !proved;
        let doubt = |d: &Diagnostic| ptoc_checks::bytes::DOUBTS.contains(&d.code);
        session.diagnostics.extend(told.iter().filter(|d| !(proved && doubt(d))).cloned());
        let arguments: Vec<Argument> = declared
            .iter()
            .zip(step.shapes.iter().cloned())
            .map(|(t, shape)| Argument { name: t.name.clone(), dtype: t.dtype, dir: t.dir, shape, span: t.span })
            .collect();
        check_shapes(session, entry, &arguments, arrays)?;
        let tensors = (0..arguments.len()).map(TensorSource::Arg).collect();
        let windows = arguments.iter().map(|_| None).collect();
        let step = PlannedLaunch { tensors, windows, ..step };
        let ints = step.params();
        let specification = Specification {
            ensures: zip_spans(ensures, &entry.item.ensures, entry.item.name.span),
            conditions: zip_spans(conditions, &data_conditions(entry.item), entry.item.name.span),
            ints,
            scalars: types.into_iter().zip(step.scalars.iter().copied()).collect(),
        };
        Ok(Plan {
            name: entry.item.name.name.clone(),
            arguments,
            locals: Vec::new(),
            steps: vec![step],
            order: vec![PlanStep::Launch(0)],
            slots: 0,
            program: false,
            specification,
            dims: IndexMap::new(),
            bounds: Bounds::default(),
        })
    }

    fn program(
        session: &mut Session,
        unit: &CompilationUnit,
        entry: &EntryPoint<'_>,
        bindings: &Bindings,
        arrays: &Arrays,
    ) -> Result<Plan, Failed> {
        let Some(program) = session.instantiate_program(unit, entry.id, bindings, Waiting::IsError) else {
            return Err(Failed);
        };
        check_dtypes(session, entry, &program.tensors, arrays)?;
        let mut arguments = Vec::new();
        for t in &program.tensors {
            let Some(shape) = t.dims.iter().map(|d| extent(d, &bindings.dims)).collect::<Option<Vec<usize>>>() else {
                let message = format!("the shape of `{}` is not known before the program runs", t.name);
                return session.fail(
                    Diagnostic::error(codes::MISSING_DIMENSION, t.span, message)
                        .with_help("write its extents as numbers or dimensions"),
                );
            };
            arguments.push(Argument { name: t.name.clone(), dtype: t.dtype, dir: t.dir, shape, span: t.span });
        }
        check_shapes(session, entry, &arguments, arrays)?;
        let mut steps = Vec::new();
        for s in program.steps {
            let whole = |t: &TensorSource| source_shape(*t, &arguments, &program.locals);
            let passed = s.tensors.iter().zip(&s.windows).zip(&s.instance.tensors);
            let shapes: Vec<Vec<usize>> = passed
                .map(|((t, window), arg)| {
                    let mut shape = match window {
                        Some(window) => window.shape().iter().map(|&n| n as usize).collect(),
                        None => whole(t),
                    };
                    // A tensor is a batch of one.
                    if shape.len() + 1 == arg.dims.len() {
                        shape.push(1);
                    }
                    shape
                })
                .collect();
            let dims = step_dims(&s, &shapes);
            let (known, late) = known_and_late(&s);
            let scalars = given_scalars(session, &s.instance.scalars, &known, &late, s.span)?;
            let declared = s.instance.tensors.clone();
            let contents = contents_of(unit, &s);
            let origin = RepairOrigin { unit, kernel: s.kernel, bindings: &s.bindings };
            let dims_of = late_dims(&s);
            let late = Late { values: late, moved: s.moved, windows: s.lengths, dims: dims_of, undecided: s.undecided };
            let sized = late.windows.is_empty();
            let names = s.instance.kernel.dims.values().map(|d| d.name.clone());
            let sizes: IndexMap<Name, i64> = names.zip(dims.iter().copied()).collect();
            let sites = s.sites.into();
            let mut step = PlannedLaunch::new(session, s.instance, &origin, &declared, (dims, &scalars), late, sites)?;
            if step.watched && !session.watched && sized {
                let bindings = Bindings { dims: sizes, ..s.bindings.clone() };
                step.watched &= !proved_for_these(session, &RepairOrigin { bindings: &bindings, ..origin });
            }
            let step = PlannedLaunch { span: s.span, ..step };
            let step = step.takes(shapes).or_else(|d| session.fail(*d))?;
            let elsewhere = s.elsewhere.iter().map(|t| t.as_u32()).collect();
            let windows = s.windows.into_iter().zip(&declared).map(|(w, t)| w.map(|w| ArgWindow::new(w, t.dtype)));
            let windows = windows.collect();
            steps.push(PlannedLaunch { tensors: s.tensors, windows, elsewhere, contents, ..step });
        }
        mark_write_only(&mut steps);
        let scalars: Vec<(Ty, u64)> = program.scalars.iter().map(|s| (s.ty, s.given.unwrap_or(0))).collect();
        let specification = Specification {
            ensures: zip_spans(program.ensures, &entry.item.ensures, entry.item.name.span),
            conditions: zip_spans(program.conditions, &data_conditions(entry.item), entry.item.name.span),
            ints: scalars.iter().map(|&(_, bits)| bits as i64).collect(),
            scalars,
        };
        Ok(Plan {
            name: program.name,
            arguments,
            locals: program.locals,
            steps,
            order: super::order::linear(&program.order),
            slots: program.slots,
            program: true,
            specification,
            dims: IndexMap::new(),
            bounds: Bounds::default(),
        })
    }

    /// The tensors of a run in the order of the arguments: arrays, random numbers for other inputs, zeros for outputs.
    pub fn tensors(&self, session: &mut Session, arrays: &mut Arrays, seed: u64) -> Result<Vec<Tensor>, Failed> {
        let begin = session.clock.now();
        let mut tensors = Vec::new();
        for (i, a) in self.arguments.iter().enumerate() {
            let given = match arrays.swap_remove(a.name.as_str()).map(ArrayFile::into_tensor) {
                Some(Err(d)) => return session.fail(for_argument(d, Some(a.span))),
                Some(Ok(tensor)) => Some(tensor),
                None => None,
            };
            let tensor = match given {
                // The bits of a bf16 array come as u16.
                Some(bits) if bits.dtype() != a.dtype => Tensor::from_bytes(a.dtype, &a.shape, bits.bytes()),
                Some(tensor) => Ok(tensor),
                None if a.is_input() => self.bounds.random(a, seed).and_then(|t| self.repeated(i, t)),
                None => Tensor::zeros(a.dtype, &a.shape),
            };
            match tensor {
                Ok(tensor) => tensors.push(tensor),
                Err(e) => {
                    let code = crate::files::code(e.code());
                    let mut d = Diagnostic::error(code, a.span, format!("argument `{}`: {e}", a.name));
                    if code == codes::RANDOM_RANGE {
                        d = d.with_note("the range is what `where` says, with these dimensions");
                    }
                    return session.fail(d);
                }
            }
        }
        session.clock.phase("make inputs", begin);
        Ok(tensors)
    }

    /// Where the tensors of a program are. `unfilled` are those of each launch that it is not known to fill.
    pub fn workspace(&self, unfilled: &[Vec<TensorId>]) -> Workspace {
        Workspace::plan(&self.locals, &self.order, &|number| {
            let step = &self.steps[number];
            let part = |n: usize| step.windows[n].is_some();
            let late = step.late.iter().flat_map(|late| late.late.computed());
            super::workspace::accesses(&step.kernel, &step.tensors, late, &part, &unfilled[number])
        })
    }

    /// Extents of a tensor that launches choose from.
    #[cfg(feature = "pim")]
    pub(crate) fn extents(&self, source: TensorSource) -> Vec<usize> {
        source_shape(source, &self.arguments, &self.locals)
    }

    /// A launch of a program as a plan of its own that nothing runs, for what its `where` says of contents.
    pub(super) fn of_contents(step: &PlannedLaunch, contents: &Contents) -> Plan {
        let tensors = step.kernel.tensors.values().zip(&step.shapes).zip(&step.parameters);
        let arguments = tensors
            .map(|((t, shape), span)| Argument {
                name: t.name.as_str().into(),
                dtype: t.dtype,
                dir: t.dir,
                shape: shape.clone(),
                span: *span,
            })
            .collect();
        let specification = Specification {
            ensures: Vec::new(),
            conditions: contents.conditions.clone(),
            ints: step.params(),
            scalars: contents.scalars.iter().copied().zip(step.scalars.iter().copied()).collect(),
        };
        Plan {
            name: contents.name.clone(),
            arguments,
            locals: Vec::new(),
            steps: Vec::new(),
            order: Vec::new(),
            slots: 0,
            program: false,
            specification,
            dims: IndexMap::new(),
            bounds: Bounds::default(),
        }
    }

    /// Where the layout of argument `i` repeats elements, the array repeats them too.
    fn repeated(&self, i: usize, mut array: Tensor) -> Result<Tensor, TensorError> {
        let of_kernel = |s: &&PlannedLaunch| self.steps.len() == 1 && s.tensors.get(i) == Some(&TensorSource::Arg(i));
        let storage = self.steps.first().filter(of_kernel).and_then(|s| s.storage.get(i)?.as_ref());
        if let Some(storage) = storage
            && let Ok(length) = usize::try_from(storage.len())
        {
            let mut buffer = Tensor::zeros(array.dtype(), &[length])?;
            let width = array.dtype().size();
            storage.scatter(width, array.bytes(), buffer.bytes_mut());
            storage.gather(width, buffer.bytes(), array.bytes_mut());
        }
        Ok(array)
    }
}

/// Whether it is proved with the sizes of this launch that what the kernel reads of tiles is written. `ptoc check -D`
/// with them says the same.
fn proved_for_these(session: &mut Session, origin: &RepairOrigin<'_>) -> bool {
    if origin.bindings.dims.is_empty() {
        return false;
    }
    let mut bindings = origin.bindings.clone();
    bindings.fixed = bindings.dims.clone();
    let told = std::mem::take(&mut session.diagnostics);
    let origin = RepairOrigin { bindings: &bindings, ..*origin };
    let instance = session.instantiate(origin.unit, origin.kernel, &bindings, Waiting::IsError);
    let prepared = instance.and_then(|instance| session.prepare(instance.kernel, &instance.debug, &origin));
    session.diagnostics = told;
    prepared.is_some_and(|prepared| !prepared.placed.watched)
}

/// Notes which arrays no launch reads, so that large ones are written by non-temporal stores window by window.
fn mark_write_only(steps: &mut [PlannedLaunch]) {
    let mut read: Vec<TensorSource> = Vec::new();
    for step in steps.iter() {
        for (source, tensor) in step.tensors.iter().zip(step.kernel.tensors.values()) {
            if tensor.dir != TensorDir::Out && !read.contains(source) {
                read.push(*source);
            }
        }
    }
    for step in steps {
        let written = step.tensors.iter().take(64).enumerate().filter(|(_, source)| !read.contains(source));
        step.write_only = written.fold(0, |bits, (n, _)| bits | 1 << n);
    }
}

/// Pairs what the analysis made of expressions with their places.
fn zip_spans<T>(list: Vec<T>, exprs: &[Expr], otherwise: Span) -> Vec<(T, Span)> {
    let same = list.len() == exprs.len();
    let span = |i: usize| if same { exprs[i].span } else { otherwise };
    list.into_iter().enumerate().map(|(i, x)| (x, span(i))).collect()
}

/// The `where` conditions over contents of tensors, as the analysis picks them.
fn data_conditions(item: &KernelItem) -> Vec<Expr> {
    item.wheres.iter().filter(|e| super::random::has_index(e)).cloned().collect()
}

/// What the kernel of a launch demands of contents.
fn contents_of(unit: &CompilationUnit, step: &ProgramStep) -> Option<Arc<Contents>> {
    let ItemKind::Kernel(item) = &unit.modules.item(step.kernel).kind else { return None };
    let conditions = step.instance.conditions.clone();
    if conditions.is_empty() {
        return None;
    }
    let conditions = zip_spans(conditions, &data_conditions(item), item.name.span);
    let scalars = step.instance.scalars.iter().map(|s| s.ty).collect();
    Some(Arc::new(Contents { name: item.name.name.clone(), conditions, scalars }))
}

/// The number that an extent is.
pub(crate) fn extent(dim: &ArgDim, dims: &IndexMap<Name, i64>) -> Option<usize> {
    match dim {
        ArgDim::Dim(n) => dims.get(n).and_then(|&n| usize::try_from(n).ok()),
        ArgDim::Const(n) => usize::try_from(*n).ok(),
        ArgDim::Computed(_) => None,
    }
}

fn source_shape(source: TensorSource, arguments: &[Argument], locals: &[ProgramTensor]) -> Vec<usize> {
    match source {
        TensorSource::Arg(i) => arguments[i].shape.clone(),
        TensorSource::Local(i) => locals[i].shape.iter().map(|&n| usize::try_from(n).unwrap_or(0)).collect(),
    }
}

/// The dimensions of a program's launch: those that it is elaborated for, and others from the shapes that it is given.
pub(crate) fn step_dims(step: &ProgramStep, shapes: &[Vec<usize>]) -> Vec<i64> {
    let size = |name: &str| {
        step.instance.tensors.iter().zip(shapes).find_map(|(t, shape)| {
            let at = t.dims.iter().position(|d| d.is_dim(name))?;
            shape.get(at).map(|&n| n as i64)
        })
    };
    // A window whose extent is computed later is as long here as it can be.
    let known = |name: &Name| step.bindings.dims.get(name).copied();
    step.instance.kernel.dims.values().map(|d| known(&d.name).or_else(|| size(&d.name)).unwrap_or(0)).collect()
}

/// Bits by name.
type KnownScalars = Vec<(Name, u64)>;

/// For each dimension of a program's launch that only windows of late extents have, an argument and its mode.
fn late_dims(step: &ProgramStep) -> Vec<Option<(usize, usize)>> {
    let found = |name: &str| {
        let tensors = step.instance.tensors.iter().enumerate();
        tensors.filter_map(|(n, t)| Some((n, t.dims.iter().position(|d| d.is_dim(name))?))).next()
    };
    let known = |name: &str| step.bindings.dims.contains_key(name);
    step.instance.kernel.dims.values().map(|d| found(&d.name).filter(|_| !known(&d.name))).collect()
}

/// The scalar arguments of a program's launch that are known, and those that the host computes, by number.
pub(super) fn known_and_late(step: &ProgramStep) -> (KnownScalars, LateValues) {
    let (mut known, mut late) = (Vec::new(), Vec::new());
    for (name, source) in &step.scalars {
        match source {
            ScalarSource::Known(bits) => known.push((name.clone(), *bits)),
            ScalarSource::Late(value) => {
                let number = step.instance.scalars.iter().position(|s| s.name == *name);
                late.extend(number.map(|n| (n, value.clone())));
            }
        }
    }
    (known, late)
}

/// Bits of the scalar arguments that the session has for a launch.
fn launch_scalars(session: &mut Session, scalars: &[ScalarArg]) -> Result<Vec<(Name, u64)>, Failed> {
    let mut out = Vec::new();
    for (name, value) in session.scalars.clone() {
        let Some(s) = scalars.iter().find(|s| s.name == name) else { continue };
        let Some(bits) = value.bits(s.ty) else {
            let message = format!("`{name}` is `{}`, and {} is given", s.ty, value.text());
            let mut d = Diagnostic::error(codes::CALL_ARGUMENTS, s.span, message).with_label("a scalar");
            if let Ty::D(dtype) = s.ty
                && dtype.is_float()
            {
                d = d.with_note(format!("the largest number of `{dtype}` is {:?}", ptoc_ir::formula::largest(dtype)));
            }
            return session.fail(d.with_help(format!("pass a value of `{}`", s.ty)));
        };
        out.push((name, bits));
    }
    Ok(out)
}

/// Bits of the scalar arguments that are given; those without a default must be, or come late.
fn given_scalars(
    session: &mut Session,
    scalars: &[ScalarArg],
    launch: &[(Name, u64)],
    late: &[(usize, HostExpr)],
    span: Span,
) -> Result<Vec<Option<u64>>, Failed> {
    let mut out = Vec::new();
    let mut missing = Vec::new();
    for (number, s) in scalars.iter().enumerate() {
        let bits = launch.iter().find(|(n, _)| *n == s.name).map(|&(_, bits)| bits).or(s.given);
        if bits.is_none() && !s.has_default && late.iter().all(|(n, _)| *n != number) {
            missing.push(s);
        }
        out.push(bits);
    }
    let Some(first) = missing.first() else { return Ok(out) };
    let names: Vec<&str> = missing.iter().map(|s| s.name.as_str()).collect();
    let message = match names.len() {
        1 => format!("no value was given for `{}`, which is `{}`", first.name, first.ty),
        _ => format!("no values were given for {}", list(names.iter().copied())),
    };
    let place = if first.span == Span::default() { span } else { first.span };
    let flags: Vec<String> = names.iter().map(|n| session.front.definition(n)).collect();
    let flags = flags.join(session.front.separator());
    session.fail(
        Diagnostic::error(codes::MISSING_SCALAR, place, message)
            .with_label("has no default")
            .with_help(format!("give it: `{flags}`")),
    )
}

fn array_of<'a>(arrays: &'a Arrays, name: &Name) -> Option<&'a ArrayFile> {
    arrays.get(name.as_str())
}

fn check_dtypes(
    session: &mut Session,
    entry: &EntryPoint<'_>,
    tensors: &[TensorArg],
    arrays: &Arrays,
) -> Result<(), Failed> {
    let mut failed = false;
    for t in tensors {
        let Some(array) = array_of(arrays, &t.name) else { continue };
        let have = array.dtype();
        if have == t.dtype || t.dtype.has_bits_of(have) {
            continue;
        }
        failed = true;
        let param = entry.tensors().find(|p| p.name.name == t.name);
        let place = param.map_or(t.span, session::type_span);
        let declared = session.sources.slice(place).to_owned();
        let mut d = Diagnostic::error(
            codes::ARRAY_DTYPE,
            place,
            format!("`{}` holds `{}`, its array holds `{have}`", t.name, t.dtype),
        )
        .with_label(format!("declared `{declared}`"))
        .with_note(format!("the array is {}", describe(array)));
        d = match t.dtype {
            want if array.is_lent() => d.with_help(cast_help(&t.name, want)),
            DType::BF16 => d.with_help("save the bits of bf16 as uint16, or as `V2`"),
            want if want.is_f8() => d.with_help(format!("save the bits of {want} as uint8, or as `V1`")),
            want => d.with_help(format!(
                "convert it: `np.save(\"{}\", x.astype(np.{}))`",
                array.path().display(),
                numpy_name(want)
            )),
        };
        session.diagnostics.push(d);
    }
    if failed { Err(Failed) } else { Ok(()) }
}

/// How a caller's array gets another dtype.
fn cast_help(name: &Name, want: DType) -> String {
    match want {
        DType::BF16 | DType::F8E4M3 | DType::F8E5M2 => format!("pass `{name}` as {want}: nothing is converted here"),
        want => format!("convert it: `{name}.astype(np.{0})`, `{name}.to(torch.{0})`", numpy_name(want)),
    }
}

fn check_shapes(
    session: &mut Session,
    entry: &EntryPoint<'_>,
    arguments: &[Argument],
    arrays: &Arrays,
) -> Result<(), Failed> {
    let mut failed = false;
    for a in arguments {
        let Some(array) = array_of(arrays, &a.name) else { continue };
        if array.shape() == a.shape {
            continue;
        }
        failed = true;
        let param = entry.tensors().find(|p| p.name.name == a.name);
        let place = param.map_or(a.span, session::type_span);
        let declared = session.sources.slice(place).to_owned();
        let d = Diagnostic::error(
            codes::ARRAY_SHAPE,
            place,
            format!("`{}` has the shape {:?}, its array {:?}", a.name, a.shape, array.shape()),
        )
        .with_label(format!("declared `{declared}`, here {}{:?}", a.dtype, a.shape))
        .with_note(format!("the array is {}", describe(array)))
        .with_help("give an array of that shape, or change the dimensions that it depends on");
        session.diagnostics.push(d);
    }
    if failed { Err(Failed) } else { Ok(()) }
}
