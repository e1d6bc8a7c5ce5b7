/* When a thread waits for whoever has its core, and when no longer. */
#define _GNU_SOURCE
#include "support.h"

#include <sched.h>

#include "net/batch_policy.h"

enum { MANY = 100 };

static void note(struct gw_batch_policy *policy, bool is_in_time, uint32_t times)
{
    for (uint32_t i = 0; i < times; i++)
        gw_batch_policy_note(policy, is_in_time);
}

static int restore(void **state)
{
    const struct sched_param none = {0};
    (void)state;
    return sched_setscheduler(0, SCHED_OTHER, &none);
}

static void policy__is_patient_after_many_times_in_time_until_one_is_late(void **state)
{
    struct gw_batch_policy policy;
    (void)state;
    gw_batch_policy_begin(&policy);
    note(&policy, true, 8);
    assert_int_equal(sched_getscheduler(0), SCHED_OTHER);
    note(&policy, true, MANY);
    assert_int_equal(sched_getscheduler(0), SCHED_BATCH);
    note(&policy, false, 1);
    assert_int_equal(sched_getscheduler(0), SCHED_OTHER);
    note(&policy, true, 8);
    assert_int_equal(sched_getscheduler(0), SCHED_OTHER);
}

static void policy__of_one_who_is_late_now_and_then_stays(void **state)
{
    struct gw_batch_policy policy;
    (void)state;
    gw_batch_policy_begin(&policy);
    for (uint32_t i = 0; i < MANY; i++) {
        note(&policy, true, 8);
        assert_int_equal(sched_getscheduler(0), SCHED_OTHER);
        note(&policy, false, 1);
    }
}

static void *note_many(void *policy)
{
    note(policy, true, MANY);
    return sched_getscheduler(0) == SCHED_OTHER ? policy : NULL;
}

static void policy__of_another_thread_stays(void **state)
{
    struct gw_batch_policy policy;
    pthread_t other;
    void *result;
    (void)state;
    gw_batch_policy_begin(&policy);
    assert_int_equal(pthread_create(&other, NULL, note_many, &policy), 0);
    assert_int_equal(pthread_join(other, &result), 0);
    assert_ptr_equal(result, &policy);
    assert_int_equal(sched_getscheduler(0), SCHED_OTHER);
}

static void policy__that_somebody_has_chosen_stays(void **state)
{
    const struct sched_param none = {0};
    struct gw_batch_policy policy;
    (void)state;
    assert_int_equal(sched_setscheduler(0, SCHED_BATCH, &none), 0);
    gw_batch_policy_begin(&policy);
    note(&policy, true, MANY);
    note(&policy, false, 1);
    assert_int_equal(sched_getscheduler(0), SCHED_BATCH);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(policy__is_patient_after_many_times_in_time_until_one_is_late,
                                  restore),
        cmocka_unit_test_teardown(policy__of_one_who_is_late_now_and_then_stays, restore),
        cmocka_unit_test_teardown(policy__of_another_thread_stays, restore),
        cmocka_unit_test_teardown(policy__that_somebody_has_chosen_stays, restore),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
