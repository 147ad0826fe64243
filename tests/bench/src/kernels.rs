//! From a source file to a compiled kernel on given shapes, in process.

use cpu_time::ProcessTime;
use ptoc_analysis::{ArgDim, Bindings, Instance, instantiate};
use ptoc_names::{Loader, Modules, check_names};
use ptoc_cpu::{CompiledKernel, Options, compile};
use ptoc_diagnostics::{Diagnostic, FileId, SourceMap, render};
use ptoc_exec::{LaunchArgs, TensorArg};
use ptoc_isa::Target;
use ptoc_tensor::Tensor;
use std::time::Duration;

/// Imports of the standard library.
struct Standard<'a>(&'a mut SourceMap);

impl Loader for Standard<'_> {
    fn load(&mut self, path: &[ptoc_syntax::ast::Name], _: FileId) -> Result<(FileId, String), String> {
        let path: Vec<&str> = path.iter().skip(1).map(|n| n.as_str()).collect();
        let (name, text) = ptoc_stdlib::module(&path).ok_or("it is not in the standard library")?;
        Ok((self.0.add(name, text), text.to_owned()))
    }
}

/// A compiled kernel with its buffers.
pub struct Ready {
    pub code: CompiledKernel,
    pub params: Vec<i64>,
    /// From text to machine code.
    pub compile: Duration,
    /// The arrays, as runs of `ptoc` hold them.
    pub buffers: Vec<Tensor>,
    /// Of the arrays.
    pub names: Vec<String>,
}

/// Definitions for a kernel: dimensions, and static parameters as text.
pub struct Case<'a> {
    pub path: &'a str,
    pub kernel: &'a str,
    pub dims: &'a [(&'a str, i64)],
    pub defs: &'a [(&'a str, &'a str)],
    /// Whose memories and rules the kernel is compiled for.
    pub target: &'a str,
}

/// The target of `ptoc` itself, if none is named.
pub const TARGET: &str = "a2a3";

/// A target by its name.
pub fn target(name: &str) -> &'static Target {
    Target::builtin(name).unwrap_or_else(|_| {
        eprintln!("no target {name}");
        std::process::exit(1)
    })
}

fn fail(map: &SourceMap, diagnostics: &[Diagnostic]) -> ! {
    for d in diagnostics {
        eprint!("{}", render::terminal(d, map, false, 100));
    }
    std::process::exit(1);
}

/// Text to checked tile IR of one kernel.
pub fn front(text: &str, case: &Case<'_>) -> Instance {
    let mut map = SourceMap::default();
    let file = map.add(case.path, text);
    let mut diagnostics = Vec::new();
    let modules = Modules::load(file, text, &mut Standard(&mut map), &mut diagnostics);
    check_names(&modules, &mut diagnostics);
    let mut bindings = Bindings::default();
    for (n, v) in case.dims {
        bindings.dims.insert((*n).into(), *v);
    }
    for (n, v) in case.defs {
        let file = map.add(format!("<-D {n}>"), *v);
        bindings.defs.insert((*n).into(), ptoc_syntax::parse_expr(file, v).0);
    }
    let target = target(case.target);
    let entry = modules.entries().find(|(_, k)| k.name.name == case.kernel);
    let Some((id, _)) = entry else {
        eprintln!("no kernel {} in {}", case.kernel, case.path);
        fail(&map, &diagnostics)
    };
    let outcome = instantiate(&modules, id, target, &bindings);
    diagnostics.extend(outcome.diagnostics);
    match outcome.result {
        Some(i) if !diagnostics.iter().any(Diagnostic::is_error) => i,
        _ => fail(&map, &diagnostics),
    }
}

/// Text to loop IR.
pub fn middle(text: &str, case: &Case<'_>) -> (Instance, ptoc_passes::Prepared) {
    let instance = front(text, case);
    match ptoc_passes::pipeline(instance.kernel.clone(), target(case.target)) {
        Ok(p) => (instance, p),
        Err(d) => fail(&SourceMap::default(), &d),
    }
}

/// Text to machine code.
pub fn build(text: &str, case: &Case<'_>) -> (Instance, CompiledKernel) {
    let (instance, prepared) = middle(text, case);
    let module = prepared.module.as_ref().expect("targets of the CPU have loop IR");
    match compile(module, &Options { exact: false, ..Options::default() }) {
        Ok(code) => (instance, code),
        Err(d) => fail(&SourceMap::default(), &[d]),
    }
}

/// A kernel with random inputs.
pub fn ready(text: &str, case: &Case<'_>) -> Ready {
    let start = ProcessTime::now();
    let (instance, code) = build(text, case);
    let compile = start.elapsed();
    let dim = |n: &str| case.dims.iter().find(|d| d.0 == n).map_or(0, |d| d.1);
    let mut params: Vec<i64> = instance.kernel.dims.values().map(|d| dim(&d.name)).collect();
    for s in &instance.scalars {
        // Scalars with a default take 1.0 or 1: only the speed matters.
        let one = if s.ty.to_string() == "f32" { i64::from(1.0f32.to_bits()) } else { 1 };
        params.push(s.given.map_or(one, |b| b as i64));
    }
    let buffers = instance
        .tensors
        .iter()
        .map(|t| {
            let shape: Vec<usize> = t
                .dims
                .iter()
                .map(|d| match d {
                    ArgDim::Dim(n) => dim(n) as usize,
                    ArgDim::Const(c) => *c as usize,
                    ArgDim::Computed(_) => panic!("the benchmark binds plain dimensions only"),
                })
                .collect();
            ptoc_tensor::random(t.dtype, &shape, 1, &t.name).expect("sizes fit")
        })
        .collect();
    let names = instance.tensors.iter().map(|t| t.name.to_string()).collect();
    Ready { code, params, compile, buffers, names }
}

impl Ready {
    /// The bytes of the array with that name.
    pub fn array(&mut self, name: &str) -> Result<&mut [u8], String> {
        Ok(self.tensor(name)?.bytes_mut())
    }

    /// The array with that name.
    pub fn tensor(&mut self, name: &str) -> Result<&mut Tensor, String> {
        let at = self.names.iter().position(|n| n == name);
        at.map(|at| &mut self.buffers[at]).ok_or_else(|| format!("there is no array `{name}`"))
    }

    /// One launch.
    pub fn run(&mut self, threads: usize) {
        let tensors: Vec<TensorArg> = self.buffers.iter_mut().map(|b| TensorArg::new(b.bytes_mut())).collect();
        // SAFETY: the buffers have the shapes that the kernel was compiled for and live through the launch.
        let args = LaunchArgs { params: &self.params, tensors: &tensors, threads, print: None };
        let r = unsafe { self.code.launch(args) };
        r.expect("the launch succeeds");
    }
}
