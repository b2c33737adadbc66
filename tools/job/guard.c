#include "tools/job/guard.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* The shared-memory segment that is mapped now. If an access to it fails because the file was
 * truncated, the handler of SIGBUS maps zeros in its place, so that the function that reads it can
 * go on to its end. */
static struct {
    char *base;
    size_t size;
    volatile sig_atomic_t faulted;
} guard;

static void on_fault(int number, siginfo_t *info, void *context) {
    (void)context;
    const char *address = info->si_addr;
    if (!guard.base || address < guard.base || address >= guard.base + guard.size ||
        mmap(guard.base, guard.size, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
        /* The faulting address is not in the shared-memory segment, or there is no memory for the
         * zeros. With the default action, the access fails again after the return and ends the
         * process. */
        signal(number, SIG_DFL);
    guard.faulted = 1;
}

static enum bfc_read_result visit_base(const struct bfc_segment_look *look, char *base,
                                       bfc_segment_visit *visit, void *context) {
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO}, former;
    guard.faulted = 0;
    guard.size = BFC_SEGMENT_SIZE;
    guard.base = base;
    sigaction(SIGBUS, &action, &former);
    enum bfc_read_result result = visit(look, base, context);
    sigaction(SIGBUS, &former, NULL);
    guard.base = NULL;
    return guard.faulted ? bfc_segment_refuse(look, "truncated while it was read") : result;
}

enum bfc_read_result bfc_segment_visit_guarded(const struct bfc_segment_look *look, int directory,
                                               bool writable, bfc_segment_visit *visit,
                                               void *context) {
    int file;
    enum bfc_read_result result = bfc_segment_file_open(look, directory, writable, &file);
    if (result != BFC_READ_OK)
        return result;
    char *base = bfc_segment_file_map(file, writable);
    if (base) {
        result = visit_base(look, base, visit, context);
        munmap(base, BFC_SEGMENT_SIZE);
    } else {
        result = bfc_segment_refuse(look, "cannot be mapped: %s", strerror(errno));
    }
    close(file);
    return result;
}
