/* Stands for UCX's libucm, whose name it has: looks a function up as that does before it patches
 * it. */
#include <dlfcn.h>

void *patcher_look_up(void *handle, const char *name);

void *patcher_look_up(void *handle, const char *name) {
    void *volatile found = dlsym(handle, name); /* so that this function is the one that calls */
    return found;
}
