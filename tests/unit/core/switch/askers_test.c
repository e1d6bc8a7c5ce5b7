/* Which workers ask: a cache that tenants do not spoil for each other. */
#include "support.h"

#include "core/job.h"
#include "core/switch/askers.h"

enum {
    JOBS_MAX = 8,
    WORKERS = 32, /* of a job that one switch adds up */
    GREEDY = 3,
    POLITE = 5,
};

static const struct gw_tenants tenants = {.keys = {GREEDY, POLITE}, .count = 2};

static struct gw_askers open_askers(void)
{
    struct gw_askers askers;
    gw_askers_init(&askers, gw_test_take(gw_askers_size(JOBS_MAX, &tenants)), JOBS_MAX, &tenants);
    return askers;
}

static void askers__are_of_a_job_and_an_address(void **state)
{
    (void)state;
    struct gw_askers askers = open_askers();
    const uint32_t job = gw_job_number(POLITE, 1), other = gw_job_number(POLITE, 2);
    assert_false(gw_askers_has(&askers, job, 1));
    gw_askers_note(&askers, job, 1);
    assert_true(gw_askers_has(&askers, job, 1));
    assert_false(gw_askers_has(&askers, job, 2));
    assert_false(gw_askers_has(&askers, other, 1));
    free(askers.sets);
}

/* As many as jobs that fill the switch have, and whatever the workers of others say. */
static void askers__of_others_drive_out_none_of_ours(void **state)
{
    (void)state;
    struct gw_askers askers = open_askers();
    for (uint32_t job = 0; job < JOBS_MAX; job++)
        for (uint32_t worker = 0; worker < WORKERS; worker++)
            gw_askers_note(&askers, gw_job_number(POLITE, job), 0x1000 * job + worker);
    for (uint32_t i = 0; i < 100000; i++) {
        gw_askers_note(&askers, gw_job_number(GREEDY, i), i);
        gw_askers_note(&askers, gw_job_number(GREEDY + 1, i), i);
    }
    for (uint32_t job = 0; job < JOBS_MAX; job++)
        for (uint32_t worker = 0; worker < WORKERS; worker++)
            assert_true(gw_askers_has(&askers, gw_job_number(POLITE, job), 0x1000 * job + worker));
    assert_true(gw_askers_has(&askers, gw_job_number(GREEDY, 99999), 99999));
    assert_false(gw_askers_has(&askers, gw_job_number(GREEDY, 0), 0));
    free(askers.sets);
}

/* Who is heard again and again stays, whoever else comes. */
static void askers__forget_who_was_not_heard_for_longest(void **state)
{
    (void)state;
    struct gw_askers askers = open_askers();
    const uint32_t job = gw_job_number(POLITE, 1);
    for (uint32_t other = 1; other < 10000; other++) {
        gw_askers_note(&askers, job, 0);
        gw_askers_note(&askers, job, other);
        assert_true(gw_askers_has(&askers, job, 0));
    }
    assert_false(gw_askers_has(&askers, job, 1));
    free(askers.sets);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(askers__are_of_a_job_and_an_address),
        cmocka_unit_test(askers__of_others_drive_out_none_of_ours),
        cmocka_unit_test(askers__forget_who_was_not_heard_for_longest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
