#!/usr/bin/env python3
"""Writes tests/golden/standard.txt: calls of kernels and programs of the standard library, computed here with numpy, and by nothing of the
compiler.

    python3 tests/scripts/standard_vectors.py > tests/golden/standard.txt

A line is one call: `LABEL|MODULE ENTRY [NAME=VALUE..]|in NAME ARRAY..|out NAME ARRAY..[|within RELATIVE ABSOLUTE]`, or `..|error CODE TEXT` for
one that is refused. An array is `DTYPE SHAPE HEX`, elements in row-major order, each as the digits of its bits.
"""
import numpy as np

rng = np.random.default_rng(33)
NAMES = {np.dtype(n): d for d, n in {"u8": "u1", "i32": "i4", "u32": "u4", "i64": "i8", "u64": "u8", "f16": "f2", "f32": "f4"}.items()}
NAMES[np.dtype("i1")] = "i8"


def array(kind, name, a):
    a = np.ascontiguousarray(a)
    big = a.astype(a.dtype.newbyteorder(">"))
    return f"{kind} {name} {NAMES[a.dtype]} {'x'.join(map(str, a.shape))} {big.tobytes().hex()}"


def line(label, entry, settings, ins, outs=None, within=None, error=None):
    parts = [label, " ".join([entry, *settings])]
    parts += [array("in", n, a) for n, a in ins.items()]
    parts += [array("out", n, a) for n, a in (outs or {}).items()]
    if within:
        parts.append("within {} {}".format(*within))
    if error:
        parts.append("error {} {}".format(*error))
    print("|".join(parts))


def scans():
    for d in ["u4", "i4", "u8", "i8", "f4"]:
        for n in [0, 1, 150]:
            if d == "f4":
                x = rng.integers(-8, 8, n).astype("f4")
            else:
                i = np.iinfo(d)
                x = rng.integers(i.min, i.max, n, dtype=d, endpoint=True)
            t = "T=" + NAMES[np.dtype(d)]
            sums = np.cumsum(x, dtype=d)
            line("scan", "std::scan inclusive_sum", [t], {"x": x}, {"y": sums})
            line("scan", "std::scan exclusive_sum", [t], {"x": x}, {"y": np.concatenate([np.zeros(1, d), sums])})
            line("scan", "std::scan inclusive_max", [t], {"x": x}, {"y": np.maximum.accumulate(x)})
            line("scan", "std::scan inclusive_min", [t], {"x": x}, {"y": np.minimum.accumulate(x)})
    x = rng.standard_normal(200).astype("f4")
    line("scan", "std::scan inclusive_sum", ["T=f32"], {"x": x}, {"y": np.cumsum(x, dtype="f8").astype("f4")}, (1e-5, 1e-5))
    seg = np.array([0, 0, 5, 6, 6, 130, 200], "u4")
    parts = [np.cumsum(x[a:b], dtype="f8") for a, b in zip(seg, seg[1:])]
    line("scan", "std::scan segmented_sum", ["T=f32"], {"x": x, "seg": seg}, {"y": np.concatenate(parts).astype("f4")}, (1e-5, 1e-5))
    for bad, text in [([1, 200], "begins at 1"), ([0, 60, 50, 200], "ends at 50, and begins at 60"), ([0, 201], "ends at 201"), ([0, 199], "ends at 199")]:
        line("scan", "std::scan segmented_sum", ["T=f32"], {"x": x, "seg": np.array(bad, "u4")}, error=("PA-1109", text))


def sorts():
    for d in ["u4", "u8"]:
        top = np.iinfo(d).max
        kinds = [rng.integers(0, top, n, dtype=d, endpoint=True) for n in [0, 1, 130]]
        kinds += [np.full(40, 9, d), rng.integers(0, 4, 90).astype(d), top - rng.integers(0, 3, 50).astype(d)]
        for keys in kinds:
            k = "K=" + NAMES[np.dtype(d)]
            line("sort", "std::sort argsort", [k], {"keys": keys}, {"order": np.argsort(keys, kind="stable").astype("u4")})
            line("sort", "std::sort sort", [k], {"keys": keys}, {"ascending": np.sort(keys)})
            seg = np.array([0, len(keys) // 3, len(keys) // 3, len(keys), len(keys)], "u4")
            parts = [a + np.argsort(keys[a:b], kind="stable") for a, b in zip(seg, seg[1:])]
            line("sort", "std::sort segmented_argsort", [k], {"keys": keys, "seg": seg}, {"order": np.concatenate(parts).astype("u4")})
    x = rng.standard_normal(120).astype("f4")
    x[[3, 50]], x[[4, 51, 52]], x[[7, 9, 11]], x[[8, 10]], x[20:30] = np.nan, [np.inf, -np.inf, -np.inf], 0.0, -0.0, x[19]
    x.view("u4")[60] = 0xFFC0_0001
    line("sort", "std::sort argsort_by", [], {"x": x}, {"order": np.argsort(x, kind="stable").astype("u4")})
    # A stable sort that is descending in numpy's order: of the reverse, reversed.
    down = len(x) - 1 - np.argsort(x[::-1], kind="stable")[::-1]
    for m in [1, 40, 120]:
        best = down[:m].astype("u4")
        line("sort", "std::sort top_k", [f"M={m}"], {"x": x}, {"values": x[best], "places": best})
    i = rng.integers(-4, 4, 90).astype("i4")
    line("sort", "std::sort argsort_by", ["T=i32", "key=int_key"], {"x": i}, {"order": np.argsort(i, kind="stable").astype("u4")})
    down = (len(i) - 1 - np.argsort(i[::-1], kind="stable")[::-1])[:9].astype("u4")
    line("sort", "std::sort top_k", ["T=i32", "key=int_key", "M=9"], {"x": i}, {"values": i[down], "places": down})
    line("sort", "std::sort top_k", ["M=121"], {"x": x}, error=("E0310", "121 <= 120"))
    line("sort", "std::sort top_k", ["M=0"], {"x": x}, error=("E0310", "1 <= 0"))
    line("sort", "std::sort argsort", ["K=i32"], {"keys": i}, error=("E0302", "keys are u32 or u64"))
    keys = rng.integers(0, 9, 50).astype("u8")
    line("sort", "std::sort segmented_argsort", [], {"keys": keys, "seg": np.array([0, 30, 20, 50], "u4")}, error=("PA-1109", "ends at 20, and begins at 30"))


def hashes():
    for d in ["u4", "u8"]:
        every = rng.permutation(np.unique(rng.integers(0, np.iinfo(d).max, 150, dtype=d)))
        keys, others = every[:100], every[100:]
        k = "K=" + NAMES[np.dtype(d)]
        query = np.concatenate([keys[::3], others])
        found = np.concatenate([np.arange(0, 100, 3), np.full(len(others), 0xFFFF_FFFF)]).astype("u4")
        line("row 56", "std::hash positions", [k], {"keys": keys, "query": query}, {"found": found})
        line("row 56", "std::hash positions", [k], {"keys": keys[:0], "query": others}, {"found": np.full(len(others), 0xFFFF_FFFF, "u4")})
        twice = keys.copy()
        twice[70] = twice[20]
        line("row 56", "std::hash positions", [k, "UNIQUE=false"], {"keys": twice, "query": twice[[20, 70]]}, {"found": np.array([20, 20], "u4")})
        line("row 56", "std::hash positions", [k], {"keys": twice, "query": query}, error=("PA-1109", "is there already"))
        last = keys.copy()
        last[9] = np.iinfo(d).max
        line("row 56", "std::hash positions", [k], {"keys": last, "query": query}, error=("PA-1109", "key 9 is the largest number"))
        empty = lambda n: {"slots": np.full(n, np.iinfo(d).max, d), "rows": np.full(n, 0xFFFF_FFFF, "u4")}
        line("row 56", "std::hash insert", [k], {"keys": keys, **empty(100)}, error=("PA-1105", "100 > 100 is false"))
        full = {"slots": np.arange(1, 102, dtype=d), "rows": np.zeros(101, "u4")}
        line("row 97", "std::hash insert", [k], {"keys": keys[:5], **full}, error=("PA-1109", "the table is full: none of its 101 slots is free"))


# ---- sparse convolution: references are dense ----------------------------------------------------------------------------


def sites(n, grid, b=2):
    places = rng.permutation(b * int(np.prod(grid)))[:n]
    return np.stack(np.unravel_index(places, (b, *grid)), 1).astype("i4")


def positions(ks):
    return list(np.ndindex(*ks))


def dense(coords, feats, grid, b=2):
    x = np.zeros((b, *grid, feats.shape[1]))
    x[tuple(coords.T)] = feats
    return x


def conv(x, w, st, pad, dil):
    """A dense convolution in f64; x is [B, W, H, D, Ci], w [Co, KX, KY, KZ, Ci]."""
    ks = w.shape[1:4]
    x = np.pad(x, [(0, 0)] + [(p, p) for p in pad] + [(0, 0)])
    out = [(x.shape[1 + a] - dil[a] * (ks[a] - 1) - 1) // st[a] + 1 for a in range(3)]
    y = np.zeros((x.shape[0], *out, w.shape[0]))
    for k in positions(ks):
        part = x[(slice(None), *[slice(k[a] * dil[a], k[a] * dil[a] + out[a] * st[a] - st[a] + 1, st[a]) for a in range(3)])]
        y += part @ w[(slice(None), *k)].T
    return y


def transposed(x, w, st, pad, dil):
    """A dense transposed convolution: every input adds to the outputs that it reaches."""
    ks, n = w.shape[1:4], x.shape[1:4]
    out = [(n[a] - 1) * st[a] + dil[a] * (ks[a] - 1) + 1 for a in range(3)]
    y = np.zeros((x.shape[0], *out, w.shape[0]))
    for k in positions(ks):
        y[(slice(None), *[slice(k[a] * dil[a], k[a] * dil[a] + (n[a] - 1) * st[a] + 1, st[a]) for a in range(3)])] += x @ w[(slice(None), *k)].T
    return y[(slice(None), *[slice(pad[a], out[a] - pad[a]) for a in range(3)])]


def brute_map(coords, outs, ks, st, pad, dil, back=False):
    """map[m, v] by looking for the site among all."""
    rows = {tuple(c): i for i, c in enumerate(coords.tolist())}
    m = np.full((len(outs), len(positions(ks))), 0xFFFF_FFFF, "u4")
    for i, (b, *o) in enumerate(outs.tolist()):
        if b < 0:
            continue
        for v, k in enumerate(positions(ks)):
            if back:
                at = [o[a] + pad[a] - k[a] * dil[a] for a in range(3)]
                if any(at[a] % st[a] for a in range(3)):
                    continue
                at = [at[a] // st[a] for a in range(3)]
            else:
                at = [o[a] * st[a] - pad[a] + k[a] * dil[a] for a in range(3)]
            m[i, v] = rows.get((b, *at), 0xFFFF_FFFF)
    return m


def tup(name, t):
    return f"{name}=({','.join(map(str, t))})"


def box(grid, b=2):
    return [f"B={b}", f"W={grid[0]}", f"H={grid[1]}", f"D={grid[2]}"]


ONE = (1, 1, 1)


def maps():
    line("row 57", "std::sparse site_keys", box((4, 4, 4)), {"coords": np.array([[1, 2, 3, 1]], "i4")}, {"keys": np.array([109], "u4")})
    c = np.zeros((1, 4), "i4")
    line("row 57", "std::sparse site_keys", box((1024, 1024, 1024), 4), {"coords": c}, error=("PA-1105", "4294967296"))
    line("row 57", "std::sparse site_keys", box((1024, 1024, 1023), 4), {"coords": c}, {"keys": np.zeros(1, "u4")})
    line("row 57", "std::sparse site_keys", ["K=u64", *box((1024, 1024, 1024), 4)], {"coords": np.array([[3, 1023, 1023, 1023]], "i4")}, {"keys": np.array([2**32 - 1], "u8")})
    grid = (4, 3, 5)
    for n, ks, dil, k in [(40, (3, 3, 3), ONE, "u32"), (50, (3, 3, 3), (2, 2, 2), "u64"), (40, (5, 3, 1), (1, 2, 1), "u32"), (1, (3, 3, 3), ONE, "u32"), (120, (3, 1, 3), ONE, "u32")]:
        c = sites(n, grid)
        pad = tuple((q // 2) * d for q, d in zip(ks, dil))
        m = brute_map(c, c, ks, ONE, pad, dil)
        line("row 58", "std::sparse submanifold_map", [f"K={k}", tup("KS", ks), tup("DIL", dil), f"V={m.shape[1]}", *box(grid)], {"coords": c}, {"map": m})
        v, i = m.shape[1] - 1, np.arange(len(c))
        assert (m[:, v // 2] == i).all()
        line("row 59", "std::sparse inverse_map", [f"N={n}"], {"map": m}, {"inverse": m[:, ::-1]})
    c = sites(20, grid)
    box7 = box(grid)
    line("row 59", "std::sparse submanifold_map", ["KS=(3,2,3)", "V=18", *box7], {"coords": c}, error=("E0302", "odd in every axis"))
    line("row 97", "std::sparse submanifold_map", ["KS=(4,3,3)", "V=36", *box7], {"coords": c}, error=("E0302", "odd in every axis"))
    line("row 97", "std::sparse submanifold_map", ["V=27", *box((1024, 1024, 1024), 4)], {"coords": c}, error=("E0302", "more than there are keys"))
    twice = np.concatenate([c, c[4:5]])
    line("row 97", "std::sparse submanifold_map", ["V=27", *box7], {"coords": twice}, error=("PA-1109", "is there already"))
    for a in range(4):
        for bad in [-1, [2, *grid][a]]:
            out = c.copy()
            out[7, a] = bad
            line("row 97", "std::sparse submanifold_map", ["V=27", *box7], {"coords": out}, error=("PA-1109", "site 7 "))


def flat(w):
    """[Co, V, Ci]"""
    return w.reshape(w.shape[0], -1, w.shape[4])


def differences(f, at):
    """The gradient of a function of f64 by central differences."""
    g = np.zeros(at.shape)
    for i in np.ndindex(*at.shape):
        up, down = at.copy(), at.copy()
        up[i], down[i] = at[i] + 0.5, at[i] - 0.5
        g[i] = f(up) - f(down)
    return g


def products():
    grid, ks, ci, co = (4, 3, 4), (3, 3, 3), 4, 3
    c = sites(24, grid)
    x, w, bias = rng.standard_normal((24, ci)).astype("f4"), rng.standard_normal((co, *ks, ci)).astype("f4"), rng.standard_normal(co).astype("f4")
    m = brute_map(c, c, ks, ONE, ONE, ONE)
    at = tuple(c.T)
    y = conv(dense(c, x, grid), w.astype("f8"), ONE, ONE, ONE)[at]
    tight = (1e-5, 1e-5)
    g = rng.standard_normal((24, co)).astype("f4")
    loss = lambda x, w, b: (g * (conv(dense(c, x, grid), w, ONE, ONE, ONE)[at] + b)).sum()
    X, W, Bi = x.astype("f8"), w.astype("f8"), bias.astype("f8")
    dx, dw, db = differences(lambda q: loss(q, W, Bi), X), differences(lambda q: loss(X, q, Bi), W), differences(lambda q: loss(X, W, q), Bi)
    f4 = lambda a: a.astype("f4")
    for kind in ["explicit", "implicit"]:
        row = "row 60" if kind == "explicit" else "row 61"
        for split in [1, 3]:
            s = [f"SPLIT={split}", "BK=16"]
            line(row, f"std::sparse conv_{kind}", s, {"feats": x, "weight": flat(w), "bias": bias, "map": m}, {"y": f4(y + bias)}, tight)
            line(row, f"std::sparse input_gradient_{kind}", s, {"dy": g, "weight": flat(w), "inverse": m[:, ::-1]}, {"dx": f4(dx)}, tight)
            line(row, f"std::sparse weight_gradient_{kind}", s, {"feats": x, "dy": g, "map": m}, {"dw": f4(flat(dw))}, tight)
    for split in [1, 3]:
        line("row 63", "std::sparse weight_gradient_masked", [f"SPLIT={split}", "BK=16"], {"feats": x, "dy": g, "map": m}, {"dw": f4(flat(dw))}, tight)
    line("row 60", "std::sparse bias_gradient", [], {"dy": g}, {"db": f4(db)}, tight)
    h = lambda a: a.astype("f2")
    y16 = conv(dense(c, h(x).astype("f8"), grid), h(w).astype("f8"), ONE, ONE, ONE)[at]
    line("row 61", "std::sparse conv_implicit", ["T=f16", "O=f16", "BK=16"], {"feats": h(x), "weight": h(flat(w)), "map": m}, {"y": h(y16)}, (2e-3, 2e-3))
    xi, wi = rng.integers(-128, 128, (24, ci)).astype("i1"), rng.integers(-128, 128, (co, *ks, ci)).astype("i1")
    yi = conv(dense(c, xi.astype("f8"), grid), wi.astype("f8"), ONE, ONE, ONE)[at]
    for kind in ["explicit", "implicit"]:
        line("row 61", f"std::sparse conv_{kind}", ["T=i8", "A=i32", "O=i32", "SPLIT=2"], {"feats": xi, "weight": flat(wi), "map": m}, {"y": yi.astype("i4")})


def strided():
    """Output sites that are found, and products over them, against dense convolutions."""
    grid, ci, co = (6, 5, 6), 2, 3
    cases = [((3, 3, 3), (2, 2, 2), ONE, ONE, False), ((2, 2, 2), (2, 2, 2), (0, 0, 0), ONE, False), ((3, 2, 3), (1, 2, 1), (1, 0, 2), (2, 1, 2), False)]
    cases += [((2, 2, 2), (2, 2, 2), (0, 0, 0), ONE, True), ((3, 3, 3), (2, 1, 2), ONE, (1, 2, 1), True)]
    for ks, st, pad, dil, back in cases:
        c = sites(9, grid)
        x, w = rng.integers(-4, 5, (9, ci)).astype("f4"), rng.integers(-4, 5, (co, *ks, ci)).astype("f4")
        f = transposed if back else conv
        reached = f(dense(c, np.ones((9, 1)), grid), np.ones((1, *ks, 1)), st, pad, dil)[..., 0] > 0
        outs = np.argwhere(reached).astype("i4")
        n, rest = len(outs), 5
        y = f(dense(c, x, grid), w.astype("f8"), st, pad, dil)
        assert not np.any(y[~reached])
        given = np.concatenate([outs, np.full((rest, 4), -1, "i4")])
        values = np.concatenate([y[tuple(outs.T)], np.zeros((rest, co))]).astype("f4")
        words = [tup("KS", ks), tup("ST", st), tup("PAD", pad), tup("DIL", dil), f"TRANSPOSED={str(back).lower()}", *box(grid)]
        line("strided", "std::sparse output_sites", [f"M={n + rest}", *words], {"coords": c}, {"sites": given, "count": np.array([n], "u4")})
        line("strided", "std::sparse output_sites", [f"M={n}", *words], {"coords": c}, {"sites": outs, "count": np.array([n], "u4")})
        line("strided", "std::sparse output_sites", [f"M={n - 1}", *words], {"coords": c}, error=("PA-1109", f"there are more output sites than the {n - 1} rows"))
        m = brute_map(c, given, ks, st, pad, dil, back)
        v = [f"V={m.shape[1]}"]
        line("strided", "std::sparse conv_map", v + words, {"coords": c, "sites": given}, {"map": m})
        line("strided", "std::sparse conv_implicit", [], {"feats": x, "weight": flat(w), "map": m}, {"y": values})
        inverse = np.full((9, m.shape[1]), 0xFFFF_FFFF, "u4")
        for o, k in zip(*np.nonzero(m != 0xFFFF_FFFF)):
            inverse[m[o, k], k] = o
        line("strided", "std::sparse inverse_map", ["N=9"], {"map": m}, {"inverse": inverse})
        g = np.zeros_like(values)
        g[:n] = rng.integers(-4, 5, (n, co))
        loss = lambda q: (g[:n] * f(dense(c, q, grid), w.astype("f8"), st, pad, dil)[tuple(outs.T)]).sum()
        dx = differences(loss, x.astype("f8")).astype("f4")
        line("strided", "std::sparse input_gradient_implicit", [], {"dy": g, "weight": flat(w), "inverse": inverse}, {"dx": dx})
        bad = given.copy()
        bad[1] = bad[0]
        line("strided", "std::sparse conv_map", v + words, {"coords": c, "sites": bad}, error=("PA-1109", "is there already"))
        bad[1] = [0, 0, 99, 0]
        line("strided", "std::sparse conv_map", v + words, {"coords": c, "sites": bad}, error=("PA-1109", "output site 1 has y = 99"))
    line("strided", "std::sparse conv_map", ["ST=(0,1,1)", "V=27", *box(grid)], {"coords": c, "sites": given}, error=("E0302", "extents of kernels, strides and dilations are 1 at least"))


def gray_codes():
    """Row 64: of all masks of three positions, and of sites on a grid."""
    order = [0b000, 0b001, 0b011, 0b010, 0b110, 0b111, 0b101, 0b100]
    rank = {code: n for n, code in enumerate(order)}
    masks = rng.permutation(8)
    m = np.where((masks[:, None] >> np.arange(3)) & 1, 5, 0xFFFF_FFFF).astype("u4")
    line("row 64", "std::sparse gray_rank", [], {"map": m}, {"low": np.array([rank[q] for q in masks], "u8"), "high": np.zeros(8, "u8")})
    for n, v, b1 in [(50, 27, 16), (64, 27, 64), (20, 64, 16), (35, 125, 16), (17, 128, 16), (5, 1, 64)]:
        m = np.where(rng.random((n, v)) < 0.1, rng.integers(0, n, (n, v)), 0xFFFF_FFFF).astype("u4")
        m[n // 2 :] = m[: n - n // 2]
        masks = [sum(1 << k for k in range(v) if row[k] != 0xFFFF_FFFF) for row in m]

        def rank_of(q):
            r = 0
            while q:
                r, q = r ^ q, q >> 1
            return r

        ranks = [rank_of(q) for q in masks]
        word = (1 << 64) - 1
        line("row 64", "std::sparse gray_rank", [], {"map": m}, {"low": np.array([r & word for r in ranks], "u8"), "high": np.array([r >> 64 for r in ranks], "u8")})
        order = np.array(sorted(range(n), key=lambda i: ranks[i]), "u4")
        lists = [[k for k in range(v) if (m[order[a : a + b1], k] != 0xFFFF_FFFF).any()] for a in range(0, n, b1)]
        seg = np.cumsum([0] + [len(one) for one in lists]).astype("u4")
        assert len(seg) == -(-n // b1) + 1
        line("row 64", "std::sparse plan", [f"B1={b1}"], {"map": m}, {"order": order, "map_in_order": m[order].T, "seg": seg})


def curves():
    for d, bits, b in [("u4", 10, 4), ("u8", 20, 16), ("u4", 3, 2)]:
        n = 60
        c = np.concatenate([rng.integers(0, b, (n, 1)), rng.integers(0, 1 << bits, (n, 3))], 1).astype("i4")
        code = c[:, 0].astype("u8") << np.uint64(3 * bits)
        for k in range(bits):
            for a in range(3):
                code |= ((c[:, 1 + a].astype("u8") >> np.uint64(k)) & np.uint64(1)) << np.uint64(3 * k + 2 - a)
        s = ["K=" + NAMES[np.dtype(d)], f"BITS={bits}"]
        line("curve", "std::curve encode", s, {"coords": c}, {"code": code.astype(d)})
        line("curve", "std::curve decode", s, {"code": code.astype(d)}, {"coords": c})
    c = np.zeros((3, 4), "i4")
    c[1, 2] = 1024
    line("curve", "std::curve encode", [], {"coords": c}, error=("PA-1109", "site 1 has the coordinate 1024 along axis 2"))
    c[1] = [4, 0, 0, 0]
    line("curve", "std::curve encode", [], {"coords": c}, error=("PA-1109", "site 1 is in grid 4"))
    line("curve", "std::curve encode", ["BITS=11"], {"coords": c}, error=("E0302", "3 * BITS"))


def sampled(x, p, c, grid):
    """Trilinear samples of a dense grid, in f64."""
    rows = {tuple(q): i for i, q in enumerate(c.tolist())}
    y = np.zeros((len(p), x.shape[1]))
    for m, (b, *at) in enumerate(p):
        low = np.floor(at).astype(int)
        for k in positions((2, 2, 2)):
            i = rows.get((int(b), *(low + k)))
            if i is not None:
                y[m] += np.prod([f if one else 1 - f for one, f in zip(k, at - low)]) * x[i]
    return y


def samples():
    grid = (4, 5, 3)
    c = sites(70, grid)
    x = rng.standard_normal((70, 5)).astype("f4")
    # Eighths, so that the differences below stay between two sites, and a few that are outside.
    p = np.concatenate([rng.integers(0, 2, (30, 1)), rng.integers(-12, 40, (30, 3)) / 8 + 1 / 16], 1).astype("f4")
    p[3], p[4], p[5] = [0, 1e9, 0, 0], [0, np.nan, 1, 1], [7, 1, 1, 1]
    rows = {tuple(q): i for i, q in enumerate(c.tolist())}
    whole = lambda v: int(v) if np.isfinite(v) else -9
    near = np.array([[rows.get((whole(b), *[whole(np.floor(v + np.float32(0.5))) for v in at]), 0xFFFF_FFFF)] for b, *at in p], "u4")
    line("sampling", "std::sampling nearest_map", box(grid), {"coords": c, "points": p}, {"map": near})
    p = np.delete(p, 4, 0)
    m, w = np.full((29, 8), 0xFFFF_FFFF, "u4"), np.zeros((29, 8), "f4")
    for r, (b, *at) in enumerate(p.astype("f8")):
        low = np.floor(at).astype(int)
        for k, one in enumerate(positions((2, 2, 2))):
            m[r, k] = rows.get((int(b), *(low + one)), 0xFFFF_FFFF)
            if m[r, k] != 0xFFFF_FFFF:
                w[r, k] = np.prod([f if q else 1 - f for q, f in zip(one, at - low)])
    line("sampling", "std::sampling trilinear_map", box(grid), {"coords": c, "points": p}, {"map": m, "weight": w}, (1e-6, 1e-7))
    y = sampled(x.astype("f8"), p.astype("f8"), c, grid)
    line("sampling", "std::sampling weighed_sum", [], {"feats": x, "map": m, "weight": w}, {"y": y.astype("f4")}, (1e-5, 1e-6))
    g = rng.standard_normal((29, 5)).astype("f4")
    dx = differences(lambda q: (g * sampled(q, p.astype("f8"), c, grid)).sum(), x.astype("f8"))
    line("sampling", "std::sampling weighed_sum_gradient", [], {"dy": g, "map": m, "weight": w, "dfeats": np.zeros((70, 5), "f4")}, {"dfeats": dx.astype("f4")}, (1e-5, 1e-5))
    dw = np.einsum("mc,mkc->mk", g.astype("f8"), np.where((m == 0xFFFF_FFFF)[..., None], 0, x[np.minimum(m, 69)]))
    line("sampling", "std::sampling weight_of_sum_gradient", [], {"feats": x, "dy": g, "map": m}, {"dweight": dw.astype("f4")}, (1e-5, 1e-5))
    dp, step = np.zeros((29, 4)), 1 / 32
    for a in [1, 2, 3]:
        up, down = p.astype("f8"), p.astype("f8")
        up[:, a] += step
        down[:, a] -= step
        dp[:, a] = (g * (sampled(x.astype("f8"), up, c, grid) - sampled(x.astype("f8"), down, c, grid))).sum(1) / (2 * step)
    line("sampling", "std::sampling point_gradient", [], {"points": p, "map": m, "dweight": dw.astype("f4")}, {"dpoints": dp.astype("f4")}, (1e-4, 1e-5))


def preconditions():
    """What is given must fit together."""
    far, gone = 0xFFFF_FFFF, "PA-1109"
    x = np.arange(9, dtype="u4")
    line("row 97", "std::sort take", [], {"x": x, "order": np.array([8, 0, 9], "u4")}, error=(gone, "place 2 of the order is 9, and there are 9 elements"))
    m = np.array([[0, 1], [far, 2], [5, far], [far, 4]], "u4")
    bad = m.copy()
    bad[2, 0] = 6
    f4 = lambda *shape: rng.standard_normal(shape).astype("f4")
    feats, weight, dy, said = f4(6, 4), f4(3, 2, 4), f4(4, 3), (gone, "site 2 meets row 6 at position 0, and there are 6 rows")
    for kind in ["explicit", "implicit"]:
        line("row 97", f"std::sparse conv_{kind}", [], {"feats": feats, "weight": weight, "map": bad}, error=said)
        line("row 97", f"std::sparse input_gradient_{kind}", [], {"dy": f4(6, 3), "weight": weight, "inverse": bad}, error=said)
    for kind in ["explicit", "implicit", "masked"]:
        line("row 97", f"std::sparse weight_gradient_{kind}", [], {"feats": feats, "dy": dy, "map": bad}, error=said)
    line("row 97", "std::sparse inverse_map", ["N=6"], {"map": bad}, error=said)
    bad[2, 0] = 0
    line("row 97", "std::sparse inverse_map", ["N=6"], {"map": bad}, error=(gone, "meets row 0 at position 0, as another site does"))

    def plan(order, m):
        used = [v for v in range(m.shape[1]) if (m[:, v] != far).any()]
        order = np.array(order, "u4")
        return {"order": order, "map_in_order": m[order].T, "seg": np.array([0, len(used)], "u4"), "list": np.array(used + [0] * (m.shape[1] - len(used)), "u4")}

    def masked(error, **other):
        line("row 97", "std::sparse conv_masked", ["B1=16"], {"feats": feats, "weight": weight, **plan([2, 0, 3, 1], m), **other}, error=(gone, error))

    u4 = lambda *values: np.array(values, "u4")
    masked("place 2 of the order is site 4, and there are 4", order=u4(2, 0, 4, 1))
    masked("the order has site 2 twice", order=u4(2, 0, 2, 1))
    masked("meets row 6 at position 1, and there are 6 rows", map_in_order=np.array([[5, 0, far, far], [far, 6, 4, 2]], "u4"))
    masked("the positions of the first block begin at 1, and not at 0", seg=u4(1, 2))
    masked("end at 3, and there are 2 places", seg=u4(0, 3))
    masked("meets a row at position 0, which is not in the block's list", list=u4(1, 1))
    masked("meets a row at position 1, which is not in the block's list", seg=u4(0, 1))
    masked("positions at which none of its sites meets a row", map_in_order=np.array([[5, 0, far, far], [far] * 4], "u4"))
    w = f4(4, 2)
    bad[2, 0] = 6
    point = (gone, "point 2 takes row 6, and there are 6 rows")
    line("row 97", "std::sampling weighed_sum", [], {"feats": feats, "map": bad, "weight": w}, error=point)
    line("row 97", "std::sampling weighed_sum_gradient", [], {"dy": f4(4, 4), "map": bad, "weight": w, "dfeats": f4(6, 4)}, error=point)
    line("row 97", "std::sampling weight_of_sum_gradient", [], {"feats": feats, "dy": f4(4, 4), "map": bad}, error=point)


def far_away():
    """Coordinates and numbers of grids that f32 and i32 hardly hold."""
    at = [0, 1, 2, 2**23 + 1, 2**23 + 2, 2**24 + 2, 2**30]
    c = np.array([[0, x, 0, 0] for x in at], "i4")
    near = [np.nextafter(np.float32(x), np.float32(to)) for x, to in [(0.5, 0), (0.5, 1), (1.5, 1), (-0.5, 0), (-0.5, -1)]]
    p = np.array([[0, x, 0, 0] for x in [0.5, -0.5, 1.5, *near, *at, 2**31, -(2**31), np.inf, -np.inf]], "f4")
    rows = {x: i for i, x in enumerate(at)}
    wanted = [rows.get(np.floor(x + 0.5), 0xFFFF_FFFF) for x in p[:, 1].astype("f8")]
    line("sampling", "std::sampling nearest_map", ["K=u64", *box((2**30 + 1, 1, 1), 1)], {"coords": c, "points": p}, {"map": np.array(wanted, "u4")[:, None]})
    code = np.array([5, (2**31 - 1) << 30 | 5], "u8")
    line("curve", "std::curve decode", ["K=u64"], {"code": code}, {"coords": np.array([[0, 1, 0, 1], [2**31 - 1, 1, 0, 1]], "i4")})
    code[1] = 1 << 61
    line("curve", "std::curve decode", ["K=u64"], {"code": code}, error=("PA-1109", "code 1 is of a grid whose number i32 does not hold"))


def segments():
    """The largest of each segment, by numpy's order: NaN first, and of equal ones the first first."""
    x = rng.integers(-9, 9, 200).astype("f4") / 4
    x[[3, 50, 51]], x[[4, 52]], x[[7, 60]], x[[8, 61]] = np.nan, [np.inf, -np.inf], 0.0, -0.0
    seg = np.array([0, 5, 70, 75, 200], "u4")
    key = [(-int(np.isnan(v)), -float(np.nan_to_num(v, nan=0, posinf=99, neginf=-99))) for v in x]
    for m in [1, 3, 5]:
        best = np.array([sorted(range(a, b), key=lambda i: (*key[i], i))[:m] for a, b in zip(seg, seg[1:])], "u4")
        line("sort", "std::sort segmented_top_k", [f"M={m}"], {"x": x, "seg": seg}, {"values": x[best], "places": best})
    said = ("PA-1109", "segment 0 has 5 elements, and 6 of them are wanted")
    line("sort", "std::sort segmented_top_k", ["M=6"], {"x": x, "seg": seg}, error=said)
    i = rng.integers(-4, 4, 90).astype("i4")
    best = np.array([sorted(range(a, b), key=lambda k: (-i[k], k))[:9] for a, b in [(0, 60), (60, 90)]], "u4")
    line("sort", "std::sort segmented_top_k", ["T=i32", "key=int_key", "M=9"], {"x": i, "seg": np.array([0, 60, 90], "u4")}, {"values": i[best], "places": best})


print("# Written by tests/scripts/standard_vectors.py, which says what a line is. Do not edit.")
scans()
sorts()
hashes()
maps()
products()
strided()
gray_codes()
curves()
samples()
preconditions()
far_away()
segments()
