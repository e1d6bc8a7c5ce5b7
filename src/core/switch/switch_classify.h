/*
 * The first stage of a switch: whose packet it is, and what it is to this switch.
 *
 * A switch that learns believes of a packet that it is from where its sender's address has been
 * learned (learned.h). It learns those that are new below a switch below, and those above, which
 * therefore nobody below can claim; a host has the address that it has attached with, and no other.
 */
#ifndef GW_CORE_SWITCH_CLASSIFY_H
#define GW_CORE_SWITCH_CLASSIFY_H

#include "core/pkt.h"
#include "core/switch/learned.h"
#include "core/switch/switch_stage.h"

struct gw_switch_classify {
    struct gw_learned *learned; /* NULL: senders are not looked at */
    uint16_t uplink;            /* what comes from there needs no place in the table */
    uint32_t address;           /* of the switch */
    bool is_lossless;
    bool has_aggregators;
    bool has_slots;
};

/* What a packet of any kind but data, ACK and NACK is. */
enum gw_switch_traffic gw_switch_classify_other(const struct gw_switch_classify *stage,
                                                const struct gw_pkt *pkt);

/* Data and its answers: no stage looks into them. */
static inline bool gw_switch_is_plain(const struct gw_pkt *pkt)
{
    return pkt->q.kind <= GW_PKT_NACK;
}

static inline enum gw_switch_traffic gw_switch_classify(const struct gw_switch_classify *stage,
                                                        const struct gw_pkt *pkt)
{
    if (gw_switch_is_plain(pkt))
        return GW_TRAFFIC_PLAIN;
    return gw_switch_classify_other(stage, pkt);
}

/*
 * Whether a packet that came by `in` may come from there. Returns 0; GW_ERR_INVALID: its sender's
 * address hangs on another port, or is not the host's at an `is_edge` port; or GW_ERR_NO_ROOM: it
 * is new, and there is no room for it.
 */
int gw_switch_classify_sender(const struct gw_switch_classify *stage, const struct gw_pkt *pkt,
                              uint16_t in, bool is_edge, gw_time now);

/* All of a packet by which the switch decides that it is values for an aggregator, or a result, and
 * whether it may come from where it does. Packets of a train have it in common. */
struct gw_switch_claim {
    uint32_t src;
    uint32_t job;
    uint32_t bitmap;
    uint16_t epoch;
    uint8_t level;
    uint8_t kind; /* enum gw_pkt_kind; GW_PKT_KINDS: of no packet */
};

static inline struct gw_switch_claim gw_switch_claim_of(const struct gw_pkt *pkt)
{
    return (struct gw_switch_claim){
        .src = pkt->src,
        .job = pkt->flow,
        .bitmap = pkt->agg.bitmap,
        .epoch = pkt->epoch,
        .level = pkt->agg.level,
        .kind = pkt->q.kind,
    };
}

/* Whether a packet claims the same as one before it that was for an aggregator. (Others of its kind
 * may be for a slot.) */
static inline bool gw_switch_claims(const struct gw_pkt *pkt, const struct gw_switch_claim *claim)
{
    return pkt->q.kind == claim->kind && pkt->src == claim->src && pkt->flow == claim->job &&
           pkt->agg.bitmap == claim->bitmap && pkt->epoch == claim->epoch &&
           pkt->agg.level == claim->level && !(pkt->agg_flags & GW_AGG_SLOT);
}

#endif
