/*
 * The decisions behind the thunks of dlsym, dlvsym and dlopen. What is not ours to answer jumps to
 * the real function, as if the library were not there.
 */
#ifndef BFC_INTERPOSE_RESOLVE_H
#define BFC_INTERPOSE_RESOLVE_H

/*
 * What a look-up finds, or NULL: jump to the real function, which finds the driver's hooks by
 * itself. A function of ours is the answer only if the real one, called by this caller, would have
 * found a runtime's own function. `version` is dlvsym's, NULL from dlsym; `caller` is the return
 * address, `own_dlsym` our own thunk of dlsym. Where the real dlvsym would find nothing but an
 * export of ours, name and version are replaced by a name alone, for dlsym to look up in vain.
 */
void *bfc_resolve(void *handle, const char **name, const char **version, const void *caller,
                  void *own_dlsym);

/* The flags to pass to dlopen: RTLD_DEEPBIND is cleared, unless BFC_DEEPBIND=keep. */
int bfc_dlopen_mode(const char *file, int mode);

/* What comes after our own function `name`: another preloaded library's, or the C library's. */
void *bfc_next_function(const char *name);

#endif
