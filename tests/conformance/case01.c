/* Nothing asked for. The runtime answers with success and NULL [F], the driver with an error [D].
 */
#include "tests/conformance/gpu.h"

int main(void) {
    void *pointer = &pointer;
    use_device(0);
    int code = allocate(&pointer, 0);
    say("malloc(0)", code);
    if (code == 0) {
        tell("the pointer is NULL", pointer == NULL);
        say("free of it", release(pointer));
    }
    void *block = new_block(1000);
    say("free of another block", release(block));
    return 0;
}
