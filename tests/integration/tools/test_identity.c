/* Jobs' identities: from paths of cgroups and names of log files as machines really have them. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/bfcstat/identity.h"

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define POD "8a1b2c3d-0000-1111-2222-333344445555"

static struct job_identity identity_of(const char *lines) {
    struct job_identity identity = {0};
    identity_read_cgroup(lines, &identity);
    return identity;
}

Test(identity, pods_and_containers) {
    static const char *const paths[] = {
        "0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod8a1b2c3d_0000_1111_2222_"
        "333344445555.slice/cri-containerd-" ID ".scope\n",
        "0::/kubepods/besteffort/pod" POD "/" ID "\n",
        "12:memory:/kubepods/pod" POD "/" ID "\n11:cpu:/kubepods/pod" POD "/" ID "\n",
        "0::/../../kubepods-pod" POD ".slice/crio-" ID ".scope\n",
    };
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        struct job_identity identity = identity_of(paths[i]);
        cr_expect_str_eq(identity.pod_uid, POD, "%s", paths[i]);
        cr_expect_str_eq(identity.container_id, ID, "%s", paths[i]);
        cr_expect_str_empty(identity.slurm_job);
    }
    struct job_identity docker = identity_of("0::/system.slice/docker-" ID ".scope\n");
    cr_expect_str_eq(docker.container_id, ID);
    cr_expect_str_empty(docker.pod_uid);
}

Test(identity, slurm) {
    struct job_identity identity =
        identity_of("0::/system.slice/slurmstepd.scope/job_1234/step_0/user/task_3\n");
    cr_expect_str_eq(identity.slurm_job, "1234");
    cr_expect_str_eq(identity.slurm_step, "0");
    identity = identity_of("7:devices:/slurm/uid_1000/job_99/step_batch\n");
    cr_expect_str_eq(identity.slurm_job, "99");
    cr_expect_str_empty(identity.slurm_step);
}

Test(identity, what_is_neither) {
    static const char *const paths[] = {
        "",
        "0::/\n",
        "\n\n\n",
        "0::/user.slice/user-1000.slice/session-2.scope\n",
        "0::/podcast/pod8a1b2c3d/job_12/step_1\n",
        "0::/slurm/job_/step_x\n",
        "0::/slurm/job_123456789012345678901234567890\n",
        "0::/a/0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0\n",
        "0::/kubepods/pod",
        "0::/user.slice/user-1000.slice/user@1000.service/slurm/job_1/step_0\n",
        "0::/user.slice/user-1000.slice/user@1000.service/kubepods/pod" POD "/" ID "\n",
    };
    struct job_identity none = {0};
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        struct job_identity identity = identity_of(paths[i]);
        cr_expect_eq(memcmp(&identity, &none, sizeof none), 0, "%s", paths[i]);
    }
}

static struct job_identity identity_in(const char *environment, size_t size) {
    struct job_identity identity = {0};
    FILE *stream = fmemopen((void *)(uintptr_t)environment, size, "r");
    identity_read_environment(stream, &identity);
    fclose(stream);
    return identity;
}

Test(identity, slurm_in_the_environment) {
    static const char honest[] = "A=1\0SLURM_JOB_ID=42\0XSLURM_JOB_ID=7\0SLURM_STEP_ID=3";
    static const char odd[] =
        "SLURM_JOB_ID=4\"2\0SLURM_STEP_ID=\0SLURM_JOB_ID=123456789012345678901234";
    struct job_identity identity = identity_in(honest, sizeof honest);
    cr_expect_str_eq(identity.slurm_job, "42");
    cr_expect_str_eq(identity.slurm_step, "3");
    identity = identity_in(odd, sizeof odd);
    cr_expect_str_empty(identity.slurm_job);
    cr_expect_str_empty(identity.slurm_step);
}

Test(identity, one_slurm_job_of_several) {
    static struct bfc_job jobs[3];
    struct job_identity identities[3] = {{.slurm_job = "1", .slurm_step = "0"},
                                         {.slurm_job = "12"},
                                         {.slurm_job = "1", .slurm_step = "10"}};
    static const struct {
        const char *wanted;
        size_t kept;
    } cases[] = {{"1", 2}, {"1.10", 1}, {"1.1", 0}, {"12", 1}, {"", 0}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct job_identity copy[3];
        memcpy(copy, identities, sizeof copy);
        struct findings findings = {.jobs = jobs, .job_count = 3, .identities = copy};
        keep_slurm_job(cases[i].wanted, &findings);
        cr_expect_eq(findings.job_count, cases[i].kept, "%s", cases[i].wanted);
    }
}

static void touch(const char *folder, const char *name) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    close(open(path, O_CREAT | O_WRONLY, 0600));
}

Test(identity, names_of_the_kubelets_logs) {
    char folder[] = "/tmp/bfc-identity-XXXXXX", command[64];
    cr_assert(mkdtemp(folder));
    touch(folder, "rubbish");
    touch(folder, "a_b-" ID ".log");
    touch(folder, "a_b_c-" ID ".txt");
    touch(folder, "other_team_trainer-" ID "0.log");
    touch(folder, "train-0_team-a_my-trainer-" ID ".log");
    struct job_identity identity = {.container_id = ID};
    identity_find_names(folder, &identity);
    cr_expect_str_eq(identity.pod, "train-0");
    cr_expect_str_eq(identity.pod_namespace, "team-a");
    cr_expect_str_eq(identity.container, "my-trainer");
    struct job_identity nobody = {.container_id = "ffff"};
    identity_find_names("/nonexistent", &nobody);
    cr_expect_str_empty(nobody.pod);
    snprintf(command, sizeof command, "rm -r %s", folder);
    cr_expect_eq(system(command), 0);
}
