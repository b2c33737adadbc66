/*
 * System calls that are refused, as a container's filter does: each of the less usual ones by
 * itself with ENOSYS and with EPERM, and all of them. Once the driver is there: what it needs
 * itself to begin is its affair.
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/fault/surroundings/scene.h"

#ifdef __x86_64__
#define ARCHITECTURE AUDIT_ARCH_X86_64
#else
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#endif

static const struct {
    const char *name;
    long number;
} calls[] = {
    {"membarrier", SYS_membarrier},
    {"memfd_create", SYS_memfd_create},
    {"madvise", SYS_madvise},
    {"sched_getaffinity", SYS_sched_getaffinity},
    {"sched_setscheduler", SYS_sched_setscheduler},
    {"getrandom", SYS_getrandom},
    {"set_robust_list", SYS_set_robust_list},
    {"get_robust_list", SYS_get_robust_list},
    {"clock_gettime", SYS_clock_gettime},
    {"clock_nanosleep", SYS_clock_nanosleep},
    {"rseq", SYS_rseq},
    {"statx", SYS_statx},
    {"fstat", SYS_fstat},
    {"fallocate", SYS_fallocate},
    {"fchmod", SYS_fchmod},
    {"kcmp", SYS_kcmp},
    {"ppoll", SYS_ppoll},
    {"rt_sigtimedwait", SYS_rt_sigtimedwait},
    {"rt_sigpending", SYS_rt_sigpending},
    {"rt_sigprocmask", SYS_rt_sigprocmask},
    {"openat", SYS_openat},
    {"unlinkat", SYS_unlinkat},
    {"readlinkat", SYS_readlinkat},
    {"getdents64", SYS_getdents64},
    {"fcntl", SYS_fcntl},
    {"kill", SYS_kill},
    {"getcwd", SYS_getcwd},
    {"lseek", SYS_lseek},
    {"ftruncate", SYS_ftruncate},
    {"pread64", SYS_pread64},
    {"pwrite64", SYS_pwrite64},
    {"clone3", SYS_clone3},
    {"prlimit64", SYS_prlimit64},
    {"gettid", SYS_gettid},
#ifdef __x86_64__
    {"open", SYS_open},
    {"unlink", SYS_unlink},
    {"readlink", SYS_readlink},
    {"poll", SYS_poll},
#endif
};
enum { CALLS = sizeof calls / sizeof *calls };

/* Installs a filter by which calls[from..to) fail with `reason`. */
static void refuse(size_t from, size_t to, int reason) {
    struct sock_filter filter[2 * CALLS + 4];
    unsigned short length = 0;
    filter[length++] =
        (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (size_t i = from; i < to; i++) {
        filter[length++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
                                                        (unsigned)calls[i].number, 0, 1);
        filter[length++] = (struct sock_filter)BPF_STMT(
            BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ((unsigned)reason & SECCOMP_RET_DATA));
    }
    filter[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    const struct sock_fprog program = {.len = length, .filter = filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
        skip("no filters of system calls here");
}

static size_t refused, refused_to;
static int refused_with;

static void work_without(void) {
    begin();
    refuse(refused, refused_to, refused_with);
    use_memory();
    run_out();
    use_memory();
    _exit(0);
}

static void refuse_each(int reason) {
    refused_with = reason;
    for (refused = 0; refused < CALLS; refused++) {
        refused_to = refused + 1;
        in_child(calls[refused].name, work_without);
    }
}

static void run_unknown(void) {
    refuse_each(ENOSYS);
}

static void run_forbidden(void) {
    refuse_each(EPERM);
}

static void run_all(void) {
    refused = 0;
    refused_to = CALLS;
    refused_with = EPERM;
    in_child("all of them", work_without);
}

/* With a trace, too. */
static void run_recorded(void) {
    static char path[4096];
    strcpy(path, getenv("FOLDER"));
    setenv("BFC_RECORD", strcat(path, "/trace"), 1);
    refuse_each(EPERM);
}

static const struct scene scenes[] = {
    {"unknown", run_unknown},
    {"forbidden", run_forbidden},
    {"all", run_all},
    {"recorded", run_recorded},
};

int main(int argc, char **argv) {
    return run_scene(argc, argv, scenes, sizeof scenes / sizeof *scenes);
}
