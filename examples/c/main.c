/* Softmax of each row of a matrix, by the kernel of examples/softmax.tile. */

#include "softmax.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 3, COLUMNS = 8 };

int main(void) {
    const int32_t threads = 2;
    float x[ROWS * COLUMNS], y[ROWS * COLUMNS];
    for (int i = 0; i < ROWS * COLUMNS; i++) x[i] = (float)(i % 5);

    /* Room for the tiles of all threads. It may be kept for further calls. */
    size_t bytes = softmax_workspace(threads);
    void *workspace = bytes ? malloc(bytes) : NULL;
    if (bytes && !workspace) return EXIT_FAILURE;

    ptoc_status status;
    int32_t code = softmax(x, y, ROWS, workspace, bytes, threads, &status);
    free(workspace);
    if (code) {
        fprintf(stderr, "softmax: error %" PRId32 ": %s\n", code, status.message);
        return EXIT_FAILURE;
    }
    for (int i = 0; i < ROWS; i++) {
        float sum = 0;
        for (int j = 0; j < COLUMNS; j++) {
            printf("%s%.4f", j ? " " : "", y[i * COLUMNS + j]);
            sum += y[i * COLUMNS + j];
        }
        printf("  sum %.3f\n", sum);
    }
    return EXIT_SUCCESS;
}
