//! Long lists of numbers in a page, packed: columns in LEB128, deflated, in base64. `packed.js` takes them apart when a
//! page shows them.

/// The script's part: `unpack(text, count, columns)`.
pub(crate) const SCRIPT: &str = include_str!("packed.js");

/// Columns of as many numbers each.
pub(crate) fn pack(columns: &[Vec<u64>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for n in columns.iter().flatten() {
        let mut n = *n;
        while n >= 128 {
            bytes.push(n as u8 | 128);
            n >>= 7;
        }
        bytes.push(n as u8);
    }
    miniz_oxide::deflate::compress_to_vec(&bytes, 6)
}

/// Bytes as text (RFC 4648).
pub(crate) fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let byte = |n: usize| u32::from(three.get(n).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for n in 0..4 {
            let digit = DIGITS[(bits >> (18 - 6 * n) & 63) as usize];
            out.push(if n > three.len() { '=' } else { digit.into() });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_bytes() {
        for (bytes, text) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")] {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
        assert_eq!(base64(&[0xff, 0xfe]), "//4=");
    }

    #[test]
    fn columns_are_bytes() {
        let bytes = miniz_oxide::inflate::decompress_to_vec(&pack(&[vec![1, 300], vec![0, u64::MAX]])).unwrap();
        assert_eq!(bytes[..4], [1, 0xac, 2, 0]);
        assert_eq!((bytes.len(), bytes[13]), (14, 1));
    }
}
