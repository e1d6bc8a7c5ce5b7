/* Every packet has the class that its message was given, and rank 0. */
#include "core/tag/tag.h"

static struct gw_tag message_pick(const void *config, const struct gw_tag_sample *sample)
{
    (void)config;
    return (struct gw_tag){.class = sample->class};
}

const struct gw_tag_ops gw_tag_message = {
    .algo =
        {
            .name = "message",
            .summary = "the class that the message was given",
            .source = "own",
        },
    .pick = message_pick,
};
