/* Ranks of a job as threads of the test, without sockets (GRADWIRE_DATAPATH). */
#ifndef GW_TESTS_THREAD_RANKS_H
#define GW_TESTS_THREAD_RANKS_H

#include "support.h"

#include <pthread.h>

#include "rank_check.h"

enum { DEADLINE_MS = 20000 };

struct thread_rank {
    struct gradwire_options options;
    rank_fn *fn;
    pthread_t thread;
    int failed;
};

/* Options of a rank in memory, from which tests depart. */
static inline void prepare(struct gradwire_options *options, int rank, int world)
{
    assert_int_equal(setenv("GRADWIRE_DATAPATH", "memory", 1), 0);
    gradwire_options_init(options, sizeof(*options));
    options->rank = rank;
    options->world = world;
    options->join = "127.0.0.1:7";
    options->deadline_ms = DEADLINE_MS;
}

static inline int open_and_run(const struct thread_rank *own)
{
    int rank = own->options.rank;
    gradwire *job = NULL;
    CHECK(gradwire_open(&own->options, &job) == 0);
    int failed = own->fn(job, rank);
    gradwire_close(job);
    return failed;
}

static inline void *run_rank(void *argument)
{
    struct thread_rank *own = argument;
    own->failed = open_and_run(own);
    return NULL;
}

/* Runs all at the same time, over packets with these faults; every one must succeed. */
static inline void run_threads(struct thread_rank *ranks, int count, const char *faults,
                               void *run(void *))
{
    int failed = 0;
    assert_int_equal(setenv("GRADWIRE_FAULTS", faults, 1), 0);
    for (int i = 0; i < count; i++)
        assert_int_equal(pthread_create(&ranks[i].thread, NULL, run, &ranks[i]), 0);
    for (int i = 0; i < count; i++) {
        assert_int_equal(pthread_join(ranks[i].thread, NULL), 0);
        failed += ranks[i].failed;
    }
    assert_int_equal(failed, 0);
}

static inline void run_ranks(struct thread_rank *ranks, int count, const char *faults)
{
    run_threads(ranks, count, faults, run_rank);
}

#endif
