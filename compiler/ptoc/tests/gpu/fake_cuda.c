/* A driver without a device: memory is the host's, kernels do nothing. FAKE_CUDA says what goes wrong; the calls of
 * interest are appended to the file FAKE_CUDA_LOG, with FAKE_CUDA_WORDS also what a launch passes: so many numbers, but
 * for the addresses among them, which are those beyond 2^32. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef void *handle;

static int mode(const char *name) {
    const char *value = getenv("FAKE_CUDA");
    return value != NULL && strcmp(value, name) == 0;
}

static void note(const char *what, size_t size) {
    const char *path = getenv("FAKE_CUDA_LOG");
    FILE *file = path == NULL ? NULL : fopen(path, "a");
    if (file != NULL) {
        fprintf(file, "%s %zu\n", what, size);
        fclose(file);
    }
}

int cuInit(unsigned flags) { return mode("none") ? 100 : 0; }
int cuDriverGetVersion(int *version) { *version = mode("old") ? 11080 : 13000; return 0; }
int cuGetErrorString(int result, const char **text) {
    switch (result) {
    case 2: *text = "out of memory"; break;
    case 100: *text = "no CUDA-capable device is detected"; break;
    case 218: *text = "a PTX JIT compilation failed"; break;
    case 700: *text = "an illegal memory access was encountered"; break;
    default: *text = "something else"; break;
    }
    return 0;
}
int cuDeviceGetCount(int *count) { *count = 1; return 0; }
int cuDeviceGet(int *device, int number) { *device = number; return 0; }
int cuDeviceGetName(char *name, int size, int device) { snprintf(name, size, "Fake H100"); return 0; }
int cuDeviceGetAttribute(int *value, int which, int device) {
    *value = which == 75 ? (mode("ampere") ? 8 : 9) : which == 16 ? 132 : 0;
    return 0;
}
int cuDevicePrimaryCtxRetain(handle *context, int device) { *context = &mode; return 0; }
int cuDevicePrimaryCtxRelease_v2(int device) { return 0; }
int cuCtxGetDevice(int *device) { *device = 0; return mode("none") ? 201 : 0; }
int cuCtxSetCurrent(handle context) { return 0; }
int cuCtxPushCurrent_v2(handle context) { note("push", 0); return 0; }
int cuCtxPopCurrent_v2(handle *context) { note("pop", 0); *context = &mode; return 0; }
int cuThreadExchangeStreamCaptureMode(int *mode) { return 0; }
int cuStreamIsCapturing(handle stream, int *status) { *status = mode("capturing"); return 0; }
int cuStreamSynchronize(handle stream) {
    note("wait", (size_t)(uintptr_t)stream);
    return mode("fault") ? 700 : 0;
}
int cuMemAllocAsync(uint64_t *address, size_t size, handle stream) {
    note("alloc-on-stream", size);
    if (mode("memory")) return 2;
    *address = (uint64_t)(uintptr_t)calloc(1, size);
    return 0;
}
int cuMemFreeAsync(uint64_t address, handle stream) {
    note("free-on-stream", 0);
    free((void *)(uintptr_t)address);
    return 0;
}
int cuMemsetD8Async(uint64_t to, uint8_t byte, size_t count, handle stream) {
    note("fill", count);
    memset((void *)(uintptr_t)to, byte, count);
    return 0;
}
int cuMemsetD16Async(uint64_t to, uint16_t element, size_t count, handle stream) {
    note("fill", 2 * count);
    for (size_t i = 0; i < count; i++) ((uint16_t *)(uintptr_t)to)[i] = element;
    return 0;
}
int cuMemsetD32Async(uint64_t to, unsigned element, size_t count, handle stream) {
    note("fill", 4 * count);
    for (size_t i = 0; i < count; i++) ((uint32_t *)(uintptr_t)to)[i] = element;
    return 0;
}
int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t size, handle stream) {
    note("to-host-on-stream", size);
    memcpy(to, (void *)(uintptr_t)from, size);
    return 0;
}
int cuCtxSynchronize(void) { return mode("fault") ? 700 : 0; }

int cuModuleLoadDataEx(handle *module, const void *image, unsigned n, int *options, handle *values) {
    note("load", 0);
    if (mode("refused")) {
        if (n > 1) snprintf(values[0], (size_t)(uintptr_t)values[1], "ptxas fatal : unsupported");
        return 218;
    }
    *module = &mode;
    return 0;
}
int cuModuleUnload(handle module) { note("unload", 0); return 0; }
int cuModuleGetFunction(handle *function, handle module, const char *name) { *function = &mode; return 0; }
int cuFuncGetAttribute(int *value, int which, handle function) { *value = 0; return 0; }
int cuFuncSetAttribute(handle function, int which, int value) { return 0; }
struct config {
    unsigned grid[3], block[3], shared;
    handle stream;
    const unsigned *attributes;
    unsigned count;
};

/* Two clusters of the size that is asked for. */
int cuOccupancyMaxActiveClusters(int *count, handle function, const struct config *config) {
    note("clusters", config->attributes[2]);
    *count = 2;
    return 0;
}

int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *count, handle function, int threads, size_t shared) {
    *count = 2;
    return 0;
}
int cuMemAlloc_v2(uint64_t *address, size_t size) {
    note("alloc", size);
    if (mode("memory")) return 2;
    *address = (uint64_t)(uintptr_t)calloc(1, size);
    return 0;
}
int cuMemFree_v2(uint64_t address) { free((void *)(uintptr_t)address); return 0; }
int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t size) {
    note("to-device", size);
    memcpy((void *)(uintptr_t)to, from, size);
    return 0;
}
int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t size) {
    note("to-host", size);
    memcpy(to, (void *)(uintptr_t)from, size);
    return 0;
}
int cuMemsetD8_v2(uint64_t to, uint8_t byte, size_t size) { memset((void *)(uintptr_t)to, byte, size); return 0; }
int cuLaunchKernel(handle function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, handle stream, void **params, void **extra) {
    note("launch", bx);
    if (getenv("FAKE_CUDA_WORDS") != NULL) {
        note("grid", gx);
        note("shared", shared);
        for (int n = 0; n < atoi(getenv("FAKE_CUDA_WORDS")); n++) {
            uint64_t word = *(uint64_t *)params[n];
            note("word", word >> 32 ? 0 : word);
        }
    }
    return mode("resources") ? 701 : 0;
}
int cuEventCreate(handle *event, unsigned flags) { *event = &mode; return 0; }
int cuEventRecord(handle event, handle stream) { return 0; }
int cuEventSynchronize(handle event) { return 0; }
int cuEventElapsedTime(float *ms, handle begin, handle end) { *ms = 0.5f; return 0; }
int cuEventDestroy_v2(handle event) { return 0; }
int cuTensorMapEncodeTiled(void *map, int type, unsigned rank, void *base, const uint64_t *dims,
                           const uint64_t *strides, const unsigned *box, const unsigned *steps, int interleave,
                           int swizzle, int promotion, int fill) {
    note("map", (size_t)(dims[0] * dims[1]));
    if (getenv("FAKE_CUDA_WORDS") != NULL) {
        note("stride", strides[0]);
        note("box", box[0] * 1000 + box[1]);
        note("kinds", (size_t)(type * 1000 + interleave * 100 + swizzle * 10 + promotion));
    }
    memset(map, 0, 128);
    return 0;
}
