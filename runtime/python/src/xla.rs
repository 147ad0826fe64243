//! XLA's foreign function interface, by which JAX calls kernels: its structures (`xla/ffi/api/c_api.h`, version 0), and
//! the handler that XLA calls without Python.
//!
//! What JAX compiles holds the number of a [`Site`], which says what the operands and results of a custom call are to a
//! kernel.

use ptoc_driver::library::{Argument, ArrayView, Call, Callable, Scalar};
use ptoc_tensor::{DType, scalar};
use std::ffi::{CString, c_char, c_int, c_void};
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

/// `XLA_FFI_Extension_Base`
#[repr(C)]
struct Extension {
    size: usize,
    kind: c_int,
    next: *mut Extension,
}

/// `XLA_FFI_Extension_Metadata`
const METADATA: c_int = 1;

/// `XLA_FFI_Api_Version`
#[repr(C)]
struct Version {
    size: usize,
    extensions: *mut Extension,
    major: c_int,
    minor: c_int,
}

/// The version of the interface that this is written for. Within a major version structures only grow at their ends.
const MAJOR: c_int = 0;
const MINOR: c_int = 1;

/// `XLA_FFI_Metadata`, as far as it is filled in.
#[repr(C)]
struct Metadata {
    size: usize,
    version: Version,
    traits: u32,
}

/// `XLA_FFI_Metadata_Extension`
#[repr(C)]
struct MetadataExtension {
    base: Extension,
    metadata: *mut Metadata,
}

/// `XLA_FFI_Error_Create_Args`
#[repr(C)]
struct NewError {
    size: usize,
    extensions: *mut Extension,
    message: *const c_char,
    code: c_int,
}

/// `XLA_FFI_Error_Code_INVALID_ARGUMENT`, `.._UNIMPLEMENTED`, `.._INTERNAL`
const INVALID_ARGUMENT: c_int = 3;
const UNIMPLEMENTED: c_int = 12;
const INTERNAL: c_int = 13;

/// `XLA_FFI_Api`, as far as it is used.
#[repr(C)]
struct Api {
    size: usize,
    extensions: *mut Extension,
    version: Version,
    internal: *mut c_void,
    error_create: Option<unsafe extern "C" fn(*mut NewError) -> *mut c_void>,
}

/// `XLA_FFI_Buffer`
#[repr(C)]
struct Buffer {
    size: usize,
    extensions: *mut Extension,
    dtype: c_int,
    data: *mut u8,
    rank: i64,
    dims: *const i64,
}

/// `XLA_FFI_Args`, `XLA_FFI_Rets`
#[repr(C)]
struct Buffers {
    size: usize,
    extensions: *mut Extension,
    count: i64,
    kinds: *const c_int,
    values: *const *const c_void,
}

/// `XLA_FFI_ArgType_BUFFER`, `XLA_FFI_RetType_BUFFER`
const BUFFER: c_int = 1;

/// `XLA_FFI_ByteSpan`
#[repr(C)]
struct Text {
    at: *const u8,
    length: usize,
}

/// `XLA_FFI_Scalar`
#[repr(C)]
struct Attribute {
    dtype: c_int,
    value: *const c_void,
}

/// `XLA_FFI_AttrType_SCALAR`
const SCALAR: c_int = 3;
/// `XLA_FFI_DataType_S64`
const S64: c_int = 5;

/// `XLA_FFI_Attrs`
#[repr(C)]
struct Attributes {
    size: usize,
    extensions: *mut Extension,
    count: i64,
    kinds: *const c_int,
    names: *const *const Text,
    values: *const *const c_void,
}

/// `XLA_FFI_CallFrame`, as far as it is used.
#[repr(C)]
pub struct Frame {
    size: usize,
    extensions: *mut Extension,
    api: *const Api,
    context: *mut c_void,
    stage: c_int,
    operands: Buffers,
    results: Buffers,
    attributes: Attributes,
}

/// `XLA_FFI_ExecutionStage_EXECUTE`
const EXECUTE: c_int = 3;

/// The handler for arrays of the host.
///
/// # Safety
/// XLA calls it, with a frame of its interface.
pub unsafe extern "C" fn execute(frame: *mut Frame) -> *mut c_void {
    // SAFETY: the caller's promise.
    unsafe {
        handled(frame, |frame| {
            let site = site(&frame.attributes).ok_or("this program was compiled by another process")?;
            run(&site, frame)
        })
    }
}

/// The handler for arrays of other devices: a refusal.
///
/// # Safety
/// As for [`execute`].
pub unsafe extern "C" fn refuse(frame: *mut Frame) -> *mut c_void {
    let message = "error[E0763]: JAX calls kernels on arrays of the host, and these are on another device\n    = help: \
                   run it there: `jax.jit(f, backend=\"cpu\")`, `jax.device_put(x, jax.devices(\"cpu\")[0])`";
    // SAFETY: the caller's promise.
    unsafe { handled(frame, |_| Err(Failure { code: UNIMPLEMENTED, message: message.to_owned() })) }
}

/// Why a call fails.
struct Failure {
    code: c_int,
    message: String,
}

impl<T: ToString> From<T> for Failure {
    fn from(message: T) -> Failure {
        Failure { code: INVALID_ARGUMENT, message: message.to_string() }
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
    let failure = match catch_unwind(AssertUnwindSafe(|| work(frame))) {
        Ok(Ok(())) => return null_mut(),
        Ok(Err(failure)) => failure,
        Err(_) => Failure { code: INTERNAL, message: "the compiler has panicked".into() },
    };
    let message = CString::new(failure.message.replace('\0', " ")).unwrap_or_default();
    let size = size_of::<NewError>();
    let mut new = NewError { size, extensions: null_mut(), message: message.as_ptr(), code: failure.code };
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
fn site(attributes: &Attributes) -> Option<Arc<Site>> {
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
fn views(buffers: &Buffers) -> Result<Vec<ArrayView>, Failure> {
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
        Ok(ArrayView::new(dtype, shape, None, buffer.data, false))
    };
    kinds.iter().zip(values).map(view).collect()
}

/// The number in an array without dimensions.
///
/// # Safety
/// Its memory is valid.
unsafe fn number(view: &ArrayView) -> Scalar {
    let mut bytes = [0u8; 8];
    let size = view.dtype.size();
    // SAFETY: the caller's promise; no dtype has more than 8 bytes.
    unsafe { std::ptr::copy_nonoverlapping(view.data, bytes.as_mut_ptr(), size) };
    let bits = u64::from_le_bytes(bytes);
    match view.dtype {
        DType::Bool => Scalar::Bool(bits != 0),
        dtype if dtype.is_float() => Scalar::Float(scalar::bits_to_f64(dtype, bits)),
        dtype => Scalar::Int(scalar::bits_to_i128(dtype, bits)),
    }
}

fn run(site: &Site, frame: &Frame) -> Result<(), Failure> {
    let callable = &site.callable;
    let parameters = &callable.signature().parameters;
    let (operands, results) = (views(&frame.operands)?, views(&frame.results)?);
    if operands.len() != site.operands.len() || results.len() != site.results.len() {
        return Err("the call has another number of arrays than its site".into());
    }
    let mut call = Call::of(callable.signature());
    for (view, &n) in operands.into_iter().zip(&site.operands) {
        call.arguments[n] = Some(match parameters[n].is_tensor() {
            true => Argument::Array(ArrayView { read_only: !parameters[n].is_output(), ..view }),
            // SAFETY: XLA's arrays are valid as long as the handler runs.
            false => Argument::Scalar(unsafe { number(&view) }),
        });
    }
    for (view, &n) in results.into_iter().zip(&site.results) {
        if let Some(Argument::Array(before)) = &call.arguments[n]
            && before.data != view.data
        {
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
    // SAFETY: XLA's arrays are valid as long as the handler runs, and nobody else uses the results.
    unsafe { code.run(callable, &call, threads, &mut |text| print!("{text}")) }?;
    Ok(())
}
