// Draws the timeline and the row map of each run from its data: bins of time, and the first commands one by one. Both show the
// same stretch of time.
(() => {
  const LEFT = 88, AXIS = 22, STEP = 16;
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
  // Fields of a bin and of a command.
  const [BIN, ACT, RD, WR, HIT, MISS, CONFLICT, COMPUTE, REFRESH, PLACE, OTHERS] = [...Array(11).keys()];
  const [TICK, COMMAND, BANK, BANKS, ROW, COL, UNIT, LINE] = [...Array(8).keys()];

  function run(section) {
    const script = section.querySelector("script.data");
    if (!script) return;
    const data = JSON.parse(script.textContent);
    const { banks, width, lengths, places, steps, kept } = data;
    const end = Math.max(data.ticks, 1);
    const until = data.until === null ? end : data.until;
    const view = { from: 0, to: end };
    const height = Math.max(4, Math.min(18, Math.floor(620 / Math.max(banks.length, 1))));
    const lane = new Map(banks.map(([number], n) => [number, n]));
    const column = data.commands.map((c) => /^(RD|WR)/.test(c));
    const time = section.querySelector("canvas.time"), rows = section.querySelector("canvas.rows");

    // What each lane has of the commands one by one: begin, end, command.
    const own = banks.map(() => []);
    for (const k of kept) {
      const name = data.commands[k[COMMAND]];
      const length = column[k[COMMAND]] ? lengths.burst : name === "ACT" ? lengths.act : name.startsWith("PRE") ? lengths.pre
        : name.endsWith("ab") ? lengths.refreshAll : lengths.refreshOne;
      for (const number of followers(k[BANK], k[BANKS])) {
        if (lane.has(number)) own[lane.get(number)].push([k[TICK], k[TICK] + length, k]);
      }
    }

    function followers(bank, count) {
      if (count <= 1) return [bank];
      const per = data.perPch, first = bank - bank % per;
      const step = count < per ? Math.max(1, Math.floor(per / count)) : 1;
      const out = [];
      for (let n = first + bank % step; n < first + per; n += step) out.push(n);
      return out;
    }

    function prepare(canvas) {
      const w = canvas.parentElement.clientWidth, h = AXIS + STEP + banks.length * height + 4, scale = devicePixelRatio || 1;
      canvas.width = w * scale;
      canvas.height = h * scale;
      canvas.style.height = h + "px";
      const g = canvas.getContext("2d");
      g.scale(scale, scale);
      g.clearRect(0, 0, w, h);
      g.font = "11px ui-monospace, monospace";
      g.textBaseline = "middle";
      const x = (tick) => LEFT + (tick - view.from) / (view.to - view.from) * (w - LEFT - 6);
      return { g, w, h, x };
    }

    function frame({ g, w, h, x }) {
      const span = view.to - view.from;
      let step = 10 ** Math.floor(Math.log10(span / 4 + 1));
      for (const more of [2, 5, 10]) if (span / step > 9) step = 10 ** Math.floor(Math.log10(step)) * more;
      step = Math.max(1, step);
      g.strokeStyle = colour("edge");
      for (let t = Math.ceil(view.from / step) * step; t <= view.to; t += step) {
        const at = Math.round(x(t)) + .5;
        g.beginPath();
        g.moveTo(at, AXIS - 4);
        g.lineTo(at, h);
        g.stroke();
        g.fillStyle = colour("dim");
        g.textAlign = at > w - 40 ? "right" : "center";
        g.fillText(t.toLocaleString("en"), Math.min(at, w - 4), AXIS / 2);
      }
      g.textAlign = "right";
      const label = Math.ceil(12 / height);
      banks.forEach(([, name], n) => {
        const y = AXIS + STEP + n * height;
        if (n % label === 0) {
          g.fillStyle = colour("dim");
          g.fillText(name, LEFT - 8, y + Math.min(height, 12) / 2 + 1);
        }
        if (height >= 8) {
          g.strokeStyle = colour("edge");
          g.beginPath();
          g.moveTo(LEFT, y + .5);
          g.lineTo(w, y + .5);
          g.stroke();
        }
      });
      g.fillText("steps", LEFT - 8, AXIS + STEP / 2);
      steps.forEach(([from, to, name, place], n) => {
        if (to < view.from || from > view.to) return;
        const a = Math.max(x(from), LEFT), b = Math.min(x(to), w);
        g.fillStyle = colour(n % 2 ? "panel" : "edge");
        g.fillRect(a, AXIS + 1, Math.max(b - a, 1), STEP - 3);
        const text = places[place] ? name + " " + places[place] : name;
        const fits = g.measureText(text).width < b - a - 6 ? text : g.measureText(name).width < b - a - 6 ? name : "";
        g.fillStyle = colour("ink");
        g.textAlign = "left";
        if (fits) g.fillText(fits, a + 3, AXIS + STEP / 2);
        g.textAlign = "right";
      });
      g.save();
      g.beginPath();
      g.rect(LEFT, AXIS + STEP, w - LEFT, h);
      g.clip();
    }

    // Are commands drawn one by one?
    const closely = (x) => x(width) - x(0) > 5 || width === 1;

    function bins(p, n, paint) {
      const from = closely(p.x) ? until : 0;
      for (const bin of banks[n][2]) {
        const a = bin[BIN] * width, b = Math.min(a + width, end);
        if (b <= view.from || a >= view.to || b <= from) continue;
        paint(bin, p.x(Math.max(a, from)), Math.max(p.x(b) - p.x(Math.max(a, from)), 1), b - a);
      }
    }

    function stack(g, parts, x, w, y, h) {
      const whole = Math.max(1, parts.reduce((sum, [, share]) => sum + share, 0));
      let at = y + h;
      for (const [name, share] of parts) {
        if (share <= 0) continue;
        const high = Math.max(share / whole * h, .7);
        g.fillStyle = palette[name];
        g.fillRect(x, at - high, w, high);
        at -= high;
      }
    }

    let palette = {};
    function drawTime() {
      const p = prepare(time), { g } = p;
      frame(p);
      const top = Math.max(1, Math.floor(height * .4)), low = height - top - (height >= 8 ? 2 : 0);
      banks.forEach((_, n) => {
        const y = AXIS + STEP + n * height + (height >= 8 ? 1 : 0);
        bins(p, n, (bin, x, w, ticks) => {
          if (bin[COMPUTE]) {
            g.globalAlpha = .25 + .75 * Math.min(1, bin[COMPUTE] / ticks);
            g.fillStyle = palette.compute;
            g.fillRect(x, y, w, top);
            g.globalAlpha = 1;
          }
          const columns = (bin[RD] + bin[WR]) * lengths.burst / ticks;
          stack(g, [["column", columns], ["row", bin[ACT] * lengths.act / ticks], ["refresh", bin[REFRESH] / ticks]], x, w, y + top, low);
        });
        if (!closely(p.x)) return;
        for (const [from, to, k] of own[n]) {
          if (to < view.from || from > view.to) continue;
          const name = data.commands[k[COMMAND]], x = p.x(from), w = Math.max(p.x(to) - x - .5, 1);
          if (name.startsWith("PRE")) continue;
          g.fillStyle = palette[column[k[COMMAND]] ? "column" : name === "ACT" ? "row" : "refresh"];
          g.fillRect(x, y + top, w, low);
          if (k[UNIT]) {
            g.fillStyle = palette.compute;
            g.fillRect(x, y, Math.max(p.x(from + k[UNIT]) - x, 1), top);
          }
        }
        // Computing that no command started is known by bins alone.
        for (const bin of banks[n][2]) {
          const a = bin[BIN] * width;
          if (bin[COMPUTE] && a < until && a < view.to && a + width > view.from && !own[n].some((o) => o[2][UNIT])) {
            g.globalAlpha = .25 + .75 * Math.min(1, bin[COMPUTE] / width);
            g.fillStyle = palette.compute;
            g.fillRect(p.x(a), y, Math.max(p.x(Math.min(a + width, until)) - p.x(a), 1), top);
            g.globalAlpha = 1;
          }
        }
      });
      g.restore();
    }

    function drawRows() {
      const p = prepare(rows), { g } = p;
      frame(p);
      banks.forEach((_, n) => {
        const y = AXIS + STEP + n * height + (height >= 8 ? 1 : 0), h = height - (height >= 8 ? 2 : 0);
        for (const bin of banks[n][2]) {
          const all = bin[HIT] + bin[MISS] + bin[CONFLICT], a = bin[BIN] * width;
          if (!all || a + width <= view.from || a >= view.to) continue;
          const x = p.x(a), w = Math.max(p.x(Math.min(a + width, end)) - x, 1);
          stack(g, [["conflict", bin[CONFLICT] / all], ["miss", bin[MISS] / all], ["hit", bin[HIT] / all]], x, w, y, h);
        }
      });
      g.restore();
    }

    let wanted = false;
    function draw() {
      if (wanted) return;
      wanted = true;
      requestAnimationFrame(() => {
        wanted = false;
        palette = {};
        for (const name of ["compute", "column", "row", "refresh", "hit", "miss", "conflict"]) palette[name] = colour(name);
        drawTime();
        drawRows();
      });
    }

    function zoom(factor, at = (view.from + view.to) / 2) {
      if (factor === 0) {
        Object.assign(view, { from: 0, to: end });
      } else {
        const span = Math.min(end, Math.max(16, (view.to - view.from) * factor));
        const share = (at - view.from) / (view.to - view.from);
        view.from = Math.max(0, Math.min(end - span, at - span * share));
        view.to = view.from + span;
      }
      draw();
    }

    function move(ticks) {
      const span = view.to - view.from;
      view.from = Math.max(0, Math.min(end - span, view.from + ticks));
      view.to = view.from + span;
      draw();
    }

    const count = (n, one) => n + " " + one + (n === 1 ? "" : one.endsWith("s") ? "es" : "s");
    function say(canvas, e) {
      const box = canvas.getBoundingClientRect();
      const x = e.clientX - box.left, y = e.clientY - box.top;
      const tick = view.from + (x - LEFT) / (box.width - LEFT - 6) * (view.to - view.from);
      if (x < LEFT || tick < 0 || tick > end) return "";
      const step = steps.find(([from, to]) => from <= tick && tick < to);
      const during = step ? "step: " + step[2] + (places[step[3]] ? " " + places[step[3]] : "") : "";
      const at = (t) => "tick " + Math.floor(t).toLocaleString("en") + " (" + (t * data.ns / 1000).toFixed(3) + " us)";
      const n = Math.floor((y - AXIS - STEP) / height);
      if (n < 0) return step ? `${during}\n${at(step[0])} to ${at(step[1])}` : at(tick);
      if (n >= banks.length) return "";
      const bank = "bank " + banks[n][1];
      const scale = (t) => LEFT + (t - view.from) / (view.to - view.from) * (box.width - LEFT - 6);
      if (canvas === time && tick < until && closely(scale)) {
        const near = own[n].filter(([from, to]) => from <= tick && tick < to).pop();
        if (near) {
          const k = near[2], line = places[k[LINE]];
          const where = column[k[COMMAND]] ? ` row ${k[ROW]} column ${k[COL]}` : data.commands[k[COMMAND]] === "ACT" ? ` row ${k[ROW]}` : "";
          return [bank, data.commands[k[COMMAND]] + where, at(k[TICK]), k[BANKS] > 1 ? "for " + count(k[BANKS], "bank") : "",
            k[UNIT] ? "its unit computes" : "", during, line ? "line " + line : ""].filter(Boolean).join("\n");
        }
      }
      const bin = banks[n][2].find((b) => b[BIN] * width <= tick && tick < (b[BIN] + 1) * width);
      if (!bin) return [bank, at(tick), "nothing", during].filter(Boolean).join("\n");
      const line = places[bin[PLACE]] ? "line " + places[bin[PLACE]] + (bin[OTHERS] ? " and others" : "") : "";
      return [bank, `ticks ${(bin[BIN] * width).toLocaleString("en")} to ${Math.min((bin[BIN] + 1) * width, end).toLocaleString("en")}`,
        `${bin[ACT]} ACT, ${bin[RD]} RD, ${bin[WR]} WR`, `${count(bin[HIT], "hit")}, ${count(bin[MISS], "miss")}, ${count(bin[CONFLICT], "conflict")}`,
        bin[COMPUTE] ? "its unit computes in " + count(bin[COMPUTE], "tick") : "", bin[REFRESH] ? "refresh in " + count(bin[REFRESH], "tick") : "",
        during, line].filter(Boolean).join("\n");
    }

    for (const canvas of [time, rows]) {
      let grip = null;
      canvas.addEventListener("pointerdown", (e) => {
        grip = e.clientX;
        canvas.setPointerCapture(e.pointerId);
      });
      canvas.addEventListener("pointerup", () => (grip = null));
      canvas.addEventListener("pointermove", (e) => {
        const per = (view.to - view.from) / (canvas.clientWidth - LEFT - 6);
        if (grip !== null) {
          move((grip - e.clientX) * per);
          grip = e.clientX;
        }
        const text = say(canvas, e);
        text ? tip.show(text, e) : tip.hide();
      });
      canvas.addEventListener("pointerleave", tip.hide);
      const under = (e) => view.from + (e.clientX - canvas.getBoundingClientRect().left - LEFT) / (canvas.clientWidth - LEFT - 6) * (view.to - view.from);
      canvas.addEventListener("dblclick", (e) => zoom(.4, under(e)));
      canvas.addEventListener("wheel", (e) => {
        if (!e.ctrlKey) return;
        e.preventDefault();
        zoom(e.deltaY > 0 ? 1.3 : 1 / 1.3, under(e));
      }, { passive: false });
      canvas.addEventListener("keydown", (e) => {
        const span = view.to - view.from;
        const keys = { "+": () => zoom(.5), "=": () => zoom(.5), "-": () => zoom(2), "0": () => zoom(0), ArrowLeft: () => move(-span / 8), ArrowRight: () => move(span / 8) };
        if (keys[e.key]) {
          e.preventDefault();
          keys[e.key]();
        }
      });
    }
    section.querySelectorAll("[data-zoom]").forEach((b) => b.addEventListener("click", () => zoom(+b.dataset.zoom)));
    addEventListener("resize", draw);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
    draw();
  }
  document.querySelectorAll(".run").forEach(run);
})();
