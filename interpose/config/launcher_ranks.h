/*
 * Which rank of which job this process is, as its launcher says in the environment.
 *
 * Known are torchrun, Open MPI, MPICH and Intel MPI (PMI), PMIx and Slurm, asked in this order: the
 * innermost launcher is the one that numbers the processes. Pure; thread-safe.
 */
#ifndef BFC_INTERPOSE_RANKS_H
#define BFC_INTERPOSE_RANKS_H

#include <stdint.h>

struct bfc_ranks {
    char job[64];       /* the name that the launcher has for the job, or empty */
    int32_t rank;       /* rank of this process; -1: it is not one of several, as far as is known */
    int32_t local_rank; /* rank among the processes on this machine; -1: unknown */
    int32_t ranks;      /* number of ranks in the job; -1: unknown */
};

/* Reads the ranks from the environment. `get` is getenv, or a test's function in its place. */
void bfc_ranks_read(struct bfc_ranks *ranks, char *(*get)(const char *name));

#endif
