/*
 * Notes by which routes a program reached our functions, for BFC_LOG=debug.
 *
 * Most functions are looked up before the options are read, so routes are noted and written later.
 * Each name is written once for each route. Lock-free; allocates nothing.
 */
#ifndef BFC_INTERPOSE_ROUTES_H
#define BFC_INTERPOSE_ROUTES_H

enum bfc_route {
    BFC_ROUTE_SYMBOL_TABLE, /* the driver's symbol table, and words bound by it, were redirected */
    BFC_ROUTE_DLSYM,        /* dlsym or dlvsym was asked for the name */
    BFC_ROUTE_PROC_ADDRESS, /* cuGetProcAddress was asked for the name */
    BFC_ROUTE_RUNTIME,      /* the call came to our entry before a shared runtime */
    BFC_ROUTES,
};

/* Notes a route. `name` is kept, and must be the same pointer each time. */
void bfc_routes_note(const char *name, enum bfc_route route);

/* Call once the options are read: writes the routes noted so far. Later ones are written at once.
 */
void bfc_routes_begin(void);

#endif
