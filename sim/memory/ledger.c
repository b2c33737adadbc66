// Whether an exported allocation still lives: a file that other processes read, with a slot for
// each. Guarded by the lock.
#include "sim/memory/ledger.h"

#include "sim/memory/allocation.h"

#include <sys/mman.h>
#include <unistd.h>

enum { LEDGER_SLOTS = 1 << 16 };

// In each slot a living allocation's id, or 0.
static struct {
    int file;
    uint64_t *slots;
    size_t next;
} ledger;

static bool open_ledger(void) {
    const size_t bytes = LEDGER_SLOTS * sizeof *ledger.slots;
    if (ledger.slots != NULL) {
        return true;
    }
    ledger.file = memfd_create("sim-ipc", MFD_CLOEXEC);
    if (ledger.file < 0 || ftruncate(ledger.file, (off_t)bytes) != 0) {
        return false;
    }
    void *slots = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, ledger.file, 0);
    ledger.slots = slots == MAP_FAILED ? NULL : slots;
    return ledger.slots != NULL;
}

bool sim_ledger_enter(struct sim_allocation *allocation) {
    if (allocation->ledger_slot != 0) {
        return true;
    }
    if (!open_ledger()) {
        return false;
    }
    for (size_t tries = 0; tries < LEDGER_SLOTS; tries++) {
        size_t slot = 1 + ledger.next++ % (LEDGER_SLOTS - 1);
        if (ledger.slots[slot] == 0) {
            ledger.slots[slot] = allocation->buffer_id;
            allocation->ledger_slot = slot;
            return true;
        }
    }
    return false;
}

void sim_ledger_forget(const struct sim_allocation *allocation) {
    if (allocation->ledger_slot != 0) {
        ledger.slots[allocation->ledger_slot] = 0;
    }
}

int sim_ledger_file(void) {
    return ledger.file;
}
