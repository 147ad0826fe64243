//! Work on a caller's stream: launches, memory and copies in its order, which the host does not wait for.

use crate::context::{Context, Function, LaunchConfig};
use crate::driver::{DevicePtr, Driver, Handle};
use crate::error::Error;
use std::marker::PhantomData;
use std::ptr::null_mut;

/// A stream of a device, whose primary context is the thread's as long as this lives.
#[derive(Debug)]
pub struct Stream<'c> {
    context: &'c Context<'c>,
    handle: Handle,
    /// The thread's context is set back when it is dropped, so it stays on its thread.
    _thread: PhantomData<*const ()>,
}

impl<'d> Context<'d> {
    /// Enters the context for work on a stream, given as the driver's handle; 0 is the legacy default stream.
    ///
    /// # Errors
    /// What the driver says.
    ///
    /// # Safety
    /// The stream is one of this context, and lives as long.
    pub unsafe fn enter(&'d self, stream: u64) -> Result<Stream<'d>, Error> {
        // SAFETY: the context is retained.
        self.driver.check(unsafe { (self.driver.f.context_push)(self.handle) }, "cuCtxPushCurrent")?;
        let handle = std::ptr::with_exposed_provenance_mut(stream as usize);
        Ok(Stream { context: self, handle, _thread: PhantomData })
    }
}

impl Drop for Stream<'_> {
    fn drop(&mut self) {
        let mut popped = null_mut();
        // SAFETY: the context was pushed when the stream was made, on this thread.
        unsafe { (self.driver().f.context_pop)(&mut popped) };
    }
}

impl Stream<'_> {
    fn driver(&self) -> &Driver {
        self.context.driver
    }

    /// Memory from here on in the stream's order, up to where the buffer is dropped.
    ///
    /// # Errors
    /// [`Code::OutOfMemory`](crate::Code::OutOfMemory) where there is none left.
    pub fn alloc(&self, bytes: usize) -> Result<StreamBuffer<'_>, Error> {
        let mut address = 0;
        // SAFETY: the pointer is to a live integer; the driver refuses sizes of 0.
        let result = unsafe { (self.driver().f.alloc_on_stream)(&mut address, bytes.max(1), self.handle) };
        self.driver().check(result, &format!("{bytes} bytes"))?;
        Ok(StreamBuffer { stream: self, address })
    }

    /// Whether launches are recorded into a graph, and nothing runs.
    ///
    /// # Errors
    /// What the driver says.
    pub fn is_capturing(&self) -> Result<bool, Error> {
        let mut status = 0;
        // SAFETY: the pointer is to a live integer.
        let result = unsafe { (self.driver().f.stream_capturing)(self.handle, &mut status) };
        self.driver().check(result, "cuStreamIsCapturing")?;
        Ok(status != 0)
    }

    /// Waits for all that is in the stream.
    ///
    /// # Errors
    /// [`Code::Fault`](crate::Code::Fault) where a kernel went astray, and what the driver says.
    pub fn synchronize(&self) -> Result<(), Error> {
        // SAFETY: the stream lives.
        self.driver().check(unsafe { (self.driver().f.stream_synchronize)(self.handle) }, "cuStreamSynchronize")
    }

    /// Makes `count` elements this one, of 1, 2 or 4 bytes.
    ///
    /// # Errors
    /// What the driver says.
    ///
    /// # Safety
    /// The memory has so many elements, at a multiple of their size, and nobody else uses it meanwhile.
    pub unsafe fn fill(&self, address: u64, element: &[u8], count: usize) -> Result<(), Error> {
        let f = &self.driver().f;
        // SAFETY: the caller's promise.
        let result = unsafe {
            match *element {
                _ if count == 0 => 0,
                [a] => (f.fill_8_on_stream)(address, a, count, self.handle),
                [a, b] => (f.fill_16_on_stream)(address, u16::from_le_bytes([a, b]), count, self.handle),
                [a, b, c, d] => (f.fill_32_on_stream)(address, u32::from_le_bytes([a, b, c, d]), count, self.handle),
                // Both halves are the same, or there is no such instruction: the caller sees to it.
                [a, b, c, d, ..] => {
                    (f.fill_32_on_stream)(address, u32::from_le_bytes([a, b, c, d]), 2 * count, self.handle)
                }
                _ => 0,
            }
        };
        self.driver().check(result, "cuMemsetAsync")
    }

    /// Reads memory once all before it in the stream is done, and waits for that.
    ///
    /// # Errors
    /// As [`Stream::synchronize`].
    ///
    /// # Safety
    /// There are so many bytes at the address.
    pub unsafe fn read(&self, address: u64, bytes: &mut [u8]) -> Result<(), Error> {
        let driver = self.driver();
        // SAFETY: both sides have that many bytes, and the host's stay until the stream is waited for.
        let result =
            unsafe { (driver.f.to_host_on_stream)(bytes.as_mut_ptr().cast(), address, bytes.len(), self.handle) };
        driver.check(result, "cuMemcpyDtoHAsync")?;
        self.synchronize()
    }

    /// Starts a launch, behind what is in the stream.
    ///
    /// # Errors
    /// [`Code::Launch`](crate::Code::Launch) where the device cannot, and what the driver says.
    ///
    /// # Safety
    /// As [`Function::launch`].
    pub unsafe fn launch(&self, function: &Function<'_>, launch: &LaunchConfig<'_>) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        unsafe { function.launch_on(launch, self.handle) }
    }
}

/// Memory in the order of a stream.
#[derive(Debug)]
pub struct StreamBuffer<'s> {
    stream: &'s Stream<'s>,
    address: DevicePtr,
}

impl StreamBuffer<'_> {
    /// Its address, for parameters of kernels.
    pub fn address(&self) -> u64 {
        self.address
    }
}

impl Drop for StreamBuffer<'_> {
    fn drop(&mut self) {
        // SAFETY: it was allocated on this stream once; what uses it is in the stream before.
        unsafe { (self.stream.driver().f.free_on_stream)(self.address, self.stream.handle) };
    }
}
