// What ptoc answers beyond the Language Server Protocol: spec/lsp.md has the page of each request.

/** A text and, where the answer is about one kernel, a place in it. Lines and characters count from 0. */
export interface At {
  textDocument: { uri: string };
  position?: { line: number; character: number };
}

export const MEMORY_MAP = "ptoc/memoryMap";
export const IR = "ptoc/ir";
export const LAYOUT = "ptoc/layout";
export const PIM = "ptoc/pim";

export interface IrParams extends At {
  stage: string;
}

/** Pages are whole HTML documents that load nothing; texts are plain. */
export interface Page {
  title: string;
  html: string;
}

export interface Text {
  title: string;
  text: string;
  /** Of a command stream: what its execution costs. */
  cost?: string;
}
