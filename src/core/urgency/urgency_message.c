/* Every packet has the class that its message was given, and rank 0. */
#include "core/urgency/urgency.h"

static struct gw_urgency message_pick(const void *config, const struct gw_urgency_sample *sample)
{
    (void)config;
    return (struct gw_urgency){.class = sample->class};
}

const struct gw_urgency_ops gw_urgency_message = {
    .algo =
        {
            .name = "message",
            .summary = "the class that the message was given",
            .source = "own",
        },
    .pick = message_pick,
};
