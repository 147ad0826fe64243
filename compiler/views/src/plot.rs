//! Lines over sizes as SVG: axes with labels, marks at every point, a legend. It needs nothing from outside.

use crate::page::escape;
use std::fmt::Write as _;

/// One line.
#[derive(Clone, PartialEq, Debug)]
pub struct Series {
    /// In the legend.
    pub name: String,
    /// By x.
    pub points: Vec<(f64, f64)>,
    /// It is what others are compared with: dashed.
    pub peer: bool,
}

/// What is drawn.
#[derive(Clone, PartialEq, Debug)]
pub struct Plot {
    /// Above it.
    pub title: String,
    /// Below the horizontal axis.
    pub x: String,
    /// Beside the vertical one.
    pub y: String,
    /// The lines.
    pub series: Vec<Series>,
}

const WIDTH: f64 = 860.0;
const LEFT: f64 = 78.0;
const RIGHT: f64 = 24.0;
const TOP: f64 = 44.0;
const HEIGHT: f64 = 360.0;
/// Below the axis: its numbers and its label; a line of the legend.
const BELOW: f64 = 56.0;
const LEGEND: f64 = 20.0;
/// Numbers at the horizontal axis, at most.
const NUMBERS: usize = 14;

/// Colours that also those tell apart who see few of them (Okabe and Ito's, without yellow).
const COLOURS: [&str; 7] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#444444"];

const STYLE: &str = "text { font: 12px system-ui, sans-serif; fill: #1f2328; } .title { font-size: 15px; \
    font-weight: 600; } .grid { stroke: #d8dee4; stroke-width: 1; } .axis { stroke: #656d76; stroke-width: 1; } \
    .line { fill: none; stroke-width: 2; } .peer { stroke-dasharray: 6 4; }";

impl Plot {
    /// The picture.
    pub fn svg(&self) -> String {
        let scale = Scale::new(&self.series);
        let height = TOP + HEIGHT + BELOW + LEGEND * self.series.len() as f64 + 8.0;
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" \
             height=\"{height}\" role=\"img\" aria-label=\"{0}\">\n<style>{STYLE}</style>\n\
             <rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#ffffff\"/>\n\
             <text class=\"title\" x=\"{LEFT}\" y=\"24\">{0}</text>\n",
            escape(&self.title)
        );
        self.axes(&mut out, &scale);
        for (n, series) in self.series.iter().enumerate() {
            let colour = COLOURS[n % COLOURS.len()];
            line(&mut out, &scale, series, colour);
            let y = TOP + HEIGHT + BELOW + LEGEND * n as f64;
            let class = if series.peer { "line peer" } else { "line" };
            writeln!(
                out,
                "<path class=\"{class}\" stroke=\"{colour}\" d=\"M{LEFT} {y}h34\"/>{}<text x=\"{}\" y=\"{}\">{}</text>",
                mark(LEFT + 17.0, y, colour, series.peer),
                LEFT + 44.0,
                y + 4.0,
                escape(&series.name)
            )
            .ok();
        }
        out.push_str("</svg>\n");
        out
    }

    fn axes(&self, out: &mut String, scale: &Scale) {
        let (right, bottom) = (WIDTH - RIGHT, TOP + HEIGHT);
        for value in scale.ys() {
            let y = scale.y(value);
            writeln!(
                out,
                "<path class=\"grid\" d=\"M{LEFT} {y:.1}H{right}\"/><text x=\"{}\" y=\"{:.1}\" \
                 text-anchor=\"end\">{}</text>",
                LEFT - 8.0,
                y + 4.0,
                number(value)
            )
            .ok();
        }
        for value in scale.xs() {
            let x = scale.x(value);
            writeln!(
                out,
                "<path class=\"axis\" d=\"M{x:.1} {bottom}v5\"/><text x=\"{x:.1}\" y=\"{}\" \
                 text-anchor=\"middle\">{}</text>",
                bottom + 19.0,
                number(value)
            )
            .ok();
        }
        let how = if scale.logarithmic { " (logarithmic)" } else { "" };
        writeln!(
            out,
            "<path class=\"axis\" d=\"M{LEFT} {TOP}V{bottom}H{right}\" fill=\"none\"/>\n\
             <text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}{how}</text>\n\
             <text transform=\"translate(20 {}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
            (LEFT + right) / 2.0,
            bottom + 38.0,
            escape(&self.x),
            TOP + HEIGHT / 2.0,
            escape(&self.y)
        )
        .ok();
    }
}

fn line(out: &mut String, scale: &Scale, series: &Series, colour: &str) {
    let points: Vec<(f64, f64)> = series.points.iter().map(|(x, y)| (scale.x(*x), scale.y(*y))).collect();
    let path: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1} {y:.1}")).collect();
    let class = if series.peer { "line peer" } else { "line" };
    writeln!(out, "<path class=\"{class}\" stroke=\"{colour}\" d=\"M{}\"/>", path.join("L")).ok();
    points.iter().for_each(|(x, y)| out.push_str(&mark(*x, *y, colour, series.peer)));
    out.push('\n');
}

/// A point: round, of a peer square.
fn mark(x: f64, y: f64, colour: &str, peer: bool) -> String {
    match peer {
        true => format!("<rect x=\"{:.1}\" y=\"{:.1}\" width=\"7\" height=\"7\" fill=\"{colour}\"/>", x - 3.5, y - 3.5),
        false => format!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.5\" fill=\"{colour}\"/>"),
    }
}

/// A number without what does not count.
fn number(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// From numbers to places.
struct Scale {
    /// Different ones, sorted.
    all: Vec<f64>,
    logarithmic: bool,
    step: f64,
    top: f64,
}

impl Scale {
    fn new(series: &[Series]) -> Scale {
        let points = || series.iter().flat_map(|s| &s.points);
        let mut all: Vec<f64> = points().map(|(x, _)| *x).collect();
        all.sort_by(f64::total_cmp);
        all.dedup();
        let (first, last) = (all.first().copied().unwrap_or(0.0), all.last().copied().unwrap_or(1.0));
        let most = points().map(|(_, y)| *y).fold(0.0, f64::max);
        let most = if most > 0.0 { most } else { 1.0 };
        // 1, 2 or 5 times a power of ten, at most six times.
        let power = 10f64.powf((most / 6.0).log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|n| n * power).into_iter().find(|step| most / step <= 6.0);
        let step = step.unwrap_or(10.0 * power);
        Scale { logarithmic: first > 0.0 && last / first >= 8.0, all, step, top: (most / step).ceil() * step }
    }

    fn x(&self, value: f64) -> f64 {
        let of = |x: f64| if self.logarithmic { x.log2() } else { x };
        let (first, last) = (self.all.first().map_or(0.0, |x| of(*x)), self.all.last().map_or(1.0, |x| of(*x)));
        let share = if last > first { (of(value) - first) / (last - first) } else { 0.5 };
        // Room for marks beside the axis.
        LEFT + 14.0 + share * (WIDTH - RIGHT - LEFT - 28.0)
    }

    fn y(&self, value: f64) -> f64 {
        TOP + HEIGHT - value / self.top * HEIGHT
    }

    fn ys(&self) -> impl Iterator<Item = f64> + '_ {
        (0u32..=(self.top / self.step).round() as u32).map(|n| f64::from(n) * self.step)
    }

    /// Sizes that are there, not all where there are many.
    fn xs(&self) -> impl Iterator<Item = f64> + '_ {
        let each = self.all.len().div_ceil(NUMBERS).max(1);
        self.all.iter().copied().step_by(each)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plot(series: Vec<Series>) -> Plot {
        Plot { title: "gemm <f16>".into(), x: "M = N = K".into(), y: "TFLOP/s".into(), series }
    }

    fn series(name: &str, points: &[(f64, f64)], peer: bool) -> Series {
        Series { name: name.into(), points: points.to_vec(), peer }
    }

    #[test]
    fn axes_lines_and_a_legend() {
        let ours = series("BM=64 & BN=64", &[(256.0, 100.0), (512.0, 300.0), (4096.0, 590.0)], false);
        let svg = plot(vec![ours, series("peer", &[(256.0, 200.0), (4096.0, 600.0)], true)]).svg();
        for wanted in [
            "gemm &lt;f16&gt;",
            "M = N = K (logarithmic)",
            "TFLOP/s",
            "BM=64 &amp; BN=64",
            ">600<",
            ">4096<",
            "line peer",
        ] {
            assert!(svg.contains(wanted), "{wanted}: {svg}");
        }
        // Three points, and one in the legend.
        assert_eq!(svg.matches("<circle").count(), 4);
        assert!(!svg.replace("http://www.w3.org/2000/svg", "").contains("http"));
        // 600 is at the top, and 0 at the axis.
        let scale = Scale::new(&[series("", &[(1.0, 590.0)], false)]);
        assert_eq!((scale.y(600.0), scale.y(0.0), scale.step), (TOP, TOP + HEIGHT, 100.0));
    }

    #[test]
    fn sizes_lie_as_their_logarithms_where_they_span_much() {
        let scale = Scale::new(&[series("", &[(64.0, 1.0), (256.0, 1.0), (1024.0, 1.0)], false)]);
        let (a, b, c) = (scale.x(64.0), scale.x(256.0), scale.x(1024.0));
        assert!(scale.logarithmic && (b - a - (c - b)).abs() < 1e-9);
        let scale = Scale::new(&[series("", &[(100.0, 1.0), (200.0, 1.0), (400.0, 1.0)], false)]);
        assert!(!scale.logarithmic && scale.x(200.0) < (scale.x(100.0) + scale.x(400.0)) / 2.0);
        assert_eq!(Scale::new(&[series("", &[(5.0, 0.0)], false)]).ys().last(), Some(1.0));
    }
}
