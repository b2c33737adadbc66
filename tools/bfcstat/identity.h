/*
 * Finds out which user, batch job (Slurm), pod and container (Kubernetes) a job belongs to.
 *
 * This is read from files that every user may read: /proc/PID/cgroup, status, stat and comm, and
 * the names of the kubelet's log files. If the cgroup does not name Slurm's job, Slurm's variables
 * are read from the process's environment, which only the process's user and root can read. Of a
 * process's arguments nothing is used.
 *
 * Thread-safety: none needed; one thread.
 */
#ifndef BFC_TOOLS_IDENTITY_H
#define BFC_TOOLS_IDENTITY_H

#include "tools/bfcstat/view/view.h"

/* The folder with the logs of containers. The kubelet names them POD_NAMESPACE_CONTAINER-ID.log. */
#define KUBELET_LOGS "/var/log/containers"

/* What is known of the jobs that were found before, so that each job is looked up only once. All
 * zeros at first; identify_jobs adds to it and forgets jobs that have gone. */
struct identities {
    struct known_identity *known;
    size_t count;
};

/*
 * Sets findings->identities, one for each job. False: no memory, and nothing is set. `logs` is the
 * folder with the logs of containers. A job in another pid namespace is matched with a process by
 * three things: the pid that the process has in that namespace, its user and its start time.
 */
bool identify_jobs(struct identities *identities, const char *logs, struct findings *findings);
void free_identities(struct identities *identities);

/* Keeps only the jobs that belong to Slurm's job `wanted` (JOB or JOB.STEP). identify_jobs must
 * have been called. */
void keep_slurm_job(const char *wanted, struct findings *findings);

/* Writes the name of the user, or the number `uid` if the user has no name. */
void identity_name_user(uint32_t uid, char *text, size_t size);

/* Reads Slurm's job and step, and the ids of the pod and the container, from `lines`, the content
 * of a file /proc/PID/cgroup. */
void identity_read_cgroup(const char *lines, struct job_identity *identity);

/* Reads Slurm's job and step from a file /proc/PID/environ. The process can change that file's
 * content, so it proves nothing. */
void identity_read_environment(FILE *environment, struct job_identity *identity);

/* Finds the names of the pod, its namespace and the container whose id is identity->container_id:
 * from the names of the log files in the folder `logs` (KUBELET_LOGS). */
void identity_find_names(const char *logs, struct job_identity *identity);

#endif
