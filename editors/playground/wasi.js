// WASI preview 1 for one process with files in memory: what Rust's standard library asks for, and no more.
// https://github.com/WebAssembly/WASI/blob/main/legacy/preview1/docs.md has the functions and structures.
"use strict";

const ERRNO = { SUCCESS: 0, BADF: 8, EXIST: 20, INVAL: 28, ISDIR: 31, NOENT: 44, NOSYS: 52, NOTDIR: 54, NOTEMPTY: 55 };
const FILETYPE = { CHARACTER_DEVICE: 2, DIRECTORY: 3, REGULAR_FILE: 4 };
const OFLAGS = { CREAT: 1, DIRECTORY: 2, EXCL: 4, TRUNC: 8 };
// The descriptor of the directory that holds everything.
const ROOT = 3;

// The end of the process, thrown through its frames.
class Exit extends Error {
  constructor(status) {
    super(`exit status ${status}`);
    this.status = status;
  }
}

// Files by absolute path. Directories are those that files are in, and those that were made.
class FileSystem {
  constructor(files) {
    this.files = new Map(files);
    this.folders = new Set(["/"]);
    for (const path of this.files.keys()) this.add_folders(path);
  }

  add_folders(path) {
    for (let at = path.lastIndexOf("/"); at > 0; at = path.lastIndexOf("/", at - 1)) this.folders.add(path.slice(0, at));
  }

  // A path without `.`, `..` and double slashes.
  resolve(path) {
    const parts = [];
    for (const part of path.split("/")) {
      if (part === "..") parts.pop();
      else if (part !== "" && part !== ".") parts.push(part);
    }
    return "/" + parts.join("/");
  }

  kind(path) {
    return this.files.has(path) ? FILETYPE.REGULAR_FILE : this.folders.has(path) ? FILETYPE.DIRECTORY : null;
  }

  // Names in a folder, with their kinds.
  list(folder) {
    const prefix = folder === "/" ? "/" : folder + "/";
    const names = [...this.files.keys(), ...this.folders].filter((p) => p !== "/" && p.startsWith(prefix));
    const own = names.map((p) => p.slice(prefix.length)).filter((name) => name !== "" && !name.includes("/"));
    return [...new Set(own)].sort();
  }
}

// A process: its arguments, its environment, its standard input as bytes. `write(descriptor, bytes)` gets its output.
class Process {
  constructor({ args, env = {}, input = new Uint8Array(), files, write }) {
    this.args = args;
    this.env = Object.entries(env).map(([name, value]) => `${name}=${value}`);
    this.fs = files;
    this.write = write;
    this.open = new Map([
      [0, { data: { bytes: input }, at: 0 }],
      [1, { out: 1 }],
      [2, { out: 2 }],
      [ROOT, { path: "/" }],
    ]);
    this.next = ROOT + 1;
  }

  // Runs a compiled module to its end, and gives the exit status.
  run(module) {
    const calls = {};
    for (const { name } of WebAssembly.Module.imports(module)) {
      const call = this[name];
      calls[name] = call ? call.bind(this) : () => ERRNO.NOSYS;
    }
    const instance = new WebAssembly.Instance(module, { wasi_snapshot_preview1: calls });
    this.memory = instance.exports.memory;
    try {
      instance.exports._start();
      return 0;
    } catch (e) {
      if (e instanceof Exit) return e.status;
      throw e;
    }
  }

  // Memory may have grown since the last call, so views are made anew.
  view() {
    return new DataView(this.memory.buffer);
  }

  bytes(at, length) {
    return new Uint8Array(this.memory.buffer, at, length);
  }

  text(at, length) {
    return new TextDecoder().decode(this.bytes(at, length).slice());
  }

  set32(at, value) {
    this.view().setUint32(at, value, true);
    return ERRNO.SUCCESS;
  }

  set64(at, value) {
    this.view().setBigUint64(at, BigInt(value), true);
    return ERRNO.SUCCESS;
  }

  // Strings that end with a zero, and where each begins.
  strings_get(strings, pointers, at) {
    for (const string of strings) {
      this.set32(pointers, at);
      pointers += 4;
      const encoded = new TextEncoder().encode(string + "\0");
      this.bytes(at, encoded.length).set(encoded);
      at += encoded.length;
    }
    return ERRNO.SUCCESS;
  }

  strings_sizes(strings, count, size) {
    this.set32(count, strings.length);
    return this.set32(size, strings.reduce((n, s) => n + new TextEncoder().encode(s).length + 1, 0));
  }

  args_get(pointers, at) {
    return this.strings_get(this.args, pointers, at);
  }

  args_sizes_get(count, size) {
    return this.strings_sizes(this.args, count, size);
  }

  environ_get(pointers, at) {
    return this.strings_get(this.env, pointers, at);
  }

  environ_sizes_get(count, size) {
    return this.strings_sizes(this.env, count, size);
  }

  clock_time_get(id, _precision, at) {
    const now = id === 0 ? Date.now() : performance.now();
    return this.set64(at, Math.round(now * 1e6));
  }

  clock_res_get(_id, at) {
    return this.set64(at, 1000);
  }

  random_get(at, length) {
    // One call fills 65536 bytes at most.
    for (let done = 0; done < length; done += 65536) {
      const some = new Uint8Array(Math.min(65536, length - done));
      crypto.getRandomValues(some);
      this.bytes(at + done, some.length).set(some);
    }
    return ERRNO.SUCCESS;
  }

  sched_yield() {
    return ERRNO.SUCCESS;
  }

  proc_exit(status) {
    throw new Exit(status);
  }

  fd_prestat_get(fd, at) {
    if (fd !== ROOT) return ERRNO.BADF;
    this.set32(at, 0);
    return this.set32(at + 4, 1);
  }

  fd_prestat_dir_name(fd, at, length) {
    if (fd !== ROOT || length < 1) return ERRNO.BADF;
    this.bytes(at, 1)[0] = "/".charCodeAt(0);
    return ERRNO.SUCCESS;
  }

  fd_close(fd) {
    return this.open.delete(fd) ? ERRNO.SUCCESS : ERRNO.BADF;
  }

  fd_fdstat_get(fd, at) {
    const file = this.open.get(fd);
    if (!file) return ERRNO.BADF;
    this.bytes(at, 24).fill(0);
    this.view().setUint8(at, file.out || fd === 0 ? FILETYPE.CHARACTER_DEVICE : this.kind_of(file));
    // All rights.
    this.view().setBigUint64(at + 8, 0xffffffffffffffffn, true);
    this.view().setBigUint64(at + 16, 0xffffffffffffffffn, true);
    return ERRNO.SUCCESS;
  }

  fd_fdstat_set_flags() {
    return ERRNO.SUCCESS;
  }

  kind_of(file) {
    return file.data ? FILETYPE.REGULAR_FILE : FILETYPE.DIRECTORY;
  }

  filestat(at, kind, size) {
    this.bytes(at, 64).fill(0);
    this.view().setUint8(at + 16, kind);
    this.view().setBigUint64(at + 24, 1n, true);
    return this.set64(at + 32, size);
  }

  fd_filestat_get(fd, at) {
    const file = this.open.get(fd);
    if (!file) return ERRNO.BADF;
    if (file.out) return this.filestat(at, FILETYPE.CHARACTER_DEVICE, 0);
    return this.filestat(at, this.kind_of(file), file.data ? file.data.bytes.length : 0);
  }

  fd_filestat_set_size(fd, size) {
    const data = this.open.get(fd)?.data;
    if (!data) return ERRNO.BADF;
    const resized = new Uint8Array(Number(size));
    resized.set(data.bytes.subarray(0, resized.length));
    data.bytes = resized;
    return ERRNO.SUCCESS;
  }

  path_filestat_get(_fd, _flags, path, length, at) {
    const full = this.fs.resolve(this.text(path, length));
    const kind = this.fs.kind(full);
    if (kind === null) return ERRNO.NOENT;
    return this.filestat(at, kind, this.fs.files.get(full)?.bytes.length ?? 0);
  }

  path_open(_fd, _lookup, path, length, oflags, _rights, _inheriting, _fdflags, at) {
    const full = this.fs.resolve(this.text(path, length));
    const kind = this.fs.kind(full);
    if (kind !== null && oflags & OFLAGS.CREAT && oflags & OFLAGS.EXCL) return ERRNO.EXIST;
    if (kind === FILETYPE.REGULAR_FILE && oflags & OFLAGS.DIRECTORY) return ERRNO.NOTDIR;
    let file = { path: full };
    if (kind !== FILETYPE.DIRECTORY) {
      if (kind === null) {
        if (!(oflags & OFLAGS.CREAT)) return ERRNO.NOENT;
        if (!this.fs.folders.has(full.slice(0, full.lastIndexOf("/")) || "/")) return ERRNO.NOENT;
        this.fs.files.set(full, { bytes: new Uint8Array() });
      }
      const data = this.fs.files.get(full);
      if (oflags & OFLAGS.TRUNC) data.bytes = new Uint8Array();
      file = { path: full, data, at: 0 };
    }
    this.open.set(this.next, file);
    return this.set32(at, this.next++);
  }

  // The parts of memory that a vector of buffers names.
  *buffers(iovs, count) {
    for (let n = 0; n < count; n++) {
      const view = this.view();
      yield this.bytes(view.getUint32(iovs + 8 * n, true), view.getUint32(iovs + 8 * n + 4, true));
    }
  }

  fd_read(fd, iovs, count, at) {
    const file = this.open.get(fd);
    if (!file?.data) return file ? ERRNO.ISDIR : ERRNO.BADF;
    let total = 0;
    for (const buffer of this.buffers(iovs, count)) {
      const some = file.data.bytes.subarray(file.at, file.at + buffer.length);
      buffer.set(some);
      file.at += some.length;
      total += some.length;
    }
    return this.set32(at, total);
  }

  fd_write(fd, iovs, count, at) {
    const file = this.open.get(fd);
    if (!file?.out && !file?.data) return ERRNO.BADF;
    let total = 0;
    for (const buffer of this.buffers(iovs, count)) {
      if (file.out) this.write(file.out, buffer.slice());
      else {
        const end = file.at + buffer.length;
        if (end > file.data.bytes.length) {
          const longer = new Uint8Array(end);
          longer.set(file.data.bytes);
          file.data.bytes = longer;
        }
        file.data.bytes.set(buffer, file.at);
        file.at = end;
      }
      total += buffer.length;
    }
    return this.set32(at, total);
  }

  fd_seek(fd, offset, whence, at) {
    const file = this.open.get(fd);
    if (!file?.data) return ERRNO.BADF;
    const from = [0, file.at, file.data.bytes.length][whence];
    const to = from + Number(offset);
    if (!(to >= 0)) return ERRNO.INVAL;
    file.at = to;
    return this.set64(at, to);
  }

  fd_tell(fd, at) {
    return this.fd_seek(fd, 0, 1, at);
  }

  fd_sync() {
    return ERRNO.SUCCESS;
  }

  fd_readdir(fd, at, length, cookie, used) {
    const folder = this.open.get(fd);
    if (!folder || folder.data || folder.out) return ERRNO.NOTDIR;
    let filled = 0;
    const names = this.fs.list(folder.path);
    for (let n = Number(cookie); n < names.length && filled < length; n++) {
      const name = new TextEncoder().encode(names[n]);
      const entry = new Uint8Array(24 + name.length);
      const view = new DataView(entry.buffer);
      view.setBigUint64(0, BigInt(n + 1), true);
      view.setUint32(16, name.length, true);
      view.setUint8(20, this.fs.kind(this.fs.resolve(`${folder.path}/${names[n]}`)));
      entry.set(name, 24);
      const some = entry.subarray(0, length - filled);
      this.bytes(at + filled, some.length).set(some);
      filled += some.length;
    }
    return this.set32(used, filled);
  }

  path_create_directory(_fd, path, length) {
    const full = this.fs.resolve(this.text(path, length));
    if (this.fs.kind(full) !== null) return ERRNO.EXIST;
    this.fs.folders.add(full);
    return ERRNO.SUCCESS;
  }

  path_remove_directory(_fd, path, length) {
    const full = this.fs.resolve(this.text(path, length));
    if (this.fs.list(full).length > 0) return ERRNO.NOTEMPTY;
    return this.fs.folders.delete(full) ? ERRNO.SUCCESS : ERRNO.NOENT;
  }

  path_unlink_file(_fd, path, length) {
    return this.fs.files.delete(this.fs.resolve(this.text(path, length))) ? ERRNO.SUCCESS : ERRNO.NOENT;
  }

  path_rename(_fd, old, old_length, _to_fd, to, to_length) {
    const from = this.fs.resolve(this.text(old, old_length));
    const data = this.fs.files.get(from);
    if (!data) return ERRNO.NOENT;
    this.fs.files.delete(from);
    this.fs.files.set(this.fs.resolve(this.text(to, to_length)), data);
    return ERRNO.SUCCESS;
  }

  path_readlink() {
    return ERRNO.INVAL;
  }
}
