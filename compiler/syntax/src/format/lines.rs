//! Lines of pieces, with their indentation.
//!
//! A line of a block stands at the block's level. A line that goes on with a statement is one level deeper; inside of
//! brackets it stands below the first thing in them, or one level deeper than the line with the bracket if that begins
//! a line itself. The parameters of an item, on a line of their own, stand below its static parameters, and the
//! conditions of `where` and `ensures` below the first of them.

use super::INDENT;
use super::breaks::opens_line;
use super::context::{Context, Role};
use super::pieces::Piece;
use super::spacing::blanks;
use crate::Tok;

/// A line of the result.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct OutputLine<'t> {
    /// Code, indented, without a comment behind it; or a comment alone.
    pub text: String,
    /// The comment behind the code, and the column where it was.
    pub comment: Option<(&'t str, usize)>,
    /// There is an empty line before it.
    pub blank_before: bool,
}

/// A bracket that is open, or the file.
struct Frame {
    tok: Option<Tok>,
    /// Of the lines in it.
    inner: usize,
    /// Of the line that the closing bracket begins.
    outer: usize,
    /// In braces and in the file: of the statement at hand.
    statement: usize,
    /// In a head: the column of the static parameters, and of the first condition of the clause at hand.
    /// Both with the column that they have in the source.
    statics: Option<(usize, usize)>,
    clause: Option<(usize, usize)>,
}

impl Frame {
    fn new(tok: Option<Tok>, inner: usize, outer: usize) -> Frame {
        Frame { tok, inner, outer, statement: inner, statics: None, clause: None }
    }

    fn holds_statements(&self) -> bool {
        self.tok.is_none_or(|t| t == Tok::LBrace)
    }
}

struct Writer<'p, 't> {
    pieces: &'p [Piece<'t>],
    contexts: &'p [Context],
    /// Blanks before each piece beyond those that always stand there.
    pads: &'p [usize],
    /// For each piece the next one that is no comment, itself among them.
    code: Vec<Option<usize>>,
    /// Where each piece begins.
    columns: Vec<usize>,
    lines: Vec<OutputLine<'t>>,
    frames: Vec<Frame>,
    /// Characters on the line at hand, and its indentation.
    width: usize,
    indent: usize,
}

/// The lines of the result, with extra blanks before pieces; and the column of each piece.
pub(super) fn lines<'t>(
    pieces: &[Piece<'t>],
    contexts: &[Context],
    pads: &[usize],
) -> (Vec<OutputLine<'t>>, Vec<usize>) {
    let mut w = Writer {
        pieces,
        contexts,
        pads,
        code: code(pieces),
        columns: vec![0; pieces.len()],
        lines: Vec::new(),
        frames: vec![Frame::new(None, 0, 0)],
        width: 0,
        indent: 0,
    };
    (0..pieces.len()).for_each(|i| w.piece(i));
    (w.lines, w.columns)
}

/// For each piece the next one that is no comment, itself among them.
fn code(pieces: &[Piece<'_>]) -> Vec<Option<usize>> {
    let mut next = None;
    let mut all = vec![None; pieces.len()];
    for (i, piece) in pieces.iter().enumerate().rev() {
        if !piece.tok.is_comment() {
            next = Some(i);
        }
        all[i] = next;
    }
    all
}

impl<'t> Writer<'_, 't> {
    fn frame(&mut self) -> &mut Frame {
        self.frames.last_mut().expect("the file is never closed")
    }

    fn piece(&mut self, i: usize) {
        let piece = &self.pieces[i];
        if piece.tok.is_comment() && !piece.begins_line() {
            let line = self.lines.last_mut().expect("the first piece begins a line");
            line.comment = Some((piece.text, piece.column));
            return;
        }
        if let Some(line) = self.goes_on(i) {
            self.lines.push(line);
            return;
        }
        let closes = self.contexts[i].partner.is_some_and(|p| p < i);
        if piece.begins_line() {
            self.indent = self.indentation(i, closes);
            self.width = self.indent;
            let blank_before = piece.breaks > 1 && !self.lines.is_empty();
            self.lines.push(OutputLine { text: " ".repeat(self.indent), comment: None, blank_before });
        } else {
            self.write(&" ".repeat(blanks(self.pieces, self.contexts, i) + self.pads[i]));
        }
        self.columns[i] = self.width;
        if piece.tok.is_comment() {
            return self.write(piece.text);
        }
        if closes {
            self.frames.pop();
        } else {
            self.before(i);
        }
        self.write(piece.text);
        if self.contexts[i].partner.is_some_and(|p| p > i) {
            self.open(i);
        }
    }

    /// A comment below one that stands behind code, in the same column, goes on with it.
    fn goes_on(&self, i: usize) -> Option<OutputLine<'t>> {
        let piece = &self.pieces[i];
        let (_, column) = self.lines.last()?.comment?;
        let below = piece.tok.is_comment() && piece.breaks == 1 && piece.column == column && column > 0;
        below.then(|| OutputLine { text: String::new(), comment: Some((piece.text, column)), blank_before: false })
    }

    fn write(&mut self, text: &str) {
        self.lines.last_mut().expect("the first piece begins a line").text.push_str(text);
        self.width += text.chars().count();
    }

    /// The indentation of a line that begins with this piece.
    fn indentation(&mut self, i: usize, closes: bool) -> usize {
        let (pieces, contexts) = (self.pieces, self.contexts);
        if closes {
            return self.frame().outer;
        }
        // A comment stands where the code after it does.
        let Some(next) = self.code[i].filter(|&n| contexts[n].partner.is_none_or(|p| p > n)) else {
            return self.frame().inner;
        };
        let frame = self.frame();
        if !frame.holds_statements() {
            return frame.inner;
        }
        if contexts[next].start {
            return frame.inner;
        }
        match (pieces[next].tok, contexts[next].role) {
            (Tok::LBrace, _) => frame.statement,
            (_, Role::Params) => match frame.statics {
                Some((column, source)) if pieces[next].column >= source => column,
                _ => frame.statement + INDENT,
            },
            (Tok::Where | Tok::Ensures | Tok::Arrow, _) => frame.statement + INDENT,
            _ => {
                let statement = frame.statement;
                match frame.clause {
                    // Conditions may also hang, if the author has them so.
                    Some((clause, source)) if pieces[next].column < source => clause.min(statement + 2 * INDENT),
                    Some((clause, _)) => clause,
                    None => statement + INDENT,
                }
            }
        }
    }

    /// What a token changes before it is written.
    fn before(&mut self, i: usize) {
        let (context, width, indent) = (self.contexts[i], self.width, self.indent);
        let begins_line = self.pieces[i].begins_line();
        let tok = self.pieces[i].tok;
        let statement_begins = context.start;
        let column = self.pieces[i].column;
        // Conditions that begin on the next line stand one level deeper than their clause.
        let beside = self.pieces.get(i + 1).filter(|p| !p.begins_line() && !p.tok.is_comment());
        let first = match beside {
            Some(p) => (width + tok_width(tok) + 1 + self.pads[i + 1], p.column),
            None => (self.frame().statement + 2 * INDENT, 0),
        };
        let frame = self.frame();
        if statement_begins {
            // Of several statements on a line, the first says where lines that go on with one of them stand.
            frame.statement = if begins_line { width } else { indent };
            (frame.statics, frame.clause) = (None, None);
        }
        match tok {
            Tok::StaticOpen if context.role == Role::Statics => frame.statics = Some((width, column)),
            Tok::Where | Tok::Ensures if frame.holds_statements() => frame.clause = Some(first),
            Tok::LBrace => frame.clause = None,
            _ => {}
        }
    }

    /// An opening bracket, which is written.
    fn open(&mut self, i: usize) {
        let tok = self.pieces[i].tok;
        let (width, indent) = (self.width, self.indent);
        let frame = self.frame();
        let frame = match tok {
            Tok::LBrace => {
                let outer = if frame.holds_statements() { frame.statement } else { indent };
                Frame::new(Some(tok), outer + INDENT, outer)
            }
            _ if opens_line(self.pieces, i) => Frame::new(Some(tok), indent + INDENT, indent),
            // Lines may also hang, one level deeper than the line with the bracket, if the author has them so.
            _ => {
                let hanging = indent + INDENT;
                let hangs = hanging < width && hangs(self.pieces, self.contexts, i);
                Frame::new(Some(tok), if hangs { hanging } else { width }, width)
            }
        };
        self.frames.push(frame);
    }
}

/// Whether the first line that begins in a bracket, and not in one inside of it, begins to the left of what is in it.
///
/// Lines of an inner bracket stand where that one has them, so they say nothing here; least of all those of a block,
/// which may not have been lines in the source.
fn hangs(pieces: &[Piece<'_>], contexts: &[Context], open: usize) -> bool {
    let close = contexts[open].partner.unwrap_or(open);
    let first = pieces.get(open + 1).map_or(0, |p| p.column);
    let mut lines = Vec::new();
    let mut i = open + 1;
    while i < close {
        if pieces[i].begins_line() {
            lines.push(&pieces[i]);
        }
        i = contexts[i].partner.map_or(i, |inner| inner.max(i)) + 1;
    }
    // A comment stands where the code after it does.
    lines.iter().min_by_key(|p| p.tok.is_comment()).is_some_and(|p| p.column < first)
}

fn tok_width(tok: Tok) -> usize {
    tok.word().map_or(0, str::len)
}
