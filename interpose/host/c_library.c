/*
 * Finds functions of the C library by a walk over the dynamic symbol tables of the loaded objects.
 *
 * If a sanitizer's runtime is preloaded before this library, it replaces functions of the C library
 * (strcmp, dl_iterate_phdr), and calls this library's dlsym before its replacements work. So the
 * functions here that dlsym needs call no such function, and are not instrumented. The loader's
 * list of objects begins with those of the process's start, which are never unloaded; the C library
 * is among them.
 */
#include "interpose/host/c_library.h"

#include <dlfcn.h>
#include <elf.h>
#include <limits.h>
#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/compiler.h"

/* Weak, so that this library need not be linked to the loader, which defines the variable. */
#pragma weak _r_debug

/* Returns the address that an entry of the dynamic section holds. On the supported processors glibc
 * has added the object's base address to the entry; on others the entry is an offset from the
 * base. */
NO_SANITIZER static const void *dynamic_pointer(const struct link_map *object, ElfW(Addr) value) {
    return (const void *)(value < object->l_addr ? object->l_addr + value : value);
}

NO_SANITIZER void bfc_read_dynamic(const struct link_map *object, struct bfc_dynamic *dynamic) {
    *dynamic = (struct bfc_dynamic){0};
    for (const ElfW(Dyn) *entry = object->l_ld; entry && entry->d_tag != DT_NULL; entry++) {
        const void *pointer = dynamic_pointer(object, entry->d_un.d_ptr);
        if (entry->d_tag == DT_SYMTAB)
            dynamic->symbols = pointer;
        else if (entry->d_tag == DT_STRTAB)
            dynamic->strings = pointer;
        else if (entry->d_tag == DT_VERSYM)
            dynamic->versions = pointer;
        else if (entry->d_tag == DT_VERDEF)
            dynamic->definitions = pointer;
        else if (entry->d_tag == DT_GNU_HASH)
            dynamic->gnu_hash = pointer;
        else if (entry->d_tag == DT_HASH)
            dynamic->hash = pointer;
        else if (entry->d_tag == DT_RELA)
            dynamic->relocations = pointer;
        else if (entry->d_tag == DT_RELASZ)
            dynamic->relocations_size = entry->d_un.d_val;
        else if (entry->d_tag == DT_JMPREL)
            dynamic->calls = pointer;
        else if (entry->d_tag == DT_PLTRELSZ)
            dynamic->calls_size = entry->d_un.d_val;
    }
}

NO_SANITIZER static bool same_text(const char *one, const char *other) {
    while (*one && *one == *other)
        one++, other++;
    return *one == *other;
}

NO_SANITIZER static bool begins_with(const char *text, const char *begin) {
    while (*begin && *text == *begin)
        text++, begin++;
    return !*begin;
}

NO_SANITIZER static uint32_t hash_name(const char *name) {
    uint32_t hash = 5381;
    for (; *name; name++)
        hash = hash * 33 + (unsigned char)*name;
    return hash;
}

/* Whether a reference without a version would be bound to the symbol. If the top bit of its version
 * is set, the symbol is hidden from such references. */
NO_SANITIZER static bool is_default(const struct bfc_dynamic *dynamic, uint32_t index) {
    return !dynamic->versions || (dynamic->versions[index] & 0x8000) == 0;
}

NO_SANITIZER static bool is_symbol(const struct bfc_dynamic *dynamic, uint32_t index,
                                   const char *name) {
    const ElfW(Sym) *symbol = &dynamic->symbols[index];
    return symbol->st_shndx != SHN_UNDEF && is_default(dynamic, index) &&
           same_text(dynamic->strings + symbol->st_name, name);
}

/* Searches all symbols of an object without a GNU hash section; DT_HASH tells how many there
 * are. */
NO_SANITIZER static const ElfW(Sym) *
    find_slowly(const struct bfc_dynamic *dynamic, const char *name) {
    for (uint32_t index = 1; dynamic->hash && index < dynamic->hash[1]; index++)
        if (is_symbol(dynamic, index, name))
            return &dynamic->symbols[index];
    return NULL;
}

NO_SANITIZER static const ElfW(Sym) *
    find_symbol(const struct bfc_dynamic *dynamic, const char *name) {
    /* the GNU hash section: bucket count, first hashed symbol, Bloom words, shift, then the
     * tables */
    const uint32_t *table = dynamic->gnu_hash;
    uint32_t bucket_count = table[0], first = table[1], bloom_words = table[2];
    const uint32_t *buckets = table + 4 + bloom_words * (sizeof(ElfW(Addr)) / sizeof(uint32_t));
    const uint32_t *chain = buckets + bucket_count;
    uint32_t hash = hash_name(name);
    uint32_t index = bucket_count ? buckets[hash % bucket_count] : 0;
    if (index < first)
        return NULL;
    for (;; index++) {
        uint32_t link = chain[index - first];
        if ((link | 1) == (hash | 1) && is_symbol(dynamic, index, name))
            return &dynamic->symbols[index];
        if (link & 1)
            return NULL;
    }
}

NO_SANITIZER static const ElfW(Sym) *
    find_in_object(const struct link_map *object, const char *name, struct bfc_dynamic *dynamic) {
    bfc_read_dynamic(object, dynamic);
    if (!dynamic->symbols || !dynamic->strings)
        return NULL;
    return dynamic->gnu_hash ? find_symbol(dynamic, name) : find_slowly(dynamic, name);
}

NO_SANITIZER static const char *file_of(const char *path) {
    const char *file = path;
    for (const char *at = path; *at; at++)
        if (*at == '/')
            file = at + 1;
    return file;
}

/* Whether the file is the C library, or one of libdl, libpthread and the loader: before glibc 2.34
 * some functions of today's libc.so.6 are in those. */
NO_SANITIZER static bool is_c_library(const char *path) {
    const char *file = file_of(path);
    return begins_with(file, "libc.so.") || begins_with(file, "libdl.so.") ||
           begins_with(file, "libpthread.so.") || begins_with(file, "ld-linux");
}

/* Returns the name of the symbol's version, or "". Version indices 0 and 1 mean that there is
 * none. */
NO_SANITIZER static const char *version_of(const struct bfc_dynamic *dynamic,
                                           const ElfW(Sym) * symbol) {
    unsigned index = dynamic->versions ? dynamic->versions[symbol - dynamic->symbols] & 0x7fff : 0;
    const char *at = (const char *)dynamic->definitions;
    while (at && index > 1) {
        const ElfW(Verdef) *definition = (const void *)at;
        if (definition->vd_ndx == index) {
            const ElfW(Verdaux) *name = (const void *)(at + definition->vd_aux);
            return dynamic->strings + name->vda_name;
        }
        at = definition->vd_next ? at + definition->vd_next : NULL;
    }
    return "";
}

NO_SANITIZER void *bfc_object_function(const struct link_map *object, const char *name,
                                       const char **version) {
    struct bfc_dynamic dynamic;
    const ElfW(Sym) *symbol = find_in_object(object, name, &dynamic);
    if (symbol && version)
        *version = version_of(&dynamic, symbol);
    return symbol ? (void *)(object->l_addr + symbol->st_value) : NULL;
}

NO_SANITIZER bool bfc_is_driver(const char *path) {
    return begins_with(file_of(path), "libcuda.so");
}

NO_SANITIZER const struct link_map *bfc_driver_at_start(void) {
    const struct link_map *object = _r_debug.r_map;
    while (object && !same_text(file_of(object->l_name), "libcuda.so.1"))
        object = object->l_next;
    return object;
}

NO_SANITIZER void *bfc_c_function(const char *name) {
    void *found = NULL;
    for (const struct link_map *object = _r_debug.r_map; object && !found; object = object->l_next)
        if (is_c_library(object->l_name))
            found = bfc_object_function(object, name, NULL);
    return found;
}

NO_SANITIZER const struct link_map *bfc_exporter_at_start(const char *name) {
    for (const struct link_map *object = _r_debug.r_map; object; object = object->l_next)
        if (bfc_object_function(object, name, NULL))
            return object;
        else if (is_c_library(object->l_name))
            break;
    return NULL;
}

struct link_map *bfc_object_of(const void *address) {
    int (*dladdr1_)(const void *, Dl_info *, void **, int);
    *(void **)&dladdr1_ = bfc_c_function("dladdr1");
    Dl_info info;
    void *map = NULL;
    if (!dladdr1_ || !dladdr1_(address, &info, &map, RTLD_DL_LINKMAP))
        return NULL;
    return map;
}

/* Before glibc 2.34, dlsym and dlopen are in libdl.so.2, which may not be loaded. It is loaded here
 * by __libc_dlopen_mode, by which the C library loads its own modules (for iconv); that function
 * requires a flag that is internal to the C library. */
NO_SANITIZER static void *find_after_loading_libdl(const char *name) {
    const int flag_of_dlopen = INT_MIN;
    void *(*load)(const char *, int);
    *(void **)&load = bfc_c_function("__libc_dlopen_mode");
    return load && load("libdl.so.2", RTLD_NOW | flag_of_dlopen) ? bfc_c_function(name) : NULL;
}

/* Looks a function up and stores the result in `*found`. Relaxed order suffices, since every thread
 * finds the same address, and reads no data that another thread has written before it. */
NO_SANITIZER static void *find_once(void **found, const char *name) {
    void *function = bfc_load_relaxed(found);
    if (!function) {
        function = bfc_c_function(name);
        if (!function)
            function = find_after_loading_libdl(name);
        bfc_store_relaxed(found, function);
    }
    return function;
}

NO_SANITIZER void *bfc_real_dlsym(void *handle, const char *name) {
    static void *found;
    void *(*real)(void *, const char *);
    *(void **)&real = find_once(&found, "dlsym");
    return real(handle, name);
}

void *bfc_real_dlvsym(void *handle, const char *name, const char *version) {
    void *(*real)(void *, const char *, const char *);
    *(void **)&real = bfc_c_function("dlvsym");
    return real ? real(handle, name, version) : NULL;
}

void *bfc_real_dlopen(const char *file, int mode) {
    static void *found;
    void *(*real)(const char *, int);
    *(void **)&real = find_once(&found, "dlopen");
    return real(file, mode);
}

void *bfc_bound_function(const char *name) {
    void *function = bfc_real_dlsym(RTLD_DEFAULT, name);
    return function ? function : bfc_c_function(name);
}

bool bfc_object_of_walk(const struct dl_phdr_info *info, struct link_map *object) {
    *object = (struct link_map){.l_addr = info->dlpi_addr};
    for (unsigned i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
            object->l_ld = (void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
    return object->l_ld;
}

void bfc_forget_dl_error(void) {
    static void *found;
    char *(*real)(void);
    *(void **)&real = find_once(&found, "dlerror");
    real();
}
