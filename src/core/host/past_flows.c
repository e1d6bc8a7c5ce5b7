/* Flows that have taken posted memory; see past_flows.h. */
#include "core/host/past_flows.h"

#include "base/prng.h"

enum {
    WAYS = 8, /* entries of a set, where a pair of peer and index may be */
    SETS_MIN = 8,
};

struct gw_past_flow {
    uint32_t peer;
    uint16_t index;
    uint16_t generation; /* of the last flow */
    gw_time ended_at;    /* when that was heard of last; GW_TIME_NEVER: free */
    struct gw_past_end end;
};

uint32_t gw_past_flows_sets(uint32_t flows)
{
    uint32_t sets = flows ? SETS_MIN : 0;
    while (sets && sets < flows / 2)
        sets *= 2;
    return sets;
}

size_t gw_past_flows_size(uint32_t sets)
{
    return (size_t)sets * WAYS * sizeof(struct gw_past_flow);
}

void gw_past_flows_init(struct gw_past_flows *past, void *memory, uint32_t sets)
{
    *past = (struct gw_past_flows){.entries = memory, .sets = sets};
    for (uint32_t i = 0; i < sets * WAYS; i++)
        past->entries[i] = (struct gw_past_flow){.ended_at = GW_TIME_NEVER};
}

static bool is_of(const struct gw_past_flow *entry, uint32_t peer, uint16_t index)
{
    return entry->ended_at != GW_TIME_NEVER && entry->peer == peer && entry->index == index;
}

/* The entry of a peer and index, or the one of its set to use for it: the free or oldest one. */
static struct gw_past_flow *find(const struct gw_past_flows *past, uint32_t peer, uint16_t index)
{
    uint64_t hash = gw_mix64((uint64_t)peer << 16 | index);
    struct gw_past_flow *set = &past->entries[(hash & (past->sets - 1)) * WAYS];
    struct gw_past_flow *use = set;
    for (uint32_t i = 0; i < WAYS; i++) {
        bool is_free = set[i].ended_at == GW_TIME_NEVER;
        if (is_of(&set[i], peer, index))
            return &set[i];
        if (use->ended_at != GW_TIME_NEVER &&
            (is_free || gw_time_before(set[i].ended_at, use->ended_at)))
            use = &set[i];
    }
    return use;
}

/* Whether a generation of the entry's index came before its last one, or is that. */
static bool is_past(const struct gw_past_flow *entry, uint16_t generation, gw_time now)
{
    uint16_t behind = (uint16_t)(entry->generation - generation);
    return behind == 0 || (behind < GW_PAST_FLOWS_REACH &&
                           gw_time_before(now, gw_time_add(entry->ended_at, GW_PAST_FLOWS_TIME)));
}

void gw_past_flows_note(struct gw_past_flows *past, uint32_t peer, uint32_t flow,
                        struct gw_past_end end, gw_time at)
{
    if (past->sets == 0)
        return;
    uint16_t index = (uint16_t)flow, generation = (uint16_t)(flow >> 16);
    struct gw_past_flow *entry = find(past, peer, index);
    if (is_of(entry, peer, index) && is_past(entry, generation, at)) {
        generation = entry->generation; /* its sender gave it up before we did */
        end = entry->end;
    }
    *entry = (struct gw_past_flow){
        .peer = peer, .index = index, .generation = generation, .ended_at = at, .end = end};
}

bool gw_past_flows_has(const struct gw_past_flows *past, uint32_t peer, uint32_t flow, gw_time now,
                       struct gw_past_end *end)
{
    if (past->sets == 0)
        return false;
    uint16_t index = (uint16_t)flow, generation = (uint16_t)(flow >> 16);
    const struct gw_past_flow *entry = find(past, peer, index);
    if (!is_of(entry, peer, index) || !is_past(entry, generation, now))
        return false;
    *end = entry->generation == generation ? entry->end : (struct gw_past_end){0};
    return true;
}
