/*
 * The table of the environment variables BFC_..., and the struct that holds their values. options.h
 * declares the functions that read them.
 */
#ifndef BFC_INTERPOSE_OPTION_TABLE_H
#define BFC_INTERPOSE_OPTION_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum bfc_mode { BFC_MODE_EXACT, BFC_MODE_FAST, BFC_MODE_COMPACT };
enum bfc_free_mode { BFC_FREE_SYNC, BFC_FREE_LAZY, BFC_FREE_ORDERED };
enum bfc_runtime_mode { BFC_RUNTIME_AUTO, BFC_RUNTIME_ON, BFC_RUNTIME_OFF };
enum bfc_gate { BFC_GATE_AUTO, BFC_GATE_ON, BFC_GATE_OFF, BFC_GATE_1, BFC_GATE_0 };
enum bfc_ipc_mode { BFC_IPC_POOLED, BFC_IPC_OFF };
enum bfc_backing { BFC_BACKING_MALLOC, BFC_BACKING_PAGES, BFC_BACKING_AUTO };
enum bfc_stacks { BFC_STACKS_OFF, BFC_STACKS_SAMPLE, BFC_STACKS_ALL };
enum bfc_tags { BFC_TAGS_OFF, BFC_TAGS_NVTX };
enum bfc_summary { BFC_SUMMARY_OFF, BFC_SUMMARY_ON, BFC_SUMMARY_LEAKS };
enum bfc_log_level { BFC_LOG_OFF, BFC_LOG_ERROR, BFC_LOG_WARN, BFC_LOG_INFO, BFC_LOG_DEBUG };

/* An amount of device memory: bytes, or a fraction of the device's total memory. */
struct bfc_amount {
    uint64_t bytes;  /* UINT64_MAX: the variable's value is the word none */
    double fraction; /* part of the device's total memory; used if above 0 */
};

struct bfc_options {
    uint64_t given;  /* bit i: row i of bfc_option_table was set by itself, not by BFC_MODE */
    uint64_t unread; /* bit i: row i's variable was set to something that is not accepted */
    bool disable;
    int mode;      /* enum bfc_mode */
    int policy;    /* enum bfc_policy */
    int free_mode; /* enum bfc_free_mode */
    uint64_t pending_budget;
    int ipc;    /* enum bfc_ipc_mode */
    int growth; /* enum bfc_growth */
    uint64_t growth_size;
    uint64_t growth_max;
    struct bfc_amount preallocate;
    int backing;       /* enum bfc_backing */
    double page_slack; /* BFC_SLACK: a part of the most bytes that were ever requested */
    int page;          /* enum bfc_page_rule (pool/pool.h): how large new pages are */
    struct bfc_amount limit;
    struct bfc_amount reserve;
    uint64_t spill;
    /* a free block of at least this many times the request is split; below 0: the pool's policy
     * decides */
    double split_ratio;
    struct bfc_amount split_slack;
    uint64_t max_split; /* free blocks from this size on are not split; UINT64_MAX: all are */
    int roundup;        /* 0: none; else 1 << (roundup - 1) sizes between two powers of two */
    uint64_t bypass_above;
    /* bytes, or a fraction of the smaller of the limit and the device's memory */
    struct bfc_amount gc_threshold;
    bool yield;
    unsigned last_resort; /* bit r: enum bfc_rung r may be tried before an allocation fails */
    double wait;          /* seconds for which an allocation waits for other jobs */
    double sleep_idle, sleep_quantum; /* seconds; below 0: the word none */
    char sleep_to[256]; /* where memory is copied to: a folder's path, or the word memory */
    double trim_idle; /* seconds after which idle regions are given back; below 0: they are kept */
    /* whether dlopen's flag RTLD_DEEPBIND is kept (1) or removed (0); resolve.c does not use this
     * field, since it needs the value before the options are read */
    int deepbind;
    int runtime;      /* enum bfc_runtime_mode */
    int gate;         /* enum bfc_gate */
    char record[256]; /* the path of the trace to write, or empty */
    char plan[256];   /* the path of the plan to follow, or the word auto, or empty */
    bool stats;
    int stacks; /* enum bfc_stacks */
    int tags;   /* enum bfc_tags */
    int log;    /* enum bfc_log_level */
    bool strict;
    int summary; /* enum bfc_summary */
    double leak_exit;
    char only[256];
    char not_in[256];
};

enum bfc_option_kind {
    BFC_OPTION_FLAG,   /* 0 or 1, stored as a bool */
    BFC_OPTION_CHOICE, /* one of the words in `choices`, stored as its index */
    /* a number of bytes, with a binary suffix K, M, G or T; the word none is accepted if it is the
     * default */
    BFC_OPTION_SIZE,
    BFC_OPTION_NUMBER, /* a decimal number; the word none is accepted if it is the default */
    BFC_OPTION_WHOLE,  /* a whole number, stored like BFC_OPTION_NUMBER */
    BFC_OPTION_AMOUNT, /* a size, or a fraction between 0 and 1 of the device's memory; or none */
    BFC_OPTION_SHARE,  /* like BFC_OPTION_AMOUNT, except that 0 is accepted and none is not */
    BFC_OPTION_FILE,   /* a path, or none, or the word in `choices` */
    BFC_OPTION_WORDS, /* some of the words in `choices`, or all, or none; bit i is set for word i */
    BFC_OPTION_PATTERNS, /* patterns (* and ?) for names of executables, joined by colons */
};

enum bfc_option_mark {
    BFC_OPTION_EXPERT = 1,  /* documented for experts, not for everyday use */
    BFC_OPTION_BINDING = 2, /* if the variable's value cannot be read, nothing is pooled */
};

struct bfc_option {
    const char *name;
    const char *former; /* the variable's former name, which is still accepted; or NULL */
    enum bfc_option_kind kind;
    unsigned marks;       /* flags of enum bfc_option_mark */
    const char *standard; /* the default, as a user would write it */
    /* BFC_OPTION_CHOICE, WORDS: the words, separated by ", "; FILE: a word that is accepted in
     * place of a path, or NULL */
    const char *choices;
    uint64_t least, most; /* the range of a SIZE (in bytes), NUMBER or WHOLE */
    size_t offset;        /* offset of the value in struct bfc_options */
    const char *meaning;
};

extern const struct bfc_option bfc_option_table[];
extern const size_t bfc_option_count;

#endif
