// The page: a text with its diagnostics, and commands on it.
"use strict";

const $ = (id) => document.getElementById(id);
const FILES = JSON.parse($("files").textContent);
const EXAMPLES = JSON.parse($("examples").textContent);
// How long the keys have to rest before the text is checked, in milliseconds.
const REST = 400;

// ---- The worker

let worker = null;
let module = null;
let calls = 0;
const waiting = new Map();

// The module is carried by the page: compressed, and spelled in base64.
async function load() {
  const bytes = Uint8Array.from(atob($("wasm").textContent.trim()), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  module = await WebAssembly.compile(await new Response(stream).arrayBuffer());
  start();
}

function start() {
  const source = $("wasi").textContent + $("worker").textContent;
  worker = new Worker(URL.createObjectURL(new Blob([source], { type: "text/javascript" })));
  worker.onmessage = ({ data }) => {
    const call = waiting.get(data.id);
    if (data.text !== undefined) call?.print(data.descriptor, data.text);
    else if (call) {
      waiting.delete(data.id);
      call.end(data);
    }
  };
  worker.postMessage({ module });
}

// Runs one command. `print(descriptor, text)` gets its output as it comes.
function ptoc(args, print) {
  return new Promise((end) => {
    const id = ++calls;
    waiting.set(id, { print, end });
    worker.postMessage({ id, args, files: { ...FILES, [`/${name()}`]: text() }, input: "" });
  });
}

// Ends what runs.
function stop() {
  worker.terminate();
  const ended = [...waiting.values()];
  waiting.clear();
  start();
  for (const call of ended) call.end({ status: null, written: [], stopped: true });
}

// ---- The text

const editor = $("editor");
let marks = [];

const text = () => editor.value;
const name = () => $("example").value.split("/").pop();

// One expression of the grammar's rules in their order; the group that matches has the class of its rule.
const GRAMMAR = JSON.parse($("grammar").textContent);
const WORDS = new RegExp(GRAMMAR.map(({ rule }) => `(${rule})`).join("|"), "g");

const escaped = (s) => s.replace(/[&<>"]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]);

// Classes of each character, from the words of the language and from diagnostics.
function shade() {
  const source = text();
  const classes = new Array(source.length).fill("");
  for (const match of source.matchAll(WORDS)) {
    const kind = GRAMMAR[match.slice(1).findIndex((group) => group !== undefined)].kind;
    for (let n = match.index; n < match.index + match[0].length; n++) classes[n] = kind;
  }
  for (const { start, end, severity } of marks) {
    for (let n = start; n < Math.max(end, start + 1) && n < source.length; n++) classes[n] += ` ${severity}`;
  }
  let html = "";
  for (let n = 0; n < source.length; ) {
    let end = n + 1;
    while (end < source.length && classes[end] === classes[n]) end++;
    const part = escaped(source.slice(n, end));
    html += classes[n] ? `<span class="${classes[n]}">${part}</span>` : part;
    n = end;
  }
  $("shade").innerHTML = html + "\n";
  const lines = source.split("\n").length;
  $("lines").textContent = Array.from({ length: lines }, (_, n) => n + 1).join("\n");
  follow();
}

// What lies under the text moves with it.
function follow() {
  $("shade").style.transform = `translate(${-editor.scrollLeft}px, ${-editor.scrollTop}px)`;
  $("lines").style.transform = `translateY(${-editor.scrollTop}px)`;
}

// The index of a place, whose columns count Unicode scalars from 1.
function index(lines, { line, column }) {
  const before = lines.slice(0, line - 1).reduce((n, l) => n + l.length + 1, 0);
  return before + [...(lines[line - 1] ?? "")].slice(0, column - 1).join("").length;
}

let resting = null;

function changed() {
  marks = [];
  shade();
  clearTimeout(resting);
  resting = setTimeout(check, REST);
}

// Marks what is wrong while one types.
async function check() {
  if (!worker) return;
  const source = text();
  let lines = "";
  const target = $("target").value;
  await ptoc(["check", name(), "--target", target, "--message-format", "json"], (descriptor, part) => {
    if (descriptor === 2) lines += part;
  });
  if (source !== text()) return;
  const found = lines.split("\n").filter((line) => line.startsWith("{")).map((line) => JSON.parse(line));
  const rows = source.split("\n");
  const here = found.filter((d) => d.span && d.file === name());
  marks = here.map((d) => ({
    start: index(rows, d.span.start),
    end: index(rows, d.span.end),
    severity: d.severity,
  }));
  const list = here.map((d) => {
    const item = document.createElement("button");
    item.className = `finding ${d.severity}`;
    item.textContent = `${d.span.start.line}: ${d.message}`;
    item.title = `${d.code}: open its page`;
    item.onclick = () => {
      const at = index(rows, d.span.start);
      editor.focus();
      editor.setSelectionRange(at, index(rows, d.span.end));
      editor.scrollTop = (d.span.start.line - 4) * parseFloat(getComputedStyle(editor).lineHeight);
      command(`ptoc explain ${d.code}`);
    };
    return item;
  });
  $("findings").replaceChildren(...list);
  $("findings").dataset.state = found.length === 0 ? "clean" : "found";
  if (found.length === 0) $("findings").textContent = `no errors for ${target}`;
  shade();
}

// ---- Commands

// ANSI colours of the terminal as spans.
function coloured(text) {
  let html = "";
  let style = "";
  for (const part of text.split(/(\x1b\[[0-9;]*m)/)) {
    const code = part.match(/^\x1b\[([0-9;]*)m$/);
    if (!code) {
      html += style ? `<span style="${style}">${escaped(part)}</span>` : escaped(part);
      continue;
    }
    const numbers = code[1].split(";").map(Number);
    for (let n = 0; n < numbers.length; n++) {
      const color = numbers[n];
      if (color === 0) style = "";
      else if (color === 1) style += "font-weight:bold;";
      else if (color === 38 && numbers[n + 1] === 5) {
        style += `color:${palette(numbers[n + 2])};`;
        n += 2;
      } else if (color >= 30 && color <= 37) style += `color:var(--c${color - 30});`;
      else if (color >= 90 && color <= 97) style += `color:var(--c${color - 90});`;
      else if (color === 39) style += "color:inherit;";
    }
  }
  return html;
}

// The 256 colours of terminals.
function palette(n) {
  if (n < 16) return `var(--c${n % 8})`;
  if (n >= 232) return `rgb(${Array(3).fill(8 + 10 * (n - 232)).join()})`;
  const level = (v) => (v === 0 ? 0 : 55 + 40 * v);
  return `rgb(${[Math.floor((n - 16) / 36), Math.floor((n - 16) / 6) % 6, (n - 16) % 6].map(level).join()})`;
}

// Words of a command line; quotes keep blanks.
function words(line) {
  return [...line.matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)].map((m) => m[1] ?? m[2] ?? m[3]);
}

function show(written) {
  for (const [path, bytes] of written) {
    const content = new TextDecoder().decode(bytes);
    if (path.endsWith(".html")) {
      const frame = document.createElement("iframe");
      frame.srcdoc = content;
      frame.title = path;
      $("output").append(frame);
    } else if (path.endsWith(".svg")) {
      const picture = document.createElement("img");
      picture.src = URL.createObjectURL(new Blob([content], { type: "image/svg+xml" }));
      picture.alt = path;
      $("output").append(picture);
    } else {
      const link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob([bytes]));
      link.download = path.slice(1);
      link.textContent = `save ${path.slice(1)}`;
      $("output").append(link);
    }
  }
}

// Runs a line of the command field.
async function command(line) {
  $("command").value = line;
  const [program, ...args] = words(line);
  const output = $("output");
  if (program !== "ptoc") {
    output.textContent = "a command begins with `ptoc`; `ptoc --help` lists what it can do";
    return;
  }
  output.replaceChildren();
  output.dataset.state = "runs";
  $("stop").disabled = false;
  const begin = performance.now();
  const pre = document.createElement("pre");
  output.append(pre);
  let all = "";
  const { status, written, stopped } = await ptoc([...args, "--color", "always"], (_, part) => {
    all += part;
    pre.innerHTML = coloured(all);
  });
  $("stop").disabled = waiting.size === 0;
  show(written);
  const seconds = ((performance.now() - begin) / 1000).toFixed(2);
  $("status").textContent = stopped ? `stopped after ${seconds} s` : `exit ${status ?? "by an error"}, ${seconds} s`;
  output.dataset.state = stopped ? "stopped" : `exit ${status}`;
}

function action(kind) {
  const file = name();
  const target = $("target").value;
  const own = EXAMPLES.find((e) => e.file === $("example").value);
  const lines = {
    check: `ptoc check ${file} --target ${target}`,
    memory: `ptoc mem ${file} ${own?.memory ?? ""} --target ${target} --html memory.html`,
    run: `ptoc run ${file} ${own?.run ?? "--random 1"} --target ${target} --backend interp`,
    pipes: `ptoc run ${file} ${own?.run ?? "--random 1"} --target ${target} --backend interp --html pipes.html`,
    layout: `ptoc layout "composition((8,4):(4,1), (4,2):(1,16))" --svg layout.svg`,
  };
  return lines[kind].replace(/ +/g, " ");
}

// ---- The page

function choose(file) {
  const own = EXAMPLES.find((e) => e.file === file);
  $("example").value = file;
  if (own?.target) $("target").value = own.target;
  editor.value = FILES[`/${file}`] ?? "";
  changed();
  // Test lines and remarks come before the first kernel.
  const before = text().slice(0, text().search(/^(#\[|kernel|program|fn)/m)).split("\n").length - 1;
  editor.scrollTop = before > 8 ? (before - 2) * parseFloat(getComputedStyle(editor).lineHeight) : 0;
}

// `#file=softmax.tile&command=ptoc%20check%20softmax.tile`: an address that can be sent to others.
function follow_address() {
  const asked = new URLSearchParams(location.hash.slice(1));
  choose(asked.get("file") ?? EXAMPLES[0].file);
  if (asked.has("text")) {
    editor.value = asked.get("text");
    changed();
  }
  const line = asked.get("command");
  command(line ?? action("check"));
}

function share() {
  const asked = new URLSearchParams({ file: $("example").value, command: $("command").value });
  if (text() !== FILES[`/${$("example").value}`]) asked.set("text", text());
  location.hash = asked.toString();
  navigator.clipboard?.writeText(location.href);
  $("status").textContent = "the address of this page has the text and the command";
}

function begin() {
  for (const { file, about } of EXAMPLES) $("example").append(new Option(`${file} — ${about}`, file));
  editor.oninput = changed;
  editor.onscroll = follow;
  editor.onkeydown = (e) => {
    if (e.key !== "Tab" || e.shiftKey || e.ctrlKey) return;
    e.preventDefault();
    document.execCommand("insertText", false, "    ");
  };
  $("example").onchange = () => choose($("example").value);
  $("target").onchange = changed;
  for (const button of document.querySelectorAll("button[data-action]")) {
    button.onclick = () => command(action(button.dataset.action));
  }
  $("share").onclick = share;
  $("stop").onclick = stop;
  $("line").onsubmit = (e) => {
    e.preventDefault();
    command($("command").value);
  };
  shade();
  load().then(follow_address, (e) => {
    $("output").textContent = `this browser cannot run the page: ${e.message}`;
    $("output").dataset.state = "failed";
  });
}

begin();
