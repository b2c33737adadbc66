/*
 * Who a job is to the machine around it: its user, its batch job, its pod and container.
 *
 * It is read from files that everyone may read: /proc/PID/cgroup, status and stat, and the names of
 * the kubelet's log files. Slurm's job alone is taken from the process's environment where its
 * cgroup does not tell, and only its user and root may read that. Nothing of a process's arguments
 * is used.
 *
 * Thread-safety: none needed; one thread.
 */
#ifndef BFC_TOOLS_IDENTITY_H
#define BFC_TOOLS_IDENTITY_H

#include "tools/bfcstat/view/view.h"

/* The kubelet's and the runtime's name for a container's log: POD_NAMESPACE_CONTAINER-ID.log. */
#define KUBELET_LOGS "/var/log/containers"

/* What is known already, so that a job is looked up once; zero at first. */
struct identities {
    struct known_identity *known;
    size_t count;
};

/*
 * Sets findings->identities, one for each job; false: no memory, and nothing is set. A job of
 * another pid namespace is found by its pid there, its user and its start.
 */
bool identify_jobs(struct identities *identities, const char *logs, struct findings *findings);
void free_identities(struct identities *identities);

/* Of jobs with identities keeps those of Slurm's `wanted`: JOB or JOB.STEP. */
void keep_slurm_job(const char *wanted, struct findings *findings);

/* Slurm's job and step, a pod's id and a container's, from the lines of a /proc/PID/cgroup. */
void identity_read_cgroup(const char *lines, struct job_identity *identity);

/* Slurm's job and step, from a /proc/PID/environ, where the process itself could change them. */
void identity_read_environment(FILE *environment, struct job_identity *identity);

/* Finds the names of the pod, its namespace and the container with identity->container_id: from the
 * names of the log files in the folder `logs`, as KUBELET_LOGS has them. */
void identity_find_names(const char *logs, struct job_identity *identity);

#endif
