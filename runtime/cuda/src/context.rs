//! A device with its memory, modules and launches.

use crate::driver::{CLUSTER_DIMENSION, ClusterConfig, DevicePtr, Driver, Handle, LaunchAttribute};
use crate::error::{Code, Error};
use crate::tensor_map::TensorMap;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr::null_mut;

/// `CU_JIT_ERROR_LOG_BUFFER`, and its size.
const ERROR_LOG: c_int = 5;
const ERROR_LOG_SIZE: c_int = 6;
/// `CU_JIT_GENERATE_LINE_INFO`: profilers show the places of `.loc` directives.
const LINE_INFO: c_int = 13;
/// `CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES`
const DYNAMIC_SHARED: c_int = 8;
/// `CU_FUNC_ATTRIBUTE_NUM_REGS`, `CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES`
const REGISTERS: c_int = 4;
const LOCAL_BYTES: c_int = 3;
/// `CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT`, and the two of the compute capability.
const MULTIPROCESSORS: c_int = 16;
const MAJOR: c_int = 75;
const MINOR: c_int = 76;

/// What the assembler says, and what it is asked for.
struct Log {
    text: Vec<u8>,
    options: [c_int; 3],
    values: [*mut c_void; 3],
}

impl Log {
    /// How many options it takes.
    const OPTIONS: u32 = 3;

    fn new() -> Log {
        Log { text: vec![0; 1 << 14], options: [ERROR_LOG, ERROR_LOG_SIZE, LINE_INFO], values: [null_mut(); 3] }
    }

    /// The options that have the driver write here, and keep the line table.
    fn options(&mut self) -> (*mut c_int, *mut *mut c_void) {
        let number = std::ptr::without_provenance_mut;
        self.values = [self.text.as_mut_ptr().cast(), number(self.text.len()), number(1)];
        (self.options.as_mut_ptr(), self.values.as_mut_ptr())
    }

    fn add_to(&self, e: Error) -> Error {
        match CStr::from_bytes_until_nul(&self.text).map(CStr::to_string_lossy) {
            Ok(said) if !said.is_empty() => Error { message: format!("{}: {said}", e.message), ..e },
            _ => e,
        }
    }
}

/// The primary context of a device.
#[derive(Debug)]
pub struct Context<'d> {
    pub(crate) driver: &'d Driver,
    device: c_int,
    pub(crate) handle: Handle,
}

// SAFETY: any thread may hand the context to the driver, which has locks of its own.
unsafe impl Send for Context<'_> {}
// SAFETY: as above.
unsafe impl Sync for Context<'_> {}

impl<'d> Context<'d> {
    /// That of a device, which becomes this thread's.
    ///
    /// # Errors
    /// [`Code::NoDevice`] where there is none, and what the driver says.
    pub fn new(driver: &'d Driver, number: i32) -> Result<Context<'d>, Error> {
        let this = Context::retain(driver, number)?;
        // SAFETY: the context was retained.
        driver.check(unsafe { (driver.f.context_set)(this.handle) }, "cuCtxSetCurrent")?;
        Ok(this)
    }

    /// That of a device, for whoever [enters](Context::enter) it.
    ///
    /// # Errors
    /// As [`Context::new`].
    pub fn retain(driver: &'d Driver, number: i32) -> Result<Context<'d>, Error> {
        let count = driver.devices()?;
        if !(0..count).contains(&number) {
            return Err(Error::new(Code::NoDevice, format!("device {number} of {count}")));
        }
        let (mut device, mut context) = (0, null_mut());
        // SAFETY: the pointers are to live variables; the context is retained until `drop`.
        unsafe {
            driver.check((driver.f.device_get)(&mut device, number), "cuDeviceGet")?;
            driver.check((driver.f.context_retain)(&mut context, device), "cuDevicePrimaryCtxRetain")?;
        }
        Ok(Context { driver, device, handle: context })
    }

    /// The version of CUDA that the driver implements: 13000 is 13.0.
    pub fn driver_version(&self) -> i32 {
        self.driver.version()
    }

    /// The device's name.
    ///
    /// # Errors
    /// What the driver says.
    pub fn name(&self) -> Result<String, Error> {
        let mut text = [0 as c_char; 256];
        // SAFETY: the buffer has the length that is given, and ends in a zero.
        unsafe {
            let result = (self.driver.f.device_name)(text.as_mut_ptr(), text.len() as c_int - 1, self.device);
            self.driver.check(result, "cuDeviceGetName")?;
            Ok(CStr::from_ptr(text.as_ptr()).to_string_lossy().into_owned())
        }
    }

    fn attribute(&self, which: c_int) -> Result<i32, Error> {
        let mut value = 0;
        // SAFETY: the pointer is to a live integer.
        let result = unsafe { (self.driver.f.device_attribute)(&mut value, which, self.device) };
        self.driver.check(result, "cuDeviceGetAttribute")?;
        Ok(value)
    }

    /// How many multiprocessors it has.
    ///
    /// # Errors
    /// What the driver says.
    pub fn multiprocessors(&self) -> Result<i32, Error> {
        self.attribute(MULTIPROCESSORS)
    }

    /// Its compute capability: a Hopper's is (9, 0).
    ///
    /// # Errors
    /// What the driver says.
    pub fn capability(&self) -> Result<(i32, i32), Error> {
        Ok((self.attribute(MAJOR)?, self.attribute(MINOR)?))
    }

    /// Waits for all that was launched.
    ///
    /// # Errors
    /// [`Code::Fault`] where a kernel went astray, and what the driver says.
    pub fn synchronize(&self) -> Result<(), Error> {
        // SAFETY: the context is this thread's.
        self.driver.check(unsafe { (self.driver.f.synchronize)() }, "cuCtxSynchronize")
    }

    /// Memory of the device.
    ///
    /// # Errors
    /// [`Code::OutOfMemory`] where there is none left.
    pub fn alloc(&self, bytes: usize) -> Result<Buffer<'_>, Error> {
        let mut address = 0;
        // SAFETY: the pointer is to a live integer; the driver refuses sizes of 0.
        let result = unsafe { (self.driver.f.memory_alloc)(&mut address, bytes.max(1)) };
        self.driver.check(result, &format!("{bytes} bytes"))?;
        Ok(Buffer { context: self, address, len: bytes })
    }

    /// Assembles PTX, and loads what comes of it.
    ///
    /// # Errors
    /// [`Code::Ptx`] with the assembler's message.
    pub fn load(&self, ptx: &str) -> Result<Module<'_>, Error> {
        let text = CString::new(ptx).map_err(|_| Error::new(Code::Ptx, "the text has a zero in it"))?;
        let mut log = Log::new();
        let mut module = null_mut();
        // SAFETY: the text ends in a zero; the log is as long as is said.
        let result = unsafe {
            let (options, values) = log.options();
            (self.driver.f.module_load)(&mut module, text.as_ptr().cast(), Log::OPTIONS, options, values)
        };
        self.driver.check(result, "cuModuleLoadDataEx").map_err(|e| log.add_to(e))?;
        Ok(Module { context: self, module })
    }

    /// A point in time on the device.
    ///
    /// # Errors
    /// What the driver says.
    pub fn event(&self) -> Result<Event<'_>, Error> {
        let mut event = null_mut();
        // SAFETY: the pointer is to a live one.
        self.driver.check(unsafe { (self.driver.f.event_create)(&mut event, 0) }, "cuEventCreate")?;
        Ok(Event { context: self, event })
    }
}

impl Drop for Context<'_> {
    fn drop(&mut self) {
        // SAFETY: it was retained once.
        unsafe { (self.driver.f.context_release)(self.device) };
    }
}

/// Memory of a device.
#[derive(Debug)]
pub struct Buffer<'c> {
    context: &'c Context<'c>,
    address: DevicePtr,
    len: usize,
}

impl Buffer<'_> {
    /// Its address, for parameters of kernels.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Fills it with the bytes given; no more than there are, and no more than it holds.
    ///
    /// # Errors
    /// What the driver says.
    pub fn write(&self, bytes: &[u8]) -> Result<(), Error> {
        let driver = self.context.driver;
        let count = bytes.len().min(self.len);
        // SAFETY: both sides have that many bytes.
        let result = unsafe { (driver.f.to_device)(self.address, bytes.as_ptr().cast(), count) };
        driver.check(result, "cuMemcpyHtoD")
    }

    /// How many bytes it has.
    pub fn bytes(&self) -> usize {
        self.len
    }

    /// Its bytes.
    ///
    /// # Errors
    /// What the driver says; of a kernel that went astray before, too.
    pub fn read(&self) -> Result<Vec<u8>, Error> {
        let mut bytes = vec![0; self.len];
        self.read_to(&mut bytes)?;
        Ok(bytes)
    }

    /// Fills a slice with its first bytes; no more than it has.
    ///
    /// # Errors
    /// As [`Buffer::read`].
    pub fn read_to(&self, bytes: &mut [u8]) -> Result<(), Error> {
        let driver = self.context.driver;
        let count = bytes.len().min(self.len);
        // SAFETY: both sides have that many bytes.
        let result = unsafe { (driver.f.to_host)(bytes.as_mut_ptr().cast(), self.address, count) };
        driver.check(result, "cuMemcpyDtoH")
    }

    /// Makes every byte this one.
    ///
    /// # Errors
    /// What the driver says.
    pub fn fill(&self, byte: u8) -> Result<(), Error> {
        let driver = self.context.driver;
        if self.len == 0 {
            return Ok(());
        }
        // SAFETY: the buffer has that many bytes.
        driver.check(unsafe { (driver.f.fill)(self.address, byte, self.len) }, "cuMemsetD8")
    }
}

impl Drop for Buffer<'_> {
    fn drop(&mut self) {
        // SAFETY: it was allocated once, and nobody has its address for longer but kernels that are waited for.
        unsafe { (self.context.driver.f.memory_free)(self.address) };
    }
}

/// Code on a device.
#[derive(Debug)]
pub struct Module<'c> {
    context: &'c Context<'c>,
    module: Handle,
}

// SAFETY: any thread may hand a module to the driver.
unsafe impl Send for Module<'_> {}
// SAFETY: as above.
unsafe impl Sync for Module<'_> {}

impl Module<'_> {
    /// An entry, with the most shared memory that a launch of it will ask for.
    ///
    /// # Errors
    /// What the driver says.
    pub fn function(&self, name: &str, shared: u32) -> Result<Function<'_>, Error> {
        let driver = self.context.driver;
        let text = CString::new(name).map_err(|_| Error::new(Code::Ptx, "the name has a zero in it"))?;
        let mut function = null_mut();
        // SAFETY: the name ends in a zero.
        let result = unsafe { (driver.f.module_function)(&mut function, self.module, text.as_ptr()) };
        driver.check(result, name)?;
        // SAFETY: the function was found above.
        let result = unsafe { (driver.f.function_set)(function, DYNAMIC_SHARED, shared as c_int) };
        driver.check(result, &format!("{shared} bytes of shared memory"))?;
        Ok(Function { context: self.context, function, shared })
    }
}

impl<'c> Module<'c> {
    /// Unloads it where a graph may be recorded meanwhile, by any thread: that is no part of a graph.
    pub fn unload(self) {
        let driver = self.context.driver;
        // `CU_STREAM_CAPTURE_MODE_RELAXED`
        let mut mode = 2;
        // SAFETY: the pointers are to a live integer, which has this thread's mode until it is set back.
        unsafe { (driver.f.capture_mode)(&mut mode) };
        drop(self);
        // SAFETY: as above.
        unsafe { (driver.f.capture_mode)(&mut mode) };
    }
}

impl Drop for Module<'_> {
    fn drop(&mut self) {
        // SAFETY: it was loaded once.
        unsafe { (self.context.driver.f.module_unload)(self.module) };
    }
}

/// An entry of a module.
#[derive(Debug)]
pub struct Function<'c> {
    context: &'c Context<'c>,
    function: Handle,
    shared: u32,
}

/// How a function is launched.
#[derive(Clone, Copy, Debug)]
pub struct LaunchConfig<'a> {
    /// CTAs, in one dimension.
    pub ctas: u32,
    /// Threads of a CTA.
    pub threads: u32,
    /// Parameters, 64 bits each.
    pub params: &'a [u64],
    /// Tensor maps, the parameters behind those.
    pub maps: &'a [TensorMap],
}

impl Function<'_> {
    /// Starts a launch, behind those before it.
    ///
    /// # Errors
    /// [`Code::Launch`] where the device cannot, and what the driver says.
    ///
    /// # Safety
    /// The kernel takes such parameters, and stays inside the memory that they lead to, which lives until the launch is
    /// waited for.
    pub unsafe fn launch(&self, launch: &LaunchConfig<'_>) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        unsafe { self.launch_on(launch, null_mut()) }
    }

    /// As [`Function::launch`], on a stream.
    pub(crate) unsafe fn launch_on(&self, launch: &LaunchConfig<'_>, stream: Handle) -> Result<(), Error> {
        let driver = self.context.driver;
        let mut params: Vec<u64> = launch.params.to_vec();
        let mut maps = launch.maps.to_vec();
        let mut pointers: Vec<*mut c_void> = params.iter_mut().map(|p| std::ptr::from_mut(p).cast()).collect();
        pointers.extend(maps.iter_mut().map(|m| std::ptr::from_mut(m).cast::<c_void>()));
        let LaunchConfig { ctas, threads, .. } = *launch;
        // SAFETY: the parameters are copied by the call; the rest is the caller's promise.
        let result = unsafe {
            (driver.f.launch)(
                self.function,
                ctas,
                1,
                1,
                threads,
                1,
                1,
                self.shared,
                stream,
                pointers.as_mut_ptr(),
                null_mut(),
            )
        };
        driver.check(result, "cuLaunchKernel")
    }

    /// CTAs of so many threads that a multiprocessor holds at once.
    ///
    /// # Errors
    /// What the driver says.
    pub fn resident(&self, threads: u32) -> Result<i32, Error> {
        let driver = self.context.driver;
        let mut count = 0;
        // SAFETY: the pointer is to a live integer.
        let result = unsafe { (driver.f.occupancy)(&mut count, self.function, threads as c_int, self.shared as usize) };
        driver.check(result, "cuOccupancyMaxActiveBlocksPerMultiprocessor")?;
        Ok(count)
    }

    /// CTAs of so many threads, in clusters of more than one, that the device runs at once.
    ///
    /// # Errors
    /// What the driver says.
    pub fn resident_in_clusters(&self, threads: u32, cluster: u32) -> Result<i32, Error> {
        let driver = self.context.driver;
        let mut value = [0; 16];
        value[..3].copy_from_slice(&[cluster, 1, 1]);
        let attribute = LaunchAttribute { id: CLUSTER_DIMENSION, pad: [0; 4], value };
        let config = ClusterConfig {
            grid: [cluster, 1, 1],
            block: [threads, 1, 1],
            shared: self.shared,
            stream: null_mut(),
            attributes: &attribute,
            count: 1,
        };
        let mut clusters = 0;
        // SAFETY: the pointers are to live values, which the call reads.
        let result = unsafe { (driver.f.active_clusters)(&mut clusters, self.function, &config) };
        driver.check(result, "cuOccupancyMaxActiveClusters")?;
        Ok(clusters * cluster as c_int)
    }

    /// Registers of a thread, and bytes of its local memory: what did not fit them.
    ///
    /// # Errors
    /// What the driver says.
    pub fn registers(&self) -> Result<(i32, i32), Error> {
        let driver = self.context.driver;
        let ask = |which| {
            let mut value = 0;
            // SAFETY: the pointer is to a live integer.
            let result = unsafe { (driver.f.function_attribute)(&mut value, which, self.function) };
            driver.check(result, "cuFuncGetAttribute").map(|()| value)
        };
        Ok((ask(REGISTERS)?, ask(LOCAL_BYTES)?))
    }
}

/// A point in time.
#[derive(Debug)]
pub struct Event<'c> {
    context: &'c Context<'c>,
    event: Handle,
}

impl Event<'_> {
    /// It is when all that was launched before has ended.
    ///
    /// # Errors
    /// What the driver says.
    pub fn record(&self) -> Result<(), Error> {
        let driver = self.context.driver;
        // SAFETY: the event was made by this context.
        driver.check(unsafe { (driver.f.event_record)(self.event, null_mut()) }, "cuEventRecord")
    }

    /// Milliseconds from another event to this one, for which it waits.
    ///
    /// # Errors
    /// What the driver says; of a kernel that went astray before, too.
    pub fn since(&self, before: &Event<'_>) -> Result<f32, Error> {
        let driver = self.context.driver;
        let mut time = 0.0;
        // SAFETY: both were made by this context.
        unsafe {
            driver.check((driver.f.event_synchronize)(self.event), "cuEventSynchronize")?;
            driver.check((driver.f.event_elapsed)(&mut time, before.event, self.event), "cuEventElapsedTime")?;
        }
        Ok(time)
    }
}

impl Drop for Event<'_> {
    fn drop(&mut self) {
        // SAFETY: it was made once.
        unsafe { (self.context.driver.f.event_destroy)(self.event) };
    }
}
