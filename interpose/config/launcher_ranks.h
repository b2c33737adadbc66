/*
 * Which rank of which job this process is, according to the environment variables of its launcher.
 *
 * Known are torchrun, Open MPI, MPICH and Intel MPI (PMI), PMIx and Slurm. They are asked in this
 * order, since the innermost of nested launchers numbers the processes. Pure; thread-safe.
 */
#ifndef BFC_INTERPOSE_RANKS_H
#define BFC_INTERPOSE_RANKS_H

#include <stdint.h>

struct bfc_ranks {
    char job[64]; /* the name that the launcher has for the job, or empty */
    /* rank of this process in the job; -1: unknown, or not one of several processes */
    int32_t rank;
    int32_t local_rank; /* rank among the processes on this machine; -1: unknown */
    int32_t ranks;      /* number of ranks in the job; -1: unknown */
};

/* Reads the ranks from the environment. `get` is getenv, or a test's function in its place. */
void bfc_ranks_read(struct bfc_ranks *ranks, char *(*get)(const char *name));

#endif
