/*
 * Records how a program found each of the library's hooks, for BFC_LOG=debug.
 *
 * A route is one way of finding a hook. Most hooks are found before the options are read, so each
 * route is recorded first, and logged once later. Lock-free; allocates nothing.
 */
#ifndef BFC_INTERPOSE_ROUTES_H
#define BFC_INTERPOSE_ROUTES_H

enum bfc_route {
    /* the loader bound a reference to the hook, since the driver's symbol table was redirected, or
     * the library redirected a reference that was bound to the driver before */
    BFC_ROUTE_SYMBOL_TABLE,
    BFC_ROUTE_DLSYM,        /* the program looked the hook up by dlsym or dlvsym */
    BFC_ROUTE_PROC_ADDRESS, /* the program looked the hook up by cuGetProcAddress */
    BFC_ROUTE_RUNTIME, /* the program called our function in place of a shared CUDA runtime's */
    BFC_ROUTES,
};

/* Records that the hook `name` was found by `route`. The pointer is kept, and a hook's name must
 * always be given as the same pointer. */
void bfc_routes_note(const char *name, enum bfc_route route);

/* To be called once the options are read: logs what was recorded so far. What is recorded later is
 * logged at once. */
void bfc_routes_begin(void);

#endif
