//! The structures of XLA's foreign function interface (`xla/ffi/api/c_api.h`, version 0), as far as they are used.

use std::ffi::{c_char, c_int, c_void};

/// `XLA_FFI_Extension_Base`
#[repr(C)]
pub(super) struct Extension {
    pub(super) size: usize,
    pub(super) kind: c_int,
    pub(super) next: *mut Extension,
}

/// `XLA_FFI_Extension_Metadata`
pub(super) const METADATA: c_int = 1;

/// `XLA_FFI_Api_Version`
#[repr(C)]
pub(super) struct Version {
    pub(super) size: usize,
    pub(super) extensions: *mut Extension,
    pub(super) major: c_int,
    pub(super) minor: c_int,
}

/// The version of the interface that this is written for. Within a major version structures only grow at their ends.
pub(super) const MAJOR: c_int = 0;
pub(super) const MINOR: c_int = 1;

/// `XLA_FFI_Metadata`, as far as it is filled in.
#[repr(C)]
pub(super) struct Metadata {
    pub(super) size: usize,
    pub(super) version: Version,
    pub(super) traits: u32,
}

/// `XLA_FFI_Metadata_Extension`
#[repr(C)]
pub(super) struct MetadataExtension {
    pub(super) base: Extension,
    pub(super) metadata: *mut Metadata,
}

/// `XLA_FFI_Error_Create_Args`
#[repr(C)]
pub(super) struct NewError {
    pub(super) size: usize,
    pub(super) extensions: *mut Extension,
    pub(super) message: *const c_char,
    pub(super) code: c_int,
}

/// `XLA_FFI_Error_Code_INVALID_ARGUMENT`, `.._UNIMPLEMENTED`, `.._INTERNAL`
pub(super) const INVALID_ARGUMENT: c_int = 3;
pub(super) const UNIMPLEMENTED: c_int = 12;
pub(super) const INTERNAL: c_int = 13;

/// `XLA_FFI_Api`, as far as every version has it.
#[repr(C)]
pub(super) struct Api {
    pub(super) size: usize,
    pub(super) extensions: *mut Extension,
    pub(super) version: Version,
    pub(super) internal: *mut c_void,
    pub(super) error_create: Option<unsafe extern "C" fn(*mut NewError) -> *mut c_void>,
}

/// What is asked of a running call: `XLA_FFI_Stream_Get_Args`, `XLA_FFI_DeviceOrdinal_Get_Args`.
#[repr(C)]
pub(super) struct Question<T> {
    pub(super) size: usize,
    pub(super) extensions: *mut Extension,
    pub(super) context: *mut c_void,
    pub(super) answer: T,
}

/// A function that answers it, or returns an error of XLA's.
pub(super) type Ask<T> = Option<unsafe extern "C" fn(*mut Question<T>) -> *mut c_void>;

/// `XLA_FFI_Api` up to what calls on a device need; versions that are older end before.
#[repr(C)]
pub(super) struct DeviceApi {
    base: Api,
    /// `XLA_FFI_Error_GetMessage`, `.._Error_Destroy`, `.._Handler_Register`
    _unused: [*const c_void; 3],
    pub(super) stream: Ask<*mut c_void>,
    /// From `XLA_FFI_Type_Register` to `.._RunId_Get`
    _unused_too: [*const c_void; 12],
    pub(super) device: Ask<i32>,
}

impl Frame {
    /// The functions for calls on a device, if this version of XLA has them.
    pub(super) fn device_api(&self) -> Option<&DeviceApi> {
        // SAFETY: the frame of a stage has the interface, which says how large it is.
        unsafe {
            let api = self.api.as_ref()?;
            (api.size >= size_of::<DeviceApi>()).then(|| &*self.api.cast::<DeviceApi>())
        }
    }
}

/// `XLA_FFI_Buffer`
#[repr(C)]
pub(super) struct Buffer {
    pub(super) size: usize,
    pub(super) extensions: *mut Extension,
    pub(super) dtype: c_int,
    pub(super) data: *mut u8,
    pub(super) rank: i64,
    pub(super) dims: *const i64,
}

/// `XLA_FFI_Args`, `XLA_FFI_Rets`
#[repr(C)]
pub(super) struct Buffers {
    pub(super) size: usize,
    pub(super) extensions: *mut Extension,
    pub(super) count: i64,
    pub(super) kinds: *const c_int,
    pub(super) values: *const *const c_void,
}

/// `XLA_FFI_ArgType_BUFFER`, `XLA_FFI_RetType_BUFFER`
pub(super) const BUFFER: c_int = 1;

/// `XLA_FFI_ByteSpan`
#[repr(C)]
pub(super) struct Text {
    pub(super) at: *const u8,
    pub(super) length: usize,
}

/// `XLA_FFI_Scalar`
#[repr(C)]
pub(super) struct Attribute {
    pub(super) dtype: c_int,
    pub(super) value: *const c_void,
}

/// `XLA_FFI_AttrType_SCALAR`
pub(super) const SCALAR: c_int = 3;
/// `XLA_FFI_DataType_S64`
pub(super) const S64: c_int = 5;

/// `XLA_FFI_Attrs`
#[repr(C)]
pub(super) struct Attributes {
    pub(super) size: usize,
    pub(super) extensions: *mut Extension,
    pub(super) count: i64,
    pub(super) kinds: *const c_int,
    pub(super) names: *const *const Text,
    pub(super) values: *const *const c_void,
}

/// `XLA_FFI_CallFrame`, as far as it is used.
#[repr(C)]
pub struct Frame {
    pub(super) size: usize,
    pub(super) extensions: *mut Extension,
    pub(super) api: *const Api,
    pub(super) context: *mut c_void,
    pub(super) stage: c_int,
    pub(super) operands: Buffers,
    pub(super) results: Buffers,
    pub(super) attributes: Attributes,
}

/// `XLA_FFI_ExecutionStage_EXECUTE`
pub(super) const EXECUTE: c_int = 3;
