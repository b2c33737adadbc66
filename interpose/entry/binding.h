/*
 * How programs that are linked to the driver reach our hooks.
 *
 * The library puts none of the driver's names into a program's scope: another library may have a
 * variable of that name (the CUDA Extension Wrangler has many), which would be bound to our
 * function and written to. Instead, as soon as the driver is loaded,
 *
 * - its symbol table, in this process's memory, is redirected to our hooks: from then on the
 *   loader binds, and dlsym finds, a hook wherever it would have the driver's function;
 * - what was bound to the driver before is bound to the hooks.
 *
 * So the loader's own rules decide which references get a hook, whatever their scope, the flags of
 * dlopen or the kind of look-up.
 */
#ifndef BFC_INTERPOSE_BINDING_H
#define BFC_INTERPOSE_BINDING_H

#include <link.h>

/*
 * Redirects the driver's symbol table, and what was bound before, if the driver is loaded; once
 * that is done, further calls have no effect. If some memory cannot be written, everything is bound
 * as it was, and nothing is pooled. Thread-safe; no lock of ours is held.
 */
void bfc_bind_loaded_driver(void);

#endif
