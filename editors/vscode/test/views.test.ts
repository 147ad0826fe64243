// What the web views and the terminal get.

import assert from "node:assert/strict";
import { test } from "node:test";

import { results } from "../src/results";
import { framed, kernels, problem, quoted, runCommand, runLine, testLines } from "../src/views";

test("a page may run its own scripts and load nothing", () => {
  const page = framed("<html><head><title>t</title></head><body><script>go()</script></body></html>", "abc");
  assert.match(page, /<head><meta http-equiv="Content-Security-Policy" content="default-src 'none';[^"]*'nonce-abc'/);
  assert.match(page, /<script nonce="abc">go\(\)<\/script>/);
});

test("a reason is text, whatever it holds", () => {
  const page = problem('tile `t<"x">` & more');
  assert.ok(page.includes("tile `t&lt;&quot;x&quot;&gt;` &amp; more"));
});

test("a command line survives spaces and quotes", () => {
  assert.equal(quoted("BM=64"), "BM=64");
  assert.equal(quoted("it's here"), "'it'\\''s here'");
  assert.equal(
    runCommand("ptoc", "/my kernels/a.tile", "add", "a5", ["M=16", "capacity.Vec=0x1000"]),
    "ptoc run '/my kernels/a.tile' add --target a5 -D M=16 -D capacity.Vec=0x1000",
  );
});

test("test lines are found, without their remarks", () => {
  const text = "// run: add interp,cpu M=64 seed=3 rtol=1e-3   // one block\n  // check: add SA-0353 target=a5\n// running\n// trap: add PA-1013";
  assert.deepEqual(testLines(text), [
    { line: 0, word: "run", text: "add interp,cpu M=64 seed=3 rtol=1e-3" },
    { line: 1, word: "check", text: "add SA-0353 target=a5" },
    { line: 3, word: "trap", text: "add PA-1013" },
  ]);
});

test("a run line is a launch", () => {
  assert.deepEqual(runLine("add   interp,cpu M=64 T=f16 a=data/a.npy c==data/c.npy capacity.Vec=0x100 seed=3 rtol=1e-3 target=a5"), {
    kernel: "add", define: { M: "64", T: "f16", "capacity.Vec": "0x100" }, inputs: { a: "data/a.npy" }, random: 3, target: "a5",
  });
});

test("kernels have names, and results lines", () => {
  assert.deepEqual(kernels("kernel a<const N>(x) {}\nprogram b() {}"), ["a", "b"]);
  assert.equal(results("error: nothing"), undefined);
  assert.equal(results('{"lines": [{"line": 3, "result": "passed"}]}')?.[0].line, 3);
});
