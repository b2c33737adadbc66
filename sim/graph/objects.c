// Objects of the program that live as long as graphs refer to them.
#include "sim/graph/objects.h"

#include "sim/base/handle.h"
#include "sim/base/lock.h"

#include <stdlib.h>

struct sim_object_held {
    struct sim_object_held *next;
    struct CUuserObject_st *object;
    unsigned long long count;
};

struct CUuserObject_st *sim_object_new(void *data, CUhostFn destroy, unsigned references) {
    struct CUuserObject_st *object = calloc(1, sizeof *object);
    if (object == NULL || !sim_handle_add(object, SIM_OBJECT)) {
        free(object);
        return NULL;
    }
    *object = (struct CUuserObject_st){references, destroy, data};
    return object;
}

static void *end(void *argument) {
    struct CUuserObject_st *object = argument;
    object->destroy(object->data);
    free(object);
    return NULL;
}

void sim_object_release(struct CUuserObject_st *object, unsigned long long count) {
    object->references -= count;
    if (object->references == 0) {
        sim_handle_remove(object);
        sim_thread_start(end, object);
    }
}

// ---- what a graph holds ----

static struct sim_object_held **find(struct sim_objects *objects,
                                     const struct CUuserObject_st *object) {
    struct sim_object_held **link = &objects->first;
    while (*link != NULL && (*link)->object != object) {
        link = &(*link)->next;
    }
    return link;
}

unsigned long long sim_objects_count(const struct sim_objects *objects,
                                     const struct CUuserObject_st *object) {
    struct sim_objects list = *objects;
    const struct sim_object_held *held = *find(&list, object);
    return held != NULL ? held->count : 0;
}

bool sim_objects_add(struct sim_objects *objects, struct CUuserObject_st *object,
                     unsigned long long count) {
    struct sim_object_held **link = find(objects, object);
    if (*link == NULL) {
        *link = calloc(1, sizeof **link);
        if (*link == NULL) {
            return false;
        }
        (*link)->object = object;
    }
    (*link)->count += count;
    return true;
}

void sim_objects_remove(struct sim_objects *objects, struct CUuserObject_st *object,
                        unsigned long long count) {
    struct sim_object_held **link = find(objects, object), *held = *link;
    held->count -= count;
    if (held->count == 0) {
        *link = held->next;
        free(held);
    }
    sim_object_release(object, count);
}

bool sim_objects_copy(struct sim_objects *to, const struct sim_objects *from) {
    for (const struct sim_object_held *held = from->first; held != NULL; held = held->next) {
        if (!sim_objects_add(to, held->object, held->count)) {
            return false;
        }
        held->object->references += held->count;
    }
    return true;
}

void sim_objects_drop(struct sim_objects *objects) {
    while (objects->first != NULL) {
        sim_objects_remove(objects, objects->first->object, objects->first->count);
    }
}
