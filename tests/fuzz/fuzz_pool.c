/*
 * Fuzzing the pool's calls: any bytes are a program (see program.h), run against the model with the
 * checker after every step.
 *
 * With clang and -Dc_args=-fsanitize=fuzzer this file alone is the harness; otherwise main() below
 * runs the files of the folder named, or the file, so that the kept corpus is a test with any
 * compiler.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "tests/unit/pool/program.h"

#define MOST_BYTES 4096

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count) {
    size_t step;
    const char *fault = program_run(bytes, count < MOST_BYTES ? count : MOST_BYTES, &step);
    if (fault) {
        fprintf(stderr, "at byte %zu: %s\n", step, fault);
        abort();
    }
    return 0;
}

#ifndef BFC_LIBFUZZER
static unsigned run_file(const char *path) {
    static uint8_t bytes[MOST_BYTES];
    struct stat status;
    FILE *file = fopen(path, "rb");
    if (!file || fstat(fileno(file), &status) || !S_ISREG(status.st_mode)) {
        if (file)
            fclose(file);
        return 0;
    }
    size_t count = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    LLVMFuzzerTestOneInput(bytes, count);
    return 1;
}

static unsigned run_folder(const char *path) {
    unsigned ran = 0;
    DIR *folder = opendir(path);
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        char name[4096];
        snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
        ran += run_file(name);
    }
    if (folder)
        closedir(folder);
    return ran;
}

int main(int argc, char **argv) {
    unsigned ran = 0;
    for (int i = 1; i < argc; i++)
        ran += run_folder(argv[i]) + run_file(argv[i]);
    printf("%u inputs\n", ran);
    return ran ? 0 : 1;
}
#endif
