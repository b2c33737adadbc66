/*
 * What our dlsym, dlvsym and dlopen do. They are thunks in assembly (thunk_*.S), which ask the
 * functions here; a look-up that is not ours to answer jumps to the real function, as if the
 * library were not there.
 */
#ifndef BFC_INTERPOSE_RESOLVE_H
#define BFC_INTERPOSE_RESOLVE_H

/* Returns what a look-up finds. NULL means that the thunk jumps to the real function, which finds
 * the hooks of the driver's calls by itself. An entry of ours for a runtime's call is returned only
 * if the real look-up, made by this caller, would find a runtime's own function. `*version` is NULL
 * in a call of dlsym; `caller` is the look-up's return address, and `own_dlsym` is our thunk of
 * dlsym. If the real dlvsym would find only an export of ours, `*name` becomes a name that does not
 * exist and `*version` becomes NULL, so that the thunk jumps to dlsym, which fails. */
void *bfc_resolve(void *handle, const char **name, const char **version, const void *caller,
                  void *own_dlsym);

/* Returns the flags to pass to dlopen: without RTLD_DEEPBIND, unless BFC_DEEPBIND=keep. */
int bfc_dlopen_mode(const char *file, int mode);

/* Returns the function `name` that comes after ours: another preloaded library's, or the C
 * library's. */
void *bfc_next_function(const char *name);

#endif
