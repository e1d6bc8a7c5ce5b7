/*
 * Jobs whose ranks have several I/O threads each (`threads`): large calls are cut among them. The
 * ranks are threads of this process (GRADWIRE_DATAPATH), so theirs are here, too.
 */
#include "lib/thread_ranks.h"

#include <dirent.h>
#include <poll.h>
#include <stdlib.h>
#include <time.h>

#include "lib/io.h"

enum {
    WORLD = 3,
    THREADS = 3,
    MIB = 1 << 18,               /* elements of 4 bytes: from so many on calls are cut */
    LARGE = 3 * MIB / 2 + 12345, /* into as many slices as there are threads, no two alike */
    STARTED = 6,
};

static int tasks(void)
{
    DIR *directory = opendir("/proc/self/task");
    int count = 0;
    while (directory && readdir(directory))
        count++;
    if (directory)
        closedir(directory);
    return count - 2;
}

static int tasks_seen;

/* While all are there. */
static int count_tasks(gradwire *job, int rank)
{
    CHECK(gradwire_barrier(job) == 0);
    if (rank == 0)
        tasks_seen = tasks();
    CHECK(gradwire_barrier(job) == 0);
    return 0;
}

/* What rank `rank` has at a place in call number `call`. */
static int32_t value(int rank, size_t i, int call)
{
    return (int32_t)((i * 2654435761u + (unsigned)call) % 100003) * (rank + 1);
}

static int32_t *values(int rank, size_t count, int call)
{
    int32_t *x = malloc(count * sizeof(*x));
    for (size_t i = 0; x && i < count; i++)
        x[i] = value(rank, i, call);
    return x;
}

/* The first place that has another sum than that of all ranks, or -1. */
static int64_t find_wrong(const int32_t *x, size_t count, int call)
{
    for (size_t i = 0; i < count; i++)
        if (x[i] != value(0, i, call) + value(1, i, call) + value(2, i, call))
            return (int64_t)i;
    return -1;
}

static int sum(gradwire *job, int rank, size_t count, enum gradwire_via via)
{
    struct gradwire_call_options options;
    int32_t *x = values(rank, count, 0), *y = calloc(count, sizeof(*y));
    CHECK(x && y);
    gradwire_call_options_init(&options, sizeof(options));
    options.via = via;
    CHECK(gradwire_allreduce_with(job, x, y, count, GRADWIRE_INT32, GRADWIRE_SUM, &options, NULL) ==
          0);
    CHECK(find_wrong(y, count, 0) == -1);
    CHECK(x[count - 1] == value(rank, count - 1, 0));
    free(x);
    free(y);
    return 0;
}

static int sums(gradwire *job, int rank)
{
    static const size_t counts[] = {1, MIB - 1, MIB, MIB + 1, 2 * MIB - 1, LARGE};
    for (enum gradwire_via via = GRADWIRE_VIA_INA; via <= GRADWIRE_VIA_RING; via++)
        for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
            CHECK(sum(job, rank, counts[i], via) == 0);
    return 0;
}

/* A double has all of an int64's bits that are used here; what switches cannot add goes round. */
static int other_types(gradwire *job, int rank)
{
    double *x = malloc(LARGE * sizeof(*x));
    CHECK(x);
    for (size_t i = 0; i < LARGE; i++)
        x[i] = value((rank + (int)i) % WORLD, i, 0);
    CHECK(gradwire_allreduce(job, x, x, LARGE, GRADWIRE_FLOAT64, GRADWIRE_MAX) == 0);
    for (size_t i = 0; i < LARGE; i++)
        CHECK(x[i] == value(WORLD - 1, i, 0));
    free(x);
    return 0;
}

static int reduce_and_broadcast(gradwire *job, int rank)
{
    int32_t *x = values(rank, LARGE, 0), *y = rank == 1 ? calloc(LARGE, sizeof(*y)) : NULL;
    CHECK(x && (y || rank != 1));
    CHECK(gradwire_reduce(job, x, y, LARGE, GRADWIRE_INT32, GRADWIRE_SUM, 1) == 0);
    CHECK(rank != 1 || find_wrong(y, LARGE, 0) == -1);
    CHECK(gradwire_broadcast(job, rank == 1 ? y : x, LARGE, GRADWIRE_INT32, 1) == 0);
    CHECK(rank == 1 || find_wrong(x, LARGE, 0) == -1);
    free(x);
    free(y);
    return 0;
}

/* In place and apart: everybody's own in the place of its rank, then back. */
static int gather_and_scatter(gradwire *job, int rank)
{
    int32_t *all = calloc((size_t)WORLD * LARGE, sizeof(*all)), *own = values(rank, LARGE, 0);
    CHECK(all && own);
    for (int apart = 0; apart < 2; apart++) {
        int32_t *mine = all + (size_t)rank * LARGE;
        memset(all, 0, (size_t)WORLD * LARGE * sizeof(*all));
        memcpy(mine, own, LARGE * sizeof(*own));
        CHECK(gradwire_allgather(job, apart ? own : mine, all, LARGE, GRADWIRE_INT32) == 0);
        for (int r = 0; r < WORLD; r++)
            for (size_t i = 0; i < LARGE; i++)
                CHECK(all[(size_t)r * LARGE + i] == value(r, i, 0));
        int32_t *sums = apart ? own : mine;
        CHECK(gradwire_reduce_scatter(job, all, sums, LARGE, GRADWIRE_INT32, GRADWIRE_SUM) == 0);
        for (size_t i = 0; i < LARGE; i++)
            CHECK(sums[i] == WORLD * value(rank, i, 0));
    }
    free(all);
    free(own);
    return 0;
}

/* Large and small ones and messages at the same time, which end in any order. */
static int started(gradwire *job, int rank)
{
    int32_t *x[STARTED];
    gradwire_call calls[STARTED], message[2];
    char sent = (char)rank, got = -1;
    int left = STARTED, next = (rank + 1) % WORLD, last = (rank + WORLD - 1) % WORLD;
    struct pollfd fd = {.fd = gradwire_fd(job), .events = POLLIN};
    CHECK(gradwire_receive_start(job, &got, 1, last, 9, &message[0]) == 0);
    for (int call = 0; call < STARTED; call++) {
        size_t count = call % 3 == 2 ? 1000 : LARGE;
        x[call] = values(rank, count, call);
        CHECK(x[call] && gradwire_allreduce_start(job, x[call], x[call], count, GRADWIRE_INT32,
                                                  GRADWIRE_SUM, &calls[call]) == 0);
    }
    CHECK(gradwire_send_start(job, &sent, 1, next, 9, &message[1]) == 0);
    while (left) {
        CHECK(poll(&fd, 1, DEADLINE_MS) == 1);
        for (int call = 0; call < STARTED; call++) {
            int done = 0;
            if (x[call])
                CHECK(gradwire_test(job, calls[call], &done) == 0);
            if (!done)
                continue;
            CHECK(find_wrong(x[call], call % 3 == 2 ? 1000 : LARGE, call) == -1);
            free(x[call]);
            x[call] = NULL;
            left--;
        }
    }
    CHECK(gradwire_wait(job, message[0]) == 0 && gradwire_wait(job, message[1]) == 0);
    CHECK(got == last);
    return 0;
}

/* Counters are those of all channels. */
static int counts(gradwire *job, int rank)
{
    struct gradwire_stats before = {.size = sizeof(before)}, after = {.size = sizeof(after)};
    CHECK(gradwire_get_stats(job, &before) == 0);
    CHECK(sum(job, rank, LARGE, GRADWIRE_VIA_INA) == 0);
    CHECK(gradwire_get_stats(job, &after) == 0);
    CHECK(after.size == sizeof(after));
    CHECK(after.fragments - before.fragments == (LARGE + 351) / 352);
    CHECK(after.server_results == (rank ? 0 : (LARGE + 351) / 352));
    return 0;
}

/* Rank 1's tensor is longer by what the last slice has, so the last channel alone fails; another
 * call is the first's, and nobody answers it. */
static int one_differs(gradwire *job, int rank)
{
    struct gradwire_call_options options;
    const size_t count = rank == 1 ? LARGE + 1 : LARGE;
    int32_t *x = values(rank, count, 0), y = 1;
    gradwire_call call, message;
    CHECK(x);
    gradwire_call_options_init(&options, sizeof(options));
    options.via = GRADWIRE_VIA_RING;
    CHECK(gradwire_receive_start(job, &y, sizeof(y), (rank + 1) % WORLD, 9, &message) == 0);
    CHECK(gradwire_allreduce_with(job, x, x, count, GRADWIRE_INT32, GRADWIRE_SUM, &options,
                                  &call) == 0);
    CHECK(gradwire_wait(job, call) == GRADWIRE_ERR_PEER);
    CHECK(gradwire_wait(job, message) == GRADWIRE_ERR_PEER);
    CHECK(strstr(gradwire_last_error(), "rank "));
    CHECK(gradwire_allreduce(job, &y, &y, 1, GRADWIRE_INT32, GRADWIRE_SUM) == GRADWIRE_ERR_CLOSED);
    free(x);
    return 0;
}

/* A sum that does not fit, in the last slice: no rank hears that another is to blame. */
static int last_overflows(gradwire *job, int rank, enum gradwire_via via)
{
    struct gradwire_call_options options;
    int32_t *x = values(rank, LARGE, 0);
    CHECK(x);
    x[LARGE - 1] = INT32_MAX;
    gradwire_call_options_init(&options, sizeof(options));
    options.via = via;
    CHECK(gradwire_allreduce_with(job, x, x, LARGE, GRADWIRE_INT32, GRADWIRE_SUM, &options, NULL) ==
          GRADWIRE_ERR_OVERFLOW);
    CHECK(strstr(gradwire_last_error(), "does not fit"));
    CHECK(gradwire_allreduce(job, x, x, LARGE, GRADWIRE_INT32, GRADWIRE_SUM) ==
          GRADWIRE_ERR_CLOSED);
    free(x);
    return 0;
}

static int last_overflows_by_ring(gradwire *job, int rank)
{
    return last_overflows(job, rank, GRADWIRE_VIA_RING);
}

static int last_overflows_at_the_server(gradwire *job, int rank)
{
    return last_overflows(job, rank, GRADWIRE_VIA_PS);
}

/* An exact sum of a layer is cut like any other, and who asks hears that all is there. */
static int layers(gradwire *job, int rank)
{
    enum { FRAGMENTS = (LARGE + 351) / 352, WORDS = FRAGMENTS / 64 + 1 };
    for (enum gradwire_via via = GRADWIRE_VIA_INA; via <= GRADWIRE_VIA_RING; via++) {
        struct gradwire_call_options options;
        uint64_t arrived[WORDS] = {0};
        uint16_t contributors[FRAGMENTS] = {0};
        struct gradwire_parts parts = {
            .room = FRAGMENTS, .arrived = arrived, .contributors = contributors, .missing = 7};
        int32_t *x = values(rank, LARGE, 0);
        CHECK(x);
        gradwire_call_options_init(&options, sizeof(options));
        options.via = via;
        options.layer = 3;
        options.layers = 10;
        options.parts = rank == 1 ? &parts : NULL;
        CHECK(gradwire_allreduce_with(job, x, x, LARGE, GRADWIRE_INT32, GRADWIRE_SUM, &options,
                                      NULL) == 0);
        CHECK(find_wrong(x, LARGE, 0) == -1);
        CHECK(rank != 1 || (parts.missing == 0 && parts.count == FRAGMENTS));
        for (size_t i = 0; i < FRAGMENTS && rank == 1; i++)
            CHECK(arrived[i / 64] >> i % 64 & 1 && contributors[i] == WORLD);
        CHECK(rank != 1 || arrived[WORDS - 1] == (UINT64_C(1) << FRAGMENTS % 64) - 1);
        free(x);
    }
    return 0;
}

static void run_threads_of(rank_fn *fn, uint32_t threads, const char *faults)
{
    struct thread_rank ranks[WORLD];
    for (int i = 0; i < WORLD; i++) {
        ranks[i].fn = fn;
        prepare(&ranks[i].options, i, WORLD);
        ranks[i].options.threads = threads;
    }
    run_ranks(ranks, WORLD, faults);
}

static void run_with(rank_fn *fn, const char *faults)
{
    run_threads_of(fn, THREADS, faults);
}

static void channels__are_threads(void **state)
{
    (void)state;
    run_threads_of(count_tasks, 1, "lose=0");
    int before = tasks_seen;
    run_threads_of(count_tasks, THREADS, "lose=0");
    assert_int_equal(tasks_seen - before, WORLD * (THREADS - 1));
}

static void channels__sum_what_is_cut_as_what_is_not(void **state)
{
    (void)state;
    run_with(sums, "lose=0");
}

static void channels__sum_in_spite_of_faults(void **state)
{
    (void)state;
    run_with(sums, "lose=0.002,duplicate=0.01,delay=0.01,seed=5");
}

static void channels__take_other_types_and_calls(void **state)
{
    (void)state;
    run_with(other_types, "lose=0");
    run_with(reduce_and_broadcast, "lose=0");
    run_with(gather_and_scatter, "lose=0");
}

static void channels__end_started_calls_in_any_order(void **state)
{
    (void)state;
    run_with(started, "lose=0");
}

static void channels__are_counted_together(void **state)
{
    (void)state;
    run_with(counts, "lose=0");
}

static void channels__fail_together(void **state)
{
    (void)state;
    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    run_with(one_differs, "lose=0");
    clock_gettime(CLOCK_MONOTONIC, &end);
    assert_true(end.tv_sec - begin.tv_sec < DEADLINE_MS / 1000 / 2);
}

static void channels__fail_for_the_same_reason(void **state)
{
    (void)state;
    for (int i = 0; i < 5; i++) {
        run_with(last_overflows_by_ring, "lose=0");
        run_with(last_overflows_at_the_server, "lose=0");
    }
}

static void channels__take_calls_of_layers(void **state)
{
    (void)state;
    run_with(layers, "lose=0");
}

/* Ranks with other numbers of threads: nobody waits longer than the deadline. */
static void *open_in_vain(void *argument)
{
    struct thread_rank *own = argument;
    gradwire *job = NULL;
    own->options.deadline_ms = 1000;
    int code = gradwire_open(&own->options, &job);
    own->failed = code != GRADWIRE_ERR_TIMED_OUT && code != GRADWIRE_ERR_PEER;
    return NULL;
}

static void channels__are_as_many_at_all_ranks(void **state)
{
    (void)state;
    struct thread_rank ranks[2];
    for (int i = 0; i < 2; i++) {
        prepare(&ranks[i].options, i, 2);
        ranks[i].options.threads = (uint32_t)i + 1;
    }
    run_threads(ranks, 2, "lose=0", open_in_vain);
}

/* Rank 1's name for rank 0 has no room for another port, so it has one channel, and gives up. */
static void *open_beside_one_who_cannot(void *argument)
{
    struct thread_rank *own = argument;
    gradwire *job = NULL;
    int expected = own->options.rank == 1 ? GRADWIRE_ERR_INVALID : GRADWIRE_ERR_PEER;
    own->failed = gradwire_open(&own->options, &job) != expected;
    return NULL;
}

/* The others wait in the second for who has left the first. */
static void channels__fail_together_while_they_open(void **state)
{
    (void)state;
    enum { ZEROS = 245 };
    struct thread_rank ranks[WORLD];
    char name[GW_IO_NAME_MAX];
    snprintf(name, sizeof(name), "127.0.0.%0*d:7", ZEROS, 1);
    assert_int_equal(strlen(name), GW_IO_NAME_MAX - 1);
    for (int i = 0; i < WORLD; i++) {
        prepare(&ranks[i].options, i, WORLD);
        ranks[i].options.threads = 2;
    }
    ranks[1].options.join = name;
    run_threads(ranks, WORLD, "lose=0", open_beside_one_who_cannot);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(channels__are_threads),
        cmocka_unit_test(channels__sum_what_is_cut_as_what_is_not),
        cmocka_unit_test(channels__sum_in_spite_of_faults),
        cmocka_unit_test(channels__take_other_types_and_calls),
        cmocka_unit_test(channels__end_started_calls_in_any_order),
        cmocka_unit_test(channels__are_counted_together),
        cmocka_unit_test(channels__fail_together),
        cmocka_unit_test(channels__fail_for_the_same_reason),
        cmocka_unit_test(channels__take_calls_of_layers),
        cmocka_unit_test(channels__are_as_many_at_all_ranks),
        cmocka_unit_test(channels__fail_together_while_they_open),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
