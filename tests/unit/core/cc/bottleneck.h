/*
 * Congestion control over one bottleneck link, for tests: n senders of 800 Gb/s, the real trimming
 * discipline, one real algorithm, and a hand-cranked event loop with host jitter.
 */
#ifndef GW_TESTS_BOTTLENECK_H
#define GW_TESTS_BOTTLENECK_H

#include "support.h"

#include "base/heap.h"
#include "core/cc/cc.h"
#include "core/qdisc/qdisc.h"

enum {
    SENDERS_MAX = 100,
    PACKETS = 1 << 16,
    MTU = 4096,
    HDR = 64,
    WIRE = MTU + HDR,
    BDP = 1145300,
    ENDLESS = 1 << 30,
};

/* 800 Gb/s and the base RTT of three tiers with 600 ns links and 400 ns switches. */
#define RATE    UINT64_C(800000000000)
#define BRTT    (UINT64_C(11453) * GW_NS)
#define PKT_GAP (UINT64_C(41600)) /* ps that a full packet takes */

static const struct gw_path PATH = {
    .brtt = BRTT,
    .brtt_max = BRTT,
    .rate_bps = RATE,
    .bdp = BDP,
    .mtu = MTU,
    .hdr = HDR,
    .hops = 6,
    .trims = true,
};

struct sender {
    _Alignas(8) unsigned char cc[GW_CC_STATE_MAX];
    struct gw_cc_window window;
    union gw_algo_cfg cfg;
    uint32_t in_flight;
    uint32_t fresh;   /* packets sent for the first time */
    uint32_t lost;    /* packets that wait to be sent again; which ones does not matter here */
    uint32_t acked;   /* packets */
    gw_time nic_free; /* when the port has sent what it was given */
    gw_time pace_at;  /* earliest time of the next packet when paced */
    gw_time ended;    /* when the last packet was acknowledged */
};

struct model {
    struct gw_pkt_pool pool;
    struct gw_heap heap; /* ids: packets, then senders that start or wait, then the link */
    void *heap_memory;
    struct gw_prng prng;
    const struct gw_cc_ops *cc;
    const struct gw_qdisc_ops *qdisc;
    union gw_algo_cfg qdisc_cfg;
    struct gw_qdisc_port port;
    _Alignas(8) unsigned char queue[GW_QDISC_STATE_MAX];
    struct gw_pkt *in_service;
    struct sender senders[SENDERS_MAX];
    uint32_t count;
    uint32_t size; /* packets per flow */
    uint32_t running;
    uint64_t link_bps;
    uint64_t trims;
    bool quick_adapt; /* senders have QuickAdapt besides; set it before they start */
    gw_time now;
    /* Called after the algorithm had its feedback, with the state from before; may be NULL. */
    void (*check)(struct model *m, struct sender *s, const void *before, gw_time rtt);
    void *check_context;
};

static struct gw_pkt packets[PACKETS];

static struct model *model_open(const char *cc, uint32_t count, uint32_t size, uint64_t seed)
{
    struct model *m = calloc(1, sizeof(*m));
    assert_non_null(m);
    gw_pkt_pool_init(&m->pool, packets, 0, PACKETS, NULL);
    m->heap_memory = malloc(gw_heap_size(PACKETS + SENDERS_MAX + 1));
    assert_non_null(m->heap_memory);
    gw_heap_init(&m->heap, m->heap_memory, PACKETS + SENDERS_MAX + 1);
    m->prng = gw_prng_derive(seed, 0);
    m->cc = (const void *)gw_registry_find(&gw_cc_registry, cc);
    assert_non_null(m->cc);
    m->qdisc = (const void *)gw_registry_find(&gw_qdisc_registry, "trim");
    gw_algo_defaults(&m->qdisc->algo, &m->qdisc_cfg);
    m->qdisc->init(m->queue, &m->qdisc_cfg, BDP);
    m->port = (struct gw_qdisc_port){.pool = &m->pool, .prng = &m->prng, .trim_size = HDR};
    m->count = m->running = count;
    m->size = size;
    m->link_bps = RATE;
    return m;
}

static void model_close(struct model *m)
{
    free(m->heap_memory);
    free(m);
}

/* Starts a sender at time 0, with a preset and a first window, each unless NULL. */
static void sender_start(struct model *m, uint32_t index, const char *preset, const char *initial)
{
    struct sender *s = &m->senders[index];
    gw_algo_defaults(&m->cc->algo, &s->cfg);
    if (preset)
        assert_int_equal(gw_algo_preset(&m->cc->algo, &s->cfg, preset), 0);
    if (initial)
        assert_int_equal(gw_algo_set(&m->cc->algo, &s->cfg, "cwnd_initial", initial), 0);
    if (m->quick_adapt)
        assert_int_equal(gw_algo_set(&m->cc->algo, &s->cfg, "quick_adapt", "yes"), 0);
    m->cc->init(s->cc, &s->cfg, &PATH, &s->window, 0);
    gw_heap_set(&m->heap, PACKETS + index, 0);
}

static void sender_send(struct model *m, struct sender *s)
{
    while ((s->lost > 0 || s->fresh < m->size) &&
           (s->in_flight == 0 || s->in_flight + MTU <= s->window.cwnd)) {
        if (s->window.pace && s->pace_at > m->now) {
            gw_heap_set(&m->heap, PACKETS + (uint32_t)(s - m->senders), s->pace_at);
            return;
        }
        struct gw_pkt *pkt = gw_pkt_claim(&m->pool);
        assert_non_null(pkt);
        s->lost > 0 ? s->lost-- : s->fresh++;
        gw_time start = s->nic_free > m->now ? s->nic_free : m->now;
        s->nic_free = start + PKT_GAP;
        s->pace_at = start + gw_serialisation(s->window.pace, WIRE);
        s->in_flight += MTU;
        pkt->q = (struct gw_qpkt){
            .size = WIRE, .ecn = GW_ECN_ECT0, .flags = GW_PKT_TRIMMABLE, .kind = GW_PKT_DATA};
        pkt->src = (uint32_t)(s - m->senders);
        pkt->sent_at = start;
        /* Half the base RTT lies before the end of the bottleneck's service. */
        gw_time jitter = gw_prng_below(&m->prng, PKT_GAP);
        gw_heap_set(&m->heap, gw_pkt_index(&m->pool, pkt), start + BRTT / 2 - PKT_GAP + jitter);
    }
}

static void link_serve(struct model *m)
{
    m->in_service = m->qdisc->dequeue(m->queue, &m->qdisc_cfg, &m->port);
    if (m->in_service)
        gw_heap_set(
            &m->heap, PACKETS + SENDERS_MAX,
            m->now + gw_serialisation(gw_byte_time_from_bps(m->link_bps), m->in_service->q.size));
}

static void link_arrive(struct model *m, struct gw_pkt *pkt)
{
    struct gw_pkt *victim = NULL;
    enum gw_qdisc_verdict verdict =
        m->qdisc->enqueue(m->queue, &m->qdisc_cfg, &m->port, pkt, UINT64_MAX, &victim);
    assert_int_not_equal(verdict, GW_QDISC_DROPPED);
    m->trims += verdict == GW_QDISC_TRIMMED;
    if (!m->in_service)
        link_serve(m);
}

static void link_depart(struct model *m)
{
    struct gw_pkt *pkt = m->in_service;
    pkt->q.kind = pkt->q.flags & GW_PKT_TRIMMED ? GW_PKT_NACK : GW_PKT_ACK;
    gw_heap_set(&m->heap, gw_pkt_index(&m->pool, pkt), m->now + BRTT / 2);
    link_serve(m);
}

static void sender_feedback(struct model *m, struct gw_pkt *pkt)
{
    struct sender *s = &m->senders[pkt->src];
    unsigned char before[GW_CC_STATE_MAX];
    memcpy(before, s->cc, sizeof(before));
    s->in_flight -= MTU;
    gw_time rtt = m->now - pkt->sent_at;
    if (pkt->q.kind == GW_PKT_ACK) {
        struct gw_cc_ack ack = {
            .bytes = MTU, .in_flight = s->in_flight, .rtt = rtt, .ce = pkt->q.ecn == GW_ECN_CE};
        m->cc->on_ack(s->cc, &s->cfg, &PATH, &ack, &s->window, m->now);
        if (++s->acked == m->size) {
            s->ended = m->now;
            m->running--;
        }
    } else {
        struct gw_cc_loss loss = {.bytes = MTU, .in_flight = s->in_flight, .trimmed = true};
        m->cc->on_loss(s->cc, &s->cfg, &PATH, &loss, &s->window, m->now);
        s->lost++;
    }
    gw_pkt_release(&m->pool, pkt);
    if (m->check)
        m->check(m, s, before, rtt);
    sender_send(m, s);
}

/* Runs until all flows have ended or `limit` has come. */
static void model_run(struct model *m, gw_time limit)
{
    while (m->running > 0 && gw_heap_next(&m->heap) <= limit) {
        uint32_t id = gw_heap_first(&m->heap);
        m->now = gw_heap_next(&m->heap);
        gw_heap_set(&m->heap, id, GW_TIME_NEVER);
        if (id == PACKETS + SENDERS_MAX)
            link_depart(m);
        else if (id >= PACKETS)
            sender_send(m, &m->senders[id - PACKETS]);
        else if (packets[id].q.kind == GW_PKT_DATA)
            link_arrive(m, &packets[id]);
        else
            sender_feedback(m, &packets[id]);
    }
}

/* Jain's index of the first two senders' windows: 1 is fair, 0.5 means that one has all. */
static inline double model_jain(const struct model *m)
{
    double a = (double)m->senders[0].window.cwnd, b = (double)m->senders[1].window.cwnd;
    return (a + b) * (a + b) / (2 * (a * a + b * b));
}

#endif
