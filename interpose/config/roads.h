/*
 * By which roads a program reached our functions, for BFC_LOG=debug.
 *
 * Most functions are looked up before the options are read, so roads are noted and written later.
 * Each name is written once for each road. Lock-free; allocates nothing.
 */
#ifndef BFC_INTERPOSE_ROADS_H
#define BFC_INTERPOSE_ROADS_H

enum bfc_road {
    BFC_ROAD_SYMBOL_TABLE, /* the driver's symbol table leads there, as do words bound to it */
    BFC_ROAD_DLSYM,        /* dlsym or dlvsym was asked for the name */
    BFC_ROAD_PROC_ADDRESS, /* cuGetProcAddress was */
    BFC_ROAD_RUNTIME,      /* the call came to our entry before a shared runtime */
    BFC_ROADS,
};

/* `name` is kept: the same pointer each time, for the process's life. */
void bfc_roads_note(const char *name, enum bfc_road road);

/* Call once the options are read: writes the roads noted so far. Later ones are written at once. */
void bfc_roads_begin(void);

#endif
