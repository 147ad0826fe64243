//! Arrays: the header first, and the elements when the header fits.

use super::{code, numpy_name, read_help, reason};
use ptoc_diagnostics::{Diagnostic, codes};
use ptoc_tensor::npy::{NpyError, NpyReader};
use ptoc_tensor::{DType, Tensor};
use std::fs::{self, File, Metadata};
use std::io;
use std::path::{Path, PathBuf};

/// A file with an array, of which dtype and shape are known. Its elements are read when they are asked for, so what
/// does not fit is refused at the cost of a header.
#[derive(Debug)]
pub struct ArrayFile {
    path: PathBuf,
    wanted: Option<DType>,
    stream: Option<Stream>,
    contents: Contents,
    /// The extents, perhaps with a last one of 1 that the file has not.
    shape: Vec<usize>,
}

/// A pipe or a device: it has no length, gives its bytes once, and its writer may be waiting. Two of them are equal if
/// what one path gives is missing from the other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stream {
    device: u64,
    inode: u64,
}

/// The pipe or device that a path leads to, if it is one.
pub fn stream(path: &Path) -> Option<Stream> {
    stream_of(&fs::metadata(path).ok()?)
}

fn stream_of(known: &Metadata) -> Option<Stream> {
    #[cfg(unix)]
    let (device, inode) = {
        use std::os::unix::fs::MetadataExt;
        (known.dev(), known.ino())
    };
    #[cfg(not(unix))]
    let (device, inode) = (0, 0);
    (!known.is_file() && !known.is_dir()).then_some(Stream { device, inode })
}

#[derive(Debug)]
enum Contents {
    /// The elements are still in the file.
    Unread(NpyReader<File>),
    Read(Tensor),
    /// They are the caller's, and are not read here.
    Lent(DType),
}

impl ArrayFile {
    /// Opens a file and reads its header. Elements of type `wanted`, if there is one, are what the caller hopes for.
    pub fn open(path: &Path, wanted: Option<DType>) -> Result<ArrayFile, Diagnostic> {
        let opened = || -> io::Result<(File, Metadata)> {
            let file = File::open(path)?;
            let known = file.metadata()?;
            if known.is_dir() { Err(io::ErrorKind::IsADirectory.into()) } else { Ok((file, known)) }
        };
        let (file, known) = opened().map_err(|e| {
            let message = format!("cannot read array `{}`: {}", path.display(), reason(&e));
            Diagnostic::global(codes::CANNOT_READ, message).with_help(read_help(path, &e, ".npy"))
        })?;
        // Some files of the system's own have a length of 0 and contents.
        let length = Some(known.len()).filter(|&n| known.is_file() && n > 0);
        let reader = NpyReader::new(file, length, None).map_err(|e| refused(path, wanted, e))?;
        let shape = reader.shape().to_vec();
        let contents = Contents::Unread(reader);
        Ok(ArrayFile { path: path.to_owned(), wanted, stream: stream_of(&known), contents, shape })
    }

    /// An array that is there, called as if it came from a file.
    pub fn of(tensor: Tensor, path: impl Into<PathBuf>) -> ArrayFile {
        let shape = tensor.shape().to_vec();
        ArrayFile { path: path.into(), wanted: None, stream: None, contents: Contents::Read(tensor), shape }
    }

    /// The head of an array that a caller has in memory: what dimensions are bound by.
    pub fn lent(dtype: DType, shape: &[usize]) -> ArrayFile {
        let (path, contents) = (PathBuf::new(), Contents::Lent(dtype));
        ArrayFile { path, wanted: None, stream: None, contents, shape: shape.to_vec() }
    }

    /// Whether it is a caller's, and comes from no file.
    pub fn is_lent(&self) -> bool {
        matches!(self.contents, Contents::Lent(_))
    }

    /// The array with a last extent of 1.
    pub fn with_last_mode(mut self) -> ArrayFile {
        self.shape.push(1);
        self
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        match &self.contents {
            Contents::Unread(reader) => reader.dtype(),
            Contents::Read(tensor) => tensor.dtype(),
            Contents::Lent(dtype) => *dtype,
        }
    }

    /// The extents.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The pipe or device that it is read from.
    pub fn stream(&self) -> Option<Stream> {
        self.stream
    }

    /// `f32[3, 4]`
    pub fn signature(&self) -> String {
        format!("{}{:?}", self.dtype(), self.shape())
    }

    /// Reads the elements now if they come from a pipe or a device. Who writes one pipe after another would wait
    /// forever for this one to be emptied while the next one is waited for here.
    pub fn drain(self) -> Result<ArrayFile, Diagnostic> {
        match (&self.contents, self.stream) {
            (Contents::Unread(_), Some(_)) => {
                let (path, wanted, stream) = (self.path.clone(), self.wanted, self.stream);
                let shape = self.shape.clone();
                Ok(ArrayFile { path, wanted, stream, contents: Contents::Read(self.into_tensor()?), shape })
            }
            _ => Ok(self),
        }
    }

    /// The array.
    pub fn into_tensor(self) -> Result<Tensor, Diagnostic> {
        let tensor = match self.contents {
            Contents::Unread(reader) => reader.read().map_err(|e| refused(&self.path, self.wanted, e))?,
            Contents::Read(tensor) => tensor,
            Contents::Lent(dtype) => {
                let message = format!("the elements of an array {dtype}{:?} are its caller's", self.shape);
                return Err(Diagnostic::global(codes::CANNOT_READ, message));
            }
        };
        let message = |e| Diagnostic::global(codes::ARRAY_SHAPE, format!("array `{}`: {e}", self.path.display()));
        if tensor.shape() == self.shape { Ok(tensor) } else { tensor.reshaped(&self.shape).map_err(message) }
    }
}

/// Reads an array whole, of which elements of one type are wanted.
pub fn read_array(path: &Path, wanted: Option<DType>) -> Result<Tensor, Diagnostic> {
    ArrayFile::open(path, wanted)?.into_tensor()
}

/// The refusal of a file that holds no array that can be read.
fn refused(path: &Path, wanted: Option<DType>, mut e: NpyError) -> Diagnostic {
    // Who saves it anew should save what is taken.
    if let (NpyError::UnsupportedType { remedy, .. }, Some(wanted)) = (&mut e, wanted) {
        *remedy = remedy.replace("np.float32", &format!("np.{}", numpy_name(wanted)));
    }
    let d = Diagnostic::global(code(e.code()), format!("array `{}`: {e}", path.display()));
    match e {
        NpyError::NotNpy { .. } => d.with_help("write the array with `numpy.save`"),
        // The message says what to save instead.
        NpyError::UnsupportedType { .. } => d,
        NpyError::TruncatedHeader { .. } | NpyError::TruncatedData { .. } => {
            d.with_help("the file was cut off, or its header is wrong: write it again")
        }
        NpyError::TrailingData { .. } => {
            d.with_help("save each array to a file of its own; a file that is open for appending takes several")
        }
        NpyError::Version { .. } | NpyError::BadHeader { .. } => {
            d.with_help("write the file again: NumPy's `save` makes such headers as are read here")
        }
        NpyError::Io { reason } => {
            let message = format!("cannot read array `{}`: {}", path.display(), super::words(&reason));
            Diagnostic::global(codes::CANNOT_READ, message)
                .with_help("the file could be opened, and reading it failed: look at the device that it is on")
        }
        NpyError::TooLarge { .. } | NpyError::Tensor(_) => d.with_help("give a smaller array"),
    }
}
