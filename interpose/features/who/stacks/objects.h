/*
 * Finds loaded objects (the executable and shared libraries) without a lock.
 *
 * The usual dl_iterate_phdr holds a lock of the loader while it calls the caller's function. If
 * such a function of the program waited for another thread, and that thread recorded a call stack
 * by dl_iterate_phdr, both would hang; and if the process forked meanwhile, the lock would never be
 * free in the child. _dl_find_object of glibc 2.35 takes no lock; with an older glibc the loader's
 * list is read as memory that may change at any moment (readable.h). Thread-safe; allocates
 * nothing.
 */
#ifndef BFC_INTERPOSE_OBJECTS_H
#define BFC_INTERPOSE_OBJECTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "interpose/features/who/stacks/readable.h"

/* A loaded object as it was when it was found. Another thread may unload it at any moment, so its
 * memory may only be read through readable.h. */
struct bfc_object {
    uint64_t start, end; /* the addresses of the object */
    /* address of the object's segment PT_GNU_EH_FRAME, the index of its unwind tables; 0: it has
     * none */
    uint64_t index;
    uint64_t map; /* address of the loader's struct link_map for the object */
};

/* Finds the loaded object that contains the address. False: there is none. */
bool bfc_object_at(struct bfc_readable *readable, uint64_t address, struct bfc_object *object);

/* Sets `loaded_at` to the address where the object was loaded, and `path` to its path, cut to
 * `most` bytes; the executable's path is "". False: the object was unloaded. */
bool bfc_object_name(struct bfc_readable *readable, const struct bfc_object *object,
                     uint64_t *loaded_at, char *path, size_t most);

/* Whether the loaded object exports a symbol of this name. */
bool bfc_object_offers(struct bfc_readable *readable, const struct bfc_object *object,
                       const char *name);

#endif
