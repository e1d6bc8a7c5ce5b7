/*
 * Whether a thread waits, when something has come for it, until whoever has its core is done.
 *
 * Processes that share cores and send each other many packets do better so: each finds several
 * trains when its turn comes, instead of one, for which another was interrupted. Linux has that as
 * the policy SCHED_BATCH, which anybody may choose. Among those who compute, who keep a core for
 * milliseconds, such a thread would be late. So it is patient only after it has let others go first
 * many times and was soon back each time, and no longer once it was not, or when it rests.
 */
#ifndef GW_NET_BATCH_POLICY_H
#define GW_NET_BATCH_POLICY_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct gw_batch_policy {
    pthread_t thread; /* whose policy this is */
    bool may;         /* be patient: at first it had the ordinary policy */
    bool is_patient;
    uint32_t in_time; /* how often in a row it was soon back */
};

/* By the thread that may be patient from now on; others that come with it do not change theirs. */
void gw_batch_policy_begin(struct gw_batch_policy *policy);

/* The thread has let others go first, and was soon back or was not. */
void gw_batch_policy_note(struct gw_batch_policy *policy, bool is_in_time);

#endif
