//! Text of the language, each piece with the place in the `.pto` file that it stems from.

use ptoc_diagnostics::Span;

/// A piece of the text: it ends at this byte, and begins where the one before ends.
#[derive(Clone, Copy, Debug)]
struct Piece {
    end: u32,
    span: Span,
}

/// Text that is written piece by piece.
#[derive(Clone, Debug)]
pub struct Source {
    /// The text.
    pub text: String,
    pieces: Vec<Piece>,
    depth: usize,
    whole: Span,
}

impl Source {
    /// An empty text; what stems from nothing stems from `whole`.
    pub fn new(whole: Span) -> Source {
        Source { text: String::new(), pieces: Vec::new(), depth: 0, whole }
    }

    /// Adds text that stems from `span`.
    pub fn put(&mut self, text: &str, span: Span) {
        self.text.push_str(text);
        let end = self.text.len().min(u32::MAX as usize) as u32;
        match self.pieces.last_mut().filter(|p| p.span == span) {
            Some(last) => last.end = end,
            None => self.pieces.push(Piece { end, span }),
        }
    }

    /// A line of the present depth.
    pub fn line(&mut self, text: &str, span: Span) {
        self.pieces_line(&[(text, span)], span);
    }

    /// A line of several pieces.
    pub fn pieces_line(&mut self, pieces: &[(&str, Span)], span: Span) {
        let indent = " ".repeat(4 * self.depth);
        self.put(&indent, span);
        for (text, span) in pieces {
            self.put(text, *span);
        }
        self.put("\n", span);
    }

    /// A line that opens a block.
    pub fn open(&mut self, text: &str, span: Span) {
        self.open_pieces(&[(text, span)], span);
    }

    /// A line of several pieces that opens a block.
    pub fn open_pieces(&mut self, pieces: &[(&str, Span)], span: Span) {
        self.pieces_line(pieces, span);
        self.depth += 1;
    }

    /// A line that closes one.
    pub fn close(&mut self, text: &str, span: Span) {
        self.depth = self.depth.saturating_sub(1);
        self.line(text, span);
    }

    /// Closes a block and opens the next one.
    pub fn reopen(&mut self, text: &str, span: Span) {
        self.close(text, span);
        self.depth += 1;
    }

    /// Puts `text` in at byte `at`, which is the end of a line.
    pub fn insert(&mut self, at: usize, text: &Source) {
        let by = text.text.len() as u32;
        self.text.insert_str(at, &text.text);
        let before = self.pieces.iter().take_while(|p| p.end as usize <= at).count();
        self.pieces[before..].iter_mut().for_each(|p| p.end += by);
        let moved = text.pieces.iter().map(|p| Piece { end: p.end + at as u32, ..*p });
        // A piece that begins in front of `at` and ends behind it is split.
        let begins = before.checked_sub(1).map_or(0, |i| self.pieces[i].end as usize);
        let split = self.pieces.get(before).filter(|_| begins < at).map(|p| Piece { end: at as u32, span: p.span });
        let new: Vec<Piece> = split.into_iter().chain(moved).collect();
        self.pieces.splice(before..before, new);
    }

    /// The bytes of a piece's text at this depth, for what is inserted later.
    pub fn at_depth(&self) -> Source {
        Source { depth: self.depth, ..Source::new(self.whole) }
    }

    /// Where in the `.pto` file the bytes of a span of this text stem from.
    pub fn origin(&self, span: Span) -> Span {
        let first = self.pieces.partition_point(|p| p.end <= span.start);
        let Some(start) = self.pieces.get(first) else { return self.whole };
        let (mut origin, mut begin) = (start.span, start.end);
        for piece in &self.pieces[first + 1..] {
            if begin >= span.end {
                break;
            }
            origin = origin.to(piece.span);
            begin = piece.end;
        }
        origin
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ptoc_diagnostics::FileId;

    #[test]
    fn places_lead_back() {
        let at = |a, b| Span::new(FileId(1), a, b);
        let mut s = Source::new(at(0, 100));
        s.put("abc", at(10, 13));
        s.put("de\n", at(20, 22));
        let of = |s: &Source, a, b| s.origin(Span::new(FileId(0), a, b));
        assert_eq!((of(&s, 0, 2), of(&s, 3, 4), of(&s, 2, 4)), (at(10, 13), at(20, 22), at(10, 22)));
        let mut inner = s.at_depth();
        inner.put("xy\n", at(50, 52));
        s.insert(6, &inner);
        s.put("f", at(30, 31));
        assert_eq!(s.text, "abcde\nxy\nf");
        assert_eq!((of(&s, 4, 5), of(&s, 6, 7), of(&s, 9, 10)), (at(20, 22), at(50, 52), at(30, 31)));
        s.insert(3, &inner);
        assert_eq!((of(&s, 2, 3), of(&s, 3, 4), of(&s, 6, 7)), (at(10, 13), at(50, 52), at(20, 22)));
        assert_eq!(of(&s, 90, 91), at(0, 100));
    }
}
