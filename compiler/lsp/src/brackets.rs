//! Which brackets belong together, by the tokens: also in texts where some are missing.

use ptoc_syntax::Tok;

/// Brackets that are open, the innermost last, with what somebody knows of each.
pub struct Brackets<T> {
    open: Vec<(Tok, T)>,
    /// How many of each kind are open, so that what closes nothing costs nothing.
    counts: [usize; 4],
}

impl<T> Default for Brackets<T> {
    fn default() -> Brackets<T> {
        Brackets { open: Vec::new(), counts: [0; 4] }
    }
}

fn opens(tok: Tok) -> Option<usize> {
    match tok {
        Tok::LParen => Some(0),
        Tok::LBracket => Some(1),
        Tok::LBrace => Some(2),
        Tok::StaticOpen | Tok::TilerOpen => Some(3),
        _ => None,
    }
}

fn closes(tok: Tok) -> Option<usize> {
    match tok {
        Tok::RParen => Some(0),
        Tok::RBracket => Some(1),
        Tok::RBrace => Some(2),
        Tok::AngleClose => Some(3),
        _ => None,
    }
}

impl<T> Brackets<T> {
    /// Opens a bracket, if the token does.
    pub fn open(&mut self, tok: Tok, what: T) -> bool {
        let Some(kind) = opens(tok) else { return false };
        self.counts[kind] += 1;
        self.open.push((tok, what));
        true
    }

    /// Closes a bracket, if the token does and there is one for it. What was opened in it and not closed is closed by
    /// nothing.
    pub fn close(&mut self, tok: Tok) -> Option<T> {
        let kind = closes(tok).filter(|&kind| self.counts[kind] > 0)?;
        let at = self.open.iter().rposition(|(t, _)| opens(*t) == Some(kind))?;
        self.truncate(at + 1);
        self.pop()
    }

    /// Forgets all but the first `n`.
    pub fn truncate(&mut self, n: usize) {
        while self.open.len() > n {
            self.pop();
        }
    }

    fn pop(&mut self) -> Option<T> {
        let (tok, what) = self.open.pop()?;
        self.counts[opens(tok)?] -= 1;
        Some(what)
    }

    /// How many are open up to the innermost brace.
    pub fn block(&self) -> usize {
        self.open.iter().rposition(|(tok, _)| *tok == Tok::LBrace).map_or(0, |n| n + 1)
    }

    /// The innermost one.
    pub fn last_mut(&mut self) -> Option<&mut T> {
        self.open.last_mut().map(|(_, what)| what)
    }

    /// All of them.
    pub fn into_all(self) -> Vec<T> {
        self.open.into_iter().map(|(_, what)| what).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_closed_by_what_is_around_it() {
        let mut open = Brackets::default();
        for (n, tok) in [Tok::LParen, Tok::LBrace, Tok::LParen, Tok::TilerOpen].into_iter().enumerate() {
            assert!(open.open(tok, n));
        }
        assert!(!open.open(Tok::RParen, 9));
        assert_eq!((open.close(Tok::RBracket), open.close(Tok::Comma)), (None, None));
        assert_eq!(open.block(), 2);
        // The tiler is closed by nothing.
        assert_eq!((open.close(Tok::RParen), open.close(Tok::AngleClose)), (Some(2), None));
        assert_eq!((open.close(Tok::RBrace), open.last_mut().copied()), (Some(1), Some(0)));
        open.truncate(0);
        assert_eq!((open.close(Tok::RParen), open.into_all()), (None, vec![]));
    }

    /// What closes nothing is not looked for in all that is open.
    #[test]
    fn mistakes_take_no_time() {
        let begin = std::time::Instant::now();
        let mut open = Brackets::default();
        (0..200_000).for_each(|n| assert!(open.open(Tok::LParen, n)));
        (0..200_000).for_each(|_| assert_eq!(open.close(Tok::RBracket), None));
        assert!(begin.elapsed().as_secs() < 5, "{:?}", begin.elapsed());
    }
}
