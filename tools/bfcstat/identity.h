/*
 * Finds out who a job is to the machine around it: its user, its batch job, its pod and container.
 *
 * This is read from files that every user may read: /proc/PID/cgroup, status, stat and comm, and
 * the names of the kubelet's log files. If the cgroup does not name Slurm's job, the job is read
 * from the process's environment, which is open to the process's user and root alone. Nothing of a
 * process's arguments is used.
 *
 * Thread-safety: none needed; one thread.
 */
#ifndef BFC_TOOLS_IDENTITY_H
#define BFC_TOOLS_IDENTITY_H

#include "tools/bfcstat/view/view.h"

/* The folder with the logs of containers. The kubelet names them POD_NAMESPACE_CONTAINER-ID.log. */
#define KUBELET_LOGS "/var/log/containers"

/* Identities that are known already, so that each job is looked up once; zero at first. */
struct identities {
    struct known_identity *known;
    size_t count;
};

/*
 * Sets findings->identities, one for each job; false: no memory, and nothing is set. The process of
 * a job in another pid namespace is recognized by its pid there, its user and its start time.
 */
bool identify_jobs(struct identities *identities, const char *logs, struct findings *findings);
void free_identities(struct identities *identities);

/* Keeps only the jobs that belong to Slurm's job `wanted` (JOB or JOB.STEP). The findings need
 * identities. */
void keep_slurm_job(const char *wanted, struct findings *findings);

/* Writes the user's name, or the number if there is no name. */
void identity_name_user(uint32_t uid, char *text, size_t size);

/* Reads Slurm's job and step, and the ids of the pod and the container, from the lines of a
 * /proc/PID/cgroup. */
void identity_read_cgroup(const char *lines, struct job_identity *identity);

/* Reads Slurm's job and step from a /proc/PID/environ, which the process itself could change. */
void identity_read_environment(FILE *environment, struct job_identity *identity);

/* Finds the names of the pod, its namespace and the container with identity->container_id: from the
 * names of the log files in the folder `logs`, as KUBELET_LOGS has them. */
void identity_find_names(const char *logs, struct job_identity *identity);

#endif
