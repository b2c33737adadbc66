// Calls that stop where they are (SIM_HALT): name@n:PATH, the n-th call of that function or class.
#include "sim/base/halt.h"

#include "sim/base/call.h"
#include "sim/base/clock.h"
#include "sim/base/options.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LOOK_US = 1000 };

static const char *path; // NULL: not read yet, or malformed

// The number of the call that stops, of those whose names stand for it; 0: it is another one.
static unsigned long long number_of(const char *entry, const struct sim_call *call) {
    char *end = NULL;
    const char *at = strchr(entry, '@');
    unsigned long long number = at != NULL ? strtoull(at + 1, &end, 10) : 0;
    if (at == NULL || *end != ':' || end[1] != '/') {
        sim_complain("SIM_HALT", entry, "name@n:/a/file");
        sim_options.halt = NULL;
        return 0;
    }
    path = end + 1;
    return sim_stands_for(entry, (size_t)(at - entry), call->name) ? number : 0;
}

bool sim_halts(const struct sim_call *call) {
    return sim_options.halt != NULL && number_of(sim_options.halt, call) == call->count;
}

void sim_halt(void) {
    int file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (file < 0) {
        return;
    }
    close(file);
    while (access(path, F_OK) == 0) {
        sim_pause(LOOK_US);
    }
}
