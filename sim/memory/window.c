// Windows of addresses: what cuMemAddressReserve gives, and what other processes' memory is seen
// through.
//
// A window is a range of addresses that nobody may touch, as a device's, with an alias of the same
// length where stream work finds the bytes: mapping puts pages of a device's file there. So work
// may span several mappings, and a mapping is found in O(1). Nobody waits for work before its
// mapping goes: it then goes on in memory that nobody reads, and its context gets the error.
// Guarded by the lock.
#include "sim/memory/window.h"

#include "sim/base/ids.h"
#include "sim/base/limits.h"
#include "sim/device/device.h"
#include "sim/device/thread.h"
#include "sim/memory/flight.h"

#include <stdlib.h>
#include <sys/mman.h>

static struct sim_window *windows;
static struct sim_window *left; // dropped, but work under way has pointers into their alias

static void *reserve(size_t bytes, int access) {
    void *start = mmap(NULL, bytes, access, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return start == MAP_FAILED ? NULL : start;
}

static void give_back(void *start, size_t bytes) {
    if (start != NULL) {
        munmap(start, bytes);
    }
}

static size_t page_of(const struct sim_window *window, uintptr_t address) {
    return (address - window->start) / SIM_PAGE;
}

static size_t index_bytes(size_t size) {
    return (size + SIM_PAGE - 1) / SIM_PAGE * sizeof(struct sim_mapping *);
}

static void end(struct sim_window *window) {
    give_back(window->alias, window->size);
    give_back(window->pages, index_bytes(window->size));
    free(window);
}

static void end_left(void) {
    for (struct sim_window **link = &left; *link != NULL;) {
        struct sim_window *window = *link;
        if (sim_flight_over(window->start, window->size)) {
            link = &window->next;
        } else {
            *link = window->next;
            end(window);
        }
    }
}

struct sim_window *sim_window_new(size_t size, size_t alignment) {
    struct sim_window *window = calloc(1, sizeof *window);
    end_left();
    if (window == NULL || __builtin_add_overflow(size, alignment, &window->room)) {
        free(window);
        return NULL;
    }
    window->size = size;
    window->reserved = reserve(window->room, PROT_NONE);
    window->alias = reserve(size, PROT_NONE);
    window->pages = reserve(index_bytes(size), PROT_READ | PROT_WRITE);
    if (window->reserved == NULL || window->alias == NULL || window->pages == NULL) {
        give_back(window->reserved, window->room);
        end(window);
        return NULL;
    }
    window->start = ((uintptr_t)window->reserved + alignment - 1) & ~(uintptr_t)(alignment - 1);
    window->next = windows;
    windows = window;
    return window;
}

void sim_window_drop(struct sim_window *window) {
    struct sim_window **link = &windows;
    while (*link != window) {
        link = &(*link)->next;
    }
    *link = window->next;
    give_back(window->reserved, window->room);
    window->next = left;
    left = window;
    end_left();
}

struct sim_window *sim_window_at(uintptr_t address) {
    struct sim_window *window = windows;
    while (window != NULL && (address < window->start || address - window->start >= window->size)) {
        window = window->next;
    }
    return window;
}

struct sim_window *sim_window_first(void) {
    return windows;
}

struct sim_mapping *sim_window_mapping(const struct sim_window *window, uintptr_t address) {
    struct sim_mapping *mapping =
        address - window->start < window->size ? window->pages[page_of(window, address)] : NULL;
    // An import may begin and end within a page.
    bool within = mapping != NULL && address - mapping->as.start < mapping->as.size;
    return within ? mapping : NULL;
}

bool sim_window_bare(const struct sim_window *window, uintptr_t address, size_t size) {
    for (size_t done = 0; done < size; done += SIM_PAGE) {
        if (window->pages[page_of(window, address + done)] != NULL) {
            return false;
        }
    }
    return true;
}

static void set_pages(struct sim_window *window, const struct sim_mapping *at,
                      struct sim_mapping *mapping) {
    for (size_t done = 0; done < at->as.taken; done += SIM_PAGE) {
        window->pages[page_of(window, at->first + done)] = mapping;
    }
}

bool sim_virtual_at(uintptr_t address) {
    return sim_window_at(address) != NULL;
}

struct sim_allocation *sim_virtual_allocation(uintptr_t address) {
    const struct sim_window *window = sim_window_at(address);
    struct sim_mapping *mapping = window == NULL ? NULL : sim_window_mapping(window, address);
    return mapping == NULL ? NULL : &mapping->as;
}

CUmemAccess_flags sim_mapping_access(const struct sim_mapping *mapping,
                                     const struct sim_device *device) {
    unsigned bit = 1u << device->ordinal;
    return (mapping->writes & bit) != 0   ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
           : (mapping->access & bit) != 0 ? CU_MEM_ACCESS_FLAGS_PROT_READ
                                          : CU_MEM_ACCESS_FLAGS_PROT_NONE;
}

static unsigned wanted(void) {
    const struct sim_thread *self = sim_self();
    if (self->reaching != NULL) {
        return 1u << self->reaching->ordinal;
    }
    return self->running == NULL ? ~0u : 1u << self->running->device->ordinal;
}

static bool reachable(const struct sim_mapping *mapping) {
    return mapping != NULL && (mapping->access & wanted()) != 0;
}

bool sim_virtual_writable(uintptr_t address, size_t bytes) {
    const struct sim_window *window = sim_window_at(address);
    const struct sim_mapping *mapping = NULL;
    for (uintptr_t at = address; at - address < bytes; at = mapping->as.start + mapping->as.size) {
        mapping = sim_window_mapping(window, at);
        if (mapping == NULL || (mapping->writes & wanted()) == 0) {
            return false;
        }
    }
    return true;
}

char *sim_virtual_reach(uintptr_t address, size_t bytes) {
    const struct sim_window *window = sim_window_at(address);
    uintptr_t at = address;
    while (at - address < bytes) {
        const struct sim_mapping *mapping = sim_window_mapping(window, at);
        if (!reachable(mapping)) {
            return NULL;
        }
        at = mapping->as.start + mapping->as.size;
    }
    sim_flight_note(address, bytes);
    return window->alias + (address - window->start);
}

struct sim_mapping *sim_window_map(struct sim_window *window, uintptr_t address, size_t size,
                                   int file, off_t offset) {
    struct sim_mapping *mapping = calloc(1, sizeof *mapping);
    char *place = window->alias + (address - window->start);
    if (mapping == NULL ||
        mmap(place, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_NORESERVE, file,
             offset) == MAP_FAILED) {
        free(mapping);
        return NULL;
    }
    mapping->first = mapping->as.start = address;
    mapping->as.size = mapping->as.taken = size;
    mapping->as.kind = SIM_VIRTUAL;
    mapping->as.buffer_id = sim_next_buffer_id();
    mapping->next = window->mappings;
    mapping->link = &window->mappings;
    if (mapping->next != NULL) {
        mapping->next->link = &mapping->next;
    }
    window->mappings = mapping;
    set_pages(window, mapping, mapping);
    return mapping;
}

void sim_window_unmap(struct sim_window *window, struct sim_mapping *mapping) {
    *mapping->link = mapping->next;
    if (mapping->next != NULL) {
        mapping->next->link = mapping->link;
    }
    set_pages(window, mapping, NULL);
    bool used = sim_flight_break(mapping->first, mapping->as.taken, ~0u);
    mmap(window->alias + (mapping->first - window->start), mapping->as.taken,
         used ? PROT_READ | PROT_WRITE : PROT_NONE,
         MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
    free(mapping);
}
