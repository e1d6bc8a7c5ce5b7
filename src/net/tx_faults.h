/*
 * Faults for tests: what a datapath does wrong on purpose with packets on their way out. It asks
 * here for the fate of each, in the order in which they leave; so one seed makes one run.
 */
#ifndef GW_NET_TX_FAULTS_H
#define GW_NET_TX_FAULTS_H

#include "base/prng.h"
#include "net/datapath.h"

struct gw_tx_faults {
    struct gw_datapath_faults chances;
    struct gw_prng prng;
    struct gw_pkt *late; /* held back for the neighbour `late_peer`; or NULL */
    uint16_t late_peer;
};

enum gw_tx_fate {
    GW_TX_SENT,
    GW_TX_TWICE,
    GW_TX_LOST, /* counted; the datapath releases the packet */
    GW_TX_LATE, /* held here until the next train to the same neighbour */
};

static inline void gw_tx_faults_init(struct gw_tx_faults *faults,
                                     const struct gw_datapath_faults *chances)
{
    *faults = (struct gw_tx_faults){.chances = *chances, .prng = gw_prng_derive(chances->seed, 0)};
}

/* Whether anything can go wrong: without, nobody needs to ask for fates. */
static inline bool gw_tx_faults_exist(const struct gw_tx_faults *faults)
{
    const struct gw_datapath_faults *chances = &faults->chances;
    return (chances->lose_q32 | chances->duplicate_q32 | chances->delay_q32) != 0;
}

/* The packet that was held back for this neighbour, to leave behind its train now; NULL: none. */
static inline struct gw_pkt *gw_tx_faults_take_late(struct gw_tx_faults *faults, uint16_t peer)
{
    struct gw_pkt *late = faults->late && faults->late_peer == peer ? faults->late : NULL;
    if (late)
        faults->late = NULL;
    return late;
}

/* What becomes of a packet to this neighbour. */
static inline enum gw_tx_fate gw_tx_faults_draw(struct gw_tx_faults *faults, struct gw_pkt *pkt,
                                                uint16_t peer, struct gw_datapath_stats *stats)
{
    if (gw_prng_chance(&faults->prng, faults->chances.lose_q32)) {
        stats->lost++;
        return GW_TX_LOST;
    }
    if (!faults->late && gw_prng_chance(&faults->prng, faults->chances.delay_q32)) {
        faults->late = pkt;
        faults->late_peer = peer;
        return GW_TX_LATE;
    }
    return gw_prng_chance(&faults->prng, faults->chances.duplicate_q32) ? GW_TX_TWICE : GW_TX_SENT;
}

/* Gives up the packet that is still held back. */
static inline void gw_tx_faults_fini(struct gw_tx_faults *faults, struct gw_pkt_pool *pool)
{
    if (faults->late)
        gw_pkt_release(pool, faults->late);
}

#endif
