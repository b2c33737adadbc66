/* Ranks: each launcher's variables, the innermost first. */
#include <criterion/criterion.h>
#include <string.h>

#include "interpose/config/launcher_ranks.h"

static const char *const *variables; /* name, value, name, value, ..., NULL */

static char *get(const char *name) {
    for (const char *const *v = variables; *v; v += 2)
        if (strcmp(v[0], name) == 0)
            return (char *)v[1];
    return NULL;
}

static void expect(const char *const *given, int rank, int local_rank, int ranks, const char *job) {
    struct bfc_ranks read;
    variables = given;
    bfc_ranks_read(&read, get);
    cr_expect(read.rank == rank && read.local_rank == local_rank && read.ranks == ranks,
              "%s: %d %d %d", given[0], read.rank, read.local_rank, read.ranks);
    cr_expect(strcmp(read.job, job) == 0, "%s: job \"%s\"", given[0], read.job);
}

#define EXPECT(rank, local_rank, ranks, job, ...)                                                  \
    expect((const char *const[]){__VA_ARGS__, NULL}, rank, local_rank, ranks, job)

Test(ranks, knows_each_launcher) {
    EXPECT(-1, -1, -1, "", "HOME", "/root");
    EXPECT(2, 2, 4, "", "RANK", "2", "LOCAL_RANK", "2", "WORLD_SIZE", "4", "TORCHELASTIC_RUN_ID",
           "none");
    EXPECT(2, 0, 4, "run-7", "RANK", "2", "LOCAL_RANK", "0", "WORLD_SIZE", "4",
           "TORCHELASTIC_RUN_ID", "run-7");
    EXPECT(1, 1, 8, "", "OMPI_COMM_WORLD_RANK", "1", "OMPI_COMM_WORLD_LOCAL_RANK", "1",
           "OMPI_COMM_WORLD_SIZE", "8");
    EXPECT(3, -1, 4, "", "PMI_RANK", "3", "PMI_SIZE", "4");
    EXPECT(0, 0, 2, "123", "SLURM_PROCID", "0", "SLURM_LOCALID", "0", "SLURM_NTASKS", "2",
           "SLURM_JOB_ID", "123");
}

Test(ranks, asks_the_innermost_launcher_first) {
    EXPECT(5, 1, 8, "123", "SLURM_PROCID", "1", "SLURM_NTASKS", "2", "SLURM_JOB_ID", "123", "RANK",
           "5", "LOCAL_RANK", "1", "WORLD_SIZE", "8");
}

Test(ranks, takes_nothing_for_a_number_that_is_none) {
    EXPECT(-1, -1, -1, "", "RANK", "first", "LOCAL_RANK", "0");
    EXPECT(-1, -1, -1, "", "RANK", "5"); /* anybody's variable */
    EXPECT(-1, -1, -1, "", "PMI_RANK", "99999999999");
    EXPECT(-1, -1, -1, "", "SLURM_PROCID", "");
    EXPECT(1, -1, -1, "", "PMI_RANK", "1", "PMI_SIZE", "-3");
}
