/* Packets at random; see random_pkt.h. */
#include "random_pkt.h"

#include <string.h>

#include "core/blast_hail.h"
#include "core/job.h"
#include "core/notice.h"
#include "wire/attach.h"
#include "wire/wire.h"

static uint32_t any32(struct gw_prng *prng)
{
    return (uint32_t)gw_prng_next(prng);
}

static uint8_t any_data_flags(struct gw_prng *prng)
{
    static const uint8_t of_flows = GW_PKT_TRIMMABLE | GW_PKT_TRIMMED | GW_PKT_ACK_NOW |
                                    GW_PKT_ON_CREDIT | GW_PKT_LAST_FREE | GW_PKT_STARVED;
    uint8_t flags = (uint8_t)any32(prng) & of_flows;
    if (gw_prng_below(prng, 4) == 0)
        return GW_PKT_BLAST;
    if (!(flags & GW_PKT_ON_CREDIT))
        flags &= (uint8_t) ~(GW_PKT_LAST_FREE | GW_PKT_STARVED);
    if (!(flags & GW_PKT_TRIMMABLE))
        flags &= (uint8_t)~GW_PKT_TRIMMED;
    return flags;
}

static void fill_data(struct gw_prng *prng, uint32_t payload_max, struct gw_pkt *pkt)
{
    pkt->q.flags = any_data_flags(prng);
    pkt->data.total = 1 + gw_prng_below(prng, 1000);
    pkt->seq = gw_prng_below(prng, pkt->data.total);
    pkt->data.mss = (uint16_t)(1 + gw_prng_below(prng, payload_max));
    pkt->data.len = pkt->data.mss;
    if (pkt->seq + 1 == pkt->data.total)
        pkt->data.len = (uint16_t)(1 + gw_prng_below(prng, pkt->data.mss));
    pkt->data.tag = any32(prng);
    pkt->q.rank = (pkt->data.total - pkt->seq) * pkt->data.mss; /* what remains of the message */
}

static void fill_answer(struct gw_prng *prng, struct gw_pkt *pkt)
{
    bool is_nack = pkt->q.kind == GW_PKT_NACK;
    pkt->q.flags = (uint8_t)any32(prng) & (GW_PKT_ECHO_CE | GW_PKT_GIVEN_UP);
    if (is_nack && !(pkt->q.flags & GW_PKT_GIVEN_UP) && gw_prng_below(prng, 2))
        pkt->q.flags |= gw_prng_below(prng, 2) ? GW_PKT_NOT_READY : GW_PKT_READY;
    pkt->seq = gw_prng_below(prng, 100000);
    pkt->echo_entropy = (uint16_t)any32(prng);
    pkt->ack.cum = gw_prng_below(prng, 100000);
    if (!is_nack && gw_prng_below(prng, 2))
        pkt->ack.mask[gw_prng_below(prng, 2)] = any32(prng);
}

static void fill_agg(struct gw_prng *prng, uint32_t payload_max, struct gw_pkt *pkt)
{
    static const uint8_t of_grad = GW_AGG_RESEND | GW_AGG_FINAL | GW_AGG_EVEN | GW_AGG_ODD;
    static const uint8_t of_param = GW_AGG_MIXED | GW_AGG_REQUEST | GW_AGG_UNICAST | GW_AGG_FAILED;
    static const uint8_t common = GW_AGG_COLLISION | GW_AGG_RAW | GW_AGG_ECN | GW_AGG_SLOT;
    bool is_grad = pkt->q.kind == GW_PKT_GRAD;
    pkt->key = any32(prng);
    pkt->epoch = (uint16_t)any32(prng);
    pkt->scale = (uint8_t)any32(prng);
    pkt->agg_flags = (uint8_t)any32(prng) & (common | (is_grad ? of_grad : of_param));
    pkt->seq = any32(prng);
    pkt->index = (uint16_t)any32(prng);
    pkt->agg.bitmap = any32(prng);
    if (is_grad || !(pkt->agg_flags & (GW_AGG_REQUEST | GW_AGG_FAILED)))
        pkt->agg.values = (uint16_t)(1 + gw_prng_below(prng, payload_max / GW_WIRE_VALUE_SIZE));
    pkt->agg.level = (uint8_t)gw_prng_below(prng, 4);
    pkt->agg.above[0] = (uint8_t)gw_prng_below(prng, 32);
    pkt->agg.above[1] = (uint8_t)gw_prng_below(prng, 32);
    if (is_grad)
        pkt->agg.bound = (uint8_t)gw_prng_below(prng, GW_WIRE_BOUND_ONE + 1);
}

static void fill_job(struct gw_prng *prng, struct gw_pkt *pkt)
{
    pkt->key = any32(prng);
    pkt->epoch = (uint16_t)any32(prng);
    pkt->scale = (uint8_t)any32(prng);
    pkt->agg_flags = (uint8_t)gw_prng_below(prng, GW_JOB_OPS);
    if (pkt->agg_flags == GW_JOB_JOIN)
        pkt->q.flags = (uint8_t)(gw_prng_below(prng, GW_NOTICE_OPTIONS) << GW_JOB_OPTION_SHIFT);
    pkt->seq = any32(prng);
    pkt->index = (uint16_t)any32(prng);
    for (uint32_t i = 0; i < 3; i++)
        pkt->job.word[i] = any32(prng);
}

static void fill_hail(struct gw_prng *prng, struct gw_pkt *pkt)
{
    pkt->seq = any32(prng);
    pkt->index = (uint16_t)any32(prng);
    for (uint32_t i = 0; i < 2; i++)
        pkt->hail.word[i] = any32(prng);
    pkt->hail.op = (uint8_t)gw_prng_below(prng, GW_HAIL_OPS);
    pkt->hail.marks = (uint8_t)any32(prng);
    pkt->hail.number = (uint16_t)any32(prng);
}

static void fill_notice(struct gw_prng *prng, struct gw_pkt *pkt)
{
    pkt->seq = any32(prng);
    pkt->notice.job = any32(prng);
    pkt->notice.units = (uint8_t)gw_prng_below(prng, GW_NOTICE_UNITS_MAX + 1);
    pkt->notice.is_answer = pkt->q.class == GW_CLASS_CONTROL;
}

struct gw_pkt gw_random_pkt(struct gw_prng *prng, uint32_t payload_max, gw_time now)
{
    struct gw_pkt pkt;
    memset(&pkt, 0, sizeof(pkt));
    pkt.src = any32(prng);
    pkt.dst = any32(prng);
    pkt.flow = any32(prng);
    pkt.entropy = (uint16_t)any32(prng);
    pkt.buf = GW_BUF_NONE;
    gw_time sent_at = now - gw_prng_next(prng) % (120 * GW_S);
    do
        pkt.q.kind = (uint8_t)gw_prng_below(prng, GW_PKT_KINDS);
    while (pkt.q.kind == GW_ATTACH_KIND);
    pkt.q.class = (uint8_t)gw_prng_below(prng, GW_CLASSES);
    pkt.q.ecn = (uint8_t)gw_prng_below(prng, 4);
    pkt.q.key = gw_flow_key(pkt.src, pkt.dst, pkt.flow);
    switch ((enum gw_pkt_kind)pkt.q.kind) {
    case GW_PKT_DATA:
        pkt.sent_at = sent_at;
        fill_data(prng, payload_max, &pkt);
        break;
    case GW_PKT_ACK:
    case GW_PKT_NACK:
        pkt.sent_at = sent_at;
        fill_answer(prng, &pkt);
        break;
    case GW_PKT_GRAD:
    case GW_PKT_PARAM:
        fill_agg(prng, payload_max, &pkt);
        break;
    case GW_PKT_JOB:
        fill_job(prng, &pkt);
        break;
    case GW_PKT_PAUSE:
        pkt.pause = gw_prng_next(prng) >> (64 - GW_WIRE_TIME_BITS);
        break;
    case GW_PKT_CREDIT:
        pkt.seq = any32(prng);
        break;
    case GW_PKT_NOTICE:
        fill_notice(prng, &pkt);
        break;
    case GW_PKT_HAIL:
        pkt.sent_at = sent_at;
        fill_hail(prng, &pkt);
        break;
    case GW_PKT_KINDS:
        break;
    }
    if ((pkt.q.kind == GW_PKT_DATA || pkt.q.kind == GW_PKT_GRAD) && gw_prng_below(prng, 2))
        pkt.q.flags |= GW_PKT_HEAD;
    return pkt;
}
