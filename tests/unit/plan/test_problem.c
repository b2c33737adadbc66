/* From rows to arenas and parts: sections, bounds, aliases, groups, cutting and laying down. */
#include <criterion/criterion.h>

#include "planner/problem/packing_arena.h"
#include "planner/problem/parts.h"
#include "planner/problem/staircase.h"
#include "tests/unit/plan/helpers.h"

static struct problem problem_of(struct lifetimes *l, const char *text, uint64_t align) {
    struct problem problem;
    struct plan_error error;
    cr_assert(parse_text(l, text, &error), "%s", error.text);
    cr_assert(problem_build(&problem, l, align, 0, &error), "%s", error.text);
    return problem;
}

Test(arena, sections_tell_who_lives_together) {
    uint64_t random = 3;
    struct lifetimes l = random_lifetimes(300, 200, 1000, 1, false, &random);
    struct problem problem;
    struct plan_error error;
    cr_assert(problem_build(&problem, &l, 1, 0, &error));
    const struct arena *arena = &problem.arenas[0];
    cr_assert(arena->exact);
    uint64_t most = 0;
    for (uint32_t a = 0; a < 300; a++) {
        uint64_t live = 0;
        for (uint32_t b = 0; b < 300; b++) {
            const struct box *x = &arena->boxes[a], *y = &arena->boxes[b];
            cr_assert_eq(x->birth < y->death && y->birth < x->death, together(&l, a, b, 0));
            if (l.rows[b].birth <= l.rows[a].birth && l.rows[b].death > l.rows[a].birth)
                live += l.rows[b].size;
        }
        most = live > most ? live : most;
    }
    cr_assert_eq(arena->bound, most);
    problem_free(&problem);
    lifetimes_free(&l);
}

Test(arena, groups_and_aliases_move_as_one) {
    struct lifetimes l;
    struct problem p = problem_of(&l,
                                  "id,lower,upper,size,alias,group\na,0,5,100,,g\nb,0,5,700,,\n"
                                  "c,1,6,512,,g\nd,5,9,600,a,\n",
                                  512);
    cr_assert_eq(p.arenas[0].count, 2);
    cr_assert_eq(p.item[0], p.item[2]);
    cr_assert_eq(p.item[0], p.item[3]);
    cr_assert_eq(p.place[0], 0);
    cr_assert_eq(p.place[2], 1024); /* behind the larger of a and d */
    cr_assert_not(p.arenas[0].exact);
    cr_assert_eq(p.arenas[0].bound, 512 + 1024 + 512);
    problem_free(&p);
    lifetimes_free(&l);
}

Test(staircase, is_the_outline) {
    struct staircase s = {0};
    struct piece out[9];
    cr_assert(staircase_reserve(&s, 5));
    const struct piece rows[5] = {{.birth = 4, .death = 6, .size = 9},
                                  {.birth = 0, .death = 10, .size = 2},
                                  {.birth = 10, .death = 12, .size = 2},
                                  {.birth = 5, .death = 8, .size = 3},
                                  {.birth = 20, .death = 21, .size = 1}};
    memcpy(s.rows, rows, sizeof rows);
    s.count = 5;
    cr_assert_eq(staircase_outline(&s, out), 5);
    const uint64_t births[] = {0, 4, 6, 8, 20}, sizes[] = {2, 9, 3, 2, 1};
    for (int i = 0; i < 5; i++) {
        cr_assert_eq(out[i].birth, births[i]);
        cr_assert_eq(out[i].size, sizes[i]);
    }
    cr_assert_eq(out[3].death, 12);
    staircase_free(&s);
}

Test(parts, cuts_and_lays_down) {
    struct lifetimes l;
    struct problem p = problem_of(&l,
                                  "id,lower,upper,size\nlong,0,200,8\na,0,20,1\nb,10,40,2\n"
                                  "c,30,60,2\nd,50,80,1\ne,100,120,3\nf,100,120,4\n",
                                  1);
    uint64_t offsets[7];
    struct parts parts;
    memset(offsets, 0xff, sizeof offsets);
    cr_assert(parts_build(&parts, &p.arenas[0], offsets));
    cr_assert_eq(offsets[0], 0); /* it lives longest */
    cr_assert((offsets[5] == 8 && offsets[6] == 11) || (offsets[6] == 8 && offsets[5] == 12));
    cr_assert_eq(offsets[2], UINT64_MAX);
    cr_assert_eq(parts.count, 1); /* a, b, c, d: a chain that nothing spans */
    cr_assert_eq(parts.list[0].base, 8);
    cr_assert_eq(parts.list[0].count, 4);
    cr_assert_eq(parts.list[0].bound, 4);
    parts_free(&parts);
    problem_free(&p);
    lifetimes_free(&l);
}
