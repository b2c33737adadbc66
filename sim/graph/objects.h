// Objects of the program that live as long as graphs refer to them. Guarded by the lock.
#ifndef SIM_OBJECTS_H
#define SIM_OBJECTS_H

#include <cuda.h>
#include <stdbool.h>

struct CUuserObject_st {
    unsigned long long references;
    CUhostFn destroy;
    void *data;
};

// What one graph holds.
struct sim_objects {
    struct sim_object_held *first;
};

struct CUuserObject_st *sim_object_new(void *data, CUhostFn destroy, unsigned references);
// The last reference ends the object: its destructor runs later, on a thread of its own.
void sim_object_release(struct CUuserObject_st *object, unsigned long long count);

unsigned long long sim_objects_count(const struct sim_objects *objects,
                                     const struct CUuserObject_st *object);
// Without taking references: they are the caller's to give.
bool sim_objects_add(struct sim_objects *objects, struct CUuserObject_st *object,
                     unsigned long long count);
void sim_objects_remove(struct sim_objects *objects, struct CUuserObject_st *object,
                        unsigned long long count);
bool sim_objects_copy(struct sim_objects *to, const struct sim_objects *from); // with references
void sim_objects_drop(struct sim_objects *objects);                            // and references

#endif
