/*
 * What the thunks of dlsym, dlvsym and dlopen ask: everything that is not ours to answer goes on
 * to the real function by a jump, as if we were not there.
 */
#ifndef BFC_INTERPOSE_RESOLVE_H
#define BFC_INTERPOSE_RESOLVE_H

/*
 * The hook that a look-up is to find, or NULL: go on to the real function. A hook is the answer
 * only where the real one, asked by this caller, would have found the driver's or a runtime's own
 * function. `version` is dlvsym's, NULL from dlsym; `caller` is the return address. Where the real
 * dlvsym would find nothing but an export of ours, name and version are replaced by a name alone,
 * for dlsym to look up in vain.
 */
void *bfc_resolve(void *handle, const char **name, const char **version, const void *caller);

/* dlopen's flags as they are to be: RTLD_DEEPBIND cleared, unless BFC_DEEPBIND=keep. */
int bfc_dlopen_mode(const char *file, int mode);

/* What comes after our own function `name`: another preloaded library's, or the C library's. */
void *bfc_next_function(const char *name);

#endif
