/* Whether ranks of `gradwire bench` have the same sums: all find it out; after a failure, none. */
#include "lib/thread_ranks.h"

#include "cli/bench_parts.h"

enum { WORLD = 2, POISON = 4096 };

/* Leaves numbers on the stack of which no two are equal. */
static __attribute__((noinline)) uint32_t poison_stack(void)
{
    volatile uint32_t numbers[POISON];
    for (uint32_t i = 0; i < POISON; i++)
        numbers[i] = i;
    return numbers[POISON / 2];
}

static int compare(gradwire *job, int rank)
{
    const float sums[] = {1, 2, (float)rank};
    int32_t huge = INT32_MAX;
    bool are_equal;
    CHECK(gw_bench_parts_compare(job, sums, 2 * sizeof(*sums), &are_equal) == 0 && are_equal);
    CHECK(gw_bench_parts_compare(job, sums, sizeof(sums), &are_equal) == 0 && !are_equal);
    CHECK(gradwire_allreduce(job, &huge, &huge, 1, GRADWIRE_INT32, GRADWIRE_SUM) ==
          GRADWIRE_ERR_OVERFLOW);
    CHECK(poison_stack() == POISON / 2);
    CHECK(gw_bench_parts_compare(job, sums, sizeof(sums), &are_equal) == GRADWIRE_ERR_CLOSED);
    CHECK(are_equal);
    return 0;
}

static void bench_parts_compare__blames_no_sums_for_a_job_that_has_ended(void **state)
{
    (void)state;
    struct thread_rank ranks[WORLD];
    for (int i = 0; i < WORLD; i++) {
        ranks[i] = (struct thread_rank){.fn = compare};
        prepare(&ranks[i].options, i, WORLD);
    }
    run_ranks(ranks, WORLD, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bench_parts_compare__blames_no_sums_for_a_job_that_has_ended),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
