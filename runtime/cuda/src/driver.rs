//! The driver's library and the functions that are called.

use crate::error::{Code, Error};
use libloading::Library;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::ptr::null;

/// Names of the library, the usual one first.
const NAMES: [&str; 3] = ["libcuda.so.1", "libcuda.so", "nvcuda.dll"];

/// The version of the driver that PTX 8.3 needs, as `cuDriverGetVersion` counts.
pub(crate) const LEAST_VERSION: c_int = 12_030;

pub(crate) type Handle = *mut c_void;
pub(crate) type DevicePtr = u64;

macro_rules! functions {
    ($($(#[$meta:meta])* $field:ident = $symbol:literal ($($arg:ty),* $(,)?);)*) => {
        /// The functions, by the names that the library has them under.
        pub(crate) struct Functions { $($(#[$meta])* pub(crate) $field: unsafe extern "C" fn($($arg),*) -> c_int,)* }

        impl Functions {
            fn find(library: &Library) -> Result<Functions, Error> {
                $(
                    // SAFETY: the driver's interface has a function of this name and type, and the pointer is used only
                    // while the library is open.
                    let $field = *unsafe { library.get(concat!($symbol, "\0").as_bytes()) }
                        .map_err(|_| Error::new(Code::OldDriver, concat!("the driver has no ", $symbol)))?;
                )*
                Ok(Functions { $($field),* })
            }
        }
    };
}

/// A `CUlaunchAttribute`: its kind, and 64 bytes of a value.
#[repr(C)]
pub(crate) struct LaunchAttribute {
    pub(crate) id: c_uint,
    pub(crate) pad: [u8; 4],
    pub(crate) value: [c_uint; 16],
}

/// `CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION`: CTAs of a cluster, in three dimensions.
pub(crate) const CLUSTER_DIMENSION: c_uint = 4;

/// A `CUlaunchConfig`.
#[repr(C)]
pub(crate) struct ClusterConfig {
    pub(crate) grid: [c_uint; 3],
    pub(crate) block: [c_uint; 3],
    pub(crate) shared: c_uint,
    pub(crate) stream: Handle,
    pub(crate) attributes: *const LaunchAttribute,
    pub(crate) count: c_uint,
}

functions! {
    init = "cuInit" (c_uint);
    version = "cuDriverGetVersion" (*mut c_int);
    error_string = "cuGetErrorString" (c_int, *mut *const c_char);
    device_count = "cuDeviceGetCount" (*mut c_int);
    device_get = "cuDeviceGet" (*mut c_int, c_int);
    device_name = "cuDeviceGetName" (*mut c_char, c_int, c_int);
    device_attribute = "cuDeviceGetAttribute" (*mut c_int, c_int, c_int);
    context_retain = "cuDevicePrimaryCtxRetain" (*mut Handle, c_int);
    context_release = "cuDevicePrimaryCtxRelease_v2" (c_int);
    context_set = "cuCtxSetCurrent" (Handle);
    context_push = "cuCtxPushCurrent_v2" (Handle);
    context_pop = "cuCtxPopCurrent_v2" (*mut Handle);
    capture_mode = "cuThreadExchangeStreamCaptureMode" (*mut c_int);
    stream_synchronize = "cuStreamSynchronize" (Handle);
    stream_capturing = "cuStreamIsCapturing" (Handle, *mut c_int);
    alloc_on_stream = "cuMemAllocAsync" (*mut DevicePtr, usize, Handle);
    free_on_stream = "cuMemFreeAsync" (DevicePtr, Handle);
    fill_8_on_stream = "cuMemsetD8Async" (DevicePtr, u8, usize, Handle);
    fill_16_on_stream = "cuMemsetD16Async" (DevicePtr, u16, usize, Handle);
    fill_32_on_stream = "cuMemsetD32Async" (DevicePtr, c_uint, usize, Handle);
    to_host_on_stream = "cuMemcpyDtoHAsync_v2" (*mut c_void, DevicePtr, usize, Handle);
    synchronize = "cuCtxSynchronize" ();
    module_load = "cuModuleLoadDataEx" (*mut Handle, *const c_void, c_uint, *mut c_int, *mut *mut c_void);
    module_unload = "cuModuleUnload" (Handle);
    module_function = "cuModuleGetFunction" (*mut Handle, Handle, *const c_char);
    function_attribute = "cuFuncGetAttribute" (*mut c_int, c_int, Handle);
    function_set = "cuFuncSetAttribute" (Handle, c_int, c_int);
    occupancy = "cuOccupancyMaxActiveBlocksPerMultiprocessor" (*mut c_int, Handle, c_int, usize);
    active_clusters = "cuOccupancyMaxActiveClusters" (*mut c_int, Handle, *const ClusterConfig);
    memory_alloc = "cuMemAlloc_v2" (*mut DevicePtr, usize);
    memory_free = "cuMemFree_v2" (DevicePtr);
    to_device = "cuMemcpyHtoD_v2" (DevicePtr, *const c_void, usize);
    to_host = "cuMemcpyDtoH_v2" (*mut c_void, DevicePtr, usize);
    fill = "cuMemsetD8_v2" (DevicePtr, u8, usize);
    launch = "cuLaunchKernel" (
        Handle, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, Handle, *mut *mut c_void, *mut *mut c_void,
    );
    tensor_map = "cuTensorMapEncodeTiled" (
        *mut c_void, c_int, c_uint, *mut c_void, *const u64, *const u64, *const c_uint, *const c_uint, c_int, c_int,
        c_int, c_int,
    );
    event_create = "cuEventCreate" (*mut Handle, c_uint);
    event_record = "cuEventRecord" (Handle, Handle);
    event_synchronize = "cuEventSynchronize" (Handle);
    event_elapsed = "cuEventElapsedTime" (*mut f32, Handle, Handle);
    event_destroy = "cuEventDestroy_v2" (Handle);
}

/// The driver, open.
pub struct Driver {
    pub(crate) f: Functions,
    version: c_int,
    /// The functions live as long as it is open.
    _library: Library,
}

impl std::fmt::Debug for Driver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Driver").field("version", &self.version).finish_non_exhaustive()
    }
}

impl Driver {
    /// Opens the machine's driver.
    ///
    /// # Errors
    /// [`Code::NoDriver`] where there is none, [`Code::OldDriver`] where it is too old for our PTX, and what it says
    /// itself when it starts.
    pub fn open() -> Result<Driver, Error> {
        Driver::open_any(&NAMES)
    }

    /// Opens a library of one of these names.
    ///
    /// # Errors
    /// As [`Driver::open`].
    pub fn open_any(names: &[&str]) -> Result<Driver, Error> {
        let mut why = String::from("no name");
        for name in names {
            // SAFETY: the driver's initialisers have no demands; a library of its name is taken for the driver.
            match unsafe { Library::new(*name) } {
                Ok(library) => return Driver::start(library),
                Err(e) => why = e.to_string(),
            }
        }
        Err(Error::new(Code::NoDriver, format!("no NVIDIA driver: {why}")))
    }

    fn start(library: Library) -> Result<Driver, Error> {
        let f = Functions::find(&library)?;
        let mut driver = Driver { f, version: 0, _library: library };
        let mut version = 0;
        // SAFETY: the pointer is to a live integer.
        driver.check(unsafe { (driver.f.version)(&mut version) }, "cuDriverGetVersion")?;
        driver.version = version;
        if version < LEAST_VERSION {
            let (major, minor) = (version / 1000, version % 1000 / 10);
            return Err(Error::new(Code::OldDriver, format!("the driver is one of CUDA {major}.{minor}")));
        }
        // SAFETY: it may be called any number of times.
        driver.check(unsafe { (driver.f.init)(0) }, "cuInit")?;
        Ok(driver)
    }

    /// The version of CUDA that it implements: 13000 is 13.0.
    pub fn version(&self) -> i32 {
        self.version
    }

    /// How many devices there are.
    ///
    /// # Errors
    /// What the driver says.
    pub fn devices(&self) -> Result<i32, Error> {
        let mut count = 0;
        // SAFETY: the pointer is to a live integer.
        self.check(unsafe { (self.f.device_count)(&mut count) }, "cuDeviceGetCount")?;
        Ok(count)
    }

    /// A result of the driver as ours.
    pub(crate) fn check(&self, result: c_int, what: &str) -> Result<(), Error> {
        if result == 0 {
            return Ok(());
        }
        let mut text: *const c_char = null();
        // SAFETY: the pointer is to a live one; the string is the driver's and stays.
        let said = unsafe {
            (self.f.error_string)(result, &mut text);
            if text.is_null() { "unknown".into() } else { CStr::from_ptr(text).to_string_lossy() }
        };
        Err(Error::new(Code::of(result), format!("{what}: {said} ({result})")))
    }
}
