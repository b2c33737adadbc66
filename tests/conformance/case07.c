/* More than there is: out of memory, also where rounding up would overflow; then life goes on. */
#include "tests/conformance/gpu.h"

static void ask(const char *what, size_t bytes) {
    void *pointer = NULL;
    int code = allocate(&pointer, bytes);
    say(what, code);
    if (code == 0)
        release(pointer);
}

int main(void) {
    size_t free_bytes, total;
    use_device(0);
    MUST(memory_info(&free_bytes, &total));
    ask("SIZE_MAX", SIZE_MAX);
    ask("a normal one", 1000);
    ask("SIZE_MAX", SIZE_MAX);
    ask("SIZE_MAX - 511", SIZE_MAX - 511);
    ask("SIZE_MAX / 2", SIZE_MAX / 2);
    ask("total + 1", total + 1);
    ask("a normal one", MIB);
    return 0;
}
