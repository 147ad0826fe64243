// What the web views show. Pure: text in, HTML out, so that tests see what a user sees without an editor.

const POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'nonce-NONCE'; img-src data:";

/** A page of ptoc inside of a web view: its own scripts run, and nothing is loaded from anywhere. */
export function framed(html: string, nonce: string): string {
  const policy = `<meta http-equiv="Content-Security-Policy" content="${POLICY.replace("NONCE", nonce)}">`;
  const allowed = html.replace(/<script(?=[\s>])/g, `<script nonce="${nonce}"`);
  return allowed.includes("<head>") ? allowed.replace("<head>", `<head>${policy}`) : policy + allowed;
}

/** What is shown where there is no page: the reason, in the words of the server. */
export function problem(message: string): string {
  const page = `<!doctype html><html><head><meta charset="utf-8"><style>
body { font: 14px var(--vscode-font-family, sans-serif); color: var(--vscode-foreground, #222); padding: 1em; }
pre { white-space: pre-wrap; font-family: var(--vscode-editor-font-family, monospace); }
</style></head><body><pre>${escaped(message)}</pre></body></html>`;
  return framed(page, "none");
}

export function escaped(text: string): string {
  return text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;").replace(/"/g, "&quot;");
}

/** One word of a POSIX shell's command line. */
export function quoted(word: string): string {
  return /^[\w./=:@%+,-]+$/.test(word) ? word : `'${word.replace(/'/g, `'\\''`)}'`;
}

/** The command line that runs a kernel as the editor checks it. */
export function runCommand(program: string, file: string, kernel: string, target: string | undefined, define: string[]): string {
  const words = [program, "run", file, kernel, ...(target ? ["--target", target] : []), ...define.flatMap((d) => ["-D", d])];
  return words.map(quoted).join(" ");
}

/** Names of the kernels and programs of a text. */
export function kernels(text: string): string[] {
  return [...text.matchAll(/\b(?:kernel|program)\s+(\w+)/g)].map((m) => m[1]);
}

/** A test line of a text. */
export interface TestLine {
  /** From 0. */
  line: number;
  word: "run" | "check" | "trap";
  text: string;
}

/** The `// run:`, `// check:` and `// trap:` lines of a text. */
export function testLines(text: string): TestLine[] {
  const lines = text.split(/\r?\n/);
  return lines.flatMap((content, line) => {
    const found = /^\s*\/\/ (run|check|trap):\s*(.*)$/.exec(content);
    // What follows a second `//` is a remark.
    return found ? [{ line, word: found[1] as TestLine["word"], text: found[2].replace(/\s*\/\/.*$/, "").trim() }] : [];
  });
}

/** What a `// run:` line says of a launch. */
export interface RunLine {
  kernel: string;
  define: Record<string, string>;
  inputs: Record<string, string>;
  random: number;
  target?: string;
}

/** Settings of the comparison, which a launch has no use for. */
const COMPARISON = new Set(["rtol", "atol"]);

export function runLine(text: string): RunLine {
  const words = text.split(/\s+/);
  const found: RunLine = { kernel: words[0], define: {}, inputs: {}, random: 0 };
  for (const word of words.slice(1)) {
    const [, name, value] = /^([\w.]+)=([^=].*)$/.exec(word) ?? [];
    if (!name || COMPARISON.has(name)) {
      continue;
    }
    if (name === "seed") {
      found.random = Number(value);
    } else if (name === "target") {
      found.target = value;
    } else if (value.endsWith(".npy")) {
      found.inputs[name] = value;
    } else {
      found.define[name] = value;
    }
  }
  return found;
}
