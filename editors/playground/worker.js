// Runs `ptoc` on the files that the page has, one command at a time. The page ends the worker to stop a command.
"use strict";

let ptoc = null;

// Standard output and standard error, decoded as they come: a character may lie in two writes.
function screen(id) {
  const decoders = [null, new TextDecoder(), new TextDecoder()];
  return (descriptor, bytes) => {
    const text = decoders[descriptor].decode(bytes, { stream: true });
    postMessage({ id, descriptor, text });
  };
}

function run({ id, args, files, input }) {
  const encoded = Object.entries(files).map(([path, text]) => [path, { bytes: new TextEncoder().encode(text) }]);
  const system = new FileSystem(encoded);
  const before = new Map([...system.files].map(([path, data]) => [path, data.bytes]));
  const env = { COLUMNS: "100" };
  const write = screen(id);
  const process = new Process({ args: ["ptoc", ...args], env, input: new TextEncoder().encode(input), files: system, write });
  let status = null;
  try {
    status = process.run(ptoc);
  } catch (e) {
    // Memory or the stack is used up.
    postMessage({ id, descriptor: 2, text: `\nthe run has ended: ${e.message}\n` });
  }
  const written = [...system.files].filter(([path, data]) => before.get(path) !== data.bytes);
  postMessage({ id, status, written: written.map(([path, data]) => [path, data.bytes]) });
}

onmessage = ({ data }) => {
  if (data.module) {
    ptoc = data.module;
    postMessage({ ready: true });
  } else {
    run(data);
  }
};
