/*
 * An importer that is started without the preload: right bytes or a failed open, never wrong bytes.
 * (Natively it is as any importer.) tests/integration/ipc shows that it fails where the exporter is
 * preloaded.
 */
#include "tests/conformance/processes.h"

enum { BYTES = 5000 };

static int import(void) {
    const struct other exporter = {.from = STDIN_FILENO};
    share_handle handle;
    void *block = NULL;
    take(&exporter, &handle, sizeof handle);
    use_device(0);
    if (open_shared(&block, handle) != 0)
        return 0;
    return !holds(block, BYTES, 2);
}

static int start_importer(const char *program, const struct other *exporter) {
    unsetenv("LD_PRELOAD");
    dup2(exporter->from, STDIN_FILENO);
    execl(program, program, "import", (char *)NULL);
    return 2;
}

int main(int count, char **arguments) {
    struct other other;
    share_handle handle;
    if (count > 1)
        return import();
    if (fork_other(&other))
        return start_importer(arguments[0], &other);
    use_device(0);
    char *first = new_block(BYTES), *second = new_block(BYTES);
    fill(NULL, first, BYTES, 1);
    fill(NULL, second, BYTES, 2);
    MUST(synchronize());
    say("share", share(&handle, second));
    give(&other, &handle, sizeof handle);
    tell("right bytes or none", end_of(&other) == 0);
    MUST(release(first));
    MUST(release(second));
    return 0;
}
