// A stretch of time that canvases show from `view.from` to `view.to`, and how it is moved and zoomed: by dragging, by
// the wheel with Ctrl, by keys, by the buttons with `data-zoom`, and by an address that ends with `#t=FROM,TO`.
// `draw` paints all canvases; `say(canvas, event)` is the text under the pointer; `pick(canvas, event)` a click.
const timeAxis = ({ section, canvases, end, left, least, draw, say, pick }) => {
  const RIGHT = 6;
  const view = { from: 0, to: end };
  let wanted = false;
  const soon = () => {
    if (wanted) return;
    wanted = true;
    requestAnimationFrame(() => {
      wanted = false;
      draw();
    });
  };
  const show = (from, to) => {
    const span = Math.min(end, Math.max(least, to - from));
    view.from = Math.max(0, Math.min(end - span, from));
    view.to = view.from + span;
    soon();
  };
  const zoom = (factor, at = (view.from + view.to) / 2) => {
    if (factor === 0) return show(0, end);
    const span = Math.min(end, Math.max(least, (view.to - view.from) * factor));
    const from = at - span * (at - view.from) / (view.to - view.from);
    show(from, from + span);
  };
  const move = (time) => show(view.from + time, view.to + time);
  const per = (canvas) => (view.to - view.from) / Math.max(canvas.clientWidth - left - RIGHT, 1);
  const under = (canvas, e) => view.from + (e.clientX - canvas.getBoundingClientRect().left - left) * per(canvas);

  // Where a time is drawn on a canvas of this width.
  const scale = (width) => (time) => left + (time - view.from) / (view.to - view.from) * (width - left - RIGHT);

  // Sizes a canvas for the screen's pixels and clears it.
  const prepare = (canvas, h) => {
    const w = canvas.parentElement.clientWidth, dots = devicePixelRatio || 1;
    canvas.width = w * dots;
    canvas.height = h * dots;
    canvas.style.height = h + "px";
    const g = canvas.getContext("2d");
    g.scale(dots, dots);
    g.clearRect(0, 0, w, h);
    g.font = "11px ui-monospace, monospace";
    g.textBaseline = "middle";
    return { g, w, h, x: scale(w) };
  };

  // Lines and numbers of the axis.
  const ticks = ({ g, w, h, x }, top, edge, ink) => {
    const span = view.to - view.from;
    const power = 10 ** Math.floor(Math.log10(span / 9 + 1));
    const step = Math.max(1, [1, 2, 5, 10].map((n) => n * power).find((n) => span / n <= 9) ?? 10 * power);
    g.strokeStyle = edge;
    for (let t = Math.ceil(view.from / step) * step; t <= view.to; t += step) {
      const at = Math.round(x(t)) + .5;
      g.beginPath();
      g.moveTo(at, top - 4);
      g.lineTo(at, h);
      g.stroke();
      g.fillStyle = ink;
      g.textAlign = at > w - 40 ? "right" : "center";
      g.fillText(t.toLocaleString("en"), Math.min(at, w - 4), top / 2);
    }
  };

  for (const canvas of canvases) {
    let grip = null, moved = 0;
    canvas.addEventListener("pointerdown", (e) => {
      [grip, moved] = [e.clientX, 0];
      canvas.setPointerCapture(e.pointerId);
    });
    canvas.addEventListener("pointerup", (e) => {
      grip = null;
      if (moved < 4) pick?.(canvas, e);
    });
    canvas.addEventListener("pointermove", (e) => {
      if (grip !== null) {
        moved += Math.abs(e.clientX - grip);
        move((grip - e.clientX) * per(canvas));
        grip = e.clientX;
      }
      const text = say(canvas, e);
      text ? tip.show(text, e) : tip.hide();
    });
    canvas.addEventListener("pointerleave", tip.hide);
    canvas.addEventListener("dblclick", (e) => zoom(.4, under(canvas, e)));
    canvas.addEventListener("wheel", (e) => {
      if (!e.ctrlKey) return;
      e.preventDefault();
      zoom(e.deltaY > 0 ? 1.3 : 1 / 1.3, under(canvas, e));
    }, { passive: false });
    canvas.addEventListener("keydown", (e) => {
      const span = view.to - view.from;
      const keys = {
        "+": () => zoom(.5), "=": () => zoom(.5), "-": () => zoom(2), "0": () => zoom(0),
        ArrowLeft: () => move(-span / 8), ArrowRight: () => move(span / 8),
      };
      if (keys[e.key]) {
        e.preventDefault();
        keys[e.key]();
      }
    });
  }
  section.querySelectorAll("[data-zoom]").forEach((b) => b.addEventListener("click", () => zoom(+b.dataset.zoom)));
  section.querySelectorAll("input.at").forEach((field) => field.addEventListener("change", () => {
    const at = +field.value, span = Math.min(end, Math.max(least, view.to - view.from, 1));
    show(at - span / 8, at + span * 7 / 8);
  }));
  const linked = () => {
    const found = /#t=(\d+),(\d+)/.exec(location.hash);
    if (found) show(+found[1], +found[2]);
  };
  addEventListener("hashchange", linked);
  addEventListener("resize", soon);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", soon);
  linked();
  soon();
  return { view, show, zoom, soon, under, scale, prepare, ticks };
};
