/* Numbers of errors that are the device's: it is none for this code, and it has ended a call. */
enum { NAME_UNAVAILABLE = @UNAVAILABLE@, NAME_FAILED = @FAILED@ };

/* A memory that an argument has. */
typedef struct NAME_array {
    uint64_t first, behind;
    int written;
} NAME_array;

/* What a launch makes of sizes: the grid, and how CTAs share it. */
typedef struct NAME_plan {
    int64_t extents[@RANK1@], turns[@RANK1@];
    uint64_t blocks;
    uint32_t ctas;
} NAME_plan;

static int32_t NAME_say(ptoc_status *status, int32_t code, const char *message, const int64_t *numbers,
                        uint32_t count) {
    if (status) {
        memset(status, 0, sizeof *status);
        status->code = code;
        status->count = count;
        if (count) memcpy(status->numbers, numbers, count * sizeof *numbers);
        status->block = -1;
        status->message = message;
    }
    return code;
}

/* What the driver says of a call; 0 is nothing. */
static int32_t NAME_driver(ptoc_status *status, int result, const char *message) {
    const int64_t number = result;
    return result ? NAME_say(status, NAME_FAILED, message, &number, 1) : 0;
}

/* The memory of an argument: of `count` extents, or its first element where those are not known. */
static int32_t NAME_memory(NAME_array *array, uint64_t first, uint64_t size, const int64_t *extents, int count,
                           int written, const char *const *texts, ptoc_status *status) {
    uint64_t bytes = size;
    int n;
    for (n = 0; n < count; n++) {
        uint64_t extent = (uint64_t)extents[n];
        if (extent && bytes > (uint64_t)INT64_MAX / extent) return NAME_say(status, @TOO_LARGE@, texts[0], NULL, 0);
        bytes *= extent;
    }
    if (first > UINT64_MAX - bytes) return NAME_say(status, @TOO_LARGE@, texts[0], NULL, 0);
    if (!first && bytes) return NAME_say(status, @NULL@, texts[1], NULL, 0);
    if (first % 16 && bytes) return NAME_say(status, @MISALIGNED@, texts[2], NULL, 0);
    array->first = first;
    array->behind = first + bytes;
    array->written = written;
    return 0;
}

/* Nothing that is written shares bytes with another array. */
static int32_t NAME_apart(const NAME_array *arrays, ptoc_status *status) {
    int n, k;
    for (n = 0; n < @ARRAYS@; n++) {
        for (k = 0; k < @ARRAYS@; k++) {
            const NAME_array *own = &arrays[n], *other = &arrays[k];
            if (n == k || !own->written || own->first >= other->behind || other->first >= own->behind) continue;
            if (own->first == own->behind || other->first == other->behind) continue;
            return NAME_say(status, @OVERLAP@, NAME_texts[n][3], NULL, 0);
        }
    }
    return 0;
}

/* The extents of the grid, or what is wrong with the call. */
static int32_t NAME_planned(const ptoc_cuda *kernel, const int64_t *params, NAME_plan *plan, ptoc_status *status) {
    static const uint64_t spans[@RANK1@] = {@SPANS@};
    int64_t numbers[4] = {0, 0, 0, 0};
    uint32_t count = 0;
    uint64_t most = @MOST_CTAS@, turns = 1;
    int empty = 0, d;
    int32_t row;
    memset(plan, 0, sizeof *plan);
    row = NAME_grid(params, plan->extents, numbers, &count);
    if (row >= 0) return NAME_say(status, NAME_checks[row].code, NAME_checks[row].message, numbers, count);
    plan->blocks = 1;
    for (d = 0; d < @RANK@; d++) empty |= plan->extents[d] <= 0;
    for (d = 0; d < @RANK@ && !empty; d++) {
        uint64_t extent = (uint64_t)plan->extents[d];
        if (extent > UINT64_C(@MOST_BLOCKS@) / plan->blocks)
            return NAME_say(status, @GRID@, "the grid has more than @MOST_BLOCKS@ blocks", NULL, 0);
        plan->blocks *= extent;
        plan->turns[d] = (int64_t)((extent + spans[d] - 1) / spans[d]);
        turns *= (uint64_t)plan->turns[d];
    }
    if (empty) plan->blocks = 0;
    if (most < (uint64_t)kernel->resident || @RESIDENT@) most = (uint64_t)kernel->resident;
    /* CTAs of a cluster take a turn together. */
    most /= @CLUSTER@;
    if (most < 1) most = 1;
    plan->ctas = @CLUSTER@ * (empty ? 1 : (uint32_t)(turns < most ? turns : most));
    return 0;
}

/* Bytes of the workspace from a multiple of 256 on: the number of CTAs, the status, and scratch memory of each. */
static uint64_t NAME_status_bytes(const NAME_plan *plan) { return (16 + UINT64_C(40) * plan->ctas + 255) / 256 * 256; }

static uint64_t NAME_needed(const NAME_plan *plan) {
    return @NEEDS@ ? NAME_status_bytes(plan) + UINT64_C(@SCRATCH@) * plan->ctas : 0;
}

static int32_t NAME_launch(const ptoc_cuda *kernel, const uint64_t *tensors, const int64_t *params,
                           const NAME_array *arrays, void *workspace, size_t workspace_bytes, void *stream,
                           ptoc_status *status) {
    uint64_t words[@WORDS@];
    unsigned char room[@MAPS@ * 128 + 64], *maps = room + (64 - (uintptr_t)room % 64) % 64;
    void *arguments[@WORDS@ + @MAPS@];
    NAME_plan plan;
    uint64_t base = ((uint64_t)(uintptr_t)workspace + 255) / 256 * 256, bytes;
    int n;
    int32_t code = NAME_apart(arrays, status);
    if (code) return code;
    if (!kernel || !kernel->function)
        return NAME_say(status, NAME_UNAVAILABLE, "the kernel is not loaded: NAME_load has not filled it", NULL, 0);
    if ((code = NAME_planned(kernel, params, &plan, status))) return code;
    bytes = NAME_needed(&plan);
    if (bytes) {
        uint64_t lost = base - (uint64_t)(uintptr_t)workspace;
        if (!workspace || workspace_bytes < lost || workspace_bytes - lost < bytes) {
            int64_t numbers[2];
            numbers[0] = (int64_t)bytes;
            numbers[1] = (int64_t)workspace_bytes;
            return NAME_say(status, @WORKSPACE@, "the workspace has {1} bytes, and {0} are needed", numbers, 2);
        }
        for (n = 0; n < @ARRAYS@; n++) {
            if (arrays[n].first < base + bytes && base < arrays[n].behind && arrays[n].first != arrays[n].behind)
                return NAME_say(status, @OVERLAP@, NAME_texts[n][4], NULL, 0);
        }
        code = NAME_driver(status, cuMemsetD32Async(base, plan.ctas, 1, stream), "cuMemsetD32Async gives {0}");
        if (code) return code;
        code = NAME_driver(status, cuMemsetD32Async(base + 8, 0xffffffffu, 2, stream), "cuMemsetD32Async gives {0}");
        if (code) return code;
    }
    if (!plan.blocks) return 0;
    for (n = 0; n < @TENSORS@; n++) words[n] = tensors[n];
    for (n = 0; n < @PARAMS@; n++) words[@TENSORS@ + n] = (uint64_t)params[n];
    words[@BEHIND@] = 1;
    for (n = 0; n < @RANK@; n++) {
        words[@TENSORS@ + @PARAMS@ + n] = (uint64_t)plan.turns[n];
        words[@BEHIND@] *= (uint64_t)plan.turns[n];
    }
    words[@BEHIND@ + 1] = @CHECKS@ ? base + 8 : 0;
    words[@BEHIND@ + 2] = @SCRATCH@ ? base + NAME_status_bytes(&plan) : 0;
    code = NAME_driver(status, NAME_maps(tensors, params, plan.extents, words + @BEHIND@ + 3, maps),
                       "cuTensorMapEncodeTiled gives {0}");
    if (code) return code;
    for (n = 0; n < @WORDS@; n++) arguments[n] = &words[n];
    for (n = 0; n < @MAPS@; n++) arguments[@WORDS@ + n] = maps + 128 * n;
    return NAME_driver(status,
                       cuLaunchKernel(kernel->function, plan.ctas, 1, 1, @THREADS@, 1, 1, @SHARED@, stream, arguments,
                                      NULL),
                       "cuLaunchKernel gives {0}");
}

int32_t NAME_load(ptoc_cuda *kernel, const void *image, ptoc_status *status) {
    int device = 0, major = 0, processors = 0, resident = 0, result;
    int64_t number;
    int32_t code;
    memset(kernel, 0, sizeof *kernel);
    number = result = cuCtxGetDevice(&device);
    if (result) return NAME_say(status, NAME_UNAVAILABLE, "no context is current: cuCtxGetDevice gives {0}", &number, 1);
    /* CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT */
    if ((code = NAME_driver(status, cuDeviceGetAttribute(&major, 75, device), "cuDeviceGetAttribute gives {0}")) ||
        (code = NAME_driver(status, cuDeviceGetAttribute(&processors, 16, device), "cuDeviceGetAttribute gives {0}")))
        return code;
    number = major;
    if (major != 9)
        return NAME_say(status, NAME_UNAVAILABLE, "the device has compute capability {0}, and sm_90a is a Hopper (9)",
                        &number, 1);
    code = NAME_driver(status, cuModuleLoadDataEx(&kernel->module, image ? image : NAME_image, 0, NULL, NULL),
                       "the driver does not take the code: cuModuleLoadDataEx gives {0}");
    if (code) {
        kernel->module = NULL;
        return code;
    }
    code = NAME_driver(status, cuModuleGetFunction(&kernel->function, kernel->module, "@ENTRY@"),
                       "the code has no entry @ENTRY@: cuModuleGetFunction gives {0}");
    /* CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES */
    if (!code)
        code = NAME_driver(status, cuFuncSetAttribute(kernel->function, 8, @SHARED@),
                           "the device has no @SHARED@ bytes of shared memory: cuFuncSetAttribute gives {0}");
    if (!code && @CLUSTER@ > 1) {
        /* CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION */
        const ptoc_cuda_attribute cluster = {4, {0}, {@CLUSTER@, 1, 1}};
        const ptoc_cuda_config config = {{@CLUSTER@, 1, 1}, {@THREADS@, 1, 1}, @SHARED@, NULL, &cluster, 1};
        code = NAME_driver(status, cuOccupancyMaxActiveClusters(&resident, kernel->function, &config),
                           "cuOccupancyMaxActiveClusters gives {0}");
        resident *= @CLUSTER@;
        processors = 1;
    } else if (!code)
        code = NAME_driver(
            status, cuOccupancyMaxActiveBlocksPerMultiprocessor(&resident, kernel->function, @THREADS@, @SHARED@),
            "cuOccupancyMaxActiveBlocksPerMultiprocessor gives {0}");
    if (code) {
        NAME_unload(kernel);
        return code;
    }
    kernel->resident = (resident < 1 ? 1 : resident) * (processors < 1 ? 1 : processors);
    return 0;
}

void NAME_unload(ptoc_cuda *kernel) {
    if (kernel && kernel->module) cuModuleUnload(kernel->module);
    if (kernel) memset(kernel, 0, sizeof *kernel);
}

int32_t NAME_wait(const void *workspace, struct CUstream_st *stream, ptoc_status *status) {
    uint64_t base = ((uint64_t)(uintptr_t)workspace + 255) / 256 * 256, head[2] = {0, UINT64_MAX}, slot[5];
    int32_t code = 0;
    int checks = @CHECKS@;
    if (checks && !workspace) {
        int64_t numbers[2] = {16, 0};
        return NAME_say(status, @WORKSPACE@, "the workspace has {1} bytes, and {0} are needed", numbers, 2);
    }
    if (checks)
        code = NAME_driver(status, cuMemcpyDtoHAsync_v2(head, base, sizeof head, stream),
                           "cuMemcpyDtoHAsync gives {0}");
    if (!code) code = NAME_driver(status, cuStreamSynchronize(stream), "cuStreamSynchronize gives {0}");
    if (code || head[1] == UINT64_MAX) return code;
    if (!(uint32_t)head[0] || (uint32_t)head[1] >= @ROWS@)
        return NAME_say(status, NAME_FAILED, "the workspace is not as the kernel has left it", NULL, 0);
    code = NAME_driver(status,
                       cuMemcpyDtoHAsync_v2(slot, base + 16 + 40 * ((head[1] >> 32) % (uint32_t)head[0]), sizeof slot,
                                            stream),
                       "cuMemcpyDtoHAsync gives {0}");
    if (!code) code = NAME_driver(status, cuStreamSynchronize(stream), "cuStreamSynchronize gives {0}");
    if (code) return code;
    code = NAME_say(status, NAME_checks[(uint32_t)head[1]].code, NAME_checks[(uint32_t)head[1]].message,
                    (const int64_t *)&slot[1], slot[0] > 4 ? 4 : (uint32_t)slot[0]);
    if (status) status->block = (int64_t)(head[1] >> 32);
    return code;
}

