#include "planner/pack/solve.h"

#include <stdlib.h>
#include <time.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "planner/common/watch.h"
#include "planner/pack/portfolio.h"

#define LOOK_NANOSECONDS 20000000
/* The number of threads times the number of rows is at most about this, because the working memory
 * of each thread grows with the number of rows. */
#define MOST_BOXES_AT_ONCE 16000000

struct team {
    struct portfolio portfolio;
    pthread_cond_t idle; /* signalled when the last thread of the team has ended */
    unsigned working; /* number of threads that have not ended; guarded by the portfolio's lock */
};

struct member {
    struct team *team;
    struct worker worker;
    pthread_t thread;
};

static void *run_member(void *argument) {
    struct member *member = argument;
    struct portfolio *portfolio = &member->team->portfolio;
    while (portfolio_work(portfolio, &member->worker))
        ;
    pthread_mutex_lock(&portfolio->lock);
    portfolio->no_memory = portfolio->no_memory || member->worker.no_memory;
    if (--member->team->working == 0)
        pthread_cond_signal(&member->team->idle);
    pthread_mutex_unlock(&portfolio->lock);
    return NULL;
}

static void wait_a_little(struct team *team) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += LOOK_NANOSECONDS;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_cond_timedwait(&team->idle, &team->portfolio.lock, &until);
}

static void watch_team(struct team *team) {
    struct portfolio *portfolio = &team->portfolio;
    pthread_mutex_lock(&portfolio->lock);
    while (team->working > 0) {
        wait_a_little(team);
        const double seconds = bfc_now_seconds() - portfolio->started;
        if (portfolio_is_enough(portfolio, seconds))
            bfc_store_seq_cst(&portfolio->stop, true);
        const struct solve_progress progress = {problem_bound(portfolio->problem),
                                                portfolio_peak(portfolio), seconds,
                                                portfolio_share(portfolio, seconds)};
        if (portfolio->options->progress)
            portfolio->options->progress(&progress);
    }
    pthread_mutex_unlock(&portfolio->lock);
}

static unsigned count_members(const struct portfolio *portfolio) {
    uint32_t rows = portfolio->problem->lifetimes->count;
    const unsigned most = (unsigned)(MOST_BOXES_AT_ONCE / (rows + (uint64_t)1)) + 1;
    return portfolio->options->threads < most ? portfolio->options->threads : most;
}

/* Runs the threads of the team, or as many of them as can be started, and waits until they end.
 * False: no thread could be started, or the host has no memory. */
static bool run_team(struct team *team) {
    struct portfolio *portfolio = &team->portfolio;
    const unsigned wanted = count_members(portfolio);
    struct member *members = calloc(wanted, sizeof *members);
    unsigned made = 0, started = 0;
    if (!members)
        return false;
    while (made < wanted && portfolio_create_worker(portfolio, &members[made].worker))
        members[made++].team = team;
    if (made < wanted)
        worker_free(&members[made].worker);
    for (unsigned i = 0; i < made && made > 1; i++)
        members[i].worker.strategy = i % 2 == 0 ? STRATEGY_WIDE : STRATEGY_DEEP;
    team->working = made;
    watch_begin(FIXED_ORDERS * (uint64_t)portfolio->problem->lifetimes->count);
    while (started < made &&
           pthread_create(&members[started].thread, NULL, run_member, &members[started]) == 0)
        started++;
    pthread_mutex_lock(&portfolio->lock);
    team->working -= made - started;
    pthread_mutex_unlock(&portfolio->lock);
    if (started > 0)
        watch_team(team);
    for (unsigned i = 0; i < started; i++)
        pthread_join(members[i].thread, NULL);
    for (unsigned i = 0; i < made; i++)
        worker_free(&members[i].worker);
    free(members);
    return started > 0;
}

bool solve(const struct problem *problem, const struct solve_options *options, uint64_t *offsets,
           struct solve_result *result, struct plan_error *error) {
    struct team team = {.idle = PTHREAD_COND_INITIALIZER};
    const bool ran = portfolio_create(&team.portfolio, problem, options) && run_team(&team);
    return portfolio_conclude(&team.portfolio, ran, offsets, result, error);
}
