/*
 * Objects found by the loader's list, as on glibc before 2.35, which has no function for that.
 *
 * usage: test_objects PLUGIN
 */
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "interpose/features/who/stacks/objects.h"
#include "interpose/host/c_library.h"

static struct bfc_readable readable;

/* The C library has nothing that is asked for. */
void *bfc_c_function(const char *name) {
    (void)name;
    return NULL;
}

static void must(int holds, const char *what) {
    if (holds)
        return;
    fprintf(stderr, "wrong: %s\n", what);
    exit(1);
}

static int at(const void *address, struct bfc_object *object) {
    bfc_readable_begin(&readable);
    return bfc_object_at(&readable, (uint64_t)address, object);
}

/* Found where it lies, under its name, with its unwind tables. */
static void expect(const void *address, const char *file) {
    struct bfc_object object;
    char path[256];
    uint64_t loaded_at;
    must(at(address, &object), file);
    must((uint64_t)address >= object.start && (uint64_t)address < object.end, "its addresses");
    must(object.index >= object.start && object.index < object.end, "its unwind tables");
    must(bfc_object_name(&readable, &object, &loaded_at, path, sizeof path), "its name");
    must(strstr(path, file) != NULL, path);
}

static int compare(struct dl_phdr_info *info, size_t size, void *unused) {
    (void)size, (void)unused;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_GNU_EH_FRAME) {
            uint64_t index = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
            struct bfc_object object;
            must(at((const void *)index, &object) && object.index == index, info->dlpi_name);
        }
    return 0;
}

int main(int count, char **arguments) {
    struct bfc_object object;
    const void *in_program, *in_plugin;
    int (*program)(int, char **) = main;
    memcpy(&in_program, &program, sizeof in_program);
    bfc_readable_begin_process();
    for (int round = 0; count > 1 && round < 3; round++) {
        void *plugin = dlopen(arguments[1], RTLD_NOW);
        must(plugin != NULL, "dlopen");
        in_plugin = dlsym(plugin, "site_plugin");
        dl_iterate_phdr(compare, NULL);
        expect(in_program, "");
        expect(dlsym(RTLD_DEFAULT, "malloc"), "libc.so");
        expect(in_plugin, "who-plugin");
        must(at(in_plugin, &object) && bfc_object_offers(&readable, &object, "site_plugin") &&
                 !bfc_object_offers(&readable, &object, "PyFrame_GetBack"),
             "what the plugin exports");
        dlclose(plugin);
        must(!at(in_plugin, &object), "an object that was unloaded is still there");
    }
    must(!at(NULL, &object) && !at((const void *)UINTPTR_MAX, &object), "no object");
    void *other = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    must(!at(other, &object), "other memory");
    return 0;
}
