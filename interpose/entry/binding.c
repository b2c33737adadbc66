/*
 * Redirects the driver's symbol table, and the pointers in other objects that the loader has filled
 * from that table.
 *
 * Both walks over the loaded objects run in dl_iterate_phdr, which holds the loader's lock on its
 * list of objects: meanwhile no object is unloaded, and no two threads change the protection of one
 * page. An object that another thread loads at the same time is not missed: if the loader may have
 * bound it by the old table, this thread waits between the two walks until that load has ended, and
 * an object that is loaded later is bound to the hooks.
 */
#include "interpose/entry/binding.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/atomic.h"
#include "interpose/config/process.h"
#include "interpose/config/routes.h"
#include "interpose/driver/driver.h"
#include "interpose/entry/hooks.h"
#include "interpose/entry/runtime.h"
#include "interpose/entry/unknown.h"
#include "interpose/host/c_library.h"
#include "interpose/table/counter.h"
#include "interpose/table/feature.h"

#if defined(__x86_64__)
enum { ABSOLUTE = R_X86_64_64, DATA = R_X86_64_GLOB_DAT, CALL = R_X86_64_JUMP_SLOT };
#elif defined(__aarch64__)
enum { ABSOLUTE = R_AARCH64_ABS64, DATA = R_AARCH64_GLOB_DAT, CALL = R_AARCH64_JUMP_SLOT };
#endif

struct binding {
    const struct bfc_driver *driver;
    const struct link_map *library; /* the driver, as the loader lists it */
    /* whether the redirection is undone: pointers to hooks become pointers to the driver's
     * functions */
    bool undoes;
    bool failed; /* whether some pointer could not be replaced */
    /* the name of a driver call to which some object refers, and which has no hook but may need
     * one; or NULL */
    const char *unhooked;
};

/* An object that dl_iterate_phdr has passed to its callback. */
struct object {
    const struct dl_phdr_info *info;
    struct link_map map; /* the object's link map, but only l_addr and l_ld are set */
};

static uintptr_t page_size(void) {
    long size = sysconf(_SC_PAGESIZE);
    return size > 0 ? (uintptr_t)size : 4096;
}

static int protection_by(ElfW(Word) flags) {
    return (flags & PF_R ? PROT_READ : 0) | (flags & PF_W ? PROT_WRITE : 0) |
           (flags & PF_X ? PROT_EXEC : 0);
}

/* Returns the protection that the loader has given to the page of `address`: that of its segment,
 * but read-only in the pages that become so after relocation (RELRO). PROT_NONE means that no
 * segment contains the address. */
static int protection_of(const struct dl_phdr_info *info, uintptr_t address) {
    int protection = PROT_NONE;
    uintptr_t pages = ~(page_size() - 1);
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        uintptr_t start = info->dlpi_addr + part->p_vaddr, end = start + part->p_memsz;
        if (part->p_type == PT_LOAD && address >= start && address < end)
            protection = protection_by(part->p_flags);
        else if (part->p_type == PT_GNU_RELRO && address >= (start & pages) &&
                 address < (end & pages))
            return PROT_READ;
    }
    return protection;
}

/* Writes a pointer that other threads may read meanwhile: each reads the old value or the new one.
 * False: its page cannot be made writable. */
static bool write_word(const struct object *object, ElfW(Addr) * word, ElfW(Addr) value) {
    int protection = protection_of(object->info, (uintptr_t)word);
    bool writable = protection & PROT_WRITE;
    uintptr_t size = page_size();
    void *page = (void *)((uintptr_t)word & ~(size - 1));
    if (protection == PROT_NONE ||
        (!writable && mprotect(page, size, protection | PROT_WRITE) != 0))
        return false;
    bfc_store_release(word, value);
    if (!writable)
        mprotect(page, size, protection);
    return true;
}

/* Returns the number of symbols according to the GNU hash section: one more than the highest index
 * in its chains. */
static size_t count_by_gnu_hash(const uint32_t *table) {
    uint32_t buckets = table[0], first = table[1], bloom_words = table[2], last = 0;
    const uint32_t *bucket = table + 4 + bloom_words * (sizeof(ElfW(Addr)) / sizeof(uint32_t));
    const uint32_t *chain = bucket + buckets;
    for (uint32_t i = 0; i < buckets; i++)
        if (bucket[i] > last)
            last = bucket[i];
    if (last < first)
        return first;
    while (!(chain[last - first] & 1))
        last++;
    return last + 1;
}

static size_t count_symbols(const struct bfc_dynamic *dynamic) {
    if (dynamic->hash)
        return dynamic->hash[1];
    return dynamic->gnu_hash ? count_by_gnu_hash(dynamic->gnu_hash) : 0;
}

/* Returns what replaces `address`, the present value of the driver's symbol `name`; 0: nothing. */
static ElfW(Addr) new_address(const struct binding *binding, const char *name, ElfW(Addr) address) {
    if (name[0] != 'c' || name[1] != 'u')
        return 0;
    const struct bfc_hook *hook = bfc_hook_of_symbol(name);
    if (!hook)
        return (ElfW(Addr))(binding->undoes ? bfc_unknown_real((void *)address)
                                            : bfc_unknown_wrapper((void *)address));
    ElfW(Addr) real = (ElfW(Addr))bfc_hook_real(binding->driver, hook);
    ElfW(Addr) ours = (ElfW(Addr))bfc_hook_replacement(hook);
    if (!real || address != (binding->undoes ? ours : real))
        return 0;
    if (!binding->undoes)
        bfc_routes_note(hook->symbol, BFC_ROUTE_SYMBOL_TABLE);
    return binding->undoes ? real : ours;
}

static void lead_symbols(struct binding *binding, const struct object *object) {
    struct bfc_dynamic dynamic;
    bfc_read_dynamic(&object->map, &dynamic);
    size_t count = dynamic.symbols && dynamic.strings ? count_symbols(&dynamic) : 0;
    for (size_t i = 0; i < count; i++) {
        ElfW(Sym) *symbol = (ElfW(Sym) *)&dynamic.symbols[i];
        const char *name = dynamic.strings + symbol->st_name;
        ElfW(Addr) now = object->map.l_addr + symbol->st_value;
        if (!binding->undoes && bfc_unknown_begins(name) && !bfc_hook_of_symbol(name))
            bfc_unknown_entry(name, (void *)now);
        ElfW(Addr) address = new_address(binding, name, now);
        if (address && !write_word(object, &symbol->st_value, address - object->map.l_addr))
            binding->failed = true;
    }
}

static int lead_driver(struct dl_phdr_info *info, size_t size, void *context) {
    struct binding *binding = context;
    struct object object = {.info = info};
    (void)size;
    if (!bfc_object_of_walk(info, &object.map) || object.map.l_ld != binding->library->l_ld)
        return 0;
    lead_symbols(binding, &object);
    return 1;
}

/* Records the name if it is a driver call that is newer than this library's tables, and so may
 * submit work that BFC_GATE does not count. The driver is searched for the name, since other
 * libraries have names that begin with cu, too. */
static void note_unhooked(struct binding *binding, const char *name) {
    bool may_be = name[0] == 'c' && name[1] == 'u' && name[2] >= 'A' && name[2] <= 'Z';
    if (may_be && bfc_counter && bfc_hook_may_lack(name, 0) &&
        bfc_object_function(binding->library, name, NULL))
        binding->unhooked = name;
}

static void rebind_word(struct binding *binding, const struct object *object,
                        const struct bfc_dynamic *dynamic, const ElfW(Rela) * relocation) {
    ElfW(Addr) *word = (ElfW(Addr) *)(object->map.l_addr + relocation->r_offset);
    const ElfW(Sym) *symbol = &dynamic->symbols[ELF64_R_SYM(relocation->r_info)];
    if ((uintptr_t)word % sizeof *word)
        return;
    const char *name = dynamic->strings + symbol->st_name;
    ElfW(Addr) address = new_address(binding, name, *word);
    if (address && !write_word(object, word, address))
        binding->failed = true;
    note_unhooked(binding, name);
}

static void rebind_words(struct binding *binding, const struct object *object,
                         const struct bfc_dynamic *dynamic, const ElfW(Rela) * relocations,
                         size_t size) {
    size_t count = relocations ? size / sizeof *relocations : 0;
    for (size_t i = 0; i < count; i++) {
        unsigned type = (unsigned)ELF64_R_TYPE(relocations[i].r_info);
        if (type == ABSOLUTE || type == DATA || type == CALL)
            rebind_word(binding, object, dynamic, &relocations[i]);
    }
}

/* The driver's own pointers are not changed: its calls of its own functions must not reach a
 * hook. */
static int rebind_object(struct dl_phdr_info *info, size_t size, void *context) {
    struct binding *binding = context;
    struct object object = {.info = info};
    struct bfc_dynamic dynamic;
    (void)size;
    if (!bfc_object_of_walk(info, &object.map) || object.map.l_ld == binding->library->l_ld)
        return 0;
    bfc_read_dynamic(&object.map, &dynamic);
    if (!dynamic.symbols || !dynamic.strings)
        return 0;
    rebind_words(binding, &object, &dynamic, dynamic.relocations, dynamic.relocations_size);
    rebind_words(binding, &object, &dynamic, dynamic.calls, dynamic.calls_size);
    return 0;
}

static bool bind_word(struct binding *binding, bool at_start) {
    dl_iterate_phdr(lead_driver, binding);
    /* loads in other threads have ended when this returns, so their objects are walked, too */
    if (!at_start)
        bfc_real_dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_LAZY);
    if (!binding->failed || binding->undoes)
        dl_iterate_phdr(rebind_object, binding);
    return !binding->failed;
}

static void tell_of_unhooked(const struct binding *binding) {
    if (binding->unhooked)
        BFC_TELL_COUNTER(hide(binding->unhooked));
}

static bool bind_or_undo(const struct bfc_driver *driver, const struct link_map *library,
                         bool at_start) {
    struct binding binding = {.driver = driver, .library = library};
    if (bind_word(&binding, at_start)) {
        tell_of_unhooked(&binding);
        return true;
    }
    binding.undoes = true;
    bind_word(&binding, at_start);
    return false;
}

/* the driver, as the loader lists it; constant once its functions are published */
static const struct link_map *driver_library;

static void note_names(struct binding *binding, const struct bfc_dynamic *dynamic,
                       const ElfW(Rela) * relocations, size_t size) {
    for (size_t i = 0; relocations && i < size / sizeof *relocations; i++) {
        const ElfW(Sym) *symbol = &dynamic->symbols[ELF64_R_SYM(relocations[i].r_info)];
        note_unhooked(binding, dynamic->strings + symbol->st_name);
    }
}

/* Searches an object that was loaded after the driver for driver calls that lack a hook
 * (note_unhooked). The loader itself has bound the object's other driver calls to the hooks. */
static void look_at_names(const void *code) {
    struct binding binding = {.library = driver_library};
    const struct link_map *object = bfc_object_of(code);
    struct bfc_dynamic dynamic;
    if (!object)
        return;
    bfc_read_dynamic(object, &dynamic);
    if (!dynamic.symbols || !dynamic.strings)
        return;
    note_names(&binding, &dynamic, dynamic.relocations, dynamic.relocations_size);
    note_names(&binding, &dynamic, dynamic.calls, dynamic.calls_size);
    tell_of_unhooked(&binding);
}

static void explain_sealed(void) {
    const struct bfc_process *process = bfc_process();
    if (process && process->active)
        bfc_log(BFC_LOG_ERROR, "this system's memory protection keeps the driver's functions as "
                               "they are: nothing is pooled");
}

/* Redirects the driver's symbols to the hooks, and only then publishes the driver's functions. If
 * the redirection failed, nothing is pooled. */
static const struct bfc_driver *adopt_driver(const struct link_map *library, bool at_start) {
    const struct bfc_driver *driver = bfc_driver_read(library);
    driver_library = library;
    BFC_TELL_FEATURES(driver_found, driver);
    bool bound = bind_or_undo(driver, library, at_start);
    bfc_driver_publish(driver, bound);
    if (!bound)
        explain_sealed();
    return driver;
}

/* Asks the loader whether the driver is loaded. RTLD_NEXT would not find the driver, since it is
 * usually opened with RTLD_LOCAL. In glibc a handle from dlopen is a link map. */
static const struct bfc_driver *find_driver(void) {
    const struct link_map *library = bfc_real_dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_LAZY);
    bfc_forget_dl_error();
    return library ? adopt_driver(library, false) : NULL;
}

void bfc_bind_loaded_driver(void) {
    bfc_driver_set_finder(find_driver);
    bfc_driver();
}

/* atomic: the loader's count of added objects when find_driver_name last searched them; 0: never */
static unsigned long long looked_at;

static int find_driver_name(struct dl_phdr_info *info, size_t size, void *context) {
    (void)size;
    if (info->dlpi_adds == bfc_load_relaxed(&looked_at))
        return 1;
    *(unsigned long long *)context = info->dlpi_adds;
    return bfc_is_driver(info->dlpi_name) ? 2 : 0;
}

static void look_again(void) {
    int error = errno;
    unsigned long long added = 0;
    int found = dl_iterate_phdr(find_driver_name, &added);
    if (found != 1)
        bfc_store_relaxed(&looked_at, added);
    if (found == 2)
        bfc_bind_loaded_driver();
    errno = error;
}

/* Redirects the symbols of a driver that was loaded together with the program. The driver is found
 * without dlopen, which could now run the initialisers of loaded objects in a wrong order. */
static void look_at_start(void) {
    static bool looked; /* only written while there is one thread */
    if (looked)
        return;
    const struct link_map *library = bfc_driver_at_start();
    if (library && !bfc_process_has_environment())
        return;
    looked = true;
    bfc_driver_set_finder(find_driver);
    if (library)
        adopt_driver(library, true);
}

__attribute__((constructor)) static void begin(void) {
    look_at_start();
}

/* The start files that compilers link into every program and library call __gmon_start__, if some
 * object exports it: before the object's own initialisers, and after the loader has bound all that
 * was loaded with the object. So the driver is redirected before a constructor in a library that is
 * linked to it can take a function's address. And an object that is loaded later is searched for
 * driver calls without a hook before it can make one. (Profiled programs have a __gmon_start__ of
 * their own, which is found before this one.) */
__attribute__((visibility("default"))) void bfc_export_begin(void);
__asm__(".symver bfc_export_begin, __gmon_start__@BFC_START");
void bfc_export_begin(void) {
    if (bfc_loads == 1)
        look_at_start();
    else if (!bfc_load_acquire(&bfc_driver_found))
        look_again();
    else if (bfc_counter)
        look_at_names(__builtin_return_address(0));
}
