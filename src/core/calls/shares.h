/*
 * How a tensor is divided over servers: as evenly as possible, in whole units, so that no fragment
 * but the last of all is short. A pure function, by which all ranks divide alike.
 */
#ifndef GW_CORE_SHARES_H
#define GW_CORE_SHARES_H

#include <stdint.h>

/* Elements of one server; `count` may be 0. */
struct gw_share {
    uint64_t first;
    uint64_t count;
};

/* The share of server `index` of `servers` in `count` elements. */
static inline struct gw_share gw_share_of(uint64_t count, uint32_t unit, uint32_t index,
                                          uint32_t servers)
{
    uint64_t units = count / unit + (count % unit != 0);
    uint64_t each = units / servers, more = units % servers;
    uint64_t first = (index * each + (index < more ? index : more)) * unit;
    uint64_t end = first + (each + (index < more)) * unit;
    if (first > count)
        first = count;
    return (struct gw_share){.first = first, .count = (end < count ? end : count) - first};
}

#endif
