#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* NVIDIA's driver: link with -lcuda. Handles are `void *` here, an address of the device is a number. */
int cuCtxGetDevice(int *device);
int cuDeviceGetAttribute(int *value, int attribute, int device);
int cuModuleLoadDataEx(void **module, const void *image, unsigned count, int *options, void **values);
int cuModuleUnload(void *module);
int cuModuleGetFunction(void **function, void *module, const char *name);
int cuFuncSetAttribute(void *function, int attribute, int value);
int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *count, void *function, int threads, size_t shared);
#ifndef PTOC_CUDA_CONFIG
#define PTOC_CUDA_CONFIG
typedef struct {
    unsigned id;
    char pad[4];
    unsigned value[16];
} ptoc_cuda_attribute;
typedef struct {
    unsigned grid[3], block[3], shared;
    void *stream;
    const ptoc_cuda_attribute *attributes;
    unsigned count;
} ptoc_cuda_config;
#endif
int cuOccupancyMaxActiveClusters(int *count, void *function, const ptoc_cuda_config *config);
int cuMemsetD32Async(uint64_t to, unsigned element, size_t count, void *stream);
int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t size, void *stream);
int cuStreamSynchronize(void *stream);
int cuTensorMapEncodeTiled(void *map, int type, unsigned rank, void *base, const uint64_t *dims,
                           const uint64_t *strides, const unsigned *box, const unsigned *steps, int interleave,
                           int swizzle, int promotion, int fill);
int cuLaunchKernel(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                   unsigned block_y, unsigned block_z, unsigned shared, void *stream, void **params, void **extra);
