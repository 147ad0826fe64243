//! Erroneous items.

use super::{Pieces, Recovery, is_open};
use crate::ast::*;
use crate::build::Node;
use crate::parse::parse;
use crate::situation::{self, Repair, View};
use crate::terminal::{Lexeme, Terminal};
use crate::token::Tok;

impl Recovery<'_, '_, '_> {
    /// Parses the item that begins at `i`; returns where the next one begins.
    pub(super) fn next_item(&mut self, i: usize, items: &mut Vec<Item>) -> usize {
        let mut word = i;
        while word < self.lexemes.len() && self.lexemes[word].is(Tok::Hash) {
            word = if self.lexemes.get(word + 1).is_some_and(is_open) { self.hop(word + 1) } else { word + 1 };
        }
        let Some(first) = self.lexemes.get(word).copied() else {
            self.report(situation::attribute_of_nothing(self.span(i, word)));
            return word;
        };
        if let Some(tok) = first.tok().filter(|t| starts_item(*t)) {
            let end = self.item_end(word, tok);
            let item = self.item(i, word, end, tok);
            items.push(item);
            return end;
        }
        let next = self.lexemes.get(word + 1);
        let misspelt = situation::misspelt_item(self.builder, &first, next);
        if let Some((tok, diagnostic)) = misspelt {
            self.report(diagnostic);
            let end = self.item_end(word, tok);
            let item = self.item(i, word, end, tok);
            items.push(item);
            return end;
        }
        // No item at all: one report for everything up to the next one.
        let mut end = self.hop(word);
        while end < self.lexemes.len() {
            let item = self.lexemes[end].tok().is_some_and(|t| starts_item(t) || t == Tok::Hash);
            if item && self.first_on_line(end) {
                break;
            }
            end = self.hop(end);
        }
        let span = self.span(word, end);
        if !self.lexemes[word..end].iter().any(|l| l.touched) {
            let diagnostic = situation::no_item(self.builder, &self.lexemes[word..end]);
            self.report(diagnostic);
        }
        items.push(Item { docs: String::new(), attrs: Vec::new(), kind: ItemKind::Error, span });
        end
    }

    /// Where the item whose word `tok` stands at `word` ends.
    pub(super) fn item_end(&self, word: usize, tok: Tok) -> usize {
        let has_body = !matches!(tok, Tok::Use | Tok::Const);
        let mut i = word + 1;
        while i < self.lexemes.len() {
            let l = &self.lexemes[i];
            match l.tok() {
                Some(Tok::Semi) => return i + 1,
                Some(Tok::If) if has_body => i = self.if_end(i),
                Some(Tok::LBrace) if has_body => return self.hop(i),
                Some(Tok::Fn) if matches!(self.lexemes[i - 1].tok(), Some(Tok::Arrow)) => i += 1,
                Some(t) if (starts_item(t) || t == Tok::Hash) && self.first_on_line(i) => {
                    // A static parameter may begin a line, but not at the margin.
                    let margin = self.builder.source()[..l.start as usize].ends_with('\n');
                    if margin || !matches!(t, Tok::Const | Tok::Fn) {
                        return i;
                    }
                    i += 1;
                }
                // What follows an item without `;` is another item, perhaps misspelt.
                Some(Tok::Name) if !has_body && self.first_on_line(i) && self.complete(i - 1) => return i,
                _ => i = self.hop(i),
            }
        }
        i
    }

    /// Where the `if` at `i` ends, with every `else`.
    fn if_end(&self, mut i: usize) -> usize {
        let is = |i: usize, tok| self.lexemes.get(i).is_some_and(|l: &Lexeme| l.is(tok));
        while i < self.lexemes.len() {
            if !is(i, Tok::LBrace) {
                i = self.hop(i);
                continue;
            }
            i = self.hop(i);
            if !is(i, Tok::Else) {
                break;
            }
        }
        i
    }

    /// The item with attributes from `from`, its word at `word`, which is or is meant to be `tok`.
    pub(super) fn item(&mut self, from: usize, word: usize, end: usize, tok: Tok) -> Item {
        let lexemes = self.lexemes;
        if lexemes[word].is(tok)
            && let Ok(Node::Item(item)) = parse(self.builder, Terminal::StartItem, &lexemes[from..end])
        {
            return *item;
        }
        let mut flat: Vec<Lexeme> = lexemes[from..word].to_vec();
        // What is left of the item when its clauses are hopeless: word, name, parameters, body.
        let mut core = vec![Lexeme { term: Terminal::Tok(tok), ..lexemes[word] }];
        flat.extend(&core);
        let launches = matches!(tok, Tok::Kernel | Tok::Program | Tok::Fn);
        let distrusted = self.touched(from, end) || (launches && self.malformed_header(word, end, tok));
        let (mut statics, mut params, mut body) = (!launches, !launches, false);
        let mut i = word + 1;
        while i < end {
            let l = lexemes[i];
            let next = self.hop(i);
            let at = flat.len();
            self.quiet = distrusted;
            match l.tok() {
                Some(Tok::StaticOpen) if !statics => {
                    statics = true;
                    self.group(i, Pieces::StaticParams, &mut flat);
                    core.extend(&flat[at..]);
                }
                Some(Tok::LParen) if !params => {
                    (statics, params) = (true, true);
                    self.group(i, Pieces::Params, &mut flat);
                    core.extend(&flat[at..]);
                }
                // In a clause, without the parentheses that it needs there.
                Some(Tok::If) if launches => {
                    let end = self.if_end(i).min(end);
                    let part = self.collapse(i, end);
                    flat.extend(part);
                    i = end;
                    continue;
                }
                Some(Tok::LBrace) if launches => {
                    self.quiet = false;
                    body = true;
                    let block = self.block(i);
                    flat.push(block);
                    core.push(block);
                }
                Some(Tok::LBrace) => {
                    flat.push(l);
                    flat.extend(self.collapse(i + 1, next - 1));
                    flat.push(lexemes[next - 1]);
                }
                _ if is_open(&l) => self.group(i, self.pieces_of(i), &mut flat),
                _ => {
                    flat.push(l);
                    if i == word + 1 {
                        core.push(l);
                    }
                }
            }
            i = next;
        }
        self.quiet = false;
        let docs = self.builder.docs_at(lexemes[from].start);
        if distrusted {
            flat.clear();
        }
        let node = if distrusted { None } else { self.part(Terminal::StartItem, flat) };
        self.quiet = false;
        match node {
            Some(Node::Item(item)) => Item { docs, ..*item },
            _ => {
                let salvaged =
                    if launches && body { parse(self.builder, Terminal::StartItem, &core).ok() } else { None };
                let kind = match salvaged {
                    Some(Node::Item(item)) => item.kind,
                    _ => ItemKind::Error,
                };
                Item { docs, attrs: Vec::new(), kind, span: self.span(from, end) }
            }
        }
    }

    /// Reports a mistake in the frame of a header, which makes guesses about what its brackets hold worthless.
    pub(super) fn malformed_header(&mut self, word: usize, end: usize, tok: Tok) -> bool {
        let mut frame = vec![Lexeme { term: Terminal::Tok(tok), ..self.lexemes[word] }];
        let mut i = word + 1;
        while i < end && !matches!(self.lexemes[i].tok(), Some(Tok::Where | Tok::Ensures | Tok::Arrow | Tok::LBrace)) {
            let next = self.hop(i);
            frame.push(self.lexemes[i]);
            if next > i + 1 {
                frame.push(self.lexemes[next - 1]);
            }
            i = next;
        }
        let params = frame.iter().position(|l| l.is(Tok::LParen));
        let Err(stop) = self.trial(Terminal::StartItem, &frame) else { return false };
        // In front of the parameters; what follows them is looked at with the whole header.
        if params.is_some_and(|p| stop.at > p) || (params.is_none() && stop.at == frame.len()) {
            return false;
        }
        let view = View {
            builder: &*self.builder,
            start: Terminal::StartItem,
            lexemes: &frame,
            at: stop.at,
            wants: stop.wants,
        };
        let found = situation::find(&view);
        let repaired = matches!(found.repair, Repair::Replace(..));
        if repaired {
            return false; // it will be reported, and repaired, with the whole header
        }
        self.report(found.diagnostic);
        true
    }
}

fn starts_item(tok: Tok) -> bool {
    matches!(tok, Tok::Use | Tok::Const | Tok::Atom | Tok::Fn | Tok::Kernel | Tok::Program)
}
