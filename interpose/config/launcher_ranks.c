/* Finds ranks: a table of launchers and of the environment variables that each of them sets. */
#include "interpose/config/launcher_ranks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct launcher {
    const char *rank, *local_rank, *ranks;
    /* another variable that must be set, since other programs may set `rank`; NULL: none */
    const char *needs;
};

static const struct launcher launchers[] = {
    {"RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_RANK"},
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_SIZE", NULL},
    {"PMI_RANK", "MPI_LOCALRANKID", "PMI_SIZE", NULL},
    {"PMIX_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_SIZE", NULL},
    {"SLURM_PROCID", "SLURM_LOCALID", "SLURM_NTASKS", NULL},
};

/* Variables that hold the job's name. The first one that is set counts: those of launchers come
 * before those of batch systems. */
static const char *const job_names[] = {
    "TORCHELASTIC_RUN_ID", "SLURM_JOB_ID",   "PBS_JOBID", "LSB_JOBID",
    "FLUX_JOB_ID",         "PMIX_NAMESPACE", "PALS_APID", "PMI_ID",
};

/* Reads a decimal number from 0 to 2^31 - 1; returns -1 if the text is not such a number. */
static int32_t read_number(const char *text) {
    if (!text || text[0] < '0' || text[0] > '9')
        return -1;
    char *end;
    long value = strtol(text, &end, 10);
    return *end == '\0' && value <= INT32_MAX ? (int32_t)value : -1;
}

/* torchrun sets the name "none" for a job that was given no name, so that word is ignored. */
static const char *find_job(char *(*get)(const char *name)) {
    for (size_t i = 0; i < sizeof job_names / sizeof job_names[0]; i++) {
        const char *value = get(job_names[i]);
        if (value && *value && strcmp(value, "none") != 0)
            return value;
    }
    return "";
}

void bfc_ranks_read(struct bfc_ranks *ranks, char *(*get)(const char *name)) {
    *ranks = (struct bfc_ranks){.rank = -1, .local_rank = -1, .ranks = -1};
    for (size_t i = 0; i < sizeof launchers / sizeof launchers[0] && ranks->rank < 0; i++) {
        const struct launcher *launcher = &launchers[i];
        if (launcher->needs && !get(launcher->needs))
            continue;
        ranks->rank = read_number(get(launcher->rank));
        if (ranks->rank < 0)
            continue;
        ranks->local_rank = read_number(get(launcher->local_rank));
        ranks->ranks = read_number(get(launcher->ranks));
        snprintf(ranks->job, sizeof ranks->job, "%s", find_job(get));
    }
}
