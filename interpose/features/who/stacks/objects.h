/*
 * Loaded objects, found without any lock.
 *
 * dl_iterate_phdr holds a lock of the loader's: a call within it that waits for another thread
 * would hang if that thread took a sample, and so would the child of a fork that came meanwhile.
 * From glibc 2.35 on _dl_find_object takes none; before, the loader's list is read as memory that
 * may change at any moment (readable.h). Thread-safe; allocates nothing.
 */
#ifndef BFC_INTERPOSE_OBJECTS_H
#define BFC_INTERPOSE_OBJECTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "interpose/host/readable.h"

/* As it was when it was found: another thread may unload it at any moment, so that all its memory
 * is read by readable.h. */
struct bfc_object {
    uint64_t start, end; /* of its addresses */
    uint64_t index;      /* of its unwind tables, PT_GNU_EH_FRAME; 0: none */
    uint64_t map;        /* its struct link_map */
};

/* The object that an address lies in. */
bool bfc_object_at(struct bfc_readable *readable, uint64_t address, struct bfc_object *object);

/* Where it was loaded to, and its path, cut to `most` bytes; of the executable "". */
bool bfc_object_name(struct bfc_readable *readable, const struct bfc_object *object,
                     uint64_t *loaded_at, char *path, size_t most);

/* Whether it exports a function of that name. */
bool bfc_object_offers(struct bfc_readable *readable, const struct bfc_object *object,
                       const char *name);

#endif
