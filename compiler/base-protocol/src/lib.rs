//! The base protocol that the Language Server Protocol and the Debug Adapter Protocol share: a header with the length
//! of the content, an empty line, and JSON.

#![forbid(unsafe_code)]

use serde_json::Value;
use std::fmt::Display;
use std::io::{self, BufRead, Read as _, Write};

/// Bytes of a line of a message's header, less one.
const LONGEST_HEADER: u64 = 1 << 16;

/// Bytes of a message at most: more than any editor sends, and less than the machine has.
const LARGEST: usize = 256 << 20;

/// Why something that was sent is no message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// Its header is wrong.
    Header(String),
    /// Its content is no JSON.
    Content(String),
}

impl Malformed {
    /// The reason, as a sentence without its point.
    pub fn reason(&self) -> &str {
        match self {
            Malformed::Header(why) | Malformed::Content(why) => why,
        }
    }
}

/// Reads messages, and goes on behind one that is malformed.
pub struct MessageReader<R> {
    input: R,
    /// Bytes of a message that was too long: they are passed over without being kept, and its sender knows already.
    over: u64,
}

impl<R: BufRead> MessageReader<R> {
    /// From a stream.
    pub fn new(input: R) -> MessageReader<R> {
        MessageReader { input, over: 0 }
    }

    /// The next message; none at the end of the input.
    ///
    /// # Errors
    /// That the stream cannot be read any more.
    pub fn next_message(&mut self) -> io::Result<Option<Result<Value, Malformed>>> {
        let MessageReader { input, over } = self;
        io::copy(&mut input.take(std::mem::take(over)), &mut io::sink())?;
        let wrong = |why: &str| Ok(Some(Err(Malformed::Header(why.to_owned()))));
        // White space between messages is no message.
        let (mut length, mut headers) = (None, 0);
        loop {
            let mut line = Vec::new();
            let read = input.take(LONGEST_HEADER).read_until(b'\n', &mut line)? as u64;
            // A sender without line ends speaks no protocol, as at the end of the input.
            if read == 0 || read == LONGEST_HEADER && !line.ends_with(b"\n") {
                return Ok(None);
            }
            let text = String::from_utf8_lossy(&line);
            match text.trim().split_once(':') {
                Some((name, value)) => {
                    headers += 1;
                    if name.trim().eq_ignore_ascii_case("content-length") {
                        length = value.trim().parse::<usize>().ok();
                    }
                }
                None if text.trim().is_empty() && headers > 0 => break,
                None if text.trim().is_empty() => {}
                // Nothing says where this ends but the end of its line.
                None => return wrong("a header is `Name: value`"),
            }
        }
        let Some(length) = length else { return wrong("a message needs `Content-Length`, its number of bytes") };
        if length > LARGEST {
            *over = length as u64;
            return wrong(&format!("a message has at most {LARGEST} bytes; the next {length} are passed over"));
        }
        let mut body = vec![0; length];
        input.read_exact(&mut body)?;
        let message = serde_json::from_slice(&body);
        Ok(Some(message.map_err(|e| Malformed::Content(format!("the message is no JSON: {e}")))))
    }
}

/// Writes a message, which prints as JSON.
///
/// # Errors
/// That the stream cannot be written any more: who reads it is gone.
pub fn write(output: &mut dyn Write, message: impl Display) -> io::Result<()> {
    let text = message.to_string();
    write!(output, "Content-Length: {}\r\n\r\n{text}", text.len())?;
    output.flush()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(text: &str) -> Vec<Result<Value, Malformed>> {
        let mut reader = MessageReader::new(text.as_bytes());
        std::iter::from_fn(|| reader.next_message().unwrap()).collect()
    }

    #[test]
    fn what_is_written_is_read() {
        let mut bytes = Vec::new();
        for n in 0..3 {
            write(&mut bytes, json!({"seq": n, "text": "ä"})).unwrap();
        }
        let all = read(std::str::from_utf8(&bytes).unwrap());
        assert_eq!(all.len(), 3);
        assert_eq!(all[2], Ok(json!({"seq": 2, "text": "ä"})));
    }

    #[test]
    fn what_is_malformed_is_said_and_passed_over() {
        let all = read("hello\r\n\r\nX: 1\r\n\r\nContent-Length: 3\r\n\r\n{]}content-length: 2\r\n\r\n{}");
        assert_eq!(all.len(), 4, "{all:?}");
        assert_eq!(all[0].as_ref().unwrap_err().reason(), "a header is `Name: value`");
        assert!(all[1].as_ref().unwrap_err().reason().contains("Content-Length"));
        assert!(matches!(&all[2], Err(Malformed::Content(why)) if why.contains("no JSON")));
        assert_eq!(all[3], Ok(json!({})));
        // Cut off in the middle, as by a client that dies.
        let mut reader = MessageReader::new(&b"Content-Length: 100\r\n\r\n{"[..]);
        assert!(reader.next_message().is_err());
    }
}
