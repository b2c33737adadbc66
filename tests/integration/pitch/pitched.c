// Allocates pitched memory, writes and reads it, frees it, over and over: what is printed is the
// same natively and preloaded. "hold": holds all it gets of one width, and prints how much that is;
// "once": asks once for more than that.
#include <stdbool.h>
#include <string.h>

#include "tests/integration/interpose/program.h"

enum { ROUNDS = 30, MIB = 1 << 20 };

static const struct shape {
    size_t width, height;
    unsigned element;
} shapes[] = {
    {1, 1, 4},      {100, 7, 4},   {512, 3, 4},     {100, 9, 8},     {100, 9, 16},
    {513, 1000, 4}, {640, 480, 4}, {7680, 300, 16}, {4096, 4096, 4}, {65537, 5, 4},
    {5000, 20, 8},  {4999, 21, 8}, {4998, 22, 8},   {300000, 2, 4},
};
enum { SHAPES = sizeof shapes / sizeof shapes[0] };

// Writes each row, up to its width, and looks at the last byte of the last one.
static bool is_usable(CUdeviceptr start, size_t pitch, const struct shape *shape, int value) {
    unsigned char last = 0;
    CHECK(cuMemsetD2D8(start, pitch, (unsigned char)value, shape->width, shape->height));
    CHECK(cuMemcpyDtoH(&last, start + pitch * (shape->height - 1) + shape->width - 1, 1));
    return last == (unsigned char)value;
}

static void go_round(int round) {
    CUdeviceptr starts[SHAPES];
    for (int i = 0; i < SHAPES; i++) {
        const struct shape *shape = &shapes[i];
        size_t pitch = 0;
        CHECK(cuMemAllocPitch(&starts[i], &pitch, shape->width, shape->height, shape->element));
        printf("%zu x %zu: pitch %zu, aligned %d, usable %d\n", shape->width, shape->height, pitch,
               starts[i] % 512 == 0, is_usable(starts[i], pitch, shape, round + i));
    }
    for (int i = 0; i < SHAPES; i++)
        CHECK(cuMemFree(starts[i]));
    printf("again: %d\n", (int)cuMemFree(starts[round % SHAPES]));
}

static void hold(void) {
    CUdeviceptr start;
    size_t pitch = 0, bytes = 0;
    CUresult result;
    while ((result = cuMemAllocPitch(&start, &pitch, 1000, MIB / 1024, 4)) == CUDA_SUCCESS)
        bytes += pitch * (MIB / 1024);
    printf("%zu MiB, then %d\n", bytes / MIB, (int)result);
}

static void ask_once(void) {
    CUdeviceptr start;
    size_t pitch;
    printf("%d\n", (int)cuMemAllocPitch(&start, &pitch, 1000, 100 * MIB / 1024, 4));
    CHECK(cuMemAllocPitch(&start, &pitch, 1000, 1, 4));
}

int main(int count, char **arguments) {
    use_primary(0);
    if (count > 1 && strcmp(arguments[1], "hold") == 0)
        hold();
    else if (count > 1)
        ask_once();
    else
        for (int round = 0; round < ROUNDS; round++)
            go_round(round);
    return 0;
}
