//! `ptoc layout --batch`

use crate::args::MessageFormat;
use crate::commands::show;
use crate::io::Io;
use crate::{DONE, ERRORS};
use ptoc_diagnostics::{Diagnostic, codes};
use ptoc_views::expression::Expressions;
use ptoc_views::layout::object;
use serde_json::json;
use std::fmt::Write as _;
use std::io::{self, BufRead, BufReader, Read};

/// A line may have this many bytes.
const LONGEST_LINE: u64 = 1 << 20;

/// One expression a line, one JSON object a line. An expression that is wrong is an object too, and no end.
pub(super) fn batch<R: Read>(expressions: &Expressions, input: &mut BufReader<R>, io: &mut Io<'_>) -> u8 {
    let (mut line, mut out) = (Vec::new(), String::new());
    loop {
        let answer = match next_line(input, &mut line) {
            Ok(Line::End) => break,
            Ok(Line::TooLong) => json!({"error": format!("the line has more than {LONGEST_LINE} bytes")}),
            Ok(Line::Whole) => {
                let text = String::from_utf8_lossy(&line);
                let text = text.trim_end_matches(['\n', '\r']);
                match expressions.evaluate(text) {
                    Ok(value) => object(&expressions.cx, &value, text),
                    Err(e) => json!({"error": expressions.located(&e, text)}),
                }
            }
            Err(e) => {
                io.print(&out);
                let message = format!("cannot read standard input: {}", ptoc_driver::files::reason(&e));
                show(Diagnostic::global(codes::CANNOT_READ, message), io, MessageFormat::Human);
                return ERRORS;
            }
        };
        let _ = writeln!(out, "{answer}");
        // Who waits for an answer before the next question gets it; a long list is written in large pieces.
        if out.len() > 1 << 16 || !input.buffer().contains(&b'\n') {
            io.print(&out);
            io.flush();
            out.clear();
            if io.closed || io.failed.is_some() {
                break;
            }
        }
    }
    io.print(&out);
    DONE
}

enum Line {
    Whole,
    TooLong,
    End,
}

/// Reads a line; of one that is too long nothing is kept.
fn next_line<R: Read>(input: &mut BufReader<R>, line: &mut Vec<u8>) -> io::Result<Line> {
    line.clear();
    let read = input.take(LONGEST_LINE).read_until(b'\n', line)?;
    match line.ends_with(b"\n") || (read as u64) < LONGEST_LINE {
        true if read == 0 => Ok(Line::End),
        true => Ok(Line::Whole),
        false => {
            input.skip_until(b'\n')?;
            Ok(Line::TooLong)
        }
    }
}
