//! Kernels built for C: what `cc` links has the bits of a launch, and misuse gives statuses.

#[cfg(all(unix, target_arch = "x86_64"))]
mod bits;
#[cfg(all(unix, target_arch = "x86_64"))]
mod harness;
#[cfg(all(unix, target_arch = "x86_64"))]
mod misuse;
mod refused;
