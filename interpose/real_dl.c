/* Finding functions of the C library: a walk over the loaded objects' dynamic symbol tables. */
#include "interpose/real_dl.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The parts of one object's dynamic section that a look-up by name needs. */
struct dynamic {
    const ElfW(Sym) * symbols;
    const char *strings;
    const ElfW(Half) * versions;
    const uint32_t *gnu_hash;
};

struct search {
    const char *name;
    void *address;
};

/* glibc relocates d_ptr in place on the processors that we know; others leave an offset. */
static const void *dynamic_pointer(const struct dl_phdr_info *object, ElfW(Addr) value) {
    return (const void *)(value < object->dlpi_addr ? object->dlpi_addr + value : value);
}

static bool read_dynamic(const struct dl_phdr_info *object, struct dynamic *dynamic) {
    *dynamic = (struct dynamic){0};
    const ElfW(Dyn) *entry = NULL;
    for (int i = 0; i < object->dlpi_phnum; i++)
        if (object->dlpi_phdr[i].p_type == PT_DYNAMIC)
            entry = (const ElfW(Dyn) *)(object->dlpi_addr + object->dlpi_phdr[i].p_vaddr);
    for (; entry && entry->d_tag != DT_NULL; entry++) {
        const void *pointer = dynamic_pointer(object, entry->d_un.d_ptr);
        if (entry->d_tag == DT_SYMTAB)
            dynamic->symbols = pointer;
        else if (entry->d_tag == DT_STRTAB)
            dynamic->strings = pointer;
        else if (entry->d_tag == DT_VERSYM)
            dynamic->versions = pointer;
        else if (entry->d_tag == DT_GNU_HASH)
            dynamic->gnu_hash = pointer;
    }
    return dynamic->symbols && dynamic->strings && dynamic->gnu_hash;
}

static uint32_t hash_name(const char *name) {
    uint32_t hash = 5381;
    for (; *name; name++)
        hash = hash * 33 + (unsigned char)*name;
    return hash;
}

/* A symbol version with the top bit set is hidden: not the one that a plain reference binds to. */
static bool is_default(const struct dynamic *dynamic, uint32_t index) {
    return !dynamic->versions || (dynamic->versions[index] & 0x8000) == 0;
}

static const ElfW(Sym) * find_symbol(const struct dynamic *dynamic, const char *name) {
    /* The GNU hash section: bucket count, first hashed symbol, Bloom words, shift; then the tables.
     */
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
        const ElfW(Sym) *symbol = &dynamic->symbols[index];
        if ((link | 1) == (hash | 1) && symbol->st_shndx != SHN_UNDEF &&
            is_default(dynamic, index) && strcmp(dynamic->strings + symbol->st_name, name) == 0)
            return symbol;
        if (link & 1)
            return NULL;
    }
}

/* libdl.so.2 and libpthread.so.0 hold nothing of interest since glibc 2.34, and much before. */
static bool is_c_library(const char *path) {
    const char *slash = strrchr(path, '/');
    const char *file = slash ? slash + 1 : path;
    return strncmp(file, "libc.so.", 8) == 0 || strncmp(file, "libdl.so.", 9) == 0 ||
           strncmp(file, "libpthread.so.", 14) == 0;
}

static int search_object(struct dl_phdr_info *object, size_t size, void *context) {
    (void)size;
    struct search *search = context;
    struct dynamic dynamic;
    if (!is_c_library(object->dlpi_name) || !read_dynamic(object, &dynamic))
        return 0;
    const ElfW(Sym) *symbol = find_symbol(&dynamic, search->name);
    if (symbol)
        search->address = (void *)(object->dlpi_addr + symbol->st_value);
    return search->address != NULL;
}

void *bfc_c_function(const char *name) {
    struct search search = {.name = name};
    dl_iterate_phdr(search_object, &search);
    return search.address;
}

static bool holds(const struct dl_phdr_info *object, uintptr_t address) {
    for (int i = 0; i < object->dlpi_phnum; i++)
        if (object->dlpi_phdr[i].p_type == PT_LOAD &&
            address - (object->dlpi_addr + object->dlpi_phdr[i].p_vaddr) <
                object->dlpi_phdr[i].p_memsz)
            return true;
    return false;
}

/* In: the code's address; out: not NULL if the object that holds it has the symbol. */
static int search_holder(struct dl_phdr_info *object, size_t size, void *context) {
    (void)size;
    struct search *search = context;
    struct dynamic dynamic;
    if (!holds(object, (uintptr_t)search->address))
        return 0;
    search->address =
        read_dynamic(object, &dynamic) ? (void *)find_symbol(&dynamic, search->name) : NULL;
    return 1;
}

bool bfc_object_exports(const void *address, const char *name) {
    struct search search = {.name = name, .address = (void *)address};
    return dl_iterate_phdr(search_holder, &search) && search.address;
}

/* Relaxed: a code address, and every thread finds the same. */
static void *find_once(_Atomic(void *) *found, const char *name) {
    void *function = atomic_load_explicit(found, memory_order_relaxed);
    if (!function) {
        function = bfc_c_function(name);
        atomic_store_explicit(found, function, memory_order_relaxed);
    }
    return function;
}

void *bfc_real_dlsym(void *handle, const char *name) {
    static _Atomic(void *) found;
    void *(*real)(void *, const char *);
    *(void **)&real = find_once(&found, "dlsym");
    return real(handle, name);
}

void *bfc_real_dlopen(const char *file, int mode) {
    static _Atomic(void *) found;
    void *(*real)(const char *, int);
    *(void **)&real = find_once(&found, "dlopen");
    return real(file, mode);
}

void *bfc_bound_function(const char *name) {
    void *function = bfc_real_dlsym(RTLD_DEFAULT, name);
    return function ? function : bfc_c_function(name);
}

void bfc_forget_dl_error(void) {
    static _Atomic(void *) found;
    char *(*real)(void);
    *(void **)&real = find_once(&found, "dlerror");
    real();
}
