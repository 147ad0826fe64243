//! `.npy` against files that NumPy wrote (`dev/npy_fixtures.py`), and against broken ones.

use proptest::prelude::*;
use ptoc_tensor::{DType, Tensor, npy};
use std::{fs, path::PathBuf};

fn fixture(name: &str) -> Vec<u8> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(format!("{name}.npy"));
    fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// What `dev/npy_fixtures.py` puts into the fixture of a dtype.
fn values(dtype: DType) -> Tensor {
    let value = |i: usize| match dtype {
        DType::Bool => f64::from(i % 3 == 1),
        _ if dtype.is_float() => (i as f64 - 11.0) / 8.0,
        _ if dtype.is_signed_int() => i as f64 - 11.0,
        _ => i as f64,
    };
    Tensor::from_f64s(dtype, &[2, 3, 4], &(0..24).map(value).collect::<Vec<_>>()).unwrap()
}

const PLAIN: [(&str, DType); 12] = [
    ("bool", DType::Bool),
    ("i1", DType::I8),
    ("u1", DType::U8),
    ("i2", DType::I16),
    ("u2", DType::U16),
    ("i4", DType::I32),
    ("u4", DType::U32),
    ("i8", DType::I64),
    ("u8", DType::U64),
    ("f2", DType::F16),
    ("f4", DType::F32),
    ("bf16_as_v2", DType::BF16),
];

#[test]
fn every_dtype_reads_and_writes_as_numpy_does() {
    for (name, dtype) in PLAIN {
        let file = fixture(name);
        let tensor = npy::read(&file, None).unwrap();
        assert_eq!(tensor, values(dtype), "{name}");
        assert_eq!(npy::write(&tensor), file, "{name}");
    }
    for name in ["scalar", "vector", "empty"] {
        let file = fixture(name);
        assert_eq!(npy::write(&npy::read(&file, None).unwrap()), file, "{name}");
    }
}

#[test]
fn byte_orders_memory_orders_and_versions() {
    let files = [
        ("i2_big", DType::I16),
        ("u4_big", DType::U32),
        ("i8_big", DType::I64),
        ("f2_big", DType::F16),
        ("f4_big", DType::F32),
        ("u1_fortran", DType::U8),
        ("f4_fortran", DType::F32),
        ("i2_big_fortran", DType::I16),
        ("v2", DType::F32),
        ("v3", DType::F32),
    ];
    for (name, dtype) in files {
        assert_eq!(npy::read(&fixture(name), None).unwrap(), values(dtype), "{name}");
    }
    let empty = npy::read(&fixture("empty"), None).unwrap();
    assert_eq!(empty.signature(), "f16[3, 0, 2]");
    let scalar = npy::read(&fixture("scalar"), None).unwrap();
    assert_eq!((scalar.signature(), scalar.get_f64(0)), ("f32[]".to_string(), 2.5));
}

#[test]
fn bf16_comes_as_u2_where_it_is_expected() {
    let file = fixture("bf16_as_u2");
    assert_eq!(npy::read(&file, Some(DType::BF16)).unwrap(), values(DType::BF16));
    assert_eq!(npy::read(&file, Some(DType::F16)).unwrap().dtype(), DType::U16);
}

/// What a file with this type string and these bytes holds.
fn bytes_as(descr: &str, expected: Option<DType>) -> Tensor {
    let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': (2,)}}");
    npy::read(&file(&header, &[0x38, 0xfe]), expected).unwrap()
}

#[test]
fn floats_of_8_bits_come_as_bytes() {
    // NumPy writes its extensions' e4m3 as `V1` and their e5m2 as `f1`; plain bytes are taken where one is expected.
    assert_eq!(bytes_as("|V1", None).to_f64s(), [1.0, -448.0]);
    assert_eq!(bytes_as("<f1", None), bytes_as("|V1", Some(DType::F8E5M2)));
    assert_eq!(bytes_as("|u1", Some(DType::F8E4M3)).to_f64s(), [1.0, -448.0]);
    assert_eq!(bytes_as("|u1", Some(DType::F8E5M2)).dtype(), DType::F8E5M2);
    assert_eq!(bytes_as("|u1", Some(DType::F16)).dtype(), DType::U8);
    let tensor = bytes_as("|V1", Some(DType::F8E5M2));
    assert_eq!(npy::read(&npy::write(&tensor), Some(DType::F8E5M2)).unwrap(), tensor);
}

#[test]
fn types_without_an_equivalent_name_a_remedy() {
    let refusal = |name| npy::read(&fixture(name), Some(DType::F32)).unwrap_err().to_string();
    insta::assert_snapshot!(refusal("bad_f8"), @"the elements are `<f8` (float64), which kernels do not have; save \
        `x.astype(np.float32)` instead");
    insta::assert_snapshot!(refusal("bad_complex"), @"the elements are `<c8` (complex numbers), which kernels do not \
        have; save `x.real.astype(np.float32)`, and `x.imag` likewise, instead");
    insta::assert_snapshot!(refusal("bad_text"), @"the elements are `<U1` (text), which kernels do not have; save an \
        array of numbers, such as codes of the words, instead");
    insta::assert_snapshot!(refusal("bad_object"), @"the elements are `|O` (pickled Python objects), which kernels do \
        not have; save an array of numbers instead");
    insta::assert_snapshot!(refusal("bad_structured"), @"the elements are `[('a', '<f4'), (\"b,'\", '<i4', (2,))]` (a \
        structured type), which kernels do not have; save one field, as in `x['name']`, instead");
    insta::assert_snapshot!(refusal("bad_date"), @"the elements are `<M8[us]` (dates or durations), which kernels do \
        not have; save `x.astype(np.int64)` instead");
    insta::assert_snapshot!(refusal("bad_raw"), @"the elements are `|V5` (raw bytes), which kernels do not have; save \
        a numeric view, as in `x.view(np.uint8)`, instead");
}

/// A file with this version 1 header text and data.
fn file(header: &str, data: &[u8]) -> Vec<u8> {
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    file.extend_from_slice(&(header.len() as u16).to_le_bytes());
    file.extend_from_slice(header.as_bytes());
    file.extend_from_slice(data);
    file
}

#[test]
fn malformed_files() {
    let good = fixture("f4");
    let read = |bytes: &[u8]| match npy::read(bytes, None) {
        Ok(tensor) => tensor.signature(),
        Err(error) => format!("{}: {error}", error.code()),
    };
    let with = |header: &str| read(&file(header, &[0; 8]));
    let shape = |shape: &str| with(&format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}}}"));
    let descr = |descr: &str| with(&format!("{{'descr': {descr}, 'fortran_order': False, 'shape': (2,)}}"));
    let long = [&good[..], &[0; 3]].concat();
    let mut version = good.clone();
    version[6] = 9;
    let mut claims_4g = b"\x93NUMPY\x02\x00\xff\xff\xff\xff".to_vec();
    claims_4g.extend_from_slice(b"{}");
    let mut latin1 = file("{'descr': '<f4', 'x': 1}", &[]);
    latin1[12] = 0xe9;
    let outcomes = [
        ("empty", read(&[])),
        ("text", read(b"1.0, 2.0\n")),
        ("npz", read(b"PK\x03\x04....")),
        ("magic alone", read(&good[..6])),
        ("no length", read(&good[..9])),
        ("half a header", read(&good[..70])),
        ("header of 4 GiB", read(&claims_4g)),
        ("version", read(&version)),
        ("not text", read(&latin1)),
        ("no data", read(&good[..128])),
        ("data cut", read(&good[..200])),
        ("data left", read(&long)),
        ("no dictionary", with("[1, 2]")),
        ("empty dictionary", with("{}")),
        ("unquoted key", with("{descr: '<f4'}")),
        ("no colon", with("{'descr' '<f4'}")),
        ("unknown key", with("{'descr': '<f4', 'order': 1}")),
        ("key twice", with("{'descr': '<f4', 'descr': '<f4'}")),
        ("open string", with("{'descr': '<f4}")),
        ("open bracket", with("{'shape': (2, 'descr': '<f4'}")),
        ("stray bracket", with("{'shape': 2), 'descr': '<f4'}")),
        ("no bool", with("{'descr': '<f4', 'fortran_order': 0, 'shape': (2,)}")),
        ("no tuple", shape("[2]")),
        ("a number", shape("(2)")),
        ("negative", shape("(2, -1)")),
        ("fraction", shape("(2.0,)")),
        ("hole", shape("(2,,1)")),
        ("beyond u64", shape("(99999999999999999999,)")),
        ("product", shape("(4294967296, 4294967296)")),
        ("product with zero", shape("(0, 4294967296, 4294967296)")),
        ("just large", shape("(4294967296, 65536)")),
        ("python 2", shape("(2L,)")),
        ("spaces", shape("( 1 , 2 , )")),
        ("no type", descr("'zz'")),
        ("order only", descr("'<'")),
        ("number", descr("4")),
        ("f16", descr("'<f16'")),
        ("i3", descr("'<i3'")),
        ("without order", descr("'f4'")),
        ("double quotes", descr("\"<f4\"")),
    ];
    let report: String = outcomes.map(|(what, outcome)| format!("{what:18} {outcome}\n")).concat();
    insta::assert_snapshot!(report);
}

/// A source that counts what is taken from it, and has no end.
#[derive(Debug)]
struct Endless<'a> {
    bytes: &'a [u8],
    taken: &'a std::cell::Cell<usize>,
}

impl std::io::Read for Endless<'_> {
    fn read(&mut self, place: &mut [u8]) -> std::io::Result<usize> {
        // Pipes give less than was asked for.
        let n = place.len().min(7);
        for (at, byte) in place[..n].iter_mut().enumerate() {
            *byte = self.bytes.get(self.taken.get() + at).copied().unwrap_or(0);
        }
        self.taken.set(self.taken.get() + n);
        Ok(n)
    }
}

#[test]
fn no_more_is_read_than_the_header_says() {
    for name in ["f4", "f4_fortran", "i2_big", "bool"] {
        let file = fixture(name);
        let taken = std::cell::Cell::new(0);
        let reader = npy::NpyReader::new(Endless { bytes: &file, taken: &taken }, None, None).unwrap();
        let data = reader.dtype().size() * reader.shape().iter().product::<usize>();
        assert_eq!(taken.get(), file.len() - data, "{name}: the header, and nothing else");
        let error = reader.read().unwrap_err();
        assert_eq!(error.code(), "E0707");
        assert_eq!(taken.get(), file.len() + 1, "{name}: one byte more, which should not be there");
    }
    // Where the length is known, it is held against the claim before anything is read.
    let claims = file("{'descr': '<f4', 'fortran_order': False, 'shape': (1073741824, 1024)}", &[0; 8]);
    let taken = std::cell::Cell::new(0);
    let endless = Endless { bytes: &claims, taken: &taken };
    assert_eq!(npy::NpyReader::new(endless, Some(claims.len() as u64), None).unwrap_err().code(), "E0706");
    assert_eq!(taken.get(), claims.len() - 8);
}

#[test]
fn headers_have_bounds() {
    let read = |header: &str, data: usize| match npy::read(&file(header, &vec![0; data]), None) {
        Ok(tensor) => tensor.signature(),
        Err(error) => format!("{}: {error}", error.code()),
    };
    let shape =
        |shape: &str, data| read(&format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}}}"), data);
    // Python reads no such numbers, and only zeros may have zeros before them.
    insta::assert_snapshot!(shape("(017, 70)", 4760), @"E0704: the header is malformed: the extent `017` in `shape` \
        begins with 0");
    insta::assert_snapshot!(shape("(00, 70)", 0), @"f32[0, 70]");
    let mut long = b"\x93NUMPY\x02\x00\x01\x00\x10\x00".to_vec();
    long.resize(12 + (1 << 20) + 1, b' ');
    insta::assert_snapshot!(npy::read(&long, None).unwrap_err(), @"the header is malformed: it claims to be 1048577 \
        bytes long, and at most 1048576 are read");
}

#[test]
fn every_prefix_of_a_file_is_an_error() {
    for name in ["f4", "v2", "bad_structured", "bf16_as_v2"] {
        let good = fixture(name);
        for end in 0..good.len() {
            assert!(npy::read(&good[..end], None).is_err(), "{name} {end}");
        }
    }
}

/// Not only a test: the files are for `dev/npy_fixtures.py --check`.
#[test]
fn written_files() {
    let Some(dir) = std::env::var_os("PTOC_NPY_OUT") else { return };
    for (name, dtype) in PLAIN {
        let name = name.trim_end_matches("_as_v2");
        fs::write(PathBuf::from(&dir).join(format!("{name}.npy")), npy::write(&values(dtype))).unwrap();
    }
}

#[test]
fn headers_beyond_64_kib_are_version_2() {
    let tensor = Tensor::zeros(DType::U8, &[1; 30_000]).unwrap();
    let file = npy::write(&tensor);
    assert_eq!((file[6], npy::read(&file, None).unwrap() == tensor), (2, true));
}

proptest! {
    #[test]
    fn what_is_written_is_read(shape in prop::collection::vec(0usize..5, 0..5), dtype in 0..13usize, seed: u64) {
        let tensor = ptoc_tensor::random(DType::ALL[dtype], &shape, seed, "x").unwrap();
        let file = npy::write(&tensor);
        prop_assert_eq!((file.len() - tensor.bytes().len()) % 64, 0);
        prop_assert_eq!(npy::read(&file, None).unwrap(), tensor);
    }

    #[test]
    fn damage_never_panics(name in 0..4usize, at in 0..200usize, byte: u8, cut in 0..300usize) {
        let mut file = fixture(["f4_fortran", "bad_structured", "i2_big_fortran", "v3"][name]);
        if let Some(target) = file.get_mut(at) {
            *target = byte;
        }
        let _ = npy::read(&file, None);
        let _ = npy::read(&file[..cut.min(file.len())], None);
    }
}
