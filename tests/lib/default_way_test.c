/* How sums go of which nobody says it: GRADWIRE_VIA_DEFAULT. */
#include "lib/thread_ranks.h"

enum {
    WORLD_MAX = 3,
    SMALL = 64 << 10,  /* elements of 4 bytes, of which just as many go by rank 0, ... */
    LARGE = SMALL + 1, /* ... and these around a ring */
    VALUES = 352,      /* of a fragment by rank 0, whatever their type */
    BYTES = 4 * VALUES,
};

/* Fragments that rank 0 finished in the sum of so many ones, or -1: it is wrong. */
static int64_t added_up(gradwire *job, int world, size_t count)
{
    static _Thread_local int32_t x[LARGE];
    struct gradwire_stats before = {.size = sizeof(before)}, after = {.size = sizeof(after)};
    for (size_t i = 0; i < count; i++)
        x[i] = 1;
    if (gradwire_get_stats(job, &before) ||
        gradwire_allreduce(job, x, x, count, GRADWIRE_INT32, GRADWIRE_SUM) ||
        gradwire_get_stats(job, &after))
        return -1;
    for (size_t i = 0; i < count; i++)
        if (x[i] != world)
            return -1;
    return (int64_t)(after.server_results - before.server_results);
}

static size_t fragments(gradwire *job, size_t count)
{
    return gradwire_fragments(job, count, GRADWIRE_FLOAT16, GRADWIRE_VIA_DEFAULT);
}

static int three_ranks(gradwire *job, int rank)
{
    CHECK((added_up(job, 3, SMALL) > 0) == (rank == 0));
    CHECK(added_up(job, 3, LARGE) == 0);
    CHECK(fragments(job, 2 * SMALL) == 2 * SMALL / VALUES + 1);
    CHECK(fragments(job, 2 * LARGE) == 2 * LARGE * 2 / BYTES + 1);
    return 0;
}

static int two_ranks(gradwire *job, int rank)
{
    CHECK(added_up(job, 2, 1) == 0);
    CHECK(added_up(job, 2, SMALL) == 0); /* in one step, ... */
    CHECK(added_up(job, 2, LARGE) == 0); /* ... and in two */
    CHECK(fragments(job, 2 * SMALL) == 2 * SMALL * 2 / BYTES + 1);
    return 0;
}

static int three_ranks_by_rank_0(gradwire *job, int rank)
{
    CHECK((added_up(job, 3, LARGE) > 0) == (rank == 0));
    return 0;
}

/* Without server and switch. */
static void run(rank_fn *fn, int world, enum gradwire_via via)
{
    struct thread_rank ranks[WORLD_MAX];
    for (int i = 0; i < world; i++) {
        ranks[i].fn = fn;
        prepare(&ranks[i].options, i, world);
        ranks[i].options.via = via;
    }
    run_ranks(ranks, world, "lose=0");
}

static void large_sums__go_around_a_ring_where_rank_0_would_add_up(void **state)
{
    (void)state;
    run(three_ranks, 3, GRADWIRE_VIA_DEFAULT);
}

static void sums__of_two_ranks_go_from_one_to_the_other(void **state)
{
    (void)state;
    run(two_ranks, 2, GRADWIRE_VIA_DEFAULT);
}

static void large_sums__go_as_the_job_says(void **state)
{
    (void)state;
    run(three_ranks_by_rank_0, 3, GRADWIRE_VIA_INA);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(large_sums__go_around_a_ring_where_rank_0_would_add_up),
        cmocka_unit_test(sums__of_two_ranks_go_from_one_to_the_other),
        cmocka_unit_test(large_sums__go_as_the_job_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
