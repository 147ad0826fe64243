// The test explorer: `// run:`, `// check:` and `// trap:` lines, run by `ptoc test`.

import { execFile } from "node:child_process";
import {
  type CancellationToken, type ExtensionContext, Position, Range, type TestController, type TestItem, TestMessage, type TestRun,
  TestRunProfileKind, type TestRunRequest, type Uri, tests, workspace,
} from "vscode";

import { debugLine } from "./debug";
import { program } from "./server";
import { type TestResult, results } from "./results";
import { testLines } from "./views";

export function registerTests(context: ExtensionContext): void {
  const controller = tests.createTestController("ptoc", "ptoc: test lines");
  const watcher = workspace.createFileSystemWatcher("**/*.tile");
  const read = async (uri: Uri): Promise<void> => {
    const open = workspace.textDocuments.find((d) => d.uri.toString() === uri.toString());
    discover(controller, uri, open?.getText() ?? new TextDecoder().decode(await workspace.fs.readFile(uri)));
  };
  controller.resolveHandler = async (item) => {
    if (!item) {
      for (const uri of await workspace.findFiles("**/*.tile")) {
        await read(uri);
      }
    }
  };
  controller.createRunProfile("Run", TestRunProfileKind.Run, (request, token) => run(controller, request, token), true);
  controller.createRunProfile("Debug", TestRunProfileKind.Debug, async (request) => {
    const line = request.include?.find((item) => item.uri && item.description === "run");
    if (line?.uri) {
      await debugLine(line.uri, line.label);
    }
  });
  context.subscriptions.push(
    controller,
    watcher,
    watcher.onDidCreate(read),
    watcher.onDidChange(read),
    watcher.onDidDelete((uri) => controller.items.delete(uri.toString())),
    workspace.onDidOpenTextDocument((d) => d.languageId === "tile" && discover(controller, d.uri, d.getText())),
    workspace.onDidChangeTextDocument(({ document: d }) => d.languageId === "tile" && discover(controller, d.uri, d.getText())),
  );
  workspace.textDocuments.filter((d) => d.languageId === "tile").forEach((d) => discover(controller, d.uri, d.getText()));
}

/** An item for the file, and one for each of its test lines. */
function discover(controller: TestController, uri: Uri, text: string): void {
  const lines = testLines(text);
  if (lines.length === 0) {
    controller.items.delete(uri.toString());
    return;
  }
  const file = controller.createTestItem(uri.toString(), workspace.asRelativePath(uri), uri);
  for (const { line, word, text } of lines) {
    const item = controller.createTestItem(`${uri}:${line}`, text || word, uri);
    item.description = word;
    item.range = new Range(new Position(line, 0), new Position(line, 0));
    file.children.add(item);
  }
  controller.items.add(file);
}

async function run(controller: TestController, request: TestRunRequest, token: CancellationToken): Promise<void> {
  const wanted = request.include ?? [...controller.items].map(([, item]) => item);
  const run = controller.createTestRun(request);
  // One call a file: what is there is tested, and the lines that were not asked for are left alone.
  const files = new Map<string, { uri: Uri; items: TestItem[] }>();
  for (const item of wanted.flatMap((w) => (w.children.size > 0 ? [...w.children].map(([, child]) => child) : [w]))) {
    if (item.uri) {
      const file = files.get(item.uri.toString()) ?? { uri: item.uri, items: [] };
      file.items.push(item);
      files.set(item.uri.toString(), file);
    }
  }
  for (const { uri, items } of files.values()) {
    if (token.isCancellationRequested) {
      break;
    }
    await document(uri)?.save();
    items.forEach((item) => run.started(item));
    tell(run, items, await call(uri, items, token));
  }
  run.end();
}

function document(uri: Uri) {
  return workspace.textDocuments.find((d) => d.uri.toString() === uri.toString());
}

function call(uri: Uri, items: TestItem[], token: CancellationToken): Promise<TestResult[] | string> {
  const filters = items.flatMap((item) => ["--filter", item.label]);
  return new Promise((resolve) => {
    const child = execFile(program(), ["test", uri.fsPath, "--json", ...filters], { maxBuffer: 1 << 26 }, (error, out, err) => {
      const found = results(out);
      resolve(found ?? (err || error?.message || "`ptoc test` has said nothing"));
    });
    token.onCancellationRequested(() => child.kill());
  });
}

function tell(run: TestRun, items: TestItem[], found: TestResult[] | string): void {
  for (const item of items) {
    if (typeof found === "string") {
      run.errored(item, new TestMessage(found));
      continue;
    }
    const result = found.find((r) => r.line === (item.range?.start.line ?? -1) + 1);
    switch (result?.result) {
      case undefined:
      case "skipped":
        run.skipped(item);
        break;
      case "passed":
        run.passed(item, result?.ms);
        break;
      default:
        run.failed(item, new TestMessage(result?.reason || "it failed"), result?.ms);
    }
  }
}
