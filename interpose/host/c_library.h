/*
 * The C library's own functions, behind ours, for any version of it.
 *
 * They are found by a walk over the symbol tables of the loaded C library. dlsym and its like need
 * this, because dlvsym requires a symbol version that differs between glibc versions and
 * processors, and RTLD_NEXT requires a dlsym. Functions that moved between libraries (glibc 2.34
 * absorbed libpthread and libdl) need it, because a reference would be bound to the version of the
 * build machine and fail on an older one.
 */
#ifndef BFC_INTERPOSE_C_LIBRARY_H
#define BFC_INTERPOSE_C_LIBRARY_H

#include <link.h>
#include <stdbool.h>
#include <stdint.h>

/* Returns a function of the C library or of its former parts; NULL: there is no such function, or
 * its part is not loaded. Thread-safe; takes no lock. */
void *bfc_c_function(const char *name);

/* Returns the function of this name to which the loader would bind a reference in this library,
 * which may be that of another preloaded library; if there is none, returns the result of
 * bfc_c_function. */
void *bfc_bound_function(const char *name);

/* The C library's own dlsym, dlopen and dlvsym, which every process that can load a driver has. */
void *bfc_real_dlsym(void *handle, const char *name);
void *bfc_real_dlopen(const char *file, int mode);
void *bfc_real_dlvsym(void *handle, const char *name, const char *version);

/* Returns the first object that exports a function `name`, among the objects that were loaded at
 * the process's start, up to the C library; NULL: there is none. Takes no lock. */
const struct link_map *bfc_exporter_at_start(const char *name);

/* The function `name` that an object exports, in the version that a plain reference binds to: "",
 * where it has none. `version` may be NULL. Only l_addr and l_ld of `object` are looked at. NULL:
 * there is none. */
void *bfc_object_function(const struct link_map *object, const char *name, const char **version);

/* What an object's dynamic section says; NULL or 0: the object has no such table. Sizes in bytes.
 */
struct bfc_dynamic {
    const ElfW(Sym) * symbols;
    const char *strings;
    const ElfW(Half) * versions;
    const ElfW(Verdef) * definitions; /* of versions */
    const uint32_t *gnu_hash, *hash;
    /* `calls` are the relocations of the object's procedure linkage table */
    const ElfW(Rela) * relocations, *calls;
    size_t relocations_size, calls_size;
};
void bfc_read_dynamic(const struct link_map *object, struct bfc_dynamic *dynamic);

/* Whether an object's file has a driver's name. */
bool bfc_is_driver(const char *path);

/* Returns the driver that was loaded with the program; to be called before there is a second
 * thread. */
const struct link_map *bfc_driver_at_start(void);

/* Sets l_addr and l_ld of `object` to those of the object that dl_iterate_phdr shows, and clears
 * its other fields. False: the object has no dynamic section. */
bool bfc_object_of_walk(const struct dl_phdr_info *info, struct link_map *object);

/* Returns the object in which an address lies, or NULL. */
struct link_map *bfc_object_of(const void *address);

/* Clears the error that a failed look-up made by this library would leave for the program's next
 * dlerror. */
void bfc_forget_dl_error(void);

#endif
