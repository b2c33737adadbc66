/*
 * The C library's own dlsym, behind ours.
 *
 * Found by walking the symbol tables of the loaded C library: dlvsym would need a symbol version
 * that differs between glibc versions and processors, and RTLD_NEXT a dlsym to begin with.
 */
#ifndef BFC_INTERPOSE_REAL_DL_H
#define BFC_INTERPOSE_REAL_DL_H

typedef void *(*bfc_dlsym_function)(void *handle, const char *name);

/* Thread-safe; never NULL in a process that can call dlsym at all. */
bfc_dlsym_function bfc_real_dlsym(void);

#endif
