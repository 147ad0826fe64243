// What the web views and the terminal get.

import assert from "node:assert/strict";
import { test } from "node:test";

import { framed, problem, quoted, runCommand } from "../src/views";

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
