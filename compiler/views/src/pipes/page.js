// Draws the pipes of the first block of each launch: a lane for each pipe of each role, instructions and stalls in it,
// and flags as arrows between them.
(() => {
  const LEFT = 132, AXIS = 22, LANE = 34, GAP = 8, ARROWS = 160, NAMED = 16;
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
  let palette = {};

  // A flat list of so many numbers an item, of which the first is the difference to the item before.
  const items = (flat, width, make) => {
    const out = [];
    for (let n = 0, at = 0; n < flat.length; n += width) out.push(make((at += flat[n]), flat.slice(n + 1, n + width)));
    return out;
  };

  function run(section) {
    const data = JSON.parse(section.querySelector("script.data").textContent);
    const { places, names, causes, events, clock } = data;
    const lanes = data.lanes.map((lane) => ({
      ...lane,
      slices: items(lane.slices, 5, (begin, [length, tail, name, place]) => ({ begin, free: begin + length, end: begin + length + tail, name, place })),
      stalls: items(lane.stalls, 4, (begin, [length, why, place]) => ({ begin, end: begin + length, why, place })),
    }));
    const signals = items(data.signals, 7, (set, [length, from, to, event, setPlace, place]) => ({ set, seen: set + length, from, to, event, setPlace, place }));
    // The longest of a lane, so that what is in view can be found by its begin.
    for (const lane of lanes) {
      lane.longest = lane.slices.reduce((most, s) => Math.max(most, s.end - s.begin), 0);
      lane.stalled = lane.stalls.reduce((most, s) => Math.max(most, s.end - s.begin), 0);
    }
    const end = Math.max(data.cycles, 1);
    const longestFlag = signals.reduce((most, s) => Math.max(most, s.seen - s.set), 0);
    // Flags that ended a stall are those that matter; of several for one wait, the one that came last.
    const ends = new Set(lanes.flatMap((lane, n) => lane.stalls.map((s) => n + ":" + s.end)));
    const last = new Map();
    for (const s of signals) {
      const wait = s.to + ":" + s.seen;
      if (ends.has(wait)) last.set(wait, Math.max(last.get(wait) ?? 0, s.set));
    }
    for (const s of signals) s.decides = last.get(s.to + ":" + s.seen) === s.set;
    const canvas = section.querySelector("canvas.time"), flags = section.querySelector("input.flags");
    let lit = -1;

    let y = AXIS + 4;
    for (const [n, lane] of lanes.entries()) {
      if (n > 0 && lanes[n - 1].role !== lane.role) y += GAP;
      lane.y = y;
      y += LANE;
    }
    const height = y + 4;

    // Where the items from a time on begin.
    const first = (list, time, key) => {
      let low = 0, high = list.length;
      while (low < high) {
        const middle = (low + high) >> 1;
        list[middle][key] < time ? (low = middle + 1) : (high = middle);
      }
      return low;
    };
    function* between(list, longest, from, to, begin) {
      for (let n = first(list, from - longest, begin); n < list.length && list[n][begin] <= to; n++) yield list[n];
    }

    const axis = timeAxis({ section, canvases: [canvas], end, left: LEFT, least: 24, draw, say, pick });
    const { view } = axis;

    function draw() {
      palette = {};
      for (const name of ["work", "tail", "event", "barrier", "issue", "unit", "flag", "ink", "dim", "edge", "panel", "paper", "lit"]) palette[name] = colour(name);
      const p = axis.prepare(canvas, height), { g, w, x } = p;
      axis.ticks(p, AXIS, palette.edge, palette.dim);
      g.textAlign = "right";
      for (const lane of lanes) {
        g.fillStyle = palette.ink;
        g.fillText(lane.pipe, LEFT - 8, lane.y + (lane.role ? 10 : 15));
        g.fillStyle = palette.dim;
        if (lane.role) g.fillText(lane.role.length > 18 ? lane.role.slice(0, 17) + "\u2026" : lane.role, LEFT - 8, lane.y + 23);
      }
      g.save();
      g.beginPath();
      g.rect(LEFT, 0, w - LEFT, height);
      g.clip();
      lanes.forEach((lane) => drawLane(p, lane));
      if (flags.checked) drawFlags(p);
      g.restore();
    }

    function drawLane({ g, w, x }, lane) {
      const top = lane.y + 2, low = LANE - 6;
      g.fillStyle = palette.panel;
      g.fillRect(LEFT, top, w - LEFT, low);
      for (const stall of between(lane.stalls, lane.stalled, view.from, view.to, "begin")) {
        const a = x(stall.begin), b = x(stall.end);
        if (b < LEFT) continue;
        g.globalAlpha = lit < 0 || lit === stall.place ? .55 : .15;
        g.fillStyle = palette[causes[stall.why][0]];
        g.fillRect(a, top + low / 2 - 3, Math.max(b - a, .6), 6);
        g.globalAlpha = 1;
      }
      // What is narrower than a point of the screen is added up, point by point.
      let column = -1, busy = 0;
      const flush = () => {
        if (column >= 0 && busy > 0) {
          g.globalAlpha = Math.min(1, .25 + .75 * busy);
          g.fillStyle = palette.work;
          g.fillRect(column, top, 1, low);
          g.globalAlpha = 1;
        }
        busy = 0;
      };
      for (const s of between(lane.slices, lane.longest, view.from, view.to, "begin")) {
        const a = x(s.begin), b = x(s.free), c = x(s.end);
        if (c < LEFT) continue;
        if (b - a < 1.5) {
          if (Math.floor(a) !== column) {
            flush();
            column = Math.floor(a);
          }
          busy += b - a;
          if (lit === s.place) {
            g.fillStyle = palette.lit;
            g.fillRect(a, top - 2, 1, 2);
          }
          continue;
        }
        g.globalAlpha = lit < 0 || lit === s.place ? 1 : .3;
        if (c - b > 1) {
          g.fillStyle = palette.tail;
          g.fillRect(b, top + low - 5, c - b, 5);
        }
        g.fillStyle = palette.work;
        g.fillRect(a, top, Math.max(b - a - .6, .8), low);
        const from = Math.max(a, LEFT), room = Math.min(b, w) - from - 8;
        const text = names[s.name];
        if (room > 14 && g.measureText(text).width < room) {
          g.fillStyle = palette.paper;
          g.textAlign = "left";
          g.fillText(text, from + 4, top + low / 2 + .5);
        }
        g.globalAlpha = 1;
      }
      flush();
    }

    const middle = (lane) => lanes[lane].y + LANE / 2 - 1;
    function inView() {
      return [...between(signals, longestFlag, view.from, view.to, "set")].filter((s) => s.seen >= view.from);
    }

    function drawFlags({ g, w, x }) {
      const all = inView(), many = all.length > ARROWS;
      const named = [];
      for (const s of all.sort((one, other) => one.decides - other.decides)) {
        const a = x(s.set), b = x(s.seen), from = middle(s.from), to = middle(s.to);
        const faint = !s.decides || many;
        g.globalAlpha = (faint ? .3 : .95) * (lit < 0 || lit === s.place || lit === s.setPlace ? 1 : .15);
        g.lineWidth = faint ? .7 : 1.3;
        g.strokeStyle = g.fillStyle = palette.flag;
        const down = to > from ? 1 : -1, near = to - down * (LANE / 2 - 4);
        g.beginPath();
        g.moveTo(a, from + down * (LANE / 2 - 4));
        g.bezierCurveTo(a + (b - a) * .5, from + (to - from) * .5, b, from + (to - from) * .5, b, near - down * 5);
        g.stroke();
        if (many && !s.decides) continue;
        g.beginPath();
        g.moveTo(b, near);
        g.lineTo(b - 3.5, near - down * 6);
        g.lineTo(b + 3.5, near - down * 6);
        g.fill();
        if (!many && (s.decides || all.length <= NAMED)) named.push([s, b, near - down * 9]);
      }
      g.globalAlpha = 1;
      // Names come last, those of flags that ended a wait first, each where no other name is, on a ground of its own.
      const taken = [];
      g.textAlign = "left";
      g.strokeStyle = palette.paper;
      g.lineJoin = "round";
      g.lineWidth = 4;
      for (const [s, b, y] of named.sort(([one], [other]) => other.decides - one.decides)) {
        const name = events[s.event], width = g.measureText(name).width + 10;
        const free = !taken.some(([l, r, t]) => l < b + width && b < r && Math.abs(t - y) < 14);
        if (!name || b < LEFT || b + width >= w || !free) continue;
        taken.push([b, b + width, y]);
        g.strokeText(name, b + 5, y);
        g.fillStyle = palette.flag;
        g.fillText(name, b + 5, y);
      }
      g.globalAlpha = 1;
      g.lineWidth = 1;
    }

    const at = (cycle) => "cycle " + cycle.toLocaleString("en") + " (" + (cycle / clock).toFixed(3) + " us)";
    const line = (place) => "line " + places[place][1];
    function under(e) {
      const box = canvas.getBoundingClientRect(), cycle = axis.under(canvas, e), y = e.clientY - box.top;
      const lane = lanes.find((l) => l.y <= y && y < l.y + LANE);
      if (!lane || cycle < 0 || cycle > end) return { cycle };
      const reach = 2 * (view.to - view.from) / box.width;
      const hit = (s, to) => s.begin - reach <= cycle && cycle < to + reach;
      const found = (list, longest, to) => [...between(list, longest, cycle - reach, cycle + reach, "begin")].filter((s) => hit(s, to(s)));
      const slice = found(lane.slices, lane.longest, (s) => s.free).sort((a, b) => Math.abs(a.begin - cycle) - Math.abs(b.begin - cycle))[0]
        ?? found(lane.slices, lane.longest, (s) => s.end)[0];
      return { cycle, lane, slice, stall: slice ? undefined : found(lane.stalls, lane.stalled, (s) => s.end)[0] };
    }

    function say(_, e) {
      const { cycle, lane, slice, stall } = under(e);
      if (!lane) return cycle >= 0 && cycle <= end ? at(Math.floor(cycle)) : "";
      const who = lane.pipe + (lane.role ? " of " + lane.role : "");
      if (slice) {
        return [`${names[slice.name]} on ${who}`, `${at(slice.begin)}, for ${(slice.free - slice.begin).toLocaleString("en")}`,
          slice.end > slice.free ? "its result is there at " + at(slice.end) : "", line(slice.place)].filter(Boolean).join("\n");
      }
      if (stall) {
        return [`${who} waits ${causes[stall.why][1]}`, `${at(stall.begin)}, for ${(stall.end - stall.begin).toLocaleString("en")}`, line(stall.place)].join("\n");
      }
      return `${who}: nothing to do\n${at(Math.floor(cycle))}`;
    }

    // A click lights the line of what is there, and all that stems from it.
    function light(place) {
      lit = place === lit ? -1 : place;
      document.querySelectorAll("aside li.lit").forEach((l) => l.classList.remove("lit"));
      if (lit >= 0) {
        const row = document.getElementById(places[lit][0]);
        row?.classList.add("lit");
        row?.scrollIntoView({ block: "nearest", behavior: "smooth" });
      }
      axis.soon();
    }
    function pick(_, e) {
      const { slice, stall } = under(e), place = (slice ?? stall)?.place;
      light(place === undefined ? -1 : place);
    }
    places.forEach(([id], n) => {
      const row = document.getElementById(id);
      row?.classList.add("has");
      row?.addEventListener("click", () => light(n));
    });
    flags.addEventListener("change", axis.soon);
    addEventListener("keydown", (e) => e.key === "Escape" && light(-1));
  }
  document.querySelectorAll(".run").forEach(run);
  // The kernel is what the page is about, and not what stands above it in the file.
  const source = document.querySelector("aside"), kernel = source?.querySelector("li .heat")?.closest("li");
  if (kernel) source.scrollTop = kernel.offsetTop - source.clientHeight / 8;
})();
