/* What the programs about sharing between preloaded processes have in common. */
#ifndef BFC_TESTS_IPC_SHARING_H
#define BFC_TESTS_IPC_SHARING_H

#include <dirent.h>

#include "tests/conformance/processes.h"

enum { BYTES = 5000, REFUSED = 400 /* CUDA_ERROR_INVALID_HANDLE */ };

static UNUSED void must_be(bool condition, const char *what) {
    if (condition)
        return;
    printf("not so: %s\n", what);
    fflush(stdout);
    _exit(1);
}

static UNUSED char *filled_block(size_t bytes, unsigned value) {
    char *block = new_block(bytes);
    fill(NULL, block, bytes, value);
    MUST(synchronize());
    return block;
}

static UNUSED share_handle shared(void *block) {
    share_handle handle;
    MUST(share(&handle, block));
    return handle;
}

static UNUSED bool differ(share_handle a, share_handle b) {
    return memcmp(&a, &b, sizeof a) != 0;
}

static UNUSED char *opened(share_handle handle) {
    void *block = NULL;
    MUST(open_shared(&block, handle));
    return block;
}

static UNUSED void must_refuse(share_handle handle, const char *what) {
    void *block = (void *)&block;
    int code = open_shared(&block, handle);
    if (code != REFUSED)
        printf("answered: %s\n", name_of(code));
    must_be(code == REFUSED, what);
    must_be(block == NULL || block == (void *)&block, "no pointer comes with an error");
}

static UNUSED share_handle taken(const struct other *exporter) {
    share_handle handle;
    take(exporter, &handle, sizeof handle);
    return handle;
}

/* Tables, and sockets, of a process in the shared folder. */
static UNUSED unsigned files_of(pid_t pid) {
    char part[32];
    unsigned count = 0;
    DIR *folder = opendir("/dev/shm");
    snprintf(part, sizeof part, ".%d.", pid);
    for (const struct dirent *entry; folder && (entry = readdir(folder));)
        count += strncmp(entry->d_name, "bfcipc.", 7) == 0 && strstr(entry->d_name, part);
    if (folder)
        closedir(folder);
    return count;
}

static UNUSED bool by_pages(void) {
    const char *backing = getenv("BFC_BACKING");
    return backing && strcmp(backing, "pages") == 0;
}

#endif
