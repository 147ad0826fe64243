/* The map of a matrix of halves, by boxes whose rows of 128 bytes are swizzled. */
static int NAME_map(void *map, uint64_t base, uint64_t columns, uint64_t rows, uint64_t stride, unsigned box_columns,
                    unsigned box_rows) {
    uint64_t dims[2];
    unsigned box[2];
    static const unsigned steps[2] = {1, 1};
    dims[0] = columns;
    dims[1] = rows;
    box[0] = box_columns;
    box[1] = box_rows;
    /* CU_TENSOR_MAP_DATA_TYPE_UINT16, CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B */
    return cuTensorMapEncodeTiled(map, 1, 2, (void *)(uintptr_t)base, dims, &stride, box, steps, 0, 3, 3, 0);
}

