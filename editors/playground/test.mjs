// Drives the playground in a headless Chromium, by the DevTools protocol over a pipe.
//
// usage: node editors/playground/test.mjs playground.html [--browser chromium] [--pictures DIR]

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { browser: { type: "string", default: "chromium" }, pictures: { type: "string" } },
});
const page = pathToFileURL(resolve(positionals[0])).href;
// Far longer than anything takes, in milliseconds.
const PATIENCE = 60_000;

class Browser {
  constructor() {
    this.profile = mkdtempSync(join(tmpdir(), "playground-"));
    // No network: what the page needs, it has.
    const flags = ["--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", "--window-size=1500,950"];
    const offline = ["--host-resolver-rules=MAP * ~NOTFOUND", `--user-data-dir=${this.profile}`];
    this.process = spawn(values.browser, [...flags, ...offline, "about:blank"], {
      stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"],
    });
    this.calls = new Map();
    this.number = 0;
    let text = "";
    this.process.stdio[4].on("data", (part) => {
      text += part;
      const messages = text.split("\0");
      text = messages.pop();
      for (const message of messages.map((m) => JSON.parse(m))) {
        const call = this.calls.get(message.id);
        this.calls.delete(message.id);
        if (message.error) call?.reject(new Error(message.error.message));
        else call?.resolve(message.result);
      }
    });
  }

  send(method, params = {}) {
    const id = ++this.number;
    this.process.stdio[3].write(JSON.stringify({ id, method, params, sessionId: this.session }) + "\0");
    return new Promise((resolve, reject) => this.calls.set(id, { resolve, reject }));
  }

  async open(url) {
    if (!this.session) {
      const { targetInfos } = await this.send("Target.getTargets");
      const { targetId } = targetInfos.find((t) => t.type === "page");
      this.session = (await this.send("Target.attachToTarget", { targetId, flatten: true })).sessionId;
    }
    await this.send("Page.navigate", { url: "about:blank" });
    await this.send("Page.navigate", { url });
  }

  async value(expression) {
    const { result, exceptionDetails } = await this.send("Runtime.evaluate", { expression, returnByValue: true, awaitPromise: true });
    assert(!exceptionDetails, JSON.stringify(exceptionDetails));
    return result.value;
  }

  // Waits until an expression is true.
  async until(expression) {
    const begin = Date.now();
    // What it asks about may not be there yet.
    while (!(await this.value(`(() => { try { return !!(${expression}); } catch { return false; } })()`))) {
      assert(Date.now() - begin < PATIENCE, `does not come: ${expression}`);
      await new Promise((r) => setTimeout(r, 50));
    }
  }

  async picture(name) {
    if (!values.pictures) return;
    const { data } = await this.send("Page.captureScreenshot", { format: "png" });
    writeFileSync(join(values.pictures, `${name}.png`), Buffer.from(data, "base64"));
  }

  async close() {
    this.process.kill();
    await new Promise((r) => this.process.once("exit", r));
    rmSync(this.profile, { recursive: true, force: true });
  }
}

const browser = new Browser();
const output = "document.getElementById('output')";
const address = (file, command) => `${page}#${new URLSearchParams({ file, command })}`;
const press = (action) => browser.value(`document.querySelector('[data-action=${action}]').click()`);
const ended = async (status) => {
  await browser.until(`${output}.dataset.state.startsWith('exit')`);
  assert.equal(await browser.value(`${output}.dataset.state`), `exit ${status}`, await browser.value(`${output}.innerText`));
  return browser.value(`${output}.innerText`);
};

const tests = {
  // The first page has a kernel that does not fit, with the lines of what is alive.
  async "an error of capacity"() {
    await browser.open(page);
    const text = await ended(1);
    assert.match(text, /error\[E0401\]/);
    assert.match(text, /393216 bytes of UB/);
    await browser.until("document.querySelector('.finding.error')");
    assert.equal(await browser.value("document.querySelectorAll('#shade .error').length > 0"), true);
    await browser.picture("capacity");
  },
  async "the text is checked while it is edited"() {
    await browser.value(`(() => {
      const editor = document.getElementById("editor");
      editor.value = editor.value.replace("BN = 512", "BN = 128");
      editor.dispatchEvent(new Event("input"));
    })()`);
    await browser.until("document.getElementById('findings').dataset.state === 'clean'");
    await press("run");
    assert.match(await ended(0), /y: f32\[100, 300\]/);
  },
  async "a map of the memories"() {
    await browser.open(address("gemm.tile", "ptoc mem gemm.tile gemm --html memory.html"));
    await ended(0);
    await browser.until(`${output}.querySelector('iframe').contentDocument.body.innerText.includes('L0C')`);
    await browser.picture("memory");
  },
  async "softmax runs"() {
    const command = "ptoc run softmax.tile softmax --random 1 -D M=20 -D N=100 --verify --rtol 1e-5 --backend interp";
    await browser.open(address("softmax.tile", command));
    assert.match(await ended(0), /y: f32\[20, 100\]/);
    await browser.picture("softmax");
  },
  async "a missing wait is found"() {
    await browser.open(address("race.tile", "ptoc check race.tile"));
    assert.match(await ended(1), /insert `wait\(done\[b\]\);` before TMULS/);
  },
  async "pipes over time"() {
    await browser.open(address("double_buffer.tile", "ptoc check double_buffer.tile"));
    await ended(0);
    await press("pipes");
    await ended(0);
    await browser.until(`${output}.querySelector('iframe').contentDocument.body.innerText.includes('MTE2')`);
    await browser.picture("pipes");
  },
  async "a layout is drawn"() {
    await press("layout");
    await ended(0);
    await browser.until(`${output}.querySelector('img').naturalWidth > 0`);
    await browser.picture("layout");
  },
  async "pages of codes, and mistakes"() {
    await browser.open(address("first.tile", "ptoc explain E0401"));
    assert.match(await ended(0), /E0401/);
    await browser.value("command('ptoc frobnicate')");
    await ended(2);
    await browser.value("command('rm -rf /')");
    await browser.until(`${output}.innerText.includes('begins with')`);
  },
  async "a run that is stopped"() {
    const long = "kernel long(y: out f32[8, 64]) {\n    let t = tile Vec<f32, 8, 64>;\n    t = 0.0;\n" +
      "    for i in 0..1000000000 { TADDS(t, t, 1.0); }\n    TSTORE(y, t);\n}\n";
    const asked = new URLSearchParams({ file: "first.tile", text: long, command: "ptoc targets" });
    await browser.open(`${page}#${asked}`);
    await ended(0);
    await browser.value("void command('ptoc run first.tile --backend interp')");
    await browser.until(`${output}.dataset.state === 'runs'`);
    await browser.value("document.getElementById('stop').click()");
    await browser.until(`${output}.dataset.state === 'stopped'`);
    await browser.value("command('ptoc targets')");
    assert.match(await ended(0), /a2a3/);
  },
};

let failed = 0;
try {
  for (const [name, test] of Object.entries(tests)) {
    try {
      await test();
      console.log(`ok ${name}`);
    } catch (e) {
      failed++;
      console.log(`FAILED ${name}: ${e.message}`);
    }
  }
} finally {
  await browser.close();
}
process.exit(failed === 0 ? 0 : 1);
