static float NAME_to_f(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static uint32_t NAME_of_f(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static uint64_t NAME_div_s(uint64_t a, uint64_t b) {
    if (b == 0) return UINT64_MAX;
    if (b == UINT64_MAX) return 0 - a;
    return (uint64_t)((int64_t)a / (int64_t)b);
}

static uint64_t NAME_rem_s(uint64_t a, uint64_t b) {
    if (b == 0) return a;
    if (b == UINT64_MAX) return 0;
    return (uint64_t)((int64_t)a % (int64_t)b);
}

static uint64_t NAME_div_floor(uint64_t a, uint64_t b) {
    uint64_t q = NAME_div_s(a, b);
    int inexact = b != 0 && q * b != a;
    return inexact && ((int64_t)a < 0) != ((int64_t)b < 0) ? q - 1 : q;
}

static uint64_t NAME_rem_floor(uint64_t a, uint64_t b) {
    return b == 0 ? a : a - NAME_div_floor(a, b) * b;
}

static uint64_t NAME_shr_s(uint64_t a, uint64_t n) {
    uint64_t by = n > 63 ? 63 : n;
    return (int64_t)a < 0 ? ~(~a >> by) : a >> by;
}

static float NAME_max_f(float x, float y) {
    if (x != x || y != y) return NAME_to_f(0x7fc00000u);
    return x > y || (x == y && NAME_of_f(y) >> 31) ? x : y;
}

static float NAME_scale(float x, float by) {
    return by != by ? x : ldexpf(x, by > 4096 ? 4096 : by < -4096 ? -4096 : (int)by);
}

static float NAME_from_half(uint32_t h) {
    uint32_t sign = (h & 0x8000u) << 16, e = h >> 10 & 31, m = h & 0x3ffu;
    if (e == 31) return NAME_to_f(sign | 0x7f800000u | (m ? m << 13 | 0x400000u : 0));
    if (e) return NAME_to_f(sign | (e + 112) << 23 | m << 13);
    return NAME_to_f(sign | NAME_of_f((float)m * NAME_to_f(0x33800000u)));
}

static uint32_t NAME_to_half(float x) {
    uint32_t bits = NAME_of_f(x), sign = bits >> 16 & 0x8000u, a = bits & 0x7fffffffu;
    if (a > 0x7f800000u) return sign | 0x7e00u | (a >> 13 & 0x3ffu);
    if (a >= 0x477ff000u) return sign | 0x7c00u;
    if (a < 0x38800000u) {
        uint32_t shift = 126 - (a >> 23), m = (a & 0x7fffffu) | 0x800000u, q, rest, half;
        if (shift > 24) return sign;
        q = m >> shift;
        rest = m & ((1u << shift) - 1);
        half = 1u << (shift - 1);
        return sign | (q + (rest > half || (rest == half && (q & 1))));
    }
    a += 0xfffu + (a >> 13 & 1);
    return sign | (a - 0x38000000u) >> 13;
}

static uint32_t NAME_to_bf16(float x) {
    uint32_t bits = NAME_of_f(x);
    if (x != x) return bits >> 16 | 0x40u;
    return (bits + 0x7fffu + (bits >> 16 & 1)) >> 16;
}

static uint64_t NAME_to_int(float x, float least, float behind, uint64_t first, uint64_t last) {
    if (x != x) return 0;
    if (x < least) return first;
    if (x >= behind) return last;
    return (uint64_t)(int64_t)x;
}

static uint64_t NAME_to_u64(float x) {
    if (!(x > 0)) return 0;
    return x >= NAME_to_f(0x5f800000u) ? UINT64_MAX : (uint64_t)x;
}
