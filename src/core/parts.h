/*
 * What a call may do without, and what became of it: the terms of bounded loss (DLCP, section 3.2),
 * as callers state them and get them back. docs/bounded-loss.md has the argument.
 *
 * A tensor or message is made of fragments of equal size, but for the last one; fragment i begins
 * at i times that size, which gw_communicator_fragment() tells. Of an all-gather or reduce-scatter
 * each rank's part is a tensor of its own: its first fragment follows the last one of the part
 * before it. `arrived` and `counts` are of what the rank gets, `important` of what it gives, and
 * `importance` of what leaves it: also of sums and results that it passes on.
 */
#ifndef GW_CORE_PARTS_H
#define GW_CORE_PARTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/fixed.h"

struct gw_parts {
    gw_q16 bound; /* the largest part that may be missing of a message, of a push or pull, and of
                     each rank's contribution to a collective; 0: none */
    gw_q16 bound_pull; /* of a collective: of its results. What is missing at one rank is then
                          missing at all, so all have the same bytes */
    bool keeps_own; /* for experiments, as published (DLCP, Appendix A): of a result that is missing
                       a rank keeps its own values, and ranks drift apart */
    bool important_first; /* these fragments leave before the others */
    uint8_t class;        /* GW_CLASS_BEST_EFFORT to GW_CLASS_DATA_MAX */
    uint8_t importance;   /* enum gw_importance_rule: which fragments of a message of floats are
                             important, each compared with the others as they are when they
                             leave; others may be dropped where queues are long */
    const uint64_t *important; /* NULL, or what is known instead: a bit for each of `in` */
    uint64_t *arrived; /* NULL, or where a bit for each fragment goes: what is missing has its
                          values as gw_call says */
    uint16_t *counts;  /* NULL, or where the number of contributors of each fragment goes */
};

/*
 * Whether `arrived` bytes are those of a message of `bytes`, in packets of `packet`, of which so
 * many packets are missing.
 */
static inline bool gw_parts_fit(uint64_t bytes, uint32_t packet, uint64_t arrived, uint32_t missing)
{
    uint64_t total = bytes / packet + (bytes % packet != 0);
    if (missing == 0 || missing > total)
        return missing == 0 && arrived == bytes;
    uint64_t most = (total - missing) * packet, last = bytes - (total - 1) * packet;
    return arrived == most || (most && arrived == most - packet + last);
}

#endif
