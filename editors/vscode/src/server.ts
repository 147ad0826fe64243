// The connection to `ptoc lsp`.

import { workspace } from "vscode";
import { LanguageClient, type LanguageClientOptions, type ServerOptions } from "vscode-languageclient/node";

/** What the settings of the editor say to the server. */
export interface Settings {
  /** Nothing: the project's, or the default. */
  target?: string;
  define: string[];
  hints: Record<string, boolean>;
}

export function settings(): Settings {
  const here = workspace.getConfiguration("ptoc");
  return { target: here.get<string | null>("target") || undefined, define: here.get<string[]>("define", []), hints: here.get("hints", {}) };
}

export function program(): string {
  return workspace.getConfiguration("ptoc").get("path", "ptoc");
}

export function client(): LanguageClient {
  const run = { command: program(), args: ["lsp"] };
  const server: ServerOptions = { run, debug: run };
  const options: LanguageClientOptions = {
    documentSelector: [{ language: "tile" }],
    initializationOptions: settings(),
    synchronize: { fileEvents: workspace.createFileSystemWatcher("**/{*.tile,ptoc.toml}") },
  };
  return new LanguageClient("ptoc", "ptoc", server, options);
}
