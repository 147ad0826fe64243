// The packaged extension in a real editor, with the real server: needs code-server (an npm package), Chromium and ptoc.
//
//   npm run package
//   CODE_SERVER=.../code-server/out/node/entry.js PTOC=$PWD/../../target/debug/ptoc CHROMIUM=/usr/bin/chromium npm run editor
//
// Opens a kernel with a mistake, sees it underlined, takes it away, looks at hover, completion, lenses, and the memory map; runs a test
// line from the test explorer; debugs a kernel: a breakpoint, the tile's values and picture, steps forwards and back. Leaves a screenshot
// of each in $SHOTS. Ends with an error where something does not appear.

import { spawn, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";

const { CODE_SERVER, PTOC, CHROMIUM = "/usr/bin/chromium", PORT = "18999" } = process.env;
if (!CODE_SERVER || !PTOC) {
  throw new Error("CODE_SERVER and PTOC say where code-server's entry.js and ptoc are");
}
const home = mkdtempSync(join(tmpdir(), "ptoc-editor-"));
// However it ends. What the server still writes while it ends may come in between, so it is tried again.
process.on("exit", () => rmSync(home, { recursive: true, force: true, maxRetries: 10, retryDelay: 200 }));
const shots = process.env.SHOTS ?? home;
const [work, data, extensions] = ["work", "data", "extensions"].map((n) => join(home, n));
mkdirSync(work);
mkdirSync(join(data, "User"), { recursive: true });
mkdirSync(shots, { recursive: true });
writeFileSync(join(work, "scale.tile"), `kernel scale(x: in f32[M, N], y: out f32[M, N])
    ensures y[i, j] == 2.0 * x[i, j]
{
    const ROWS = (4, 8):(8, 1);
    grid (i in tiles(M, 16), j in tiles(N, 64));
    let t = tile Vec<f32, i, j>;
    TLOAD(t, x.tile(i, j));
    TADDZ(t, t, t);
    TSTORE(y.tile(i, j), t);
}
`);
writeFileSync(join(work, "twice.tile"), `// run: twice interp,cpu M=20 N=70 seed=1
kernel twice(x: in f32[M, N], y: out f32[M, N])
    ensures y[i, j] == 2.0 * x[i, j]
{
    grid (i in tiles(M, 16), j in tiles(N, 64));
    let t = tile Vec<f32, i, j>;
    TLOAD(t, x.tile(i, j));
    TADD(t, t, t);
    TSTORE(y.tile(i, j), t);
}
`);
// Where a program lies is a setting of the machine that it is on.
mkdirSync(join(data, "Machine"));
writeFileSync(join(data, "Machine/settings.json"), JSON.stringify({ "ptoc.path": PTOC }));
writeFileSync(join(data, "User/settings.json"), JSON.stringify({
  "ptoc.hints": { addresses: false }, "security.workspace.trust.enabled": false, "workbench.startupEditor": "none", "editor.minimap.enabled": false,
}));

const options = [CODE_SERVER, "--user-data-dir", data, "--extensions-dir", extensions];
const installed = spawnSync(process.execPath, [...options, "--install-extension", join(import.meta.dirname ?? "test", "../ptoc.vsix")]);
if (installed.status !== 0) {
  throw new Error(`the extension is not installed: ${installed.stdout}${installed.stderr}`);
}
const server = spawn(process.execPath, [...options, "--auth", "none", "--bind-addr", `127.0.0.1:${PORT}`, "--disable-telemetry", "--disable-update-check"], { stdio: "ignore", detached: true });
const browser = await chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking"] });

try {
  const page = await browser.newPage({ viewport: { width: 1300, height: 800 } });
  const shot = (name) => page.screenshot({ path: join(shots, `${name}.png`) });
  const command = async (title) => {
    await page.keyboard.press("F1");
    await page.waitForSelector(".quick-input-widget input[type=text]:visible, .quick-input-widget input.input:visible");
    await page.keyboard.type(title);
    await page.locator(".quick-input-list .monaco-list-row", { hasText: title }).first().click();
  };
  const goto = async (place) => {
    await page.keyboard.press("Control+G");
    await page.waitForSelector(".quick-input-widget input[type=text]:visible, .quick-input-widget input.input:visible");
    await page.keyboard.type(place);
    await page.keyboard.press("Enter");
  };
  const step = async (name, test) => {
    try {
      await test();
    } catch (why) {
      await shot("failed");
      throw new Error(`${name}: ${why.message}`);
    }
    console.log(`ok: ${name}`);
  };
  for (let tries = 0; ; tries++) {
    try {
      await page.goto(`http://127.0.0.1:${PORT}/?folder=${work}`);
      break;
    } catch (why) {
      if (tries === 60) throw why;
      await page.waitForTimeout(500);
    }
  }
  await page.waitForSelector(".monaco-workbench", { timeout: 60000 });
  await page.locator(".explorer-folders-view .monaco-list-row", { hasText: "scale.tile" }).dblclick({ timeout: 60000 });

  await step("a mistake is underlined", () => page.waitForSelector(".squiggly-error", { timeout: 60000 }));
  await shot("mistake");
  await step("its fix is offered, and takes it away", async () => {
    await goto("8:7");
    await page.locator(".codelens-decoration", { hasText: "has errors" }).first().waitFor({ timeout: 20000 });
    await page.waitForTimeout(1500);
    await page.keyboard.press("Control+.");
    await page.waitForSelector(".action-widget", { timeout: 20000 });
    await shot("fixes");
    await page.keyboard.press("Enter");
    await page.waitForSelector(".squiggly-error", { state: "detached", timeout: 20000 });
  });
  await step("hover tells a tile's bytes", async () => {
    await goto("6:9");
    await page.keyboard.press("Control+K");
    await page.keyboard.press("Control+I");
    await page.locator(".monaco-hover", { hasText: "bytes" }).first().waitFor({ timeout: 20000 });
    await page.waitForTimeout(500);
    await shot("hover");
    await page.keyboard.press("Escape");
  });
  await step("hints are those of the settings", async () => {
    const line = page.locator(".view-line", { hasText: "tile Vec" }).first();
    await page.waitForFunction((e) => e.textContent.includes("4096"), await line.elementHandle());
    if ((await line.textContent()).includes("0x0")) throw new Error("there is an address");
  });
  await step("lenses stand above the kernel", () => page.locator(".codelens-decoration", { hasText: "a2a3" }).first().waitFor({ timeout: 20000 }));
  await step("completion knows instructions", async () => {
    await goto("9:1");
    await page.keyboard.press("Control+Enter");
    await page.keyboard.type("TROWS", { delay: 60 });
    await page.locator(".suggest-widget .monaco-list-row", { hasText: "TROWSUM" }).first().waitFor({ timeout: 20000 });
    await shot("completion");
    await page.keyboard.press("Escape");
    await page.keyboard.press("Control+Shift+K");
    await page.waitForSelector(".squiggly-error", { state: "detached", timeout: 20000 });
  });
  await step("the memory map opens beside the text", async () => {
    await goto("6:9");
    await command("ptoc: Show memory map");
    const inner = page.frameLocator("iframe.webview.ready").frameLocator("iframe");
    await inner.locator("svg").first().waitFor({ timeout: 30000 });
    await page.waitForTimeout(500);
    await shot("map");
  });
  await step("the picture of a layout opens beside the text", async () => {
    await page.locator(".explorer-folders-view .monaco-list-row", { hasText: "scale.tile" }).dblclick();
    await goto("4:11");
    await command("ptoc: Show picture of a layout");
    const inner = page.frameLocator("iframe.webview.ready >> nth=-1").frameLocator("iframe");
    await inner.locator("h1", { hasText: "(4,8):(8,1)" }).first().waitFor({ timeout: 30000 });
    await page.waitForTimeout(500);
    await shot("layout");
  });
  await command("View: Close All Editors");
  await page.locator(".explorer-folders-view .monaco-list-row", { hasText: "twice.tile" }).dblclick();
  await step("a test line has its result beside it", async () => {
    await page.locator(".testing-run-glyph").first().waitFor({ timeout: 30000 });
    await command("Test: Run All Tests");
    await page.locator(".testing-run-glyph.codicon-testing-passed-icon").first().waitFor({ timeout: 30000 });
    await shot("tests");
    await page.keyboard.press("Escape");
  });
  const stopped = (line) => page.waitForFunction((line) => {
    const top = document.querySelector(".debug-top-stack-frame-line");
    const numbers = [...document.querySelectorAll(".margin-view-overlays .line-numbers")];
    const number = top && numbers.find((n) => Math.abs(n.getBoundingClientRect().top - top.getBoundingClientRect().top) < 4);
    return number?.textContent === line;
  }, line, { timeout: 30000 });
  await step("the debugger stops at a breakpoint", async () => {
    await goto("8:5");
    await page.keyboard.press("F9");
    await page.waitForSelector(".codicon-debug-breakpoint", { timeout: 20000 });
    await page.keyboard.press("F5");
    await page.waitForSelector(".debug-toolbar", { timeout: 30000 });
    await page.waitForSelector(".debug-top-stack-frame-line", { timeout: 30000 });
    await shot("entry");
    await page.keyboard.press("F5");
    await stopped("8");
    await page.locator(".debug-variables .monaco-list-row", { hasText: "t" }).first().waitFor({ timeout: 20000 });
    await shot("breakpoint");
  });
  await step("it steps forwards and back", async () => {
    await page.keyboard.press("F10");
    await stopped("9");
    await shot("step");
    await page.locator(".debug-toolbar .codicon-debug-step-back").click();
    await stopped("8");
  });
  await step("a tile is shown as a picture", async () => {
    const row = page.locator(".debug-variables .monaco-list-row", { hasText: /^t\b/ }).first();
    const entry = page.locator(".monaco-menu .action-label", { hasText: "Show tile as a picture" }).first();
    // The rows are drawn anew after a stop, and a menu on an old one closes.
    for (let tries = 0; tries < 10 && !(await entry.isVisible()); tries++) {
      await page.waitForTimeout(1000);
      await row.click({ button: "right", force: true, timeout: 5000 }).catch(() => {});
      await page.waitForTimeout(500);
    }
    await entry.hover({ timeout: 20000 });
    await page.waitForTimeout(500);
    await page.keyboard.press("Enter");
    const inner = page.frameLocator("iframe.webview.ready >> nth=-1").frameLocator("iframe");
    await inner.locator("svg").first().waitFor({ timeout: 30000 });
    await page.waitForTimeout(500);
    await shot("tile");
  });
  await step("the run ends", async () => {
    await page.keyboard.press("Shift+F5");
    await page.waitForSelector(".debug-toolbar", { state: "hidden", timeout: 30000 });
  });
} finally {
  await browser.close();
  // With what it has started.
  process.kill(-server.pid);
}
if (process.env.SHOTS) {
  console.log(`screenshots: ${shots}`);
}
