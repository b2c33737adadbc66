/* The table of the environment variables BFC_...: their names, kinds, defaults and meanings. */
#include "interpose/config/option_table.h"

#include "base/sizes.h"

#define AT(field) offsetof(struct bfc_options, field)
enum { EXPERT = BFC_OPTION_EXPERT, BINDING = BFC_OPTION_BINDING };

/* First come the variables for everyday use, then those for experts, each part in the order of the
 * manual page. */
const struct bfc_option bfc_option_table[] = {
    {"BFC_MODE", NULL, BFC_OPTION_CHOICE, BINDING, "exact", "exact, fast, compact", 0, 0, AT(mode),
     "Chooses settings that belong together; one that is set by itself counts over the mode's. "
     "exact: a free waits as cudaFree does (BFC_FREE=sync). fast: it does not wait "
     "(BFC_FREE=ordered). compact: least memory (BFC_BACKING=auto, BFC_PLAN=auto)."},
    {"BFC_LIMIT", NULL, BFC_OPTION_AMOUNT, BINDING, "none", NULL, 0, 0, AT(limit),
     "Sets the most bytes that this process may reserve on one device; an "
     "allocation beyond it fails with out of memory. At none only the device limits "
     "it."},
    {"BFC_RESERVE", NULL, BFC_OPTION_SHARE, BINDING, "0", NULL, 0, 0, AT(reserve),
     "Sets how many bytes of device memory the pool leaves free for others whenever "
     "it grows; at 0 it may take all that is free."},
    {"BFC_SPILL", NULL, BFC_OPTION_SIZE, BINDING, "0", NULL, 0, TIB, AT(spill),
     "Sets how many bytes of host memory, over all devices, this process may pin and hand out in "
     "place of device memory once the device has no more to give; at 0 such an allocation fails "
     "with out of memory."},
    {"BFC_WAIT", NULL, BFC_OPTION_NUMBER, 0, "0", NULL, 0, 31536000, AT(wait),
     "Seconds for which an allocation waits for memory that other jobs use, when nothing else is "
     "left; jobs of one user are served in the order in which they began to wait."},
    {"BFC_PLAN", NULL, BFC_OPTION_FILE, 0, "none", "auto", 0, 0, AT(plan),
     "Follows a plan that bfcplan made of a recording of the same program: what a loop allocates "
     "gets the addresses that were planned for it. auto: the job makes its plan itself. What a "
     "plan does not foresee is served as without one."},
    {"BFC_RECORD", NULL, BFC_OPTION_FILE, 0, "none", NULL, 0, 0, AT(record),
     "Writes a trace of all allocations and frees to this file, for bfcreplay and "
     "bfcplan; %p in the name becomes the process id. At none nothing is recorded."},
    {"BFC_LOG", NULL, BFC_OPTION_CHOICE, 0, "error", "off, error, warn, info, debug", 0, 0, AT(log),
     "Sets which messages go to standard error: each level includes those before "
     "it. error: what fails. warn: what works less well than it could. info: what "
     "was decided, and memory that is given back. debug: each region and hook."},
    {"BFC_SUMMARY", NULL, BFC_OPTION_CHOICE, 0, "0", "0, 1, leaks", 0, 0, AT(summary),
     "At 1 the process prints a few lines at exit: calls, hit rate, driver calls "
     "saved, and peaks. leaks: also what was not freed, and which frees were invalid, with call "
     "stacks; each allocation and free takes its stack then."},
    {"BFC_DISABLE", NULL, BFC_OPTION_FLAG, BINDING, "0", NULL, 0, 0, AT(disable),
     "At 1 every call is forwarded to the driver and no pool is made; at 0 allocations"
     " are pooled."},
    {"BFC_POLICY", NULL, BFC_OPTION_CHOICE, EXPERT, "bfc", "bfc, tf, pytorch", 0, 0, AT(policy),
     "Chooses how blocks are placed and split: bfc is best fit with coalescing, tf "
     "follows the rules of TensorFlow's BFC allocator, and pytorch follows those of "
     "PyTorch's caching allocator."},
    {"BFC_FREE", NULL, BFC_OPTION_CHOICE, EXPERT | BINDING, "sync", "sync, lazy, ordered", 0, 0,
     AT(free_mode),
     "Sets what a free guarantees. sync: the host waits for the context, as "
     "cudaFree does. lazy: the free returns at once, and the memory is reused only "
     "after the work that was under way at the free has completed. ordered: the "
     "free returns at once, the memory can be reused at once, and the device makes "
     "later work wait."},
    {"BFC_PENDING_BUDGET", "BFC_DIRTY_BUDGET", BFC_OPTION_SIZE, EXPERT, "256M", NULL, 0, TIB,
     AT(pending_budget),
     "With lazy, the pool grows while at most this many bytes of freed memory may "
     "still be in use by the device; above it, an allocation waits for such memory "
     "instead, if that suffices. At 0 it waits whenever that suffices."},
    {"BFC_IPC", NULL, BFC_OPTION_CHOICE, EXPERT | BINDING, "pooled", "pooled, off", 0, 0, AT(ipc),
     "Sets what a CUDA IPC handle of pooled memory is. pooled: a token that only "
     "other preloaded processes can open. off: from the first export on, "
     "allocations come from the driver and their handles are the driver's own."},
    {"BFC_GROWTH", NULL, BFC_OPTION_CHOICE, EXPERT, "double", "double, fixed, exact, preallocate",
     0, 0, AT(growth),
     "Sets the size of the next region that the pool takes from the driver. double: "
     "each step is twice the last (bfc: up to 32M, from there a 256th of what is "
     "reserved, or up to four such requests in a fifth of it). fixed: always BFC_GROWTH_SIZE. "
     "exact: what the request "
     "needs. preallocate: BFC_PREALLOCATE at the first allocation."},
    {"BFC_GROWTH_SIZE", NULL, BFC_OPTION_SIZE, EXPERT, "2M", NULL, 4 * KIB, TIB, AT(growth_size),
     "Sets the size in bytes of the first region (double) or of every region "
     "(fixed); a larger request gets a larger region."},
    {"BFC_GROWTH_MAX", NULL, BFC_OPTION_SIZE, EXPERT, "1G", NULL, 4 * KIB, TIB, AT(growth_max),
     "Sets the size in bytes of the largest step of double; a larger request still "
     "gets a larger region."},
    {"BFC_PREALLOCATE", NULL, BFC_OPTION_SHARE, EXPERT | BINDING, "0.75", NULL, 0, 0,
     AT(preallocate),
     "Sets how many bytes BFC_GROWTH=preallocate takes from the driver at the first "
     "allocation."},
    {"BFC_BACKING", NULL, BFC_OPTION_CHOICE, EXPERT | BINDING, "malloc", "malloc, pages, auto", 0,
     0, AT(backing),
     "Sets what is behind the pool's addresses. malloc: whole regions of the driver's "
     "cuMemAlloc. pages: memory of the driver's virtual memory management, which moves "
     "behind other addresses where free blocks are too small, or malloc on a device "
     "without it. auto: pages where the process has one device, and that has them, until the "
     "program captures streams, or exports or registers memory; else malloc."},
    {"BFC_SLACK", NULL, BFC_OPTION_NUMBER, EXPERT, "0.03", NULL, 0, 1, AT(page_slack),
     "With pages, the part of the most memory ever requested that may be reserved beyond "
     "it before free pages are moved rather than new ones made; at 0 free pages are always "
     "moved first."},
    {"BFC_PAGE", NULL, BFC_OPTION_CHOICE, EXPERT, "auto", "auto, fit, step", 0, 0, AT(page),
     "With pages, how large new ones are. step: one for each step of growth. fit: at most a 64th "
     "of "
     "the allocation that they are made for, but at least 2 MiB, so that most can move: many "
     "driver "
     "calls, and the least memory where lifetimes have no pattern. auto: as step until free memory "
     "is scattered, then small."},
    {"BFC_SPLIT_RATIO", NULL, BFC_OPTION_NUMBER, EXPERT, "none", NULL, 1, 1000000, AT(split_ratio),
     "A free block is split if it is at least this many times as large as the "
     "request; at none the policy decides (tf: 2)."},
    {"BFC_SPLIT_SLACK", NULL, BFC_OPTION_AMOUNT, EXPERT, "none", NULL, 0, 0, AT(split_slack),
     "A free block is split if at least this many bytes would be left over, "
     "whatever its ratio to the request; at none the policy decides (tf: 128M)."},
    {"BFC_MAX_SPLIT", NULL, BFC_OPTION_SIZE, EXPERT, "none", NULL, 20 * MIB, TIB, AT(max_split),
     "Free blocks of this many bytes or more are never split, and serve only "
     "requests of nearly their own size; at none, and with pages, there is no such bound."},
    {"BFC_ROUNDUP", NULL, BFC_OPTION_CHOICE, EXPERT, "0", "0, 1, 2, 4, 8, 16, 32, 64", 0, 0,
     AT(roundup),
     "Each power of two is divided into this many equal steps, and requests are "
     "rounded up to the next step; at 0 the policy decides (bfc: to 512 bytes and, "
     "from 64K on, to 64K)."},
    {"BFC_BYPASS_ABOVE", NULL, BFC_OPTION_SIZE, EXPERT | BINDING, "none", NULL, 0, TIB,
     AT(bypass_above),
     "Requests larger than this many bytes go to the driver and are not pooled; at "
     "none all sizes are pooled."},
    {"BFC_GC_THRESHOLD", NULL, BFC_OPTION_AMOUNT, EXPERT, "none", NULL, 0, 0, AT(gc_threshold),
     "When the pool has reserved more bytes than this, it gives idle regions back "
     "before it grows; a fraction is of BFC_LIMIT, or of the device's memory "
     "without a limit. At none it grows without giving any back."},
    {"BFC_TRIM_IDLE", NULL, BFC_OPTION_NUMBER, EXPERT, "none", NULL, 0, 31536000, AT(trim_idle),
     "A region that has been wholly free for this many seconds is given back to the "
     "driver; at none it is kept."},
    {"BFC_YIELD", NULL, BFC_OPTION_FLAG, EXPERT, "1", NULL, 0, 0, AT(yield),
     "At 1 this process gives cached memory back when another preloaded process of "
     "the user runs out of memory on the same device, and asks the others to do so "
     "when it runs out itself; at 0 it does neither."},
    {"BFC_LAST_RESORT", NULL, BFC_OPTION_WORDS, EXPERT, "all",
     "pool, contexts, jobs, sleep, wait, spill", 0, 0, AT(last_resort),
     "What is tried before an allocation fails, in this order. pool: waits for pending memory and "
     "gives idle regions back. contexts: the same in the process's other contexts. jobs: "
     "asks other jobs for what they cache (BFC_YIELD). sleep: puts other jobs to sleep that allow "
     "it. wait: BFC_WAIT. spill: BFC_SPILL."},
    {"BFC_SLEEP_IDLE", NULL, BFC_OPTION_NUMBER, EXPERT, "none", NULL, 0, 31536000, AT(sleep_idle),
     "After so many seconds without a call that submits work the job falls asleep: its memory goes "
     "back to the device, the contents elsewhere, until the next such call. Sets BFC_GATE=on and "
     "BFC_BACKING=auto where these are not set. At none it sleeps on request alone."},
    {"BFC_SLEEP_QUANTUM", NULL, BFC_OPTION_NUMBER, EXPERT, "none", NULL, 0, 31536000,
     AT(sleep_quantum),
     "Jobs that lack memory may put this job to sleep, even one that works, so many seconds after "
     "it woke or got the memory; it waits for its turn in the same way. Sets what BFC_SLEEP_IDLE "
     "sets, and BFC_WAIT to a day where that is not set. At none only an idle job sleeps."},
    {"BFC_SLEEP_TO", NULL, BFC_OPTION_FILE, EXPERT, "memory", "memory", 0, 0, AT(sleep_to),
     "Where the contents of a job are while it is asleep. memory: in the host's. A folder: in a "
     "file there, which has no name and ends with the job."},
    {"BFC_DEEPBIND", NULL, BFC_OPTION_CHOICE, EXPERT, "strip", "strip, keep", 0, 0, AT(deepbind),
     "Sets what happens to the flag RTLD_DEEPBIND of dlopen. strip: it is removed, "
     "since a library opened with it would bypass the pool. keep: it is left alone."},
    {"BFC_RUNTIME", NULL, BFC_OPTION_CHOICE, EXPERT, "auto", "auto, on, off", 0, 0, AT(runtime),
     "Sets whether cudaMalloc and cudaFree of a shared CUDA 12 or 13 runtime are "
     "answered before the runtime is entered. on: always. off: never. auto: unless a "
     "profiler may be watching."},
    {"BFC_GATE", NULL, BFC_OPTION_CHOICE, EXPERT, "auto", "auto, on, off, 1, 0", 0, 0, AT(gate),
     "Whether the calls that submit work are counted. on: they are; in modes lazy and ordered a "
     "free then needs no fence while all work goes to one stream, in sync no wait while none was "
     "submitted. off: they are not. auto: in lazy and ordered, not in sync. 1 and 0 are on and "
     "off."},
    {"BFC_STATS", NULL, BFC_OPTION_FLAG, EXPERT, "1", NULL, 0, 0, AT(stats),
     "At 1 the process publishes live counters in /dev/shm for bfcstat; at 0 it "
     "publishes nothing, and neither yields memory nor trims idle regions."},
    {"BFC_STACKS", NULL, BFC_OPTION_CHOICE, EXPERT, "sample", "off, sample, all", 0, 0, AT(stacks),
     "Sets of which allocations the call stack is taken, for bfcstat who. off: of none. sample: of "
     "so few that it costs next to nothing, from which the rest is estimated. all: of each."},
    {"BFC_TAGS", NULL, BFC_OPTION_CHOICE, EXPERT, "off", "off, nvtx", 0, 0, AT(tags),
     "nvtx: allocations are tagged with the program's NVTX ranges, for bfcstat who. The library "
     "sets NVTX_INJECTION64_PATH for that, and hands the ranges on to what was set there. Only the "
     "environment counts, no settings file."},
    {"BFC_LEAK_EXIT", NULL, BFC_OPTION_WHOLE, EXPERT, "0", NULL, 0, 255, AT(leak_exit),
     "The exit status of a process that comes to its normal end with blocks that are not freed; "
     "above 0 it implies BFC_SUMMARY=leaks, which names them. At 0 the exit status is always the "
     "process's own."},
    {"BFC_STRICT", NULL, BFC_OPTION_FLAG, EXPERT | BINDING, "0", NULL, 0, 0, AT(strict),
     "At 1 a malformed or unknown variable makes every allocation fail; at 0 it is "
     "reported, and its default is used or nothing is pooled."},
    {"BFC_ONLY", NULL, BFC_OPTION_PATTERNS, EXPERT | BINDING, "none", NULL, 0, 0, AT(only),
     "Names the executables in which pooling is on (python*:train); it is off in "
     "all others. At none it is on in all."},
    {"BFC_NOT", NULL, BFC_OPTION_PATTERNS, EXPERT | BINDING, "none", NULL, 0, 0, AT(not_in),
     "Names the executables in which pooling is off; at none this turns it off nowhere."},
};
const size_t bfc_option_count = sizeof bfc_option_table / sizeof bfc_option_table[0];
_Static_assert(sizeof bfc_option_table / sizeof bfc_option_table[0] <= 64, "a bit each");
