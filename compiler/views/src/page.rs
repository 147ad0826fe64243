//! What the pages have in common: the frame, colours and type, listings, the text under the pointer. A page is one file
//! that needs nothing from outside.

use std::fmt::Write as _;

#[cfg(feature = "pim")]
pub(crate) mod packed;

const STYLE: &str = include_str!("page/base.css");
const TIP: &str = include_str!("page/tip.js");
/// Script of pages that show a stretch of time: `timeAxis` moves and zooms it.
pub(crate) const TIME_AXIS: &str = include_str!("page/time.js");

/// A page and its parts, which are HTML but for the title.
#[derive(Debug, Default)]
pub struct Page {
    /// Of the window.
    pub title: String,
    /// Beyond the common style.
    pub style: String,
    /// In the header.
    pub header: String,
    /// The left column.
    pub main: String,
    /// The right one, the source; there may be none.
    pub source: String,
    /// After the script of the text under the pointer.
    pub script: String,
}

impl Page {
    /// The file.
    pub fn html(&self) -> String {
        let source = match self.source.as_str() {
            "" => String::new(),
            source => format!("<aside aria-label=\"source\">\n{source}</aside>\n"),
        };
        format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n<title>{}</title>\n\
             <style>\n{}{STYLE}</style>\n</head>\n<body>\n<header>{}</header>\n<div class=\"columns\">\n\
             <main>\n{}</main>\n{source}</div>\n<div id=\"tip\" role=\"tooltip\" hidden></div>\n\
             <script>\n{TIP}{}</script>\n</body>\n</html>\n",
            escape(&self.title),
            self.style,
            self.header,
            self.main,
            self.script
        )
    }
}

/// The lines of a text with what `badge` says of each, which is HTML. Line `n` has the id `{prefix}{n}`.
pub fn listing(text: &str, prefix: &str, badge: impl Fn(u32) -> String) -> String {
    let mut out = String::from("<ol>\n");
    for (n, line) in (1u32..).zip(text.lines()) {
        writeln!(out, "<li id=\"{prefix}{n}\"><code>{}</code>{}</li>", escape(line), badge(n)).ok();
    }
    out.push_str("</ol>\n");
    out
}

/// `text` between tags or in an attribute.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            // What XML cannot hold.
            c if c.is_control() && !matches!(c, '\n' | '\t') => out.push(' '),
            c => out.push(c),
        }
    }
    out
}
