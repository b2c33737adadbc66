// Which handles are live. Guarded by the lock.
#ifndef SIM_HANDLE_H
#define SIM_HANDLE_H

#include <stdbool.h>

enum sim_handle {
    SIM_STREAM = 1,
    SIM_EVENT,
    SIM_MODULE,
    SIM_LIBRARY,
    SIM_FUNCTION,
    SIM_GRAPH,
    SIM_NODE,
    SIM_EXEC,
    SIM_POOL,
    SIM_GREEN,
    SIM_ARRAY,
    SIM_CHUNK,
    SIM_OBJECT,
    SIM_LINK,
};
bool sim_handle_add(const void *pointer, enum sim_handle kind);
void sim_handle_remove(const void *pointer);
bool sim_handle_is(const void *pointer, enum sim_handle kind);

#endif
