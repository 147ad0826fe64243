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
export function runCommand(program: string, file: string, kernel: string, target: string, define: string[]): string {
  const words = [program, "run", file, kernel, "--target", target, ...define.flatMap((d) => ["-D", d])];
  return words.map(quoted).join(" ");
}
