// The debugger: `ptoc dap` as its adapter, pictures of tiles, the way back to the last write.

import { randomBytes } from "node:crypto";
import { dirname } from "node:path";
import {
  DebugAdapterExecutable, type DebugConfiguration, type ExtensionContext, Uri, ViewColumn, commands, debug, window, workspace,
} from "vscode";

import type { At } from "./requests";
import { program, settings } from "./server";
import { framed, kernels, problem, runLine, testLines } from "./views";

const TYPE = "ptoc";

/** A variable, as the menu of the variables' view gives it. */
interface Chosen {
  variable?: { name: string; evaluateName?: string };
}

interface Picture {
  title: string;
  svg: string;
}

export function registerDebugger(context: ExtensionContext): void {
  context.subscriptions.push(
    debug.registerDebugAdapterDescriptorFactory(TYPE, {
      createDebugAdapterDescriptor: () => new DebugAdapterExecutable(program(), ["dap"]),
    }),
    debug.registerDebugConfigurationProvider(TYPE, {
      // F5 without a configuration: the text in front.
      resolveDebugConfiguration: async (_folder, configuration) => {
        if (configuration.type || configuration.request) {
          return configuration;
        }
        const document = window.activeTextEditor?.document;
        return document?.languageId === "tile" ? configured(document.fileName, document.getText()) : undefined;
      },
    }),
    commands.registerCommand("ptoc.showTile", (chosen?: Chosen) => showTile(chosen)),
    commands.registerCommand("ptoc.lastWrite", (chosen?: Chosen) => lastWrite(chosen)),
  );
}

/** A configuration for a kernel of a text: as its first `// run:` line has it, if there is one. */
async function configured(file: string, text: string, kernel?: string): Promise<DebugConfiguration | undefined> {
  const all = kernels(text);
  const name = kernel ?? (all.length > 1 ? await window.showQuickPick(all, { title: "Debug which kernel?" }) : all[0]);
  if (!name) {
    return undefined;
  }
  const runs = testLines(text).filter((line) => line.word === "run").map((line) => runLine(line.text));
  const like = runs.find((line) => line.kernel === name);
  const here = settings();
  const given = Object.fromEntries(here.define.map((d) => [d.slice(0, d.indexOf("=")), d.slice(d.indexOf("=") + 1)]));
  return {
    type: TYPE, request: "launch", name: `Debug ${name}`, program: file, kernel: name, target: like?.target ?? here.target,
    define: { ...given, ...like?.define }, inputs: like?.inputs, cwd: dirname(file), random: like?.random ?? 1, stopOnEntry: true,
  };
}

/** Debugs the kernel of a code lens, or of the text in front. */
export async function debugKernel(at: At | undefined, kernel: string | undefined): Promise<void> {
  if (!at) {
    return;
  }
  const document = await workspace.openTextDocument(Uri.parse(at.textDocument.uri));
  await document.save();
  const configuration = await configured(document.fileName, document.getText(), kernel);
  if (configuration) {
    await debug.startDebugging(workspace.getWorkspaceFolder(document.uri), configuration);
  }
}

/** Debugs what a `// run:` line runs. */
export async function debugLine(file: Uri, text: string): Promise<void> {
  const { kernel, define, inputs, random, target } = runLine(text);
  await debug.startDebugging(workspace.getWorkspaceFolder(file), {
    type: TYPE, request: "launch", name: `Debug ${kernel}`, program: file.fsPath, kernel, define, inputs, random,
    cwd: dirname(file.fsPath), target: target ?? settings().target, stopOnEntry: true,
  });
}

/** The expression that a menu is about; without one, the user is asked. */
async function expression(chosen: Chosen | undefined, title: string): Promise<string | undefined> {
  return chosen?.variable?.evaluateName ?? chosen?.variable?.name ?? window.showInputBox({ title, placeHolder: "x, or x[0..8, 0..8]" });
}

/** The frame whose names count. */
function frame(): number | undefined {
  // From 1.90 on.
  const item = (debug as { activeStackItem?: { frameId?: number } }).activeStackItem;
  return item?.frameId;
}

async function showTile(chosen: Chosen | undefined): Promise<void> {
  const session = debug.activeDebugSession;
  const what = session && (await expression(chosen, "Show which tile?"));
  if (!session || !what) {
    return;
  }
  const panel = window.createWebviewPanel("ptoc.tile", what, { viewColumn: ViewColumn.Beside, preserveFocus: true });
  try {
    const picture: Picture = await session.customRequest("ptoc/picture", { expression: what, frameId: frame() });
    panel.title = what;
    panel.webview.html = framed(`<html><head></head><body>${picture.svg}</body></html>`, randomBytes(16).toString("hex"));
  } catch (why) {
    panel.webview.html = problem(why instanceof Error ? why.message : String(why));
  }
}

async function lastWrite(chosen: Chosen | undefined): Promise<void> {
  const session = debug.activeDebugSession;
  const what = session && (await expression(chosen, "The last write of what?"));
  if (session && what) {
    await session.customRequest("ptoc/lastWrite", { expression: what, frameId: frame() });
  }
}
