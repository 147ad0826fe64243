// Draws the timeline and the row map of each run from its data: bins of time, and commands one by one, which are
// unpacked where they are shown. Both show the same stretch of time, and the same lanes: pseudo-channels, and the banks
// of those that are open.
(() => {
  const LEFT = 96, AXIS = 22, STEP = 16;
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
  const NAMES = ["compute", "column", "row", "refresh", "hit", "miss", "conflict", "idle", "mode", "operand", "energy", "ink", "dim", "edge", "panel", "paper"];
  // Commands, or states and tiles, that are drawn one by one at most, and that are unpacked for it; of more there are
  // bins.
  const SHOWN = 150000, LOOKED_AT = 1500000;
  // Chunks that stay unpacked.
  const UNPACKED = 200;
  // Fields of a bin and of a command.
  const [BIN, ACT, RD, WR, HIT, MISS, CONFLICT, COMPUTE, REFRESH, PLACE, OTHERS] = [...Array(11).keys()];
  const [TICK, COMMAND, BANK, BANKS, ROW, COL, UNIT, LINE] = [...Array(8).keys()];
  // Colours of IDLE, LOAD, PROCESS, OUTPUT, DONE and of several states in one.
  const STATES = ["panel", "mode", "energy", "operand", "idle", "dim"];

  // A flat list of so many numbers an item, of which the first is the difference to the item before.
  const items = (flat, width, make) => {
    const out = [];
    for (let n = 0, at = 0; n < flat.length; n += width) out.push(make((at += flat[n]), flat.slice(n + 1, n + width)));
    return out;
  };

  function run(section) {
    const script = section.querySelector("script.data");
    if (!script) return;
    const data = JSON.parse(script.textContent);
    const { width, lengths, places, steps, stateNames } = data;
    const end = Math.max(data.ticks, 1);
    const until = data.until === null ? end : data.until;
    const unitsUntil = data.unitsUntil === null ? end : data.unitsUntil;
    const since = data.since;
    const column = data.commands.map((c) => /^(RD|WR)/.test(c));
    const time = section.querySelector("canvas.time"), rows = section.querySelector("canvas.rows");

    const lengthOf = data.commands.map((name, n) => column[n] ? lengths.burst : name === "ACT" ? lengths.act
      : name.startsWith("PRE") ? lengths.pre : name.endsWith("ab") ? lengths.refreshAll : lengths.refreshOne);

    // Chunks have their ticks, how many there are, and `make`, which unpacks them. What is unpacked is kept a while.
    const unpacked = new Map();
    let working = 0;
    const taken = (chunk) => {
      const known = unpacked.get(chunk) ?? chunk.make();
      unpacked.delete(chunk);
      unpacked.set(chunk, known);
      if (unpacked.size > Math.max(UNPACKED, working)) unpacked.delete(unpacked.keys().next().value);
      return known;
    };
    const within = (chunks, from, to) => chunks.filter((c) => c.from <= to && c.to + c.longest >= from);

    // Commands, by bank: begin, end, command.
    const longest = Math.max(...lengthOf);
    const commands = data.kept.map(([from, to, count, firstBank, channel, text]) => ({
      from, to, count, longest,
      make() {
        const [ticks, names, banks, many, rows, cols, computes, lines] = unpack(text, count, data.columns);
        const last = new Map(), byBank = new Map();
        const signed = (n) => (n % 2 ? -(n + 1) / 2 : n / 2);
        for (let n = 0, tick = from; n < count; n++) {
          tick += ticks[n];
          const [row, col] = last.get(banks[n]) ?? [0, 0];
          const at = [row + signed(rows[n]), col + signed(cols[n])], bank = banks[n] + firstBank;
          last.set(banks[n], at);
          if (tick >= until) continue;
          const k = [tick, names[n], bank, many[n], ...at, computes[n], data.lines[channel][lines[n]]];
          for (const number of followers(bank, many[n])) {
            if (!byBank.has(number)) byBank.set(number, []);
            byBank.get(number).push([tick, tick + lengthOf[names[n]], k]);
          }
        }
        return byBank;
      },
    }));
    // Of a bank those in a stretch of time.
    const commandsOf = (bank, chunks) => chunks.flatMap((c) => taken(c).get(bank.number) ?? []);

    const stateOf = (begin, [length, state, samples, tiles]) => ({ begin, end: begin + length, state, samples, tiles });
    const tileOf = (fetch, [there, wait, length], number) => ({ number, fetch, there: fetch + there, begin: fetch + there + wait, end: fetch + there + wait + length });
    const banks = data.banks.map(([number, name, bins, states, chunks]) => {
      const of = (kind, columns, make) => chunks.filter((c) => c[0] === kind).map(([, from, to, count, first, text]) => ({
        from, to, count, longest: 0,
        make() {
          const [begins, ...more] = unpack(text, count, columns);
          let at = from;
          return Array.from(begins, (difference, n) => make((at += difference), more.map((m) => m[n]), first + n));
        },
      }));
      return { number, name, bins, states: items(states, 5, stateOf), single: of(1, 5, stateOf), tiles: of(0, 4, tileOf) };
    });
    const withUnits = banks.some((bank) => bank.states.length > 0);

    function followers(bank, count) {
      if (count <= 1) return [bank];
      const per = data.perPch, first = bank - bank % per;
      const step = count < per ? Math.max(1, Math.floor(per / count)) : 1;
      const out = [];
      for (let n = first + bank % step; n < first + per; n += step) out.push(n);
      return out;
    }

    // Pseudo-channels with the means of their banks.
    const groups = [];
    for (const bank of banks) {
      const pch = Math.floor(bank.number / data.perPch);
      if (groups.at(-1)?.pch !== pch) groups.push({ pch, name: bank.name.split(".").slice(0, 2).join("."), banks: [] });
      groups.at(-1).banks.push(bank);
    }
    for (const group of groups) {
      const sums = new Map();
      for (const bank of group.banks) {
        for (const bin of bank.bins) {
          const sum = sums.get(bin[BIN]);
          if (!sum) sums.set(bin[BIN], bin.slice());
          else for (let n = ACT; n <= REFRESH; n++) sum[n] += bin[n];
        }
      }
      group.bins = [...sums.values()].sort((a, b) => a[BIN] - b[BIN]);
      group.open = groups.length === 1 || banks.length <= 32;
    }

    // Lanes from top to bottom with their places.
    let lanes = [], height = 0;
    function lay() {
      lanes = [];
      let y = AXIS + STEP;
      const put = (lane, h) => {
        lanes.push({ ...lane, y, h });
        y += h;
      };
      for (const group of groups) {
        if (groups.length > 1) put({ group, bins: group.bins, of: group.banks.length, label: (group.open ? "\u25be " : "\u25b8 ") + group.name }, 22);
        if (!group.open) continue;
        for (const bank of group.banks) put({ bank, bins: bank.bins, of: 1, label: bank.name }, withUnits ? 32 : 18);
      }
      height = y + 4;
    }
    lay();

    const axis = timeAxis({ section, canvases: [time, rows], end, left: LEFT, least: 16, draw, say, pick });
    const { view } = axis;
    let palette = {};

    function frame(p) {
      const { g, w, h, x } = p;
      axis.ticks(p, AXIS, palette.edge, palette.dim);
      g.textAlign = "right";
      for (const lane of lanes) {
        g.fillStyle = lane.group ? palette.ink : palette.dim;
        g.fillText(lane.label, LEFT - 8, lane.y + lane.h / 2);
        g.strokeStyle = palette.edge;
        g.beginPath();
        g.moveTo(LEFT, lane.y + .5);
        g.lineTo(w, lane.y + .5);
        g.stroke();
      }
      g.fillStyle = palette.dim;
      g.fillText("steps", LEFT - 8, AXIS + STEP / 2);
      steps.forEach(([from, to, name, place], n) => {
        if (to < view.from || from > view.to) return;
        const a = Math.max(x(from), LEFT), b = Math.min(x(to), w);
        g.fillStyle = palette[n % 2 ? "panel" : "edge"];
        g.fillRect(a, AXIS + 1, Math.max(b - a, 1), STEP - 3);
        const text = places[place] ? name + " " + places[place] : name;
        const fits = g.measureText(text).width < b - a - 6 ? text : g.measureText(name).width < b - a - 6 ? name : "";
        g.fillStyle = palette.ink;
        g.textAlign = "left";
        if (fits) g.fillText(fits, a + 3, AXIS + STEP / 2);
        g.textAlign = "right";
      });
      g.save();
      g.beginPath();
      g.rect(LEFT, AXIS + STEP, w - LEFT, h);
      g.clip();
    }

    // What is drawn one by one: chunks, if they are few enough. Of units all or nothing, too.
    function closely(x) {
      const near = { commands: [], units: false };
      if (x(width) - x(0) <= 5 && width > 1) return near;
      // Of a chunk about as many are shown as its part of the view.
      const share = (c) => Math.min(1, (view.to - view.from) / Math.max(c.to - c.from, 1));
      const few = (chunks) => chunks.reduce((sum, c) => sum + c.count, 0) <= LOOKED_AT && chunks.reduce((sum, c) => sum + c.count * share(c), 0) <= SHOWN;
      const shown = within(commands, view.from, view.to);
      if (few(shown)) near.commands = shown;
      const units = lanes.flatMap(({ bank }) => bank ? within([...bank.tiles, ...bank.single], view.from, view.to) : []);
      near.units = few(units);
      working = shown.length + units.length;
      return near;
    }
    const tilesOf = (bank) => within(bank.tiles, view.from, view.to).flatMap((c) => taken(c));
    const statesOf = (bank, near) => {
      const single = near.units ? within(bank.single, view.from, view.to) : [];
      return single.length > 0 ? single.flatMap((c) => taken(c)) : bank.states;
    };

    // Counts of a lane, but of ticks from `since` to `until`, which are drawn one by one.
    function bins(p, lane, [since, until], paint) {
      for (const bin of lane.bins) {
        const a = bin[BIN] * width, b = Math.min(a + width, end);
        if (b <= view.from || a >= view.to) continue;
        for (const [from, to] of [[a, Math.min(b, since)], [Math.max(a, until), b]]) {
          if (from < to) paint(bin, p.x(from), Math.max(p.x(to) - p.x(from), 1), (b - a) * lane.of);
        }
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

    // Heights of a lane's parts: the unit's state, what it computes, its bank.
    const parts = (lane) => {
      const state = lane.bank?.states.length ? 5 : 0, rest = lane.h - 3 - state;
      const top = Math.max(2, Math.floor(rest * (state ? .55 : .42)));
      return { state, top, low: rest - top, y: lane.y + 2 };
    };

    function drawTime() {
      const p = axis.prepare(time, height), { g, x } = p;
      frame(p);
      const near = closely(x), ofCommands = near.commands.length > 0;
      for (const lane of lanes) {
        const { state, top, low, y } = parts(lane), at = y + state, bank = lane.bank;
        const own = bank && ofCommands ? commandsOf(bank, near.commands) : [];
        const tiles = bank && near.units ? tilesOf(bank) : [];
        if (bank) drawStates(p, statesOf(bank, near), y, state);
        bins(p, lane, bank && ofCommands ? [since, until] : [0, 0], (bin, a, w, ticks) => {
          const columns = (bin[RD] + bin[WR]) * lengths.burst / ticks;
          stack(g, [["column", columns], ["row", bin[ACT] * lengths.act / ticks], ["refresh", bin[REFRESH] / ticks]], a, w, at + top, low);
        });
        bins(p, lane, tiles.length > 0 ? [since, unitsUntil] : own.some((o) => o[2][UNIT]) ? [since, until] : [0, 0], (bin, a, w, ticks) => {
          if (!bin[COMPUTE]) return;
          g.globalAlpha = .25 + .75 * Math.min(1, bin[COMPUTE] / ticks);
          g.fillStyle = palette.compute;
          g.fillRect(a, at, w, top);
          g.globalAlpha = 1;
        });
        if (tiles.length > 0) drawTiles(p, tiles, at, top);
        drawCommands(p, own, at, top, low);
      }
      g.restore();
    }

    // A state that is too short to be seen is left to those beside it.
    function drawStates({ g, x }, states, y, h) {
      let last = -1;
      for (const s of states) {
        if (s.end < view.from || s.begin > view.to) continue;
        const a = x(s.begin), b = x(s.end);
        if (b - a < .5 && Math.floor(a) === last) continue;
        last = Math.floor(a);
        g.fillStyle = palette[STATES[s.state]];
        g.fillRect(a, y, Math.max(b - a, 1), h - 1);
      }
    }

    function drawTiles({ g, x }, tiles, y, h) {
      tiles.forEach((t) => {
        if (t.end < view.from || t.fetch > view.to) return;
        const a = x(t.begin), b = x(t.end);
        g.fillStyle = palette.compute;
        g.globalAlpha = t.number % 2 ? .75 : 1;
        g.fillRect(a, y, Math.max(b - a - .5, .7), h - 3);
        g.globalAlpha = 1;
        g.fillStyle = palette.column;
        g.fillRect(x(t.fetch), y + h - 2, Math.max(x(t.there) - x(t.fetch) - .5, .7), 2);
        const text = "" + t.number;
        if (b - a > 14 && g.measureText(text).width < b - a - 4) {
          g.fillStyle = palette.paper;
          g.textAlign = "left";
          g.fillText(text, a + 2, y + (h - 3) / 2);
        }
      });
    }

    function drawCommands({ g, x }, own, y, top, low) {
      for (const [from, to, k] of own) {
        if (to < view.from || from > view.to) continue;
        const name = data.commands[k[COMMAND]], a = x(from), w = Math.max(x(to) - a - .5, 1);
        if (name.startsWith("PRE")) continue;
        g.fillStyle = palette[column[k[COMMAND]] ? "column" : name === "ACT" ? "row" : "refresh"];
        g.fillRect(a, y + top, w, low);
        if (k[UNIT]) {
          g.fillStyle = palette.compute;
          g.fillRect(a, y, Math.max(x(from + k[UNIT]) - a, 1), top);
        }
      }
    }

    function drawRows() {
      const p = axis.prepare(rows, height), { g, x } = p;
      frame(p);
      for (const lane of lanes) {
        for (const bin of lane.bins) {
          const all = bin[HIT] + bin[MISS] + bin[CONFLICT], a = bin[BIN] * width;
          if (!all || a + width <= view.from || a >= view.to) continue;
          const w = Math.max(x(Math.min(a + width, end)) - x(a), 1);
          stack(g, [["conflict", bin[CONFLICT] / all], ["miss", bin[MISS] / all], ["hit", bin[HIT] / all]], x(a), w, lane.y + 2, lane.h - 3);
        }
      }
      g.restore();
    }

    function draw() {
      palette = {};
      for (const name of NAMES) palette[name] = colour(name);
      drawTime();
      drawRows();
    }

    const count = (n, one) => n + " " + one + (n === 1 ? "" : one.endsWith("s") ? "es" : "s");
    const laneAt = (canvas, e) => {
      const y = e.clientY - canvas.getBoundingClientRect().top;
      return { y, lane: lanes.find((l) => l.y <= y && y < l.y + l.h) };
    };

    function say(canvas, e) {
      const box = canvas.getBoundingClientRect(), tick = axis.under(canvas, e), { y, lane } = laneAt(canvas, e);
      if (e.clientX - box.left < LEFT) return lane?.group ? `pseudo-channel ${lane.group.name}: ${count(lane.of, "bank")}; a click ${lane.group.open ? "closes" : "opens"} it` : "";
      if (tick < 0 || tick > end) return "";
      const step = steps.find(([from, to]) => from <= tick && tick < to);
      const during = step ? "step: " + step[2] + (places[step[3]] ? " " + places[step[3]] : "") : "";
      const at = (t) => "tick " + Math.floor(t).toLocaleString("en") + " (" + (t * data.ns / 1000).toFixed(3) + " us)";
      if (!lane) return y < AXIS + STEP && step ? `${during}\n${at(step[0])} to ${at(step[1])}` : y < AXIS + STEP ? at(tick) : "";
      const who = lane.bank ? "bank " + lane.bank.name : `pseudo-channel ${lane.group.name}, means of ${count(lane.of, "bank")}`;
      const near = closely(axis.scale(box.width));
      const state = lane.bank && statesOf(lane.bank, near).find((s) => s.begin <= tick && tick < s.end);
      const unit = state ? `its unit: ${stateNames[state.state]}${state.tiles ? `, ${count(state.samples, "sample")} of ${count(state.tiles, "tile")}` : ""}, ${at(state.begin)} to ${at(state.end)}` : "";
      if (canvas === time && lane.bank) {
        const tile = near.units ? tilesOf(lane.bank).find((t) => t.fetch <= tick && tick < t.end) : undefined;
        const said = tile ? `tile ${tile.number}: fetched ${at(tile.fetch)} to ${at(tile.there)}, computed ${at(tile.begin)} to ${at(tile.end)}` : "";
        const command = commandsOf(lane.bank, near.commands).filter(([from, to]) => from <= tick && tick < to).pop();
        if (command) {
          const k = command[2], line = places[k[LINE]];
          const where = column[k[COMMAND]] ? ` row ${k[ROW]} column ${k[COL]}` : data.commands[k[COMMAND]] === "ACT" ? ` row ${k[ROW]}` : "";
          return [who, data.commands[k[COMMAND]] + where, at(k[TICK]), k[BANKS] > 1 ? "for " + count(k[BANKS], "bank") : "",
            k[UNIT] ? "its unit computes" : "", said, unit, during, line ? "line " + line : ""].filter(Boolean).join("\n");
        }
        if (tile) return [who, said, unit, during].filter(Boolean).join("\n");
      }
      const bin = lane.bins.find((b) => b[BIN] * width <= tick && tick < (b[BIN] + 1) * width);
      if (!bin) return [who, at(tick), "nothing", unit, during].filter(Boolean).join("\n");
      const line = places[bin[PLACE]] ? "line " + places[bin[PLACE]] + (bin[OTHERS] ? " and others" : "") : "";
      return [who, `ticks ${(bin[BIN] * width).toLocaleString("en")} to ${Math.min((bin[BIN] + 1) * width, end).toLocaleString("en")}`,
        `${bin[ACT]} ACT, ${bin[RD]} RD, ${bin[WR]} WR`, `${count(bin[HIT], "hit")}, ${count(bin[MISS], "miss")}, ${count(bin[CONFLICT], "conflict")}`,
        bin[COMPUTE] ? "computing in " + count(bin[COMPUTE], "tick") : "", bin[REFRESH] ? "refresh in " + count(bin[REFRESH], "tick") : "",
        unit, during, line].filter(Boolean).join("\n");
    }

    function open(which, all) {
      which.forEach((group) => (group.open = all));
      lay();
      axis.soon();
    }
    function pick(canvas, e) {
      const { lane } = laneAt(canvas, e);
      if (lane?.group) open([lane.group], !lane.group.open);
    }
    section.querySelectorAll("[data-open]").forEach((b) => b.addEventListener("click", () => open(groups, b.dataset.open === "all")));
    if (location.hash.includes("&open")) open(groups, true);
  }
  document.querySelectorAll(".run").forEach(run);
})();
