//! Grids as SVG: heads in grey, cells shaded, thicker lines where an inner mode begins again.

use super::table::picks;
use super::{Grid, MAX_SIDE, Panels, Picture, Shade};
use std::fmt::Write as _;

const FONT: &str = "ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace";
/// Width of a character of this font, in parts of 100 of its size.
const ADVANCE: usize = 61;
const CELL_FONT: usize = 13;
const SMALL_FONT: usize = 11;
const MARGIN: usize = 16;
const LINE: usize = 20;
/// Between the parts of an MMA.
const GAP: usize = 10;

/// Blue from light to dark; black text keeps a contrast of more than 4.5 on each.
const STEPS: [&str; 8] = ["#f7fbff", "#e3eef9", "#cfe1f2", "#b5d4e9", "#93c4df", "#6baed6", "#5199cc", "#4a8fc6"];

/// Hues of Okabe and Ito, which colour-blind eyes tell apart. The last is a grey.
const HUES: [[u32; 3]; 8] = [
    [0xe6, 0x9f, 0x00],
    [0x56, 0xb4, 0xe9],
    [0x00, 0x9e, 0x73],
    [0xf0, 0xe4, 0x42],
    [0xcc, 0x79, 0xa7],
    [0x00, 0x72, 0xb2],
    [0xd5, 0x5e, 0x00],
    [0x99, 0x99, 0x99],
];

/// How much white is in the hue of threads 0..8, 8..16, 16..24, 24..32, in percent; then it begins again.
const TINTS: [u32; 4] = [45, 68, 55, 80];

pub(super) fn draw(picture: &Picture) -> String {
    let mut canvas = Canvas { body: String::new(), width: 0, height: MARGIN };
    canvas.line(&picture.title, "t");
    for fact in &picture.facts {
        canvas.line(fact, "f");
    }
    let top = canvas.height + 8;
    match &picture.panels {
        Panels::One(grid) => {
            let panel = Panel::new(grid.as_ref(), None, None);
            panel.draw(&mut canvas, MARGIN, top);
        }
        Panels::Mma(parts) => {
            let [a, b, c] = parts.as_ref();
            // A's rows are C's rows and B's columns are C's columns, so all cells have one size.
            let sizes = [a, b, c].map(|grid| cell_size(grid));
            let size = sizes.into_iter().reduce(|x, y| (x.0.max(y.0), x.1.max(y.1)));
            let (a, mut b, mut c) =
                (Panel::new(a, size, Some("A")), Panel::new(b, size, Some("B")), Panel::new(c, size, Some("C")));
            let head_width = b.head_width.max(c.head_width);
            (b.head_width, c.head_width) = (head_width, head_width);
            let (left, below) = (MARGIN + a.width() + GAP, top + b.height() + GAP);
            b.draw(&mut canvas, left, top);
            a.draw(&mut canvas, MARGIN, below);
            c.draw(&mut canvas, left, below);
        }
    }
    canvas.finish(&picture.title)
}

struct Canvas {
    body: String,
    width: usize,
    height: usize,
}

impl Canvas {
    /// A line of text under what is there.
    fn line(&mut self, text: &str, class: &str) {
        let (x, y) = (MARGIN, self.height + LINE - 6);
        let _ = writeln!(self.body, "<text class=\"{class}\" x=\"{x}\" y=\"{y}\">{}</text>", escape(text));
        self.reach(x + text_width(text, if class == "t" { 14 } else { 12 }), self.height + LINE);
    }

    fn reach(&mut self, x: usize, y: usize) {
        self.width = self.width.max(x);
        self.height = self.height.max(y);
    }

    fn finish(self, title: &str) -> String {
        let (w, h) = (self.width + MARGIN, self.height + MARGIN);
        let title = escape(title);
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{w}\" height=\"{h}\" viewBox=\"0 0 {w} {h}\" \
             role=\"img\">\n\
             <title>{title}</title>\n\
             <style>text{{font-family:{FONT};fill:#111}}\
             .t{{font-size:14px;font-weight:bold}}.f{{font-size:12px;fill:#444}}\
             .c{{font-size:{CELL_FONT}px;text-anchor:middle}}.s{{font-size:{SMALL_FONT}px;text-anchor:middle}}\
             .h{{font-size:{SMALL_FONT}px;fill:#666;text-anchor:middle}}\
             .r{{font-size:{SMALL_FONT}px;fill:#666;text-anchor:end}}\
             .p{{font-size:14px;font-weight:bold;text-anchor:middle}}</style>\n\
             <rect width=\"{w}\" height=\"{h}\" fill=\"#fff\"/>\n{}</svg>\n",
            self.body
        )
    }
}

/// Width and height that fit every cell that is drawn, and its head.
fn cell_size(grid: &dyn Grid) -> (usize, usize) {
    let (rows, cols) = grid.sides();
    let (rows, cols) = (picks(rows, MAX_SIDE), picks(cols, MAX_SIDE));
    let mut width = 26;
    let mut height = 26;
    for &c in cols.iter().flatten() {
        width = width.max(text_width(&grid.col_head(c), SMALL_FONT) + 8);
        for &r in rows.iter().flatten() {
            let cell = grid.cell(r, c);
            match &cell.second {
                None => width = width.max(text_width(&cell.text, CELL_FONT) + 10),
                Some(second) => {
                    height = 34;
                    width = width.max(34);
                    width = width.max(text_width(&cell.text, SMALL_FONT).max(text_width(second, SMALL_FONT)) + 8);
                }
            }
        }
    }
    (width, height)
}

struct Panel<'g> {
    grid: &'g dyn Grid,
    name: Option<&'static str>,
    rows: Vec<Option<usize>>,
    cols: Vec<Option<usize>>,
    cell: (usize, usize),
    head_width: usize,
}

impl<'g> Panel<'g> {
    fn new(grid: &'g dyn Grid, size: Option<(usize, usize)>, name: Option<&'static str>) -> Panel<'g> {
        let (rows, cols) = grid.sides();
        let (rows, cols) = (picks(rows, MAX_SIDE), picks(cols, MAX_SIDE));
        let cell = size.unwrap_or_else(|| cell_size(grid));
        let heads = rows.iter().flatten().map(|&r| text_width(&grid.row_head(r), SMALL_FONT));
        let head_width = heads.max().unwrap_or(0) + 10;
        Panel { grid, name, rows, cols, cell, head_width }
    }

    fn head_height(&self) -> usize {
        if self.name.is_some() { 2 * LINE } else { LINE }
    }

    fn width(&self) -> usize {
        self.head_width + self.cols.len() * self.cell.0
    }

    fn height(&self) -> usize {
        self.head_height() + self.rows.len() * self.cell.1
    }

    /// Draws with the upper left corner of the heads at (x, y).
    fn draw(&self, canvas: &mut Canvas, x: usize, y: usize) {
        let (w, h) = self.cell;
        let left = x + self.head_width;
        let top = y + self.head_height();
        let (cols, rows) = (self.cols.len(), self.rows.len());
        let (right, bottom) = (left + cols * w, top + rows * h);
        let out = &mut canvas.body;
        if rows == 0 || cols == 0 {
            let _ = writeln!(out, "<text class=\"f\" x=\"{x}\" y=\"{}\">empty</text>", top + LINE);
            canvas.reach(x + 80, top + LINE);
            return;
        }
        if let Some(name) = self.name {
            let (down, across) = self.grid.axes();
            let long = format!("{name} ({down} x {across})");
            let text = if text_width(&long, 14) <= right - left { &long } else { name };
            let _ = writeln!(out, "<text class=\"p\" x=\"{}\" y=\"{}\">{text}</text>", (left + right) / 2, y + 14);
        }
        for (k, c) in self.cols.iter().enumerate() {
            let head = c.map_or("…".into(), |c| self.grid.col_head(c));
            let _ = writeln!(out, "<text class=\"h\" x=\"{}\" y=\"{}\">{head}</text>", left + k * w + w / 2, top - 6);
        }
        for (k, r) in self.rows.iter().enumerate() {
            let head = r.map_or("…".into(), |r| self.grid.row_head(r));
            let y = top + k * h + h / 2 + 4;
            let _ = writeln!(out, "<text class=\"r\" x=\"{}\" y=\"{y}\">{head}</text>", left - 6);
        }
        for (i, r) in self.rows.iter().enumerate() {
            for (j, c) in self.cols.iter().enumerate() {
                let (x, y) = (left + j * w, top + i * h);
                let (Some(r), Some(c)) = (r, c) else {
                    let _ = writeln!(out, "<text class=\"h\" x=\"{}\" y=\"{}\">…</text>", x + w / 2, y + h / 2 + 4);
                    continue;
                };
                let cell = self.grid.cell(*r, *c);
                let fill = fill(cell.shade);
                let _ = writeln!(out, "<rect x=\"{x}\" y=\"{y}\" width=\"{w}\" height=\"{h}\" fill=\"{fill}\"/>");
                let middle = x + w / 2;
                match &cell.second {
                    None => {
                        let y = y + h / 2 + 5;
                        let _ =
                            writeln!(out, "<text class=\"c\" x=\"{middle}\" y=\"{y}\">{}</text>", escape(&cell.text));
                    }
                    Some(second) if !cell.text.is_empty() => {
                        let (first, next) = (y + h / 2 - 3, y + h / 2 + 10);
                        let _ = writeln!(
                            out,
                            "<text class=\"s\" x=\"{middle}\" y=\"{first}\">{}</text>",
                            escape(&cell.text)
                        );
                        let _ =
                            writeln!(out, "<text class=\"s\" x=\"{middle}\" y=\"{next}\">{}</text>", escape(second));
                    }
                    Some(_) => {}
                }
            }
        }
        // Lines lie upon the cells: thin everywhere, thick around and where an inner mode begins again.
        let (row_break, col_break) = self.grid.breaks();
        let thick = |at: Option<&Option<usize>>, every: usize| match at {
            Some(Some(k)) => every > 1 && k % every == 0,
            _ => false,
        };
        let (mut thin_path, mut thick_path) = (String::new(), String::new());
        for k in 1..cols {
            let path = if thick(self.cols.get(k), col_break) { &mut thick_path } else { &mut thin_path };
            let _ = write!(path, "M{} {top}V{bottom}", left + k * w);
        }
        for k in 1..rows {
            let path = if thick(self.rows.get(k), row_break) { &mut thick_path } else { &mut thin_path };
            let _ = write!(path, "M{left} {}H{right}", top + k * h);
        }
        let _ = write!(thick_path, "M{left} {top}H{right}V{bottom}H{left}Z");
        let _ = writeln!(out, "<path d=\"{thin_path}\" stroke=\"#8a8a8a\" stroke-width=\".5\" fill=\"none\"/>");
        let _ = writeln!(out, "<path d=\"{thick_path}\" stroke=\"#222\" stroke-width=\"1.5\" fill=\"none\"/>");
        canvas.reach(right, bottom);
        let (all_rows, all_cols) = self.grid.sides();
        if all_rows > rows || all_cols > cols {
            let text = format!("{all_rows} x {all_cols}; the first {} and the last are drawn", MAX_SIDE - 2);
            let _ = writeln!(canvas.body, "<text class=\"f\" x=\"{x}\" y=\"{}\">{text}</text>", bottom + LINE);
            canvas.reach(x + text_width(&text, 12), bottom + LINE);
        }
    }
}

pub(super) fn fill(shade: Shade) -> String {
    match shade {
        Shade::Empty => "#fff".into(),
        Shade::Step(k) => STEPS[usize::from(k) % 8].into(),
        Shade::Thread(t) => {
            let hue = HUES[t as usize % 8];
            let white = TINTS[t as usize / 8 % 4];
            let [r, g, b] = hue.map(|c| (c * (100 - white) + 255 * white) / 100);
            format!("#{r:02x}{g:02x}{b:02x}")
        }
    }
}

fn text_width(text: &str, size: usize) -> usize {
    (text.chars().count() * size * ADVANCE).div_ceil(100)
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
