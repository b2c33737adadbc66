/* cudaMalloc3D: rows wide enough, room for all of them, sizes as asked [D]. */
#include "tests/conformance/gpu.h"

static void look(size_t width, size_t height, size_t depth) {
    struct cudaPitchedPtr made = {0};
    int code = (int)cudaMalloc3D(&made, (struct cudaExtent){width, height, depth});
    printf("%zu x %zu x %zu: %s\n", width, height, depth, name_of(code));
    if (code != 0)
        return;
    const size_t bytes = made.pitch * height * depth;
    tell("the pitch is at least the width", made.pitch >= width);
    tell("the sizes are as asked", made.xsize == width && made.ysize == height);
    MUST(cudaMemset(made.ptr, 3, bytes));
    tell("all of it is there", holds(made.ptr, bytes, 3));
    printf("~ pitch %zu\n", made.pitch);
    say("free", release(made.ptr));
}

int main(void) {
    use_device(0);
    look(1, 1, 1);
    look(100, 7, 3);
    look(513, 2, 5);
    look(4096, 16, 4);
    return 0;
}
