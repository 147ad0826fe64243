// The extension: the language server, commands for what only ptoc shows, the debugger, tests.

import { randomBytes } from "node:crypto";
import {
  type ExtensionContext, type TextEditor, Uri, ViewColumn, commands, window, workspace,
} from "vscode";
import type { LanguageClient } from "vscode-languageclient/node";

import { debugKernel, registerDebugger } from "./debug";
import { type At, IR, type IrParams, LAYOUT, MEMORY_MAP, PIM, type Page, type Text } from "./requests";
import { client as connect, program, settings } from "./server";
import { registerTests } from "./tests";
import { framed, kernels, problem, runCommand } from "./views";

let server: LanguageClient | undefined;

export async function activate(context: ExtensionContext): Promise<void> {
  const on = (name: string, run: (...args: never[]) => Promise<void>): void => {
    context.subscriptions.push(commands.registerCommand(name, run));
  };
  on("ptoc.showMemoryMap", (at?: At) => show(MEMORY_MAP, "Memory map", at));
  on("ptoc.showLayout", (at?: At) => show(LAYOUT, "Layout", at));
  on("ptoc.showIr", (at?: At, stage?: string) => showIr(at, stage));
  on("ptoc.showPim", (at?: At) => showText(PIM, at));
  on("ptoc.run", (at?: At, kernel?: string) => run(at, kernel));
  on("ptoc.debug", async (at?: At, kernel?: string) => debugKernel(place(at), kernel));
  on("ptoc.restart", restart);
  registerDebugger(context);
  registerTests(context);
  context.subscriptions.push(
    // Modules of the standard library and the pages of codes: the server has their texts.
    workspace.registerTextDocumentContentProvider("ptoc-std", {
      provideTextDocumentContent: async (uri) => {
        const answer = await server?.sendRequest<{ text: string }>("workspace/textDocumentContent", { uri: uri.toString() });
        return answer?.text;
      },
    }),
    workspace.onDidChangeConfiguration(async (change) => {
      if (change.affectsConfiguration("ptoc.path")) {
        await restart();
      } else if (change.affectsConfiguration("ptoc")) {
        await server?.sendNotification("workspace/didChangeConfiguration", { settings: { ptoc: settings() } });
      }
    }),
  );
  await start();
}

export async function deactivate(): Promise<void> {
  await server?.stop();
}

async function start(): Promise<void> {
  server = connect();
  try {
    await server.start();
  } catch (why) {
    const settingsButton = "Open settings";
    const message = `\`${program()} lsp\` does not start: ${reason(why)}. Set ptoc.path to the ptoc program.`;
    // Not awaited: the message stays until somebody reads it, and the extension is up without the server.
    void window.showErrorMessage(message, settingsButton).then((chosen) => {
      if (chosen === settingsButton) {
        void commands.executeCommand("workbench.action.openSettings", "ptoc.path");
      }
    });
  }
}

async function restart(): Promise<void> {
  await server?.stop().catch(() => undefined);
  await start();
}

function reason(why: unknown): string {
  return why instanceof Error ? why.message : String(why);
}

/** The place that a code lens gave, or where the cursor is. */
function place(given: At | undefined): At | undefined {
  if (given?.textDocument) {
    return given;
  }
  const editor: TextEditor | undefined = window.activeTextEditor;
  if (editor?.document.languageId !== "tile") {
    void window.showInformationMessage("This needs the text of a kernel in front.");
    return undefined;
  }
  const { line, character } = editor.selection.active;
  return { textDocument: { uri: editor.document.uri.toString() }, position: { line, character } };
}

/** A page in a web view beside the text; instead of it, the reason why there is none. */
async function show(method: string, title: string, given: At | undefined): Promise<void> {
  const at = place(given);
  if (!at) {
    return;
  }
  const panel = window.createWebviewPanel(method, title, { viewColumn: ViewColumn.Beside, preserveFocus: true }, { enableScripts: true });
  try {
    const page = await server!.sendRequest<Page>(method, at);
    panel.title = page.title;
    panel.webview.html = framed(page.html, randomBytes(16).toString("hex"));
  } catch (why) {
    panel.webview.html = problem(reason(why));
  }
}

async function showText(method: string, given: At | undefined, more: object = {}): Promise<void> {
  const at = place(given);
  if (!at) {
    return;
  }
  try {
    const { text, cost } = await server!.sendRequest<Text>(method, { ...at, ...more });
    const content = cost ? `${cost}\n${text}` : text;
    const document = await workspace.openTextDocument({ content, language: "plaintext" });
    await window.showTextDocument(document, { viewColumn: ViewColumn.Beside, preserveFocus: true });
  } catch (why) {
    void window.showErrorMessage(reason(why));
  }
}

const STAGES = ["ast", "ir", "placed", "sync", "loop", "clif", "asm"];

async function showIr(given: At | undefined, stage: string | undefined): Promise<void> {
  const chosen = stage ?? (await window.showQuickPick(STAGES, { title: "IR after which stage?" }));
  if (chosen) {
    await showText(IR, given, { stage: chosen } satisfies Partial<IrParams>);
  }
}

async function run(given: At | undefined, kernel: string | undefined): Promise<void> {
  const at = place(given);
  if (!at) {
    return;
  }
  const document = await workspace.openTextDocument(Uri.parse(at.textDocument.uri));
  const name = kernel ?? (await window.showInputBox({ title: "Which kernel?", value: kernels(document.getText())[0] }));
  if (name) {
    await document.save();
    const { target, define } = settings();
    const terminal = window.terminals.find((t) => t.name === "ptoc") ?? window.createTerminal("ptoc");
    terminal.show(true);
    terminal.sendText(runCommand(program(), document.fileName, name, target, define));
  }
}
