/* The map of matrices of halves (of f32 that become TF32, if the type says so), by boxes whose rows of 32, 64 or 128 bytes are swizzled: columns, rows, and `batch` dimensions that
   count matrices; bytes from row to row, and from matrix to matrix. */
static int NAME_map(void *map, int type, uint64_t base, uint64_t columns, uint64_t rows, uint64_t stride, unsigned box_columns,
                    unsigned box_rows, unsigned batch, const uint64_t *matrices, const uint64_t *pitches) {
    uint64_t dims[5], strides[4];
    unsigned box[5], n;
    const unsigned bytes = box_columns * (type == 11 ? 4 : 2);
    static const unsigned steps[5] = {1, 1, 1, 1, 1};
    dims[0] = columns;
    dims[1] = rows;
    strides[0] = stride;
    box[0] = box_columns;
    box[1] = box_rows;
    for (n = 0; n < batch; n++) {
        dims[2 + n] = matrices ? matrices[n] : 1;
        strides[1 + n] = pitches ? pitches[n] : stride;
        box[2 + n] = 1;
    }
    /* CU_TENSOR_MAP_DATA_TYPE_UINT16 (1) or TFLOAT32 (11), CU_TENSOR_MAP_SWIZZLE_32B (1), _64B (2) or _128B (3),
       CU_TENSOR_MAP_L2_PROMOTION_L2_256B */
    return cuTensorMapEncodeTiled(map, type, 2 + batch, (void *)(uintptr_t)base, dims, strides, box, steps, 0,
                                  bytes == 32 ? 1 : bytes == 64 ? 2 : 3, 3, 0);
}

