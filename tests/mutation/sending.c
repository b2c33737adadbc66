/*
 * A block is freed while its exporter is sending an importer its pages (BFC_BACKING=pages): they
 * neither move nor go back until that is over, and the importer gets none. Preloaded alone.
 */
#include "tests/conformance/processes.h"

static const size_t large = 40 * MIB;
static char place[] = "/tmp/bfc-sending-XXXXXX/at";

/* Where the stand-in GPU stops the thread that sends. */
static void prepare_halt(void) {
    char halt[128];
    char *slash = strrchr(place, '/');
    *slash = 0;
    if (!mkdtemp(place))
        exit(2);
    *slash = '/';
    snprintf(halt, sizeof halt, "cuMemExportToShareableHandle@2:%s", place);
    setenv("SIM_HALT", halt, 1);
}

static void await_halt(void) {
    while (access(place, F_OK) != 0)
        usleep(1000);
}

static void end_halt(void) {
    unlink(place);
    *strrchr(place, '/') = 0;
    rmdir(place);
}

static int import(const struct other *exporter) {
    share_handle handle;
    void *block = NULL;
    take(exporter, &handle, sizeof handle);
    use_device(0);
    return open_shared(&block, handle) == 0;
}

int main(void) {
    struct other importer;
    share_handle handle;
    void *all = NULL;
    if (fork_other(&importer))
        return import(&importer);
    prepare_halt();
    use_device(0);
    void *before = new_block(2 * MIB), *block = new_block(large), *behind = new_block(2 * MIB);
    MUST(share(&handle, block));
    give(&importer, &handle, sizeof handle);
    await_halt();
    say("free", release(block));
    say("all of the device", allocate(&all, 1000 * MIB));
    end_halt();
    tell("the importer was refused", end_of(&importer) == 0);
    if (!all)
        say("all of the device, after that", allocate(&all, 1000 * MIB));
    MUST(release(before));
    MUST(release(behind));
    return 0;
}
