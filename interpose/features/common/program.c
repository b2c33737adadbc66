/* Computes hashes of the running program, which it reads from /proc. */
#include "interpose/features/common/program.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/open_file.h"
#include "interpose/host/scratch.h"
#include "layout/trace.h"

enum { BYTES = 4096 };

static uint64_t hash_file(const char *name, char *bytes, uint64_t hash) {
    int file = bfc_open(name, O_RDONLY, 0);
    ssize_t length = file < 0 ? 0 : read(file, bytes, BYTES);
    if (file >= 0)
        close(file);
    return length > 0 ? hash ^ bfc_trace_sum(bytes, (uint64_t)length) : hash;
}

uint64_t bfc_program_executable_hash(void) {
    char *bytes = bfc_scratch_begin(BYTES);
    ssize_t length = bytes ? readlink("/proc/self/exe", bytes, BYTES) : 0;
    uint64_t hash = length > 0 ? bfc_trace_sum(bytes, (uint64_t)length) : 0;
    hash = hash ? hash_file("/proc/self/exe", bytes, hash) : 0;
    bfc_scratch_end(bytes, BYTES);
    return hash;
}

uint64_t bfc_program_argument_hash(void) {
    char *bytes = bfc_scratch_begin(BYTES);
    uint64_t hash = bytes ? hash_file("/proc/self/cmdline", bytes, 0) : 0;
    bfc_scratch_end(bytes, BYTES);
    return hash;
}
