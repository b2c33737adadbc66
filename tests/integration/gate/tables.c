/*
 * Work by the functions of a table that has no names (cuGetExportTable): the stand-in's own, which
 * are the driver's functions past its symbol table. Contents are checked; a wrong byte ends the
 * program with status 1.
 *
 * usage: tables SCENE
 */
#define ROUTE_DRIVER
#include <setjmp.h>

#include "tests/conformance/gpu.h"

enum { ROUNDS = 200 };
static const size_t bytes = MIB;

struct functions {
    size_t size;
    CUresult (*launch)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                       unsigned, CUstream, void **, void **);
    CUresult (*copy)(CUdeviceptr, CUdeviceptr, size_t, CUstream);
    void *none;
    CUresult (*set)(CUdeviceptr, unsigned char, size_t, CUstream);
    CUresult (*wait)(void);
};

static const void *table_of(const char *id) {
    const void *table = NULL;
    MUST(DRIVER(cuGetExportTable)(&table, (const CUuuid *)id));
    return table;
}

static unsigned long long count_of(const char *name) {
    unsigned long long (*count)(const char *);
    *(void **)&count = dlsym(RTLD_DEFAULT, "sim_call_count");
    return count(name);
}

static void check(void *block, unsigned value) {
    if (!holds(block, bytes, value)) {
        puts("wrong bytes");
        fflush(stdout);
        _exit(1);
    }
}

static void use(CUstream stream, int rounds) {
    for (int i = 0; i < rounds; i++) {
        void *block = new_block(bytes);
        fill(stream, block, bytes, (unsigned)i);
        MUST(release(block));
    }
}

/* A block whose slow fill is under way is freed, handed out again, and used in another stream by
 * the table's functions: eleven arguments, of which five lie on the stack. */
static void second(void) {
    const struct functions *table = table_of("sim: functions 1");
    CUstream one = new_stream(), other = new_stream();
    unsigned long long size = bytes;
    unsigned value = 2;
    use(one, 4);
    MUST(synchronize());
    for (int i = 0; i < 20; i++) {
        void *block = new_block(bytes);
        slow_fill(one, block, bytes, 1, 30);
        MUST(release(block));
        void *next = new_block(bytes);
        if (i % 2)
            MUST(table->launch(kernel("fill"), 1, 1, 1, 64, 1, 1, 0, other,
                               (void *[]){&next, &size, &value}, NULL));
        else
            MUST(table->set(address(next), 2, bytes, other));
        MUST(synchronize());
        check(next, i % 2 ? 2 : 0x02020202);
        MUST(release(next));
    }
    puts("right");
}

/* Frees in one stream need fences again after a call of the table, and none once it is long ago. */
static void rest(void) {
    const struct functions *table = table_of("sim: functions 1");
    printf("same %d, none %d, error %d\n", table == table_of("sim: functions 1"), !table->none,
           (int)table->copy(0, 0, 1, NULL));
    for (int tries = 0; tries < 1024; tries++) {
        MUST(table->wait());
        MUST(synchronize());
        use(NULL, 1);
        MUST(synchronize());
        use(NULL, 1);
    }
    for (int tries = 0; tries < 1024; tries++) {
        MUST(synchronize());
        use(NULL, 1);
    }
    unsigned long long before = count_of("event_records");
    use(NULL, ROUNDS);
    printf("records %llu\n", count_of("event_records") - before);
}

static const struct functions *jumped;
static jmp_buf before_jump;

/* A tool's function, which the stand-in calls at each call: within the first it makes another by
 * the table, and jumps out of that. */
static void jump(const char *call) {
    if (strcmp(call, "cuCtxSynchronize") == 0)
        longjmp(before_jump, 1);
    if (strcmp(call, "cuMemsetD8Async") == 0 && !setjmp(before_jump))
        jumped->wait();
}

static void jump_out(void) {
    void *block = new_block(bytes);
    void (*watch)(void (*)(const char *));
    *(void **)&watch = dlsym(RTLD_DEFAULT, "sim_tool_watch");
    jumped = table_of("sim: functions 1");
    watch(jump);
    printf("set %d\n", (int)jumped->set(address(block), 2, bytes, NULL));
    watch(NULL);
    MUST(jumped->wait());
    check(block, 2);
    puts("right");
}

/* Not all that it holds are functions. */
static void number(void) {
    (void)table_of("sim: a number  1");
    use(NULL, ROUNDS);
}

int main(int count, char **names) {
    choose_device(0);
    if (count == 2 && strcmp(names[1], "second") == 0)
        second();
    else if (count == 2 && strcmp(names[1], "rest") == 0)
        rest();
    else if (count == 2 && strcmp(names[1], "jump") == 0)
        jump_out();
    else
        number();
    return 0;
}
