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
    CUdeviceptr address;     // 0 until asked for
    unsigned long long life; // of the context where that is; a library's has a record for each
};

struct sim_image {
    struct CUmod_st *module; // NULL: a library's
    bool opaque;             // not read (SIM_KERNELS=skip): it has every function that is asked for
    struct CUfunc_st *functions;
    struct sim_variable *variables;
};

CUresult sim_image_load(const void *bytes, struct sim_image *image);
void sim_image_drop(struct sim_image *image);
struct sim_variable *sim_image_variable(struct sim_image *image, const char *name,
                                        struct sim_variable *after); // of that name, or NULL
struct sim_variable *sim_image_add_variable(struct sim_image *image, const char *name,
                                            size_t size);                        // NULL: no memory
struct CUfunc_st *sim_image_function(struct sim_image *image, const char *name); // or NULL

#endif
