/*
 * Micro benchmarks of the nodes, through the four verbs: two endpoints back to back, a switch, and
 * one that makes room for announced bursts.
 */
#include "micro.h"

#include "core/host/endpoint.h"
#include "core/switch/switch.h"

enum {
    SWITCH_PORTS = 16,
    SWITCH_UPLINKS = 8, /* the other ports have a host each */
    BLOCK_SHIFT = 3,    /* log2 of the hosts of a switch */
    DESTINATIONS = 128, /* hosts of a fat tree of 8-port switches */
};

/* Endpoints: data from one to the other and the ACK back, through the verbs; no network between. */

struct endpoint_bench {
    struct gw_pkt_pool pool;
    struct gw_transport transport;
    struct gw_node *sender;
    struct gw_node *receiver;
    gw_time now;
};

/* Pulls up to GW_BENCH_BATCH packets of a node's only port. */
static uint32_t pull(struct gw_node *node, struct gw_pkt **pkts, gw_time now)
{
    uint32_t count = 0;
    uint32_t answer = node->ready_count ? GW_OUTPUT_MORE : 0;
    while (answer & GW_OUTPUT_MORE && count < GW_BENCH_BATCH) {
        answer = gw_node_output(node, 0, pkts + count, 1, now);
        count += answer & ~GW_OUTPUT_MORE;
    }
    /* A port that has more is pulled again without a new report. */
    node->ready_count = answer & GW_OUTPUT_MORE ? 1 : 0;
    return count;
}

static void endpoint_run(void *state, uint64_t count)
{
    struct endpoint_bench *b = state;
    struct gw_pkt *pkts[GW_BENCH_BATCH];
    for (uint64_t done = 0; done < count;) {
        uint32_t data = pull(b->sender, pkts, b->now);
        GW_ASSERT(data > 0);
        done += data;
        b->now += gw_bench_path.brtt;
        for (uint32_t i = 0; i < data; i++)
            gw_node_input(b->receiver, 0, &pkts[i], 1, b->now);
        uint32_t answers = pull(b->receiver, pkts, b->now);
        for (uint32_t i = 0; i < answers; i++)
            gw_node_input(b->sender, 0, &pkts[i], 1, b->now);
        gw_node_expire(b->sender, b->now);
        gw_node_expire(b->receiver, b->now);
    }
}

static struct gw_endpoint *endpoint_make(struct endpoint_bench *b, uint32_t address)
{
    struct gw_endpoint_cfg cfg = {
        .address = address,
        .port_count = 1,
        .tx_flows_max = 64,
        .rx_flows_max = 64,
        .span_max = 1024,
        .control_max = UINT32_MAX,
        .mtu = GW_BENCH_MTU,
        .hdr = GW_BENCH_HDR,
        .ack_every = 1,
        .train = 1,
        .seed = address,
        .pool = &b->pool,
    };
    return gw_endpoint_init(gw_bench_take(gw_endpoint_size(&cfg)), &cfg);
}

static void add_endpoint(struct gw_bench_suite *suite)
{
    struct endpoint_bench *b = gw_bench_take(sizeof(*b));
    gw_pkt_pool_init(&b->pool, gw_bench_take(4 * GW_BENCH_BATCH * sizeof(struct gw_pkt)), 0,
                     4 * GW_BENCH_BATCH, NULL);
    b->transport = (struct gw_transport){
        .cc = (const struct gw_cc_ops *)gw_registry_find(&gw_cc_registry, "smartt"),
        .lb = (const struct gw_lb_ops *)gw_registry_find(&gw_lb_registry, "reps"),
        .loss = (const struct gw_loss_ops *)gw_registry_find(&gw_loss_registry, "trim"),
    };
    gw_algo_defaults(&b->transport.cc->algo, &b->transport.cc_cfg);
    gw_algo_defaults(&b->transport.lb->algo, &b->transport.lb_cfg);
    gw_algo_defaults(&b->transport.loss->algo, &b->transport.loss_cfg);
    struct gw_endpoint *sender = endpoint_make(b, 0);
    b->sender = gw_endpoint_node(sender);
    b->receiver = gw_endpoint_node(endpoint_make(b, 1));
    struct gw_send send = {
        .peer = 1,
        .bytes = (uint64_t)(UINT32_MAX - 1) * GW_BENCH_MTU, /* never ends while it is measured */
        .transport = &b->transport,
        .path = gw_bench_path,
    };
    uint32_t flow;
    GW_ASSERT(gw_endpoint_send(sender, &send, &flow, b->now) == 0);
    gw_bench_add(suite, "endpoints: data out, in, ACK out, in", endpoint_run, b);
}

/* Switch: packets to random hosts in, half of them by ECMP, and all out again. */

struct switch_bench {
    struct gw_pkt_pool pool;
    union gw_algo_cfg qdisc_cfg;
    struct gw_node *node;
    uint16_t blocks[DESTINATIONS >> BLOCK_SHIFT];
    uint16_t leaves[2 << BLOCK_SHIFT]; /* the hosts of this switch, then all others */
    uint16_t members[SWITCH_UPLINKS];
    struct gw_switch_set uplinks;
    uint32_t destinations[GW_BENCH_INPUTS];
    uint64_t sequence; /* packets so far */
};

static void switch_drain(struct switch_bench *b)
{
    struct gw_pkt *pkt;
    for (uint16_t i = 0; i < b->node->ready_count; i++) {
        uint32_t answer = GW_OUTPUT_MORE;
        while (answer & GW_OUTPUT_MORE) {
            answer = gw_node_output(b->node, b->node->ready[i], &pkt, 1, 0);
            gw_pkt_release(&b->pool, pkt);
        }
    }
    b->node->ready_count = 0;
}

static void switch_run(void *state, uint64_t count)
{
    struct switch_bench *b = state;
    for (uint64_t done = 0; done < count; done += GW_BENCH_BATCH) {
        for (uint32_t i = 0; i < GW_BENCH_BATCH; i++) {
            struct gw_pkt *pkt = gw_pkt_claim(&b->pool);
            uint64_t sequence = b->sequence++;
            pkt->q = (struct gw_qpkt){.size = GW_BENCH_MTU + GW_BENCH_HDR,
                                      .flags = GW_PKT_TRIMMABLE,
                                      .key = 1,
                                      .ecn = GW_ECN_ECT0};
            pkt->dst = b->destinations[sequence % GW_BENCH_INPUTS];
            pkt->entropy = (uint16_t)sequence;
            gw_node_input(b->node, (uint16_t)(i % SWITCH_PORTS), &pkt, 1, 0);
        }
        switch_drain(b);
    }
}

static const struct gw_switch_notice_cfg notice_cfg = {
    .packet = GW_BENCH_MTU + GW_BENCH_HDR,
    .floor = 5,
    .hold = 40 * GW_US,
    .share = GW_Q16_ONE / 4,
    .save = 160 * GW_US,
    .jobs_max = 32,
    .announcements_max = 4096,
};

/* The row of a switch of 16 ports; with `notice` it has the stage of notices. */
static void add_switch(struct gw_bench_suite *suite, const char *name,
                       const struct gw_switch_notice_cfg *notice)
{
    struct switch_bench *b = gw_bench_take(sizeof(*b));
    struct gw_prng prng = gw_prng_derive(4, 0);
    const struct gw_algo *trim = gw_registry_find(&gw_qdisc_registry, "trim");
    uint32_t capacity[SWITCH_PORTS];
    gw_algo_defaults(trim, &b->qdisc_cfg);
    gw_pkt_pool_init(&b->pool, gw_bench_take(GW_BENCH_BATCH * sizeof(struct gw_pkt)), 0,
                     GW_BENCH_BATCH, NULL);
    const uint32_t hosts = SWITCH_PORTS - SWITCH_UPLINKS;
    for (uint32_t port = 0; port < SWITCH_PORTS; port++)
        capacity[port] = GW_BENCH_BDP;
    for (uint32_t i = 0; i < SWITCH_UPLINKS; i++)
        b->members[i] = (uint16_t)(hosts + i);
    b->uplinks.count = SWITCH_UPLINKS;
    for (uint32_t host = 0; host < hosts; host++) {
        b->leaves[host] = (uint16_t)host;
        b->leaves[hosts + host] = GW_ROUTE_SET;
    }
    for (uint32_t block = 1; block < DESTINATIONS >> BLOCK_SHIFT; block++)
        b->blocks[block] = 1;
    for (uint32_t i = 0; i < GW_BENCH_INPUTS; i++)
        b->destinations[i] = gw_prng_below(&prng, i % 2 ? hosts : DESTINATIONS);
    struct gw_switch_cfg cfg = {
        .port_count = SWITCH_PORTS,
        .qdisc = (const struct gw_qdisc_ops *)trim,
        .qdisc_cfg = &b->qdisc_cfg,
        .capacity = capacity,
        .trim_size = GW_BENCH_HDR,
        .routes = {.blocks = b->blocks,
                   .leaves = b->leaves,
                   .sets = &b->uplinks,
                   .members = b->members,
                   .destination_count = DESTINATIONS,
                   .block_shift = BLOCK_SHIFT},
        .notice = notice,
        .seed = 4,
        .pool = &b->pool,
    };
    b->node = gw_switch_node(gw_switch_init(gw_bench_take(gw_switch_size(&cfg)), &cfg));
    gw_bench_add(suite, name, switch_run, b);
}

/* Notices: bursts of some jobs by some links, each announced, and begun a while later. */

enum {
    BURSTS_OPEN = 64, /* announced before the first of them begins */
    BURST_JOBS = 4,
};

struct notice_bench {
    struct gw_switch_notice *stage;
    uint64_t sequence;
    gw_time now;
};

/* A notice or head of burst number `i`. */
static void notice_pkt(struct gw_pkt *pkt, struct gw_switch_hop *hop, uint64_t i)
{
    *hop = (struct gw_switch_hop){.in = (uint16_t)(i % SWITCH_UPLINKS), .out = SWITCH_PORTS - 1};
    *pkt = (struct gw_pkt){
        .src = (uint32_t)i % BURSTS_OPEN,
        .dst = 1000,
        .flow = (uint32_t)i,
        .notice = {.job = (uint32_t)i % BURST_JOBS, .units = 2},
    };
}

static void notice_run(void *state, uint64_t count)
{
    struct notice_bench *b = state;
    struct gw_switch_notice_change change;
    struct gw_switch_hop hop;
    struct gw_pkt pkt;
    for (uint64_t done = 0; done < count; done++, b->sequence++) {
        b->now += GW_US / 4;
        notice_pkt(&pkt, &hop, b->sequence + BURSTS_OPEN);
        gw_switch_notice_announce(b->stage, &hop, &pkt, b->now);
        notice_pkt(&pkt, &hop, b->sequence);
        gw_switch_notice_head(b->stage, &hop, &pkt, 1, b->now);
        while (gw_switch_notice_next(b->stage, &change))
            gw_bench_sink += change.bytes;
    }
}

static void add_notice(struct gw_bench_suite *suite)
{
    struct notice_bench *b = gw_bench_take(sizeof(*b));
    struct gw_switch_notice_cfg cfg = notice_cfg;
    cfg.share = GW_Q16_ONE; /* so that all are honoured */
    void *memory = gw_bench_take(gw_switch_notice_size(&cfg, SWITCH_PORTS));
    b->stage = gw_switch_notice_init(memory, &cfg, SWITCH_PORTS, 4);
    gw_bench_add(suite, "stage of notices: notice + head", notice_run, b);
}

void gw_bench_add_nodes(struct gw_bench_suite *suite)
{
    add_endpoint(suite);
    add_switch(suite, "switch of 16 ports: input + output", NULL);
    add_switch(suite, "switch that makes room: input + output", &notice_cfg);
    add_notice(suite);
}
