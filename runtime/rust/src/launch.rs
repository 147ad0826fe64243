//! Launches: arguments by name, and what comes out.

use crate::element::{Element, elements};
use crate::{Error, Kernel, View, ViewMut};
use ptoc_diagnostics::{Diagnostic, codes, list, suggest};
use ptoc_driver::launch::Verified;
use ptoc_driver::library::{Argument, ArrayView, Call, Report, Scalar, Specialization};
use ptoc_tensor::{DType, Tensor};
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

/// Gets what a kernel prints.
type Printer<'a> = Box<dyn FnMut(&str) + Send + 'a>;

/// A launch of a kernel, whose arguments are borrowed for as long as it lives.
#[must_use = "nothing happens until it is run"]
pub struct Launch<'a> {
    kernel: Kernel,
    call: Call,
    /// The first mistake among the arguments.
    wrong: Option<Box<Diagnostic>>,
    threads: usize,
    print: Option<Printer<'a>>,
    /// The memory of the arguments.
    memory: PhantomData<&'a mut [u8]>,
}

impl<'a> Launch<'a> {
    pub(crate) fn of(kernel: Kernel) -> Launch<'a> {
        let call = Call::of(kernel.callable().signature());
        Launch { kernel, call, wrong: None, threads: 0, print: None, memory: PhantomData }
    }

    /// Gives an `in` tensor its elements.
    pub fn input(self, name: &str, view: impl Into<View<'a>>) -> Launch<'a> {
        let array = view.into().array();
        self.array(name, array)
    }

    /// Gives an `out` or `inout` tensor its memory.
    pub fn output(self, name: &str, view: impl Into<ViewMut<'a>>) -> Launch<'a> {
        let array = view.into().array();
        self.array(name, array)
    }

    /// Gives a scalar its value.
    pub fn scalar(mut self, name: &str, value: impl Into<Scalar>) -> Launch<'a> {
        if let Some(n) = self.parameter(name, false) {
            self.call.arguments[n] = Some(Argument::Scalar(value.into()));
        }
        self
    }

    /// Uses so many threads; 0 is one a core.
    pub fn threads(mut self, threads: usize) -> Launch<'a> {
        self.threads = threads;
        self
    }

    /// Gives what `print` statements print to a function; without one it is on standard error.
    pub fn on_print(mut self, print: impl FnMut(&str) + Send + 'a) -> Launch<'a> {
        self.print = Some(Box::new(print));
        self
    }

    /// Compiles the kernel for arguments like these, if it is not yet, and does not launch it.
    ///
    /// # Errors
    /// The arguments do not fit the kernel, or it is refused for them.
    pub fn compile(&self) -> Result<(), Error> {
        self.code().map(drop)
    }

    /// Launches, and waits for the end. What is returned has the outputs that were not given.
    ///
    /// # Errors
    /// The arguments do not fit the kernel, or it is refused for them; a check of the launch fails.
    pub fn run(mut self) -> Result<Outputs, Error> {
        let code = self.code()?;
        let mut outputs = self.make_outputs(&code)?;
        let mut to_stderr = |text: &str| eprint!("{text}");
        let print: &mut (dyn FnMut(&str) + Send) = match &mut self.print {
            Some(print) => &mut **print,
            None => &mut to_stderr,
        };
        code.take_notes().iter().for_each(|note| print(&format!("{note}\n")));
        // SAFETY: each array is a slice that is borrowed until the launch is dropped, those that are written
        // exclusively, and is inside of it; or it is one of the outputs, which nobody else knows. Slices of bools hold
        // 0 and 1.
        let ended = unsafe { code.run(self.kernel.callable(), &self.call, self.threads, print) };
        outputs.warnings = ended?;
        Ok(outputs)
    }

    /// Launches on copies of the arrays, and holds what comes out to the kernel's `ensures`.
    ///
    /// # Errors
    /// There is no `ensures`, or the results are not what it says within the tolerances; or as for [`Launch::run`].
    pub fn verify(self, rtol: f64, atol: f64) -> Result<Vec<Verified>, Error> {
        let code = self.code()?;
        // SAFETY: as for `run`; nothing is written.
        Ok(unsafe { code.verify(self.kernel.callable(), &self.call, (rtol, atol).into(), self.threads) }?)
    }

    /// The number of a parameter that is a tensor, or a scalar.
    fn parameter(&mut self, name: &str, tensor: bool) -> Option<usize> {
        let signature = self.kernel.callable().signature();
        let wrong = match signature.parameter(name) {
            Some((n, p)) if p.is_tensor() == tensor => return Some(n),
            Some((_, p)) => {
                let (is, help) = match tensor {
                    true => ("is a scalar, and an array is given", "give its value with `scalar`"),
                    false => ("is a tensor, and a number is given", "give its array with `input` or `output`"),
                };
                Diagnostic::error(codes::CALL_ARGUMENTS, p.span, format!("`{name}` {is}"))
                    .with_label(format!("declared `{}`", p.declared))
                    .with_help(help)
            }
            None => {
                let known: Vec<&str> = signature.parameters.iter().map(|p| p.name.as_str()).collect();
                let message = format!("{} `{}` has no argument `{name}`", signature.word, signature.name);
                let d = Diagnostic::global(codes::CALL_ARGUMENTS, message);
                let d = match known.is_empty() {
                    true => d.with_note("it has none"),
                    false => d.with_note(format!("it has {}", list(known.iter().copied()))),
                };
                match suggest(name, known) {
                    Some(near) => d.with_help(format!("did you mean `{near}`?")),
                    None if signature.is_constant(name) => d.with_help("give constants to the kernel: `kernel.with`"),
                    None => d,
                }
            }
        };
        self.wrong.get_or_insert(Box::new(wrong));
        None
    }

    fn array(mut self, name: &str, array: Result<ArrayView, String>) -> Launch<'a> {
        let Some(n) = self.parameter(name, true) else { return self };
        match array {
            Ok(array) => self.call.arguments[n] = Some(Argument::Array(array)),
            Err(why) => {
                let p = &self.kernel.callable().signature().parameters[n];
                let message = format!("the slice of `{name}` {why}");
                let d = Diagnostic::error(codes::ARRAY_NOT_TAKEN, p.span, message);
                self.wrong.get_or_insert(Box::new(d.with_label(format!("declared `{}`", p.declared))));
            }
        }
        self
    }

    fn code(&self) -> Result<Arc<Specialization>, Error> {
        match &self.wrong {
            Some(d) => Err(self.kernel.callable().report((**d).clone()).into()),
            None => Ok(self.kernel.callable().specialize(&self.call)?),
        }
    }

    /// Makes the outputs that are missing, and gives them to the call.
    fn make_outputs(&mut self, code: &Specialization) -> Result<Outputs, Error> {
        let mut outputs = Outputs { arrays: Vec::new(), warnings: None };
        let missing: Vec<(usize, DType, &[usize])> = code.missing_outputs(&self.call).collect();
        for (n, dtype, shape) in missing {
            let p = &self.kernel.callable().signature().parameters[n];
            if p.optional {
                continue;
            }
            let made = Tensor::zeros(dtype, shape).map_err(|e| {
                let message = format!("no array can be made for `{}`: {e}", p.name);
                self.kernel.callable().report(Diagnostic::error(codes::ARRAY_NOT_TAKEN, p.span, message))
            });
            let mut array = Array { name: p.name.clone(), tensor: made? };
            let data = array.tensor.as_mut_ptr();
            let view = ArrayView::new(dtype, shape.to_vec(), None, data, false);
            self.call.arguments[n] = Some(Argument::Array(view));
            outputs.arrays.push(array);
        }
        Ok(outputs)
    }
}

impl fmt::Debug for Launch<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Launch").field("kernel", &self.kernel).field("call", &self.call).finish_non_exhaustive()
    }
}

/// Outputs that a launch has made, and what it has to say.
#[derive(Debug)]
pub struct Outputs {
    arrays: Vec<Array>,
    warnings: Option<Report>,
}

impl Outputs {
    /// The output of this name, if it was made by the launch.
    pub fn array(&self, name: &str) -> Option<&Array> {
        self.arrays.iter().find(|a| a.name == name)
    }

    /// All of them, in the order of their declaration.
    pub fn arrays(&self) -> &[Array] {
        &self.arrays
    }

    /// What is worth a warning: elements of an output that were not written.
    pub fn warnings(&self) -> Option<&Report> {
        self.warnings.as_ref()
    }
}

/// An array that a launch has made, in C order.
#[derive(Debug)]
pub struct Array {
    name: String,
    tensor: Tensor,
}

impl Array {
    /// The name of the output.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The type of its elements.
    pub fn dtype(&self) -> DType {
        self.tensor.dtype()
    }

    /// Extents, slowest first.
    pub fn shape(&self) -> &[usize] {
        self.tensor.shape()
    }

    /// Its elements, if they are of this type.
    pub fn as_slice<T: Element>(&self) -> Option<&[T]> {
        elements(self.dtype(), self.tensor.bytes())
    }
}
