/* Softmax of each row of a matrix on a GPU, by the kernel of examples/softmax.tile. A program that has CUDA's runtime
 * calls `cudaMalloc` and the like in place of the driver's functions below, and passes its `cudaStream_t`. */

#include "softmax.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 3, COLUMNS = 8 };

/* What is used of NVIDIA's driver; <cuda.h> of a toolkit declares it, too. */
int cuInit(unsigned flags);
int cuDeviceGet(int *device, int number);
int cuDevicePrimaryCtxRetain(void **context, int device);
int cuDevicePrimaryCtxRelease_v2(int device);
int cuCtxSetCurrent(void *context);
int cuMemAlloc_v2(uint64_t *address, size_t bytes);
int cuMemFree_v2(uint64_t address);
int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t bytes);
int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t bytes);

static void check(int result, const char *what) {
    if (result == 0) return;
    fprintf(stderr, "%s: CUresult %d\n", what, result);
    exit(EXIT_FAILURE);
}

static void expect(int32_t code, const ptoc_status *status) {
    if (code == 0) return;
    fprintf(stderr, "softmax: error %" PRId32 ": %s\n", code, status->message);
    exit(EXIT_FAILURE);
}

static void *device_memory(size_t bytes) {
    uint64_t address = 0;
    if (bytes > 0) check(cuMemAlloc_v2(&address, bytes), "cuMemAlloc");
    return (void *)(uintptr_t)address;
}

int main(void) {
    float host[ROWS * COLUMNS];
    for (int i = 0; i < ROWS * COLUMNS; i++) host[i] = (float)(i % 5);

    int device;
    void *context;
    check(cuInit(0), "cuInit");
    check(cuDeviceGet(&device, 0), "cuDeviceGet");
    check(cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
    check(cuCtxSetCurrent(context), "cuCtxSetCurrent");

    /* Once for each context; any number of threads may launch. */
    ptoc_cuda kernel;
    ptoc_status status;
    expect(softmax_load(&kernel, NULL, &status), &status);

    float *x = device_memory(sizeof host), *y = device_memory(sizeof host);
    check(cuMemcpyHtoD_v2((uint64_t)(uintptr_t)x, host, sizeof host), "cuMemcpyHtoD");

    /* A workspace is a launch's until that has run. */
    size_t bytes = softmax_workspace(&kernel, ROWS);
    void *workspace = device_memory(bytes);
    expect(softmax(&kernel, x, y, ROWS, workspace, bytes, NULL, &status), &status);
    expect(softmax_wait(workspace, NULL, &status), &status);

    check(cuMemcpyDtoH_v2(host, (uint64_t)(uintptr_t)y, sizeof host), "cuMemcpyDtoH");
    for (int i = 0; i < ROWS; i++) {
        float sum = 0;
        for (int j = 0; j < COLUMNS; j++) {
            printf("%s%.4f", j ? " " : "", host[i * COLUMNS + j]);
            sum += host[i * COLUMNS + j];
        }
        printf("  sum %.3f\n", sum);
    }

    if (workspace) check(cuMemFree_v2((uint64_t)(uintptr_t)workspace), "cuMemFree");
    check(cuMemFree_v2((uint64_t)(uintptr_t)x), "cuMemFree");
    check(cuMemFree_v2((uint64_t)(uintptr_t)y), "cuMemFree");
    softmax_unload(&kernel);
    check(cuDevicePrimaryCtxRelease_v2(device), "cuDevicePrimaryCtxRelease");
    return EXIT_SUCCESS;
}
