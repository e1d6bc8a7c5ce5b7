/*
 * pFabric: a packet's rank is what remained of its message when it first left, itself included
 * (Alizadeh et al., pFabric, SIGCOMM 2013, section 4.1). The class stays the message's: among
 * packets of one class those of the message that is nearest to its end are the most urgent.
 *
 * What remains is counted from the packet's place, so that a packet has the same rank whenever it
 * leaves, and a switch can tell it from the header of the packet (core/codec.c).
 */
#include "core/urgency/urgency.h"

static struct gw_urgency pfabric_pick(const void *config, const struct gw_urgency_sample *sample)
{
    (void)config;
    uint32_t rank = sample->remains < UINT32_MAX ? (uint32_t)sample->remains : UINT32_MAX;
    return (struct gw_urgency){.class = sample->class, .rank = rank};
}

const struct gw_urgency_ops gw_urgency_pfabric = {
    .algo =
        {
            .name = "pfabric",
            .summary = "rank: the bytes of the message that remain",
            .source = "pFabric, SIGCOMM 2013, section 4.1",
        },
    .ranks_by_place = true,
    .pick = pfabric_pick,
};
