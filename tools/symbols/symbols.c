#include "tools/symbols/symbols.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct function {
    uint64_t start, size;
    const char *name;
    /* the demangled name; NULL: `name` was not demangled so far, or is no name of C++ */
    char *demangled;
};

struct symbols {
    const char *file; /* the content of the file, mapped into memory */
    size_t size;
    struct function *functions;
    size_t count;
};

/* Returns where the bytes at an offset of the file are in memory; NULL: the file does not have
 * `size` bytes there. */
static const void *part_of(const struct symbols *symbols, uint64_t offset, uint64_t size) {
    return offset <= symbols->size && size <= symbols->size - offset ? symbols->file + offset
                                                                     : NULL;
}

static bool is_ours(const ElfW(Ehdr) * header) {
    return header && memcmp(header->e_ident, ELFMAG, SELFMAG) == 0 &&
           header->e_ident[EI_CLASS] == (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32) &&
           header->e_shentsize == sizeof(ElfW(Shdr));
}

static int by_start(const void *one, const void *other) {
    const struct function *a = one, *b = other;
    return a->start != b->start ? (a->start > b->start) - (a->start < b->start)
                                : (a->size > b->size) - (a->size < b->size);
}

static bool take_functions(struct symbols *symbols, const ElfW(Shdr) * table,
                           const ElfW(Shdr) * texts) {
    const ElfW(Sym) *all = part_of(symbols, table->sh_offset, table->sh_size);
    const char *names = part_of(symbols, texts->sh_offset, texts->sh_size);
    size_t count = table->sh_size / sizeof *all;
    if (!all || !names || !texts->sh_size || names[texts->sh_size - 1] != '\0')
        return false;
    symbols->functions = calloc(count + 1, sizeof *symbols->functions);
    for (size_t i = 0; symbols->functions && i < count; i++) {
        unsigned kind = ELF64_ST_TYPE(all[i].st_info);
        if ((kind == STT_FUNC || kind == STT_GNU_IFUNC) && all[i].st_shndx != SHN_UNDEF &&
            all[i].st_name < texts->sh_size)
            symbols->functions[symbols->count++] =
                (struct function){all[i].st_value, all[i].st_size, names + all[i].st_name, NULL};
    }
    if (symbols->count)
        qsort(symbols->functions, symbols->count, sizeof *symbols->functions, by_start);
    return symbols->count != 0;
}

static bool take_sections(struct symbols *symbols) {
    const ElfW(Ehdr) *header = part_of(symbols, 0, sizeof *header);
    if (!is_ours(header))
        return false;
    size_t count = header->e_shnum;
    const ElfW(Shdr) *sections = part_of(symbols, header->e_shoff, count * sizeof *sections);
    const uint32_t kinds[] = {SHT_SYMTAB, SHT_DYNSYM};
    for (size_t kind = 0; sections && kind < 2; kind++)
        for (size_t i = 0; i < count; i++)
            if (sections[i].sh_type == kinds[kind] && sections[i].sh_link < count &&
                take_functions(symbols, &sections[i], &sections[sections[i].sh_link]))
                return true;
    return false;
}

static bool map_file(struct symbols *symbols, const char *path) {
    struct stat status;
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0)
        return false;
    bool good = fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0;
    void *memory = MAP_FAILED;
    if (good)
        memory = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, file, 0);
    close(file);
    if (memory == MAP_FAILED)
        return false;
    symbols->file = memory;
    symbols->size = (size_t)status.st_size;
    return true;
}

struct symbols *symbols_open(const char *path) {
    struct symbols *symbols = calloc(1, sizeof *symbols);
    if (symbols && map_file(symbols, path) && take_sections(symbols))
        return symbols;
    symbols_close(symbols);
    return NULL;
}

void symbols_close(struct symbols *symbols) {
    if (!symbols)
        return;
    for (size_t i = 0; i < symbols->count; i++)
        free(symbols->functions[i].demangled);
    free(symbols->functions);
    if (symbols->file)
        munmap((void *)(uintptr_t)symbols->file, symbols->size);
    free(symbols);
}

char *symbols_demangle(const char *name) {
    static char *(*demangler)(const char *, char *, size_t *, int *);
    static bool looked;
    if (strncmp(name, "_Z", 2) != 0)
        return NULL;
    void *library = looked ? NULL : dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_LOCAL);
    if (library)
        *(void **)&demangler = dlsym(library, "__cxa_demangle");
    looked = true;
    return demangler ? demangler(name, NULL, NULL, NULL) : NULL;
}

const char *symbols_find(struct symbols *symbols, uint64_t address, uint64_t *distance) {
    /* A binary search: all functions with an index below `low` begin at or below `address`, and all
     * from `high` on begin above. */
    size_t low = 0, high = symbols->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (symbols->functions[middle].start <= address)
            low = middle + 1;
        else
            high = middle;
    }
    struct function *function = low ? &symbols->functions[low - 1] : NULL;
    if (!function || address - function->start >= (function->size ? function->size : 1))
        return NULL;
    *distance = address - function->start;
    if (!function->demangled)
        function->demangled = symbols_demangle(function->name);
    return function->demangled ? function->demangled : function->name;
}
