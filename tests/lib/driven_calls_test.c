/*
 * Calls that the application's thread drives while it waits, those that the I/O thread does, and
 * changes between both at any moment; see src/lib/io_drive.c.
 */
#include "lib/thread_ranks.h"

#include <fenv.h>
#include <poll.h>
#include <stdatomic.h>
#include <time.h>

#include "base/prng.h"
#include "lib/io_impl.h"
#include "lib/options.h"
#include "net/clock.h"

enum {
    WORLD = 3,
    ELEMENTS = 3000,
    CALLS = 400,
    STARTED = 3,
    KEYS = 16,
    MEETINGS = 100,
    ROUND = 3,
    ROUNDS_MAX = 400,
    PAUSE_MAX_US = 2500, /* the thread comes back after 1000 or 200 */
};

static const char no_faults[] = "lose=0", some_faults[] = "lose=0.01,duplicate=0.01,seed=3";

static void run(rank_fn *fn, enum gradwire_via via, const char *faults)
{
    struct thread_rank ranks[WORLD];
    for (int i = 0; i < WORLD; i++) {
        ranks[i].fn = fn;
        prepare(&ranks[i].options, i, WORLD);
        ranks[i].options.via = via;
    }
    run_ranks(ranks, WORLD, faults);
}

static void pause_us(uint32_t us)
{
    const struct timespec time = {.tv_nsec = (long)us * 1000};
    nanosleep(&time, NULL);
}

static int check_sums(const int32_t *sums, int rank, int32_t round)
{
    for (int32_t i = 0; i < ELEMENTS; i++)
        CHECK(sums[i] == WORLD * (i + round) + WORLD * (WORLD - 1) / 2);
    return 0;
}

static int sum_blocking(gradwire *job, int rank, int32_t round)
{
    int32_t x[ELEMENTS];
    for (int32_t i = 0; i < ELEMENTS; i++)
        x[i] = rank + i + round;
    CHECK(gradwire_allreduce(job, x, x, ELEMENTS, GRADWIRE_INT32, GRADWIRE_SUM) == 0);
    return check_sums(x, rank, round);
}

/* Several at once, one of them awaited at the descriptor, and a blocking one amid them. */
static int sum_started(gradwire *job, int rank, int32_t round)
{
    int32_t x[STARTED][ELEMENTS];
    gradwire_call calls[STARTED];
    struct pollfd fd = {.fd = gradwire_fd(job), .events = POLLIN};
    int done = 0;
    for (int32_t k = 0; k < STARTED; k++) {
        for (int32_t i = 0; i < ELEMENTS; i++)
            x[k][i] = rank + i + round + k;
        CHECK(gradwire_allreduce_start(job, x[k], x[k], ELEMENTS, GRADWIRE_INT32, GRADWIRE_SUM,
                                       &calls[k]) == 0);
    }
    CHECK(sum_blocking(job, rank, round) == 0);
    while (!done) {
        CHECK(poll(&fd, 1, DEADLINE_MS) == 1);
        CHECK(gradwire_test(job, calls[0], &done) == 0);
    }
    for (int32_t k = 1; k < STARTED; k++)
        CHECK(gradwire_wait(job, calls[k]) == 0);
    for (int32_t k = 0; k < STARTED; k++)
        CHECK(check_sums(x[k], rank, round + k) == 0);
    return 0;
}

/* All ranks call the same, and each pauses as it likes. */
static int sum_in_any_way(gradwire *job, int rank)
{
    struct gw_prng calls = gw_prng_derive(1, 0), pauses = gw_prng_derive(2, (uint64_t)rank);
    for (int32_t round = 0; round < CALLS; round++) {
        if (gw_prng_below(&pauses, 8) == 0)
            pause_us(gw_prng_below(&pauses, PAUSE_MAX_US));
        if (gw_prng_below(&calls, 8))
            CHECK(sum_blocking(job, rank, round) == 0);
        else
            CHECK(sum_started(job, rank, round) == 0);
    }
    return 0;
}

static void calls__are_driven_by_either_thread(void **state)
{
    (void)state;
    run(sum_in_any_way, GRADWIRE_VIA_RING, no_faults);
    run(sum_in_any_way, GRADWIRE_VIA_INA, some_faults);
}

static bool are_values_kept;

static int run_call(struct gw_io *io, struct gw_call call, int rank)
{
    struct gw_completion end;
    CHECK(gw_io_send(io, &call, true));
    while (!gw_io_receive(io, &end, -1))
        continue;
    CHECK(end.call == call.number && end.error == 0);
    return 0;
}

/* Whether all calls were driven that came when the thread was back for good: it parks by itself
 * only right after a call. */
static int meet_after_pauses(struct gw_io *io, struct gw_call *meet, int rank, bool *are_driven)
{
    const uint32_t before = atomic_load(&io->driven);
    for (int i = 0; i < ROUND; i++) {
        pause_us(2 * PAUSE_MAX_US);
        meet->number++;
        CHECK(run_call(io, *meet, rank) == 0);
    }
    const uint32_t driven = atomic_load(&io->driven) - before;
    CHECK(driven <= ROUND);
    *are_driven = driven == ROUND;
    return 0;
}

/* A thread that is kept from its core does not answer in time; so all of a round, in some round. */
static int meet_until_all_are_driven(struct gw_io *io, struct gw_call meet, int rank)
{
    bool were_driven = false;
    int32_t lacks, all_lack = WORLD;
    struct gw_call tell = {.kind = GW_CALL_ALLREDUCE,
                           .via = GW_VIA_RING,
                           .in = &lacks,
                           .out = &all_lack,
                           .count = 1,
                           .type = GW_DTYPE_I32,
                           .op = GW_OP_SUM};
    for (int round = 0; round < ROUNDS_MAX && all_lack; round++) {
        bool are_driven;
        CHECK(meet_after_pauses(io, &meet, rank, &are_driven) == 0);
        were_driven |= are_driven;
        lacks = !were_driven;
        tell.number = ++meet.number;
        CHECK(run_call(io, tell, rank) == 0);
    }
    CHECK(were_driven);
    return 0;
}

/* Without the public calls, which do not tell who drove. */
static int meet_by_ring(const struct thread_rank *own)
{
    const int rank = own->options.rank;
    const int32_t one = 1;
    char error[GW_NET_ERROR_MAX];
    struct gw_io_plan plan;
    struct gw_io *io;
    struct gw_completion opened;
    struct gw_call meet = {.kind = GW_CALL_BARRIER, .via = GW_VIA_RING};
    struct gw_call push = {.kind = GW_CALL_PUSH, .in = &one, .count = 1, .type = GW_DTYPE_I32};
    CHECK(gw_options_plan(&own->options, &plan, error) == 0);
    CHECK(gw_io_start(&plan, NULL, &io, error) == 0);
    CHECK(gw_io_receive(io, &opened, DEADLINE_MS) && opened.error == 0);
    for (push.key = 0; are_values_kept && push.key < KEYS; push.key++) {
        push.number = ++meet.number;
        CHECK(run_call(io, push, rank) == 0);
    }
    meet.number++;
    CHECK(run_call(io, meet, rank) == 0);
    const uint32_t before = atomic_load(&io->driven);
    for (int i = 0; i < MEETINGS; i++) {
        meet.number++;
        CHECK(run_call(io, meet, rank) == 0);
        pause_us(100); /* the thread can park */
    }
    const uint32_t driven = atomic_load(&io->driven) - before;
    if (!are_values_kept)
        CHECK(meet_until_all_are_driven(io, meet, rank) == 0);
    gw_io_stop(io);
    if (are_values_kept) /* once it is back, it stays */
        CHECK(driven < MEETINGS / 4);
    else
        CHECK(driven > 0);
    return 0;
}

static void *run_by_ring(void *argument)
{
    struct thread_rank *own = argument;
    own->failed = meet_by_ring(own);
    return NULL;
}

static void run_ring(bool keeps_values)
{
    struct thread_rank ranks[WORLD];
    for (int i = 0; i < WORLD; i++) {
        prepare(&ranks[i].options, i, WORLD);
        ranks[i].options.via = GRADWIRE_VIA_RING;
    }
    are_values_kept = keeps_values;
    run_threads(ranks, WORLD, no_faults, run_by_ring);
}

/* Where a call leaves no timer behind. */
static void calls__are_driven_by_who_waits_around_a_ring_too(void **state)
{
    (void)state;
    run_ring(false);
}

/* Each rank has some of the keys: it must answer whenever it is asked. */
static void calls__are_driven_by_the_thread_where_values_are_kept(void **state)
{
    (void)state;
    run_ring(true);
}

/* For half a second, as rank 0 has it. */
static int sum_for_a_while(gradwire *job, int rank)
{
    const gw_time end = gw_time_add(gw_clock_now(), 500 * GW_MS);
    int32_t x, is_over = false;
    while (!is_over) {
        x = rank == 0 && !gw_time_before(gw_clock_now(), end);
        CHECK(gradwire_allreduce(job, &x, &is_over, 1, GRADWIRE_INT32, GRADWIRE_SUM) == 0);
    }
    return 0;
}

static atomic_int pulls; /* that have ended */
static gw_time pulls_took;

/* A value that rank `owner` keeps, whose application does nothing meanwhile. */
static int pull_from(gradwire *job, int owner, int rank)
{
    int32_t value = 1, before = atomic_load(&pulls);
    uint64_t key = 1;
    while (gw_mix64(key) % WORLD != (uint32_t)owner)
        key++;
    if (rank == owner)
        CHECK(gradwire_push(job, key, &value, 1, GRADWIRE_INT32) == 0);
    CHECK(gradwire_barrier(job) == 0);
    CHECK(sum_for_a_while(job, rank) == 0);
    if (rank == WORLD - 1) {
        gw_time begin = gw_clock_now();
        int result = gradwire_pull(job, key, &value, 1, GRADWIRE_INT32);
        pulls_took += gw_clock_now() - begin;
        atomic_store(&pulls, before + 1);
        CHECK(result == 0);
    }
    while (atomic_load(&pulls) == before)
        pause_us(PAUSE_MAX_US);
    CHECK(gradwire_barrier(job) == 0);
    return 0;
}

static int pull_after_sums(gradwire *job, int rank)
{
    for (int round = 0; round < 2; round++)
        for (int owner = 0; owner < WORLD - 1; owner++)
            CHECK(pull_from(job, owner, rank) == 0);
    return 0;
}

/* The thread is back at once, within a millisecond, however long the application has driven. If it
 * looked ever more rarely while there are new calls that would be up to half of the time of the
 * sums. Ten milliseconds for each pull, as machines are busy. */
static void calls__leave_nobody_unanswered_after_they_were_driven(void **state)
{
    (void)state;
    pulls_took = 0;
    run(pull_after_sums, GRADWIRE_VIA_INA, no_faults);
    assert_in_range(pulls_took, 1, atomic_load(&pulls) * 10 * GW_MS);
}

#if defined(__x86_64__)
enum { FLUSHES = 0x8040 }; /* what is denormal becomes zero, as operand and as result */

static void flush_denormals(void)
{
    __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | FLUSHES);
}

static bool flushes_denormals(void)
{
    return (__builtin_ia32_stmxcsr() & FLUSHES) == FLUSHES;
}
#else
static void flush_denormals(void)
{
}

static bool flushes_denormals(void)
{
    return true;
}
#endif

/* The least number, and a third whose three are one when rounded to nearest. */
static const uint32_t addends[] = {1, 0x3eaaaaab}, expected[] = {WORLD, 0x3f800000};

/* The rank's own mode is as before, and changes no bit. The job is opened in it, so that the I/O
 * thread inherits it. */
static int sum_in_odd_mode(gradwire *job, int rank)
{
    for (int call = 0; call < 20; call++) {
        uint32_t sums[2];
        memcpy(sums, addends, sizeof(sums));
        CHECK(gradwire_allreduce(job, sums, sums, 2, GRADWIRE_FLOAT32, GRADWIRE_SUM) == 0);
        CHECK(fegetround() == FE_UPWARD && flushes_denormals());
        CHECK(memcmp(sums, expected, sizeof(sums)) == 0);
        if (call % 4 == 3)
            pause_us(PAUSE_MAX_US); /* then the I/O thread does it */
    }
    return 0;
}

static void *run_rank_in_odd_mode(void *rank)
{
    fesetround(FE_UPWARD);
    flush_denormals();
    return run_rank(rank);
}

static void sums__do_not_depend_on_the_callers_floating_point_mode(void **state)
{
    (void)state;
    struct thread_rank ranks[WORLD];
    for (int i = 0; i < WORLD; i++) {
        ranks[i].fn = sum_in_odd_mode;
        prepare(&ranks[i].options, i, WORLD);
        ranks[i].options.via = GRADWIRE_VIA_RING;
    }
    run_threads(ranks, WORLD, no_faults, run_rank_in_odd_mode);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls__are_driven_by_either_thread),
        cmocka_unit_test(calls__are_driven_by_who_waits_around_a_ring_too),
        cmocka_unit_test(calls__are_driven_by_the_thread_where_values_are_kept),
        cmocka_unit_test(calls__leave_nobody_unanswered_after_they_were_driven),
        cmocka_unit_test(sums__do_not_depend_on_the_callers_floating_point_mode),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
