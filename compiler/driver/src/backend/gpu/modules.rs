//! Modules on the device. The driver assembles PTX in tenths of a second, so what it makes is kept on disk.

use crate::files::{Cache, Key};
use ptoc_cuda::{Context, Error, Module};

/// Bytes of the user's cache of modules.
const LIMIT: u64 = 256 << 20;

/// Loads a kernel: what was assembled before for this device, by this driver, or PTX.
///
/// # Errors
/// What the driver says of the PTX.
pub(super) fn load<'c>(context: &'c Context<'_>, ptx: &str) -> Result<Module<'c>, Error> {
    let Some(cache) = Cache::of_user("modules", LIMIT) else { return context.load(ptx) };
    let (major, minor) = context.capability()?;
    let name = context.name()?;
    let numbers = [context.driver_version(), major, minor].map(i32::to_le_bytes).concat();
    let key = Key::of([ptx.as_bytes(), &numbers, name.as_bytes()]);
    if let Some(cubin) = cache.get(&key) {
        // SAFETY: the checksum says that these are the bytes that `assemble` made below, and the key that it was on
        // this kind of device.
        match unsafe { context.load_cubin(&cubin) } {
            Ok(module) => return Ok(module),
            Err(_) => cache.remove(&key),
        }
    }
    // A driver that cannot link says what is wrong, if anything is, when it loads the text.
    let Ok(cubin) = context.assemble(ptx) else { return context.load(ptx) };
    // SAFETY: this device's driver has just made it.
    let module = unsafe { context.load_cubin(&cubin) }?;
    cache.put(&key, &cubin);
    Ok(module)
}
