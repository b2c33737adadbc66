/*
 * What the library's dlsym, dlvsym and dlopen do. They are thunks in assembly (thunk_*.S), which
 * call the functions here. A look-up that is not answered here jumps to the C library's function,
 * as if the library were not there.
 */
#ifndef BFC_INTERPOSE_RESOLVE_H
#define BFC_INTERPOSE_RESOLVE_H

/* Returns what a look-up finds. NULL: the thunk jumps to the real dlsym or dlvsym, which finds the
 * hooks of the driver's calls by itself. The library's own cudaMalloc and the like are returned
 * only if the real look-up, made by this caller, would find a CUDA runtime's function. `*version`
 * is NULL in a call of dlsym; `caller` is the look-up's return address, and `own_dlsym` is the
 * library's dlsym. If only this library has `*name` with that version, `*name` becomes a name that
 * does not exist, and `*version` NULL: the thunk jumps to dlsym, which fails. */
void *bfc_resolve(void *handle, const char **name, const char **version, const void *caller,
                  void *own_dlsym);

/* Returns `mode`; unless BFC_DEEPBIND=keep, without RTLD_DEEPBIND, which bypasses this library. */
int bfc_dlopen_mode(const char *file, int mode);

/* Returns the function `name` that comes after this library in the order of look-ups: another
 * preloaded library's, or the C library's. */
void *bfc_next_function(const char *name);

#endif
