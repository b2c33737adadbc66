/* Folders that are elsewhere, missing, full or read-only; and an environment that is gone. */
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/fault/surroundings/scene.h"

extern char **environ;

static char path[4096];

static const char *path_of(const char *name) {
    snprintf(path, sizeof path, "%s/%s", getenv("FOLDER"), name);
    return path;
}

/* ---- chdir and chroot ---- */

static void run_folder_gone(void) {
    must(mkdir(path_of("gone"), 0700) == 0 && chdir(path) == 0 && rmdir(path) == 0, "a folder");
    setenv("BFC_RECORD", "trace", 1);
    work();
}

static void run_folders(void) {
    setenv("BFC_RECORD", "trace", 1);
    begin();
    use_memory();
    must(mkdir(path_of("other"), 0700) == 0 && chdir(path) == 0, "a folder");
    FILE *own = fopen("trace", "w");
    must(own && fputs("own", own) >= 0 && fclose(own) == 0, "a file");
    run_out();
    use_memory();
    usleep(700000); /* the trace is written by itself meanwhile */
    use_memory();
}

/* What the folder's own file holds is the program's. */
static void run_folders_kept(void) {
    struct stat status;
    in_child("a program", run_folders);
    must(stat(path_of("other/trace"), &status) == 0, "a file");
    report("own file: %lld bytes", (long long)status.st_size);
}

static void change_root(void) {
    must(mkdir(path_of("root"), 0755) == 0, "a folder");
    if (chroot(path) != 0) {
        if (unshare(CLONE_NEWUSER) != 0 || chroot(path) != 0)
            skip("no chroot here");
    }
    must(chdir("/") == 0, "chdir");
}

static void run_root_before(void) {
    begin();
    change_root();
    use_memory();
    run_out();
}

static void run_root_later(void) {
    setenv("BFC_RECORD", "trace", 1);
    work();
    change_root();
    use_memory();
    run_out();
    use_memory();
}

/* ---- /dev/shm ---- */

static void own_mounts(void) {
    if (unshare(CLONE_NEWNS) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0)
        skip("no mounts of its own here");
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
        skip("no private mounts here");
}

static void mount_shared_folder(const char *options, unsigned long flags) {
    own_mounts();
    if (mount("none", "/dev/shm", "tmpfs", flags, options) != 0)
        skip("no tmpfs here");
}

static void share_and_work(void) {
    CUipcMemHandle handle;
    CUdeviceptr block;
    work();
    must(cuMemAlloc(&block, 4096) == CUDA_SUCCESS, "a block");
    CUresult code = cuIpcGetMemHandle(&handle, block);
    must(code == CUDA_SUCCESS || code == CUDA_ERROR_OUT_OF_MEMORY, "an answer of the driver's");
    must(cuMemFree(block) == CUDA_SUCCESS, "a free");
    run_out();
}

static void run_full(void) {
    char bytes[4096] = {1};
    mount_shared_folder("size=64k", 0);
    int file = open("/dev/shm/filling", O_WRONLY | O_CREAT, 0600);
    while (write(file, bytes, sizeof bytes) > 0)
        ;
    close(file);
    share_and_work();
}

/* Room for the name and some pages, and not for all. */
static void run_nearly_full(void) {
    mount_shared_folder("size=128k", 0);
    share_and_work();
    report("left: %d", access("/dev/shm/filling", F_OK));
}

static void run_no_inodes(void) {
    mount_shared_folder("nr_inodes=1", 0);
    share_and_work();
}

static void run_read_only(void) {
    mount_shared_folder("", MS_RDONLY);
    share_and_work();
}

static void run_missing(void) {
    own_mounts();
    if (mount("none", "/dev", "tmpfs", 0, NULL) != 0)
        skip("no tmpfs here");
    share_and_work();
}

static void run_no_proc(void) {
    own_mounts();
    if (mount("none", "/proc", "tmpfs", 0, NULL) != 0)
        skip("no tmpfs here");
    share_and_work();
}

/* It goes away under a process that has its segment there. */
static void run_taken_away(void) {
    own_mounts();
    share_and_work();
    if (mount("none", "/dev/shm", "tmpfs", MS_RDONLY, NULL) != 0)
        skip("no tmpfs here");
    share_and_work();
}

/* ---- the environment ---- */

static void run_no_environment(void) {
    clearenv();
    work();
}

static void run_replaced_environment(void) {
    static char *one[] = {(char *)"ONLY=this", NULL};
    begin();
    environ = one;
    use_memory();
    run_out();
    environ = NULL;
    use_memory();
}

/* Its old strings are gone, as after a library that sets the process's title. */
static void run_overwritten_environment(void) {
    char **old = environ;
    size_t count = 0;
    while (old[count])
        count++;
    char **copy = calloc(count + 1, sizeof *copy);
    for (size_t i = 0; i < count; i++)
        copy[i] = strdup(old[i]);
    for (size_t i = 0; i < count; i++)
        memset(old[i], 'x', strlen(old[i]));
    environ = copy;
    work();
    for (size_t i = 0; i < count; i++)
        free(copy[i]);
    free(copy);
    environ = NULL;
    run_out();
    use_memory();
}

/* Numbers of variables are read in the C locale's way whatever the program's is. */
static void run_locale(void) {
    static const char *const names[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "tr_TR.UTF-8"};
    bool found = false;
    for (size_t i = 0; i < sizeof names / sizeof *names && !found; i++)
        found = setlocale(LC_ALL, names[i]) != NULL;
    if (!found)
        skip("no locale with a decimal comma here");
    setenv("BFC_LIMIT", "0.95", 1);
    setenv("BFC_STRICT", "1", 1);
    begin();
    use_memory();
}

static void run_title(void) {
    /* /proc/self/cmdline and the start's variables become something else. */
    extern char *program_invocation_name;
    memset(program_invocation_name, 'x', strlen(program_invocation_name));
    work();
}

/* ---- set-user-id copies: the loader leaves the library out ---- */

static void run_copy(void) {
    char program[4096] = "";
    if (getenv("COPY")) {
        report("preloaded: %d", getenv("LD_PRELOAD") && *getenv("LD_PRELOAD"));
        work();
        return;
    }
    if (getuid() != 0)
        skip("only root can make a copy of another user's");
    /* The driver is found by RUNPATH: the loader drops LD_LIBRARY_PATH as well. */
    if (readlink("/proc/self/exe", program, sizeof program - 1) < 0)
        skip("no /proc here");
    setenv("PROGRAM", program, 1);
    setenv("THE_COPY", path_of("copy"), 1);
    if (system("cp \"$PROGRAM\" \"$THE_COPY\" && chown 65534 \"$THE_COPY\" && chmod 4755 "
               "\"$THE_COPY\""))
        skip("no copy of another user's here");
    chmod(getenv("REPORT"), 0666);
    chmod(getenv("FOLDER"), 0755);
    setenv("COPY", "1", 1);
    pid_t child = fork();
    int status = 0;
    if (child == 0) {
        execl(path_of("copy"), "copy", "set-user-id", (char *)NULL);
        _exit(127);
    }
    must(child > 0 && waitpid(child, &status, 0) == child, "a child");
    report_end("the copy", status);
}

static const struct scene scenes[] = {
    {"folder-gone", run_folder_gone},
    {"folders", run_folders_kept},
    {"root-before", run_root_before},
    {"root-later", run_root_later},
    {"shm-full", run_full},
    {"shm-nearly-full", run_nearly_full},
    {"shm-no-inodes", run_no_inodes},
    {"shm-read-only", run_read_only},
    {"shm-missing", run_missing},
    {"shm-taken-away", run_taken_away},
    {"no-proc", run_no_proc},
    {"no-environment", run_no_environment},
    {"replaced-environment", run_replaced_environment},
    {"overwritten-environment", run_overwritten_environment},
    {"locale", run_locale},
    {"title", run_title},
    {"set-user-id", run_copy},
};

int main(int argc, char **argv) {
    return run_scene(argc, argv, scenes, sizeof scenes / sizeof *scenes);
}
