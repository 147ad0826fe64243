// Colours of `.tile` sources by the editors' grammar, which the book's builder puts in here.
"use strict";

(() => {
  const grammar = /*GRAMMAR*/[];
  const classes = { comment: "hljs-comment", string: "hljs-string", number: "hljs-number", type: "hljs-type",
    word: "hljs-keyword", instruction: "hljs-built_in" };
  const rule = new RegExp(grammar.map((r) => `(${r.rule})`).join("|"), "g");
  for (const code of document.querySelectorAll("code.language-tile")) {
    const source = code.textContent;
    const parts = [];
    let end = 0;
    for (const match of source.matchAll(rule)) {
      const span = document.createElement("span");
      span.className = classes[grammar[match.slice(1).findIndex((group) => group !== undefined)].kind];
      span.textContent = match[0];
      parts.push(source.slice(end, match.index), span);
      end = match.index + match[0].length;
    }
    code.replaceChildren(...parts, source.slice(end));
    code.classList.add("hljs");
  }
})();
