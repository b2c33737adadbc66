#include "planner/pack/search.h"

#include <stdlib.h>
#include <string.h>

#include "base/atomic.h"
#include "base/mix.h"
#include "planner/pack/floors.h"

#define TABLE_BITS 19
/* a search reads once in this many nodes the flag by which it is told to stop */
#define NODES_PER_LOOK 256
#define NO_ENTRY UINT32_MAX
/* the largest capacity of a search, counted in units (search.unit), so that the sum of two offsets
 * fits into 31 bits */
#define MOST_UNITS ((uint64_t)1 << 29)

/* An unplaced box, given by its rank, and its floor: the lowest offset that the placed boxes leave
 * it. */
struct entry {
    uint64_t floor;
    uint32_t box;
};

/* Unplaced boxes that can be packed without regard to other unplaced boxes, as none of these is
 * alive at the same time. The entries of a group are ordered by floor, then by rank. */
struct group {
    size_t at; /* index in search.pool of the entry of the group's first box */
    uint32_t count;
    uint32_t lo, hi; /* the group's boxes are alive only from section `lo` to before section `hi` */
    /* hash of the group's boxes and floors, which shows that the same group has failed before */
    uint64_t hash;
};

/* An element of the search's stack: a group that is being packed. One of the group's boxes, the
 * candidate, is placed at its floor (its lowest possible offset), and the other boxes are packed by
 * the frames above this one on the stack. If that fails, the candidate cannot lie at its floor: the
 * floor is raised, and another candidate is tried. */
struct frame {
    struct group group;
    uint64_t entered; /* the group's hash before this frame raised floors in it */
    uint32_t placed;  /* the value of search.placed_count when the frame was entered */
    uint32_t groups;  /* the value of search.groups_count when the frame was entered */
    size_t pool_used; /* the value of search.pool_used when the frame was entered */
    /* index in search.groups of the next group to be packed after the candidate is placed */
    uint32_t child;
    /* index of the candidate's entry in the group; NO_ENTRY: no candidate was placed yet */
    uint32_t tried;
};

/* A group of boxes that is known not to fit below the capacity, identified by its hash. */
struct failure {
    uint64_t hash;
    /* number of the call of search_run that found this failure; other calls ignore it */
    uint32_t run;
};

struct search {
    struct box *boxes; /* the boxes to be packed, in the order of their ranks */
    uint32_t n;
    uint64_t unit; /* bytes in a unit: the greatest common divisor of all sizes */
    /* the highest end that a box may have; counted in `unit`, as all sizes, offsets and floors are
     */
    uint64_t capacity;
    /* by section of time: the sum of the sizes of its boxes that weigh_sections has examined */
    int32_t *stacked;
    /* by section of time: the lowest offset that some unplaced box of the section can have */
    uint64_t *floor;
    /* by section of time: the least peak that the section's unplaced boxes can have */
    int32_t *need;
    /* by section of time: how often the section's boxes did not fit below the capacity */
    uint32_t *blame;
    uint32_t blamed; /* number of elements of `blame` */
    enum search_focus focus;
    uint32_t effort; /* how many passes over the sections raise floors at each node (floors.h) */
    /* by section of time s: how many unplaced boxes are alive in both s - 1 and s */
    uint32_t *crossing;
    /* by section of time: leads to the next section whose floor paint_floors has not set yet */
    uint32_t *skip;
    /* a bit for each box: rest_of sets it when the floor of the box rises, drain_bits clears it */
    uint64_t *bits;
    /* by section of time: number of the part to which its boxes go when a group is split */
    uint32_t *part_of;
    uint64_t *offsets; /* by rank: the offset of the box, if it is placed */
    struct floors floors;
    uint32_t *placed; /* the ranks of the placed boxes, in the order of placing */
    uint32_t placed_count;
    uint32_t reached; /* the largest number of boxes that this search had placed at one time */
    struct entry *pool;
    size_t pool_used, pool_room;
    struct group *groups;
    uint32_t groups_count, groups_room;
    struct frame *frames;
    uint32_t depth;
    struct failure *table;
    uint32_t run;
    bool no_memory;
};

struct search *search_create(void) {
    struct search *s = calloc(1, sizeof *s);
    if (s)
        s->table = calloc((size_t)1 << TABLE_BITS, sizeof *s->table);
    if (s && !s->table) {
        free(s);
        return NULL;
    }
    return s;
}

static void free_part(struct search *s) {
    free(s->boxes);
    free(s->stacked);
    free(s->floor);
    free(s->need);
    free(s->crossing);
    free(s->skip);
    free(s->bits);
    free(s->part_of);
    free(s->offsets);
    free(s->placed);
    floors_free(&s->floors);
    free(s->frames);
}

void search_destroy(struct search *s) {
    if (!s)
        return;
    free_part(s);
    free(s->pool);
    free(s->groups);
    free(s->table);
    free(s->blame);
    free(s);
}

/* Keeps the counts of how often the boxes of each section did not fit, if the number of sections is
 * the same as in the earlier runs, else sets the counts to 0. False: the host has no memory. */
static bool make_blame(struct search *s, uint32_t sections) {
    if (s->blame && s->blamed == sections)
        return true;
    search_forget(s);
    s->blame = calloc(sections + (size_t)1, sizeof *s->blame);
    s->blamed = sections;
    return s->blame;
}

void search_forget(struct search *s) {
    free(s->blame);
    s->blame = NULL;
}

uint32_t search_reached(const struct search *s) {
    return s->reached;
}

const uint32_t *search_blame(const struct search *s) {
    return s->blame;
}

static bool make_room(struct search *s, const struct box *boxes, uint32_t n, uint32_t sections) {
    free_part(s);
    s->boxes = malloc((n + (size_t)1) * sizeof *s->boxes);
    s->stacked = calloc(sections + (size_t)1, sizeof *s->stacked);
    s->floor = calloc(sections + (size_t)1, sizeof *s->floor);
    s->need = calloc(sections + (size_t)1, sizeof *s->need);
    s->crossing = calloc(sections + (size_t)2, sizeof *s->crossing);
    s->skip = malloc((sections + (size_t)1) * sizeof *s->skip);
    s->bits = calloc(n / 64 + (size_t)1, sizeof *s->bits);
    s->part_of = malloc((sections + (size_t)1) * sizeof *s->part_of);
    s->offsets = malloc((n + (size_t)1) * sizeof *s->offsets);
    s->placed = malloc((n + (size_t)1) * sizeof *s->placed);
    s->frames = malloc((n + (size_t)2) * sizeof *s->frames);
    return s->boxes && s->stacked && s->floor && s->need && s->crossing && s->skip && s->bits &&
           s->part_of && s->offsets && s->placed && s->frames &&
           floors_make(&s->floors, boxes, n, sections) && make_blame(s, sections);
}

static bool reserve_pool(struct search *s, size_t more) {
    if (s->pool_used + more <= s->pool_room)
        return true;
    const size_t room = (s->pool_used + more) * 2;
    struct entry *pool = realloc(s->pool, room * sizeof *pool);
    if (!pool)
        return false;
    s->pool = pool;
    s->pool_room = room;
    return true;
}

static bool add_group(struct search *s, struct group group) {
    if (s->groups_count == s->groups_room) {
        const uint32_t room = s->groups_room == 0 ? 256 : s->groups_room * 2;
        struct group *groups = realloc(s->groups, room * sizeof *groups);
        if (!groups)
            return false;
        s->groups = groups;
        s->groups_room = room;
    }
    s->groups[s->groups_count++] = group;
    return true;
}

static uint64_t hash_entry(struct entry entry) {
    return bfc_mix_join(0, entry.floor * BFC_MIX_STEP ^ (uint64_t)entry.box << 40);
}

static bool boxes_overlap(const struct box *a, const struct box *b) {
    return a->birth < b->death && b->birth < a->death;
}

/* Marks the box as placed. Returns whether it was the last unplaced box that is alive on both sides
 * of some border between two sections, so that the group can be split there. */
static bool take_box(struct search *s, uint32_t box) {
    const struct box *b = &s->boxes[box];
    bool cut = false;
    for (uint32_t i = b->birth + 1; i < b->death; i++)
        cut = --s->crossing[i] == 0 || cut;
    s->placed[s->placed_count++] = box;
    s->floors.low[box] = FLOORS_PLACED;
    if (s->placed_count > s->reached)
        s->reached = s->placed_count;
    return cut;
}

static void put_back(struct search *s, uint32_t box) {
    const struct box *b = &s->boxes[box];
    for (uint32_t i = b->birth + 1; i < b->death; i++)
        s->crossing[i]++;
}

static void undo_places(struct search *s, uint32_t placed) {
    while (s->placed_count > placed)
        put_back(s, s->placed[--s->placed_count]);
}

/* Writes an entry with the floor `floor` to `out` for each box whose bit in s->bits is set, by
 * rising rank, and clears the bits. Returns how many entries it has written. */
static uint32_t drain_bits(struct search *s, struct entry *out, uint64_t floor) {
    uint32_t count = 0;
    for (uint32_t word = 0; word <= s->n / 64; word++) {
        for (uint64_t bits = s->bits[word]; bits != 0; bits &= bits - 1)
            out[count++] = (struct entry){floor, word * 64 + (uint32_t)__builtin_ctzll(bits)};
        s->bits[word] = 0;
    }
    return count;
}

static bool entry_precedes(struct entry a, struct entry b) {
    return a.floor != b.floor ? a.floor < b.floor : a.box < b.box;
}

/* Merges the ordered list `b` into the ordered list `a`, from the ends of both on. `out` must be
 * the same array as `a`, with room for both lists: entries of `a` that keep their places are not
 * copied. */
static void merge_entries(struct entry *out, const struct entry *a, uint32_t an,
                          const struct entry *b, uint32_t bn) {
    uint32_t i = an, j = bn;
    while (j > 0) {
        if (i > 0 && entry_precedes(b[j - 1], a[i - 1])) {
            out[i + j - 1] = a[i - 1];
            i--;
        } else {
            out[i + j - 1] = b[j - 1];
            j--;
        }
    }
}

/* Computes the group that is left when the box of entry `index` is placed at its floor, its lowest
 * possible offset. An unplaced box that is alive together with the placed box must lie above it, so
 * its floor rises to the end of the placed box if it was lower. All entries with raised floors have
 * the same floor, so merging them with the others restores the order. False: no host memory. */
static bool rest_of(struct search *s, const struct group *group, uint32_t index,
                    struct group *rest) {
    if (!reserve_pool(s, 2 * (size_t)group->count))
        return false;
    const struct entry *from = s->pool + group->at;
    struct entry *out = s->pool + s->pool_used;
    const struct entry chosen = from[index];
    const struct box *b = &s->boxes[chosen.box];
    const uint64_t top = chosen.floor + b->size;
    uint64_t hash = group->hash - hash_entry(chosen);
    uint32_t same = 0;
    floors_forget(&s->floors, group->lo, group->hi);
    for (uint32_t i = 0; i < group->count; i++) {
        const struct entry e = from[i];
        if (i == index)
            continue;
        if (e.floor >= top || !boxes_overlap(&s->boxes[e.box], b)) {
            out[same++] = e;
            continue;
        }
        floors_changed(&s->floors, e.box);
        s->bits[e.box / 64] |= (uint64_t)1 << (e.box % 64);
        hash += hash_entry((struct entry){top, e.box}) - hash_entry(e);
    }
    struct entry *lifted = out + group->count;
    const uint32_t moved = drain_bits(s, lifted, top);
    merge_entries(out, out, same, lifted, moved);
    *rest = (struct group){s->pool_used, group->count - 1, group->lo, group->hi, hash};
    s->pool_used += group->count - 1;
    return true;
}

static uint32_t find_unpainted(uint32_t *skip, uint32_t section) {
    while (skip[section] != section) {
        skip[section] = skip[skip[section]];
        section = skip[section];
    }
    return section;
}

/* Sets s->floor of each section to the lowest floor (least possible offset) of the group's boxes
 * that are alive in the section. The boxes come by rising floor, so the first one in a section
 * decides. By s->skip later boxes pass over sections that are decided already. */
static void paint_floors(struct search *s, const struct group *group) {
    const struct entry *list = s->pool + group->at;
    uint32_t left = group->hi - group->lo;
    for (uint32_t i = group->lo; i <= group->hi; i++) {
        s->skip[i] = i;
        s->floor[i] = UINT64_MAX; /* stays so if no box of the group is alive in the section */
    }
    for (uint32_t i = 0; i < group->count && left > 0; i++) {
        const struct box *box = &s->boxes[list[i].box];
        for (uint32_t at = find_unpainted(s->skip, box->birth); at < box->death;
             at = find_unpainted(s->skip, at)) {
            s->floor[at] = list[i].floor;
            s->skip[at] = at + 1;
            left--;
        }
    }
}

/* Adds the size of a box to `stacked` of each section in which the box is alive. Raises `need`, the
 * least peak of a section, to the box's floor plus that sum. Returns the highest such peak. The
 * loop has no branches, so that compilers vectorise it. */
static int32_t stack_box(int32_t *restrict stacked, int32_t *restrict need, uint32_t sections,
                         int32_t floor, int32_t size) {
    int32_t most = 0;
    for (uint32_t i = 0; i < sections; i++) {
        stacked[i] += size;
        const int32_t now = floor + stacked[i];
        need[i] = now > need[i] ? now : need[i];
        most = now > most ? now : most;
    }
    return most;
}

/* Counts a failure for each section of the box whose least peak is above the capacity. */
static void blame_sections(struct search *s, const struct box *box, int32_t floor) {
    for (uint32_t i = box->birth; i < box->death; i++)
        s->blame[i] += (uint32_t)(floor + s->stacked[i]) > s->capacity;
}

/* Computes the least peak of each section. The unplaced boxes of a section cannot overlap. So for
 * each floor f, the boxes with floor f or higher need room from f to f plus the sum of their sizes
 * (Jackson's bound for jobs on one machine). False: the least peak of a section is above the
 * capacity. */
static bool weigh_sections(struct search *s, const struct group *group) {
    const struct entry *list = s->pool + group->at;
    memset(s->stacked + group->lo, 0, (group->hi - group->lo) * sizeof *s->stacked);
    memset(s->need + group->lo, 0, (group->hi - group->lo) * sizeof *s->need);
    for (uint32_t i = group->count; i-- > 0;) {
        const struct box *box = &s->boxes[list[i].box];
        const int32_t most =
            stack_box(s->stacked + box->birth, s->need + box->birth, box->death - box->birth,
                      (int32_t)list[i].floor, (int32_t)box->size);
        if ((uint32_t)most > s->capacity) {
            blame_sections(s, box, (int32_t)list[i].floor);
            return false;
        }
    }
    return true;
}

/* Copies the floors that floors_raise has raised into the group's entries, and sorts these.
 * Insertion sort suits, because most entries keep their places. */
static void sort_entries(struct search *s, struct group *group) {
    struct entry *list = s->pool + group->at;
    for (uint32_t i = 0; i < group->count; i++) {
        struct entry entry = list[i];
        group->hash -= hash_entry(entry);
        entry.floor = (uint64_t)s->floors.low[entry.box];
        group->hash += hash_entry(entry);
        uint32_t at = i;
        for (; at > 0 && entry_precedes(entry, list[at - 1]); at--)
            list[at] = list[at - 1];
        list[at] = entry;
    }
}

/* Raises the floors (least possible offsets) of the group's boxes as often as s->effort says.
 * False: the group does not fit below the capacity. */
static bool tighten_group(struct search *s, struct group *group) {
    const struct entry *list = s->pool + group->at;
    if (s->effort == 0)
        return true;
    for (uint32_t i = 0; i < group->count; i++)
        s->floors.low[list[i].box] = (int32_t)list[i].floor;
    bool rose = false;
    for (uint32_t pass = 0; pass < s->effort; pass++)
        if (!floors_raise(&s->floors, group->lo, group->hi, &rose))
            return false;
    if (!rose)
        return true;
    sort_entries(s, group);
    return weigh_sections(s, group);
}

static bool known_failure(const struct search *s, uint64_t hash) {
    const struct failure *f = &s->table[hash >> (64 - TABLE_BITS)];
    return f->run == s->run && f->hash == hash;
}

static void note_failure(struct search *s, uint64_t hash) {
    s->table[hash >> (64 - TABLE_BITS)] = (struct failure){hash, s->run};
}

/* Cuts the sections from `lo` to before `hi` at each border where no unplaced box is alive on both
 * sides, and writes the number of each section's part to s->part_of. Returns how many parts there
 * are. */
static uint32_t number_parts(struct search *s, uint32_t lo, uint32_t hi) {
    uint32_t part = 0;
    for (uint32_t i = lo; i < hi; i++) {
        part += i > lo && s->crossing[i] == 0;
        s->part_of[i] = part;
    }
    return part + 1;
}

static int fewer_first(const void *a, const void *b) {
    const struct group *x = a;
    const struct group *y = b;
    return (x->count > y->count) - (x->count < y->count);
}

/* Splits a group at the borders between sections where no unplaced box is alive on both sides. Adds
 * the parts as groups, the one with the fewest boxes first. False: the host has no memory. */
static bool split_group(struct search *s, const struct group *group) {
    const uint32_t parts = number_parts(s, group->lo, group->hi);
    const uint32_t first = s->groups_count;
    if (!reserve_pool(s, group->count))
        return false;
    for (uint32_t p = 0; p < parts; p++)
        if (!add_group(s, (struct group){0, 0, UINT32_MAX, 0, 0}))
            return false;
    struct group *list = s->groups + first;
    const struct entry *from = s->pool + group->at;
    for (uint32_t i = 0; i < group->count; i++)
        list[s->part_of[s->boxes[from[i].box].birth]].count++;
    for (uint32_t p = 0; p < parts; p++) {
        list[p].at = s->pool_used;
        s->pool_used += list[p].count;
        list[p].count = 0;
    }
    for (uint32_t i = 0; i < group->count; i++) {
        const struct box *box = &s->boxes[from[i].box];
        struct group *g = &list[s->part_of[box->birth]];
        s->pool[g->at + g->count++] = from[i];
        g->hash += hash_entry(from[i]);
        g->lo = box->birth < g->lo ? box->birth : g->lo;
        g->hi = box->death > g->hi ? box->death : g->hi;
    }
    qsort(list, parts, sizeof *list, fewer_first);
    while (s->groups_count > first && parts > 1 && s->groups[first].count == 0) {
        memmove(list, list + 1, (s->groups_count - first - 1) * sizeof *list);
        s->groups_count--;
    }
    return true;
}

/* Chooses the section in which a box is placed next: the lowest or the tightest one, as s->focus
 * says. s->floor and s->need must have been computed for the group. */
static uint32_t choose_section(const struct search *s, const struct group *group) {
    const bool last = s->focus == SEARCH_LOWEST_LAST || s->focus == SEARCH_TIGHTEST_LAST;
    const bool tightest = s->focus == SEARCH_TIGHTEST || s->focus == SEARCH_TIGHTEST_LAST;
    uint32_t chosen = group->lo;
    for (uint32_t at = group->lo + 1; at < group->hi; at++) {
        const bool lower = s->floor[at] < s->floor[chosen];
        const bool same = s->floor[at] == s->floor[chosen];
        const bool tighter = s->need[at] > s->need[chosen];
        const bool level = s->need[at] == s->need[chosen];
        const bool better = tightest ? tighter || (level && lower) : lower || (same && tighter);
        if (better || (last && same && level))
            chosen = at;
    }
    return chosen;
}

/* Chooses the box to be placed next: in the chosen section, a box with the lowest floor (least
 * possible offset), and of several the one of the lowest rank. If this box is also alive in a
 * section where some box has a lower floor, the choice is made anew in that section, until there is
 * no such section. Then no unplaced box can be put below the chosen box any more. */
static uint32_t choose_entry(const struct search *s, const struct group *group) {
    const struct entry *list = s->pool + group->at;
    uint32_t section = choose_section(s, group);
    for (;;) {
        uint32_t i = 0;
        while (list[i].floor != s->floor[section] || s->boxes[list[i].box].birth > section ||
               s->boxes[list[i].box].death <= section)
            i++;
        const struct box *box = &s->boxes[list[i].box];
        uint32_t lowest = section;
        for (uint32_t at = box->birth; at < box->death; at++)
            lowest = s->floor[at] < s->floor[lowest] ? at : lowest;
        if (lowest == section)
            return i;
        section = lowest;
    }
}

/* Rules out that the box of entry `index` lies at its floor, its lowest possible offset. The box
 * must then lie on top of another unplaced box, so its floor rises to the lowest end that such a
 * box can have. False: this end is above the capacity. */
static bool bar_entry(struct search *s, struct group *group, uint32_t index) {
    struct entry *list = s->pool + group->at;
    struct entry entry = list[index];
    const struct box *box = &s->boxes[entry.box];
    uint64_t lowest = UINT64_MAX;
    for (uint32_t i = 0; i < group->count && list[i].floor < lowest; i++) {
        const struct box *other = &s->boxes[list[i].box];
        if (i != index && other->size > 0 && boxes_overlap(box, other) &&
            list[i].floor + other->size < lowest)
            lowest = list[i].floor + other->size;
    }
    if (lowest > s->capacity)
        return false;
    floors_forget(&s->floors, group->lo, group->hi);
    floors_changed(&s->floors, entry.box);
    group->hash -= hash_entry(entry);
    entry.floor = lowest;
    group->hash += hash_entry(entry);
    for (; index + 1 < group->count && entry_precedes(list[index + 1], entry); index++)
        list[index] = list[index + 1];
    list[index] = entry;
    return true;
}

static void enter_group(struct search *s, struct group group) {
    s->frames[s->depth++] = (struct frame){.group = group,
                                           .entered = group.hash,
                                           .placed = s->placed_count,
                                           .groups = s->groups_count,
                                           .pool_used = s->pool_used,
                                           .tried = NO_ENTRY};
}

/* Removes the groups and entries that were added when the candidate of the frame (the box that it
 * tries at its floor) was placed. */
static void drop_lists(struct search *s, const struct frame *f) {
    s->groups_count = f->groups;
    s->pool_used = f->pool_used;
}

/* Begins to pack the next of the groups that are left after the frame's candidate was placed.
 * False: all of them are packed. */
static bool next_child(struct search *s, struct frame *f) {
    if (f->child == s->groups_count)
        return false;
    enter_group(s, s->groups[f->child++]);
    return true;
}

/* Places the box of the frame's entry `index`. False: it is known that the other boxes of the group
 * do not fit then, or the host has no memory. */
static bool try_entry(struct search *s, struct frame *f, uint32_t index) {
    const struct entry chosen = s->pool[f->group.at + index];
    struct group rest;
    f->tried = index;
    if (!rest_of(s, &f->group, index, &rest)) {
        s->no_memory = true;
        return false;
    }
    const bool cut = take_box(s, chosen.box);
    s->offsets[chosen.box] = chosen.floor;
    f->child = s->groups_count;
    if (rest.count == 0)
        return true;
    if (known_failure(s, rest.hash) || !weigh_sections(s, &rest) || !tighten_group(s, &rest))
        return false;
    const bool added = cut ? split_group(s, &rest) : add_group(s, rest);
    s->no_memory = s->no_memory || !added;
    for (uint32_t g = f->child; cut && added && g < s->groups_count; g++)
        if (known_failure(s, s->groups[g].hash))
            return false;
    return added;
}

/* Places a box of the frame's group, the candidate, at its floor (its lowest possible offset). If
 * it cannot lie there, its floor is raised, and another candidate is tried. False: no candidate is
 * left, the node limit is reached, or the host has no memory. */
static bool next_candidate(struct search *s, struct frame *f, uint64_t *nodes) {
    while (!s->no_memory && *nodes > 0) {
        undo_places(s, f->placed);
        drop_lists(s, f);
        if (f->tried != NO_ENTRY && !bar_entry(s, &f->group, f->tried))
            return false;
        --*nodes;
        if ((f->tried != NO_ENTRY && known_failure(s, f->group.hash)) ||
            !weigh_sections(s, &f->group) || (f->tried != NO_ENTRY && !tighten_group(s, &f->group)))
            return false;
        paint_floors(s, &f->group);
        if (try_entry(s, f, choose_entry(s, &f->group)))
            return true;
    }
    return false;
}

static enum search_result walk_tree(struct search *s, uint64_t nodes, const bool *stop) {
    /* whether all boxes of the group of the frame that was just left are packed */
    bool solved = false;
    for (uint64_t looks = 1; s->depth > 0; looks++) {
        struct frame *f = &s->frames[s->depth - 1];
        /* A relaxed load may return an old value, which only makes the search stop a little
         * later. */
        if (nodes == 0 || (looks % NODES_PER_LOOK == 0 && bfc_load_relaxed(stop)))
            return SEARCH_STOPPED;
        if (!solved && !next_candidate(s, f, &nodes)) {
            if (s->no_memory)
                return SEARCH_NO_MEMORY;
            if (nodes == 0)
                return SEARCH_STOPPED;
            note_failure(s, f->entered);
            s->depth--;
            continue;
        }
        solved = !next_child(s, f);
        if (solved) {
            drop_lists(s, f);
            s->depth--;
        }
    }
    return solved ? SEARCH_FOUND : SEARCH_EXHAUSTED;
}

static uint64_t common_divisor(uint64_t a, uint64_t b) {
    while (b != 0) {
        const uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Sets s->unit to the greatest common divisor of all sizes, and s->capacity to the capacity in such
 * units. False: the capacity is more than MOST_UNITS units. */
static bool find_unit(struct search *s, const struct box *boxes, uint32_t n, uint64_t capacity) {
    s->unit = 0;
    for (uint32_t i = 0; i < n; i++)
        s->unit = common_divisor(s->unit, boxes[i].size);
    s->unit = s->unit == 0 ? 1 : s->unit;
    s->capacity = capacity / s->unit;
    return s->capacity <= MOST_UNITS;
}

static bool load_boxes(struct search *s, const struct box *boxes, uint32_t n, uint32_t sections,
                       const uint32_t *rank, struct group *root) {
    s->n = n;
    s->pool_used = s->groups_count = s->placed_count = s->reached = s->depth = 0;
    s->no_memory = false;
    s->run++;
    if (!make_room(s, boxes, n, sections) || !reserve_pool(s, n))
        return false;
    for (uint32_t i = 0; i < n; i++)
        s->boxes[rank[i]] = (struct box){boxes[i].birth, boxes[i].death, boxes[i].size / s->unit};
    *root = (struct group){0, n, 0, sections, 0};
    for (uint32_t i = 0; i < n; i++) {
        const struct entry e = {0, i};
        s->pool[i] = e;
        root->hash += hash_entry(e);
        put_back(s, i);
    }
    floors_begin(&s->floors, s->boxes, n, (int32_t)s->capacity, s->blame);
    s->pool_used = n;
    return true;
}

enum search_result search_run(struct search *s, const struct box *boxes, uint32_t n,
                              uint32_t sections, const uint32_t *rank, enum search_focus focus,
                              uint32_t effort, uint64_t capacity, uint64_t nodes, const bool *stop,
                              uint64_t *offsets) {
    struct group root;
    for (uint32_t i = 0; i < n; i++)
        if (boxes[i].size > capacity)
            return SEARCH_EXHAUSTED;
    if (!find_unit(s, boxes, n, capacity))
        return SEARCH_STOPPED;
    if (!load_boxes(s, boxes, n, sections, rank, &root))
        return SEARCH_NO_MEMORY;
    s->focus = focus;
    s->effort = effort;
    if (n == 0)
        return SEARCH_FOUND;
    enter_group(s, root);
    const enum search_result result = walk_tree(s, nodes, stop);
    for (uint32_t i = 0; result == SEARCH_FOUND && i < n; i++)
        offsets[i] = s->offsets[rank[i]] * s->unit;
    return result;
}
