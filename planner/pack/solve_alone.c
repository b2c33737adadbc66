#include "planner/pack/solve_alone.h"

#include "base/atomic.h"
#include "base/clock.h"
#include "planner/pack/portfolio.h"

static bool is_over(struct portfolio *portfolio) {
    if (!bfc_load_relaxed(&portfolio->stop) &&
        portfolio_is_enough(portfolio, bfc_now_seconds() - portfolio->started))
        bfc_store_seq_cst(&portfolio->stop, true);
    return bfc_load_seq_cst(portfolio->options->interrupted);
}

static bool run_alone(struct portfolio *portfolio) {
    struct worker worker;
    const bool good = portfolio_create_worker(portfolio, &worker);
    while (good && !is_over(portfolio) && portfolio_work(portfolio, &worker))
        ;
    portfolio->no_memory = worker.no_memory;
    worker_free(&worker);
    return good;
}

bool solve_alone(const struct problem *problem, const struct solve_options *options,
                 uint64_t *offsets, struct solve_result *result, struct plan_error *error) {
    struct portfolio portfolio;
    const bool ran = portfolio_create(&portfolio, problem, options) && run_alone(&portfolio);
    return portfolio_conclude(&portfolio, ran, offsets, result, error);
}
