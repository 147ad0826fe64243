//! What can go wrong with a card, and what to do.

use std::fmt;

/// Kinds of failures.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Code {
    /// There is no driver library.
    NoDriver,
    /// The driver lacks a function that is called here.
    OldDriver,
    /// There is no device.
    NoDevice,
    /// The device has no memory left.
    OutOfMemory,
    /// The PTX is refused, by a driver that is too old for it or because it is wrong.
    Ptx,
    /// A kernel has gone to memory that is not its own, or has been ended by the device otherwise.
    Fault,
    /// The launch asks for more than the device has.
    Launch,
    /// Anything else that the driver says.
    Other,
}

impl Code {
    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            Code::NoDriver => "cuda-no-driver",
            Code::OldDriver => "cuda-old-driver",
            Code::NoDevice => "cuda-no-device",
            Code::OutOfMemory => "cuda-out-of-memory",
            Code::Ptx => "cuda-ptx",
            Code::Fault => "cuda-fault",
            Code::Launch => "cuda-launch",
            Code::Other => "cuda-error",
        }
    }

    /// What to do about it.
    pub fn remedy(self) -> &'static str {
        match self {
            Code::NoDriver => {
                "install NVIDIA's driver; `--backend interp` needs none, nor does the CPU (without `--target sm90`)"
            }
            Code::OldDriver => "install a driver of CUDA 12.3 or later",
            Code::NoDevice => "see that the device is visible: `nvidia-smi`, CUDA_VISIBLE_DEVICES",
            Code::OutOfMemory => "use smaller arrays, or end what else has memory on the device",
            Code::Ptx => "install a driver of CUDA 12.3 or later; the device must be a Hopper (sm_90)",
            Code::Fault => "run the kernel on the PTX interpreter, which says where it goes astray",
            Code::Launch => "use fewer threads or less shared memory a CTA",
            Code::Other => "see the driver's message",
        }
    }

    /// Of a result of the driver.
    pub(crate) fn of(result: i32) -> Code {
        match result {
            2 => Code::OutOfMemory,
            100 | 101 => Code::NoDevice,
            200 | 209 | 218 | 222 => Code::Ptx,
            // 700: illegal address, 702: timeout, 715 to 719: illegal instruction, misaligned address, ..
            700 | 702 | 710 | 714..=719 => Code::Fault,
            1 | 701 => Code::Launch,
            _ => Code::Other,
        }
    }
}

/// A failure.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Error {
    /// Which kind.
    pub code: Code,
    /// In words.
    pub message: String,
}

impl Error {
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Error {
        Error { code, message: message.into() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} ({})", self.code.name(), self.message, self.code.remedy())
    }
}

impl std::error::Error for Error {}
