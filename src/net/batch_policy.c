/* The policy of a thread; see batch_policy.h. */
#define _GNU_SOURCE
#include "net/batch_policy.h"

#include <sched.h>

enum {
    TIMES = 32, /* own choice: several milliseconds of a busy process */
};

void gw_batch_policy_begin(struct gw_batch_policy *policy)
{
    *policy = (struct gw_batch_policy){
        .thread = pthread_self(),
        .may = sched_getscheduler(0) == SCHED_OTHER,
    };
}

void gw_batch_policy_note(struct gw_batch_policy *policy, bool is_in_time)
{
    const struct sched_param none = {0};
    if (!policy->may || !pthread_equal(policy->thread, pthread_self()))
        return;
    policy->in_time = is_in_time ? policy->in_time + 1 : 0;
    bool is_patient = is_in_time && (policy->is_patient || policy->in_time >= TIMES);
    if (is_patient == policy->is_patient)
        return;
    policy->is_patient = is_patient;
    policy->may = sched_setscheduler(0, is_patient ? SCHED_BATCH : SCHED_OTHER, &none) == 0;
}
