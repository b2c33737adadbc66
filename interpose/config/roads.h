/*
 * By which roads a program came to our functions, for BFC_LOG=debug.
 *
 * Most are found before there are options: they are noted, and written once there are. A name is
 * written once for each road. Lock-free; allocates nothing.
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

/* There are options now: writes what was noted. What is noted later is written at once. */
void bfc_roads_begin(void);

#endif
