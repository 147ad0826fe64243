// Numbers that the page has packed: base64 of raw DEFLATE (RFC 1951) of columns in LEB128. `unpack` gives the columns.
const unpack = (() => {
  // Of a length or distance symbol the least value, and how many bits are added to it.
  const ranges = (bits, first) => {
    let least = first;
    return bits.map((n) => [(least += 1 << n) - (1 << n), n]);
  };
  const steps = (flat, count) => Array.from({ length: count }, (_, n) => Math.max(0, (n >> (flat === 8 ? 2 : 1)) - 1));
  const LENGTHS = [...ranges(steps(8, 28), 3), [258, 0]];
  const DISTANCES = ranges(steps(4, 30), 1);
  // The order in which the lengths of the code for code lengths come.
  const ORDER = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];

  // A canonical code: how many symbols have codes of each length, and the symbols by their codes.
  const code = (lengths) => {
    const counts = new Array(16).fill(0), places = new Array(17).fill(0), symbols = [];
    for (const n of lengths) if (n) counts[n]++;
    for (let n = 1; n < 16; n++) places[n + 1] = places[n] + counts[n];
    lengths.forEach((n, symbol) => n && (symbols[places[n]++] = symbol));
    return { counts, symbols };
  };
  const FIXED = [
    code(Array.from({ length: 288 }, (_, n) => (n < 144 ? 8 : n < 256 ? 9 : n < 280 ? 7 : 8))),
    code(new Array(30).fill(5)),
  ];

  const inflate = (bytes) => {
    let at = 0, hold = 0, held = 0, size = 0, out = new Uint8Array(1 << 16);
    const take = (count) => {
      for (; held < count; held += 8) hold |= bytes[at++] << held;
      const value = hold & ((1 << count) - 1);
      hold >>>= count;
      held -= count;
      return value;
    };
    const symbol = ({ counts, symbols }) => {
      // `value` is how far the bits so far are behind the first code of their length.
      for (let n = 1, value = 0, before = 0; n < 16; n++) {
        value = 2 * value + take(1);
        if (value < counts[n]) return symbols[before + value];
        value -= counts[n];
        before += counts[n];
      }
      throw new Error("a code that is none");
    };
    const put = (byte) => {
      if (size === out.length) {
        const larger = new Uint8Array(2 * size);
        larger.set(out);
        out = larger;
      }
      out[size++] = byte;
    };
    const codes = () => {
      const [literals, distances, own] = [take(5) + 257, take(5) + 1, take(4) + 4];
      const lengths = new Array(19).fill(0);
      for (let n = 0; n < own; n++) lengths[ORDER[n]] = take(3);
      const by = code(lengths), all = [];
      while (all.length < literals + distances) {
        const s = symbol(by);
        const [value, times] = s < 16 ? [s, 1] : s === 16 ? [all.at(-1), 3 + take(2)] : [0, s === 17 ? 3 + take(3) : 11 + take(7)];
        for (let n = 0; n < times; n++) all.push(value);
      }
      return [code(all.slice(0, literals)), code(all.slice(literals))];
    };
    for (let last = 0; !last; ) {
      last = take(1);
      const kind = take(2);
      if (kind === 0) {
        hold = held = 0;
        const length = bytes[at] | bytes[at + 1] << 8;
        at += 4;
        for (let n = 0; n < length; n++) put(bytes[at++]);
        continue;
      }
      const [literal, distance] = kind === 1 ? FIXED : codes();
      for (let s; (s = symbol(literal)) !== 256; ) {
        if (s < 256) {
          put(s);
          continue;
        }
        const [long, more] = LENGTHS[s - 257], length = long + take(more);
        const [far, further] = DISTANCES[symbol(distance)], from = size - far - take(further);
        for (let n = 0; n < length; n++) put(out[from + n]);
      }
    }
    return out.subarray(0, size);
  };

  return (text, count, columns) => {
    const bytes = inflate(Uint8Array.from(atob(text), (c) => c.charCodeAt(0)));
    let at = 0;
    return Array.from({ length: columns }, () => {
      const column = new Float64Array(count);
      for (let n = 0; n < count; n++) {
        let weight = 1, byte;
        do {
          byte = bytes[at++];
          column[n] += (byte & 127) * weight;
          weight *= 128;
        } while (byte & 128);
      }
      return column;
    });
  };
})();
