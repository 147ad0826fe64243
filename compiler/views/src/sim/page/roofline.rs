//! The roofline: operations of lanes a nanosecond against operations for a byte, both axes logarithmic.

use super::bytes;
use crate::page::escape;
use ptoc_pim_sim::machine::report::Report;
use std::fmt::Write as _;

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 330.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 16.0;
const TOP: f64 = 14.0;
const BOTTOM: f64 = 40.0;

/// A run, or a part of it: operations for a byte, operations a nanosecond.
struct Point {
    name: String,
    x: f64,
    y: f64,
}

/// Powers of two of both axes, with room around what is shown.
struct Axes {
    x: [f64; 2],
    y: [f64; 2],
}

impl Axes {
    fn x(&self, x: f64) -> f64 {
        LEFT + (x.log2() - self.x[0]) / (self.x[1] - self.x[0]) * (WIDTH - LEFT - RIGHT)
    }

    fn y(&self, y: f64) -> f64 {
        HEIGHT - BOTTOM - (y.log2() - self.y[0]) / (self.y[1] - self.y[0]) * (HEIGHT - TOP - BOTTOM)
    }
}

/// Points of a run. Without operations there are none.
fn points(r: &Report) -> Vec<Point> {
    let ops = r.unit_work[1] as f64;
    if ops == 0.0 || r.ns() == 0.0 {
        return Vec::new();
    }
    let mut out = Vec::new();
    let mut point = |name: &str, bytes: u64, ns: f64| {
        if bytes > 0 && ns > 0.0 {
            let (x, y) = (ops / bytes as f64, ops / ns);
            out.push(Point { name: format!("{name}: {x:.3} operations a byte, {y:.3} a ns"), x, y });
        }
    };
    let worked: u64 = ["exec", "driver execute"].iter().filter_map(|k| r.kinds.get(k)).map(|k| k.ticks).sum();
    let ns = |ticks: u64| ticks as f64 * r.tick_ps / 1000.0;
    point("the units' bytes, while units work", r.bytes.unit_moved, ns(worked));
    point("the units' bytes, all of the run", r.bytes.unit_moved, r.ns());
    point("the host path's bytes, all of the run", r.bytes.host_moved, r.ns());
    if let Some(t) = &r.baseline.streaming {
        point("the host, streaming, as if its operations took no time", t.moved, ns(t.ticks));
    }
    if let Some(t) = &r.baseline.gathering {
        point("the host, gathering, as if its operations took no time", t.moved, ns(t.ticks));
    }
    out
}

/// What was used of each bandwidth, and the picture.
pub(super) fn section(out: &mut String, r: &Report) {
    let p = &r.peaks;
    let rate = |what: f64| what / r.ns().max(f64::MIN_POSITIVE);
    let (units, host) = (rate(r.bytes.unit_moved as f64), rate(r.bytes.host_moved as f64));
    out.push_str("<h2>Bandwidth and operations</h2>\n<p class=\"note\">");
    let share = |part: f64, whole: f64| super::percent(part, whole);
    write!(
        out,
        "Over all of the run the host path moved {host:.2} of {:.2} bytes a ns ({:.1} %)",
        p.host_bytes,
        share(host, p.host_bytes)
    )
    .ok();
    if p.unit_bytes > 0.0 {
        let ops = rate(r.unit_work[1] as f64);
        write!(
            out,
            ", units and their banks {units:.2} of {:.2} ({:.1} %; {}); units made {ops:.2} of {:.2} operations a ns \
            ({:.1} %)",
            p.unit_bytes,
            share(units, p.unit_bytes),
            bytes(r.bytes.unit_moved),
            p.operations,
            share(ops, p.operations)
        )
        .ok();
    }
    out.push_str(".</p>\n");
    let points = points(r);
    match points.is_empty() {
        true => out.push_str("<p class=\"note\">Units made no arithmetic, so there is no roofline.</p>\n"),
        false => picture(out, r, &points),
    }
}

fn picture(out: &mut String, r: &Report, points: &[Point]) {
    let p = &r.peaks;
    let ridges = [p.operations / p.unit_bytes, p.operations / p.host_bytes];
    let span = |values: &mut dyn Iterator<Item = f64>| {
        let (mut low, mut high) = (f64::MAX, f64::MIN);
        values.for_each(|v| (low, high) = (low.min(v.log2()), high.max(v.log2())));
        [low.floor() - 1.0, high.ceil() + 1.0]
    };
    let axes = Axes {
        x: span(&mut points.iter().map(|q| q.x).chain(ridges)),
        y: span(&mut points.iter().map(|q| q.y).chain([p.operations])),
    };
    // Roofs are named apart: on their lines names would cross them, and each other.
    out.push_str(
        "<p class=\"key\">roofs: <span><i class=\"c-compute\"></i>units and their banks</span> \
         <span><i class=\"c-column\"></i>host path</span></p>\n",
    );
    writeln!(
        out,
        "<div class=\"scroll\"><svg class=\"roof\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" width=\"{WIDTH}\" \
         height=\"{HEIGHT}\" role=\"img\" aria-label=\"Roofline; the list below has its points\">"
    )
    .ok();
    grid(out, &axes);
    for (class, bandwidth) in [("c-compute", p.unit_bytes), ("c-column", p.host_bytes)] {
        roof(out, &axes, class, bandwidth, p.operations);
    }
    let places: Vec<[f64; 2]> = points.iter().map(|q| [axes.x(q.x), axes.y(q.y)]).collect();
    for ((n, q), ([x, y], [at, up])) in points.iter().enumerate().zip(places.iter().zip(numbers(&places))) {
        writeln!(
            out,
            "<g><title>{}</title><path class=\"lead\" d=\"M{x:.1} {y:.1}L{at:.1} {up:.1}\"/><circle cx=\"{x:.1}\" \
             cy=\"{y:.1}\" r=\"3.5\"/><circle cx=\"{at:.1}\" cy=\"{up:.1}\" r=\"8\"/><text class=\"number\" \
             x=\"{at:.1}\" y=\"{:.1}\">{}</text></g>",
            escape(&q.name),
            up + 3.5,
            n + 1
        )
        .ok();
    }
    out.push_str("</svg></div>\n<ol class=\"points\">\n");
    for q in points {
        writeln!(out, "<li>{}</li>", escape(&q.name)).ok();
    }
    out.push_str("</ol>\n");
}

/// Where the numbers of points stand: beside them, none on another one or on a point.
fn numbers(points: &[[f64; 2]]) -> Vec<[f64; 2]> {
    const APART: f64 = 18.0;
    let mut out: Vec<[f64; 2]> = Vec::new();
    for [x, y] in points {
        let free = |p: &[f64; 2], out: &[[f64; 2]]| {
            let far = |q: &[f64; 2], by: f64| (p[0] - q[0]).hypot(p[1] - q[1]) >= by;
            out.iter().all(|q| far(q, APART)) && points.iter().all(|q| far(q, APART - 4.0))
        };
        let around = (1..6).flat_map(|ring| (0..8).map(move |n| (f64::from(ring) * APART, f64::from(n) * 0.785)));
        let mut places = around.map(|(far, turn)| [x + far * turn.cos(), y - far * turn.sin()]);
        let found = places.find(|p| free(p, &out)).unwrap_or([*x, *y]);
        out.push(found);
    }
    out
}

fn grid(out: &mut String, axes: &Axes) {
    let (bottom, right) = (HEIGHT - BOTTOM, WIDTH - RIGHT);
    let every = |[low, high]: [f64; 2]| {
        let step = ((high - low) / 8.0).ceil().max(1.0) as i32;
        (low as i32..=high as i32).filter(move |n| n.rem_euclid(step) == 0)
    };
    for n in every(axes.x) {
        let x = axes.x(f64::from(n).exp2());
        writeln!(out, "<path class=\"grid\" d=\"M{x:.1} {TOP}V{bottom}\"/>").ok();
        writeln!(out, "<text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>", bottom + 14.0, power(n)).ok();
    }
    for n in every(axes.y) {
        let y = axes.y(f64::from(n).exp2());
        writeln!(out, "<path class=\"grid\" d=\"M{LEFT} {y:.1}H{right}\"/>").ok();
        writeln!(out, "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>", LEFT - 6.0, y + 3.5, power(n))
            .ok();
    }
    writeln!(
        out,
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">operations for a byte</text>",
        (LEFT + right) / 2.0,
        HEIGHT - 8.0
    )
    .ok();
    writeln!(
        out,
        "<text transform=\"translate(14 {:.1}) rotate(-90)\" text-anchor=\"middle\">operations a ns</text>",
        (TOP + bottom) / 2.0
    )
    .ok();
}

/// 2 to a power, short.
fn power(n: i32) -> String {
    match n {
        0..=13 => format!("{}", 1 << n),
        -3..0 => format!("{}", f64::from(n).exp2()),
        _ => format!("2^{n}"),
    }
}

/// From the left edge up to the ridge, and along the top.
fn roof(out: &mut String, axes: &Axes, class: &str, bandwidth: f64, operations: f64) {
    let ridge = operations / bandwidth;
    let low = (axes.y[0].exp2() / bandwidth).max(axes.x[0].exp2());
    let (x0, y0) = (axes.x(low), axes.y(low * bandwidth));
    let (x1, y1) = (axes.x(ridge), axes.y(operations));
    writeln!(out, "<path class=\"roof {class}\" d=\"M{x0:.1} {y0:.1}L{x1:.1} {y1:.1}H{:.1}\"/>", WIDTH - RIGHT).ok();
}
