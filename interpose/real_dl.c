/*
 * Finding functions of the C library: a walk over the loaded objects' dynamic symbol tables.
 *
 * A sanitizer's runtime asks dlsym for the functions that it intercepts before any of them works.
 * So the way from there to the C library's dlsym calls nothing (strcmp and dl_iterate_phdr are
 * intercepted), and is not instrumented itself.
 */
#include "interpose/real_dl.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NO_SANITIZER __attribute__((no_sanitize("address", "thread", "undefined")))

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
NO_SANITIZER static const void *dynamic_pointer(ElfW(Addr) base, ElfW(Addr) value) {
    return (const void *)(value < base ? base + value : value);
}

/* `entry`: the object's dynamic section. */
NO_SANITIZER static bool read_dynamic(ElfW(Addr) base, const ElfW(Dyn) * entry,
                                      struct dynamic *dynamic) {
    *dynamic = (struct dynamic){0};
    for (; entry && entry->d_tag != DT_NULL; entry++) {
        const void *pointer = dynamic_pointer(base, entry->d_un.d_ptr);
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

NO_SANITIZER static bool same_text(const char *a, const char *b) {
    while (*a != '\0' && *a == *b) {
        a++;
        b++;
    }
    return *a == *b;
}

NO_SANITIZER static bool begins_with(const char *text, const char *start) {
    while (*start != '\0' && *text == *start) {
        text++;
        start++;
    }
    return *start == '\0';
}

NO_SANITIZER static uint32_t hash_name(const char *name) {
    uint32_t hash = 5381;
    for (; *name; name++)
        hash = hash * 33 + (unsigned char)*name;
    return hash;
}

/* A symbol version with the top bit set is hidden: not the one that a plain reference binds to. */
NO_SANITIZER static bool is_default(const struct dynamic *dynamic, uint32_t index) {
    return !dynamic->versions || (dynamic->versions[index] & 0x8000) == 0;
}

NO_SANITIZER static const ElfW(Sym) * find_symbol(const struct dynamic *dynamic, const char *name) {
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
            is_default(dynamic, index) && same_text(dynamic->strings + symbol->st_name, name))
            return symbol;
        if (link & 1)
            return NULL;
    }
}

/* libdl.so.2 and libpthread.so.0 hold nothing of interest since glibc 2.34, and much before. */
NO_SANITIZER static bool is_c_library(const char *path) {
    const char *file = path;
    for (const char *c = path; *c != '\0'; c++)
        if (*c == '/')
            file = c + 1;
    return begins_with(file, "libc.so.") || begins_with(file, "libdl.so.") ||
           begins_with(file, "libpthread.so.");
}

static const ElfW(Dyn) * dynamic_section(const struct dl_phdr_info *object) {
    for (int i = 0; i < object->dlpi_phnum; i++)
        if (object->dlpi_phdr[i].p_type == PT_DYNAMIC)
            return (const ElfW(Dyn) *)(object->dlpi_addr + object->dlpi_phdr[i].p_vaddr);
    return NULL;
}

/* The address of an object's function, or NULL. */
NO_SANITIZER static void *search_dynamic(ElfW(Addr) base, const ElfW(Dyn) * section,
                                         const char *name) {
    struct dynamic dynamic;
    const ElfW(Sym) *symbol =
        read_dynamic(base, section, &dynamic) ? find_symbol(&dynamic, name) : NULL;
    return symbol ? (void *)(base + symbol->st_value) : NULL;
}

static int search_object(struct dl_phdr_info *object, size_t size, void *context) {
    (void)size;
    struct search *search = context;
    if (is_c_library(object->dlpi_name))
        search->address = search_dynamic(object->dlpi_addr, dynamic_section(object), search->name);
    return search->address != NULL;
}

void *bfc_c_function(const char *name) {
    struct search search = {.name = name};
    dl_iterate_phdr(search_object, &search);
    return search.address;
}

/*
 * The same without a call, for the functions that every C library has. The list may be walked
 * without the loader's lock as far as the C library: it and what stands before it never go.
 */
NO_SANITIZER static void *c_function_early(const char *name) {
    void *address = NULL;
    for (const struct link_map *object = _r_debug.r_map; object && !address;
         object = object->l_next)
        if (is_c_library(object->l_name))
            address = search_dynamic(object->l_addr, object->l_ld, name);
    return address;
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
    search->address = read_dynamic(object->dlpi_addr, dynamic_section(object), &dynamic)
                          ? (void *)find_symbol(&dynamic, search->name)
                          : NULL;
    return 1;
}

bool bfc_object_exports(const void *address, const char *name) {
    struct search search = {.name = name, .address = (void *)address};
    return dl_iterate_phdr(search_holder, &search) && search.address;
}

/* Relaxed: a code address, and every thread finds the same. */
NO_SANITIZER static void *find_once(_Atomic(void *) *found, const char *name) {
    void *function = atomic_load_explicit(found, memory_order_relaxed);
    if (!function) {
        function = c_function_early(name);
        atomic_store_explicit(found, function, memory_order_relaxed);
    }
    return function;
}

NO_SANITIZER void *bfc_real_dlsym(void *handle, const char *name) {
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
