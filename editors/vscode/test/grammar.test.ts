// The colours before the server has spoken: scopes of the TextMate grammar on lines of kernels.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { OnigScanner, OnigString, loadWASM } from "vscode-oniguruma";
import { INITIAL, Registry, parseRawGrammar } from "vscode-textmate";

const root = join(__dirname, "..");

async function grammar() {
  await loadWASM(readFileSync(join(root, "node_modules/vscode-oniguruma/release/onig.wasm")));
  const path = join(root, "syntaxes/tile.tmLanguage.json");
  const registry = new Registry({
    onigLib: Promise.resolve({
      createOnigScanner: (patterns) => new OnigScanner(patterns),
      createOnigString: (text) => new OnigString(text),
    }),
    loadGrammar: async () => parseRawGrammar(readFileSync(path, "utf8"), path),
  });
  return (await registry.loadGrammar("source.tile"))!;
}

/** Where `word` stands by itself. */
function start(line: string, word: string): number {
  const letter = (c: string | undefined): boolean => c !== undefined && /\w/.test(c);
  for (let at = line.indexOf(word); at >= 0; at = line.indexOf(word, at + 1)) {
    if (!(letter(word[0]) && letter(line[at - 1])) && !(letter(word[word.length - 1]) && letter(line[at + word.length]))) {
      return at;
    }
  }
  throw new Error(`${word} is not in ${line}`);
}

test("words have the scopes that themes colour", async () => {
  const tile = await grammar();
  const expected: [string, string, string][] = [
    ["kernel add<const BM = 64>(x: in f32[M, N])", "add", "entity.name.function.tile"],
    ["kernel add<const BM = 64>(x: in f32[M, N])", "BM", "variable.other.constant.tile"],
    ["kernel add<const BM = 64>(x: in f32[M, N])", "x", "variable.parameter.tile"],
    ["kernel add<const BM = 64>(x: in f32[M, N])", "in", "keyword.other.tile"],
    ["kernel add<const BM = 64>(x: in f32[M, N])", "f32", "support.type.tile"],
    ["    let t = tile Vec<f32, 16, 64>;", "Vec", "entity.name.type.location.tile"],
    ["    let t = tile Vec<f32, 16, 64>;", "tile", "storage.type.tile"],
    ["    TADD(t, t, A.tile(i, j));", "TADD", "support.function.instruction.tile"],
    ["    TADD(t, t, A.tile(i, j));", "tile", "variable.other.property.tile"],
    ["    TADD(t, t, A.tile(i, j));", "A", "variable.other.constant.tile"],
    ["    role mover { }", "mover", "entity.name.label.tile"],
    ["    let role = 2;", "role", "source.tile"],
    ["// run: add interp,cpu M=3", "run", "keyword.other.test.tile"],
    ["// run: add interp,cpu M=3", "add", "entity.name.function.tile"],
    ["/// Adds.", "/// Adds.", "comment.line.documentation.tile"],
    ["//// a rule", "//// a rule", "comment.line.double-slash.tile"],
    ["    x = 0x1F + 0b1_0 + 2.5e-3;", "0x1F", "constant.numeric.hex.tile"],
    ["    x = 0x1F + 0b1_0 + 2.5e-3;", "2.5e-3", "constant.numeric.float.tile"],
    ["    for k in 0..16 {", "0", "constant.numeric.integer.tile"],
    ["    print(\"a\\n\", x);", "\\n", "constant.character.escape.tile"],
  ];
  for (const [line, word, scope] of expected) {
    const { tokens } = tile.tokenizeLine(line, INITIAL);
    const at = start(line, word);
    const token = tokens.find((t) => t.startIndex <= at && at < t.endIndex)!;
    assert.equal(token.scopes[token.scopes.length - 1], scope, `${word} in ${line}`);
  }
});
