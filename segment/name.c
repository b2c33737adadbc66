#include "segment/name.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/open_file.h"
#include "base/shared_folder.h"

struct bfc_segment_name bfc_segment_name_of(uint32_t uid, uint64_t pid_namespace, int32_t pid) {
    struct bfc_segment_name name = {.uid = uid, .pid_namespace = pid_namespace, .pid = pid};
    char path[BFC_SEGMENT_NAME_MAX + 1]; /* begins with a slash, as names of shm_open do */
    snprintf(path, sizeof path, BFC_SEGMENT_NAME_FORMAT, uid, (unsigned long)pid_namespace, pid);
    memcpy(name.text, path + 1, sizeof name.text);
    return name;
}

bool bfc_segment_name_parse(const char *text, struct bfc_segment_name *name) {
    unsigned uid;
    unsigned long pid_namespace;
    int pid;
    if (sscanf(text, BFC_SEGMENT_NAME_PREFIX "%u.%lu.%d", &uid, &pid_namespace, &pid) != 3)
        return false;
    /* Accepts only the text that bfc_segment_name_of makes of the three numbers: no signs, leading
     * zeros, overflows or trailing text. */
    struct bfc_segment_name again = bfc_segment_name_of(uid, pid_namespace, pid);
    if (pid <= 0 || strcmp(again.text, text) != 0)
        return false;
    *name = again;
    return true;
}

int bfc_segment_directory_open(const char *path) {
    return bfc_open(path, O_RDONLY | O_DIRECTORY, 0);
}

bool bfc_segment_names_visit(int directory, size_t most, bfc_segment_name_visit *visit,
                             void *context) {
    DIR *stream = bfc_open_folder_at(directory, ".");
    if (!stream)
        return false;
    struct bfc_segment_name name;
    struct dirent *entry;
    for (size_t i = 0; i < most && (entry = readdir(stream)); i++)
        if (bfc_segment_name_parse(entry->d_name, &name) && !visit(context, directory, &name))
            break;
    closedir(stream);
    return true;
}

bool bfc_pid_is_free(int32_t pid) {
    return kill(pid, 0) != 0 && errno == ESRCH;
}

bool bfc_pid_is_stopped(int32_t pid) {
    char path[32], text[128];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    int file = bfc_open(path, O_RDONLY, 0);
    ssize_t length = file < 0 ? -1 : read(file, text, sizeof text - 1);
    if (file >= 0)
        close(file);
    text[length > 0 ? length : 0] = '\0';
    /* here the program's name ends, which may itself contain ')' */
    const char *state = strrchr(text, ')');
    return state && state[1] == ' ' && (state[2] == 'T' || state[2] == 't');
}

static bool remove_own(int directory, const char *file) {
    struct stat status;
    return bfc_file_status_at(directory, file, &status) && S_ISREG(status.st_mode) &&
           status.st_uid == geteuid() && unlinkat(directory, file, 0) == 0;
}

bool bfc_segment_remove(int directory, const struct bfc_segment_name *name) {
    static const char *const answers[] = {BFC_WHO_ANSWER, BFC_PLAN_ANSWER};
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
        char answer[BFC_SEGMENT_NAME_MAX + 16];
        snprintf(answer, sizeof answer, BFC_ANSWER_NAME_FORMAT, answers[i], name->uid,
                 (unsigned long)name->pid_namespace, name->pid);
        remove_own(directory, answer);
    }
    return remove_own(directory, name->text);
}
