//! XLA's foreign function interface, by which JAX calls kernels: the handlers that XLA calls without Python.
//!
//! What JAX compiles holds the number of a [`Site`], which says what the operands and results of a custom call are to a
//! kernel.

mod api;

use api::*;
use ptoc_driver::library::{Argument, ArrayView, Call, Callable, Device, Report, Scalar};
use ptoc_tensor::{DType, scalar};
use std::ffi::{CString, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::null_mut;
use std::slice;
use std::sync::{Arc, Mutex, PoisonError};

/// A call of a kernel in what JAX has compiled.
#[derive(Clone)]
pub struct Site {
    /// The kernel.
    pub callable: Arc<Callable>,
    /// The parameter of each operand.
    pub operands: Vec<usize>,
    /// The parameter of each result.
    pub results: Vec<usize>,
    /// Scalars whose values are known.
    pub known: Vec<(usize, Scalar)>,
}

/// Sites by number. JAX keeps what it has compiled as long as the process lives, and so the sites.
static SITES: Mutex<Vec<Arc<Site>>> = Mutex::new(Vec::new());

impl Site {
    fn is(&self, other: &Site) -> bool {
        Arc::ptr_eq(&self.callable, &other.callable)
            && self.operands == other.operands
            && self.results == other.results
            && self.known == other.known
    }

    /// The number of the site. Equal sites are one.
    pub fn number(self) -> i64 {
        let mut sites = SITES.lock().unwrap_or_else(PoisonError::into_inner);
        let known = sites.iter().position(|site| site.is(&self));
        let number = known.unwrap_or(sites.len());
        if known.is_none() {
            sites.push(Arc::new(self));
        }
        number as i64
    }

    fn of(number: i64) -> Option<Arc<Site>> {
        let sites = SITES.lock().unwrap_or_else(PoisonError::into_inner);
        sites.get(usize::try_from(number).ok()?).map(Arc::clone)
    }
}

/// The handler for arrays of the host.
///
/// # Safety
/// XLA calls it, with a frame of its interface.
pub unsafe extern "C" fn execute(frame: *mut Frame) -> *mut c_void {
    // SAFETY: the caller's promise.
    unsafe { handled(frame, |frame| run(&*site(&frame.attributes)?, frame, Place::HOST)) }
}

/// The handler for arrays of a CUDA device: launches are started on XLA's stream, and not waited for.
///
/// # Safety
/// As for [`execute`].
pub unsafe extern "C" fn execute_on_cuda(frame: *mut Frame) -> *mut c_void {
    // SAFETY: the caller's promise.
    unsafe { handled(frame, |frame| run(&*site(&frame.attributes)?, frame, place(frame)?)) }
}

/// The handler for arrays of other devices: a refusal.
///
/// # Safety
/// As for [`execute`].
pub unsafe extern "C" fn refuse(frame: *mut Frame) -> *mut c_void {
    let message = "error[E0763]: JAX calls kernels on arrays of the host and of CUDA devices, and these are on another \
                   device\n    = help: run it on the host: `jax.jit(f, backend=\"cpu\")`, `jax.device_put(x, \
                   jax.devices(\"cpu\")[0])`";
    // SAFETY: the caller's promise.
    unsafe { handled(frame, |_| Err(Failure::of(UNIMPLEMENTED, message))) }
}

/// Where the arrays of a call are.
#[derive(Clone, Copy)]
struct Place {
    device: Device,
    /// The driver's handle.
    stream: u64,
}

impl Place {
    const HOST: Place = Place { device: Device::Host, stream: 0 };
}

/// The device that XLA calls for, and its stream.
fn place(frame: &Frame) -> Result<Place, Failure> {
    let old = || {
        let message = "error[E0763]: this version of JAX does not tell kernels on which device arrays are\n    = help: \
                       update JAX, or run it on the host: `jax.jit(f, backend=\"cpu\")`";
        Failure::of(UNIMPLEMENTED, message)
    };
    let api = frame.device_api().ok_or_else(old)?;
    let device = asked(frame, api.device, 0)?;
    let stream = asked(frame, api.stream, null_mut())?.expose_provenance() as u64;
    Ok(Place { device: Device::Cuda(device), stream })
}

/// What XLA says of the call that a frame is of.
fn asked<T: Copy>(frame: &Frame, ask: Ask<T>, answer: T) -> Result<T, Failure> {
    let ask = ask.ok_or("XLA's interface lacks a function")?;
    let mut question =
        Question { size: size_of::<Question<T>>(), extensions: null_mut(), context: frame.context, answer };
    // SAFETY: a function of the frame's interface, about the call that is running.
    let error = unsafe { ask(&mut question) };
    if error.is_null() { Ok(question.answer) } else { Err(Failure::Told(error)) }
}

/// Why a call fails.
enum Failure {
    /// In words, with XLA's code.
    Words(c_int, String),
    /// An error of XLA's own.
    Told(*mut c_void),
}

impl Failure {
    fn of(code: c_int, message: &str) -> Failure {
        Failure::Words(code, message.to_owned())
    }
}

impl From<&str> for Failure {
    fn from(message: &str) -> Failure {
        Failure::of(INVALID_ARGUMENT, message)
    }
}

impl From<Report> for Failure {
    fn from(report: Report) -> Failure {
        Failure::of(INVALID_ARGUMENT, &report.to_string())
    }
}

/// Answers what XLA asks of a handler, and does the work in the stage that executes.
///
/// # Safety
/// As for [`execute`].
unsafe fn handled(frame: *mut Frame, work: impl FnOnce(&Frame) -> Result<(), Failure>) -> *mut c_void {
    // SAFETY: the caller's promise.
    let frame = unsafe { &*frame };
    // SAFETY: an extension says by its kind what it is; that of metadata has room for what is filled in.
    if let Some(asked) = unsafe { frame.extensions.as_ref() }.filter(|extension| extension.kind == METADATA) {
        let asked: *const Extension = asked;
        // SAFETY: as above.
        let metadata = unsafe { &mut *(*asked.cast::<MetadataExtension>()).metadata };
        (metadata.version.major, metadata.version.minor) = (MAJOR, MINOR);
        metadata.traits = 0;
        return null_mut();
    }
    if frame.stage != EXECUTE {
        return null_mut();
    }
    let (code, message) = match catch_unwind(AssertUnwindSafe(|| work(frame))) {
        Ok(Ok(())) => return null_mut(),
        Ok(Err(Failure::Told(error))) => return error,
        Ok(Err(Failure::Words(code, message))) => (code, message),
        Err(_) => (INTERNAL, "the compiler has panicked".to_owned()),
    };
    let message = CString::new(message.replace('\0', " ")).unwrap_or_default();
    let size = size_of::<NewError>();
    let mut new = NewError { size, extensions: null_mut(), message: message.as_ptr(), code };
    // SAFETY: the frame of a stage has the interface, whose functions are where this version has them. The message is
    // copied.
    unsafe { frame.api.as_ref().and_then(|api| api.error_create).map_or(null_mut(), |create| create(&mut new)) }
}

/// What a pointer and a number of elements are.
///
/// # Safety
/// There are so many elements, which live as long as the result.
unsafe fn list<'a, T>(at: *const T, count: i64) -> &'a [T] {
    match usize::try_from(count) {
        // SAFETY: the caller's promise.
        Ok(count) if count > 0 && !at.is_null() => unsafe { slice::from_raw_parts(at, count) },
        _ => &[],
    }
}

/// The site that the attribute `site` names.
fn site(attributes: &Attributes) -> Result<Arc<Site>, Failure> {
    named_site(attributes).ok_or_else(|| "this program was compiled by another process".into())
}

fn named_site(attributes: &Attributes) -> Option<Arc<Site>> {
    // SAFETY: the lists have as many entries; a name is a text, and a scalar has a value of its type.
    unsafe {
        let names = list(attributes.names, attributes.count);
        let at = names.iter().position(|name| {
            let name = &**name;
            slice::from_raw_parts(name.at, name.length) == b"site"
        })?;
        let kind = *list(attributes.kinds, attributes.count).get(at)?;
        let value = &*list(attributes.values, attributes.count).get(at)?.cast::<Attribute>();
        if kind != SCALAR || value.dtype != S64 {
            return None;
        }
        Site::of(value.value.cast::<i64>().read())
    }
}

fn dtype(kind: c_int) -> Option<DType> {
    Some(match kind {
        1 => DType::Bool,
        2 => DType::I8,
        3 => DType::I16,
        4 => DType::I32,
        5 => DType::I64,
        6 => DType::U8,
        7 => DType::U16,
        8 => DType::U32,
        9 => DType::U64,
        10 => DType::F16,
        11 => DType::F32,
        16 => DType::BF16,
        19 => DType::F8E5M2,
        20 => DType::F8E4M3,
        _ => return None,
    })
}

/// The buffers of operands or results, which are in C order.
fn views(buffers: &Buffers, device: Device) -> Result<Vec<ArrayView>, Failure> {
    // SAFETY: the lists have as many entries, and one of this kind is a buffer.
    let (kinds, values) = unsafe { (list(buffers.kinds, buffers.count), list(buffers.values, buffers.count)) };
    let view = |(kind, value): (&c_int, &*const c_void)| -> Result<ArrayView, Failure> {
        if *kind != BUFFER {
            return Err("an operand is no array".into());
        }
        // SAFETY: as above; a buffer has as many extents as its rank.
        let (buffer, dims) = unsafe {
            let buffer = &*value.cast::<Buffer>();
            (buffer, list(buffer.dims, buffer.rank))
        };
        let Some(dtype) = dtype(buffer.dtype) else {
            return Err("an array has a dtype that kernels do not have".into());
        };
        let shape = dims.iter().map(|&n| n as usize).collect();
        Ok(ArrayView::new(dtype, shape, None, buffer.data, false).on(device))
    };
    kinds.iter().zip(values).map(view).collect()
}

/// The number in an array without dimensions. That of a device is read once what is in the stream before is done, and
/// waited for.
///
/// # Safety
/// Its memory is valid.
unsafe fn number(callable: &Callable, view: &ArrayView, stream: u64) -> Result<Scalar, Report> {
    let mut bytes = [0u8; 8];
    let size = view.dtype.size();
    match view.device {
        // SAFETY: the caller's promise; no dtype has more than 8 bytes.
        Device::Host => unsafe { std::ptr::copy_nonoverlapping(view.data, bytes.as_mut_ptr(), size) },
        // SAFETY: the caller's promise.
        Device::Cuda(device) => unsafe { callable.read_from((device, stream), view.data, &mut bytes[..size]) }?,
    }
    let bits = u64::from_le_bytes(bytes);
    Ok(match view.dtype {
        DType::Bool => Scalar::Bool(bits != 0),
        dtype if dtype.is_float() => Scalar::Float(scalar::bits_to_f64(dtype, bits)),
        dtype => Scalar::Int(scalar::bits_to_i128(dtype, bits)),
    })
}

fn run(site: &Site, frame: &Frame, place: Place) -> Result<(), Failure> {
    let callable = match place.device {
        Device::Host => Arc::clone(&site.callable),
        Device::Cuda(_) => site.callable.for_device()?,
    };
    let parameters = &callable.signature().parameters;
    let (operands, results) = (views(&frame.operands, place.device)?, views(&frame.results, place.device)?);
    if operands.len() != site.operands.len() || results.len() != site.results.len() {
        return Err("the call has another number of arrays than its site".into());
    }
    let mut call = Call { stream: place.stream, ..Call::of(callable.signature()) };
    for (view, &n) in operands.into_iter().zip(&site.operands) {
        call.arguments[n] = Some(match parameters[n].is_tensor() {
            true => Argument::Array(ArrayView { read_only: !parameters[n].is_output(), ..view }),
            // SAFETY: XLA's arrays are valid as long as the handler runs.
            false => Argument::Scalar(unsafe { number(&callable, &view, place.stream) }?),
        });
    }
    for (view, &n) in results.into_iter().zip(&site.results) {
        if let Some(Argument::Array(before)) = &call.arguments[n]
            && before.data != view.data
        {
            if place.device != Device::Host {
                return Err("an array that is updated in place has two addresses".into());
            }
            let bytes = view.shape.iter().product::<usize>() * view.dtype.size();
            // SAFETY: both are arrays of this shape, in C order; what is updated in place begins with the operand.
            unsafe { std::ptr::copy(before.data, view.data, bytes) };
        }
        call.arguments[n] = Some(Argument::Array(view));
    }
    for (n, value) in &site.known {
        call.arguments[*n] = Some(Argument::Scalar(*value));
    }
    let code = callable.specialize(&call)?;
    let threads = crate::threads::asked();
    // SAFETY: XLA's arrays are valid as long as the handler runs, those of a device until its stream has done what is
    // in it by then, and nobody else uses the results.
    unsafe { code.run(&callable, &call, threads, &mut |text| print!("{text}")) }?;
    Ok(())
}
