/* A message has ended when all of it has arrived: what every flow does that is told nothing else.
 */
#include "core/finish/finish.h"

static bool all_is_enough(const void *config, const struct gw_finish_sample *sample)
{
    (void)config;
    return sample->arrived == sample->total;
}

const struct gw_finish_ops gw_finish_all = {
    .algo = {.name = "all", .summary = "the whole message", .source = "own"},
    .is_enough = all_is_enough,
};
