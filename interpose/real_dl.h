/*
 * The C library's own functions, behind ours and whatever its version.
 *
 * Found by walking the symbol tables of the loaded C library. For dlsym and its kin: dlvsym would
 * need a symbol version that differs between glibc versions and processors, and RTLD_NEXT a dlsym
 * to begin with. For functions that moved between libraries (glibc 2.34 took libpthread's and
 * libdl's in): a reference would be bound to the version of the machine that we were built on, and
 * fail on an older one.
 */
#ifndef BFC_INTERPOSE_REAL_DL_H
#define BFC_INTERPOSE_REAL_DL_H

#include <link.h>
#include <stdbool.h>

/* A function of the C library or of its former parts; NULL: it has none, or that part is not
 * loaded. Thread-safe; takes no lock. */
void *bfc_c_function(const char *name);

/* What a reference of ours would be bound to, another library's function perhaps; else as above. */
void *bfc_bound_function(const char *name);

/* The C library's, found once and remembered. Never NULL in a process that can load a driver. */
void *bfc_real_dlsym(void *handle, const char *name);
void *bfc_real_dlopen(const char *file, int mode);
void *bfc_real_dlvsym(void *handle, const char *name, const char *version);

/* Whether an object exports a function `name` of its own. */
bool bfc_object_exports(const struct link_map *object, const char *name);

/*
 * The function `name` that an object exports, in the version that a plain reference binds to: "",
 * where it has none. Only l_addr and l_ld of `object` are looked at. NULL: there is none.
 */
void *bfc_object_function(const struct link_map *object, const char *name, const char **version);

/* The object in which an address lies, or NULL. */
struct link_map *bfc_object_of(const void *address);

/* Forgets what a failed call of the above left for the program's next dlerror. */
void bfc_forget_dl_error(void);

#endif
