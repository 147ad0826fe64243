//! The standard library: kernels and programs of its modules, called as functions, against references of others.
//!
//! `vectors` holds results against numpy; the other modules hold what numpy has no words for.

mod large;
mod sparse;
mod vectors;

use ptoc_driver::defs::Definition;
use ptoc_driver::library::{Argument, ArrayView, Call, Callable, Library, Options, ParameterKind, Report, Scalar};
use ptoc_tensor::Tensor;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// Where and how everything is run: the interpreter, and machine code on one and two threads.
pub const RUNS: [(&str, usize); 3] = [("interp", 1), ("cpu", 1), ("cpu", 2)];

/// Arrays by parameter.
pub type Arrays = BTreeMap<String, Tensor>;

/// An entry of a module with its settings.
pub struct Entry {
    callable: Callable,
    scalars: Vec<(usize, i64)>,
}

impl Entry {
    /// `module` as in `std::sort`; settings are static parameters, dimensions, and scalar arguments.
    pub fn new(module: &str, name: &str, settings: &[(&str, &str)], backend: &str) -> Result<Entry, Report> {
        let library = Arc::new(Library::open(Path::new(module))?);
        Entry::of(&library, name, settings, backend)
    }

    /// An entry of a text, which may import modules.
    pub fn of_text(text: &str, name: &str, settings: &[(&str, &str)], backend: &str) -> Result<Entry, Report> {
        let library = Arc::new(Library::of_text(Path::new("text.tile"), text.to_owned())?);
        Entry::of(&library, name, settings, backend)
    }

    fn of(library: &Arc<Library>, name: &str, settings: &[(&str, &str)], backend: &str) -> Result<Entry, Report> {
        let parameters = &library.signature(name)?.parameters;
        let scalar = |name: &str| parameters.iter().position(|p| p.name == name && p.kind == ParameterKind::Scalar);
        let (mut definitions, mut scalars) = (Vec::new(), Vec::new());
        for &(name, value) in settings {
            match scalar(name) {
                Some(n) => scalars.push((n, value.parse().expect("a number"))),
                None => definitions.push(Definition { name: name.into(), value: value.into() }),
            }
        }
        let options = Options { backend: Some(backend.into()), ..Options::default() };
        Ok(Entry { callable: Callable::new(library, name, definitions, options)?, scalars })
    }

    /// Bytes of the tensors that a program keeps for itself in a call with these arrays.
    pub fn scratch(&self, inputs: &Arrays) -> Result<usize, Report> {
        let (call, _) = self.bound(inputs);
        let code = self.callable.specialize(&call)?;
        let locals = &code.plan().locals;
        Ok(locals.iter().map(|t| t.dtype.size() * t.shape.iter().product::<i64>() as usize).sum())
    }

    /// Of each launch, bits of the tensors that no launch reads, in a call with these arrays.
    pub fn write_only(&self, inputs: &Arrays) -> Result<Vec<u64>, Report> {
        let (call, _) = self.bound(inputs);
        let code = self.callable.specialize(&call)?;
        Ok(code.plan().steps.iter().map(|step| step.write_only).collect())
    }

    /// The arguments of a call, and the arrays that they are views of, by parameter.
    fn bound(&self, inputs: &Arrays) -> (Call, BTreeMap<usize, Tensor>) {
        let parameters = &self.callable.signature().parameters;
        let mut call = Call::of(self.callable.signature());
        for &(n, value) in &self.scalars {
            call.arguments[n] = Some(Argument::Scalar(Scalar::Int(value.into())));
        }
        let mut arrays: BTreeMap<usize, Tensor> = BTreeMap::new();
        for (name, tensor) in inputs {
            let n = parameters.iter().position(|p| p.name == *name).unwrap_or_else(|| panic!("no parameter {name}"));
            arrays.insert(n, tensor.clone());
        }
        for (n, t) in &mut arrays {
            bind(&mut call, *n, t);
        }
        (call, arrays)
    }

    /// What a call with these arrays leaves in those that it writes.
    pub fn call(&self, inputs: &Arrays, threads: usize) -> Result<Arrays, Report> {
        let parameters = &self.callable.signature().parameters;
        let (mut call, mut arrays) = self.bound(inputs);
        let code = self.callable.specialize(&call)?;
        let missing: Vec<_> = code.missing_outputs(&call).map(|(n, d, shape)| (n, d, shape.to_vec())).collect();
        for (n, dtype, shape) in missing {
            let t = arrays.entry(n).or_insert(Tensor::zeros(dtype, &shape).expect("it fits"));
            bind(&mut call, n, t);
        }
        // SAFETY: each array is a tensor of `arrays`, which lives until the call is over and is used by nothing else.
        unsafe { code.run(&self.callable, &call, threads, &mut |_| {}) }?;
        let written = arrays.into_iter().filter(|(n, _)| parameters[*n].is_output());
        Ok(written.map(|(n, t)| (parameters[n].name.clone(), t)).collect())
    }
}

/// Array `n` of a call.
fn bind(call: &mut Call, n: usize, t: &mut Tensor) {
    let view = ArrayView::new(t.dtype(), t.shape().to_vec(), None, t.as_mut_ptr(), false);
    call.arguments[n] = Some(Argument::Array(view));
}
