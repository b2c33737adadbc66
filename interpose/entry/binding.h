/*
 * How programs that are linked to the driver reach the library's hooks.
 *
 * The library exports none of the driver's names in a way that the loader would bind. Another
 * library may have a variable with the name of a driver call (the CUDA Extension Wrangler has
 * many): its references would be bound to the hook, and it would write there. Instead, as soon as
 * the driver is loaded, its symbol table in this process's memory is redirected to the hooks, so
 * that the loader binds, and dlsym finds, a hook in place of the driver's function. References that
 * were bound to the driver before are redirected, too. So the loader's own rules decide which
 * references get a hook.
 */
#ifndef BFC_INTERPOSE_BINDING_H
#define BFC_INTERPOSE_BINDING_H

#include <link.h>

/*
 * If the driver is loaded, redirects its symbol table and the references that were bound to it
 * before. Once that is done, further calls have no effect. If some memory cannot be written, all is
 * restored and nothing is pooled. Thread-safe; none of the library's locks may be held.
 */
void bfc_bind_loaded_driver(void);

#endif
