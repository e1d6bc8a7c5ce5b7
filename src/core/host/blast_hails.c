/*
 * Hails of blasts leave, and find their flow; and the tables of blasts. See blast.h.
 *
 * A flow that is not known cannot be asked: its FINISH is confirmed all the same, since who
 * finishes what we do not know has missed our CONFIRM, or does no harm.
 */
#include "core/host/blast.h"

struct gw_pkt *gw_blast_hail(struct gw_endpoint *ep, const struct gw_blast_say *say)
{
    struct gw_pkt *pkt = gw_sender_claim(ep, false);
    if (!pkt)
        return NULL;
    *pkt = (struct gw_pkt){
        .q = {.size = ep->cfg.hdr,
              .key = say->key,
              .class = GW_CLASS_CONTROL,
              .ecn = GW_ECN_NOT_ECT,
              .kind = GW_PKT_HAIL},
        .src = ep->cfg.address,
        .dst = say->peer,
        .flow = say->flow,
        .sent_at = say->time,
        .seq = say->seq,
        .entropy = (uint16_t)gw_prng_next(&ep->prng),
        .index = say->index,
        .buf = GW_BUF_NONE,
        .hail = {.word = {say->word[0], say->word[1]},
                 .op = (uint8_t)say->op,
                 .marks = say->marks,
                 .number = say->number},
    };
    ep->stats.hails_sent++;
    return pkt;
}

bool gw_blast_say(struct gw_endpoint *ep, const struct gw_blast_say *say)
{
    struct gw_pkt *pkt = gw_blast_hail(ep, say);
    if (pkt)
        gw_egress_control(ep, pkt);
    return pkt != NULL;
}

/* The blast with the number, or NULL: it ended, or is none of ours. */
static struct gw_blast_tx *tx_of(const struct gw_endpoint *ep, uint32_t flow)
{
    uint32_t index = (flow & UINT16_MAX) - ep->cfg.tx_flows_max;
    struct gw_blast_tx *blast = index < ep->cfg.blasts_max ? &ep->blasts_tx[index] : NULL;
    return blast && blast->transport && blast->id == flow ? blast : NULL;
}

/* The blast that its receiver speaks of, likewise. */
static struct gw_blast_tx *tx_of_pkt(const struct gw_endpoint *ep, const struct gw_pkt *pkt)
{
    struct gw_blast_tx *blast = tx_of(ep, pkt->flow);
    return blast && blast->peer == pkt->src ? blast : NULL;
}

static void confirm_unknown(struct gw_endpoint *ep, const struct gw_pkt *pkt)
{
    gw_blast_say(ep, &(struct gw_blast_say){
                         .op = GW_HAIL_CONFIRM,
                         .peer = pkt->src,
                         .flow = pkt->flow,
                         .key = gw_flow_key(ep->cfg.address, pkt->src, pkt->flow),
                         .time = pkt->sent_at,
                     });
}

static void input_from_receiver(struct gw_endpoint *ep, const struct gw_pkt *pkt, gw_time now)
{
    struct gw_blast_tx *blast = tx_of_pkt(ep, pkt);
    if (blast)
        gw_blast_tx_hear(ep, blast, pkt, now);
    else if (pkt->hail.op == GW_HAIL_FINISH)
        confirm_unknown(ep, pkt);
    else
        ep->stats.stray++;
}

bool gw_blast_credit(struct gw_endpoint *ep, const struct gw_pkt *pkt, gw_time now)
{
    struct gw_blast_tx *blast = tx_of_pkt(ep, pkt);
    if (blast)
        gw_blast_tx_take_credit(ep, blast, pkt, now);
    return blast != NULL;
}

void gw_blast_input(struct gw_endpoint *ep, struct gw_pkt *pkt, gw_time now)
{
    ep->stats.hails_received++;
    switch (pkt->hail.op) {
    case GW_HAIL_RENDEZVOUS:
    case GW_HAIL_STOP:
    case GW_HAIL_CONFIRM:
        gw_blast_rx_hear(ep, pkt, now);
        break;
    case GW_HAIL_ACCEPT:
    case GW_HAIL_REPORT:
    case GW_HAIL_REQUEST:
    case GW_HAIL_FINISH:
        input_from_receiver(ep, pkt, now);
        break;
    default:
        ep->stats.malformed++;
    }
    gw_pkt_release(ep->pool, pkt);
}

void gw_blast_expire(struct gw_endpoint *ep, uint32_t timer, gw_time now)
{
    uint32_t index = timer - gw_blast_timer(ep);
    if (index < ep->cfg.blasts_max)
        gw_blast_tx_expire(ep, &ep->blasts_tx[index], now);
    else
        gw_blast_rx_expire(ep, &ep->blasts_rx[index - ep->cfg.blasts_max], now);
}

/* ---- The tables. ---- */

static void make_tx(struct gw_endpoint *ep, const struct gw_endpoint_cfg *cfg,
                    unsigned char *memory, uint64_t *found, uint64_t *asked)
{
    const uint32_t words = (uint32_t)gw_bit_words(cfg->blast_packets_max);
    const size_t size = gw_bitmap_size(cfg->blast_packets_max);
    memset(ep->blasts_tx, 0, cfg->blasts_max * sizeof(*ep->blasts_tx));
    for (uint32_t i = 0; i < cfg->blasts_max; i++) {
        struct gw_blast_tx *blast = &ep->blasts_tx[i];
        for (uint32_t j = 0; j < GW_IMPORTANCES; j++)
            gw_bitmap_init(&blast->due[j], memory + (i * GW_IMPORTANCES + j) * size,
                           cfg->blast_packets_max);
        blast->found = found + (size_t)i * words;
        blast->asked = asked + (size_t)i * gw_bit_words(words);
        blast->generation = cfg->generation;
        blast->free_next = i + 1 < cfg->blasts_max ? i + 1 : GW_FLOW_NONE;
    }
}

static void make_rx(struct gw_endpoint *ep, const struct gw_endpoint_cfg *cfg, uint64_t *bits)
{
    memset(ep->blasts_rx, 0, cfg->blasts_max * sizeof(*ep->blasts_rx));
    for (uint32_t i = 0; i < cfg->blasts_max; i++) {
        ep->blasts_rx[i].bits = bits + (size_t)i * gw_bit_words(cfg->blast_packets_max);
        ep->blasts_rx[i].list_next = i + 1 < cfg->blasts_max ? i + 1 : GW_FLOW_NONE;
    }
}

void gw_blast_carve(struct gw_endpoint *ep, const struct gw_endpoint_cfg *cfg,
                    struct gw_arena *arena)
{
    const size_t count = cfg->blasts_max;
    const uint32_t words = (uint32_t)gw_bit_words(cfg->blast_packets_max);
    if (count == 0)
        return;
    ep->blasts_tx = gw_arena_take(arena, count * sizeof(*ep->blasts_tx));
    ep->blasts_rx = gw_arena_take(arena, count * sizeof(*ep->blasts_rx));
    void *map = gw_arena_take(arena, gw_map_size(cfg->blasts_max));
    void *due =
        gw_arena_take(arena, count * GW_IMPORTANCES * gw_bitmap_size(cfg->blast_packets_max));
    void *found = gw_arena_take(arena, count * words * sizeof(uint64_t));
    void *asked = gw_arena_take(arena, count * gw_bit_words(words) * sizeof(uint64_t));
    void *bits = gw_arena_take(arena, count * words * sizeof(uint64_t));
    gw_blast_lanes_carve(ep, cfg->blasts_max, arena);
    if (!arena->base)
        return;
    gw_map_init(&ep->blast_map, map, cfg->blasts_max);
    make_tx(ep, cfg, due, found, asked);
    make_rx(ep, cfg, bits);
    ep->blast_done_head = ep->blast_done_tail = GW_FLOW_NONE;
}

void gw_blast_forget(struct gw_endpoint *ep, const void *memory, uint64_t size)
{
    for (uint32_t i = 0; i < ep->cfg.blasts_max; i++) {
        struct gw_blast_tx *tx = &ep->blasts_tx[i];
        struct gw_blast_rx *rx = &ep->blasts_rx[i];
        if (tx->transport &&
            (gw_begins_in(tx->data, memory, size) || gw_begins_in(tx->important, memory, size) ||
             gw_begins_in(tx->notes, memory, size)))
            gw_blast_tx_drop(ep, tx);
        if (gw_begins_in(rx->memory.data, memory, size) ||
            gw_begins_in(rx->memory.arrived_bits, memory, size) ||
            gw_begins_in(rx->notes, memory, size))
            gw_blast_rx_drop(ep, rx);
    }
}

bool gw_blast_info(const struct gw_endpoint *ep, uint32_t flow, struct gw_flow_info *info)
{
    const struct gw_blast_tx *blast = tx_of(ep, flow);
    if (!blast)
        return false;
    *info = (struct gw_flow_info){
        .cwnd = blast->lane->window.cwnd,
        .acked_bytes = blast->received < blast->bytes ? blast->received : blast->bytes,
        .retransmits = blast->sent_packets - blast->sent_most,
        .window_packets = gw_blast_tx_due(blast),
        .cc_state = blast->lane->cc_state,
    };
    return true;
}
