#include "interpose/features/who/stacks/objects.h"

#include <link.h>
#include <sys/auxv.h>

#include "base/atomic.h"
#include "base/compiler.h"
#include "interpose/host/c_library.h"

/* Weak, so that this library does not list the loader (ld.so) among the libraries that it needs. */
#pragma weak _r_debug

#define COPY(readable, address, value) bfc_readable_copy(readable, address, value, sizeof *(value))

/* A copy of the struct dl_find_object of glibc 2.35, which older headers do not have. */
struct found {
    unsigned long long flags;
    void *start, *end, *map, *index;
    /* not used here; glibc has seven of these fields so far, and may add some */
    unsigned long long more[10];
};

typedef int find_object(void *address, struct found *found);

static int find_nothing(void *address, struct found *found) {
    (void)address, (void)found;
    return -1;
}

/* Returns the C library's _dl_find_object, or find_nothing if it has no such function. */
static find_object *get_finder(void) {
    static find_object *known; /* atomic; NULL: the function was not looked for yet */
    find_object *found = bfc_load_relaxed(&known);
    if (UNLIKELY(!found)) {
        *(void **)&found = bfc_c_function("_dl_find_object");
        found = found ? found : find_nothing;
        bfc_store_relaxed(&known, found);
    }
    return found;
}

/* Finds the program headers of a loaded object. For the executable the kernel gives their address;
 * other objects have it in their ELF header. */
static bool find_headers(struct bfc_readable *readable, const struct link_map *node, uint64_t *at,
                         uint64_t *count) {
    ElfW(Ehdr) header;
    if (!node->l_prev) {
        *at = getauxval(AT_PHDR);
        *count = getauxval(AT_PHNUM);
        return true;
    }
    if (!COPY(readable, node->l_addr, &header) || memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
        header.e_phentsize != sizeof(ElfW(Phdr)))
        return false;
    *at = node->l_addr + header.e_phoff;
    *count = header.e_phnum;
    return true;
}

static bool read_headers(struct bfc_readable *readable, const struct link_map *node,
                         struct bfc_object *object) {
    ElfW(Phdr) part;
    uint64_t at, count;
    if (!find_headers(readable, node, &at, &count))
        return false;
    object->start = UINT64_MAX;
    object->end = object->index = 0;
    for (; count; count--, at += sizeof part) {
        if (!COPY(readable, at, &part))
            return false;
        uint64_t start = node->l_addr + part.p_vaddr, end = start + part.p_memsz;
        if (part.p_type == PT_GNU_EH_FRAME)
            object->index = start;
        if (part.p_type == PT_LOAD && start < object->start)
            object->start = start;
        if (part.p_type == PT_LOAD && end > object->end)
            object->end = end;
    }
    return true;
}

/* Goes through the loader's list of objects for the last one that begins at or below the address,
 * and checks that it contains the address. */
static bool find_in_list(struct bfc_readable *readable, uint64_t address,
                         struct bfc_object *object) {
    /* the most objects visited: a list that another thread changes meanwhile may seem to have a
     * cycle */
    enum { MOST = 10000 };
    struct link_map node, best = {0};
    uint64_t at = &_r_debug ? (uint64_t)_r_debug.r_map : 0;
    object->map = 0;
    for (int i = 0; i < MOST && at && COPY(readable, at, &node); i++, at = (uint64_t)node.l_next)
        if (node.l_addr <= address && (!object->map || node.l_addr > best.l_addr)) {
            object->map = at;
            best = node;
        }
    return object->map && read_headers(readable, &best, object) &&
           address - object->start < object->end - object->start;
}

/* The objects that were found last are kept here, because going through the loader's list takes
 * long. */
enum { KEPT = 64 };
static struct kept {
    struct bfc_object object; /* an object found lately; if its `map` is 0, the entry is empty */
    struct link_map node;
} kept[KEPT];
static unsigned kept_next;
/* atomic: a lock for `kept` and `kept_next`; a thread that finds it taken does not wait, but goes
 * through the loader's list of objects */
static bool kept_busy;

static bool is_unchanged(struct bfc_readable *readable, const struct kept *object) {
    struct link_map node;
    return COPY(readable, object->object.map, &node) && node.l_addr == object->node.l_addr &&
           node.l_name == object->node.l_name && node.l_ld == object->node.l_ld;
}

static bool find_kept(struct bfc_readable *readable, uint64_t address, struct bfc_object *object) {
    for (unsigned i = 0; i < KEPT; i++) {
        *object = kept[i].object;
        if (object->map && address - object->start < object->end - object->start)
            return is_unchanged(readable, &kept[i]);
    }
    return false;
}

static bool find_and_keep(struct bfc_readable *readable, uint64_t address,
                          struct bfc_object *object) {
    if (find_kept(readable, address, object))
        return true;
    if (!find_in_list(readable, address, object))
        return false;
    unsigned place = 0;
    while (place < KEPT && kept[place].object.map != object->map)
        place++;
    struct kept *keeps = &kept[place < KEPT ? place : kept_next++ % KEPT];
    keeps->object = *object;
    return COPY(readable, object->map, &keeps->node);
}

static bool find_by_list(struct bfc_readable *readable, uint64_t address,
                         struct bfc_object *object) {
    if (bfc_exchange_acquire(&kept_busy, true))
        return find_in_list(readable, address, object);
    bool found = find_and_keep(readable, address, object);
    bfc_store_release(&kept_busy, false);
    return found;
}

bool bfc_object_at(struct bfc_readable *readable, uint64_t address, struct bfc_object *object) {
    struct found found;
    find_object *find = get_finder();
    if (UNLIKELY(find == find_nothing))
        return find_by_list(readable, address, object);
    if (find((void *)address, &found) != 0)
        return false;
    *object = (struct bfc_object){.start = (uint64_t)found.start,
                                  .end = (uint64_t)found.end,
                                  .index = (uint64_t)found.index,
                                  .map = (uint64_t)found.map};
    return true;
}

bool bfc_object_name(struct bfc_readable *readable, const struct bfc_object *object,
                     uint64_t *loaded_at, char *path, size_t most) {
    struct link_map node;
    if (!COPY(readable, object->map, &node))
        return false;
    *loaded_at = node.l_addr;
    for (size_t i = 0; i < most; i++) {
        if (!bfc_readable_copy(readable, (uint64_t)node.l_name + i, &path[i], 1))
            return false;
        if (!path[i])
            return true;
    }
    path[most - 1] = '\0';
    return true;
}

struct tables {
    uint64_t symbols, strings, hash;
};

static bool read_tables(struct bfc_readable *readable, const struct bfc_object *object,
                        struct tables *tables) {
    struct link_map node;
    ElfW(Dyn) entry;
    *tables = (struct tables){0};
    if (!COPY(readable, object->map, &node))
        return false;
    for (uint64_t at = (uint64_t)node.l_ld; COPY(readable, at, &entry) && entry.d_tag != DT_NULL;
         at += sizeof entry) {
        uint64_t value = entry.d_un.d_ptr + (entry.d_un.d_ptr < node.l_addr ? node.l_addr : 0);
        if (entry.d_tag == DT_SYMTAB)
            tables->symbols = value;
        else if (entry.d_tag == DT_STRTAB)
            tables->strings = value;
        else if (entry.d_tag == DT_GNU_HASH)
            tables->hash = value;
    }
    return tables->symbols && tables->strings && tables->hash;
}

static bool is_named(struct bfc_readable *readable, const struct tables *tables, uint64_t index,
                     const char *name) {
    ElfW(Sym) symbol;
    char letter;
    if (!COPY(readable, tables->symbols + index * sizeof symbol, &symbol) ||
        symbol.st_shndx == SHN_UNDEF)
        return false;
    for (uint64_t at = tables->strings + symbol.st_name; COPY(readable, at, &letter); at++, name++)
        if (letter != *name || !letter)
            return letter == *name;
    return false;
}

bool bfc_object_offers(struct bfc_readable *readable, const struct bfc_object *object,
                       const char *name) {
    struct {
        uint32_t buckets, first, bloom_words, shift;
    } head;
    struct tables tables;
    uint32_t hash = 5381, index = 0, link = 0;
    for (const char *at = name; *at; at++)
        hash = hash * 33 + (unsigned char)*at;
    if (!read_tables(readable, object, &tables) || !COPY(readable, tables.hash, &head) ||
        !head.buckets)
        return false;
    uint64_t buckets = tables.hash + sizeof head + head.bloom_words * sizeof(ElfW(Addr));
    uint64_t chain = buckets + (uint64_t)head.buckets * sizeof link;
    if (!COPY(readable, buckets + hash % head.buckets * sizeof link, &index) || index < head.first)
        return false;
    for (; COPY(readable, chain + (uint64_t)(index - head.first) * sizeof link, &link); index++) {
        if ((link | 1) == (hash | 1) && is_named(readable, &tables, index, name))
            return true;
        if (link & 1)
            return false;
    }
    return false;
}
