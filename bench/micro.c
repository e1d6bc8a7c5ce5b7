/*
 * gw_bench_micro: nanoseconds per operation of the core's hot paths, one at a time.
 *
 * Every algorithm of the registries is measured, so that a new file appears here with its registry
 * line. The operations take turns, each several times, and the median counts: a disturbance of the
 * machine then hits a few measurements of many operations and not all of one. All data fits the
 * cache, so these are costs of instructions; what memory adds is seen in whole simulations
 * (bench/sim).
 *
 * The only file here that reads a clock. Not a test: nothing depends on what it finds.
 */
#include <argp.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/heap.h"
#include "base/map.h"
#include "core/codec.h"
#include "core/endpoint.h"
#include "core/qdisc/qdisc.h"
#include "core/switch.h"

enum {
    BENCHES_MAX = 128,
    NAME_MAX_SIZE = 48,
    REPETITIONS = 15,
    BATCH = 64,    /* operations between two steps of time, and packets of one round trip */
    INPUTS = 1024, /* prepared random inputs, a power of two */
    MTU = 4096,
    HDR = 64,
    BDP = 1145300,
    SWITCH_PORTS = 16,
    SWITCH_UPLINKS = 8, /* the other ports have a host each */
    BLOCK_SHIFT = 3,    /* log2 of the hosts of a switch */
    DESTINATIONS = 128, /* hosts of a fat tree of 8-port switches */
    MAP_ENTRIES = 4096,
    HEAP_IDS = 1024,
    ALIGNMENT = 64,
};

/* Long enough for the clock, short enough for many turns. */
static const double MEASURE_NS = 10e6;

/* Three tiers at 800 Gb/s, 600 ns links and 400 ns switches. */
static const struct gw_path PATH = {
    .brtt = 11453 * GW_NS,
    .brtt_max = 11453 * GW_NS,
    .rate_bps = UINT64_C(800000000000),
    .bdp = BDP,
    .mtu = MTU,
    .hdr = HDR,
    .hops = 6,
    .trims = true,
};

/* One measured operation. `run` does it `count` times, a multiple of BATCH. */
struct bench {
    char name[NAME_MAX_SIZE];
    void (*run)(void *state, uint64_t count);
    void *state;
    uint64_t count;         /* operations of one measurement */
    double ns[REPETITIONS]; /* per operation, in the order of measuring; sorted at the end */
};

struct suite {
    struct bench benches[BENCHES_MAX];
    uint32_t count;
};

/* What an operation found out goes here, so that the compiler cannot leave it out. */
static volatile uint64_t sink;

_Noreturn void gw_assert_failed(const char *condition, const char *file, int line)
{
    fprintf(stderr, "gw_bench_micro: %s:%d: %s does not hold\n", file, line, condition);
    abort();
}

static void *take(size_t size)
{
    size_t whole = (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    void *memory = aligned_alloc(ALIGNMENT, whole);
    if (!memory) {
        fprintf(stderr, "gw_bench_micro: out of memory (%zu bytes)\n", size);
        exit(EXIT_FAILURE);
    }
    return memset(memory, 0, whole);
}

static void add(struct suite *suite, const char *name, void (*run)(void *, uint64_t), void *state)
{
    GW_ASSERT(suite->count < BENCHES_MAX);
    struct bench *bench = &suite->benches[suite->count++];
    snprintf(bench->name, sizeof(bench->name), "%s", name);
    bench->run = run;
    bench->state = state;
}

/* As add(), for an algorithm of a registry: "kind name: what". */
static void add_algo(struct suite *suite, const struct gw_registry *registry,
                     const struct gw_algo *algo, const char *what, void (*run)(void *, uint64_t),
                     void *state)
{
    char name[NAME_MAX_SIZE];
    snprintf(name, sizeof(name), "%s %s: %s", registry->kind, algo->name, what);
    add(suite, name, run, state);
}

/* Congestion control: a window's worth of random feedback, a quarter of it marked. */

struct cc_bench {
    const struct gw_cc_ops *ops;
    union gw_algo_cfg cfg;
    uint64_t state[GW_CC_STATE_MAX / 8];
    struct gw_cc_window window;
    struct gw_cc_ack acks[INPUTS];
    gw_time now;
};

static void cc_run(void *state, uint64_t count)
{
    struct cc_bench *b = state;
    const gw_time packet_time = gw_path_packet_time(&PATH);
    for (uint64_t i = 0; i < count; i++) {
        b->now += packet_time;
        b->ops->on_ack(b->state, &b->cfg, &PATH, &b->acks[i % INPUTS], &b->window, b->now);
    }
    sink += b->window.cwnd;
}

static void add_cc(struct suite *suite, const struct gw_algo *algo)
{
    struct cc_bench *b = take(sizeof(*b));
    struct gw_prng prng = gw_prng_derive(1, 0);
    b->ops = (const struct gw_cc_ops *)algo;
    gw_algo_defaults(algo, &b->cfg);
    b->ops->init(b->state, &b->cfg, &PATH, &b->window, b->now);
    for (uint32_t i = 0; i < INPUTS; i++)
        b->acks[i] = (struct gw_cc_ack){
            .bytes = MTU,
            .in_flight = BDP / 2,
            .rtt = PATH.brtt + gw_prng_below(&prng, (uint32_t)PATH.brtt),
            .ce = gw_prng_below(&prng, 4) == 0,
        };
    add_algo(suite, &gw_cc_registry, algo, "on_ack", cc_run, b);
}

/* Load balancing: pick an entropy, hear of the one picked a batch earlier. */

struct lb_bench {
    const struct gw_lb_ops *ops;
    union gw_algo_cfg cfg;
    uint64_t state[GW_LB_STATE_MAX / 8];
    uint16_t picked[BATCH];
    bool ce[INPUTS];
    gw_time now;
};

static void lb_run(void *state, uint64_t count)
{
    struct lb_bench *b = state;
    const gw_time packet_time = gw_path_packet_time(&PATH);
    for (uint64_t i = 0; i < count; i++) {
        b->now += packet_time;
        b->ops->on_ack(b->state, &b->cfg, b->picked[i % BATCH], b->ce[i % INPUTS], b->now);
        b->picked[i % BATCH] = b->ops->pick(b->state, &b->cfg, MTU, b->now);
    }
    sink += b->picked[0];
}

static void add_lb(struct suite *suite, const struct gw_algo *algo)
{
    struct lb_bench *b = take(sizeof(*b));
    struct gw_prng prng = gw_prng_derive(2, 0);
    b->ops = (const struct gw_lb_ops *)algo;
    gw_algo_defaults(algo, &b->cfg);
    b->ops->init(b->state, &b->cfg, &PATH, gw_prng_derive(2, 1));
    for (uint32_t i = 0; i < INPUTS; i++)
        b->ce[i] = gw_prng_below(&prng, 4) == 0;
    add_algo(suite, &gw_lb_registry, algo, "pick + on_ack", lb_run, b);
}

/* Queue discipline: one packet in, one out, with a standing queue in the range of marking. */

struct qdisc_bench {
    const struct gw_qdisc_ops *ops;
    union gw_algo_cfg cfg;
    uint64_t state[GW_QDISC_STATE_MAX / 8];
    struct gw_pkt_pool pool;
    struct gw_prng prng;
    struct gw_qdisc_port port;
    struct gw_pkt *spare; /* the packet that is not queued */
};

static void qdisc_run(void *state, uint64_t count)
{
    struct qdisc_bench *b = state;
    struct gw_pkt *victim;
    for (uint64_t i = 0; i < count; i++) {
        b->spare->q.ecn = GW_ECN_ECT0;
        enum gw_qdisc_verdict verdict =
            b->ops->enqueue(b->state, &b->cfg, &b->port, b->spare, UINT64_MAX, &victim);
        GW_DEBUG_ASSERT(verdict == GW_QDISC_QUEUED);
        (void)verdict;
        b->spare = b->ops->dequeue(b->state, &b->cfg, &b->port);
    }
    sink += b->spare->q.ecn;
}

static void add_qdisc(struct suite *suite, const struct gw_algo *algo)
{
    struct qdisc_bench *b = take(sizeof(*b));
    struct gw_pkt *victim;
    b->ops = (const struct gw_qdisc_ops *)algo;
    gw_algo_defaults(algo, &b->cfg);
    gw_pkt_pool_init(&b->pool, take((BATCH + 1) * sizeof(struct gw_pkt)), 0, BATCH + 1, NULL);
    b->prng = gw_prng_derive(3, 0);
    b->port = (struct gw_qdisc_port){.pool = &b->pool, .prng = &b->prng, .trim_size = HDR};
    b->ops->init(b->state, &b->cfg, 2 * BATCH * (MTU + HDR));
    for (uint32_t i = 0; i < BATCH; i++) {
        struct gw_pkt *pkt = gw_pkt_claim(&b->pool);
        pkt->q = (struct gw_qpkt){.size = MTU + HDR, .flags = GW_PKT_TRIMMABLE, .key = i};
        b->ops->enqueue(b->state, &b->cfg, &b->port, pkt, UINT64_MAX, &victim);
    }
    b->spare = gw_pkt_claim(&b->pool);
    b->spare->q = (struct gw_qpkt){.size = MTU + HDR, .flags = GW_PKT_TRIMMABLE, .key = BATCH};
    add_algo(suite, &gw_qdisc_registry, algo, "enqueue + dequeue", qdisc_run, b);
}

/* Endpoints: data from one to the other and the ACK back, through the verbs; no network between. */

struct endpoint_bench {
    struct gw_pkt_pool pool;
    struct gw_transport transport;
    struct gw_node *sender;
    struct gw_node *receiver;
    gw_time now;
};

/* Pulls up to BATCH packets of a node's only port. */
static uint32_t pull(struct gw_node *node, struct gw_pkt **pkts, gw_time now)
{
    uint32_t count = 0;
    uint32_t answer = node->ready_count ? GW_OUTPUT_MORE : 0;
    while (answer & GW_OUTPUT_MORE && count < BATCH) {
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
    struct gw_pkt *pkts[BATCH];
    for (uint64_t done = 0; done < count;) {
        uint32_t data = pull(b->sender, pkts, b->now);
        GW_ASSERT(data > 0);
        done += data;
        b->now += PATH.brtt;
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
        .mtu = MTU,
        .hdr = HDR,
        .ack_every = 1,
        .train = 1,
        .seed = address,
        .pool = &b->pool,
    };
    return gw_endpoint_init(take(gw_endpoint_size(&cfg)), &cfg);
}

static void add_endpoint(struct suite *suite)
{
    struct endpoint_bench *b = take(sizeof(*b));
    gw_pkt_pool_init(&b->pool, take(4 * BATCH * sizeof(struct gw_pkt)), 0, 4 * BATCH, NULL);
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
        .bytes = (uint64_t)(UINT32_MAX - 1) * MTU, /* never ends while it is measured */
        .transport = &b->transport,
        .path = PATH,
    };
    uint32_t flow;
    GW_ASSERT(gw_endpoint_send(sender, &send, &flow, b->now) == 0);
    add(suite, "endpoints: data out, in, ACK out, in", endpoint_run, b);
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
    uint32_t destinations[INPUTS];
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
    for (uint64_t done = 0; done < count; done += BATCH) {
        for (uint32_t i = 0; i < BATCH; i++) {
            struct gw_pkt *pkt = gw_pkt_claim(&b->pool);
            uint64_t sequence = b->sequence++;
            pkt->q = (struct gw_qpkt){
                .size = MTU + HDR, .flags = GW_PKT_TRIMMABLE, .key = 1, .ecn = GW_ECN_ECT0};
            pkt->dst = b->destinations[sequence % INPUTS];
            pkt->entropy = (uint16_t)sequence;
            gw_node_input(b->node, (uint16_t)(i % SWITCH_PORTS), &pkt, 1, 0);
        }
        switch_drain(b);
    }
}

static void add_switch(struct suite *suite)
{
    struct switch_bench *b = take(sizeof(*b));
    struct gw_prng prng = gw_prng_derive(4, 0);
    const struct gw_algo *trim = gw_registry_find(&gw_qdisc_registry, "trim");
    uint32_t capacity[SWITCH_PORTS];
    gw_algo_defaults(trim, &b->qdisc_cfg);
    gw_pkt_pool_init(&b->pool, take(BATCH * sizeof(struct gw_pkt)), 0, BATCH, NULL);
    const uint32_t hosts = SWITCH_PORTS - SWITCH_UPLINKS;
    for (uint32_t port = 0; port < SWITCH_PORTS; port++)
        capacity[port] = BDP;
    for (uint32_t i = 0; i < SWITCH_UPLINKS; i++)
        b->members[i] = (uint16_t)(hosts + i);
    b->uplinks.count = SWITCH_UPLINKS;
    for (uint32_t host = 0; host < hosts; host++) {
        b->leaves[host] = (uint16_t)host;
        b->leaves[hosts + host] = GW_ROUTE_SET;
    }
    for (uint32_t block = 1; block < DESTINATIONS >> BLOCK_SHIFT; block++)
        b->blocks[block] = 1;
    for (uint32_t i = 0; i < INPUTS; i++)
        b->destinations[i] = gw_prng_below(&prng, i % 2 ? hosts : DESTINATIONS);
    struct gw_switch_cfg cfg = {
        .port_count = SWITCH_PORTS,
        .qdisc = (const struct gw_qdisc_ops *)trim,
        .qdisc_cfg = &b->qdisc_cfg,
        .capacity = capacity,
        .trim_size = HDR,
        .routes = {.blocks = b->blocks,
                   .leaves = b->leaves,
                   .sets = &b->uplinks,
                   .members = b->members,
                   .destination_count = DESTINATIONS,
                   .block_shift = BLOCK_SHIFT},
        .seed = 4,
        .pool = &b->pool,
    };
    b->node = gw_switch_node(gw_switch_init(take(gw_switch_size(&cfg)), &cfg));
    add(suite, "switch of 16 ports: input + output", switch_run, b);
}

/* Wire: a packet to bytes and back. */

struct codec_bench {
    struct gw_pkt pkts[BATCH];
    struct gw_codec codec;
};

static void codec_run(void *state, uint64_t count)
{
    struct codec_bench *b = state;
    uint64_t sum = 0;
    for (uint64_t i = 0; i < count; i++) {
        struct gw_frame frame;
        struct gw_pkt pkt;
        gw_codec_encode(&b->codec, &b->pkts[i % BATCH], &frame);
        int error = gw_codec_decode(&b->codec, &frame, 0, &pkt);
        GW_ASSERT(error == 0);
        sum += pkt.seq;
    }
    sink += sum;
}

static void add_codec(struct suite *suite, enum gw_pkt_kind kind, const char *name)
{
    struct codec_bench *b = take(sizeof(*b));
    b->codec = (struct gw_codec){.cookie = 1, .overhead = HDR - GW_WIRE_DATA_SIZE};
    for (uint32_t i = 0; i < BATCH; i++) {
        struct gw_pkt *pkt = &b->pkts[i];
        *pkt = (struct gw_pkt){
            .q = {.size = kind == GW_PKT_DATA ? MTU + HDR : HDR, .kind = (uint8_t)kind},
            .src = 1,
            .dst = 2,
            .flow = 3,
            .seq = i,
            .entropy = (uint16_t)i,
            .buf = GW_BUF_NONE,
        };
        if (kind == GW_PKT_DATA) {
            pkt->data.total = 2 * BATCH;
            pkt->data.len = MTU;
            pkt->data.mss = MTU;
        } else {
            pkt->q.class = GW_CLASS_CONTROL;
            pkt->ack.cum = i + 1;
        }
    }
    add(suite, name, codec_run, b);
}

/* Map: look up keys that are there, in random order. */

struct map_bench {
    struct gw_map map;
    uint64_t keys[INPUTS];
};

static void map_run(void *state, uint64_t count)
{
    struct map_bench *b = state;
    uint64_t sum = 0;
    for (uint64_t i = 0; i < count; i++)
        sum += gw_map_get(&b->map, b->keys[i % INPUTS]);
    sink += sum;
}

static void add_map(struct suite *suite)
{
    struct map_bench *b = take(sizeof(*b));
    struct gw_prng prng = gw_prng_derive(5, 0);
    gw_map_init(&b->map, take(gw_map_size(MAP_ENTRIES)), MAP_ENTRIES);
    for (uint32_t i = 0; i < MAP_ENTRIES; i++) {
        uint64_t key = gw_prng_next(&prng);
        GW_ASSERT(gw_map_put(&b->map, key, i) == 0);
        b->keys[i % INPUTS] = key;
    }
    add(suite, "map of 4096: get", map_run, b);
}

/* Heap: the first timer moves to a random later time, as when it has expired. */

struct heap_bench {
    struct gw_heap heap;
    uint32_t delays[INPUTS];
};

static void heap_run(void *state, uint64_t count)
{
    struct heap_bench *b = state;
    for (uint64_t i = 0; i < count; i++)
        gw_heap_set(&b->heap, gw_heap_first(&b->heap),
                    gw_heap_next(&b->heap) + b->delays[i % INPUTS]);
    sink += gw_heap_next(&b->heap);
}

static void add_heap(struct suite *suite)
{
    struct heap_bench *b = take(sizeof(*b));
    struct gw_prng prng = gw_prng_derive(6, 0);
    gw_heap_init(&b->heap, take(gw_heap_size(HEAP_IDS)), HEAP_IDS);
    for (uint32_t i = 0; i < INPUTS; i++)
        b->delays[i] = 1 + gw_prng_below(&prng, UINT32_C(1000000));
    for (uint32_t id = 0; id < HEAP_IDS; id++)
        gw_heap_set(&b->heap, id, b->delays[id % INPUTS]);
    add(suite, "heap of 1024: set", heap_run, b);
}

static void build_suite(struct suite *suite)
{
    for (uint32_t i = 0; i < gw_cc_registry.count; i++)
        add_cc(suite, gw_cc_registry.algos[i]);
    for (uint32_t i = 0; i < gw_lb_registry.count; i++)
        add_lb(suite, gw_lb_registry.algos[i]);
    for (uint32_t i = 0; i < gw_qdisc_registry.count; i++)
        add_qdisc(suite, gw_qdisc_registry.algos[i]);
    add_endpoint(suite);
    add_switch(suite);
    add_codec(suite, GW_PKT_DATA, "codec, data: encode + decode");
    add_codec(suite, GW_PKT_ACK, "codec, ACK: encode + decode");
    add_map(suite);
    add_heap(suite);
}

static double now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* Nanoseconds of one operation, out of `count`. */
static double measure(const struct bench *bench, uint64_t count)
{
    double begin = now_ns();
    bench->run(bench->state, count);
    return (now_ns() - begin) / (double)count;
}

/* Chooses how many operations make a measurement; warms up on the way. */
static void calibrate(struct bench *bench)
{
    uint64_t count = BATCH;
    while (measure(bench, count) * (double)count < MEASURE_NS / 2)
        count *= 2;
    bench->count = count;
}

static int compare_doubles(const void *a, const void *b)
{
    double difference = *(const double *)a - *(const double *)b;
    return (difference > 0) - (difference < 0);
}

static void run_suite(struct suite *suite)
{
    for (uint32_t i = 0; i < suite->count; i++)
        calibrate(&suite->benches[i]);
    for (uint32_t r = 0; r < REPETITIONS; r++)
        for (uint32_t i = 0; i < suite->count; i++) {
            struct bench *bench = &suite->benches[i];
            bench->ns[r] = measure(bench, bench->count);
        }
    for (uint32_t i = 0; i < suite->count; i++)
        qsort(suite->benches[i].ns, REPETITIONS, sizeof(double), compare_doubles);
}

static void print_suite(const struct suite *suite, bool json)
{
    const char *row = json ? "  {\"operation\": \"%s\", \"ns_median\": %.2f, \"ns_min\": %.2f}%s\n"
                           : "%-40s %8.2f %8.2f%s\n";
    if (json)
        puts("[");
    else
        printf("%-40s %8s %8s\n", "operation, nanoseconds", "median", "least");
    for (uint32_t i = 0; i < suite->count; i++) {
        const struct bench *bench = &suite->benches[i];
        printf(row, bench->name, bench->ns[REPETITIONS / 2], bench->ns[0],
               json && i + 1 < suite->count ? "," : "");
    }
    if (json)
        puts("]");
}

static error_t parse_option(int key, char *text, struct argp_state *state)
{
    (void)text;
    if (key != 'j')
        return ARGP_ERR_UNKNOWN;
    *(bool *)state->input = true;
    return 0;
}

int main(int argc, char **argv)
{
    static const struct argp_option options[] = {
        {"json", 'j', 0, 0, "print one JSON value", 0},
        {0},
    };
    static const struct argp argp = {
        options, parse_option, 0, "Measures the hot paths of the core, in nanoseconds.", 0, 0, 0};
    static struct suite suite;
    bool json = false;
    argp_err_exit_status = 2;
    argp_parse(&argp, argc, argv, 0, NULL, &json);
    build_suite(&suite);
    run_suite(&suite);
    print_suite(&suite, json);
    return 0;
}
