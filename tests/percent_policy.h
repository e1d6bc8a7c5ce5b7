/*
 * A policy for tests: a message has ended when so many of a hundred packets have arrived. Bounds on
 * loss that are more than an example are algorithms of core/finish.
 */
#ifndef GW_TESTS_PERCENT_POLICY_H
#define GW_TESTS_PERCENT_POLICY_H

#include <string.h>

#include "core/finish/finish.h"

/* Packets of `total` that are enough. */
static inline uint32_t percent_needed(uint32_t total, uint32_t percent)
{
    return (uint32_t)(((uint64_t)total * percent + 99) / 100);
}

static inline bool percent_is_enough(const void *config, const struct gw_finish_sample *sample)
{
    uint32_t percent;
    memcpy(&percent, config, sizeof(percent));
    return sample->arrived >= percent_needed(sample->total, percent);
}

static inline struct gw_finish percent_policy(uint32_t percent)
{
    static const struct gw_finish_ops ops = {
        .algo = {.name = "percent", .cfg_size = sizeof(uint32_t)},
        .is_enough = percent_is_enough,
    };
    struct gw_finish finish = {.ops = &ops};
    memcpy(finish.cfg.bytes, &percent, sizeof(percent));
    return finish;
}

#endif
