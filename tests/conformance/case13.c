/* SYNC_MEMOPS belongs to one allocation: set on A it is not on B, nor on what comes after A [D]. */
#include "tests/conformance/pointers.h"

static bool is_set(const char *pointer) {
    struct told told;
    unsigned long long value = 0;
    memset(&told, 0, sizeof told);
    MUST(ask(&value, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, pointer));
    MUST(ask_all(&told, pointer));
    if ((unsigned char)value != (unsigned char)told.sync_memops)
        printf("the two calls differ\n");
    return (unsigned char)value;
}

static int set(const char *pointer, unsigned value) {
    return (int)DRIVER(cuPointerSetAttribute)(&value, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS,
                                              address(pointer));
}

int main(void) {
    const size_t bytes = 64 * KIB;
    use_device(0);
    char *a = new_block(bytes), *b = new_block(bytes);
    tell("A at first", is_set(a));
    say("set A to 1", set(a + 100, 1));
    tell("A", is_set(a));
    tell("A's last byte", is_set(a + bytes - 1));
    tell("B", is_set(b));
    say("set B to 1", set(b, 1));
    say("set A to 0", set(a, 0));
    tell("A", is_set(a));
    tell("B", is_set(b));
    say("set A to 1", set(a, 1));
    MUST(release(a));
    char *c = new_block(bytes);
    tell("after A", is_set(c));
    tell("B", is_set(b));
    fill(NULL, c, bytes, 3);
    MUST(synchronize());
    tell("its bytes", holds(c, bytes, 3));
    say("another attribute", (int)DRIVER(cuPointerSetAttribute)(
                                 &(unsigned){1}, CU_POINTER_ATTRIBUTE_BUFFER_ID, address(c)));
    say("no value",
        (int)DRIVER(cuPointerSetAttribute)(NULL, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, address(c)));
    MUST(release(b));
    MUST(release(c));
    return 0;
}
