/* The map of an operand of `lines` by `length` factors, for each matrix of a batch; `good` is 0 where bulk copies cannot
   bring it. */
static int NAME_operand(void *map, uint64_t *good, uint64_t array, uint64_t base, int64_t length, int64_t lines,
                        int64_t outer, int64_t factor, int dense, unsigned rows, unsigned batch,
                        const int64_t *matrices, const int64_t *apart) {
    /* What is copied are halves, of words themselves. */
    const int64_t unit = factor == 4 ? 4 : 2;
    const unsigned box = (unsigned)(2 * @HALVES@ / unit);
    int64_t halves = length >= 0 && length <= INT64_MAX / factor ? length * factor : -1;
    uint64_t stride = outer >= 0 && outer <= INT64_MAX / factor ? (uint64_t)(outer * factor) : 0;
    const int64_t most = INT64_C(1) << 31;
    uint64_t counts[3], pitches[3];
    unsigned n;
    int fits = dense && halves >= 0 && halves % unit == 0 && base % 16 == 0 && stride % 16 == 0 && stride >= 16 &&
               stride < UINT64_C(1) << 40;
    for (n = 0; n < batch; n++) {
        counts[n] = (uint64_t)matrices[n];
        pitches[n] = apart[n] >= 0 && apart[n] <= INT64_MAX / factor ? (uint64_t)(apart[n] * factor) : 0;
        fits = fits && matrices[n] >= 1 && matrices[n] < most && pitches[n] % 16 == 0 && pitches[n] >= 16 &&
               pitches[n] < UINT64_C(1) << 40;
    }
    halves /= unit;
    *good = (uint64_t)(fits && halves >= 1 && halves < most && lines >= 1 && lines < most);
    if (*good)
        return NAME_map(map, factor == 4 ? 11 : 1, base, (uint64_t)halves, (uint64_t)lines, stride, box, rows, batch, counts, pitches);
    /* The kernel does not look at it, but the driver does. */
    return NAME_map(map, 1, array / 16 * 16, @HALVES@, 1, 2 * @HALVES@, @HALVES@, 1, batch, 0, 0);
}

