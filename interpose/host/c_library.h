/*
 * Finds the C library's own functions, for any version of it, even where the library or another
 * preloaded one exports a function of that name.
 *
 * They are found by a walk over the symbol tables of the loaded C library. The real dlsym, dlopen
 * and dlvsym are found by nothing else: dlvsym requires a symbol version, which differs between
 * glibc versions and processors, and RTLD_NEXT requires dlsym. So are functions that glibc 2.34
 * moved between libraries: a linked reference would fail on a machine with an older one.
 */
#ifndef BFC_INTERPOSE_C_LIBRARY_H
#define BFC_INTERPOSE_C_LIBRARY_H

#include <link.h>
#include <stdbool.h>
#include <stdint.h>

/* Returns a function of the C library or of libdl, libpthread or the loader; NULL: there is no such
 * function, or its library is not loaded. Thread-safe; takes no lock. */
void *bfc_c_function(const char *name);

/* Returns the function of this name to which the loader would bind a reference in this library,
 * which may be that of another preloaded library; if there is none, returns the result of
 * bfc_c_function. */
void *bfc_bound_function(const char *name);

/* The C library's own dlsym, dlopen and dlvsym, which every process that can load a driver has. */
void *bfc_real_dlsym(void *handle, const char *name);
void *bfc_real_dlopen(const char *file, int mode);
void *bfc_real_dlvsym(void *handle, const char *name, const char *version);

/* Returns the first object that exports a function `name`, among those that were loaded at the
 * process's start, up to the C library; NULL: there is none. Takes no lock. */
const struct link_map *bfc_exporter_at_start(const char *name);

/* Returns the function `name` that an object exports in its default version; NULL: there is none.
 * If `version` is not NULL, it is set to that version's name, or to "" if the symbol has no
 * version. Only l_addr and l_ld of `object` are read. */
void *bfc_object_function(const struct link_map *object, const char *name, const char **version);

/* Tables that an object's dynamic section points to; NULL or 0: the object has no such table. Sizes
 * are in bytes. */
struct bfc_dynamic {
    const ElfW(Sym) * symbols;
    const char *strings;
    const ElfW(Half) * versions;
    const ElfW(Verdef) * definitions; /* the names of the symbol versions */
    const uint32_t *gnu_hash, *hash;
    /* `calls` are the relocations of the object's procedure linkage table; `relocations` are all
     * others */
    const ElfW(Rela) * relocations, *calls;
    size_t relocations_size, calls_size;
};
void bfc_read_dynamic(const struct link_map *object, struct bfc_dynamic *dynamic);

/* Whether the file at `path` has the name of a driver library. */
bool bfc_is_driver(const char *path);

/* Returns the driver if it was loaded with the program, else NULL; to be called before there is a
 * second thread. */
const struct link_map *bfc_driver_at_start(void);

/* Sets l_addr and l_ld of `object` to those of the object that dl_iterate_phdr passes to its
 * callback, and clears the other fields. False: the object has no dynamic section. */
bool bfc_object_of_walk(const struct dl_phdr_info *info, struct link_map *object);

/* Returns the object in which an address lies, or NULL. */
struct link_map *bfc_object_of(const void *address);

/* Clears the error that a failed look-up made by this library would leave for the program's next
 * dlerror. */
void bfc_forget_dl_error(void);

#endif
