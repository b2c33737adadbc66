/*
 * How programs that are linked to the driver reach our hooks.
 *
 * The library puts none of the driver's names into a program's scope: another library may have a
 * variable of that name (wranglers do), which would be bound to our function and written to.
 * Instead, as soon as the driver is loaded,
 *
 * - its symbol table, in this process's memory, is redirected to our hooks: from then on the
 *   loader binds, and dlsym finds, a hook wherever it would have the driver's function;
 * - what was bound to the driver before is bound to the hooks.
 *
 * So the loader's own rules decide who gets a hook, whatever the scope, the flags or the way.
 */
#ifndef BFC_INTERPOSE_BINDING_H
#define BFC_INTERPOSE_BINDING_H

#include <link.h>

/*
 * Does the above if the driver is loaded; again, it finds nothing to do. Where some memory cannot
 * be written all is bound as it was, and nothing is pooled. Any number of threads may be in it; no
 * lock of ours is held.
 */
void bfc_bind_loaded_driver(void);

#endif
