//! Programs: kernels launched in order, over the program's arguments and tensors of its own. Everything about a launch
//! but the contents is known here: extents are constants, so a program is elaborated for given dimensions, and what
//! decides over its launches is evaluated.

mod call;
mod condition;
mod demands;
mod host;
mod host_loop;
mod launch;
mod loops;
mod places;
mod stmts;
mod variables;
mod windows;
mod written;

pub use condition::{HostExpr, HostFault, ProgramNode};
pub use demands::{Demand, Demanded};
pub use host_loop::HostLoop;
pub use windows::LateWindow;

use crate::instance::{Instance, wheres};
use crate::oracle::OracleElaborator;
use ptoc_diagnostics::{Diagnostic, Span, codes};
use ptoc_elab::{Bindings, ElabResult, ElaborationOutcome, Elaborator, ErrorReported, ScalarArg, TensorArg};
use ptoc_ir::oracle::{Clause, Condition as OracleCondition};
use ptoc_ir::tile::{CheckId, ElementPlacement, TensorDir, TensorId, Ty, Value};
use ptoc_isa::Target;
use ptoc_layout::Storage;
use ptoc_names::{ItemId, Modules};
use ptoc_syntax::ast::*;
use ptoc_tensor::DType;
use ptoc_values::{Binding, Val};
use rustc_hash::{FxHashMap, FxHashSet};
use written::{OnSomePaths, Written};

/// A tensor that a program makes.
#[derive(Clone, Debug)]
pub struct ProgramTensor {
    /// The name.
    pub name: Name,
    /// Element type.
    pub dtype: DType,
    /// Extents.
    pub shape: Vec<i64>,
    /// Every element's first value, as bits; `None`: written before it is read.
    pub fill: Option<u64>,
    /// Where it is in the memory of a PIM target.
    pub place: Option<ElementPlacement>,
    /// The declaration.
    pub span: Span,
}

/// What a launch gets for a tensor argument.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum TensorSource {
    /// An argument of the program, by position in [`ProgramInstance::tensors`].
    Arg(usize),
    /// A tensor of the program, by position in [`ProgramInstance::locals`].
    Local(usize),
}

/// What a launch gets for a scalar argument.
#[derive(Clone, Debug)]
pub enum ScalarSource {
    /// Bits, which are known before.
    Known(u64),
    /// What the host computes before the launch.
    Late(HostExpr),
}

/// A call of a program that leads to a launch, or the launch itself: what reports about it name.
#[derive(Clone, Debug)]
pub struct LaunchSite {
    /// The kernel or program.
    pub name: Name,
    /// The call.
    pub span: Span,
    /// What is known of its parameters and dimensions, as `N = 5`.
    pub with: Vec<String>,
}

/// One launch.
#[derive(Debug)]
pub struct ProgramStep {
    /// The kernel.
    pub instance: Instance,
    /// Its item.
    pub kernel: ItemId,
    /// What it was elaborated with.
    pub bindings: Bindings,
    /// One source for each of the instance's tensors.
    pub tensors: Vec<TensorSource>,
    /// Which elements of it, as places in its C order; `None`: all.
    pub windows: Vec<Option<Storage>>,
    /// How far windows are moved when it comes to the launch, by the number of the argument.
    pub moved: Vec<(usize, HostExpr)>,
    /// Windows of which extents are known when it comes to the launch, by the number of the argument.
    pub lengths: Vec<(usize, LateWindow)>,
    /// Scalar arguments that are given.
    pub scalars: Vec<(Name, ScalarSource)>,
    /// Tensors of the kernel that have their placement from elsewhere in the program.
    pub elsewhere: Vec<TensorId>,
    /// Data decide whether it comes to the launch.
    pub undecided: bool,
    /// The call.
    pub span: Span,
    /// The call and those of the programs around it, the innermost first.
    pub sites: Vec<LaunchSite>,
}

/// A program for given dimensions.
#[derive(Debug)]
pub struct ProgramInstance {
    /// The name.
    pub name: Name,
    /// Tensor arguments.
    pub tensors: Vec<TensorArg>,
    /// Scalar arguments.
    pub scalars: Vec<ScalarArg>,
    /// Tensors of its own, in order of declaration.
    pub locals: Vec<ProgramTensor>,
    /// Launches in order.
    pub steps: Vec<ProgramStep>,
    /// What runs in which order.
    pub order: Vec<ProgramNode>,
    /// Scalars that the host keeps between launches.
    pub slots: usize,
    /// Dimensions that it was elaborated for.
    pub fixed: Vec<(Name, i64)>,
    /// `ensures`.
    pub ensures: Vec<Clause>,
    /// `where` conditions over the contents of tensors.
    pub conditions: Vec<OracleCondition>,
}

/// Where a tensor is.
struct Placed {
    source: TensorSource,
    place: ElementPlacement,
    /// Who says so.
    said: Span,
    /// What it says it with.
    defaults: Vec<DefaultConst>,
}

/// A const parameter that a placement uses and the launch does not give: its value is the default.
#[derive(Clone)]
struct DefaultConst {
    name: Name,
    span: Span,
    kernel: Name,
}

/// A tensor that launches choose from.
#[derive(Clone)]
struct Source {
    id: TensorId,
    source: TensorSource,
    dir: TensorDir,
    name: Name,
    /// Elements; the largest number where that is not known.
    len: u64,
}

struct Parts {
    /// The program.
    item: ItemId,
    /// Programs that it launches and whose launches are looked at, the innermost last.
    called: Vec<call::CalledProgram>,
    sources: Vec<Source>,
    locals: Vec<ProgramTensor>,
    steps: Vec<ProgramStep>,
    /// What runs in which order, inside of the innermost statement that is decided late.
    order: Vec<ProgramNode>,
    /// How many statements around are decided late.
    late: usize,
    /// Statements of the elaborator whose checks are steps of the program, and these checks.
    tested: usize,
    demanded: FxHashSet<CheckId>,
    /// Loops around, the innermost last.
    loops: Vec<loops::OpenLoop>,
    /// Labels that scopes of the order have.
    labels: usize,
    /// Tensors that have a value by now: inputs, filled ones, and what a launch has written.
    written: FxHashMap<TensorSource, Written>,
    /// Where tensors are, and who says so: their declaration, or the first kernel that places its parameter.
    places: Vec<Placed>,
    /// Kernels that were elaborated, by what they were elaborated with: iterations of a loop launch the same.
    instances: FxHashMap<(ItemId, String), Instance>,
    /// Declarations of `var` that are in scope or were.
    vars: Vec<Span>,
    /// Values that the host keeps while the program runs, with their slots.
    slots: FxHashMap<Value, usize>,
    /// The type of each slot.
    slot_types: Vec<Ty>,
    /// Slots of variables, which are set again: a `let` takes what they hold.
    variables: FxHashSet<usize>,
    /// Tensors of which a launch writes elements on one of two paths, each with what decides over them.
    on_some_paths: Vec<(TensorSource, OnSomePaths)>,
    /// A launch was refused: who writes what is not known any more.
    failed: bool,
    /// Extents of its own tensors depend on dimensions that are not known: launches are looked at, and nothing is
    /// produced.
    waiting: bool,
}

/// The elaborator of programs: statements and expressions that kernels have too are its elaborator's.
struct ProgramElaborator<'a> {
    elab: Elaborator<'a>,
}

/// Elaborates the program `id` and every kernel that it launches.
pub fn instantiate_program(
    modules: &Modules,
    id: ItemId,
    target: &Target,
    bindings: &Bindings,
) -> ElaborationOutcome<ProgramInstance> {
    let mut bindings = bindings.clone();
    for (n, v) in bindings.dims.clone() {
        bindings.fixed.insert(n, v);
    }
    let mut program = ProgramElaborator { elab: Elaborator::new(modules, target, &bindings, id) };
    let result = program.program(id);
    let mut e = program.elab;
    e.explain(result.is_err());
    let waits = std::mem::take(&mut e.waits);
    let mut diagnostics = std::mem::take(&mut e.diags);
    let errors = diagnostics.iter().any(Diagnostic::is_error);
    if !errors && let Some((_, at)) = waits.first() {
        let list = waits.iter().map(|w| format!("-D {}=..", w.0)).collect::<Vec<_>>().join(" ");
        diagnostics.push(
            Diagnostic::note(codes::DEPENDS_ON_DIMENSION, *at, "a program is checked for given dimensions")
                .with_label("not checked beyond here")
                .with_help(format!("give them: `{list}`")),
        );
    }
    let result = if errors || !waits.is_empty() { None } else { result.ok() };
    ElaborationOutcome { result, diagnostics, waits: waits.into_iter().map(|w| w.0).collect(), names: e.name_facts() }
}

impl Parts {
    fn new(item: ItemId) -> Parts {
        Parts {
            item,
            called: Vec::new(),
            sources: Vec::new(),
            locals: Vec::new(),
            steps: Vec::new(),
            order: Vec::new(),
            late: 0,
            tested: 0,
            demanded: FxHashSet::default(),
            loops: Vec::new(),
            labels: 0,
            written: FxHashMap::default(),
            places: Vec::new(),
            instances: FxHashMap::default(),
            vars: Vec::new(),
            slots: FxHashMap::default(),
            slot_types: Vec::new(),
            variables: FxHashSet::default(),
            on_some_paths: Vec::new(),
            failed: false,
            waiting: false,
        }
    }
}

impl ProgramInstance {
    /// The kernels that it launches, each once, with what they were elaborated with.
    pub fn kernels(self) -> Vec<(Instance, ItemId, Bindings)> {
        let mut out: Vec<(Instance, ItemId, Bindings)> = Vec::new();
        for s in self.steps {
            if !out.iter().any(|(known, ..)| known.kernel == s.instance.kernel) {
                out.push((s.instance, s.kernel, s.bindings));
            }
        }
        out
    }
}

impl Placed {
    /// A tensor's declaration says where it is.
    fn declared(source: TensorSource, place: &ElementPlacement, said: Span) -> Placed {
        Placed { source, place: place.clone(), said, defaults: Vec::new() }
    }
}

impl ProgramElaborator<'_> {
    fn program(&mut self, id: ItemId) -> ElabResult<ProgramInstance> {
        let modules = self.elab.modules;
        let ItemKind::Program(k) = &modules.item(id).kind else { return Err(ErrorReported) };
        self.elab.env.push_frame();
        self.elab.kernel_statics(k)?;
        let (tensors, mut scalars, arguments) = self.elab.arguments(k);
        arguments?;
        // Scalars are constants here: from `-D`, or the default.
        for s in &mut scalars {
            let bits = s.given.or_else(|| {
                let p = self.elab.b.kernel().scalars.iter().find(|p| p.name == s.name)?;
                self.elab.b.const_of(p.default?).map(|c| c.bits)
            });
            match bits {
                Some(bits) => {
                    s.given = Some(bits);
                    let v = self.elab.constant(ptoc_ir::tile::Const { ty: s.ty, bits });
                    self.elab.env.define(s.name.clone(), Binding::Let(Val::Scalar(v)), s.span);
                }
                None => self.elab.waits.push((s.name.clone(), s.span)),
            }
        }
        let conditions = wheres(&mut self.elab, k)?;
        let ensures = OracleElaborator::new(&mut self.elab).ensures(k, &tensors)?;
        self.elab.argument_places(k)?;
        self.elab.in_prologue = false;
        let mut parts = Parts { tested: self.elab.b.len(), ..Parts::new(id) };
        for (i, t) in tensors.iter().enumerate() {
            let len = self.length_of(t.id);
            // What launches have written of an `out` argument can be read.
            self.elab.b.kernel_mut().tensors[t.id].dir = TensorDir::InOut;
            parts.sources.push(Source {
                id: t.id,
                source: TensorSource::Arg(i),
                dir: t.dir,
                name: t.name.clone(),
                len,
            });
            if let Some(place) = &self.elab.b.kernel().tensors[t.id].place {
                parts.places.push(Placed::declared(TensorSource::Arg(i), place, t.span));
            }
            if t.dir != TensorDir::Out {
                parts.written.insert(TensorSource::Arg(i), Written::Whole);
            }
        }
        self.elab.env.push();
        let failed = self.program_stmts(&k.body, &mut parts).is_err();
        self.elab.env.pop();
        self.elab.env.pop_frame();
        if failed || parts.waiting {
            return Err(ErrorReported);
        }
        for (i, t) in tensors.iter().enumerate() {
            self.is_written(i, t, &parts)?;
        }
        Self::spread_places(&mut parts);
        let fixed = self.elab.bindings.fixed.iter().map(|(n, v)| (n.clone(), *v)).collect();
        Ok(ProgramInstance {
            name: k.name.name.clone(),
            tensors,
            scalars,
            locals: parts.locals,
            steps: parts.steps,
            order: parts.order,
            slots: parts.slot_types.len(),
            fixed,
            ensures,
            conditions,
        })
    }

    /// Some launch has written every element of an argument.
    fn is_written(&mut self, number: usize, t: &TensorArg, parts: &Parts) -> ElabResult<()> {
        let known = parts.written.get(&TensorSource::Arg(number));
        let message = match known.map(|w| w.lacks(None, self.length_of(t.id))) {
            Some(None) => return Ok(()),
            Some(Some(gap)) => {
                let at = self.coordinates(t.id, gap);
                format!("launches write a part of `{}`: element {at:?} has no value", t.name)
            }
            None if self.length_of(t.id) == 0 => return Ok(()),
            None if parts.written_on_some(TensorSource::Arg(number)) => {
                format!("`{}` is not written on every path", t.name)
            }
            None => format!("no launch writes `{}`", t.name),
        };
        let d = Diagnostic::error(codes::TENSOR_UNWRITTEN, t.span, message)
            .with_label("an `out` argument")
            .with_help("pass it to a kernel that writes it, or declare it `inout`");
        self.elab.report(parts.say_paths(d, TensorSource::Arg(number)))
    }

    /// Elements of a tensor; the largest number where an extent is not known.
    fn length_of(&self, id: TensorId) -> u64 {
        let extents = self.elab.b.kernel().tensors[id].shape.iter();
        let extents = extents.map(|v| self.elab.const_index(*v).and_then(|n| u64::try_from(n).ok()));
        extents.fold(1, |all, n| n.map_or(u64::MAX, |n| u64::saturating_mul(all, n)))
    }

    /// The coordinates of an element by its number in C order.
    fn coordinates(&self, id: TensorId, element: usize) -> Vec<u64> {
        let mut rest = element as u64;
        let mut at: Vec<u64> = Vec::new();
        for v in self.elab.b.kernel().tensors[id].shape.iter().rev() {
            let extent = self.elab.const_index(*v).unwrap_or(1).max(1) as u64;
            at.push(rest % extent);
            rest /= extent;
        }
        at.reverse();
        at
    }
}
