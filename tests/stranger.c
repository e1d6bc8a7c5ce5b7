/* The hostile neighbour; see stranger.h. */
#include "stranger.h"

#include "pool_fixture.h"
#include "random_pkt.h"
#include "support.h"

#include "core/codec.h"
#include "core/job.h"
#include "core/ranks/mesh_wire.h"
#include "wire/wire.h"

enum {
    PKTS = 256,
    SEQ_SPAN = 256, /* fragments that may be under way */
    JOBS = 4,       /* that it makes up: more would fill the switches' tables, their owners' risk */
};

/* Tags of all that ranks and their registrar say to each other. */
static uint32_t random_tag(struct gw_prng *prng)
{
    uint32_t number = gw_prng_below(prng, 4);
    switch (gw_prng_below(prng, 7)) {
    case 0:
        return GW_MESH_TAG_TABLE;
    case 1:
        return GW_MESH_TAG_FAILURE;
    case 2:
        return GW_MESH_TAG_BYE;
    case 3:
        return GW_MESH_TAG_STORE | gw_prng_below(prng, 4) << 24 | number;
    case 4:
        return GW_MESH_TAG_MESSAGE | number;
    case 5:
        return gw_prng_below(prng, 16) << GW_MESH_SEGMENT_BITS | number;
    default:
        return (uint32_t)gw_prng_next(prng);
    }
}

/* What ranks send each other is short, and comes in few packets. */
static void guess_data(struct gw_prng *prng, uint32_t mtu, struct gw_pkt *pkt)
{
    static const uint16_t lengths[] = {1, 12, 24, 48, 100};
    uint32_t length = lengths[gw_prng_below(prng, 5)];
    length = length < mtu ? length : mtu;
    pkt->data.total = 1 + gw_prng_below(prng, 3);
    pkt->seq = gw_prng_below(prng, pkt->data.total);
    pkt->data.len = (uint16_t)length;
    pkt->data.mss =
        (uint16_t)(pkt->seq + 1 < pkt->data.total || gw_prng_below(prng, 2) ? length : mtu);
    pkt->data.tag = random_tag(prng);
    pkt->flow = (uint32_t)gw_prng_next(prng) & 0xffff0007;
}

static void guess_values(struct gw_prng *prng, struct gw_pkt *pkt)
{
    if (pkt->agg.values > 16)
        pkt->agg.values = (uint16_t)(1 + gw_prng_below(prng, 16));
    pkt->agg.bitmap = 1u << gw_prng_below(prng, 8);
    pkt->agg.level = (uint8_t)gw_prng_below(prng, 2);
    pkt->epoch = (uint16_t)gw_prng_below(prng, 3);
    pkt->seq = gw_prng_below(prng, 64);
    pkt->index = (uint16_t)gw_prng_below(prng, 1024);
}

static void guess_job(struct gw_prng *prng, struct gw_pkt *pkt)
{
    pkt->epoch = (uint16_t)gw_prng_below(prng, 3);
    pkt->seq = gw_prng_below(prng, 8);
    pkt->index = (uint16_t)gw_prng_below(prng, 8);
    for (uint32_t i = 0; i < 3; i++)
        pkt->job.word[i] = gw_prng_below(prng, 64);
}

/* What two ends of a flow say: their flows have small numbers. */
static void guess_answer(struct gw_prng *prng, struct gw_pkt *pkt)
{
    pkt->flow = gw_prng_below(prng, 8);
    pkt->seq = gw_prng_below(prng, 8);
    if (pkt->q.kind == GW_PKT_ACK || pkt->q.kind == GW_PKT_NACK)
        pkt->ack.cum = gw_prng_below(prng, 8);
    if (pkt->q.kind != GW_PKT_HAIL)
        return;
    pkt->hail.number = (uint16_t)gw_prng_below(prng, 4);
    for (uint32_t i = 0; i < 2; i++)
        pkt->hail.word[i] = gw_prng_below(prng, 2) ? gw_prng_below(prng, 8) : random_tag(prng);
}

/* Makes it such as somebody may wait for. */
static void guess(struct gw_prng *prng, uint32_t mtu, struct gw_pkt *pkt)
{
    switch ((enum gw_pkt_kind)pkt->q.kind) {
    case GW_PKT_DATA:
        guess_data(prng, mtu, pkt);
        break;
    case GW_PKT_GRAD:
    case GW_PKT_PARAM:
        guess_values(prng, pkt);
        break;
    case GW_PKT_JOB:
        guess_job(prng, pkt);
        break;
    case GW_PKT_NOTICE:
        pkt->seq = gw_prng_below(prng, 4);
        break;
    case GW_PKT_PAUSE:
    case GW_PKT_KINDS:
        break;
    default:
        guess_answer(prng, pkt);
    }
}

static uint32_t size_of(const struct gw_pkt *pkt)
{
    static const struct gw_codec codec = {.cookie = 0};
    struct gw_frame frame;
    gw_codec_encode(&codec, pkt, &frame);
    return frame.length;
}

void gw_stranger_fill(struct gw_prng *prng, struct gw_pkt_pool *pool, uint32_t mtu, gw_time now,
                      struct gw_pkt *pkt)
{
    *pkt = gw_random_pkt(prng, mtu, now);
    if (gw_prng_below(prng, 4))
        guess(prng, mtu, pkt);
    pkt->q.size = size_of(pkt);
    uint32_t length = gw_codec_payload(pkt);
    if (length)
        pkt->buf = gw_buf_claim(pool->bufs);
    if (pkt->buf == GW_BUF_NONE)
        return;
    uint8_t *bytes = gw_buf_bytes(pool->bufs, pkt->buf);
    for (uint32_t i = 0; i < length; i++)
        bytes[i] = (uint8_t)(gw_prng_next(prng) >> (gw_prng_below(prng, 2) ? 60 : 0));
}

bool gw_stranger_names_job(const struct gw_pkt *pkt)
{
    return pkt->q.kind == GW_PKT_JOB || pkt->q.kind == GW_PKT_GRAD || pkt->q.kind == GW_PKT_PARAM ||
           pkt->q.kind == GW_PKT_NOTICE;
}

void gw_stranger_name_job(struct gw_pkt *pkt, uint32_t job)
{
    if (pkt->q.kind == GW_PKT_NOTICE)
        pkt->notice.job = job;
    else
        pkt->flow = job;
}

/* It knows the number of the job, though only they should who have its key. */
static void choose_job(struct gw_stranger *s, struct gw_pkt *pkt)
{
    uint32_t job = gw_job_shard(s->cfg.job, gw_prng_below(&s->prng, 3));
    if (gw_prng_below(&s->prng, 2))
        job = GW_STRANGER_JOBS + gw_prng_below(&s->prng, JOBS);
    else if (gw_prng_below(&s->prng, 2))
        job = gw_job_shard_direct(job);
    gw_stranger_name_job(pkt, job);
    if (s->cfg.epoch && pkt->q.kind != GW_PKT_NOTICE && gw_prng_below(&s->prng, 2))
        pkt->epoch = s->cfg.epoch;
    if (pkt->q.kind == GW_PKT_JOB && s->cfg.switches && gw_prng_below(&s->prng, 2))
        pkt->job.word[2] = s->cfg.switch_address + gw_prng_below(&s->prng, s->cfg.switches);
}

static struct gw_pkt_pool *pool_of(struct gw_stranger *s)
{
    return s->cfg.pool ? s->cfg.pool : &s->pool;
}

/* A gradient or result such as the job waits for, by all that it knows. */
static void aim(struct gw_stranger *s, struct gw_pkt *pkt)
{
    struct gw_prng *prng = &s->prng;
    uint32_t buf = pkt->buf;
    *pkt = (struct gw_pkt){
        .q = {.kind = gw_prng_below(prng, 4) ? GW_PKT_GRAD : GW_PKT_PARAM,
              .class = 1,
              .ecn = GW_ECN_ECT0},
        .buf = buf,
        .epoch = s->cfg.epoch,
        .seq = s->cfg.seq + gw_prng_below(prng, SEQ_SPAN),
        .index = (uint16_t)gw_prng_below(prng, 4096),
        .flow = gw_prng_below(prng, 2) ? s->cfg.job : gw_job_shard_direct(s->cfg.job),
        .agg = {.values = (uint16_t)(s->cfg.mtu / GW_WIRE_VALUE_SIZE),
                .bitmap = 1u << gw_prng_below(prng, 2),
                .level = (uint8_t)gw_prng_below(prng, 2)},
    };
    if (pkt->buf == GW_BUF_NONE)
        pkt->buf = gw_buf_claim(pool_of(s)->bufs);
    if (pkt->buf != GW_BUF_NONE)
        memset(gw_buf_bytes(pool_of(s)->bufs, pkt->buf), 1, s->cfg.mtu);
    pkt->q.size = size_of(pkt);
}

static uint32_t random_target(struct gw_stranger *s)
{
    return s->cfg.targets[gw_prng_below(&s->prng, s->cfg.target_count)];
}

static uint32_t output(struct gw_node *node, uint16_t port, struct gw_pkt **pkts, uint32_t max,
                       gw_time now)
{
    struct gw_stranger *s = (struct gw_stranger *)node;
    struct gw_pkt_pool *pool = pool_of(s);
    (void)port;
    s->is_ready = false;
    struct gw_pkt *pkt = max ? gw_pkt_claim(pool) : NULL;
    if (!pkt)
        return 0;
    gw_stranger_fill(&s->prng, pool, s->cfg.mtu, now, pkt);
    bool is_aimed = s->cfg.epoch && gw_prng_below(&s->prng, 2);
    if (is_aimed)
        aim(s, pkt);
    pkt->src = s->cfg.address;
    if (s->cfg.is_unchecked && gw_prng_below(&s->prng, 4) == 0)
        pkt->src = random_target(s);
    pkt->dst = random_target(s);
    if (gw_stranger_names_job(pkt) && !is_aimed)
        choose_job(s, pkt);
    pkt->q.key = gw_flow_key(pkt->src, pkt->dst, pkt->flow);
    bool is_allowed = gw_permit_allows(&s->permit, pkt);
    *(is_allowed ? &s->sent : &s->held) += 1;
    if (!is_allowed && !s->cfg.is_unchecked) {
        gw_pkt_release(pool, pkt);
        return 0;
    }
    pkts[0] = pkt;
    return 1;
}

static void input(struct gw_node *node, uint16_t port, struct gw_pkt **pkts, uint32_t count,
                  gw_time now)
{
    struct gw_stranger *s = (struct gw_stranger *)node;
    (void)port;
    (void)now;
    for (uint32_t i = 0; i < count; i++)
        gw_pkt_release(pool_of(s), pkts[i]);
}

static void expire(struct gw_node *node, gw_time now)
{
    struct gw_stranger *s = (struct gw_stranger *)node;
    node->deadline = gw_time_add(now, 1 + gw_prng_next(&s->prng) % s->cfg.pause);
    gw_node_report(node, 0, &s->is_ready);
}

static const struct gw_node_ops stranger_ops = {input, output, expire};

void gw_stranger_open(struct gw_stranger *stranger, const struct gw_stranger_cfg *cfg)
{
    *stranger = (struct gw_stranger){
        .node = {.ops = &stranger_ops, .port_count = 1},
        .cfg = *cfg,
        .prng = gw_prng_derive(cfg->seed, 0x57a),
        .permit = {.address = cfg->address, .job = cfg->own_job},
    };
    stranger->node.ready = stranger->ready;
    if (!cfg->pool)
        gw_test_pool_open(&stranger->pool, &stranger->bufs, PKTS, cfg->mtu);
}

void gw_stranger_hush(struct gw_node *node)
{
    node->deadline = GW_TIME_NEVER;
}

void gw_stranger_close(struct gw_stranger *stranger)
{
    if (!stranger->cfg.pool)
        gw_test_pool_close(&stranger->pool);
}
