// What an image says of its entries and variables. Guarded by the lock.
#ifndef SIM_PTX_H
#define SIM_PTX_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>

#define SIM_MAX_PARAMETERS 64

struct CUfunc_st {
    struct CUfunc_st *next;  // in its image
    struct CUmod_st *module; // NULL: a library's
    char *name;
    bool opaque;  // of an image that is not read: it may take any parameters
    size_t count; // of parameters
    size_t sizes[SIM_MAX_PARAMETERS], alignments[SIM_MAX_PARAMETERS];
};

struct sim_variable {
    struct sim_variable *next;
    char *name;
    size_t size;
    CUdeviceptr address; // 0 until asked for
};

struct sim_image {
    struct CUmod_st *module; // NULL: a library's
    bool opaque;             // not read (SIM_KERNELS=skip): it has every function that is asked for
    struct CUfunc_st *functions;
    struct sim_variable *variables;
};

CUresult sim_image_load(const void *bytes, struct sim_image *image);
void sim_image_drop(struct sim_image *image);
struct CUfunc_st *sim_image_function(struct sim_image *image, const char *name); // or NULL

#endif
